/* SPDX-License-Identifier: Apache-2.0 */
/* A tower against an array of booleans: sizes from one number to four levels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "pool/tower.h"
#include "prop.h"

#define SIZE_MAX_LOG 18u /* 2^18 is the most that three levels hold */
#define SIZE_MOST (2u << SIZE_MAX_LOG)

struct world {
	struct tower tower;
	bool         member[SIZE_MOST];
	uint32_t     size;
};

static uint32_t next_member(const struct world *world, uint32_t from)
{
	uint32_t i;

	for (i = from; i < world->size; i++) {
		if (world->member[i])
			return i;
	}
	return SLOT_NONE;
}

static uint32_t count_members(const struct world *world)
{
	uint32_t count = 0;
	uint32_t i;

	for (i = 0; i < world->size; i++)
		count += world->member[i];
	return count;
}

static void reopen(struct world *world, uint32_t size, bool full)
{
	uint32_t i;

	tower_close(&world->tower);
	KVS_ASSERT(tower_open(&world->tower, size, full) == 0);
	world->size = size;
	for (i = 0; i < size; i++)
		world->member[i] = full;
}

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	reopen(world, 1, false);
	return world;
}

static void set(struct world *world, uint32_t number, bool member)
{
	if (member)
		tower_add(&world->tower, number);
	else
		tower_drop(&world->tower, number);
	world->member[number] = member;
}

/* A run of numbers: only so do whole words of upper levels fill and empty. */
static void set_run(struct world *world, uint32_t from, uint32_t length, bool member)
{
	uint32_t i;

	for (i = from; i < world->size && i - from < length; i++)
		set(world, i, member);
}

static void compare(const struct world *world, uint32_t from)
{
	tower_audit(&world->tower);
	KVS_ASSERT_CMP(tower_count(&world->tower), ==, count_members(world));
	KVS_ASSERT_CMP(tower_next(&world->tower, 0), ==, next_member(world, 0));
	KVS_ASSERT_CMP(tower_next(&world->tower, from), ==, next_member(world, from));
	KVS_ASSERT_CMP(tower_next(&world->tower, from + 1), ==, next_member(world, from + 1));
	KVS_ASSERT_CMP(tower_has(&world->tower, from), ==, world->member[from]);
	KVS_ASSERT_CMP(tower_next(&world->tower, world->size), ==, SLOT_NONE);
}

enum { REOPEN, ADD, DROP, ADD_RUN, DROP_RUN, EMPTY };

static const struct prop_kind kinds[] = { { "REOPEN", 2 },  { "ADD", 30 },      { "DROP", 10 },
					  { "ADD_RUN", 5 }, { "DROP_RUN", 20 }, { "EMPTY", 3 } };

/* arg[0] draws a number, arg[1] a length or a size; sizes of each number of bits are as frequent. */
static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;
	const uint32_t      number = op->arg[0] % world->size;
	const uint32_t      log = op->arg[1] % (SIZE_MAX_LOG + 1);
	const uint32_t      length = op->arg[1] % 10000;

	if (op->kind == REOPEN)
		reopen(world, (1u << log) + op->arg[0] % (1u << log), op->arg[1] % 7 == 0);
	else if (op->kind == ADD || op->kind == DROP)
		set(world, number, op->kind == ADD);
	else if (op->kind == ADD_RUN || op->kind == DROP_RUN)
		set_run(world, number, length, op->kind == ADD_RUN);
	else
		set_run(world, 0, world->size, false);
	compare(world, op->arg[0] % world->size);
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	tower_close(&world->tower);
	free(world);
}

PROP_MAIN("tower", a_tower_behaves_as_booleans, 30, 300, world_close)
