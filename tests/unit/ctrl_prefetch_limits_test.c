/* SPDX-License-Identifier: Apache-2.0 */
/* The prefetch controller's bounds, Host room, adapters that come and go, policies that err. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "depot.h"

static struct depot depot;

/* No store controller; so many crates attached. */
static void prepare(uint32_t crates)
{
	depot_init(&depot);
	depot.crate_count = crates;
	depot.store_policy = NULL;
}

static uint64_t locks_held(uint32_t crate)
{
	struct adapter_stats stats;

	adapter_stats(depot.adapters[crate], &stats);
	return stats.exec.locks_held;
}

/* What a request got, given back. */
static struct prefetch_result take_and_give(uint64_t id, uint32_t from)
{
	uint64_t                     locked = 0;
	const struct prefetch_result result = depot_take(&depot, id, &locked);

	depot_give_back(&depot, from, locked, 1);
	return result;
}

static void close_all(void)
{
	depot_idle(&depot);
	assert_true(depot_stores_unlocked(&depot));
	depot_close(&depot);
}

/* --- requests in flight ------------------------------------------------------------------------ */

static void B4_3_requests_past_the_limit_wait_in_order(void **state)
{
	struct prefetch_ctrl_stats stats;
	uint64_t                   ids[4];
	uint32_t                   i;

	(void)state;
	prepare(1);
	depot.prefetch_limits.in_flight_max = 2;
	depot_open(&depot);
	depot_place(&depot, 0, 0, 8);
	crate_shut_moves(&depot.crates[0]);
	for (i = 0; i < 4; i++)
		ids[i] = depot_prefetch(&depot, 2 * i, 2);
	crate_wait_inside(&depot.crates[0], 2);
	depot_await_queued(&depot, 2);
	stats = depot_prefetch_stats(&depot);
	assert_int_equal(stats.submitted, 4);
	crate_open(&depot.crates[0]);
	for (i = 0; i < 4; i++)
		assert_int_equal(take_and_give(ids[i], 2 * i).boundary, 2);
	/* Those that waited were done in their order behind one of those before. */
	assert_true(depot.done[3] == ids[3] || depot.done[2] == ids[3] || depot.done[2] == ids[2]);
	close_all();
}

static void B4_3_one_request_follows_another(void **state)
{
	(void)state;
	prepare(1);
	depot_open(&depot);
	depot_place(&depot, 0, 0, 7);
	assert_int_equal(take_and_give(depot_prefetch(&depot, 0, 3), 0).boundary, 3);
	assert_int_equal(take_and_give(depot_prefetch(&depot, 3, 4), 3).boundary, 4);
	close_all();
}

/* What the first lacks is as much as there may be; the second waits though there is a place for it. */
static void B4_3_bytes_of_host_bound_what_is_in_flight(void **state)
{
	uint64_t one, two, three;

	(void)state;
	prepare(1);
	depot.prefetch_limits.in_flight_bytes = 3 * CRATE_BYTES;
	depot_open(&depot);
	depot_place(&depot, 0, 0, 10);
	crate_shut_moves(&depot.crates[0]);
	one = depot_prefetch(&depot, 0, 2);
	two = depot_prefetch(&depot, 2, 2);
	three = depot_prefetch(&depot, 4, 1);
	crate_wait_inside(&depot.crates[0], 1);
	depot_await_queued(&depot, 2);
	assert_int_equal(depot_usage(&depot).staged, 2);
	crate_open(&depot.crates[0]);
	assert_int_equal(take_and_give(one, 0).boundary, 2);
	assert_int_equal(take_and_give(two, 2).boundary, 2);
	assert_int_equal(take_and_give(three, 4).boundary, 1);
	/* One that is larger than all there may be goes alone. */
	assert_int_equal(take_and_give(depot_prefetch(&depot, 0, 10), 0).boundary, 10);
	depot_idle(&depot);
	assert_int_equal(depot_prefetch_stats(&depot).in_flight_bytes, 0);
	close_all();
}

/* --- submission -------------------------------------------------------------------------------- */

static int submit(const struct prefetch_request *request, uint64_t *ret_id)
{
	return prefetch_ctrl_submit(depot.prefetch, request, ret_id);
}

static void B4_1_a_full_queue_refuses_and_results_keep_their_place(void **state)
{
	static const uint32_t   whole[] = { FLAT_ALL };
	const struct kvs_key    key = depot_key(40);
	const uint64_t          bytes = CRATE_BYTES, held = 0;
	struct flat             flat;
	struct prefetch_request request = { .keys = &key, .bytes = &bytes, .held = &held, .chunk_count = 1,
					    .lock_count = 1, .deadline_ns = UINT64_MAX };
	uint64_t                ids[3], id;
	uint32_t                i;

	(void)state;
	assert_int_equal(flat_make(whole, 1, 1, &flat, NULL), 0);
	request.flat = &flat;
	prepare(1);
	depot.prefetch_limits.queue_max = 3;
	depot_open(&depot);
	request.reader = depot.client;
	for (i = 0; i < 3; i++)
		ids[i] = depot_prefetch(&depot, i, 1);
	for (i = 0; i < 3; i++)
		depot_await_done(&depot, ids[i]);
	assert_int_equal(submit(&request, &id), KVS_E_FULL);
	assert_int_equal(depot_prefetch_stats(&depot).refused_full, 1);
	depot_idle(&depot);
	take_and_give(ids[1], 1);
	/* Nobody is told, and nobody needs to be. */
	assert_int_equal(submit(&request, &id), 0);
	assert_true(id > ids[2]);
	depot_idle(&depot);
	assert_int_equal(take_and_give(ids[0], 0).boundary + take_and_give(ids[2], 2).boundary, 0);
	prefetch_ctrl_cancel(depot.prefetch, id);
	close_all();
}

/* Asks for what Host has, and asks again when it is told. */
struct repeater {
	struct prefetch_request request;
	struct kvs_key          key;
	uint64_t                bytes, held;
	struct flat             flat;
	atomic_bool             enough;
};

static void ask_again(void *arg, uint64_t request_id)
{
	struct repeater *const repeater = arg;
	struct prefetch_result result;
	uint64_t               locked = 0, id;

	KVS_ASSERT(prefetch_ctrl_take(depot.prefetch, request_id, &result, &locked));
	KVS_ASSERT_CMP(locked, ==, 1);
	depot_unlock(&depot, 40, 1);
	if (!repeater->enough)
		KVS_ASSERT(prefetch_ctrl_submit(depot.prefetch, &repeater->request, &id) == 0);
}

static void who_asks_again_at_once_holds_up_no_other(void **state)
{
	static const uint32_t whole[] = { FLAT_ALL };
	struct repeater       repeater = { .key = depot_key(40), .bytes = CRATE_BYTES };
	uint64_t              id, own;

	(void)state;
	assert_int_equal(flat_make(whole, 1, 1, &repeater.flat, NULL), 0);
	prepare(1);
	depot_open(&depot);
	depot_write(&depot, 40, 1);
	depot_place(&depot, 0, 0, 3);
	crate_shut_moves(&depot.crates[0]);
	id = depot_prefetch(&depot, 0, 3);
	crate_wait_inside(&depot.crates[0], 1);
	repeater.request = (struct prefetch_request){ .reader = depot.client,
						      .keys = &repeater.key,
						      .bytes = &repeater.bytes,
						      .chunk_count = 1,
						      .flat = &repeater.flat,
						      .held = &repeater.held,
						      .lock_count = 1,
						      .deadline_ns = UINT64_MAX,
						      .done = ask_again,
						      .done_arg = &repeater };
	assert_int_equal(prefetch_ctrl_submit(depot.prefetch, &repeater.request, &own), 0);
	crate_open(&depot.crates[0]);
	depot_await_done(&depot, id);
	repeater.enough = true;
	assert_int_equal(take_and_give(id, 0).boundary, 3);
	close_all();
}

static void B4_1_bad_requests_are_refused(void **state)
{
	static const uint32_t windows[] = { FLAT_ALL, 3 };
	static struct kvs_key keys[DEPOT_REQUEST_KEYS + 2];
	static uint64_t       bytes[DEPOT_REQUEST_KEYS + 2], held[2];
	static const struct {
		uint32_t chunks, locks;
	} rows[] = { { 0, 1 }, { DEPOT_REQUEST_KEYS / 2 + 1, 1 }, { UINT32_MAX, 1 }, { 1, 0 },
		     { 1, HOST_LOCKS_MAX + 1 } };
	struct flat flat;
	size_t      i;

	(void)state;
	assert_int_equal(flat_make(windows, 2, 1, &flat, NULL), 0);
	prepare(1);
	depot_open(&depot);
	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		const struct prefetch_request request = { .reader = depot.client, .keys = keys,
							  .bytes = bytes, .held = held, .flat = &flat,
							  .chunk_count = rows[i].chunks,
							  .lock_count = rows[i].locks };
		uint64_t                      id = 77;

		assert_int_equal(submit(&request, &id), KVS_E_INVALID);
		assert_int_equal(id, 77);
	}
	close_all();
}

static void limits_are_checked_by_name(void **state)
{
	static const struct {
		struct ctrl_limits limits;
		const char        *says;
	} rows[] = {
		{ { 0, 0, 1, 1 }, "prefetch in flight: 0 is out of range; use 1 to 1024" },
		{ { 1, 0, 0, 1 }, "prefetch queue: 0 is out of range; use 1 to 1048576" },
		{ { 1, 0, 1, 0 }, "prefetch request keys: 0 is out of range; use 1 to 65536" },
		{ { 1, 0, 1, 65537 }, "prefetch request keys: 65537 is out of range" },
		{ { 1, 0, 1025, 65536 }, "prefetch queue: 1025 requests of 65536 keys are too many" },
	};
	size_t i;

	(void)state;
	prepare(1);
	depot_open(&depot);
	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		struct prefetch_ctrl *ctrl = NULL;
		struct kvs_error      err;

		assert_int_equal(prefetch_ctrl_open(depot.host, depot.prefetch_policy, &rows[i].limits,
						    &ctrl, &err),
				 KVS_E_INVALID);
		assert_null(ctrl);
		assert_non_null(strstr(err.message, rows[i].says));
	}
	close_all();
}

static void a_host_without_a_client_left_is_no_host_for_it(void **state)
{
	struct prefetch_ctrl *ctrl = NULL;
	struct kvs_error      err;
	host_client           clients[8];
	uint32_t              count = 0;

	(void)state;
	prepare(0);
	depot_open(&depot);
	while (host_client_open(depot.host, 0, &clients[count]) == 0)
		count++;
	assert_int_equal(prefetch_ctrl_open(depot.host, depot.prefetch_policy, &depot.prefetch_limits,
					    &ctrl, &err),
			 KVS_E_FULL);
	assert_non_null(strstr(err.message, "prefetch controller: no client"));
	while (count > 0)
		host_client_close(depot.host, clients[--count], os_now_ns());
	close_all();
}

/* The lookup is held up inside the store; whoever submits is not. */
static void B4_5_a_submission_returns_at_once(void **state)
{
	uint64_t ids[6];
	uint32_t i;

	(void)state;
	prepare(1);
	depot.prefetch_limits.in_flight_max = 2;
	depot_open(&depot);
	crate_shut(&depot.crates[0]);
	for (i = 0; i < 6; i++)
		ids[i] = depot_prefetch(&depot, i, 1);
	crate_wait_inside(&depot.crates[0], 1);
	for (i = 0; i < 6; i++)
		assert_false(depot_is_done(&depot, ids[i]));
	crate_open(&depot.crates[0]);
	for (i = 0; i < 6; i++)
		assert_int_equal(take_and_give(ids[i], i).boundary, 0);
	close_all();
}

/* --- locks of stores --------------------------------------------------------------------------- */

/* While the loads are inside the stores: what another adapter loads, and what lies beyond, is unlocked. */
static void B4_5_what_is_not_planned_is_unlocked_before_loads_start(void **state)
{
	uint64_t id;

	(void)state;
	prepare(2);
	depot_open(&depot);
	depot_place(&depot, 0, 0, 2);
	depot_place(&depot, 1, 1, 2);
	depot_place(&depot, 0, 4, 3);
	crate_shut_moves(&depot.crates[0]);
	crate_shut_moves(&depot.crates[1]);
	id = depot_prefetch(&depot, 0, 8);
	crate_wait_inside(&depot.crates[0], 1);
	crate_wait_inside(&depot.crates[1], 1);
	assert_int_equal(depot_prefetch_stats(&depot).keys_loaded, 0);
	assert_int_equal(locks_held(0), 2);
	assert_int_equal(locks_held(1), 1);
	crate_open(&depot.crates[0]);
	crate_open(&depot.crates[1]);
	assert_int_equal(take_and_give(id, 0).boundary, 3);
	close_all();
}

/* --- Host room --------------------------------------------------------------------------------- */

static void B4_2_where_host_has_no_room_the_prefix_is_shorter(void **state)
{
	struct prefetch_result result;
	uint64_t               id, locked;
	uint32_t               i;

	(void)state;
	prepare(1);
	depot.pages = 8; /* four objects */
	depot_open(&depot);
	depot_place(&depot, 0, 0, 10);
	id = depot_prefetch(&depot, 0, 10);
	result = depot_take(&depot, id, &locked);
	assert_int_equal(result.boundary, 4);
	assert_int_equal(result.end, END_HOST_FULL);
	for (i = 0; i < 4; i++)
		assert_true(depot_is_read(&depot, i));
	depot_idle(&depot);
	assert_int_equal(depot_usage(&depot).staged, 0);
	depot_give_back(&depot, 0, locked, 1);
	close_all();
}

static void room_is_made_of_what_nobody_reads(void **state)
{
	uint64_t id, locked;

	(void)state;
	prepare(1);
	depot.pages = 8;
	depot_open(&depot);
	depot_write(&depot, 100, 4);
	depot_lock(&depot, 101);
	depot_place(&depot, 0, 0, 10);
	id = depot_prefetch(&depot, 0, 10);
	assert_int_equal(depot_take(&depot, id, &locked).boundary, 3);
	assert_true(depot_has(&depot, 101));
	assert_false(depot_has(&depot, 100));
	depot_unlock(&depot, 101, 1);
	depot_give_back(&depot, 0, locked, 1);
	close_all();
}

/* A window's keys have to be had, too, where the prefix ends earlier than it was planned. */
static void a_shorter_prefix_takes_its_window_along(void **state)
{
	static const uint32_t windows[] = { FLAT_ALL, 2 };
	struct depot_ask      ask = { .chunks = 10 };
	struct flat           flat;
	uint64_t              id, locked;

	(void)state;
	assert_int_equal(flat_make(windows, 2, 1, &flat, NULL), 0);
	ask.flat = &flat;
	prepare(1);
	depot.pages = 16; /* eight objects: six chunks of one group and two of the other */
	depot_open(&depot);
	depot_place(&depot, 0, 0, 20);
	id = depot_ask(&depot, &ask);
	assert_int_equal(depot_take(&depot, id, &locked).boundary, 6);
	assert_int_equal(locked, 0xf55);
	depot_give_back(&depot, 0, locked, 1);
	close_all();
}

/* Nothing can be staged twice for one request: what is behind the second one is nobody's prefix. */
static void a_key_that_comes_again_ends_the_prefix(void **state)
{
	static const uint32_t   whole[] = { FLAT_ALL };
	const struct kvs_key    keys[] = { depot_key(0), depot_key(1), depot_key(0), depot_key(2) };
	const uint64_t          bytes[] = { CRATE_BYTES, CRATE_BYTES, CRATE_BYTES, CRATE_BYTES };
	const uint64_t          held = 0;
	struct flat             flat;
	struct prefetch_request request = { .keys = keys, .bytes = bytes, .held = &held, .chunk_count = 4,
					    .lock_count = 1, .deadline_ns = UINT64_MAX };
	struct prefetch_result  result;
	uint64_t                id, locked;

	(void)state;
	assert_int_equal(flat_make(whole, 1, 1, &flat, NULL), 0);
	request.flat = &flat;
	prepare(1);
	depot_open(&depot);
	request.reader = depot.client;
	depot_place(&depot, 0, 0, 3);
	assert_int_equal(submit(&request, &id), 0);
	depot_idle(&depot);
	assert_true(prefetch_ctrl_take(depot.prefetch, id, &result, &locked));
	assert_int_equal(result.boundary, 2);
	assert_int_equal(result.end, END_HOST_FULL);
	depot_give_back(&depot, 0, locked, 1);
	close_all();
}

/* --- policies ---------------------------------------------------------------------------------- */

/* Names an adapter that does not have it, one that does not exist, none, and the truth. */
static void err_in_turn(const struct kvs_adapter_info *adapters, uint32_t adapter_count,
			const struct kvs_key *keys, const uint64_t *found, uint32_t count, uint8_t *from)
{
	uint32_t i;

	assert_int_equal(adapter_count, 2);
	assert_string_equal(adapters[1].name, "crate");
	for (i = 0; i < count; i++) {
		switch (keys[i].offset) {
		case 4:
			from[i] = 1;
			break;
		case 5:
			from[i] = 16;
			break;
		case 6:
			from[i] = KVS_NO_ADAPTER;
			break;
		default:
			from[i] = found[i] & 1 ? 0 : KVS_NO_ADAPTER;
		}
	}
}

static void what_a_policy_says_wrongly_is_passed_over_and_counted(void **state)
{
	static const struct kvs_prefetch_policy erring = { .name = "erring", .plan = err_in_turn };
	struct prefetch_result                  result;

	(void)state;
	prepare(2);
	depot.prefetch_policy = &erring;
	depot_open(&depot);
	depot_place(&depot, 0, 0, 10);
	result = take_and_give(depot_prefetch(&depot, 0, 8), 0);
	assert_int_equal(result.boundary, 4);
	assert_int_equal(result.end, END_MISSING);
	assert_int_equal(depot_prefetch_stats(&depot).misplanned, 2);
	assert_int_equal(depot_prefetch_stats(&depot).keys_loaded, 4);
	close_all();
}

/* --- adapters that come and go ----------------------------------------------------------------- */

static void an_adapter_that_came_is_asked_from_then_on(void **state)
{
	(void)state;
	prepare(1);
	depot_open(&depot);
	depot_place(&depot, 1, 0, 2);
	assert_int_equal(take_and_give(depot_prefetch(&depot, 0, 2), 0).boundary, 0);
	assert_int_equal(prefetch_ctrl_attach(depot.prefetch, 9, depot.adapters[1], "late"), 0);
	assert_int_equal(take_and_give(depot_prefetch(&depot, 0, 2), 0).boundary, 2);
	prefetch_ctrl_detach(depot.prefetch, 9);
	assert_true(prefetch_ctrl_detached(depot.prefetch, 9, depot_late()));
	assert_int_equal(take_and_give(depot_prefetch(&depot, 0, 2), 0).boundary, 0);
	close_all();
}

/* What it found while another is still asked is given back, and it is not planned. */
static void an_adapter_that_leaves_during_a_lookup_is_not_planned(void **state)
{
	uint64_t id;

	(void)state;
	prepare(2);
	depot_open(&depot);
	depot_place(&depot, 0, 0, 2);
	depot_place(&depot, 1, 0, 1);
	crate_shut(&depot.crates[1]);
	id = depot_prefetch(&depot, 0, 2);
	crate_wait_inside(&depot.crates[1], 1);
	prefetch_ctrl_detach(depot.prefetch, 0);
	assert_true(prefetch_ctrl_detached(depot.prefetch, 0, depot_late()));
	assert_int_equal(locks_held(0), 0);
	crate_open(&depot.crates[1]);
	assert_int_equal(take_and_give(id, 0).boundary, 1);
	close_all();
}

static void an_adapter_that_leaves_during_a_load_stays_until_it_is_over(void **state)
{
	uint64_t id;

	(void)state;
	prepare(2);
	depot_open(&depot);
	depot_place(&depot, 0, 0, 2);
	crate_shut_moves(&depot.crates[0]);
	id = depot_prefetch(&depot, 0, 2);
	crate_wait_inside(&depot.crates[0], 1);
	prefetch_ctrl_detach(depot.prefetch, 0);
	assert_false(prefetch_ctrl_detached(depot.prefetch, 0, os_now_ns() + 1000000));
	crate_open(&depot.crates[0]);
	assert_int_equal(take_and_give(id, 0).boundary, 2);
	assert_true(prefetch_ctrl_detached(depot.prefetch, 0, depot_late()));
	close_all();
}

/* The store failed, and its executor refuses everything for long: a miss, and no request waits for it. */
static void a_store_in_cooldown_is_a_miss(void **state)
{
	(void)state;
	prepare(2);
	depot_open(&depot);
	depot_place(&depot, 0, 0, 2);
	depot_place(&depot, 1, 0, 1);
	depot.crates[0].fate[0] = CRATE_BREAKS;
	assert_int_equal(take_and_give(depot_prefetch(&depot, 0, 2), 0).boundary, 1);
	close_all();
}

/* --- many threads ------------------------------------------------------------------------------ */

#define READERS 3u
#define ROUNDS 40u

static void *read_some(void *arg)
{
	const uint32_t from = *(const uint32_t *)arg;
	uint32_t       i;

	for (i = 0; i < ROUNDS; i++) {
		const uint64_t id = depot_prefetch(&depot, from, 8);

		if (i % 5 == 4)
			prefetch_ctrl_cancel(depot.prefetch, id);
		else
			KVS_ASSERT_CMP(take_and_give(id, from).boundary, ==, 8);
	}
	return NULL;
}

static void B4_1_requests_come_from_any_thread(void **state)
{
	static const uint32_t from[READERS] = { 0, 100, 200 };
	pthread_t             threads[READERS];
	uint32_t              i;

	(void)state;
	prepare(2);
	depot.prefetch_limits.in_flight_max = 2;
	depot_open(&depot);
	for (i = 0; i < READERS; i++) {
		depot_place(&depot, i % 2, from[i], 5);
		depot_place(&depot, (i + 1) % 2, from[i] + 5, 3);
	}
	for (i = 0; i < READERS; i++)
		assert_int_equal(os_thread_start(&threads[i], "reader", read_some, (void *)&from[i]), 0);
	for (i = 0; i < READERS; i++)
		os_thread_join(threads[i]);
	depot_idle(&depot);
	assert_int_equal(depot_usage(&depot).locks, 0);
	assert_int_equal(depot_usage(&depot).objects, 0);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(B4_3_requests_past_the_limit_wait_in_order),
		cmocka_unit_test(B4_3_one_request_follows_another),
		cmocka_unit_test(B4_3_bytes_of_host_bound_what_is_in_flight),
		cmocka_unit_test(B4_1_a_full_queue_refuses_and_results_keep_their_place),
		cmocka_unit_test(who_asks_again_at_once_holds_up_no_other),
		cmocka_unit_test(B4_1_bad_requests_are_refused),
		cmocka_unit_test(limits_are_checked_by_name),
		cmocka_unit_test(a_host_without_a_client_left_is_no_host_for_it),
		cmocka_unit_test(B4_5_a_submission_returns_at_once),
		cmocka_unit_test(B4_5_what_is_not_planned_is_unlocked_before_loads_start),
		cmocka_unit_test(B4_2_where_host_has_no_room_the_prefix_is_shorter),
		cmocka_unit_test(room_is_made_of_what_nobody_reads),
		cmocka_unit_test(a_shorter_prefix_takes_its_window_along),
		cmocka_unit_test(a_key_that_comes_again_ends_the_prefix),
		cmocka_unit_test(what_a_policy_says_wrongly_is_passed_over_and_counted),
		cmocka_unit_test(an_adapter_that_came_is_asked_from_then_on),
		cmocka_unit_test(an_adapter_that_leaves_during_a_lookup_is_not_planned),
		cmocka_unit_test(an_adapter_that_leaves_during_a_load_stays_until_it_is_over),
		cmocka_unit_test(a_store_in_cooldown_is_a_miss),
		cmocka_unit_test(B4_1_requests_come_from_any_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
