/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parents, blocks and references, scenario by scenario; what random calls do is the model's matter.
 *
 * Groups are called after their packings.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "pool/pool.h"

enum { ONE, TWO, THREE, EIGHT, GROUPS };

static const uint32_t packings[GROUPS] = { 1, 2, 3, 8 };

static struct pool *open_pool(uint32_t parent_count)
{
	struct pool *pool;

	assert_int_equal(pool_open(parent_count, packings, GROUPS, &pool, NULL), 0);
	pool_audit(pool);
	return pool;
}

static uint32_t take(struct pool *pool, uint32_t group)
{
	uint32_t block;

	assert_true(pool_acquire(pool, group, 1, &block));
	assert_int_equal(pool_refs(pool, group, block), 1);
	pool_audit(pool);
	return block;
}

static void drop(struct pool *pool, uint32_t group, uint32_t block)
{
	assert_int_equal(pool_unpin(pool, group, block), 0);
	pool_audit(pool);
}

static void assert_bound(const struct pool *pool, uint32_t parent, uint32_t group, uint32_t used)
{
	uint32_t bound = GROUPS;

	assert_true(pool_bound(pool, parent, &bound));
	assert_int_equal(bound, group);
	assert_int_equal(pool_used(pool, parent), used);
}

static void assert_unbound(const struct pool *pool, uint32_t parent)
{
	uint32_t bound = GROUPS;

	assert_false(pool_bound(pool, parent, &bound));
	assert_int_equal(bound, GROUPS);
	assert_int_equal(pool_used(pool, parent), 0);
}

/* --- parents ---------------------------------------------------------------------------------- */

static void a_new_pool_has_its_parents_and_all_are_unbound(void **state)
{
	struct pool *const pool = open_pool(8);
	uint32_t           i;

	(void)state;
	assert_int_equal(pool_parent_count(pool), 8);
	assert_int_equal(pool_unbound(pool), 8);
	for (i = 1; i <= 8; i++)
		assert_unbound(pool, i);
	for (i = 0; i < GROUPS; i++) {
		assert_int_equal(pool_packing(pool, i), packings[i]);
		assert_int_equal(pool_room(pool, i), 0);
	}
	pool_close(pool);
	pool_close(NULL);
}

static void all_or_none_are_taken(void **state)
{
	struct pool *const pool = open_pool(3);
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
		drop(pool, ONE, blocks[i]);
	}
	pool_close(pool);
}

static void none_may_be_asked_for_of_a_full_pool_too(void **state)
{
	struct pool *const pool = open_pool(1);
	const uint32_t     block = take(pool, ONE);

	(void)state;
	assert_true(pool_acquire(pool, ONE, 0, NULL));
	assert_true(pool_acquire(pool, TWO, 0, NULL));
	assert_int_equal(pool_refs(pool, ONE, block), 1);
	drop(pool, ONE, block);
	pool_close(pool);
}

static void the_first_block_binds_a_parent(void **state)
{
	struct pool *const pool = open_pool(3);
	const uint32_t     block = take(pool, TWO);

	(void)state;
	assert_int_equal(block, 1);
	assert_int_equal(pool_parent_of(pool, TWO, block), 1);
	assert_bound(pool, 1, TWO, 1);
	assert_int_equal(pool_room(pool, TWO), 1);
	assert_int_equal(pool_unbound(pool), 2);
	drop(pool, TWO, block);
	pool_close(pool);
}

static void a_shortfall_changes_nothing(void **state)
{
	struct pool *const pool = open_pool(1);
	const uint32_t     first = take(pool, TWO);
	uint32_t           blocks[2];

	(void)state;
	assert_false(pool_acquire(pool, TWO, 2, blocks));
	pool_audit(pool);
	assert_bound(pool, 1, TWO, 1);
	assert_int_equal(pool_refs(pool, TWO, first), 1);
	assert_int_equal(pool_room(pool, TWO), 1);
	assert_int_equal(take(pool, TWO), 2);
	drop(pool, TWO, 2);
	drop(pool, TWO, first);
	pool_close(pool);
}

static void a_parent_changes_its_group_only_when_it_is_empty(void **state)
{
	struct pool *const pool = open_pool(1);
	const uint32_t     block = take(pool, TWO);
	uint32_t           other;

	(void)state;
	assert_false(pool_acquire(pool, EIGHT, 1, &other));
	drop(pool, TWO, block);
	assert_unbound(pool, 1);
	other = take(pool, EIGHT);
	assert_int_equal(other, 1);
	assert_bound(pool, 1, EIGHT, 1);
	drop(pool, EIGHT, other);
	pool_close(pool);
}

static void parents_that_were_given_back_serve_any_group(void **state)
{
	struct pool *const pool = open_pool(2);
	uint32_t           blocks[2];

	(void)state;
	assert_true(pool_acquire(pool, ONE, 2, blocks));
	drop(pool, ONE, blocks[0]);
	drop(pool, ONE, blocks[1]);
	assert_int_equal(pool_unbound(pool), 2);
	blocks[0] = take(pool, TWO);
	blocks[1] = take(pool, ONE);
	assert_int_equal(pool_unbound(pool), 0);
	drop(pool, TWO, blocks[0]);
	drop(pool, ONE, blocks[1]);
	pool_close(pool);
}

/* Late I/O of an earlier owner has the longest possible time to show itself. */
static void a_parent_that_was_given_back_rests_behind_all_others(void **state)
{
	const uint32_t     order[] = { 4, 5, 3, 1 };
	struct pool *const pool = open_pool(5);
	uint32_t           i;

	(void)state;
	for (i = 1; i <= 3; i++)
		assert_int_equal(take(pool, ONE), i);
	drop(pool, ONE, 3);
	drop(pool, ONE, 1);
	for (i = 0; i < 4; i++)
		assert_int_equal(take(pool, ONE), order[i]);
	for (i = 1; i <= 5; i++)
		drop(pool, ONE, i);
	pool_close(pool);
}

/* --- blocks of a parent ----------------------------------------------------------------------- */

static void blocks_of_a_group_share_a_parent(void **state)
{
	struct pool *const pool = open_pool(1);
	const uint32_t     first = take(pool, TWO);
	const uint32_t     second = take(pool, TWO);

	(void)state;
	assert_int_equal(first, 1);
	assert_int_equal(second, 2);
	assert_int_equal(pool_parent_of(pool, TWO, second), 1);
	assert_bound(pool, 1, TWO, 2);
	drop(pool, TWO, first);
	drop(pool, TWO, second);
	pool_close(pool);
}

static void only_the_place_that_was_given_back_is_taken_again(void **state)
{
	struct pool *const pool = open_pool(2);
	uint32_t           blocks[8];
	uint32_t           i;

	(void)state;
	assert_true(pool_acquire(pool, EIGHT, 8, blocks));
	drop(pool, EIGHT, blocks[5]);
	drop(pool, EIGHT, blocks[2]);
	assert_int_equal(pool_refs(pool, EIGHT, blocks[4]), 1);
	/* Within a parent the lowest place goes first, whatever was given back first. */
	assert_int_equal(take(pool, EIGHT), blocks[2]);
	assert_int_equal(take(pool, EIGHT), blocks[5]);
	assert_int_equal(pool_unbound(pool), 1);
	for (i = 0; i < 8; i++)
		drop(pool, EIGHT, blocks[i]);
	pool_close(pool);
}

static void the_fullest_parent_is_filled_first(void **state)
{
	const uint32_t     order[] = { 3, 5, 6, 7 };
	struct pool *const pool = open_pool(3);
	uint32_t           blocks[4];
	uint32_t           i;

	(void)state;
	/* Parent 1 has 2 of 3, parent 2 has 1. */
	assert_true(pool_acquire(pool, THREE, 4, blocks));
	drop(pool, THREE, blocks[2]);
	assert_bound(pool, 1, THREE, 2);
	assert_bound(pool, 2, THREE, 1);
	for (i = 0; i < 4; i++)
		assert_int_equal(take(pool, THREE), order[i]);
	for (i = 1; i <= 7; i++)
		drop(pool, THREE, i);
	pool_close(pool);
}

static void one_call_takes_in_the_same_order_as_many(void **state)
{
	const uint32_t     order[] = { 3, 6, 8, 9, 10 };
	struct pool *const pool = open_pool(4);
	uint32_t           blocks[9];
	uint32_t           i;

	(void)state;
	assert_true(pool_acquire(pool, THREE, 9, blocks));
	/* Equally full are 1 and 2: the lower one goes first, though it came to it later. */
	drop(pool, THREE, 6);
	drop(pool, THREE, 3);
	/* And 3 is emptier than both. */
	drop(pool, THREE, 8);
	drop(pool, THREE, 9);
	assert_int_equal(pool_room(pool, THREE), 4);
	assert_true(pool_acquire(pool, THREE, 5, blocks));
	pool_audit(pool);
	assert_memory_equal(blocks, order, sizeof(order));
	assert_int_equal(pool_room(pool, THREE), 2);
	for (i = 1; i <= 10; i++)
		drop(pool, THREE, i);
	pool_close(pool);
}

static void the_last_block_unbinds_its_parent_at_once(void **state)
{
	struct pool *const pool = open_pool(1);
	uint32_t           blocks[2];

	(void)state;
	assert_true(pool_acquire(pool, EIGHT, 2, blocks));
	drop(pool, EIGHT, blocks[0]);
	assert_bound(pool, 1, EIGHT, 1);
	drop(pool, EIGHT, blocks[1]);
	assert_unbound(pool, 1);
	assert_int_equal(pool_unbound(pool), 1);
	assert_int_equal(pool_room(pool, EIGHT), 0);
	pool_close(pool);
}

/* An engine's kernels find a block's rows from its number alone. */
static void a_block_number_says_parent_and_place(void **state)
{
	struct pool *const pool = open_pool(3);
	uint32_t           blocks[9];
	uint32_t           one, i;

	(void)state;
	assert_true(pool_acquire(pool, EIGHT, 9, blocks));
	for (i = 0; i < 9; i++) {
		assert_int_equal(blocks[i], i + 1);
		assert_int_equal(pool_parent_of(pool, EIGHT, blocks[i]), i < 8 ? 1 : 2);
	}
	one = take(pool, ONE);
	assert_int_equal(one, 3);
	assert_int_equal(pool_parent_of(pool, ONE, one), 3);
	for (i = 0; i < 9; i++)
		drop(pool, EIGHT, blocks[i]);
	drop(pool, ONE, one);
	pool_close(pool);
}

static void a_number_means_something_only_with_its_group(void **state)
{
	struct pool *const pool = open_pool(3);
	uint32_t           pair[2];
	uint32_t           two;

	(void)state;
	assert_true(pool_acquire(pool, TWO, 2, pair));
	assert_int_equal(take(pool, ONE), 2);
	assert_int_equal(take(pool, EIGHT), 17);
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
	drop(pool, ONE, 2);
	assert_int_equal(pool_refs(pool, TWO, 2), 1);
	drop(pool, TWO, 2);
	drop(pool, TWO, 1);
	drop(pool, EIGHT, 17);
	pool_close(pool);
}

/* --- references ------------------------------------------------------------------------------- */

static void only_the_last_unpin_frees(void **state)
{
	struct pool *const pool = open_pool(4);
	const uint32_t     block = take(pool, ONE);

	(void)state;
	assert_int_equal(pool_unbound(pool), 3);
	assert_int_equal(pool_pin(pool, ONE, block), 2);
	assert_int_equal(pool_refs(pool, ONE, block), 2);
	assert_int_equal(pool_unpin(pool, ONE, block), 1);
	assert_int_equal(pool_unbound(pool), 3);
	drop(pool, ONE, block);
	assert_int_equal(pool_refs(pool, ONE, block), 0);
	assert_int_equal(pool_unbound(pool), 4);
	pool_close(pool);
}

/* What an assignment does: pin the new block, let go of the old one; it may be the same. */
static void a_holder_may_change_its_block(void **state)
{
	struct pool *const pool = open_pool(4);
	const uint32_t     old = take(pool, ONE);
	const uint32_t     next = take(pool, ONE);

	(void)state;
	assert_int_equal(pool_pin(pool, ONE, old), 2);
	assert_int_equal(pool_unpin(pool, ONE, old), 1);
	assert_int_equal(pool_pin(pool, ONE, next), 2);
	assert_int_equal(pool_unpin(pool, ONE, old), 0);
	assert_int_equal(pool_unbound(pool), 3);
	assert_int_equal(pool_unpin(pool, ONE, next), 1);
	drop(pool, ONE, next);
	pool_close(pool);
}

static void a_block_is_held_until_the_last_of_many_holders(void **state)
{
	struct pool *const pool = open_pool(4);
	const uint32_t     block = take(pool, ONE);
	uint32_t           i;

	(void)state;
	for (i = 0; i < 8; i++)
		assert_int_equal(pool_pin(pool, ONE, block), 2 + i);
	for (i = 8; i > 0; i--)
		assert_int_equal(pool_unpin(pool, ONE, block), i);
	assert_int_equal(pool_unbound(pool), 3);
	drop(pool, ONE, block);
	assert_int_equal(pool_unbound(pool), 4);
	pool_close(pool);
}

static void the_last_holder_frees_just_this_place(void **state)
{
	struct pool *const pool = open_pool(1);
	uint32_t           blocks[2];

	(void)state;
	assert_true(pool_acquire(pool, TWO, 2, blocks));
	pool_pin(pool, TWO, blocks[0]);
	drop(pool, TWO, blocks[1]);
	assert_int_equal(pool_unpin(pool, TWO, blocks[0]), 1);
	assert_bound(pool, 1, TWO, 1);
	assert_int_equal(pool_refs(pool, TWO, blocks[0]), 1);
	drop(pool, TWO, blocks[0]);
	assert_unbound(pool, 1);
	pool_close(pool);
}

static void a_hole_may_be_let_go_of(void **state)
{
	struct pool *const pool = open_pool(1);

	(void)state;
	assert_int_equal(pool_refs(pool, TWO, POOL_NULL), 0);
	assert_int_equal(pool_unpin(pool, TWO, POOL_NULL), 0);
	pool_audit(pool);
	pool_close(pool);
}

/* --- size ------------------------------------------------------------------------------------- */

#define MANY 1000000u

/* Half of a million parents are partial while their blocks are taken again, one call each. */
static void a_million_parents_keep_the_order(void **state)
{
	struct pool    *pool;
	uint32_t *const blocks = malloc(4 * MANY * sizeof(*blocks));
	uint32_t        parent, i;

	(void)state;
	assert_non_null(blocks);
	assert_int_equal(pool_open(MANY, packings, GROUPS, &pool, NULL), 0);
	assert_true(pool_acquire(pool, EIGHT, 4 * MANY, blocks));
	assert_int_equal(pool_unbound(pool), MANY / 2);
	/* Even parents get one place of room, odd ones two, the last parents first. */
	for (parent = MANY / 2; parent > 0; parent--) {
		for (i = 0; i < 1 + parent % 2; i++)
			pool_unpin(pool, EIGHT, blocks[8 * (parent - 1) + i]);
	}
	assert_int_equal(pool_room(pool, EIGHT), MANY / 2 + MANY / 4);
	pool_audit(pool);
	for (parent = 2; parent <= MANY / 2; parent += 2) {
		assert_true(pool_acquire(pool, EIGHT, 1, &i));
		assert_int_equal(i, blocks[8 * (parent - 1)]);
	}
	for (parent = 1; parent <= MANY / 2; parent += 2) {
		assert_true(pool_acquire(pool, EIGHT, 1, &i));
		assert_int_equal(i, blocks[8 * (parent - 1)]);
		assert_true(pool_acquire(pool, EIGHT, 1, &i));
		assert_int_equal(i, blocks[8 * (parent - 1) + 1]);
	}
	assert_int_equal(pool_room(pool, EIGHT), 0);
	for (i = 4 * MANY; i > 0; i--)
		pool_unpin(pool, EIGHT, blocks[i - 1]);
	/* Those never bound go before those given back, and these last first. */
	assert_true(pool_acquire(pool, ONE, MANY, blocks));
	for (i = 0; i < MANY / 2; i++) {
		assert_int_equal(blocks[i], MANY / 2 + 1 + i);
		assert_int_equal(blocks[MANY / 2 + i], MANY / 2 - i);
	}
	pool_audit(pool);
	for (i = 0; i < MANY; i++)
		pool_unpin(pool, ONE, blocks[i]);
	pool_close(pool);
	free(blocks);
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
		cmocka_unit_test(only_the_last_unpin_frees),
		cmocka_unit_test(a_holder_may_change_its_block),
		cmocka_unit_test(a_block_is_held_until_the_last_of_many_holders),
		cmocka_unit_test(the_last_holder_frees_just_this_place),
		cmocka_unit_test(a_hole_may_be_let_go_of),
		cmocka_unit_test(a_million_parents_keep_the_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
