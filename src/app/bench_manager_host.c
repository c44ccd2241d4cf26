/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that need no store, of one thread, in batches.
 *
 * Objects are of one page and their trailer, and no payload is written: it is the calls that are
 * measured.  The store controller listens, as it always does; what its thread does counts for all
 * threads together.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "app/bench_manager.h"
#include "app/bench_pass.h"
#include "os/os.h"

#define OBJECT_BYTES UINT64_C(4096)
#define PLACE_BYTES UINT64_C(8192)

/* A pass of replacing is so many times what Host holds. */
#define TURNS 4u

/* Locks and hits are of all that Host has, so often. */
#define LOOKS 4u

struct stand {
	const struct bench_manager_settings *set;
	struct bench_watch                  *watch;
	struct bench_door                    door;
	struct kvs_key                      *keys; /* TURNS times what Host holds */
	struct kvs_span                     *spans;
	int                                 *rc;
	struct kvs_error                    *err;
};

static int open_stand(struct stand *stand)
{
	const uint64_t     objects = stand->set->objects;
	struct kvs_options options = KVS_OPTIONS_INIT;
	uint64_t           i;

	options.host_bytes = objects * PLACE_BYTES;
	options.object_bytes = OBJECT_BYTES;
	options.objects = (uint32_t)(2 * objects);
	options.prefetch_keys = (uint32_t)stand->set->batch;
	/* Room is made when it is asked for, and by nobody else. */
	options.high = options.low = 1;
	stand->keys = calloc(TURNS * objects, sizeof(*stand->keys));
	stand->spans = calloc(stand->set->batch, sizeof(*stand->spans));
	stand->rc = calloc(stand->set->batch, sizeof(*stand->rc));
	if (!stand->keys || !stand->spans || !stand->rc) {
		return err_set(stand->err, -ENOMEM, "no memory for %" PRIu64 " keys",
			       TURNS * objects);
	}
	for (i = 0; i < TURNS * objects; i++)
		stand->keys[i] = bench_pass_key(0, i);
	return bench_door_open(&stand->door, &options, stand->err);
}

/* --- one batch of each ------------------------------------------------------------------------ */

/* A row that failed would be measured as work. */
static int check_rows(struct stand *stand, const char *call, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (stand->rc[i] < 0) {
			return err_set(stand->err, stand->rc[i], "%s: row %u: %s", call, i,
				       kvs_strerror(stand->rc[i]));
		}
	}
	return 0;
}

static int write_batch(struct stand *stand, const struct kvs_key *keys, uint32_t count)
{
	int rc = kvs_reserve_write(stand->door.kvs, stand->door.me, keys, count, NULL, stand->spans,
				   stand->rc, stand->err);

	if (rc == 0)
		rc = check_rows(stand, "reserve", count);
	if (rc == 0) {
		rc = kvs_finish_write(stand->door.kvs, stand->door.me, keys, count, stand->rc,
				      stand->err);
	}
	return rc < 0 ? rc : check_rows(stand, "finish", count);
}

static int lock_batch(struct stand *stand, const struct kvs_key *keys, uint32_t count)
{
	int rc = kvs_lock(stand->door.kvs, stand->door.me, keys, count, stand->spans, stand->rc,
			  stand->err);

	if (rc == 0)
		rc = check_rows(stand, "lock", count);
	if (rc == 0) {
		rc = kvs_unlock(stand->door.kvs, stand->door.me, keys, count, stand->rc,
				stand->err);
	}
	return rc < 0 ? rc : check_rows(stand, "unlock", count);
}

static int hit_batch(struct stand *stand, const struct kvs_key *keys, uint32_t count)
{
	kvs_prefetch prefetch;
	uint32_t     chunks = 0;
	int rc = kvs_prefetch_submit(stand->door.kvs, stand->door.me, keys, count, NULL, &prefetch,
				     stand->err);

	if (rc < 0)
		return rc;
	rc = kvs_prefetch_poll(stand->door.kvs, prefetch, &chunks);
	if (rc == 0 && chunks != count)
		rc = KVS_E_MISSING;
	(void)kvs_prefetch_release(stand->door.kvs, prefetch);
	return rc < 0 ? err_set(stand->err, rc, "prefetch: %s", kvs_strerror(rc)) : 0;
}

/* --- passes ----------------------------------------------------------------------------------- */

static const struct {
	int (*batch)(struct stand *stand, const struct kvs_key *keys, uint32_t count);
	uint32_t turns; /* of as many keys as Host holds */
	uint32_t first; /* in turns: where it begins */
	uint32_t wrap;  /* and begins again from the front */
	bool     clear; /* first of all */
} calls[BENCH_MANAGER_CALLS] = {
	[BENCH_FILL] = { write_batch, 1, 0, 1, true },
	/* Ends with the first turn's keys, which are long gone by then. */
	[BENCH_REPLACE] = { write_batch, TURNS, 1, TURNS, false },
	[BENCH_LOCK] = { lock_batch, LOOKS, 0, 1, false },
	[BENCH_HIT] = { hit_batch, LOOKS, 0, 1, false },
};

static int run_pass(struct stand *stand, enum bench_manager_call call, double *ret_thread,
		    double *ret_process)
{
	const uint64_t objects = stand->set->objects, batch = stand->set->batch;
	const uint64_t count = calls[call].turns * objects;
	uint64_t       thread_ns, process_ns, at;
	int            rc = 0;

	if (calls[call].clear)
		(void)kvs_clear(stand->door.kvs, NULL, true, NULL, NULL);
	(void)kvs_flush(stand->door.kvs, UINT64_C(1000000000));
	thread_ns = os_thread_cpu_ns();
	process_ns = os_process_cpu_ns();
	for (at = 0; rc == 0 && at + batch <= count; at += batch) {
		const uint64_t from = calls[call].first * objects + at;

		rc = calls[call].batch(stand, stand->keys + from % (calls[call].wrap * objects),
				       (uint32_t)batch);
	}
	*ret_thread = (double)at / ((double)(os_thread_cpu_ns() - thread_ns) / 1e9);
	*ret_process = (double)at / ((double)(os_process_cpu_ns() - process_ns) / 1e9);
	return rc < 0 ? rc : bench_watch_tick(stand->watch, 0, stand->err);
}

static int measure(struct stand *stand, struct bench_manager_rate *ret_rates)
{
	static double thread[BENCH_MANAGER_CALLS][BENCH_RUNS_MAX],
		process[BENCH_MANAGER_CALLS][BENCH_RUNS_MAX];
	const uint32_t runs = (uint32_t)stand->set->runs;
	uint32_t       run, call;
	int            rc = 0;

	for (run = 0; run < runs; run++) {
		for (call = 0; rc == 0 && call < BENCH_MANAGER_CALLS; call++)
			rc = run_pass(stand, call, &thread[call][run], &process[call][run]);
	}
	for (call = 0; rc == 0 && call < BENCH_MANAGER_CALLS; call++) {
		ret_rates[call] = (struct bench_manager_rate){ bench_median(thread[call], runs),
							       bench_median(process[call], runs) };
	}
	return rc;
}

int bench_manager_host(const struct bench_manager_settings *set, struct bench_watch *watch,
		       struct bench_manager_rate *ret_rates, struct kvs_error *err)
{
	struct stand stand = { .set = set, .watch = watch, .err = err };
	int          rc = open_stand(&stand);

	if (rc == 0)
		rc = measure(&stand, ret_rates);
	if (rc == 0)
		rc = bench_door_close(&stand.door, err);
	else if (stand.door.kvs)
		(void)bench_door_close(&stand.door, NULL);
	free(stand.keys);
	free(stand.spans);
	free(stand.rc);
	return rc;
}
