/* SPDX-License-Identifier: Apache-2.0 */
/* See basin.h. */
#include "basin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

const uint32_t basin_packings[GROUPS] = { 1, 2, 3, 8 };

struct pool *basin_open(uint32_t parent_count)
{
	struct pool *pool;

	assert_int_equal(pool_open(parent_count, basin_packings, GROUPS, &pool, NULL), 0);
	pool_audit(pool);
	return pool;
}

uint32_t basin_take(struct pool *pool, uint32_t group)
{
	uint32_t block;

	assert_true(pool_acquire(pool, group, 1, &block));
	assert_int_equal(pool_refs(pool, group, block), 1);
	pool_audit(pool);
	return block;
}

void basin_drop(struct pool *pool, uint32_t group, uint32_t block)
{
	assert_int_equal(pool_unpin(pool, group, block), 0);
	pool_audit(pool);
}

void basin_expect_bound(const struct pool *pool, uint32_t parent, uint32_t group, uint32_t used)
{
	uint32_t bound = GROUPS;

	assert_true(pool_bound(pool, parent, &bound));
	assert_int_equal(bound, group);
	assert_int_equal(pool_used(pool, parent), used);
}

void basin_expect_unbound(const struct pool *pool, uint32_t parent)
{
	uint32_t bound = GROUPS;

	assert_false(pool_bound(pool, parent, &bound));
	assert_int_equal(bound, GROUPS);
	assert_int_equal(pool_used(pool, parent), 0);
}
