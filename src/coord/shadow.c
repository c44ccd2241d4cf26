/* SPDX-License-Identifier: Apache-2.0 */
/* See shadow.h. */
#include "coord/shadow.h"

#include <errno.h>
#include <stdlib.h>

int shadow_open(struct shadow *shadow, struct shelf *shelf)
{
	const uint32_t places = shelf->place_count;

	*shadow = (struct shadow){ .shelf = shelf };
	shadow->parents = calloc(pool_parent_count(shelf->pool) + 1, sizeof(*shadow->parents));
	shadow->places = calloc(places, sizeof(*shadow->places));
	shadow->extras = calloc(places, sizeof(*shadow->extras));
	shadow->victims = calloc(places, sizeof(*shadow->victims));
	if (!shadow->parents || !shadow->places || !shadow->extras || !shadow->victims) {
		shadow_close(shadow);
		return -ENOMEM;
	}
	return 0;
}

void shadow_close(struct shadow *shadow)
{
	free(shadow->victims);
	free(shadow->extras);
	free(shadow->places);
	free(shadow->parents);
	*shadow = (struct shadow){ 0 };
}

size_t shadow_bytes(const struct shadow *shadow)
{
	return (pool_parent_count(shadow->shelf->pool) + 1) * sizeof(*shadow->parents) +
	       shadow->shelf->place_count * (sizeof(*shadow->places) + sizeof(*shadow->extras) +
					     sizeof(*shadow->victims));
}

void shadow_begin(struct shadow *shadow)
{
	const struct pool *const pool = shadow->shelf->pool;
	const uint32_t           groups = shadow->shelf->pages->groups.count;
	uint32_t                 g;

	shadow->stamp++;
	shadow->extra_count = 0;
	shadow->victim_count = 0;
	shadow->unbound = pool_unbound(pool);
	for (g = 0; g < groups; g++) {
		shadow->needed[g] = 0;
		shadow->room[g] = pool_room(pool, g);
	}
}

void shadow_end(struct shadow *shadow)
{
	shadow->stamp++;
}

void shadow_need(struct shadow *shadow, uint32_t group, uint64_t blocks)
{
	shadow->needed[group] += blocks;
}

/* --- what is a candidate ---------------------------------------------------------------------- */

bool shadow_saw(const struct shadow *shadow, uint32_t place)
{
	return shadow->places[place].seen == shadow->stamp;
}

/* False the second time. */
static bool see(struct shadow *shadow, uint32_t place)
{
	if (shadow_saw(shadow, place))
		return false;
	shadow->places[place].seen = shadow->stamp;
	return true;
}

void shadow_protect(struct shadow *shadow, uint32_t group, uint32_t block)
{
	see(shadow, shelf_place(shadow->shelf, group, block));
}

void shadow_release(struct shadow *shadow, uint32_t group, uint32_t block)
{
	struct shadow_place *const place =
		&shadow->places[shelf_place(shadow->shelf, group, block)];

	if (place->released_stamp != shadow->stamp) {
		place->released_stamp = shadow->stamp;
		place->released = 0;
	}
	place->released++;
}

uint32_t shadow_released(const struct shadow *shadow, uint32_t place)
{
	const struct shadow_place *const p = &shadow->places[place];

	return p->released_stamp == shadow->stamp ? p->released : 0;
}

/* --- the heap of extras ----------------------------------------------------------------------- */

static bool goes_first(const struct shadow_block *a, const struct shadow_block *b)
{
	if (a->epoch != b->epoch)
		return a->epoch < b->epoch;
	if (a->rank != b->rank)
		return a->rank < b->rank;
	return a->place < b->place;
}

static void swap(struct shadow_block *a, struct shadow_block *b)
{
	const struct shadow_block kept = *a;

	*a = *b;
	*b = kept;
}

static void push_extra(struct shadow *shadow, const struct shadow_block *block)
{
	struct shadow_block *const heap = shadow->extras;
	uint32_t                   i = shadow->extra_count++;

	heap[i] = *block;
	for (; i > 0 && goes_first(&heap[i], &heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&heap[i], &heap[(i - 1) / 2]);
}

static struct shadow_block pop_extra(struct shadow *shadow)
{
	struct shadow_block *const heap = shadow->extras;
	const struct shadow_block  top = heap[0];
	const uint32_t             count = --shadow->extra_count;
	uint32_t                   i = 0;

	heap[0] = heap[count];
	for (;;) {
		uint32_t least = i;

		if (2 * i + 1 < count && goes_first(&heap[2 * i + 1], &heap[least]))
			least = 2 * i + 1;
		if (2 * i + 2 < count && goes_first(&heap[2 * i + 2], &heap[least]))
			least = 2 * i + 2;
		if (least == i)
			return top;
		swap(&heap[i], &heap[least]);
		i = least;
	}
}

static struct shadow_block candidate(const struct shelf *shelf, uint32_t group, uint32_t place)
{
	/* Places without a name come group by group, as if theirs were the lowest grade. */
	struct shadow_block block = { .rank = group, .place = place, .group = group };

	if (order_has(&shelf->order, place)) {
		block.epoch = order_epoch(&shelf->order, place);
		block.rank = order_rank(&shelf->order, place);
	}
	return block;
}

void shadow_offer(struct shadow *shadow, uint32_t group, uint32_t block, uint32_t held)
{
	const struct shelf *const shelf = shadow->shelf;
	const uint32_t            place = shelf_place(shelf, group, block);
	const uint32_t            index = order_has(&shelf->order, place) ? 1 : 0;
	struct shadow_block       extra;

	if (pool_refs(shelf->pool, group, block) != index + held + shadow_released(shadow, place) ||
	    !see(shadow, place))
		return;
	extra = candidate(shelf, group, place);
	push_extra(shadow, &extra);
}

/* --- the plan --------------------------------------------------------------------------------- */

bool shadow_fits(const struct shadow *shadow)
{
	const struct groups *const groups = &shadow->shelf->pages->groups;
	uint64_t                   parents = 0;
	uint32_t                   g;

	for (g = 0; g < groups->count; g++) {
		const uint64_t packing = groups->group[g].spec.packing;

		if (shadow->needed[g] > shadow->room[g])
			parents += (shadow->needed[g] - shadow->room[g] + packing - 1) / packing;
	}
	return parents <= shadow->unbound;
}

uint32_t *shadow_gone(struct shadow *shadow, uint32_t parent)
{
	struct shadow_parent *const p = &shadow->parents[parent];

	if (p->stamp != shadow->stamp)
		*p = (struct shadow_parent){ .stamp = shadow->stamp };
	return &p->gone;
}

/* The last block of a parent turns its free slots into an unbound parent. */
static void give_up(struct shadow *shadow, const struct shadow_block *block)
{
	const struct pool *const pool = shadow->shelf->pool;
	const uint32_t           parent = shelf_parent(shadow->shelf, block->place);
	uint32_t *const          gone = shadow_gone(shadow, parent);

	KVS_ASSERT_CMP(*gone, <, pool_used(pool, parent));
	if (++*gone < pool_used(pool, parent)) {
		shadow->room[block->group]++;
		return;
	}
	shadow->room[block->group] -= pool_packing(pool, block->group) - 1;
	shadow->unbound++;
}

static void put_back(struct shadow *shadow, const struct shadow_block *block)
{
	const struct pool *const pool = shadow->shelf->pool;
	const uint32_t           parent = shelf_parent(shadow->shelf, block->place);
	uint32_t *const          gone = shadow_gone(shadow, parent);

	KVS_ASSERT_CMP(*gone, >, 0);
	if ((*gone)-- < pool_used(pool, parent)) {
		shadow->room[block->group]--;
		return;
	}
	shadow->room[block->group] += pool_packing(pool, block->group) - 1;
	shadow->unbound--;
}

/* The next of both streams that was not seen yet; false at the end. */
static bool next_candidate(struct shadow *shadow, struct order_walk *walk,
			   struct shadow_block *ret_block)
{
	struct shelf *const shelf = shadow->shelf;
	struct shadow_block idle;
	uint32_t            place;

	while ((place = order_walk_peek(walk)) != SLOT_NONE &&
	       shadow->places[place].seen == shadow->stamp)
		order_walk_next(walk);
	if (place == SLOT_NONE && shadow->extra_count == 0)
		return false;
	if (place != SLOT_NONE) {
		idle = candidate(shelf, shelf->marks[place].group, place);
		if (shadow->extra_count == 0 || goes_first(&idle, &shadow->extras[0])) {
			order_walk_next(walk);
			*ret_block = idle;
			return true;
		}
	}
	*ret_block = pop_extra(shadow);
	return true;
}

static bool choose(struct shadow *shadow)
{
	struct order_walk walk;

	order_walk_init(&walk, &shadow->shelf->order, 0, 1);
	while (!shadow_fits(shadow)) {
		struct shadow_block *const victim = &shadow->victims[shadow->victim_count];

		if (!next_candidate(shadow, &walk, victim))
			return false;
		shadow->victim_count++;
		give_up(shadow, victim);
	}
	return true;
}

/* Newest first, so that what is worth most is spared first. */
static void spare(struct shadow *shadow)
{
	const uint32_t chosen = shadow->victim_count;
	uint32_t       kept = chosen;
	uint32_t       i;

	for (i = chosen; i > 0; i--) {
		const struct shadow_block victim = shadow->victims[i - 1];

		put_back(shadow, &victim);
		if (shadow_fits(shadow))
			continue;
		give_up(shadow, &victim);
		shadow->victims[--kept] = victim;
	}
	shadow->victim_count = chosen - kept;
	for (i = 0; i < shadow->victim_count; i++)
		shadow->victims[i] = shadow->victims[kept + i];
}

bool shadow_plan(struct shadow *shadow)
{
	if (!choose(shadow)) {
		shadow->victim_count = 0;
		return false;
	}
	spare(shadow);
	return true;
}
