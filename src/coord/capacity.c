/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views of what there is room for.  They answer questions that come up when an admission failed or a
 * victim is to be chosen, so they walk what they need instead of keeping counts on every path.
 */
#include "coord/parts.h"

uint32_t cache_total(const struct cache *cache, enum stratum_id stratum)
{
	return cache->shelves[stratum].pool ? pool_parent_count(cache->shelves[stratum].pool) : 0;
}

/*
 * Are all blocks of a bound parent that anybody holds idle, once the references that shadow_release()
 * named are gone?  shadow NULL: none go.
 */
static bool parent_is_idle(const struct shelf *shelf, const struct shadow *shadow, uint32_t parent)
{
	const uint32_t first = (parent - 1) * shelf->place_max;
	uint32_t       group, i;

	KVS_ASSERT(pool_bound(shelf->pool, parent, &group));
	for (i = 0; i < pool_packing(shelf->pool, group); i++) {
		const uint32_t place = first + i;
		const uint32_t block = 1 + (parent - 1) * pool_packing(shelf->pool, group) + i;
		const uint32_t index = order_has(&shelf->order, place) ? 1 : 0;
		const uint32_t gone = shadow ? shadow_released(shadow, place) : 0;

		if (pool_refs(shelf->pool, group, block) != index + gone)
			return false;
	}
	return true;
}

uint32_t cache_available(const struct cache *cache)
{
	const struct shelf *const shelf = &cache->shelves[STRATUM_DEVICE];
	uint32_t                  count = pool_unbound(shelf->pool);
	uint32_t                  parent, group;

	for (parent = 1; parent <= pool_parent_count(shelf->pool); parent++) {
		count += pool_bound(shelf->pool, parent, &group) &&
			 parent_is_idle(shelf, NULL, parent);
	}
	return count;
}

uint32_t cache_host_free(const struct cache *cache)
{
	return cache->has_host ? pool_unbound(cache->shelves[STRATUM_HOST].pool) : 0;
}

uint64_t cache_parents_needed(const struct cache *cache, const uint32_t *blocks)
{
	const struct groups *const groups = &cache->pages.groups;
	uint64_t                   parents = 0;
	uint32_t                   g;

	for (g = 0; g < groups->count; g++) {
		const uint64_t packing = groups->group[g].spec.packing;

		parents += (blocks[g] + packing - 1) / packing;
	}
	return parents;
}

uint64_t cache_group_room(const struct cache *cache, uint32_t group)
{
	const struct pool *const pool = cache->shelves[STRATUM_DEVICE].pool;

	return (uint64_t)pool_unbound(pool) * pool_packing(pool, group) + pool_room(pool, group);
}

uint32_t cache_blocks_needed(const struct cache *cache, const struct table *table, uint32_t group,
			     const struct demand *demand)
{
	struct growth growth;

	if (table_plan(table, &cache->pages.groups.group[group], demand, &growth, NULL) < 0)
		return UINT32_MAX;
	return growth.blocks;
}

/* Call what for every block of the tables; returns the sum of what it says. */
static uint32_t sum_blocks(struct cache *cache, struct table *const *requests,
			   uint32_t request_count,
			   uint32_t (*what)(struct cache *cache, uint32_t group, uint32_t block))
{
	uint32_t sum = 0;
	uint32_t r, g, i;

	for (r = 0; r < request_count; r++) {
		for (g = 0; g < cache->pages.groups.count; g++) {
			const struct table *const table = &requests[r][g];

			for (i = table->reclaimed; i < table->count; i++) {
				if (table->slots[i] != BLOCK_NULL)
					sum += what(cache, g, table->slots[i]);
			}
		}
	}
	return sum;
}

/* 1 for the first block of a parent that is met. */
static uint32_t count_parent(struct cache *cache, uint32_t group, uint32_t block)
{
	const struct shelf *const shelf = device_of(cache);
	const uint32_t            place = shelf_place(shelf, group, block);

	return (*shadow_gone(&cache->shadow, shelf_parent(shelf, place)))++ == 0;
}

static uint32_t let_go(struct cache *cache, uint32_t group, uint32_t block)
{
	shadow_release(&cache->shadow, group, block);
	return 0;
}

static uint32_t count_idle_parent(struct cache *cache, uint32_t group, uint32_t block)
{
	const struct shelf *const shelf = device_of(cache);
	const uint32_t            place = shelf_place(shelf, group, block);

	return count_parent(cache, group, block) &&
	       parent_is_idle(shelf, &cache->shadow, shelf_parent(shelf, place));
}

uint32_t cache_active(struct cache *cache, struct table *const *requests, uint32_t request_count)
{
	shadow_begin(&cache->shadow);
	return sum_blocks(cache, requests, request_count, count_parent);
}

uint32_t cache_releasable(struct cache *cache, struct table *const *requests,
			  uint32_t request_count)
{
	shadow_begin(&cache->shadow);
	sum_blocks(cache, requests, request_count, let_go);
	return sum_blocks(cache, requests, request_count, count_idle_parent);
}

uint32_t cache_slide_credit(const struct cache *cache, const struct table *table, uint32_t group,
			    uint64_t computed, bool streaming)
{
	const struct shelf *const shelf = &cache->shelves[STRATUM_DEVICE];
	const uint32_t end = table_expired(table, &cache->pages.groups.group[group], computed);
	uint32_t       credit = 0;
	uint32_t       i;

	for (i = table->reclaimed; i < end; i++) {
		const uint32_t block = table->slots[i];

		if (block == BLOCK_NULL)
			continue;
		if (shelf_published(shelf, group, block))
			credit += pool_refs(shelf->pool, group, block) == 2;
		else
			credit += !streaming && pool_refs(shelf->pool, group, block) == 1;
	}
	return credit;
}
