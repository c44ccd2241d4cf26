/* SPDX-License-Identifier: Apache-2.0 */
/* See cache.h: opening, closing, and what one asks of single blocks. */
#include <errno.h>
#include <stdlib.h>

#include "coord/parts.h"

/* --- open and close --------------------------------------------------------------------------- */

/* Every block of both strata may be the only one of its page. */
static int open_pages(struct cache *cache, const struct cache_options *options,
		      struct kvs_error *err)
{
	struct groups groups;
	uint64_t      pages;
	int           rc;

	rc = groups_make(options->groups, options->group_count, options->page_tokens, &groups, err);
	if (rc < 0)
		return rc;
	pages = ((uint64_t)options->device_parents + options->host_parents) * groups.packing_max;
	if (pages == 0 || pages > POOL_BLOCK_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "parents: %u of device and %u of host make %llu blocks; use 1 to %d",
			       options->device_parents, options->host_parents,
			       (unsigned long long)pages, POOL_BLOCK_MAX);
	}
	rc = pages_open(&cache->pages, &groups, (uint32_t)pages);
	if (rc == -EOVERFLOW) {
		return err_set(err, KVS_E_INVALID,
			       "parents: %llu blocks with %u columns a page are too many to number",
			       (unsigned long long)pages, groups.columns);
	}
	return rc < 0 ? err_set(err, rc, "no memory for the index of %llu pages",
				(unsigned long long)pages)
		      : 0;
}

static int open_lists(struct cache *cache, struct kvs_error *err)
{
	const uint32_t places = device_of(cache)->place_count;

	cache->entries = malloc((cache->prompt_pages + 1) * sizeof(*cache->entries));
	cache->moves = malloc(places * sizeof(*cache->moves));
	cache->fresh = malloc(places * sizeof(*cache->fresh));
	cache->taken = malloc(places * sizeof(*cache->taken));
	if (cache->has_host) {
		cache->host_parents = calloc(pool_parent_count(host_of(cache)->pool) + 1,
					     sizeof(*cache->host_parents));
	}
	if (!cache->entries || !cache->moves || !cache->fresh || !cache->taken ||
	    (cache->has_host && !cache->host_parents) ||
	    shadow_open(&cache->shadow, device_of(cache)) < 0)
		return err_set(err, -ENOMEM, "no memory for the lists of %u blocks", places);
	return 0;
}

static int open_parts(struct cache *cache, const struct cache_options *options,
		      struct kvs_error *err)
{
	int rc;

	if (options->prompt_pages == 0 || options->prompt_pages > TOKENS_MAX) {
		return err_set(err, KVS_E_INVALID, "prompt_pages: %u is out of range; use 1 to %d",
			       options->prompt_pages, TOKENS_MAX);
	}
	rc = open_pages(cache, options, err);
	if (rc == 0) {
		rc = shelf_open(device_of(cache), STRATUM_DEVICE, &cache->pages,
				options->device_parents, err);
		if (rc < 0)
			err_prefix(err, "device_parents");
	}
	if (rc == 0 && options->host_parents > 0) {
		rc = shelf_open(host_of(cache), STRATUM_HOST, &cache->pages,
				options->host_parents, err);
		cache->has_host = rc == 0;
		if (rc < 0)
			err_prefix(err, "host_parents");
	}
	return rc == 0 ? open_lists(cache, err) : rc;
}

int cache_open(const struct cache_options *options, struct cache **ret_cache,
	       struct kvs_error *err)
{
	struct cache *const cache = calloc(1, sizeof(*cache));
	int                 rc;

	if (!cache)
		return err_set(err, -ENOMEM, "no memory for a cache");
	cache->sink = options->sink;
	cache->prompt_pages = options->prompt_pages;
	rc = open_parts(cache, options, err);
	if (rc < 0) {
		cache_close(cache);
		return rc;
	}
	*ret_cache = cache;
	return 0;
}

void cache_close(struct cache *cache)
{
	uint32_t stratum;

	if (!cache)
		return;
	/* Whoever listens closes as well. */
	cache->sink = (struct cache_sink){ 0 };
	shadow_close(&cache->shadow);
	free(cache->host_parents);
	free(cache->taken);
	free(cache->fresh);
	free(cache->moves);
	free(cache->entries);
	for (stratum = STRATUM_COUNT; stratum-- > 0;) {
		cells_drop(cache, (enum stratum_id)stratum);
		shelf_close(&cache->shelves[stratum]);
	}
	pages_close(&cache->pages);
	free(cache);
}

/* --- what is there ---------------------------------------------------------------------------- */

size_t cache_bytes(const struct cache *cache)
{
	const size_t places = cache->shelves[STRATUM_DEVICE].place_count;
	const size_t host_parents =
		cache->has_host ? pool_parent_count(cache->shelves[STRATUM_HOST].pool) + 1 : 0;

	return sizeof(*cache) + pages_bytes(&cache->pages) + shelf_bytes(&cache->shelves[STRATUM_DEVICE]) +
	       shelf_bytes(&cache->shelves[STRATUM_HOST]) + shadow_bytes(&cache->shadow) +
	       ((size_t)cache->prompt_pages + 1) * sizeof(*cache->entries) +
	       host_parents * sizeof(*cache->host_parents) +
	       places * (sizeof(*cache->moves) + sizeof(*cache->fresh) + sizeof(*cache->taken));
}

const struct groups *cache_groups(const struct cache *cache)
{
	return &cache->pages.groups;
}

const struct pages *cache_pages(const struct cache *cache)
{
	return &cache->pages;
}

uint32_t cache_prompt_pages(const struct cache *cache)
{
	return cache->prompt_pages;
}

const struct pool *cache_pool(const struct cache *cache, enum stratum_id stratum)
{
	return cache->shelves[stratum].pool;
}

uint64_t cache_clock(const struct cache *cache)
{
	return cache->clock;
}

uint32_t cache_find(const struct cache *cache, enum stratum_id stratum,
		    const struct cell_name *name)
{
	const struct group *const group = &cache->pages.groups.group[name->group];
	const uint32_t            entry = pages_find(&cache->pages, name->space, name->hash);

	KVS_ASSERT_CMP(name->group, <, cache->pages.groups.count);
	KVS_ASSERT_CMP(name->offset, <, group->page_blocks);
	if (entry == SLOT_NONE)
		return BLOCK_NULL;
	return pages_block(&cache->pages,
			   pages_cell(&cache->pages, entry, group->first_column + name->offset),
			   stratum);
}

bool cache_view(const struct cache *cache, enum stratum_id stratum, uint32_t group, uint32_t block,
		struct cell_view *ret_view)
{
	const struct shelf *const shelf = &cache->shelves[stratum];
	const struct shelf_mark  *mark;
	uint32_t                  place;

	if (!shelf_has(shelf, group, block))
		return false;
	place = shelf_place(shelf, group, block);
	mark = &shelf->marks[place];
	if (mark->cell == SLOT_NONE || mark->group != group)
		return false;
	*ret_view = (struct cell_view){ .cell = mark->cell,
					.epoch = order_epoch(&shelf->order, place),
					.position = mark->position,
					.kind = (enum cell_kind)mark->kind,
					.was_acquired = mark->was_acquired,
					.idle = order_is_idle(&shelf->order, place) };
	return true;
}

uint32_t cache_pin(struct cache *cache, enum stratum_id stratum, uint32_t group, uint32_t block)
{
	return shelf_pin(&cache->shelves[stratum], group, block);
}

uint32_t cache_unpin(struct cache *cache, enum stratum_id stratum, uint32_t group, uint32_t block)
{
	return shelf_unpin(&cache->shelves[stratum], group, block);
}

void cache_moved(struct cache *cache, const struct cache_move *move)
{
	const enum stratum_id from = move->from_host ? STRATUM_HOST : STRATUM_DEVICE;

	KVS_ASSERT_CMP(cache->moving, >, 0);
	cache->moving--;
	shelf_unpin(&cache->shelves[from], move->group, move->source);
	shelf_unpin(device_of(cache), move->group, move->target);
}

void cache_audit(const struct cache *cache)
{
	uint32_t stratum;

	pages_audit(&cache->pages);
	for (stratum = 0; stratum < STRATUM_COUNT; stratum++) {
		const struct shelf *const shelf = &cache->shelves[stratum];

		if (!shelf->pool)
			continue;
		shelf_audit(shelf);
		KVS_ASSERT_CMP(order_newest(&shelf->order), <=, cache->clock);
	}
}
