/* SPDX-License-Identifier: Apache-2.0 */
/* See replay_totals.h. */
#include "app/replay_totals.h"

#include "app/source.h"

const char *const replay_origin_names[ORIGIN_COUNT] = { "device", "host", "store", "recomputed" };

static uint64_t prefill_ns(uint64_t tokens, double tokens_per_s)
{
	return (uint64_t)((double)tokens / tokens_per_s * 1e9);
}

/*
 * Tokens by origin, in the order in which they stand in the prompt; pages of which all were
 * restored.
 */
static void add_origins(struct replay_totals *totals, const uint64_t *tokens, uint64_t token_count)
{
	const uint64_t page_count = source_pages(token_count);
	uint64_t       end = 0;
	uint64_t       pages = 0;
	int            origin;

	for (origin = 0; origin < ORIGIN_RECOMPUTED; origin++) {
		const uint64_t before = pages;

		end += tokens[origin];
		pages = end / SOURCE_PAGE_TOKENS;
		totals->origin_tokens[origin] += tokens[origin];
		totals->origin_blocks[origin] += pages - before;
	}
	totals->origin_tokens[ORIGIN_RECOMPUTED] += token_count - end;
	totals->origin_blocks[ORIGIN_RECOMPUTED] += page_count - pages;
	totals->blocks += page_count;
	totals->tokens += token_count;
	totals->requests++;
}

static void add_times(struct replay_totals *totals, const uint64_t *tokens, uint64_t token_count,
		      uint64_t wait_ns, double speed)
{
	const uint64_t restored =
		tokens[ORIGIN_DEVICE] + tokens[ORIGIN_HOST] + tokens[ORIGIN_STORE];
	const uint64_t computed = token_count - restored;

	histogram_add(&totals->ttft_store_ns, wait_ns + prefill_ns(computed, speed));
	histogram_add(&totals->ttft_local_ns, prefill_ns(computed + tokens[ORIGIN_STORE], speed));
	histogram_add(&totals->ttft_none_ns, prefill_ns(token_count, speed));
}

static void add_reason(struct replay_totals *totals, const struct explanation *explanation)
{
	if (explanation->reason == MISS_NONE)
		totals->full_hits++;
	else if (explanation->reason == MISS_STORAGE)
		totals->reads[explanation_read(explanation)]++;
	else
		totals->reasons[explanation->reason]++;
}

void replay_totals_add(struct replay_totals *totals, const struct sched_result *result,
		       uint32_t token_count, double prefill_tokens_per_s)
{
	const struct explanation *const explanation = &result->explanation;
	uint64_t                        tokens[ORIGIN_COUNT] = { 0 };

	if (result->admitted) {
		tokens[ORIGIN_DEVICE] = explanation->tokens[STRATUM_DEVICE];
		tokens[ORIGIN_HOST] = explanation->tokens[STRATUM_HOST] - explanation->store_tokens;
		tokens[ORIGIN_STORE] = explanation->store_tokens;
		add_reason(totals, explanation);
	} else {
		totals->failed++;
	}
	add_origins(totals, tokens, token_count);
	add_times(totals, tokens, token_count, explanation->wait_ns, prefill_tokens_per_s);
	totals->waited += explanation->wait_ns > 0;
	totals->in_vain += explanation->wait_ns > 0 && tokens[ORIGIN_STORE] == 0;
	if (explanation->read == READ_READY)
		histogram_add(&totals->restore_ns, explanation->wait_ns);
}

void replay_totals_add_too_long(struct replay_totals *totals, uint64_t token_count,
				double prefill_tokens_per_s)
{
	const uint64_t tokens[ORIGIN_COUNT] = { 0 };

	totals->too_long++;
	add_origins(totals, tokens, token_count);
	add_times(totals, tokens, token_count, 0, prefill_tokens_per_s);
}
