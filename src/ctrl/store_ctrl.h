/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store controller: what writers finished in Host goes to the stores, in the background.
 *
 * Listens for HOST_WRITTEN, asks the policy which adapters get which key, and puts batches of one
 * shape (namespace, group, bytes).  A key waits by name: its bytes are pinned when its task is
 * submitted, and until the task has retired; what Host gave up meanwhile is skipped.  Loaded
 * objects are never put.
 *
 * Adapters  each have their own queue and bound: a slow one holds up no other.
 * Failure   is counted and not tried again: best effort.
 * Order     Pins go before the policy's deletions, which are asked for once no put of the key is
 *           left.  A task's record goes before its pins: nothing is given back twice.
 * Doubt     A task that completes unretired keeps its pins, and its place among those in flight,
 *           until the adapter tells that it has retired.
 * Stop      joins the thread.  Tasks under way are awaited up to a deadline; what has not retired
 *           then keeps its pins, and store_ctrl_close() says so.
 * Limits    ctrl_limits; STORE_TASK_KEYS a task.  Nothing allocates after open.
 * Threads   Any, but open, start and close.  One thread of its own.
 */
#ifndef CTRL_STORE_CTRL_H
#define CTRL_STORE_CTRL_H

#include "ctrl/ctrl.h"

/* Enough for a store to work on side by side; 16 MiB at 64 KiB an object. */
#define STORE_TASK_KEYS 256u

#define STORE_CTRL_COUNTERS(X) \
	X(STORE_CTRL_HEARD, "heard")         /* keys of notices */ \
	X(STORE_CTRL_UNWANTED, "unwanted")   /* of them: no adapter was there */ \
	X(STORE_CTRL_UNQUEUED, "unqueued")   /* dropped: a queue full, its adapter left or stuck, stop */ \
	X(STORE_CTRL_GONE, "gone")           /* not in Host any more when they were looked at */ \
	X(STORE_CTRL_SUBMITTED, "submitted") /* keys, an adapter */ \
	X(STORE_CTRL_STORED, "stored")       /* keys of tasks that succeeded */ \
	X(STORE_CTRL_FAILED, "failed")       /* keys of tasks that did not */ \
	X(STORE_CTRL_REFUSED, "refused")     /* keys that an adapter took no task for */ \
	X(STORE_CTRL_TASKS, "tasks") \
	X(STORE_CTRL_DELETED, "deleted")     /* from Host, by the policy */ \
	X(STORE_CTRL_KEPT, "kept")           /* the policy said delete, somebody uses it */ \
	X(STORE_CTRL_MISNAMED, "misnamed")   /* targets of the policy that are no adapter */ \
	X(STORE_CTRL_DOUBT, "doubt")         /* tasks that completed unretired */

enum store_ctrl_counter {
#define STORE_CTRL_COUNTER(name, text) name,
	STORE_CTRL_COUNTERS(STORE_CTRL_COUNTER)
#undef STORE_CTRL_COUNTER
	STORE_CTRL_COUNTER_COUNT
};

/* As of the end of the controller's last turn. */
struct store_ctrl_stats {
	uint64_t counters[STORE_CTRL_COUNTER_COUNT];
	uint64_t stored_bytes;    /* really moved */
	uint32_t waiting;         /* keys, an adapter each */
	uint32_t in_flight;       /* tasks, those in doubt included */
	uint64_t in_flight_bytes;
};

struct store_ctrl;

/**
 * Make it, not running yet: its listener goes into host_options before there is a Host.
 *
 * Errors  KVS_E_INVALID (limits), -errno.
 */
int                  store_ctrl_open(const struct kvs_store_policy *policy,
				     const struct ctrl_limits *limits, struct store_ctrl **ret_ctrl,
				     struct kvs_error *err);
struct host_listener store_ctrl_listener(struct store_ctrl *ctrl);
/* Once; -errno: no thread, and it may be tried again. */
int                  store_ctrl_start(struct store_ctrl *ctrl, struct host *host);

/* See ctrl.h; while it runs or before. */
int  store_ctrl_attach(struct store_ctrl *ctrl, uint32_t number, struct adapter *adapter,
		       const char *name);
void store_ctrl_detach(struct store_ctrl *ctrl, uint32_t number);
bool store_ctrl_detached(struct store_ctrl *ctrl, uint32_t number, uint64_t deadline_ns);

/*
 * Wait until every key that was heard so far is stored, failed or gone; false at deadline_ns (a
 * time).
 */
bool store_ctrl_flush(struct store_ctrl *ctrl, uint64_t deadline_ns);

/**
 * Stop and free; what waits is dropped.  NULL is fine; so is one that never started.  Nobody writes
 * into the Host any more: its listener goes.  Calls of other threads have returned.
 *
 * Errors  KVS_E_QUARANTINE  tasks have not retired at deadline_ns (a time): their pins stay, as
 *                           does the controller's memory; the adapters, Host and its memory must
 *                           stay, too.  The thread is gone; calling again tries again.
 */
int store_ctrl_close(struct store_ctrl *ctrl, uint64_t deadline_ns);

void store_ctrl_stats(struct store_ctrl *ctrl, struct store_ctrl_stats *ret_stats);

#endif
