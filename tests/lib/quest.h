/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A prompt that is partly there, and what a store would be asked for.  A plan is told as its boundaries,
 * longest first, each with the keys it adds: group, page, offset where a page has several blocks of the
 * group, and "t" for a tail.
 */
#ifndef LIB_QUEST_H
#define LIB_QUEST_H

#include "plan/query.h"

#define QUEST_PAGES 8u
#define QUEST_TAILS 3u

struct quest {
	struct kvs_namespace space;
	struct pages         pages;
	struct prefix_hash   hashes[QUEST_PAGES];
	struct tail          tails[QUEST_TAILS];
	uint32_t             entries[QUEST_PAGES];
	struct view          view;
	struct query_limits  limits;
	struct query_ask     ask;
	struct query         query;
	char                 said[512];
};

/* P = q = 4. */
extern const struct group_spec quest_full_only[1];
extern const struct group_spec quest_full_state[2];
extern const struct group_spec quest_full_two_states[3];

/* A prompt of which the first QUEST_PAGES pages may be restored; nothing is held. */
void quest_open(struct quest *quest, const struct group_spec *specs, uint32_t count, uint32_t page_tokens);
void quest_close(struct quest *quest);

/* Group g of pages [first, end) is held, all of its blocks. */
void quest_hold(struct quest *quest, enum stratum_id stratum, uint32_t g, uint32_t first, uint32_t end);
/* A further tail, shorter than the last one. */
void quest_tail(struct quest *quest, uint32_t tokens);

/* Plan anew with the limits.  "32: F7 M7; 28: M6", or why there is nothing. */
const char *quest_plan(struct quest *quest);

#endif
