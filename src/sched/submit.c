/* SPDX-License-Identifier: Apache-2.0 */
/* Requests come: all of a call or none. */
#include <inttypes.h>
#include <string.h>

#include "sched/parts.h"

struct request *request_find(const struct sched *sched, const char *id)
{
	char     key[SCHED_ID_BYTES] = { 0 };
	uint32_t slot;

	if (strlen(id) >= sizeof(key))
		return NULL;
	memcpy(key, id, strlen(id));
	slot = map_find(&sched->ids, map_hash(&sched->ids, key), key);
	return slot == SLOT_NONE ? NULL : &sched->requests[slot];
}

struct prompt request_prompt(const struct sched *sched, const struct request *request)
{
	return (struct prompt){ .tokens = request->tokens, .token_count = request->token_count,
				.page_tokens = sched->options.page_tokens,
				.extras = request->extras };
}

void request_hash(const struct sched *sched, struct request *request)
{
	const struct prompt prompt = request_prompt(sched, request);
	const uint32_t      pages = request->token_count / sched->options.page_tokens;
	const uint32_t      first = request->hashed;

	if (first == pages)
		return;
	prefix_hash_chain(&prompt, first, pages, first > 0 ? &request->hashes[first - 1] : NULL,
			  &request->hashes[first]);
	request->hashed = pages;
}

/* --- checks ----------------------------------------------------------------------------------- */

static int check_id(const struct sched *sched, const struct sched_request *ask,
		    struct kvs_error *err)
{
	if (!ask->id || ask->id[0] == '\0' || strlen(ask->id) >= SCHED_ID_BYTES) {
		return err_set(err, KVS_E_INVALID, "id: %zu bytes; must have 1 to %u",
			       ask->id ? strlen(ask->id) : 0, SCHED_ID_BYTES - 1);
	}
	if (request_find(sched, ask->id)) {
		return err_set(err, KVS_E_EXISTS, "id: \"%s\"; a live request has it", ask->id);
	}
	return 0;
}

/* What it will have at its end, and that it fits into Device when it is alone. */
static int check_size(const struct sched *sched, const struct sched_request *ask,
		      struct kvs_error *err)
{
	const struct sched_options *const options = &sched->options;
	uint64_t                          more = ask->max_new_tokens;
	uint64_t                          tokens;

	if (ask->token_count == 0 || !ask->tokens) {
		return err_set(err, KVS_E_INVALID,
			       "tokens: none in request \"%s\"; must have at least one", ask->id);
	}
	if (more < options->decode_tokens)
		more = options->decode_tokens;
	/* A PREFILL rank knows the first token at most, and computes none. */
	if (options->role == SCHED_PREFILL)
		more = 0;
	tokens = ask->token_count + more;
	if (tokens > sched->request_limit) {
		return err_set(err, KVS_E_INVALID,
			       "tokens: %" PRIu64 " with the new ones in request \"%s\"; Device holds "
			       "requests of at most %u",
			       tokens, ask->id, sched->request_limit);
	}
	if (options->role == SCHED_PREFILL)
		tokens++;
	if (tokens > options->request_tokens_max) {
		return err_set(err, KVS_E_INVALID,
			       "tokens: %" PRIu64 " with the new ones in request \"%s\"; "
			       "request_tokens_max is %u",
			       tokens, ask->id, options->request_tokens_max);
	}
	return 0;
}

static int check_tokens(const struct sched *sched, const struct sched_request *ask,
			struct kvs_error *err)
{
	const struct prompt prompt = { .tokens = ask->tokens, .token_count = ask->token_count,
				       .page_tokens = sched->options.page_tokens,
				       .extras = ask->extras };
	uint32_t            i;
	int                 rc;

	for (i = 0; i < ask->token_count; i++) {
		if (ask->tokens[i] < 0) {
			return err_set(err, KVS_E_INVALID,
				       "tokens: %d at %u in request \"%s\"; must not be negative",
				       ask->tokens[i], i, ask->id);
		}
	}
	rc = prompt_check(&prompt, err);
	if (rc < 0)
		err_prefix(err, "request \"%s\"", ask->id);
	return rc;
}

/* --- in --------------------------------------------------------------------------------------- */

static struct request *insert(struct sched *sched, const struct sched_request *ask)
{
	const uint32_t        slot = slots_acquire(&sched->slots);
	struct request *const request = &sched->requests[slot];
	const size_t          tokens_at = (size_t)slot * sched->options.request_tokens_max;

	KVS_ASSERT_CMP(request->state, ==, REQUEST_FREE);
	*request = (struct request){
		.tokens = sched->tokens + tokens_at,
		.token_count = ask->token_count,
		.max_new_tokens = ask->max_new_tokens,
		.extras = ask->extras,
		.logits_from = ask->logits_from,
		.hashes = sched->hashes + (size_t)slot * sched->page_max,
		.prefill = ask->token_count,
		.snapshot = SLOT_NONE,
	};
	request->admission.shortfall.group = SHORTFALL_NONE;
	memcpy(request->id, ask->id, strlen(ask->id));
	memcpy(request->tokens, ask->tokens, ask->token_count * sizeof(*ask->tokens));
	map_insert(&sched->ids, map_hash(&sched->ids, request->id), slot);
	return request;
}

/*
 * Checked in order, so that the first bad one is named; an id that comes twice is found by
 * inserting.
 */
static int check_and_insert(struct sched *sched, const struct sched_request *ask,
			    struct kvs_error *err)
{
	int rc = check_id(sched, ask, err);

	if (rc == 0)
		rc = check_size(sched, ask, err);
	if (rc == 0)
		rc = check_tokens(sched, ask, err);
	if (rc < 0)
		return rc;
	if (sched->slots.busy_count == sched->slots.count) {
		return err_set(err, KVS_E_FULL, "request \"%s\": request_max, %u, requests live",
			       ask->id, sched->slots.count);
	}
	insert(sched, ask);
	return 0;
}

static void take_out(struct sched *sched, const char *id)
{
	struct request *const request = request_find(sched, id);

	map_remove(&sched->ids, map_hash(&sched->ids, request->id), request_slot(sched, request));
	slots_release(&sched->slots, request_slot(sched, request));
}

static int twice(const struct sched_request *requests, uint32_t count, const char *id)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (strcmp(requests[i].id, id) == 0)
			return true;
	}
	return false;
}

int sched_submit(struct sched *sched, const struct sched_request *requests, uint32_t count,
		 struct kvs_error *err)
{
	const enum request_event on = sched->options.role == SCHED_FUSED ? REQUEST_ON_SUBMIT
									 : REQUEST_ON_SUBMIT_PEER;
	uint32_t                 i;
	int                      rc = 0;

	for (i = 0; i < count && rc == 0; i++) {
		rc = check_and_insert(sched, &requests[i], err);
		if (rc == KVS_E_EXISTS && twice(requests, i, requests[i].id))
			rc = err_set(err, KVS_E_INVALID, "id: \"%s\" comes twice", requests[i].id);
	}
	if (rc < 0) {
		for (i--; i-- > 0;)
			take_out(sched, requests[i].id);
		return rc;
	}
	for (i = 0; i < count; i++) {
		struct request *const request = request_find(sched, requests[i].id);

		request_step(sched, request, on);
		list_push_tail(&sched->unprepared, sched->unprepared_links,
			       request_slot(sched, request));
	}
	return 0;
}

uint32_t sched_request_limit(const struct sched *sched)
{
	return sched->request_limit;
}
