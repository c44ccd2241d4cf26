/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ghosts that share their cells: names of what left, in queues, oldest at the head.
 *
 * A name is in at most one queue, and each queue forgets its oldest name when it is told to.  When
 * no cell is free, one name of any queue is forgotten, roughly the oldest of all: a hand goes around
 * the cells.
 */
#ifndef EVICT_NAMES_H
#define EVICT_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "evict/ghost.h"

struct names {
	struct ghost ghost;       /* its cells are marked with their queue + 1 */
	struct link *links;       /* by cell */
	struct list *queues;      /* of cells */
	uint32_t     queue_count;
	uint32_t     known;       /* cells below it held a name once */
	uint32_t     free_first;  /* of those that hold none, a chain through next: cell + 1; 0 at the end */
	uint32_t     hand;
};

/* capacity 1 .. 2^31 names, queue_count below 2^32 - 1.  0, or -ENOMEM. */
int  names_open(struct names *names, uint32_t capacity, uint32_t queue_count);
void names_close(struct names *names); /* accepts zeroed names */

/* Remember hash as the youngest of a queue, and nowhere else. */
void names_add(struct names *names, uint32_t queue, uint64_t hash);
/* The queue that remembers hash, which no longer does afterwards; SLOT_NONE. */
uint32_t names_take(struct names *names, uint64_t hash);
/* The oldest name of a queue, if it has one. */
void names_forget(struct names *names, uint32_t queue);

uint32_t names_count(const struct names *names, uint32_t queue);
size_t   names_bytes(const struct names *names);
/* O(n): every name is in its queue and in its chain. */
void     names_audit(const struct names *names);

#endif
