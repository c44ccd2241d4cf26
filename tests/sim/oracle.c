/* SPDX-License-Identifier: Apache-2.0 */
/* See oracle.h. */
#include "oracle.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/prng.h"

static_assert(BLOCK_ROWS <= 256, "a row's place has 8 bits in its seal");

/* Who wrote the row, and a seal over that and its place. */
struct row {
	uint64_t origin; /* page, generation */
	uint64_t seal;
};

void oracle_tokens(uint32_t page, int32_t *ret_tokens)
{
	uint32_t i;

	for (i = 0; i < PAGE_TOKENS; i++)
		ret_tokens[i] = (int32_t)(mix64(page * PAGE_TOKENS + i) >> 33);
}

void oracle_init(struct oracle *oracle)
{
	int32_t  tokens[PAGE_TOKENS];
	uint32_t page;

	*oracle = (struct oracle){ 0 };
	key_namespace("simulator", &oracle->space);
	for (page = 2; page < PAGE_END; page++) {
		oracle_tokens(page, tokens);
		prefix_hash_page(page < 4 ? NULL : &oracle->hash[page / 2], tokens, PAGE_TOKENS,
				 NULL, 0, &oracle->hash[page]);
		key_make(&oracle->space, &oracle->hash[page], 0, 0, 0, &oracle->key[page]);
	}
}

uint32_t oracle_page(const struct oracle *oracle, const struct kvs_key *key)
{
	uint32_t page;

	for (page = 2; page < PAGE_END; page++) {
		if (memcmp(&oracle->key[page], key, sizeof(*key)) == 0)
			return page;
	}
	KVS_PANIC("a key of no page");
}

uint32_t oracle_page_in(const struct oracle *oracle, const struct kvs_key *key, const void *block)
{
	const uint64_t claim = ((const struct row *)block)->origin >> 32;

	if (claim < PAGE_END && memcmp(&oracle->key[claim], key, sizeof(*key)) == 0)
		return (uint32_t)claim;
	return oracle_page(oracle, key);
}

static struct row row_of(uint64_t origin, uint32_t place)
{
	return (struct row){ .origin = origin, .seal = mix64(origin ^ (uint64_t)place << 56) };
}

void oracle_fill(void *block, uint32_t page, uint32_t generation)
{
	struct row *const rows = block;
	uint32_t          i;

	for (i = 0; i < BLOCK_ROWS; i++)
		rows[i] = row_of((uint64_t)page << 32 | generation, i);
}

uint32_t oracle_generation(const void *block)
{
	return (uint32_t)((const struct row *)block)->origin;
}

static const char *describe(uint32_t page, uint32_t place, const struct row *row)
{
	static char    sentence[160];
	const uint32_t from = (uint32_t)(row->origin >> 32);
	const uint32_t generation = (uint32_t)row->origin;
	uint32_t       i;

	for (i = 0; i < BLOCK_ROWS && row->seal != row_of(row->origin, i).seal; i++)
		;
	if (i == BLOCK_ROWS) {
		snprintf(sentence, sizeof(sentence), "row %u of page %u holds bytes nobody wrote",
			 place, page);
	} else if (from == PAGE_NONE) {
		snprintf(sentence, sizeof(sentence), "row %u of page %u was overwritten by op %u",
			 place, page, generation);
	} else {
		snprintf(sentence, sizeof(sentence),
			 "row %u of page %u holds row %u of page %u, generation %u", place, page, i,
			 from, generation);
	}
	return sentence;
}

const char *oracle_check(const struct oracle *oracle, const void *block, uint32_t page,
			 uint32_t first, uint32_t count)
{
	const struct row *const rows = block;
	const uint64_t          origin = rows[0].origin;
	const uint32_t          generation = (uint32_t)origin;
	uint32_t                i;

	if (origin >> 32 != page || generation == 0 || generation > oracle->computed[page])
		return describe(page, 0, &rows[0]);
	for (i = first; i < first + count; i++) {
		const struct row expected = row_of(origin, i);

		if (rows[i].origin != expected.origin || rows[i].seal != expected.seal)
			return describe(page, i, &rows[i]);
	}
	return NULL;
}
