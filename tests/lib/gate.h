/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that holds its callers at a gate, and an executor on it.
 *
 * "Every worker is blocked" is then a state that a test waits for, and not a matter of time.  Queries
 * pass: only bulk I/O is held.  What the store answers is set by the test; nothing is stored.
 */
#ifndef LIB_GATE_H
#define LIB_GATE_H

#include "exec/exec.h"
#include "os/os.h"

#define GATE_BLOCK_BYTES 4096u
#define GATE_OUTSTANDING 16u
#define GATE_FOREVER_NS UINT64_MAX
#define GATE_KEYS 8u

struct gate {
	struct kvs_store store;
	struct os_mutex  lock;
	struct os_cond   moved;
	bool             open;
	uint32_t         passes;      /* while it is not: callers that may leave, one each */
	uint32_t         inside;      /* callers at the gate */
	uint32_t         inside_most;
	uint32_t         call_count;  /* gets and puts */
	int              rc;          /* of gets and puts, and their retirement */
	bool             unretired;
	bool             babbles;     /* a get is answered as no get can be */
	bool             one_thread;
	bool             away;
	int              close_rc;
	bool             closed;
	uint32_t         locked[GATE_KEYS]; /* locks by key number */
	bool             holds_unlocks;     /* at the gate, too */
	uint32_t         slice_count;       /* registered */
	bool             settled;           /* what it says when it is asked */
	bool             holds_questions;   /* the answer is that of when they are let go */
	uint32_t         questions;         /* being asked, the held ones */
	uint32_t         question_count;    /* asked so far */
	struct exec     *exec;
	int              epoll_fd;
};

/* With lock and unlock; without them; with settled(), too. */
extern const struct kvs_store_ops gate_ops;
extern const struct kvs_store_ops gate_plain_ops;
extern const struct kvs_store_ops gate_settling_ops;

/* Workers 1, 2 and 1; up to GATE_KEYS locks. */
extern const struct exec_options gate_options;

/* A gate without an executor; with one; with one on another table. */
struct gate *gate_make(void);
struct gate *gate_open(const struct exec_options *options);
struct gate *gate_open_on(const struct kvs_store_ops *ops, const struct exec_options *options);

/* Opens the gate and closes the executor, which must succeed. */
void gate_close(struct gate *gate);

void gate_let_through(struct gate *gate);
void gate_let_one_through(struct gate *gate);
void gate_wait_inside(struct gate *gate, uint32_t count);

/* Of gate_settling_ops: what it says from now on; whether questions wait; until so many were asked. */
void gate_settle(struct gate *gate, bool settled);
void gate_hold_questions(struct gate *gate, bool hold);
void gate_wait_asked(struct gate *gate, uint32_t count);

/* One row: the key of a number, below GATE_KEYS. */
int gate_submit_key(struct gate *gate, uint64_t op_id, enum op_kind kind, uint32_t flags,
		    uint32_t number);
int gate_submit(struct gate *gate, uint64_t op_id, enum op_kind kind);

uint32_t gate_poll(struct gate *gate, struct fact *ret_facts, uint32_t fact_max);
/* Sleeps until that many facts have come. */
void gate_collect(struct gate *gate, struct fact *ret_facts, uint32_t count);

/* Locks that the store keeps for a key, once they are as many as expected. */
void gate_wait_locked(struct gate *gate, uint32_t number, uint32_t count);

#endif
