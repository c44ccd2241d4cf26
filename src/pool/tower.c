/* SPDX-License-Identifier: Apache-2.0 */
/* See tower.h.  What is n on one level is n / 64 on the next. */
#include "pool/tower.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/err.h"

/* How many bits a level has: the words of the one below. */
static uint32_t level_bits(const struct tower *tower, uint32_t level)
{
	uint32_t bits = tower->size;

	while (level-- > 0)
		bits = (uint32_t)bits_words(bits);
	return bits;
}

static size_t word_count(const struct tower *tower)
{
	size_t   count = 0;
	uint32_t i;

	for (i = 1; i <= tower->level_count; i++)
		count += level_bits(tower, i);
	return count;
}

int tower_open(struct tower *tower, uint32_t size, bool full)
{
	uint64_t *words;
	uint32_t  bits = size;
	uint32_t  i;

	KVS_ASSERT_CMP(size, >, 0);
	KVS_ASSERT_CMP(size, <, SLOT_NONE);
	*tower = (struct tower){ .size = size };
	do {
		bits = (uint32_t)bits_words(bits);
		tower->level_count++;
	} while (bits > 1);
	KVS_ASSERT_CMP(tower->level_count, <=, TOWER_LEVELS_MAX);
	words = calloc(word_count(tower), sizeof(*words));
	if (!words)
		return -ENOMEM;
	for (i = 0; i < tower->level_count; i++) {
		tower->level[i] = words;
		words += bits_words(level_bits(tower, i));
		if (full)
			bits_fill(tower->level[i], level_bits(tower, i));
	}
	return 0;
}

void tower_close(struct tower *tower)
{
	free(tower->level[0]);
	*tower = (struct tower){ 0 };
}

size_t tower_bytes(const struct tower *tower)
{
	return word_count(tower) * sizeof(*tower->level[0]);
}

void tower_add(struct tower *tower, uint32_t number)
{
	uint32_t level;

	KVS_ASSERT_CMP(number, <, tower->size);
	for (level = 0; level < tower->level_count; level++, number /= 64) {
		const bool told = tower->level[level][number / 64] != 0;

		bits_set(tower->level[level], number);
		if (told)
			return;
	}
}

void tower_drop(struct tower *tower, uint32_t number)
{
	uint32_t level;

	KVS_ASSERT_CMP(number, <, tower->size);
	for (level = 0; level < tower->level_count; level++, number /= 64) {
		bits_clear(tower->level[level], number);
		if (tower->level[level][number / 64] != 0)
			return;
	}
}

bool tower_has(const struct tower *tower, uint32_t number)
{
	KVS_ASSERT_CMP(number, <, tower->size);
	return bits_test(tower->level[0], number);
}

/* The lowest member under a bit of a level that is set. */
static uint32_t descend(const struct tower *tower, uint32_t level, uint32_t number)
{
	while (level-- > 0) {
		KVS_ASSERT_CMP(tower->level[level][number], !=, 0);
		number = number * 64 + (uint32_t)__builtin_ctzll(tower->level[level][number]);
	}
	return number;
}

uint32_t tower_next(const struct tower *tower, uint32_t from)
{
	uint32_t level;
	uint32_t bits = tower->size;

	/* Up, one word a level, each time to the right of the word that held nothing. */
	for (level = 0; level < tower->level_count && from < bits; level++) {
		const uint64_t word = tower->level[level][from / 64] & UINT64_MAX << from % 64;

		if (word) {
			from = from / 64 * 64 + (uint32_t)__builtin_ctzll(word);
			return descend(tower, level, from);
		}
		from = from / 64 + 1;
		bits = (uint32_t)bits_words(bits);
	}
	return SLOT_NONE;
}

uint32_t tower_count(const struct tower *tower)
{
	return (uint32_t)bits_count(tower->level[0], tower->size);
}

void tower_audit(const struct tower *tower)
{
	uint32_t level, i;

	for (level = 1; level < tower->level_count; level++) {
		for (i = 0; i < level_bits(tower, level); i++) {
			KVS_ASSERT_CMP(bits_test(tower->level[level], i), ==,
				       tower->level[level - 1][i] != 0);
		}
	}
}
