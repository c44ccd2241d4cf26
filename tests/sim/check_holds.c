/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants of Host blocks: who holds them for what, and what that costs. */
#include "sim.h"

/* --- ops under way ---------------------------------------------------------------------------- */

static bool is_published(const struct sim *sim, uint32_t rank, const struct sim_row *row)
{
	struct cell_view view;

	return cache_view(sched_cache(sim->ranks[rank].sched), STRATUM_HOST, row->group, row->block,
			  &view);
}

static void check_open_op(struct sim *sim, const struct sim_op *op, uint32_t rank)
{
	const struct sched *const  sched = sim->ranks[rank].sched;
	const struct pool *const   pool = cache_pool(sched_cache(sched), STRATUM_HOST);
	const struct ticket *const ticket = transfer_find(sched_transfer(sched), op->op_id);
	uint32_t                   i, group, block;

	if (!ticket || ticket_view(ticket).block_count != op->row_count) {
		FAIL("quarantine", "op %" PRIu64 " may touch blocks that nobody holds for it",
		     op->op_id);
	}
	for (i = 0; i < op->row_count; i++) {
		const struct sim_row *const row = &op->rows[i];
		const bool                  published = is_published(sim, rank, row);

		if (op->kind == OP_GET && published) {
			FAIL("never-early",
			     "host block %u of group %u is published; op %" PRIu64 " may write it",
			     row->block, row->group, op->op_id);
		}
		ticket_block(ticket, i, &group, &block);
		if (group != row->group || block != row->block ||
		    pool_refs(pool, group, block) < 1u + published) {
			FAIL("quarantine",
			     "host block %u of group %u is given back; op %" PRIu64 " may touch it",
			     row->block, row->group, op->op_id);
		}
	}
}

void check_open_ops(struct sim *sim, uint32_t rank)
{
	uint32_t i;

	for (i = 0; i < OPS_MAX; i++) {
		const struct sim_op *const op = &sim->ops[i];

		if (op->op_id != 0 && !op->dropped && op->kind != OP_QUERY)
			check_open_op(sim, op, rank);
	}
	if (sim->ranks[rank].exec.unretired_count != sim->ranks[rank].doubts) {
		FAIL("quarantine", "the executor of rank %u has %u ops in doubt; the world has %u",
		     rank, sim->ranks[rank].exec.unretired_count, sim->ranks[rank].doubts);
	}
}

/* --- credits and pins ------------------------------------------------------------------------- */

struct holds count_holds(const struct sim *sim)
{
	struct holds holds = { 0 };
	uint32_t     i;

	for (i = 0; i < OPS_MAX; i++) {
		const struct sim_op *const op = &sim->ops[i];

		if (op->op_id == 0 || op->dropped)
			continue;
		holds.tickets++;
		holds.put_tickets += op->kind == OP_PUT;
		holds.blocks += op->kind != OP_QUERY ? op->row_count : 0;
		holds.put_blocks += op->kind == OP_PUT ? op->row_count : 0;
	}
	return holds;
}

void check_credits(struct sim *sim, uint32_t rank)
{
	const struct transfer_load load = sched_load(sim->ranks[rank].sched).transfer;
	const struct transfer_limits *const limits = &sim->options.transfer;
	const struct holds                  holds = count_holds(sim);

	if (load.tickets != holds.tickets + load.ready || load.put_tickets != holds.put_tickets) {
		FAIL("credits", "rank %u has %u tickets, %u of puts; the world %u and %u", rank,
		     load.tickets, load.put_tickets, holds.tickets, holds.put_tickets);
	}
	if (load.put_refs != holds.put_blocks || load.host_refs < holds.blocks ||
	    (load.ready == 0 && load.host_refs != holds.blocks)) {
		FAIL("credits", "rank %u charges %u blocks, %u of puts; the world holds %u and %u",
		     rank, load.host_refs, load.put_refs, holds.blocks, holds.put_blocks);
	}
	if (load.tickets > limits->op_credits || load.host_refs > limits->host_credits ||
	    load.put_tickets > limits->op_credits / 2 || load.put_refs > limits->host_credits / 2)
		FAIL("credits", "rank %u has more under way than it may", rank);
}

uint64_t count_pins(const struct sim *sim, uint32_t rank, enum stratum_id stratum)
{
	const struct cache *const cache = sched_cache(sim->ranks[rank].sched);
	const struct pool *const  pool = cache_pool(cache, stratum);
	uint64_t                  pins = 0;
	uint32_t                  g, block;
	struct cell_view          view;

	for (g = 0; g < sim->shape.group_count; g++) {
		const uint32_t last = pool_parent_count(pool) * sim->shape.specs[g].packing;

		for (block = 1; block <= last; block++) {
			const uint32_t refs = pool_refs(pool, g, block);

			pins += refs;
			if (refs > 0)
				pins -= cache_view(cache, stratum, g, block, &view);
		}
	}
	return pins;
}

/* Rows of copies that hold a block of Host. */
static uint64_t count_rows(const struct sim *sim, uint32_t rank)
{
	const struct mover *const mover = sched_mover(sim->ranks[rank].sched);
	uint64_t                  count = 0;
	uint32_t                  slot, row;

	SLOTS_EACH(&mover->slots, slot) {
		MOVER_ROWS(mover, &mover->tickets[slot], row)
			count += mover->rows[row].path != COPY_DEVICE_TO_DEVICE;
	}
	return count;
}

void check_pins(struct sim *sim, uint32_t rank)
{
	const struct transfer_load load = sched_load(sim->ranks[rank].sched).transfer;
	const uint64_t             pins = count_pins(sim, rank, STRATUM_HOST);
	const uint64_t             held = load.host_refs + count_rows(sim, rank);

	/* Images of retracted requests hold blocks, too. */
	if (pins < held || (sim->options.snapshot_max == 0 && pins != held)) {
		FAIL("one-state", "host blocks of rank %u have %" PRIu64 " pins; their holders %" PRIu64,
		     rank, pins, held);
	}
}
