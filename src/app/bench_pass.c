/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows come from the window's idle slots and go back there with their answer.  After a failure
 * nothing more is handed over, but what is under way is waited for: its memory is the store's.
 */
#include "app/bench_pass.h"

#include <errno.h>
#include <inttypes.h>

#include "base/prng.h"
#include "os/os.h"

/* This thread is one worker. */
#define LANE 0u

/* As many as an executor hands over in one call. */
#define BATCH_MAX 64u
#define REAP_MAX 64u

/* Long enough to cost nothing, short enough for Ctrl-C. */
#define REAP_NS UINT64_C(50000000)

/* A store that answers nothing for so long will not. */
#define SILENCE_NS UINT64_C(30000000000)

struct run {
	const struct bench_pass   *pass;
	struct bench_window       *window;
	struct bench_pass_figures *figures;
	uint64_t                   next;        /* object that has no row yet */
	uint32_t                   idle_first;  /* of the ring */
	uint32_t                   idle_count;
	uint32_t                   ready_first; /* rows made, not taken */
	uint32_t                   ready_count;
	uint32_t                   under_way;
	int                        failed;      /* the first error; its sentence is err's */
	struct kvs_error          *err;
};

static const char *const result_names[] = {
	[KVS_RESULT_UNKNOWN] = "unknown", [KVS_RESULT_DONE] = "done",
	[KVS_RESULT_EXISTS] = "there already", [KVS_RESULT_MISSING] = "missing",
	[KVS_RESULT_CORRUPT] = "corrupt", [KVS_RESULT_NO_SPACE] = "refused for want of space",
	[KVS_RESULT_FAILED] = "failed",
};

static void fail(struct run *run, int rc, const char *what)
{
	if (run->failed)
		return;
	run->failed = err_set(run->err, rc, "store: %s: %s", run->pass->is_put ? "put" : "get",
			      what);
}

static void watch(struct run *run, uint64_t bytes)
{
	struct kvs_error err;
	const int        rc = bench_watch_tick(run->pass->watch, bytes, &err);

	if (rc == 0 || run->failed)
		return;
	*run->err = err;
	run->failed = rc;
}

/* --- slots ------------------------------------------------------------------------------------ */

static void give_back(struct run *run, uint32_t slot)
{
	const uint32_t count = run->window->slot_count;

	KVS_ASSERT_CMP(run->idle_count, <, count);
	run->window->idle[(run->idle_first + run->idle_count++) % count] = slot;
}

static uint32_t take(struct run *run)
{
	const uint32_t slot = run->window->idle[run->idle_first];

	KVS_ASSERT_CMP(run->idle_count, >, 0);
	run->idle_first = (run->idle_first + 1) % run->window->slot_count;
	run->idle_count--;
	return slot;
}

struct kvs_key bench_pass_key(uint64_t generation, uint64_t number)
{
	struct kvs_key key = { .offset = 0 };
	uint64_t       name = (generation << 40) + number;
	uint32_t       i;

	for (i = 0; i < sizeof(key.hash); i++) {
		if (i % sizeof(name) == 0)
			name = mix64(name);
		key.hash[i] = (uint8_t)(name >> (i % sizeof(name) * 8));
	}
	return key;
}

/* A block for the next object. */
static uint32_t next_slot(struct run *run)
{
	const uint32_t slot = take(run);

	run->window->slots[slot].key = bench_pass_key(run->pass->generation, run->next++);
	return slot;
}

static void settle(struct run *run, uint32_t slot, enum kvs_result result, bool retired,
		   uint64_t now_ns)
{
	const uint64_t bytes = run->window->bytes;

	if (retired)
		give_back(run, slot);
	else
		fail(run, -EIO, "a block has not come back");
	if (result == KVS_RESULT_NO_SPACE && run->pass->may_refuse) {
		run->figures->refused++;
	} else if (result != KVS_RESULT_DONE) {
		fail(run, -EIO, (size_t)result < ARRAY_COUNT(result_names) ? result_names[result]
									   : "no known result");
	} else {
		histogram_add(&run->window->latency_ns,
			      now_ns - run->window->slots[slot].taken_ns);
		run->figures->moved_bytes += bytes;
	}
	watch(run, bytes);
}

/* --- a lane ----------------------------------------------------------------------------------- */

static void make_rows(struct run *run)
{
	struct bench_window *const window = run->window;

	run->ready_first = 0;
	while (!run->failed && run->next < run->pass->objects && run->idle_count > 0 &&
	       run->under_way + run->ready_count < window->depth) {
		const uint32_t slot = next_slot(run);

		window->rows[run->ready_count++] =
			(struct kvs_io){ .cookie = slot, .is_put = run->pass->is_put,
					 .key = &window->slots[slot].key,
					 .span = arena_block(&window->blocks, slot) };
	}
}

/* False when the store takes no more for now. */
static bool hand_over(struct run *run)
{
	struct kvs_store *const store = run->pass->store;
	struct kvs_io *const    rows = run->window->rows + run->ready_first;
	const uint64_t          now_ns = os_now_ns();
	const uint32_t          offered = run->ready_count;
	const int               taken = store->ops->submit(store, LANE, rows, offered);
	int                     i;

	for (i = 0; i < taken; i++)
		run->window->slots[rows[i].cookie].taken_ns = now_ns;
	if (taken > 0) {
		run->ready_first += (uint32_t)taken;
		run->ready_count -= (uint32_t)taken;
		run->under_way += (uint32_t)taken;
	}
	if (taken < 0)
		fail(run, taken, kvs_strerror(taken));
	else if (run->under_way == 0)
		fail(run, -EIO, "an empty lane takes no row");
	return taken == (int)offered;
}

static uint32_t collect(struct run *run)
{
	struct kvs_store *const store = run->pass->store;
	struct kvs_io_done      done[REAP_MAX];
	const int               count = store->ops->reap(store, LANE, done, REAP_MAX, REAP_NS);
	const uint64_t          now_ns = os_now_ns();
	int                     i;

	if (count < 0)
		fail(run, count, kvs_strerror(count));
	for (i = 0; i < count; i++) {
		KVS_ASSERT_CMP(done[i].cookie, <, run->window->slot_count);
		KVS_ASSERT_CMP(run->under_way, >, 0);
		run->under_way--;
		settle(run, (uint32_t)done[i].cookie, done[i].result, done[i].retired, now_ns);
	}
	return count > 0 ? (uint32_t)count : 0;
}

/*
 * Each round offers what fits beside the rows under way, so that the lane is full before this thread
 * waits.
 */
static void run_lane(struct run *run)
{
	uint64_t heard_ns = os_now_ns();

	for (;;) {
		bool more = true;

		while (more && !run->failed) {
			if (run->ready_count == 0)
				make_rows(run);
			more = run->ready_count > 0 && hand_over(run);
		}
		if (run->under_way == 0)
			return;
		if (collect(run) > 0)
			heard_ns = os_now_ns();
		else
			watch(run, 0);
		if (os_now_ns() - heard_ns > SILENCE_NS) {
			fail(run, -ETIMEDOUT, "no answer for 30 seconds");
			return;
		}
	}
}

/* --- batches ---------------------------------------------------------------------------------- */

static void run_batch(struct run *run)
{
	struct kvs_store *const    store = run->pass->store;
	const struct bench_window *window = run->window;
	struct kvs_key             keys[BATCH_MAX];
	struct kvs_span            spans[BATCH_MAX];
	enum kvs_result            results[BATCH_MAX] = { KVS_RESULT_UNKNOWN };
	uint32_t                   slots[BATCH_MAX], count = 0, i;
	uint64_t                   now_ns = os_now_ns();
	bool                       retired = false;
	int                        rc;

	while (count < BATCH_MAX && count < window->depth && run->next < run->pass->objects) {
		slots[count] = next_slot(run);
		window->slots[slots[count]].taken_ns = now_ns;
		keys[count] = window->slots[slots[count]].key;
		spans[count] = arena_block(&window->blocks, slots[count]);
		count++;
	}
	rc = run->pass->is_put
		     ? store->ops->put(store, keys, spans, count, results, &retired)
		     : store->ops->get(store, keys, spans, count, results, &retired);
	if (rc < 0)
		fail(run, rc, kvs_strerror(rc));
	now_ns = os_now_ns();
	for (i = 0; i < count; i++)
		settle(run, slots[i], results[i], retired, now_ns);
}

/* --- the pass --------------------------------------------------------------------------------- */

int bench_pass(const struct bench_pass *pass, struct bench_pass_figures *ret_figures,
	       struct kvs_error *err)
{
	struct bench_pass_figures figures = { 0 };
	struct run                run = { .pass = pass, .window = pass->window,
					  .figures = &figures, .err = err };
	const uint64_t            begin_ns = os_now_ns(), begin_cpu_ns = os_process_cpu_ns();
	uint32_t                  i;

	pass->window->latency_ns = (struct histogram){ 0 };
	for (i = 0; i < pass->window->slot_count; i++)
		give_back(&run, i);
	if (pass->store->ops->submit) {
		run_lane(&run);
	} else {
		while (!run.failed && run.next < pass->objects)
			run_batch(&run);
	}
	figures.seconds = (double)(os_now_ns() - begin_ns) / 1e9;
	figures.cpu_s = (double)(os_process_cpu_ns() - begin_cpu_ns) / 1e9;
	figures.p50_us = (double)histogram_percentile(&pass->window->latency_ns, 50) / 1e3;
	figures.p99_us = (double)histogram_percentile(&pass->window->latency_ns, 99) / 1e3;
	if (run.failed)
		return run.failed;
	*ret_figures = figures;
	return 0;
}
