/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planning an admission on shadow occupancy: which blocks of Device to give up, before anything is.
 *
 * The plan counts what the pool would count, on numbers of its own, so that a demand that does not fit
 * leaves no trace:
 *   sum over groups of ceil(max(needed - room, 0) / K) <= unbound parents
 * Candidates are taken in the order of eviction until that holds; then they are put back, the last one
 * first, and stay chosen only where it does not hold without them.  So no victim of a plan can be spared,
 * and what is spared is what was worth more.
 *
 * Candidates are the idle blocks, and *extras* that the admission itself will let go: blocks that expire
 * from the request's own tables, and those that only a copy under way keeps.  A block without a name has
 * epoch 0 and goes before all others.
 *
 * Legal order of calls: begin, need; then, unless it fits as it is: protect and release, offer, plan.
 * Numbers of the last plan are recognized by its stamp, so that a plan costs what it looks at.
 */
#ifndef COORD_SHADOW_H
#define COORD_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coord/shelf.h"

struct shadow_parent {
	uint64_t stamp;
	uint32_t gone; /* blocks given up so far; of an old stamp: none */
};

struct shadow_place {
	uint64_t seen;           /* stamp: protected, or a candidate already */
	uint64_t released_stamp;
	uint32_t released;       /* references that will go; of an old stamp: none */
};

struct shadow_block {
	uint64_t epoch;
	uint64_t rank;
	uint32_t place;
	uint32_t group;
};

struct shadow {
	struct shelf         *shelf;
	uint64_t              stamp;
	struct shadow_parent *parents; /* by number, from 1 */
	struct shadow_place  *places;
	struct shadow_block  *extras;  /* a heap, the first to go on top */
	struct shadow_block  *victims; /* in the order in which they were chosen */
	uint32_t              extra_count;
	uint32_t              victim_count;
	uint64_t              needed[GROUPS_MAX];
	uint64_t              room[GROUPS_MAX];
	uint64_t              unbound;
};

/* 0, or -ENOMEM. */
int    shadow_open(struct shadow *shadow, struct shelf *shelf);
void   shadow_close(struct shadow *shadow);
size_t shadow_bytes(const struct shadow *shadow);

void shadow_begin(struct shadow *shadow);
void shadow_end(struct shadow *shadow); /* nothing is protected or offered any more */
/* Blocks that a group will take. */
void shadow_need(struct shadow *shadow, uint32_t group, uint64_t blocks);
/* A block that must stay. */
void shadow_protect(struct shadow *shadow, uint32_t group, uint32_t block);
/* A reference that will be gone. */
void shadow_release(struct shadow *shadow, uint32_t group, uint32_t block);
/* A candidate, if nobody but the index holds it once `held` references and the released ones are gone. */
void shadow_offer(struct shadow *shadow, uint32_t group, uint32_t block, uint32_t held);

/* Is there room without a victim, or with those that are chosen by now? */
bool shadow_fits(const struct shadow *shadow);

/* True, and victims are a minimal set; false when no set of candidates is enough. */
bool shadow_plan(struct shadow *shadow);

/* Was it protected or offered since shadow_begin()? */
bool shadow_saw(const struct shadow *shadow, uint32_t place);

/* How many references of a block shadow_release() named since shadow_begin(). */
uint32_t shadow_released(const struct shadow *shadow, uint32_t place);

/* Where the blocks of a parent that go are counted, by a plan or by another caller: 0 at shadow_begin(). */
uint32_t *shadow_gone(struct shadow *shadow, uint32_t parent);

#endif
