/* SPDX-License-Identifier: Apache-2.0 */
/* What a request has completed gets its names, as it goes and at its end. */
#include "sched/parts.h"

/* Only whose prefix cache is on names anything; what is retracted gets its names then. */
struct cache_completed completed_of(const struct sched *sched, struct request *request,
				    uint64_t computed)
{
	const uint32_t         known = computed < request->token_count ? (uint32_t)computed
									: request->token_count;
	const uint32_t         pages = known / sched->options.page_tokens;
	struct cache_completed completed = { .space = &sched->space, .hashes = request->hashes,
					     .page_count = pages, .new_begin = pages,
					     .computed = computed };

	request_hash(sched, request);
	if (pages < request->published)
		completed.page_count = completed.new_begin = request->published;
	if (!sched->options.prefix_cache || pages <= request->published)
		return completed;
	/*
	 * A step of several tokens leaves a state where it ends, not where all of them are sure:
	 * only the request's end says where that is.
	 */
	if (request->state == REQUEST_DECODING && sched->has_state &&
	    sched->options.decode_tokens > 1 && computed < request->token_count - 1) {
		completed.page_count = completed.new_begin = request->published;
		return completed;
	}
	completed.new_begin = request->published;
	completed.kind = computed == request->promotion ? CELL_PROMOTED
			 : computed >= request->prefill  ? CELL_ENDPOINT
							 : CELL_CHUNK;
	return completed;
}

void completed_note(struct request *request, const struct cache_completed *completed)
{
	request->published = completed->page_count;
	if (completed->computed >= request->promotion)
		request->promotion = 0;
}

uint64_t fence_of(const struct sched *sched, const struct request *request)
{
	uint64_t fence = 0;
	uint32_t g, i;

	if (mover_loading(&sched->mover) == 0)
		return 0;
	for (g = 0; g < groups_of(sched)->count; g++) {
		const struct table *const table = &request->tables[g];

		for (i = table->reclaimed; i < table->count; i++) {
			const uint64_t load =
				table->slots[i] == BLOCK_NULL
					? 0
					: mover_fence(&sched->mover, g, table->slots[i]);

			fence = load > fence ? load : fence;
		}
	}
#ifdef KVS_MUTANT_FORGET_FENCE /* Planted bug: computes before the blocks that it reads are there. */
	fence = 0;
#endif
	return fence;
}

/* --- the end ---------------------------------------------------------------------------------- */

static void publish_tail(struct sched *sched, struct request *request, uint32_t computed)
{
	const struct prompt             prompt = request_prompt(sched, request);
	const uint32_t                  page = sched->options.page_tokens;
	const uint32_t                  pages = computed / page;
	const struct prefix_hash *const prior = pages > 0 ? &request->hashes[pages - 1] : NULL;
	struct tail                     tail = { .tokens = computed };

	prefix_hash_tail(&prompt, pages, computed % page, prior, &tail.hash);
	KVS_ASSERT(cache_publish_tail(sched->cache, request->tables, &sched->space, &tail, computed,
				      request->epoch, CELL_ENDPOINT, NULL) == 0);
	storage_record_tail(sched, prior, computed % page, &tail.hash);
}

/*
 * Is it known where every group stands once what is under way has run?  A step that gives one token
 * goes on by one; of a token that is not known yet there is no name; and how many a longer step
 * gave, nobody knows.
 */
static bool is_exact(const struct sched *sched, const struct request *request)
{
	if (request->pending == 0)
		return true;
	return request->pending == 1 && (sched->options.decode_tokens <= 1 ||
					 request->state == REQUEST_PREFILL_DONE);
}

void finish_publish(struct sched *sched, struct request *request)
{
	const uint32_t         page = sched->options.page_tokens;
	const bool             exact = is_exact(sched, request);
	const uint32_t         computed = request->token_count - 1 + (exact ? request->pending : 0);
	struct cache_completed completed = completed_of(sched, request, computed);

	if (!sched->options.prefix_cache)
		return;
	if (completed.kind != CELL_NONE)
		completed.kind = CELL_ENDPOINT;
	if (!exact)
		completed.computed = COMPUTED_NONE;
	KVS_ASSERT(cache_advance(sched->cache, request->tables, &completed, request->epoch,
				 NULL) == 0);
	if (exact && computed % page > 0)
		publish_tail(sched, request, computed);
}
