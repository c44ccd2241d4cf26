/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rooms of all ranks: opened, closed, and opened anew on the same store.
 *
 * A restart is the end of a process of which late I/O goes on: what an op that never retired may touch is
 * Host memory that nobody uses again.
 */
#include <string.h>

#include "sim.h"

static void must(struct sim *sim, uint32_t rank, int rc, const struct kvs_error *error)
{
	if (rc < 0)
		FAIL("open", "rank %u: %s", rank, error->message);
}

static void open_memory(struct sim *sim, uint32_t rank)
{
	struct sim_rank *const of = &sim->ranks[rank];
	uint8_t *const         host = sim->host[sim->incarnation][rank];

	memset(sim->device[rank], 0xd5, sizeof(sim->device[rank]));
	memset(host, 0x5d, sizeof(sim->host[0][0]));
	of->part = (struct arena_part){ .base = host, .block_bytes = PARENT_BYTES,
					.stride = PARENT_BYTES,
					.block_count = sim->shape.host_parents,
					.blocks_per_slice = HOST_PARENTS };
	shape_hostmap(&sim->shape, sim->shape.host_parents, &of->hostmap);
}

static void open_rank(struct sim *sim, uint32_t rank)
{
	struct sim_rank *const     of = &sim->ranks[rank];
	struct sched_options       options = sim->options;
	const struct agree_options votes = { .owners = sim->shape.ranks,
					     .ops_max = options.transfer.op_credits,
					     .copies_max = options.save_ticket_max +
							   options.load_ticket_max };
	struct kvs_error           error;

	must(sim, rank,
	     owner_make(&sim->shape.groups, sim->shape.owners, rank, sim->shape.ranks, &of->owner,
			&error),
	     &error);
	open_memory(sim, rank);
	options.space = oracle_get()->space[sim->version];
	options.owner = &of->owner;
	options.part = &of->part;
	options.hostmap = &of->hostmap;
	must(sim, rank, exec_core_open(&of->exec, &sim->limits, &error), &error);
	must(sim, rank, agree_open(&votes, &of->agree, &error), &error);
	must(sim, rank, sched_open(&options, &of->sched, &error), &error);
	of->plan = NULL;
	of->tick = (struct tick){ 0 };
	of->health = (struct sim_health){ 0 };
	memset(of->streams, 0, sizeof(of->streams));
	of->loaded = 0;
	of->fact_count = of->notice_count = of->copy_count = of->doubts = 0;
}

void replica_open(struct sim *sim)
{
	const uint32_t most =
		PATH_TOKENS - sim->options.decode_tokens * (1 + sim->options.overlap_depth);
	uint32_t rank;

	for (rank = 0; rank < sim->shape.ranks; rank++)
		open_rank(sim, rank);
	memset(sim->cyclic, 0xd5, sizeof(sim->cyclic));
	engine_open(sim);
	/* What a step drafts may reach beyond the end. */
	sim->request_limit = sched_request_limit(sim->ranks[0].sched);
	if (sim->request_limit > most)
		sim->request_limit = most;
	if (sim->request_limit < 3)
		FAIL("open", "a request has at most %u tokens", sim->request_limit);
}

void replica_close(struct sim *sim)
{
	uint32_t rank;

	for (rank = 0; rank < sim->shape.ranks; rank++) {
		sched_close(sim->ranks[rank].sched);
		agree_close(sim->ranks[rank].agree);
		exec_core_close(&sim->ranks[rank].exec);
	}
}

/* What an op's executor has not begun, it never will; what runs or is in doubt goes on. */
static void drop_ops(struct sim *sim)
{
	uint32_t i, rank;

	for (i = 0; i < OPS_MAX; i++) {
		struct sim_op *const op = &sim->ops[i];

		if (op->op_id == 0 || op->dropped)
			continue;
		op->dropped = true;
		for (rank = 0; rank < sim->shape.ranks; rank++) {
			/* Of this one nobody will ever hear again. */
			if (op->parts[rank].silent && op->parts[rank].late == 0)
				op->parts[rank].in_doubt = false;
		}
		ledger_forget(op);
	}
}

void replica_restart(struct sim *sim)
{
	uint32_t i;

	KVS_ASSERT_CMP(sim->incarnation, <, RESTARTS_MAX);
	NOTE("restart");
	heap_check(sim);
	workers_orphan(sim);
	replica_close(sim);
	drop_ops(sim);
	for (i = 0; i < REQUESTS_MAX; i++)
		sim->requests[i].live = false;
	memset(sim->tickets, 0, sizeof(sim->tickets));
	sim->event_count = 0;
	sim->work_head = sim->work_count = sim->forwards = 0;
	sim->last_op = 0;
	sim->errand = ERRAND_NONE;
	sim->incarnation++;
	replica_open(sim);
	heap_mark(sim);
	for (i = 0; i < sim->shape.ranks; i++) {
		workers_wake(sim, i, EXEC_QUERY);
		workers_wake(sim, i, EXEC_GET);
		workers_wake(sim, i, EXEC_PUT);
	}
}
