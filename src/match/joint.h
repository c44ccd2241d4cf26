/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The longest prefix that every group can restore at one boundary.
 *
 * match_run() walks from the left and stops at the first hole; match_window() walks from the right
 * and looks for a run of L blocks that ends at a boundary.  The joint boundary is their fix point:
 * each group is matched under the bound that the others left, closed groups first, until nothing
 * moves.  It is the greatest page boundary that all groups support, in whatever order they are asked
 * (model test: brute force over all boundaries).
 *
 * Cost   One pass over the positions of each group, however often the others cut its run: what is known
 *        to be held is not asked again.  A page whose blocks are all there, or all missing, is one step.
 */
#ifndef MATCH_JOINT_H
#define MATCH_JOINT_H

#include "match/view.h"

/* Where the run of held positions that begins at `begin` ends, in [begin, end]. */
uint32_t match_run(const struct view *view, const struct group *group, uint32_t begin,
		   uint32_t end);

/*
 * The largest boundary in (begin, end] whose L positions before it are held, fewer where `begin` is
 * nearer; begin when there is none.  L = 0 needs none: end.
 */
uint32_t match_window(const struct view *view, const struct group *group, uint32_t begin,
		      uint32_t end);

struct joint {
	uint32_t pages;        /* the joint boundary, absolute; view->held_pages when nothing is behind */
	uint32_t closed_pages; /* how far the FULL groups alone reach; 0 when there is none */
};

/*
 * Pages [view->held_pages, page_bound) are asked; page_bound is at most view->page_count, and its tokens at
 * most TOKENS_MAX (both asserted).
 */
struct joint match_joint(const struct view *view, uint32_t page_bound);

/*
 * Can every group restore a prefix of exactly so many tokens?  A boundary inside a page is that of a
 * tail: its own entry stands in view->entries[tokens / P].  The view must reach so far (asserted).
 */
bool match_legal(const struct view *view, uint64_t tokens);

/*
 * The positions of a group that a restore at a boundary of so many tokens uses: [first, end).  What is left
 * of first are holes in a table, whether held or not.  A boundary inside a block can need one block more
 * than the lookback.  A window of 1 uses none: first = end is the block of the next token.
 */
void match_needed(const struct group *group, uint64_t tokens, uint32_t *ret_first,
		  uint32_t *ret_end);

#endif
