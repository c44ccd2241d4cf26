/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle: every page there is, its tokens, its name, and what its bytes must be.
 *
 * Pages form a binary tree: page n follows page n / 2, and page 1 is the empty prompt.  A prompt is
 * a path from the root, so prompts share prefixes.  A block is filled from its page and a
 * generation, which counts how often the page was computed: each row of 16 bytes names both and its
 * own place, so a wrong row says where it came from.
 */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include "key/key.h"

#define PAGE_TOKENS 4u
#define PAGES_MAX   6u                /* of one prompt */
#define PAGE_END    (2u << PAGES_MAX) /* pages are 2 .. PAGE_END - 1 */
#define BLOCK_BYTES 4096u
#define BLOCK_ROWS  (BLOCK_BYTES / 16)

/* The page that bytes of no page claim to be: what a store's late write leaves. */
#define PAGE_NONE UINT32_MAX

struct oracle {
	struct kvs_namespace space;
	struct prefix_hash   hash[PAGE_END];
	struct kvs_key       key[PAGE_END];
	uint32_t             computed[PAGE_END]; /* generations so far */
	uint32_t             stored[PAGE_END];   /* the generation in the store, if it keeps the page */
};

void oracle_init(struct oracle *oracle);

/* The PAGE_TOKENS tokens of a page. */
void oracle_tokens(uint32_t page, int32_t *ret_tokens);

/* The page of a key; asserts that there is one. */
uint32_t oracle_page(const struct oracle *oracle, const struct kvs_key *key);

/* The same for a key whose block is at hand: faster when it claims what it should. */
uint32_t oracle_page_in(const struct oracle *oracle, const struct kvs_key *key, const void *block);

void oracle_fill(void *block, uint32_t page, uint32_t generation);

/*
 * Rows [first, first + count) must be the page's, all of one generation that was computed.  NULL,
 * or a sentence about the first that is not; valid until the next call.
 */
const char *oracle_check(const struct oracle *oracle, const void *block, uint32_t page,
			 uint32_t first, uint32_t count);

/* The generation that a block of a page claims. */
uint32_t oracle_generation(const void *block);

#endif
