/* SPDX-License-Identifier: Apache-2.0 */
/* map against a walk over all records; few buckets and few keys, so that probes meet and wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "prop.h"

#define CAPACITY_MAX 96

struct record {
	bool     present; /* the model: the map knows nothing of it */
	uint32_t key[3];
	uint32_t after; /* the stride is larger than the key */
};

struct world {
	struct map    map;
	struct record records[CAPACITY_MAX];
};

static void make_key(uint32_t number, uint32_t ret_key[3])
{
	ret_key[0] = 7;
	ret_key[1] = number;
	ret_key[2] = number * 3;
}

static uint32_t model_find(const struct world *world, const uint32_t key[3])
{
	uint32_t i;

	for (i = 0; i < world->map.capacity; i++) {
		if (world->records[i].present && memcmp(world->records[i].key, key, 12) == 0)
			return i;
	}
	return SLOT_NONE;
}

static uint32_t map_find_key(const struct world *world, const uint32_t key[3])
{
	return map_find(&world->map, map_hash(&world->map, key), key);
}

static void compare(const struct world *world)
{
	uint32_t count = 0;
	uint32_t number, i, key[3];

	map_audit(&world->map);
	for (i = 0; i < world->map.capacity; i++)
		count += world->records[i].present;
	KVS_ASSERT_CMP(world->map.count, ==, count);
	/* Twice as many keys as can be present: some are always absent. */
	for (number = 0; number < 2 * world->map.capacity; number++) {
		make_key(number, key);
		KVS_ASSERT_CMP(map_find_key(world, key), ==, model_find(world, key));
	}
}

static void reopen(struct world *world, uint32_t capacity)
{
	map_close(&world->map);
	memset(world->records, 0, sizeof(world->records));
	KVS_ASSERT(map_open(&world->map, capacity, world->records[0].key, sizeof(struct record),
			    12) == 0);
	KVS_ASSERT_CMP(map_bytes(&world->map), >=, capacity * sizeof(struct map_bucket));
}

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	reopen(world, 12);
	return world;
}

/* Into any free record, so that slots and keys have nothing to do with each other. */
static void insert(struct world *world, uint32_t number, uint32_t from)
{
	const uint32_t capacity = world->map.capacity;
	uint32_t       i, key[3];

	make_key(number % (2 * capacity), key);
	if (model_find(world, key) != SLOT_NONE)
		return;
	for (i = 0; i < capacity; i++) {
		const uint32_t       slot = (from % capacity + i) % capacity;
		struct record *const record = &world->records[slot];

		if (record->present)
			continue;
		memcpy(record->key, key, sizeof(key));
		record->present = true;
		map_insert(&world->map, map_hash(&world->map, key), slot);
		return;
	}
}

static void remove_key(struct world *world, uint32_t number)
{
	uint32_t slot, key[3];

	make_key(number % (2 * world->map.capacity), key);
	slot = model_find(world, key);
	if (slot == SLOT_NONE)
		return;
	map_remove(&world->map, map_hash(&world->map, key), slot);
	world->records[slot].present = false;
}

enum { REOPEN, INSERT, REMOVE };

static const struct prop_kind kinds[] = { { "REOPEN", 1 }, { "INSERT", 60 }, { "REMOVE", 40 } };

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;

	if (op->kind == REOPEN)
		reopen(world, 1 + op->arg[0] % CAPACITY_MAX);
	else if (op->kind == INSERT)
		insert(world, op->arg[0], op->arg[1]);
	else
		remove_key(world, op->arg[0]);
	compare(world);
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	map_close(&world->map);
	free(world);
}

PROP_MAIN("map", the_map_finds_what_is_there, 40, 400, world_close)
