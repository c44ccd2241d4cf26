/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefetches of objects of one size, through a door with one store, batch by batch, some under way.
 *
 * The strata file is read in turns: through the door, and by the pass that `bench store` makes of
 * it, with one worker each, since a store that answers later has a lane of its own for each of
 * them.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/bench_manager.h"
#include "app/bench_pass.h"
#include "app/bench_store.h"
#include "base/prng.h"
#include "os/os.h"

/* Prefetches at once: as many as a door has under way by default. */
#define UNDER_WAY 8u

/* Host for them, at most. */
#define HOST_BYTES (UINT64_C(512) << 20)

#define MOVED_BYTES (UINT64_C(256) << 20)
#define OBJECTS_LEAST 128u

/* Beside objects: headers, indexes. */
#define ROOM_BESIDE (UINT64_C(64) << 20)

#define WAIT_NS UINT64_C(30000000000)

struct fetch {
	const struct bench_manager_settings *set;
	struct bench_watch                  *watch;
	const char                          *file;
	uint64_t                             bytes;
	uint64_t                             objects;
	uint32_t                             batch;
	char                                 spec[2200];
	struct bench_door                    door;
	struct kvs_key                      *keys;
	struct kvs_span                     *spans;
	int                                 *rc;
	struct kvs_error                    *err;
	double                               gb_s[BENCH_RUNS_MAX], keys_s[BENCH_RUNS_MAX];
	double                               cpu_us[BENCH_RUNS_MAX], pass[BENCH_RUNS_MAX];
};

uint64_t bench_manager_objects(const struct bench_manager_settings *set, uint64_t bytes)
{
	const uint64_t objects = (set->moved ? set->moved : MOVED_BYTES) / bytes;

	return objects > OBJECTS_LEAST ? objects : OBJECTS_LEAST;
}

uint64_t bench_manager_moved(const struct bench_manager_settings *set, uint64_t bytes)
{
	/* Written to two stores, read from three, and from one of them twice. */
	return bench_manager_objects(set, bytes) * bytes * (2 + set->runs * 4);
}

static uint64_t place_bytes(const struct fetch *fetch)
{
	return fetch->bytes + 4096;
}

static int open_door(struct fetch *fetch)
{
	struct kvs_options options = KVS_OPTIONS_INIT;

	options.host_bytes = UNDER_WAY * fetch->batch * place_bytes(fetch);
	options.object_bytes = fetch->bytes;
	options.objects = 2 * UNDER_WAY * fetch->batch;
	options.prefetch_in_flight = UNDER_WAY;
	options.prefetch_keys = fetch->batch;
	options.get_workers = 1;
	options.high = options.low = 1;
	options.stores[0] = fetch->spec;
	return bench_door_open(&fetch->door, &options, fetch->err);
}

/* --- filling ---------------------------------------------------------------------------------- */

/* Words that are no pattern. */
static void fill(const struct kvs_span *span, uint64_t number)
{
	uint64_t *const words = span->ptr;
	uint64_t        i;

	for (i = 0; i < span->bytes / sizeof(*words); i++)
		words[i] = mix64(number << 32 | i);
}

static int write_batch(struct fetch *fetch, uint64_t from, uint32_t count)
{
	struct kvs *const           kvs = fetch->door.kvs;
	const struct kvs_key *const keys = fetch->keys + from;
	uint32_t                    i;
	int rc = kvs_reserve_write(kvs, fetch->door.me, keys, count, NULL, fetch->spans, fetch->rc,
				   fetch->err);

	for (i = 0; rc == 0 && i < count; i++) {
		if (fetch->rc[i] == 0)
			fill(&fetch->spans[i], from + i);
		else {
			rc = err_set(fetch->err, fetch->rc[i], "reserve: %s",
				     kvs_strerror(fetch->rc[i]));
		}
	}
	if (rc == 0)
		rc = kvs_finish_write(kvs, fetch->door.me, keys, count, fetch->rc, fetch->err);
	/* A key waits for its store by name: what Host evicts meanwhile would not be stored. */
	if (rc == 0 && kvs_flush(kvs, WAIT_NS) < 0)
		rc = err_set(fetch->err, -ETIMEDOUT, "store: no answer for 30 seconds");
	return rc < 0 ? rc : bench_watch_tick(fetch->watch, count * fetch->bytes, fetch->err);
}

static uint32_t batch_at(const struct fetch *fetch, uint64_t from)
{
	const uint64_t left = fetch->objects - from;

	return left < fetch->batch ? (uint32_t)left : fetch->batch;
}

static int stock(struct fetch *fetch)
{
	uint64_t from;
	int      rc = 0;

	for (from = 0; rc == 0 && from < fetch->objects; from += batch_at(fetch, from))
		rc = write_batch(fetch, from, batch_at(fetch, from));
	if (rc == 0)
		(void)kvs_clear(fetch->door.kvs, NULL, false, NULL, NULL);
	return rc;
}

/* --- prefetching ------------------------------------------------------------------------------ */

struct flight {
	kvs_prefetch prefetch;
	uint32_t     count;
};

static int take_off(struct fetch *fetch, uint64_t from, struct flight *ret_flight)
{
	ret_flight->count = batch_at(fetch, from);
	return kvs_prefetch_submit(fetch->door.kvs, fetch->door.me, fetch->keys + from,
				   ret_flight->count, NULL, &ret_flight->prefetch, fetch->err);
}

static int land(struct fetch *fetch, const struct flight *flight)
{
	uint32_t chunks = 0;
	int      rc = kvs_prefetch_wait(fetch->door.kvs, flight->prefetch, WAIT_NS, &chunks);

	(void)kvs_prefetch_release(fetch->door.kvs, flight->prefetch);
	if (rc < 0)
		return err_set(fetch->err, rc, "prefetch: %s", kvs_strerror(rc));
	if (chunks != flight->count) {
		return err_set(fetch->err, -EIO, "prefetch: %u of %u objects came", chunks,
			       flight->count);
	}
	return bench_watch_tick(fetch->watch, chunks * fetch->bytes, fetch->err);
}

/* The oldest lands before the next one takes off. */
static int fly(struct fetch *fetch)
{
	struct flight flights[UNDER_WAY];
	uint64_t      from = 0, begun = 0, ended = 0;
	int           rc = 0;

	while (rc == 0 && (from < fetch->objects || ended < begun)) {
		if (from < fetch->objects && begun - ended < UNDER_WAY) {
			rc = take_off(fetch, from, &flights[begun % UNDER_WAY]);
			from += batch_at(fetch, from);
			begun += rc == 0;
		} else {
			rc = land(fetch, &flights[ended++ % UNDER_WAY]);
		}
	}
	return rc;
}

static int measure_fetch(struct fetch *fetch, uint64_t run)
{
	const uint64_t begin_ns = os_now_ns(), begin_cpu_ns = os_process_cpu_ns();
	const int      rc = fly(fetch);
	const double   seconds = (double)(os_now_ns() - begin_ns) / 1e9;
	const double   objects = (double)fetch->objects;

	fetch->gb_s[run] = objects * (double)fetch->bytes / 1e9 / seconds;
	fetch->keys_s[run] = objects / seconds;
	fetch->cpu_us[run] = (double)(os_process_cpu_ns() - begin_cpu_ns) / 1e3 / objects;
	return rc;
}

/* --- the pass of `bench store` ---------------------------------------------------------------- */

static uint32_t depth_of(const struct fetch *fetch)
{
	const uint64_t depth = BENCH_STORE_WINDOW_BYTES / fetch->bytes;

	return depth < BENCH_STORE_DEPTH ? (uint32_t)depth : BENCH_STORE_DEPTH;
}

static int measure_pass(struct fetch *fetch, struct bench_window *window, uint64_t run)
{
	struct bench_pass_figures figures;
	struct kvs_store         *store = NULL;
	struct bench_pass         pass = { .window = window,
					   .watch = fetch->watch,
					   .objects = fetch->objects };
	int                       rc = bench_store_open(fetch->spec, window, &store, fetch->err);

	if (rc < 0)
		return rc;
	pass.store = store;
	rc = bench_pass(&pass, &figures, fetch->err);
	bench_store_close(store, window);
	if (rc == 0)
		fetch->pass[run] = (double)figures.moved_bytes / 1e9 / figures.seconds;
	return rc;
}

/* One has the file open at a time; they take turns in going first. */
static int measure_both(struct fetch *fetch, struct bench_window *window, uint64_t run)
{
	int rc = 0;

	if (run % 2)
		rc = measure_pass(fetch, window, run);
	if (rc == 0)
		rc = open_door(fetch);
	if (rc == 0) {
		rc = measure_fetch(fetch, run);
		rc = bench_door_close(&fetch->door, rc < 0 ? NULL : fetch->err) < 0 && rc == 0
			     ? -EIO
			     : rc;
	}
	if (rc == 0 && run % 2 == 0)
		rc = measure_pass(fetch, window, run);
	return rc;
}

/* --- stores ----------------------------------------------------------------------------------- */

static int close_after(struct fetch *fetch, int rc)
{
	if (rc == 0)
		return bench_door_close(&fetch->door, fetch->err);
	(void)bench_door_close(&fetch->door, NULL);
	return rc;
}

static int measure_plain(struct fetch *fetch, bool stocked)
{
	uint64_t run;
	int      rc = open_door(fetch);

	if (rc < 0)
		return rc;
	if (stocked)
		rc = stock(fetch);
	for (run = 0; rc == 0 && run < fetch->set->runs; run++)
		rc = measure_fetch(fetch, run);
	return close_after(fetch, rc);
}

static int measure_strata(struct fetch *fetch)
{
	static struct bench_window window; /* in doubt, it stays */
	uint64_t                   run;
	int                        rc = open_door(fetch);

	if (rc < 0)
		return rc;
	rc = close_after(fetch, stock(fetch));
	if (rc == 0)
		rc = bench_window_open(&window, fetch->bytes, depth_of(fetch), fetch->err);
	for (run = 0; rc == 0 && run < fetch->set->runs; run++)
		rc = measure_both(fetch, &window, run);
	bench_window_close(&window);
	return rc;
}

static int measure(struct fetch *fetch, enum bench_manager_store store)
{
	const uint64_t room = fetch->objects * place_bytes(fetch) + ROOM_BESIDE;

	if (store == BENCH_NIL) {
		snprintf(fetch->spec, sizeof(fetch->spec), "nil");
		return measure_plain(fetch, false);
	}
	if (store == BENCH_MEM) {
		snprintf(fetch->spec, sizeof(fetch->spec), "mem:%" PRIu64, room);
		return measure_plain(fetch, true);
	}
	snprintf(fetch->spec, sizeof(fetch->spec), "strata:%s?capacity=%" PRIu64, fetch->file,
		 2 * room);
	return measure_strata(fetch);
}

static void report(struct fetch *fetch, enum bench_manager_store store,
		   struct bench_manager_fetch *ret_row)
{
	const uint32_t runs = (uint32_t)fetch->set->runs;
	double         ratio[BENCH_RUNS_MAX];
	uint32_t       run;

	*ret_row = (struct bench_manager_fetch){ .store = store,
						 .bytes = fetch->bytes,
						 .objects = fetch->objects,
						 .pass_gb_s = NAN,
						 .pass_ratio = NAN };
	for (run = 0; run < runs; run++)
		ratio[run] = fetch->gb_s[run] / fetch->pass[run];
	ret_row->gb_s = bench_median(fetch->gb_s, runs);
	ret_row->keys_s = bench_median(fetch->keys_s, runs);
	ret_row->cpu_us = bench_median(fetch->cpu_us, runs);
	if (store == BENCH_STRATA) {
		ret_row->pass_ratio = bench_median(ratio, runs);
		ret_row->pass_gb_s = bench_median(fetch->pass, runs);
	}
}

static int open_keys(struct fetch *fetch)
{
	uint64_t i;

	fetch->keys = calloc(fetch->objects, sizeof(*fetch->keys));
	fetch->spans = calloc(fetch->batch, sizeof(*fetch->spans));
	fetch->rc = calloc(fetch->batch, sizeof(*fetch->rc));
	if (!fetch->keys || !fetch->spans || !fetch->rc) {
		return err_set(fetch->err, -ENOMEM, "no memory for %" PRIu64 " keys",
			       fetch->objects);
	}
	for (i = 0; i < fetch->objects; i++)
		fetch->keys[i] = bench_pass_key(0, i);
	return 0;
}

int bench_manager_fetch(const struct bench_manager_settings *set, struct bench_watch *watch,
			const struct bench_place *place, uint64_t bytes,
			struct bench_manager_fetch *ret_rows, struct kvs_error *err)
{
	static struct fetch fetch; /* kilobytes that need not be on the stack */
	const uint64_t      most = HOST_BYTES / UNDER_WAY / (bytes + 4096);
	uint32_t            store;
	int                 rc;

	fetch = (struct fetch){ .set = set,
				.watch = watch,
				.file = place->store,
				.bytes = bytes,
				.objects = bench_manager_objects(set, bytes),
				.err = err };
	fetch.batch = (uint32_t)(set->batch < most ? set->batch : most > 0 ? most : 1);
	rc = open_keys(&fetch);
	for (store = 0; rc == 0 && store < BENCH_MANAGER_STORES; store++) {
		rc = measure(&fetch, store);
		if (rc == 0)
			report(&fetch, store, &ret_rows[store]);
	}
	free(fetch.keys);
	free(fetch.spans);
	free(fetch.rc);
	return rc;
}
