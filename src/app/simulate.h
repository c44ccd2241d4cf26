/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One cache under one policy, without bytes: which pages of a request would have been hits.
 *
 *   1. Look-up: pages from the first on are hits and are used, up to the first that is absent.
 *   2. Insert: of the other pages, in order, one that is present is used and one that is absent
 *      enters; when the cache is full the policy's victim leaves, be it a page of this request.
 *      Nothing is pinned.
 *   3. Settle: the policy is told the request's chain (lru-leaf orders it).
 *
 * Limits   Memory grows by doubling with the distinct pages seen, up to the capacity; never with
 *          the trace's length.
 * Cost     O(1) a page.
 * Threads  None of its own: the owner's.
 */
#ifndef APP_SIMULATE_H
#define APP_SIMULATE_H

#include <stdint.h>

#include "app/source.h"
#include "base/err.h"

#define SIMULATE_CAPACITY_MAX (UINT32_C(1) << 31)

struct simulate_counts {
	uint64_t requests;
	uint64_t blocks;
	uint64_t hit_blocks;
	uint64_t tokens;
	uint64_t hit_tokens;
};

struct simulate;

/**
 * Open an empty cache of capacity_blocks pages; 0 is unlimited, where no policy ever acts.
 *
 * Errors  KVS_E_INVALID for a policy that is none of evict_giving_names or a capacity past
 *         SIMULATE_CAPACITY_MAX; -ENOMEM.
 */
int  simulate_open(const char *policy, uint64_t capacity_blocks, struct simulate **ret_simulate,
		   struct kvs_error *err);
void simulate_close(struct simulate *simulate);

/* A hash of each page id, made once for any number of caches. */
void simulate_hash(const struct source_request *request, uint64_t *ret_hashes);

/* Count one request.  -ENOMEM, or KVS_E_FULL past SIMULATE_CAPACITY_MAX pages unlimited. */
int simulate_request(struct simulate *simulate, const struct source_request *request,
		     const uint64_t *hashes, struct kvs_error *err);

struct simulate_counts simulate_counts(const struct simulate *simulate);

/* O(n): the index, the order and the counts agree. */
void simulate_audit(const struct simulate *simulate);

#endif
