/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which blocks of a prompt are missing, and how many of them a boundary needs.
 *
 * They are counted once, as sums over the pages before each page; how many positions are missing
 * between two is then a difference of two sums, wherever they lie.  A tail is a page of its own.
 *
 * Limits  page_max pages and tail_max tails, fixed at open; nothing allocates after.
 */
#ifndef PLAN_MISSES_H
#define PLAN_MISSES_H

#include <stddef.h>
#include <stdint.h>

#include "match/joint.h"
#include "match/tail.h"

struct misses {
	struct groups      groups;
	uint32_t           page_max;
	uint32_t           tail_max;
	const struct view *view;         /* of the last count; borrowed as long as that is asked for */
	uint32_t          *sums;         /* [page][group]: positions missing in the pages before */
	uint32_t          *tail_entries; /* of each tail in the index; SLOT_NONE */
};

/* 0, or -ENOMEM. */
int    misses_open(struct misses *misses, const struct groups *groups, uint32_t page_max,
		   uint32_t tail_max);
void   misses_close(struct misses *misses);

/* Count the first page_count pages of a view, and look up the tails. */
void misses_count(struct misses *misses, const struct view *view, uint32_t page_count,
		  const struct kvs_namespace *space, const struct tail *tails, uint32_t tail_count);

/* Which columns of blocks [first, end) of a page of a group are missing. */
uint64_t misses_page(const struct misses *misses, uint32_t page, const struct group *group,
		     uint32_t first, uint32_t end);

/* Which blocks of a tail are held, as a bitmap of its columns. */
uint64_t misses_tail_held(const struct misses *misses, uint32_t tail);

/* What a boundary needs of one group: positions of full pages, then columns of its tail. */
struct need {
	uint32_t first;
	uint32_t end;          /* of the positions in full pages; first or less: none */
	uint32_t before_first; /* positions missing before these two */
	uint32_t before_end;
	uint64_t tail_missing; /* columns of the tail that are needed and missing */
};

void misses_need(const struct misses *misses, const struct boundary *boundary, uint32_t g,
		 struct need *ret_need);

#endif
