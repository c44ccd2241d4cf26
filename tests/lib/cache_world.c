/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_world.h"

#include <string.h>

#include "base/prng.h"

/* --- names ------------------------------------------------------------------------------------ */

struct prefix_hash world_name(uint32_t prompt, uint32_t tokens, uint32_t page_tokens)
{
	struct prefix_hash hash = { { 0 } };
	const uint32_t     words[2] = { tokens > page_tokens ? 10 + prompt : prompt / 2, tokens };

	memcpy(hash.byte, words, sizeof(words));
	return hash;
}

void world_name_pages(const struct world *world, uint32_t prompt, struct prefix_hash *ret_hashes)
{
	uint32_t page;

	for (page = 0; page < WORLD_PAGES; page++) {
		ret_hashes[page] = world_name(prompt, (page + 1) * world->page_tokens,
					   world->page_tokens);
	}
}

/* --- the world -------------------------------------------------------------------------------- */

static void on_removed(void *ctx, const struct cell_name *name, uint32_t block)
{
	struct world *const world = ctx;

	KVS_ASSERT_CMP(block, <, 20);
	world->removed[name->group * 20 + block]++;
}

static void make_group(struct group_spec *spec, uint32_t id, uint32_t page_tokens,
		       struct prng *prng)
{
	static const char *const names[] = { "a", "b", "c" };

	*spec = (struct group_spec){ .name = names[id], .kind = (enum group_kind)prng_below(prng, 3) };
	spec->block_tokens = page_tokens >> prng_below(prng, 2);
	spec->window_tokens = spec->kind == GROUP_WINDOW ? 1 + (uint32_t)prng_below(prng, 9) : 0;
	spec->packing = 1 + (uint32_t)prng_below(prng, 3);
}

void world_open_cache(struct world *world, uint64_t seed)
{
	struct cache_options options = { .prompt_pages = WORLD_PAGES };
	struct prng          prng;
	struct kvs_error     err;
	uint32_t             i, packing = 1;

	prng_seed(&prng, seed);
	world->page_tokens = prng_chance(&prng, 1, 2) ? 2 : 4;
	world->group_count = 1 + (uint32_t)prng_below(&prng, 3);
	for (i = 0; i < world->group_count; i++) {
		make_group(&world->specs[i], i, world->page_tokens, &prng);
		if (world->specs[i].packing > packing)
			packing = world->specs[i].packing;
	}
	options.groups = world->specs;
	options.group_count = world->group_count;
	options.page_tokens = world->page_tokens;
	options.device_parents = 2 + (uint32_t)prng_below(&prng, 12 / packing - 1);
	options.host_parents = (uint32_t)prng_below(&prng, 5);
	options.sink = (struct cache_sink){ .removed = on_removed, .ctx = world };
	KVS_ASSERT(cache_open(&options, &world->cache, &err) == 0);
}

static void release_all(struct world *world)
{
	uint32_t i;

	for (i = 0; i < WORLD_REQUESTS; i++) {
		if (world->requests[i].live)
			cache_free(world->cache, world->requests[i].tables);
		world->requests[i].live = false;
	}
	while (world->pin_count > 0) {
		world->pin_count--;
		cache_unpin(world->cache, STRATUM_DEVICE, world->pins[world->pin_count].group,
			    world->pins[world->pin_count].block);
	}
	while (world->row_count > 0)
		cache_moved(world->cache, &world->rows[--world->row_count]);
}

void world_close_cache(struct world *world)
{
	release_all(world);
	cache_close(world->cache);
}

/* --- every reference has an owner ------------------------------------------------------------- */

static uint32_t count_owners(const struct world *world, uint32_t group, uint32_t block)
{
	struct cell_view view;
	uint32_t owners = cache_view(world->cache, STRATUM_DEVICE, group, block, &view);
	uint32_t i, slot;

	for (i = 0; i < WORLD_REQUESTS; i++) {
		const struct table *const table = &world->requests[i].tables[group];

		for (slot = 0; world->requests[i].live && slot < table->count; slot++)
			owners += table->slots[slot] == block;
	}
	for (i = 0; i < world->pin_count; i++)
		owners += world->pins[i].group == group && world->pins[i].block == block;
	for (i = 0; i < world->row_count; i++) {
		if (world->rows[i].group != group)
			continue;
		owners += world->rows[i].target == block;
		owners += !world->rows[i].from_host && world->rows[i].source == block;
	}
	return owners;
}

/* Is a block published as this position of the page with this hash? */
void world_check_name(const struct world *world, enum stratum_id stratum, uint32_t group_id,
		       uint32_t block, const struct prefix_hash *hash, uint32_t position)
{
	const struct pages *const pages = cache_pages(world->cache);
	const struct group *const group = &pages->groups.group[group_id];
	const struct page_name   *name;
	struct cell_view          view;

	KVS_ASSERT(cache_view(world->cache, stratum, group_id, block, &view));
	name = &pages->entries[pages_cell_entry(pages, view.cell)].name;
	KVS_ASSERT(memcmp(&name->hash, hash, sizeof(*hash)) == 0);
	KVS_ASSERT_CMP(pages_cell_column(pages, view.cell), ==,
		       group->first_column + position % group->page_blocks);
	if (stratum == STRATUM_DEVICE)
		KVS_ASSERT_CMP(view.position, ==, position);
}

/* Whatever a table shares has the bytes of the table's own prompt. */
static void check_table(const struct world *world, const struct world_request *request, uint32_t g)
{
	const struct group *const group = &cache_groups(world->cache)->group[g];
	const struct table *const table = &request->tables[g];
	struct cell_view          view;
	uint32_t                  slot;

	table_audit(table, group);
	for (slot = 0; slot < table->count; slot++) {
		const uint32_t block = table->slots[slot];

		if (block != BLOCK_NULL &&
		    cache_view(world->cache, STRATUM_DEVICE, g, block, &view)) {
			world_check_name(world, STRATUM_DEVICE, g, block,
				   &request->hashes[slot / group->page_blocks], slot);
		}
	}
}

void world_account(const struct world *world)
{
	const struct pool *const pool = cache_pool(world->cache, STRATUM_DEVICE);
	uint32_t                 i, g, parent, slot;

	cache_audit(world->cache);
	for (i = 0; i < WORLD_REQUESTS; i++) {
		for (g = 0; world->requests[i].live && g < world->group_count; g++)
			check_table(world, &world->requests[i], g);
	}
	for (parent = 1; parent <= pool_parent_count(pool); parent++) {
		if (!pool_bound(pool, parent, &g))
			continue;
		for (slot = 0; slot < pool_packing(pool, g); slot++) {
			const uint32_t block = 1 + (parent - 1) * pool_packing(pool, g) + slot;

			KVS_ASSERT_CMP(pool_refs(pool, g, block), ==,
				       count_owners(world, g, block));
		}
	}
}
