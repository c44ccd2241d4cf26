/* SPDX-License-Identifier: Apache-2.0 */
/* Two lists over one array of links, against two arrays of slots in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "prop.h"

#define SLOTS 24

struct order {
	uint32_t slot[SLOTS];
	uint32_t count;
};

struct world {
	struct link  links[SLOTS];
	struct list  lists[2];
	struct order orders[2];
};

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	list_links_init(world->links, SLOTS);
	list_init(&world->lists[0]);
	list_init(&world->lists[1]);
	return world;
}

/* Place of slot in the order; its count when absent. */
static uint32_t place_of(const struct order *order, uint32_t slot)
{
	uint32_t i;

	for (i = 0; i < order->count && order->slot[i] != slot; i++)
		;
	return i;
}

static void order_insert(struct order *order, uint32_t place, uint32_t slot)
{
	memmove(&order->slot[place + 1], &order->slot[place],
		(order->count - place) * sizeof(slot));
	order->slot[place] = slot;
	order->count++;
}

static void order_delete(struct order *order, uint32_t place)
{
	order->count--;
	memmove(&order->slot[place], &order->slot[place + 1],
		(order->count - place) * sizeof(uint32_t));
}

static bool in_order(const struct world *world, uint32_t which, uint32_t slot)
{
	return place_of(&world->orders[which], slot) < world->orders[which].count;
}

/* Forwards here; the audit checks that backwards agrees. */
static void compare_list(const struct world *world, uint32_t which)
{
	const struct list *const  list = &world->lists[which];
	const struct order *const order = &world->orders[which];
	uint32_t                  slot = list->head;
	uint32_t                  i;

	list_audit(list, world->links, SLOTS);
	KVS_ASSERT_CMP(list->count, ==, order->count);
	for (i = 0; i < order->count; i++) {
		KVS_ASSERT_CMP(slot, ==, order->slot[i]);
		slot = world->links[slot].next;
	}
	KVS_ASSERT_CMP(slot, ==, SLOT_NONE);
}

static void compare(const struct world *world)
{
	uint32_t slot;

	compare_list(world, 0);
	compare_list(world, 1);
	for (slot = 0; slot < SLOTS; slot++) {
		KVS_ASSERT_CMP(list_is_linked(world->links, slot), ==,
			       in_order(world, 0, slot) || in_order(world, 1, slot));
	}
}

static void push(struct world *world, uint32_t which, uint32_t slot, bool at_head)
{
	struct order *const order = &world->orders[which];

	if (list_is_linked(world->links, slot))
		return;
	if (at_head)
		list_push_head(&world->lists[which], world->links, slot);
	else
		list_push_tail(&world->lists[which], world->links, slot);
	order_insert(order, at_head ? 0 : order->count, slot);
}

static void pop(struct world *world, uint32_t which)
{
	struct order *const order = &world->orders[which];
	const uint32_t      slot = list_pop_head(&world->lists[which], world->links);

	KVS_ASSERT_CMP(slot, ==, order->count ? order->slot[0] : SLOT_NONE);
	if (order->count)
		order_delete(order, 0);
}

static void remove_from(struct world *world, uint32_t which, uint32_t slot)
{
	if (!in_order(world, which, slot))
		return;
	list_remove(&world->lists[which], world->links, slot);
	order_delete(&world->orders[which], place_of(&world->orders[which], slot));
}

enum { PUSH_HEAD, PUSH_TAIL, POP_HEAD, REMOVE };

static const struct prop_kind kinds[] = {
	{ "PUSH_HEAD", 4 }, { "PUSH_TAIL", 4 }, { "POP_HEAD", 1 }, { "REMOVE", 4 }
};

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;
	const uint32_t      which = op->arg[0] % 2;
	const uint32_t      slot = op->arg[1] % SLOTS;

	if (op->kind == POP_HEAD)
		pop(world, which);
	else if (op->kind == REMOVE)
		remove_from(world, which, slot);
	else
		push(world, which, slot, op->kind == PUSH_HEAD);
	compare(world);
}

PROP_MAIN("list", lists_keep_order, 40, 500, free)
