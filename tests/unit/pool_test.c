/* SPDX-License-Identifier: Apache-2.0 */
/* References over block numbers: who holds a block, and when it may be handed out again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "death.h"
#include "pool/pool.h"

static struct pool open_pool(uint32_t block_count)
{
	struct pool pool;

	assert_int_equal(pool_open(&pool, block_count), 0);
	return pool;
}

static void every_block_is_handed_out_once_then_none(void **state)
{
	struct pool pool = open_pool(3);
	uint32_t    block;

	(void)state;
	for (block = 0; block < 3; block++) {
		assert_int_equal(pool_free_count(&pool), 3 - block);
		assert_int_equal(pool_acquire(&pool), block);
		assert_int_equal(pool_refs(&pool, block), 1);
		pool_audit(&pool);
	}
	assert_int_equal(pool_acquire(&pool), SLOT_NONE);
	assert_int_equal(pool_free_count(&pool), 0);
	pool_close(&pool);
}

static void only_the_last_unpin_frees(void **state)
{
	struct pool pool = open_pool(1);

	(void)state;
	assert_int_equal(pool_acquire(&pool), 0);
	assert_int_equal(pool_pin(&pool, 0), 2);
	assert_int_equal(pool_unpin(&pool, 0), 1);
	assert_int_equal(pool_acquire(&pool), SLOT_NONE);
	assert_int_equal(pool_unpin(&pool, 0), 0);
	pool_audit(&pool);
	assert_int_equal(pool_acquire(&pool), 0);
	pool_close(&pool);
}

/* Late I/O of an earlier owner has the longest possible time to show itself. */
static void a_freed_block_rests_behind_all_others(void **state)
{
	const uint32_t order[] = { 2, 3, 1, 0 };
	struct pool    pool = open_pool(4);
	uint32_t       i;

	(void)state;
	assert_int_equal(pool_acquire(&pool), 0);
	assert_int_equal(pool_acquire(&pool), 1);
	pool_unpin(&pool, 1);
	pool_unpin(&pool, 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(pool_acquire(&pool), order[i]);
	pool_audit(&pool);
	pool_close(&pool);
}

static void close_leaves_a_pool_that_may_be_closed(void **state)
{
	struct pool pool = open_pool(2);

	(void)state;
	pool_close(&pool);
	pool_close(&pool);
	assert_null(pool.refs);
}

static void pin_free(void *pool)
{
	pool_pin(pool, 1);
}

static void unpin_free(void *pool)
{
	pool_unpin(pool, 1);
}

static void unpin_outside(void *pool)
{
	pool_unpin(pool, 2);
}

static void pin_outside(void *pool)
{
	pool_pin(pool, 2);
}

/* The child works on its own copy of the pool. */
static void audit_of_a_lost_block(void *arg)
{
	struct pool *const pool = arg;

	pool->refs[0] = 0;
	pool_audit(pool);
}

static void audit_of_a_free_block(void *arg)
{
	struct pool *const pool = arg;

	pool->refs[0] = 0;
	pool->refs[1] = 1;
	pool_audit(pool);
}

static void mistakes_are_panics(void **state)
{
	void (*const mistakes[])(void *) = { pin_free, unpin_free, unpin_outside, pin_outside,
					     audit_of_a_lost_block, audit_of_a_free_block };
	struct pool pool = open_pool(2);
	size_t      i;

	(void)state;
	assert_int_equal(pool_acquire(&pool), 0);
	for (i = 0; i < ARRAY_COUNT(mistakes); i++)
		assert_true(death_panics(mistakes[i], &pool, NULL, 0));
	pool_close(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_block_is_handed_out_once_then_none),
		cmocka_unit_test(only_the_last_unpin_frees),
		cmocka_unit_test(a_freed_block_rests_behind_all_others),
		cmocka_unit_test(close_leaves_a_pool_that_may_be_closed),
		cmocka_unit_test(mistakes_are_panics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
