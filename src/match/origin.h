/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the blocks of a prompt would come from: Device, Host, a store, or nowhere.
 *
 * Each block of a page has one *origin*, the nearest: a copy that Device holds need not come from Host,
 * nor what either holds from a store.  What a store has, the view's hints say; without hints, what is
 * nowhere is what a store may be asked for.  How many blocks of each origin a boundary needs is a difference
 * of two sums over the pages, counted once; so a prompt with many boundaries costs a pass over its pages and
 * a step a boundary and group.
 *
 * The view's held pages count as Device's and are not looked at.  A tail is a page of its own,
 * whatever page of the prompt may be there.
 *
 * Limits   page_max pages and tail_max tails, fixed at open; nothing allocates after.
 * Threads  The cache thread only.
 */
#ifndef MATCH_ORIGIN_H
#define MATCH_ORIGIN_H

#include <stddef.h>
#include <stdint.h>

#include "match/boundary.h"
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
	uint32_t             group_count;
	uint32_t             page_max;
	uint32_t             tail_max;
	struct view          view;         /* of the last count; all it points at is borrowed as long as that
					      is asked for */
	const uint64_t      *tail_hints;   /* a word a tail, bit column; NULL: none */
	uint32_t            *tail_entries; /* of each tail in the index; SLOT_NONE */
	struct origin_count *sums;         /* [page][group]: in pages [held_pages, page) */
};

/* 0, or -ENOMEM. */
int    origins_open(struct origins *origins, uint32_t group_count, uint32_t page_max, uint32_t tail_max);
void   origins_close(struct origins *origins);
size_t origins_bytes(const struct origins *origins);

/* Count the pages of a view, and look up tails: both within the limits (asserted). */
void origins_count(struct origins *origins, const struct view *view, const struct kvs_namespace *space,
		   const struct tail *tails, uint32_t tail_count, const uint64_t *tail_hints);

/* What a boundary needs of a group. */
struct origin_count origins_needed(const struct origins *origins, const struct boundary *boundary,
				   uint32_t group);

/* Of the positions of a group in full pages before this one. */
struct origin_count origins_before(const struct origins *origins, uint32_t group, uint32_t position);

/* A page of the prompt as a boundary sees it: behind its last full page there is its tail. */
struct origin_columns origins_page(const struct origins *origins, const struct boundary *boundary,
				   uint32_t page);
struct origin_columns origins_tail(const struct origins *origins, uint32_t tail);

#endif
