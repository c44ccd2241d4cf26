/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parents of one group that have blocks both held and free, in the order in which they are
 * filled up: the fullest first, among equals the lowest.
 *
 * The fullest has the least room, so the order is that of the pair (room, parent), and one number
 * says the pair: (room - 1) * parent_count + parent - 1.  The lowest member of a tower of those
 * numbers is the parent to fill next, however many there are.
 *
 * Memory   packing - 1 bits a parent, and a 63rd of that: a packing of 1 knows no partial parent.
 */
#ifndef POOL_PARTIAL_H
#define POOL_PARTIAL_H

#include "pool/tower.h"

struct partial {
	struct tower order;
	uint32_t     parent_count;
	uint32_t     packing;
};

/* packing * parent_count is at most INT32_MAX.  0, or -ENOMEM. */
int    partial_open(struct partial *partial, uint32_t parent_count, uint32_t packing);
void   partial_close(struct partial *partial); /* accepts a zeroed one */
size_t partial_bytes(const struct partial *partial); /* memory in use */

/*
 * A parent has so much room from now on, or not any more; asserts that this is news.  Nothing
 * happens at room 0 or packing: full and empty parents are not partial.
 */
void partial_add(struct partial *partial, uint32_t parent, uint32_t room);
void partial_drop(struct partial *partial, uint32_t parent, uint32_t room);
bool partial_has(const struct partial *partial, uint32_t parent, uint32_t room);

/* The parent to fill next; 0 when there is none. */
uint32_t partial_first(const struct partial *partial);

/* O(n): how many there are. */
uint32_t partial_count(const struct partial *partial);
void     partial_audit(const struct partial *partial);

#endif
