/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The prefetch controller: what a request wants and Host lacks comes from the stores, ahead of need.
 *
 *   QUEUED -> LOOKUP -> LOAD -> DONE --take--> gone
 *                          \--deadline, cancel--> DONE, and DRAINING until the late I/O has retired
 *
 * A request is a list of keys in chunks and groups (match/flat.h).  What Host has was locked when it was
 * submitted; every adapter is asked for the rest and locks what it finds; the policy chooses one adapter a key;
 * the boundary is the greatest that Host and the plan support for all groups; what lies beyond it, or is not
 * used at it, is unlocked before anything is loaded.  Then temporary objects are staged (a shorter boundary
 * where Host has no room), loaded, and published with their reader's locks, adapter by adapter as they finish.
 * What failed is discarded, never published; the boundary is taken again over what there is, and what lies beyond
 * is unlocked.
 *
 * Result    once: the boundary, and which keys the reader holds locked: those that a restore there uses, each
 *           lock_count times.
 * Deadline  covers queue, lookup and load.  What has come by then is the result; the rest drains: buffers and
 *           store locks are kept until the I/O retires, nothing of it is published, and the request keeps
 *           its place among those in flight.  A completion in the same turn comes before the deadline.
 * Locks     of Host and stores are given back on success, failure, cancel, the reader's close and stop.
 * Limits    in_flight_max requests beyond QUEUED, in_flight_bytes of Host reserved by them (one request alone
 *           may exceed it); queue_max in all; the rest waits in order.  Nothing allocates after open.
 * Threads   Any.  One thread of its own.
 */
#ifndef CTRL_PREFETCH_CTRL_H
#define CTRL_PREFETCH_CTRL_H

#include "ctrl/ctrl.h"
#include "match/flat.h"

struct prefetch_request {
	host_client           reader;     /* who gets the locks; HOST client, open */
	const struct kvs_key *keys;       /* in the order of flat's bits; copied */
	const uint64_t       *bytes;      /* one a key: what to reserve for it; copied */
	uint32_t              chunk_count;
	const struct flat    *flat;       /* copied; chunk_count * flat_keys(flat) keys */
	const uint64_t       *held;       /* bits: locked in Host for the reader already, lock_count times each */
	uint32_t              lock_count; /* 1 .. HOST_LOCKS_MAX */
	bool                  retain;     /* keep what is loaded, whatever the policy says */
	bool                  skip_store; /* ask no adapter */
	uint64_t              deadline_ns; /* a time; UINT64_MAX: none */
	void (*done)(void *arg, uint64_t request_id); /* its result waits; from any thread, no lock held */
	void *done_arg;
};

/* Why the boundary is not the end: the first reason met on the way. */
#define PREFETCH_ENDS(X) \
	X(PREFETCH_WHOLE, "whole")         /* it is */ \
	X(PREFETCH_MISSING, "missing")     /* no store has the next key */ \
	X(PREFETCH_HOST_FULL, "host_full") /* Host had no room for it */ \
	X(PREFETCH_FAILED, "failed")       /* it was found, and its load failed */ \
	X(PREFETCH_DEADLINE, "deadline") \
	X(PREFETCH_CANCELLED, "cancelled") \
	X(PREFETCH_STOPPED, "stopped")     /* the controller was closed */

enum prefetch_end {
#define PREFETCH_END(name, text) name,
	PREFETCH_ENDS(PREFETCH_END)
#undef PREFETCH_END
	PREFETCH_END_COUNT
};

struct prefetch_result {
	uint32_t          boundary;   /* chunks */
	uint32_t          from_host;  /* locked keys that Host had when submitted */
	uint32_t          from_store; /* and those that were loaded */
	enum prefetch_end end;
};

struct prefetch_ctrl_stats {
	uint64_t submitted, refused_full, finished;
	uint64_t ends[PREFETCH_END_COUNT];
	uint64_t keys_asked, keys_found, keys_loaded, keys_failed; /* of stores */
	uint64_t loaded_bytes;
	uint64_t late_keys;        /* loaded past the deadline or a cancel: discarded */
	uint64_t misplanned;       /* answers of the policy that no store had */
	uint32_t queued, in_flight, draining;
	uint64_t in_flight_bytes;
};

struct prefetch_ctrl;

int prefetch_ctrl_open(struct host *host, const struct kvs_prefetch_policy *policy,
		       const struct ctrl_limits *limits, struct prefetch_ctrl **ret_ctrl,
		       struct kvs_error *err);

int  prefetch_ctrl_attach(struct prefetch_ctrl *ctrl, uint32_t number, struct adapter *adapter,
			  const char *name);
void prefetch_ctrl_detach(struct prefetch_ctrl *ctrl, uint32_t number);
bool prefetch_ctrl_detached(struct prefetch_ctrl *ctrl, uint32_t number, uint64_t deadline_ns);

/**
 * Queue a request; returns at once.
 *
 * Errors  KVS_E_INVALID (no chunks, more keys than request_keys, lock_count), KVS_E_FULL (queue_max),
 *         KVS_E_CLOSED: nothing happened, and `held` locks are still the caller's.
 */
int prefetch_ctrl_submit(struct prefetch_ctrl *ctrl, const struct prefetch_request *request,
			 uint64_t *ret_request_id);

/*
 * Take the result, once.  ret_locked: one bit a key, the reader's to unlock.  False while it is under way, after
 * it was taken, and for ids that name no request.
 */
bool prefetch_ctrl_take(struct prefetch_ctrl *ctrl, uint64_t request_id,
			struct prefetch_result *ret_result, uint64_t *ret_locked);

/* Keys that stores and Host were found to have, as a boundary in chunks: known before the load ends. */
bool prefetch_ctrl_found(struct prefetch_ctrl *ctrl, uint64_t request_id, uint32_t *ret_boundary);

/* Give it up: the reader's locks are given back, its result is dropped, late I/O drains.  Unknown ids are none. */
void prefetch_ctrl_cancel(struct prefetch_ctrl *ctrl, uint64_t request_id);

/* All requests of a reader that closes; its locks are host_client_close()'s. */
void prefetch_ctrl_forget(struct prefetch_ctrl *ctrl, host_client reader);

/*
 * Stop: requests end as STOPPED, their locks given back; joins the thread.  KVS_E_QUARANTINE: loads have not
 * retired at deadline_ns (a time): their buffers stay staged; adapters, Host and memory must stay.
 */
int prefetch_ctrl_close(struct prefetch_ctrl *ctrl, uint64_t deadline_ns);

void prefetch_ctrl_stats(struct prefetch_ctrl *ctrl, struct prefetch_ctrl_stats *ret_stats);

#endif
