/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See chunk.h: how long a request may be.  Each group's worst moment is counted as if all came at
 * once, so that a request that is let in can always be finished once it is alone.
 */
#include "sched/chunk.h"

/*
 * What the limit of one request depends on; signed, because differences of it may be less than
 * none.
 */
struct worst {
	const struct chunk_limits *limits;
	int64_t                    tokens; /* T: prompt and output */
	int64_t                    prompt; /* M: all but the last one, when it comes back from a retraction */
	int64_t                    chunk;  /* C */
	int64_t                    page;   /* P */
	int64_t                    step;   /* D: a PREFILL rank decodes nothing */
	int64_t                    ahead;  /* tokens of forwards that are planned while one runs */
};

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t blocks(const struct group *group, int64_t tokens)
{
	return (tokens + group->spec.block_tokens - 1) / group->spec.block_tokens;
}

static struct worst worst_of(const struct chunk_limits *limits, uint32_t tokens)
{
	const int64_t step = limits->prefill_role ? 0 : limits->decode_tokens;

	return (struct worst){
		.limits = limits,
		.tokens = tokens,
		.prompt = most((int64_t)tokens - least(step, 1), 0),
		.chunk = limits->chunk_tokens,
		.page = limits->groups->page_tokens,
		.step = step,
		.ahead = step * limits->overlap_depth,
	};
}

static int64_t dense_blocks(const struct worst *worst, const struct group *group)
{
	return blocks(group, worst->prompt + worst->step + worst->ahead);
}

/*
 * So many tokens behind those that a window of them attends to, which may begin anywhere in a
 * block.
 */
static int64_t span_blocks(const struct group *group, int64_t tokens)
{
	return blocks(group,
		      (int64_t)group->window_tokens - 1 + tokens + group->spec.block_tokens - 1);
}

/* The longest tail that may be split off a last chunk whose body ends at `body` tokens or later. */
static int64_t tail_blocks(const struct worst *worst, const struct group *group, int64_t body)
{
	const int64_t tail = least(least(worst->page - 1, worst->chunk - worst->page),
				   worst->prompt - body);

	if (worst->limits->decode_role || !worst->limits->prefix_cache || tail <= 0)
		return 0;
	return blocks(group, tail);
}

/*
 * The checkpoint before a chunk, if there was one, and that of its end; the same with a tail behind
 * it; and when it decodes the state before the last step, of which one token may have been right,
 * and the room of the next one.
 */
static int64_t state_blocks(const struct worst *worst, const struct group *group)
{
	const int64_t lookback = group->lookback;
	const int64_t first_tail = tail_blocks(worst, group, worst->page);
	const int64_t later_tail = tail_blocks(worst, group, 2 * worst->page);
	int64_t       count = most(2, span_blocks(group, 2 * worst->step + worst->ahead - 1));

	if (worst->tokens == 0)
		return 0;
	if (worst->prompt > worst->chunk)
		count = most(count, lookback + 1);
	if (first_tail > 0)
		count = most(count, 1 + first_tail);
	if (later_tail > 0)
		count = most(count, lookback + 1 + later_tail);
	return count;
}

/*
 * Any chunk may be the last one and as long as a chunk can be: earlier ones may have shared their
 * forward.  A DECODE rank takes a peer's prompt too: what was restored, and the window of the
 * prompt's end; it computes chunks when a request comes back from a retraction.
 */
static int64_t window_blocks(const struct worst *worst, const struct group *group)
{
	const int64_t behind = worst->step + worst->ahead;
	const int64_t longest = most(least(worst->prompt, worst->chunk), worst->step);
	int64_t       count = span_blocks(group, longest + behind);

	if (worst->limits->decode_role)
		count = most(count, group->lookback + span_blocks(group, behind));
	return least(count, dense_blocks(worst, group));
}

static int64_t group_worst(const struct worst *worst, const struct group *group)
{
	switch (group->spec.kind) {
	case GROUP_STATE:
		return state_blocks(worst, group);
	case GROUP_WINDOW:
		return window_blocks(worst, group);
	case GROUP_FULL:
		break;
	}
	return dense_blocks(worst, group);
}

static int64_t packed(const struct group *group, int64_t count)
{
	return (count + group->spec.packing - 1) / group->spec.packing;
}

/*
 * Blocks fill a parent one after the other.  Where old ones go, those that are left may begin
 * within one parent and end within another.
 */
static int64_t group_parents(const struct worst *worst, const struct group *group)
{
	const int64_t parents = packed(group, group_worst(worst, group));

	if (group_is_closed(group) || group->spec.packing == 1 || parents == 0)
		return parents;
	return least(parents + 1, most(parents, packed(group, dense_blocks(worst, group))));
}

uint64_t chunk_parents(const struct chunk_limits *limits, uint32_t tokens)
{
	const struct worst worst = worst_of(limits, tokens);
	uint64_t           parents = 0;
	uint32_t           g;

	for (g = 0; g < limits->groups->count; g++) {
		const struct group *const group = &limits->groups->group[g];

		parents += (uint64_t)group_parents(&worst, group);
	}
	return parents;
}

uint32_t chunk_request_limit(const struct chunk_limits *limits)
{
	const struct worst none = worst_of(limits, 0);
	/* No table reaches further. */
	uint32_t high = (uint32_t)most(TOKENS_MAX - none.step - none.ahead, 0);
	uint32_t low = 0;

	while (low < high) {
		const uint32_t middle = high - (high - low) / 2;

		if (chunk_parents(limits, middle) <= limits->parents)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}
