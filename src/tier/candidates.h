/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Candidates for Host: names of cells that Device has gained and Host may not have yet.
 *
 * A candidate is a name and nothing else: it holds no block, so whatever it names may be evicted,
 * or be on Host by another way, before anybody looks.  Who takes one out asks the cache again.
 *
 * Order    First in, first out; a cache's sink gives them group by group in order of publication.
 * Limits   capacity names, 1 to CANDIDATES_MAX, fixed at open.  A full queue drops its oldest: what
 *          was published last is the likeliest to be on Device still.
 * Threads  The cache thread only.  Pure.
 */
#ifndef TIER_CANDIDATES_H
#define TIER_CANDIDATES_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ring.h"
#include "coord/cache.h"

/* 16 million names take 0.9 GiB; nobody drains as many in the time that Device keeps them. */
#define CANDIDATES_MAX (1u << 24)

/* A cell_name by value.  Equal bytes, equal cell. */
struct candidate {
	struct page_name page;
	uint32_t         group;
	uint32_t         offset;
};

static_assert(sizeof(struct candidate) == 56, "a candidate is a key of a map: no padding");

struct candidates {
	struct ring ring;
	uint64_t    pushed;
	uint64_t    overflowed; /* oldest ones that made room */
	uint64_t    cleared;
};

/* Errors: KVS_E_INVALID  capacity out of range; -ENOMEM.  The sentence names the field. */
int  candidates_open(struct candidates *candidates, uint32_t capacity, struct kvs_error *err);
void candidates_close(struct candidates *candidates); /* accepts a zeroed one */

static inline size_t candidates_bytes(const struct candidates *candidates) /* memory in use */
{
	return ring_bytes(&candidates->ring);
}

void candidates_push(struct candidates *candidates, const struct cell_name *name);
/* False when there is none. */
bool candidates_pop(struct candidates *candidates, struct candidate *ret_candidate);
/*
 * Put one that was popped at the tail again: after as many pops as there were candidates, those put
 * back stand in their old order.
 */
void candidates_put_back(struct candidates *candidates, const struct candidate *candidate);
void candidates_clear(struct candidates *candidates);

/* Makes every cell that Device gains a candidate. */
struct cache_sink candidates_sink(struct candidates *candidates);

static inline uint32_t candidates_count(const struct candidates *candidates)
{
	return candidates->ring.count;
}

struct candidate candidate_of(const struct cell_name *name);

/* Points into the candidate. */
static inline struct cell_name candidate_name(const struct candidate *candidate)
{
	return (struct cell_name){ &candidate->page.space, &candidate->page.hash, candidate->group,
				   candidate->offset };
}

#endif
