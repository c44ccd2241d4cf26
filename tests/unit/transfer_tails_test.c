/* SPDX-License-Identifier: Apache-2.0 */
/* Boundaries inside a page: found by hints, read, and remembered once they are there. */
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

static void store_tail(uint32_t tokens)
{
	uint32_t group;

	for (group = 0; group < 2; group++) {
		const struct kvs_key key = hoist_tail_key(&hoist, group, tokens);

		hoist_store_key(&hoist, &key);
	}
}

static void A3_2_the_exact_bound_is_a_boundary(void **state)
{
	struct lease lease;
	struct op    op;

	(void)state;
	store_tail(18);
	op = hoist_get(&hoist, 0, 18);
	lease = hoist.lease;
	assert_int_equal(op.key_count, 6);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &op));
	hoist_expect_wake(&hoist, lease, READ_READY);
	assert_int_equal(hoist_wake(&hoist).shortfall.tokens, 18);
}

static void A3_2_a_prompt_of_less_than_a_page_has_one_boundary(void **state)
{
	struct op op;

	(void)state;
	store_tail(3);
	op = hoist_get(&hoist, 0, 3);
	assert_int_equal(op.key_count, 2);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &op));
	assert_int_equal(hoist_wake(&hoist).shortfall.tokens, 3);
	assert_int_equal(hoist_read(&hoist, 0, 3), READ_COVERED);
	assert_int_equal(hoist_read(&hoist, 0, 0), READ_COVERED);
}

static void A3_10_a_hint_is_recorded_once_the_tail_is_published(void **state)
{
	struct op   op;
	struct fact fact;

	(void)state;
	store_tail(18);
	op = hoist_get(&hoist, 0, 18);
	assert_int_equal(transfer_tails(hoist.transfer)->age.count, 0);
	/* All but the tail's rows come. */
	fact = hoist_answer(&hoist, &op);
	bits_clear(fact.ok.words, 4);
	bits_clear(fact.ok.words, 5);
	hoist_tick_of(&hoist, fact);
	assert_int_equal(transfer_tails(hoist.transfer)->age.count, 0);
	transfer_drop_lease(hoist.transfer, hoist.lease);
	op = hoist_get(&hoist, 0, 18);
	assert_int_equal(op.key_count, 2);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &op));
	assert_int_equal(transfer_tails(hoist.transfer)->age.count, 1);
}

static void A3_10_a_detached_get_records_no_hint(void **state)
{
	struct op op;

	(void)state;
	store_tail(18);
	op = hoist_get(&hoist, 0, 18);
	transfer_drop_lease(hoist.transfer, hoist.lease);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &op));
	assert_int_equal(transfer_tails(hoist.transfer)->age.count, 0);
}

static void A3_15_a_hint_makes_an_older_tail_a_candidate_of_a_longer_prompt(void **state)
{
	const struct prefix_hash hash = hoist_tail(&hoist, 18);
	struct op                op;

	(void)state;
	store_tail(18);
	op = hoist_get(&hoist, 0, 24);
	assert_int_equal(op.key_count, 5);
	transfer_drop_lease(hoist.transfer, hoist.lease);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &op));
	transfer_record_tail(hoist.transfer, &hoist.box.space, &hoist.hashes[0][3], 2, &hash);
	op = hoist_get(&hoist, 0, 24);
	assert_int_equal(op.key_count, 6);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &op));
	assert_int_equal(hoist_wake(&hoist).shortfall.tokens, 18);
}

static void a_tail_that_was_not_there_is_not_asked_for_again(void **state)
{
	struct op op;

	(void)state;
	store_tail(18);
	op = hoist_get(&hoist, 0, 18);
	/* The history of the tail is gone when it is read. */
	hoist.names[hoist.name_count - 2].offset = 7;
	hoist_tick_of(&hoist, hoist_answer(&hoist, &op));
	transfer_drop_lease(hoist.transfer, hoist.lease);
	assert_int_equal(transfer_load(hoist.transfer).negatives, 1);
	hoist_pin_all(&hoist, HOIST_FULL);
	hoist_unpin_all(&hoist);
	hoist_ask(&hoist, 0, 18);
	/* Four pages and their checkpoints. */
	assert_int_equal(hoist_last_op(&hoist).key_count, 8);
}

static void A3_14_a_tail_that_is_there_counts_as_local(void **state)
{
	const struct prefix_hash hash = hoist_tail(&hoist, 10);
	struct cell_name         name = { &hoist.box.space, &hash, HOIST_FULL, 0 };

	(void)state;
	hoist_publish(&hoist, 0, HOIST_FULL, 0);
	hoist_publish(&hoist, 0, HOIST_FULL, 1);
	hoist_publish_name(&hoist, &name);
	name.group = HOIST_STATE;
	hoist_publish_name(&hoist, &name);
	transfer_record_tail(hoist.transfer, &hoist.box.space, &hoist.hashes[0][1], 2, &hash);
	hoist_ask(&hoist, 0, 16);
	assert_int_equal(hoist.shortfall.tokens, 10);
	/* Nothing at or before it is asked for. */
	assert_int_equal(hoist_last_op(&hoist).key_count, 4);
	assert_int_equal(hoist_read(&hoist, 0, 10), READ_COVERED);
}

static void a_tail_that_makes_the_hit_longer_makes_the_lookahead_reach_further(void **state)
{
	struct transfer_limits   limits = hoist_limits;
	const struct prefix_hash hash = hoist_tail(&hoist, 10);
	struct cell_name         name = { &hoist.box.space, &hash, HOIST_FULL, 0 };

	(void)state;
	limits.lookahead_tokens = 10;
	hoist_close(&hoist);
	hoist_open_plain(&hoist, hoist_full_state, &limits);
	hoist_publish(&hoist, 0, HOIST_FULL, 0);
	hoist_publish(&hoist, 0, HOIST_FULL, 1);
	hoist_publish_name(&hoist, &name);
	name.group = HOIST_STATE;
	hoist_publish_name(&hoist, &name);
	transfer_record_tail(hoist.transfer, &hoist.box.space, &hoist.hashes[0][1], 2, &hash);
	hoist_ask(&hoist, 0, 18);
	/* 18 tokens are within 10 of the tail, and would not be of what lies before it. */
	assert_int_equal(hoist.shortfall.tokens, 10);
	assert_int_equal(hoist_last_op(&hoist).key_count, 6);
}

/* Host has the tail of 10 tokens, and longer candidates crowd it out when the lookahead grows. */
static void A3_14_a_tail_that_is_there_is_not_crowded_out(void **state)
{
	struct transfer_limits   limits = hoist_limits;
	const struct prefix_hash hash = hoist_tail(&hoist, 10);
	struct cell_name         name = { &hoist.box.space, &hash, HOIST_FULL, 0 };

	(void)state;
	limits.lookahead_tokens = 2;
	limits.tails_max = 1;
	hoist_close(&hoist);
	hoist_open_plain(&hoist, hoist_full_state, &limits);
	hoist_publish(&hoist, 0, HOIST_FULL, 0);
	hoist_publish(&hoist, 0, HOIST_FULL, 1);
	hoist_publish(&hoist, 0, HOIST_STATE, 1);
	hoist_publish_name(&hoist, &name);
	name.group = HOIST_STATE;
	hoist_publish_name(&hoist, &name);
	transfer_record_tail(hoist.transfer, &hoist.box.space, &hoist.hashes[0][1], 2, &hash);
	assert_int_equal(hoist_read(&hoist, 0, 11), READ_LOOKAHEAD);
	assert_int_equal(hoist.shortfall.tokens, 10);
	hoist_ask(&hoist, 0, 12);
	assert_int_equal(hoist.shortfall.tokens, 10);
	assert_int_equal(hoist_last_op(&hoist).key_count, 2);
}

/* A read of a prompt of which the store has the pages alone ends with them. */
static void expect_no_tail(uint32_t prompt)
{
	hoist_ask(&hoist, prompt, 18);
	hoist_serve(&hoist);
	assert_int_equal(hoist_last_op(&hoist).kind, OP_GET);
	hoist_serve(&hoist);
	assert_int_equal(hoist_wake(&hoist).shortfall.tokens, 16);
}

static void A3_15_what_the_store_has_of_one_tail_is_no_hint_of_another(void **state)
{
	(void)state;
	store_tail(18);
	hoist_get(&hoist, 0, 18);
	expect_no_tail(1);
}

static void A3_15_what_no_store_has_of_one_tail_is_no_hint_of_another(void **state)
{
	struct op op;

	(void)state;
	store_tail(18);
	op = hoist_get(&hoist, 0, 18);
	/* All rows of the tail are gone when it is read. */
	hoist.name_count -= 2;
	hoist_tick_of(&hoist, hoist_answer(&hoist, &op));
	transfer_drop_lease(hoist.transfer, hoist.lease);
	assert_int_equal(transfer_load(hoist.transfer).negatives, 2);
	expect_no_tail(0);
	transfer_drop_lease(hoist.transfer, hoist.lease);
	assert_true(transfer_clear(hoist.transfer));
	expect_no_tail(1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(A3_2_the_exact_bound_is_a_boundary),
		TEST(A3_2_a_prompt_of_less_than_a_page_has_one_boundary),
		TEST(A3_10_a_hint_is_recorded_once_the_tail_is_published),
		TEST(A3_10_a_detached_get_records_no_hint),
		TEST(A3_15_a_hint_makes_an_older_tail_a_candidate_of_a_longer_prompt),
		TEST(a_tail_that_was_not_there_is_not_asked_for_again),
		TEST(A3_14_a_tail_that_is_there_counts_as_local),
		TEST(a_tail_that_makes_the_hit_longer_makes_the_lookahead_reach_further),
		TEST(A3_14_a_tail_that_is_there_is_not_crowded_out),
		TEST(A3_15_what_the_store_has_of_one_tail_is_no_hint_of_another),
		TEST(A3_15_what_no_store_has_of_one_tail_is_no_hint_of_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
