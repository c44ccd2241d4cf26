/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References of blocks, and a pool of a million parents, scenario by scenario; what random calls do is the
 * model's matter.  Groups are called after their packings.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "basin.h"

/* --- references ------------------------------------------------------------------------------- */

static void only_the_last_unpin_frees(void **state)
{
	struct pool *const pool = basin_open(4);
	const uint32_t     block = basin_take(pool, ONE);

	(void)state;
	assert_int_equal(pool_unbound(pool), 3);
	assert_int_equal(pool_pin(pool, ONE, block), 2);
	assert_int_equal(pool_refs(pool, ONE, block), 2);
	assert_int_equal(pool_unpin(pool, ONE, block), 1);
	assert_int_equal(pool_unbound(pool), 3);
	basin_drop(pool, ONE, block);
	assert_int_equal(pool_refs(pool, ONE, block), 0);
	assert_int_equal(pool_unbound(pool), 4);
	pool_close(pool);
}

/* What an assignment does: pin the new block, let go of the old one; it may be the same. */
static void a_holder_may_change_its_block(void **state)
{
	struct pool *const pool = basin_open(4);
	const uint32_t     old = basin_take(pool, ONE);
	const uint32_t     next = basin_take(pool, ONE);

	(void)state;
	assert_int_equal(pool_pin(pool, ONE, old), 2);
	assert_int_equal(pool_unpin(pool, ONE, old), 1);
	assert_int_equal(pool_pin(pool, ONE, next), 2);
	assert_int_equal(pool_unpin(pool, ONE, old), 0);
	assert_int_equal(pool_unbound(pool), 3);
	assert_int_equal(pool_unpin(pool, ONE, next), 1);
	basin_drop(pool, ONE, next);
	pool_close(pool);
}

static void a_block_is_held_until_the_last_of_many_holders(void **state)
{
	struct pool *const pool = basin_open(4);
	const uint32_t     block = basin_take(pool, ONE);
	uint32_t           i;

	(void)state;
	for (i = 0; i < 8; i++)
		assert_int_equal(pool_pin(pool, ONE, block), 2 + i);
	for (i = 8; i > 0; i--)
		assert_int_equal(pool_unpin(pool, ONE, block), i);
	assert_int_equal(pool_unbound(pool), 3);
	basin_drop(pool, ONE, block);
	assert_int_equal(pool_unbound(pool), 4);
	pool_close(pool);
}

static void the_last_holder_frees_just_this_place(void **state)
{
	struct pool *const pool = basin_open(1);
	uint32_t           blocks[2];

	(void)state;
	assert_true(pool_acquire(pool, TWO, 2, blocks));
	pool_pin(pool, TWO, blocks[0]);
	basin_drop(pool, TWO, blocks[1]);
	assert_int_equal(pool_unpin(pool, TWO, blocks[0]), 1);
	basin_expect_bound(pool, 1, TWO, 1);
	assert_int_equal(pool_refs(pool, TWO, blocks[0]), 1);
	basin_drop(pool, TWO, blocks[0]);
	basin_expect_unbound(pool, 1);
	pool_close(pool);
}

static void a_hole_may_be_let_go_of(void **state)
{
	struct pool *const pool = basin_open(1);

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
	assert_int_equal(pool_open(MANY, basin_packings, GROUPS, &pool, NULL), 0);
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
		cmocka_unit_test(only_the_last_unpin_frees),
		cmocka_unit_test(a_holder_may_change_its_block),
		cmocka_unit_test(a_block_is_held_until_the_last_of_many_holders),
		cmocka_unit_test(the_last_holder_frees_just_this_place),
		cmocka_unit_test(a_hole_may_be_let_go_of),
		cmocka_unit_test(a_million_parents_keep_the_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
