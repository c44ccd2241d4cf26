/* SPDX-License-Identifier: Apache-2.0 */
#include "base/slots.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/err.h"

int slots_open(struct slots *slots, uint32_t count)
{
	KVS_ASSERT_CMP(count, >, 0);
	KVS_ASSERT_CMP(count, <, SLOT_NONE);
	*slots = (struct slots){ .count = count };
	slots->busy = calloc(bits_words(count), sizeof(*slots->busy));
	return slots->busy ? 0 : -ENOMEM;
}

void slots_close(struct slots *slots)
{
	free(slots->busy);
	*slots = (struct slots){ 0 };
}

uint32_t slots_acquire(struct slots *slots)
{
	const size_t slot = bits_next_clear(slots->busy, slots->low_hint, slots->count);

	if (slot == slots->count)
		return SLOT_NONE;
	bits_set(slots->busy, slot);
	slots->busy_count++;
	slots->low_hint = (uint32_t)slot + 1;
	return (uint32_t)slot;
}

void slots_release(struct slots *slots, uint32_t slot)
{
	KVS_ASSERT_CMP(slot, <, slots->count);
	KVS_ASSERT(bits_test(slots->busy, slot));
	bits_clear(slots->busy, slot);
	slots->busy_count--;
	if (slot < slots->low_hint)
		slots->low_hint = slot;
}

bool slots_busy(const struct slots *slots, uint32_t slot)
{
	return slot < slots->count && bits_test(slots->busy, slot);
}

uint32_t slots_next(const struct slots *slots, uint32_t from)
{
	const size_t slot = bits_next_set(slots->busy, from, slots->count);

	return slot == slots->count ? SLOT_NONE : (uint32_t)slot;
}

size_t slots_bytes(const struct slots *slots)
{
	return bits_words(slots->count) * sizeof(*slots->busy);
}

void slots_audit(const struct slots *slots)
{
	KVS_ASSERT_CMP(bits_count(slots->busy, slots->count), ==, slots->busy_count);
	KVS_ASSERT_CMP(bits_next_clear(slots->busy, 0, slots->count), >=, slots->low_hint);
}
