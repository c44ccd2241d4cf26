/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the blocks of a prompt would come from: Device, Host, a store, or nowhere.
 *
 * Each block of a page has one *origin*, the nearest: a copy that Device holds need not come from Host,
 * nor what either holds from the store.  How many blocks of each origin a boundary needs is a difference
 * of two sums over the pages, counted once; so a prompt with many boundaries costs a pass over its
 * pages and a step a boundary and group.
 *
 * What lies below the floor, the full pages of what Device alone restores, counts as Device's and is
 * not looked at: a longer boundary needs nothing there that the shorter one does not.
 *
 * Limits   page_max pages and tail_max tails, fixed at open; nothing allocates after.
 * Threads  The cache thread only.
 */
#ifndef COORD_ORIGIN_H
#define COORD_ORIGIN_H

#include <stddef.h>
#include <stdint.h>

#include "coord/cache.h"
#include "match/view.h"

/* Blocks of a group; the rest is Device's. */
struct origin_count {
	uint32_t host;
	uint32_t store;
	uint32_t nowhere;
};

/* Columns of a page; what is above the last column is noise. */
struct origin_columns {
	uint64_t host;
	uint64_t store;
	uint64_t nowhere;
};

struct origins {
	uint32_t             page_max;
	uint32_t             tail_max;
	struct view          view;         /* of the last count */
	const uint64_t      *tail_hints;   /* borrowed as long as that is asked for */
	uint32_t            *entries;      /* of each page; SLOT_NONE */
	uint32_t            *tail_entries; /* of each tail; SLOT_NONE */
	struct origin_count *sums;         /* [page][group]: in pages [floor, page) */
};

/* 0, or -ENOMEM. */
int    origins_open(struct origins *origins, const struct pages *pages, uint32_t page_max,
		    uint32_t tail_max);
void   origins_close(struct origins *origins);
size_t origins_bytes(const struct origins *origins);

/*
 * Look up and count a prompt within the limits (asserted).  Hints as struct cache_reserve_ask has them.
 */
void origins_count(struct origins *origins, const struct cache_prompt *prompt, uint32_t floor,
		   const uint64_t *page_hints, const uint64_t *tail_hints);

/* What a boundary needs of a group. */
struct origin_count origins_needed(const struct origins *origins, const struct boundary *end,
				   uint32_t group);

/* A page of the prompt as a boundary sees it: behind its last full page there is its tail. */
struct origin_columns origins_page(const struct origins *origins, const struct boundary *end,
				   uint32_t page);

/* The columns of positions [first, end) of a group that lie in this page. */
uint64_t origins_mask(const struct group *group, uint32_t page, uint32_t first, uint32_t end);

#endif
