/* SPDX-License-Identifier: Apache-2.0 */
/* See partial.h. */
#include "pool/partial.h"

#include "base/err.h"

int partial_open(struct partial *partial, uint32_t parent_count, uint32_t packing)
{
	*partial = (struct partial){ .parent_count = parent_count, .packing = packing };
	return packing == 1 ? 0 : tower_open(&partial->order, (packing - 1) * parent_count, false);
}

void partial_close(struct partial *partial)
{
	tower_close(&partial->order);
	*partial = (struct partial){ 0 };
}

size_t partial_bytes(const struct partial *partial)
{
	return tower_bytes(&partial->order);
}

static bool is_partial(const struct partial *partial, uint32_t parent, uint32_t room)
{
	KVS_ASSERT_CMP(parent - 1, <, partial->parent_count);
	KVS_ASSERT_CMP(room, <=, partial->packing);
	return room > 0 && room < partial->packing;
}

static uint32_t place(const struct partial *partial, uint32_t parent, uint32_t room)
{
	return (room - 1) * partial->parent_count + parent - 1;
}

bool partial_has(const struct partial *partial, uint32_t parent, uint32_t room)
{
	return is_partial(partial, parent, room) &&
	       tower_has(&partial->order, place(partial, parent, room));
}

void partial_add(struct partial *partial, uint32_t parent, uint32_t room)
{
	if (!is_partial(partial, parent, room))
		return;
	KVS_ASSERT(!partial_has(partial, parent, room));
	tower_add(&partial->order, place(partial, parent, room));
}

void partial_drop(struct partial *partial, uint32_t parent, uint32_t room)
{
	if (!is_partial(partial, parent, room))
		return;
	KVS_ASSERT(partial_has(partial, parent, room));
	tower_drop(&partial->order, place(partial, parent, room));
}

uint32_t partial_first(const struct partial *partial)
{
	const uint32_t first = partial->packing == 1 ? SLOT_NONE : tower_next(&partial->order, 0);

	return first == SLOT_NONE ? 0 : 1 + first % partial->parent_count;
}

uint32_t partial_count(const struct partial *partial)
{
	return partial->packing == 1 ? 0 : tower_count(&partial->order);
}

void partial_audit(const struct partial *partial)
{
	if (partial->packing > 1)
		tower_audit(&partial->order);
}
