/* SPDX-License-Identifier: Apache-2.0 */
/* See request.h. */
#include "mono_sched/request.h"

#include <errno.h>
#include <stdlib.h>

#include "key/prompt.h"

int mono_request_open(struct mono_request *request, uint32_t page_max)
{
	request->keys = calloc(page_max, sizeof(*request->keys));
	request->table = calloc(page_max, sizeof(*request->table));
	request->sources = calloc(page_max, sizeof(*request->sources));
	return request->keys && request->table && request->sources ? 0 : -ENOMEM;
}

void mono_request_close(struct mono_request *request)
{
	free(request->keys);
	free(request->table);
	free(request->sources);
}

void mono_request_begin(struct mono_request *request, const struct mono_sched_options *options,
			uint64_t id, const int32_t *tokens, uint64_t token_count,
			struct prefix_hash *scratch)
{
	const uint32_t      page_tokens = options->page_tokens;
	const struct prompt prompt = { tokens, token_count, page_tokens, NULL };
	uint32_t            i;

	*request = (struct mono_request){
		.state = MONO_REQUEST_SUBMITTED,
		.prepared = !options->with_store,
		.id = id,
		.token_count = token_count,
		.page_count = (uint32_t)((token_count + page_tokens - 1) / page_tokens),
		.key_count = (uint32_t)(token_count / page_tokens),
		.reusable = prefix_reusable_pages(token_count, page_tokens,
						  options->replay_tokens),
		.keys = request->keys,
		.table = request->table,
		.sources = request->sources,
	};
	prefix_hash_chain(&prompt, 0, request->key_count, NULL, scratch);
	for (i = 0; i < request->key_count; i++)
		key_make(&options->space, &scratch[i], 0, 0, 0, &request->keys[i]);
}

static uint64_t tokens_of(uint64_t token_count, uint32_t page_tokens, uint64_t first_page,
			  uint64_t end_page)
{
	const uint64_t first = first_page * page_tokens;
	const uint64_t end = end_page * page_tokens;

	return (end < token_count ? end : token_count) -
	       (first < token_count ? first : token_count);
}

void mono_request_result(const struct mono_request *request, uint32_t page_tokens,
			 struct mono_sched_result *ret_result)
{
	const uint32_t host_end = request->hit.host_end;
	const uint32_t restored = host_end - request->hit.device_end;
	int            origin;

	*ret_result = (struct mono_sched_result){
		.id = request->id,
		.token_count = request->token_count,
		.pages = { [MONO_ORIGIN_DEVICE] = request->hit.device_end,
			   [MONO_ORIGIN_HOST] = restored - request->fetched,
			   [MONO_ORIGIN_STORE] = request->fetched,
			   [MONO_ORIGIN_RECOMPUTED] = request->page_count - host_end },
		.considered = request->considered,
		.outcome = request->outcome,
		.wait_ns = request->wait_ns,
	};
	/* Restored pages are full ones; only the recomputed end can hold a partial page. */
	for (origin = MONO_ORIGIN_DEVICE; origin < MONO_ORIGIN_RECOMPUTED; origin++)
		ret_result->tokens[origin] = (uint64_t)ret_result->pages[origin] * page_tokens;
	ret_result->tokens[MONO_ORIGIN_RECOMPUTED] =
		tokens_of(request->token_count, page_tokens, host_end, request->page_count);
}
