/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bitmap under summaries of itself: the next member of a large set of numbers, at once.
 *
 * A bit of one level says whether the word below it has any bit set, up to a level of one word.  To
 * add, drop or look up touches a word a level at most: three levels hold 262,144 numbers, six all
 * that 32 bits can say.  A plain bitmap would be read from end to end to find its only member.
 *
 * Memory   A bit a number, and a 63rd of that for the summaries.
 * Limits   size is fixed at open, nothing allocates after; members are below it.
 */
#ifndef POOL_TOWER_H
#define POOL_TOWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define TOWER_LEVELS_MAX 6u

struct tower {
	uint64_t *level[TOWER_LEVELS_MAX]; /* [0]: the members; all in one allocation */
	uint32_t  level_count;
	uint32_t  size;
};

/* size >= 1.  full: every number below size is a member.  0, or -ENOMEM. */
int    tower_open(struct tower *tower, uint32_t size, bool full);
void   tower_close(struct tower *tower); /* accepts a zeroed one */
size_t tower_bytes(const struct tower *tower); /* memory in use */

/* What is a member already (or is none) may be added (or dropped) again. */
void tower_add(struct tower *tower, uint32_t number);
void tower_drop(struct tower *tower, uint32_t number);
bool tower_has(const struct tower *tower, uint32_t number);

/* The lowest member at or after from; SLOT_NONE when there is none. */
uint32_t tower_next(const struct tower *tower, uint32_t from);

/* O(n): how many members there are. */
uint32_t tower_count(const struct tower *tower);

/* O(n): every summary tells the truth. */
void tower_audit(const struct tower *tower);

#endif
