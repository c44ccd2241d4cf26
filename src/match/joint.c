/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See joint.h.  Everything is asked of runs: how far to the right, or to the left, positions are all held,
 * or all missing.  A run is read a page at a time from the page's bitmap.
 */
#include "match/joint.h"

#include "base/err.h"

/* Columns of one group at one page, its first position in bit 0; a set bit ends the run. */
static uint64_t run_enders(const struct view *view, const struct group *group, uint32_t page, bool held)
{
	const uint64_t columns = view_page(view, page) >> group->first_column;

	return held ? ~columns : columns;
}

/* Where the run of positions that begins at `begin` and are held (or are not) ends, in [begin, end]. */
static uint32_t run_right(const struct view *view, const struct group *group, uint32_t begin,
			  uint32_t end, bool held)
{
	const uint32_t page_blocks = group->page_blocks;
	uint32_t       page = begin / page_blocks;
	uint32_t       skip = begin % page_blocks;
	uint32_t       i;

	for (i = begin; i < end; i += page_blocks - skip, skip = 0, page++) {
		const uint64_t enders = run_enders(view, group, page, held) >> skip;
		const uint32_t run = enders ? (uint32_t)__builtin_ctzll(enders) : 64;

		if (run < page_blocks - skip)
			return i + run < end ? i + run : end;
	}
	return end;
}

/* Where the run of positions that ends at `end` and are held (or are not) begins, in [begin, end]. */
static uint32_t run_left(const struct view *view, const struct group *group, uint32_t begin,
			 uint32_t end, bool held)
{
	const uint32_t page_blocks = group->page_blocks;
	uint32_t       page, take, i;

	if (end == begin)
		return end;
	page = (end - 1) / page_blocks;
	take = end - page * page_blocks;
	for (i = end;; i -= take, take = page_blocks, page--) {
		const uint64_t enders = run_enders(view, group, page, held) << (64 - take);
		const uint32_t run = enders ? (uint32_t)__builtin_clzll(enders) : 64;

		if (i - begin <= take || run < take)
			return run < i - begin ? i - run : begin;
	}
}

uint32_t match_run(const struct view *view, const struct group *group, uint32_t begin, uint32_t end)
{
	return run_right(view, group, begin, end, true);
}

/*
 * As match_window(), for one who asks again below an earlier answer: [*held_from, end) is known to be
 * held.  A miss rules out every boundary whose lookback holds it, so that the next to try is the miss
 * itself, or rather the nearest below it that has a held position before it.
 */
static uint32_t match_window_from(const struct view *view, const struct group *group, uint32_t begin,
				  uint32_t end, uint32_t *held_from)
{
	uint32_t boundary = end;

	if (group->lookback == 0)
		return end;
	while (boundary > begin) {
		const uint32_t needed = group_first_needed(group, boundary);
		const uint32_t first = needed > begin ? needed : begin;

		if (*held_from > boundary)
			*held_from = boundary;
		if (*held_from > first)
			*held_from = run_left(view, group, first, *held_from, true);
		if (*held_from <= first)
			return boundary;
		boundary = run_left(view, group, begin, *held_from, false);
	}
	return begin;
}

uint32_t match_window(const struct view *view, const struct group *group, uint32_t begin,
		      uint32_t end)
{
	uint32_t held_from = end;

	return match_window_from(view, group, begin, end, &held_from);
}

/* Lower the bound to the greatest page boundary that a window group supports. */
static uint32_t lower(const struct view *view, const struct group *group, uint32_t bound,
		      uint32_t *held_from)
{
	const uint32_t begin = view->held_pages * group->page_blocks;

	for (;;) {
		const uint32_t end = bound * group->page_blocks;
		const uint32_t found = match_window_from(view, group, begin, end, held_from);

		if (found == end)
			return bound;
		bound = found / group->page_blocks;
	}
}

/* How far all closed groups reach; *ret_any: there is one. */
static uint32_t match_closed(const struct view *view, uint32_t bound, bool *ret_any)
{
	const struct groups *const groups = &view->pages->groups;
	uint32_t                   g;

	*ret_any = false;
	for (g = 0; g < groups->count; g++) {
		const struct group *const group = &groups->group[g];

		if (!group_is_closed(group) || view_ignores(view, group))
			continue;
		*ret_any = true;
		bound = match_run(view, group, view->held_pages * group->page_blocks,
				  bound * group->page_blocks) /
			group->page_blocks;
	}
	return bound;
}

struct joint match_joint(const struct view *view, uint32_t page_bound)
{
	const struct groups *const groups = &view->pages->groups;
	uint32_t                   held_from[GROUPS_MAX];
	uint32_t                   bound, before, closed, g;
	bool                       any_closed;

	KVS_ASSERT_CMP(page_bound, <=, view->page_count);
	KVS_ASSERT_CMP(view->held_pages, <=, page_bound);
	KVS_ASSERT_CMP((uint64_t)page_bound * groups->page_tokens, <=, TOKENS_MAX);
	closed = match_closed(view, page_bound, &any_closed);
	for (g = 0; g < groups->count; g++)
		held_from[g] = UINT32_MAX;
	bound = closed;
	do {
		before = bound;
		for (g = 0; g < groups->count; g++) {
			const struct group *const group = &groups->group[g];

			if (!group_is_closed(group) && !view_ignores(view, group))
				bound = lower(view, group, bound, &held_from[g]);
		}
	} while (bound < before);
	return (struct joint){ .pages = bound, .closed_pages = any_closed ? closed : 0 };
}

void match_needed(const struct group *group, uint64_t tokens, uint32_t *ret_first, uint32_t *ret_end)
{
	const uint32_t end = group_blocks(group, tokens);

	*ret_first = group_expired_blocks(group, tokens);
	*ret_end = !group_is_closed(group) && group->lookback == 0 ? *ret_first : end;
}

bool match_legal(const struct view *view, uint64_t tokens)
{
	const struct groups *const groups = &view->pages->groups;
	uint32_t                   g;

	KVS_ASSERT_CMP(tokens, <=, (uint64_t)view->page_count * groups->page_tokens);
	for (g = 0; g < groups->count; g++) {
		const struct group *const group = &groups->group[g];
		uint32_t                  first, end;

		if (view_ignores(view, group))
			continue;
		match_needed(group, tokens, &first, &end);
		if (run_right(view, group, first, end, true) != end)
			return false;
	}
	return true;
}
