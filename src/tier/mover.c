/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See mover.h.  A row is in the free list or in one ticket's; a ticket is filled first and gets its id when
 * it has a row, so that ids count tickets that exist.
 */
#include "tier/mover.h"

#include "tier/parts.h"

/* --- tickets ---------------------------------------------------------------------------------- */

uint32_t mover_begin(struct mover *mover, enum ticket_kind kind, uint64_t request)
{
	const bool     is_load = ticket_is_load(kind);
	const uint32_t slot = slots_acquire(&mover->slots);

	KVS_ASSERT(is_load ? mover_can_load(mover) : mover_can_save(mover));
	/* A slot for each ticket of either kind. */
	KVS_ASSERT_CMP(slot, !=, SLOT_NONE);
	mover->tickets[slot] = (struct mover_ticket){ .kind = kind, .request = request };
	list_init(&mover->tickets[slot].rows);
	*(is_load ? &mover->loading_tickets : &mover->saving_tickets) += 1;
	return slot;
}

static void release(struct mover *mover, uint32_t slot)
{
	const bool is_load = ticket_is_load(mover->tickets[slot].kind);

	*(is_load ? &mover->loading_tickets : &mover->saving_tickets) -= 1;
	slots_release(&mover->slots, slot);
}

void mover_add(struct mover *mover, uint32_t slot, const struct mover_row *row)
{
	struct mover_ticket *const ticket = &mover->tickets[slot];
	const uint32_t             i = list_pop_head(&mover->free, mover->links);

	KVS_ASSERT_CMP(i, !=, SLOT_NONE);
	mover->rows[i] = *row;
	mover->rows[i].ticket_slot = slot;
	list_push_tail(&ticket->rows, mover->links, i);
	if (ticket->kind == TICKET_SAVE)
		map_insert(&mover->names, map_hash(&mover->names, &mover->rows[i].name), i);
	if (ticket_is_load(ticket->kind))
		map_insert(&mover->targets, map_hash(&mover->targets, &mover->rows[i].group), i);
	else
		mover->saving_rows++;
}

uint64_t mover_commit(struct mover *mover, uint32_t slot)
{
	struct mover_ticket *const ticket = &mover->tickets[slot];

	if (ticket->rows.count == 0) {
		release(mover, slot);
		return 0;
	}
	ticket->id = ++mover->last_id;
	map_insert(&mover->ids, map_hash(&mover->ids, &ticket->id), slot);
	mover->counts.tickets[ticket->kind]++;
	mover->counts.rows[ticket->kind] += ticket->rows.count;
	return ticket->id;
}

static enum copy_path path_of(enum ticket_kind kind, const struct cache_move *move)
{
	if (kind == TICKET_STASH)
		return COPY_DEVICE_TO_HOST;
	return move->from_host ? COPY_HOST_TO_DEVICE : COPY_DEVICE_TO_DEVICE;
}

static uint64_t copy_moves(struct mover *mover, enum ticket_kind kind, uint64_t request,
			   const struct cache_move *moves, uint32_t row_count)
{
	const uint32_t slot = mover_begin(mover, kind, request);
	uint32_t       i;

	for (i = 0; i < row_count; i++) {
		const struct cache_move *const move = &moves[i];
		const enum copy_path           path = path_of(kind, move);

		mover_add(mover, slot,
			  &(struct mover_row){ .group = move->group, .target = move->target,
					       .source = move->source, .position = move->position,
					       .tokens = move->tokens, .path = path });
	}
	return mover_commit(mover, slot);
}

bool mover_can_save(const struct mover *mover)
{
	return mover->saving_tickets < mover->save_ticket_max;
}

bool mover_can_stash(const struct mover *mover, uint32_t row_count)
{
	return mover_can_save(mover) && row_count <= mover->save_row_max - mover->saving_rows;
}

uint64_t mover_stash(struct mover *mover, uint64_t request, const struct cache_move *moves,
		     uint32_t row_count)
{
	KVS_ASSERT_CMP(row_count, >, 0);
	KVS_ASSERT(mover_can_stash(mover, row_count));
	return copy_moves(mover, TICKET_STASH, request, moves, row_count);
}

bool mover_can_load(const struct mover *mover)
{
	return mover->loading_tickets < mover->load_ticket_max;
}

uint64_t mover_load(struct mover *mover, uint64_t request, const struct cache_move *moves,
		    uint32_t row_count)
{
	if (row_count == 0)
		return 0;
	return copy_moves(mover, TICKET_LOAD, request, moves, row_count);
}

uint64_t mover_bring_back(struct mover *mover, uint64_t request, const struct cache_move *moves,
			  uint32_t row_count)
{
	if (row_count == 0)
		return 0;
	return copy_moves(mover, TICKET_BACK, request, moves, row_count);
}

/* --- questions -------------------------------------------------------------------------------- */

uint64_t mover_fence(const struct mover *mover, uint32_t group, uint32_t block)
{
	const uint32_t target[2] = { group, block };
	uint32_t       row;

	row = map_find(&mover->targets, map_hash(&mover->targets, target), target);
	return row == SLOT_NONE ? 0 : mover->tickets[mover->rows[row].ticket_slot].id;
}

static uint32_t find(const struct mover *mover, uint64_t id)
{
	return map_find(&mover->ids, map_hash(&mover->ids, &id), &id);
}

const struct mover_ticket *mover_find(const struct mover *mover, uint64_t id)
{
	const uint32_t slot = find(mover, id);

	return slot == SLOT_NONE ? NULL : &mover->tickets[slot];
}

const struct cache_block *mover_sources(struct mover *mover, uint32_t *ret_count)
{
	uint32_t slot, row;

	*ret_count = 0;
	SLOTS_EACH(&mover->slots, slot) {
		const struct mover_ticket *const ticket = &mover->tickets[slot];

		if (ticket_is_load(ticket->kind))
			continue;
		MOVER_ROWS(mover, ticket, row) {
			mover->sources[(*ret_count)++] = (struct cache_block){
				mover->rows[row].group, mover->rows[row].source
			};
		}
	}
	return mover->sources;
}

/* --- completion ------------------------------------------------------------------------------- */

static void finish_save(struct mover *mover, uint32_t i)
{
	const struct mover_row *const row = &mover->rows[i];
	const struct cell_name        name = candidate_name(&row->name);

	map_remove(&mover->names, map_hash(&mover->names, &row->name), i);
	cache_host_publish(mover->cache, &name, row->target, row->kind);
#ifndef KVS_MUTANT_DROP_SOURCE
	cache_unpin(mover->cache, STRATUM_DEVICE, row->group, row->source);
#endif
	mover->counts.published++;
}

/* The cache counts the rows that it reported itself. */
static void finish_load(struct mover *mover, enum ticket_kind kind, uint32_t i)
{
	const struct mover_row *const row = &mover->rows[i];
	const struct cache_move       move = { .group = row->group, .position = row->position,
					       .source = row->source, .target = row->target,
					       .tokens = row->tokens,
					       .from_host = row->path == COPY_HOST_TO_DEVICE };

	map_remove(&mover->targets, map_hash(&mover->targets, &row->group), i);
	if (kind == TICKET_LOAD) {
		cache_moved(mover->cache, &move);
		return;
	}
	cache_unpin(mover->cache, STRATUM_HOST, row->group, row->source);
	cache_unpin(mover->cache, STRATUM_DEVICE, row->group, row->target);
}

static void finish_stash(struct mover *mover, uint32_t i)
{
	const struct mover_row *const row = &mover->rows[i];

	cache_unpin(mover->cache, STRATUM_HOST, row->group, row->target);
	cache_unpin(mover->cache, STRATUM_DEVICE, row->group, row->source);
}

static void finish(struct mover *mover, enum ticket_kind kind, uint32_t i)
{
	if (ticket_is_load(kind)) {
		finish_load(mover, kind, i);
		return;
	}
	if (kind == TICKET_SAVE)
		finish_save(mover, i);
	else
		finish_stash(mover, i);
	mover->saving_rows--;
}

bool mover_done(struct mover *mover, uint64_t id)
{
	const uint32_t       slot = find(mover, id);
	struct mover_ticket *ticket;
	uint32_t             row;

	if (slot == SLOT_NONE) {
		mover->counts.ignored++;
		return false;
	}
	ticket = &mover->tickets[slot];
	while ((row = list_pop_head(&ticket->rows, mover->links)) != SLOT_NONE) {
		finish(mover, ticket->kind, row);
		list_push_head(&mover->free, mover->links, row);
	}
	map_remove(&mover->ids, map_hash(&mover->ids, &ticket->id), slot);
	release(mover, slot);
	return true;
}

bool mover_clear(struct mover *mover)
{
	if (mover->slots.busy_count > 0 || !cache_clear(mover->cache))
		return false;
	if (mover->candidates)
		candidates_clear(mover->candidates);
	return true;
}
