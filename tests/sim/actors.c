/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runs beside the scheduler: executor workers, the copy engine, and a store that has not let
 * go.
 *
 * A worker takes a job, runs it at some later tick, and ends it at a later one still: bytes may
 * move long after the request gave up, and jobs end in any order.
 */
#include <string.h>

#include "exec/run.h"
#include "sim.h"

uint64_t sim_delay(struct sim *sim, uint64_t most)
{
	return world_draw(&sim->world, fault_hits(sim, FAULT_DELAY) ? 100 : most);
}

/* --- a store that keeps its hands on the spans ------------------------------------------------ */

/* Retirement is told when the scheduler knows of the doubt; a second notice must find nothing. */
static void notice(void *context, uint64_t op_id)
{
	struct sim *const              sim = context;
	struct sim_op *const           op = ledger_find(sim, op_id);
	const struct retirement_notice retired = { .op_id = op_id };

	if (exec_core_notice(&sim->exec, &retired) == KVS_E_STALE) {
		if (op->answered)
			FAIL("quarantine", "the executor lost op %" PRIu64, op_id);
		world_after(&sim->world, 1, notice, op_id);
		return;
	}
	NOTE("op %" PRIu64 " retired after all", op_id);
	if (mono_sched_notice(sim->sched, &retired) < 0)
		FAIL("quarantine", "the scheduler does not hold op %" PRIu64, op_id);
	if (mono_sched_notice(sim->sched, &retired) != KVS_E_STALE)
		FAIL("quarantine", "op %" PRIu64 " retired twice", op_id);
	sim->covers->notices++;
	sim->doubts--;
	*op = (struct sim_op){ 0 };
}

static void touch_late(void *context, uint64_t op_id)
{
	struct sim *const    sim = context;
	struct sim_op *const op = ledger_find(sim, op_id);
	const uint32_t       i = (uint32_t)world_draw(&sim->world, op->page_count) - 1;

	NOTE("late %s of op %" PRIu64 ": block %u", op->kind == OP_GET ? "write" : "read", op_id,
	     op->blocks[i]);
	if (op->kind == OP_GET) {
		fault_scribble(op_id, &op->spans[i]);
		sim->covers->late_writes++;
	} else {
		check_block(sim, "quarantine", op->spans[i].ptr, op->pages[i]);
		sim->covers->late_reads++;
	}
	if (--op->late > 0)
		world_after(&sim->world, world_draw(&sim->world, 16), touch_late, op_id);
	else if (!op->silent)
		world_after(&sim->world, world_draw(&sim->world, 16), notice, op_id);
}

void actors_speak(struct sim *sim)
{
	uint32_t i;

	for (i = 0; i < OPS_MAX; i++) {
		struct sim_op *const op = &sim->ops[i];

		if (op->op_id != 0 && op->silent && op->in_doubt && op->late == 0)
			world_after(&sim->world, world_draw(&sim->world, 16), notice, op->op_id);
		op->silent = false;
	}
}

/* --- workers ---------------------------------------------------------------------------------- */

static void look(void *context, uint64_t number);

static void finish(void *context, uint64_t number)
{
	struct sim *const        sim = context;
	struct sim_worker *const worker = &sim->workers[number];
	struct sim_op *const     op = ledger_find(sim, worker->op.op_id);

	NOTE("op %" PRIu64 " done: %s, %s", worker->op.op_id, op_reason_name(worker->fact.reason),
	     worker->fact.retired ? "retired" : "unretired");
	exec_core_finish(&sim->exec, worker->job, &worker->fact, &worker->report, sim->world.now);
	watch_evidence(sim, &sim->health, &sim->exec, worker->taken_step, worker->report.evidence);
	worker->busy = false;
	if (op->late > 0) {
		op->in_doubt = true;
		sim->doubts++;
		world_after(&sim->world, world_draw(&sim->world, 16), touch_late, op->op_id);
	}
	world_after(&sim->world, sim_delay(sim, 2), look, number);
}

/* When the job ends: now and then on the tick on which somebody stops waiting. */
static uint64_t finish_delay(struct sim *sim)
{
	const uint64_t deadline = mono_sched_wake_ns(sim->sched);

	if (deadline > sim->world.now && deadline - sim->world.now <= 100 &&
	    fault_hits(sim, FAULT_DEADLINE_TICK))
		return deadline - sim->world.now;
	return sim_delay(sim, sim->work_ticks);
}

static void run(void *context, uint64_t number)
{
	struct sim *const        sim = context;
	struct sim_worker *const worker = &sim->workers[number];

	sim->store.op_id = worker->op.op_id;
	exec_run(&sim->store.store, &worker->op, &worker->fact, &worker->report);
	sim->covers->gets += worker->report.moved.get_keys;
	sim->covers->puts += worker->report.moved.put_new_keys;
	NOTE("op %" PRIu64 " ran: %" PRIu64 " of %u rows", worker->op.op_id,
	     bits_count(worker->fact.ok.words, worker->op.key_count), worker->op.key_count);
	world_after(&sim->world, finish_delay(sim), finish, number);
}

static void look(void *context, uint64_t number)
{
	struct sim *const        sim = context;
	struct sim_worker *const worker = &sim->workers[number];
	uint32_t                 i;

	if (worker->busy)
		return;
	worker->job = exec_core_take(&sim->exec, worker->class);
	if (worker->job == SLOT_NONE)
		return;
	worker->busy = true;
	worker->taken_step = sim->world.step;
	worker->op = sim->exec.jobs[worker->job].op;
	for (i = 0; worker->op.kind == OP_GET && i < worker->op.key_count; i++) {
		if (fault_hits(sim, FAULT_TORN))
			fault_scribble(worker->op.op_id, &worker->op.spans[i]);
	}
	world_after(&sim->world, sim_delay(sim, sim->work_ticks), run, number);
}

void actors_wake(struct sim *sim, enum exec_class class)
{
	uint32_t i;

	for (i = 0; i < EXEC_CLASS_COUNT * sim->workers_each; i++) {
		if (sim->workers[i].class == class && !sim->workers[i].busy)
			world_after(&sim->world, sim_delay(sim, 2), look, i);
	}
}

/* --- copies ----------------------------------------------------------------------------------- */

/* Bytes move at submission or at the fence, as the low bit says: nobody may count on either. */
static void move(struct sim *sim, const struct tier_ticket *ticket)
{
	uint32_t i;

	for (i = 0; i < ticket->pair_count; i++) {
		void *const on_device = sim_device_block(sim, ticket->pairs[i].device_block);
		void *const on_host = arena_block(&sim->host, ticket->pairs[i].host_block).ptr;

		if (ticket->kind == TIER_LOAD)
			memcpy(on_device, on_host, BLOCK_BYTES);
		else
			memcpy(on_host, on_device, BLOCK_BYTES);
	}
}

static void fence(void *context, uint64_t argument)
{
	struct sim *const sim = context;
	const uint32_t    ticket = (uint32_t)(argument / 2);

	if (argument % 2)
		move(sim, mono_sched_copy(sim->sched, ticket));
	NOTE("copy %u done", ticket);
	sim->copying[ticket] = false;
	sim->copy_count--;
	mono_sched_copied(sim->sched, ticket);
}

void actors_copy(struct sim *sim, uint32_t tier_ticket)
{
	const bool at_fence = prng_chance(&sim->world.prng, 1, 2);

	if (sim->copying[tier_ticket])
		FAIL("one-state", "copy %u is planned twice", tier_ticket);
	sim->copying[tier_ticket] = true;
	sim->copy_count++;
	if (!at_fence)
		move(sim, mono_sched_copy(sim->sched, tier_ticket));
	world_after(&sim->world, sim_delay(sim, sim->work_ticks), fence,
		    2 * (uint64_t)tier_ticket + at_fence);
}
