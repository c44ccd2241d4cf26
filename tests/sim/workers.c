/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executor workers of all ranks, and a store that has not let go.
 *
 * A worker takes a job, runs it at some later tick, and ends it at a later one still: bytes may move
 * long after the request gave up, and jobs end in any order.  A restart does not stop a job that
 * runs: it ends for nobody.
 */
#include <string.h>

#include "exec/run.h"
#include "sim.h"

uint64_t sim_delay(struct sim *sim, uint64_t most)
{
	return world_draw(&sim->world, fault_hits(sim, FAULT_DELAY) ? 100 : most);
}

static uint64_t rank_delay(struct sim *sim, uint32_t rank, uint64_t most)
{
	const struct sim_rank *const of = &sim->ranks[rank];
	uint64_t                     delay = sim_delay(sim, most * of->slowness);

	if (of->stalled_until > sim->world.now)
		delay += of->stalled_until - sim->world.now;
	return delay;
}

/* --- a store that keeps its hands on the spans ------------------------------------------------ */

/* An op and a rank as an event's argument. */
static uint64_t name_part(const struct sim *sim, const struct sim_op *op, uint32_t rank)
{
	return (uint64_t)(op - sim->ops) * RANKS_MAX + rank;
}

/*
 * The store's proof, which is told when the shell knows of the doubt.  The executor's quarantine stands
 * until all ranks agree.
 */
static void notice(void *context, uint64_t argument)
{
	struct sim *const              sim = context;
	const uint32_t                 rank = argument % RANKS_MAX;
	struct sim_rank *const         of = &sim->ranks[rank];
	struct sim_op *const           op = &sim->ops[argument / RANKS_MAX];
	struct sim_part *const         part = &op->parts[rank];
	const struct retirement_notice retired = { .op_id = op->op_id };

	if (op->dropped) {
		part->in_doubt = false;
		ledger_forget(op);
		return;
	}
	if (!part->answered) {
		world_after(&sim->world, 1, notice, argument);
		return;
	}
	NOTE("op %" PRIu64 " retired after all on rank %u", op->op_id, rank);
	of->notices[of->notice_count++] = retired;
	part->in_doubt = false;
	sim->covers->notices++;
}

static void touch_late(void *context, uint64_t argument)
{
	struct sim *const      sim = context;
	const uint32_t         rank = argument % RANKS_MAX;
	struct sim_op *const   op = &sim->ops[argument / RANKS_MAX];
	struct sim_part *const part = &op->parts[rank];
	const uint32_t         i = (uint32_t)world_draw(&sim->world, op->row_count) - 1;

	if (bits_test(part->op.owned.words, i)) {
		NOTE("late %s of op %" PRIu64 " on rank %u: group %u, block %u",
		     op->kind == OP_GET ? "write" : "read", op->op_id, rank, op->rows[i].group,
		     op->rows[i].block);
		sim->covers->orphans += op->dropped;
		if (op->kind == OP_GET) {
			shape_scribble(op->op_id, part->spans[i].ptr, part->spans[i].bytes);
			sim->covers->late_writes++;
		} else {
			check_key(sim, "quarantine", &part->keys[i], part->spans[i].ptr);
			sim->covers->late_reads++;
		}
	}
	if (--part->late > 0)
		world_after(&sim->world, world_draw(&sim->world, 16), touch_late, argument);
	else if (!part->silent || op->dropped)
		world_after(&sim->world, world_draw(&sim->world, 16), notice, argument);
}

void workers_speak(struct sim *sim)
{
	uint32_t i, rank;

	for (i = 0; i < OPS_MAX; i++) {
		struct sim_op *const op = &sim->ops[i];

		for (rank = 0; op->op_id != 0 && rank < sim->shape.ranks; rank++) {
			struct sim_part *const part = &op->parts[rank];

			if (part->silent && part->in_doubt && part->late == 0) {
				world_after(&sim->world, world_draw(&sim->world, 16), notice,
					    name_part(sim, op, rank));
			}
			part->silent = false;
		}
	}
}

/* --- workers ---------------------------------------------------------------------------------- */

#define WORKERS (EXEC_CLASS_COUNT * WORKERS_MAX)

static void look(void *context, uint64_t argument);

static void doubt(struct sim *sim, struct sim_op *op, uint32_t rank)
{
	op->parts[rank].in_doubt = true;
	sim->ranks[rank].doubts += !op->dropped;
	world_after(&sim->world, world_draw(&sim->world, 16), touch_late, name_part(sim, op, rank));
}

static void finish(void *context, uint64_t argument)
{
	struct sim *const        sim = context;
	const uint32_t           rank = (uint32_t)(argument / WORKERS);
	struct sim_rank *const   of = &sim->ranks[rank];
	struct sim_worker *const worker = &of->workers[argument % WORKERS];
	struct sim_op *const     op = worker->of;

	NOTE("op %" PRIu64 " done on rank %u: %s, %s%s", op->op_id, rank,
	     op_reason_name(worker->fact.reason), worker->fact.retired ? "retired" : "unretired",
	     worker->orphan ? ", for nobody" : "");
	op->parts[rank].running = false;
	worker->busy = false;
	if (!worker->orphan) {
		exec_core_finish(&of->exec, worker->job, &worker->fact, &worker->report,
				 rank_now(sim, rank));
		watch_evidence(sim, &of->health, &of->exec, worker->taken_step,
			       worker->report.evidence);
	}
	if (op->parts[rank].late > 0)
		doubt(sim, op, rank);
	else if (worker->orphan)
		ledger_forget(op);
	worker->orphan = false;
	world_after(&sim->world, rank_delay(sim, rank, 2), look, argument);
}

/* When the job ends: now and then on the tick on which somebody stops waiting. */
static uint64_t finish_delay(struct sim *sim, uint32_t rank, const struct sim_op *op)
{
	const uint64_t deadline = op->deadline_ns;
	const uint64_t now = rank_now(sim, 0);

	if (deadline > now && deadline - now <= 200 && fault_hits(sim, FAULT_DEADLINE_TICK))
		return deadline - now;
	return rank_delay(sim, rank, sim->work_ticks);
}

static void run(void *context, uint64_t argument)
{
	struct sim *const        sim = context;
	const uint32_t           rank = (uint32_t)(argument / WORKERS);
	struct sim_worker *const worker = &sim->ranks[rank].workers[argument % WORKERS];

	sim->store.op = worker->of;
	sim->store.rank = rank;
	exec_run(&sim->store.store, &worker->op, &worker->fact, &worker->report);
	sim->covers->gets += worker->report.moved.get_keys;
	sim->covers->puts += worker->report.moved.put_new_keys;
	NOTE("op %" PRIu64 " ran on rank %u: %" PRIu64 " of %u rows", worker->of->op_id, rank,
	     bits_count(worker->fact.ok.words, worker->op.key_count), worker->op.key_count);
	world_after(&sim->world, finish_delay(sim, rank, worker->of), finish, argument);
}

/* A get of no manners writes wrong bytes first. */
static void tear(struct sim *sim, const struct op *op)
{
	uint32_t i;

	for (i = 0; op->kind == OP_GET && i < op->key_count; i++) {
		if (bits_test(op->owned.words, i) && fault_hits(sim, FAULT_TORN))
			shape_scribble(op->op_id, op->spans[i].ptr, op->spans[i].bytes);
	}
}

static void look(void *context, uint64_t argument)
{
	struct sim *const        sim = context;
	const uint32_t           rank = (uint32_t)(argument / WORKERS);
	struct sim_rank *const   of = &sim->ranks[rank];
	struct sim_worker *const worker = &of->workers[argument % WORKERS];

	if (worker->busy)
		return;
	worker->job = exec_core_take(&of->exec, worker->class);
	if (worker->job == SLOT_NONE)
		return;
	worker->busy = true;
	worker->taken_step = sim->world.step;
	worker->op = of->exec.jobs[worker->job].op;
	worker->of = ledger_find(sim, worker->op.op_id);
	if (!worker->of)
		FAIL("one-done", "op %" PRIu64 " runs, and nobody knows it", worker->op.op_id);
	worker->of->parts[rank].running = true;
	tear(sim, &worker->op);
	world_after(&sim->world, rank_delay(sim, rank, sim->work_ticks), run, argument);
}

void workers_wake(struct sim *sim, uint32_t rank, enum exec_class class)
{
	uint32_t i;

	for (i = 0; i < EXEC_CLASS_COUNT * sim->workers_each; i++) {
		const struct sim_worker *const worker = &sim->ranks[rank].workers[i];

		if (worker->class == class && !worker->busy) {
			world_after(&sim->world, rank_delay(sim, rank, 2), look,
				    rank * WORKERS + i);
		}
	}
}

/* What a job needs of the room that is gone, the ledger has, too. */
void workers_orphan(struct sim *sim)
{
	uint32_t rank, i;

	for (rank = 0; rank < sim->shape.ranks; rank++) {
		for (i = 0; i < WORKERS; i++) {
			struct sim_worker *const worker = &sim->ranks[rank].workers[i];

			if (!worker->busy || worker->orphan)
				continue;
			worker->orphan = true;
			worker->op = worker->of->parts[rank].op;
		}
	}
}
