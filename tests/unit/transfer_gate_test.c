/* SPDX-License-Identifier: Apache-2.0 */
/* The gate of pressure, freezes, and the intent to maintain. */
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
	struct transfer_limits limits = hoist_limits;

	(void)state;
	limits.marks = (struct watermarks){ 8, 3, 8, 3, 8, 3 };
	hoist_open_stored(&hoist, &limits);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	hoist_close(&hoist);
	return 0;
}

/* One observation at a time, with the others at rest. */
static void observe(uint32_t which, uint64_t value)
{
	hoist.tick.pressure = (struct pressure){ .queued_jobs = which == 0 ? (uint32_t)value : 0,
						 .queued_bytes = which == 1 ? value : 0,
						 .oldest_ns = which == 2 ? value : 0 };
	hoist_tick(&hoist);
}

static bool closed(void)
{
	return transfer_load(hoist.transfer).gate_closed;
}

static void A6_1_the_gate_closes_at_high_and_opens_at_low(void **state)
{
	uint32_t which;

	(void)state;
	for (which = 0; which < 3; which++) {
		observe(which, 7);
		assert_false(closed());
		observe(which, 8);
		assert_true(closed());
		observe(which, 7);
		assert_true(closed());
		observe(which, 4);
		assert_true(closed());
		observe(which, 3);
		assert_false(closed());
	}
	assert_int_equal(hoist_counter(&hoist, TRANSFER_GATE_CLOSURES), 3);
}

static void A6_1_any_observation_closes_and_all_must_be_low_to_open(void **state)
{
	(void)state;
	hoist.tick.pressure = (struct pressure){ 8, 4, 4 };
	hoist_tick(&hoist);
	assert_true(closed());
	hoist.tick.pressure = (struct pressure){ 0, 4, 0 };
	hoist_tick(&hoist);
	assert_true(closed());
	hoist.tick.pressure = (struct pressure){ 3, 3, 4 };
	hoist_tick(&hoist);
	assert_true(closed());
	hoist.tick.pressure = (struct pressure){ 3, 3, 3 };
	hoist_tick(&hoist);
	assert_false(closed());
}

static void marks_of_zero_close_nothing(void **state)
{
	(void)state;
	hoist_close(&hoist);
	hoist_open_plain(&hoist, hoist_full_state, &hoist_limits);
	hoist.tick.pressure = (struct pressure){ UINT32_MAX, UINT64_MAX, UINT64_MAX };
	hoist_tick(&hoist);
	assert_false(closed());
}

static void A6_2_closing_lets_queries_go_and_leaves_gets_holds_and_puts(void **state)
{
	const struct op get = hoist_get(&hoist, 0, 16);
	const struct lease reader = hoist.lease;
	struct lease       asker;
	struct op          query, put;

	(void)state;
	hoist_publish(&hoist, 2, HOIST_FULL, 9);
	hoist_offer(&hoist, 2, HOIST_FULL, 9);
	hoist_tick(&hoist);
	put = hoist_last_op(&hoist);
	assert_int_equal(put.kind, OP_PUT);
	asker = hoist_ask(&hoist, 1, 16);
	query = hoist_last_op(&hoist);
	observe(0, 8);
	hoist_expect_wake(&hoist, asker, READ_PRESSURE);
	hoist_expect_cancel(&hoist, query.op_id);
	assert_int_equal(hoist_op_count(&hoist), 1);
	assert_int_equal(hoist_counter(&hoist, TRANSFER_PRESSURE_BYPASSES), 1);
	/* The answer may not reserve any more, even where it comes. */
	hoist_tick_of(&hoist, hoist_answer(&hoist, &query));
	assert_int_equal(hoist_op_count(&hoist), 0);
	/* What was submitted goes its way. */
	hoist_tick_of(&hoist, hoist_answer(&hoist, &get));
	hoist_expect_wake(&hoist, reader, READ_READY);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &put));
	assert_int_equal(transfer_load(hoist.transfer).ready, 1);
	assert_true(closed());
	transfer_drop_lease(hoist.transfer, reader);
	hoist_expect_home(&hoist);
}

static void A6_2_an_answer_on_the_tick_of_the_closure_reserves_nothing(void **state)
{
	const struct lease lease = hoist_ask(&hoist, 0, 16);
	const struct op    query = hoist_last_op(&hoist);
	const struct fact  fact = hoist_answer(&hoist, &query);

	(void)state;
	hoist_fact(&hoist, &fact);
	observe(1, 8);
	hoist_expect_wake(&hoist, lease, READ_PRESSURE);
	hoist_expect_home(&hoist);
}

static void A6_2_closed_refuses_reads_and_offers_and_replays_nothing(void **state)
{
	(void)state;
	hoist_publish(&hoist, 2, HOIST_FULL, 9);
	hoist_offer(&hoist, 2, HOIST_FULL, 9);
	observe(2, 8);
	assert_int_equal(hoist_drops(&hoist, BACKUP_PRESSURE), 1);
	assert_int_equal(hoist_op_count(&hoist), 0);
	hoist_offer(&hoist, 2, HOIST_FULL, 9);
	assert_int_equal(hoist_drops(&hoist, BACKUP_PRESSURE), 2);
	assert_int_equal(hoist_counter(&hoist, TRANSFER_PRESSURE_DROPS), 2);
	assert_int_equal(hoist_read(&hoist, 0, 16), READ_PRESSURE);
	assert_int_equal(hoist_counter(&hoist, TRANSFER_PRESSURE_BYPASSES), 1);
	observe(2, 0);
	assert_int_equal(hoist_op_count(&hoist), 0);
	assert_int_equal(hoist_read(&hoist, 0, 16), READ_ASKED);
}

static void A6_4_pressure_does_not_end_quarantine_nor_the_other_way(void **state)
{
	const struct op op = hoist_get(&hoist, 0, 16);
	struct fact     fact = hoist_answer(&hoist, &op);

	(void)state;
	fact.retired = false;
	hoist_fact(&hoist, &fact);
	observe(0, 8);
	observe(0, 0);
	assert_int_equal(transfer_load(hoist.transfer).quarantined, 1);
	observe(0, 8);
	hoist_notice(&hoist, op.op_id);
	hoist_tick(&hoist);
	assert_true(closed());
	hoist_expect_home(&hoist);
}

static void A4_7_drops_for_other_reasons_are_not_pressure(void **state)
{
	(void)state;
	hoist_offer(&hoist, 2, HOIST_FULL, 9);
	hoist_tick(&hoist);
	assert_int_equal(hoist_drops(&hoist, BACKUP_GONE), 1);
	assert_int_equal(hoist_counter(&hoist, TRANSFER_PRESSURE_DROPS), 0);
}

/* --- freezes ---------------------------------------------------------------------------------- */

static void A7_7_a_frozen_round_completes_and_expires_and_submits_nothing(void **state)
{
	const struct op    get = hoist_get(&hoist, 0, 16);
	const struct lease reader = hoist.lease;
	struct lease       asker;
	struct op          query;

	(void)state;
	asker = hoist_ask(&hoist, 1, 16);
	query = hoist_last_op(&hoist);
	hoist_publish(&hoist, 2, HOIST_FULL, 9);
	hoist_offer(&hoist, 2, HOIST_FULL, 9);
	hoist.tick.permits.storage = false;
	hoist_tick_of(&hoist, hoist_answer(&hoist, &get));
	hoist_expect_wake(&hoist, reader, READ_READY);
	assert_int_equal(hoist_op_count(&hoist), 0);
	assert_int_equal(hoist_drops(&hoist, BACKUP_CLEANUP), 1);
	hoist_offer(&hoist, 2, HOIST_FULL, 9);
	assert_int_equal(hoist_drops(&hoist, BACKUP_CLEANUP), 2);
	assert_int_equal(hoist_read(&hoist, 2, 16), READ_FROZEN);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &query));
	hoist_expect_wake(&hoist, asker, READ_FROZEN);
	assert_int_equal(hoist_op_count(&hoist), 0);
	hoist.tick.now_ns = 10000;
	hoist_tick(&hoist);
	assert_int_equal(hoist_counter(&hoist, TRANSFER_EXPIRED_HOLDS), 1);
	hoist_expect_home(&hoist);
	hoist.tick.permits.storage = true;
	hoist_tick(&hoist);
	assert_int_equal(hoist_op_count(&hoist), 0);
	assert_int_equal(hoist_read(&hoist, 2, 16), READ_ASKED);
}

static void A7_7_a_freeze_of_forward_work_alone_stops_no_storage(void **state)
{
	(void)state;
	hoist.tick.permits.forward = false;
	hoist_tick(&hoist);
	assert_int_equal(hoist_get(&hoist, 0, 16).kind, OP_GET);
}

/* --- maintenance ------------------------------------------------------------------------------ */

static void A8_5_an_intent_closes_reads_and_backups_until_taken_back(void **state)
{
	struct lease asker;
	struct op    query;

	(void)state;
	asker = hoist_ask(&hoist, 1, 16);
	query = hoist_last_op(&hoist);
	hoist_publish(&hoist, 2, HOIST_FULL, 9);
	hoist_offer(&hoist, 2, HOIST_FULL, 9);
	transfer_set_intent(hoist.transfer, true);
	assert_int_equal(transfer_wake_ns(hoist.transfer), hoist.tick.now_ns);
	assert_true(transfer_load(hoist.transfer).intent);
	assert_int_equal(hoist_drops(&hoist, BACKUP_CLEANUP), 1);
	hoist_offer(&hoist, 2, HOIST_FULL, 9);
	assert_int_equal(hoist_drops(&hoist, BACKUP_CLEANUP), 2);
	assert_int_equal(hoist_read(&hoist, 0, 16), READ_MAINTENANCE);
	hoist_tick(&hoist);
	hoist_expect_wake(&hoist, asker, READ_MAINTENANCE);
	hoist_expect_cancel(&hoist, query.op_id);
	assert_false(transfer_is_quiet(hoist.transfer));
	hoist_tick_of(&hoist, hoist_answer(&hoist, &query));
	assert_true(transfer_is_quiet(hoist.transfer));
	transfer_set_intent(hoist.transfer, false);
	hoist_tick(&hoist);
	assert_int_equal(hoist_read(&hoist, 0, 16), READ_ASKED);
	assert_int_equal(hoist_counter(&hoist, TRANSFER_PRESSURE_BYPASSES), 0);
}

static void an_intent_taken_back_within_the_round_lets_nobody_go(void **state)
{
	(void)state;
	hoist_ask(&hoist, 0, 16);
	transfer_set_intent(hoist.transfer, true);
	transfer_set_intent(hoist.transfer, false);
	hoist_tick(&hoist);
	assert_int_equal(transfer_out(hoist.transfer)->wake_count, 0);
}

static void A8_2_a_clear_is_refused_while_anything_is_outstanding(void **state)
{
	const struct prefix_hash tail = hoist_tail(&hoist, 18);
	struct lease             lease;
	struct op                op;
	struct fact              fact;

	(void)state;
	transfer_record_tail(hoist.transfer, &hoist.box.space, &hoist.hashes[0][3], 2, &tail);
	lease = hoist_ask(&hoist, 0, 16);
	assert_false(transfer_clear(hoist.transfer));
	hoist_serve(&hoist);
	op = hoist_last_op(&hoist);
	assert_false(transfer_clear(hoist.transfer));
	hoist_tick_of(&hoist, hoist_answer(&hoist, &op));
	assert_int_equal(transfer_load(hoist.transfer).ready, 1);
	assert_false(transfer_clear(hoist.transfer));
	transfer_drop_lease(hoist.transfer, lease);
	hoist_offer(&hoist, 0, HOIST_FULL, 0);
	hoist_tick(&hoist);
	op = hoist_last_op(&hoist);
	assert_false(transfer_clear(hoist.transfer));
	fact = hoist_answer(&hoist, &op);
	fact.retired = false;
	hoist_tick_of(&hoist, fact);
	assert_false(transfer_clear(hoist.transfer));
	hoist_offer(&hoist, 0, HOIST_FULL, 1);
	assert_int_equal(transfer_tails(hoist.transfer)->age.count, 1);
	hoist_notice(&hoist, op.op_id);
	hoist.tick.permits.storage = false;
	hoist_tick(&hoist);
	assert_true(transfer_clear(hoist.transfer));
	assert_int_equal(transfer_tails(hoist.transfer)->age.count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(A6_1_the_gate_closes_at_high_and_opens_at_low),
		TEST(A6_1_any_observation_closes_and_all_must_be_low_to_open),
		TEST(marks_of_zero_close_nothing),
		TEST(A6_2_closing_lets_queries_go_and_leaves_gets_holds_and_puts),
		TEST(A6_2_an_answer_on_the_tick_of_the_closure_reserves_nothing),
		TEST(A6_2_closed_refuses_reads_and_offers_and_replays_nothing),
		TEST(A6_4_pressure_does_not_end_quarantine_nor_the_other_way),
		TEST(A4_7_drops_for_other_reasons_are_not_pressure),
		TEST(A7_7_a_frozen_round_completes_and_expires_and_submits_nothing),
		TEST(A7_7_a_freeze_of_forward_work_alone_stops_no_storage),
		TEST(A8_5_an_intent_closes_reads_and_backups_until_taken_back),
		TEST(an_intent_taken_back_within_the_round_lets_nobody_go),
		TEST(A8_2_a_clear_is_refused_while_anything_is_outstanding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
