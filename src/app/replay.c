/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replay loop: which request comes when, and when it is over.  See replay.h; replay_round.c has
 * the rounds, replay_open.c builds the parts.
 */
#include "app/replay.h"

#include <stdio.h>

#include "app/progress.h"
#include "base/units.h"
#include "os/os.h"

/* A sleep is a hint's backup, never a wait for it. */
#define IDLE_NS UINT64_C(100000000)

/* A store that has not said a word for so long, with nothing else to do, is given up. */
#define PATIENCE_NS UINT64_C(5000000000)

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

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
	    (replay->set->limit && replay->totals.requests + replay->live >= replay->set->limit)) {
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
 * What requests have left on its way down: names, copies to the Host, and puts that wait for a
 * credit.
 */
static bool goes_down(const struct sched_load *load)
{
	return load->candidates > 0 || load->saving > 0 || load->transfer.backups > 0;
}

/*
 * At full speed the trace's clock is gone, so the replayer paces itself: what is on its way down,
 * puts that pile up, or more pages at once than the Host can hand down, would be lost only because
 * time was compressed.  What nothing moves any more holds nobody back.
 */
static bool has_pace(const struct replay *replay)
{
	const struct sched_load load = sched_load(replay->sched);
	/* Doubt that may end is on its way, too. */
	const bool              moves = load.saving > 0 || load.transfer.waiting > 0 ||
					replay_doubts(replay) || !replay->idle;
	const uint64_t          parents =
		replay_shape_parents(&replay->shape, replay->next.page_count);

	if (replay->live == 0 && !moves)
		return true;
	if (goes_down(&load) || load.transfer.put_refs >= replay->backlog_max)
		return false;
	return replay->live == 0 ||
	       load.transfer.put_refs + replay->parents_in + parents <=
		       replay->set->host_blocks / 2;
}

/*
 * With a clock, what a real engine would drop is dropped; in a quarantine without end and with a store
 * that was given up, too, because there no put will ever make room.
 */
static bool has_room(const struct replay *replay, uint64_t now_ns)
{
	if (replay->live >= replay->concurrency)
		return false;
	if (replay->set->speed > 0)
		return arrival_ns(replay) <= now_ns;
	return replay_quarantined(replay) || replay->given_up || has_pace(replay);
}

static void explain_too_long(struct replay *replay, uint32_t limit)
{
	char length[UNITS_TEXT_BYTES], most[UNITS_TEXT_BYTES];

	if (replay->next.index != replay->set->explain)
		return;
	snprintf(replay->totals.explained, EXPLAINED_BYTES,
		 "hit none of %s tokens, for the Device holds prompts of %s at most",
		 units_format_count(replay->next.input_tokens, length),
		 units_format_count(limit, most));
}

/* Its one new token needs room, too. */
static void take_in(struct replay *replay)
{
	const uint32_t limit = sched_request_limit(replay->sched) - 1;
	const uint32_t most =
		(uint32_t)least(limit, (uint64_t)replay->page_max * SOURCE_PAGE_TOKENS - 1);

	replay->has_next = false;
	if (replay->next.input_tokens <= most) {
		replay_submit(replay, &replay->next);
		return;
	}
	explain_too_long(replay, most);
	replay_totals_add_too_long(&replay->totals, replay->next.input_tokens,
				   replay->set->prefill_tokens_per_s);
}

static int submit_arrived(struct replay *replay, uint64_t now_ns, bool *ret_busy,
			  struct kvs_error *err)
{
	int rc;

	while ((rc = peek(replay, err)) == 1 && has_room(replay, now_ns)) {
		take_in(replay);
		*ret_busy = true;
	}
	return rc < 0 ? rc : 0;
}

/* --- the loop -------------------------------------------------------------------------------- */

/* Until something can have changed: a fact, a deadline, an arrival, more of a pipe. */
static void rest(const struct replay *replay, uint64_t now_ns)
{
	const bool clocked = replay->has_next && replay->set->speed > 0;
	const int  fds[] = { replay->exec ? exec_fd(replay->exec) : -1,
			     replay->starved ? source_fd(replay->source) : -1 };
	uint64_t   until_ns = sched_wake_ns(replay->sched);

	if (!replay->exec && !replay->starved && !clocked)
		return;
	if (clocked && arrival_ns(replay) > now_ns && arrival_ns(replay) < until_ns)
		until_ns = arrival_ns(replay);
	if (until_ns > now_ns + IDLE_NS)
		until_ns = now_ns + IDLE_NS;
	if (until_ns > now_ns && (!replay->exec || exec_arm(replay->exec)))
		os_wait_readable(fds, (int)ARRAY_COUNT(fds), until_ns - now_ns);
}

/*
 * A name that waits for its copy to a Host that is lost to it waits for ever: what holds it up is
 * copies and I/O, and when there are none it is left.
 */
static bool at_rest(const struct replay *replay)
{
	const struct sched_load load = sched_load(replay->sched);

	return replay->ended && !replay->has_next && replay->live == 0 &&
	       load.saving + load.loading == 0 && load.transfer.waiting == 0 &&
	       load.transfer.backups == 0 && (load.candidates == 0 || replay->idle);
}

/*
 * Only the store is waited for, and it is silent.  What it still holds is told by the executor's
 * end; after Ctrl-C a request that waits without a deadline is not worth waiting for either.
 */
static bool in_vain(const struct replay *replay)
{
	const bool over = replay->ended && !replay->has_next;

	return over && (replay->totals.interrupted || replay->live == 0) &&
	       os_now_ns() - replay->busy_ns > PATIENCE_NS;
}

/*
 * The same in the middle of a run: the next request waits for calls that do not come back, or for
 * proof of those that did.
 */
static bool is_silent(const struct replay *replay, uint64_t now_ns)
{
	return replay->live == 0 && replay->idle && now_ns - replay->busy_ns > PATIENCE_NS &&
	       (sched_load(replay->sched).transfer.waiting > 0 || replay_doubts(replay));
}

/* No more requests, and no puts that only wait: what is under way ends. */
static void stop(struct replay *replay)
{
	replay->ended = true;
	replay->has_next = false;
	sched_set_intent(replay->sched, true);
}

static int round_once(struct replay *replay, struct kvs_error *err)
{
	const uint64_t now_ns = os_now_ns();
	bool           busy = false;
	const int      rc = submit_arrived(replay, now_ns, &busy, err);

	busy |= replay_round(replay);
	replay->idle = !busy;
	replay->totals.interrupted |= os_interrupted();
	/* A quarantine that nothing ends, ends all puts: waiting ones would wait for ever. */
	if (rc < 0 || replay->totals.interrupted || (replay->ended && replay_quarantined(replay)))
		stop(replay);
	if (busy)
		replay->busy_ns = now_ns;
	replay->given_up |= is_silent(replay, now_ns);
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
