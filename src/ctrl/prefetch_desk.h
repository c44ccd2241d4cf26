/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The prefetch controller's own shape: prefetch_tables.c has its memory, prefetch_ctrl.c is what
 * callers enter, prefetch_turn.c what its thread does, prefetch_give_up.c how it ends what is given
 * up, and prefetch_hands.c how a run reaches Host and adapters.
 *
 * A request lies in a slot from its submission until its result was taken and its run is OVER.  A
 * run is the thread's; slots are handed over under the lock: what was asked is constant from QUEUED
 * on, so that the thread reads it without.
 */
#ifndef CTRL_PREFETCH_DESK_H
#define CTRL_PREFETCH_DESK_H

#include "ctrl/loop.h"
#include "ctrl/prefetch_run.h"

enum ask_stage {
	ASK_FREE,
	ASK_FILLING,   /* the submitter still copies */
	ASK_QUEUED,
	ASK_UNDER_WAY,
	ASK_READY,     /* the result waits */
	ASK_TAKEN      /* or dropped; the run is not OVER */
};

struct ask_slot {
	struct prefetch_ask ask; /* constant from QUEUED on */
	void (*done)(void *arg, uint64_t request_id);
	void *done_arg;

	/* Under the lock. */
	enum ask_stage         stage;
	bool                   dropped; /* cancelled: nobody gets a result */
	bool                   has_run;
	bool                   found_known;
	uint32_t               found_boundary;
	struct prefetch_result result;
	uint64_t              *locked; /* bits of it */
};

struct prefetch_ctrl {
	struct host      *host;
	host_client       client; /* stages */
	struct ctrl_limits limits;
	struct loop       loop;

	/* Under the loop's lock. */
	struct slots               slots;
	struct ask_slot           *asks;
	struct link               *links;   /* a slot is in at most one of: */
	struct list                queue;   /* QUEUED, oldest first */
	struct list                dropped; /* given up since the last turn */
	uint64_t                   serial;  /* of the last request */
	uint64_t                   submitted, refused_full;
	bool                       turning; /* the thread has taken something and not told yet */
	struct prefetch_ctrl_stats stats;

	/* The thread's. */
	struct prefetch_run       *runs; /* one more than may be in flight: for those that end in the queue */
	struct slots               busy; /* runs */
	struct prefetch_tools      tools;
	struct prefetch_ctrl_stats now;
	struct seats               seats;
	uint64_t                  *answer; /* of an adapter: bits */

	/* The arrays of slots, and rows for one call of the Host. */
	struct kvs_key  *all_keys;
	uint64_t        *all_bytes, *all_held, *all_locked;
	struct kvs_span *spans;
	int             *rc;
};

extern const struct prefetch_hands prefetch_hands;

/* Checks the limits: KVS_E_INVALID by field, -ENOMEM.  The rest is zeroed. */
int  prefetch_tables_open(const struct ctrl_limits *limits, struct prefetch_ctrl **ret_ctrl,
			  struct kvs_error *err);
void prefetch_tables_close(struct prefetch_ctrl *ctrl);

/* One turn behind a sleep; when the next deadline is, as a time. */
uint64_t prefetch_turn(struct prefetch_ctrl *ctrl);

/*
 * All that has no result gets END_STOPPED, and results that wait are dropped with their locks.
 */
void prefetch_turn_stop(struct prefetch_ctrl *ctrl);

/*
 * How much of a list this turn takes: what comes while it is taken has signalled, and is the next
 * turn's.  Whoever asks again as soon as he is answered must not hold up all others.
 */
uint32_t prefetch_turn_count(struct prefetch_ctrl *ctrl, const struct list *list);

/*
 * Parts of a turn: see who is there; a run for a request that has left the queue; tell the world of
 * a run, whose slot goes with it where nobody waits for a result.
 */
void                 prefetch_turn_take_seats(struct prefetch_ctrl *ctrl);
struct prefetch_run *prefetch_turn_begin(struct prefetch_ctrl *ctrl, struct ask_slot *slot);
void                 prefetch_turn_deliver(struct prefetch_ctrl *ctrl, struct prefetch_run *run);

/* What was cancelled gives its locks back. */
void prefetch_drop_all(struct prefetch_ctrl *ctrl);
/* What is past its deadline gets its result; the nearest deadline that is left. */
uint64_t prefetch_expire(struct prefetch_ctrl *ctrl);

/* With the lock: the slot of a request that lives; NULL. */
struct ask_slot *prefetch_slot_locked(struct prefetch_ctrl *ctrl, uint64_t request_id);
/* With the lock: it has left the queue, and is the thread's. */
void prefetch_slot_take_up_locked(struct ask_slot *slot);
/* With the lock: nobody gets its result, and the thread gives back what it has. */
void prefetch_slot_drop_locked(struct prefetch_ctrl *ctrl, struct ask_slot *slot);
/* With the lock: the slot is free when nobody needs it any more. */
void prefetch_slot_settle_locked(struct prefetch_ctrl *ctrl, struct ask_slot *slot);

#endif
