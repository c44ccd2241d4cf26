/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A prompt: its tokens, what else its pages mean, their hash chain, and how much of it may be
 * restored.
 *
 * Tokens alone do not say what a page holds.  An adapter changes every row; a tenant's salt keeps
 * tenants from matching each other; an image stands as a run of placeholder tokens that are equal
 * for all images.  All three enter the hash as extra keys (key/key.h):
 *
 *   of every page, when the request has an adapter or a salt, and of every page that an item
 *   overlaps: the adapter, the salt (empty where there is none, so that the adapter "a" is not the
 *   salt "a"), then for each item that overlaps the page its place and its digest.
 *
 * The place is 16 bytes, little-endian: u32 first and u32 end token of the overlap, counted from
 * the start of the page, u64 tokens of the item before the page.  Without it an image that fills
 * two pages and the same image twice in a row would be one.  A page without extra keys has the
 * bytes of a page of a prompt without any: text before the first image is shared with every other
 * prompt.
 *
 * What a page covers is cut at its last token, so that the hash of a page or a tail depends on the
 * prefix that it ends and on nothing behind it.
 */
#ifndef KEY_PROMPT_H
#define KEY_PROMPT_H

#include "base/err.h"
#include "key/key.h"

/* A longer prompt's boundaries would not fit into an engine's 32-bit block tables. */
#define PROMPT_TOKENS_MAX INT32_MAX
/* The longest names and digests that engines use are 64 bytes; each is hashed with every page. */
#define PROMPT_EXTRA_BYTES_MAX 256u
/* Images of one prompt: more than any engine admits. */
#define PROMPT_ITEMS_MAX 4096u

/* An image, a sound: tokens [first_token, end_token) of the prompt stand for it. */
struct prompt_item {
	struct extra_key digest;
	uint64_t         first_token;
	uint64_t         end_token;
};

struct prompt_extras {
	struct extra_key          adapter; /* byte_count 0: none */
	struct extra_key          salt;    /* byte_count 0: none */
	const struct prompt_item *items;   /* in order, none overlaps another */
	uint32_t                  item_count;
};

/* Borrowed for the call throughout. */
struct prompt {
	const int32_t              *tokens;
	uint64_t                    token_count;
	uint32_t                    page_tokens; /* P */
	const struct prompt_extras *extras;      /* NULL: none */
};

/**
 * Check what a caller says of a prompt; the other functions take it for granted.
 *
 * Errors  KVS_E_INVALID: the sentence names the field, its value and the rule.
 */
int prompt_check(const struct prompt *prompt, struct kvs_error *err);

/**
 * Hash full pages [first, end) of a prompt.
 *
 * Shape   prior is the hash of page first - 1, NULL when first is 0.  ret_hashes[0] is that of page
 *         first.  In one call or in several, the hashes are the same.
 */
void prefix_hash_chain(const struct prompt *prompt, uint32_t first, uint32_t end,
		       const struct prefix_hash *prior, struct prefix_hash *ret_hashes);

/* Hash the token_count tokens, fewer than a page, behind pages full pages; prior as above. */
void prefix_hash_tail(const struct prompt *prompt, uint32_t pages, uint32_t token_count,
		      const struct prefix_hash *prior, struct prefix_hash *ret_hash);

/* --- how much may be restored ----------------------------------------------------------------- */

/* No logits of prompt tokens are wanted. */
#define LOGITS_NONE UINT64_MAX

/*
 * How many leading tokens of a prompt may be restored.  Logits come from computing, not from the
 * cache: at least replay_tokens, and never less than one, are computed anew at the end; and every
 * token at and after logits_from, the first position whose logits the caller wants.  The logits of
 * a position speak of the token behind it: whoever wants the probability of token t asks from
 * t - 1.
 */
uint64_t prefix_reusable_tokens(uint64_t token_count, uint32_t replay_tokens, uint64_t logits_from);

/*
 * Full pages of that, where no logits are wanted; of more than UINT32_MAX pages that many.  page_tokens
 * is at least 1 (asserted).
 */
uint32_t prefix_reusable_pages(uint64_t token_count, uint32_t page_tokens, uint32_t replay_tokens);

#endif
