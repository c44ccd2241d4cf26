/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission planned the slow way: every set of candidates is tried.
 *
 * Candidates are numbered in the order in which they would go.  A set of them is a number, bit i for
 * candidate i, so that the least number that makes room is the plan: nothing in it can be spared, and
 * nothing in it could be spared at the price of what is worth less.  All is asked of the cache's public
 * face; nothing is shared with its planner.
 */
#ifndef NAIVE_H
#define NAIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "coord/cache.h"

#define NAIVE_BLOCKS 64

/* How a test names pages, so that the naive planner can look up what a probe hit. */
struct naive_names {
	const struct kvs_namespace *space;
	const struct prefix_hash   *hashes;
	struct prefix_hash          tail; /* of the boundary, when it lies inside a page */
};

struct naive_block {
	uint32_t group;
	uint32_t block;
	uint32_t refs;
	bool     published;
	bool     must_stay; /* the probe hit it */
	uint32_t letting_go; /* references that the admission or the released ones will drop */
	uint64_t epoch;
	uint32_t grade;
	int64_t  rank;
};

struct naive_plan {
	struct naive_block blocks[NAIVE_BLOCKS]; /* all held ones; candidates first, in order */
	uint32_t           block_count;
	uint32_t           candidate_count;
	uint64_t           needed[GROUPS_MAX];
	bool               possible;
	uint32_t           victims;              /* bits of candidates */
};

void naive_plan(struct cache *cache, const struct cache_admission *admission,
		const struct naive_names *names, const struct cache_block *released,
		uint32_t released_count, struct naive_plan *ret_plan);

#endif
