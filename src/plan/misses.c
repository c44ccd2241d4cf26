/* SPDX-License-Identifier: Apache-2.0 */
/* See misses.h. */
#include "plan/misses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int misses_open(struct misses *misses, const struct groups *groups, uint32_t page_max,
		uint32_t tail_max)
{
	*misses = (struct misses){ .groups = *groups, .page_max = page_max, .tail_max = tail_max };
	misses->sums = calloc(((size_t)page_max + 1) * groups->count, sizeof(*misses->sums));
	misses->tail_entries = calloc((size_t)tail_max + 1, sizeof(*misses->tail_entries));
	if (misses->sums && misses->tail_entries)
		return 0;
	misses_close(misses);
	return -ENOMEM;
}

void misses_close(struct misses *misses)
{
	free(misses->tail_entries);
	free(misses->sums);
	*misses = (struct misses){ 0 };
}

/* All or none is the rule and needs no counting. */
static uint32_t count_columns(const struct group *group, uint64_t columns)
{
	const uint64_t mask = group_mask(group);

	if ((columns & mask) == 0)
		return 0;
	return (columns & mask) == mask ? group->page_blocks
					: (uint32_t)__builtin_popcountll(columns & mask);
}

void misses_count(struct misses *misses, const struct view *view, uint32_t page_count,
		  const struct kvs_namespace *space, const struct tail *tails, uint32_t tail_count)
{
	const struct groups *const groups = &misses->groups;
	uint32_t                  *row = misses->sums;
	uint32_t                   page, tail, g;

	KVS_ASSERT_CMP(page_count, <=, misses->page_max);
	KVS_ASSERT_CMP(tail_count, <=, misses->tail_max);
	misses->view = view;
	memset(row, 0, groups->count * sizeof(*row));
	for (page = 0; page < page_count; page++) {
		const uint64_t  missing = ~view_page(view, page);
		uint32_t *const next = row + groups->count;

		for (g = 0; g < groups->count; g++) {
			next[g] = row[g] + count_columns(&groups->group[g], missing);
		}
		row = next;
	}
	for (tail = 0; tail < tail_count; tail++)
		misses->tail_entries[tail] = pages_find(view->pages, space, &tails[tail].hash);
}

/* The columns of blocks [first, end) of a page of a group. */
static uint64_t columns_of(const struct group *group, uint32_t first, uint32_t end)
{
	const uint64_t below_end = end < 64 ? (UINT64_C(1) << end) - 1 : UINT64_MAX;

	return first < end ? (below_end & (UINT64_MAX << first)) << group->first_column : 0;
}

uint64_t misses_page(const struct misses *misses, uint32_t page, const struct group *group,
		     uint32_t first, uint32_t end)
{
	return ~view_page(misses->view, page) & columns_of(group, first, end);
}

static uint32_t missing_before(const struct misses *misses, uint32_t g, uint32_t position)
{
	const struct group *const group = &misses->groups.group[g];
	const uint32_t            page = position / group->page_blocks;
	const uint32_t            block = position % group->page_blocks;
	const uint32_t            sum = misses->sums[(size_t)page * misses->groups.count + g];

	if (block == 0)
		return sum;
	return sum + (uint32_t)__builtin_popcountll(misses_page(misses, page, group, 0, block));
}

/* A page of its own, whatever page of the prompt may be there. */
uint64_t misses_tail_held(const struct misses *misses, uint32_t tail)
{
	const struct view alone = { .pages = misses->view->pages,
				    .entries = &misses->tail_entries[tail],
				    .page_count = 1,
				    .held_in = misses->view->held_in };

	return view_page(&alone, 0);
}

/* What a tail needs of its own page, and where what it needs of the full pages begins. */
static void need_tail(const struct misses *misses, const struct boundary *boundary, uint32_t g,
		      struct need *need)
{
	const struct group *const group = &misses->groups.group[g];
	uint32_t                  end, tail_first;

	match_needed(group, boundary->tokens, &need->first, &end);
	tail_first = need->first > need->end ? need->first - need->end : 0;
	if (need->first > need->end)
		need->first = need->end;
	if (end > need->end) {
		need->tail_missing = columns_of(group, tail_first, end - need->end) &
				     ~misses_tail_held(misses, boundary->tail);
	}
}

void misses_need(const struct misses *misses, const struct boundary *boundary, uint32_t g,
		 struct need *ret_need)
{
	const struct group *const group = &misses->groups.group[g];

	ret_need->tail_missing = 0;
	ret_need->end = boundary->pages * group->page_blocks;
	if (boundary->tail != TAIL_NONE)
		need_tail(misses, boundary, g, ret_need);
	else
		ret_need->first = group_first_needed(group, ret_need->end);
	ret_need->before_first = missing_before(misses, g, ret_need->first);
	ret_need->before_end = misses->sums[(size_t)boundary->pages * misses->groups.count + g];
}
