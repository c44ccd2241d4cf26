/* SPDX-License-Identifier: Apache-2.0 */
/* See async.h.  A cookie names place, generation and row; what names none of ours is dropped. */
#include "exec/async.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"

#define BATCH_MAX 64u

#define ROW_BITS 16
#define PLACE_BITS 16

int async_open(struct kvs_store *store, uint32_t lane, struct async **ret_async)
{
	struct async *const async = calloc(1, sizeof(*async));

	if (!async)
		return -ENOMEM;
	async->store = store;
	async->lane = lane;
	*ret_async = async;
	return 0;
}

void async_close(struct async *async)
{
	free(async);
}

void async_add(struct async *async, uint32_t job, const struct op *op)
{
	uint32_t          place = 0;
	struct async_job *added;

	KVS_ASSERT(!async_full(async));
	while (async->jobs[place].open)
		place++;
	added = &async->jobs[place];
	added->open = true;
	added->job = job;
	added->generation++;
	added->next = 0;
	added->in_flight = 0;
	added->all_sent = false;
	added->waits = (struct op_mask){ 0 };
	rows_begin(&added->rows, async->store, op);
	async->open_count++;
}

/* --- out -------------------------------------------------------------------------------------- */

static uint64_t cookie_of(const struct async *async, const struct async_job *job, uint32_t row)
{
	return (uint64_t)job->generation << (ROW_BITS + PLACE_BITS) |
	       (uint64_t)(job - async->jobs) << ROW_BITS | row;
}

static bool is_any_in_flight(const struct async *async)
{
	uint32_t place;

	for (place = 0; place < ASYNC_JOBS; place++) {
		if (async->jobs[place].open && async->jobs[place].in_flight > 0)
			return true;
	}
	return false;
}

/* Rows of one batch, as far as the store takes them.  False when it has no more room. */
static bool submit_batch(struct async *async, struct async_job *job, uint32_t first,
			 uint32_t count)
{
	const struct op *const op = job->rows.op;
	struct kvs_io          io[BATCH_MAX];
	uint32_t               i;
	int                    taken;

	for (i = 0; i < count; i++) {
		io[i] = (struct kvs_io){ .cookie = cookie_of(async, job, first + i),
					 .is_put = op->kind == OP_PUT,
					 .key = &op->keys[first + i],
					 .span = op->spans[first + i] };
	}
	taken = async->store->ops->submit(async->store, async->lane, io, count);
	/* With nothing to answer, nothing would ever make room: it breaks its promise. */
	if (taken == 0 && !is_any_in_flight(async))
		taken = KVS_E_PROTO;
	if (taken < 0) {
		/* It has none of them, so nothing touches their spans. */
		rows_answer(&job->rows, first, count, taken, true);
		job->next = first + count;
		return true;
	}
	/* It cannot have more than it was given, whatever it says. */
	if ((uint32_t)taken > count)
		taken = (int)count;
	for (i = 0; i < (uint32_t)taken; i++)
		bits_set(job->waits.words, first + i);
	job->in_flight += (uint32_t)taken;
	job->next = first + (uint32_t)taken;
	return (uint32_t)taken == count;
}

/* False when the store has no more room. */
static bool submit_job(struct async *async, struct async_job *job)
{
	while (!job->all_sent) {
		uint32_t       first;
		const uint32_t count = rows_next(&job->rows, job->next, BATCH_MAX, &first);

		job->all_sent = count == 0;
		if (count > 0 && !submit_batch(async, job, first, count))
			return false;
	}
	return true;
}

void async_submit(struct async *async)
{
	uint32_t place;

	for (place = 0; place < ASYNC_JOBS; place++) {
		struct async_job *const job = &async->jobs[place];

		if (job->open && !submit_job(async, job))
			return;
	}
}

/* --- in --------------------------------------------------------------------------------------- */

static struct async_job *find(struct async *async, uint64_t cookie, uint32_t *ret_row)
{
	const uint32_t    row = cookie & ((1u << ROW_BITS) - 1);
	const uint32_t    place = (cookie >> ROW_BITS) & ((1u << PLACE_BITS) - 1);
	struct async_job *job;

	if (place >= ASYNC_JOBS || row >= OP_KEYS_MAX)
		return NULL;
	job = &async->jobs[place];
	if (!job->open || job->generation != cookie >> (ROW_BITS + PLACE_BITS) ||
	    !bits_test(job->waits.words, row))
		return NULL;
	*ret_row = row;
	return job;
}

static void answer(struct async *async, const struct kvs_io_done *done)
{
	uint32_t                row;
	struct async_job *const job = find(async, done->cookie, &row);

	if (!job)
		return;
	bits_clear(job->waits.words, row);
	job->in_flight--;
	job->rows.result[row] = done->result;
	rows_answer(&job->rows, row, 1, 0, done->retired);
}

/* The store will not answer any more: what is under way ends without a result, in doubt. */
static void lose_all(struct async *async)
{
	uint32_t place;

	for (place = 0; place < ASYNC_JOBS; place++) {
		struct async_job *const job = &async->jobs[place];

		if (!job->open || job->in_flight == 0)
			continue;
		rows_lose(&job->rows);
		job->waits = (struct op_mask){ 0 };
		job->in_flight = 0;
		job->all_sent = true;
	}
}

void async_reap(struct async *async, uint64_t timeout_ns)
{
	struct kvs_io_done done[BATCH_MAX];
	uint32_t           i;
	const int          count = async->store->ops->reap(async->store, async->lane, done,
							   BATCH_MAX, timeout_ns);

	if (count < 0)
		lose_all(async);
	for (i = 0; count > 0 && i < (uint32_t)count && i < BATCH_MAX; i++)
		answer(async, &done[i]);
}

bool async_take(struct async *async, uint32_t *ret_job, struct fact *ret_fact,
		struct exec_report *ret_report)
{
	uint32_t place;

	for (place = 0; place < ASYNC_JOBS; place++) {
		struct async_job *const job = &async->jobs[place];

		if (!job->open || !job->all_sent || job->in_flight > 0)
			continue;
		rows_end(&job->rows, ret_fact, ret_report);
		*ret_job = job->job;
		job->open = false;
		async->open_count--;
		return true;
	}
	return false;
}
