/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One worker's lane to a store that is asynchronous by nature.
 *
 * Several jobs are under way at once: their rows are submitted as far as the store's queue has room,
 * and a job ends when each of its rows is answered, in whatever order.  A lane is never drained to
 * begin the next job, so the store's queue stays full across them.
 *
 * Limits   ASYNC_JOBS jobs a lane; what the executor may have running bounds their bytes.
 * Threads  None of its own: its worker's.
 */
#ifndef EXEC_ASYNC_H
#define EXEC_ASYNC_H

#include "exec/rows.h"

#define ASYNC_JOBS 16u

struct async_job {
	bool           open;
	uint32_t       job;        /* the executor's */
	uint32_t       generation; /* of this place: answers to an earlier job are nobody's */
	uint32_t       next;       /* row from which on nothing was submitted */
	uint32_t       in_flight;  /* rows */
	bool           all_sent;
	struct op_mask waits;      /* rows in flight */
	struct rows    rows;
};

struct async {
	struct kvs_store *store;
	uint32_t          lane;
	uint32_t          open_count;
	struct async_job  jobs[ASYNC_JOBS];
};

int  async_open(struct kvs_store *store, uint32_t lane, struct async **ret_async); /* or -ENOMEM */
void async_close(struct async *async); /* NULL is fine */

static inline bool async_full(const struct async *async)
{
	return async->open_count == ASYNC_JOBS;
}

/* A job to bring through; the op is held until async_take(). */
void async_add(struct async *async, uint32_t job, const struct op *op);

/* Hand the store what it takes. */
void async_submit(struct async *async);

/* Collect what it answers, waiting at most timeout_ns for the first. */
void async_reap(struct async *async, uint64_t timeout_ns);

/* A job that has ended, its place free again; false when there is none. */
bool async_take(struct async *async, uint32_t *ret_job, struct fact *ret_fact,
		struct exec_report *ret_report);

#endif
