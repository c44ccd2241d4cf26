/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor: the only door to a store.
 *
 * A shell of threads around the pure core: one owner submits and polls, workers of each class run
 * ops against the store, an eventfd says that facts wait.  Every call returns at once; none waits
 * for storage.
 *
 * Threads  submit, cancel, poll: any thread, usually the scheduler's.  Lock order: the executor's
 *          lock is a leaf; no store call is made under it.
 * Close    joins the workers, so the op in progress ends first.
 */
#ifndef EXEC_EXEC_H
#define EXEC_EXEC_H

#include "exec/core.h"
#include "exec/run.h"

#define EXEC_WORKERS_MAX 64

struct exec_options {
	struct exec_limits limits;
	uint32_t           workers[EXEC_CLASS_COUNT]; /* threads; at least 1, EXEC_WORKERS_MAX in all */
};

/*
 * Totals since open; rates are bytes over the time in which at least one worker of the class was
 * busy.
 */
struct exec_stats {
	struct exec_moved moved;
	uint64_t          busy_ns[EXEC_CLASS_COUNT];
	uint64_t          counters[EXEC_COUNTER_COUNT];
};

struct exec;

/* The store must outlive the executor.  Errors: KVS_E_INVALID (workers, limits), -errno. */
int  exec_open(struct kvs_store *store, const struct exec_options *options, struct exec **ret_exec,
	       struct kvs_error *err);
void exec_close(struct exec *exec); /* NULL is fine */

/* See exec_core_submit(). */
int  exec_submit(struct exec *exec, const struct op *op);
void exec_cancel(struct exec *exec, uint64_t op_id);

uint32_t exec_poll(struct exec *exec, struct fact *ret_facts, uint32_t fact_max,
		   struct exec_pressure *ret_pressure);

/* Readable while facts may wait: a hint, drained by exec_poll(). */
int exec_fd(const struct exec *exec);

void exec_stats(struct exec *exec, struct exec_stats *ret_stats);

#endif
