/* SPDX-License-Identifier: Apache-2.0 */
/* See engine.h; what a row is, rows.h says. */
#include "engine/engine.h"

#include <string.h>

#include "base/err.h"
#include "base/prng.h"
#include "engine/rows.h"

void engine_init(struct engine *engine, uint32_t page_tokens, size_t block_bytes)
{
	KVS_ASSERT_CMP(page_tokens, <=, ENGINE_PAGE_TOKENS_MAX);
	KVS_ASSERT_CMP(block_bytes % (8 * (size_t)page_tokens), ==, 0);
	*engine = (struct engine){ .page_tokens = page_tokens,
				   .layers = (uint32_t)(block_bytes / page_tokens / 8) };
}

void engine_page_tokens(uint64_t page_id, uint32_t count, int32_t *ret_tokens)
{
	const uint64_t base = mix64(page_id);
	uint32_t       i;

	for (i = 0; i < count; i++)
		ret_tokens[i] = (int32_t)(mix64(base + i) >> 33);
}

static void compute_row(const struct engine *engine, uint64_t state, uint64_t *row)
{
	uint32_t layer;

	for (layer = 0; layer < engine->layers; layer++)
		row[layer] = rows_word(state, layer);
}

/* Bytes of the row that are not what they must be. */
static uint32_t check_row(const struct engine *engine, uint64_t state, const uint64_t *row)
{
	uint64_t any = 0;
	uint32_t wrong = 0;
	uint32_t layer, byte;

	for (layer = 0; layer < engine->layers; layer++)
		any |= row[layer] ^ rows_word(state, layer);
	if (any == 0)
		return 0;
	for (layer = 0; layer < engine->layers; layer++) {
		const uint64_t difference = row[layer] ^ rows_word(state, layer);

		for (byte = 0; byte < 8; byte++)
			wrong += ((difference >> (8 * byte)) & 0xff) != 0;
	}
	return wrong;
}

static void note_wrong(struct engine *engine, uint64_t request, uint32_t page, uint32_t bytes)
{
	if (bytes > 0 && !engine->wrong_seen) {
		engine->wrong_seen = true;
		engine->wrong_request = request;
		engine->wrong_page = page;
	}
	engine->wrong_bytes += bytes;
}

/* One page: token by token, each state from the one before. */
static uint64_t pass_page(struct engine *engine, const struct engine_prompt *prompt, uint32_t page,
			  bool check, uint64_t state)
{
	const uint64_t left = prompt->token_count - (uint64_t)page * engine->page_tokens;
	const uint32_t count = left < engine->page_tokens ? (uint32_t)left : engine->page_tokens;
	uint64_t      *row = prompt->blocks[page];
	int32_t        tokens[ENGINE_PAGE_TOKENS_MAX];
	uint32_t       wrong = 0;
	uint32_t       i;

	engine_page_tokens(prompt->page_ids[page], count, tokens);
	for (i = 0; i < count; i++, row += engine->layers) {
		state = rows_next(state, tokens[i]);
		if (check)
			wrong += check_row(engine, state, row);
		else
			compute_row(engine, state, row);
	}
	if (check)
		engine->rows_checked += count;
	note_wrong(engine, prompt->request, page, wrong);
	return state;
}

static void pass(struct engine *engine, const struct engine_prompt *prompt, uint32_t check_pages)
{
	uint64_t state = 0;
	uint32_t page;

	for (page = 0; page < prompt->page_count; page++)
		state = pass_page(engine, prompt, page, page < check_pages, state);
}

void engine_prefill(struct engine *engine, const struct engine_prompt *prompt, uint32_t hit_pages)
{
	pass(engine, prompt, hit_pages);
}

void engine_check(struct engine *engine, const struct engine_prompt *prompt)
{
	pass(engine, prompt, prompt->page_count);
}
