/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference engine: not a language model, but an oracle for every byte of its KV cache.
 *
 * The KV row of a token is a digest of all tokens up to it and of the layer, so a stale, misplaced or
 * torn block cannot look right.  A pass over a request checks the rows that were restored and computes
 * the others, as a prefill would; a second pass at the end of the request checks all of them.
 *
 * Shape    A block holds page_tokens rows of block_bytes / page_tokens bytes, 8 bytes a layer.
 * Threads  None of its own.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest page an engine takes: its tokens pass through the stack. */
#define ENGINE_PAGE_TOKENS_MAX 4096u

struct engine {
	uint32_t page_tokens;
	uint32_t layers;      /* block_bytes / page_tokens / 8 */
	uint64_t rows_checked;
	uint64_t wrong_bytes;
	bool     wrong_seen;
	uint64_t wrong_request; /* the first wrong block: its request, and its page there */
	uint32_t wrong_page;
};

/* What a pass runs over: page i of the prompt lies in blocks[i] and has the tokens of id page_ids[i]. */
struct engine_prompt {
	uint64_t        request;
	const uint64_t *page_ids;
	uint32_t        page_count;
	uint64_t        token_count;
	void *const    *blocks;
};

/* block_bytes is a multiple of 8 * page_tokens; page_tokens at most ENGINE_PAGE_TOKENS_MAX. */
void engine_init(struct engine *engine, uint32_t page_tokens, size_t block_bytes);

/* The tokens that stand for a page id: count of them, deterministic, non-negative. */
void engine_page_tokens(uint64_t page_id, uint32_t count, int32_t *ret_tokens);

/* Check the rows of pages [0, hit_pages) and compute the rows of the rest. */
void engine_prefill(struct engine *engine, const struct engine_prompt *prompt, uint32_t hit_pages);

/* Check every row the prompt's block table lets it see. */
void engine_check(struct engine *engine, const struct engine_prompt *prompt);

#endif
