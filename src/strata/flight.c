/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows in flight over a lane's ring, and the loop that keeps it full: see lane.h.
 *
 * More rows are taken than are in flight, so that a completion's place is filled from here, before
 * anything is hashed: the device works while the processor does.  A put is hashed while the ones
 * before it are in flight.
 */
#include "strata/lane.h"

/* What is hashed before what was queued is handed over, and before completions are looked for. */
#define HASH_BYTES (UINT64_C(512) << 10)

/* Rows that are handed back together, so that a caller's round costs little beside them. */
#define DONE_ENOUGH 32u

/* Small transfers are waited for by several; a large one is worth a wake-up of its own. */
#define SMALL_BYTES (UINT64_C(128) << 10)
#define SMALL_WAIT 8u

/* Without a place, and with nothing under way here: somebody else's write will end. */
#define BLOCKED_WAIT_NS UINT64_C(1000000)

/* --- out -------------------------------------------------------------------------------------- */

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
		lane_answer(lane, number, result);
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

/* False: it has no place just now. */
static bool start_put(struct lane *lane, uint32_t number)
{
	struct row *const row = &lane->rows[number];
	int               rc;

	if (!row->claimed) {
		const enum kvs_result result =
			put_begin(lane->s, row->io.key, row->io.span.bytes, &row->writing);

		if (result != KVS_RESULT_DONE) {
			lane_answer(lane, number, result);
			return true;
		}
		row->claimed = true;
		hand_over_before(lane, row->io.span.bytes);
	}
	rc = leaf_place(lane, row);
	if (rc == -EAGAIN)
		return false;
	if (rc < 0) {
		put_drop(lane->s, &row->writing);
		lane_answer(lane, number, write_result(rc));
		return true;
	}
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

void flight_start(struct lane *lane)
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
	if (!leaf_may_grow(lane))
		leaf_shut(lane);
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

	if (rc < 0)
		lane_answer(lane, number, get_end(lane->s, &row->reading, row->io.span.ptr, rc));
	else
		list_push_tail(&lane->verifying, lane->links, number);
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
		return;
	}
	land(lane, number);
	if (row->io.is_put)
		leaf_end_write(lane, number, rc);
	else
		end_read(lane, number, rc);
}

static int collect(struct lane *lane, uint32_t min_wait, uint64_t timeout_ns)
{
	struct os_ring_done done[64];
	const int count = os_ring_reap(lane->ring, done, ARRAY_COUNT(done), min_wait, timeout_ns);
	int       i;

	lane->hashed_bytes = 0;
	for (i = 0; i < count; i++) {
		if (done[i].tag == SYNC_TAG)
			sync_end(lane, done[i].result);
		else if (done[i].tag >= LEAF_TAG)
			leaf_end_headers(lane, (uint32_t)(done[i].tag - LEAF_TAG), done[i].result);
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
		lane_answer(lane, number, get_end(lane->s, &row->reading, row->io.span.ptr, 0));
	}
}

/* --- the loop --------------------------------------------------------------------------------- */

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

void flight_work(struct lane *lane, uint64_t timeout_ns)
{
	while (!lane->broken) {
		bool waits;
		int  count;

		flight_start(lane);
		sync_start(lane);
		waits = lane->verifying.count == 0 && lane->done.count == 0;
		if (waits && lane->flight_rows + lane->flight_leaves == 0 && !lane->syncing_now) {
			if (lane->blocked)
				wait_for_place(lane, timeout_ns);
			return;
		}
		count = collect(lane, waits ? wait_count(lane) : 0, timeout_ns);
		if (count > 0)
			flight_start(lane);
		if (lane->verifying.count > 0) {
			hand_over_before(lane, HASH_BYTES);
			verify_some(lane);
		}
		if (is_enough(lane) || (waits && count <= 0))
			return;
	}
}
