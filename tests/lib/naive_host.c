/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of Host on the copy, one at a time.  See naive_reserve.h. */
#include "naive_reserve.h"

#define NONE UINT32_MAX

static uint32_t used_of(const struct naive_reserve *naive, uint32_t parent, uint32_t *ret_group)
{
	uint32_t used = 0, slot;

	for (slot = 0; slot < NAIVE_PACKING; slot++) {
		if (naive->host[parent][slot].used) {
			*ret_group = naive->host[parent][slot].group;
			used++;
		}
	}
	return used;
}

static bool is_idle(const struct naive_cell *cell)
{
	return cell->used && cell->published && cell->refs == 1;
}

static uint32_t idle_of(const struct naive_reserve *naive, uint32_t parent)
{
	uint32_t idle = 0, slot;

	for (slot = 0; slot < NAIVE_PACKING; slot++)
		idle += is_idle(&naive->host[parent][slot]);
	return idle;
}

/* With whole parents given to groups as the digits of `deal` say. */
static bool deal_suffices(const struct naive_reserve *naive, const uint32_t *needed, uint32_t deal)
{
	uint32_t room[GROUPS_MAX] = { 0 };
	uint32_t parent, g = 0;

	for (parent = 0; parent < naive->parent_count; parent++, deal /= naive->groups->count) {
		const uint32_t used = used_of(naive, parent, &g);
		const uint32_t idle = idle_of(naive, parent);

		if (used == idle)
			g = deal % naive->groups->count;
		room[g] += naive->groups->group[g].spec.packing - (used == idle ? 0 : used - idle);
	}
	for (g = 0; g < naive->groups->count; g++) {
		if (room[g] < needed[g])
			return false;
	}
	return true;
}

bool naive_has_room(const struct naive_reserve *naive, const uint32_t *needed)
{
	uint32_t deals = 1, deal, parent;

	for (parent = 0; parent < naive->parent_count; parent++)
		deals *= naive->groups->count;
	for (deal = 0; deal < deals; deal++) {
		if (deal_suffices(naive, needed, deal))
			return true;
	}
	return false;
}

/* A free block of the fullest parent of the group, or of an empty one. */
static struct naive_cell *find_free(struct naive_reserve *naive, uint32_t g)
{
	const uint32_t packing = naive->groups->group[g].spec.packing;
	uint32_t       best = NONE, best_used = 0;
	uint32_t       parent, slot, group = 0;

	for (parent = 0; parent < naive->parent_count; parent++) {
		const uint32_t used = used_of(naive, parent, &group);

		if (used > 0 && (group != g || used == packing))
			continue;
		if (best == NONE || used > best_used) {
			best = parent;
			best_used = used;
		}
	}
	for (slot = 0; best != NONE; slot++) {
		if (!naive->host[best][slot].used)
			return &naive->host[best][slot];
	}
	return NULL;
}

static bool is_worth_less(const struct naive_cell *a, const struct naive_cell *b)
{
	return a->acquired != b->acquired ? a->acquired < b->acquired : a->epoch < b->epoch;
}

static bool evict_own(struct naive_reserve *naive, uint32_t g)
{
	struct naive_cell *least = NULL;
	uint32_t           i;

	for (i = 0; i < naive->parent_count * NAIVE_PACKING; i++) {
		struct naive_cell *const cell = &naive->host[i / NAIVE_PACKING][i % NAIVE_PACKING];

		if (is_idle(cell) && cell->group == g && (!least || is_worth_less(cell, least)))
			least = cell;
	}
	if (least)
		least->used = false;
	return least;
}

static struct naive_cell *most_valuable(struct naive_reserve *naive, uint32_t parent)
{
	struct naive_cell *most = NULL;
	uint32_t           slot;

	for (slot = 0; slot < NAIVE_PACKING; slot++) {
		struct naive_cell *const cell = &naive->host[parent][slot];

		if (cell->used && (!most || is_worth_less(most, cell)))
			most = cell;
	}
	return most;
}

static bool evict_parent(struct naive_reserve *naive)
{
	uint32_t best = NONE, parent, slot, group;

	for (parent = 0; parent < naive->parent_count; parent++) {
		const uint32_t used = used_of(naive, parent, &group);

		if (used == 0 || idle_of(naive, parent) < used)
			continue;
		if (best == NONE || is_worth_less(most_valuable(naive, parent), most_valuable(naive, best)))
			best = parent;
	}
	for (slot = 0; best != NONE && slot < NAIVE_PACKING; slot++)
		naive->host[best][slot].used = false;
	return best != NONE;
}

bool naive_take(struct naive_reserve *naive, uint32_t g)
{
	struct naive_cell *cell = find_free(naive, g);

	if (!cell && (evict_own(naive, g) || evict_parent(naive)))
		cell = find_free(naive, g);
	if (cell)
		*cell = (struct naive_cell){ .used = true, .group = g, .refs = 1, .page = NAIVE_TAKEN };
	return cell;
}

void naive_let_go(struct naive_reserve *naive)
{
	uint32_t i;

	for (i = 0; i < NAIVE_PARENTS * NAIVE_PACKING; i++) {
		struct naive_cell *const cell = &naive->host[i / NAIVE_PACKING][i % NAIVE_PACKING];

		if (cell->used && cell->page == NAIVE_TAKEN)
			cell->used = false;
	}
}
