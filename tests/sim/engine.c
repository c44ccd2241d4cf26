/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: clients that submit and give up, the scheduler's round, and forward passes that look
 * at every row.
 *
 * A forward pass is two events.  At its start restored pages are checked and the others computed;
 * until its end, some ticks later, the request's table is its own; then all of it is checked again.
 */
#include "sim.h"

/* --- clients ---------------------------------------------------------------------------------- */

/* A path down the tree, rather long; three of four children are the first, so that prefixes meet again. */
static void draw_prompt(struct sim *sim, struct sim_request *request, int32_t *tokens)
{
	const uint32_t some = (uint32_t)world_draw(&sim->world, sim->options.page_max);
	const uint32_t others = (uint32_t)world_draw(&sim->world, sim->options.page_max);
	uint32_t       page = 1, i;

	request->page_count = some > others ? some : others;
	for (i = 0; i < request->page_count; i++) {
		page = 2 * page + prng_chance(&sim->world.prng, 1, 4);
		request->pages[i] = page;
		oracle_tokens(page, tokens + i * PAGE_TOKENS);
	}
	request->token_count =
		(request->page_count - 1) * PAGE_TOKENS + world_draw(&sim->world, PAGE_TOKENS);
}

void engine_submit(void *context, uint64_t unused)
{
	struct sim *const  sim = context;
	struct sim_request request = { .live = true, .id = sim->next_request };
	const uint32_t     before = mono_sched_load(sim->sched).requests;
	int32_t            tokens[PAGES_MAX * PAGE_TOKENS];
	uint32_t           slot = SLOT_NONE;

	(void)unused;
	if (sim->faults.stopped)
		return;
	draw_prompt(sim, &request, tokens);
	if (mono_sched_submit(sim->sched, request.id, tokens, request.token_count, &slot,
			      NULL) < 0) {
		if (slot != SLOT_NONE || mono_sched_load(sim->sched).requests != before)
			FAIL("one-done", "a refused request left a trace");
		sim->covers->refused_requests++;
	} else {
		NOTE("request %" PRIu64 " in slot %u: %" PRIu64 " tokens to page %u", request.id,
		     slot, request.token_count, request.pages[request.page_count - 1]);
		if (sim->requests[slot].live)
			FAIL("one-done", "slot %u is taken", slot);
		sim->requests[slot] = request;
		sim->next_request++;
		sim->covers->requests++;
	}
	world_after(&sim->world, sim_delay(sim, sim->submit_every), engine_submit, 0);
}

static void abort_one(struct sim *sim)
{
	const uint32_t slot = (uint32_t)world_draw(&sim->world, sim->options.request_max) - 1;
	struct sim_request *const request = &sim->requests[slot];

	if (!request->live || !mono_sched_abort(sim->sched, slot))
		return;
	NOTE("request %" PRIu64 " is given up", request->id);
	request->aborting = true;
	sim->covers->aborts++;
}

/* --- forward passes --------------------------------------------------------------------------- */

static void count(struct sim *sim, const struct sim_request *request,
		  const struct mono_sched_result *result)
{
	const uint32_t sum = result->pages[MONO_ORIGIN_DEVICE] + result->pages[MONO_ORIGIN_HOST] +
			     result->pages[MONO_ORIGIN_STORE] + result->pages[MONO_ORIGIN_RECOMPUTED];

	if (result->id != request->id || sum != request->page_count ||
	    result->token_count != request->token_count)
		FAIL("one-done", "the result of request %" PRIu64 " is another's", request->id);
	sim->covers->restored_device += result->pages[MONO_ORIGIN_DEVICE];
	sim->covers->restored_host += result->pages[MONO_ORIGIN_HOST];
	sim->covers->restored_store += result->pages[MONO_ORIGIN_STORE];
	sim->covers->recomputed += result->pages[MONO_ORIGIN_RECOMPUTED];
}

static void forward_end(void *context, uint64_t slot)
{
	struct sim *const         sim = context;
	struct sim_request *const request = &sim->requests[slot];
	struct mono_sched_result  result;
	uint32_t                  i;

	for (i = 0; i < request->page_count; i++) {
		check_block(sim, "one-state", sim_device_block(sim, request->table[i]),
			    request->pages[i]);
	}
	NOTE("request %" PRIu64 " finished", request->id);
	mono_sched_finished(sim->sched, (uint32_t)slot, &result);
	count(sim, request, &result);
	request->live = false;
}

static void forward(struct sim *sim, const struct mono_sched_pass *pass)
{
	struct sim_request *const request = &sim->requests[pass->request];
	uint32_t                  i;

	if (!request->live || request->running || request->aborting || request->id != pass->id)
		FAIL("one-done", "slot %u runs, and should not", pass->request);
	if (pass->page_count != request->page_count || pass->device_pages > pass->hit_pages ||
	    (uint64_t)pass->hit_pages * PAGE_TOKENS >= request->token_count) {
		FAIL("legal-boundary", "request %" PRIu64 " restores %u of %u pages", pass->id,
		     pass->hit_pages, pass->page_count);
	}
	NOTE("request %" PRIu64 " runs: %u pages of the device, %u restored, %u in all", pass->id,
	     pass->device_pages, pass->hit_pages - pass->device_pages, pass->page_count);
	request->running = true;
	for (i = 0; i < pass->page_count; i++) {
		void *const block = sim_device_block(sim, pass->table[i]);

		request->table[i] = pass->table[i];
		if (i < pass->hit_pages) {
			check_block(sim, "miss-is-safe", block, request->pages[i]);
		} else {
			oracle_fill(block, request->pages[i],
				    ++sim->oracle.computed[request->pages[i]]);
		}
	}
	world_after(&sim->world, sim_delay(sim, sim->work_ticks), forward_end, pass->request);
}

/* --- the round -------------------------------------------------------------------------------- */

static void collect_facts(struct sim *sim)
{
	struct pressure pressure;
	struct fact          facts[OPS_MAX];
	const uint32_t       count = exec_core_poll(&sim->exec, sim->world.now, facts,
						    mono_sched_fact_room(sim->sched), &pressure);
	uint32_t             i;

	for (i = 0; i < count; i++) {
		check_fact(sim, &facts[i]);
		mono_sched_fact(sim->sched, &facts[i]);
	}
}

static void dispatch(struct sim *sim, const struct op *op)
{
	const bool     was_up = sim->exec.health.state == HEALTH_UP;
	struct sim_op *entry;
	struct fact    refusal;
	int            rc;

	if (op->kind == OP_CANCEL) {
		NOTE("cancel op %" PRIu64, op->op_id);
		exec_core_cancel(&sim->exec, op->op_id, sim->world.now);
		return;
	}
	entry = ledger_add(sim, op);
	rc = exec_core_submit(&sim->exec, op, sim->world.now);
	NOTE("op %" PRIu64 ": %s of %u keys%s", op->op_id, op_kind_name(op->kind), op->key_count,
	     rc < 0 ? ", refused" : "");
	if (rc == 0) {
		if (sim->doubts > 0) {
			FAIL("quarantine", "op %" PRIu64 " was taken while bytes are in doubt",
			     op->op_id);
		}
		watch_taken(sim, &sim->health, &sim->exec, op->op_id, was_up);
		actors_wake(sim, exec_class_of(op->kind));
		return;
	}
	sim->covers->refused_ops++;
	sim->covers->cooldown_refusals += rc == KVS_E_HEALTH;
	fact_refused(&refusal, op, exec_refusal_reason(rc));
	check_fact(sim, &refusal);
	KVS_ASSERT(entry->answered);
	mono_sched_fact(sim->sched, &refusal);
}

void engine_round(void *context, uint64_t unused)
{
	struct sim *const             sim = context;
	const struct mono_sched_plan *plan;
	uint32_t                      i;

	(void)unused;
	if (fault_hits(sim, FAULT_ABORT))
		abort_one(sim);
	collect_facts(sim);
	mono_sched_next(sim->sched, sim->world.now, &plan);
	check_round(sim, plan);
	for (i = 0; i < plan->op_count; i++)
		dispatch(sim, &plan->ops[i]);
	for (i = 0; i < plan->copy_count; i++)
		actors_copy(sim, plan->copies[i]);
	for (i = 0; i < plan->pass_count; i++)
		forward(sim, &plan->passes[i]);
	/* Quarantine ends all puts: candidates would wait for ever, so a stop lets them go. */
	if (sim->faults.stopped && mono_sched_quarantined(sim->sched))
		mono_sched_discard_backups(sim->sched);
	world_after(&sim->world, sim_delay(sim, sim->round_every), engine_round, 0);
}
