/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bitmaps over caller-owned 64-bit words.
 *
 * Bit i lives in word i / 64.  Functions that take a bit count touch no bit at or past it, and
 * expect bits_words(bit_count) words.  The *prefix* of a bitmap is its run of ones from bit 0: what
 * a cache hit is made of.
 */
#ifndef BASE_BITS_H
#define BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline size_t bits_words(size_t bit_count)
{
	return (bit_count + 63) / 64;
}

static inline bool bits_test(const uint64_t *words, size_t bit)
{
	return (words[bit / 64] >> (bit % 64)) & 1;
}

static inline void bits_set(uint64_t *words, size_t bit)
{
	words[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static inline void bits_clear(uint64_t *words, size_t bit)
{
	words[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
}

/* Set all bits below bit_count. */
void bits_fill(uint64_t *words, size_t bit_count);

/* How many of the first bit_count bits are set. */
size_t bits_count(const uint64_t *words, size_t bit_count);

/* Length of the run of ones from bit 0, at most bit_count. */
size_t bits_prefix(const uint64_t *words, size_t bit_count);

/* First clear (or set) bit at or after from; bit_count when there is none. */
size_t bits_next_clear(const uint64_t *words, size_t from, size_t bit_count);
size_t bits_next_set(const uint64_t *words, size_t from, size_t bit_count);

#endif
