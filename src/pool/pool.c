/* SPDX-License-Identifier: Apache-2.0 */
/* See pool.h: reference counts over block numbers, and a queue of the free ones. */
#include "pool/pool.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"

int pool_open(struct pool *pool, uint32_t block_count)
{
	uint32_t block;
	int      rc;

	*pool = (struct pool){ .block_count = block_count };
	rc = ring_open(&pool->free, block_count, sizeof(block));
	if (rc < 0)
		return rc;
	pool->refs = calloc(block_count, sizeof(*pool->refs));
	if (!pool->refs) {
		ring_close(&pool->free);
		return -ENOMEM;
	}
	for (block = 0; block < block_count; block++)
		ring_push(&pool->free, &block);
	return 0;
}

void pool_close(struct pool *pool)
{
	ring_close(&pool->free);
	free(pool->refs);
	*pool = (struct pool){ 0 };
}

uint32_t pool_acquire(struct pool *pool)
{
	uint32_t block;

	if (!ring_pop(&pool->free, &block))
		return SLOT_NONE;
	KVS_ASSERT_CMP(pool->refs[block], ==, 0);
	pool->refs[block] = 1;
	return block;
}

uint32_t pool_pin(struct pool *pool, uint32_t block)
{
	KVS_ASSERT_CMP(block, <, pool->block_count);
	KVS_ASSERT_CMP(pool->refs[block], >, 0);
	KVS_ASSERT_CMP(pool->refs[block], <, UINT32_MAX);
	return ++pool->refs[block];
}

uint32_t pool_unpin(struct pool *pool, uint32_t block)
{
	KVS_ASSERT_CMP(block, <, pool->block_count);
	KVS_ASSERT_CMP(pool->refs[block], >, 0);
	if (--pool->refs[block] == 0)
		KVS_ASSERT(ring_push(&pool->free, &block));
	return pool->refs[block];
}

void pool_audit(struct pool *pool)
{
	uint32_t held = 0;
	uint32_t i;

	for (i = 0; i < pool->block_count; i++)
		held += pool->refs[i] > 0;
	KVS_ASSERT_CMP(held + pool->free.count, ==, pool->block_count);
	for (i = 0; i < pool->free.count; i++)
		KVS_ASSERT_CMP(pool->refs[*(const uint32_t *)ring_at(&pool->free, i)], ==, 0);
}
