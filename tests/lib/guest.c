/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission of a request.  See guest.h; what it asks for is in guest_step.c, what comes after it in
 * guest_run.c.
 */
#include "guest_step.h"

#include <string.h>

void guest_open(struct yard *yard, struct guest *guest, uint64_t id, const int32_t *tokens,
		uint32_t token_count)
{
	uint32_t g;

	KVS_ASSERT_CMP(token_count, >=, 1);
	KVS_ASSERT_CMP(token_count, <, GUEST_TOKENS);
	memset(guest, 0, sizeof(*guest));
	guest->phase = GUEST_WAITING;
	guest->id = id;
	guest->token_count = token_count;
	guest->prefill = token_count;
	guest->snapshot = SLOT_NONE;
	guest->replay = 1;
	memcpy(guest->tokens, tokens, token_count * sizeof(*tokens));
	for (g = 0; g < yard->spec.group_count; g++)
		table_init(&guest->tables[g], guest->slots[g], GUEST_TOKENS);
}

/* --- names ------------------------------------------------------------------------------------ */

static struct prompt prompt_of(const struct yard *yard, const struct guest *guest)
{
	return (struct prompt){ .tokens = guest->tokens, .token_count = guest->token_count,
				.page_tokens = yard->spec.page_tokens };
}

void guest_hash(const struct yard *yard, struct guest *guest)
{
	const struct prompt prompt = prompt_of(yard, guest);
	const uint32_t      pages = guest->token_count / yard->spec.page_tokens;
	const uint32_t      first = guest->hashed;

	if (first == pages)
		return;
	prefix_hash_chain(&prompt, first, pages, first > 0 ? &guest->hashes[first - 1] : NULL,
			  &guest->hashes[first]);
	guest->hashed = pages;
}

struct prefix_hash guest_tail_hash(const struct yard *yard, struct guest *guest, uint32_t tokens)
{
	const struct prompt prompt = prompt_of(yard, guest);
	const uint32_t      pages = tokens / yard->spec.page_tokens;
	struct prefix_hash  hash;

	guest_hash(yard, guest);
	prefix_hash_tail(&prompt, pages, tokens % yard->spec.page_tokens,
			 pages > 0 ? &guest->hashes[pages - 1] : NULL, &hash);
	return hash;
}

static uint32_t find_tails(const struct yard *yard, const struct guest *guest, uint32_t bound,
			   struct tail *ret_tails)
{
	const struct prompt      prompt = prompt_of(yard, guest);
	const struct tail_search search = { .space = &yard->space, .prompt = &prompt,
					    .hashes = guest->hashes, .bound = bound, .reach = bound,
					    .page_max = GUEST_PAGES };

	return tails_find(&yard->tails, &search, ret_tails, GUEST_TAILS);
}

/* --- first chunk ------------------------------------------------------------------------------ */

static void count_hit(struct yard *yard, const struct cache_probe *probe,
		      const struct cache_admitted *admitted)
{
	struct yard_counts *const counts = yard->counts;
	const bool                tail = probe->tail_entry != SLOT_NONE;
	uint32_t                  i;

	counts->device_hits += admitted->device_tokens > 0;
	counts->host_hits += admitted->host_tokens > admitted->device_tokens;
	counts->tail_hits += tail;
	counts->copies += admitted->copy_count;
	counts->loads += admitted->load_count;
	for (i = 0; tail && i < admitted->load_count; i++) {
		const uint32_t q = yard->spec.groups[admitted->moves[i].group].block_tokens;

		counts->tail_loads += admitted->moves[i].tokens < q;
	}
}

/* The hit is the request's: its loads are made, and what they bring is named. */
static void take_hit(struct yard *yard, struct guest *guest, const struct cache_probe *probe,
		     const struct cache_admitted *admitted)
{
	const uint32_t page = yard->spec.page_tokens;
	const uint32_t first = (uint32_t)(admitted->device_tokens / page);
	uint64_t       id;

	count_hit(yard, probe, admitted);
	guest->epoch = admitted->epoch;
	guest->hit = (uint32_t)admitted->host_tokens;
	guest->computed = guest->hit;
	guest->published = guest->hit / page;
	id = mover_load(&yard->mover, guest->id, admitted->moves,
			admitted->load_count + admitted->copy_count);
	yard_load(yard, id, admitted);
	KVS_ASSERT(cache_publish(yard->cache, guest->tables, &yard->space, &guest->hashes[first], first,
				 guest->published - first, guest->epoch, CELL_CHUNK, NULL) == 0);
}

/* 0, or KVS_E_FULL with everything as before. */
static int admit_first(struct yard *yard, struct guest *guest, const struct cache_probe *probe,
		       const struct guest_step *step)
{
	const struct cache_admission admission = { .tables = guest->tables, .demands = step->demands,
						   .probe = probe,
						   .completed = { .computed = COMPUTED_NONE } };
	const uint64_t               clock = cache_clock(yard->cache);
	struct cache_admitted        admitted;
	const int                    rc = cache_admit(yard->cache, &admission, &admitted, NULL);

	if (rc < 0) {
		KVS_ASSERT_CMP(rc, ==, KVS_E_FULL);
		KVS_ASSERT_CMP(cache_clock(yard->cache), ==, clock);
		KVS_ASSERT_CMP(guest->tables[0].count, ==, 0);
		return rc;
	}
	take_hit(yard, guest, probe, &admitted);
	guest->end = step->end;
	guest->batches = yard->stream[COPIER_LOAD].submitted;
	return 0;
}

/* Behind the hit comes the image, and behind that one decode step. */
static int restore(struct yard *yard, struct guest *guest, const struct cache_probe *probe,
		   uint32_t computed)
{
	struct guest_step step = { .begin = (uint32_t)probe->host_tokens, .end = computed + 1,
				   .reserve = 1, .sparse = true, .first_state = computed - 1 };
	uint64_t          id;
	int               rc;

	KVS_ASSERT_CMP(computed + 1, ==, guest->token_count);
	guest_demands(yard, &step);
	rc = admit_first(yard, guest, probe, &step);
	if (rc < 0)
		return rc;
	KVS_ASSERT(snapshot_restore(&yard->snapshots, guest->snapshot, guest->tables,
				    probe->host_tokens, &id, NULL) == 0);
	yard_load(yard, id, NULL);
	guest->batches = yard->stream[COPIER_LOAD].submitted;
	guest->snapshot = SLOT_NONE;
	guest->computed = computed;
	guest->phase = GUEST_DECODE;
	return 0;
}

/* Prefill the hit's rest, and take up the boundary that is worth publishing. */
static int begin_prefill(struct yard *yard, struct guest *guest, const struct cache_probe *probe,
			 uint32_t budget)
{
	const uint32_t    hit = (uint32_t)probe->host_tokens;
	const uint32_t    promotion =
		probe->promotion_tokens < guest->prefill ? (uint32_t)probe->promotion_tokens : 0;
	struct guest_step step;
	int               rc;

	if (!guest_chunk(yard, guest, hit, promotion, budget, &step))
		return KVS_E_BUSY;
	rc = admit_first(yard, guest, probe, &step);
	if (rc < 0)
		return rc;
	if (guest->snapshot != SLOT_NONE) {
		yard->counts->recomputed++;
		snapshot_drop(&yard->snapshots, guest->snapshot);
		guest->snapshot = SLOT_NONE;
	}
	guest->promotion = promotion;
	guest->tail = step.tail;
	guest->phase = GUEST_PREFILL;
	yard->counts->body_tails += step.tail > 0;
	return 0;
}

static int admit_waiting(struct yard *yard, struct guest *guest, uint32_t budget)
{
	const uint32_t bound =
		(uint32_t)prefix_reusable_tokens(guest->token_count, guest->replay, LOGITS_NONE);
	struct tail         tails[GUEST_TAILS];
	struct cache_prompt prompt = { .space = &yard->space, .hashes = guest->hashes,
				       .page_count = bound / yard->spec.page_tokens,
				       .tails = tails };
	struct cache_probe  probe;
	uint64_t            computed;

	if (yard->mover.load_ticket_max - mover_loading(&yard->mover) < 2)
		return KVS_E_BUSY;
	if (guest->snapshot != SLOT_NONE && !snapshot_is_ready(&yard->snapshots, guest->snapshot))
		return KVS_E_BUSY;
	guest_hash(yard, guest);
	if (guest->snapshot == SLOT_NONE)
		prompt.tail_count = find_tails(yard, guest, bound, tails);
	KVS_ASSERT(cache_probe(yard->cache, &prompt, PROBE_ALL, &probe, NULL) == 0);
	computed = guest->snapshot == SLOT_NONE
			   ? 0
			   : snapshot_tokens(&yard->snapshots, guest->snapshot, probe.host_tokens);
	if (computed > probe.host_tokens)
		return restore(yard, guest, &probe, (uint32_t)computed);
	return begin_prefill(yard, guest, &probe, budget);
}

/* --- later chunks and decode steps ------------------------------------------------------------- */

static struct cache_completed completed_of(struct yard *yard, struct guest *guest)
{
	const uint32_t         pages = guest->computed / yard->spec.page_tokens;
	struct cache_completed completed = { .space = &yard->space, .hashes = guest->hashes,
					     .page_count = pages, .new_begin = guest->published,
					     .computed = guest->computed };

	guest_hash(yard, guest);
	if (pages > guest->published) {
		completed.kind = guest->computed == guest->promotion ? CELL_PROMOTED
				 : guest->computed >= guest->prefill ? CELL_ENDPOINT
								     : CELL_CHUNK;
	}
	return completed;
}

static void note_completed(struct yard *yard, struct guest *guest,
			   const struct cache_completed *completed)
{
	yard->counts->promotions += completed->kind == CELL_PROMOTED;
	guest->published = completed->page_count;
	if (guest->computed >= guest->promotion)
		guest->promotion = 0;
}

static bool plan_next(const struct yard *yard, const struct guest *guest, uint32_t budget,
		      struct guest_step *ret_step)
{
	*ret_step = (struct guest_step){ .begin = guest->computed, .end = guest->token_count };
	ret_step->reserve = guest->phase == GUEST_PREFILL;
	if (guest->phase == GUEST_PREFILL && guest->tail == 0)
		return guest_chunk(yard, guest, guest->computed, guest->promotion, budget, ret_step);
	guest_demands(yard, ret_step);
	return true;
}

/* Nothing fits: would it once the saves are done?  Then it must. */
static int admit_behind_saves(struct yard *yard, const struct cache_admission *admission,
			      struct cache_admitted *ret_admitted)
{
	uint32_t                        count;
	const struct cache_block *const released = mover_sources(&yard->mover, &count);

	if (!cache_can_admit(yard->cache, admission, released, count))
		return KVS_E_FULL;
	yard->counts->waited++;
	yard_settle_saves(yard);
	KVS_ASSERT(cache_admit(yard->cache, admission, ret_admitted, NULL) == 0);
	return 0;
}

static int admit_next(struct yard *yard, struct guest *guest, uint32_t budget)
{
	struct guest_step      step;
	struct cache_admission admission = { .tables = guest->tables, .demands = step.demands,
					     .epoch = guest->epoch };
	struct cache_admitted  admitted;
	int                    rc;

	if (!plan_next(yard, guest, budget, &step))
		return KVS_E_BUSY;
	admission.completed = completed_of(yard, guest);
	rc = cache_admit(yard->cache, &admission, &admitted, NULL);
	KVS_ASSERT(rc == 0 || rc == KVS_E_FULL);
	if (rc < 0)
		rc = admit_behind_saves(yard, &admission, &admitted);
	if (rc < 0)
		return rc;
	note_completed(yard, guest, &admission.completed);
	yard_load(yard, 0, &admitted);
	guest->batches = yard->stream[COPIER_LOAD].submitted;
	guest->end = step.end;
	guest->tail = step.tail;
	return 0;
}

int guest_admit(struct yard *yard, struct guest *guest, uint32_t budget)
{
	int rc;

	KVS_ASSERT(guest->phase != GUEST_NONE);
	KVS_ASSERT_CMP(guest->end, ==, 0);
	rc = guest->phase == GUEST_WAITING ? admit_waiting(yard, guest, budget)
					   : admit_next(yard, guest, budget);
	yard->counts->refused += rc == KVS_E_FULL;
	return rc;
}
