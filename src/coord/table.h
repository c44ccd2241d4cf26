/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The block table of one request for one group.
 *
 * Slot i covers tokens [i * q, (i + 1) * q) for as long as the request lives: a table never shrinks
 * and never moves a slot.  A slot holds a block of the Device, with one reference, or BLOCK_NULL: a
 * hole, which no query of this group attends to any more, or never did.
 *
 *   available   tokens that fit behind the logical end without a new block: the rest of the last
 *               block, and whole blocks that were reserved ahead
 *   reclaimed   the frontier of reclaim: slots below it were given back, or were never held.  It
 *               only grows
 *
 * Growth comes in two shapes, and "tokens" means another thing in each, so a demand is made by name:
 *   dense   so many tokens more than there are
 *   sparse  up to an absolute end, and only slots from `first_slot` on are needed: those between the
 *           table's end and it become holes.  What a recurrent state needs of a long chunk
 *
 * Owner    The slots are the caller's array and outlive the table.  Only table_init() is free to be
 *          called at any time; the rest of a table is the cache's to change.
 * Threads  The cache thread only.
 */
#ifndef COORD_TABLE_H
#define COORD_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "match/groups.h"
#include "match/pages.h"

struct table {
	uint32_t *slots;
	uint32_t  slot_max;
	uint32_t  count;     /* slots so far */
	uint32_t  available; /* tokens */
	uint32_t  reclaimed; /* slots */
};

/* An empty table over slot_max slots. */
void table_init(struct table *table, uint32_t *slots, uint32_t slot_max);

#define DEMAND_DENSE UINT32_MAX

struct demand {
	uint32_t tokens;     /* dense: how many more; sparse: the absolute end */
	uint32_t reserve;    /* tokens of room beyond them, not yet used */
	uint32_t first_slot; /* DEMAND_DENSE, or the first slot of a sparse demand */
};

static inline struct demand demand_dense(uint32_t tokens, uint32_t reserve)
{
	return (struct demand){ tokens, reserve, DEMAND_DENSE };
}

static inline struct demand demand_sparse(uint32_t end, uint32_t reserve, uint32_t first_slot)
{
	return (struct demand){ end, reserve, first_slot };
}

/* What a demand adds to a table: holes up to `begin`, then `blocks` blocks. */
struct growth {
	uint32_t begin;
	uint32_t blocks;
	uint32_t available; /* of the table afterwards */
};

/*
 * Work out the growth of a table of `count` slots with `available` tokens of room.
 *
 * Errors  KVS_E_INVALID, naming the group and the field: no tokens in a sparse demand, an end past
 *         TOKENS_MAX or past slot_max, a first slot inside the table or behind the end.  A sparse
 *         demand may begin at the last slot when that one has room left: a tail's private copy.
 */
int table_plan(const struct table *table, const struct group *group, const struct demand *demand,
	       struct growth *ret_growth, struct kvs_error *err);

/* Append holes; append a block. */
void table_push_holes(struct table *table, uint32_t count);
void table_push(struct table *table, uint32_t block);

/**
 * Use up room that was reserved.
 *
 * Errors  KVS_E_INVALID  more tokens than available; nothing changes.
 */
int table_consume(struct table *table, const struct group *group, uint32_t tokens,
		  struct kvs_error *err);

/* The logical end: where the next token goes. */
uint64_t table_end(const struct table *table, const struct group *group);

/* Slots [reclaimed, this) are expired once `computed` tokens have their cache; at least reclaimed. */
uint32_t table_expired(const struct table *table, const struct group *group, uint64_t computed);

/* Frontier, holes and room fit together. */
void table_audit(const struct table *table, const struct group *group);

#endif
