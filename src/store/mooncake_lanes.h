/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which lane of a way a call may have, and the arrays that the call is made of.
 *
 * Lane 0 is for lookups, removals and purges, so that none waits behind bulk; the others are shared
 * by gets and puts.  Who waits is served in the order of coming.  A lane that is down, where an agent
 * starts again or a hand hangs, takes no work from those that could do it: it is leased only when
 * none of them is left to wait for.
 *
 * Waiting  ends after the time that is asked for: whoever holds a lane is bounded by its way.
 * Threads  Any.  Allocates at open only.
 */
#ifndef STORE_MOONCAKE_LANES_H
#define STORE_MOONCAKE_LANES_H

#include "mooncake/way.h"
#include "os/os.h"

/* Scratch of one call, for MOONCAKE_NAMES_MAX rows. */
struct mooncake_lane {
	uint32_t          number; /* the way's */
	const char      **names;  /* of each row of text */
	char            (*text)[LABEL_TEXT_MAX];
	struct kvs_span  *spans;
	int64_t          *codes;
	uint32_t         *rows;   /* of the batch that a name stands for */
	void             *memory; /* all of these */
};

struct mooncake_waiter;

/* The lanes that may stand in for each other. */
struct mooncake_lane_set {
	struct mooncake_lane   *idle[MOONCAKE_LANES_MAX]; /* the last one is leased first */
	uint32_t                idle_count;
	uint32_t                leased_count;
	struct mooncake_waiter *first, *last;
};

struct mooncake_lanes {
	struct os_mutex          mutex; /* guards the sets; before the way's own */
	struct mooncake_way     *way;
	struct mooncake_lane_set lookups, moves;
	struct mooncake_lane     lane[1 + MOONCAKE_LANES_MAX];
	uint32_t                 count; /* lane 0 included */
};

/* move_count: lanes of gets and puts.  -ENOMEM; then fini is still fine. */
int  mooncake_lanes_init(struct mooncake_lanes *lanes, struct mooncake_way *way, uint32_t move_count);
/* No lane is leased.  Zeroed lanes are fine. */
void mooncake_lanes_fini(struct mooncake_lanes *lanes);

/* NULL when none came free within timeout_ns. */
struct mooncake_lane *mooncake_lanes_lease(struct mooncake_lanes *lanes, bool moves,
					   uint64_t timeout_ns);
void mooncake_lanes_return(struct mooncake_lanes *lanes, struct mooncake_lane *lane);

/* How many wait for a lane of gets and puts. */
uint32_t mooncake_lanes_waiting(struct mooncake_lanes *lanes);

uint64_t mooncake_lanes_bytes(const struct mooncake_lanes *lanes);

#endif
