/* SPDX-License-Identifier: Apache-2.0 */
/* See prompt.h. */
#include "prompt.h"

#include <string.h>

#include "base/err.h"
#include "base/prng.h"

struct prefix_hash page_hash(uint32_t number)
{
	struct prefix_hash hash;
	uint64_t           words[sizeof(hash) / 8];
	uint32_t           i;

	for (i = 0; i < ARRAY_COUNT(words); i++)
		words[i] = mix64(((uint64_t)number << 8) | i);
	memcpy(&hash, words, sizeof(hash));
	return hash;
}

void prompt_open(struct prompt *prompt, const struct group_spec *specs, uint32_t count,
		 uint32_t page_tokens, uint32_t page_count)
{
	struct groups groups;
	uint32_t      i;

	KVS_ASSERT_CMP(page_count, <=, PROMPT_PAGES_MAX);
	KVS_ASSERT(groups_make(specs, count, page_tokens, &groups, NULL) == 0);
	*prompt = (struct prompt){ .page_count = page_count, .next_block = 1 };
	memset(&prompt->space, 0x11, sizeof(prompt->space));
	KVS_ASSERT(pages_open(&prompt->pages, &groups, page_count) == 0);
	for (i = 0; i < page_count; i++)
		prompt->hashes[i] = page_hash(i);
}

void prompt_close(struct prompt *prompt)
{
	pages_audit(&prompt->pages);
	pages_close(&prompt->pages);
}

void prompt_hold(struct prompt *prompt, enum stratum_id stratum, uint32_t group, const char *drawn)
{
	const struct group *const g = &prompt->pages.groups.group[group];
	uint32_t                  i;

	for (i = 0; drawn[i]; i++) {
		if (drawn[i] == 'x') {
			pages_add(&prompt->pages, &prompt->space,
				  &prompt->hashes[i / g->page_blocks],
				  g->first_column + i % g->page_blocks, stratum,
				  prompt->next_block++);
		}
	}
}

struct view prompt_view(struct prompt *prompt, uint32_t held_in, uint32_t held_pages)
{
	pages_find_all(&prompt->pages, &prompt->space, prompt->hashes, prompt->page_count,
		       prompt->entries);
	return (struct view){ .pages = &prompt->pages, .entries = prompt->entries,
			      .page_count = prompt->page_count, .held_in = held_in,
			      .held_pages = held_pages };
}

void prompt_draw(const struct view *view, uint32_t group, uint32_t pages, char *ret_drawn)
{
	const struct groups *const groups = &view->pages->groups;
	const struct group *const  g = &groups->group[group];
	uint32_t                   first, end, i;

	match_needed(g, (uint64_t)pages * groups->page_tokens, &first, &end);
	end = pages * g->page_blocks;
	for (i = view->held_pages * g->page_blocks; i < end; i++)
		*ret_drawn++ = i >= first ? 'x' : '-';
	*ret_drawn = '\0';
}
