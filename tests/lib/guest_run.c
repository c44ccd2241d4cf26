/* SPDX-License-Identifier: Apache-2.0 */
/* Forwards of a request, and its end.  See guest.h. */
#include "guest.h"

#include <stdio.h>

#include "base/prng.h"
#include "match/joint.h"

uint32_t guest_loading(const struct yard *yard, const struct guest *guest)
{
	uint32_t count = 0;
	uint32_t slot;

	SLOTS_EACH(&yard->mover.slots, slot) {
		const struct mover_ticket *const ticket = &yard->mover.tickets[slot];

		count += ticket_is_load(ticket->kind) && ticket->request == guest->id;
	}
	return count;
}

/* --- forward ---------------------------------------------------------------------------------- */

static bool is_foreign(const struct yard *yard, const struct guest *guest, uint64_t id)
{
	return mover_find(&yard->mover, id)->request != guest->id;
}

/* Behind its own batches, and behind the loads of others whose blocks it hit. */
static void wait_for_loads(struct yard *yard, const struct guest *guest)
{
	uint32_t g, i;

	if (!yard->spec.unzeroed)
		yard_run_batches(yard, guest->batches);
	for (g = 0; g < yard->spec.group_count; g++) {
		for (i = 0; i < guest->tables[g].count; i++) {
			const uint64_t id = mover_fence(&yard->mover, g, guest->slots[g][i]);

			yard->counts->foreign_fences +=
				id > yard->loaded_ticket && is_foreign(yard, guest, id);
			yard_run_ticket(yard, id);
		}
	}
}

/* What a forward writes has no name: nobody else may read it. */
static void assert_private(const struct yard *yard, const struct guest *guest)
{
	uint32_t g;

	for (g = 0; g < yard->spec.group_count; g++) {
		const struct group_spec *const group = &yard->spec.groups[g];
		const uint32_t                 q = group->block_tokens;
		uint32_t                       i = guest->computed / q;

		if (group->kind == GROUP_STATE)
			i = (guest->end - 1) / q;
		for (; i <= (guest->end - 1) / q; i++) {
			struct cell_view view;

			KVS_ASSERT_CMP(i, <, guest->tables[g].count);
			KVS_ASSERT_CMP(guest->slots[g][i], !=, BLOCK_NULL);
			KVS_ASSERT(!cache_view(yard->cache, STRATUM_DEVICE, g, guest->slots[g][i], &view));
		}
	}
}

static void blame(const struct yard *yard, const struct guest *guest)
{
	const struct engine_fault *const fault = &yard->engine.first;

	fprintf(stderr, "request %llu, group %u, position %u, layer %u: %s; forward of [%u, %u), hit %u\n",
		(unsigned long long)fault->request, fault->group, fault->position, fault->layer,
		fault->hole ? "a hole" : "a wrong row", guest->computed, guest->end, guest->hit);
}

/* Equal prefixes go on equally, most of the time: a conversation that is repeated is found again. */
static int32_t sample(const struct guest *guest)
{
	uint64_t state = 0;
	uint32_t i;

	for (i = 0; i < guest->token_count; i++)
		state = mix64(state ^ (uint64_t)guest->tokens[i]);
	if (state % 8 == 0)
		state = mix64(state ^ guest->id);
	return (int32_t)(state >> 62);
}

bool guest_forward(struct yard *yard, struct guest *guest)
{
	struct engine_table      tables[YARD_GROUPS];
	const struct engine_pass pass = { guest->id, guest->tokens, guest->computed, guest->end, tables };
	uint32_t                 g;

	KVS_ASSERT_CMP(guest->end, >, guest->computed);
	wait_for_loads(yard, guest);
	assert_private(yard, guest);
	for (g = 0; g < yard->spec.group_count; g++)
		tables[g] = (struct engine_table){ guest->slots[g], guest->tables[g].count };
	if (!group_engine_forward(&yard->engine, &pass)) {
		blame(yard, guest);
		KVS_PANIC("a forward has read or written a wrong row");
	}
	yard->counts->decodes += guest->phase == GUEST_DECODE;
	yard->counts->chunks += guest->phase == GUEST_PREFILL;
	guest->computed = guest->end;
	guest->end = 0;
	if (guest->computed < guest->token_count)
		return false;
	guest->phase = GUEST_DECODE;
	guest->tail = 0;
	guest->tokens[guest->token_count++] = sample(guest);
	KVS_ASSERT_CMP(guest->token_count, <=, GUEST_TOKENS);
	return true;
}

/* --- the end ---------------------------------------------------------------------------------- */

static void leave(struct guest *guest)
{
	guest->phase = GUEST_NONE;
	guest->epoch = 0;
	guest->end = 0;
	guest->published = 0;
}

/* The last, partial page: named, and a hint that it is. */
static void publish_tail(struct yard *yard, struct guest *guest)
{
	const uint32_t    page = yard->spec.page_tokens;
	const uint32_t    tokens = guest->computed - guest->unaligned;
	const uint32_t    pages = tokens / page;
	const struct tail tail = { tokens, guest_tail_hash(yard, guest, tokens) };

	KVS_ASSERT(cache_publish_tail(yard->cache, guest->tables, &yard->space, &tail, guest->computed,
				      guest->epoch, CELL_ENDPOINT, NULL) == 0);
	tails_record(&yard->tails, &yard->space, pages > 0 ? &guest->hashes[pages - 1] : NULL,
		     tokens % page, &tail.hash);
	yard->counts->tails++;
}

static struct cache_completed all_pages(const struct yard *yard, struct guest *guest,
					enum cell_kind kind)
{
	const uint32_t pages = guest->computed / yard->spec.page_tokens;

	guest_hash(yard, guest);
	return (struct cache_completed){ .space = &yard->space, .hashes = guest->hashes,
					 .page_count = pages, .new_begin = guest->published,
					 .kind = pages > guest->published ? kind : CELL_NONE,
					 .computed = guest->computed };
}

void guest_finish(struct yard *yard, struct guest *guest)
{
	const struct cache_completed completed = all_pages(yard, guest, CELL_ENDPOINT);

	KVS_ASSERT_CMP(guest->phase, ==, GUEST_DECODE);
	KVS_ASSERT_CMP(guest->end, ==, 0);
	KVS_ASSERT_CMP(guest->computed + 1, ==, guest->token_count);
	KVS_ASSERT(cache_advance(yard->cache, guest->tables, &completed, guest->epoch, NULL) == 0);
	if (guest->computed % yard->spec.page_tokens > guest->unaligned)
		publish_tail(yard, guest);
	cache_free(yard->cache, guest->tables);
	yard->counts->finishes++;
	leave(guest);
}

void guest_abort(struct yard *yard, struct guest *guest)
{
	KVS_ASSERT(guest->phase != GUEST_NONE);
	yard->counts->aborts++;
	yard->counts->aborts_loading += guest_loading(yard, guest) > 0;
	if (guest->snapshot != SLOT_NONE)
		snapshot_drop(&yard->snapshots, guest->snapshot);
	guest->snapshot = SLOT_NONE;
	cache_free(yard->cache, guest->tables);
	leave(guest);
}

void guest_retract(struct yard *yard, struct guest *guest)
{
	const struct retraction retraction = { guest->id, guest->tables,
					       all_pages(yard, guest, CELL_CHUNK), guest->epoch };
	struct retracted        retracted;

	KVS_ASSERT_CMP(guest->phase, ==, GUEST_DECODE);
	KVS_ASSERT_CMP(guest->end, ==, 0);
	KVS_ASSERT_CMP(guest_loading(yard, guest), ==, 0);
	KVS_ASSERT(snapshot_retract(&yard->snapshots, &retraction, &retracted, NULL) == 0);
	yard_save(yard, retracted.save_ticket);
	yard_save(yard, retracted.stash_ticket);
	guest->snapshot = retracted.snapshot;
	guest->phase = GUEST_WAITING;
	guest->epoch = 0;
	guest->computed = 0;
	guest->published = 0;
	guest->promotion = 0;
	guest->prefill = guest->token_count;
	yard->counts->retractions++;
}
