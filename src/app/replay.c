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

/* A store that has not said a word for so long, with nothing else left to do, is given up. */
#define PATIENCE_NS UINT64_C(5000000000)

/* --- requests in ------------------------------------------------------------------------------ */

/*
 * Look at the next request without submitting it.  1; 0 at the end or when a pipe is empty;
 * or the source's error.
 */
static int peek(struct replay *replay, struct kvs_error *err)
{
	int rc;

	if (replay->has_next)
		return 1;
	if (replay->ended ||
	    (replay->set->limit &&
	     replay->totals.requests + mono_sched_load(replay->sched).requests >= replay->set->limit)) {
		replay->ended = true;
		return 0;
	}
	replay->starved = !source_ready(replay->source);
	if (replay->starved)
		return 0;
	rc = source_next(replay->source, &replay->next, err);
	/* Ctrl-C in the middle of a slow read: no error, the end. */
	if (rc < 0 && os_interrupted())
		rc = 0;
	replay->has_next = rc == 1;
	replay->ended = rc != 1;
	return rc;
}

/* When the next request arrives on the replay's clock. */
static uint64_t arrival_ns(const struct replay *replay)
{
	double after_ns;

	if (replay->set->speed <= 0)
		return replay->start_ns;
	after_ns = (double)replay->next.timestamp_ms * 1e6 / replay->set->speed;
	/* Half the clock's range is 292 years: what arrives later never does. */
	return after_ns < 9.2e18 ? replay->start_ns + (uint64_t)after_ns : UINT64_MAX;
}

/*
 * At full speed the trace's clock is gone, so the replayer paces itself: puts that pile up, or more
 * pages at once than the Host can hand down, would be dropped only because time was compressed.
 * With a clock, what a real engine would drop is dropped; in quarantine, too, because there no put
 * will ever make room.
 */
static bool has_room(const struct replay *replay, uint64_t now_ns)
{
	const struct mono_sched_load load = mono_sched_load(replay->sched);
	uint64_t                     waiting;

	if (load.requests >= replay->concurrency)
		return false;
	if (replay->set->speed > 0)
		return arrival_ns(replay) <= now_ns;
	if (mono_sched_quarantined(replay->sched))
		return true;
	waiting = load.backups + load.putting;
	if (waiting >= replay->backlog_max)
		return false;
	return replay->pages_in == 0 ||
	       waiting + replay->pages_in + replay->next.page_count <= replay->set->host_blocks / 2;
}

static uint64_t *ids_of(const struct replay *replay, uint32_t request)
{
	return replay->page_ids + (size_t)request * replay->page_max;
}

static uint64_t prefill_ns(const struct replay *replay, uint64_t tokens)
{
	return (uint64_t)((double)tokens / replay->set->prefill_tokens_per_s * 1e9);
}

static void count(struct replay *replay, const struct mono_sched_result *result)
{
	struct replay_totals *const totals = &replay->totals;
	const uint64_t              computed = result->tokens[MONO_ORIGIN_RECOMPUTED];
	int                         origin;

	totals->requests++;
	totals->tokens += result->token_count;
	for (origin = 0; origin < MONO_ORIGIN_COUNT; origin++) {
		totals->blocks += result->pages[origin];
		totals->origin_blocks[origin] += result->pages[origin];
		totals->origin_tokens[origin] += result->tokens[origin];
	}
	if (result->considered && result->outcome == MONO_TRANSFER_READY)
		histogram_add(&totals->restore_ns, result->wait_ns);
	histogram_add(&totals->ttft_store_ns, result->wait_ns + prefill_ns(replay, computed));
	histogram_add(&totals->ttft_local_ns,
		      prefill_ns(replay, computed + result->tokens[MONO_ORIGIN_STORE]));
	histogram_add(&totals->ttft_none_ns, prefill_ns(replay, result->token_count));
}

/* Computed elsewhere, on a larger Device: the same time with every store. */
static void count_too_long(struct replay *replay)
{
	const struct mono_sched_result result = {
		.token_count = replay->next.input_tokens,
		.pages = { [MONO_ORIGIN_RECOMPUTED] = replay->next.page_count },
		.tokens = { [MONO_ORIGIN_RECOMPUTED] = replay->next.input_tokens },
	};

	replay->totals.too_long++;
	count(replay, &result);
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
	for (page = 0; page < next->page_count; page++) {
		engine_page_tokens(next->page_ids[page], SOURCE_PAGE_TOKENS,
				   replay->tokens + (size_t)page * SOURCE_PAGE_TOKENS);
	}
	/* Length and room were checked above. */
	KVS_ASSERT(mono_sched_submit(replay->sched, next->index, replay->tokens, next->input_tokens,
				     &request, NULL) == 0);
	replay->pages_in += next->page_count;
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

/* --- a round ---------------------------------------------------------------------------------- */

static bool collect_facts(struct replay *replay)
{
	struct pressure pressure;
	uint32_t             count, i;

	if (!replay->exec)
		return false;
	count = exec_poll(replay->exec, replay->facts, mono_sched_fact_room(replay->sched),
			  &pressure);
	for (i = 0; i < count; i++)
		mono_sched_fact(replay->sched, &replay->facts[i]);
	return count > 0;
}

/* A refused op is answered on the spot: its ticket must not wait for a fact that never comes. */
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
		mono_sched_fact(replay->sched, &fact);
	}
}

/* The forward pass: check what was restored, compute the rest, and look at all of it again. */
static void forward(struct replay *replay, const struct mono_sched_pass *pass)
{
	const struct engine_prompt prompt = {
		.request = pass->id,
		.page_ids = ids_of(replay, pass->request),
		.page_count = pass->page_count,
		.token_count = pass->token_count,
		.blocks = replay->blocks,
	};
	struct mono_sched_result result;
	uint32_t                 page;

	for (page = 0; page < pass->page_count; page++)
		replay->blocks[page] = device_block(&replay->device, pass->table[page]);
	engine_prefill(&replay->engine, &prompt, pass->hit_pages);
	engine_check(&replay->engine, &prompt);
	replay->pages_in -= pass->page_count;
	mono_sched_finished(replay->sched, pass->request, &result);
	count(replay, &result);
}

static bool run_plan(struct replay *replay, const struct mono_sched_plan *plan)
{
	uint32_t ticket;
	uint32_t i;

	for (i = 0; i < plan->op_count; i++)
		dispatch(replay, &plan->ops[i]);
	for (i = 0; i < plan->copy_count; i++) {
		device_submit(&replay->device, plan->copies[i],
			      mono_sched_copy(replay->sched, plan->copies[i]));
	}
	while (device_poll(&replay->device, &ticket))
		mono_sched_copied(replay->sched, ticket);
	for (i = 0; i < plan->pass_count; i++)
		forward(replay, &plan->passes[i]);
	return plan->op_count > 0 || plan->copy_count > 0 || plan->pass_count > 0;
}

/* Until something can have changed: a fact, a deadline, an arrival, more of a pipe. */
static void rest(const struct replay *replay, uint64_t now_ns)
{
	const bool clocked = replay->has_next && replay->set->speed > 0;
	const int  fds[] = { replay->exec ? exec_fd(replay->exec) : -1,
			     replay->starved ? source_fd(replay->source) : -1 };
	uint64_t   until_ns = mono_sched_wake_ns(replay->sched);

	if (!replay->exec && !replay->starved && !clocked)
		return;
	if (clocked && arrival_ns(replay) > now_ns && arrival_ns(replay) < until_ns)
		until_ns = arrival_ns(replay);
	if (until_ns > now_ns + IDLE_NS)
		until_ns = now_ns + IDLE_NS;
	if (until_ns > now_ns && (!replay->exec || exec_arm(replay->exec)))
		os_wait_readable(fds, (int)ARRAY_COUNT(fds), until_ns - now_ns);
}

static bool at_rest(const struct replay *replay)
{
	const struct mono_sched_load load = mono_sched_load(replay->sched);

	return replay->ended && !replay->has_next && load.requests == 0 && load.transfers == 0 &&
	       load.copies == 0 && load.backups == 0;
}

/*
 * Only the store is waited for, and it is silent.  What it still holds is told by the executor's end;
 * after Ctrl-C a request that waits without a deadline is not worth waiting for either.
 */
static bool in_vain(const struct replay *replay)
{
	const bool over = replay->ended && !replay->has_next;

	return over && (replay->totals.interrupted || mono_sched_load(replay->sched).requests == 0) &&
	       os_now_ns() - replay->busy_ns > PATIENCE_NS;
}

/* No more requests, and no puts that only wait: what is under way ends. */
static void stop(struct replay *replay)
{
	replay->ended = true;
	replay->has_next = false;
	mono_sched_discard_backups(replay->sched);
}

static int round_once(struct replay *replay, struct kvs_error *err)
{
	const struct mono_sched_plan *plan;
	const uint64_t                now_ns = os_now_ns();
	bool                          busy = false;
	int                           rc = submit_arrived(replay, now_ns, &busy, err);

	busy |= collect_facts(replay);
	mono_sched_next(replay->sched, os_now_ns(), &plan);
	busy |= run_plan(replay, plan);
	replay->totals.interrupted |= os_interrupted();
	/* Quarantine ends all puts: waiting ones would wait for ever. */
	if (rc < 0 || replay->totals.interrupted ||
	    (replay->ended && mono_sched_quarantined(replay->sched)))
		stop(replay);
	if (busy)
		replay->busy_ns = now_ns;
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
	replay->busy_ns = replay->start_ns;
	while (!at_rest(replay) && !in_vain(replay)) {
		const int failed = round_once(replay, err);

		if (failed < 0)
			rc = failed;
		progress_update(&progress, source_progress(replay->source), replay->totals.requests,
				os_now_ns());
	}
	progress_finish(&progress);
	replay->totals.elapsed_ns = os_now_ns() - replay->start_ns;
	return rc;
}
