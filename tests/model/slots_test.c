/* SPDX-License-Identifier: Apache-2.0 */
/* slots against an array of booleans, searched from the front. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/slots.h"
#include "prop.h"

#define COUNT_MAX 200

struct world {
	struct slots slots;
	bool         busy[COUNT_MAX];
};

/* The first slot at or after from that is as busy as asked; SLOT_NONE when there is none. */
static uint32_t first_with(const struct world *world, uint32_t from, bool busy)
{
	uint32_t i;

	for (i = from; i < world->slots.count; i++) {
		if (world->busy[i] == busy)
			return i;
	}
	return SLOT_NONE;
}

static void compare(const struct world *world)
{
	uint32_t busy_count = 0;
	uint32_t i;

	slots_audit(&world->slots);
	for (i = 0; i < world->slots.count; i++) {
		busy_count += world->busy[i];
		KVS_ASSERT_CMP(slots_busy(&world->slots, i), ==, world->busy[i]);
		KVS_ASSERT_CMP(slots_next(&world->slots, i), ==, first_with(world, i, true));
	}
	KVS_ASSERT_CMP(world->slots.busy_count, ==, busy_count);
	KVS_ASSERT(!slots_busy(&world->slots, world->slots.count));
	KVS_ASSERT_CMP(slots_next(&world->slots, world->slots.count), ==, SLOT_NONE);
}

static void reopen(struct world *world, uint32_t count)
{
	slots_close(&world->slots);
	memset(world->busy, 0, sizeof(world->busy));
	KVS_ASSERT(slots_open(&world->slots, count) == 0);
}

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	reopen(world, 64);
	return world;
}

static void acquire(struct world *world)
{
	const uint32_t expected = first_with(world, 0, false);

	KVS_ASSERT_CMP(slots_acquire(&world->slots), ==, expected);
	if (expected != SLOT_NONE)
		world->busy[expected] = true;
}

static void release(struct world *world, uint32_t from)
{
	const uint32_t slot = first_with(world, from, true);

	if (slot == SLOT_NONE)
		return;
	slots_release(&world->slots, slot);
	world->busy[slot] = false;
}

enum { REOPEN, ACQUIRE, RELEASE };

static const struct prop_kind kinds[] = { { "REOPEN", 1 }, { "ACQUIRE", 60 }, { "RELEASE", 50 } };

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;

	if (op->kind == REOPEN)
		reopen(world, 1 + op->arg[0] % COUNT_MAX);
	else if (op->kind == ACQUIRE)
		acquire(world);
	else
		release(world, op->arg[0] % world->slots.count);
	compare(world);
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	slots_close(&world->slots);
	free(world);
}

PROP_MAIN("slots", slots_hand_out_the_lowest, 40, 500, world_close)
