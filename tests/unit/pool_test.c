/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parents and their blocks, scenario by scenario; what random calls do is the model's matter.  Groups are
 * called after their packings.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "basin.h"

/* --- parents ---------------------------------------------------------------------------------- */

static void a_new_pool_has_its_parents_and_all_are_unbound(void **state)
{
	struct pool *const pool = basin_open(8);
	uint32_t           i;

	(void)state;
	assert_int_equal(pool_parent_count(pool), 8);
	assert_int_equal(pool_unbound(pool), 8);
	for (i = 1; i <= 8; i++)
		basin_expect_unbound(pool, i);
	for (i = 0; i < GROUPS; i++) {
		assert_int_equal(pool_packing(pool, i), basin_packings[i]);
		assert_int_equal(pool_room(pool, i), 0);
	}
	pool_close(pool);
	pool_close(NULL);
}

static void all_or_none_are_taken(void **state)
{
	struct pool *const pool = basin_open(3);
	uint32_t           blocks[4] = { 0, 0, 0, 77 };
	uint32_t           i;

	(void)state;
	assert_false(pool_acquire(pool, ONE, 4, blocks));
	assert_int_equal(pool_unbound(pool), 3);
	assert_int_equal(blocks[0], 0);
	assert_true(pool_acquire(pool, ONE, 3, blocks));
	assert_int_equal(pool_unbound(pool), 0);
	assert_int_equal(blocks[3], 77);
	assert_false(pool_acquire(pool, ONE, 1, blocks + 3));
	pool_audit(pool);
	for (i = 0; i < 3; i++) {
		assert_int_equal(blocks[i], i + 1);
		basin_drop(pool, ONE, blocks[i]);
	}
	pool_close(pool);
}

static void none_may_be_asked_for_of_a_full_pool_too(void **state)
{
	struct pool *const pool = basin_open(1);
	const uint32_t     block = basin_take(pool, ONE);

	(void)state;
	assert_true(pool_acquire(pool, ONE, 0, NULL));
	assert_true(pool_acquire(pool, TWO, 0, NULL));
	assert_int_equal(pool_refs(pool, ONE, block), 1);
	basin_drop(pool, ONE, block);
	pool_close(pool);
}

static void the_first_block_binds_a_parent(void **state)
{
	struct pool *const pool = basin_open(3);
	const uint32_t     block = basin_take(pool, TWO);

	(void)state;
	assert_int_equal(block, 1);
	assert_int_equal(pool_parent_of(pool, TWO, block), 1);
	basin_expect_bound(pool, 1, TWO, 1);
	assert_int_equal(pool_room(pool, TWO), 1);
	assert_int_equal(pool_unbound(pool), 2);
	basin_drop(pool, TWO, block);
	pool_close(pool);
}

static void a_shortfall_changes_nothing(void **state)
{
	struct pool *const pool = basin_open(1);
	const uint32_t     first = basin_take(pool, TWO);
	uint32_t           blocks[2];

	(void)state;
	assert_false(pool_acquire(pool, TWO, 2, blocks));
	pool_audit(pool);
	basin_expect_bound(pool, 1, TWO, 1);
	assert_int_equal(pool_refs(pool, TWO, first), 1);
	assert_int_equal(pool_room(pool, TWO), 1);
	assert_int_equal(basin_take(pool, TWO), 2);
	basin_drop(pool, TWO, 2);
	basin_drop(pool, TWO, first);
	pool_close(pool);
}

static void a_parent_changes_its_group_only_when_it_is_empty(void **state)
{
	struct pool *const pool = basin_open(1);
	const uint32_t     block = basin_take(pool, TWO);
	uint32_t           other;

	(void)state;
	assert_false(pool_acquire(pool, EIGHT, 1, &other));
	basin_drop(pool, TWO, block);
	basin_expect_unbound(pool, 1);
	other = basin_take(pool, EIGHT);
	assert_int_equal(other, 1);
	basin_expect_bound(pool, 1, EIGHT, 1);
	basin_drop(pool, EIGHT, other);
	pool_close(pool);
}

static void parents_that_were_given_back_serve_any_group(void **state)
{
	struct pool *const pool = basin_open(2);
	uint32_t           blocks[2];

	(void)state;
	assert_true(pool_acquire(pool, ONE, 2, blocks));
	basin_drop(pool, ONE, blocks[0]);
	basin_drop(pool, ONE, blocks[1]);
	assert_int_equal(pool_unbound(pool), 2);
	blocks[0] = basin_take(pool, TWO);
	blocks[1] = basin_take(pool, ONE);
	assert_int_equal(pool_unbound(pool), 0);
	basin_drop(pool, TWO, blocks[0]);
	basin_drop(pool, ONE, blocks[1]);
	pool_close(pool);
}

/* Late I/O of an earlier owner has the longest possible time to show itself. */
static void a_parent_that_was_given_back_rests_behind_all_others(void **state)
{
	const uint32_t     order[] = { 4, 5, 3, 1 };
	struct pool *const pool = basin_open(5);
	uint32_t           i;

	(void)state;
	for (i = 1; i <= 3; i++)
		assert_int_equal(basin_take(pool, ONE), i);
	basin_drop(pool, ONE, 3);
	basin_drop(pool, ONE, 1);
	for (i = 0; i < 4; i++)
		assert_int_equal(basin_take(pool, ONE), order[i]);
	for (i = 1; i <= 5; i++)
		basin_drop(pool, ONE, i);
	pool_close(pool);
}

/* --- blocks of a parent ----------------------------------------------------------------------- */

static void blocks_of_a_group_share_a_parent(void **state)
{
	struct pool *const pool = basin_open(1);
	const uint32_t     first = basin_take(pool, TWO);
	const uint32_t     second = basin_take(pool, TWO);

	(void)state;
	assert_int_equal(first, 1);
	assert_int_equal(second, 2);
	assert_int_equal(pool_parent_of(pool, TWO, second), 1);
	basin_expect_bound(pool, 1, TWO, 2);
	basin_drop(pool, TWO, first);
	basin_drop(pool, TWO, second);
	pool_close(pool);
}

static void only_the_place_that_was_given_back_is_taken_again(void **state)
{
	struct pool *const pool = basin_open(2);
	uint32_t           blocks[8];
	uint32_t           i;

	(void)state;
	assert_true(pool_acquire(pool, EIGHT, 8, blocks));
	basin_drop(pool, EIGHT, blocks[5]);
	basin_drop(pool, EIGHT, blocks[2]);
	assert_int_equal(pool_refs(pool, EIGHT, blocks[4]), 1);
	/* Within a parent the lowest place goes first, whatever was given back first. */
	assert_int_equal(basin_take(pool, EIGHT), blocks[2]);
	assert_int_equal(basin_take(pool, EIGHT), blocks[5]);
	assert_int_equal(pool_unbound(pool), 1);
	for (i = 0; i < 8; i++)
		basin_drop(pool, EIGHT, blocks[i]);
	pool_close(pool);
}

static void the_fullest_parent_is_filled_first(void **state)
{
	const uint32_t     order[] = { 3, 5, 6, 7 };
	struct pool *const pool = basin_open(3);
	uint32_t           blocks[4];
	uint32_t           i;

	(void)state;
	/* Parent 1 has 2 of 3, parent 2 has 1. */
	assert_true(pool_acquire(pool, THREE, 4, blocks));
	basin_drop(pool, THREE, blocks[2]);
	basin_expect_bound(pool, 1, THREE, 2);
	basin_expect_bound(pool, 2, THREE, 1);
	for (i = 0; i < 4; i++)
		assert_int_equal(basin_take(pool, THREE), order[i]);
	for (i = 1; i <= 7; i++)
		basin_drop(pool, THREE, i);
	pool_close(pool);
}

static void one_call_takes_in_the_same_order_as_many(void **state)
{
	const uint32_t     order[] = { 3, 6, 8, 9, 10 };
	struct pool *const pool = basin_open(4);
	uint32_t           blocks[9];
	uint32_t           i;

	(void)state;
	assert_true(pool_acquire(pool, THREE, 9, blocks));
	/* Equally full are 1 and 2: the lower one goes first, though it came to it later. */
	basin_drop(pool, THREE, 6);
	basin_drop(pool, THREE, 3);
	/* And 3 is emptier than both. */
	basin_drop(pool, THREE, 8);
	basin_drop(pool, THREE, 9);
	assert_int_equal(pool_room(pool, THREE), 4);
	assert_true(pool_acquire(pool, THREE, 5, blocks));
	pool_audit(pool);
	assert_memory_equal(blocks, order, sizeof(order));
	assert_int_equal(pool_room(pool, THREE), 2);
	for (i = 1; i <= 10; i++)
		basin_drop(pool, THREE, i);
	pool_close(pool);
}

static void the_last_block_unbinds_its_parent_at_once(void **state)
{
	struct pool *const pool = basin_open(1);
	uint32_t           blocks[2];

	(void)state;
	assert_true(pool_acquire(pool, EIGHT, 2, blocks));
	basin_drop(pool, EIGHT, blocks[0]);
	basin_expect_bound(pool, 1, EIGHT, 1);
	basin_drop(pool, EIGHT, blocks[1]);
	basin_expect_unbound(pool, 1);
	assert_int_equal(pool_unbound(pool), 1);
	assert_int_equal(pool_room(pool, EIGHT), 0);
	pool_close(pool);
}

/* An engine's kernels find a block's rows from its number alone. */
static void a_block_number_says_parent_and_place(void **state)
{
	struct pool *const pool = basin_open(3);
	uint32_t           blocks[9];
	uint32_t           one, i;

	(void)state;
	assert_true(pool_acquire(pool, EIGHT, 9, blocks));
	for (i = 0; i < 9; i++) {
		assert_int_equal(blocks[i], i + 1);
		assert_int_equal(pool_parent_of(pool, EIGHT, blocks[i]), i < 8 ? 1 : 2);
	}
	one = basin_take(pool, ONE);
	assert_int_equal(one, 3);
	assert_int_equal(pool_parent_of(pool, ONE, one), 3);
	for (i = 0; i < 9; i++)
		basin_drop(pool, EIGHT, blocks[i]);
	basin_drop(pool, ONE, one);
	pool_close(pool);
}

static void a_number_means_something_only_with_its_group(void **state)
{
	struct pool *const pool = basin_open(3);
	uint32_t           pair[2];
	uint32_t           two;

	(void)state;
	assert_true(pool_acquire(pool, TWO, 2, pair));
	assert_int_equal(basin_take(pool, ONE), 2);
	assert_int_equal(basin_take(pool, EIGHT), 17);
	/* Block 2 of TWO lies in parent 1, block 2 of ONE in parent 2. */
	two = pair[1];
	assert_int_equal(two, 2);
	pool_pin(pool, TWO, two);
	assert_int_equal(pool_refs(pool, TWO, 2), 2);
	assert_int_equal(pool_refs(pool, ONE, 2), 1);
	/* Parent 2 does not serve THREE, nor parent 1 ONE, whatever lies there. */
	assert_int_equal(pool_refs(pool, THREE, 4), 0);
	assert_int_equal(pool_refs(pool, ONE, 1), 0);
	assert_int_equal(pool_unpin(pool, TWO, 2), 1);
	basin_drop(pool, ONE, 2);
	assert_int_equal(pool_refs(pool, TWO, 2), 1);
	basin_drop(pool, TWO, 2);
	basin_drop(pool, TWO, 1);
	basin_drop(pool, EIGHT, 17);
	pool_close(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_pool_has_its_parents_and_all_are_unbound),
		cmocka_unit_test(all_or_none_are_taken),
		cmocka_unit_test(none_may_be_asked_for_of_a_full_pool_too),
		cmocka_unit_test(the_first_block_binds_a_parent),
		cmocka_unit_test(a_shortfall_changes_nothing),
		cmocka_unit_test(a_parent_changes_its_group_only_when_it_is_empty),
		cmocka_unit_test(parents_that_were_given_back_serve_any_group),
		cmocka_unit_test(a_parent_that_was_given_back_rests_behind_all_others),
		cmocka_unit_test(blocks_of_a_group_share_a_parent),
		cmocka_unit_test(only_the_place_that_was_given_back_is_taken_again),
		cmocka_unit_test(the_fullest_parent_is_filled_first),
		cmocka_unit_test(one_call_takes_in_the_same_order_as_many),
		cmocka_unit_test(the_last_block_unbinds_its_parent_at_once),
		cmocka_unit_test(a_block_number_says_parent_and_place),
		cmocka_unit_test(a_number_means_something_only_with_its_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
