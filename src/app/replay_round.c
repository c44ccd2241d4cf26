/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A round of a replay: what happened is reported and agreed on, the scheduler plans, and the plan
 * is run: storage ops to the executor, blanks and copies to the Device, rows to the reference
 * engine.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/replay.h"
#include "os/os.h"

/* Only that it is one matters: nothing is computed behind it. */
static const int32_t sampled = 1;

/* --- requests and places ---------------------------------------------------------------------- */

/* Ids order requests as they came, and lead back to their place. */
static void write_id(const struct replay *replay, const struct replay_place *place, char *id)
{
	snprintf(id, SCHED_ID_BYTES, "%020" PRIu64 ".%u", place->number,
		 (unsigned)(place - replay->places));
}

static struct replay_place *place_of(struct replay *replay, const char *id)
{
	const char *const   dot = strchr(id, '.');
	const unsigned long at = strtoul(dot + 1, NULL, 10);

	KVS_ASSERT_CMP(at, <, replay->concurrency);
	KVS_ASSERT(replay->places[at].used);
	return &replay->places[at];
}

static struct replay_place *free_place(struct replay *replay)
{
	uint32_t i;

	for (i = 0; i < replay->concurrency; i++) {
		if (!replay->places[i].used)
			return &replay->places[i];
	}
	KVS_PANIC("no place for a request");
}

/* The tokens of a place's prompt, up to `end`. */
static const int32_t *tokens_of(struct replay *replay, const struct replay_place *place,
				uint32_t end)
{
	uint32_t first;

	for (first = 0; first < end; first += SOURCE_PAGE_TOKENS) {
		const uint32_t left = end - first;

		source_page_tokens(place->page_ids[first / SOURCE_PAGE_TOKENS],
				   left < SOURCE_PAGE_TOKENS ? left : SOURCE_PAGE_TOKENS,
				   replay->tokens + first);
	}
	return replay->tokens;
}

void replay_submit(struct replay *replay, const struct source_request *request)
{
	struct replay_place *const place = free_place(replay);
	char                       id[SCHED_ID_BYTES];
	struct sched_request       asked = { .id = id, .max_new_tokens = 1,
					     .logits_from = LOGITS_NONE };
	struct kvs_error           err;

	place->used = true;
	place->number = request->index;
	place->page_count = request->page_count;
	place->token_count = (uint32_t)request->input_tokens;
	memcpy(place->page_ids, request->page_ids,
	       request->page_count * sizeof(*request->page_ids));
	write_id(replay, place, id);
	asked.tokens = tokens_of(replay, place, place->token_count);
	asked.token_count = place->token_count;
	/* Length and room were checked before. */
	if (sched_submit(replay->sched, &asked, 1, &err) < 0)
		KVS_PANIC("a request was refused: %s", err.message);
	replay->live++;
	replay->parents_in += replay_shape_parents(&replay->shape, place->page_count);
}

static void end_request(struct replay *replay, const struct sched_result *result)
{
	struct replay_place *const place = place_of(replay, result->id);

	replay_totals_add(&replay->totals, result, place->token_count,
			  replay->set->prefill_tokens_per_s);
	if (place->number == replay->set->explain) {
		explanation_print(&result->explanation, cache_groups(sched_cache(replay->sched)),
				  replay->totals.explained, EXPLAINED_BYTES);
	}
	replay->live--;
	replay->parents_in -= replay_shape_parents(&replay->shape, place->page_count);
	place->used = false;
}

/* --- the tick --------------------------------------------------------------------------------- */

bool replay_doubts(const struct replay *replay)
{
	return sched_load(replay->sched).transfer.quarantined > 0;
}

bool replay_quarantined(const struct replay *replay)
{
	return replay_doubts(replay) && (replay->given_up || !exec_settles(replay->exec));
}

/* Facts of ops that the executor refused come with those that it finished. */
static void report(struct replay *replay, struct agree_report *ret_report)
{
	const uint32_t fact_max = (uint32_t)replay->set->op_credits;

	*ret_report = (struct agree_report){ .now_ns = os_now_ns(), .facts = replay->facts,
					     .copies = replay->copies };
	if (replay->exec) {
		replay->fact_count += exec_poll(replay->exec, replay->facts + replay->fact_count,
						fact_max - replay->fact_count,
						&ret_report->pressure);
		/* Behind the facts that they take back. */
		ret_report->notices = replay->notices;
		ret_report->notice_count =
			exec_poll_notices(replay->exec, replay->notices, fact_max);
	}
	ret_report->fact_count = replay->fact_count;
	replay->fact_count = 0;
	ret_report->copy_count =
		replay_device_done(&replay->device, replay->copies, replay->copies_max);
}

/*
 * What a request leaves on Device is idle from its end on, and saved in the next round, behind the
 * admissions that may need its room.  At full speed, where one prompt comes right behind the other,
 * it gets a round of its own.
 */
static void agree_on(struct replay *replay, const struct agree_report *report,
		     struct tick *ret_tick)
{
	const bool                 unhurried = replay->set->speed <= 0;
	const struct agree_permits permits = { .forward = !(unhurried && replay->leaving),
					       .storage = true };
	struct kvs_error           err;

	if (agree_round(replay->agree, report, permits, ret_tick, &err) < 0)
		KVS_PANIC("a report of our own was refused: %s", err.message);
	replay->leaving = false;
}

/*
 * What all owners say is over, it is for the executor, too: before the plan, whose ops it would refuse.
 * An owner that was in no doubt itself knows of nothing that could end.
 */
static void end_doubts(struct replay *replay, const struct tick *tick)
{
	uint32_t i;

	for (i = 0; i < tick->notice_count; i++)
		(void)exec_notice(replay->exec, &tick->notices[i]);
	/* It came back after all. */
	if (tick->notice_count > 0)
		replay->given_up = false;
}

/* --- the plan --------------------------------------------------------------------------------- */

/* A refused op is answered at once: its ticket must not wait for a fact that never comes. */
static void dispatch(struct replay *replay, const struct op *op)
{
	int rc;

	if (op->kind == OP_CANCEL) {
		exec_cancel(replay->exec, op->op_id);
		return;
	}
	agree_expect(replay->agree, op);
	rc = exec_submit(replay->exec, op);
	if (rc < 0) {
		KVS_ASSERT_CMP(replay->fact_count, <, replay->set->op_credits);
		fact_refused(&replay->facts[replay->fact_count++], op, exec_refusal_reason(rc));
	}
}

static void feed(struct replay *replay, const struct sched_event *event)
{
	KVS_ASSERT_CMP(replay->event_count, <, 2 * replay->concurrency);
	replay->events[replay->event_count++] = *event;
}

/* A line of a table as far as it goes: -1 lies behind its end. */
static uint32_t line_length(const int32_t *slots, uint32_t width)
{
	while (width > 0 && slots[width - 1] < 0)
		width--;
	return width;
}

/*
 * Check every row that the chunk can see and compute its own; at the end of the prompt look at all
 * again.
 */
static void compute(struct replay *replay, const struct batch *forward, uint32_t row_number)
{
	const struct batch_row *const    row = &forward->rows[row_number];
	const struct replay_place *const place = place_of(replay, row->id);
	struct engine_table              tables[GROUPS_MAX];
	struct engine_pass               pass = { .request = place->number, .begin = row->begin,
						  .end = row->begin + row->token_count,
						  .tables = tables };
	uint32_t                         g;

	KVS_ASSERT_CMP(row->kind, ==, BATCH_PREFILL);
	for (g = 0; g < replay->shape.count; g++) {
		const struct batch_table *const table = &forward->tables[g];
		const int32_t *const slots = table->slots + (size_t)row_number * table->width;

		/* Slots that are there are no negative numbers. */
		tables[g] = (struct engine_table){ (const uint32_t *)slots,
						   line_length(slots, table->width) };
	}
	pass.tokens = tokens_of(replay, place, pass.end);
	group_engine_forward(&replay->engine, &pass);
	if (!row->ends_prompt)
		return;
	pass.begin = pass.end;
	group_engine_forward(&replay->engine, &pass);
	feed(replay, &(struct sched_event){ .kind = SCHED_EXTEND, .id = row->id,
					    .tokens = &sampled, .token_count = 1 });
	feed(replay, &(struct sched_event){ .kind = SCHED_FINISH, .id = row->id });
	replay->leaving = true;
}

static bool run_plan(struct replay *replay, const struct sched_plan *plan)
{
	const struct batch *const forward = &plan->forward;
	uint32_t                  i;
	bool                      busy;

	for (i = 0; i < plan->op_count; i++)
		dispatch(replay, &plan->ops[i]);
	for (i = 0; i < plan->copy_count; i++)
		agree_expect_copies(replay->agree, plan->copies[i]);
	busy = replay_device_run(&replay->device, sched_mover(replay->sched), plan);
	for (i = 0; i < forward->row_count; i++)
		compute(replay, forward, i);
	for (i = 0; i < plan->ended_count; i++)
		end_request(replay, &plan->ended[i]);
	return busy || plan->op_count > 0 || forward->row_count > 0 || plan->ended_count > 0;
}

static void tell(struct replay *replay)
{
	struct kvs_error err;
	uint32_t         applied;

	if (sched_feed(replay->sched, replay->events, replay->event_count, &applied, &err) < 0)
		KVS_PANIC("an event of our own was refused: %s", err.message);
	replay->event_count = 0;
}

bool replay_round(struct replay *replay)
{
	const struct sched_plan *plan;
	struct agree_report      report_of;
	struct tick              tick;
	bool                     busy;

	report(replay, &report_of);
	agree_on(replay, &report_of, &tick);
	end_doubts(replay, &tick);
	sched_next(replay->sched, &tick, &plan);
	busy = run_plan(replay, plan);
	tell(replay);
	return busy || report_of.fact_count > 0 || report_of.notice_count > 0 ||
	       report_of.copy_count > 0;
}
