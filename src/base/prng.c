/* SPDX-License-Identifier: Apache-2.0 */
/* xoshiro256** by Blackman and Vigna (public domain algorithm), written from its description. */
#include "base/prng.h"

#include <math.h>

#include "base/err.h"

static uint64_t rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

void prng_seed(struct prng *prng, uint64_t seed)
{
	int i;

	for (i = 0; i < 4; i++) {
		prng->state[i] = mix64(seed);
		seed += UINT64_C(0x9e3779b97f4a7c15);
	}
}

uint64_t prng_u64(struct prng *prng)
{
	uint64_t *const s = prng->state;
	const uint64_t  result = rotl(s[1] * 5, 7) * 9;
	const uint64_t  t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

uint64_t prng_below(struct prng *prng, uint64_t bound)
{
	uint64_t excess, value;

	KVS_ASSERT_CMP(bound, >=, 1);
	/* Values at or past the last whole multiple of bound would favour small results: draw again. */
	excess = (UINT64_MAX % bound + 1) % bound;
	do {
		value = prng_u64(prng);
	} while (value > UINT64_MAX - excess);
	return value % bound;
}

bool prng_chance(struct prng *prng, uint32_t numerator, uint32_t denominator)
{
	return prng_below(prng, denominator) < numerator;
}

uint64_t prng_exponential(struct prng *prng, uint64_t mean)
{
	/* 53 bits of a fraction in (0, 1]: never log(0). */
	const double fraction = ((double)(prng_u64(prng) >> 11) + 1) / 9007199254740992.0;
	const double value = -log(fraction) * (double)mean + 0.5;

	/* A mean out of a flag may be absurd, and converting what does not fit is undefined. */
	return value < 0x1p64 ? (uint64_t)value : UINT64_MAX;
}
