/* SPDX-License-Identifier: Apache-2.0 */
/* See catalog.h. */
#include "strata/catalog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int catalog_open(struct catalog *catalog, uint32_t entry_max, const char *evict_policy,
	       struct kvs_error *err)
{
	*catalog = (struct catalog){ .entry_max = entry_max, .free_first = SLOT_NONE };
	catalog->entries = calloc(entry_max, sizeof(*catalog->entries));
	if (!catalog->entries || map_open(&catalog->map, entry_max, &catalog->entries->print,
					sizeof(*catalog->entries), sizeof(catalog->entries->print)) < 0) {
		return err_set(err, -ENOMEM, "store: no memory for a catalog of %u objects",
			       entry_max);
	}
	return evict_open(evict_policy, entry_max, &catalog->order, err);
}

void catalog_close(struct catalog *catalog)
{
	evict_close(catalog->order);
	if (catalog->map.buckets)
		map_close(&catalog->map);
	free(catalog->entries);
	*catalog = (struct catalog){ 0 };
}

static uint64_t hash_of(const struct catalog *catalog, uint64_t print)
{
	return map_hash(&catalog->map, &print);
}

void catalog_prefetch(const struct catalog *catalog, uint64_t print)
{
	map_prefetch(&catalog->map, hash_of(catalog, print));
}

uint32_t catalog_find(const struct catalog *catalog, uint64_t print)
{
	return map_find(&catalog->map, hash_of(catalog, print), &print);
}

uint32_t catalog_use(struct catalog *catalog, uint64_t print)
{
	const uint32_t found = catalog_find(catalog, print);

	if (found == SLOT_NONE || catalog->entries[found].state != ENTRY_PRESENT)
		return SLOT_NONE;
	evict_touch(catalog->order, found);
	return found;
}

uint32_t catalog_add(struct catalog *catalog, uint64_t print)
{
	uint32_t entry = catalog->free_first;

	if (entry != SLOT_NONE)
		catalog->free_first = catalog->entries[entry].page;
	else if (catalog->known < catalog->entry_max)
		entry = catalog->known++;
	else
		return SLOT_NONE;
	catalog->entries[entry] = (struct entry){ .print = print, .state = ENTRY_WRITING };
	map_insert(&catalog->map, hash_of(catalog, print), entry);
	return entry;
}

void catalog_publish(struct catalog *catalog, uint32_t entry)
{
	struct entry *const published = &catalog->entries[entry];

	KVS_ASSERT_CMP(published->state, ==, ENTRY_WRITING);
	KVS_ASSERT_CMP(published->pages, >, 0);
	published->state = ENTRY_PRESENT;
	evict_insert(catalog->order, entry, published->print);
	catalog->present++;
}

void catalog_mark_gone(struct catalog *catalog, uint32_t entry)
{
	KVS_ASSERT_CMP(catalog->entries[entry].state, ==, ENTRY_WRITING);
	catalog->entries[entry].state = ENTRY_GONE;
}

void catalog_renew(struct catalog *catalog, uint32_t entry)
{
	evict_renew(catalog->order, entry);
}

void catalog_expel(struct catalog *catalog, uint32_t entry)
{
	evict_expel(catalog->order, entry);
	catalog_drop(catalog, entry);
}

uint32_t catalog_heat(const struct catalog *catalog, uint32_t entry)
{
	return evict_heat(catalog->order, entry);
}

void catalog_drop(struct catalog *catalog, uint32_t entry)
{
	struct entry *const dropped = &catalog->entries[entry];

	KVS_ASSERT_CMP(dropped->state, !=, ENTRY_FREE);
	if (dropped->state == ENTRY_PRESENT) {
		if (evict_present(catalog->order, entry))
			evict_remove(catalog->order, entry);
		catalog->present--;
	}
	map_remove(&catalog->map, hash_of(catalog, dropped->print), entry);
	dropped->state = ENTRY_FREE;
	dropped->page = catalog->free_first;
	catalog->free_first = entry;
}

static bool may_go(void *ctx, uint32_t entry)
{
	return ((const struct catalog *)ctx)->entries[entry].locks == 0;
}

uint32_t catalog_victim(struct catalog *catalog)
{
	return evict_victim(catalog->order, may_go, catalog);
}

uint64_t catalog_bytes(const struct catalog *catalog)
{
	return catalog->entry_max * sizeof(*catalog->entries) + map_bytes(&catalog->map) +
	       evict_bytes(catalog->order);
}

void catalog_audit(const struct catalog *catalog)
{
	uint32_t present = 0, named = 0, entry;

	map_audit(&catalog->map);
	evict_audit(catalog->order);
	for (entry = 0; entry < catalog->known; entry++) {
		const struct entry *const seen = &catalog->entries[entry];

		present += seen->state == ENTRY_PRESENT;
		named += seen->state != ENTRY_FREE;
		KVS_ASSERT_CMP(evict_present(catalog->order, entry), ==, seen->state == ENTRY_PRESENT);
		KVS_ASSERT(seen->locks == 0 || seen->state == ENTRY_PRESENT);
		KVS_ASSERT(seen->state == ENTRY_FREE || catalog_find(catalog, seen->print) == entry);
	}
	KVS_ASSERT_CMP(present, ==, catalog->present);
	KVS_ASSERT_CMP(named, ==, catalog->map.count);
}
