/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reservation worked out the slow way, on a copy of what Host holds.
 *
 * What a boundary needs follows from the tokens that a next query would attend to, position by
 * position; every boundary is tried, the longest first; Host is a handful of parents whose blocks are
 * taken and evicted one by one.  Whether a boundary could have room at all is asked of every way to
 * give whole parents to groups.
 *
 * Pages have the numbers of a box; those of tails begin at NAIVE_TAILS.
 */
#ifndef NAIVE_RESERVE_H
#define NAIVE_RESERVE_H

#include "cache_box.h"
#include "coord/reserve.h"

#define NAIVE_TAILS 8u
#define NAIVE_TAIL_MAX 3u
#define NAIVE_PAGES 14u
#define NAIVE_PARENTS 5u
#define NAIVE_PACKING 3u
#define NAIVE_COLUMNS 16u
#define NAIVE_ROWS 64u

struct naive_cell {
	bool     used;
	uint32_t group;
	uint32_t refs;
	bool     published; /* as this, */
	uint32_t page;
	uint32_t offset;
	uint64_t epoch;
	uint32_t acquired;
};

struct naive_prompt {
	uint32_t page_count;
	uint32_t tail_count;
	uint32_t tail_tokens[NAIVE_TAIL_MAX]; /* tail i has page NAIVE_TAILS + tail_page[i] */
	uint32_t tail_page[NAIVE_TAIL_MAX];
	bool     hinted[NAIVE_PAGES][NAIVE_COLUMNS];
	uint32_t credits;
	uint32_t row_max;
};

struct naive_row {
	uint32_t group, page, position;
};

struct naive_reserve {
	const struct groups *groups;
	uint32_t             parent_count;
	bool                 device[NAIVE_PAGES][NAIVE_COLUMNS];
	struct naive_cell    host[NAIVE_PARENTS][NAIVE_PACKING];
	/* The outcome; host has no cell any more that was evicted. */
	enum reserve_answer  answer, shortened_by;
	uint32_t             tokens, local_tokens, warm_count;
	struct naive_row     rows[NAIVE_ROWS];
	uint32_t             row_count;
};

/* What Device and Host hold now. */
void naive_look(const struct box *box, struct naive_reserve *ret_naive);

void naive_reserve(struct naive_reserve *naive, const struct naive_prompt *prompt);

/* --- naive_host.c ----------------------------------------------------------------------------- */

/* The page of a block that was taken. */
#define NAIVE_TAKEN UINT32_MAX

/* Is there a way to give whole parents to groups so that each has as many blocks as it needs? */
bool naive_has_room(const struct naive_reserve *naive, const uint32_t *needed);
/* As cache_host_acquire() takes a block; false when there is none. */
bool naive_take(struct naive_reserve *naive, uint32_t group);
/* Free all that were taken. */
void naive_let_go(struct naive_reserve *naive);

#endif
