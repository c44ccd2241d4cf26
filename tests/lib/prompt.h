/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One prompt and what is cached of it, for tests of matching.
 *
 * Positions of a group are drawn: "-xx-" says that positions 1 and 2 are held and 0 and 3 are not.
 */
#ifndef LIB_PROMPT_H
#define LIB_PROMPT_H

#include <stdint.h>

#include "match/joint.h"

#define PROMPT_PAGES_MAX 64u

struct prompt {
	struct pages         pages;
	struct kvs_namespace space;
	uint32_t             page_count;
	uint32_t             next_block;
	struct prefix_hash   hashes[PROMPT_PAGES_MAX];
	uint32_t             entries[PROMPT_PAGES_MAX];
};

/* The hash of a page of no tokens at all: pages of equal numbers are the same. */
struct prefix_hash page_hash(uint32_t number);

void prompt_open(struct prompt *prompt, const struct group_spec *specs, uint32_t count,
		 uint32_t page_tokens, uint32_t page_count);
void prompt_close(struct prompt *prompt);

/* Publish what is drawn, in blocks not seen before. */
void prompt_hold(struct prompt *prompt, enum stratum_id stratum, uint32_t group, const char *drawn);

/* Look the pages up.  Good until something is published or dropped. */
struct view prompt_view(struct prompt *prompt, uint32_t held_in, uint32_t held_pages);

/* Draw what a restore of so many pages uses of a group, behind the view's held pages. */
void prompt_draw(const struct view *view, uint32_t group, uint32_t pages, char *ret_drawn);

#endif
