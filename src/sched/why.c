/* SPDX-License-Identifier: Apache-2.0 */
/* Why a request computes what it might have restored: settled at its first admission. */
#include "sched/parts.h"

/*
 * Does no boundary that could be had lie behind the hit?  The bound itself is no page's end,
 * mostly.
 */
static bool is_full(const struct sched *sched, uint32_t hit, uint32_t bound)
{
	return hit >= bound - bound % sched->options.page_tokens;
}

static enum miss_reason reason_of(const struct sched *sched, const struct request *request,
				  uint32_t hit, uint32_t bound)
{
	const struct admission *const admission = &request->admission;

	if (is_full(sched, hit, bound))
		return MISS_NONE;
	if (!sched->options.prefix_cache)
		return MISS_NO_CACHE;
	if (sched->options.role == SCHED_DECODE)
		return MISS_ROLE;
	if (!sched->transfer)
		return MISS_NO_STORE;
	if (admission->outcome == READ_COVERED)
		return MISS_DISPLACED;
	if (admission->outcome != READ_READY && admission->outcome != READ_LOCAL)
		return MISS_STORAGE;
	/* It was told of a boundary, and does not reach it. */
	if (hit >= admission->shortfall.tokens)
		return MISS_STORAGE;
	if (storage_is_held(sched, request) || admission->outcome == READ_LOCAL)
		return MISS_DISPLACED;
	return MISS_HOLD_EXPIRED;
}

/*
 * Of Host's part what its own read brought, in the group of which it brought the most: groups
 * overlap.
 */
static uint32_t fetched_tokens(const struct sched *sched, const struct request *request,
			       const struct cache_admitted *admitted)
{
	const uint64_t of_host = admitted->host_tokens - admitted->device_tokens;
	uint64_t       tokens[GROUPS_MAX] = { 0 };
	uint64_t       most = 0;
	uint32_t       i;

	for (i = 0; i < admitted->load_count; i++) {
		const struct cache_move *const move = &admitted->moves[i];

		if (!storage_fetched(sched, request, move->group, move->source))
			continue;
		tokens[move->group] += move->tokens;
		if (tokens[move->group] > most)
			most = tokens[move->group];
	}
	return (uint32_t)(most < of_host ? most : of_host);
}

void why_admitted(struct sched *sched, struct request *request,
		  const struct cache_admitted *admitted, uint32_t bound)
{
	const struct admission *const admission = &request->admission;
	const uint32_t                hit = (uint32_t)admitted->host_tokens;

	if (request->admitted)
		return;
	request->admitted = true;
	request->explanation = (struct explanation){
		.reason = reason_of(sched, request, hit, bound),
		/* Frozen, or without a permit until now. */
		.read = sched->transfer && !admission->storage_prepared ? READ_FROZEN
									 : admission->outcome,
		.shortfall = admission->shortfall,
		.prompt_tokens = request->prefill,
		.bound_tokens = bound,
		.store_tokens = fetched_tokens(sched, request, admitted),
		.wait_ns = admission->wait_ns,
	};
	request->explanation.tokens[STRATUM_DEVICE] = (uint32_t)admitted->device_tokens;
	request->explanation.tokens[STRATUM_HOST] = hit - (uint32_t)admitted->device_tokens;
	explain_count(&sched->counts, &request->explanation);
}
