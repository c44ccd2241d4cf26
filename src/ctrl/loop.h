/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shell both controllers live in: a thread, what it sleeps on, and the seats of its adapters.
 *
 * A turn of a controller is: sleep, collect what is ready, decide, submit, settle.  Its state is
 * the thread's while that runs, the opener's before and the closer's afterwards.  What other
 * threads share with it lies under the lock: the seats here, and what a controller adds.
 *
 * Threads   Functions named ..._locked are called with the lock held; the lock is a leaf.
 */
#ifndef CTRL_LOOP_H
#define CTRL_LOOP_H

#include "ctrl/ctrl.h"
#include "os/os.h"

/* An adapter's place. */
struct seat {
	struct adapter *adapter; /* NULL: free */
	const char     *name;
	bool            leaving; /* nothing new goes to it */
};

struct seats {
	struct seat at[KVS_ADAPTERS_MAX];
	uint64_t    version; /* another whenever somebody came, leaves or went */
};

struct loop {
	int       event_fd;
	int       epoll_fd;
	pthread_t thread;

	struct os_mutex lock;  /* protects all below, and what the controller says */
	struct os_cond  moved; /* something that somebody may wait for */
	bool            running;
	bool            stopping; /* or stopped */
	struct seats    seats;
};

/* 0, or -errno: nothing is left open. */
int  loop_open(struct loop *loop);
void loop_close(struct loop *loop); /* it does not run */

int  loop_start(struct loop *loop, const char *name, void *(*run)(void *), void *arg);
/* The thread ends after its turn; joins it.  What is attached stays. */
void loop_stop(struct loop *loop);
bool loop_stopping(struct loop *loop);

/* Wake the thread. */
void loop_signal(const struct loop *loop);
/*
 * Until a descriptor is ready, for timeout_ns at most, and never for long: a lost hint costs
 * latency only.
 */
void loop_sleep(const struct loop *loop, uint64_t timeout_ns);

/* See ctrl.h; kinds are bits 1 << TASK_...: whose descriptors to watch. */
int  loop_attach(struct loop *loop, uint32_t number, struct adapter *adapter, const char *name,
		 uint32_t kinds);
void loop_detach(struct loop *loop, uint32_t number, uint32_t kinds);
bool loop_detached(struct loop *loop, uint32_t number, uint64_t deadline_ns);
/* Free the seats of those who leave and are not among `busy`. */
void loop_free_seats_locked(struct loop *loop, uint64_t busy, uint32_t kinds);

/* Wait for `moved`; false once deadline_ns (a time) has passed. */
bool loop_wait_locked(struct loop *loop, uint64_t deadline_ns);

/* Numbers of those that stay, as bits. */
uint64_t seats_staying(const struct seats *seats);
/* What a policy is told of them; how many. */
uint32_t seats_infos(const struct seats *seats, struct kvs_adapter_info *ret_infos);

/* 0, or KVS_E_INVALID by field: `who` names the controller. */
int ctrl_limits_check(const struct ctrl_limits *limits, const char *who, struct kvs_error *err);

#endif
