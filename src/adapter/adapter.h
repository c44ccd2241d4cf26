/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An adapter: one executor, seen by a store controller and a prefetch controller.
 *
 * Submit a task, wait for its kind's eventfd, take the result once.  Tasks store a batch, look one up
 * and lock what is found, or load one; each becomes one or more ops, and the executor's facts find
 * back to their task here.  Payload moves between the caller's buffers and the store, in place.
 *
 * Ids       of tasks grow and are never used again; they name a task of this adapter only.
 * Refusals  An error of a submission says that there is no task.  What the executor refuses (queue,
 *           cooldown, quarantine) is a task whose rows failed: it completes, once, like any other.
 * Retired   Completion is not retirement.  A result that says `retired` gives the buffers back; one
 *           that does not leaves them in doubt, and adapter_pop_retired() tells when that ends: by
 *           the store's own later proof, which the adapter hears of and applies itself, or by what
 *           somebody else knows, told with adapter_notice().  Until then everything is refused.
 * Locks     A lookup locks each row that it finds, once a row.  adapter_unlock() gives one back, at
 *           once and always; what was never given back is at close.  Where the store has no locks
 *           they are counts of this adapter only, and advisory.
 * Limits    adapter_options.op_max ops a kind, those of results that nobody took included.
 * Threads   Any, at the same time; only adapter_close() comes last and alone.  The adapter's lock is
 *           taken before the executor's and no store call is made under it.
 */
#ifndef ADAPTER_ADAPTER_H
#define ADAPTER_ADAPTER_H

#include "adapter/tasks.h"
#include "exec/exec.h"
#include "metrics/metrics.h"

#define ADAPTER_OPS_MAX 4096

struct adapter_options {
	struct exec_options exec; /* without its notify, which is the adapter's */
	/* Tables of OP_KEYS_MAX keys and spans a kind; 1 .. ADAPTER_OPS_MAX. */
	uint32_t            op_max[TASK_KIND_COUNT];
};

struct adapter_stats {
	uint64_t          submitted[TASK_KIND_COUNT];
	uint64_t          finished[TASK_KIND_COUNT];
	uint64_t          refused_full[TASK_KIND_COUNT]; /* submissions */
	uint64_t          refused_ops[TASK_KIND_COUNT];  /* by the executor: their rows failed */
	uint64_t          moved_bytes[TASK_KIND_COUNT];
	uint32_t          ready[TASK_KIND_COUNT]; /* results and retirements that wait to be taken */
	struct exec_stats exec;                   /* health and locks among them */
};

struct adapter;

/**
 * Open an executor for the store and its adapter.
 *
 * Owner   The store is the adapter's on success, and stays the caller's on failure.
 * Errors  KVS_E_INVALID (op_max, and what exec_open() refuses), -errno.
 */
int adapter_open(struct kvs_store *store, const struct adapter_options *options,
		 struct adapter **ret_adapter, struct kvs_error *err);

/**
 * Stop the workers within deadline_ns from now, give every lock back and close the store.  NULL is
 * fine.  Tasks that nobody took are gone with it: whatever they held is free.
 *
 * Errors  KVS_E_QUARANTINE: a buffer may still be touched, or a worker did not return.  Adapter, store
 *         and descriptors then stay for the life of the process, as must the buffers: submissions
 *         answer KVS_E_CLOSED, results can still be taken, and closing again may succeed.
 */
int adapter_close(struct adapter *adapter, uint64_t deadline_ns);

/*
 * The eventfd of a kind, another for each kind and adapter.  Signalled with every completion and
 * retirement of the kind; drained when the last that waits is taken.
 */
int adapter_fd(const struct adapter *adapter, enum task_kind kind);

/**
 * Submit a task over count keys.
 *
 * Owner   keys and spans are copied.  The payload is read (store) or written (load) until a result,
 *         or a later notice, says that the task retired.
 * Errors  KVS_E_INVALID  no keys, more than op_max * OP_KEYS_MAX, or a span without bytes or room;
 *         KVS_E_FULL     too few ops of the kind are left: take results first;
 *         KVS_E_CLOSED.  Nothing happened in all cases.
 */
int adapter_submit_store(struct adapter *adapter, const struct kvs_key *keys,
			 const struct kvs_span *spans, uint32_t count, uint64_t *ret_task_id);
int adapter_submit_lookup(struct adapter *adapter, const struct kvs_key *keys, uint32_t count,
			  uint64_t *ret_task_id);
int adapter_submit_load(struct adapter *adapter, const struct kvs_key *keys,
			const struct kvs_span *spans, uint32_t count, uint64_t *ret_task_id);

/*
 * Completed stores in order of completion, each once; returns how many.  A store that is not ok
 * moved 0 bytes as far as its caller is concerned: it is all or nothing.
 */
uint32_t adapter_pop_stored(struct adapter *adapter, struct task_result *ret_results,
			    uint32_t result_max);

/*
 * True once, when the task is done: one bit a key, found and locked, or loaded whole and verified.
 * False, and nothing written, while it is pending, after it was taken, and for ids that name no
 * task of the kind.  Rows of an op that did not retire are clear.
 */
bool adapter_query_lookup(struct adapter *adapter, uint64_t task_id, uint64_t *ret_words);
bool adapter_query_load(struct adapter *adapter, uint64_t task_id, uint64_t *ret_words,
			bool *ret_retired);

/* Unlock each row once.  Keys that are not locked are ignored. */
void adapter_unlock(struct adapter *adapter, const struct kvs_key *keys, uint32_t count);

/*
 * An op of a task has retired after all, which somebody knows who is not the store: the task's own id
 * names its first op, and each OP_KEYS_MAX keys further on another that is larger by one.
 * KVS_E_STALE when no such op is unretired.
 */
int adapter_notice(struct adapter *adapter, const struct retirement_notice *notice);

/* Ids of tasks that were taken unretired and have retired since, each once; returns how many. */
uint32_t adapter_pop_retired(struct adapter *adapter, enum task_kind kind, uint64_t *ret_task_ids,
			     uint32_t id_max);

void adapter_stats(struct adapter *adapter, struct adapter_stats *ret_stats);

/* What the store says of itself: capacity and what is used of it, promises. */
void adapter_describe(struct adapter *adapter, struct kvs_store_info *ret_info);

/*
 * Bytes a second of finished tasks, from submission to completion, for registries of metrics.  Only
 * bytes that moved count: a task that moved none is not in it.  Valid until close.
 */
const struct histogram *adapter_throughput(const struct adapter *adapter, enum task_kind kind);

void adapter_audit(struct adapter *adapter);

#endif
