/* SPDX-License-Identifier: Apache-2.0 */
/* The write transaction: who is offered, who is dropped and why, what a PUT holds, and how much of it. */
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
	hoist_open_plain(&hoist, hoist_full_state, &hoist_limits);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	hoist_close(&hoist);
	return 0;
}

static void reopen(const struct transfer_limits *limits)
{
	hoist_close(&hoist);
	hoist_open_plain(&hoist, hoist_full_state, limits);
}

static uint64_t drops(enum backup_drop reason)
{
	return transfer_counts(hoist.transfer).drops[reason];
}

static uint64_t all_drops(void)
{
	uint64_t all = 0;
	uint32_t reason;

	for (reason = 0; reason < BACKUP_DROP_COUNT; reason++)
		all += drops((enum backup_drop)reason);
	return all;
}

static void publish_and_offer(uint32_t first, uint32_t end)
{
	for (; first < end; first++) {
		hoist_publish(&hoist, 0, HOIST_FULL, first);
		hoist_offer(&hoist, 0, HOIST_FULL, first);
	}
}

static void A4_3_a_put_holds_its_sources_until_it_retired(void **state)
{
	struct fact fact;
	struct op   op;

	(void)state;
	publish_and_offer(0, 2);
	hoist_tick(&hoist);
	op = hoist_last_op(&hoist);
	assert_int_equal(op.kind, OP_PUT);
	assert_int_equal(op.key_count, 2);
	assert_int_equal(transfer_load(hoist.transfer).put_refs, 2);
	assert_int_equal(hoist_pin_all(&hoist, HOIST_FULL), 22);
	assert_int_not_equal(hoist_find(&hoist, 0, HOIST_FULL, 1), BLOCK_NULL);
	/* A retired failure leaves the entry usable. */
	fact_refused(&fact, &op, OP_REASON_BACKEND);
	hoist_tick_of(&hoist, fact);
	assert_int_equal(drops(BACKUP_FAILED), 2);
	assert_int_not_equal(hoist_find(&hoist, 0, HOIST_FULL, 1), BLOCK_NULL);
	assert_int_equal(transfer_load(hoist.transfer).tickets, 0);
	assert_int_equal(hoist_pin_all(&hoist, HOIST_FULL), 2);
}

static void A4_2_candidates_pin_nothing_and_the_evicted_are_skipped(void **state)
{
	(void)state;
	publish_and_offer(0, 2);
	assert_int_equal(hoist_pin_all(&hoist, HOIST_FULL), 24);
	hoist_tick(&hoist);
	assert_int_equal(hoist_op_count(&hoist), 0);
	assert_int_equal(drops(BACKUP_GONE), 2);
	assert_int_equal(transfer_load(hoist.transfer).tickets, 0);
}

static void A4_4_backups_get_half_of_each_ledger_rounded_down(void **state)
{
	static const struct {
		uint32_t credits, half;
	} cases[] = { { 1, 0 }, { 2, 1 }, { 3, 1 }, { 5, 2 } };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		struct transfer_limits limits = hoist_limits;

		limits.op_credits = cases[i].credits;
		limits.put_keys_max = 1;
		reopen(&limits);
		publish_and_offer(0, 4);
		hoist_tick(&hoist);
		assert_int_equal(transfer_load(hoist.transfer).put_tickets, cases[i].half);
		assert_int_equal(transfer_load(hoist.transfer).backups,
				 cases[i].half ? 4 - cases[i].half : 0);
		assert_int_equal(drops(BACKUP_DISABLED), cases[i].half ? 0 : 4);
		assert_int_equal(hoist_read(&hoist, 1, 16), READ_ASKED);

		limits = hoist_limits;
		limits.host_credits = cases[i].credits;
		reopen(&limits);
		publish_and_offer(0, 4);
		hoist_tick(&hoist);
		assert_int_equal(transfer_load(hoist.transfer).put_refs, cases[i].half);
		assert_int_equal(transfer_load(hoist.transfer).backups,
				 cases[i].half ? 4 - cases[i].half : 0);
		assert_int_equal(drops(BACKUP_DISABLED), cases[i].half ? 0 : 4);
	}
}

static void A4_4_short_credits_leave_candidates_queued(void **state)
{
	struct transfer_limits limits = hoist_limits;

	(void)state;
	limits.host_credits = 4;
	reopen(&limits);
	publish_and_offer(0, 5);
	hoist_tick(&hoist);
	assert_int_equal(hoist_last_op(&hoist).key_count, 2);
	hoist_serve(&hoist);
	assert_int_equal(hoist_last_op(&hoist).key_count, 2);
	hoist_serve(&hoist);
	assert_int_equal(hoist_last_op(&hoist).key_count, 1);
	hoist_serve(&hoist);
	assert_int_equal(all_drops(), 0);
	assert_int_equal(hoist.name_count, 5);
	assert_int_equal(transfer_counts(hoist.transfer).counters[TRANSFER_PUTS], 3);
}

static void A4_4_reads_may_take_all_and_then_backups_wait(void **state)
{
	struct transfer_limits limits = hoist_limits;

	(void)state;
	limits.host_credits = 5;
	reopen(&limits);
	hoist_store(&hoist, 0, HOIST_FULL, 0, 4);
	hoist_store(&hoist, 0, HOIST_STATE, 3, 4);
	assert_int_equal(hoist_get(&hoist, 0, 16).key_count, 5);
	hoist_publish(&hoist, 1, HOIST_FULL, 3);
	hoist_offer(&hoist, 1, HOIST_FULL, 3);
	hoist_tick(&hoist);
	assert_int_equal(hoist_op_count(&hoist), 0);
	assert_int_equal(transfer_load(hoist.transfer).backups, 1);
	transfer_drop_lease(hoist.transfer, hoist.lease);
	assert_int_equal(all_drops(), 0);
}

static void A4_5_a_full_queue_drops_its_oldest(void **state)
{
	uint32_t i;

	(void)state;
	publish_and_offer(0, 10);
	assert_int_equal(drops(BACKUP_OVERFLOW), 2);
	hoist_tick(&hoist);
	for (i = 0; i < 2; i++) {
		const struct kvs_key key = hoist_key(&hoist, 0, HOIST_FULL, 2 + 4 * i);

		assert_memory_equal(&transfer_out(hoist.transfer)->ops[i].keys[0], &key, sizeof(key));
	}
}

static void A4_5_a_candidate_of_a_pending_put_is_no_loss(void **state)
{
	(void)state;
	publish_and_offer(0, 1);
	hoist_tick(&hoist);
	hoist_offer(&hoist, 0, HOIST_FULL, 0);
	hoist_tick(&hoist);
	assert_int_equal(hoist_op_count(&hoist), 0);
	assert_int_equal(transfer_load(hoist.transfer).backups, 0);
	assert_int_equal(transfer_counts(hoist.transfer).counters[TRANSFER_COALESCED], 1);
	assert_int_equal(all_drops(), 0);
}

static void A4_5_what_the_store_has_no_space_for_is_dropped_as_such(void **state)
{
	struct fact fact;
	struct op   op;

	(void)state;
	publish_and_offer(0, 3);
	hoist_tick(&hoist);
	op = hoist_last_op(&hoist);
	fact_refused(&fact, &op, OP_REASON_NO_SPACE);
	bits_set(fact.ok.words, 1);
	hoist_tick_of(&hoist, fact);
	assert_int_equal(drops(BACKUP_NO_SPACE), 2);
	assert_int_equal(all_drops(), 2);
	/* It may be offered again. */
	hoist_offer(&hoist, 0, HOIST_FULL, 0);
	hoist_tick(&hoist);
	assert_int_equal(hoist_last_op(&hoist).key_count, 1);
}

static void a_loop_learns_that_a_candidate_may_start(void **state)
{
	struct transfer_limits limits = hoist_limits;

	(void)state;
	limits.op_credits = 2;
	reopen(&limits);
	assert_true(transfer_wake_ns(hoist.transfer) == UINT64_MAX);
	publish_and_offer(0, 5);
	assert_int_equal(transfer_wake_ns(hoist.transfer), hoist.tick.now_ns);
	hoist_tick(&hoist);
	/* One is left, and waits for the credit. */
	assert_int_equal(transfer_load(hoist.transfer).backups, 1);
	assert_true(transfer_wake_ns(hoist.transfer) == UINT64_MAX);
	hoist_serve(&hoist);
	assert_int_equal(transfer_load(hoist.transfer).backups, 0);
}

static void discarded_candidates_are_cleanup(void **state)
{
	(void)state;
	publish_and_offer(0, 3);
	transfer_discard_backups(hoist.transfer);
	assert_int_equal(drops(BACKUP_CLEANUP), 3);
	hoist_tick(&hoist);
	assert_int_equal(hoist_op_count(&hoist), 0);
}

static void an_unretired_put_keeps_its_sources_until_the_notice(void **state)
{
	struct fact fact;
	struct op   op;

	(void)state;
	publish_and_offer(0, 2);
	hoist_tick(&hoist);
	op = hoist_last_op(&hoist);
	fact = hoist_answer(&hoist, &op);
	fact.retired = false;
	bits_clear(fact.ok.words, 1);
	hoist_tick_of(&hoist, fact);
	assert_int_equal(hoist_drops(&hoist, BACKUP_FAILED), 1);
	assert_int_equal(transfer_load(hoist.transfer).quarantined, 1);
	assert_int_equal(transfer_load(hoist.transfer).put_refs, 2);
	hoist_offer(&hoist, 0, HOIST_FULL, 0);
	hoist_tick(&hoist);
	assert_int_equal(hoist_op_count(&hoist), 0);
	assert_int_equal(transfer_load(hoist.transfer).backups, 1);
	hoist_notice(&hoist, op.op_id);
	hoist_tick(&hoist);
	assert_int_equal(hoist_last_op(&hoist).kind, OP_PUT);
	assert_int_equal(transfer_load(hoist.transfer).quarantined, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(A4_3_a_put_holds_its_sources_until_it_retired),
		TEST(A4_2_candidates_pin_nothing_and_the_evicted_are_skipped),
		TEST(A4_4_backups_get_half_of_each_ledger_rounded_down),
		TEST(A4_4_short_credits_leave_candidates_queued),
		TEST(A4_4_reads_may_take_all_and_then_backups_wait),
		TEST(A4_5_a_full_queue_drops_its_oldest),
		TEST(A4_5_a_candidate_of_a_pending_put_is_no_loss),
		TEST(A4_5_what_the_store_has_no_space_for_is_dropped_as_such),
		TEST(a_loop_learns_that_a_candidate_may_start),
		TEST(discarded_candidates_are_cleanup),
		TEST(an_unretired_put_keeps_its_sources_until_the_notice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
