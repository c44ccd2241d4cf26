/* SPDX-License-Identifier: Apache-2.0 */
/* See origin.h. */
#include "coord/origin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "match/joint.h"

int origins_open(struct origins *origins, const struct pages *pages, uint32_t page_max,
		 uint32_t tail_max)
{
	*origins = (struct origins){ .page_max = page_max, .tail_max = tail_max };
	origins->view.pages = pages;
	origins->entries = malloc(page_max * sizeof(*origins->entries));
	origins->tail_entries = malloc(((size_t)tail_max + 1) * sizeof(*origins->tail_entries));
	origins->sums = malloc(((size_t)page_max + 1) * pages->groups.count * sizeof(*origins->sums));
	if (origins->entries && origins->tail_entries && origins->sums)
		return 0;
	origins_close(origins);
	return -ENOMEM;
}

void origins_close(struct origins *origins)
{
	free(origins->sums);
	free(origins->tail_entries);
	free(origins->entries);
	*origins = (struct origins){ 0 };
}

size_t origins_bytes(const struct origins *origins)
{
	if (!origins->sums)
		return 0;
	return origins->page_max * sizeof(*origins->entries) +
	       ((size_t)origins->tail_max + 1) * sizeof(*origins->tail_entries) +
	       ((size_t)origins->page_max + 1) * origins->view.pages->groups.count *
		       sizeof(*origins->sums);
}

/* --- columns ---------------------------------------------------------------------------------- */

static struct origin_columns columns_of(const struct pages *pages, uint32_t entry, uint64_t hints)
{
	uint64_t device = 0, host = 0;

	if (entry != SLOT_NONE) {
		device = pages->entries[entry].held[STRATUM_DEVICE];
		host = pages->entries[entry].held[STRATUM_HOST];
	}
	return (struct origin_columns){ .host = host & ~device,
					.store = hints & ~(device | host),
					.nowhere = ~(device | host | hints) };
}

static struct origin_columns full_page(const struct origins *origins, uint32_t page)
{
	const struct view *const view = &origins->view;

	if (page < view->floor)
		return (struct origin_columns){ 0 };
	return columns_of(view->pages, view->entries[page], view->hints ? view_hints(view, page) : 0);
}

struct origin_columns origins_page(const struct origins *origins, const struct boundary *end,
				   uint32_t page)
{
	if (page < end->pages)
		return full_page(origins, page);
	KVS_ASSERT_CMP(page, ==, end->pages);
	KVS_ASSERT_CMP(end->tail, !=, TAIL_NONE);
	return columns_of(origins->view.pages, origins->tail_entries[end->tail],
			  origins->tail_hints ? origins->tail_hints[end->tail] : 0);
}

uint64_t origins_mask(const struct group *group, uint32_t page, uint32_t first, uint32_t end)
{
	const uint32_t start = page * group->page_blocks;
	const uint32_t from = first > start ? first - start : 0;
	const uint32_t to = end < start + group->page_blocks ? end - start : group->page_blocks;

	if (end <= start || from >= to)
		return 0;
	return (UINT64_MAX >> (COLUMNS_MAX - (to - from))) << (group->first_column + from);
}

/* --- sums ------------------------------------------------------------------------------------- */

static uint32_t popcount(uint64_t bits)
{
	return (uint32_t)__builtin_popcountll(bits);
}

static void add_columns(struct origin_count *count, struct origin_columns columns, uint64_t mask)
{
	count->host += popcount(columns.host & mask);
	count->store += popcount(columns.store & mask);
	count->nowhere += popcount(columns.nowhere & mask);
}

void origins_count(struct origins *origins, const struct cache_prompt *prompt, uint32_t floor,
		   const uint64_t *page_hints, const uint64_t *tail_hints)
{
	const struct pages *const  pages = origins->view.pages;
	const struct groups *const groups = &pages->groups;
	struct origin_count       *row = &origins->sums[(size_t)floor * groups->count];
	uint32_t                   page, tail, g;

	KVS_ASSERT_CMP(prompt->page_count, <=, origins->page_max);
	KVS_ASSERT_CMP(prompt->tail_count, <=, origins->tail_max);
	KVS_ASSERT_CMP(floor, <=, prompt->page_count);
	origins->view = (struct view){ .pages = pages, .entries = origins->entries,
				       .page_count = prompt->page_count, .floor = floor,
				       .hints = page_hints };
	origins->tail_hints = tail_hints;
	if (prompt->page_count > floor) {
		pages_find_all(pages, prompt->space, prompt->hashes + floor,
			       prompt->page_count - floor, origins->entries + floor);
	}
	for (tail = 0; tail < prompt->tail_count; tail++) {
		origins->tail_entries[tail] =
			pages_find(pages, prompt->space, &prompt->tails[tail].hash);
	}
	memset(row, 0, groups->count * sizeof(*row));
	for (page = floor; page < prompt->page_count; page++, row += groups->count) {
		const struct origin_columns columns = full_page(origins, page);

		for (g = 0; g < groups->count; g++) {
			row[groups->count + g] = row[g];
			add_columns(&row[groups->count + g], columns, group_mask(&groups->group[g]));
		}
	}
}

/* In the full pages, from the floor up to a position. */
static struct origin_count count_before(const struct origins *origins, uint32_t g,
					uint32_t position)
{
	const struct groups *const groups = &origins->view.pages->groups;
	const struct group *const  group = &groups->group[g];
	const uint32_t             page = position / group->page_blocks;
	struct origin_count        count;

	if (page < origins->view.floor)
		return (struct origin_count){ 0 };
	count = origins->sums[(size_t)page * groups->count + g];
	if (position % group->page_blocks > 0) {
		add_columns(&count, full_page(origins, page),
			    origins_mask(group, page, page * group->page_blocks, position));
	}
	return count;
}

struct origin_count origins_needed(const struct origins *origins, const struct boundary *end,
				   uint32_t g)
{
	const struct group *const group = &origins->view.pages->groups.group[g];
	const uint32_t            full = end->pages * group->page_blocks;
	struct origin_count       count, before;
	uint32_t                  first, needed_end;

	match_needed(group, end->tokens, &first, &needed_end);
	count = count_before(origins, g, needed_end < full ? needed_end : full);
	before = count_before(origins, g, first < full ? first : full);
	count.host -= before.host;
	count.store -= before.store;
	count.nowhere -= before.nowhere;
	if (end->tail != TAIL_NONE && needed_end > full) {
		add_columns(&count, origins_page(origins, end, end->pages),
			    origins_mask(group, end->pages, first, needed_end));
	}
	return count;
}
