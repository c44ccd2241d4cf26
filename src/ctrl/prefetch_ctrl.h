/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The prefetch controller: what a request wants and Host lacks comes from the stores, ahead of
 * need.
 *
 *   QUEUED --> LOOKUP --> LOAD --> result, taken once
 *        \----------\--------\--> deadline, cancel, stop: result, and what is late drains
 *
 * A request is a list of keys in chunks and groups (match/flat.h).  What Host has was locked when
 * it was submitted; every adapter is asked for the rest and locks what it finds; the policy chooses
 * one adapter a key; the boundary is the greatest that Host and the plan support for all groups;
 * what is not used at it is unlocked before anything is loaded.  Then temporary objects are staged
 * (a shorter boundary where Host has no room), loaded, and published with their reader's locks,
 * adapter by adapter as they finish.  What failed is discarded, never published; the boundary is
 * taken again over what there is, and what lies beyond it is unlocked.
 *
 * Result    once: the boundary, and which keys the reader holds locked: those that a restore there
 *           uses, each lock_count times.
 * Deadline  covers queue, lookup and load.  What has come by then is the result; the rest drains:
 *           buffers and store locks are kept until the I/O retires, nothing of it is published, and
 *           the request keeps its place among those in flight.  A completion that is there when the
 *           deadline is seen comes before it.
 * Locks     of Host and stores are given back on success, failure, cancel, the reader's close and
 *           stop.
 * Limits    in_flight_max requests beyond QUEUED, in_flight_bytes of Host for them (what they lack
 *           until they are planned, then what is staged; one request alone may exceed it);
 *           queue_max in all; the rest waits in order.  Nothing allocates after open.
 * Threads   Any, but open and close.  One thread of its own.
 */
#ifndef CTRL_PREFETCH_CTRL_H
#define CTRL_PREFETCH_CTRL_H

#include "ctrl/ctrl.h"
#include "match/flat.h"

struct prefetch_request {
	host_client           reader;     /* who gets the locks: a client of the Host, open */
	const struct kvs_key *keys;       /* in the order of flat's bits, each once; copied */
	const uint64_t       *bytes;      /* one a key: what to reserve for it; copied */
	uint32_t              chunk_count;
	const struct flat    *flat;       /* copied; chunk_count * flat_keys(flat) keys */
	const uint64_t       *held;       /* bits: locked in Host for the reader, lock_count times each */
	uint32_t              lock_count; /* 1 .. HOST_LOCKS_MAX */
	bool                  retain;     /* keep what is loaded, whatever the policy says */
	uint64_t              deadline_ns; /* a time; UINT64_MAX: none */
	/* Its result waits; from the controller's thread, no lock held; NULL: nobody asks. */
	void (*done)(void *arg, uint64_t request_id);
	void *done_arg;
};

/* What cut the boundary, last; of what was cut nowhere, END_WHOLE. */
#define PREFETCH_ENDS(X) \
	X(END_WHOLE, "whole") \
	X(END_MISSING, "missing")     /* no store has the next key, or the policy asks none for it */ \
	X(END_HOST_FULL, "host_full") /* Host took no object for it */ \
	X(END_FAILED, "failed")       /* it was found, and its load failed */ \
	X(END_DEADLINE, "deadline") \
	X(END_CANCELLED, "cancelled") \
	X(END_STOPPED, "stopped")     /* the controller was closed */

enum prefetch_end {
#define PREFETCH_END(name, text) name,
	PREFETCH_ENDS(PREFETCH_END)
#undef PREFETCH_END
	PREFETCH_END_COUNT
};

struct prefetch_result {
	uint32_t          boundary;   /* chunks */
	uint32_t          from_host;  /* locked keys that Host had */
	uint32_t          from_store; /* and those that were loaded */
	enum prefetch_end end;
};

/*
 * Counters include every request with a result; what is in flight is as of the end of the
 * controller's last turn.
 */
struct prefetch_ctrl_stats {
	uint64_t submitted, refused_full, finished;
	uint64_t ends[PREFETCH_END_COUNT];
	uint64_t keys_asked, keys_found;   /* of stores, each of each */
	uint64_t keys_loaded, keys_failed; /* published; not, though it was in time */
	uint64_t loaded_bytes;
	uint64_t late_keys;    /* loaded past the end of their request: discarded */
	uint64_t misplanned;   /* answers of the policy that no store had */
	uint64_t refused_tasks; /* by adapters: counted as not found, or failed */
	uint32_t queued, in_flight; /* beyond QUEUED, those that drain included */
	uint32_t draining;
	uint64_t in_flight_bytes;
};

struct prefetch_ctrl;

/**
 * Open and start.
 *
 * Errors  KVS_E_INVALID (limits), KVS_E_FULL (no client left in the Host), -errno.
 */
int prefetch_ctrl_open(struct host *host, const struct kvs_prefetch_policy *policy,
		       const struct ctrl_limits *limits, struct prefetch_ctrl **ret_ctrl,
		       struct kvs_error *err);

/* See ctrl.h. */
int  prefetch_ctrl_attach(struct prefetch_ctrl *ctrl, uint32_t number, struct adapter *adapter,
			  const char *name);
void prefetch_ctrl_detach(struct prefetch_ctrl *ctrl, uint32_t number);
bool prefetch_ctrl_detached(struct prefetch_ctrl *ctrl, uint32_t number, uint64_t deadline_ns);

/**
 * Queue a request; returns at once.
 *
 * Owner   The `held` locks are the controller's until the result gives them back.
 * Errors  KVS_E_INVALID (no chunks, more keys than request_keys, lock_count), KVS_E_FULL
 *         (queue_max), KVS_E_CLOSED: nothing happened, and `held` locks are still the caller's.
 */
int prefetch_ctrl_submit(struct prefetch_ctrl *ctrl, const struct prefetch_request *request,
			 uint64_t *ret_request_id);

/*
 * Take the result, once.  ret_locked: one bit a key, the reader's to unlock.  False while it is
 * under way, after it was taken, and for ids that name no request.
 */
bool prefetch_ctrl_take(struct prefetch_ctrl *ctrl, uint64_t request_id,
			struct prefetch_result *ret_result, uint64_t *ret_locked);

/*
 * Keys that stores and Host were found to have, as a boundary in chunks: known before the load
 * ends, and until the result is taken.  It is the answer to a query of what a lookup hit, which
 * door B is to offer and does not yet: an engine may plan its compute by it while the load runs.
 */
bool prefetch_ctrl_found(struct prefetch_ctrl *ctrl, uint64_t request_id, uint32_t *ret_boundary);

/*
 * Give it up: its result is dropped at once; soon the reader's locks are given back, and late I/O
 * drains.  A `done` that is being called comes nevertheless, another does not.  Unknown ids are
 * none.  The reader may be closed already.
 */
void prefetch_ctrl_cancel(struct prefetch_ctrl *ctrl, uint64_t request_id);

/*
 * Wait until nothing is queued, under way or draining, and all that was given up is back; false at
 * deadline_ns (a time).  Results may still wait to be taken.  A manager needs no such wait, its
 * close has one; rigs do, which look at the Host behind it.
 */
bool prefetch_ctrl_idle(struct prefetch_ctrl *ctrl, uint64_t deadline_ns);

/**
 * Stop and free: requests end as END_STOPPED, their `done` is called, their locks and those of
 * results that nobody took are given back; joins the thread.  NULL is fine.  Calls of other threads
 * have returned, and none follows; only what `done` itself calls may.
 *
 * Errors  KVS_E_QUARANTINE  loads have not retired at deadline_ns (a time): their buffers stay
 *                           staged; adapters, Host and its memory must stay, too.  The thread is
 *                           gone; calling again tries again.
 */
int prefetch_ctrl_close(struct prefetch_ctrl *ctrl, uint64_t deadline_ns);

void prefetch_ctrl_stats(struct prefetch_ctrl *ctrl, struct prefetch_ctrl_stats *ret_stats);

#endif
