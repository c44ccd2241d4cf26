/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ghost: the names of the last N things that left, without the things.
 *
 * A ring of 64-bit hashes with a chained index.  A name that is taken out leaves its cell empty
 * until the ring comes around.  Two names of one hash are one name to a ghost; 64 bits make that
 * rarer than a disk error.
 */
#ifndef EVICT_GHOST_H
#define EVICT_GHOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct ghost_cell {
	uint64_t hash;
	uint32_t next; /* in its chain: cell + 1; 0 at the end */
	uint32_t mark; /* 0 while it holds no name */
};

struct ghost {
	struct ghost_cell *cells;
	uint32_t          *heads;    /* of the chains: cell + 1; 0 when empty */
	uint32_t           capacity; /* cells */
	uint32_t           mask;     /* heads - 1 */
	uint32_t           at;       /* the cell that is written next: the oldest */
};

/* capacity 1 .. 2^31.  0, or -ENOMEM. */
int  ghost_open(struct ghost *ghost, uint32_t capacity);
void ghost_close(struct ghost *ghost); /* accepts a zeroed ghost */

/* Remember hash and forget the oldest name. */
void ghost_add(struct ghost *ghost, uint64_t hash);
/* Whether hash is remembered; it no longer is afterwards. */
bool ghost_take(struct ghost *ghost, uint64_t hash);

/*
 * For an owner that chooses the cells itself, and neither adds nor takes.  Put hash, which is not
 * remembered, into a cell that holds no name, with a mark other than 0; find the cell of hash, or
 * SLOT_NONE; empty a cell.
 */
void     ghost_put(struct ghost *ghost, uint32_t cell, uint64_t hash, uint32_t mark);
uint32_t ghost_find(const struct ghost *ghost, uint64_t hash);
void     ghost_drop(struct ghost *ghost, uint32_t cell);

size_t ghost_bytes(const struct ghost *ghost);
/* O(n): every cell that holds a name is in its chain, and nothing else is. */
void   ghost_audit(const struct ghost *ghost);

#endif
