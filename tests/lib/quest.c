/* SPDX-License-Identifier: Apache-2.0 */
/* See quest.h. */
#include "quest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

const struct group_spec quest_full_only[1] = { { "F", GROUP_FULL, 4, 0, 1 } };
const struct group_spec quest_full_state[2] = { { "F", GROUP_FULL, 4, 0, 1 },
						{ "M", GROUP_STATE, 4, 0, 1 } };
const struct group_spec quest_full_two_states[3] = { { "F", GROUP_FULL, 4, 0, 1 },
						     { "M", GROUP_STATE, 4, 0, 1 },
						     { "N", GROUP_STATE, 4, 0, 1 } };

void quest_open(struct quest *quest, const struct group_spec *specs, uint32_t count, uint32_t page_tokens)
{
	struct groups groups;
	uint32_t      i;

	*quest = (struct quest){ .space = { "space" } };
	assert_int_equal(groups_make(specs, count, page_tokens, &groups, NULL), 0);
	assert_int_equal(pages_open(&quest->pages, &groups, QUEST_PAGES + QUEST_TAILS), 0);
	for (i = 0; i < QUEST_PAGES; i++)
		quest->hashes[i] = (struct prefix_hash){ { 1, (uint8_t)i } };
	quest->view = (struct view){ .pages = &quest->pages,
				     .entries = quest->entries,
				     .page_count = QUEST_PAGES,
				     .held_in = HELD_DEVICE | HELD_HOST };
	quest->limits = (struct query_limits){ .page_max = QUEST_PAGES,
					       .tail_max = QUEST_TAILS,
					       .key_max = 100,
					       .lookahead_tokens = 1000 };
	quest->ask = (struct query_ask){ .view = &quest->view,
					 .space = &quest->space,
					 .hashes = quest->hashes,
					 .tails = quest->tails,
					 .bound_tokens = QUEST_PAGES * page_tokens,
					 .credits = 100 };
}

void quest_close(struct quest *quest)
{
	query_close(&quest->query);
	pages_close(&quest->pages);
}

void quest_hold(struct quest *quest, enum stratum_id stratum, uint32_t g, uint32_t first, uint32_t end)
{
	const struct group *const group = &quest->pages.groups.group[g];
	uint32_t                  page, i;

	for (page = first; page < end; page++) {
		for (i = 0; i < group->page_blocks; i++) {
			pages_add(&quest->pages, &quest->space, &quest->hashes[page],
				  group->first_column + i, stratum, 1);
		}
	}
}

void quest_tail(struct quest *quest, uint32_t tokens)
{
	quest->tails[quest->ask.tail_count++] = (struct tail){ tokens, { { 2, (uint8_t)tokens } } };
}

static int say_key(const struct query *query, uint32_t i, char *text, size_t size)
{
	const struct query_key *const key = &query->keys[i];
	const struct groups *const    groups = &query->groups;
	const struct group *const     group = &groups->group[groups->column_group[key->column]];
	char                          offset[16] = "";

	if (group->page_blocks > 1)
		snprintf(offset, sizeof(offset), ".%u", key->column - group->first_column);
	return snprintf(text, size, " %s%u%s%s", group->spec.name, key->page, offset,
			key->tail == TAIL_NONE ? "" : "t");
}

static const char *const reasons[] = { [QUERY_ASKED] = "asked",
				       [QUERY_COVERED] = "covered",
				       [QUERY_SHORT] = "short",
				       [QUERY_NO_BOUNDARY] = "no boundary",
				       [QUERY_CREDITS] = "credits",
				       [QUERY_ABSENT] = "absent" };

const char *quest_plan(struct quest *quest)
{
	const struct query *const query = &quest->query;
	enum query_bypass         bypass;
	size_t                    used = 0;
	uint32_t                  i, key = 0;

	query_close(&quest->query);
	assert_int_equal(query_open(&quest->query, &quest->pages.groups, &quest->limits, NULL), 0);
	pages_find_all(&quest->pages, &quest->space, quest->hashes, QUEST_PAGES, quest->entries);
	bypass = query_plan(&quest->query, &quest->ask);
	query_audit(&quest->query, &quest->ask);
	assert_int_equal(query->counts.plans[bypass], 1);
	if (bypass != QUERY_ASKED)
		return reasons[bypass];
	for (i = 0; i < query->boundary_count; i++) {
		used += (size_t)snprintf(quest->said + used, sizeof(quest->said) - used, "%s%u:",
					 i ? "; " : "", query->boundaries[i].at.tokens);
		for (; key < query->boundaries[i].key_end; key++) {
			used += (size_t)say_key(query, key, quest->said + used,
						sizeof(quest->said) - used);
		}
	}
	return quest->said;
}
