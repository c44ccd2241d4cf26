/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixed numbered slots: acquire the lowest free one, release it once.
 *
 * The shape of every bounded table.  acquire may return nothing; release asserts that the slot was
 * busy.  Lowest-first makes the choice independent of history beyond which slots are busy.
 */
#ifndef BASE_SLOTS_H
#define BASE_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct slots {
	uint64_t *busy;
	uint32_t  count;      /* slots in all */
	uint32_t  busy_count; /* of them taken */
	uint32_t  low_hint;   /* no free slot lies below this one */
};

/* 0, or -ENOMEM. */
int  slots_open(struct slots *slots, uint32_t count);
void slots_close(struct slots *slots);

uint32_t slots_acquire(struct slots *slots); /* SLOT_NONE when all are busy */
void     slots_release(struct slots *slots, uint32_t slot);
bool     slots_busy(const struct slots *slots, uint32_t slot);

/* Walk the busy slots in order: the first at or after from, or SLOT_NONE. */
uint32_t slots_next(const struct slots *slots, uint32_t from);

/* The whole walk: the body may release its own slot. */
#define SLOTS_EACH(slots, slot) \
	for ((slot) = slots_next(slots, 0); (slot) != SLOT_NONE; \
	     (slot) = slots_next(slots, (slot) + 1))

size_t slots_bytes(const struct slots *slots);

void slots_audit(const struct slots *slots);

#endif
