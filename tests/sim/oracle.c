/* SPDX-License-Identifier: Apache-2.0 */
/* See oracle.h. */
#include "oracle.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "engine/rows.h"

#define BUCKETS 8192u /* of hashes; at most half of them are used */

static struct oracle oracle;
static struct prefix table[BUCKETS]; /* open addressing; page 0: free */

static uint32_t bucket_of(const uint8_t *hash)
{
	uint32_t word;

	memcpy(&word, hash, sizeof(word));
	return word % BUCKETS;
}

bool oracle_find(const uint8_t *hash, struct prefix *ret_prefix)
{
	uint32_t b;

	for (b = bucket_of(hash); table[b].page != 0; b = (b + 1) % BUCKETS) {
		const struct prefix *const at = &table[b];

		if (memcmp(oracle.hash[at->page][at->count - 1].byte, hash, SHA256_BYTES) == 0) {
			*ret_prefix = *at;
			return true;
		}
	}
	return false;
}

/* Two pages with the same first tokens have a tail in common: it is named by the first of them. */
static void insert(uint32_t page, uint32_t count)
{
	const uint8_t *const hash = oracle.hash[page][count - 1].byte;
	struct prefix        known;
	uint32_t             b;

	if (oracle_find(hash, &known))
		return;
	for (b = bucket_of(hash); table[b].page != 0; b = (b + 1) % BUCKETS)
		;
	table[b] = (struct prefix){ page, count };
}

uint32_t oracle_before(uint32_t page)
{
	return (31 - (uint32_t)__builtin_clz(page) - 1) * PAGE_TOKENS;
}

int32_t oracle_salted(int32_t token, uint32_t version)
{
	return token ^ (int32_t)(version << 16);
}

uint32_t oracle_version(const struct kvs_namespace *space)
{
	uint32_t version;

	for (version = 0; version < VERSIONS; version++) {
		if (memcmp(&oracle.space[version], space, sizeof(*space)) == 0)
			break;
	}
	return version;
}

static void make_tokens(uint32_t page)
{
	const uint32_t shared = (uint32_t)(mix64(page / 2) % PAGE_TOKENS);
	uint32_t       i;

	for (i = 0; i < PAGE_TOKENS; i++) {
		const uint32_t of = i < shared ? page & ~1u : page;

		oracle.tokens[page][i] = (int32_t)(mix64(of * PAGE_TOKENS + i) >> 34);
	}
}

static void make_names(uint32_t page)
{
	const struct prefix_hash *const prior =
		page < 4 ? NULL : &oracle.hash[page / 2][PAGE_TOKENS - 1];
	uint32_t count;

	for (count = 1; count <= PAGE_TOKENS; count++) {
		prefix_hash_page(prior, oracle.tokens[page], count, NULL, 0,
				 &oracle.hash[page][count - 1]);
		insert(page, count);
	}
}

static void make_states(uint32_t version, uint32_t page)
{
	uint64_t state = page < 4 ? 0 : oracle.state[version][page / 2][PAGE_TOKENS - 1];
	uint32_t i;

	for (i = 0; i < PAGE_TOKENS; i++) {
		const int32_t token = oracle.tokens[page][i];

		state = rows_next(state, page < 4 && i == 0 ? oracle_salted(token, version) : token);
		oracle.state[version][page][i] = state;
	}
}

static void make(void)
{
	char     text[32];
	uint32_t page, version;

	for (page = 2; page < PAGE_END; page++) {
		make_tokens(page);
		make_names(page);
	}
	for (version = 0; version < VERSIONS; version++) {
		snprintf(text, sizeof(text), "simulator, weights %u", version);
		key_namespace(text, &oracle.space[version]);
		for (page = 2; page < PAGE_END; page++)
			make_states(version, page);
	}
}

const struct oracle *oracle_get(void)
{
	if (oracle.tokens[2][0] == 0)
		make();
	return &oracle;
}
