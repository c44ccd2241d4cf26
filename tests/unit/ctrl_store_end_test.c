/* SPDX-License-Identifier: Apache-2.0 */
/* The store controller where things do not go smoothly: bounds, doubt, adapters that leave, the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "depot.h"

static struct depot depot;

static void open_with(uint32_t crates, struct ctrl_limits limits)
{
	depot_init(&depot);
	depot.crate_count = crates;
	depot.prefetch_policy = NULL;
	depot.store_limits = limits;
	depot_open(&depot);
}

static const struct ctrl_limits one_task = { .in_flight_max = 1, .queue_max = 64 };
static const struct ctrl_limits two_tasks = { .in_flight_max = 2, .queue_max = 64 };

static uint64_t counted(enum store_ctrl_counter counter)
{
	return depot_store_counter(&depot, counter);
}

/* One task is inside the store, and nothing else goes there. */
static void stop_crate(uint32_t crate)
{
	crate_shut(&depot.crates[crate]);
	depot_write(&depot, 200 + crate, 1);
	crate_wait_inside(&depot.crates[crate], 1);
}

/* --- bounds ------------------------------------------------------------------------------------ */

static void a_slow_adapter_holds_up_no_other(void **state)
{
	uint32_t i;

	(void)state;
	open_with(2, one_task);
	stop_crate(0);
	for (i = 0; i < 20; i++)
		depot_write(&depot, i, 1);
	depot_await_counter(&depot, STORE_CTRL_STORED, 21);
	for (i = 0; i < 20; i++) {
		assert_true(depot_stored(&depot, 1, i));
		assert_false(depot_stored(&depot, 0, i));
	}
	crate_open(&depot.crates[0]);
	depot_flush(&depot);
	for (i = 0; i < 20; i++)
		assert_true(depot_stored(&depot, 0, i));
	depot_close(&depot);
}

static void a_full_line_drops_what_comes_and_counts_it(void **state)
{
	static const struct ctrl_limits narrow = { .in_flight_max = 1, .queue_max = 8 };
	uint32_t                        i, stored = 0;

	(void)state;
	open_with(1, narrow);
	stop_crate(0);
	for (i = 0; i < 8; i++) {
		depot_write(&depot, i, 1);
		depot_await_waiting(&depot, i + 1);
	}
	depot_write(&depot, 8, 1);
	depot_await_counter(&depot, STORE_CTRL_UNQUEUED, 1);
	crate_open(&depot.crates[0]);
	depot_flush(&depot);
	for (i = 0; i < 9; i++)
		stored += depot_stored(&depot, 0, i);
	assert_int_equal(stored, 8);
	assert_false(depot_stored(&depot, 0, 8));
	assert_int_equal(counted(STORE_CTRL_HEARD), 10);
	depot_close(&depot);
}

/* A batch larger than the room for notices is taken in part, whoever else waits. */
static void a_full_inbox_drops_the_rest_of_a_batch(void **state)
{
	static const struct ctrl_limits narrow = { .in_flight_max = 1, .queue_max = 8 };

	(void)state;
	open_with(1, narrow);
	depot_write(&depot, 0, 100);
	depot_flush(&depot);
	assert_int_equal(counted(STORE_CTRL_HEARD), 100);
	assert_int_equal(counted(STORE_CTRL_UNQUEUED), 92);
	assert_int_equal(counted(STORE_CTRL_STORED), 8);
	depot_close(&depot);
}

static void payload_in_flight_is_bounded(void **state)
{
	static const struct ctrl_limits narrow = { .in_flight_max = 4,
						   .queue_max = 64,
						   .in_flight_bytes = 3 * CRATE_BYTES };
	struct store_ctrl_stats         stats;

	(void)state;
	open_with(1, narrow);
	stop_crate(0);
	depot_write(&depot, 0, 10);
	depot_await_waiting(&depot, 8);
	store_ctrl_stats(depot.store, &stats);
	assert_int_equal(stats.in_flight, 2);
	assert_int_equal(stats.in_flight_bytes, 3 * CRATE_BYTES);
	assert_int_equal(depot_usage(&depot).pins, 3);
	crate_open(&depot.crates[0]);
	depot_flush(&depot);
	assert_int_equal(counted(STORE_CTRL_STORED), 11);
	store_ctrl_stats(depot.store, &stats);
	assert_int_equal(stats.in_flight_bytes, 0);
	assert_int_equal(stats.stored_bytes, 11 * CRATE_BYTES);
	depot_close(&depot);
}

/* The adapter takes fewer tasks than the controller would give it: what it refuses waits. */
static void what_an_adapter_has_no_room_for_waits_and_is_stored(void **state)
{
	static const struct ctrl_limits wide = { .in_flight_max = 100, .queue_max = 512 };
	struct store_ctrl_stats         stats;
	uint32_t                        i;

	(void)state;
	open_with(1, wide);
	crate_shut(&depot.crates[0]);
	/* Groups of their own make tasks of their own: more than the 64 the adapter has room for. */
	for (i = 0; i < 80; i++)
		depot_write_as(&depot, i, i, CRATE_BYTES);
	depot_await_waiting(&depot, 16);
	store_ctrl_stats(depot.store, &stats);
	assert_int_equal(stats.in_flight, 64);
	assert_int_equal(depot_usage(&depot).pins, 64);
	crate_open(&depot.crates[0]);
	depot_flush(&depot);
	assert_int_equal(counted(STORE_CTRL_STORED), 80);
	depot_close(&depot);
}

/* --- doubt ------------------------------------------------------------------------------------- */

/* Op 1 of crate 0 does not retire. */
static void cling(void)
{
	depot.crates[0].fate[0] = CRATE_CLINGS;
	depot_write(&depot, 0, 2);
	depot_await_counter(&depot, STORE_CTRL_DOUBT, 1);
}

static void a_task_in_doubt_keeps_its_pins_until_it_has_retired(void **state)
{
	(void)state;
	open_with(1, two_tasks);
	cling();
	depot_flush(&depot);
	assert_int_equal(counted(STORE_CTRL_FAILED), 2);
	assert_int_equal(depot_usage(&depot).pins, 2);
	/* The executor takes nothing more: a failure of a task that has retired. */
	depot_write(&depot, 10, 1);
	depot_flush(&depot);
	assert_int_equal(counted(STORE_CTRL_FAILED), 3);
	assert_int_equal(depot_usage(&depot).pins, 2);
	depot_notice(&depot, 0, 1);
	depot_await_tasks(&depot, 0);
	assert_int_equal(depot_usage(&depot).pins, 0);
	depot.crates[0].fate[0] = CRATE_FINE;
	depot_write(&depot, 11, 1);
	depot_flush(&depot);
	assert_true(depot_stored(&depot, 0, 11));
	depot_close(&depot);
}

/* Its only place is in doubt: what comes fails instead of waiting for ever. */
static void a_line_with_nothing_but_doubt_lets_no_flush_hang(void **state)
{
	(void)state;
	open_with(1, one_task);
	cling();
	depot_write(&depot, 10, 3);
	depot_flush(&depot);
	assert_int_equal(counted(STORE_CTRL_FAILED), 2);
	assert_int_equal(counted(STORE_CTRL_UNQUEUED), 3);
	assert_int_equal(counted(STORE_CTRL_TASKS), 1);
	depot_notice(&depot, 0, 1);
	depot_close(&depot);
}

static void a_close_that_cannot_prove_retirement_leaves_the_pins(void **state)
{
	(void)state;
	open_with(1, two_tasks);
	cling();
	assert_int_equal(store_ctrl_close(depot.store, 0), KVS_E_QUARANTINE);
	assert_int_equal(depot_usage(&depot).pins, 2);
	assert_int_equal(store_ctrl_close(depot.store, os_now_ns() + 1000), KVS_E_QUARANTINE);
	depot_notice(&depot, 0, 1);
	assert_int_equal(store_ctrl_close(depot.store, depot_late()), 0);
	depot.store = NULL;
	assert_int_equal(depot_usage(&depot).pins, 0);
	depot_close(&depot);
}

/* --- the end ----------------------------------------------------------------------------------- */

static void *open_gate_later(void *arg)
{
	crate_wait_inside(arg, 1);
	crate_open(arg);
	return NULL;
}

static void B3_1_a_close_waits_for_tasks_under_way_and_drops_what_waits(void **state)
{
	pthread_t thread;

	(void)state;
	open_with(1, one_task);
	stop_crate(0);
	depot_write(&depot, 0, 4);
	depot_await_waiting(&depot, 4);
	/* What waits is dropped before anything is awaited. */
	assert_int_equal(store_ctrl_close(depot.store, 0), KVS_E_QUARANTINE);
	assert_int_equal(counted(STORE_CTRL_UNQUEUED), 4);
	assert_int_equal(os_thread_start(&thread, "gate", open_gate_later, &depot.crates[0]), 0);
	assert_int_equal(store_ctrl_close(depot.store, depot_late()), 0);
	depot.store = NULL;
	os_thread_join(thread);
	assert_true(depot_stored(&depot, 0, 200));
	assert_false(depot_stored(&depot, 0, 0));
	assert_int_equal(depot_usage(&depot).pins, 0);
	depot_close(&depot);
}

static void a_close_past_its_deadline_can_be_tried_again(void **state)
{
	(void)state;
	open_with(1, one_task);
	stop_crate(0);
	assert_int_equal(store_ctrl_close(depot.store, 0), KVS_E_QUARANTINE);
	assert_int_equal(depot_usage(&depot).pins, 1);
	/* What is written now is nobody's. */
	depot_write(&depot, 0, 1);
	assert_int_equal(store_ctrl_attach(depot.store, 5, depot.adapters[1], "late"), KVS_E_CLOSED);
	crate_open(&depot.crates[0]);
	assert_int_equal(store_ctrl_close(depot.store, depot_late()), 0);
	depot.store = NULL;
	depot_close(&depot);
}

/* --- adapters that come and go ----------------------------------------------------------------- */

static void an_adapter_that_came_gets_what_is_written_then(void **state)
{
	(void)state;
	open_with(1, two_tasks);
	depot_write(&depot, 0, 1);
	depot_flush(&depot);
	assert_int_equal(store_ctrl_attach(depot.store, 15, depot.adapters[1], "late"), 0);
	depot_write(&depot, 1, 1);
	depot_flush(&depot);
	assert_false(depot_stored(&depot, 1, 0));
	assert_true(depot_stored(&depot, 1, 1) && depot_stored(&depot, 0, 1));
	depot_close(&depot);
}

static void an_adapter_leaves_when_its_tasks_are_over_and_gets_nothing_new(void **state)
{
	(void)state;
	open_with(2, one_task);
	stop_crate(0);
	depot_write(&depot, 0, 3);
	depot_await_counter(&depot, STORE_CTRL_STORED, 4);
	store_ctrl_detach(depot.store, 0);
	assert_false(store_ctrl_detached(depot.store, 0, 0));
	assert_int_equal(store_ctrl_attach(depot.store, 0, depot.adapters[2], "third"), KVS_E_BUSY);
	depot_write(&depot, 10, 1);
	/* What waited for it has ended; what is inside has not. */
	depot_await_counter(&depot, STORE_CTRL_UNQUEUED, 3);
	crate_open(&depot.crates[0]);
	assert_true(store_ctrl_detached(depot.store, 0, depot_late()));
	depot_flush(&depot);
	assert_true(depot_stored(&depot, 0, 200));
	assert_false(depot_stored(&depot, 0, 0) || depot_stored(&depot, 0, 10));
	assert_true(depot_stored(&depot, 1, 0) && depot_stored(&depot, 1, 10));
	/* Its number is free for another. */
	assert_int_equal(store_ctrl_attach(depot.store, 0, depot.adapters[2], "third"), 0);
	depot_write(&depot, 20, 1);
	depot_flush(&depot);
	assert_true(depot_stored(&depot, 2, 20));
	assert_false(depot_stored(&depot, 2, 0));
	depot_close(&depot);
}

static void an_adapter_in_doubt_stays(void **state)
{
	(void)state;
	open_with(1, two_tasks);
	cling();
	store_ctrl_detach(depot.store, 0);
	assert_false(store_ctrl_detached(depot.store, 0, os_now_ns() + 1000000));
	depot_notice(&depot, 0, 1);
	assert_true(store_ctrl_detached(depot.store, 0, depot_late()));
	depot_close(&depot);
}

static void attaching_is_checked(void **state)
{
	(void)state;
	open_with(1, two_tasks);
	assert_int_equal(store_ctrl_attach(depot.store, KVS_ADAPTERS_MAX, depot.adapters[1], "x"),
			 KVS_E_INVALID);
	assert_int_equal(store_ctrl_attach(depot.store, 1, NULL, "x"), KVS_E_INVALID);
	assert_int_equal(store_ctrl_attach(depot.store, 0, depot.adapters[1], "x"), KVS_E_BUSY);
	assert_true(store_ctrl_attach(depot.store, 1, depot.adapters[0], "again") < 0);
	store_ctrl_detach(depot.store, 7);
	store_ctrl_detach(depot.store, KVS_ADAPTERS_MAX);
	assert_true(store_ctrl_detached(depot.store, 7, 0));
	assert_true(store_ctrl_detached(depot.store, KVS_ADAPTERS_MAX, 0));
	depot_close(&depot);
}

/* --- writers ----------------------------------------------------------------------------------- */

#define WRITERS 3u
#define WRITTEN 100u

static void *write_some(void *arg)
{
	const uint32_t from = *(const uint32_t *)arg;
	uint32_t       i;

	for (i = 0; i < WRITTEN; i += 4)
		depot_write(&depot, from + i, 4);
	return NULL;
}

static void B3_1_writers_on_many_threads_are_all_heard(void **state)
{
	static const uint32_t from[WRITERS] = { 0, WRITTEN, 2 * WRITTEN };
	pthread_t             threads[WRITERS];
	uint32_t              i;

	(void)state;
	depot_init(&depot);
	depot.prefetch_policy = NULL;
	depot_open(&depot);
	for (i = 0; i < WRITERS; i++) {
		assert_int_equal(os_thread_start(&threads[i], "writer", write_some, (void *)&from[i]),
				 0);
	}
	for (i = 0; i < WRITERS; i++)
		os_thread_join(threads[i]);
	depot_flush(&depot);
	assert_int_equal(counted(STORE_CTRL_STORED), 2 * WRITERS * WRITTEN);
	for (i = 0; i < WRITERS * WRITTEN; i++)
		assert_true(depot_stored(&depot, 0, i) && depot_stored(&depot, 1, i));
	depot_close(&depot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_adapter_holds_up_no_other),
		cmocka_unit_test(a_full_line_drops_what_comes_and_counts_it),
		cmocka_unit_test(a_full_inbox_drops_the_rest_of_a_batch),
		cmocka_unit_test(payload_in_flight_is_bounded),
		cmocka_unit_test(what_an_adapter_has_no_room_for_waits_and_is_stored),
		cmocka_unit_test(a_task_in_doubt_keeps_its_pins_until_it_has_retired),
		cmocka_unit_test(a_line_with_nothing_but_doubt_lets_no_flush_hang),
		cmocka_unit_test(a_close_that_cannot_prove_retirement_leaves_the_pins),
		cmocka_unit_test(B3_1_a_close_waits_for_tasks_under_way_and_drops_what_waits),
		cmocka_unit_test(a_close_past_its_deadline_can_be_tried_again),
		cmocka_unit_test(an_adapter_that_came_gets_what_is_written_then),
		cmocka_unit_test(an_adapter_leaves_when_its_tasks_are_over_and_gets_nothing_new),
		cmocka_unit_test(an_adapter_in_doubt_stays),
		cmocka_unit_test(attaching_is_checked),
		cmocka_unit_test(B3_1_writers_on_many_threads_are_all_heard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
