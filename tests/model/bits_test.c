/* SPDX-License-Identifier: Apache-2.0 */
/* A bitmap against an array of booleans, bit by bit; every bit count, whole words and not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "prop.h"

#define BITS 200

struct world {
	uint64_t words[4];
	bool     bits[256];
};

/* Over all words: bits past BITS must stay as they are, too. */
static void compare(const struct world *world)
{
	size_t i;

	for (i = 0; i < 256; i++)
		KVS_ASSERT_CMP(bits_test(world->words, i), ==, world->bits[i]);
}

static size_t first_with(const bool *bits, size_t from, size_t count, bool value)
{
	for (; from < count; from++) {
		if (bits[from] == value)
			return from;
	}
	return count;
}

/* All that reads, over the first count bits, from a copy with no word to spare. */
static void compare_reads(const struct world *world, size_t from, size_t count)
{
	const bool *const bits = world->bits;
	uint64_t *const   words = malloc(bits_words(count) * sizeof(*words) + (count == 0));
	size_t            total = 0;
	size_t            i;

	KVS_ASSERT(words);
	memcpy(words, world->words, bits_words(count) * sizeof(*words));
	for (i = 0; i < count; i++)
		total += bits[i];
	KVS_ASSERT_CMP(bits_count(words, count), ==, total);
	KVS_ASSERT_CMP(bits_prefix(words, count), ==, first_with(bits, 0, count, false));
	KVS_ASSERT_CMP(bits_next_clear(words, from, count), ==,
		       first_with(bits, from, count, false));
	KVS_ASSERT_CMP(bits_next_set(words, from, count), ==, first_with(bits, from, count, true));
	free(words);
}

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	return world;
}

enum { SET, CLEAR, FILL, READ };

static const struct prop_kind kinds[] = {
	{ "SET", 20 }, { "CLEAR", 30 }, { "FILL", 1 }, { "READ", 20 }
};

static void fill(struct world *world, size_t count)
{
	size_t i;

	bits_fill(world->words, count);
	for (i = 0; i < count; i++)
		world->bits[i] = true;
}

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;
	const size_t        bit = op->arg[0] % 256;

	if (op->kind == SET) {
		bits_set(world->words, bit);
		world->bits[bit] = true;
	} else if (op->kind == CLEAR) {
		bits_clear(world->words, bit);
		world->bits[bit] = false;
	} else if (op->kind == READ) {
		compare_reads(world, op->arg[0] % 257, op->arg[1] % 257);
	} else {
		fill(world, op->arg[0] % (BITS + 1));
	}
	compare(world);
}

PROP_MAIN("bits", bitmaps_are_arrays_of_booleans, 60, 500, free)
