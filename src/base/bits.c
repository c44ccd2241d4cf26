/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bits.h"

#include <string.h>

/* The bits of the last, partial word that belong to the bitmap; all ones when it is whole. */
static uint64_t tail_mask(size_t bit_count)
{
	return bit_count % 64 ? (UINT64_C(1) << (bit_count % 64)) - 1 : UINT64_MAX;
}

static size_t next_with(const uint64_t *words, size_t from, size_t bit_count, uint64_t flip)
{
	size_t   w;
	uint64_t word;

	if (from >= bit_count)
		return bit_count;
	w = from / 64;
	word = (words[w] ^ flip) & (UINT64_MAX << (from % 64));
	for (;;) {
		if (word) {
			const size_t bit = w * 64 + (size_t)__builtin_ctzll(word);

			return bit < bit_count ? bit : bit_count;
		}
		if (++w == bits_words(bit_count))
			return bit_count;
		word = words[w] ^ flip;
	}
}

void bits_fill(uint64_t *words, size_t bit_count)
{
	if (bit_count == 0)
		return;
	memset(words, 0xff, bit_count / 64 * sizeof(*words));
	if (bit_count % 64)
		words[bit_count / 64] |= tail_mask(bit_count);
}

size_t bits_count(const uint64_t *words, size_t bit_count)
{
	size_t total = 0;
	size_t w;

	for (w = 0; w < bit_count / 64; w++)
		total += (size_t)__builtin_popcountll(words[w]);
	if (bit_count % 64)
		total += (size_t)__builtin_popcountll(words[w] & tail_mask(bit_count));
	return total;
}

size_t bits_prefix(const uint64_t *words, size_t bit_count)
{
	return bits_next_clear(words, 0, bit_count);
}

size_t bits_next_clear(const uint64_t *words, size_t from, size_t bit_count)
{
	return next_with(words, from, bit_count, UINT64_MAX);
}

size_t bits_next_set(const uint64_t *words, size_t from, size_t bit_count)
{
	return next_with(words, from, bit_count, 0);
}
