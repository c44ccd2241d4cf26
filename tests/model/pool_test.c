/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool against parents in an array: to take a block, the model sorts all parents that could give
 * one.  Groups, packings and sizes are drawn; packings past 64 and partial parents by the hundred
 * are among them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/list.h"
#include "pool/pool.h"
#include "prop.h"

#define GROUPS_MOST 4u
#define PARENTS_MOST 120u
#define PACKING_MOST 70u
#define BLOCKS_MOST (PARENTS_MOST * PACKING_MOST)

struct parent {
	uint32_t group; /* SLOT_NONE: unbound */
	uint32_t refs[PACKING_MOST];
	uint64_t unbound_at;
};

struct model {
	struct parent parents[PARENTS_MOST];
	uint32_t      packing[GROUPS_MOST];
	uint32_t      group_count;
	uint32_t      parent_count;
	uint64_t      clock; /* ticks when a parent is unbound */
};

struct world {
	struct model model;
	struct pool *pool;
	uint32_t     got[BLOCKS_MOST];
	uint32_t     expected[BLOCKS_MOST];
};

/* --- the model -------------------------------------------------------------------------------- */

static uint32_t used(const struct model *model, uint32_t parent)
{
	uint32_t held = 0;
	uint32_t slot;

	for (slot = 0; slot < PACKING_MOST; slot++)
		held += model->parents[parent].refs[slot] > 0;
	return held;
}

/* A parent as a source of blocks, and what it is sorted by, first things first. */
struct source {
	uint32_t unbound;
	uint32_t free;       /* among the bound: the fullest first */
	uint64_t unbound_at; /* among the unbound: the longest first */
	uint32_t parent;
};

static int compare_sources(const void *a, const void *b)
{
	const struct source *const left = a, *const right = b;

	if (left->unbound != right->unbound)
		return left->unbound < right->unbound ? -1 : 1;
	if (left->free != right->free)
		return left->free < right->free ? -1 : 1;
	if (left->unbound_at != right->unbound_at)
		return left->unbound_at < right->unbound_at ? -1 : 1;
	return left->parent < right->parent ? -1 : 1;
}

/* Returns how many parents could give the group a block, sorted. */
static uint32_t list_sources(const struct model *model, uint32_t group, struct source *ret_sources)
{
	const uint32_t packing = model->packing[group];
	uint32_t       count = 0;
	uint32_t       i;

	for (i = 0; i < model->parent_count; i++) {
		const struct parent *const parent = &model->parents[i];
		const uint32_t             held = used(model, i);

		if (parent->group == SLOT_NONE)
			ret_sources[count++] = (struct source){ 1, packing, parent->unbound_at, i };
		else if (parent->group == group && held < packing)
			ret_sources[count++] = (struct source){ 0, packing - held, 0, i };
	}
	qsort(ret_sources, count, sizeof(*ret_sources), compare_sources);
	return count;
}

static bool model_acquire(struct model *model, uint32_t group, uint32_t count, uint32_t *ret_blocks)
{
	const uint32_t packing = model->packing[group];
	struct source  sources[PARENTS_MOST];
	const uint32_t source_count = list_sources(model, group, sources);
	uint32_t       free_blocks = 0, taken = 0;
	uint32_t       i, slot;

	for (i = 0; i < source_count; i++)
		free_blocks += sources[i].free;
	if (free_blocks < count)
		return false;
	for (i = 0; taken < count; i++) {
		struct parent *const parent = &model->parents[sources[i].parent];

		parent->group = group;
		for (slot = 0; slot < packing && taken < count; slot++) {
			if (parent->refs[slot] > 0)
				continue;
			parent->refs[slot] = 1;
			ret_blocks[taken++] = 1 + sources[i].parent * packing + slot;
		}
	}
	return true;
}

/* What group and block name must be held. */
static uint32_t *model_refs(struct model *model, uint32_t group, uint32_t block)
{
	const uint32_t packing = model->packing[group];

	return &model->parents[(block - 1) / packing].refs[(block - 1) % packing];
}

static uint32_t model_unpin(struct model *model, uint32_t group, uint32_t block)
{
	const uint32_t  parent = (block - 1) / model->packing[group];
	uint32_t *const refs = model_refs(model, group, block);

	if (--*refs == 0 && used(model, parent) == 0) {
		model->parents[parent].group = SLOT_NONE;
		model->parents[parent].unbound_at = ++model->clock;
	}
	return *refs;
}

/* --- both ------------------------------------------------------------------------------------- */

static void pin(struct world *world, uint32_t group, uint32_t block)
{
	const uint32_t refs = ++*model_refs(&world->model, group, block);

	KVS_ASSERT_CMP(pool_pin(world->pool, group, block), ==, refs);
}

static void unpin(struct world *world, uint32_t group, uint32_t block)
{
	const uint32_t refs = model_unpin(&world->model, group, block);

	KVS_ASSERT_CMP(pool_unpin(world->pool, group, block), ==, refs);
}

static void drain(struct world *world, uint32_t parent)
{
	struct model *const model = &world->model;
	const uint32_t      group = model->parents[parent].group;
	uint32_t            slot;

	for (slot = 0; group != SLOT_NONE && slot < model->packing[group]; slot++) {
		const uint32_t block = 1 + parent * model->packing[group] + slot;

		while (*model_refs(model, group, block) > 0)
			unpin(world, group, block);
	}
}

static void drain_all(struct world *world)
{
	uint32_t i;

	for (i = 0; i < world->model.parent_count; i++)
		drain(world, i);
}

/* Small packings are as frequent as large ones are rare. */
static uint32_t draw_packing(uint32_t draw)
{
	return draw % 3 ? 1 + draw / 3 % 8 : 1 + draw / 3 % PACKING_MOST;
}

static void reopen(struct world *world, uint32_t size_draw, uint32_t group_draw)
{
	struct model *const model = &world->model;
	uint32_t            i;

	if (world->pool)
		drain_all(world);
	pool_close(world->pool);
	memset(model, 0, sizeof(*model));
	model->parent_count = 1 + (size_draw % 4 ? size_draw / 4 % 12 : size_draw / 4 % PARENTS_MOST);
	model->group_count = 1 + group_draw % GROUPS_MOST;
	for (i = 0; i < model->group_count; i++)
		model->packing[i] = draw_packing((group_draw / GROUPS_MOST) >> (7 * i));
	for (i = 0; i < model->parent_count; i++)
		model->parents[i].group = SLOT_NONE;
	KVS_ASSERT(pool_open(model->parent_count, model->packing, model->group_count, &world->pool,
			     NULL) == 0);
}

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	reopen(world, 17, 1u << 16 | 7);
	return world;
}

static void compare_parent(const struct world *world, uint32_t parent)
{
	const uint32_t model_group = world->model.parents[parent].group;
	uint32_t       group = SLOT_NONE;

	KVS_ASSERT_CMP(pool_bound(world->pool, 1 + parent, &group), ==, model_group != SLOT_NONE);
	KVS_ASSERT_CMP(group, ==, model_group);
	KVS_ASSERT_CMP(pool_used(world->pool, 1 + parent), ==, used(&world->model, parent));
}

/* Every number a group has, whoever serves its parent. */
static void compare_group(struct world *world, uint32_t group)
{
	struct model *const model = &world->model;
	const uint32_t      packing = model->packing[group];
	uint32_t            room = 0;
	uint32_t            block;

	KVS_ASSERT_CMP(pool_packing(world->pool, group), ==, packing);
	for (block = 1; block <= model->parent_count * packing; block++) {
		const uint32_t parent = (block - 1) / packing;
		const bool     own = model->parents[parent].group == group;
		const uint32_t refs = own ? *model_refs(model, group, block) : 0;

		KVS_ASSERT_CMP(pool_refs(world->pool, group, block), ==, refs);
		KVS_ASSERT_CMP(pool_parent_of(world->pool, group, block), ==, 1 + parent);
		room += own && refs == 0;
	}
	KVS_ASSERT_CMP(pool_room(world->pool, group), ==, room);
}

static void compare(struct world *world)
{
	uint32_t unbound = 0;
	uint32_t i;

	pool_audit(world->pool);
	KVS_ASSERT_CMP(pool_parent_count(world->pool), ==, world->model.parent_count);
	for (i = 0; i < world->model.parent_count; i++) {
		compare_parent(world, i);
		unbound += world->model.parents[i].group == SLOT_NONE;
	}
	KVS_ASSERT_CMP(pool_unbound(world->pool), ==, unbound);
	for (i = 0; i < world->model.group_count; i++)
		compare_group(world, i);
}

static void acquire(struct world *world, uint32_t group, uint32_t count)
{
	const bool given = model_acquire(&world->model, group, count, world->expected);
	uint32_t   i;

	KVS_ASSERT_CMP(pool_acquire(world->pool, group, count, world->got), ==, given);
	for (i = 0; given && i < count; i++)
		KVS_ASSERT_CMP(world->got[i], ==, world->expected[i]);
}

/* The first held place at or after a drawn one, round the end; false when nothing is held. */
static bool find_held(struct world *world, uint32_t draw, uint32_t *ret_group, uint32_t *ret_block)
{
	const struct model *const model = &world->model;
	const uint32_t            places = model->parent_count * PACKING_MOST;
	uint32_t                  i;

	for (i = 0; i < places; i++) {
		const uint32_t place = (uint32_t)(((uint64_t)draw + i) % places);
		const uint32_t parent = place / PACKING_MOST, slot = place % PACKING_MOST;

		if (model->parents[parent].refs[slot] == 0)
			continue;
		*ret_group = model->parents[parent].group;
		*ret_block = 1 + parent * model->packing[*ret_group] + slot;
		return true;
	}
	return false;
}

enum { REOPEN, ACQUIRE, ACQUIRE_MANY, PIN, UNPIN, DRAIN, DRAIN_ALL };

static const struct prop_kind kinds[] = {
	{ "REOPEN", 4 }, { "ACQUIRE", 30 }, { "ACQUIRE_MANY", 10 }, { "PIN", 10 },
	{ "UNPIN", 60 }, { "DRAIN", 8 },    { "DRAIN_ALL", 1 },
};

/* arg[0] draws a place, a parent or a number of blocks, arg[1] the group. */
static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;
	struct model *const model = &world->model;
	const uint32_t      drawn_group = op->arg[1] % model->group_count;
	uint32_t            group, block;

	if (op->kind == REOPEN) {
		reopen(world, op->arg[0], op->arg[1]);
	} else if (op->kind == ACQUIRE) {
		acquire(world, drawn_group, op->arg[0] % 4);
	} else if (op->kind == ACQUIRE_MANY) {
		acquire(world, drawn_group,
			op->arg[0] % (model->parent_count * model->packing[drawn_group] / 2 + 2));
	} else if (op->kind == DRAIN) {
		drain(world, op->arg[0] % model->parent_count);
	} else if (op->kind == DRAIN_ALL) {
		drain_all(world);
	} else if (find_held(world, op->arg[0], &group, &block)) {
		if (op->kind == PIN)
			pin(world, group, block);
		else
			unpin(world, group, block);
	}
	compare(world);
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	drain_all(world);
	pool_close(world->pool);
	free(world);
}

PROP_MAIN("pool", blocks_come_in_the_order_that_sorting_gives, 100, 400, world_close)
