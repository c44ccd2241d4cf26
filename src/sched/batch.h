/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A forward: its rows, and the block table of each group for all of them.
 *
 * Prefills come before decodes, each in the order of the plan; prefills are all local, or all a
 * peer's.  A table has a line a row, as wide as the widest of them: slot i of a line covers tokens
 * [i * q, (i + 1) * q) of its request for as long as it lives, 0 is a hole, -1 lies behind the
 * line's end.  Slots are never moved together.
 *
 * Limits   row_max rows; tables of slot_max slots a line; nothing allocates after open.
 * Threads  The cache thread only.
 */
#ifndef SCHED_BATCH_H
#define SCHED_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coord/table.h"
#include "match/groups.h"

enum batch_kind {
	BATCH_PREFILL,
	BATCH_REMOTE, /* the blocks of a prompt that a peer computes */
	BATCH_DECODE
};

struct batch_row {
	const char      *id;
	enum batch_kind  kind;
	uint32_t         place;       /* of the request, 1 .. batch_max, as long as it computes */
	uint32_t         begin;       /* tokens whose cache is there */
	uint32_t         token_count; /* of this forward; a decode's may reach beyond the known ones */
	const int32_t   *tokens;      /* a prefill's token_count; NULL in a decode: what was sampled last */
	bool             ends_prompt; /* a token is sampled behind this row */
	uint64_t         fence;       /* ticket of the copies that must have passed before; 0: none */
};

struct batch_table {
	const int32_t *slots; /* row_count lines of `width` */
	uint32_t       width;
};

struct batch {
	const struct batch_row *rows;
	uint32_t                row_count;
	uint32_t                prefill_count; /* of them, the first ones */
	struct batch_table      tables[GROUPS_MAX];
	/* Fresh blocks of each group, to be made blank before copies and forward. */
	const uint32_t         *fresh[GROUPS_MAX];
	uint32_t                fresh_count[GROUPS_MAX];
};

/* Builds one batch after the other. */
struct batcher {
	uint32_t          group_count;
	uint32_t          row_max;
	uint32_t          slot_max[GROUPS_MAX];
	struct batch_row *rows;
	const struct table **tables; /* of each row, group_count */
	uint32_t          row_count;
	uint32_t          prefill_count;
	int32_t          *slots[GROUPS_MAX];
	uint32_t         *fresh[GROUPS_MAX];
	uint32_t          fresh_max[GROUPS_MAX];
	uint32_t          fresh_count[GROUPS_MAX];
};

/* slot_max, fresh_max: of each group: slots of a table, blocks on Device.  0, or -ENOMEM. */
int    batcher_open(struct batcher *batcher, uint32_t group_count, uint32_t row_max,
		    const uint32_t *slot_max, const uint32_t *fresh_max);
void   batcher_close(struct batcher *batcher);
size_t batcher_bytes(const struct batcher *batcher); /* memory in use */

void batch_begin(struct batcher *batcher);
/*
 * One more row; asserts that one fits, and that local prefills and a peer's do not meet.  tables,
 * one a group, NULL where the request has none, are read by batch_end().
 */
void batch_add(struct batcher *batcher, const struct batch_row *row,
	       const struct table *const *tables);
/* Fresh blocks of an admission, in the lists of cache_admitted. */
void batch_add_fresh(struct batcher *batcher, const uint32_t *fresh, const uint32_t *fresh_count);
/* Good until the next batch_begin(). */
struct batch batch_end(struct batcher *batcher);

#endif
