/* SPDX-License-Identifier: Apache-2.0 */
/* The prefetch controller where things do not go smoothly: deadlines, cancels, doubt, the end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "depot.h"

static struct depot depot;

/* One adapter, no store controller, and so many requests beyond the queue. */
static void open_with(uint32_t in_flight_max)
{
	depot_init(&depot);
	depot.crate_count = 1;
	depot.store_policy = NULL;
	depot.prefetch_limits.in_flight_max = in_flight_max;
	depot_open(&depot);
}

/* A request of keys 0, 1, ... whose load is inside the store; all of them are there. */
static uint64_t load_held_up(uint32_t keys)
{
	uint64_t id;

	depot_place(&depot, 0, 0, keys);
	crate_shut_moves(&depot.crates[0]);
	id = depot_prefetch(&depot, 0, keys);
	crate_wait_inside(&depot.crates[0], 1);
	assert_int_equal(depot_await_found(&depot, id), keys);
	return id;
}

/* How long a request may take, at first: whoever wants it to come far asks again with twice as much. */
#define SOON_NS UINT64_C(20000000)

/* The same with a deadline that passes while the load is inside, however slow the machine is. */
static uint64_t load_that_is_late(uint32_t keys)
{
	struct depot_ask ask = { .chunks = keys };
	uint64_t         soon_ns, id, locked;

	depot_place(&depot, 0, 0, keys);
	crate_shut_moves(&depot.crates[0]);
	for (soon_ns = SOON_NS;; soon_ns *= 2) {
		ask.deadline_ns = os_now_ns() + soon_ns;
		id = depot_ask(&depot, &ask);
		if (depot_await_inside(&depot, 0, id))
			return id;
		assert_int_equal(depot_take(&depot, id, &locked).end, END_DEADLINE);
		assert_int_equal(locked, 0);
		crate_open(&depot.crates[0]);
		depot_idle(&depot);
		crate_shut_moves(&depot.crates[0]);
	}
}

/* The reader has nothing, the Host holds buffers, the store locks: late I/O. */
static void check_draining(uint32_t buffers)
{
	struct adapter_stats stats;

	adapter_stats(depot.adapters[0], &stats);
	assert_int_equal(depot_usage(&depot).locks, 0);
	assert_int_equal(depot_usage(&depot).staged, buffers);
	assert_int_equal(stats.exec.locks_held, buffers);
	assert_int_equal(depot_prefetch_stats(&depot).draining, 1);
	assert_int_equal(depot_prefetch_stats(&depot).in_flight, 1);
}

static void check_nothing_left(void)
{
	depot_idle(&depot);
	assert_int_equal(depot_usage(&depot).staged, 0);
	assert_int_equal(depot_usage(&depot).objects, 0);
	assert_true(depot_stores_unlocked(&depot));
}

/* --- deadlines --------------------------------------------------------------------------------- */

static void never_late_a_load_past_its_deadline_is_never_published(void **state)
{
	struct prefetch_result result;
	uint64_t               id, locked;

	(void)state;
	open_with(8);
	id = load_that_is_late(3);
	result = depot_take(&depot, id, &locked);
	assert_int_equal(result.boundary, 0);
	assert_int_equal(result.end, END_DEADLINE);
	assert_int_equal(locked, 0);
	depot_await_draining(&depot, 1);
	check_draining(3);
	crate_open(&depot.crates[0]);
	check_nothing_left();
	assert_true(depot_prefetch_stats(&depot).late_keys >= 3);
	assert_int_equal(depot_prefetch_stats(&depot).keys_loaded, 0);
	depot_close(&depot);
}

/* What one adapter brought in time is the result; the other's part is late. */
static void what_has_come_by_the_deadline_is_the_result(void **state)
{
	struct depot_ask       ask = { .chunks = 4 };
	struct prefetch_result result = { 0 };
	uint64_t               soon_ns, locked;

	(void)state;
	depot_init(&depot);
	depot.store_policy = NULL;
	depot_open(&depot);
	depot_place(&depot, 0, 0, 2);
	depot_place(&depot, 1, 2, 2);
	crate_shut_moves(&depot.crates[1]);
	for (soon_ns = SOON_NS; result.boundary == 0; soon_ns *= 2) {
		ask.deadline_ns = os_now_ns() + soon_ns;
		result = depot_take(&depot, depot_ask(&depot, &ask), &locked);
	}
	assert_int_equal(result.boundary, 2);
	assert_int_equal(result.end, END_DEADLINE);
	assert_int_equal(locked, 3);
	crate_open(&depot.crates[1]);
	depot_idle(&depot);
	assert_true(depot_prefetch_stats(&depot).late_keys >= 2);
	assert_int_equal(depot_usage(&depot).objects, 2);
	assert_true(depot_stores_unlocked(&depot));
	depot_give_back(&depot, 0, locked, 1);
	depot_close(&depot);
}

/* Its lookup is inside the store: what it finds later is unlocked at once. */
static void a_deadline_covers_the_lookup(void **state)
{
	const struct depot_ask ask = { .chunks = 4, .deadline_ns = os_now_ns() + 1000000 };
	struct prefetch_result result;
	uint64_t               id, locked;

	(void)state;
	open_with(8);
	depot_place(&depot, 0, 0, 4);
	depot_write(&depot, 0, 1);
	crate_shut(&depot.crates[0]);
	id = depot_ask(&depot, &ask);
	result = depot_take(&depot, id, &locked);
	assert_int_equal(result.boundary, 1);
	assert_int_equal(result.from_host, 1);
	assert_int_equal(result.end, END_DEADLINE);
	crate_open(&depot.crates[0]);
	depot_idle(&depot);
	assert_true(depot_stores_unlocked(&depot));
	assert_int_equal(depot_usage(&depot).objects, 1);
	depot_give_back(&depot, 0, locked, 1);
	depot_close(&depot);
}

/* The drainer in front keeps its place, so that the second never gets one. */
static void a_deadline_covers_the_queue_and_a_drainer_keeps_its_place(void **state)
{
	struct depot_ask       ask = { .from = 10, .chunks = 1 };
	struct prefetch_result result;
	uint64_t               one, two, locked;

	(void)state;
	open_with(1);
	one = load_that_is_late(2);
	assert_int_equal(depot_take(&depot, one, &locked).end, END_DEADLINE);
	depot_write(&depot, 10, 1);
	ask.chunks = 2;
	ask.deadline_ns = os_now_ns() + 1000000;
	two = depot_ask(&depot, &ask);
	result = depot_take(&depot, two, &locked);
	assert_int_equal(result.boundary, 1);
	assert_int_equal(result.end, END_DEADLINE);
	assert_int_equal(locked, 1);
	depot_give_back(&depot, 10, locked, 1);
	crate_open(&depot.crates[0]);
	depot_idle(&depot);
	depot_close(&depot);
}

/* Its turn comes when its time is over: nobody is asked, what Host has is the result. */
static void a_request_whose_time_is_over_asks_nobody(void **state)
{
	const struct depot_ask ask = { .chunks = 4, .deadline_ns = 1 };
	struct prefetch_result result;
	uint64_t               locked;

	(void)state;
	open_with(8);
	depot_place(&depot, 0, 0, 4);
	depot_write(&depot, 0, 2);
	result = depot_take(&depot, depot_ask(&depot, &ask), &locked);
	assert_int_equal(result.boundary, 2);
	assert_int_equal(result.end, END_DEADLINE);
	assert_int_equal(depot_prefetch_stats(&depot).keys_asked, 0);
	depot_give_back(&depot, 0, locked, 1);
	depot_close(&depot);
}

/* --- cancel ------------------------------------------------------------------------------------ */

static void B4_4_a_cancel_gives_locks_back_in_every_state(void **state)
{
	struct prefetch_result result;
	uint64_t               loading, queued, locked, done;

	(void)state;
	open_with(1);
	loading = load_held_up(3);
	depot_write(&depot, 10, 2);
	queued = depot_prefetch(&depot, 10, 3);
	assert_int_equal(depot_usage(&depot).locks, 2);
	prefetch_ctrl_cancel(depot.prefetch, queued);
	prefetch_ctrl_cancel(depot.prefetch, loading);
	prefetch_ctrl_cancel(depot.prefetch, loading);
	assert_false(prefetch_ctrl_take(depot.prefetch, loading, &result, &locked));
	depot_await_draining(&depot, 1);
	check_draining(3);
	crate_open(&depot.crates[0]);
	depot_idle(&depot);
	assert_int_equal(depot_usage(&depot).locks, 0);
	assert_int_equal(depot_usage(&depot).objects, 2);
	assert_int_equal(depot_prefetch_stats(&depot).ends[END_CANCELLED], 2);
	/* A result that waits. */
	done = depot_prefetch(&depot, 10, 2);
	depot_await_done(&depot, done);
	assert_int_equal(depot_usage(&depot).locks, 2);
	prefetch_ctrl_cancel(depot.prefetch, done);
	assert_false(prefetch_ctrl_take(depot.prefetch, done, &result, &locked));
	depot_idle(&depot);
	assert_int_equal(depot_usage(&depot).locks, 0);
	assert_false(depot_is_done(&depot, loading) || depot_is_done(&depot, queued));
	depot_close(&depot);
}

/* Its locks went with the client; what its loads still bring goes nowhere. */
static void B4_4_a_reader_that_is_gone_leaves_nothing_behind(void **state)
{
	struct depot_ask ask = { .chunks = 3 };
	host_client      reader;
	uint64_t         done, loading;

	(void)state;
	open_with(8);
	assert_int_equal(host_client_open(depot.host, 0, &reader), 0);
	depot_write(&depot, 20, 2);
	ask.reader = reader;
	ask.from = 20;
	ask.chunks = 2;
	done = depot_ask(&depot, &ask);
	depot_await_done(&depot, done);
	depot_place(&depot, 0, 0, 3);
	crate_shut_moves(&depot.crates[0]);
	ask.from = 0;
	ask.chunks = 3;
	loading = depot_ask(&depot, &ask);
	crate_wait_inside(&depot.crates[0], 1);
	assert_int_equal(host_client_close(depot.host, reader, os_now_ns()), 0);
	prefetch_ctrl_cancel(depot.prefetch, done);
	prefetch_ctrl_cancel(depot.prefetch, loading);
	crate_open(&depot.crates[0]);
	depot_idle(&depot);
	assert_int_equal(depot_usage(&depot).locks, 0);
	assert_int_equal(depot_usage(&depot).staged, 0);
	assert_int_equal(depot_usage(&depot).objects, 2);
	depot_close(&depot);
}

/* Nobody told the controller: publishing for a closed client fails, and what was loaded is discarded. */
static void a_reader_that_closed_without_a_word_gets_nothing_published(void **state)
{
	struct depot_ask       ask = { .chunks = 3 };
	struct prefetch_result result;
	host_client            reader;
	uint64_t               id, locked;

	(void)state;
	open_with(8);
	assert_int_equal(host_client_open(depot.host, 0, &reader), 0);
	depot_place(&depot, 0, 0, 3);
	crate_shut_moves(&depot.crates[0]);
	ask.reader = reader;
	id = depot_ask(&depot, &ask);
	crate_wait_inside(&depot.crates[0], 1);
	assert_int_equal(host_client_close(depot.host, reader, os_now_ns()), 0);
	crate_open(&depot.crates[0]);
	result = depot_take(&depot, id, &locked);
	assert_int_equal(result.boundary, 0);
	assert_int_equal(result.end, END_FAILED);
	check_nothing_left();
	depot_close(&depot);
}

/* --- failure and doubt ------------------------------------------------------------------------- */

/* The whole call fails: nothing is published, so nothing of it can be stored. */
static void a_failed_prefetch_publishes_nothing_and_nothing_of_it_is_stored(void **state)
{
	struct prefetch_result result;
	uint64_t               id, locked;

	(void)state;
	depot_init(&depot);
	depot.crate_count = 2;
	depot_open(&depot);
	depot_place(&depot, 0, 0, 3);
	crate_shut_moves(&depot.crates[0]);
	id = depot_prefetch(&depot, 0, 3);
	crate_wait_inside(&depot.crates[0], 1);
	depot.crates[0].fate[1] = CRATE_BREAKS;
	crate_open(&depot.crates[0]);
	result = depot_take(&depot, id, &locked);
	assert_int_equal(result.boundary, 0);
	assert_int_equal(result.end, END_FAILED);
	assert_int_equal(depot_prefetch_stats(&depot).keys_failed, 3);
	check_nothing_left();
	depot_flush(&depot);
	assert_int_equal(depot_store_counter(&depot, STORE_CTRL_HEARD), 0);
	assert_false(depot_stored(&depot, 1, 0));
	depot_close(&depot);
}

/* The load of key 2 does not retire; its result is there at once, its buffers and locks stay. */
static uint64_t doubtful(void)
{
	uint64_t id = load_held_up(3);

	depot.crates[0].fate[2] = CRATE_CLINGS;
	crate_open(&depot.crates[0]);
	return id;
}

static void quarantine_a_load_in_doubt_keeps_its_buffers_until_it_has_retired(void **state)
{
	struct prefetch_result result;
	uint64_t               locked;

	(void)state;
	open_with(8);
	result = depot_take(&depot, doubtful(), &locked);
	assert_int_equal(result.boundary, 0);
	assert_int_equal(result.end, END_FAILED);
	depot_await_draining(&depot, 1);
	check_draining(3);
	assert_false(prefetch_ctrl_idle(depot.prefetch, os_now_ns() + 1000000));
	/* Op 1 was the lookup. */
	depot_notice(&depot, 0, 2);
	check_nothing_left();
	depot_close(&depot);
}

static void quarantine_a_close_that_cannot_prove_retirement_leaves_the_buffers(void **state)
{
	uint64_t locked;

	(void)state;
	open_with(8);
	depot_take(&depot, doubtful(), &locked);
	assert_int_equal(prefetch_ctrl_close(depot.prefetch, 0), KVS_E_QUARANTINE);
	assert_int_equal(depot_usage(&depot).staged, 3);
	assert_int_equal(prefetch_ctrl_close(depot.prefetch, os_now_ns() + 1000), KVS_E_QUARANTINE);
	depot_notice(&depot, 0, 2);
	assert_int_equal(prefetch_ctrl_close(depot.prefetch, depot_late()), 0);
	depot.prefetch = NULL;
	assert_int_equal(depot_usage(&depot).staged, 0);
	depot_close(&depot);
}

/* --- the end ----------------------------------------------------------------------------------- */

static void a_shutdown_with_a_load_in_flight_keeps_the_buffer_until_it_is_over(void **state)
{
	struct prefetch_result result;
	uint64_t               loading, queued, waits, locked;

	(void)state;
	open_with(1);
	depot_write(&depot, 30, 1);
	waits = depot_prefetch(&depot, 30, 1);
	depot_await_done(&depot, waits);
	depot_idle(&depot);
	loading = load_held_up(3);
	depot_write(&depot, 10, 2);
	queued = depot_prefetch(&depot, 10, 3);
	assert_int_equal(prefetch_ctrl_close(depot.prefetch, 0), KVS_E_QUARANTINE);
	/* Everybody was told, and nobody has a lock. */
	assert_true(depot_is_done(&depot, loading) && depot_is_done(&depot, queued));
	assert_true(prefetch_ctrl_take(depot.prefetch, loading, &result, &locked));
	assert_int_equal(result.end, END_STOPPED);
	assert_int_equal(result.boundary, 0);
	assert_false(prefetch_ctrl_take(depot.prefetch, waits, &result, &locked));
	assert_int_equal(depot_usage(&depot).locks, 0);
	assert_int_equal(depot_usage(&depot).staged, 3);
	crate_open(&depot.crates[0]);
	assert_int_equal(prefetch_ctrl_close(depot.prefetch, depot_late()), 0);
	depot.prefetch = NULL;
	assert_int_equal(depot_usage(&depot).staged, 0);
	assert_int_equal(depot_usage(&depot).objects, 3);
	depot_close(&depot);
}

static void B4_1_what_comes_after_the_end_is_refused(void **state)
{
	static const uint32_t   whole[] = { FLAT_ALL };
	const struct kvs_key    key = depot_key(0);
	const uint64_t          bytes = CRATE_BYTES, held = 0;
	struct flat             flat;
	struct prefetch_request request = { .keys = &key, .bytes = &bytes, .held = &held, .chunk_count = 1,
					    .lock_count = 1, .deadline_ns = UINT64_MAX };
	uint64_t                locked, id = 77;

	(void)state;
	assert_int_equal(flat_make(whole, 1, 1, &flat, NULL), 0);
	request.flat = &flat;
	open_with(8);
	request.reader = depot.client;
	depot_take(&depot, doubtful(), &locked);
	assert_int_equal(prefetch_ctrl_close(depot.prefetch, 0), KVS_E_QUARANTINE);
	assert_int_equal(prefetch_ctrl_submit(depot.prefetch, &request, &id), KVS_E_CLOSED);
	assert_int_equal(prefetch_ctrl_attach(depot.prefetch, 3, depot.adapters[1], "late"),
			 KVS_E_CLOSED);
	assert_int_equal(id, 77);
	depot_notice(&depot, 0, 2);
	depot_close(&depot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_late_a_load_past_its_deadline_is_never_published),
		cmocka_unit_test(what_has_come_by_the_deadline_is_the_result),
		cmocka_unit_test(a_deadline_covers_the_lookup),
		cmocka_unit_test(a_deadline_covers_the_queue_and_a_drainer_keeps_its_place),
		cmocka_unit_test(a_request_whose_time_is_over_asks_nobody),
		cmocka_unit_test(B4_4_a_cancel_gives_locks_back_in_every_state),
		cmocka_unit_test(B4_4_a_reader_that_is_gone_leaves_nothing_behind),
		cmocka_unit_test(a_reader_that_closed_without_a_word_gets_nothing_published),
		cmocka_unit_test(a_failed_prefetch_publishes_nothing_and_nothing_of_it_is_stored),
		cmocka_unit_test(quarantine_a_load_in_doubt_keeps_its_buffers_until_it_has_retired),
		cmocka_unit_test(quarantine_a_close_that_cannot_prove_retirement_leaves_the_buffers),
		cmocka_unit_test(a_shutdown_with_a_load_in_flight_keeps_the_buffer_until_it_is_over),
		cmocka_unit_test(B4_1_what_comes_after_the_end_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
