/* SPDX-License-Identifier: Apache-2.0 */
/* How names go: one where its block is needed, all at once by a clear or when the cache closes. */
#include "coord/parts.h"

void cell_tell(const struct cache *cache, uint32_t cell, uint32_t block, bool inserted)
{
	const struct groups *const groups = &cache->pages.groups;
	const struct page_name    *page;
	struct cell_name           name;
	uint32_t                   column;
	void (*const told)(void *, const struct cell_name *, uint32_t) =
		inserted ? cache->sink.inserted : cache->sink.removed;

	if (!told)
		return;
	page = &cache->pages.entries[pages_cell_entry(&cache->pages, cell)].name;
	column = pages_cell_column(&cache->pages, cell);
	name = (struct cell_name){ .space = &page->space, .hash = &page->hash,
				   .group = groups->column_group[column] };
	name.offset = column - groups->group[name.group].first_column;
	told(cache->sink.ctx, &name, block);
}

void cell_evict(struct cache *cache, enum stratum_id stratum, uint32_t place)
{
	struct shelf *const shelf = &cache->shelves[stratum];

	if (stratum == STRATUM_DEVICE)
		cell_tell(cache, shelf->marks[place].cell, shelf_block(shelf, place), false);
	shelf_evict(shelf, place);
	cache->version++;
}

void cells_drop(struct cache *cache, enum stratum_id stratum)
{
	struct shelf *const shelf = &cache->shelves[stratum];
	uint32_t            place;

	for (place = 0; place < shelf->place_count && shelf->published > 0; place++) {
		if (shelf->marks[place].cell != SLOT_NONE)
			cell_evict(cache, stratum, place);
	}
}

static bool all_idle(const struct shelf *shelf)
{
	return shelf->order.idle_count == shelf->published;
}

bool cache_clear_device(struct cache *cache)
{
	if (!all_idle(device_of(cache)))
		return false;
	cells_drop(cache, STRATUM_DEVICE);
	return true;
}

/*
 * Is every block of Host idle, those without a name too?  Such a one is the target of a store's GET or of a
 * save, a block in quarantine or an image's: I/O that ends behind a clear would bring back what it took.
 */
static bool host_is_quiet(const struct cache *cache)
{
	const struct shelf *const host = &cache->shelves[STRATUM_HOST];
	uint32_t                  held = 0;
	uint32_t                  parent;

	if (!cache->has_host)
		return true;
	for (parent = 1; parent <= pool_parent_count(host->pool); parent++)
		held += pool_used(host->pool, parent);
	return held == host->order.idle_count;
}

bool cache_clear(struct cache *cache)
{
	if (!host_is_quiet(cache) || !all_idle(device_of(cache)))
		return false;
	cells_drop(cache, STRATUM_HOST);
	cells_drop(cache, STRATUM_DEVICE);
	return true;
}
