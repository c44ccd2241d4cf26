/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle: every token there is, the names of all prefixes, and what each row of a cache must be.
 *
 * Pages form a binary tree: page n follows page n / 2, and page 1 is the empty prompt.  A request runs
 * down a path of it, prompt and output alike, so requests share prefixes.  The two pages behind a third
 * begin with the same tokens, some of them with none: so tails are shared, too.
 *
 * Rows are those of the reference engine (engine/rows.h).  Weights have a *version*, which goes into
 * every row: the first token is another one for the engine, though not for the names.
 *
 * Nothing here depends on a seed: it is made once.
 */
#ifndef SIM_ORACLE_H
#define SIM_ORACLE_H

#include <stdbool.h>

#include "key/key.h"

#define PAGE_TOKENS 4u
#define DEPTH       8u /* pages of a path */
#define PATH_TOKENS (DEPTH * PAGE_TOKENS)
#define PAGE_END    (2u << DEPTH) /* pages are 2 .. PAGE_END - 1 */
#define VERSIONS    3u

/* A prefix that has a name: all before a page, and `count` tokens of it. */
struct prefix {
	uint32_t page;
	uint32_t count; /* 1 to PAGE_TOKENS; fewer than those: a tail */
};

struct oracle {
	struct kvs_namespace space[VERSIONS];
	int32_t              tokens[PAGE_END][PAGE_TOKENS];
	struct prefix_hash   hash[PAGE_END][PAGE_TOKENS];            /* of count - 1 */
	uint64_t             state[VERSIONS][PAGE_END][PAGE_TOKENS]; /* of the engine, behind each token */
};

const struct oracle *oracle_get(void);

/* The prefix of a hash; false when nobody has it. */
bool oracle_find(const uint8_t *hash, struct prefix *ret_prefix);
/* The version of a namespace; VERSIONS: none. */
uint32_t oracle_version(const struct kvs_namespace *space);

/* Tokens before a page. */
uint32_t oracle_before(uint32_t page);

/* What the engine takes for the first token of a prompt. */
int32_t oracle_salted(int32_t token, uint32_t version);

#endif
