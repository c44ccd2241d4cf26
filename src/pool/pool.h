/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of one stratum as numbers with reference counts.
 *
 * A block is free (count 0) or held; whoever holds a reference may count on its bytes staying put.
 * The last unpin returns it to the back of the free queue, so a block rests as long as possible
 * before it is handed out again and the order depends on the calls alone.  The pool knows no keys,
 * no recency and no owners.
 *
 * Limits   block_count is fixed at open; nothing allocates after.
 * Threads  The cache thread only.
 */
#ifndef POOL_POOL_H
#define POOL_POOL_H

#include <stdint.h>

#include "base/list.h"
#include "base/ring.h"

struct pool {
	uint32_t   *refs;
	struct ring free;
	uint32_t    block_count;
};

/* block_count >= 1.  0, or -ENOMEM. */
int  pool_open(struct pool *pool, uint32_t block_count);
void pool_close(struct pool *pool);

/* A free block with one reference, the caller's; SLOT_NONE when there is none. */
uint32_t pool_acquire(struct pool *pool);

/* One reference more, on a held block; returns the new count. */
uint32_t pool_pin(struct pool *pool, uint32_t block);

/* One reference less; returns the new count.  At 0 the block is free. */
uint32_t pool_unpin(struct pool *pool, uint32_t block);

static inline uint32_t pool_refs(const struct pool *pool, uint32_t block)
{
	return pool->refs[block];
}

static inline uint32_t pool_free_count(const struct pool *pool)
{
	return pool->free.count;
}

/* O(n): free blocks have no references, all others have some. */
void pool_audit(struct pool *pool);

#endif
