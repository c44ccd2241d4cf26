/* SPDX-License-Identifier: Apache-2.0 */
/* See origin.h. */
#include "match/origin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "match/joint.h"

int origins_open(struct origins *origins, uint32_t group_count, uint32_t page_max, uint32_t tail_max)
{
	*origins = (struct origins){ .group_count = group_count, .page_max = page_max,
				     .tail_max = tail_max };
	origins->tail_entries = malloc(((size_t)tail_max + 1) * sizeof(*origins->tail_entries));
	origins->sums = malloc(((size_t)page_max + 1) * group_count * sizeof(*origins->sums));
	if (origins->tail_entries && origins->sums)
		return 0;
	origins_close(origins);
	return -ENOMEM;
}

void origins_close(struct origins *origins)
{
	free(origins->sums);
	free(origins->tail_entries);
	*origins = (struct origins){ 0 };
}

size_t origins_bytes(const struct origins *origins)
{
	if (!origins->sums)
		return 0;
	return ((size_t)origins->tail_max + 1) * sizeof(*origins->tail_entries) +
	       ((size_t)origins->page_max + 1) * origins->group_count * sizeof(*origins->sums);
}

/* --- columns ---------------------------------------------------------------------------------- */

static struct origin_columns columns_of(const struct view *view, uint32_t entry, uint64_t hints)
{
	uint64_t device = 0, host = 0;

	if (entry != SLOT_NONE && view->held_in & HELD_DEVICE)
		device = view->pages->entries[entry].held[STRATUM_DEVICE];
	if (entry != SLOT_NONE && view->held_in & HELD_HOST)
		host = view->pages->entries[entry].held[STRATUM_HOST];
	return (struct origin_columns){ .host = host & ~device,
					.store = hints & ~(device | host),
					.nowhere = ~(device | host | hints) };
}

static struct origin_columns full_page(const struct view *view, uint32_t page)
{
	if (page < view->held_pages)
		return (struct origin_columns){ 0 };
	return columns_of(view, view->entries[page], view->hints ? view_hints(view, page) : 0);
}

struct origin_columns origins_tail(const struct origins *origins, uint32_t tail)
{
	return columns_of(&origins->view, origins->tail_entries[tail],
			  origins->tail_hints ? origins->tail_hints[tail] : 0);
}

struct origin_columns origins_page(const struct origins *origins, const struct boundary *boundary,
				   uint32_t page)
{
	if (page < boundary->pages)
		return full_page(&origins->view, page);
	KVS_ASSERT_CMP(page, ==, boundary->pages);
	KVS_ASSERT_CMP(boundary->tail, !=, TAIL_NONE);
	return origins_tail(origins, boundary->tail);
}

/* --- sums ------------------------------------------------------------------------------------- */

/* All or none is the rule and needs no counting. */
static uint32_t count_of(uint64_t columns, uint64_t mask, uint32_t mask_count)
{
	columns &= mask;
	if (columns == 0)
		return 0;
	return columns == mask ? mask_count : (uint32_t)__builtin_popcountll(columns);
}

/* Add the columns of positions [first, end) of a group that lie in this page. */
static void add_columns(struct origin_count *count, const struct group *group, uint32_t page,
			uint32_t first, uint32_t end, struct origin_columns columns)
{
	const uint64_t mask = group_columns(group, page, first, end);

	count->host += count_of(columns.host, mask, end - first);
	count->store += count_of(columns.store, mask, end - first);
	count->nowhere += count_of(columns.nowhere, mask, end - first);
}

static void sum_pages(struct origins *origins)
{
	const struct view *const   view = &origins->view;
	const struct groups *const groups = &view->pages->groups;
	struct origin_count       *row = &origins->sums[(size_t)view->held_pages * groups->count];
	uint32_t                   page, g;

	memset(row, 0, groups->count * sizeof(*row));
	for (page = view->held_pages; page < view->page_count; page++, row += groups->count) {
		const struct origin_columns columns = full_page(view, page);

		for (g = 0; g < groups->count; g++) {
			const struct group *const group = &groups->group[g];

			row[groups->count + g] = row[g];
			add_columns(&row[groups->count + g], group, page, page * group->page_blocks,
				    (page + 1) * group->page_blocks, columns);
		}
	}
}

void origins_count(struct origins *origins, const struct view *view, const struct kvs_namespace *space,
		   const struct tail *tails, uint32_t tail_count, const uint64_t *tail_hints)
{
	uint32_t tail;

	KVS_ASSERT_CMP(view->pages->groups.count, ==, origins->group_count);
	KVS_ASSERT_CMP(view->page_count, <=, origins->page_max);
	KVS_ASSERT_CMP(view->held_pages, <=, view->page_count);
	KVS_ASSERT_CMP(tail_count, <=, origins->tail_max);
	origins->view = *view;
	origins->tail_hints = tail_hints;
	for (tail = 0; tail < tail_count; tail++)
		origins->tail_entries[tail] = pages_find(view->pages, space, &tails[tail].hash);
	sum_pages(origins);
}

struct origin_count origins_before(const struct origins *origins, uint32_t g, uint32_t position)
{
	const struct view *const  view = &origins->view;
	const struct group *const group = &view->pages->groups.group[g];
	const uint32_t            page = position / group->page_blocks;
	struct origin_count       count;

	if (page < view->held_pages)
		return (struct origin_count){ 0 };
	count = origins->sums[(size_t)page * origins->group_count + g];
	if (position % group->page_blocks > 0) {
		add_columns(&count, group, page, page * group->page_blocks, position,
			    full_page(view, page));
	}
	return count;
}

struct origin_count origins_needed(const struct origins *origins, const struct boundary *boundary,
				   uint32_t g)
{
	const struct group *const group = &origins->view.pages->groups.group[g];
	const uint32_t            full = boundary->pages * group->page_blocks;
	struct origin_count       count, before;
	uint32_t                  first, end;

	match_needed(group, boundary->tokens, &first, &end);
	count = origins_before(origins, g, end < full ? end : full);
	before = origins_before(origins, g, first < full ? first : full);
	count.host -= before.host;
	count.store -= before.store;
	count.nowhere -= before.nowhere;
	if (boundary->tail != TAIL_NONE && end > full) {
		add_columns(&count, group, boundary->pages, first > full ? first : full, end,
			    origins_tail(origins, boundary->tail));
	}
	return count;
}
