/* SPDX-License-Identifier: Apache-2.0 */
/* What a request lets go: what no query of its attends to any more, and at its end everything. */
#include "coord/parts.h"

static void punch(struct cache *cache, uint32_t group, uint32_t *slot)
{
	if (*slot == BLOCK_NULL)
		return;
	shelf_unpin(device_of(cache), group, *slot);
	*slot = BLOCK_NULL;
}

void cache_reclaim(struct cache *cache, struct table *tables, uint64_t computed)
{
	const struct groups *const groups = &cache->pages.groups;
	uint32_t                   g;

	for (g = 0; g < groups->count; g++) {
		struct table *const table = &tables[g];
		const uint32_t      end = table_expired(table, &groups->group[g], computed);

		for (; table->reclaimed < end; table->reclaimed++)
			punch(cache, g, &table->slots[table->reclaimed]);
	}
}

/* Backwards, so that parents come free in an order that the tables alone decide. */
void cache_free(struct cache *cache, struct table *tables)
{
	uint32_t g;

	for (g = 0; g < cache->pages.groups.count; g++) {
		struct table *const table = &tables[g];

		while (table->count > 0)
			punch(cache, g, &table->slots[--table->count]);
		table_init(table, table->slots, table->slot_max);
	}
}
