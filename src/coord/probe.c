/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a prompt can be restored: from Device alone, then with Host above that.  Nothing is touched,
 * so that an admission that never comes costs nobody a place in the order of eviction.
 */
#include "coord/parts.h"
#include "match/joint.h"

static int check_tail(const struct cache *cache, const struct cache_prompt *prompt, uint32_t i,
		      struct kvs_error *err)
{
	const uint32_t page_tokens = cache->pages.groups.page_tokens;
	const uint32_t tokens = prompt->tails[i].tokens;

	if (tokens % page_tokens == 0 || tokens > TOKENS_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "tails[%u].tokens: %u, must not be a multiple of %u, nor above %d", i,
			       tokens, page_tokens, TOKENS_MAX);
	}
	if (tokens / page_tokens > prompt->page_count) {
		return err_set(err, KVS_E_INVALID,
			       "tails[%u].tokens: %u, further than one page behind %u pages", i, tokens,
			       prompt->page_count);
	}
	if (i > 0 && tokens >= prompt->tails[i - 1].tokens) {
		return err_set(err, KVS_E_INVALID,
			       "tails[%u].tokens: %u after %u; the longest comes first", i, tokens,
			       prompt->tails[i - 1].tokens);
	}
	return 0;
}

static int check_prompt(const struct cache *cache, const struct cache_prompt *prompt,
			struct kvs_error *err)
{
	uint32_t i;

	if (prompt->page_count > cache->prompt_pages) {
		return err_set(err, KVS_E_INVALID, "page_count: %u, at most %u", prompt->page_count,
			       cache->prompt_pages);
	}
	if ((uint64_t)prompt->page_count * cache->pages.groups.page_tokens > TOKENS_MAX) {
		return err_set(err, KVS_E_INVALID, "page_count: %u pages of %u tokens, at most %d tokens",
			       prompt->page_count, cache->pages.groups.page_tokens, TOKENS_MAX);
	}
	for (i = 0; i < prompt->tail_count; i++) {
		const int rc = check_tail(cache, prompt, i, err);

		if (rc < 0)
			return rc;
	}
	return 0;
}

/* The longest legal tail beyond `tokens`; *ret_entry is its entry.  `tokens` when there is none. */
static uint64_t match_tail(struct cache *cache, const struct cache_prompt *prompt,
			   const struct view *view, uint64_t tokens, uint32_t *ret_entry)
{
	uint32_t i;

	for (i = 0; i < prompt->tail_count && prompt->tails[i].tokens > tokens; i++) {
		const struct tail *const tail = &prompt->tails[i];
		const uint32_t page = tail->tokens / cache->pages.groups.page_tokens;
		const uint32_t entry = pages_find(&cache->pages, prompt->space, &tail->hash);
		const uint32_t kept = cache->entries[page];
		bool           legal;

		if (entry == SLOT_NONE)
			continue;
		cache->entries[page] = entry;
		legal = match_legal(view, tail->tokens);
		cache->entries[page] = kept;
		if (legal) {
			*ret_entry = entry;
			return tail->tokens;
		}
	}
	return tokens;
}

/* What one more stratum brings: its boundary in tokens, and how far the FULL groups reach. */
static uint64_t match_with(struct cache *cache, const struct cache_prompt *prompt,
			   struct view *view, enum probe_mode mode, uint64_t *ret_closed,
			   uint32_t *ret_tail)
{
	const uint64_t page_tokens = cache->pages.groups.page_tokens;
	struct joint   joint;

	view->page_count = prompt->page_count;
	joint = match_joint(view, prompt->page_count);
	*ret_closed = joint.closed_pages * page_tokens;
	view->held_pages = joint.pages;
	if (mode == PROBE_DECODE)
		return joint.pages * page_tokens;
	view->page_count = prompt->page_count + 1;
	return match_tail(cache, prompt, view, joint.pages * page_tokens, ret_tail);
}

static uint64_t promotion(const struct cache_probe *probe)
{
	const uint64_t closed = probe->device_closed > probe->host_closed ? probe->device_closed
									   : probe->host_closed;

	return closed > probe->host_tokens ? closed : 0;
}

/* With a FULL group nothing behind a missing page can be restored. */
static void find_pages(struct cache *cache, const struct cache_prompt *prompt)
{
	const struct groups *const groups = &cache->pages.groups;
	bool                       closed = false;
	uint32_t                   g;

	for (g = 0; g < groups->count; g++)
		closed = closed || group_is_closed(&groups->group[g]);
	if (closed) {
		pages_find_run(&cache->pages, prompt->space, prompt->hashes, prompt->page_count,
			       cache->entries);
	} else {
		pages_find_all(&cache->pages, prompt->space, prompt->hashes, prompt->page_count,
			       cache->entries);
	}
}

int cache_probe(struct cache *cache, const struct cache_prompt *prompt, enum probe_mode mode,
		struct cache_probe *ret_probe, struct kvs_error *err)
{
	struct cache_probe probe = { .mode = mode, .tail_entry = SLOT_NONE };
	struct view        view = { .pages = &cache->pages, .entries = cache->entries,
				    .held_in = HELD_DEVICE,
				    .ignored = mode == PROBE_DECODE ? 1u << GROUP_STATE : 0 };
	const int          rc = check_prompt(cache, prompt, err);

	if (rc < 0)
		return rc;
	find_pages(cache, prompt);
	cache->entries[prompt->page_count] = SLOT_NONE;
	probe.page_count = prompt->page_count;
	probe.device_tokens = match_with(cache, prompt, &view, mode, &probe.device_closed,
					 &probe.tail_entry);
	probe.host_tokens = probe.device_tokens;
	probe.host_closed = probe.device_closed;
	if (cache->has_host && mode == PROBE_ALL) {
		/* All that Device can restore, both together can: a tail of Device's is found again. */
		probe.tail_entry = SLOT_NONE;
		view.held_in = HELD_DEVICE | HELD_HOST;
		probe.host_tokens = match_with(cache, prompt, &view, mode, &probe.host_closed,
					       &probe.tail_entry);
		KVS_ASSERT_CMP(probe.host_tokens, >=, probe.device_tokens);
	}
	if (probe.tail_entry != SLOT_NONE) {
		cache->entries[probe.host_tokens / cache->pages.groups.page_tokens] =
			probe.tail_entry;
	}
	probe.promotion_tokens = promotion(&probe);
	probe.version = ++cache->version;
	*ret_probe = probe;
	return 0;
}

uint32_t cache_probe_hits(const struct cache *cache, const struct cache_probe *probe,
			  uint32_t group, enum stratum_id stratum)
{
	struct claim claim;

	KVS_ASSERT_CMP(probe->version, ==, cache->version);
	claim = claim_count(cache, probe, group);
	return stratum == STRATUM_HOST ? claim.loads : claim.hits + claim.copies;
}
