/* SPDX-License-Identifier: Apache-2.0 */
/* The read transaction: what is asked, what is reserved, what is published, who is woken, and how. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "death.h"
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

static void assert_woken(uint32_t prompt, struct lease lease, enum read_outcome outcome)
{
	const struct transfer_wake wake = hoist_wake(&hoist);

	assert_int_equal(wake.request, 100 + prompt);
	assert_int_equal(wake.lease.id, lease.id);
	assert_string_equal(read_outcome_name(wake.outcome), read_outcome_name(outcome));
}

/* Nothing is held and nothing waits: what every story must come to. */
static void assert_all_home(void)
{
	const struct transfer_load load = transfer_load(hoist.transfer);

	assert_int_equal(load.tickets, 0);
	assert_int_equal(load.host_refs, 0);
	assert_int_equal(load.quarantined, 0);
	assert_true(transfer_is_quiet(hoist.transfer));
}

static bool asks_for(const struct op *op, uint32_t i, uint32_t group, uint32_t page)
{
	const struct kvs_key key = hoist_key(&hoist, 0, group, page);

	return i < op->key_count && memcmp(&op->keys[i], &key, sizeof(key)) == 0;
}

/* --- bypasses --------------------------------------------------------------------------------- */

static void A3_1_a_local_hit_at_the_bound_bypasses_the_store(void **state)
{
	uint32_t page;

	(void)state;
	for (page = 0; page < 4; page++)
		hoist_publish(&hoist, 0, HOIST_FULL, page);
	hoist_publish(&hoist, 0, HOIST_STATE, 3);
	hoist_store(&hoist, 0, HOIST_FULL, 0, 4);
	assert_int_equal(hoist_read(&hoist, 0, 16), READ_COVERED);
	assert_int_equal(hoist_op_count(&hoist), 0);
	assert_int_equal(hoist.shortfall.tokens, 16);
	assert_int_equal(transfer_counts(hoist.transfer).outcomes[READ_COVERED], 1);
	assert_all_home();
}

static void A3_1_an_extension_below_the_minimum_bypasses_the_store(void **state)
{
	struct transfer_limits limits = hoist_limits;

	(void)state;
	limits.extension_min = 9;
	reopen(&limits);
	hoist_publish(&hoist, 0, HOIST_FULL, 0);
	hoist_publish(&hoist, 0, HOIST_STATE, 0);
	assert_int_equal(hoist_read(&hoist, 0, 12), READ_SHORT);
	assert_int_equal(hoist.shortfall.tokens, 4);
	assert_int_equal(hoist.shortfall.wanted_tokens, 12);
	assert_int_equal(hoist_op_count(&hoist), 0);
	assert_int_equal(hoist_read(&hoist, 0, 16), READ_ASKED);
}

static void A3_18_no_boundary_within_the_credits_emits_no_op(void **state)
{
	struct transfer_limits limits = hoist_limits;

	(void)state;
	limits.host_credits = 1;
	reopen(&limits);
	assert_int_equal(hoist_read(&hoist, 0, 16), READ_CREDITS);
	assert_int_equal(hoist_op_count(&hoist), 0);
	assert_all_home();
}

static void A3_16_no_boundary_within_the_keys_says_so(void **state)
{
	struct transfer_limits limits = hoist_limits;

	(void)state;
	limits.keys_max = 1;
	limits.put_keys_max = 1;
	reopen(&limits);
	assert_int_equal(hoist_read(&hoist, 0, 16), READ_KEYS);
	assert_int_equal(transfer_counts(hoist.transfer).plans->cut_keys, 4);
}

static void A3_16_no_boundary_within_the_lookahead_says_so(void **state)
{
	struct transfer_limits limits = hoist_limits;

	(void)state;
	limits.lookahead_tokens = 3;
	reopen(&limits);
	assert_int_equal(hoist_read(&hoist, 0, 16), READ_LOOKAHEAD);
	assert_int_equal(transfer_counts(hoist.transfer).plans->cut_lookahead, 1);
}

static void op_credits_refuse_the_next_read(void **state)
{
	struct transfer_limits limits = hoist_limits;

	(void)state;
	limits.op_credits = 1;
	reopen(&limits);
	hoist_ask(&hoist, 0, 8);
	assert_int_equal(hoist_read(&hoist, 1, 16), READ_CREDITS);
}

static void A6_3_exhausted_host_credits_refuse_before_backend_work(void **state)
{
	struct transfer_limits limits = hoist_limits;

	(void)state;
	limits.host_credits = 5;
	reopen(&limits);
	hoist_store(&hoist, 0, HOIST_FULL, 0, 4);
	hoist_store(&hoist, 0, HOIST_STATE, 3, 4);
	assert_int_equal(hoist_get(&hoist, 0, 16).key_count, 5);
	transfer_begin(hoist.transfer);
	assert_int_equal(hoist_read(&hoist, 1, 16), READ_CREDITS);
	assert_int_equal(hoist_op_count(&hoist), 0);
}

/* --- QUERY ------------------------------------------------------------------------------------ */

static void A3_3_the_longest_boundary_comes_first_and_shorter_ones_add_what_they_miss(void **state)
{
	const struct lease lease = hoist_ask(&hoist, 0, 12);
	const struct op    op = hoist_last_op(&hoist);

	(void)state;
	assert_int_equal(op.kind, OP_QUERY);
	assert_int_equal(op.op_id, lease.id);
	assert_null(op.spans);
	assert_int_equal(op.key_count, 6);
	assert_true(asks_for(&op, 0, HOIST_FULL, 0) && asks_for(&op, 1, HOIST_FULL, 1));
	assert_true(asks_for(&op, 2, HOIST_FULL, 2) && asks_for(&op, 3, HOIST_STATE, 2));
	assert_true(asks_for(&op, 4, HOIST_STATE, 1) && asks_for(&op, 5, HOIST_STATE, 0));
	assert_int_equal(bits_prefix(op.owned.words, OP_KEYS_MAX), 6);
}

static void A3_3_older_checkpoints_never_crowd_out_that_of_the_end(void **state)
{
	struct transfer_limits limits = hoist_limits;
	struct op              op;

	(void)state;
	limits.host_credits = 5;
	reopen(&limits);
	hoist_ask(&hoist, 0, 12);
	op = hoist_last_op(&hoist);
	assert_int_equal(op.key_count, 5);
	assert_true(asks_for(&op, 3, HOIST_STATE, 2) && asks_for(&op, 4, HOIST_STATE, 1));
}

static void A3_4_what_device_or_host_has_is_not_asked_for(void **state)
{
	struct op op;

	(void)state;
	/* Device has history behind its last checkpoint; Host has one block of it besides. */
	box_put(&hoist.box, HOIST_FULL, 0, 3);
	box_put(&hoist.box, HOIST_STATE, 0, 1);
	hoist_publish(&hoist, 0, HOIST_FULL, 3);
	hoist_ask(&hoist, 0, 20);
	op = hoist_last_op(&hoist);
	assert_int_equal(hoist.shortfall.tokens, 4);
	assert_true(asks_for(&op, 0, HOIST_FULL, 4));
	assert_true(asks_for(&op, 1, HOIST_STATE, 4) && asks_for(&op, 2, HOIST_STATE, 3));
	assert_int_equal(op.key_count, 5);
}

static void A3_5_a_query_holds_nothing(void **state)
{
	(void)state;
	hoist_ask(&hoist, 0, 12);
	assert_int_equal(transfer_load(hoist.transfer).host_refs, 0);
	assert_int_equal(cache_host_free(hoist.box.cache), 24);
	assert_int_equal(hoist_pin_all(&hoist, HOIST_FULL), 24);
}

/* --- the answer ------------------------------------------------------------------------------- */

static void A3_7_a_get_has_keys_private_blocks_and_their_spans(void **state)
{
	struct op op;
	uint32_t  i, group, block;

	(void)state;
	hoist_store(&hoist, 0, HOIST_FULL, 0, 3);
	hoist_store(&hoist, 0, HOIST_STATE, 2, 3);
	op = hoist_get(&hoist, 0, 12);
	assert_int_equal(op.key_count, 4);
	assert_true(asks_for(&op, 3, HOIST_STATE, 2));
	for (i = 0; i < op.key_count; i++) {
		struct kvs_span span;

		ticket_block(transfer_find(hoist.transfer, op.op_id), i, &group, &block);
		span = hostmap_span(&hoist.hostmap, &hoist.part, group, block);
		assert_memory_equal(&op.spans[i], &span, sizeof(span));
		assert_int_equal(op.spans[i].bytes, HOIST_BLOCK_BYTES);
	}
	assert_int_equal(bits_prefix(op.owned.words, OP_KEYS_MAX), 4);
	assert_int_equal(transfer_load(hoist.transfer).host_refs, 4);
	assert_int_equal(hoist_find(&hoist, 0, HOIST_FULL, 0), BLOCK_NULL);
}

static void A3_6_what_the_store_lacks_shortens_the_read(void **state)
{
	struct op    op;
	struct lease lease;

	(void)state;
	hoist_store(&hoist, 0, HOIST_FULL, 0, 2);
	hoist_store(&hoist, 0, HOIST_STATE, 1, 2);
	op = hoist_get(&hoist, 0, 16);
	lease = hoist.lease;
	assert_int_equal(op.key_count, 3);
	hoist_serve(&hoist);
	assert_woken(0, lease, READ_READY);
	assert_int_equal(hoist_wake(&hoist).shortfall.tokens, 8);
	assert_int_equal(hoist_wake(&hoist).shortfall.wanted_tokens, 16);
	assert_int_equal(hoist_wake(&hoist).shortfall.cause, READ_NEVER_STORED);
	assert_int_equal(hoist_wake(&hoist).shortfall.group, HOIST_FULL);
	assert_int_equal(hoist_wake(&hoist).shortfall.position, 2);
}

static void A3_8_only_whole_rows_are_published_and_held(void **state)
{
	struct lease lease;
	struct fact  fact;
	struct op    op;

	(void)state;
	hoist_store(&hoist, 0, HOIST_FULL, 0, 3);
	hoist_store(&hoist, 0, HOIST_STATE, 1, 3);
	op = hoist_get(&hoist, 0, 12);
	lease = hoist.lease;
	fact = hoist_answer(&hoist, &op);
	bits_clear(fact.ok.words, 2);
	fact.reason = OP_REASON_BACKEND;
	hoist_tick_of(&hoist, fact);
	assert_woken(0, lease, READ_READY);
	assert_int_not_equal(hoist_find(&hoist, 0, HOIST_FULL, 1), BLOCK_NULL);
	assert_int_equal(hoist_find(&hoist, 0, HOIST_FULL, 2), BLOCK_NULL);
	assert_int_not_equal(hoist_find(&hoist, 0, HOIST_STATE, 2), BLOCK_NULL);
	assert_int_equal(transfer_load(hoist.transfer).host_refs, 3);
	assert_int_equal(hoist_wake(&hoist).shortfall.cause, READ_BACKEND);
	assert_int_equal(hoist_wake(&hoist).shortfall.position, 2);
	assert_int_equal(hoist_wake(&hoist).shortfall.tokens, 0);
	assert_true(transfer_fetched(hoist.transfer, lease, HOIST_FULL,
				     hoist_find(&hoist, 0, HOIST_FULL, 1)));
	transfer_drop_lease(hoist.transfer, lease);
	assert_false(transfer_fetched(hoist.transfer, lease, HOIST_FULL,
				      hoist_find(&hoist, 0, HOIST_FULL, 1)));
	assert_all_home();
}

static void A3_9_what_was_published_before_stays_evictable_under_a_hold(void **state)
{
	(void)state;
	hoist_publish(&hoist, 0, HOIST_FULL, 0);
	hoist_store(&hoist, 0, HOIST_FULL, 1, 3);
	hoist_store(&hoist, 0, HOIST_STATE, 2, 3);
	hoist_get(&hoist, 0, 12);
	assert_int_equal(transfer_load(hoist.transfer).host_refs, 3);
	hoist_serve(&hoist);
	assert_int_equal(hoist_pin_all(&hoist, HOIST_FULL), 21);
	assert_int_equal(hoist_find(&hoist, 0, HOIST_FULL, 0), BLOCK_NULL);
	assert_int_not_equal(hoist_find(&hoist, 0, HOIST_FULL, 1), BLOCK_NULL);
	transfer_drop_lease(hoist.transfer, hoist.lease);
	assert_int_equal(hoist_pin_all(&hoist, HOIST_FULL), 3);
}

static void a_query_answers_with_its_reason_when_nothing_was_found(void **state)
{
	static const struct {
		enum op_reason    reason;
		enum read_outcome outcome;
	} cases[] = { { OP_REASON_NONE, READ_NEVER_STORED },
		      { OP_REASON_MISS, READ_NEVER_STORED },
		      { OP_REASON_BACKEND, READ_BACKEND },
		      { OP_REASON_CANCELLED, READ_BACKEND },
		      { OP_REASON_HEALTH, READ_COOLDOWN },
		      { OP_REASON_QUEUE, READ_REFUSED },
		      { OP_REASON_CLOSED, READ_REFUSED },
		      { OP_REASON_QUARANTINE, READ_QUARANTINE } };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		const struct lease lease = hoist_ask(&hoist, 0, 12);
		const struct op    op = hoist_last_op(&hoist);
		struct fact        fact;

		fact_refused(&fact, &op, cases[i].reason);
		hoist_tick_of(&hoist, fact);
		assert_woken(0, lease, cases[i].outcome);
		assert_int_equal(hoist_wake(&hoist).shortfall.group,
				 cases[i].outcome == READ_NEVER_STORED ? HOIST_FULL : SHORTFALL_NONE);
		assert_all_home();
	}
	assert_int_equal(transfer_load(hoist.transfer).negatives, 0);
}

static void a_get_that_brings_nothing_frees_all_and_says_why(void **state)
{
	static const struct {
		enum op_reason    reason;
		enum read_outcome outcome;
	} cases[] = { { OP_REASON_HEALTH, READ_COOLDOWN },
		      { OP_REASON_CORRUPT, READ_CORRUPT },
		      { OP_REASON_CLOSED, READ_REFUSED } };
	size_t i;

	(void)state;
	hoist_store(&hoist, 0, HOIST_FULL, 0, 1);
	hoist_store(&hoist, 0, HOIST_STATE, 0, 1);
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		const struct op    op = hoist_get(&hoist, 0, 12);
		const struct lease lease = hoist.lease;
		struct fact        fact;

		fact_refused(&fact, &op, cases[i].reason);
		hoist_tick_of(&hoist, fact);
		assert_woken(0, lease, cases[i].outcome);
		assert_all_home();
		transfer_drop_lease(hoist.transfer, lease);
	}
}

static void host_without_room_ends_the_read(void **state)
{
	struct lease lease;

	(void)state;
	hoist_store(&hoist, 0, HOIST_FULL, 0, 3);
	hoist_store(&hoist, 0, HOIST_STATE, 0, 3);
	lease = hoist_ask(&hoist, 0, 12);
	hoist_pin_all(&hoist, HOIST_FULL);
	hoist_serve(&hoist);
	assert_woken(0, lease, READ_HOST_ROOM);
	assert_all_home();
}

static void credits_taken_meanwhile_shorten_the_read(void **state)
{
	struct transfer_limits limits = hoist_limits;
	struct op              first, second;

	(void)state;
	limits.host_credits = 8;
	reopen(&limits);
	hoist_store(&hoist, 0, HOIST_FULL, 0, 4);
	hoist_store(&hoist, 0, HOIST_STATE, 0, 4);
	hoist_store(&hoist, 1, HOIST_FULL, 0, 3);
	hoist_store(&hoist, 1, HOIST_STATE, 0, 3);
	hoist_ask(&hoist, 1, 12);
	first = hoist_last_op(&hoist);
	hoist_ask(&hoist, 0, 16);
	second = hoist_last_op(&hoist);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &first));
	assert_int_equal(hoist_last_op(&hoist).key_count, 4);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &second));
	assert_int_equal(hoist_last_op(&hoist).kind, OP_GET);
	assert_int_equal(hoist_last_op(&hoist).key_count, 4);
	assert_int_equal(transfer_load(hoist.transfer).host_refs, 8);
	second = hoist_last_op(&hoist);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &second));
	assert_int_equal(hoist_wake(&hoist).outcome, READ_READY);
	assert_int_equal(hoist_wake(&hoist).shortfall.cause, READ_CREDITS);
}

static void credits_that_are_gone_meanwhile_end_the_read(void **state)
{
	struct transfer_limits limits = hoist_limits;
	struct lease           lease;
	struct op              first, second;

	(void)state;
	limits.host_credits = 5;
	reopen(&limits);
	hoist_store(&hoist, 0, HOIST_FULL, 0, 4);
	hoist_store(&hoist, 0, HOIST_STATE, 0, 4);
	hoist_ask(&hoist, 0, 16);
	first = hoist_last_op(&hoist);
	lease = hoist_ask(&hoist, 0, 16);
	second = hoist_last_op(&hoist);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &first));
	assert_int_equal(transfer_load(hoist.transfer).host_refs, 5);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &second));
	assert_woken(0, lease, READ_CREDITS);
	assert_int_equal(hoist_op_count(&hoist), 0);
}

static void a_boundary_below_the_minimum_within_the_lookahead_is_short(void **state)
{
	struct transfer_limits limits = hoist_limits;

	(void)state;
	limits.extension_min = 6;
	limits.lookahead_tokens = 7;
	reopen(&limits);
	assert_int_equal(hoist_read(&hoist, 0, 16), READ_SHORT);
}

static void what_local_blocks_lose_meanwhile_is_said(void **state)
{
	struct lease lease;

	(void)state;
	hoist_publish(&hoist, 0, HOIST_FULL, 0);
	hoist_store(&hoist, 0, HOIST_FULL, 1, 2);
	hoist_store(&hoist, 0, HOIST_STATE, 1, 2);
	lease = hoist_ask(&hoist, 0, 8);
	hoist_pin_all(&hoist, HOIST_FULL);
	hoist_unpin_all(&hoist);
	hoist_serve(&hoist);
	assert_woken(0, lease, READ_LOST);
	assert_all_home();
}

static void what_is_lost_meanwhile_and_shortens_the_read_is_said(void **state)
{
	struct op query;

	(void)state;
	hoist_publish(&hoist, 0, HOIST_FULL, 1);
	hoist_store(&hoist, 0, HOIST_FULL, 0, 1);
	hoist_store(&hoist, 0, HOIST_STATE, 0, 2);
	hoist_ask(&hoist, 0, 8);
	query = hoist_last_op(&hoist);
	assert_int_equal(query.key_count, 3);
	hoist_pin_all(&hoist, HOIST_FULL);
	hoist_unpin_all(&hoist);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &query));
	hoist_serve(&hoist);
	assert_int_equal(hoist_wake(&hoist).outcome, READ_READY);
	assert_int_equal(hoist_wake(&hoist).shortfall.tokens, 4);
	assert_int_equal(hoist_wake(&hoist).shortfall.cause, READ_LOST);
	assert_int_equal(hoist_wake(&hoist).shortfall.group, SHORTFALL_NONE);
}

static void a_failure_that_spared_some_rows_is_said(void **state)
{
	struct fact fact;
	struct op   query;

	(void)state;
	hoist_store(&hoist, 0, HOIST_FULL, 0, 1);
	hoist_store(&hoist, 0, HOIST_STATE, 0, 1);
	hoist_ask(&hoist, 0, 8);
	query = hoist_last_op(&hoist);
	fact = hoist_answer(&hoist, &query);
	fact.reason = OP_REASON_BACKEND;
	hoist_tick_of(&hoist, fact);
	hoist_serve(&hoist);
	assert_int_equal(hoist_wake(&hoist).outcome, READ_READY);
	assert_int_equal(hoist_wake(&hoist).shortfall.tokens, 4);
	assert_int_equal(hoist_wake(&hoist).shortfall.cause, READ_BACKEND);
}

static void what_limits_fallbacks_does_not_limit_the_longest(void **state)
{
	struct transfer_limits limits = hoist_limits;

	(void)state;
	limits.host_credits = 4;
	limits.lookahead_tokens = 12;
	reopen(&limits);
	/* Three pages and a checkpoint fit; of the others' checkpoints none does. */
	hoist_ask(&hoist, 0, 16);
	assert_int_equal(hoist_last_op(&hoist).key_count, 4);
	assert_int_equal(hoist.shortfall.cause, READ_LOOKAHEAD);
}

static void what_is_gone_between_query_and_get_was_evicted(void **state)
{
	struct lease lease;
	struct op    op;

	(void)state;
	hoist_store(&hoist, 0, HOIST_FULL, 0, 1);
	hoist_store(&hoist, 0, HOIST_STATE, 0, 1);
	op = hoist_get(&hoist, 0, 4);
	lease = hoist.lease;
	hoist_unstore(&hoist, 0, HOIST_FULL, 0, 1);
	hoist_unstore(&hoist, 0, HOIST_STATE, 0, 1);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &op));
	assert_woken(0, lease, READ_EVICTED);
	assert_int_equal(hoist_wake(&hoist).shortfall.cause, READ_EVICTED);
	assert_int_equal(hoist_wake(&hoist).shortfall.group, HOIST_FULL);
	assert_all_home();
}

/* A prompt that has other pages where these are was looked at before. */
static void A3_4_what_device_restores_alone_is_not_looked_at(void **state)
{
	struct op op;

	(void)state;
	hoist_ask(&hoist, 3, 16);
	box_put(&hoist.box, HOIST_FULL, 0, 2);
	box_put(&hoist.box, HOIST_STATE, 1, 2);
	hoist_ask(&hoist, 0, 12);
	op = hoist_last_op(&hoist);
	assert_int_equal(op.key_count, 2);
	assert_true(asks_for(&op, 0, HOIST_FULL, 2) && asks_for(&op, 1, HOIST_STATE, 2));
}

static void A3_16_a_want_of_keys_is_none_of_credits_though_those_were_short_before(void **state)
{
	struct transfer_limits limits = hoist_limits;

	(void)state;
	limits.host_credits = 4;
	limits.keys_max = 3;
	limits.put_keys_max = 1;
	limits.extension_min = 12;
	reopen(&limits);
	assert_int_equal(hoist_read(&hoist, 0, 16), READ_CREDITS);
	assert_int_equal(hoist_read(&hoist, 0, 12), READ_KEYS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(A3_1_a_local_hit_at_the_bound_bypasses_the_store),
		TEST(A3_1_an_extension_below_the_minimum_bypasses_the_store),
		TEST(A3_18_no_boundary_within_the_credits_emits_no_op),
		TEST(A3_16_no_boundary_within_the_keys_says_so),
		TEST(A3_16_no_boundary_within_the_lookahead_says_so),
		TEST(op_credits_refuse_the_next_read),
		TEST(A6_3_exhausted_host_credits_refuse_before_backend_work),
		TEST(A3_3_the_longest_boundary_comes_first_and_shorter_ones_add_what_they_miss),
		TEST(A3_3_older_checkpoints_never_crowd_out_that_of_the_end),
		TEST(A3_4_what_device_or_host_has_is_not_asked_for),
		TEST(A3_5_a_query_holds_nothing),
		TEST(A3_7_a_get_has_keys_private_blocks_and_their_spans),
		TEST(A3_6_what_the_store_lacks_shortens_the_read),
		TEST(A3_8_only_whole_rows_are_published_and_held),
		TEST(A3_9_what_was_published_before_stays_evictable_under_a_hold),
		TEST(a_query_answers_with_its_reason_when_nothing_was_found),
		TEST(a_get_that_brings_nothing_frees_all_and_says_why),
		TEST(host_without_room_ends_the_read),
		TEST(credits_taken_meanwhile_shorten_the_read),
		TEST(credits_that_are_gone_meanwhile_end_the_read),
		TEST(a_boundary_below_the_minimum_within_the_lookahead_is_short),
		TEST(what_local_blocks_lose_meanwhile_is_said),
		TEST(what_is_lost_meanwhile_and_shortens_the_read_is_said),
		TEST(a_failure_that_spared_some_rows_is_said),
		TEST(what_limits_fallbacks_does_not_limit_the_longest),
		TEST(what_is_gone_between_query_and_get_was_evicted),
		TEST(A3_4_what_device_restores_alone_is_not_looked_at),
		TEST(A3_16_a_want_of_keys_is_none_of_credits_though_those_were_short_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
