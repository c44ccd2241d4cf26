/* SPDX-License-Identifier: Apache-2.0 */
/* See order.h: a bucket is sorted when a walk comes to it, and not before. */
#include "base/err.h"
#include "coord/order.h"

/* Cut a chain behind its first count places; returns the rest. */
static uint32_t cut(struct link *links, uint32_t head, uint32_t count)
{
	uint32_t rest;

	while (head != SLOT_NONE && --count > 0)
		head = links[head].next;
	if (head == SLOT_NONE)
		return SLOT_NONE;
	rest = links[head].next;
	links[head].next = SLOT_NONE;
	return rest;
}

/* Append the two sorted chains, merged, at *tail; returns the new tail. */
static uint32_t *merge(struct order *order, uint32_t a, uint32_t b, uint32_t *tail)
{
	while (a != SLOT_NONE || b != SLOT_NONE) {
		uint32_t *const from =
			b == SLOT_NONE || (a != SLOT_NONE && order_goes_first(order, a, b)) ? &a : &b;

		*tail = *from;
		tail = &order->links[*from].next;
		*from = *tail;
	}
	return tail;
}

/* One pass: runs of `width` become runs of twice that. */
static uint32_t merge_runs(struct order *order, uint32_t head, uint32_t width)
{
	uint32_t  first = SLOT_NONE;
	uint32_t *tail = &first;

	while (head != SLOT_NONE) {
		const uint32_t a = head;
		const uint32_t b = cut(order->links, a, width);

		head = cut(order->links, b, width);
		tail = merge(order, a, b, tail);
	}
	*tail = SLOT_NONE;
	return first;
}

/* Merge sort of the list itself, by its forward links: no memory, and it cannot degrade. */
static void sort_bucket(struct order *order, struct order_bucket *bucket)
{
	struct list *const list = &bucket->idle;
	uint32_t           prev = SLOT_NONE;
	uint32_t           width, place;

	if (bucket->sorted)
		return;
	for (width = 1; width < list->count; width *= 2)
		list->head = merge_runs(order, list->head, width);
	for (place = list->head; place != SLOT_NONE; place = order->links[place].next) {
		order->links[place].prev = prev;
		prev = place;
	}
	list->tail = prev;
	bucket->sorted = true;
}

/* --- the walk --------------------------------------------------------------------------------- */

/* The first idle item of a bucket or of the ones behind it. */
static uint32_t first_from(struct order *order, uint32_t slot)
{
	while (slot != SLOT_NONE && order->buckets[slot].idle.count == 0)
		slot = order->bucket_links[slot].next;
	if (slot == SLOT_NONE)
		return SLOT_NONE;
	sort_bucket(order, &order->buckets[slot]);
	return order->buckets[slot].idle.head;
}

void order_walk_init(struct order_walk *walk, struct order *order, uint32_t begin, uint32_t end)
{
	uint32_t i;

	KVS_ASSERT_CMP(end - begin, <=, ORDER_MERGE_MAX);
	KVS_ASSERT_CMP(end, <=, order->class_count);
	*walk = (struct order_walk){ .order = order, .begin = begin, .count = end - begin };
	for (i = 0; i < walk->count; i++)
		walk->next[i] = first_from(order, order->classes[begin + i].head);
}

/* Which class comes next; count when none does. */
static uint32_t next_class(const struct order_walk *walk)
{
	const struct order *const order = walk->order;
	uint32_t                  best = walk->count;
	uint32_t                  i;

	for (i = 0; i < walk->count; i++) {
		const uint32_t a = walk->next[i];
		uint32_t       b;

		if (a == SLOT_NONE)
			continue;
		if (best < walk->count) {
			b = walk->next[best];
			if (order_epoch(order, a) != order_epoch(order, b)
				    ? order_epoch(order, a) > order_epoch(order, b)
				    : !order_goes_first(order, a, b))
				continue;
		}
		best = i;
	}
	return best;
}

uint32_t order_walk_peek(const struct order_walk *walk)
{
	const uint32_t class = next_class(walk);

	return class < walk->count ? walk->next[class] : SLOT_NONE;
}

void order_walk_next(struct order_walk *walk)
{
	struct order *const order = walk->order;
	const uint32_t      class = next_class(walk);
	uint32_t            place;

	KVS_ASSERT_CMP(class, <, walk->count);
	place = walk->next[class];
	walk->next[class] = order->links[place].next;
	if (walk->next[class] != SLOT_NONE)
		return;
	walk->next[class] =
		first_from(order, order->bucket_links[order->items[place].bucket].next);
}
