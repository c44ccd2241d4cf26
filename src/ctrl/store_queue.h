/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys on their way to the stores: what waits for which adapter, and what is under way there.
 *
 * A key is noted once, with the number of adapters that have not ended with it; each of these has
 * it in a line of its own, first in, first out.  A task takes keys of one shape from the front part
 * of a line, so that what a store is given at a time is alike.  Where the last adapter ended with a
 * key that one of them stored, the key waits in `ended` for the policy to say whether Host keeps
 * it.
 *
 * Pure: no thread, no clock, no allocation after open.
 *
 * Limits   A line has queue_max keys waiting and in_flight_max tasks; a task STORE_TASK_KEYS keys,
 *          and the tasks of a line in_flight_bytes, but for one that is alone.
 */
#ifndef CTRL_STORE_QUEUE_H
#define CTRL_STORE_QUEUE_H

#include "base/slots.h"
#include "ctrl/store_ctrl.h"

struct store_key {
	struct kvs_key key;
	uint64_t       bytes;
	uint64_t       number; /* of the notice: later ones have larger numbers */
	uint32_t       left;   /* adapters that have not ended with it */
	uint32_t       next;   /* ended: the one behind it */
	bool           stored; /* by one of them, at least */
};

struct store_task {
	uint64_t         task_id; /* the adapter's; 0 until it is submitted */
	bool             doubt;   /* it completed, and has not retired */
	uint32_t         count;   /* keys, a pin each; those of one in doubt have ended */
	uint64_t         bytes;
	uint32_t        *keys; /* numbers of store_keys, oldest first */
	struct host_pin *pins;
};

/* Of one adapter. */
struct store_line {
	uint32_t          *waiting; /* a ring of queue_max numbers of store_keys */
	uint32_t           head, count;
	struct slots       busy;    /* tasks */
	struct store_task *tasks;
	uint32_t          *task_keys; /* STORE_TASK_KEYS a task, as are the pins */
	struct host_pin   *task_pins;
	uint32_t           doubt_count; /* of the busy */
	uint64_t           bytes;       /* of the busy */
};

struct store_queue {
	struct ctrl_limits limits;
	struct slots       slots;
	struct store_key  *keys;
	uint32_t           ended_head, ended_tail; /* SLOT_NONE: nothing has ended */
	struct store_line  lines[KVS_ADAPTERS_MAX];
};

/* Limits are in range: asserted.  0, or -ENOMEM. */
int  store_queue_open(struct store_queue *queue, const struct ctrl_limits *limits);
void store_queue_close(struct store_queue *queue);

/* Put a key into the lines of `targets`; how many of them were full. */
uint32_t store_queue_add(struct store_queue *queue, const struct kvs_key *key, uint64_t bytes,
			 uint64_t number, uint64_t targets);

/*
 * The next task of an adapter, its keys taken out of the line; NULL when nothing waits or a bound
 * is reached.  Next it is kept, then submitted, put back, or settled and released.
 */
struct store_task *store_queue_next(struct store_queue *queue, uint32_t adapter);
void               store_queue_put_back(struct store_queue *queue, uint32_t adapter,
					struct store_task *task);

/* Rows whose rc is not 0 end unstored, the others close up, with their pins; how many went. */
uint32_t store_queue_keep(struct store_queue *queue, struct store_task *task, const int *rc);

/* The submitted task of that id: asserted. */
struct store_task *store_queue_find(const struct store_queue *queue, uint32_t adapter, uint64_t task_id);

/* Its keys have ended, stored or not. */
void store_queue_settle(struct store_queue *queue, struct store_task *task, bool stored);

/* The settled task is one that has not retired: it keeps its pins and its place. */
void store_queue_doubt(struct store_queue *queue, uint32_t adapter, struct store_task *task);

/* The record of a settled task goes; its pins can be read until the next one is taken. */
void store_queue_release(struct store_queue *queue, uint32_t adapter, struct store_task *task);

/* All that waits for an adapter ends unstored; how many keys. */
uint32_t store_queue_drop(struct store_queue *queue, uint32_t adapter);

/* Every task there may be is in doubt: nothing can go out. */
bool store_queue_stuck(const struct store_queue *queue, uint32_t adapter);

/*
 * A key of which no adapter is left and one stored it, forgotten with this; false when there is
 * none.
 */
bool store_queue_pop_ended(struct store_queue *queue, struct kvs_key *ret_key);

/* The least number of a key that has not ended; none_number when all have. */
uint64_t store_queue_oldest(const struct store_queue *queue, uint64_t none_number);

void store_queue_audit(const struct store_queue *queue);

#endif
