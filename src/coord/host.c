/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of Host: taken one at a time, published when the copy that filled them is known to be done.
 *
 * Host keeps what was ever used before what never was, whatever its age: unlike Device it sees a block
 * only when Device gave it up or streamed it, so that recency says less.
 */
#include "coord/parts.h"

/* The least valuable idle block of a group; SLOT_NONE. */
static uint32_t least_of_group(struct shelf *shelf, uint32_t group)
{
	const uint32_t groups = shelf->pages->groups.count;
	uint32_t       acquired, place;

	for (acquired = 0; acquired < 2; acquired++) {
		const uint32_t    class = acquired * groups + group;
		struct order_walk walk;

		order_walk_init(&walk, &shelf->order, class, class + 1);
		place = order_walk_peek(&walk);
		if (place != SLOT_NONE)
			return place;
	}
	return SLOT_NONE;
}

static bool is_last_child(struct cache *cache, uint32_t parent)
{
	struct host_parent *const p = &cache->host_parents[parent];

	if (p->stamp != cache->host_stamp)
		*p = (struct host_parent){ .stamp = cache->host_stamp };
	return ++p->idle == pool_used(host_of(cache)->pool, parent);
}

/*
 * The parent whose most valuable block is the least valuable, of those whose blocks are all idle; 0.
 * Walking blocks from the least valuable on, it is the first that is met in full.
 */
static uint32_t least_parent(struct cache *cache)
{
	struct shelf *const shelf = host_of(cache);
	const uint32_t      groups = cache->pages.groups.count;
	struct order_walk   walk;
	uint32_t            acquired, place;

	cache->host_stamp++;
	for (acquired = 0; acquired < 2; acquired++) {
		order_walk_init(&walk, &shelf->order, acquired * groups, (acquired + 1) * groups);
		for (; (place = order_walk_peek(&walk)) != SLOT_NONE; order_walk_next(&walk)) {
			const uint32_t parent = shelf_parent(shelf, place);

			if (is_last_child(cache, parent))
				return parent;
		}
	}
	return 0;
}

static void evict_parent(struct cache *cache, uint32_t parent)
{
	struct shelf *const shelf = host_of(cache);
	const uint32_t      first = (parent - 1) * shelf->place_max;
	uint32_t            i;

	for (i = 0; i < shelf->place_max; i++) {
		if (shelf->marks[first + i].cell != SLOT_NONE)
			cell_evict(cache, STRATUM_HOST, first + i);
	}
}

/* Its own coldest block before a colder parent of others: one block less is lost. */
static bool make_room(struct cache *cache, uint32_t group)
{
	const uint32_t place = least_of_group(host_of(cache), group);
	uint32_t       parent;

	if (place != SLOT_NONE) {
		cell_evict(cache, STRATUM_HOST, place);
		return true;
	}
	parent = least_parent(cache);
	if (parent == 0)
		return false;
	evict_parent(cache, parent);
	return true;
}

uint32_t cache_host_acquire(struct cache *cache, uint32_t group)
{
	uint32_t block;

	KVS_ASSERT_CMP(group, <, cache->pages.groups.count);
	if (!cache->has_host)
		return BLOCK_NULL;
	if (pool_acquire(host_of(cache)->pool, group, 1, &block))
		return block;
	if (!make_room(cache, group))
		return BLOCK_NULL;
	KVS_ASSERT(pool_acquire(host_of(cache)->pool, group, 1, &block));
	return block;
}

uint32_t cache_host_publish(struct cache *cache, const struct cell_name *name, uint32_t block,
			    enum cell_kind kind)
{
	struct shelf *const     shelf = host_of(cache);
	const uint32_t          canonical = cache_find(cache, STRATUM_HOST, name);
	const struct shelf_mark mark = { .position = POSITION_NONE, .kind = (uint8_t)kind,
					 .group = (uint8_t)name->group };

	KVS_ASSERT(kind == CELL_CHUNK || kind == CELL_ENDPOINT || kind == CELL_PROMOTED);
	KVS_ASSERT(!shelf_published(shelf, name->group, block));
	cache->clock++;
	if (canonical != BLOCK_NULL) {
		shelf_touch(shelf, name->group, canonical, cache->clock, (uint8_t)kind, false);
		shelf_unpin(shelf, name->group, block);
		return canonical;
	}
	shelf_publish(shelf, name->space, name->hash,
		      cache->pages.groups.group[name->group].first_column + name->offset, block,
		      &mark, cache->clock);
	shelf_unpin(shelf, name->group, block);
	cache->version++;
	return block;
}
