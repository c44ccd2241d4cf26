/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines, leases, and I/O that outlives both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "hoist.h"

static struct hoist hoist;

static int setup(void **state)
{
	(void)state;
	hoist_open_stored(&hoist, &hoist_limits);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	hoist_close(&hoist);
	return 0;
}

static void A3_12_a_deadline_covers_both_ops_and_ends_the_wait_alone(void **state)
{
	struct lease lease;
	struct op    op;

	(void)state;
	lease = hoist_ask(&hoist, 0, 16);
	assert_int_equal(transfer_wake_ns(hoist.transfer), 1001);
	hoist.tick.now_ns = 600;
	hoist_serve(&hoist);
	op = hoist_last_op(&hoist);
	assert_int_equal(op.kind, OP_GET);
	assert_int_equal(transfer_wake_ns(hoist.transfer), 1001);
	hoist.tick.now_ns = 1000;
	hoist_tick(&hoist);
	assert_int_equal(transfer_out(hoist.transfer)->wake_count, 0);
	hoist.tick.now_ns = 1001;
	hoist_tick(&hoist);
	hoist_expect_wake(&hoist, lease, READ_DEADLINE);
	hoist_expect_cancel(&hoist, op.op_id);
	assert_int_equal(hoist_counter(&hoist, TRANSFER_SOFT_TIMEOUTS), 1);
	/* The buffers are I/O's until the fact. */
	assert_int_equal(transfer_load(hoist.transfer).host_refs, op.key_count);
	assert_int_equal(transfer_load(hoist.transfer).waiting, 1);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &op));
	assert_int_equal(transfer_out(hoist.transfer)->wake_count, 0);
	assert_int_equal(hoist_find(&hoist, 0, HOIST_FULL, 0), BLOCK_NULL);
	assert_int_equal(hoist_counter(&hoist, TRANSFER_DISCARDED), op.key_count);
	hoist_expect_home(&hoist);
}

static void A7_5_a_read_that_expires_on_the_tick_of_its_fact_publishes_nothing(void **state)
{
	const struct op    op = hoist_get(&hoist, 0, 16);
	const struct lease lease = hoist.lease;

	(void)state;
	hoist.tick.now_ns = 1001;
	hoist_tick_of(&hoist, hoist_answer(&hoist, &op));
	hoist_expect_wake(&hoist, lease, READ_DEADLINE);
	assert_int_equal(hoist_find(&hoist, 0, HOIST_FULL, 0), BLOCK_NULL);
	hoist_expect_home(&hoist);
}

static void A7_5_a_cancellation_of_the_round_comes_before_its_facts(void **state)
{
	const struct op   op = hoist_get(&hoist, 0, 16);
	const struct tick late = { .now_ns = 2, .permits = { true, true } };
	struct tick       tick = late;
	struct fact       fact = hoist_answer(&hoist, &op);

	(void)state;
	tick.facts = &fact;
	tick.fact_count = 1;
	transfer_begin(hoist.transfer);
	transfer_drop_lease(hoist.transfer, hoist.lease);
	transfer_tick(hoist.transfer, &tick);
	assert_int_equal(transfer_out(hoist.transfer)->wake_count, 0);
	assert_int_equal(hoist_find(&hoist, 0, HOIST_FULL, 0), BLOCK_NULL);
	hoist_expect_home(&hoist);
}

static void A3_9_a_hold_ends_by_itself_or_with_its_lease(void **state)
{
	struct lease lease;

	(void)state;
	hoist_get(&hoist, 0, 16);
	lease = hoist.lease;
	hoist.tick.now_ns = 100;
	hoist_serve(&hoist);
	hoist_expect_wake(&hoist, lease, READ_READY);
	assert_int_equal(transfer_load(hoist.transfer).ready, 1);
	assert_int_equal(transfer_load(hoist.transfer).waiting, 0);
	assert_int_equal(transfer_wake_ns(hoist.transfer), 600);
	hoist.tick.now_ns = 599;
	hoist_tick(&hoist);
	assert_int_equal(transfer_load(hoist.transfer).ready, 1);
	hoist.tick.now_ns = 600;
	hoist_tick(&hoist);
	assert_int_equal(transfer_out(hoist.transfer)->wake_count, 0);
	assert_int_equal(hoist_counter(&hoist, TRANSFER_EXPIRED_HOLDS), 1);
	assert_int_equal(hoist_counter(&hoist, TRANSFER_SOFT_TIMEOUTS), 0);
	assert_int_not_equal(hoist_find(&hoist, 0, HOIST_FULL, 3), BLOCK_NULL);
	hoist_expect_home(&hoist);
	transfer_drop_lease(hoist.transfer, lease);
	hoist_expect_home(&hoist);
}

static void A2_4_a_lease_may_go_at_any_time_and_stale_ones_are_harmless(void **state)
{
	struct lease lease, none = { 0 };
	uint32_t     block;
	struct op    query, op;

	(void)state;
	transfer_drop_lease(hoist.transfer, none);
	lease = hoist_ask(&hoist, 0, 16);
	query = hoist_last_op(&hoist);
	transfer_drop_lease(hoist.transfer, lease);
	transfer_drop_lease(hoist.transfer, lease);
	hoist_expect_cancel(&hoist, query.op_id);
	assert_int_equal(hoist_op_count(&hoist), 2);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &query));
	assert_int_equal(hoist_op_count(&hoist), 0);
	hoist_expect_home(&hoist);
	/* The ticket serves another read now. */
	op = hoist_get(&hoist, 1, 16);
	transfer_drop_lease(hoist.transfer, lease);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &op));
	hoist_expect_wake(&hoist, hoist.lease, READ_READY);
	transfer_drop_lease(hoist.transfer, lease);
	assert_int_equal(transfer_load(hoist.transfer).ready, 1);
	block = hoist_find(&hoist, 1, HOIST_FULL, 3);
	assert_true(transfer_fetched(hoist.transfer, hoist.lease, HOIST_FULL, block));
	assert_false(transfer_fetched(hoist.transfer, lease, HOIST_FULL, block));
	transfer_drop_lease(hoist.transfer, hoist.lease);
	hoist_expect_home(&hoist);
}

static void A2_6_unretired_blocks_stay_until_the_notice(void **state)
{
	const struct op    op = hoist_get(&hoist, 0, 16);
	const struct lease lease = hoist.lease;
	struct fact        fact = hoist_answer(&hoist, &op);

	(void)state;
	fact.retired = false;
	hoist_tick_of(&hoist, fact);
	hoist_expect_wake(&hoist, lease, READ_QUARANTINE);
	transfer_drop_lease(hoist.transfer, lease);
	assert_int_equal(transfer_load(hoist.transfer).quarantined, 1);
	assert_int_equal(transfer_load(hoist.transfer).host_refs, op.key_count);
	assert_int_equal(hoist_find(&hoist, 0, HOIST_FULL, 0), BLOCK_NULL);
	assert_int_equal(hoist_pin_all(&hoist, HOIST_FULL), 24 - op.key_count);
	hoist.tick.now_ns = 100000;
	hoist_tick(&hoist);
	assert_int_equal(hoist_read(&hoist, 1, 16), READ_QUARANTINE);
	hoist_notice(&hoist, op.op_id);
	hoist_tick(&hoist);
	hoist_expect_home(&hoist);
	assert_int_equal(hoist_pin_all(&hoist, HOIST_FULL), op.key_count);
}

static void doubt_of_the_same_tick_stops_a_get(void **state)
{
	const struct op    get = hoist_get(&hoist, 0, 16);
	const struct lease lease = hoist_ask(&hoist, 1, 16);
	const struct op    query = hoist_last_op(&hoist);
	struct fact        fact = hoist_answer(&hoist, &query);

	(void)state;
	/* In order of ids the answer of the older op comes first; whatever the order, no GET goes out. */
	hoist_fact(&hoist, &fact);
	fact = hoist_answer(&hoist, &get);
	fact.retired = false;
	hoist_fact(&hoist, &fact);
	hoist_tick(&hoist);
	assert_int_equal(hoist_op_count(&hoist), 0);
	assert_int_equal(transfer_out(hoist.transfer)->wake_count, 2);
	assert_int_equal(transfer_out(hoist.transfer)->wakes[1].lease.id, lease.id);
	assert_int_equal(transfer_out(hoist.transfer)->wakes[1].outcome, READ_QUARANTINE);
}

static void a_query_leaves_no_doubt_behind(void **state)
{
	const struct lease lease = hoist_ask(&hoist, 0, 16);
	const struct op    op = hoist_last_op(&hoist);
	struct fact        fact;

	(void)state;
	fact_init(&fact, &op);
	fact.reason = OP_REASON_BACKEND;
	hoist_tick_of(&hoist, fact);
	hoist_expect_wake(&hoist, lease, READ_BACKEND);
	hoist_expect_home(&hoist);
}

static void no_deadline_is_never_reached(void **state)
{
	struct transfer_limits limits = hoist_limits;

	(void)state;
	limits.deadline_ns = UINT64_MAX;
	limits.hold_ns = UINT64_MAX;
	hoist_close(&hoist);
	hoist_open_plain(&hoist, hoist_full_state, &limits);
	hoist_store(&hoist, 0, HOIST_FULL, 0, 4);
	hoist_store(&hoist, 0, HOIST_STATE, 0, 4);
	hoist_get(&hoist, 0, 16);
	assert_int_equal(transfer_wake_ns(hoist.transfer), UINT64_MAX);
	hoist.tick.now_ns = UINT64_MAX - 1;
	hoist_serve(&hoist);
	hoist_expect_wake(&hoist, hoist.lease, READ_READY);
	hoist_tick(&hoist);
	assert_int_equal(transfer_load(hoist.transfer).ready, 1);
}

static void A3_5_ids_strictly_increase_and_are_never_used_again(void **state)
{
	uint64_t last_id = 0;
	uint32_t i;

	(void)state;
	for (i = 0; i < 10; i++) {
		struct lease lease;
		struct op    op = hoist_get(&hoist, 0, 16);

		lease = hoist.lease;
		assert_true(lease.id > last_id);
		assert_true(op.op_id > lease.id);
		last_id = op.op_id;
		transfer_drop_lease(hoist.transfer, lease);
		hoist_tick_of(&hoist, hoist_answer(&hoist, &op));
		assert_null(transfer_find(hoist.transfer, op.op_id));
		hoist_publish(&hoist, 0, HOIST_FULL, 20 + i);
		hoist_offer(&hoist, 0, HOIST_FULL, 20 + i);
		hoist_tick(&hoist);
		op = hoist_last_op(&hoist);
		assert_true(op.kind == OP_PUT && op.op_id > last_id);
		last_id = op.op_id;
		hoist_serve(&hoist);
		hoist_expect_home(&hoist);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(A3_12_a_deadline_covers_both_ops_and_ends_the_wait_alone),
		TEST(A7_5_a_read_that_expires_on_the_tick_of_its_fact_publishes_nothing),
		TEST(A7_5_a_cancellation_of_the_round_comes_before_its_facts),
		TEST(A3_9_a_hold_ends_by_itself_or_with_its_lease),
		TEST(A2_4_a_lease_may_go_at_any_time_and_stale_ones_are_harmless),
		TEST(A2_6_unretired_blocks_stay_until_the_notice),
		TEST(doubt_of_the_same_tick_stops_a_get),
		TEST(a_query_leaves_no_doubt_behind),
		TEST(no_deadline_is_never_reached),
		TEST(A3_5_ids_strictly_increase_and_are_never_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
