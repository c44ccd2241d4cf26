/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See pages.h.  An entry is found by its name and read by its bitmaps; both lie in one cache line, so
 * that a page of a prompt costs a bucket and a line of memory, whatever its groups are.
 */
#include "match/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/err.h"
#include "os/os.h"

/* Pages of a prompt whose memory is on its way at once; more than the core can fetch gains nothing. */
#define LOOKAHEAD 16u

#define HUGE_BYTES ((size_t)2 << 20)
/* How far ahead memory is asked for in a row: a line an entry, and a page of memory is 64 of them. */
#define ROW_AHEAD 64u

/* A prompt that lies somewhere in many entries should not cost a walk of the page tables every 64 pages. */
static struct page_entry *entries_alloc(size_t bytes)
{
	const bool   large = bytes >= HUGE_BYTES;
	const size_t unit = large ? HUGE_BYTES : sizeof(struct page_entry);
	const size_t whole = (bytes + unit - 1) / unit * unit;
	void *const  entries = aligned_alloc(unit, whole);

	if (entries && large)
		(void)os_pages_advise_huge(entries, whole);
	return entries;
}

int pages_open(struct pages *pages, const struct groups *groups, uint32_t page_max)
{
	const uint64_t cells = (uint64_t)page_max * groups->columns;

	*pages = (struct pages){ .groups = *groups };
	if (cells > UINT32_MAX)
		return -EOVERFLOW;
	pages->entries = entries_alloc(page_max * sizeof(*pages->entries));
	pages->blocks = calloc(cells, STRATUM_COUNT * sizeof(*pages->blocks));
	if (!pages->entries || !pages->blocks || slots_open(&pages->slots, page_max) < 0 ||
	    map_open(&pages->map, page_max, pages->entries, sizeof(*pages->entries),
		     sizeof(struct page_name)) < 0) {
		pages_close(pages);
		return -ENOMEM;
	}
	/* An entry that no page has yet holds nothing: a row may lead to it. */
	memset(pages->entries, 0, page_max * sizeof(*pages->entries));
	return 0;
}

void pages_close(struct pages *pages)
{
	map_close(&pages->map);
	slots_close(&pages->slots);
	free(pages->blocks);
	free(pages->entries);
	*pages = (struct pages){ 0 };
}

size_t pages_bytes(const struct pages *pages)
{
	const size_t entry_bytes = sizeof(*pages->entries) +
				   (size_t)pages->groups.columns * STRATUM_COUNT *
					   sizeof(*pages->blocks);

	return pages->slots.count * entry_bytes + bits_words(pages->slots.count) * sizeof(uint64_t) +
	       map_bytes(&pages->map);
}

static struct page_name name_of(const struct kvs_namespace *space, const struct prefix_hash *hash)
{
	return (struct page_name){ .space = *space, .hash = *hash };
}

uint32_t pages_find(const struct pages *pages, const struct kvs_namespace *space,
		    const struct prefix_hash *hash)
{
	const struct page_name name = name_of(space, hash);

	return map_find(&pages->map, map_hash(&pages->map, &name), &name);
}

/* Look up at most LOOKAHEAD pages, all of them a step at a time. */
static void find_batch(const struct pages *pages, const struct kvs_namespace *space,
		       const struct prefix_hash *hashes, uint32_t count, uint32_t *ret_entries)
{
	struct page_name names[LOOKAHEAD];
	uint64_t         keys[LOOKAHEAD];
	uint32_t         i;

	for (i = 0; i < count; i++) {
		names[i] = name_of(space, &hashes[i]);
		keys[i] = map_hash(&pages->map, &names[i]);
		map_prefetch(&pages->map, keys[i]);
	}
	for (i = 0; i < count; i++)
		map_prefetch_key(&pages->map, keys[i]);
	for (i = 0; i < count; i++)
		ret_entries[i] = map_find(&pages->map, keys[i], &names[i]);
}

static bool has_name(const struct page_entry *entry, const struct kvs_namespace *space,
		     const struct prefix_hash *hash)
{
	return (entry->held[STRATUM_DEVICE] | entry->held[STRATUM_HOST]) != 0 &&
	       memcmp(&entry->name.hash, hash, sizeof(*hash)) == 0 &&
	       memcmp(&entry->name.space, space, sizeof(*space)) == 0;
}

/*
 * Pages that were published together lie in a row.  Where a row has begun, see whether it goes on before
 * asking the map: memory is then read in order, and nothing is hashed.  Returns how many pages were found.
 */
static uint32_t follow_row(const struct pages *pages, const struct kvs_namespace *space,
			   const struct prefix_hash *hashes, uint32_t count, uint32_t entry,
			   uint32_t *ret_entries)
{
	uint32_t found;

	for (found = 0; found < count && entry < pages->slots.count; found++, entry++) {
		if (!has_name(&pages->entries[entry], space, &hashes[found]))
			break;
		ret_entries[found] = entry;
		if (entry + ROW_AHEAD < pages->slots.count)
			__builtin_prefetch(&pages->entries[entry + ROW_AHEAD]);
	}
	return found;
}

/* Do the entries just found lie in a row, as far as their ends tell?  follow_row() looks at each name. */
static bool is_row(const uint32_t *entries, uint32_t count)
{
	const uint32_t last = entries[count - 1];

	return last != SLOT_NONE && entries[0] == last - (count - 1);
}

static bool is_whole(const uint32_t *entries, uint32_t count)
{
	uint32_t i = 0;

	while (i < count && entries[i] != SLOT_NONE)
		i++;
	return i == count;
}

/* Batch by batch, to the end or to the first batch that is not all there; how many were looked up. */
static uint32_t find(const struct pages *pages, const struct kvs_namespace *space,
		     const struct prefix_hash *hashes, uint32_t count, bool to_the_end,
		     uint32_t *ret_entries)
{
	bool     whole = true;
	uint32_t i = 0;

	while (i < count && (whole || to_the_end)) {
		const uint32_t batch = count - i < LOOKAHEAD ? count - i : LOOKAHEAD;

		find_batch(pages, space, &hashes[i], batch, &ret_entries[i]);
		whole = is_whole(&ret_entries[i], batch);
		i += batch;
		if (i < count && is_row(&ret_entries[i - batch], batch)) {
			i += follow_row(pages, space, &hashes[i], count - i, ret_entries[i - 1] + 1,
					&ret_entries[i]);
		}
	}
	return i;
}

void pages_find_all(const struct pages *pages, const struct kvs_namespace *space,
		    const struct prefix_hash *hashes, uint32_t count, uint32_t *ret_entries)
{
	(void)find(pages, space, hashes, count, true, ret_entries);
}

void pages_find_run(const struct pages *pages, const struct kvs_namespace *space,
		    const struct prefix_hash *hashes, uint32_t count, uint32_t *ret_entries)
{
	uint32_t i = find(pages, space, hashes, count, false, ret_entries);

	for (; i < count; i++)
		ret_entries[i] = SLOT_NONE;
}

static uint32_t add_entry(struct pages *pages, const struct page_name *name, uint64_t hash)
{
	const uint32_t entry = slots_acquire(&pages->slots);

	KVS_ASSERT_CMP(entry, !=, SLOT_NONE);
	pages->entries[entry] = (struct page_entry){ .name = *name };
	map_insert(&pages->map, hash, entry);
	return entry;
}

uint32_t pages_add(struct pages *pages, const struct kvs_namespace *space,
		   const struct prefix_hash *hash, uint32_t column, enum stratum_id stratum,
		   uint32_t block)
{
	const struct page_name name = name_of(space, hash);
	const uint64_t         key = map_hash(&pages->map, &name);
	uint32_t               entry = map_find(&pages->map, key, &name);
	uint32_t               cell;

	KVS_ASSERT_CMP(column, <, pages->groups.columns);
	KVS_ASSERT_CMP(block, !=, BLOCK_NULL);
	if (entry == SLOT_NONE)
		entry = add_entry(pages, &name, key);
	cell = pages_cell(pages, entry, column);
	KVS_ASSERT_CMP(pages_block(pages, cell, stratum), ==, BLOCK_NULL);
	pages->blocks[(size_t)cell * STRATUM_COUNT + stratum] = block;
	bits_set(&pages->entries[entry].held[stratum], column);
	return cell;
}

void pages_drop(struct pages *pages, uint32_t cell, enum stratum_id stratum)
{
	const uint32_t           entry = pages_cell_entry(pages, cell);
	struct page_entry *const e = &pages->entries[entry];

	KVS_ASSERT_CMP(entry, <, pages->slots.count);
	KVS_ASSERT_CMP(pages_block(pages, cell, stratum), !=, BLOCK_NULL);
	pages->blocks[(size_t)cell * STRATUM_COUNT + stratum] = BLOCK_NULL;
	bits_clear(&e->held[stratum], pages_cell_column(pages, cell));
	if ((e->held[STRATUM_DEVICE] | e->held[STRATUM_HOST]) != 0)
		return;
	map_remove(&pages->map, map_hash(&pages->map, &e->name), entry);
	slots_release(&pages->slots, entry);
}

void pages_key(const struct pages *pages, uint32_t cell, struct kvs_key *ret_key)
{
	const struct page_name *const name = &pages->entries[pages_cell_entry(pages, cell)].name;
	const uint32_t                column = pages_cell_column(pages, cell);
	const uint32_t                group = pages->groups.column_group[column];

	key_make(&name->space, &name->hash, group, 0,
		 column - pages->groups.group[group].first_column, ret_key);
}

/* The bitmaps of an entry say what its blocks say. */
static void audit_entry(const struct pages *pages, uint32_t entry)
{
	const struct page_entry *const e = &pages->entries[entry];
	uint32_t                       column, stratum;

	KVS_ASSERT_CMP(slots_busy(&pages->slots, entry), ==,
		       (e->held[STRATUM_DEVICE] | e->held[STRATUM_HOST]) != 0);
	for (stratum = 0; stratum < STRATUM_COUNT; stratum++) {
		if (pages->groups.columns < COLUMNS_MAX)
			KVS_ASSERT_CMP(e->held[stratum] >> pages->groups.columns, ==, 0);
		for (column = 0; column < pages->groups.columns; column++) {
			const uint32_t cell = pages_cell(pages, entry, column);

			KVS_ASSERT_CMP(pages_block(pages, cell, stratum) != BLOCK_NULL, ==,
				       bits_test(&e->held[stratum], column));
		}
	}
}

void pages_audit(const struct pages *pages)
{
	uint32_t entry;

	slots_audit(&pages->slots);
	map_audit(&pages->map);
	KVS_ASSERT_CMP(pages->map.count, ==, pages->slots.busy_count);
	for (entry = 0; entry < pages->slots.count; entry++)
		audit_entry(pages, entry);
}
