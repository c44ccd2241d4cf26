/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each kind of fault of a store becomes for a controller: a task that completes once, rows that
 * failed, and the truth about its buffers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "desk.h"
#include "os/os.h"
#include "store/fault.h"
#include "store/fault_late.h"
#include "store/store.h"

/* A store of kind fault around a memory store, by the rules of its plan. */
static struct kvs_store *faulty(const char *rules)
{
	char              path[] = "/tmp/kvstrata-plan-XXXXXX";
	char              spec[64];
	FILE *const       file = fdopen(mkstemp(path), "w");
	struct kvs_store *store = NULL;
	struct kvs_error  err;

	assert_non_null(file);
	fprintf(file, "{\"inner\": \"mem:256KiB\", \"seed\": 1, \"faults\": [%s]}", rules);
	assert_int_equal(fclose(file), 0);
	snprintf(spec, sizeof(spec), "fault:%s", path);
	if (store_open(spec, 4096, "lru", &store, &err) < 0)
		fail_msg("%s", err.message);
	unlink(path);
	return store;
}

/* Objects 0 to 7 are stored, looked up and loaded. */
static const struct {
	const char    *rules;
	bool           stored;
	size_t         found, loaded;
	enum op_reason reason; /* of the store */
} rows[] = {
	{ "", true, 8, 8, OP_REASON_NONE },
	{ "{\"kind\": \"delay\", \"op\": \"put\", \"us\": 50}", true, 8, 8, OP_REASON_NONE },
	{ "{\"kind\": \"delay\", \"op\": \"get\", \"us\": [1, 50]}", true, 8, 8, OP_REASON_NONE },
	{ "{\"kind\": \"fail\", \"op\": \"put\", \"count\": 1}", false, 7, 7, OP_REASON_BACKEND },
	{ "{\"kind\": \"no_space\", \"op\": \"put\"}", false, 0, 0, OP_REASON_NO_SPACE },
	{ "{\"kind\": \"no_space\", \"op\": \"put\", \"every\": 4}", false, 6, 6,
	  OP_REASON_NO_SPACE },
	{ "{\"kind\": \"error\", \"op\": \"put\"}", false, 0, 0, OP_REASON_BACKEND },
	{ "{\"kind\": \"miss\", \"op\": \"exists\", \"every\": 2}", true, 4, 8, OP_REASON_NONE },
	{ "{\"kind\": \"fail\", \"op\": \"exists\", \"count\": 3}", true, 5, 8, OP_REASON_NONE },
	{ "{\"kind\": \"error\", \"op\": \"exists\"}", true, 0, 8, OP_REASON_NONE },
	{ "{\"kind\": \"miss\", \"op\": \"get\", \"count\": 1}", true, 8, 7, OP_REASON_NONE },
	{ "{\"kind\": \"fail\", \"op\": \"get\", \"after\": 2}", true, 8, 2, OP_REASON_NONE },
	{ "{\"kind\": \"error\", \"op\": \"get\"}", true, 8, 0, OP_REASON_NONE },
};

static void B2_3_each_fault_is_a_failed_row_of_a_task_that_completes(void **state)
{
	struct adapter_options options = desk_options;
	struct adapter_stats   stats;
	size_t                 i;

	(void)state;
	/* The next call is a probe at once: what is asked here is not how long a cooldown is. */
	options.exec.limits.cooldown_min_ns = options.exec.limits.cooldown_max_ns = 1;
	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		struct desk *const       desk = desk_on(faulty(rows[i].rules), &options);
		const struct task_result result = desk_store(desk, 0, 8);

		assert_int_equal(result.ok, rows[i].stored);
		assert_int_equal(result.reason, rows[i].reason);
		assert_true(result.retired);
		assert_int_equal(result.moved_bytes, rows[i].stored ? 8 * CRATE_BYTES : 0);
		assert_int_equal(desk_lookup(desk, 0, 8), rows[i].found);
		assert_int_equal(desk_load(desk, 0, 8), rows[i].loaded);
		desk_unlock(desk, 0, 8);
		adapter_stats(desk->adapter, &stats);
		assert_int_equal(stats.exec.locks_held, 0);
		assert_int_equal(adapter_close(desk->adapter, DESK_FOREVER_NS), 0);
		desk_free(desk);
	}
}

static void a_lost_load_is_pending_until_it_comes_back(void **state)
{
	struct kvs_store *const store =
		faulty("{\"kind\": \"lost\", \"op\": \"get\", \"count\": 1}");
	struct desk *const desk = desk_on(store, &desk_options);
	uint64_t           lost;
	bool               retired;

	(void)state;
	desk_store(desk, 0, 4);
	lost = desk_submit_load(desk, 0, 1);
	while (store_fault_held(store) == 0)
		;
	assert_false(adapter_query_load(desk->adapter, lost, desk->batch.words, &retired));
	/* Everybody else goes on, and nobody who closes waits for it. */
	assert_int_equal(desk_lookup(desk, 0, 4), 4);
	assert_int_equal(adapter_close(desk->adapter, 0), KVS_E_QUARANTINE);
	assert_false(adapter_query_load(desk->adapter, lost, desk->batch.words, &retired));
	store_fault_release(store);
	assert_true(desk_await_load(desk, lost));
	assert_int_equal(desk->batch.words[0] & 1, 1);
	assert_int_equal(adapter_close(desk->adapter, DESK_FOREVER_NS), 0);
	desk_free(desk);
}

/* The store says that it may still write, and does, when the result was long taken. */
static void a_late_write_finds_its_buffer_in_doubt(void **state)
{
	struct desk *const desk = desk_on(
		faulty("{\"kind\": \"late_write\", \"op\": \"get\", \"ms\": 3600000, \"count\": 1}"),
		&desk_options);
	struct retirement_notice notice;
	uint64_t                 told;

	(void)state;
	desk_store(desk, 0, 2);
	notice.op_id = desk_submit_load(desk, 0, 1);
	assert_false(desk_await_load(desk, notice.op_id));
	assert_int_equal(desk->batch.words[0] & 1, 0);
	assert_int_equal(adapter_close(desk->adapter, 0), KVS_E_QUARANTINE);
	assert_int_equal(adapter_notice(desk->adapter, &notice), 0);
	assert_int_equal(adapter_pop_retired(desk->adapter, TASK_LOAD, &told, 1), 1);
	assert_int_equal(told, notice.op_id);
	/* Closing the store lands the write: so it is there, and none comes after. */
	assert_int_equal(adapter_close(desk->adapter, DESK_FOREVER_NS), 0);
	assert_int_equal(((uint8_t *)desk->batch.bytes[0])[0], FAULT_LATE_BYTE);
	desk_free(desk);
}

/* The store proves it, and nobody has to tell: the task is named, and storage goes on. */
static void X2_a_late_write_that_landed_gives_its_buffer_back(void **state)
{
	struct adapter_options  options = desk_options;
	struct kvs_store *const store =
		faulty("{\"kind\": \"late_write\", \"op\": \"get\", \"ms\": 3600000, \"count\": 1}");
	struct desk            *desk;
	struct adapter_stats    stats;
	uint64_t                id, told;

	(void)state;
	options.exec.limits.cooldown_min_ns = options.exec.limits.cooldown_max_ns = 1;
	desk = desk_on(store, &options);
	desk_store(desk, 0, 2);
	id = desk_submit_load(desk, 0, 1);
	assert_false(desk_await_load(desk, id));
	assert_int_equal(adapter_pop_retired(desk->adapter, TASK_LOAD, &told, 1), 0);
	assert_int_equal(desk_lookup(desk, 0, 2), 0);

	store_fault_land(store);
	desk_await(desk, TASK_LOAD);
	assert_int_equal(adapter_pop_retired(desk->adapter, TASK_LOAD, &told, 1), 1);
	assert_int_equal(told, id);
	assert_int_equal(((uint8_t *)desk->batch.bytes[0])[0], FAULT_LATE_BYTE);
	assert_int_equal(desk_lookup(desk, 0, 2), 2);
	assert_int_equal(desk_load(desk, 0, 2), 2);
	desk_unlock(desk, 0, 2);
	assert_true(desk_store(desk, 2, 2).ok);
	adapter_stats(desk->adapter, &stats);
	assert_int_equal(stats.exec.counters[EXEC_SETTLED], 1);
	assert_int_equal(stats.exec.counters[EXEC_NOTICES], 1);
	assert_int_equal(adapter_close(desk->adapter, DESK_FOREVER_NS), 0);
	desk_free(desk);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(B2_3_each_fault_is_a_failed_row_of_a_task_that_completes),
		cmocka_unit_test(a_lost_load_is_pending_until_it_comes_back),
		cmocka_unit_test(a_late_write_finds_its_buffer_in_doubt),
		cmocka_unit_test(X2_a_late_write_that_landed_gives_its_buffer_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
