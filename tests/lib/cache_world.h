/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache of a dozen blocks with a few requests in it, and an account of who holds what.
 *
 * Groups, packings, windows and sizes are drawn from a seed.  Prompts are numbered 0 .. 3: two families
 * of two, which part after the first page; any boundary of a prompt has a name, tails too.
 */
#ifndef CACHE_WORLD_H
#define CACHE_WORLD_H

#include "coord/cache.h"

#define WORLD_REQUESTS 3u
#define WORLD_SLOTS 64u
#define WORLD_PAGES 13u
#define WORLD_TOKENS 24u
#define WORLD_PINS 4u
#define WORLD_ROWS 64u
#define WORLD_PLACES 64u

struct world_request {
	bool               live;
	uint32_t           prompt;
	uint64_t           epoch;
	uint32_t           end;       /* tokens whose blocks were admitted */
	uint32_t           published; /* pages */
	struct table       tables[3];
	uint32_t           slots[3][WORLD_SLOTS];
	struct prefix_hash hashes[WORLD_PAGES];
};

struct world {
	struct cache        *cache;
	struct group_spec    specs[3];
	uint32_t             group_count;
	uint32_t             page_tokens;
	struct kvs_namespace space;
	struct world_request requests[WORLD_REQUESTS];
	struct cache_block   pins[WORLD_PINS];
	uint32_t             pin_count;
	struct cache_move    rows[WORLD_ROWS];
	uint32_t             row_count;
	uint32_t             removed[WORLD_PLACES]; /* names lost, by group * 20 + block */
};

/* The name of the prompt's first tokens. */
struct prefix_hash world_name(uint32_t prompt, uint32_t tokens, uint32_t page_tokens);
void world_name_pages(const struct world *world, uint32_t prompt, struct prefix_hash *ret_hashes);

/* A zeroed world is closed. */
void world_open_cache(struct world *world, uint64_t seed);
/* Everybody lets go; then the cache closes. */
void world_close_cache(struct world *world);

/* Is a block published as this position of the page with this hash? */
void world_check_name(const struct world *world, enum stratum_id stratum, uint32_t group,
		      uint32_t block, const struct prefix_hash *hash, uint32_t position);

/* Audit the cache; every reference has an owner, and what a table shares is of its own prompt. */
void world_account(const struct world *world);

#endif
