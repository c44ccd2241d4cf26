/* SPDX-License-Identifier: Apache-2.0 */
/* Many caches at once: every policy at every capacity, fed from one pass over the requests. */
#ifndef APP_SWEEP_H
#define APP_SWEEP_H

#include <stddef.h>
#include <stdint.h>

#include "app/simulate.h"
#include "app/source.h"
#include "base/err.h"

/* At least as many as evict_giving_names has: no name is given twice. */
#define SWEEP_POLICIES_MAX 6

/* As many points as a curve can use; also the bound on what one run may allocate. */
#define SWEEP_CAPACITIES_MAX 64

struct sweep_axes {
	const char *policies[SWEEP_POLICIES_MAX]; /* names out of evict_giving_names */
	size_t      policy_count;
	uint64_t    capacities[SWEEP_CAPACITIES_MAX]; /* blocks; 0 is unlimited */
	size_t      capacity_count;
};

/* One cache: a point of one curve. */
struct sweep_row {
	const char            *policy;
	uint64_t               capacity_blocks; /* 0 is unlimited */
	struct simulate_counts counts;
	uint64_t               spent_ns;        /* in this cache alone */
};

struct sweep;

/**
 * Read the lists a user writes: "1000,10000,unlimited" and "lru,fifo".
 *
 * Errors  KVS_E_INVALID for an empty list or item, a capacity of 0 or past SIMULATE_CAPACITY_MAX,
 *         a policy that cannot be simulated (lists those that can), an item given twice, or more
 *         items than an axis holds.
 */
int sweep_axes_read(const char *capacities, const char *policies, struct sweep_axes *ret_axes,
		    struct kvs_error *err);

/* KVS_E_INVALID or -ENOMEM. */
int  sweep_open(const struct sweep_axes *axes, struct sweep **ret_sweep, struct kvs_error *err);
void sweep_close(struct sweep *sweep);

/* Feed one request to every cache.  -ENOMEM or KVS_E_FULL. */
int sweep_request(struct sweep *sweep, const struct source_request *request, struct kvs_error *err);

/* Rows by policy, then capacity, both in the order given; sweep_row(.., row_count) is NULL. */
const struct sweep_row *sweep_row(const struct sweep *sweep, size_t row);

#endif
