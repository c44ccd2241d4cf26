/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference engine over cache groups: what a forward reads of its block tables, and what it
 * writes.
 *
 *   FULL, WINDOW  a row a token, at its place in the block that covers it
 *   STATE         one checkpoint a block: the state after exactly n tokens lies in the block that
 *                 covers token n - 1.  Two slots: a forward over tokens [begin, end) reads the
 *                 checkpoint at begin and writes the one at end, and none between, though a table
 *                 may have blocks there; they can be one block
 *
 * A forward checks every row that its tables let it see before it writes any: all rows of FULL
 * groups before begin, those of WINDOW groups that the token at begin attends to, and the
 * checkpoint at begin.  A hole where it must read or write is wrong, too.  What is wrong is
 * counted, and the first of it named: request, group, position.
 *
 * Shape    Each layer of a group lies in a plane of its own: block b is at first + b * stride, row
 *          r of it 8 * r bytes behind.  Block 0 is the hole and never touched.
 * Threads  None of its own.
 */
#ifndef ENGINE_GROUPS_H
#define ENGINE_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "match/groups.h"

struct engine_plane {
	uint8_t *first; /* where block 0 would be */
	uint64_t stride;
};

struct engine_group {
	enum group_kind            kind;
	uint32_t                   block_tokens;  /* q */
	uint32_t                   window_tokens; /* WINDOW: 1 or more */
	uint32_t                   layers;        /* 1 or more */
	const struct engine_plane *planes;        /* of each layer; the caller's, held */
};

struct engine_fault {
	uint64_t request;
	uint32_t group;
	uint32_t position; /* the token; a checkpoint's is its last */
	uint32_t layer;
	bool     hole;     /* there was no block */
};

struct group_engine {
	struct engine_group group[GROUPS_MAX];
	uint32_t            count;
	uint64_t            rows_checked;
	uint64_t            checkpoints_checked;
	uint64_t            wrong; /* rows and checkpoints */
	uint64_t            wrong_bytes; /* of them; a hole is a whole one */
	struct engine_fault first; /* of those */
};

/* A block table of one group: slot i covers tokens [i * q, (i + 1) * q); 0 is a hole. */
struct engine_table {
	const uint32_t *slots;
	uint32_t        count;
};

struct engine_pass {
	uint64_t                   request;
	const int32_t             *tokens; /* of the request, up to end */
	uint32_t                   begin;  /* that many have their rows */
	uint32_t                   end;    /* as many have them afterwards; begin: check only */
	const struct engine_table *tables; /* one a group */
};

void group_engine_init(struct group_engine *engine, const struct engine_group *groups,
		       uint32_t count);

/* False when anything was wrong in this pass. */
bool group_engine_forward(struct group_engine *engine, const struct engine_pass *pass);

#endif
