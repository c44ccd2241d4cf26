/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lane from inside: rows of one worker on their way over one io_uring, kept full across batches.
 * Private to three files:
 *
 *   lane.c     the worker's side: rows are taken and handed back; a lane without a ring
 *   flight.c   the ring: transfers go out and come in, and the loop that keeps them going
 *   leaf.c     what puts wait for together: their page of headers, and a sync
 *
 * Way of a row   queued -> in flight -> (verifying | waiting -> unsynced -> syncing) -> done
 *
 * Puts that start together are a leaf: placed side by side, with one page of headers before them.
 * One that is written waits for its headers.
 *
 * Thread         The worker's whose lane it is; what it shares with others lies behind s->lock.
 * Retired        A row is answered when its completion was reaped.  A ring that fails leaves its rows
 *                unanswered, and the store unclosed.
 * Bounds         LANE_ROWS rows a lane, FLIGHT_ROWS and FLIGHT_BYTES of them in flight, or one row.
 */
#ifndef STRATA_LANE_H
#define STRATA_LANE_H

#include <errno.h>

#include "base/list.h"
#include "os/ring.h"
#include "strata/core.h"

/*
 * How much of one lane is under way; several lanes have as much each.
 *
 *   FLIGHT_ROWS   in flight: what a drive works on at once, with a page of headers for each put
 *   FLIGHT_BYTES  in flight: 64 transfers of up to 2 MiB, 32 of 4 MiB.  Past that a drive only queues,
 *                 and every row waits longer for its answer; a transfer larger than that goes alone
 *   LANE_ROWS     taken: as many again, so that a completion's place is filled from here and not by a
 *                 caller who has to wake up first
 */
#define FLIGHT_ROWS 64u
#define FLIGHT_BYTES (UINT64_C(128) << 20)
#define LANE_ROWS (2 * FLIGHT_ROWS)

#define AGAIN_MAX 1000u

/* Completions: of a row, by its number; of a leaf's headers; of a sync. */
#define LEAF_TAG (UINT64_C(1) << 32)
#define SYNC_TAG UINT64_MAX

struct row {
	struct kvs_io   io;
	struct reading  reading;
	struct writing  writing;
	uint64_t        moved;   /* of its transfer */
	uint32_t        tries;   /* after -EINTR or -EAGAIN */
	uint32_t        leaf;    /* of a put */
	int             rc;      /* its write's, while it waits for its headers */
	bool            claimed; /* put_begin() was done */
	enum kvs_result result;
};

/* A group of puts that are written together, and its page of headers. */
struct leaf {
	struct group group;
	struct list  waiting; /* rows whose payload was written */
	uint32_t     rows;    /* that have not ended */
	uint64_t     bytes;   /* of payload */
	bool         landed;  /* the headers were written, or failed to be */
	int          rc;      /* that write's */
	uint64_t     moved;   /* of it */
	uint32_t     tries;   /* after -EINTR or -EAGAIN */
};

struct lane {
	struct strata  *s;
	struct os_ring *ring; /* NULL: pread and pwrite */
	int             broken; /* what the ring failed with */
	bool            registered;
	bool            blocked; /* the first of the queue has no place */
	bool            syncing_now;
	uint64_t        flight_bytes;
	uint32_t        flight_rows;
	uint32_t        flight_leaves; /* pages of headers */
	uint64_t        hashed_bytes; /* since the last hand-over */
	struct list     idle, queued, verifying, unsynced, syncing, done;
	struct link     links[LANE_ROWS];
	struct row      rows[LANE_ROWS];
	struct leaf     leaves[LANE_ROWS];
	struct header  *headers;  /* a page a leaf */
	uint32_t        leaf;     /* that takes records; SLOT_NONE: none */
};

/* --- lane.c ----------------------------------------------------------------------------------- */

/* The row's way is over. */
void lane_answer(struct lane *lane, uint32_t number, enum kvs_result result);

/* --- flight.c: there is a ring ---------------------------------------------------------------- */

/* Queue transfers of queued rows, as many as may be in flight. */
void flight_start(struct lane *lane);
/* Keep the ring full until rows are done, or nothing is to be had within the time. */
void flight_work(struct lane *lane, uint64_t timeout_ns);

/* --- leaf.c: there is a ring ------------------------------------------------------------------ */

/* Place a claimed put beside those that started before it.  As put_place(), but for PUT_NEW_GROUP. */
int leaf_place(struct lane *lane, struct row *row);
/* False: the open leaf is to be shut, or none is open. */
bool leaf_may_grow(const struct lane *lane);
/* Queue the open leaf's headers: what was placed together is told of together.  None is fine. */
void leaf_shut(struct lane *lane);

/* Completions: of a row's payload, as it was judged, and of a leaf's headers. */
void leaf_end_write(struct lane *lane, uint32_t number, int rc);
void leaf_end_headers(struct lane *lane, uint32_t number, int32_t result);

/* One at a time, for all puts that wait for one when it starts. */
void sync_start(struct lane *lane);
void sync_end(struct lane *lane, int rc);

/* As often as a passing shortage may last; then it has failed. */
static inline bool may_try_again(int32_t result, uint32_t *tries)
{
	return (result == -EINTR || result == -EAGAIN) && (*tries)++ < AGAIN_MAX;
}

#endif
