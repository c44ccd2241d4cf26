/* SPDX-License-Identifier: Apache-2.0 */
/* See naive_order.h: what arc remembers, and what it makes of who comes back. */
#include "naive_order.h"

#include <stddef.h>

static uint32_t names_of(const struct naive_order *order, uint32_t part, uint32_t queue)
{
	uint32_t count = 0, i;

	for (i = 0; i < NAIVE_CELLS; i++) {
		const struct naive_cell *const cell = &order->cells[i];

		count += cell->name && cell->part == part && cell->queue == queue;
	}
	return count;
}

static struct naive_cell *cell_of(struct naive_order *order, uint64_t name)
{
	uint32_t i;

	for (i = 0; i < NAIVE_CELLS; i++) {
		if (order->cells[i].name == name)
			return &order->cells[i];
	}
	return NULL;
}

static void free_cell(struct naive_order *order, struct naive_cell *cell)
{
	if (!cell)
		return;
	cell->name = 0;
	order->freed[order->freed_count++] = (uint32_t)(cell - order->cells);
}

static struct naive_cell *oldest(struct naive_order *order, uint32_t part, uint32_t queue)
{
	struct naive_cell *found = NULL;
	uint32_t           i;

	for (i = 0; i < NAIVE_CELLS; i++) {
		struct naive_cell *const cell = &order->cells[i];

		if (cell->name && cell->part == part && cell->queue == queue &&
		    (!found || cell->age < found->age))
			found = cell;
	}
	return found;
}

/* One that was freed, one that never was filled, or the one whose turn it is to be overwritten. */
static uint32_t next_cell(struct naive_order *order)
{
	if (order->freed_count > 0)
		return order->freed[--order->freed_count];
	return order->filled < NAIVE_CELLS ? order->filled++ : order->hand++ % NAIVE_CELLS;
}

void naive_arc_remember(struct naive_order *order, uint32_t slot)
{
	const uint32_t part = order->part_of[slot];

	free_cell(order, cell_of(order, order->names[slot]));
	order->cells[next_cell(order)] = (struct naive_cell){ .name = order->names[slot],
							      .age = ++order->now,
							      .part = part,
							      .queue = naive_is_in(order, 1, slot) };
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Whether it goes to the frequent queue. */
static bool knows(struct naive_order *order, uint32_t number, uint64_t name)
{
	struct naive_part *const part = &order->parts[number];
	struct naive_cell *const cell = cell_of(order, name);
	const uint32_t           recent = names_of(order, number, 0);
	const uint32_t           frequent = names_of(order, number, 1);

	free_cell(order, cell);
	if (!cell || cell->part != number)
		return false;
	if (cell->queue == 0)
		part->target = smaller(part->size, part->target + larger(1, frequent / recent));
	else
		part->target -= smaller(part->target, larger(1, recent / frequent));
	return true;
}

static void welcome(struct naive_order *order, uint32_t number)
{
	struct naive_part *const part = &order->parts[number];
	int                      i;

	for (i = 0; i < 2; i++) {
		const uint32_t first = part->queues[0].count + names_of(order, number, 0);
		const uint32_t all = first + part->queues[1].count + names_of(order, number, 1);

		if (first >= part->size)
			free_cell(order, oldest(order, number, 0));
		else if (all >= 2 * part->size)
			free_cell(order, oldest(order, number, 1));
	}
}

bool naive_arc_insert(struct naive_order *order, uint32_t number, uint64_t name)
{
	struct naive_part *const part = &order->parts[number];

	part->full = false;
	part->size = larger(part->size, naive_count(part) + 1);
	if (knows(order, number, name))
		return true;
	welcome(order, number);
	return false;
}

uint32_t naive_arc_payer(struct naive_part *part)
{
	if (!part->full)
		part->size = naive_count(part);
	part->full = true;
	part->target = smaller(part->target, part->size);
	return part->queues[0].count <= part->target;
}
