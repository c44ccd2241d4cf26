/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A round of the replica: what a rank's loop does, for all ranks side by side.
 *
 * Each rank draws up its report; all of them get all reports and make the tick; they are fed the same
 * events and plan; plans are compared; then each dispatches to its own executor and copy engine.
 */
#include <string.h>

#include "sim.h"

/* --- reports and ticks ------------------------------------------------------------------------ */

/* What its executor has done; refusals and passed copies are there already. */
static void poll_rank(struct sim *sim, uint32_t rank, struct agree_report *ret_report)
{
	struct sim_rank *const of = &sim->ranks[rank];
	struct fact            facts[OPS_MAX];
	uint32_t               count, i;

	*ret_report = (struct agree_report){ .now_ns = rank_now(sim, rank) };
	count = exec_core_poll(&of->exec, rank_now(sim, rank), facts,
			       agree_facts_max(of->agree) - of->fact_count, &ret_report->pressure);
	for (i = 0; i < count; i++)
		ledger_answer(sim, rank, &facts[i]);
	ret_report->facts = of->facts;
	ret_report->fact_count = of->fact_count;
	ret_report->notices = of->notices;
	ret_report->notice_count = of->notice_count;
	ret_report->copies = of->copies;
	ret_report->copy_count = of->copy_count;
}

/* One owner's poll was invalid, or it repeats itself: nobody's state may change. */
static void try_bad_report(struct sim *sim, const struct agree_report *reports,
			   struct agree_permits permits)
{
	struct agree_report bad[RANKS_MAX];
	struct fact         unknown = { .op_id = UINT64_MAX };
	const uint32_t      rank = sim_draw(sim, 0, sim->shape.ranks - 1);
	const struct tick   untouched = { .now_ns = UINT64_MAX };
	struct tick         tick = untouched;
	struct kvs_error    error;
	uint32_t            i;

	if (!fault_hits(sim, FAULT_BAD_REPORT))
		return;
	memcpy(bad, reports, sim->shape.ranks * sizeof(*bad));
	if (sim_draw(sim, 0, 1)) {
		bad[rank].error = KVS_E_PROTO;
	} else {
		bad[rank].facts = &unknown;
		bad[rank].fact_count = 1;
	}
	for (i = 0; i < sim->shape.ranks; i++) {
		if (agree_round(sim->ranks[i].agree, bad, permits, &tick, &error) != KVS_E_PROTO ||
		    tick.now_ns != untouched.now_ns)
			FAIL("same-plan", "rank %u takes a bad report of rank %u", i, rank);
	}
	sim->covers->bad_reports++;
}

/*
 * What the tick says is over, it is for the rank's executor, once, if it was in doubt at all.  Before the
 * tick is checked, which forgets such ops.
 */
static void end_doubts(struct sim *sim, uint32_t rank)
{
	struct sim_rank *const of = &sim->ranks[rank];
	uint32_t               i;

	for (i = 0; i < of->tick.notice_count; i++) {
		const struct retirement_notice *const notice = &of->tick.notices[i];
		const struct sim_op *const            op = ledger_find(sim, notice->op_id);
		const bool doubted = op && !op->parts[rank].fact.retired;

		if (exec_core_notice(&of->exec, notice) != (doubted ? 0 : KVS_E_STALE)) {
			FAIL("quarantine", "the executor of rank %u lost op %" PRIu64, rank,
			     notice->op_id);
		}
		if (exec_core_notice(&of->exec, notice) != KVS_E_STALE)
			FAIL("quarantine", "op %" PRIu64 " retired twice", notice->op_id);
		of->doubts -= doubted;
	}
}

static void agree(struct sim *sim, struct agree_permits permits)
{
	struct agree_report reports[RANKS_MAX];
	struct kvs_error    error;
	uint32_t            rank;

	for (rank = 0; rank < sim->shape.ranks; rank++)
		poll_rank(sim, rank, &reports[rank]);
	try_bad_report(sim, reports, permits);
	for (rank = 0; rank < sim->shape.ranks; rank++) {
		if (agree_round(sim->ranks[rank].agree, reports, permits, &sim->ranks[rank].tick,
				&error) < 0)
			FAIL("one-done", "rank %u refuses the reports: %s", rank, error.message);
	}
	for (rank = 0; rank < sim->shape.ranks; rank++)
		end_doubts(sim, rank);
	check_tick(sim);
	for (rank = 0; rank < sim->shape.ranks; rank++) {
		sim->ranks[rank].fact_count = sim->ranks[rank].notice_count = 0;
		sim->ranks[rank].copy_count = 0;
	}
}

/* --- events ----------------------------------------------------------------------------------- */

/* A token that is none, of some request that computes or waits: refused, and nothing has changed. */
static void try_bad_event(struct sim *sim)
{
	static const int32_t            none = -1;
	const struct sim_request *const request =
		&sim->requests[sim_draw(sim, 0, REQUESTS_MAX - 1)];
	const struct sched_event bad = { .kind = SCHED_EXTEND, .id = request->id, .tokens = &none,
					 .token_count = 1 };
	uint32_t                 rank;

	if (!request->live || request->aborting || request->finishing ||
	    !fault_hits(sim, FAULT_BAD_EVENT))
		return;
	for (rank = 0; rank < sim->shape.ranks; rank++) {
		const struct sched_load before = sched_load(sim->ranks[rank].sched);
		uint32_t                applied = UINT32_MAX;
		struct kvs_error        error;

		if (sched_feed(sim->ranks[rank].sched, &bad, 1, &applied, &error) != KVS_E_INVALID ||
		    applied != 0 || !is_same_load(&before, sim->ranks[rank].sched))
			FAIL("one-done", "rank %u takes an event that cannot be", rank);
	}
	sim->covers->bad_events++;
}

static void feed(struct sim *sim)
{
	struct kvs_error error;
	uint32_t         rank, applied;

	for (rank = 0; rank < sim->shape.ranks; rank++) {
		const int rc = sched_feed(sim->ranks[rank].sched, sim->events, sim->event_count,
					  &applied, &error);

		if (rc < 0 || applied != sim->event_count) {
			FAIL("one-done", "rank %u takes %u of %u events: %s", rank, applied,
			     sim->event_count, rc < 0 ? error.message : "no reason");
		}
	}
	sim->event_count = 0;
}

/* --- dispatch --------------------------------------------------------------------------------- */

static void refuse(struct sim *sim, uint32_t rank, const struct op *op, enum op_reason reason)
{
	struct fact refusal;

	sim->covers->refused_ops++;
	fact_refused(&refusal, op, reason);
	ledger_answer(sim, rank, &refusal);
}

static void dispatch_on(struct sim *sim, uint32_t rank, const struct op *op)
{
	struct sim_rank *const of = &sim->ranks[rank];
	const bool             was_up = of->exec.health.state == HEALTH_UP;
	int                    rc;

	if (op->kind == OP_CANCEL) {
		exec_core_cancel(&of->exec, op->op_id, rank_now(sim, rank));
		return;
	}
	agree_expect(of->agree, op);
	if (of->refusing_until > sim->world.now) {
		sim->covers->lost_owner++;
		refuse(sim, rank, op, OP_REASON_CLOSED);
		return;
	}
	rc = exec_core_submit(&of->exec, op, rank_now(sim, rank));
	if (rc < 0) {
		NOTE("op %" PRIu64 " is refused on rank %u", op->op_id, rank);
		sim->covers->cooldown_refusals += rc == KVS_E_HEALTH;
		refuse(sim, rank, op, exec_refusal_reason(rc));
		return;
	}
	if (of->doubts > 0)
		FAIL("quarantine", "op %" PRIu64 " is taken while bytes are in doubt", op->op_id);
	watch_taken(sim, &of->health, &of->exec, op->op_id, was_up);
	workers_wake(sim, rank, exec_class_of(op->kind));
}

static void dispatch(struct sim *sim, uint32_t index)
{
	const struct op *const op = &sim->ranks[0].plan->ops[index];
	uint32_t               rank;

	NOTE("op %" PRIu64 ": %s of %u keys", op->op_id, op_kind_name(op->kind), op->key_count);
	if (op->kind != OP_CANCEL)
		ledger_add(sim, index);
	for (rank = 0; rank < sim->shape.ranks; rank++)
		dispatch_on(sim, rank, &sim->ranks[rank].plan->ops[index]);
}

/* --- a round ---------------------------------------------------------------------------------- */

/* An owner that is lost for a while: its workers stand still, or it takes no op. */
static void lose_owner(struct sim *sim)
{
	struct sim_rank *const of = &sim->ranks[sim_draw(sim, 0, sim->shape.ranks - 1)];

	if (fault_hits(sim, FAULT_STALL))
		of->stalled_until = sim->world.now + world_draw(&sim->world, 150);
	if (fault_hits(sim, FAULT_LOST))
		of->refusing_until = sim->world.now + world_draw(&sim->world, 80);
}

static struct agree_permits permits_of(struct sim *sim)
{
	const struct agree_permits permits = {
		.forward = sim->no_forward_until <= sim->world.now && engine_may_plan(sim),
		.storage = sim->no_storage_until <= sim->world.now
	};

	sim->covers->frozen_forwards += sim->no_forward_until > sim->world.now;
	sim->covers->frozen_storage += !permits.storage;
	return permits;
}

static void plan(struct sim *sim)
{
	uint32_t rank, i;

	for (rank = 0; rank < sim->shape.ranks; rank++)
		sched_next(sim->ranks[rank].sched, &sim->ranks[rank].tick, &sim->ranks[rank].plan);
	check_plans(sim);
	check_round(sim);
	for (i = 0; i < sim->ranks[0].plan->op_count; i++)
		dispatch(sim, i);
	engine_take(sim);
	clients_ended(sim, sim->ranks[0].plan);
}

void round_run(void *context, uint64_t unused)
{
	struct sim *const sim = context;

	(void)unused;
	lose_owner(sim);
	clients_abort_some(sim);
	clients_peers(sim);
	sim->round++;
	agree(sim, permits_of(sim));
	try_bad_event(sim);
	feed(sim);
	plan(sim);
	upkeep_round(sim);
	check_audits(sim);
	world_after(&sim->world, sim_delay(sim, sim->round_every), round_run, 0);
}
