/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cache groups: what a model keeps of its tokens, and in which pieces.
 *
 * Scheduling speaks tokens, allocation speaks blocks; only this file converts.  A page is P tokens
 * (page_tokens), the unit that is hashed.  A block of a group is q tokens (block_tokens), a divisor of P,
 * so that a page is P / q blocks of the group.
 *
 *   FULL    keeps every block; a prefix is restorable as far as all of them are there
 *   WINDOW  a token attends to the window_tokens that end with itself: only the blocks just before
 *           a boundary are needed to restore it
 *   STATE   a recurrent state: one checkpoint at the boundary.  It is a window of 2 in everything
 *           but publication
 *
 * The *lookback* L is how many blocks before a boundary are needed: ceil((window_tokens - 1) / q),
 * 0 for FULL, where all are.  A window of 1 needs none.
 *
 * Columns: the blocks of a page of all groups in a row, group by group; group g has columns
 * first_column .. first_column + page_blocks - 1.
 */
#ifndef MATCH_GROUPS_H
#define MATCH_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define GROUPS_MAX 16u
/* Blocks of one page over all groups; a bitmap of them is one word. */
#define COLUMNS_MAX 64u
/* A longer prompt's boundaries would not fit into a block table's 32 bits. */
#define TOKENS_MAX INT32_MAX

/* Of a group in a sentence: its id and its name, cut so that field and rule have room behind it. */
#define GROUP_LABEL "group %u \"%.64s\": "

enum group_kind { GROUP_FULL, GROUP_WINDOW, GROUP_STATE };

/* What a caller says of a group.  Its id is its position. */
struct group_spec {
	const char     *name;          /* for messages */
	enum group_kind kind;
	uint32_t        block_tokens;  /* q */
	uint32_t        window_tokens; /* WINDOW: 1 or more; else 0 */
	uint32_t        packing;       /* K: blocks that fit into one parent of the pool, 1 or more */
};

struct group {
	struct group_spec spec;
	uint32_t          id;
	uint32_t          window_tokens; /* 2 for STATE, 0 for FULL */
	uint32_t          lookback;      /* L */
	uint32_t          page_blocks;   /* P / q */
	uint32_t          first_column;
};

struct groups {
	uint32_t     page_tokens;   /* P */
	uint32_t     count;
	uint32_t     columns;
	uint32_t     packing_max; /* of all groups: so many places a parent needs */
	uint8_t      column_group[COLUMNS_MAX]; /* whose block a column is */
	struct group group[GROUPS_MAX];
};

/**
 * Check and work out a model's groups.
 *
 * Owner   Copies the specs; the names stay the caller's and must outlive the result.
 * Errors  KVS_E_INVALID: the sentence names the group and the field.
 */
int groups_make(const struct group_spec *specs, uint32_t count, uint32_t page_tokens,
		struct groups *ret_groups, struct kvs_error *err);

/* FULL groups: what is right of a hole is lost. */
static inline bool group_is_closed(const struct group *group)
{
	return group->spec.kind == GROUP_FULL;
}

/* --- tokens and blocks ------------------------------------------------------------------------ */

/* How many blocks so many tokens take, the last one perhaps in part; at most TOKENS_MAX (asserted). */
static inline uint32_t group_blocks(const struct group *group, uint64_t tokens)
{
	KVS_ASSERT_CMP(tokens, <=, TOKENS_MAX);
	return (uint32_t)((tokens + group->spec.block_tokens - 1) / group->spec.block_tokens);
}

/* Where a block begins: the tokens before it. */
static inline uint64_t group_tokens_at(const struct group *group, uint64_t position)
{
	return position * group->spec.block_tokens;
}

/* How many tokens of a prefix lie in a block that it reaches. */
static inline uint32_t group_tokens_in(const struct group *group, uint32_t position, uint64_t tokens)
{
	const uint64_t rest = tokens - group_tokens_at(group, position);

	return rest < group->spec.block_tokens ? (uint32_t)rest : group->spec.block_tokens;
}

/*
 * How many leading blocks no query from position `computed` on attends to any more; 0 for FULL.
 * computed is the number of tokens whose cache exists.
 */
uint32_t group_expired_blocks(const struct group *group, uint64_t computed);

/* --- blocks and pages ------------------------------------------------------------------------- */

/* Which block of its page a position is, among those of all groups. */
static inline uint32_t group_column(const struct group *group, uint32_t position)
{
	return group->first_column + position % group->page_blocks;
}

/* The columns of positions [first, end) of a group that lie in this page, as bits of its bitmap. */
static inline uint64_t group_columns(const struct group *group, uint32_t page, uint32_t first,
				     uint32_t end)
{
	const uint32_t start = page * group->page_blocks;
	const uint32_t from = first > start ? first - start : 0;
	const uint32_t to = end < start + group->page_blocks ? end - start : group->page_blocks;

	if (end <= start || from >= to)
		return 0;
	return (UINT64_MAX >> (COLUMNS_MAX - (to - from))) << (group->first_column + from);
}

/* The first of the blocks before block boundary `end` that a restore at it needs: end - L, or 0. */
static inline uint32_t group_first_needed(const struct group *group, uint32_t end)
{
	if (group_is_closed(group) || group->lookback > end)
		return 0;
	return end - group->lookback;
}

#endif
