/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What puts wait for together: see lane.h.
 *
 * A leaf is open while puts start, and takes them as long as the group has room for the next one.  It
 * stays open over a round only while it is small and more will come.  Then its headers are written,
 * beside the payloads and in any order with them.  A put ends when both are there: either alone is no
 * object after a crash.  With durability `put` one sync covers all writes that ended before it, and
 * more are written meanwhile.
 */
#include "strata/lane.h"

/* Payload beside which a page of headers is little, and of which the device makes one transfer. */
#define LEAF_BYTES (UINT64_C(1) << 20)

/* --- out -------------------------------------------------------------------------------------- */

static void queue_headers(struct lane *lane, uint32_t number)
{
	const struct leaf *const leaf = &lane->leaves[number];

	os_ring_write(lane->ring, lane->s->fd, (uint8_t *)&lane->headers[number] + leaf->moved,
		      STRATA_PAGE - leaf->moved,
		      header_offset(lane->s, &leaf->group) + leaf->moved, LEAF_TAG + number);
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

void leaf_shut(struct lane *lane)
{
	const uint32_t number = lane->leaf;

	lane->leaf = SLOT_NONE;
	if (number == SLOT_NONE || lane->leaves[number].rows == 0)
		return;
	header_seal(&lane->headers[number]);
	lane->flight_leaves++;
	queue_headers(lane, number);
}

int leaf_place(struct lane *lane, struct row *row)
{
	int rc;

	do {
		row->leaf = open_leaf(lane);
		rc = put_place(lane->s, row->io.span.ptr, &lane->leaves[row->leaf].group,
			       &lane->headers[row->leaf], &row->writing);
		if (rc == PUT_NEW_GROUP)
			leaf_shut(lane);
	} while (rc == PUT_NEW_GROUP);
	if (rc == 0) {
		lane->leaves[row->leaf].rows++;
		lane->leaves[row->leaf].bytes += row->io.span.bytes;
	}
	return rc;
}

/* More will come for it as soon as others land, and until then it is small. */
bool leaf_may_grow(const struct lane *lane)
{
	return lane->leaf != SLOT_NONE && lane->queued.count > 0 && !lane->blocked &&
	       lane->rows[lane->queued.head].io.is_put &&
	       lane->leaves[lane->leaf].bytes < LEAF_BYTES;
}

void sync_start(struct lane *lane)
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
		lane_answer(lane, number, put_end(lane->s, &row->writing, rc));
}

void leaf_end_write(struct lane *lane, uint32_t number, int rc)
{
	struct leaf *const leaf = &lane->leaves[lane->rows[number].leaf];

	lane->rows[number].rc = rc;
	if (leaf->landed)
		end_put(lane, number);
	else
		list_push_tail(&leaf->waiting, lane->links, number);
}

void leaf_end_headers(struct lane *lane, uint32_t number, int32_t result)
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

void sync_end(struct lane *lane, int rc)
{
	lane->syncing_now = false;
	if (rc < 0)
		sync_failed(lane->s);
	while (lane->syncing.count > 0) {
		const uint32_t number = list_pop_head(&lane->syncing, lane->links);

		lane_answer(lane, number, put_end(lane->s, &lane->rows[number].writing, rc));
	}
}
