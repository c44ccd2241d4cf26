/* SPDX-License-Identifier: Apache-2.0 */
/* ring against an array whose front is shifted out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/ring.h"
#include "prop.h"

#define CAPACITY_MAX 40
#define ITEM_BYTES_MAX 20

struct world {
	struct ring ring;
	uint8_t     items[CAPACITY_MAX][ITEM_BYTES_MAX];
	uint32_t    count;
};

static void compare(struct world *world)
{
	uint32_t i;

	KVS_ASSERT_CMP(world->ring.count, ==, world->count);
	KVS_ASSERT_CMP(ring_full(&world->ring), ==, world->count == world->ring.capacity);
	for (i = 0; i < world->count; i++) {
		KVS_ASSERT(memcmp(ring_at(&world->ring, i), world->items[i],
				  world->ring.item_bytes) == 0);
	}
}

static void reopen(struct world *world, const struct prop_op *op)
{
	const uint32_t capacity = 1 + op->arg[0] % CAPACITY_MAX;

	ring_close(&world->ring);
	KVS_ASSERT(ring_open(&world->ring, capacity, 1 + op->arg[1] % ITEM_BYTES_MAX) == 0);
	world->count = 0;
}

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	reopen(world, &(struct prop_op){ .arg = { 2, 3 } });
	return world;
}

static void push(struct world *world, const struct prop_op *op)
{
	uint8_t item[ITEM_BYTES_MAX];

	memset(item, (int)(op->arg[0] & 255), sizeof(item));
	memcpy(item, op->arg, sizeof(op->arg));
	if (world->count == world->ring.capacity) {
		KVS_ASSERT(!ring_push(&world->ring, item));
		return;
	}
	KVS_ASSERT(ring_push(&world->ring, item));
	memcpy(world->items[world->count++], item, sizeof(item));
}

static void pop(struct world *world)
{
	uint8_t item[ITEM_BYTES_MAX] = "untouched";

	if (world->count == 0) {
		KVS_ASSERT(!ring_pop(&world->ring, item));
		KVS_ASSERT(strcmp((char *)item, "untouched") == 0);
		return;
	}
	KVS_ASSERT(ring_pop(&world->ring, item));
	KVS_ASSERT(memcmp(item, world->items[0], world->ring.item_bytes) == 0);
	memmove(world->items[0], world->items[1], sizeof(world->items) - sizeof(world->items[0]));
	world->count--;
}

enum { REOPEN, PUSH, POP };

static const struct prop_kind kinds[] = { { "REOPEN", 1 }, { "PUSH", 50 }, { "POP", 40 } };

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;

	if (op->kind == REOPEN)
		reopen(world, op);
	else if (op->kind == PUSH)
		push(world, op);
	else
		pop(world);
	compare(world);
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	ring_close(&world->ring);
	free(world);
}

PROP_MAIN("ring", ring_is_a_fifo, 40, 600, world_close)
