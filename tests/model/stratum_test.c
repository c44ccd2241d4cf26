/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two strata under one index against arrays: a free queue and an eviction order are plain lists, a
 * key is looked for from end to end.  Few blocks and few keys, so that full, evicted and doubled
 * are ordinary.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coord/stratum.h"
#include "named_block.h"
#include "prop.h"

#define BLOCKS 5u
#define KEYS 8u
#define NO_KEY UINT32_MAX

struct row {
	uint32_t items[BLOCKS];
	uint32_t count;
};

/* What a stratum must be.  refs without the one of the index. */
struct model {
	uint32_t   refs[BLOCKS];
	uint32_t   key[BLOCKS];
	struct row free;
	struct row order; /* published blocks, least recently used first */
	uint64_t   evicted;
};

struct world {
	struct prefix_index index;
	struct stratum      strata[STRATUM_COUNT];
	struct model        models[STRATUM_COUNT];
	struct kvs_key      keys[KEYS];
};

static void row_append(struct row *row, uint32_t item)
{
	row->items[row->count++] = item;
}

static void row_delete(struct row *row, uint32_t item)
{
	uint32_t i, kept = 0;

	for (i = 0; i < row->count; i++) {
		if (row->items[i] != item)
			row->items[kept++] = row->items[i];
	}
	row->count = kept;
}

static uint32_t model_find(const struct model *model, uint32_t key)
{
	uint32_t block;

	for (block = 0; block < BLOCKS; block++) {
		if (model->key[block] == key)
			return block;
	}
	return SLOT_NONE;
}

static uint32_t model_room(const struct model *model)
{
	uint32_t room = model->free.count;
	uint32_t block;

	for (block = 0; block < BLOCKS; block++)
		room += model->key[block] != NO_KEY && model->refs[block] == 0;
	return room;
}

/* The first of the order that nobody holds becomes free. */
static void model_evict(struct model *model)
{
	uint32_t i;

	for (i = 0; i < model->order.count; i++) {
		const uint32_t block = model->order.items[i];

		if (model->refs[block] > 0)
			continue;
		row_delete(&model->order, block);
		model->key[block] = NO_KEY;
		row_append(&model->free, block);
		model->evicted++;
		return;
	}
}

static uint32_t model_acquire(struct model *model)
{
	uint32_t block;

	if (model->free.count == 0)
		model_evict(model);
	if (model->free.count == 0)
		return SLOT_NONE;
	block = model->free.items[0];
	row_delete(&model->free, block);
	model->refs[block] = 1;
	return block;
}

static void model_unpin(struct model *model, uint32_t block)
{
	if (--model->refs[block] == 0 && model->key[block] == NO_KEY)
		row_append(&model->free, block);
}

static void model_touch(struct model *model, uint32_t block)
{
	row_delete(&model->order, block);
	row_append(&model->order, block);
}

static uint32_t model_publish(struct model *model, uint32_t key, uint32_t block)
{
	const uint32_t holder = model_find(model, key);

	if (holder == SLOT_NONE) {
		model->key[block] = key;
		row_append(&model->order, block);
		return block;
	}
	model->refs[holder]++;
	model_unpin(model, block);
	model_touch(model, holder);
	return holder;
}

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));
	uint32_t            id, i;

	KVS_ASSERT(world);
	KVS_ASSERT(index_open(&world->index, STRATUM_COUNT * BLOCKS) == 0);
	for (id = 0; id < STRATUM_COUNT; id++) {
		struct stratum *const stratum = &world->strata[id];

		KVS_ASSERT(stratum_open(stratum, id, &world->index, BLOCKS, "lru", NULL) == 0);
		for (i = 0; i < BLOCKS; i++) {
			world->models[id].key[i] = NO_KEY;
			row_append(&world->models[id].free, i);
		}
	}
	for (i = 0; i < KEYS; i++)
		world->keys[i] = key_of(i);
	return world;
}

static void compare(struct world *world, enum stratum_id id)
{
	struct stratum *const     stratum = &world->strata[id];
	const struct model *const model = &world->models[id];
	uint32_t                  i;

	stratum_audit(stratum);
	pool_audit(stratum->pool);
	KVS_ASSERT_CMP(stratum_room(stratum), ==, model_room(model));
	KVS_ASSERT_CMP(stratum->evicted, ==, model->evicted);
	for (i = 0; i < BLOCKS; i++) {
		const bool published = model->key[i] != NO_KEY;

		KVS_ASSERT_CMP(stratum_published(stratum, i), ==, published);
		KVS_ASSERT_CMP(stratum_refs(stratum, i), ==, model->refs[i] + published);
	}
	for (i = 0; i < KEYS; i++)
		KVS_ASSERT_CMP(stratum_find(stratum, &world->keys[i]), ==, model_find(model, i));
}

enum { ACQUIRE, PIN, UNPIN, PUBLISH, TOUCH, FILL };

static const struct prop_kind kinds[] = { { "ACQUIRE", 4 }, { "PIN", 3 },   { "UNPIN", 6 },
					  { "PUBLISH", 5 }, { "TOUCH", 2 }, { "FILL", 1 } };

static void acquire(struct stratum *stratum, struct model *model)
{
	KVS_ASSERT_CMP(stratum_acquire(stratum), ==, model_acquire(model));
}

static void publish(struct world *world, enum stratum_id id, uint32_t block, uint32_t key)
{
	const uint32_t holder = model_publish(&world->models[id], key, block);

	KVS_ASSERT_CMP(stratum_publish(&world->strata[id], &world->keys[key], block), ==, holder);
}

static void touch(struct world *world, struct stratum *stratum, struct model *model, uint32_t key)
{
	const uint32_t block = model_find(model, key);

	stratum_touch(stratum, &world->keys[key]);
	if (block != SLOT_NONE)
		model_touch(model, block);
}

/* Evict until every block is held. */
static void fill_up(struct stratum *stratum, struct model *model)
{
	while (model_room(model) > 0)
		acquire(stratum, model);
	acquire(stratum, model);
}

/* arg[0] draws stratum and block, arg[1] the key; what makes no sense in this state is skipped. */
static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const   world = arg;
	const uint32_t        id = op->arg[0] % STRATUM_COUNT;
	const uint32_t        block = op->arg[0] / STRATUM_COUNT % BLOCKS;
	const uint32_t        key = op->arg[1] % KEYS;
	struct stratum *const stratum = &world->strata[id];
	struct model *const   model = &world->models[id];
	const bool            published = model->key[block] != NO_KEY;

	if (op->kind == ACQUIRE) {
		acquire(stratum, model);
	} else if (op->kind == PIN && (published || model->refs[block] > 0)) {
		stratum_pin(stratum, block);
		model->refs[block]++;
	} else if (op->kind == UNPIN && model->refs[block] > 0) {
		stratum_unpin(stratum, block);
		model_unpin(model, block);
	} else if (op->kind == PUBLISH && !published && model->refs[block] > 0) {
		publish(world, id, block, key);
	} else if (op->kind == TOUCH) {
		touch(world, stratum, model, key);
	} else if (op->kind == FILL) {
		fill_up(stratum, model);
	}
	index_audit(&world->index);
	compare(world, STRATUM_DEVICE);
	compare(world, STRATUM_HOST);
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	stratum_close(&world->strata[STRATUM_HOST]);
	stratum_close(&world->strata[STRATUM_DEVICE]);
	index_close(&world->index);
	free(world);
}

PROP_MAIN("stratum", two_strata_behave_as_lists, 100, 400, world_close)
