/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The adapter as its two controllers see it: submit, wait on a descriptor, take once.
 *
 * A test never waits for time: it waits on the adapter's descriptors and the crate's gate.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "desk.h"
#include "named_block.h"

/* --- descriptors --------------------------------------------------------- */

static void B2_1_descriptors_are_distinct_within_and_across_adapters(void **state)
{
	struct desk *const one = *state;
	struct desk       *two = desk_new(true, &desk_options);
	int               fds[2 * TASK_KIND_COUNT];
	int               i, j;

	for (i = 0; i < TASK_KIND_COUNT; i++) {
		fds[2 * i] = adapter_fd(one->adapter, i);
		fds[2 * i + 1] = adapter_fd(two->adapter, i);
	}
	for (i = 0; i < 2 * TASK_KIND_COUNT; i++) {
		assert_true(fds[i] >= 0);
		for (j = 0; j < i; j++)
			assert_int_not_equal(fds[i], fds[j]);
	}
	desk_teardown((void **)&two);
}

static void B2_1_a_completion_signals_the_descriptor_of_its_kind(void **state)
{
	struct desk *const   desk = *state;
	struct batch *const batch = desk_name(desk, 0, 3);
	uint64_t            id;
	bool                retired;

	assert_int_equal(adapter_submit_store(desk->adapter, batch->keys, batch->spans, 3, &id), 0);
	desk_await(desk, TASK_STORE);
	assert_false(desk_is_readable(desk, TASK_LOOKUP) || desk_is_readable(desk, TASK_LOAD));
	desk_pop(desk);
	assert_false(desk_is_readable(desk, TASK_STORE));

	assert_int_equal(adapter_submit_lookup(desk->adapter, batch->keys, 3, &id), 0);
	desk_await(desk, TASK_LOOKUP);
	assert_false(desk_is_readable(desk, TASK_STORE) || desk_is_readable(desk, TASK_LOAD));
	assert_true(adapter_query_lookup(desk->adapter, id, batch->words));
	assert_false(desk_is_readable(desk, TASK_LOOKUP));

	assert_int_equal(adapter_submit_load(desk->adapter, batch->keys, batch->spans, 3, &id), 0);
	desk_await(desk, TASK_LOAD);
	assert_false(desk_is_readable(desk, TASK_STORE) || desk_is_readable(desk, TASK_LOOKUP));
	assert_true(adapter_query_load(desk->adapter, id, batch->words, &retired));
	assert_false(desk_is_readable(desk, TASK_LOAD));
}

/* A controller reads the descriptor itself; what completes after that signals again. */
static void B2_1_a_drained_descriptor_is_signalled_by_the_next_completion(void **state)
{
	struct desk *const   desk = *state;
	struct batch *const batch = desk_name(desk, 0, 2);
	uint64_t            ids[2];
	int                 i;

	for (i = 0; i < 2; i++) {
		assert_int_equal(adapter_submit_lookup(desk->adapter, batch->keys, 2, &ids[i]), 0);
		desk_await(desk, TASK_LOOKUP);
		os_eventfd_drain(adapter_fd(desk->adapter, TASK_LOOKUP));
	}
	assert_true(adapter_query_lookup(desk->adapter, ids[1], batch->words));
	assert_true(adapter_query_lookup(desk->adapter, ids[0], batch->words));
}

/* --- stores -------------------------------------------------------------- */

static void B2_2_a_store_is_all_or_nothing_with_the_bytes_that_moved(void **state)
{
	static const struct {
		uint32_t        number, count;
		enum crate_fate last; /* of the last object */
		bool            ok;
		uint64_t        moved;
		enum op_reason  reason;
	} rows[] = {
		{ 0, 1, CRATE_FINE, true, 1, OP_REASON_NONE },
		{ 1, 3, CRATE_FINE, true, 3, OP_REASON_NONE },
		{ 0, 4, CRATE_FINE, true, 0, OP_REASON_NONE }, /* all were there */
		{ 2, 5, CRATE_FINE, true, 3, OP_REASON_NONE },
		{ 6, 2, CRATE_NO_SPACE, false, 0, OP_REASON_NO_SPACE },
		{ 6, 1, CRATE_FINE, true, 0, OP_REASON_NONE },
		{ 20, 1500, CRATE_FINE, true, 1500, OP_REASON_NONE },
		{ 1600, 1500, CRATE_NO_SPACE, false, 0, OP_REASON_NO_SPACE },
		{ 30, 2, CRATE_FAILS, false, 0, OP_REASON_BACKEND },
	};
	struct desk *const desk = *state;
	size_t            i;

	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		struct task_result result;

		desk->crate.fate[rows[i].number + rows[i].count - 1] = (uint8_t)rows[i].last;
		result = desk_store(desk, rows[i].number, rows[i].count);
		assert_int_equal(result.ok, rows[i].ok);
		assert_int_equal(result.moved_bytes, rows[i].moved * CRATE_BYTES);
		assert_int_equal(result.reason, rows[i].reason);
		assert_true(result.retired);
	}
}

static void B2_2_pop_gives_each_task_once_in_order_of_completion(void **state)
{
	struct desk *const   desk = *state;
	struct batch *const batch = desk_name(desk, 0, 3);
	struct task_result  results[4];
	uint64_t            ids[3];
	uint32_t            i;

	assert_int_equal(adapter_pop_stored(desk->adapter, results, 4), 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(adapter_submit_store(desk->adapter, &batch->keys[i],
						      &batch->spans[i], 1, &ids[i]),
				 0);
		desk_await(desk, TASK_STORE);
		if (i < 2)
			os_eventfd_drain(adapter_fd(desk->adapter, TASK_STORE));
	}
	assert_int_equal(adapter_pop_stored(desk->adapter, results, 0), 0);
	assert_int_equal(adapter_pop_stored(desk->adapter, results, 1), 1);
	assert_true(desk_is_readable(desk, TASK_STORE));
	assert_int_equal(adapter_pop_stored(desk->adapter, results + 1, 3), 2);
	assert_false(desk_is_readable(desk, TASK_STORE));
	assert_int_equal(adapter_pop_stored(desk->adapter, results + 3, 1), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(results[i].task_id, ids[i]);
}

/* The second row of a key would meet the first one's write in another op. */
static void B2_2_a_key_twice_in_a_long_store_is_stored_once(void **state)
{
	struct desk *const   desk = *state;
	struct batch *const batch = desk_name(desk, 0, DESK_KEYS);
	struct task_result  result;
	uint64_t            id;
	uint32_t            i;

	for (i = 0; i < DESK_KEYS; i++)
		batch->keys[i] = key_of(i % 1000);
	assert_int_equal(adapter_submit_store(desk->adapter, batch->keys, batch->spans, DESK_KEYS,
					      &id),
			 0);
	result = desk_pop(desk);
	assert_true(result.ok);
	assert_int_equal(result.moved_bytes, 1000 * CRATE_BYTES);
	assert_int_equal(desk_load(desk, 0, 1001), 1000);
}

/* --- lookups and loads --------------------------------------------------- */

static void B2_3_a_lookup_tells_and_locks_what_is_there(void **state)
{
	struct desk *const desk = *state;

	desk_store(desk, 10, 5);
	assert_int_equal(desk_lookup(desk, 8, 9), 5);
	assert_int_equal(desk->batch.words[0], 0x7c);
	assert_int_equal(crate_locked(&desk->crate), 5);
	desk_unlock(desk, 8, 9);
	assert_int_equal(desk_lookup(desk, 100, 70), 0);
	assert_int_equal(desk->batch.words[0], 0);
	assert_int_equal(desk->batch.words[1], 0);
}

static void B2_3_a_load_fills_what_is_there_and_touches_nothing_else(void **state)
{
	struct desk *const desk = *state;

	desk_store(desk, 1, 1);
	desk_store(desk, 3, 1);
	assert_int_equal(desk_load(desk, 1, 3), 2);
	assert_int_equal(desk->batch.words[0], 5);
	desk->crate.fate[3] = CRATE_FAILS;
	assert_int_equal(desk_load(desk, 1, 3), 1);
	assert_int_equal(desk->batch.words[0], 1);
}

static void B2_3_a_store_lookup_load_unlock_round(void **state)
{
	struct desk *const desk = *state;

	assert_int_equal(desk_store(desk, 0, 5).moved_bytes, 5 * CRATE_BYTES);
	assert_int_equal(desk_lookup(desk, 0, 5), 5);
	assert_int_equal(desk_load(desk, 0, 5), 5);
	desk_unlock(desk, 0, 5);
}

static void B2_3_a_long_batch_is_one_task(void **state)
{
	struct desk *const desk = *state;
	uint32_t          i;

	assert_true(desk_store(desk, 0, 2000).ok);
	assert_int_equal(desk_lookup(desk, 0, DESK_KEYS), 2000);
	for (i = 0; i < DESK_KEYS; i++)
		assert_int_equal(bits_test(desk->batch.words, i), i < 2000);
	assert_int_equal(desk_load(desk, 0, DESK_KEYS), 2000);
	for (i = 0; i < DESK_KEYS; i++)
		assert_int_equal(bits_test(desk->batch.words, i), i < 2000);
	desk_unlock(desk, 0, DESK_KEYS);
}

static void B2_3_a_result_is_none_while_pending_then_once_then_none(void **state)
{
	struct desk *const   desk = *state;
	struct batch *const batch = desk_name(desk, 0, 2);
	uint64_t            lookup_id, load_id;
	bool                retired;

	crate_shut(&desk->crate);
	load_id = desk_submit_load(desk, 0, 2);
	assert_int_equal(adapter_submit_lookup(desk->adapter, batch->keys, 2, &lookup_id), 0);
	crate_wait_inside(&desk->crate, 2);
	assert_false(adapter_query_load(desk->adapter, load_id, batch->words, &retired));
	assert_false(adapter_query_lookup(desk->adapter, lookup_id, batch->words));
	crate_open(&desk->crate);
	desk_await_load(desk, load_id);
	desk_await_lookup(desk, lookup_id);
	memset(batch->words, 0xff, sizeof(batch->words));
	assert_false(adapter_query_load(desk->adapter, load_id, batch->words, &retired));
	assert_false(adapter_query_lookup(desk->adapter, lookup_id, batch->words));
	/* Nor does an id answer in another kind, or one that was never given. */
	assert_false(adapter_query_lookup(desk->adapter, load_id, batch->words));
	assert_false(adapter_query_load(desk->adapter, 0, batch->words, &retired));
	assert_false(adapter_query_load(desk->adapter, 999, batch->words, &retired));
	assert_true(batch->words[0] == UINT64_MAX);
}

/* The second op of a long load has an id of its own, which names no task. */
static void B2_3_the_id_of_a_later_op_is_no_task(void **state)
{
	struct desk *const desk = *state;
	const uint64_t    id = desk_submit_load(desk, 0, 2000);
	bool              retired;

	desk_await(desk, TASK_LOAD);
	assert_false(adapter_query_load(desk->adapter, id + 1, desk->batch.words, &retired));
	assert_true(desk_await_load(desk, id));
}

static void B2_3_a_failed_call_gives_rows_of_zero(void **state)
{
	struct desk *const desk = *state;

	desk_store(desk, 0, 70);
	desk->crate.fate[69] = CRATE_BREAKS;
	assert_int_equal(desk_load(desk, 0, 70), 0);
	assert_int_equal(desk->batch.words[1] & 0x3f, 0);
}

/* --- ids, limits and refusals -------------------------------------------- */

static void B2_4_ids_grow_and_belong_to_one_adapter(void **state)
{
	struct desk *const one = *state;
	struct desk       *two = desk_new(true, &desk_options);
	uint64_t          last = 0;
	uint64_t          id;
	uint32_t          i;

	for (i = 0; i < 12; i++) {
		desk_name(one, 0, 1);
		if (i % 3 == 0)
			id = desk_store(one, i, 1).task_id;
		else if (i % 3 == 1)
			desk_await_load(one, id = desk_submit_load(one, 0, 1500));
		else if (adapter_submit_lookup(one->adapter, one->batch.keys, 1, &id) == 0)
			desk_await_lookup(one, id);
		assert_true(id > last);
		last = id;
	}
	assert_int_equal(desk_store(two, 0, 1).task_id, 1);
	desk_teardown((void **)&two);
}

static void a_full_table_refuses_one_kind_and_nothing_happens(void **state)
{
	struct desk *const    desk = *state;
	struct batch *const  batch = desk_name(desk, 0, 1);
	struct adapter_stats stats;
	uint64_t             ids[8], none = 77;
	uint32_t             i;

	for (i = 0; i < 8; i++)
		assert_int_equal(adapter_submit_lookup(desk->adapter, batch->keys, 1, &ids[i]), 0);
	assert_int_equal(adapter_submit_lookup(desk->adapter, batch->keys, 1, &none), KVS_E_FULL);
	assert_int_equal(none, 77);
	assert_true(desk_store(desk, 0, 1).ok);
	adapter_stats(desk->adapter, &stats);
	assert_int_equal(stats.submitted[TASK_LOOKUP], 8);
	assert_int_equal(stats.refused_full[TASK_LOOKUP], 1);
	/* A result that nobody took keeps its room; taking it gives the room back. */
	for (i = 0; i < 8; i++)
		desk_await_lookup(desk, ids[i]);
	assert_int_equal(desk_lookup(desk, 0, 1), 1);
}

/* Two long tasks of three ops leave two of eight. */
static void a_long_task_is_started_whole_or_not_at_all(void **state)
{
	struct desk *const desk = *state;
	const uint64_t    one = desk_submit_load(desk, 0, DESK_KEYS);
	const uint64_t    two = desk_submit_load(desk, 0, DESK_KEYS);
	uint64_t          three, four;

	assert_int_equal(adapter_submit_load(desk->adapter, desk->batch.keys, desk->batch.spans,
					     DESK_KEYS, &three),
			 KVS_E_FULL);
	assert_int_equal(adapter_submit_load(desk->adapter, desk->batch.keys, desk->batch.spans, 2000,
					     &four),
			 0);
	assert_true(desk_await_load(desk, one) && desk_await_load(desk, two) && desk_await_load(desk, four));
}

static void bad_arguments_are_refused(void **state)
{
	static uint8_t    bytes[8];
	struct desk *const desk = *state;
	const struct {
		struct kvs_span span;
		uint32_t        count;
	} rows[] = {
		{ { bytes, 8, 8 }, 0 },
		{ { bytes, 8, 8 }, 8 * OP_KEYS_MAX + 1 },
		{ { NULL, 8, 8 }, 1 },
		{ { bytes, 0, 8 }, 1 },
		{ { bytes, 8, 7 }, 1 },
	};
	const struct kvs_key key = key_of(0);
	uint64_t             id;
	size_t               i;

	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		assert_int_equal(adapter_submit_store(desk->adapter, &key, &rows[i].span,
						      rows[i].count, &id),
				 KVS_E_INVALID);
		assert_int_equal(adapter_submit_load(desk->adapter, &key, &rows[i].span,
						     rows[i].count, &id),
				 KVS_E_INVALID);
	}
	assert_int_equal(adapter_submit_lookup(desk->adapter, &key, 0, &id), KVS_E_INVALID);
	adapter_unlock(desk->adapter, &key, 0);
}

/* The executor takes one load and one more to wait; the rest of the task fails at once. */
static void what_the_executor_refuses_is_a_failed_row_of_a_task_that_completes_once(void **state)
{
	struct adapter_options narrow = desk_options;
	struct desk            *desk;
	struct adapter_stats   stats;
	uint64_t               long_id, id;

	(void)state;
	narrow.exec.limits.queue_max = 1;
	narrow.exec.workers[EXEC_GET] = 1;
	desk = desk_new(true, &narrow);
	desk_store(desk, 0, 900);
	desk_store(desk, 900, 900);
	desk_store(desk, 1800, 700);
	crate_shut(&desk->crate);
	id = desk_submit_load(desk, 0, 1);
	crate_wait_inside(&desk->crate, 1);
	long_id = desk_submit_load(desk, 0, DESK_KEYS);
	assert_false(desk_is_readable(desk, TASK_LOAD));
	adapter_stats(desk->adapter, &stats);
	assert_int_equal(stats.refused_ops[TASK_LOAD], 2);
	crate_open(&desk->crate);
	assert_true(desk_await_load(desk, id));
	assert_true(desk_await_load(desk, long_id));
	assert_int_equal(bits_count(desk->batch.words, DESK_KEYS), OP_KEYS_MAX);
	assert_int_equal(bits_prefix(desk->batch.words, DESK_KEYS), OP_KEYS_MAX);
	desk_teardown((void **)&desk);
}

static void a_task_that_is_refused_whole_completes_before_its_submission_returns(void **state)
{
	struct adapter_options slow = desk_options;
	struct desk            *desk;
	struct task_result     result;

	(void)state;
	slow.exec.limits.cooldown_min_ns = slow.exec.limits.cooldown_max_ns = UINT64_C(1) << 40;
	desk = desk_new(true, &slow);
	desk->crate.fate[3] = CRATE_BREAKS;
	assert_false(desk_store(desk, 3, 1).ok);
	desk_name(desk, 0, 2000);
	assert_int_equal(adapter_submit_store(desk->adapter, desk->batch.keys, desk->batch.spans, 2000,
					      &result.task_id),
			 0);
	assert_true(desk_is_readable(desk, TASK_STORE));
	assert_int_equal(adapter_pop_stored(desk->adapter, &result, 1), 1);
	assert_false(result.ok);
	assert_true(result.retired);
	assert_int_equal(result.reason, OP_REASON_HEALTH);
	desk_teardown((void **)&desk);
}

static void options_are_checked_at_open(void **state)
{
	static const struct {
		uint32_t    op_max[TASK_KIND_COUNT];
		uint32_t    queue_max;
		const char *says;
	} rows[] = {
		{ { 0, 1, 1 }, 1, "adapter store ops: 0 is out of range" },
		{ { 1, 4097, 1 }, 1, "adapter lookup ops: 4097 is out of range" },
		{ { 1, 1, UINT32_MAX }, 1, "adapter load ops: 4294967295 is out of range" },
		{ { 1, 1, 1 }, 0, "executor" },
	};
	struct desk *const desk = *state;
	size_t            i;

	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		struct adapter_options wrong = desk_options;
		struct adapter        *none = NULL;
		struct kvs_error       err;

		memcpy(wrong.op_max, rows[i].op_max, sizeof(wrong.op_max));
		wrong.exec.limits.queue_max = rows[i].queue_max;
		assert_int_equal(adapter_open(&desk->crate.store, &wrong, &none, &err),
				 KVS_E_INVALID);
		assert_non_null(strstr(err.message, rows[i].says));
		assert_null(none);
		/* The store is still its caller's. */
		assert_false(desk->crate.closed);
	}
}

static void closing_nothing_is_fine(void **state)
{
	(void)state;
	assert_int_equal(adapter_close(NULL, 0), 0);
}

/* --- throughput ---------------------------------------------------------- */

static uint64_t samples(const struct desk *desk, enum task_kind kind)
{
	return adapter_throughput(desk->adapter, kind)->count;
}

static void B2_6_throughput_counts_bytes_that_moved(void **state)
{
	struct desk *const    desk = *state;
	struct adapter_stats stats;

	desk_store(desk, 0, 4);
	assert_int_equal(samples(desk, TASK_STORE), 1);
	desk_store(desk, 0, 4); /* all there already */
	assert_int_equal(samples(desk, TASK_STORE), 1);
	desk_load(desk, 100, 4); /* all missing */
	assert_int_equal(samples(desk, TASK_LOAD), 0);
	desk_load(desk, 2, 4);
	assert_int_equal(samples(desk, TASK_LOAD), 1);
	desk_lookup(desk, 0, 4);
	assert_int_equal(samples(desk, TASK_LOOKUP), 0);
	assert_true(histogram_percentile(adapter_throughput(desk->adapter, TASK_LOAD), 50) > 0);
	adapter_stats(desk->adapter, &stats);
	assert_int_equal(stats.moved_bytes[TASK_STORE], 4 * CRATE_BYTES);
	assert_int_equal(stats.moved_bytes[TASK_LOAD], 2 * CRATE_BYTES);
	assert_int_equal(stats.finished[TASK_STORE], 2);
	assert_int_equal(stats.finished[TASK_LOAD], 2);
	assert_int_equal(stats.finished[TASK_LOOKUP], 1);
}

#define DESK_TEST(test) cmocka_unit_test_setup_teardown(test, desk_setup, desk_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(B2_1_descriptors_are_distinct_within_and_across_adapters),
		DESK_TEST(B2_1_a_completion_signals_the_descriptor_of_its_kind),
		DESK_TEST(B2_1_a_drained_descriptor_is_signalled_by_the_next_completion),
		DESK_TEST(B2_2_a_store_is_all_or_nothing_with_the_bytes_that_moved),
		DESK_TEST(B2_2_pop_gives_each_task_once_in_order_of_completion),
		DESK_TEST(B2_2_a_key_twice_in_a_long_store_is_stored_once),
		DESK_TEST(B2_3_a_lookup_tells_and_locks_what_is_there),
		DESK_TEST(B2_3_a_load_fills_what_is_there_and_touches_nothing_else),
		DESK_TEST(B2_3_a_store_lookup_load_unlock_round),
		DESK_TEST(B2_3_a_long_batch_is_one_task),
		DESK_TEST(B2_3_a_result_is_none_while_pending_then_once_then_none),
		DESK_TEST(B2_3_the_id_of_a_later_op_is_no_task),
		DESK_TEST(B2_3_a_failed_call_gives_rows_of_zero),
		DESK_TEST(B2_4_ids_grow_and_belong_to_one_adapter),
		DESK_TEST(a_full_table_refuses_one_kind_and_nothing_happens),
		DESK_TEST(a_long_task_is_started_whole_or_not_at_all),
		DESK_TEST(bad_arguments_are_refused),
		cmocka_unit_test(
			what_the_executor_refuses_is_a_failed_row_of_a_task_that_completes_once),
		cmocka_unit_test(
			a_task_that_is_refused_whole_completes_before_its_submission_returns),
		DESK_TEST(options_are_checked_at_open),
		cmocka_unit_test(closing_nothing_is_fine),
		DESK_TEST(B2_6_throughput_counts_bytes_that_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
