/* SPDX-License-Identifier: Apache-2.0 */
/* Others publish what a read waits for. */
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

static void publish_all(uint32_t prompt, uint32_t pages)
{
	uint32_t page;

	for (page = 0; page < pages; page++)
		hoist_publish(&hoist, prompt, HOIST_FULL, page);
	hoist_publish(&hoist, prompt, HOIST_STATE, pages - 1);
}

static void A3_13_local_publication_satisfies_a_query(void **state)
{
	const struct lease lease = hoist_ask(&hoist, 0, 16);
	const struct op    query = hoist_last_op(&hoist);

	(void)state;
	publish_all(0, 4);
	/* The last key of the longest boundary is its checkpoint. */
	assert_int_equal(transfer_wake_ns(hoist.transfer), hoist.tick.now_ns);
	hoist_tick(&hoist);
	hoist_expect_wake(&hoist, lease, READ_LOCAL);
	hoist_expect_cancel(&hoist, query.op_id);
	assert_int_equal(hoist_wake(&hoist).shortfall.tokens, 16);
	assert_int_equal(hoist_counter(&hoist, TRANSFER_LOCAL), 1);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &query));
	hoist_expect_home(&hoist);
}

static void A3_13_local_publication_satisfies_a_get(void **state)
{
	const struct op get = hoist_get(&hoist, 0, 16);

	(void)state;
	publish_all(0, 4);
	hoist_tick(&hoist);
	hoist_expect_wake(&hoist, hoist.lease, READ_LOCAL);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &get));
	assert_int_equal(transfer_out(hoist.transfer)->wake_count, 0);
	hoist_expect_home(&hoist);
}

static void a_part_of_it_does_not(void **state)
{
	uint32_t page;

	(void)state;
	hoist_ask(&hoist, 0, 16);
	hoist_publish(&hoist, 0, HOIST_FULL, 0);
	hoist_tick(&hoist);
	assert_int_equal(transfer_out(hoist.transfer)->wake_count, 0);
	for (page = 1; page < 4; page++)
		hoist_publish(&hoist, 0, HOIST_FULL, page);
	hoist_tick(&hoist);
	assert_int_equal(transfer_out(hoist.transfer)->wake_count, 0);
	hoist_publish(&hoist, 0, HOIST_STATE, 3);
	hoist_tick(&hoist);
	hoist_expect_wake(&hoist, hoist.lease, READ_LOCAL);
}

/* The watched name was published before the others, or too early: the block is not enough. */
static void the_watched_name_alone_is_not_enough(void **state)
{
	(void)state;
	hoist_ask(&hoist, 0, 16);
	hoist_publish(&hoist, 0, HOIST_STATE, 3);
	hoist_tick(&hoist);
	assert_int_equal(transfer_out(hoist.transfer)->wake_count, 0);
}

static void a_get_of_less_wants_less(void **state)
{
	struct op get;

	(void)state;
	hoist_unstore(&hoist, 0, HOIST_FULL, 2, 4);
	get = hoist_get(&hoist, 0, 16);
	assert_int_equal(get.key_count, 3);
	publish_all(0, 2);
	hoist_tick(&hoist);
	hoist_expect_wake(&hoist, hoist.lease, READ_LOCAL);
	hoist_expect_cancel(&hoist, get.op_id);
}

static void what_was_planned_is_enough_though_the_prompt_is_longer(void **state)
{
	struct transfer_limits limits = hoist_limits;
	struct fact            fact;
	struct op              query;

	(void)state;
	limits.lookahead_tokens = 8;
	hoist_close(&hoist);
	hoist_open_plain(&hoist, hoist_full_state, &limits);
	hoist_ask(&hoist, 0, 16);
	query = hoist_last_op(&hoist);
	box_put_host(&hoist.box, HOIST_FULL, 0, 2);
	box_put_host(&hoist.box, HOIST_STATE, 1, 2);
	fact_refused(&fact, &query, OP_REASON_MISS);
	hoist_tick_of(&hoist, fact);
	hoist_expect_wake(&hoist, hoist.lease, READ_LOCAL);
	assert_int_equal(hoist_wake(&hoist).shortfall.tokens, 8);
}

static void A3_13_the_get_of_another_satisfies_too(void **state)
{
	const struct op    first = hoist_get(&hoist, 0, 16);
	const struct lease reader = hoist.lease;
	struct lease       other;
	struct op          second;

	(void)state;
	second = hoist_get(&hoist, 0, 16);
	other = hoist.lease;
	hoist_tick_of(&hoist, hoist_answer(&hoist, &first));
	hoist_expect_wake(&hoist, reader, READ_READY);
	hoist_tick(&hoist);
	hoist_expect_wake(&hoist, other, READ_LOCAL);
	hoist_expect_cancel(&hoist, second.op_id);
	assert_true(transfer_fetched(hoist.transfer, reader, HOIST_FULL,
				     hoist_find(&hoist, 0, HOIST_FULL, 0)));
	assert_false(transfer_fetched(hoist.transfer, other, HOIST_FULL,
				      hoist_find(&hoist, 0, HOIST_FULL, 0)));
}

static void two_gets_of_one_name_on_one_tick_hold_one_block(void **state)
{
	const struct op   first = hoist_get(&hoist, 0, 16);
	const struct op   second = hoist_get(&hoist, 0, 16);
	const struct fact facts[] = { hoist_answer(&hoist, &first), hoist_answer(&hoist, &second) };
	const struct transfer_outputs *out;

	(void)state;
	hoist_fact(&hoist, &facts[0]);
	hoist_fact(&hoist, &facts[1]);
	hoist_tick(&hoist);
	out = transfer_out(hoist.transfer);
	assert_int_equal(out->wake_count, 2);
	assert_int_equal(out->wakes[1].outcome, READ_READY);
	assert_true(transfer_fetched(hoist.transfer, out->wakes[0].lease, HOIST_FULL,
				     hoist_find(&hoist, 0, HOIST_FULL, 0)));
	assert_false(transfer_fetched(hoist.transfer, out->wakes[1].lease, HOIST_FULL,
				      hoist_find(&hoist, 0, HOIST_FULL, 0)));
	transfer_drop_lease(hoist.transfer, out->wakes[1].lease);
	hoist_audit(&hoist);
	assert_true(transfer_fetched(hoist.transfer, out->wakes[0].lease, HOIST_FULL,
				     hoist_find(&hoist, 0, HOIST_FULL, 0)));
	transfer_drop_lease(hoist.transfer, out->wakes[0].lease);
	hoist_audit(&hoist);
	hoist_expect_home(&hoist);
}

static void what_is_there_when_the_query_is_answered_ends_it(void **state)
{
	const struct lease lease = hoist_ask(&hoist, 0, 16);
	const struct op    query = hoist_last_op(&hoist);
	uint32_t           page;

	(void)state;
	for (page = 0; page < 4; page++)
		box_put_host(&hoist.box, HOIST_FULL, page, page + 1);
	box_put_host(&hoist.box, HOIST_STATE, 3, 4);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &query));
	hoist_expect_wake(&hoist, lease, READ_LOCAL);
	hoist_expect_home(&hoist);
}

/* The store lacks all of it, and it is all there. */
static void nothing_is_short_where_others_published_all(void **state)
{
	struct op   query;
	struct fact fact;

	(void)state;
	hoist_ask(&hoist, 0, 16);
	query = hoist_last_op(&hoist);
	box_put_host(&hoist.box, HOIST_FULL, 0, 4);
	box_put_host(&hoist.box, HOIST_STATE, 3, 4);
	fact_refused(&fact, &query, OP_REASON_MISS);
	hoist_tick_of(&hoist, fact);
	hoist_expect_wake(&hoist, hoist.lease, READ_LOCAL);
	assert_int_equal(hoist_wake(&hoist).shortfall.tokens, 16);
	assert_int_equal(hoist_wake(&hoist).shortfall.cause, READ_READY);
}

static void nothing_is_short_where_others_published_more_than_it_gets(void **state)
{
	(void)state;
	hoist_unstore(&hoist, 0, HOIST_FULL, 2, 4);
	hoist_get(&hoist, 0, 16);
	box_put_host(&hoist.box, HOIST_FULL, 0, 4);
	box_put_host(&hoist.box, HOIST_STATE, 3, 4);
	hoist_publish(&hoist, 0, HOIST_STATE, 1);
	hoist_tick(&hoist);
	hoist_expect_wake(&hoist, hoist.lease, READ_LOCAL);
	assert_int_equal(hoist_wake(&hoist).shortfall.tokens, 16);
	assert_int_equal(hoist_wake(&hoist).shortfall.cause, READ_READY);
}

static void the_deadline_of_the_same_tick_comes_first(void **state)
{
	(void)state;
	hoist_ask(&hoist, 0, 16);
	publish_all(0, 4);
	hoist.tick.now_ns = 1001;
	hoist_tick(&hoist);
	hoist_expect_wake(&hoist, hoist.lease, READ_DEADLINE);
}

static void A3_13_all_that_watch_one_name_are_satisfied(void **state)
{
	const struct lease             first = hoist_ask(&hoist, 0, 16);
	const struct lease             second = hoist_ask(&hoist, 0, 16);
	const struct transfer_outputs *out = transfer_out(hoist.transfer);

	(void)state;
	publish_all(0, 4);
	hoist_tick(&hoist);
	assert_int_equal(out->wake_count, 2);
	assert_int_equal(out->wakes[0].lease.id, first.id);
	assert_int_equal(out->wakes[1].lease.id, second.id);
	assert_int_equal(out->wakes[1].outcome, READ_LOCAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(A3_13_local_publication_satisfies_a_query),
		TEST(A3_13_local_publication_satisfies_a_get),
		TEST(a_part_of_it_does_not),
		TEST(A3_13_the_get_of_another_satisfies_too),
		TEST(two_gets_of_one_name_on_one_tick_hold_one_block),
		TEST(what_is_there_when_the_query_is_answered_ends_it),
		TEST(the_deadline_of_the_same_tick_comes_first),
		TEST(the_watched_name_alone_is_not_enough),
		TEST(a_get_of_less_wants_less),
		TEST(nothing_is_short_where_others_published_all),
		TEST(nothing_is_short_where_others_published_more_than_it_gets),
		TEST(what_was_planned_is_enough_though_the_prompt_is_longer),
		TEST(A3_13_all_that_watch_one_name_are_satisfied),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
