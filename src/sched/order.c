/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidates of a forward, in order: by rank of state, then by id as text, so that every rank of a
 * replica comes to the same.  A heap of slots: what a forward does not get to is never sorted.
 */
#include <string.h>

#include "sched/parts.h"

#define RANK_FIRST 0u    /* a DECODE rank goes on with what came from a peer before anything new */
#define RANK_BARRIER 1u  /* it found no room, and somebody was retracted for it */
#define RANK_RECOVERY 2u
#define RANK_PREFILLING 3u
#define RANK_SUBMITTED 4u
#define RANK_DECODING 5u

static uint32_t rank_of(const struct sched *sched, uint32_t slot)
{
	const enum request_state state = sched->requests[slot].state;

	if (sched->options.role == SCHED_DECODE &&
	    (state == REQUEST_PREFILLING || state == REQUEST_PREFILL_DONE))
		return RANK_FIRST;
	if (slot == sched->barrier)
		return RANK_BARRIER;
	if (state == REQUEST_RETRACTED)
		return RANK_RECOVERY;
	if (state == REQUEST_PREFILLING)
		return RANK_PREFILLING;
	if (state == REQUEST_SUBMITTED)
		return RANK_SUBMITTED;
	return sched->options.mixed ? RANK_PREFILLING : RANK_DECODING;
}

static bool before(const struct sched *sched, uint32_t a, uint32_t b)
{
	const uint32_t rank_a = rank_of(sched, a);
	const uint32_t rank_b = rank_of(sched, b);

	if (rank_a != rank_b)
		return rank_a < rank_b;
	return strcmp(sched->requests[a].id, sched->requests[b].id) < 0;
}

static void sink(struct sched *sched, uint32_t at)
{
	uint32_t *const heap = sched->heap;
	const uint32_t  slot = heap[at];

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= sched->heap_count)
			break;
		if (child + 1 < sched->heap_count && before(sched, heap[child + 1], heap[child]))
			child++;
		if (!before(sched, heap[child], slot))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = slot;
}

static void add_state(struct sched *sched, enum request_state state)
{
	uint32_t slot = sched->lists[state].head;

	for (; slot != SLOT_NONE; slot = sched->links[slot].next) {
		if (!sched->requests[slot].remote || state != REQUEST_PREFILLING)
			sched->heap[sched->heap_count++] = slot;
	}
}

void order_fill(struct sched *sched)
{
	uint32_t at;

	sched->heap_count = 0;
	add_state(sched, REQUEST_SUBMITTED);
	add_state(sched, REQUEST_PREFILLING);
	/* A PREFILL rank's waits for its peer from here on. */
	if (sched->options.role != SCHED_PREFILL) {
		add_state(sched, REQUEST_PREFILL_DONE);
		add_state(sched, REQUEST_DECODING);
	}
	/*
	 * One comes back at a time, the one that went first, and none before the one it made room
	 * for.
	 */
	if (sched->lists[REQUEST_RETRACTED].count > 0 && sched->barrier == SLOT_NONE)
		sched->heap[sched->heap_count++] = sched->lists[REQUEST_RETRACTED].head;
	for (at = sched->heap_count / 2; at-- > 0;)
		sink(sched, at);
}

uint32_t order_pop(struct sched *sched)
{
	uint32_t slot;

	if (sched->heap_count == 0)
		return SLOT_NONE;
	slot = sched->heap[0];
	sched->heap[0] = sched->heap[--sched->heap_count];
	if (sched->heap_count > 0)
		sink(sched, 0);
	return slot;
}
