/* SPDX-License-Identifier: Apache-2.0 */
/* See boundary.h: two lists, each longest first, merged. */
#include "match/boundary.h"

struct boundary_walk boundary_walk(const struct tail *tails, uint32_t tail_count, uint32_t page_tokens,
				   uint32_t page_count, uint32_t reach)
{
	struct boundary_walk walk = { .tails = tails, .tail_count = tail_count,
				      .page_tokens = page_tokens, .page = reach / page_tokens };

	if (walk.page > page_count)
		walk.page = page_count;
	while (walk.tail < tail_count && tails[walk.tail].tokens > reach)
		walk.tail++;
	return walk;
}

struct boundary boundary_next(struct boundary_walk *walk)
{
	const uint32_t page = walk->page;
	const uint32_t tokens = page * walk->page_tokens;

	if (walk->tail < walk->tail_count && walk->tails[walk->tail].tokens > tokens) {
		const uint32_t of_tail = walk->tails[walk->tail].tokens;

		return (struct boundary){ of_tail, of_tail / walk->page_tokens, walk->tail++ };
	}
	if (walk->page > 0)
		walk->page--;
	return (struct boundary){ tokens, page, TAIL_NONE };
}
