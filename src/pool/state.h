/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool's own shape, for the files of this room.
 *
 * A parent is cut into rows of references, as many as the largest packing needs: whichever group
 * binds it, slot s of parent p counts in refs[(p - 1) * stride + s].
 */
#ifndef POOL_STATE_H
#define POOL_STATE_H

#include "base/list.h"
#include "pool/partial.h"
#include "pool/pool.h"
#include "pool/tower.h"

struct pool_group {
	uint32_t       packing;
	uint32_t       room;    /* free blocks of its bound parents */
	struct partial partial;
};

struct pool_parent {
	uint32_t group; /* SLOT_NONE: unbound */
	uint32_t used;  /* held blocks: 1 or more when bound, else 0 */
};

struct pool {
	struct pool_group  *groups;
	struct pool_parent *parents; /* [parent - 1], as the links */
	struct link        *links;
	struct list         unbound; /* parents without a group, unbound longest first */
	uint32_t           *refs;
	struct tower        free;    /* where refs is 0; not there when stride is 1 */
	uint32_t            group_count;
	uint32_t            parent_count;
	uint32_t            stride;  /* the largest packing */
};

/* Where a parent's references begin. */
static inline uint32_t parent_base(const struct pool *pool, uint32_t parent)
{
	return (parent - 1) * pool->stride;
}

#endif
