/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The read transaction and the round: what is asked, what is reserved, what is published, and who
 * is woken.
 *
 * The write transaction is in mono_transfer_backup_test.c, the table of edges in ticket_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "death.h"
#include "mono_transfer_rig.h"

#define HOST_BLOCKS 12u

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

static void reopen(const struct mono_transfer_limits *limits, uint32_t host_blocks)
{
	rig_close(&rig);
	rig_open(&rig, limits, host_blocks);
}

static void assert_woken(uint32_t request, uint64_t lease_id, enum mono_transfer_outcome outcome)
{
	const struct mono_transfer_wake *const wake = rig.transfer.out.wakes;

	assert_int_equal(rig.transfer.out.wake_count, 1);
	assert_int_equal(wake->request, request);
	assert_int_equal(wake->lease_id, lease_id);
	assert_int_equal(wake->outcome, outcome);
}

static void assert_cancels(uint64_t op_id)
{
	const struct op cancel = rig_last_op(&rig);

	assert_int_equal(cancel.kind, OP_CANCEL);
	assert_int_equal(cancel.op_id, op_id);
	assert_int_equal(cancel.key_count, 0);
}

/* Nothing is held and nothing waits: what every story must come to. */
static void assert_all_home(void)
{
	rig_audit(&rig);
	assert_int_equal(rig.transfer.slots.busy_count, 0);
	assert_int_equal(rig.transfer.host_refs, 0);
	assert_int_equal(rig.transfer.quarantined, 0);
	assert_int_equal(mono_transfer_in_flight(&rig.transfer), 0);
	assert_int_equal(stratum_room(&rig.coord.host), rig.part.block_count);
}

static bool asks_for(const struct op *op, const uint32_t *numbers, uint32_t count)
{
	uint32_t i;

	if (op->key_count != count)
		return false;
	for (i = 0; i < count; i++) {
		const struct kvs_key key = key_of(numbers[i]);

		if (memcmp(&op->keys[i], &key, sizeof(key)) != 0)
			return false;
	}
	return true;
}

/* --- QUERY ------------------------------------------------------------- */

static void A3_5_a_query_asks_for_what_is_missing_and_reserves_nothing(void **state)
{
	uint64_t  lease_id;
	struct op op;

	(void)state;
	rig_publish(&rig, 2);
	lease_id = rig_read(&rig, 7, 1, 4);
	op = rig_last_op(&rig);
	assert_int_equal(op.kind, OP_QUERY);
	assert_int_equal(op.op_id, lease_id);
	assert_null(op.spans);
	assert_true(asks_for(&op, (uint32_t[]){ 1, 3, 4 }, 3));
	assert_int_equal(bits_prefix(op.owned.words, OP_KEYS_MAX), 3);
	assert_int_equal(rig.transfer.host_refs, 0);
	assert_int_equal(stratum_room(&rig.coord.host), HOST_BLOCKS);
	assert_int_equal(rig.transfer.out.wake_count, 0);
}

static void a_query_asks_for_no_more_than_one_op_holds(void **state)
{
	struct op op;

	(void)state;
	rig_read(&rig, 0, 10, 20);
	op = rig_last_op(&rig);
	assert_true(asks_for(&op, (uint32_t[]){ 10, 11, 12, 13, 14, 15, 16, 17 }, RIG_KEYS_MAX));
}

/* Above the Device's prefix only the Host can supply, so what the Device alone holds is missing there. */
static void A3_4_what_only_the_device_holds_beyond_its_prefix_is_asked_for(void **state)
{
	struct op op;

	(void)state;
	rig_publish_device(&rig, 1);
	rig_read(&rig, 0, 1, 2);
	op = rig_last_op(&rig);
	assert_true(asks_for(&op, (uint32_t[]){ 1, 2 }, 2));
}

static void A3_5_ids_strictly_increase(void **state)
{
	uint64_t  last_id = 0;
	uint64_t  lease_id;
	uint32_t  i;
	struct op op;

	(void)state;
	for (i = 0; i < 10; i++) {
		op = rig_get(&rig, 0, 20, 2, &lease_id);
		assert_true(lease_id > last_id);
		assert_true(op.op_id > lease_id);
		last_id = op.op_id;
		mono_transfer_drop_lease(&rig.transfer, lease_id);
		rig_round_of(&rig, rig_fact(&op, 0, true));
		assert_all_home();
	}
}

/* --- reservation and GET ------------------------------------------------------------- */

static void A3_7_a_get_has_fixed_keys_and_a_private_block_each(void **state)
{
	uint64_t        lease_id;
	const struct op op = rig_get(&rig, 0, 1, 3, &lease_id);
	uint32_t        i;

	(void)state;
	assert_true(asks_for(&op, (uint32_t[]){ 1, 2, 3 }, 3));
	assert_int_equal(bits_prefix(op.owned.words, OP_KEYS_MAX), 3);
	for (i = 0; i < 3; i++) {
		const uint32_t         block = rig.transfer.tickets[0].blocks[i];
		const struct kvs_span  span = arena_block(&rig.part, block);

		assert_memory_equal(&op.spans[i], &span, sizeof(span));
		assert_int_equal(rig_find(&rig, 1 + i), SLOT_NONE);
		assert_int_equal(stratum_refs(&rig.coord.host, block), 1);
	}
	assert_int_equal(rig.transfer.host_refs, 3);
}

static void only_the_found_prefix_is_fetched(void **state)
{
	struct op op;

	(void)state;
	rig_read(&rig, 0, 1, 4);
	op = rig_last_op(&rig);
	rig_round_of(&rig, rig_fact(&op, 0xb, true));
	op = rig_last_op(&rig);
	assert_int_equal(op.kind, OP_GET);
	assert_true(asks_for(&op, (uint32_t[]){ 1, 2 }, 2));
}

static void what_was_published_since_the_query_is_not_fetched(void **state)
{
	uint64_t  lease_id;
	struct op op;

	(void)state;
	lease_id = rig_read(&rig, 5, 1, 3);
	op = rig_last_op(&rig);
	rig_publish(&rig, 2);
	rig_round_of(&rig, rig_fact(&op, RIG_ALL_ROWS, true));
	op = rig_last_op(&rig);
	assert_true(asks_for(&op, (uint32_t[]){ 1, 3 }, 2));
	mono_transfer_drop_lease(&rig.transfer, lease_id);
	rig_round_of(&rig, rig_fact(&op, 0, true));

	/* All of it: the wait is over and nothing is read. */
	lease_id = rig_read(&rig, 6, 3, 1);
	op = rig_last_op(&rig);
	rig_publish(&rig, 3);
	rig_round_of(&rig, rig_fact(&op, RIG_ALL_ROWS, true));
	assert_int_equal(rig.transfer.out.op_count, 0);
	assert_woken(6, lease_id, MONO_TRANSFER_MISS);
	assert_all_home();
}

static void a_query_answers_with_its_reason_when_nothing_was_found(void **state)
{
	static const struct {
		enum op_reason             reason;
		enum mono_transfer_outcome outcome;
	} cases[] = { { OP_REASON_NONE, MONO_TRANSFER_MISS },
		      { OP_REASON_MISS, MONO_TRANSFER_MISS },
		      { OP_REASON_BACKEND, MONO_TRANSFER_BACKEND },
		      { OP_REASON_HEALTH, MONO_TRANSFER_COOLDOWN },
		      { OP_REASON_QUEUE, MONO_TRANSFER_REFUSED },
		      { OP_REASON_CLOSED, MONO_TRANSFER_REFUSED },
		      { OP_REASON_QUARANTINE, MONO_TRANSFER_QUARANTINE } };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		const uint64_t  lease_id = rig_read(&rig, 3, 1, 2);
		const struct op op = rig_last_op(&rig);

		rig_round_of(&rig, rig_refused(&op, cases[i].reason));
		assert_woken(3, lease_id, cases[i].outcome);
		assert_all_home();
	}
}

static void short_host_credits_shorten_the_read(void **state)
{
	struct mono_transfer_limits limits = rig_limits;
	uint64_t                    lease_id;
	struct op                   op;

	(void)state;
	limits.host_credits = 5;
	reopen(&limits, HOST_BLOCKS);
	op = rig_get(&rig, 0, 1, 3, &lease_id);
	assert_int_equal(op.key_count, 3);
	op = rig_get(&rig, 1, 11, 3, &lease_id);
	assert_int_equal(op.key_count, 2);
	assert_int_equal(rig.transfer.host_refs, 5);
}

static void A6_3_exhausted_host_credits_refuse_before_backend_work(void **state)
{
	struct mono_transfer_limits limits = rig_limits;
	const struct kvs_key        key = key_of(30);
	uint64_t                    lease_id;
	uint64_t                    none = 77;
	enum mono_transfer_outcome  reason;

	(void)state;
	limits.host_credits = 3;
	reopen(&limits, HOST_BLOCKS);
	rig_get(&rig, 0, 1, 3, &lease_id);
	mono_transfer_begin(&rig.transfer, rig.now_ns);
	assert_false(mono_transfer_read(&rig.transfer, 1, &key, 1, &none, &reason));
	assert_int_equal(reason, MONO_TRANSFER_CREDITS);
	assert_int_equal(none, 77);
	assert_int_equal(rig.transfer.out.op_count, 0);
	assert_int_equal(rig.transfer.out.wake_count, 0);
	assert_int_equal(rig.transfer.slots.busy_count, 1);
	assert_int_equal(rig.transfer.outcomes[MONO_TRANSFER_CREDITS], 1);
}

/* Credits that went between the QUERY and its answer. */
static void credits_gone_since_the_query_end_the_wait(void **state)
{
	struct mono_transfer_limits limits = rig_limits;
	uint64_t                    leases[2];
	struct op                   ops[2];
	struct fact                 facts[2];
	uint32_t                    i;

	(void)state;
	limits.host_credits = 2;
	reopen(&limits, HOST_BLOCKS);
	for (i = 0; i < 2; i++) {
		leases[i] = rig_read(&rig, i, 10 * i, 2);
		ops[i] = rig_last_op(&rig);
		facts[i] = rig_fact(&ops[i], RIG_ALL_ROWS, true);
	}
	rig_round(&rig, facts, 2);
	assert_woken(1, leases[1], MONO_TRANSFER_CREDITS);
	assert_int_equal(rig.transfer.slots.busy_count, 1);
}

static void without_op_credits_a_read_is_refused(void **state)
{
	const struct kvs_key       key = key_of(40);
	uint64_t                   none;
	enum mono_transfer_outcome reason;
	uint32_t                   i;

	(void)state;
	for (i = 0; i < rig_limits.op_credits; i++)
		rig_read(&rig, i, 1 + i, 1);
	assert_false(mono_transfer_read(&rig.transfer, 9, &key, 1, &none, &reason));
	assert_int_equal(reason, MONO_TRANSFER_CREDITS);
	assert_int_equal(rig.transfer.out.op_count, rig_limits.op_credits);
}

static void without_host_room_the_wait_ends_and_nothing_is_evicted(void **state)
{
	uint64_t  lease_id;
	struct op op;

	(void)state;
	rig_publish(&rig, 50);
	rig_pin(&rig, rig_find(&rig, 50));
	rig_pin_all(&rig);
	lease_id = rig_read(&rig, 4, 1, 2);
	op = rig_last_op(&rig);
	rig_round_of(&rig, rig_fact(&op, RIG_ALL_ROWS, true));
	assert_woken(4, lease_id, MONO_TRANSFER_HOST_ROOM);
	assert_int_equal(rig.transfer.out.op_count, 0);
	assert_int_not_equal(rig_find(&rig, 50), SLOT_NONE);
	assert_int_equal(rig.transfer.slots.busy_count, 0);
}

/* --- publication ------------------------------------------------------------- */

static void a_whole_read_is_published_and_held_for_its_request(void **state)
{
	uint64_t        lease_id;
	const struct op op = rig_get(&rig, 5, 1, 2, &lease_id);
	uint32_t        i;

	(void)state;
	rig_round_of(&rig, rig_fact(&op, RIG_ALL_ROWS, true));
	assert_woken(5, lease_id, MONO_TRANSFER_READY);
	assert_int_equal(rig.transfer.host_refs, 2);
	assert_int_equal(mono_transfer_in_flight(&rig.transfer), 0);
	for (i = 1; i <= 2; i++) {
		const uint32_t block = rig_find(&rig, i);

		assert_ptr_equal(arena_block(&rig.part, block).ptr, op.spans[i - 1].ptr);
		assert_true(mono_transfer_fetched(&rig.transfer, lease_id, block));
		assert_false(mono_transfer_fetched(&rig.transfer, 0, block));
		assert_false(mono_transfer_fetched(&rig.transfer, lease_id + 1, block));
	}
	/* The hold keeps them, whatever else needs room; its end leaves idle entries. */
	rig_pin_all(&rig);
	assert_int_not_equal(rig_find(&rig, 1), SLOT_NONE);
	mono_transfer_drop_lease(&rig.transfer, lease_id);
	assert_false(mono_transfer_fetched(&rig.transfer, lease_id, rig_find(&rig, 1)));
	assert_int_equal(stratum_room(&rig.coord.host), 2);
	assert_int_equal(rig.transfer.slots.busy_count, 0);
}

static void A3_8_only_whole_rows_publish_and_the_others_give_their_blocks_back(void **state)
{
	uint64_t        lease_id;
	const struct op op = rig_get(&rig, 5, 1, 4, &lease_id);
	struct fact     fact = rig_fact(&op, 0x9, true);

	(void)state;
	fact.reason = OP_REASON_MISS;
	rig_round_of(&rig, fact);
	assert_woken(5, lease_id, MONO_TRANSFER_READY);
	assert_int_not_equal(rig_find(&rig, 1), SLOT_NONE);
	assert_int_equal(rig_find(&rig, 2), SLOT_NONE);
	assert_int_equal(rig_find(&rig, 3), SLOT_NONE);
	assert_ptr_equal(arena_block(&rig.part, rig_find(&rig, 4)).ptr, op.spans[3].ptr);
	assert_int_equal(rig.transfer.host_refs, 2);
	mono_transfer_drop_lease(&rig.transfer, lease_id);
	assert_all_home();
}

static void a_read_of_which_nothing_came_wakes_with_its_reason(void **state)
{
	static const struct {
		enum op_reason             reason;
		enum mono_transfer_outcome outcome;
	} cases[] = { { OP_REASON_MISS, MONO_TRANSFER_MISS },
		      { OP_REASON_CORRUPT, MONO_TRANSFER_CORRUPT },
		      { OP_REASON_BACKEND, MONO_TRANSFER_BACKEND },
		      { OP_REASON_QUEUE, MONO_TRANSFER_REFUSED },
		      { OP_REASON_QUARANTINE, MONO_TRANSFER_QUARANTINE } };
	uint64_t lease_id;
	size_t   i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		const struct op op = rig_get(&rig, 2, 1, 2, &lease_id);

		rig_round_of(&rig, rig_refused(&op, cases[i].reason));
		assert_woken(2, lease_id, cases[i].outcome);
		assert_int_equal(rig.transfer.host_refs, 0);
		mono_transfer_drop_lease(&rig.transfer, lease_id);
		assert_all_home();
	}
}

static void A3_13_a_key_published_meanwhile_is_used_and_the_duplicate_goes(void **state)
{
	uint64_t        lease_id;
	const struct op op = rig_get(&rig, 5, 1, 2, &lease_id);
	const uint32_t  theirs = rig_publish(&rig, 1);

	(void)state;
	rig_round_of(&rig, rig_fact(&op, RIG_ALL_ROWS, true));
	assert_woken(5, lease_id, MONO_TRANSFER_READY);
	assert_int_equal(rig_find(&rig, 1), theirs);
	assert_int_equal(stratum_refs(&rig.coord.host, theirs), 2);
	assert_int_equal(rig.transfer.host_refs, 2);
	assert_int_equal(pool_unbound(rig.coord.host.pool), HOST_BLOCKS - 2);
	/* It came from the Host, not from the store. */
	assert_false(mono_transfer_fetched(&rig.transfer, lease_id, theirs));
	assert_true(mono_transfer_fetched(&rig.transfer, lease_id, rig_find(&rig, 2)));
	mono_transfer_drop_lease(&rig.transfer, lease_id);
	assert_all_home();
}

/* Two reads of one key: the second holds the first's block, and its end is not the first's. */
static void X6_a_fetched_block_stays_its_readers_when_another_hold_on_it_ends(void **state)
{
	uint64_t    leases[2];
	struct op   ops[2];
	struct fact facts[2];
	uint32_t    i;

	(void)state;
	for (i = 0; i < 2; i++) {
		ops[i] = rig_get(&rig, i, 1, 1, &leases[i]);
		facts[i] = rig_fact(&ops[i], RIG_ALL_ROWS, true);
	}
	rig_round(&rig, facts, 2);
	assert_int_equal(rig.transfer.out.wake_count, 2);
	assert_true(mono_transfer_fetched(&rig.transfer, leases[0], rig_find(&rig, 1)));
	assert_false(mono_transfer_fetched(&rig.transfer, leases[1], rig_find(&rig, 1)));
	mono_transfer_drop_lease(&rig.transfer, leases[1]);
	assert_true(mono_transfer_fetched(&rig.transfer, leases[0], rig_find(&rig, 1)));
	mono_transfer_drop_lease(&rig.transfer, leases[0]);
	assert_false(mono_transfer_fetched(&rig.transfer, leases[0], rig_find(&rig, 1)));
	assert_all_home();
}

/* --- leases, deadlines, holds ------------------------------------------------------------- */

static void A3_13_a_read_whose_lease_went_publishes_nothing(void **state)
{
	uint64_t  lease_id;
	struct op op;

	(void)state;
	rig_read(&rig, 1, 1, 2);
	op = rig_last_op(&rig);
	mono_transfer_drop_lease(&rig.transfer, op.op_id);
	assert_cancels(op.op_id);
	rig_round_of(&rig, rig_fact(&op, RIG_ALL_ROWS, true));
	assert_int_equal(rig.transfer.out.op_count, 0);
	assert_int_equal(rig.transfer.out.wake_count, 0);
	assert_all_home();

	op = rig_get(&rig, 1, 1, 2, &lease_id);
	mono_transfer_drop_lease(&rig.transfer, lease_id);
	assert_cancels(op.op_id);
	/* Its blocks stay out of reach until the I/O has retired. */
	rig_audit(&rig);
	assert_int_equal(stratum_room(&rig.coord.host), HOST_BLOCKS - 2);
	assert_int_equal(rig.transfer.host_refs, 2);
	rig_round_of(&rig, rig_fact(&op, RIG_ALL_ROWS, true));
	assert_int_equal(rig.transfer.out.wake_count, 0);
	assert_int_equal(rig_find(&rig, 1), SLOT_NONE);
	assert_all_home();
}

static void a_lease_may_be_dropped_twice_and_late(void **state)
{
	const uint64_t  lease_id = rig_read(&rig, 1, 1, 2);
	const struct op op = rig_last_op(&rig);

	(void)state;
	mono_transfer_drop_lease(&rig.transfer, 0);
	mono_transfer_drop_lease(&rig.transfer, lease_id);
	mono_transfer_drop_lease(&rig.transfer, lease_id);
	assert_int_equal(rig.transfer.out.op_count, 2);
	rig_round_of(&rig, rig_fact(&op, 0, true));
	mono_transfer_drop_lease(&rig.transfer, lease_id);
	assert_all_home();
}

/* From the issue of the QUERY, over both ops, at the tick that reaches it. */
static void A3_12_the_deadline_covers_query_and_get_and_frees_nothing(void **state)
{
	const uint64_t begin = rig.now_ns;
	uint64_t       lease_id;
	struct op      op;

	(void)state;
	rig_read(&rig, 8, 1, 2);
	op = rig_last_op(&rig);
	lease_id = op.op_id;
	rig.now_ns = begin + 600;
	rig_round_of(&rig, rig_fact(&op, RIG_ALL_ROWS, true));
	op = rig_last_op(&rig);
	rig.now_ns = begin + 999;
	rig_round(&rig, NULL, 0);
	assert_int_equal(rig.transfer.out.wake_count, 0);
	rig.now_ns = begin + 1000;
	rig_round(&rig, NULL, 0);
	assert_woken(8, lease_id, MONO_TRANSFER_DEADLINE);
	assert_cancels(op.op_id);
	assert_int_equal(rig.transfer.host_refs, 2);
	assert_int_equal(mono_transfer_in_flight(&rig.transfer), 1);

	/* The request lets go of a lease that ended by itself; time does not run out twice. */
	mono_transfer_drop_lease(&rig.transfer, lease_id);
	rig.now_ns = begin + 5000;
	rig_round(&rig, NULL, 0);
	assert_int_equal(rig.transfer.out.wake_count + rig.transfer.out.op_count, 0);
	rig_round_of(&rig, rig_fact(&op, RIG_ALL_ROWS, true));
	assert_all_home();
}

static void A7_5_a_deadline_comes_before_a_completion_of_the_same_tick(void **state)
{
	uint64_t        lease_id;
	const struct op op = rig_get(&rig, 8, 1, 2, &lease_id);

	(void)state;
	rig.now_ns += rig_limits.deadline_ns;
	rig_round_of(&rig, rig_fact(&op, RIG_ALL_ROWS, true));
	assert_woken(8, lease_id, MONO_TRANSFER_DEADLINE);
	assert_int_equal(rig_find(&rig, 1), SLOT_NONE);
	assert_all_home();
}

static void deadlines_and_holds_may_be_as_long_as_a_number_can_say(void **state)
{
	static const uint64_t       lengths[] = { UINT64_MAX, UINT64_MAX - 1 };
	struct mono_transfer_limits limits = rig_limits;
	uint64_t                    lease_id;
	struct op                   op;
	size_t                      i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(lengths); i++) {
		limits.deadline_ns = lengths[i];
		limits.hold_ns = lengths[i];
		reopen(&limits, HOST_BLOCKS);
		rig.now_ns = 1000000;
		op = rig_get(&rig, 8, 1, 2, &lease_id);
		rig_round(&rig, NULL, 0);
		assert_int_equal(rig.transfer.out.wake_count, 0);
		rig_round_of(&rig, rig_fact(&op, RIG_ALL_ROWS, true));
		assert_woken(8, lease_id, MONO_TRANSFER_READY);
		rig.now_ns *= 1000;
		rig_round(&rig, NULL, 0);
		assert_int_equal(rig.transfer.expired_holds, 0);
	}
}

static void A3_9_a_hold_expires_by_itself_and_leaves_the_entries(void **state)
{
	uint64_t        lease_id;
	const struct op op = rig_get(&rig, 8, 1, 2, &lease_id);

	(void)state;
	rig_round_of(&rig, rig_fact(&op, RIG_ALL_ROWS, true));
	rig.now_ns += rig_limits.hold_ns - 1;
	rig_round(&rig, NULL, 0);
	assert_int_equal(rig.transfer.host_refs, 2);
	rig.now_ns += 1;
	rig_round(&rig, NULL, 0);
	assert_int_equal(rig.transfer.expired_holds, 1);
	assert_int_equal(rig.transfer.out.wake_count, 0);
	assert_int_not_equal(rig_find(&rig, 1), SLOT_NONE);
	assert_false(mono_transfer_fetched(&rig.transfer, lease_id, rig_find(&rig, 1)));
	mono_transfer_drop_lease(&rig.transfer, lease_id);
	assert_int_equal(rig.transfer.outcomes[MONO_TRANSFER_DEADLINE], 0);
	assert_all_home();
}

/* --- quarantine ------------------------------------------------------------- */

static void an_unretired_read_is_quarantined_until_its_notice(void **state)
{
	uint64_t                       lease_id;
	const struct op                op = rig_get(&rig, 8, 1, 2, &lease_id);
	const struct retirement_notice notice = { op.op_id }, other = { lease_id };
	const struct kvs_key           key = key_of(9);
	uint64_t                       none;
	enum mono_transfer_outcome     reason;

	(void)state;
	assert_int_equal(mono_transfer_notice(&rig.transfer, &notice), KVS_E_STALE);
	rig_round_of(&rig, rig_fact(&op, RIG_ALL_ROWS, false));
	assert_woken(8, lease_id, MONO_TRANSFER_QUARANTINE);
	assert_int_equal(rig_find(&rig, 1), SLOT_NONE);
	/* It has been woken, so no deadline is left; letting go of the lease changes nothing. */
	rig.now_ns += 100000;
	rig_round(&rig, NULL, 0);
	assert_int_equal(rig.transfer.out.wake_count, 0);
	mono_transfer_drop_lease(&rig.transfer, lease_id);

	/* Its blocks are handed to nobody, its credits stay charged, no new work begins. */
	assert_int_equal(rig_pin_all(&rig), HOST_BLOCKS - 2);
	assert_int_equal(rig.transfer.host_refs, 2);
	assert_int_equal(mono_transfer_in_flight(&rig.transfer), 0);
	assert_false(mono_transfer_read(&rig.transfer, 1, &key, 1, &none, &reason));
	assert_int_equal(reason, MONO_TRANSFER_QUARANTINE);
	assert_int_equal(rig.transfer.out.op_count, 0);

	assert_int_equal(mono_transfer_notice(&rig.transfer, &other), KVS_E_STALE);
	assert_int_equal(mono_transfer_notice(&rig.transfer, &notice), 0);
	assert_int_equal(mono_transfer_notice(&rig.transfer, &notice), KVS_E_STALE);
	rig_audit(&rig);
	assert_int_equal(rig_pin_all(&rig), 2);
	assert_int_equal(rig.transfer.host_refs, 0);
	rig_read(&rig, 1, 9, 1);
}

static void a_detached_read_can_be_unretired_too(void **state)
{
	uint64_t                       lease_id;
	const struct op                op = rig_get(&rig, 8, 1, 2, &lease_id);
	const struct retirement_notice notice = { op.op_id };

	(void)state;
	mono_transfer_drop_lease(&rig.transfer, lease_id);
	rig_round_of(&rig, rig_fact(&op, RIG_ALL_ROWS, false));
	assert_int_equal(rig.transfer.out.wake_count, 0);
	assert_int_equal(rig.transfer.quarantined, 1);
	assert_int_equal(mono_transfer_notice(&rig.transfer, &notice), 0);
	assert_all_home();
}

/* Attached or not: it was given no bytes that could be in doubt. */
static void A5_5_an_unretired_query_retains_nothing(void **state)
{
	uint64_t  lease_id = rig_read(&rig, 8, 1, 2);
	struct op op = rig_last_op(&rig);

	(void)state;
	rig_round_of(&rig, rig_fact(&op, 0, false));
	assert_woken(8, lease_id, MONO_TRANSFER_MISS);
	assert_all_home();

	lease_id = rig_read(&rig, 8, 1, 2);
	op = rig_last_op(&rig);
	mono_transfer_drop_lease(&rig.transfer, lease_id);
	rig_round_of(&rig, rig_fact(&op, 0, false));
	assert_all_home();
}

static void A5_6_a_query_answered_in_quarantine_reserves_nothing(void **state)
{
	uint64_t    lease_id, waiting;
	struct op   op = rig_get(&rig, 8, 1, 2, &lease_id);
	struct fact facts[2];

	(void)state;
	facts[0] = rig_fact(&op, RIG_ALL_ROWS, false);
	waiting = rig_read(&rig, 9, 11, 2);
	op = rig_last_op(&rig);
	facts[1] = rig_fact(&op, RIG_ALL_ROWS, true);
	rig_round(&rig, facts, 2);
	assert_int_equal(rig.transfer.out.op_count, 0);
	assert_int_equal(rig.transfer.out.wake_count, 2);
	assert_int_equal(rig.transfer.out.wakes[1].lease_id, waiting);
	assert_int_equal(rig.transfer.out.wakes[1].outcome, MONO_TRANSFER_QUARANTINE);
	assert_int_equal(rig.transfer.host_refs, 2);
}

/* Reads under way keep their lifetime. */
static void a_get_in_flight_may_finish_in_quarantine(void **state)
{
	uint64_t        leases[2];
	const struct op first = rig_get(&rig, 0, 1, 2, &leases[0]);
	const struct op second = rig_get(&rig, 1, 11, 2, &leases[1]);

	(void)state;
	rig_round_of(&rig, rig_fact(&first, RIG_ALL_ROWS, false));
	rig_round_of(&rig, rig_fact(&second, RIG_ALL_ROWS, true));
	assert_woken(1, leases[1], MONO_TRANSFER_READY);
	assert_int_not_equal(rig_find(&rig, 11), SLOT_NONE);
}

/* --- the round's outputs ------------------------------------------------------------- */

/* Each ticket: the cancel of a read that ends, the QUERY of the next, and its cancel. */
static void the_outputs_hold_the_worst_round(void **state)
{
	const uint32_t n = rig_limits.op_credits;
	uint64_t       leases[4];
	struct fact    facts[4];
	uint32_t       i;

	(void)state;
	for (i = 0; i < n; i++) {
		const struct op op = rig_get(&rig, i, 10 * i, 2, &leases[i]);

		facts[i] = rig_fact(&op, RIG_ALL_ROWS, true);
	}
	mono_transfer_begin(&rig.transfer, rig.now_ns);
	for (i = 0; i < n; i++)
		mono_transfer_drop_lease(&rig.transfer, leases[i]);
	mono_transfer_tick(&rig.transfer, facts, n);
	for (i = 0; i < n; i++)
		leases[i] = rig_read(&rig, i, 10 * i, 2);
	for (i = 0; i < n; i++)
		mono_transfer_drop_lease(&rig.transfer, leases[i]);
	assert_int_equal(rig.transfer.out.op_count, 3 * n);

	/* And every ticket wakes in one tick. */
	for (i = 0; i < n; i++) {
		const struct op op = rig.transfer.tickets[i].op;

		facts[i] = rig_fact(&op, 0, true);
	}
	rig_round(&rig, facts, n);
	for (i = 0; i < n; i++)
		rig_read(&rig, i, 10 * i, 2);
	rig.now_ns += rig_limits.deadline_ns;
	rig_round(&rig, NULL, 0);
	assert_int_equal(rig.transfer.out.wake_count, n);
	assert_int_equal(rig.transfer.outcomes[MONO_TRANSFER_DEADLINE], n);
}

/* --- our own mistakes, and the caller's ------------------------------------------------------- */

static void answer_nobody(void *arg)
{
	(void)arg;
	rig_round_of(&rig, (struct fact){ .op_id = 12345, .retired = true });
}

static void answer_twice(void *arg)
{
	const struct op *const op = arg;

	rig_round_of(&rig, rig_fact(op, RIG_ALL_ROWS, true));
	rig_round_of(&rig, rig_fact(op, RIG_ALL_ROWS, true));
}

static void lose_a_reference(void *arg)
{
	(void)arg;
	rig.transfer.host_refs--;
	mono_transfer_audit(&rig.transfer);
}

static void a_second_or_a_strange_fact_panics(void **state)
{
	uint64_t  lease_id;
	struct op op = rig_get(&rig, 0, 1, 2, &lease_id);

	(void)state;
	assert_true(death_panics(answer_nobody, NULL, NULL, 0));
	assert_true(death_panics(answer_twice, &op, NULL, 0));
	assert_true(death_panics(lose_a_reference, NULL, NULL, 0));
}

static void limits_are_checked_by_name(void **state)
{
	static const struct {
		struct mono_transfer_limits limits;
		const char                 *field;
	} cases[] = { { { 0, 1, 1, 1, 1, 1, 1 }, "op_credits:" },
		      { { 1, 0, 1, 1, 1, 1, 1 }, "host_credits:" },
		      { { 1, 1, 0, 1, 1, 1, 1 }, "keys of one read:" },
		      { { 1, 1, OP_KEYS_MAX + 1, 1, 1, 1, 1 }, "keys of one read:" },
		      { { 1, 1, 1, 0, 1, 1, 1 }, "keys of one put:" },
		      { { 1, 1, 1, 2, 1, 1, 1 }, "keys of one put:" },
		      { { 1, 1, 1, 1, 0, 1, 1 }, "backup_queue:" } };
	struct mono_transfer transfer;
	struct kvs_error     err;
	size_t               i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		assert_int_equal(mono_transfer_open(&transfer, &cases[i].limits, &rig.coord,
						    &rig.part, &err),
				 KVS_E_INVALID);
		assert_ptr_equal(strstr(err.message, cases[i].field), err.message);
		mono_transfer_close(&transfer);
	}
}

static void every_outcome_and_drop_has_a_name_of_its_own(void **state)
{
	int i, j;

	(void)state;
	for (i = 0; i < MONO_TRANSFER_OUTCOME_COUNT; i++) {
		for (j = 0; j < i; j++) {
			assert_string_not_equal(mono_transfer_outcome_name((enum mono_transfer_outcome)i),
						mono_transfer_outcome_name((enum mono_transfer_outcome)j));
		}
	}
	for (i = 0; i < MONO_TRANSFER_DROP_COUNT; i++) {
		for (j = 0; j < i; j++) {
			assert_string_not_equal(mono_transfer_drop_name((enum mono_transfer_drop)i),
						mono_transfer_drop_name((enum mono_transfer_drop)j));
		}
	}
}

#define RIG_TEST(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(A3_5_a_query_asks_for_what_is_missing_and_reserves_nothing),
		RIG_TEST(a_query_asks_for_no_more_than_one_op_holds),
		RIG_TEST(A3_4_what_only_the_device_holds_beyond_its_prefix_is_asked_for),
		RIG_TEST(A3_5_ids_strictly_increase),
		RIG_TEST(A3_7_a_get_has_fixed_keys_and_a_private_block_each),
		RIG_TEST(only_the_found_prefix_is_fetched),
		RIG_TEST(what_was_published_since_the_query_is_not_fetched),
		RIG_TEST(a_query_answers_with_its_reason_when_nothing_was_found),
		RIG_TEST(short_host_credits_shorten_the_read),
		RIG_TEST(A6_3_exhausted_host_credits_refuse_before_backend_work),
		RIG_TEST(credits_gone_since_the_query_end_the_wait),
		RIG_TEST(without_op_credits_a_read_is_refused),
		RIG_TEST(without_host_room_the_wait_ends_and_nothing_is_evicted),
		RIG_TEST(a_whole_read_is_published_and_held_for_its_request),
		RIG_TEST(A3_8_only_whole_rows_publish_and_the_others_give_their_blocks_back),
		RIG_TEST(a_read_of_which_nothing_came_wakes_with_its_reason),
		RIG_TEST(A3_13_a_key_published_meanwhile_is_used_and_the_duplicate_goes),
		RIG_TEST(X6_a_fetched_block_stays_its_readers_when_another_hold_on_it_ends),
		RIG_TEST(A3_13_a_read_whose_lease_went_publishes_nothing),
		RIG_TEST(a_lease_may_be_dropped_twice_and_late),
		RIG_TEST(A3_12_the_deadline_covers_query_and_get_and_frees_nothing),
		RIG_TEST(A7_5_a_deadline_comes_before_a_completion_of_the_same_tick),
		RIG_TEST(deadlines_and_holds_may_be_as_long_as_a_number_can_say),
		RIG_TEST(A3_9_a_hold_expires_by_itself_and_leaves_the_entries),
		RIG_TEST(an_unretired_read_is_quarantined_until_its_notice),
		RIG_TEST(a_detached_read_can_be_unretired_too),
		RIG_TEST(A5_5_an_unretired_query_retains_nothing),
		RIG_TEST(A5_6_a_query_answered_in_quarantine_reserves_nothing),
		RIG_TEST(a_get_in_flight_may_finish_in_quarantine),
		RIG_TEST(the_outputs_hold_the_worst_round),
		RIG_TEST(a_second_or_a_strange_fact_panics),
		RIG_TEST(limits_are_checked_by_name),
		RIG_TEST(every_outcome_and_drop_has_a_name_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
