/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where requests come from: a trace file, or a seeded generator of multi-turn conversations.
 *
 * A request names its prompt by page ids: one id a page of SOURCE_PAGE_TOKENS tokens, the last page
 * may be partial; equal ids mean equal prefixes up to and including that page.  Requests are
 * streamed: memory does not grow with the trace.
 */
#ifndef APP_SOURCE_H
#define APP_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define SOURCE_PAGE_TOKENS 512u

/* Half a billion tokens in a prompt; a line past it is a damaged file, not a request. */
#define SOURCE_PAGES_MAX (1u << 20)

struct source_request {
	uint64_t        index;         /* position in the source, from 0 */
	uint64_t        timestamp_ms;  /* since the start; never decreases */
	uint64_t        input_tokens;  /* at least 1 */
	uint64_t        output_tokens;
	uint32_t        page_count;    /* ceil(input_tokens / SOURCE_PAGE_TOKENS) */
	const uint64_t *page_ids;      /* the source's, valid until the next source_next() */
};

struct source;

/*
 * array, grown by doubling until it has an item for each of count pages; *room is what it has.
 * NULL when there is no memory: array is then as it was.
 */
void *source_page_room(void *array, size_t item_bytes, uint32_t *room, uint32_t count,
		       struct kvs_error *err);

/* The trace, or count generated requests when it is NULL.  Errors: as below. */
int source_open(const char *trace, uint64_t seed, uint64_t count, struct source **ret_source,
		struct kvs_error *err);

/* JSON lines as in the Mooncake traces.  Errors: -errno naming the file. */
int source_open_trace(const char *path, struct source **ret_source, struct kvs_error *err);

/* Multi-turn conversations over shared system prompts; equal seeds give equal requests. */
int source_open_generated(uint64_t seed, uint64_t request_count, struct source **ret_source,
			  struct kvs_error *err);

void source_close(struct source *source);

/* 1 and a request, 0 at the end, KVS_E_INVALID for a malformed line (file, number, rule). */
int source_next(struct source *source, struct source_request *ret_request, struct kvs_error *err);

/* Whether source_next() would return at once: a pipe may have nothing yet. */
bool source_ready(struct source *source);

/* What becomes readable when more comes, while source_ready() says no; -1 where it never does. */
int source_fd(const struct source *source);

/* How far through the source we are, 0 to 1. */
double source_progress(const struct source *source);

/* The tokens that stand for a page id: the first count of them, deterministic, never negative. */
void source_page_tokens(uint64_t page_id, uint32_t count, int32_t *ret_tokens);

/* Pages begun by so many tokens. */
static inline uint64_t source_pages(uint64_t tokens)
{
	return tokens / SOURCE_PAGE_TOKENS + (tokens % SOURCE_PAGE_TOKENS != 0);
}

#endif
