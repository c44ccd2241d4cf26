/* SPDX-License-Identifier: Apache-2.0 */
/* The order of eviction against an array that is sorted for every walk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "coord/order.h"
#include "prop.h"

#define PLACES 60u
#define CLASSES 4u

struct item {
	bool     there;
	bool     idle;
	uint32_t class;
	uint64_t epoch;
	uint64_t rank;
	uint32_t place;
};

struct world {
	struct order order;
	struct item  items[PLACES];
};

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	KVS_ASSERT(order_open(&world->order, PLACES, CLASSES) == 0);
	return world;
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	order_close(&world->order);
	free(world);
}

static int compare(const void *left, const void *right)
{
	const struct item *const a = left, *const b = right;

	if (a->epoch != b->epoch)
		return a->epoch < b->epoch ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->place < b->place ? -1 : 1;
}

/* Walk the idle items of some classes: all of them, or no further than `steps`. */
static void walk(struct world *world, uint32_t begin, uint32_t end, uint32_t steps)
{
	struct item       sorted[PLACES];
	struct order_walk walk;
	uint32_t          count = 0, i;

	for (i = 0; i < PLACES; i++) {
		const struct item *const item = &world->items[i];

		if (item->there && item->idle && item->class >= begin && item->class < end)
			sorted[count++] = *item;
	}
	qsort(sorted, count, sizeof(*sorted), compare);
	order_walk_init(&walk, &world->order, begin, end);
	for (i = 0; i < count && i < steps; i++) {
		KVS_ASSERT_CMP(order_walk_peek(&walk), ==, sorted[i].place);
		order_walk_next(&walk);
	}
	if (i == count)
		KVS_ASSERT_CMP(order_walk_peek(&walk), ==, SLOT_NONE);
}

static void compare_all(const struct world *world)
{
	uint64_t newest = 0;
	uint32_t i;

	order_audit(&world->order);
	for (i = 0; i < PLACES; i++) {
		const struct item *const item = &world->items[i];

		KVS_ASSERT_CMP(order_has(&world->order, i), ==, item->there);
		KVS_ASSERT_CMP(order_is_idle(&world->order, i), ==, item->there && item->idle);
		if (!item->there)
			continue;
		KVS_ASSERT_CMP(order_epoch(&world->order, i), ==, item->epoch);
		KVS_ASSERT_CMP(order_rank(&world->order, i), ==, item->rank);
		newest = item->epoch > newest ? item->epoch : newest;
	}
	KVS_ASSERT_CMP(order_newest(&world->order), ==, newest);
}

/* Few epochs and ranks, so that many items share them. */
static struct item draw(uint32_t place, uint32_t arg)
{
	return (struct item){ .there = true, .class = arg % CLASSES, .epoch = 1 + arg / 4 % 9,
			      .rank = arg / 64 % 5, .place = place };
}

enum { PUT, REMOVE, IDLE, WALK };

static const struct prop_kind kinds[] = { { "PUT", 40 }, { "REMOVE", 10 }, { "IDLE", 50 }, { "WALK", 20 } };

static void put(struct world *world, struct item *item, uint32_t place, uint32_t arg)
{
	const bool idle = item->there && item->idle;

	if (item->there) {
		*item = draw(place, arg);
		item->idle = idle;
		order_move(&world->order, place, item->class, item->epoch, item->rank);
	} else {
		*item = draw(place, arg);
		order_insert(&world->order, place, item->class, item->epoch, item->rank);
	}
}

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;
	const uint32_t      place = op->arg[0] % PLACES;
	struct item *const  item = &world->items[place];

	if (op->kind == PUT) {
		put(world, item, place, op->arg[1]);
	} else if (op->kind == REMOVE && item->there) {
		order_remove(&world->order, place);
		item->there = false;
	} else if (op->kind == IDLE && item->there) {
		item->idle = !item->idle;
		order_set_idle(&world->order, place, item->idle);
	} else if (op->kind == WALK) {
		const uint32_t begin = op->arg[0] % CLASSES;

		walk(world, begin, begin + 1 + op->arg[1] % (CLASSES - begin), op->arg[1] / 8 % 90);
	}
	compare_all(world);
}

PROP_MAIN("order", a_walk_is_the_sorted_array, 60, 600, world_close)
