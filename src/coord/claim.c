/* SPDX-License-Identifier: Apache-2.0 */
/* What a probe's hit means for one group, position by position.  See parts.h. */
#include "coord/parts.h"
#include "match/joint.h"

/* The tail's page, when the hit ends in one. */
static bool in_tail(const struct cache *cache, const struct cache_probe *probe, uint32_t page)
{
	return probe->tail_entry != SLOT_NONE &&
	       page == probe->host_tokens / cache->pages.groups.page_tokens;
}

struct claim_source claim_source(const struct cache *cache, const struct cache_probe *probe,
				 uint32_t group_id, uint32_t position)
{
	const struct group *const group = &cache->pages.groups.group[group_id];
	const uint32_t            page = position / group->page_blocks;
	const uint32_t            cell = pages_cell(&cache->pages, cache->entries[page],
						    group_column(group, position));
	struct claim_source       source = { .stratum = STRATUM_DEVICE };

	KVS_ASSERT_CMP(cache->entries[page], !=, SLOT_NONE);
	source.block = pages_block(&cache->pages, cell, STRATUM_DEVICE);
	if (source.block == BLOCK_NULL) {
		source.stratum = STRATUM_HOST;
		source.block = pages_block(&cache->pages, cell, STRATUM_HOST);
	}
	KVS_ASSERT_CMP(source.block, !=, BLOCK_NULL);
	source.copied = source.stratum == STRATUM_DEVICE && in_tail(cache, probe, page);
	return source;
}

/* Positions [position, end) of one page: what Device holds, its bitmap says. */
static void count_page(const struct cache *cache, const struct cache_probe *probe,
		       const struct group *group, uint32_t position, uint32_t end,
		       struct claim *claim)
{
	const uint32_t page = position / group->page_blocks;
	const uint32_t count = end - position;
	const uint64_t mask = UINT64_MAX >> (COLUMNS_MAX - count);
	const uint64_t held = cache->pages.entries[cache->entries[page]].held[STRATUM_DEVICE];
	const uint32_t column = group_column(group, position);
	const uint32_t on_device = (uint32_t)__builtin_popcountll(held >> column & mask);

	if (in_tail(cache, probe, page))
		claim->copies += on_device;
	else
		claim->hits += on_device;
	claim->loads += count - on_device;
}

struct claim claim_count(const struct cache *cache, const struct cache_probe *probe,
			 uint32_t group_id)
{
	const struct group *const group = &cache->pages.groups.group[group_id];
	struct claim              claim = { 0 };
	uint32_t                  position, page_end;

	match_needed(group, probe->host_tokens, &claim.first, &claim.end);
	claim.slots = group_blocks(group, probe->host_tokens);
	claim.available = (uint32_t)(group_tokens_at(group, claim.slots) - probe->host_tokens);
	if (probe->mode == PROBE_DECODE && group->spec.kind == GROUP_STATE)
		claim.first = claim.end = claim.slots;
	for (position = claim.first; position < claim.end; position = page_end) {
		page_end = (position / group->page_blocks + 1) * group->page_blocks;
		if (page_end > claim.end)
			page_end = claim.end;
		count_page(cache, probe, group, position, page_end, &claim);
	}
	return claim;
}
