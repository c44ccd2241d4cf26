/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a row of the reference engine's cache must be.
 *
 * The running state of a prompt is a digest of its tokens, the engine's own, apart from the hash chain
 * that it helps to test.  A row is a word a layer, each of them a function of the state and the layer;
 * layers of another group are other layers.
 */
#ifndef ENGINE_ROWS_H
#define ENGINE_ROWS_H

#include <stdint.h>

#include "base/prng.h"

/* More layers than any model has: what tells the layers of two groups apart. */
#define ROWS_LAYERS_MAX 65536u

/* The state behind one token more; 0 before the first. */
static inline uint64_t rows_next(uint64_t state, int32_t token)
{
	return mix64(state ^ (uint32_t)token);
}

/* No word is a simple function of its neighbour. */
static inline uint64_t rows_word(uint64_t state, uint64_t layer)
{
	uint64_t x = state + layer * UINT64_C(0x9e3779b97f4a7c15);

	x ^= x >> 32;
	x *= UINT64_C(0xd6e8feb86659fd93);
	return x ^ (x >> 29);
}

/* A checkpoint is of exactly so many tokens: one token early or late, it is another. */
static inline uint64_t rows_checkpoint(uint64_t state, uint64_t tokens)
{
	return mix64(state ^ mix64(tokens));
}

#endif
