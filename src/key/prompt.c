/* SPDX-License-Identifier: Apache-2.0 */
/* See prompt.h.  Items are in order, so that those of a page are a range found by bisection. */
#include "key/prompt.h"

#include <endian.h>
#include <inttypes.h>
#include <string.h>

/* --- checks ----------------------------------------------------------------------------------- */

static int check_extra(const char *field, const struct extra_key *extra, struct kvs_error *err)
{
	if (extra->byte_count > PROMPT_EXTRA_BYTES_MAX) {
		return err_set(err, KVS_E_INVALID, "%s.byte_count: %u, at most %u", field,
			       extra->byte_count, PROMPT_EXTRA_BYTES_MAX);
	}
	if (extra->byte_count > 0 && !extra->bytes) {
		return err_set(err, KVS_E_INVALID, "%s.bytes: NULL, %u bytes are expected", field,
			       extra->byte_count);
	}
	return 0;
}

static int check_item(const struct prompt *prompt, uint32_t i, struct kvs_error *err)
{
	const struct prompt_item *const item = &prompt->extras->items[i];
	const uint64_t                  before = i > 0 ? item[-1].end_token : 0;

	if (item->digest.byte_count == 0)
		return err_set(err, KVS_E_INVALID, "digest.byte_count: 0, at least 1");
	if (item->first_token < before) {
		return err_set(err, KVS_E_INVALID,
			       "first_token: %" PRIu64 ", at least %" PRIu64
			       ", where the item before ends",
			       item->first_token, before);
	}
	if (item->end_token <= item->first_token || item->end_token > prompt->token_count) {
		return err_set(err, KVS_E_INVALID,
			       "end_token: %" PRIu64 ", more than first_token, %" PRIu64
			       ", and at most token_count, %" PRIu64,
			       item->end_token, item->first_token, prompt->token_count);
	}
	return check_extra("digest", &item->digest, err);
}

static int check_extras(const struct prompt *prompt, struct kvs_error *err)
{
	const struct prompt_extras *const extras = prompt->extras;
	int                               rc = check_extra("extras.adapter", &extras->adapter, err);
	uint32_t                          i;

	if (rc == 0)
		rc = check_extra("extras.salt", &extras->salt, err);
	if (rc < 0)
		return rc;
	if (extras->item_count > PROMPT_ITEMS_MAX) {
		return err_set(err, KVS_E_INVALID, "extras.item_count: %u, at most %u",
			       extras->item_count, PROMPT_ITEMS_MAX);
	}
	if (extras->item_count > 0 && !extras->items) {
		return err_set(err, KVS_E_INVALID, "extras.items: NULL, %u items are expected",
			       extras->item_count);
	}
	for (i = 0; i < extras->item_count; i++) {
		rc = check_item(prompt, i, err);
		if (rc < 0) {
			err_prefix(err, "extras.items[%u]", i);
			return rc;
		}
	}
	return 0;
}

int prompt_check(const struct prompt *prompt, struct kvs_error *err)
{
	if (prompt->page_tokens == 0)
		return err_set(err, KVS_E_INVALID, "page_tokens: 0, at least 1");
	if (prompt->token_count > PROMPT_TOKENS_MAX) {
		return err_set(err, KVS_E_INVALID, "token_count: %" PRIu64 ", at most %d",
			       prompt->token_count, PROMPT_TOKENS_MAX);
	}
	if (prompt->token_count > 0 && !prompt->tokens) {
		return err_set(err, KVS_E_INVALID, "tokens: NULL, %" PRIu64 " are expected",
			       prompt->token_count);
	}
	return prompt->extras ? check_extras(prompt, err) : 0;
}

/* --- hashes ----------------------------------------------------------------------------------- */

/* The first item that ends behind a token. */
static uint32_t item_behind(const struct prompt_extras *extras, uint64_t token)
{
	uint32_t low = 0, high = extras->item_count;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (extras->items[middle].end_token > token)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Tokens [first, end) of a prompt, one page or less, and the items that overlap them. */
struct part {
	uint64_t first;
	uint64_t end;
	uint32_t item_first;
	uint32_t item_end;
};

static struct part part_of(const struct prompt *prompt, uint64_t first, uint32_t token_count)
{
	const struct prompt_extras *const extras = prompt->extras;
	struct part                       part = { .first = first, .end = first + token_count };

	KVS_ASSERT_CMP(part.end, <=, prompt->token_count);
	if (!extras || extras->item_count == 0)
		return part;
	part.item_first = item_behind(extras, part.first);
	part.item_end = part.item_first;
	while (part.item_end < extras->item_count &&
	       extras->items[part.item_end].first_token < part.end)
		part.item_end++;
	return part;
}

static void item_update(struct sha256_stream *stream, const struct prompt_item *item,
			const struct part *part)
{
	const bool     inside = item->first_token >= part->first;
	const uint64_t end = item->end_token < part->end ? item->end_token : part->end;
	const uint32_t bounds[2] = {
		htole32(inside ? (uint32_t)(item->first_token - part->first) : 0),
		htole32((uint32_t)(end - part->first)),
	};
	const uint64_t         before = htole64(inside ? 0 : part->first - item->first_token);
	uint8_t                place[sizeof(bounds) + sizeof(before)];
	const struct extra_key key = { place, sizeof(place) };

	memcpy(place, bounds, sizeof(bounds));
	memcpy(place + sizeof(bounds), &before, sizeof(before));
	prefix_hash_extra(stream, &key);
	prefix_hash_extra(stream, &item->digest);
}

static void hash_part(const struct prompt *prompt, const struct part *part,
		      const struct prefix_hash *prior, struct prefix_hash *ret_hash)
{
	const struct prompt_extras *const extras = prompt->extras;
	const int32_t *const              tokens = prompt->tokens + part->first;
	const uint32_t                    token_count = (uint32_t)(part->end - part->first);
	const uint32_t                    item_count = part->item_end - part->item_first;
	struct sha256_stream              stream;
	uint32_t                          i;

	if (!extras || extras->adapter.byte_count + extras->salt.byte_count + item_count == 0) {
		prefix_hash_page(prior, tokens, token_count, NULL, 0, ret_hash);
		return;
	}
	prefix_hash_begin(&stream, prior, tokens, token_count, 2 + 2 * item_count);
	prefix_hash_extra(&stream, &extras->adapter);
	prefix_hash_extra(&stream, &extras->salt);
	for (i = part->item_first; i < part->item_end; i++)
		item_update(&stream, &extras->items[i], part);
	prefix_hash_end(&stream, ret_hash);
}

void prefix_hash_chain(const struct prompt *prompt, uint32_t first, uint32_t end,
		       const struct prefix_hash *prior, struct prefix_hash *ret_hashes)
{
	uint32_t page;

	KVS_ASSERT_CMP(first, <=, end);
	KVS_ASSERT_CMP(prior != NULL, ==, first > 0);
	for (page = first; page < end; page++) {
		const struct part part = part_of(prompt, (uint64_t)page * prompt->page_tokens,
						 prompt->page_tokens);

		hash_part(prompt, &part, prior, &ret_hashes[page - first]);
		prior = &ret_hashes[page - first];
	}
}

void prefix_hash_tail(const struct prompt *prompt, uint32_t pages, uint32_t token_count,
		      const struct prefix_hash *prior, struct prefix_hash *ret_hash)
{
	const struct part part = part_of(prompt, (uint64_t)pages * prompt->page_tokens,
					 token_count);

	KVS_ASSERT_CMP(token_count, >, 0);
	KVS_ASSERT_CMP(token_count, <, prompt->page_tokens);
	KVS_ASSERT_CMP(prior != NULL, ==, pages > 0);
	hash_part(prompt, &part, prior, ret_hash);
}

/* --- how much may be restored ----------------------------------------------------------------- */

uint64_t prefix_reusable_tokens(uint64_t token_count, uint32_t replay_tokens, uint64_t logits_from)
{
	const uint32_t replay = replay_tokens > 0 ? replay_tokens : 1;
	const uint64_t bound = token_count > replay ? token_count - replay : 0;

	return logits_from < bound ? logits_from : bound;
}

uint32_t prefix_reusable_pages(uint64_t token_count, uint32_t page_tokens, uint32_t replay_tokens)
{
	const uint64_t tokens = prefix_reusable_tokens(token_count, replay_tokens, LOGITS_NONE);

	KVS_ASSERT_CMP(page_tokens, >, 0);
	return tokens / page_tokens < UINT32_MAX ? (uint32_t)(tokens / page_tokens) : UINT32_MAX;
}
