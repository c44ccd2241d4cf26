/* SPDX-License-Identifier: Apache-2.0 */
/* See index.h: keys to blocks, one entry for both strata. */
#include "match/index.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"

int index_open(struct prefix_index *index, uint32_t entry_max)
{
	*index = (struct prefix_index){ 0 };
	index->entries = calloc(entry_max, sizeof(*index->entries));
	if (!index->entries)
		return -ENOMEM;
	if (slots_open(&index->slots, entry_max) < 0 ||
	    map_open(&index->map, entry_max, index->entries, sizeof(*index->entries),
		     sizeof(struct kvs_key)) < 0) {
		index_close(index);
		return -ENOMEM;
	}
	return 0;
}

void index_close(struct prefix_index *index)
{
	map_close(&index->map);
	slots_close(&index->slots);
	free(index->entries);
	*index = (struct prefix_index){ 0 };
}

uint32_t index_find(const struct prefix_index *index, const struct kvs_key *key)
{
	return map_find(&index->map, map_hash(&index->map, key), key);
}

uint32_t index_block(const struct prefix_index *index, enum stratum_id stratum,
		     const struct kvs_key *key)
{
	const uint32_t entry = index_find(index, key);

	return entry == SLOT_NONE ? SLOT_NONE : index->entries[entry].block[stratum];
}

uint32_t index_add(struct prefix_index *index, enum stratum_id stratum, const struct kvs_key *key,
		   uint32_t block)
{
	const uint64_t hash = map_hash(&index->map, key);
	uint32_t       entry = map_find(&index->map, hash, key);

	if (entry == SLOT_NONE) {
		entry = slots_acquire(&index->slots);
		KVS_ASSERT_CMP(entry, !=, SLOT_NONE);
		index->entries[entry] = (struct index_entry){ .key = *key,
							      .block = { SLOT_NONE, SLOT_NONE } };
		map_insert(&index->map, hash, entry);
	}
	KVS_ASSERT_CMP(index->entries[entry].block[stratum], ==, SLOT_NONE);
	index->entries[entry].block[stratum] = block;
	return entry;
}

void index_drop(struct prefix_index *index, enum stratum_id stratum, uint32_t entry)
{
	struct index_entry *const e = &index->entries[entry];

	KVS_ASSERT(slots_busy(&index->slots, entry));
	KVS_ASSERT_CMP(e->block[stratum], !=, SLOT_NONE);
	e->block[stratum] = SLOT_NONE;
	if (e->block[STRATUM_DEVICE] != SLOT_NONE || e->block[STRATUM_HOST] != SLOT_NONE)
		return;
	map_remove(&index->map, map_hash(&index->map, &e->key), entry);
	slots_release(&index->slots, entry);
}

void index_audit(const struct prefix_index *index)
{
	uint32_t entry;

	slots_audit(&index->slots);
	map_audit(&index->map);
	KVS_ASSERT_CMP(index->map.count, ==, index->slots.busy_count);
	SLOTS_EACH(&index->slots, entry) {
		const struct index_entry *const e = &index->entries[entry];

		KVS_ASSERT(e->block[STRATUM_DEVICE] != SLOT_NONE ||
			   e->block[STRATUM_HOST] != SLOT_NONE);
	}
}
