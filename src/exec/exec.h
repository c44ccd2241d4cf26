/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor: the only door to a store.
 *
 * A shell of threads around the pure core: one owner submits and polls, workers of each class run
 * ops against the store.  Every call returns at once, but exec_wait() and exec_close(); none waits
 * for storage.
 *
 * Facts     are fetched with exec_poll().  Three ways to learn that some wait: exec_wait(), which
 *           watches a word of memory for a moment before it sleeps; the descriptor, in a loop that
 *           sleeps on others, too; or the notify hook.  All are hints.
 * Doubt     An op whose fact came unretired may retire later: where the store can prove that, workers
 *           ask it now and then, and exec_poll_notices() hands the proof to the owner, with the same
 *           wake-ups as facts.  The quarantine ends with exec_notice(), which the owner calls when
 *           all who decide with it agree: alone, at once.
 * Locks     What a locking QUERY found is held until exec_unlock(), once a row.
 * Threads   Any, but open and close.  Lock order: the executor's lock is a leaf; no store call and
 *           no hook is made under it.
 */
#ifndef EXEC_EXEC_H
#define EXEC_EXEC_H

#include "exec/core.h"

/* Lanes of a store are numbered up to here, too. */
#define EXEC_WORKERS_MAX 64

struct exec_options {
	struct exec_limits     limits;
	uint32_t               workers[EXEC_CLASS_COUNT]; /* threads; at least 1, EXEC_WORKERS_MAX in all */
	struct kvs_memory      memory; /* that spans come from, told to the store; no slices: not */
	/*
	 * After facts or notices became ready, by the worker that finished them, or by exec_close()
	 * for what it drops or finds settled; with no lock held, so it may call everything here but
	 * close.  Not for what exec_cancel() makes ready: its caller knows.
	 */
	void (*notify)(void *arg);
	void *notify_arg;
};

/*
 * Totals since open; rates are bytes over the time in which at least one worker of the class was
 * busy.
 */
struct exec_stats {
	struct exec_moved moved;
	uint64_t          busy_ns[EXEC_CLASS_COUNT];
	uint64_t          counters[EXEC_COUNTER_COUNT];
	uint64_t          outages;
	uint64_t          locks_held;
	uint32_t          outstanding; /* jobs and undelivered facts */
	enum health_state health;
};

struct exec;

/**
 * Start workers on a store.
 *
 * Owner   The store is the executor's on success, and stays the caller's on failure.  Memory
 *         outlives the executor, and the process may not end sooner where close says so.
 * Errors  KVS_E_INVALID (workers, limits, a store of one_thread with submit()), -errno.
 */
int exec_open(struct kvs_store *store, const struct exec_options *options, struct exec **ret_exec,
	      struct kvs_error *err);

/**
 * Stop: what waits is answered as closed, what runs may end, every lock is given back, and a store
 * that can prove doubts over is asked to, for at most deadline_ns from now.  Then the store is
 * closed: its close() bounds itself.  What it proved over needs no notice: nothing touches its spans
 * any more, and who would end a quarantine is closing.  NULL is fine.
 *
 * Thread  Alone: other calls have returned, and none follows a success.
 * Errors  KVS_E_QUARANTINE  a worker did not come back, an op is still in doubt, or the store's own
 *         I/O is.  Executor, store and threads stay for the life of the process, and memory that
 *         spans came from has to stay mapped.  Facts can still be polled, notices told; submissions
 *         answer KVS_E_CLOSED, and only another close asks the store again.  It may succeed, once
 *         all that is over.
 */
int exec_close(struct exec *exec, uint64_t deadline_ns);

/* See exec_core_submit(): KVS_E_FULL, KVS_E_HEALTH, KVS_E_QUARANTINE, KVS_E_CLOSED. */
int  exec_submit(struct exec *exec, const struct op *op);
void exec_cancel(struct exec *exec, uint64_t op_id);

/* Give back a lock of each key.  Never refused; the store hears of it from a query worker. */
void exec_unlock(struct exec *exec, const struct kvs_key *keys, uint32_t count);

uint32_t exec_poll(struct exec *exec, struct fact *ret_facts, uint32_t fact_max,
		   struct pressure *ret_pressure);

/*
 * Ops whose fact came unretired and was polled, and whose I/O the store has proved over since; each
 * once.  Nothing changes by it: report them, and call exec_notice() for what was agreed on.
 */
uint32_t exec_poll_notices(struct exec *exec, struct retirement_notice *ret_notices,
			   uint32_t notice_max);

/* The store may prove doubts over: a notice may come.  False: none ever does. */
bool exec_settles(const struct exec *exec);

/*
 * An op whose fact came unretired has retired after all, by the store's proof or by what else its
 * owner knows.  KVS_E_STALE when no such op is stuck, as when its fact came retired here, and another
 * owner was in doubt: that is no mistake.  A notice that comes before the fact was polled is lost, and
 * must be told again.
 */
int exec_notice(struct exec *exec, const struct retirement_notice *notice);

/*
 * True as soon as facts or notices wait, or now and then with nothing there; false after timeout_ns,
 * or now and then before.  Who waits polls both: what is left makes every wait end at once.
 */
bool exec_wait(struct exec *exec, uint64_t timeout_ns);

/*
 * The descriptor, for a loop that sleeps on others, too.  It is signalled only after exec_arm() said
 * true: "nothing waits, sleep now".  Once signalled it stays readable until the next exec_arm().
 */
int  exec_fd(const struct exec *exec);
bool exec_arm(struct exec *exec);

void exec_stats(struct exec *exec, struct exec_stats *ret_stats);

/* What the store says of itself, at any time. */
void exec_describe(struct exec *exec, struct kvs_store_info *ret_info);

#endif
