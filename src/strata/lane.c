/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes: one io_uring each, kept full across batches.
 *
 * Way of a row   queued -> in flight -> (verifying | waiting -> unsynced -> syncing) -> done
 *
 * Puts that start together are a leaf: placed side by side, with one page of headers before them.
 * One that is written waits for its headers.
 *
 * More rows are taken than are in flight, so that a completion's place is filled from here, before
 * anything is hashed: the device works while the processor does.  A put is hashed while the ones
 * before it are in flight.  With durability `put` one sync covers all writes that ended before it,
 * and more are written meanwhile.
 *
 * Retired        A row is answered when its completion was reaped.  A ring that fails leaves its rows
 *                unanswered, and the store unclosed.
 * Bounds         ROWS rows a lane, FLIGHT_ROWS and FLIGHT_BYTES of them in flight, or one.
 * Without        io_uring a lane does its rows in reap(), by batch.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "os/ring.h"
#include "strata/core.h"

#define ROWS 128u
#define FLIGHT_ROWS 64u

/* Past this a disk only queues: 64 transfers of up to 2 MiB, 32 of 4 MiB. */
#define FLIGHT_BYTES (UINT64_C(128) << 20)

/* What is hashed before what was queued is handed over, and before completions are looked for. */
#define HASH_BYTES (UINT64_C(512) << 10)

/* Rows that are handed back together, so that a caller's round costs little beside them. */
#define DONE_ENOUGH 32u

/* Small transfers are waited for by several; a large one is worth a wake-up of its own. */
#define SMALL_BYTES (UINT64_C(128) << 10)
#define SMALL_WAIT 8u

/* Payload beside which a page of headers is little, and of which the device makes one transfer. */
#define LEAF_BYTES (UINT64_C(1) << 20)

/* Without a place, and with nothing under way here: somebody else's write will end. */
#define BLOCKED_WAIT_NS UINT64_C(1000000)

/* Rows that a lane without a ring does at a time. */
#define PLAIN_ROWS 16u

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
	struct link     links[ROWS];
	struct row      rows[ROWS];
	struct leaf     leaves[ROWS];
	struct header  *headers;  /* a page a leaf */
	uint32_t        leaf;     /* that takes records; SLOT_NONE: none */
};

/* --- opening ---------------------------------------------------------------------------------- */

static void set_note(struct strata *s, const char *note)
{
	os_mutex_lock(&s->lock);
	if (!s->note[0])
		s->note = note;
	os_mutex_unlock(&s->lock);
}

static void open_ring(struct lane *lane)
{
	/* Each row may have headers of its own; one leaf more, and a sync. */
	if (lane->s->set.plain_io || os_ring_open(2 * FLIGHT_ROWS + 2, &lane->ring) < 0) {
		lane->ring = NULL;
		if (!lane->s->set.plain_io)
			set_note(lane->s, "no io_uring here: reads and writes one at a time a worker");
		return;
	}
	/* Where it cannot be registered, it works as it is. */
	(void)os_ring_register_file(lane->ring, lane->s->fd);
}

static int lane_open(struct strata *s, struct lane **ret_lane)
{
	struct lane *lane = calloc(1, sizeof(*lane));
	uint32_t     i;

	if (!lane)
		return -ENOMEM;
	lane->headers = aligned_alloc(STRATA_PAGE, ROWS * (size_t)STRATA_PAGE);
	if (!lane->headers) {
		free(lane);
		return -ENOMEM;
	}
	lane->s = s;
	list_init(&lane->idle);
	list_init(&lane->queued);
	list_init(&lane->verifying);
	list_init(&lane->unsynced);
	list_init(&lane->syncing);
	list_init(&lane->done);
	list_links_init(lane->links, ROWS);
	lane->leaf = SLOT_NONE;
	for (i = 0; i < ROWS; i++)
		list_push_tail(&lane->idle, lane->links, i);
	open_ring(lane);
	*ret_lane = lane;
	return 0;
}

void lane_close(struct lane *lane)
{
	if (!lane)
		return;
	os_ring_close(lane->ring);
	free(lane->headers);
	free(lane);
}

bool lane_is_idle(const struct lane *lane)
{
	return !lane || lane->idle.count + lane->done.count == ROWS;
}

/* Memory is told of once, and perhaps after the lane was opened. */
static void register_memory(struct lane *lane)
{
	struct strata *const s = lane->s;
	uint32_t             count;

	if (lane->registered || !lane->ring)
		return;
	os_mutex_lock(&s->lock);
	count = s->slice_count;
	os_mutex_unlock(&s->lock);
	if (count == 0)
		return;
	lane->registered = true;
	if (os_ring_register_memory(lane->ring, s->slices, count) < 0)
		set_note(s, "Host memory is not registered with io_uring: see RLIMIT_MEMLOCK");
}

/* --- out -------------------------------------------------------------------------------------- */

static void answer(struct lane *lane, uint32_t number, enum kvs_result result)
{
	lane->rows[number].result = result;
	list_push_tail(&lane->done, lane->links, number);
}

static uint64_t transfer_bytes(const struct row *row)
{
	return row->io.span.bytes;
}

/* What is left of it: all at first, the rest after a short transfer. */
static void queue_transfer(struct lane *lane, uint32_t number)
{
	const struct row *const row = &lane->rows[number];
	uint8_t *const          at = (uint8_t *)row->io.span.ptr + row->moved;
	const uint64_t          bytes = transfer_bytes(row) - row->moved;

	if (row->io.is_put) {
		os_ring_write(lane->ring, lane->s->fd, at, bytes,
			      payload_offset(lane->s, &row->writing.record) + row->moved, number);
	} else {
		os_ring_read(lane->ring, lane->s->fd, at, bytes,
			     page_offset(row->reading.page) + row->moved, number);
	}
}

static void queue_headers(struct lane *lane, uint32_t number)
{
	const struct leaf *const leaf = &lane->leaves[number];

	os_ring_write(lane->ring, lane->s->fd, (uint8_t *)&lane->headers[number] + leaf->moved,
		      STRATA_PAGE - leaf->moved,
		      header_offset(lane->s, &leaf->group) + leaf->moved, LEAF_TAG + number);
}

static void take_off(struct lane *lane, uint32_t number)
{
	lane->flight_rows++;
	lane->flight_bytes += transfer_bytes(&lane->rows[number]);
}

static void start_get(struct lane *lane, uint32_t number)
{
	struct row *const     row = &lane->rows[number];
	const enum kvs_result result =
		get_begin(lane->s, row->io.key, row->io.span.bytes, &row->reading);

	if (result != KVS_RESULT_DONE) {
		answer(lane, number, result);
		return;
	}
	take_off(lane, number);
	queue_transfer(lane, number);
}

/* The transfers before it are under way while it is hashed. */
static void hand_over_before(struct lane *lane, uint64_t bytes)
{
	lane->hashed_bytes += bytes;
	if (lane->hashed_bytes < HASH_BYTES)
		return;
	lane->hashed_bytes = 0;
	lane->broken = os_ring_submit(lane->ring);
}

/* As many leaves as rows: one is free. */
static uint32_t open_leaf(struct lane *lane)
{
	uint32_t number = 0;

	if (lane->leaf != SLOT_NONE)
		return lane->leaf;
	while (lane->leaves[number].rows > 0)
		number++;
	lane->leaves[number] = (struct leaf){ 0 };
	list_init(&lane->leaves[number].waiting);
	lane->leaf = number;
	return number;
}

/* What was placed together is told of together. */
static void shut_leaf(struct lane *lane)
{
	const uint32_t number = lane->leaf;

	lane->leaf = SLOT_NONE;
	if (number == SLOT_NONE || lane->leaves[number].rows == 0)
		return;
	header_seal(&lane->headers[number]);
	lane->flight_leaves++;
	queue_headers(lane, number);
}

static int place_put(struct lane *lane, struct row *row)
{
	int rc;

	do {
		row->leaf = open_leaf(lane);
		rc = put_place(lane->s, row->io.span.ptr, &lane->leaves[row->leaf].group,
			       &lane->headers[row->leaf], &row->writing);
		if (rc == PUT_NEW_GROUP)
			shut_leaf(lane);
	} while (rc == PUT_NEW_GROUP);
	return rc;
}

/* False: it has no place just now. */
static bool start_put(struct lane *lane, uint32_t number)
{
	struct row *const row = &lane->rows[number];
	int               rc;

	if (!row->claimed) {
		const enum kvs_result result =
			put_begin(lane->s, row->io.key, row->io.span.bytes, &row->writing);

		if (result != KVS_RESULT_DONE) {
			answer(lane, number, result);
			return true;
		}
		row->claimed = true;
		hand_over_before(lane, row->io.span.bytes);
	}
	rc = place_put(lane, row);
	if (rc == -EAGAIN)
		return false;
	if (rc < 0) {
		put_drop(lane->s, &row->writing);
		answer(lane, number, write_result(rc));
		return true;
	}
	lane->leaves[row->leaf].rows++;
	lane->leaves[row->leaf].bytes += row->io.span.bytes;
	take_off(lane, number);
	queue_transfer(lane, number);
	return true;
}

static bool may_start(const struct lane *lane, const struct row *row)
{
	return lane->flight_rows + lane->flight_leaves == 0 ||
	       (lane->flight_rows < FLIGHT_ROWS && lane->flight_leaves < FLIGHT_ROWS &&
		lane->flight_bytes + transfer_bytes(row) <= FLIGHT_BYTES);
}

/* More will come for it as soon as others land, and until then it is small. */
static bool may_grow(const struct lane *lane)
{
	return lane->leaf != SLOT_NONE && lane->queued.count > 0 && !lane->blocked &&
	       lane->rows[lane->queued.head].io.is_put &&
	       lane->leaves[lane->leaf].bytes < LEAF_BYTES;
}

static void start_queued(struct lane *lane)
{
	lane->blocked = false;
	while (!lane->blocked && lane->queued.count > 0 &&
	       may_start(lane, &lane->rows[lane->queued.head])) {
		const uint32_t number = list_pop_head(&lane->queued, lane->links);

		if (!lane->rows[number].io.is_put) {
			start_get(lane, number);
		} else if (!start_put(lane, number)) {
			list_push_head(&lane->queued, lane->links, number);
			lane->blocked = true;
		}
	}
	if (!may_grow(lane))
		shut_leaf(lane);
}

static void start_sync(struct lane *lane)
{
	if (lane->unsynced.count == 0 || lane->syncing_now)
		return;
	while (lane->unsynced.count > 0) {
		list_push_tail(&lane->syncing, lane->links,
			       list_pop_head(&lane->unsynced, lane->links));
	}
	os_ring_sync(lane->ring, lane->s->fd, SYNC_TAG);
	lane->syncing_now = true;
}

/* --- in --------------------------------------------------------------------------------------- */

static void land(struct lane *lane, uint32_t number)
{
	lane->flight_rows--;
	lane->flight_bytes -= transfer_bytes(&lane->rows[number]);
}

static void end_read(struct lane *lane, uint32_t number, int rc)
{
	struct row *const row = &lane->rows[number];

	land(lane, number);
	if (rc < 0)
		answer(lane, number, get_end(lane->s, &row->reading, row->io.span.ptr, rc));
	else
		list_push_tail(&lane->verifying, lane->links, number);
}

/* Payload and headers are written, or one of them failed to be. */
static void end_put(struct lane *lane, uint32_t number)
{
	struct row *const  row = &lane->rows[number];
	struct leaf *const leaf = &lane->leaves[row->leaf];
	const int          rc = row->rc < 0 ? row->rc : leaf->rc;

	leaf->rows--;
	if (rc == 0 && lane->s->set.durability == STRATA_PUT)
		list_push_tail(&lane->unsynced, lane->links, number);
	else
		answer(lane, number, put_end(lane->s, &row->writing, rc));
}

static void end_write(struct lane *lane, uint32_t number, int rc)
{
	struct leaf *const leaf = &lane->leaves[lane->rows[number].leaf];

	land(lane, number);
	lane->rows[number].rc = rc;
	if (leaf->landed)
		end_put(lane, number);
	else
		list_push_tail(&leaf->waiting, lane->links, number);
}

/* As often as a passing shortage may last; then it has failed. */
static bool may_try_again(int32_t result, uint32_t *tries)
{
	return (result == -EINTR || result == -EAGAIN) && (*tries)++ < AGAIN_MAX;
}

static void end_headers(struct lane *lane, uint32_t number, int32_t result)
{
	struct leaf *const leaf = &lane->leaves[number];
	const bool         again = may_try_again(result, &leaf->tries);

	if (result > 0)
		leaf->moved += (uint64_t)result;
	if (again || (result > 0 && leaf->moved < STRATA_PAGE)) {
		queue_headers(lane, number);
		return;
	}
	leaf->rc = result == 0 ? -EIO : result < 0 ? result : 0;
	leaf->landed = true;
	lane->flight_leaves--;
	while (leaf->waiting.count > 0)
		end_put(lane, list_pop_head(&leaf->waiting, lane->links));
}

static void end_sync(struct lane *lane, int rc)
{
	lane->syncing_now = false;
	while (lane->syncing.count > 0) {
		const uint32_t number = list_pop_head(&lane->syncing, lane->links);

		answer(lane, number, put_end(lane->s, &lane->rows[number].writing, rc));
	}
}

/* One that moved nothing and names no reason has met the end of the file, or must not hold us here. */
static int judge_transfer(const struct row *row, int32_t result)
{
	if (result < 0)
		return result;
	if (result > 0)
		return 0;
	return row->io.is_put ? -EIO : -ENODATA;
}

static void end_transfer(struct lane *lane, uint32_t number, int32_t result)
{
	struct row *const row = &lane->rows[number];
	const bool        again = may_try_again(result, &row->tries);
	const int         rc = again ? 0 : judge_transfer(row, result);

	if (result > 0)
		row->moved += (uint64_t)result;
	if (rc == 0 && row->moved < transfer_bytes(row)) {
		queue_transfer(lane, number);
	} else if (row->io.is_put) {
		end_write(lane, number, rc);
	} else {
		end_read(lane, number, rc);
	}
}

static int collect(struct lane *lane, uint32_t min_wait, uint64_t timeout_ns)
{
	struct os_ring_done done[64];
	const int count = os_ring_reap(lane->ring, done, ARRAY_COUNT(done), min_wait, timeout_ns);
	int       i;

	lane->hashed_bytes = 0;
	for (i = 0; i < count; i++) {
		if (done[i].tag == SYNC_TAG)
			end_sync(lane, done[i].result);
		else if (done[i].tag >= LEAF_TAG)
			end_headers(lane, (uint32_t)(done[i].tag - LEAF_TAG), done[i].result);
		else
			end_transfer(lane, (uint32_t)done[i].tag, done[i].result);
	}
	if (count < 0)
		lane->broken = count;
	return count;
}

/* At least one, and no more than lets the device run dry meanwhile. */
static void verify_some(struct lane *lane)
{
	uint64_t hashed = 0;

	while (lane->verifying.count > 0 && hashed < HASH_BYTES) {
		const uint32_t    number = list_pop_head(&lane->verifying, lane->links);
		struct row *const row = &lane->rows[number];

		hashed += row->io.span.bytes;
		answer(lane, number, get_end(lane->s, &row->reading, row->io.span.ptr, 0));
	}
}

static uint32_t wait_count(const struct lane *lane)
{
	const uint32_t half = lane->flight_rows / 2;

	if (lane->flight_rows == 0 || lane->flight_bytes / lane->flight_rows > SMALL_BYTES ||
	    half <= 1)
		return 1;
	return half < SMALL_WAIT ? half : SMALL_WAIT;
}

static void wait_for_place(struct lane *lane, uint64_t timeout_ns)
{
	struct strata *const s = lane->s;

	os_mutex_lock(&s->lock);
	(void)os_cond_wait(&s->written, &s->lock,
			   timeout_ns < BLOCKED_WAIT_NS ? timeout_ns : BLOCKED_WAIT_NS);
	os_mutex_unlock(&s->lock);
}

static bool is_enough(const struct lane *lane)
{
	return lane->done.count >= DONE_ENOUGH ||
	       (lane->done.count > 0 && (lane->queued.count == 0 || lane->verifying.count == 0));
}

static void work(struct lane *lane, uint64_t timeout_ns)
{
	while (!lane->broken) {
		bool waits;
		int  count;

		start_queued(lane);
		start_sync(lane);
		waits = lane->verifying.count == 0 && lane->done.count == 0;
		if (waits && lane->flight_rows + lane->flight_leaves == 0 && !lane->syncing_now) {
			if (lane->blocked)
				wait_for_place(lane, timeout_ns);
			return;
		}
		count = collect(lane, waits ? wait_count(lane) : 0, timeout_ns);
		if (count > 0)
			start_queued(lane);
		if (lane->verifying.count > 0) {
			hand_over_before(lane, HASH_BYTES);
			verify_some(lane);
		}
		if (is_enough(lane) || (waits && count <= 0))
			return;
	}
}

/* --- without a ring --------------------------------------------------------------------------- */

static void do_put(struct lane *lane, const uint32_t *numbers, uint32_t count)
{
	struct kvs_key  keys[PLAIN_ROWS] = { 0 };
	struct kvs_span spans[PLAIN_ROWS] = { 0 };
	enum kvs_result results[PLAIN_ROWS];
	bool            retired;
	uint32_t        i;

	for (i = 0; i < count; i++) {
		keys[i] = *lane->rows[numbers[i]].io.key;
		spans[i] = lane->rows[numbers[i]].io.span;
	}
	(void)strata_put(&lane->s->store, keys, spans, count, results, &retired);
	for (i = 0; i < count; i++)
		answer(lane, numbers[i], results[i]);
}

static void do_queued(struct lane *lane)
{
	uint32_t puts[PLAIN_ROWS];
	uint32_t put_count = 0, i;

	for (i = 0; i < PLAIN_ROWS && lane->queued.count > 0; i++) {
		const uint32_t             number = list_pop_head(&lane->queued, lane->links);
		const struct kvs_io *const io = &lane->rows[number].io;

		if (io->is_put)
			puts[put_count++] = number;
		else
			answer(lane, number, get_now(lane->s, io->key, &io->span));
	}
	if (put_count > 0)
		do_put(lane, puts, put_count);
}

/* --- the store's calls ------------------------------------------------------------------------ */

static int lane_of(struct strata *s, uint32_t number, struct lane **ret_lane)
{
	int rc = 0;

	if (number >= STRATA_LANES_MAX)
		return KVS_E_INVALID;
	if (!s->lanes[number])
		rc = lane_open(s, &s->lanes[number]);
	*ret_lane = s->lanes[number];
	return rc;
}

int strata_submit(struct kvs_store *store, uint32_t number, const struct kvs_io *io, uint32_t count)
{
	struct strata *const s = strata_of(store);
	struct lane         *lane = NULL;
	uint32_t             i;
	const int            rc = lane_of(s, number, &lane);

	if (rc < 0)
		return rc;
	if (lane->broken)
		return lane->broken;
	register_memory(lane);
	for (i = 0; i < count && lane->idle.count > 0 && span_fits(s, &io[i].span); i++) {
		const uint32_t row = list_pop_head(&lane->idle, lane->links);

		lane->rows[row] = (struct row){ .io = io[i] };
		list_push_tail(&lane->queued, lane->links, row);
	}
	/* What comes before a span that cannot be moved is taken; then it is told. */
	if (i == 0 && count > 0 && !span_fits(s, &io[0].span))
		return KVS_E_INVALID;
	if (lane->ring) {
		start_queued(lane);
		if (!lane->broken)
			lane->broken = os_ring_submit(lane->ring);
	}
	return (int)i;
}

int strata_reap(struct kvs_store *store, uint32_t number, struct kvs_io_done *ret_done,
		uint32_t done_max, uint64_t timeout_ns)
{
	struct strata *const s = strata_of(store);
	struct lane         *lane = NULL;
	uint32_t             count = 0;
	const int            rc = lane_of(s, number, &lane);

	if (rc < 0)
		return rc;
	if (lane->ring)
		work(lane, timeout_ns);
	else
		do_queued(lane);
	while (count < done_max && lane->done.count > 0) {
		const uint32_t row = list_pop_head(&lane->done, lane->links);

		ret_done[count++] = (struct kvs_io_done){ .cookie = lane->rows[row].io.cookie,
							  .result = lane->rows[row].result,
							  .retired = true };
		list_push_head(&lane->idle, lane->links, row);
	}
	return count == 0 && lane->broken ? lane->broken : (int)count;
}
