/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small seeded generator (xoshiro256**, seeded through splitmix64).
 *
 * The same seed gives the same sequence on every machine: simulations and workloads replay from
 * it.  Not for secrets.
 */
#ifndef BASE_PRNG_H
#define BASE_PRNG_H

#include <stdbool.h>
#include <stdint.h>

struct prng {
	uint64_t state[4];
};

void     prng_seed(struct prng *prng, uint64_t seed);
uint64_t prng_u64(struct prng *prng);
/* Uniform in [0, bound), without bias; bound >= 1. */
uint64_t prng_below(struct prng *prng, uint64_t bound);
/* True in numerator of denominator cases. */
bool     prng_chance(struct prng *prng, uint32_t numerator, uint32_t denominator);
/* Exponentially distributed with the given mean, rounded to an integer; UINT64_MAX where it does not fit. */
uint64_t prng_exponential(struct prng *prng, uint64_t mean);

/* One splitmix64 step: a good 64-bit mix of x. */
static inline uint64_t mix64(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

#endif
