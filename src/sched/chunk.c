/* SPDX-License-Identifier: Apache-2.0 */
/* See chunk.h. */
#include "sched/chunk.h"

/* --- chunks ----------------------------------------------------------------------------------- */

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t chunk_align(const struct chunk_ask *ask)
{
	const uint32_t inside = ask->first % ask->page_tokens;
	uint32_t       size = least(ask->unscheduled, ask->budget);

	if (ask->promotion > ask->first)
		size = least(size, ask->promotion - ask->first);
	if (size == ask->unscheduled)
		return size;
	if (inside == 0)
		return size - size % ask->page_tokens;
	return size < ask->page_tokens - inside ? 0 : ask->page_tokens - inside;
}

uint32_t chunk_final_tail(const struct chunk_ask *ask, uint32_t size)
{
	const uint32_t tail = (uint32_t)(((uint64_t)ask->first + size) % ask->page_tokens);

	return size == ask->unscheduled && tail < size ? tail : 0;
}

/* --- demands ---------------------------------------------------------------------------------- */

static uint32_t most(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* The decode step follows the prompt's end, or the tail that is reserved with this chunk. */
static uint32_t reserve_of(const struct chunk_shape *shape)
{
	return shape->decode || shape->completes || shape->tail > 0 ? shape->reserve : 0;
}

static uint32_t last_block(const struct group *group, uint32_t end)
{
	return (end - 1) / group->spec.block_tokens;
}

static struct demand local_demand(const struct group *group, const struct chunk_shape *shape)
{
	const uint32_t end = shape->begin + shape->tokens;

	if (group->spec.kind == GROUP_STATE)
		return demand_sparse(end, shape->tail, last_block(group, end));
	return demand_dense(shape->tokens, reserve_of(shape));
}

/* The first block that a query behind the prompt attends to, or that was not restored. */
static uint32_t first_landing(const struct group *group, const struct chunk_shape *shape)
{
	const uint32_t window = group->window_tokens;
	const uint32_t seen = shape->prompt < window ? 0 : shape->prompt - window + 1;

	return most(shape->hit, seen) / group->spec.block_tokens;
}

static struct demand remote_demand(const struct group *group, const struct chunk_shape *shape)
{
	switch (group->spec.kind) {
	case GROUP_STATE:
		return demand_sparse(shape->prompt, 0, last_block(group, shape->prompt));
	case GROUP_WINDOW:
		return demand_sparse(shape->prompt, shape->reserve, first_landing(group, shape));
	case GROUP_FULL:
		break;
	}
	return demand_dense(shape->tokens, shape->reserve);
}

void chunk_demands(const struct groups *groups, const struct chunk_shape *shape,
		   struct demand *ret_demands)
{
	uint32_t g;

	for (g = 0; g < groups->count; g++) {
		const struct group *const group = &groups->group[g];

		if (shape->decode)
			ret_demands[g] = demand_dense(shape->tokens, shape->reserve);
		else if (shape->local)
			ret_demands[g] = local_demand(group, shape);
		else
			ret_demands[g] = remote_demand(group, shape);
	}
}
