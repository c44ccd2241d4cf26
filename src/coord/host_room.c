/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Would Host have so many blocks for each group?  Asked before anything is taken, so that what cannot be
 * had evicts nothing.
 *
 * cache_host_acquire() takes for one group after the other: free blocks of the group's parents and unbound
 * parents first, then idle blocks of the group, then whole parents of anybody.  As long as the first two
 * suffice, groups do not get into each other's way and counts say exactly what will happen.
 */
#include "coord/parts.h"

/* Idle blocks of a group, as far as `enough`. */
static uint32_t count_idle(struct shelf *shelf, uint32_t group, uint32_t enough)
{
	const uint32_t groups = shelf->pages->groups.count;
	uint32_t       count = 0;
	uint32_t       acquired;

	for (acquired = 0; acquired < 2; acquired++) {
		const uint32_t    class = acquired * groups + group;
		struct order_walk walk;

		order_walk_init(&walk, &shelf->order, class, class + 1);
		for (; count < enough && order_walk_peek(&walk) != SLOT_NONE; order_walk_next(&walk))
			count++;
	}
	return count;
}

static uint32_t parents_for(uint32_t blocks, uint32_t packing)
{
	return blocks / packing + (blocks % packing > 0);
}

/* Can each group do with what is free and with idle blocks of its own? */
static bool own_blocks_suffice(struct shelf *shelf, const uint32_t *needed)
{
	uint32_t unbound = pool_unbound(shelf->pool);
	uint32_t g;

	for (g = 0; g < shelf->pages->groups.count; g++) {
		const uint32_t packing = pool_packing(shelf->pool, g);
		const uint32_t room = pool_room(shelf->pool, g);
		const uint32_t rest = needed[g] > room ? needed[g] - room : 0;
		const uint32_t wanted = parents_for(rest, packing);
		const uint32_t parents = wanted < unbound ? wanted : unbound;

		unbound -= parents;
		if (parents < wanted && count_idle(shelf, g, rest - parents * packing) <
						rest - parents * packing)
			return false;
	}
	return true;
}

/* Idle blocks of a bound parent. */
static uint32_t idle_of(const struct shelf *shelf, uint32_t parent)
{
	const uint32_t first = (parent - 1) * shelf->place_max;
	uint32_t       count = 0;
	uint32_t       i;

	for (i = 0; i < shelf->place_max; i++)
		count += order_has(&shelf->order, first + i) && order_is_idle(&shelf->order, first + i);
	return count;
}

void host_room_look(const struct cache *cache, struct host_room *ret_room)
{
	const struct shelf *const shelf = &cache->shelves[STRATUM_HOST];
	const struct pool *const  pool = shelf->pool;
	uint32_t                  parent, g;

	*ret_room = (struct host_room){ 0 };
	if (!cache->has_host)
		return;
	ret_room->whole = pool_unbound(pool);
	for (parent = 1; parent <= pool_parent_count(pool); parent++) {
		uint32_t idle;

		if (!pool_bound(pool, parent, &g))
			continue;
		idle = idle_of(shelf, parent);
		if (idle == pool_used(pool, parent))
			ret_room->whole++;
		else
			ret_room->own[g] += pool_packing(pool, g) - pool_used(pool, parent) + idle;
	}
}

bool host_room_fits(const struct cache *cache, const struct host_room *room, const uint32_t *needed)
{
	const struct groups *const groups = &cache->pages.groups;
	uint64_t                   wanted = 0;
	uint32_t                   g;

	for (g = 0; g < groups->count; g++) {
		if (needed[g] > room->own[g]) {
			wanted += parents_for(needed[g] - room->own[g],
					      groups->group[g].spec.packing);
		}
	}
	return wanted <= room->whole;
}

bool host_has_room(struct cache *cache, const uint32_t *needed)
{
	struct host_room room;

	if (cache->has_host && own_blocks_suffice(host_of(cache), needed))
		return true;
	host_room_look(cache, &room);
	return host_room_fits(cache, &room, needed);
}
