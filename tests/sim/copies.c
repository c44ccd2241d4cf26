/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copy engine of each rank: a stream of loads and one of saves, each first in, first out.
 *
 * Bytes move when a ticket's turn comes or at its fence, at random: nobody may count on either.  A save
 * waits for the loads that fill what it copies.  Of a page-cyclic group each rank moves the rows whose
 * Host block it holds; where a clone's source may have been another rank's to load, every rank makes
 * the clone, and the last one finds the source whole.
 */
#include <string.h>

#include "sim.h"

enum { SAVES, LOADS };

static void poke(struct sim *sim, uint32_t rank, uint32_t stream);

static void move_row(struct sim *sim, uint32_t rank, const struct mover_row *row)
{
	const uint32_t bytes = shape_block_bytes(&sim->shape, row->group);
	uint8_t       *from, *to;

	switch (row->path) {
	case COPY_DEVICE_TO_HOST:
		from = device_block(sim, rank, row->group, row->source);
		to = host_block(sim, rank, row->group, row->target);
		break;
	case COPY_HOST_TO_DEVICE:
		from = host_block(sim, rank, row->group, row->source);
		to = device_block(sim, rank, row->group, row->target);
		break;
	case COPY_DEVICE_TO_DEVICE:
	default:
		from = device_block(sim, rank, row->group, row->source);
		to = device_block(sim, rank, row->group, row->target);
		break;
	}
	if (from && to)
		memcpy(to, from, bytes);
}

static void move(struct sim *sim, uint32_t rank, uint64_t id)
{
	const struct mover *const        mover = sched_mover(sim->ranks[rank].sched);
	const struct mover_ticket *const ticket = mover_find(mover, id);
	uint32_t                         pass, row;

	if (!ticket)
		FAIL("one-state", "copy %" PRIu64 " lost its ticket on rank %u", id, rank);
	for (pass = 0; pass < 2; pass++) {
		MOVER_ROWS(mover, ticket, row) {
			if ((mover->rows[row].path == COPY_DEVICE_TO_DEVICE) == (pass == 1))
				move_row(sim, rank, &mover->rows[row]);
		}
	}
}

/* An event's argument: who, and of which incarnation. */
static void fence(void *context, uint64_t argument)
{
	struct sim *const        sim = context;
	const uint32_t           stream = argument % 2;
	const uint32_t           rank = (uint32_t)(argument / 2 % RANKS_MAX);
	struct sim_rank *const   of = &sim->ranks[rank];
	struct sim_stream *const line = &of->streams[stream];
	const uint64_t           ticket = line->tickets[line->head];
	uint32_t                 i;

	if (argument / 2 / RANKS_MAX != sim->incarnation)
		return;
	if (!line->moved)
		move(sim, rank, ticket);
	NOTE("copy %" PRIu64 " done on rank %u", ticket, rank);
	line->head = (line->head + 1) % TICKETS_MAX;
	line->count--;
	line->busy = false;
	of->copies[of->copy_count++] = ticket;
	if (stream == LOADS)
		of->loaded = ticket;
	poke(sim, rank, stream);
	for (i = 0; stream == LOADS && i < sim->shape.ranks; i++)
		poke(sim, i, SAVES);
	engine_poke(sim);
}

/* Loads of all ranks count: rows of a page-cyclic group may have been another's to load. */
static bool may_begin(const struct sim *sim, uint64_t after)
{
	uint32_t rank;

	for (rank = 0; rank < sim->shape.ranks; rank++) {
		if (sim->ranks[rank].loaded < after)
			return false;
	}
	return true;
}

static void poke(struct sim *sim, uint32_t rank, uint32_t stream)
{
	struct sim_stream *const line = &sim->ranks[rank].streams[stream];

	if (line->busy || line->count == 0 || !may_begin(sim, line->after[line->head]))
		return;
	line->busy = true;
	line->moved = prng_chance(&sim->world.prng, 1, 2);
	if (line->moved)
		move(sim, rank, line->tickets[line->head]);
	world_after(&sim->world, sim_delay(sim, sim->work_ticks * sim->ranks[rank].slowness), fence,
		    ((uint64_t)sim->incarnation * RANKS_MAX + rank) * 2 + stream);
}

/* The last load that fills what a save copies. */
static uint64_t fence_of(const struct mover *mover, const struct mover_ticket *ticket)
{
	uint64_t after = 0;
	uint32_t row;

	MOVER_ROWS(mover, ticket, row) {
		const struct mover_row *const at = &mover->rows[row];
		const uint64_t                load = mover_fence(mover, at->group, at->source);

		after = load > after ? load : after;
	}
	return after;
}

void copies_submit(struct sim *sim, uint32_t rank, uint64_t id)
{
	const struct mover *const        mover = sched_mover(sim->ranks[rank].sched);
	const struct mover_ticket *const ticket = mover_find(mover, id);
	const uint32_t                   stream = ticket && ticket_is_load(ticket->kind);
	struct sim_stream *const         line = &sim->ranks[rank].streams[stream];
	uint32_t                         row;
	const uint32_t                   at = (line->head + line->count) % TICKETS_MAX;

	if (!ticket)
		FAIL("one-state", "copy %" PRIu64 " is planned without a ticket", id);
	KVS_ASSERT_CMP(line->count, <, TICKETS_MAX);
	line->tickets[at] = id;
	line->after[at] = stream == SAVES ? fence_of(mover, ticket) : 0;
	line->count++;
	MOVER_ROWS(mover, ticket, row) {
		DETAIL("copy %" PRIu64 ", rank %u: group %u, %u to %u, path %d\n", id, rank,
		       mover->rows[row].group, mover->rows[row].source, mover->rows[row].target,
		       (int)mover->rows[row].path);
	}
	poke(sim, rank, stream);
}
