/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A prompt as the matchers see it: the entries of its pages, looked up once, and what counts as
 * there.
 *
 * To ask how far Host extends what the Device has, let both strata count: what the Device holds beyond the
 * joint boundary, history or checkpoint, need not come from Host again.
 *
 * Positions are blocks of a group from the start of the prompt: position i covers tokens
 * [i * q, (i + 1) * q).  A position is *held* when it lies in the first held_pages (that the caller
 * has in full), when a stratum that counts holds it, or when a hint says that a store does.  Hints
 * are assumptions: a plan can be made with them, a hit never.
 */
#ifndef MATCH_VIEW_H
#define MATCH_VIEW_H

#include "match/pages.h"

/* Which strata count: bits of 1 << stratum_id. */
#define HELD_DEVICE (1u << STRATUM_DEVICE)
#define HELD_HOST   (1u << STRATUM_HOST)

struct view {
	const struct pages *pages;
	const uint32_t     *entries;    /* of each page of the prompt; SLOT_NONE: not in the index.  NULL only
					   where no stratum counts */
	uint32_t            page_count;
	uint32_t            held_in;    /* HELD_* that count */
	uint32_t            held_pages; /* the first so many: all their positions are held */
	uint32_t            ignored;    /* bits of 1 << kind: groups of these kinds need nothing */
	const uint64_t     *hints;      /* bit page * columns + column; NULL: none */
};

static inline bool view_ignores(const struct view *view, const struct group *group)
{
	return (view->ignored >> group->spec.kind) & 1;
}

/* The hints of a page, as a bitmap of its columns; what is above them is noise. */
static inline uint64_t view_hints(const struct view *view, uint32_t page)
{
	const uint32_t columns = view->pages->groups.columns;
	const uint64_t bit = (uint64_t)page * columns;
	const uint32_t shift = bit % 64;
	uint64_t       hints = view->hints[bit / 64] >> shift;

	if (shift + columns > 64)
		hints |= view->hints[bit / 64 + 1] << (64 - shift);
	return hints;
}

/* Which blocks of a page are held, as a bitmap of its columns; what is above them is noise. */
static inline uint64_t view_page(const struct view *view, uint32_t page)
{
	uint64_t held;
	uint32_t entry;

	if (page < view->held_pages)
		return UINT64_MAX;
	held = view->hints ? view_hints(view, page) : 0;
	if (!view->held_in)
		return held;
	entry = view->entries[page];
	if (entry == SLOT_NONE)
		return held;
	if (view->held_in & HELD_DEVICE)
		held |= view->pages->entries[entry].held[STRATUM_DEVICE];
	if (view->held_in & HELD_HOST)
		held |= view->pages->entries[entry].held[STRATUM_HOST];
	return held;
}

/* Is a position of a group held?  Its page must be below page_count. */
static inline bool view_holds(const struct view *view, const struct group *group,
			      uint32_t position)
{
	const uint32_t page = position / group->page_blocks;

	return (view_page(view, page) >> group_column(group, position)) & 1;
}

#endif
