/* SPDX-License-Identifier: Apache-2.0 */
/* The prefetch controller over real adapters: what a request gets, and what it leaves behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "depot.h"

static struct depot depot;

static void open_with(uint32_t crates, const struct kvs_prefetch_policy *policy)
{
	depot_init(&depot);
	depot.crate_count = crates;
	if (policy)
		depot.prefetch_policy = policy;
	depot_open(&depot);
}

static const struct kvs_prefetch_policy *named(const char *name)
{
	const struct kvs_prefetch_policy *policy = NULL;

	assert_int_equal(prefetch_policy_find(name, &policy, NULL), 0);
	return policy;
}

/* What a request from number 0 got: every locked key has its bytes, every other one is not locked. */
static struct prefetch_result take(uint64_t id, uint32_t keys, uint64_t expected_locked)
{
	uint64_t                     locked = 0;
	const struct prefetch_result result = depot_take(&depot, id, &locked);
	uint32_t                     i;

	assert_int_equal(locked, expected_locked);
	for (i = 0; i < keys; i++)
		assert_int_equal(depot_is_read(&depot, i), locked >> i & 1);
	assert_int_equal(result.from_host + result.from_store, __builtin_popcountll(locked));
	return result;
}

/* After a result: nothing is under way, the stores hold nothing, the reader's locks are all that is left. */
static void close_all(uint64_t locked, uint32_t locks)
{
	depot_idle(&depot);
	assert_true(depot_stores_unlocked(&depot));
	assert_int_equal(depot_usage(&depot).staged, 0);
	assert_int_equal(depot_usage(&depot).locks, (uint64_t)__builtin_popcountll(locked) * locks);
	depot_give_back(&depot, 0, locked, locks);
	depot_close(&depot);
}

/* --- one adapter ------------------------------------------------------------------------------- */

static void B4_1_it_starts_and_stops_with_any_number_of_adapters(void **state)
{
	uint32_t crates;

	(void)state;
	for (crates = 0; crates <= DEPOT_CRATES; crates++) {
		open_with(crates, NULL);
		close_all(0, 1);
	}
	assert_int_equal(prefetch_ctrl_close(NULL, 0), 0);
}

static void B4_2_what_a_store_has_is_loaded_and_locked_for_its_reader(void **state)
{
	struct prefetch_result result;

	(void)state;
	open_with(1, NULL);
	depot_place(&depot, 0, 0, 5);
	result = take(depot_prefetch(&depot, 0, 5), 6, 0x1f);
	assert_int_equal(result.boundary, 5);
	assert_int_equal(result.from_store, 5);
	assert_int_equal(result.end, END_WHOLE);
	close_all(0x1f, 1);
}

static void B4_2_a_gap_ends_the_prefix_and_nothing_beyond_it_is_loaded(void **state)
{
	struct prefetch_result result;
	uint32_t               i;

	(void)state;
	open_with(1, NULL);
	depot_place(&depot, 0, 0, 2);
	depot_place(&depot, 0, 3, 2);
	result = take(depot_prefetch(&depot, 0, 5), 5, 3);
	assert_int_equal(result.boundary, 2);
	assert_int_equal(result.end, END_MISSING);
	for (i = 2; i < 5; i++)
		assert_false(depot_has(&depot, i));
	assert_int_equal(depot_prefetch_stats(&depot).keys_loaded, 2);
	close_all(3, 1);
}

static void B4_2_a_load_that_fails_ends_the_prefix(void **state)
{
	struct prefetch_result result;
	uint64_t               id;

	(void)state;
	open_with(1, NULL);
	depot_place(&depot, 0, 0, 5);
	/* It is locked and found; then it has gone bad. */
	crate_shut_moves(&depot.crates[0]);
	id = depot_prefetch(&depot, 0, 5);
	crate_wait_inside(&depot.crates[0], 1);
	depot.crates[0].fate[2] = CRATE_FAILS;
	crate_open(&depot.crates[0]);
	result = take(id, 5, 3);
	assert_int_equal(result.boundary, 2);
	assert_int_equal(result.end, END_FAILED);
	/* Loaded, but beyond: unlocked, and being temporary gone. */
	assert_false(depot_has(&depot, 3) || depot_has(&depot, 4));
	close_all(3, 1);
}

static void B4_2_without_the_first_key_there_is_nothing(void **state)
{
	struct prefetch_result result;

	(void)state;
	open_with(1, NULL);
	depot_place(&depot, 0, 1, 4);
	result = take(depot_prefetch(&depot, 0, 5), 5, 0);
	assert_int_equal(result.boundary, 0);
	assert_int_equal(result.end, END_MISSING);
	assert_int_equal(depot_usage(&depot).objects, 0);
	close_all(0, 1);
}

static void B4_2_nothing_found_is_a_prefix_of_none(void **state)
{
	(void)state;
	open_with(2, NULL);
	assert_int_equal(take(depot_prefetch(&depot, 0, 7), 7, 0).boundary, 0);
	assert_int_equal(depot_prefetch_stats(&depot).keys_asked, 14);
	assert_int_equal(depot_prefetch_stats(&depot).keys_found, 0);
	close_all(0, 1);
}

static void without_adapters_host_alone_answers(void **state)
{
	struct depot_ask ask = { .chunks = 4 };

	(void)state;
	open_with(0, NULL);
	depot_write(&depot, 0, 2);
	assert_int_equal(take(depot_ask(&depot, &ask), 4, 3).from_host, 2);
	depot_give_back(&depot, 0, 3, 1);
	assert_int_equal(depot_prefetch_stats(&depot).keys_asked, 0);
	close_all(0, 1);
}

/* --- several adapters -------------------------------------------------------------------------- */

static void B4_2_adapters_complete_each_other(void **state)
{
	(void)state;
	open_with(2, NULL);
	depot_place(&depot, 0, 0, 2);
	depot_place(&depot, 1, 2, 2);
	assert_int_equal(take(depot_prefetch(&depot, 0, 4), 4, 0xf).boundary, 4);
	close_all(0xf, 1);
}

static void B4_2_a_key_that_two_adapters_have_is_loaded_once_from_the_lowest(void **state)
{
	struct adapter_stats stats[2];

	(void)state;
	open_with(2, NULL);
	depot_place(&depot, 0, 0, 2);
	depot_place(&depot, 1, 1, 2);
	assert_int_equal(take(depot_prefetch(&depot, 0, 3), 3, 7).boundary, 3);
	adapter_stats(depot.adapters[0], &stats[0]);
	adapter_stats(depot.adapters[1], &stats[1]);
	assert_int_equal(stats[0].moved_bytes[TASK_LOAD], 2 * CRATE_BYTES);
	assert_int_equal(stats[1].moved_bytes[TASK_LOAD], CRATE_BYTES);
	close_all(7, 1);
}

static void B4_2_what_an_adapter_loaded_is_there_before_a_slower_one_is_done(void **state)
{
	uint64_t id;

	(void)state;
	open_with(2, NULL);
	depot_place(&depot, 0, 0, 2);
	depot_place(&depot, 1, 2, 2);
	crate_shut_moves(&depot.crates[1]);
	id = depot_prefetch(&depot, 0, 4);
	crate_wait_inside(&depot.crates[1], 1);
	depot_await_objects(&depot, 2);
	assert_true(depot_is_read(&depot, 0) && depot_is_read(&depot, 1));
	assert_false(depot_has(&depot, 2));
	assert_false(depot_is_done(&depot, id));
	crate_open(&depot.crates[1]);
	assert_int_equal(take(id, 4, 0xf).boundary, 4);
	close_all(0xf, 1);
}

static void a_slow_adapter_holds_up_no_request_of_others(void **state)
{
	uint64_t slow, fast, locked;

	(void)state;
	open_with(2, NULL);
	depot_place(&depot, 1, 0, 1);
	depot_place(&depot, 0, 10, 1);
	crate_shut_moves(&depot.crates[1]);
	slow = depot_prefetch(&depot, 0, 1);
	crate_wait_inside(&depot.crates[1], 1);
	fast = depot_prefetch(&depot, 10, 1);
	depot_await_done(&depot, fast);
	assert_false(depot_is_done(&depot, slow));
	crate_open(&depot.crates[1]);
	assert_int_equal(take(slow, 1, 1).boundary, 1);
	assert_int_equal(depot_take(&depot, fast, &locked).boundary, 1);
	depot_give_back(&depot, 10, locked, 1);
	close_all(1, 1);
}

/* --- results ----------------------------------------------------------------------------------- */

static void B4_1_a_result_is_given_once_and_unknown_ids_have_none(void **state)
{
	struct prefetch_result result;
	uint64_t               id, locked = 0;
	uint32_t               found;

	(void)state;
	open_with(1, NULL);
	depot_place(&depot, 0, 0, 3);
	id = depot_prefetch(&depot, 0, 3);
	depot_await_done(&depot, id);
	assert_true(prefetch_ctrl_take(depot.prefetch, id, &result, &locked));
	assert_int_equal(result.boundary, 3);
	assert_false(prefetch_ctrl_take(depot.prefetch, id, &result, &locked));
	assert_false(prefetch_ctrl_take(depot.prefetch, 999, &result, &locked));
	assert_false(prefetch_ctrl_take(depot.prefetch, 0, &result, &locked));
	assert_false(prefetch_ctrl_found(depot.prefetch, id, &found));
	assert_false(prefetch_ctrl_found(depot.prefetch, 999, &found));
	prefetch_ctrl_cancel(depot.prefetch, id);
	prefetch_ctrl_cancel(depot.prefetch, 999);
	close_all(7, 1);
}

/* While the load is held up, what was found is known, as often as one asks, until the result is taken. */
static void B4_1_what_was_found_is_known_before_the_load_ends(void **state)
{
	uint64_t id;
	uint32_t found = 77, i;

	(void)state;
	open_with(1, NULL);
	depot_place(&depot, 0, 0, 1);
	depot_place(&depot, 0, 2, 1);
	crate_shut_moves(&depot.crates[0]);
	id = depot_prefetch(&depot, 0, 3);
	crate_wait_inside(&depot.crates[0], 1);
	assert_int_equal(depot_await_found(&depot, id), 1);
	for (i = 0; i < 3; i++) {
		assert_true(prefetch_ctrl_found(depot.prefetch, id, &found));
		assert_int_equal(found, 1);
	}
	crate_open(&depot.crates[0]);
	depot_await_done(&depot, id);
	assert_true(prefetch_ctrl_found(depot.prefetch, id, &found));
	take(id, 3, 1);
	assert_false(prefetch_ctrl_found(depot.prefetch, id, &found));
	close_all(1, 1);
}

static void B4_4_readers_get_as_many_locks_as_they_asked_for(void **state)
{
	static const uint32_t locks[] = { 1, 2, 4, HOST_LOCKS_MAX };
	size_t                i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(locks); i++) {
		struct depot_ask ask = { .chunks = 4, .locks = locks[i] };

		open_with(1, NULL);
		depot_place(&depot, 0, 0, 2);
		depot_place(&depot, 0, 3, 1);
		take(depot_ask(&depot, &ask), 4, 3);
		assert_int_equal(depot_usage(&depot).locks, 2 * locks[i]);
		depot_unlock(&depot, 0, locks[i] - 1 ? locks[i] - 1 : 1);
		assert_int_equal(depot_has(&depot, 0), locks[i] > 1);
		if (locks[i] > 1)
			depot_unlock(&depot, 0, 1);
		/* Temporary: gone with its last lock. */
		assert_false(depot_has(&depot, 0));
		depot_unlock(&depot, 1, locks[i]);
		close_all(0, 1);
	}
}

static void B4_4_what_lies_beyond_a_failed_load_loses_all_its_locks(void **state)
{
	struct depot_ask ask = { .chunks = 3, .locks = 3 };
	uint64_t         id;

	(void)state;
	open_with(1, NULL);
	depot_place(&depot, 0, 0, 3);
	crate_shut_moves(&depot.crates[0]);
	id = depot_ask(&depot, &ask);
	crate_wait_inside(&depot.crates[0], 1);
	depot.crates[0].fate[1] = CRATE_FAILS;
	crate_open(&depot.crates[0]);
	assert_int_equal(take(id, 3, 1).boundary, 1);
	assert_false(depot_has(&depot, 2));
	close_all(1, 3);
}

/* --- Host and stores --------------------------------------------------------------------------- */

static void B4_2_host_and_stores_make_one_prefix(void **state)
{
	struct prefetch_result result;

	(void)state;
	depot_init(&depot);
	depot.crate_count = 1;
	depot.store_policy = NULL;
	depot_open(&depot);
	depot_write(&depot, 0, 2);
	depot_write(&depot, 4, 1);
	depot_place(&depot, 0, 2, 2);
	result = take(depot_prefetch(&depot, 0, 6), 6, 0x1f);
	assert_int_equal(result.boundary, 5);
	assert_int_equal(result.from_host, 3);
	assert_int_equal(result.from_store, 2);
	/* Nobody was asked for what Host has. */
	assert_int_equal(depot_prefetch_stats(&depot).keys_asked, 3);
	close_all(0x1f, 1);
}

static void B4_4_what_host_has_beyond_the_prefix_is_unlocked(void **state)
{
	(void)state;
	open_with(1, NULL);
	depot_write(&depot, 0, 1);
	depot_write(&depot, 2, 2);
	assert_int_equal(take(depot_prefetch(&depot, 0, 4), 4, 1).boundary, 1);
	assert_true(depot_has(&depot, 2) && depot_has(&depot, 3));
	close_all(1, 1);
}

static void loaded_objects_go_with_their_reader_or_stay_as_policy_and_request_say(void **state)
{
	static const struct {
		const char *policy;
		bool        retain, stays;
	} rows[] = { { "default", false, false },
		     { "default", true, true },
		     { "retain", false, true },
		     { "retain", true, true } };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		const struct depot_ask ask = { .chunks = 2, .retain = rows[i].retain };

		open_with(1, named(rows[i].policy));
		depot_place(&depot, 0, 0, 2);
		take(depot_ask(&depot, &ask), 2, 3);
		depot_give_back(&depot, 0, 3, 1);
		assert_int_equal(depot_has(&depot, 0), rows[i].stays);
		/* Kept or not, what was loaded is not stored again. */
		depot_flush(&depot);
		assert_int_equal(depot_store_counter(&depot, STORE_CTRL_HEARD), 0);
		close_all(0, 1);
	}
}

static void two_requests_of_the_same_keys_both_get_them(void **state)
{
	uint64_t one, two, locked;

	(void)state;
	open_with(1, NULL);
	depot_place(&depot, 0, 0, 3);
	crate_shut_moves(&depot.crates[0]);
	one = depot_prefetch(&depot, 0, 3);
	two = depot_prefetch(&depot, 0, 3);
	crate_wait_inside(&depot.crates[0], 2);
	crate_open(&depot.crates[0]);
	assert_int_equal(depot_take(&depot, one, &locked).boundary, 3);
	assert_int_equal(depot_take(&depot, two, &locked).boundary, 3);
	assert_int_equal(depot_usage(&depot).objects, 3);
	depot_give_back(&depot, 0, 7, 1);
	assert_true(depot_is_read(&depot, 0));
	close_all(7, 1);
}

/* The second waits in the queue; when it starts Host has all of it. */
static void what_came_while_a_request_waited_is_not_loaded_again(void **state)
{
	uint64_t one, two, locked;

	(void)state;
	depot_init(&depot);
	depot.crate_count = 1;
	depot.prefetch_limits.in_flight_max = 1;
	depot_open(&depot);
	depot_place(&depot, 0, 0, 3);
	crate_shut_moves(&depot.crates[0]);
	one = depot_prefetch(&depot, 0, 3);
	crate_wait_inside(&depot.crates[0], 1);
	two = depot_prefetch(&depot, 0, 3);
	crate_open(&depot.crates[0]);
	assert_int_equal(depot_take(&depot, one, &locked).from_store, 3);
	assert_int_equal(depot_take(&depot, two, &locked).from_host, 3);
	assert_int_equal(depot_prefetch_stats(&depot).keys_asked, 3);
	depot_give_back(&depot, 0, 7, 1);
	close_all(7, 1);
}

/* --- groups ------------------------------------------------------------------------------------ */

static void B4_2_a_window_group_needs_its_last_chunks_alone(void **state)
{
	static const uint32_t windows[] = { FLAT_ALL, 2 };
	struct depot_ask      ask = { .chunks = 4 };
	struct flat           flat;

	(void)state;
	assert_int_equal(flat_make(windows, 2, 1, &flat, NULL), 0);
	ask.flat = &flat;
	open_with(1, NULL);
	depot_place(&depot, 0, 0, 8);
	assert_int_equal(take(depot_ask(&depot, &ask), 8, 0xf5).boundary, 4);
	assert_int_equal(depot_prefetch_stats(&depot).keys_found, 8);
	assert_int_equal(depot_prefetch_stats(&depot).keys_loaded, 6);
	close_all(0xf5, 1);
}

static void B4_2_a_gap_in_the_full_group_moves_the_window(void **state)
{
	static const uint32_t windows[] = { FLAT_ALL, 2 };
	struct depot_ask      ask = { .chunks = 4 };
	struct flat           flat;

	(void)state;
	assert_int_equal(flat_make(windows, 2, 1, &flat, NULL), 0);
	ask.flat = &flat;
	open_with(1, NULL);
	depot_place(&depot, 0, 0, 2);
	depot_place(&depot, 0, 3, 5); /* the full group's chunk 1 is key 2 */
	assert_int_equal(take(depot_ask(&depot, &ask), 8, 3).boundary, 1);
	close_all(3, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(B4_1_it_starts_and_stops_with_any_number_of_adapters),
		cmocka_unit_test(B4_2_what_a_store_has_is_loaded_and_locked_for_its_reader),
		cmocka_unit_test(B4_2_a_gap_ends_the_prefix_and_nothing_beyond_it_is_loaded),
		cmocka_unit_test(B4_2_a_load_that_fails_ends_the_prefix),
		cmocka_unit_test(B4_2_without_the_first_key_there_is_nothing),
		cmocka_unit_test(B4_2_nothing_found_is_a_prefix_of_none),
		cmocka_unit_test(without_adapters_host_alone_answers),
		cmocka_unit_test(B4_2_adapters_complete_each_other),
		cmocka_unit_test(B4_2_a_key_that_two_adapters_have_is_loaded_once_from_the_lowest),
		cmocka_unit_test(B4_2_what_an_adapter_loaded_is_there_before_a_slower_one_is_done),
		cmocka_unit_test(a_slow_adapter_holds_up_no_request_of_others),
		cmocka_unit_test(B4_1_a_result_is_given_once_and_unknown_ids_have_none),
		cmocka_unit_test(B4_1_what_was_found_is_known_before_the_load_ends),
		cmocka_unit_test(B4_4_readers_get_as_many_locks_as_they_asked_for),
		cmocka_unit_test(B4_4_what_lies_beyond_a_failed_load_loses_all_its_locks),
		cmocka_unit_test(B4_2_host_and_stores_make_one_prefix),
		cmocka_unit_test(B4_4_what_host_has_beyond_the_prefix_is_unlocked),
		cmocka_unit_test(loaded_objects_go_with_their_reader_or_stay_as_policy_and_request_say),
		cmocka_unit_test(two_requests_of_the_same_keys_both_get_them),
		cmocka_unit_test(what_came_while_a_request_waited_is_not_loaded_again),
		cmocka_unit_test(B4_2_a_window_group_needs_its_last_chunks_alone),
		cmocka_unit_test(B4_2_a_gap_in_the_full_group_moves_the_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
