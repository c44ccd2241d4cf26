/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ARC (Megiddo and Modha, FAST 2003): what was used once and what was used again, each by recency,
 * and a target for the size of the first that follows from what comes back.
 *
 * A newcomer enters the recent queue, and its next use takes it to the frequent one.  Each queue
 * has a ghost.  Who comes back from the recent one's left too early, so that queue's target grows;
 * who comes back from the frequent one's makes it shrink; in either case by more, the shorter that
 * ghost is beside the other.  Both go to the frequent queue.
 *
 * It differs from the paper in two points.  Room is made before it is known who comes, so that the
 * target moves after the victim that the paper chooses by it.  And what the paper calls the size of
 * the cache is how many slots a part had when it was last full: owners run out of bytes before they
 * run out of slots, and tenants before owners do.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "evict/policy.h"

enum { QUEUE_RECENT, QUEUE_FREQUENT };

/* A newcomer brings one name too many at the most, but a part that shrank has more of them. */
#define FORGET_MAX 2

/* The ghost of a part's queue, among the order's names. */
static uint32_t ghost_of(uint32_t number, uint32_t queue)
{
	return number * EVICT_QUEUES + queue;
}

static uint32_t ghost_count(const struct evict *evict, uint32_t number, uint32_t queue)
{
	return names_count(&evict->names, ghost_of(number, queue));
}

/* A queue and its ghost. */
static uint64_t both_count(const struct evict *evict, uint32_t number, uint32_t queue)
{
	return (uint64_t)evict->parts[number].queues[queue].count +
	       ghost_count(evict, number, queue);
}

static int prepare(struct evict *evict)
{
	/* A victim's name comes before we know whether it or the newcomer's is one too many. */
	const uint32_t name_count = evict->capacity + (evict->capacity < EVICT_CAPACITY_MAX);

	evict->hashes = malloc(evict->capacity * sizeof(*evict->hashes));
	if (!evict->hashes)
		return -ENOMEM;
	return names_open(&evict->names, name_count, evict->part_count * EVICT_QUEUES);
}

/* How far the target moves for a name out of a ghost of so many, beside the other. */
static uint32_t stride(uint32_t count, uint32_t other_count)
{
	return other_count > count ? other_count / count : 1;
}

/* Whether the part remembered hash; then its target has moved. */
static bool came_back(struct evict *evict, uint32_t number, uint64_t hash)
{
	struct evict_part *const part = &evict->parts[number];
	const uint32_t           recent = ghost_count(evict, number, QUEUE_RECENT);
	const uint32_t           frequent = ghost_count(evict, number, QUEUE_FREQUENT);
	const uint32_t           ghost = names_take(&evict->names, hash);

	if (ghost == ghost_of(number, QUEUE_RECENT)) {
		const uint32_t up = stride(recent, frequent);

		part->target = part->size - part->target > up ? part->target + up : part->size;
		return true;
	}
	if (ghost == ghost_of(number, QUEUE_FREQUENT)) {
		const uint32_t down = stride(frequent, recent);

		part->target = part->target > down ? part->target - down : 0;
		return true;
	}
	return false;
}

/* For a newcomer: the recent queue and its ghost are at most one size together, and all are two. */
static void forget_one(struct evict *evict, uint32_t number)
{
	const uint64_t size = evict->parts[number].size;
	const uint64_t recent = both_count(evict, number, QUEUE_RECENT);

	if (recent >= size)
		names_forget(&evict->names, ghost_of(number, QUEUE_RECENT));
	else if (recent + both_count(evict, number, QUEUE_FREQUENT) >= 2 * size)
		names_forget(&evict->names, ghost_of(number, QUEUE_FREQUENT));
}

static void insert(struct evict *evict, uint32_t slot, uint64_t hash)
{
	const uint32_t           number = evict_part_of(evict, slot);
	struct evict_part *const part = &evict->parts[number];
	const uint32_t           count = evict_part_count(evict, number) + 1;
	uint32_t                 i;

	evict->hashes[slot] = hash;
	part->full = false;
	if (part->size < count)
		part->size = count;
	if (came_back(evict, number, hash)) {
		evict_push(evict, slot, QUEUE_FREQUENT);
		return;
	}
	for (i = 0; i < FORGET_MAX; i++)
		forget_one(evict, number);
	evict_push(evict, slot, QUEUE_RECENT);
}

static void touch(struct evict *evict, uint32_t slot)
{
	evict_note_use(evict, slot);
	evict_move(evict, slot, QUEUE_FREQUENT);
}

static void renew(struct evict *evict, uint32_t slot)
{
	evict_move(evict, slot, QUEUE_FREQUENT);
}

/* When it is asked for a slot, a part is full; when it is asked for more, it no longer is. */
static void measure(struct evict *evict, uint32_t number)
{
	struct evict_part *const part = &evict->parts[number];

	if (part->full)
		return;
	part->full = true;
	part->size = evict_part_count(evict, number);
	if (part->target > part->size)
		part->target = part->size;
}

static void remember(struct evict *evict, uint32_t slot)
{
	names_add(&evict->names, ghost_of(evict_part_of(evict, slot), evict->notes[slot].queue),
		  evict->hashes[slot]);
}

static void expel(struct evict *evict, uint32_t slot)
{
	measure(evict, evict_part_of(evict, slot));
	remember(evict, slot);
}

static uint32_t victim(struct evict *evict, uint32_t number, evict_may *may, void *ctx)
{
	const struct evict_part *const part = &evict->parts[number];
	uint8_t                        queue;
	uint32_t                       slot;

	measure(evict, number);
	queue = part->queues[QUEUE_RECENT].count > part->target ? QUEUE_RECENT : QUEUE_FREQUENT;
	slot = evict_first(evict, number, queue, may, ctx);
	/* It is empty or pinned: the other pays. */
	if (slot == SLOT_NONE)
		slot = evict_first(evict, number, !queue, may, ctx);
	if (slot != SLOT_NONE)
		remember(evict, slot);
	return slot;
}

static void audit(const struct evict *evict)
{
	uint32_t number;

	for (number = 0; number < evict->part_count; number++) {
		const struct evict_part *const part = &evict->parts[number];

		KVS_ASSERT_CMP(part->target, <=, part->size);
		KVS_ASSERT_CMP(evict_part_count(evict, number), <=, part->size);
		KVS_ASSERT_CMP(part->size, <=, evict->capacity);
	}
	names_audit(&evict->names);
}

const struct evict_policy evict_arc = {
	.prepare = prepare, .insert = insert, .touch = touch, .victim = victim,
	.renew = renew, .expel = expel, .audit = audit
};
