/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of one stratum: parents of equal bytes, and the blocks of one group inside each.
 *
 * A pool has parent_count parents.  A parent is unbound, or bound to one group and cut into
 * `packing` blocks of that group.  The first block that is taken of it binds it, the last that is
 * given back unbinds it at once; a bound parent never serves another group, even with room left.
 *
 * A block is a number that means something only with its group: 1 + (parent - 1) * packing + slot,
 * parents counted from 1 and slots from 0.
 *
 * References  A block is free (count 0) or held; whoever holds a reference may count on its bytes
 *             staying put.  The last unpin frees exactly that block.
 * Order       Blocks come from the group's bound parents first, the fullest first, then the lowest
 *             parent, the lowest slot; then from unbound parents, the one first that was unbound
 *             longest.  It depends on the calls alone.
 * Cost        To take or to free a block looks at a few words, with a million parents as with one.
 *             Memory, in bytes: a parent 16, a place for a block 4 1/8 (the largest packing counts,
 *             whatever binds the parent), and (packing - 1) / 8 a parent and group.
 * Limits      Fixed at open; nothing allocates after.  The pool knows no keys, no recency, no owners.
 * Threads     The cache thread only.
 */
#ifndef POOL_POOL_H
#define POOL_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A group's numbers must fit into an engine's 32-bit block tables. */
#define POOL_BLOCK_MAX INT32_MAX

/* The null block: a hole in a table.  Nobody holds it, and to let go of it is harmless. */
#define POOL_NULL 0u

struct pool;

/**
 * Open a pool; packing[g] blocks of group g fit into a parent.
 *
 * Errors  KVS_E_INVALID  parent_count 0, group_count 0, a packing of 0, or numbers of a group past
 *                        POOL_BLOCK_MAX: the sentence names the group and the field; -ENOMEM.
 */
int    pool_open(uint32_t parent_count, const uint32_t *packing, uint32_t group_count,
		 struct pool **ret_pool, struct kvs_error *err);
void   pool_close(struct pool *pool); /* NULL is fine; asserts that no block is held */
size_t pool_bytes(const struct pool *pool); /* memory in use; NULL has none */

/*
 * Take count blocks of a group, one reference each: all, or none and false.  Nothing changes when it
 * is false.  A count of 0 is true.
 */
bool pool_acquire(struct pool *pool, uint32_t group, uint32_t count, uint32_t *ret_blocks);

/*
 * One reference more, on a held block; returns the new count.  A block that the group does not hold is a
 * mistake of the caller's and asserted, as are 2^32 references.
 */
uint32_t pool_pin(struct pool *pool, uint32_t group, uint32_t block);
/* One reference less; returns the new count.  At 0 the block is free, and its parent may be. */
uint32_t pool_unpin(struct pool *pool, uint32_t group, uint32_t block);
/* 0 when it is free, or when its parent serves another group now. */
uint32_t pool_refs(const struct pool *pool, uint32_t group, uint32_t block);

/* --- capacity --------------------------------------------------------------------------------- */

uint32_t pool_parent_count(const struct pool *pool);
uint32_t pool_unbound(const struct pool *pool);                    /* parents without a group */
uint32_t pool_room(const struct pool *pool, uint32_t group);       /* free blocks of its bound parents */
uint32_t pool_packing(const struct pool *pool, uint32_t group);

/* Which parent a block lies in, and what a parent is bound to: false when unbound. */
uint32_t pool_parent_of(const struct pool *pool, uint32_t group, uint32_t block);
bool     pool_bound(const struct pool *pool, uint32_t parent, uint32_t *ret_group);
uint32_t pool_used(const struct pool *pool, uint32_t parent);      /* held blocks of a parent */

/* O(parents * (groups + largest packing)): bindings, counts and orders agree. */
void pool_audit(const struct pool *pool);

#endif
