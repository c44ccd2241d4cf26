/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store controller: what writers finished in Host goes to the stores, in the background.
 *
 * Listens for HOST_WRITTEN, asks the policy which adapters get which key, and puts batches of one shape
 * (namespace, group, bytes).  A key waits by name: its bytes are pinned when its task is submitted, and until the
 * task has retired; what Host gave up meanwhile is skipped.  Loaded objects are never put again.
 *
 * Adapters  each have their own queue and bound: a slow one holds up no other.
 * Failure   is counted, told once in a while on the log hook, and not tried again: best effort.
 * Order     Pins go before the policy's deletions.  A task's record goes before its pins: nothing is
 *           given back twice.
 * Doubt     A task that completes unretired keeps its pins until the adapter tells that it has retired.
 * Stop      joins the thread.  Tasks under way are awaited up to a deadline; what has not retired then keeps
 *           its pins, and store_ctrl_close() says so.
 */
#ifndef CTRL_STORE_CTRL_H
#define CTRL_STORE_CTRL_H

#include "ctrl/ctrl.h"

#define STORE_CTRL_COUNTERS(X) \
	X(STORE_CTRL_HEARD, "heard")             /* keys of notices */ \
	X(STORE_CTRL_UNQUEUED, "unqueued")       /* dropped: the queue of notices, or an adapter's, is full */ \
	X(STORE_CTRL_GONE, "gone")               /* not in Host any more when their turn came */ \
	X(STORE_CTRL_SUBMITTED, "submitted")     /* keys */ \
	X(STORE_CTRL_STORED, "stored")           /* keys of tasks that succeeded */ \
	X(STORE_CTRL_FAILED, "failed")           /* keys of tasks that did not */ \
	X(STORE_CTRL_TASKS, "tasks") \
	X(STORE_CTRL_DELETED, "deleted")         /* from Host, by the policy */ \
	X(STORE_CTRL_KEPT, "kept")               /* the policy said delete, somebody reads it */ \
	X(STORE_CTRL_MISNAMED, "misnamed")       /* targets of the policy that are no adapter */ \
	X(STORE_CTRL_DOUBT, "doubt")             /* tasks that completed unretired */

enum store_ctrl_counter {
#define STORE_CTRL_COUNTER(name, text) name,
	STORE_CTRL_COUNTERS(STORE_CTRL_COUNTER)
#undef STORE_CTRL_COUNTER
	STORE_CTRL_COUNTER_COUNT
};

struct store_ctrl_stats {
	uint64_t counters[STORE_CTRL_COUNTER_COUNT];
	uint64_t stored_bytes;    /* really moved */
	uint32_t waiting;         /* keys, all adapters */
	uint32_t in_flight;       /* tasks */
	uint64_t in_flight_bytes;
};

struct store_ctrl;

/* Make it, not running yet: its listener goes into host_options before there is a Host. */
int                  store_ctrl_open(const struct kvs_store_policy *policy,
				     const struct ctrl_limits *limits, struct store_ctrl **ret_ctrl,
				     struct kvs_error *err);
struct host_listener store_ctrl_listener(struct store_ctrl *ctrl);
int                  store_ctrl_start(struct store_ctrl *ctrl, struct host *host);

/* Number is free; the adapter outlives its detaching.  From any thread, while it runs or before. */
int  store_ctrl_attach(struct store_ctrl *ctrl, uint32_t number, struct adapter *adapter,
		       const char *name);
void store_ctrl_detach(struct store_ctrl *ctrl, uint32_t number);
bool store_ctrl_detached(struct store_ctrl *ctrl, uint32_t number, uint64_t deadline_ns);

/* Wait until every key that was heard so far is stored, failed or gone; false at deadline_ns (a time). */
bool store_ctrl_flush(struct store_ctrl *ctrl, uint64_t deadline_ns);

/**
 * Stop and free.  NULL is fine; so is one that never started.
 *
 * Errors  KVS_E_QUARANTINE  tasks have not retired at deadline_ns (a time): their pins stay, as does the
 *                           controller's memory; the adapters, Host and its memory must stay, too.  The thread
 *                           is gone; calling again tries again.
 */
int store_ctrl_close(struct store_ctrl *ctrl, uint64_t deadline_ns);

void store_ctrl_stats(struct store_ctrl *ctrl, struct store_ctrl_stats *ret_stats);

#endif
