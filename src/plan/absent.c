/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that are known to be in no store: a boundary that misses one is not worth a question. */
#include "plan/parts.h"

/* Which columns of a page are absent, and missing here too. */
static uint64_t absent_columns(const struct query *query, const struct query_ask *ask,
			       const struct boundary *boundary, uint32_t page)
{
	const uint32_t columns = query->groups.columns;
	const size_t   bit = (size_t)page * columns;
	const uint32_t shift = bit % 64;
	uint64_t       absent = ask->page_absent[bit / 64] >> shift;

	if (shift + columns > 64)
		absent |= ask->page_absent[bit / 64 + 1] << (64 - shift);
	return absent & origins_page(&query->origins, boundary, page).nowhere;
}

/* The first absent position of a group in [first, end), all in full pages; UINT32_MAX. */
static uint32_t find_absent(const struct query *query, const struct query_ask *ask,
			    const struct boundary *boundary, uint32_t g, uint32_t first,
			    uint32_t end)
{
	const struct group *const group = &query->groups.group[g];
	uint32_t                  page;

	for (page = first / group->page_blocks; page * group->page_blocks < end; page++) {
		const uint64_t absent = absent_columns(query, ask, boundary, page) &
					group_columns(group, page, first, end);

		if (absent) {
			return page * group->page_blocks + (uint32_t)__builtin_ctzll(absent) -
			       group->first_column;
		}
	}
	return UINT32_MAX;
}

/*
 * What boundaries need of a group begins and ends no later from one to the next, so each position
 * is looked at once: what lies behind the last need's beginning is known, or is needed no more.
 */
static bool absent_in_pages(struct query *query, const struct query_ask *ask,
			    const struct boundary *boundary, const struct need *need, uint32_t g,
			    struct query_key *ret_key)
{
	const struct group *const group = &query->groups.group[g];
	const uint32_t            seen_from = query->absent_seen[g];
	uint32_t                  position;

	if (!ask->page_absent)
		return false;
	position = find_absent(query, ask, boundary, g, need->first,
			       need->end < seen_from ? need->end : seen_from);
	if (position == UINT32_MAX)
		position = query->absent_from[g];
	query->absent_from[g] = position;
	query->absent_seen[g] = need->first;
	if (position >= need->end)
		return false;
	*ret_key = (struct query_key){ position / group->page_blocks, TAIL_NONE,
				       group_column(group, position) };
	return true;
}

bool absent_keeps_away(struct query *query, const struct query_ask *ask,
		       const struct boundary *boundary, const struct need *needs)
{
	struct query_key key;
	uint32_t         g;

	for (g = 0; g < query->groups.count; g++) {
		uint64_t of_tail = 0;

		if (boundary->tail != TAIL_NONE && ask->tail_absent)
			of_tail = needs[g].tail_missing & ask->tail_absent[boundary->tail];
		if (!absent_in_pages(query, ask, boundary, &needs[g], g, &key)) {
			if (!of_tail)
				continue;
			key = (struct query_key){ boundary->pages, boundary->tail,
						  (uint32_t)__builtin_ctzll(of_tail) };
		}
		if (!query->has_barrier)
			query->barrier = key;
		query->has_barrier = true;
		return true;
	}
	return false;
}
