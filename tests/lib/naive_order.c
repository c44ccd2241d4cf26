/* SPDX-License-Identifier: Apache-2.0 */
/* See naive_order.h. */
#include "naive_order.h"

#include <string.h>

bool naive_is(const struct naive_order *order, const char *policy)
{
	return strcmp(order->policy, policy) == 0;
}

uint32_t naive_count(const struct naive_part *part)
{
	return part->queues[0].count + part->queues[1].count;
}

static bool drop(struct naive_queue *queue, uint32_t slot)
{
	uint32_t i;

	for (i = 0; i < queue->count; i++) {
		if (queue->slots[i] != slot)
			continue;
		memmove(&queue->slots[i], &queue->slots[i + 1],
			(queue->count - i - 1) * sizeof(queue->slots[0]));
		queue->count--;
		return true;
	}
	return false;
}

static void leave(struct naive_order *order, uint32_t slot)
{
	drop(&order->parts[order->part_of[slot]].queues[0], slot);
	drop(&order->parts[order->part_of[slot]].queues[1], slot);
}

static void append(struct naive_order *order, uint32_t queue, uint32_t slot)
{
	struct naive_queue *const to = &order->parts[order->part_of[slot]].queues[queue];

	leave(order, slot);
	to->slots[to->count++] = slot;
}

bool naive_is_in(const struct naive_order *order, uint32_t queue, uint32_t slot)
{
	const struct naive_queue *const in = &order->parts[order->part_of[slot]].queues[queue];
	uint32_t                  i;

	for (i = 0; i < in->count; i++) {
		if (in->slots[i] == slot)
			return true;
	}
	return false;
}

static bool ghost_takes(struct naive_order *order, uint64_t name)
{
	uint32_t i;

	for (i = 0; i < NAIVE_GHOST; i++) {
		if (order->ghost[i] == name) {
			order->ghost[i] = 0;
			return true;
		}
	}
	return false;
}

static void ghost_remembers(struct naive_order *order, uint64_t name)
{
	ghost_takes(order, name);
	memmove(&order->ghost[1], &order->ghost[0], (NAIVE_GHOST - 1) * sizeof(order->ghost[0]));
	order->ghost[0] = name;
}

static uint32_t enters(struct naive_order *order, uint32_t part, uint64_t name)
{
	if (naive_is(order, "s3fifo"))
		return ghost_takes(order, name);
	return naive_is(order, "arc") && naive_arc_insert(order, part, name);
}

void naive_order_insert(struct naive_order *order, uint32_t part, uint32_t slot, uint64_t name)
{
	const uint32_t queue = enters(order, part, name);

	order->present[slot] = true;
	order->part_of[slot] = part;
	order->uses[slot] = 0;
	order->names[slot] = name;
	append(order, queue, slot);
}

void naive_order_touch(struct naive_order *order, uint32_t slot)
{
	order->uses[slot] = order->uses[slot] < 3 ? order->uses[slot] + 1 : 3;
	if (naive_is(order, "lru") || naive_is(order, "lru-leaf"))
		append(order, 0, slot);
	if (naive_is(order, "host-order") || naive_is(order, "arc"))
		append(order, 1, slot);
}

void naive_order_settle(struct naive_order *order, const uint32_t *slots, uint32_t count)
{
	while (naive_is(order, "lru-leaf") && count-- > 0) {
		if (slots[count] < NAIVE_SLOTS && order->present[slots[count]])
			append(order, 0, slots[count]);
	}
}

static bool is_pinned(uint32_t pins, uint32_t slot)
{
	return pins >> slot & 1;
}

static uint32_t first_of(const struct naive_queue *queue, uint32_t pins)
{
	uint32_t i;

	for (i = 0; i < queue->count; i++) {
		if (!is_pinned(pins, queue->slots[i]))
			return queue->slots[i];
	}
	return SLOT_NONE;
}

static uint32_t plain_victim(const struct naive_part *part, uint32_t queue, uint32_t pins)
{
	const uint32_t slot = first_of(&part->queues[queue], pins);

	return slot == SLOT_NONE ? first_of(&part->queues[!queue], pins) : slot;
}

static uint32_t small_victim(struct naive_order *order, const struct naive_part *part,
			     uint32_t pins)
{
	const struct naive_queue before = part->queues[0];
	uint32_t           i;

	for (i = 0; i < before.count; i++) {
		const uint32_t slot = before.slots[i];

		if (is_pinned(pins, slot))
			continue;
		if (order->uses[slot] <= 1) {
			ghost_remembers(order, order->names[slot]);
			return slot;
		}
		order->uses[slot] = 0;
		append(order, 1, slot);
	}
	return SLOT_NONE;
}

/* Each round sends who has uses left to the end of the queue, one poorer; the fourth finds none. */
static uint32_t main_victim(struct naive_order *order, const struct naive_part *part, uint32_t pins)
{
	const struct naive_queue *queue = &part->queues[1];
	uint32_t            i = 0;

	while (i < queue->count) {
		const uint32_t slot = queue->slots[i];

		if (is_pinned(pins, slot)) {
			i++;
			continue;
		}
		if (order->uses[slot] == 0)
			return slot;
		order->uses[slot]--;
		append(order, 1, slot);
	}
	return SLOT_NONE;
}

/* A tenth, and one at the least. */
static bool has_its_share(const struct naive_part *part)
{
	const uint32_t small = part->queues[0].count;

	return small >= 1 && small >= naive_count(part) / 10;
}

static uint32_t s3fifo_victim(struct naive_order *order, const struct naive_part *part,
			      uint32_t pins)
{
	uint32_t slot = SLOT_NONE;

	if (has_its_share(part))
		slot = small_victim(order, part, pins);
	if (slot == SLOT_NONE)
		slot = main_victim(order, part, pins);
	if (slot == SLOT_NONE)
		slot = small_victim(order, part, pins);
	return slot == SLOT_NONE ? main_victim(order, part, pins) : slot;
}

static uint32_t arc_victim(struct naive_order *order, struct naive_part *part, uint32_t pins)
{
	const uint32_t slot = plain_victim(part, naive_arc_payer(part), pins);

	if (slot != SLOT_NONE)
		naive_arc_remember(order, slot);
	return slot;
}

uint32_t naive_order_victim(struct naive_order *order, uint32_t part, uint32_t pins)
{
	if (naive_is(order, "none"))
		return SLOT_NONE;
	if (naive_is(order, "s3fifo"))
		return s3fifo_victim(order, &order->parts[part], pins);
	if (naive_is(order, "arc"))
		return arc_victim(order, &order->parts[part], pins);
	return plain_victim(&order->parts[part], 0, pins);
}

void naive_order_remove(struct naive_order *order, uint32_t slot)
{
	leave(order, slot);
	order->present[slot] = false;
}

/* Uses that a policy counts; two care for none. */
uint32_t naive_order_heat(const struct naive_order *order, uint32_t slot)
{
	return naive_is(order, "fifo") || naive_is(order, "none") ? 0 : order->uses[slot];
}

static bool has_two_queues(const struct naive_order *order)
{
	return naive_is(order, "s3fifo") || naive_is(order, "host-order") || naive_is(order, "arc");
}

/* Behind all others, as one that was never used since. */
void naive_order_renew(struct naive_order *order, uint32_t slot)
{
	order->uses[slot] = 0;
	append(order, has_two_queues(order), slot);
}

/* Remembered as a victim is: of s3fifo only what leaves the small queue. */
void naive_order_expel(struct naive_order *order, uint32_t slot)
{
	if (naive_is(order, "s3fifo") && naive_is_in(order, 0, slot))
		ghost_remembers(order, order->names[slot]);
	if (naive_is(order, "arc")) {
		naive_arc_payer(&order->parts[order->part_of[slot]]);
		naive_arc_remember(order, slot);
	}
	naive_order_remove(order, slot);
}
