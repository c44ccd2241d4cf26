/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pool refuses, what it does when memory runs out, and which mistakes of ours it sees.
 *
 * Groups are called after their basin_packings.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "basin.h"
#include "death.h"
#include "pool/state.h"

/* --- what is refused -------------------------------------------------------------------------- */

static void assert_refused(uint32_t parent_count, const uint32_t *packing, uint32_t group_count,
			   const char *front)
{
	struct pool     *pool = (struct pool *)1;
	struct kvs_error err;

	assert_int_equal(pool_open(parent_count, packing, group_count, &pool, &err), KVS_E_INVALID);
	assert_int_equal(err.code, KVS_E_INVALID);
	if (strncmp(err.message, front, strlen(front)) != 0)
		fail_msg("'%s' does not begin with '%s'", err.message, front);
	assert_ptr_equal(pool, (struct pool *)1);
}

static void a_refusal_names_group_and_field(void **state)
{
	const uint32_t hollow[] = { 1, 2, 0 };
	const uint32_t large[] = { 1, 2048, 4096 };
	const uint32_t largest[] = { 1, UINT32_MAX };

	(void)state;
	assert_refused(0, basin_packings, GROUPS, "parent_count: 0 ");
	assert_refused(8, basin_packings, 0, "group_count: 0 ");
	assert_refused(8, hollow, 3, "group 2: packing: 0 ");
	/* 2^20 parents of 2,048 blocks: the last is number 2^31, one more than 32 bits with a sign say. */
	assert_refused(1u << 20, large, 3, "group 1: packing: 2048 ");
	assert_refused(1, largest, 2, "group 1: packing: 4294967295 ");
	assert_refused(UINT32_MAX, basin_packings, GROUPS, "group 0: packing: 1 ");
}

/* --- memory that runs out --------------------------------------------------------------------- */

static uint32_t allocations_left = UINT32_MAX;

static bool grant(void)
{
	if (allocations_left == 0)
		return false;
	allocations_left--;
	return true;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	return grant() ? __real_malloc(bytes) : NULL;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return grant() ? __real_calloc(count, bytes) : NULL;
}

static void an_open_without_memory_leaves_nothing(void **state)
{
	struct pool     *pool = NULL;
	struct kvs_error err;
	uint32_t         granted;
	int              rc = -ENOMEM;

	(void)state;
	if (!LINKER_WRAPS)
		skip();
	for (granted = 0; rc < 0; granted++) {
		assert_null(pool);
		allocations_left = granted;
		rc = pool_open(100, basin_packings, GROUPS, &pool, &err);
		allocations_left = UINT32_MAX;
		if (rc < 0) {
			assert_int_equal(rc, -ENOMEM);
			assert_string_equal(err.message, "no memory for a pool of 100 parents");
		}
	}
	/* The pool, its groups, the order of three of them, and what the parents have. */
	assert_int_equal(granted - 1, 2 + 3 + 4);
	pool_close(pool);
}

/* --- mistakes --------------------------------------------------------------------------------- */

#define PARENTS 30u

/* Blocks 1 and 2 of TWO are held, in parent 1; the child works on its own copy of the pool. */
static void close_while_blocks_are_held(void *pool)
{
	pool_close(pool);
}

static void pin_free(void *pool)
{
	pool_pin(pool, ONE, 2);
}

static void pin_null(void *pool)
{
	pool_pin(pool, TWO, POOL_NULL);
}

static void pin_of_another_group(void *pool)
{
	pool_pin(pool, ONE, 1);
}

static void pin_outside(void *pool)
{
	pool_pin(pool, TWO, 2 * PARENTS + 1);
}

static void pin_of_no_group(void *pool)
{
	pool_pin(pool, GROUPS, 1);
}

static void unpin_free(void *pool)
{
	pool_unpin(pool, TWO, 3);
}

static void unpin_outside(void *pool)
{
	pool_unpin(pool, TWO, UINT32_MAX);
}

static void parent_of_null(void *pool)
{
	pool_parent_of(pool, TWO, POOL_NULL);
}

static void use_of_parent_0(void *pool)
{
	pool_used(pool, 0);
}

static void use_past_the_last_parent(void *pool)
{
	pool_used(pool, PARENTS + 1);
}

static void unpin_twice(void *pool)
{
	pool_unpin(pool, TWO, 2);
	pool_unpin(pool, TWO, 2);
}

static void pin_past_32_bits(void *arg)
{
	struct pool *const pool = arg;

	pool->refs[0] = UINT32_MAX;
	pool_pin(pool, TWO, 1);
}

static void a_lost_reference(void *arg)
{
	struct pool *const pool = arg;

	pool->refs[0] = 0;
	pool_audit(pool);
}

static void a_reference_out_of_nothing(void *arg)
{
	struct pool *const pool = arg;

	pool->refs[pool->stride] = 1;
	pool_audit(pool);
}

static void a_reference_past_the_packing(void *arg)
{
	struct pool *const pool = arg;

	pool->refs[2] = 1;
	tower_drop(&pool->free, 2);
	pool->parents[0].used = 3;
	pool_audit(pool);
}

static void a_free_place_that_is_not_known(void *arg)
{
	struct pool *const pool = arg;

	tower_drop(&pool->free, pool->stride);
	pool_audit(pool);
}

static void a_summary_that_lies(void *arg)
{
	struct pool *const pool = arg;

	pool->free.level[1][0] = 0;
	pool_audit(pool);
}

static void a_wrong_use(void *arg)
{
	struct pool *const pool = arg;

	pool->parents[0].used = 1;
	pool_audit(pool);
}

static void a_wrong_group(void *arg)
{
	struct pool *const pool = arg;

	pool->parents[0].group = EIGHT;
	pool_audit(pool);
}

static void a_wrong_room(void *arg)
{
	struct pool *const pool = arg;

	pool->groups[TWO].room = 1;
	pool_audit(pool);
}

static void a_full_parent_among_the_partial(void *arg)
{
	struct pool *const pool = arg;

	partial_add(&pool->groups[TWO].partial, 1, 1);
	pool_audit(pool);
}

static void a_bound_parent_in_the_queue(void *arg)
{
	struct pool *const pool = arg;

	list_push_tail(&pool->unbound, pool->links, 0);
	pool_audit(pool);
}

static void an_unbound_parent_out_of_the_queue(void *arg)
{
	struct pool *const pool = arg;

	list_pop_head(&pool->unbound, pool->links);
	pool_audit(pool);
}

static void mistakes_are_panics(void **state)
{
	void (*const mistakes[])(void *) = {
		close_while_blocks_are_held,
		pin_free,
		pin_null,
		pin_of_another_group,
		pin_outside,
		pin_of_no_group,
		unpin_free,
		unpin_outside,
		parent_of_null,
		use_of_parent_0,
		use_past_the_last_parent,
		unpin_twice,
		pin_past_32_bits,
		a_lost_reference,
		a_reference_out_of_nothing,
		a_reference_past_the_packing,
		a_free_place_that_is_not_known,
		a_summary_that_lies,
		a_wrong_use,
		a_wrong_group,
		a_wrong_room,
		a_full_parent_among_the_partial,
		a_bound_parent_in_the_queue,
		an_unbound_parent_out_of_the_queue,
	};
	struct pool *pool;
	uint32_t     blocks[2];
	size_t       i;

	(void)state;
	assert_int_equal(pool_open(PARENTS, basin_packings, GROUPS, &pool, NULL), 0);
	assert_true(pool_acquire(pool, TWO, 2, blocks));
	for (i = 0; i < ARRAY_COUNT(mistakes); i++) {
		if (!death_panics(mistakes[i], pool, NULL, 0))
			fail_msg("mistake %zu goes unseen", i);
	}
	pool_unpin(pool, TWO, blocks[0]);
	pool_unpin(pool, TWO, blocks[1]);
	pool_close(pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refusal_names_group_and_field),
		cmocka_unit_test(an_open_without_memory_leaves_nothing),
		cmocka_unit_test(mistakes_are_panics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
