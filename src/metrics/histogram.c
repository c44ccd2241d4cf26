/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log-linear histogram: values below one octave of steps have a bucket each, every further octave
 * is cut into as many steps.
 *
 * The one writer adds with plain relaxed loads and stores; a reader beside it may miss the newest
 * values.
 */
#include <math.h>

#include "metrics/metrics.h"

#define STEP_BITS 6

_Static_assert(HISTOGRAM_STEPS == 1 << STEP_BITS, "STEP_BITS number the steps of an octave");
_Static_assert(HISTOGRAM_BUCKETS == HISTOGRAM_STEPS * (64 - STEP_BITS + 1),
	       "the last bucket ends at UINT64_MAX");

static uint32_t bucket_of(uint64_t value)
{
	uint32_t shift;

	if (value < HISTOGRAM_STEPS)
		return (uint32_t)value;
	shift = 63 - STEP_BITS - (uint32_t)__builtin_clzll(value);
	return (shift + 1) * HISTOGRAM_STEPS + (uint32_t)(value >> shift) % HISTOGRAM_STEPS;
}

/* The largest value that falls into the bucket. */
static uint64_t upper_edge(uint32_t bucket)
{
	const uint32_t step = bucket % HISTOGRAM_STEPS;
	uint32_t       shift;

	if (bucket < HISTOGRAM_STEPS)
		return bucket;
	shift = bucket / HISTOGRAM_STEPS - 1;
	return ((uint64_t)(HISTOGRAM_STEPS + step) << shift) + ((UINT64_C(1) << shift) - 1);
}

/* Relaxed: a value stands alone, nothing is published through it.  Load and store: there is one writer. */
static uint64_t get(const _Atomic uint64_t *cell)
{
	return atomic_load_explicit(cell, memory_order_relaxed);
}

static void put(_Atomic uint64_t *cell, uint64_t value)
{
	atomic_store_explicit(cell, value, memory_order_relaxed);
}

/* A sum that wrapped would give a mean from nowhere; one that stays at the end is a lower bound. */
static uint64_t add_saturating(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
	_Atomic uint64_t *const bucket = &histogram->bucket[bucket_of(value)];

	put(bucket, get(bucket) + 1);
	put(&histogram->sum, add_saturating(get(&histogram->sum), value));
	put(&histogram->count, get(&histogram->count) + 1);
	if (value > get(&histogram->max))
		put(&histogram->max, value);
}

/* Nearest rank of count values, from 1. */
static uint64_t rank_of(double percent, uint64_t count)
{
	const double rank = ceil(percent * (double)count / 100);

	if (!(rank > 1))
		return 1;
	return rank < (double)count ? (uint64_t)rank : count;
}

uint64_t histogram_percentile(const struct histogram *histogram, double percent)
{
	const uint64_t count = get(&histogram->count);
	const uint64_t max = get(&histogram->max);
	const uint64_t rank = rank_of(percent, count);
	uint64_t       below = 0;
	uint32_t       i;

	if (count == 0)
		return 0;
	for (i = 0; i < HISTOGRAM_BUCKETS; i++) {
		below += get(&histogram->bucket[i]);
		if (below >= rank)
			return upper_edge(i) < max ? upper_edge(i) : max;
	}
	/* Only beside a writer whose count we saw before its bucket. */
	return max;
}

double histogram_mean(const struct histogram *histogram)
{
	const uint64_t count = get(&histogram->count);

	return count ? (double)get(&histogram->sum) / (double)count : 0;
}
