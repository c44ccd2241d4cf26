/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

int ring_open(struct ring *ring, uint32_t capacity, uint32_t item_bytes)
{
	KVS_ASSERT_CMP(capacity, >, 0);
	KVS_ASSERT_CMP(item_bytes, >, 0);
	*ring = (struct ring){ .item_bytes = item_bytes, .capacity = capacity };
	ring->items = calloc(capacity, item_bytes);
	return ring->items ? 0 : -ENOMEM;
}

void ring_close(struct ring *ring)
{
	free(ring->items);
	*ring = (struct ring){ 0 };
}

void *ring_at(struct ring *ring, uint32_t i)
{
	/* 64 bits: head + i may pass UINT32_MAX in a ring of more than half that many items. */
	const uint64_t index = ((uint64_t)ring->head + i) % ring->capacity;

	KVS_ASSERT_CMP(i, <, ring->count);
	return ring->items + index * ring->item_bytes;
}

bool ring_push(struct ring *ring, const void *item)
{
	if (ring_full(ring))
		return false;
	ring->count++;
	memcpy(ring_at(ring, ring->count - 1), item, ring->item_bytes);
	return true;
}

bool ring_pop(struct ring *ring, void *ret_item)
{
	if (ring->count == 0)
		return false;
	memcpy(ret_item, ring_at(ring, 0), ring->item_bytes);
	ring->head = ring->head + 1 == ring->capacity ? 0 : ring->head + 1;
	ring->count--;
	return true;
}
