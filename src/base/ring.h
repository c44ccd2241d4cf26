/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded first-in first-out queue of values of one size.
 *
 * Limits   Capacity is fixed at open (at least 1); a full ring refuses.  Nothing allocates after
 *          open.
 * Threads  None of its own: its owner's lock or thread guards it.
 */
#ifndef BASE_RING_H
#define BASE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ring {
	uint8_t *items;
	uint32_t item_bytes;
	uint32_t capacity;
	uint32_t head;  /* index of the oldest item */
	uint32_t count;
};

/* 0, or -ENOMEM. */
int  ring_open(struct ring *ring, uint32_t capacity, uint32_t item_bytes);
void ring_close(struct ring *ring); /* accepts a zeroed ring */

/* False when full; nothing changed then. */
bool ring_push(struct ring *ring, const void *item);
/* False when empty; *ret_item untouched then. */
bool ring_pop(struct ring *ring, void *ret_item);

/* The i-th oldest item, in place; i < count.  Valid until the next push or pop. */
void *ring_at(struct ring *ring, uint32_t i);

static inline bool ring_full(const struct ring *ring)
{
	return ring->count == ring->capacity;
}

static inline size_t ring_bytes(const struct ring *ring)
{
	return (size_t)ring->capacity * ring->item_bytes;
}

#endif
