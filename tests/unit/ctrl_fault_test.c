/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both controllers over stores of this library, as they are and failing on purpose: what is written comes
 * back as it was, or not at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/prng.h"
#include "depot.h"
#include "store/fault.h"
#include "store/store.h"

static struct depot depot;

static struct kvs_store *open_store(const char *spec)
{
	struct kvs_store *store = NULL;
	struct kvs_error  err;

	if (store_open(spec, 4096, "lru", &store, &err) < 0)
		fail_msg("%s", err.message);
	return store;
}

/* A store of kind fault around a memory store, by the rules of its plan. */
static struct kvs_store *faulty(const char *rules)
{
	char              path[] = "/tmp/kvstrata-plan-XXXXXX";
	char              spec[64];
	FILE *const       file = fdopen(mkstemp(path), "w");
	struct kvs_store *store;

	assert_non_null(file);
	fprintf(file, "{\"inner\": \"mem:256KiB\", \"seed\": 1, \"faults\": [%s]}", rules);
	assert_int_equal(fclose(file), 0);
	snprintf(spec, sizeof(spec), "fault:%s", path);
	store = open_store(spec);
	unlink(path);
	return store;
}

/* Objects flow through Host; crate 0 is another store. */
static void open_over(struct kvs_store *store)
{
	depot_init(&depot);
	depot.crate_count = 1;
	depot.stores[0] = store;
	assert_int_equal(store_policy_find("skip-host", &depot.store_policy, NULL), 0);
	depot_open(&depot);
}

/* Every key of a result has the bytes that were written. */
static struct prefetch_result read_back(uint32_t from, uint32_t count)
{
	uint64_t                     locked;
	const struct prefetch_result result = depot_take(&depot, depot_prefetch(&depot, from, count),
							  &locked);
	uint32_t                     i;

	for (i = 0; i < count; i++)
		assert_int_equal(depot_is_read(&depot, from + i), i < result.boundary);
	depot_give_back(&depot, from, locked, 1);
	return result;
}

static void close_all(void)
{
	depot_idle(&depot);
	depot_flush(&depot);
	assert_true(depot_stores_unlocked(&depot));
	depot_close(&depot);
}

/* Objects 0 to 7 are written, put, dropped from Host where the put succeeded, and fetched. */
static const struct {
	const char       *rules;
	uint32_t          stored, boundary, from_store;
	enum prefetch_end end;
} rows[] = {
	{ "", 8, 8, 8, END_WHOLE },
	{ "{\"kind\": \"delay\", \"op\": \"put\", \"us\": 50}", 8, 8, 8, END_WHOLE },
	{ "{\"kind\": \"delay\", \"op\": \"get\", \"us\": [1, 50]}", 8, 8, 8, END_WHOLE },
	/* A task that failed leaves all its objects in Host. */
	{ "{\"kind\": \"fail\", \"op\": \"put\", \"count\": 1}", 0, 8, 0, END_WHOLE },
	{ "{\"kind\": \"error\", \"op\": \"put\"}", 0, 8, 0, END_WHOLE },
	{ "{\"kind\": \"no_space\", \"op\": \"put\"}", 0, 8, 0, END_WHOLE },
	{ "{\"kind\": \"miss\", \"op\": \"exists\", \"after\": 5, \"count\": 1}", 8, 5, 5,
	  END_MISSING },
	{ "{\"kind\": \"error\", \"op\": \"exists\"}", 8, 0, 0, END_MISSING },
	{ "{\"kind\": \"miss\", \"op\": \"get\", \"after\": 6, \"count\": 1}", 8, 6, 6, END_FAILED },
	{ "{\"kind\": \"fail\", \"op\": \"get\", \"after\": 2}", 8, 2, 2, END_FAILED },
	{ "{\"kind\": \"error\", \"op\": \"get\"}", 8, 0, 0, END_FAILED },
};

static void every_storage_failure_ends_as_a_miss(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		struct prefetch_result result;

		open_over(faulty(rows[i].rules));
		depot_write(&depot, 0, 8);
		depot_flush(&depot);
		assert_int_equal(depot_store_counter(&depot, STORE_CTRL_STORED), rows[i].stored);
		result = read_back(0, 8);
		assert_int_equal(result.boundary, rows[i].boundary);
		assert_int_equal(result.from_store, rows[i].from_store);
		assert_int_equal(result.end, rows[i].end);
		close_all();
	}
}

static void a_store_that_keeps_nothing_gives_nothing(void **state)
{
	(void)state;
	open_over(open_store("nil:?hit=0"));
	depot_write(&depot, 0, 8);
	depot_flush(&depot);
	assert_int_equal(depot_store_counter(&depot, STORE_CTRL_STORED), 8);
	assert_int_equal(read_back(0, 8).boundary, 0);
	close_all();
}

/* Late bytes land in the buffer that was kept for them, whoever writes into the Host meanwhile. */
static void quarantine_a_late_write_meets_nobodys_object(void **state)
{
	uint32_t i;

	(void)state;
	open_over(faulty("{\"kind\": \"late_write\", \"op\": \"get\", \"ms\": 3600000, \"count\": 1}"));
	depot_write(&depot, 0, 1);
	depot_flush(&depot);
	assert_int_equal(read_back(0, 1).boundary, 0);
	depot_await_draining(&depot, 1);
	assert_int_equal(depot_usage(&depot).staged, 1);
	depot_write(&depot, 100, 400);
	for (i = 0; i < 400; i++)
		depot_lock(&depot, 100 + i);
	/* The store says itself when it is over. */
	assert_int_equal(prefetch_ctrl_close(depot.prefetch, 0), KVS_E_QUARANTINE);
	store_fault_land(depot.stores[0]);
	assert_int_equal(prefetch_ctrl_close(depot.prefetch, depot_late()), 0);
	depot.prefetch = NULL;
	for (i = 0; i < 400; i++) {
		assert_true(depot_is_read(&depot, 100 + i));
		depot_unlock(&depot, 100 + i, 1);
	}
	depot_close(&depot);
}

/* --- traffic ----------------------------------------------------------------------------------- */

#define OBJECTS 400u
#define ROUNDS 300u
#define RESTORED 50u /* how often a store must have helped; a busy machine takes more rounds for it */

/* A small Host, stores that fail now and then, and everything that may be asked, in any order. */
static void B3_B4_traffic_over_failing_stores_leaves_no_lock_and_no_wrong_byte(void **state)
{
	static const char rules[] = "{\"kind\": \"fail\", \"op\": \"get\", \"chance\": 0.05},"
				    "{\"kind\": \"miss\", \"op\": \"exists\", \"chance\": 0.05},"
				    "{\"kind\": \"fail\", \"op\": \"put\", \"chance\": 0.05},"
				    "{\"kind\": \"delay\", \"op\": \"get\", \"chance\": 0.2, \"us\": [1, 200]}";
	bool              written[OBJECTS] = { false };
	struct prng       prng;
	uint32_t          round, from_store = 0;

	(void)state;
	prng_seed(&prng, 7);
	depot_init(&depot);
	/* 64 objects: always room for a batch of 8 beside what is in flight, and little more. */
	depot.pages = 128;
	depot.prefetch_limits.in_flight_max = 4;
	depot.stores[0] = faulty(rules);
	depot.stores[1] = open_store("mem:64KiB");
	depot_open(&depot);
	for (round = 0; round < ROUNDS || (from_store < RESTORED && round < 20 * ROUNDS); round++) {
		const uint32_t from = (uint32_t)prng_below(&prng, OBJECTS / 8) * 8;
		uint32_t       i;

		if (!written[from] && prng_chance(&prng, 1, 2)) {
			depot_flush(&depot);
			depot_write(&depot, from, 8);
			written[from] = true;
			continue;
		}
		if (prng_chance(&prng, 1, 4)) {
			prefetch_ctrl_cancel(depot.prefetch, depot_prefetch(&depot, from, 8));
			continue;
		}
		from_store += read_back(from, 8).from_store;
		for (i = 0; i < 8 && prng_chance(&prng, 1, 2); i++)
			depot_remove_any(&depot, from + i);
	}
	depot_idle(&depot);
	assert_int_equal(depot_usage(&depot).locks, 0);
	assert_true(from_store >= RESTORED);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_storage_failure_ends_as_a_miss),
		cmocka_unit_test(a_store_that_keeps_nothing_gives_nothing),
		cmocka_unit_test(quarantine_a_late_write_meets_nobodys_object),
		cmocka_unit_test(B3_B4_traffic_over_failing_stores_leaves_no_lock_and_no_wrong_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
