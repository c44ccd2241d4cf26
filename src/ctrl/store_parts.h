/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store controller's own shape, shared by store_ctrl.c, which callers enter, and store_turn.c,
 * what its thread does.
 */
#ifndef CTRL_STORE_PARTS_H
#define CTRL_STORE_PARTS_H

#include <assert.h>

#include "base/ring.h"
#include "ctrl/loop.h"
#include "ctrl/store_queue.h"

/* Keys of notices taken, asked about and deleted at a time. */
#define STORE_HEAR_KEYS 1024u

static_assert(STORE_HEAR_KEYS <= HOST_KEYS_MAX && STORE_TASK_KEYS <= HOST_KEYS_MAX &&
		      STORE_TASK_KEYS <= STORE_HEAR_KEYS,
	      "one call of the Host takes a batch");
static_assert(STORE_TASK_KEYS <= OP_KEYS_MAX, "a task is one op, as ctrl.h counts them");

struct store_ctrl {
	const struct kvs_store_policy *policy;
	struct host                   *host; /* from start on */
	struct loop                    loop;

	/* Under the loop's lock. */
	struct ring             inbox;   /* keys of notices */
	uint64_t                heard;   /* that went into it, ever */
	uint64_t                settled; /* of them, in order of numbers: all below have ended */
	uint64_t                unheard; /* that did not: the inbox was full */
	uint64_t                unwanted; /* nor these: no adapter was there */
	uint32_t                flushing; /* callers that wait */
	struct store_ctrl_stats stats;   /* of the last turn */

	/* The thread's. */
	struct store_queue      queue;
	struct store_ctrl_stats now;
	struct seats            seats;
	uint64_t                taken; /* out of the inbox, ever: the number of the next key */

	/* The thread's, for one batch at a time. */
	struct kvs_key  keys[STORE_HEAR_KEYS];
	uint64_t        bytes[STORE_HEAR_KEYS];
	uint64_t        targets[STORE_HEAR_KEYS];
	struct host_pin pins[STORE_HEAR_KEYS];
	struct kvs_span spans[STORE_HEAR_KEYS];
	int             rc[STORE_HEAR_KEYS];
	bool            drop[STORE_HEAR_KEYS];
};

/* One turn behind a sleep.  True when more waits to be heard: the next turn needs no sleep. */
bool store_turn(struct store_ctrl *ctrl);

/* What waits is dropped, whoever it was for: only tasks are left. */
void store_turn_drop_all(struct store_ctrl *ctrl);

#endif
