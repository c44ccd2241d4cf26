/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The prefix index: which blocks of which pages are published, on Device and on Host.
 *
 * One entry a page serves all groups and both strata: a look-up by prefix hash brings every block
 * of the page at once, so that a prompt costs one look-up a page however small a group's blocks
 * are.  An entry lives while any stratum holds any block of it.  A *cell* is one block of one
 * page: cell = entry * columns + column.  The index says where bytes are; recency and ownership
 * are kept by whoever owns the blocks, by cell number.
 *
 * A tail (less than P tokens) is a page like any other: its hash is its own.
 *
 * Limits   page_max entries, fixed at open: as many as there are blocks is always enough.
 * Order    Nothing here exposes hash order.
 * Threads  The cache thread only.  Pure; nothing allocates after open.
 */
#ifndef MATCH_PAGES_H
#define MATCH_PAGES_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/slots.h"
#include "key/key.h"
#include "match/groups.h"
#include "pool/pool.h"

enum stratum_id { STRATUM_DEVICE, STRATUM_HOST, STRATUM_COUNT };

/* A null block: not held.  Pools number blocks of a group from 1. */
#define BLOCK_NULL POOL_NULL

/* What a map key is: equal namespace and hash, equal page. */
struct page_name {
	struct kvs_namespace space;
	struct prefix_hash   hash;
};

/*
 * All that a look-up and a match read of a page: one cache line.  The blocks lie apart; only who uses
 * a match looks at them.
 */
struct page_entry {
	struct page_name name;
	uint64_t         held[STRATUM_COUNT]; /* bit of a column: the block is not null */
};

static_assert(sizeof(struct page_entry) == 64, "an entry is a cache line");
static_assert(sizeof(struct page_name) == sizeof(struct kvs_namespace) + sizeof(struct prefix_hash),
	      "names are hashed and compared as bytes: no padding");
static_assert(offsetof(struct page_entry, name) == 0, "an entry begins with its key");

struct pages {
	struct groups      groups;
	struct page_entry *entries;
	uint32_t          *blocks; /* [cell][stratum]: BLOCK_NULL where it is not held */
	struct slots       slots;
	struct map         map;
};

/* 0, -ENOMEM, or -EOVERFLOW where 32 bits do not number the cells of page_max entries. */
int    pages_open(struct pages *pages, const struct groups *groups, uint32_t page_max);
void   pages_close(struct pages *pages);
size_t pages_bytes(const struct pages *pages); /* memory in use */

/* The entry of a page; SLOT_NONE when no stratum holds any block of it. */
uint32_t pages_find(const struct pages *pages, const struct kvs_namespace *space,
		    const struct prefix_hash *hash);

/*
 * The entries of count pages of one prompt, SLOT_NONE where there is none: look-ups of several pages
 * are under way at once, and pages that were published together are found in a row.
 */
void pages_find_all(const struct pages *pages, const struct kvs_namespace *space,
		    const struct prefix_hash *hashes, uint32_t count, uint32_t *ret_entries);

/*
 * The same for who cannot use a page behind a missing one: soon after the first that has no entry the
 * others are not looked up, and SLOT_NONE.
 */
void pages_find_run(const struct pages *pages, const struct kvs_namespace *space,
		    const struct prefix_hash *hashes, uint32_t count, uint32_t *ret_entries);

static inline uint32_t pages_cell(const struct pages *pages, uint32_t entry, uint32_t column)
{
	return entry * pages->groups.columns + column;
}

/* The other way: which entry, which column. */
static inline uint32_t pages_cell_entry(const struct pages *pages, uint32_t cell)
{
	return cell / pages->groups.columns;
}

static inline uint32_t pages_cell_column(const struct pages *pages, uint32_t cell)
{
	return cell % pages->groups.columns;
}

/* The block in which a stratum holds a cell; BLOCK_NULL where it does not. */
static inline uint32_t pages_block(const struct pages *pages, uint32_t cell,
				   enum stratum_id stratum)
{
	return pages->blocks[(size_t)cell * STRATUM_COUNT + stratum];
}

/*
 * Say that a stratum holds a cell in this block (not null; asserted that it held none).  The first
 * block of a page makes its entry.  Returns the cell.
 */
uint32_t pages_add(struct pages *pages, const struct kvs_namespace *space,
		   const struct prefix_hash *hash, uint32_t column, enum stratum_id stratum,
		   uint32_t block);

/* The stratum no longer holds the cell (asserted that it did); the entry goes with its last block. */
void pages_drop(struct pages *pages, uint32_t cell, enum stratum_id stratum);

/* The key under which a cell's bytes are known to stores. */
void pages_key(const struct pages *pages, uint32_t cell, struct kvs_key *ret_key);

/* O(n): counts, map and blocks agree. */
void pages_audit(const struct pages *pages);

#endif
