/* SPDX-License-Identifier: Apache-2.0 */
/* The write transaction: what waits owns nothing, what is put is held, half of the credits is all it gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mono_transfer_rig.h"

#define HOST_BLOCKS 16u

static struct rig rig;

static int rig_setup(void **state)
{
	(void)state;
	rig_open(&rig, &rig_limits, HOST_BLOCKS);
	return 0;
}

static int rig_teardown(void **state)
{
	(void)state;
	rig_audit(&rig);
	rig_close(&rig);
	return 0;
}

static void reopen(const struct mono_transfer_limits *limits)
{
	rig_close(&rig);
	rig_open(&rig, limits, HOST_BLOCKS);
}

static void offer(uint32_t number)
{
	const struct kvs_key key = key_of(number);

	mono_transfer_offer(&rig.transfer, &key);
}

static void publish_and_offer(uint32_t first, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		rig_publish(&rig, first + i);
		offer(first + i);
	}
}

/* PUTs among the round's ops, and their keys. */
static uint32_t puts_of_round(uint32_t *ret_key_count)
{
	uint32_t count = 0;
	uint32_t i;

	*ret_key_count = 0;
	for (i = 0; i < rig.transfer.out.op_count; i++) {
		const struct op *const op = &rig.transfer.out.ops[i];

		if (op->kind != OP_PUT)
			continue;
		count++;
		*ret_key_count += op->key_count;
	}
	return count;
}

/* Ask for room until the key is gone, or all idle entries are. */
static bool evict(uint32_t number)
{
	const struct kvs_key key = key_of(number);
	uint32_t             taken[HOST_BLOCKS];
	uint32_t             count = 0;

	while (stratum_find(&rig.coord.host, &key) != SLOT_NONE &&
	       (taken[count] = stratum_acquire(&rig.coord.host)) != SLOT_NONE)
		count++;
	while (count > 0)
		stratum_unpin(&rig.coord.host, taken[--count]);
	return stratum_find(&rig.coord.host, &key) == SLOT_NONE;
}

/* --- half of the credits ------------------------------------------------------------- */

static const uint32_t credits[] = { 1, 2, 3, 5 };
static const uint32_t halves[] = { 0, 1, 1, 2 };

static void A4_4_backups_hold_at_most_half_of_the_op_credits(void **state)
{
	struct mono_transfer_limits limits = rig_limits;
	uint32_t                    key_count;
	size_t                      i;

	(void)state;
	limits.put_keys_max = 1;
	for (i = 0; i < ARRAY_COUNT(credits); i++) {
		limits.op_credits = credits[i];
		reopen(&limits);
		publish_and_offer(0, 6);
		rig_round(&rig, NULL, 0);
		assert_int_equal(puts_of_round(&key_count), halves[i]);
		assert_int_equal(rig.transfer.backups.count, halves[i] ? 6 - halves[i] : 0);
		assert_int_equal(rig.transfer.drops[MONO_TRANSFER_DROP_DISABLED],
				 halves[i] ? 0 : 6);
	}
}

static void A4_4_backups_hold_at_most_half_of_the_host_credits(void **state)
{
	struct mono_transfer_limits limits = rig_limits;
	uint32_t                    key_count;
	size_t                      i;

	(void)state;
	limits.op_credits = 64;
	for (i = 0; i < ARRAY_COUNT(credits); i++) {
		limits.host_credits = credits[i];
		reopen(&limits);
		publish_and_offer(0, 6);
		rig_round(&rig, NULL, 0);
		assert_int_equal(puts_of_round(&key_count), halves[i] > 0);
		assert_int_equal(key_count, halves[i]);
		assert_int_equal(rig.transfer.backups.count, halves[i] ? 6 - halves[i] : 0);
		assert_int_equal(rig.transfer.drops[MONO_TRANSFER_DROP_DISABLED],
				 halves[i] ? 0 : 6);
	}
}

static void A4_4_one_credit_admits_reads_only(void **state)
{
	struct mono_transfer_limits limits = rig_limits;
	uint64_t                    lease_id;

	(void)state;
	limits.op_credits = 1;
	limits.host_credits = 1;
	reopen(&limits);
	publish_and_offer(0, 1);
	assert_int_equal(rig.transfer.drops[MONO_TRANSFER_DROP_DISABLED], 1);
	assert_int_equal(rig_get(&rig, 0, 10, 1, &lease_id).key_count, 1);
	assert_int_equal(rig.transfer.host_refs, 1);
}

static void A4_4_short_credits_leave_candidates_queued(void **state)
{
	struct mono_transfer_limits limits = rig_limits;
	uint64_t                    leases[2];
	struct op                   ops[2];

	(void)state;
	limits.op_credits = 2;
	reopen(&limits);
	/* Reads may use all credits; the candidates wait and are not lost. */
	ops[0] = rig_get(&rig, 0, 10, 1, &leases[0]);
	ops[1] = rig_get(&rig, 1, 20, 1, &leases[1]);
	publish_and_offer(0, 3);
	rig_round(&rig, NULL, 0);
	assert_int_equal(rig.transfer.out.op_count, 0);
	assert_int_equal(rig.transfer.backups.count, 3);
	mono_transfer_drop_lease(&rig.transfer, leases[1]);
	rig_round_of(&rig, rig_fact(&ops[1], 0, true));
	assert_int_equal(rig_last_op(&rig).kind, OP_PUT);
	assert_int_equal(rig_last_op(&rig).key_count, 3);
	assert_int_equal(rig.transfer.backups.count, 0);
}

static void a_put_takes_no_host_credit_that_reads_hold(void **state)
{
	struct mono_transfer_limits limits = rig_limits;
	uint64_t                    lease_id;

	(void)state;
	limits.host_credits = 6;
	reopen(&limits);
	assert_int_equal(rig_get(&rig, 0, 10, 5, &lease_id).key_count, 5);
	publish_and_offer(0, 3);
	rig_round(&rig, NULL, 0);
	assert_int_equal(rig_last_op(&rig).key_count, 1);
	assert_int_equal(rig.transfer.host_refs, 6);
	assert_int_equal(rig.transfer.backups.count, 2);
}

/* --- the queue ------------------------------------------------------------- */

static void A4_5_a_full_queue_drops_its_oldest(void **state)
{
	const struct op *put;
	struct kvs_key   key = key_of(2);

	(void)state;
	publish_and_offer(0, rig_limits.backup_queue + 2);
	assert_int_equal(rig.transfer.backups.count, rig_limits.backup_queue);
	assert_int_equal(rig.transfer.drops[MONO_TRANSFER_DROP_OVERFLOW], 2);
	rig_round(&rig, NULL, 0);
	put = &rig.transfer.out.ops[0];
	assert_memory_equal(&put->keys[0], &key, sizeof(key));
	/* In order, by batches. */
	assert_int_equal(put->key_count, rig_limits.put_keys_max);
	key = key_of(2 + rig_limits.put_keys_max);
	assert_memory_equal(&rig.transfer.out.ops[1].keys[0], &key, sizeof(key));
}

static void A4_2_a_candidate_pins_nothing_and_is_skipped_once_evicted(void **state)
{
	struct kvs_key key;
	struct op      put;

	(void)state;
	publish_and_offer(0, 3);
	rig_audit(&rig);
	assert_int_equal(rig.transfer.host_refs, 0);
	assert_int_equal(stratum_room(&rig.coord.host), HOST_BLOCKS);
	assert_true(evict(0));
	rig_round(&rig, NULL, 0);
	put = rig_last_op(&rig);
	key = key_of(1);
	assert_int_equal(put.key_count, 2);
	assert_memory_equal(&put.keys[0], &key, sizeof(key));
	assert_int_equal(rig.transfer.drops[MONO_TRANSFER_DROP_GONE], 1);
}

static void A4_2_when_every_candidate_is_gone_nothing_is_charged(void **state)
{
	(void)state;
	offer(1);
	offer(2);
	rig_round(&rig, NULL, 0);
	assert_int_equal(rig.transfer.out.op_count, 0);
	assert_int_equal(rig.transfer.drops[MONO_TRANSFER_DROP_GONE], 2);
	assert_int_equal(rig.transfer.slots.busy_count, 0);
	assert_int_equal(rig.transfer.put_tickets, 0);
}

/* Two requests that compute one page at once offer it twice. */
static void A4_5_a_candidate_that_is_being_put_is_no_loss(void **state)
{
	uint32_t  key_count;
	struct op put;
	int       i;

	(void)state;
	publish_and_offer(0, 1);
	rig_round(&rig, NULL, 0);
	put = rig_last_op(&rig);
	offer(0);
	rig_round(&rig, NULL, 0);
	assert_int_equal(puts_of_round(&key_count), 0);
	assert_int_equal(rig.transfer.backups.count, 0);
	rig_round_of(&rig, rig_fact(&put, RIG_ALL_ROWS, true));
	/* Once it has retired, an offer counts again. */
	offer(0);
	rig_round(&rig, NULL, 0);
	assert_int_equal(puts_of_round(&key_count), 1);
	put = rig_last_op(&rig);
	rig_round_of(&rig, rig_fact(&put, RIG_ALL_ROWS, true));
	for (i = 0; i < MONO_TRANSFER_DROP_COUNT; i++)
		assert_int_equal(rig.transfer.drops[i], 0);
}

static void A4_5_a_stop_discards_what_waits_as_cleanup(void **state)
{
	(void)state;
	publish_and_offer(0, 3);
	mono_transfer_discard_backups(&rig.transfer);
	assert_int_equal(rig.transfer.drops[MONO_TRANSFER_DROP_CLEANUP], 3);
	rig_round(&rig, NULL, 0);
	assert_int_equal(rig.transfer.out.op_count, 0);
}

/* --- the PUT ------------------------------------------------------------- */

static void A4_3_sources_are_held_until_they_retire(void **state)
{
	struct op put;
	uint32_t  i;

	(void)state;
	publish_and_offer(0, 3);
	rig_round(&rig, NULL, 0);
	put = rig_last_op(&rig);
	assert_int_equal(put.kind, OP_PUT);
	assert_int_equal(bits_prefix(put.owned.words, OP_KEYS_MAX), 3);
	for (i = 0; i < 3; i++) {
		assert_ptr_equal(put.spans[i].ptr,
				 arena_block(&rig.part, rig_find(&rig, i)).ptr);
	}
	assert_int_equal(mono_transfer_in_flight(&rig.transfer), 1);
	rig.now_ns += 1000000;
	rig_round(&rig, NULL, 0);
	assert_false(evict(0));
	rig_round_of(&rig, rig_fact(&put, RIG_ALL_ROWS, true));
	assert_int_equal(rig.transfer.host_refs, 0);
	assert_int_equal(rig.transfer.put_host_refs, 0);
	assert_int_equal(rig.transfer.out.wake_count, 0);
	assert_true(evict(0));
}

static void A4_3_a_retired_failure_leaves_the_host_entry_and_is_counted_by_reason(void **state)
{
	static const struct {
		enum op_reason          reason;
		enum mono_transfer_drop drop;
	} cases[] = { { OP_REASON_NO_SPACE, MONO_TRANSFER_DROP_NO_SPACE },
		      { OP_REASON_BACKEND, MONO_TRANSFER_DROP_FAILED },
		      { OP_REASON_QUEUE, MONO_TRANSFER_DROP_FAILED } };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		const uint64_t before = rig.transfer.drops[cases[i].drop];
		struct fact    fact;
		struct op      put;

		publish_and_offer(0, 3);
		rig_round(&rig, NULL, 0);
		put = rig_last_op(&rig);
		fact = rig_fact(&put, 0x1, true);
		fact.reason = cases[i].reason;
		rig_round_of(&rig, fact);
		assert_int_equal(rig.transfer.drops[cases[i].drop], before + 2);
		assert_int_not_equal(rig_find(&rig, 2), SLOT_NONE);
		assert_int_equal(stratum_room(&rig.coord.host), HOST_BLOCKS);
		assert_int_equal(rig.transfer.slots.busy_count, 0);
	}
}

static void an_unretired_put_keeps_its_sources_and_stops_the_others(void **state)
{
	struct op put;

	(void)state;
	publish_and_offer(0, 2);
	rig_round(&rig, NULL, 0);
	put = rig_last_op(&rig);
	publish_and_offer(10, 2);
	rig_round_of(&rig, rig_fact(&put, 0x1, false));
	assert_int_equal(rig.transfer.out.op_count, 0);
	assert_int_equal(rig.transfer.backups.count, 2);
	assert_int_equal(rig.transfer.put_host_refs, 2);
	assert_int_equal(rig.transfer.drops[MONO_TRANSFER_DROP_FAILED], 1);
	/* The Host's own entries stay usable, and where they are. */
	assert_int_equal(stratum_refs(&rig.coord.host, rig_find(&rig, 0)), 2);

	assert_int_equal(mono_transfer_notice(&rig.transfer,
					      &(struct retirement_notice){ put.op_id }),
			 0);
	rig_audit(&rig);
	assert_int_equal(rig.transfer.put_host_refs, 0);
	assert_int_not_equal(rig_find(&rig, 0), SLOT_NONE);
	rig_round(&rig, NULL, 0);
	assert_int_equal(rig_last_op(&rig).key_count, 2);
}

static void a_put_has_no_lease_and_no_deadline(void **state)
{
	(void)state;
	publish_and_offer(0, 1);
	rig_round(&rig, NULL, 0);
	mono_transfer_drop_lease(&rig.transfer, 0);
	rig.now_ns = UINT64_MAX - 1;
	rig_round(&rig, NULL, 0);
	assert_int_equal(rig.transfer.out.op_count + rig.transfer.out.wake_count, 0);
	assert_int_equal(rig.transfer.put_tickets, 1);
}

#define RIG_TEST(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(A4_4_backups_hold_at_most_half_of_the_op_credits),
		RIG_TEST(A4_4_backups_hold_at_most_half_of_the_host_credits),
		RIG_TEST(A4_4_one_credit_admits_reads_only),
		RIG_TEST(A4_4_short_credits_leave_candidates_queued),
		RIG_TEST(a_put_takes_no_host_credit_that_reads_hold),
		RIG_TEST(A4_5_a_full_queue_drops_its_oldest),
		RIG_TEST(A4_2_a_candidate_pins_nothing_and_is_skipped_once_evicted),
		RIG_TEST(A4_2_when_every_candidate_is_gone_nothing_is_charged),
		RIG_TEST(A4_5_a_candidate_that_is_being_put_is_no_loss),
		RIG_TEST(A4_5_a_stop_discards_what_waits_as_cleanup),
		RIG_TEST(A4_3_sources_are_held_until_they_retire),
		RIG_TEST(A4_3_a_retired_failure_leaves_the_host_entry_and_is_counted_by_reason),
		RIG_TEST(an_unretired_put_keeps_its_sources_and_stops_the_others),
		RIG_TEST(a_put_has_no_lease_and_no_deadline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
