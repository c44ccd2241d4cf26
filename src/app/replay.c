/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replay loop: submit, collect, plan, dispatch, copy, compute.  See replay.h; replay_open.c
 * builds the parts.
 */
#include "app/replay.h"

#include <string.h>

#include "app/progress.h"
#include "os/os.h"

/* A sleep is a hint's backup, never a wait for it. */
#define IDLE_NS UINT64_C(100000000)

/*
 * --- requests in
 * -----------------------------------------------------------------------------------------
 */

/* Look at the next request without submitting it.  1, 0 at the end, or the source's error. */
static int peek(struct replay *replay, struct kvs_error *err)
{
	int rc;

	if (replay->has_next)
		return 1;
	if (replay->ended ||
	    (replay->set->limit &&
	     replay->totals.requests + sched_load(replay->sched).requests >= replay->set->limit)) {
		replay->ended = true;
		return 0;
	}
	rc = source_next(replay->source, &replay->next, err);
	/* Ctrl-C while a pipe had nothing to read: no error, the end. */
	if (rc < 0 && os_interrupted())
		rc = 0;
	replay->has_next = rc == 1;
	replay->ended = rc != 1;
	return rc;
}

/* When the next request arrives on the replay's clock. */
static uint64_t arrival_ns(const struct replay *replay)
{
	if (replay->set->speed <= 0)
		return replay->start_ns;
	return replay->start_ns +
	       (uint64_t)((double)replay->next.timestamp_ms * 1e6 / replay->set->speed);
}

/*
 * At full speed the trace's clock is gone, so the replayer paces itself by the store: puts that
 * pile up would be dropped only because time was compressed.  With a clock, what a real engine
 * would drop is dropped; in quarantine, too, because there no put will ever make room.
 */
static bool has_room(const struct replay *replay, uint64_t now_ns)
{
	const struct sched_load load = sched_load(replay->sched);

	if (load.requests >= replay->concurrency)
		return false;
	if (replay->set->speed > 0)
		return arrival_ns(replay) <= now_ns;
	return load.backups + load.putting < replay->backlog_max ||
	       sched_quarantined(replay->sched);
}

static uint64_t *ids_of(const struct replay *replay, uint32_t request)
{
	return replay->page_ids + (size_t)request * replay->page_max;
}

static uint64_t prefill_ns(const struct replay *replay, uint64_t tokens)
{
	return (uint64_t)((double)tokens / replay->set->prefill_tokens_per_s * 1e9);
}

/* Computed elsewhere, on a larger Device: the same time with every store. */
static void count_too_long(struct replay *replay)
{
	const uint64_t              computed_ns = prefill_ns(replay, replay->next.input_tokens);
	struct replay_totals *const totals = &replay->totals;

	totals->too_long++;
	totals->requests++;
	totals->blocks += replay->next.page_count;
	totals->tokens += replay->next.input_tokens;
	totals->origin_blocks[ORIGIN_RECOMPUTED] += replay->next.page_count;
	totals->origin_tokens[ORIGIN_RECOMPUTED] += replay->next.input_tokens;
	histogram_add(&totals->ttft_store_ns, computed_ns);
	histogram_add(&totals->ttft_local_ns, computed_ns);
	histogram_add(&totals->ttft_none_ns, computed_ns);
}

static void submit(struct replay *replay)
{
	const struct source_request *const next = &replay->next;
	uint32_t                           request;
	uint32_t                           page;

	replay->has_next = false;
	if (next->page_count > replay->page_max) {
		count_too_long(replay);
		return;
	}
	for (page = 0; page < next->page_count; page++)
		engine_page_tokens(next->page_ids[page], SOURCE_PAGE_TOKENS,
				   replay->tokens + (size_t)page * SOURCE_PAGE_TOKENS);
	/* Length and room were checked above. */
	KVS_ASSERT(sched_submit(replay->sched, next->index, replay->tokens, next->input_tokens,
				&request, NULL) == 0);
	memcpy(ids_of(replay, request), next->page_ids, next->page_count * sizeof(*next->page_ids));
}

static int submit_arrived(struct replay *replay, uint64_t now_ns, bool *ret_busy,
			  struct kvs_error *err)
{
	int rc;

	while ((rc = peek(replay, err)) == 1 && has_room(replay, now_ns)) {
		submit(replay);
		*ret_busy = true;
	}
	return rc < 0 ? rc : 0;
}

/*
 * --- a round
 * -----------------------------------------------------------------------------------------------
 */

static bool collect_facts(struct replay *replay)
{
	struct exec_pressure pressure;
	uint32_t             count, i;

	if (!replay->exec)
		return false;
	count = exec_poll(replay->exec, replay->facts, sched_fact_room(replay->sched), &pressure);
	for (i = 0; i < count; i++)
		sched_fact(replay->sched, &replay->facts[i]);
	return count > 0;
}

/*
 * A refused op is answered on the spot, so that its ticket does not wait for a fact that never
 * comes.
 */
static void dispatch(struct replay *replay, const struct op *op)
{
	struct fact fact;
	int         rc;

	if (op->kind == OP_CANCEL) {
		exec_cancel(replay->exec, op->op_id);
		return;
	}
	rc = exec_submit(replay->exec, op);
	if (rc < 0) {
		fact_refused(&fact, op, exec_refusal_reason(rc));
		sched_fact(replay->sched, &fact);
	}
}

static void count(struct replay *replay, const struct sched_result *result)
{
	struct replay_totals *const totals = &replay->totals;
	const uint64_t              computed = result->tokens[ORIGIN_RECOMPUTED];
	int                         origin;

	totals->requests++;
	totals->tokens += result->token_count;
	for (origin = 0; origin < ORIGIN_COUNT; origin++) {
		totals->blocks += result->pages[origin];
		totals->origin_blocks[origin] += result->pages[origin];
		totals->origin_tokens[origin] += result->tokens[origin];
	}
	if (result->considered && result->outcome == TRANSFER_READY)
		histogram_add(&totals->restore_ns, result->wait_ns);
	histogram_add(&totals->ttft_store_ns, result->wait_ns + prefill_ns(replay, computed));
	histogram_add(&totals->ttft_local_ns,
		      prefill_ns(replay, computed + result->tokens[ORIGIN_STORE]));
	histogram_add(&totals->ttft_none_ns, prefill_ns(replay, result->token_count));
}

/*
 * The forward pass: check what was restored, compute the rest, and look at all of it once more at
 * the end.
 */
static void forward(struct replay *replay, const struct sched_row *row)
{
	const struct engine_prompt prompt = {
		.request = row->id,
		.page_ids = ids_of(replay, row->request),
		.page_count = row->page_count,
		.token_count = row->token_count,
		.blocks = replay->blocks,
	};
	struct sched_result result;
	uint32_t            page;

	for (page = 0; page < row->page_count; page++)
		replay->blocks[page] = device_block(&replay->device, row->table[page]);
	engine_prefill(&replay->engine, &prompt, row->hit_pages);
	engine_check(&replay->engine, &prompt);
	sched_finished(replay->sched, row->request, &result);
	count(replay, &result);
}

static bool run_plan(struct replay *replay, const struct sched_plan *plan)
{
	uint32_t ticket;
	uint32_t i;

	for (i = 0; i < plan->op_count; i++)
		dispatch(replay, &plan->ops[i]);
	for (i = 0; i < plan->copy_count; i++)
		device_submit(&replay->device, plan->copies[i],
			      sched_copy(replay->sched, plan->copies[i]));
	while (device_poll(&replay->device, &ticket))
		sched_copied(replay->sched, ticket);
	for (i = 0; i < plan->row_count; i++)
		forward(replay, &plan->rows[i]);
	return plan->op_count > 0 || plan->copy_count > 0 || plan->row_count > 0;
}

/* Until something can have changed: a fact, a deadline, an arrival. */
static void rest(struct replay *replay, uint64_t now_ns)
{
	uint64_t until_ns = sched_wake_ns(replay->sched);
	uint64_t tag;

	if (replay->epoll_fd < 0)
		return;
	if (replay->has_next && replay->set->speed > 0 && arrival_ns(replay) > now_ns &&
	    arrival_ns(replay) < until_ns)
		until_ns = arrival_ns(replay);
	if (until_ns > now_ns + IDLE_NS)
		until_ns = now_ns + IDLE_NS;
	if (until_ns > now_ns && (!replay->exec || exec_arm(replay->exec)))
		os_epoll_wait(replay->epoll_fd, &tag, 1, until_ns - now_ns);
}

static bool at_rest(const struct replay *replay)
{
	const struct sched_load load = sched_load(replay->sched);

	return replay->ended && !replay->has_next && load.requests == 0 && load.transfers == 0 &&
	       load.copies == 0 && load.backups == 0;
}

/* No more requests, and no puts that only wait: what is under way ends. */
static void stop(struct replay *replay)
{
	replay->ended = true;
	replay->has_next = false;
	sched_discard_backups(replay->sched);
}

static int round_once(struct replay *replay, struct kvs_error *err)
{
	const struct sched_plan *plan;
	const uint64_t           now_ns = os_now_ns();
	bool                     busy = false;
	int                      rc = submit_arrived(replay, now_ns, &busy, err);

	busy |= collect_facts(replay);
	sched_next(replay->sched, os_now_ns(), &plan);
	busy |= run_plan(replay, plan);
	if (os_interrupted() && !replay->totals.interrupted)
		replay->totals.interrupted = true;
	/* Quarantine ends all puts: waiting ones would wait for ever. */
	if (rc < 0 || replay->totals.interrupted ||
	    (replay->ended && sched_quarantined(replay->sched)))
		stop(replay);
	if (!busy && !at_rest(replay))
		rest(replay, now_ns);
	return rc;
}

int replay_run(struct replay *replay, struct kvs_error *err)
{
	struct progress progress;
	int             rc = 0;

	replay->start_ns = os_now_ns();
	progress_start(&progress, "replaying", "req", !replay->set->json, replay->start_ns);
	while (!at_rest(replay)) {
		const int failed = round_once(replay, rc < 0 ? NULL : err);

		if (failed < 0)
			rc = failed;
		progress_update(&progress, source_progress(replay->source), replay->totals.requests,
				os_now_ns());
	}
	progress_finish(&progress);
	replay->totals.seconds_ns = os_now_ns() - replay->start_ns;
	return rc;
}
