/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shell's own shape, shared by exec.c, which callers enter, work.c, where workers live, and
 * settle.c, where doubts end.  Private to the room.
 *
 * `ready` is the word that a spinning poller watches.  A worker sets it after it has dropped the
 * lock, so that the poller who sees it finds the lock free; exec_poll() clears it under the lock, so
 * no fact that came later is forgotten.  It may be set when nothing waits: a hint.
 */
#ifndef EXEC_SHELL_H
#define EXEC_SHELL_H

#include <stdatomic.h>

#include "exec/async.h"
#include "exec/exec.h"
#include "os/os.h"

struct worker {
	struct exec    *exec;
	enum exec_class class;
	uint32_t        lane;  /* its number */
	struct async   *async; /* of a store that is asynchronous; NULL otherwise */
	pthread_t       thread;
};

struct exec {
	struct kvs_store *store;
	bool              one_thread;
	void            (*notify)(void *arg);
	void             *notify_arg;
	int               event_fd;
	uint32_t          worker_count; /* threads not yet joined */
	struct worker     workers[EXEC_WORKERS_MAX];
	struct os_mutex   calls; /* one_thread: held across each call of the store; before lock */
	_Atomic bool      ready;

	struct os_mutex   lock; /* protects all below; a leaf; never held across a store call */
	struct os_cond    work[EXEC_CLASS_COUNT];
	struct os_cond    gone; /* a worker left */
	struct exec_core  core;
	bool              asking;   /* somebody asks the store whether doubts are over */
	uint64_t          ask_ns;   /* when somebody may next */
	uint64_t          ask_gap_ns;
	bool              closing;
	bool              armed;    /* somebody sleeps, or is about to, on the descriptor */
	uint32_t          alive;    /* workers */
	struct exec_moved moved;                        /* since open, as is busy_ns */
	uint64_t          busy_ns[EXEC_CLASS_COUNT];    /* without the present busy time */
	uint32_t          busy[EXEC_CLASS_COUNT];       /* workers with a job */
	uint64_t          busy_since[EXEC_CLASS_COUNT]; /* when the first of them began */
};

/* A worker's thread; the argument is its struct worker. */
void *exec_work(void *worker);

/* Around each call of the store, without the lock: of one_thread there is one at a time. */
void exec_calls_begin(struct exec *exec);
void exec_calls_end(struct exec *exec);

/* With the lock, which it drops: something may be ready.  Wakes who spins or sleeps for it. */
void exec_wake(struct exec *exec);

/* With the lock: facts or notices are ready.  Drops it to say so, by the hook too, and takes it again. */
void exec_announce(struct exec *exec);

/* With the lock: a job has come into doubt.  The store is asked soon, and then less and less often. */
void exec_doubt(struct exec *exec);

/*
 * With the lock, which it drops where it does something: asks the store whether what is in doubt now
 * is over, when it is time to, and announces what has settled.  True when it asked.
 */
bool exec_settle(struct exec *exec);

/* With the lock: how long nobody needs to ask; `most` at most. */
uint64_t exec_settle_after(const struct exec *exec, uint64_t most);

/* Without workers: asks until nothing is unsettled or the time (of os_now_ns()) is over. */
void exec_settle_until(struct exec *exec, uint64_t until_ns);

#endif
