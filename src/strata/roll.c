/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rolling from one segment to the next.
 *
 * One free segment is kept back for what cleaning moves: from the last but one on, room for puts has
 * to be made first.
 */
#include <errno.h>
#include <string.h>

#include "strata/core.h"

/* Of puts; a move may take the last. */
#define FREE_KEPT 1u

/* --- sealing ---------------------------------------------------------------------------------- */

/* Synced first: a summary never vouches for payload that the device may still lose. */
static int write_draft(struct strata *s, uint32_t segment, uint32_t count)
{
	int rc = 0;

#ifndef KVS_MUTANT_NO_SEAL_SYNC /* Planted bug: vouches for what the device may lose. */
	rc = promise_sync(s, s->space.segments[segment].syncs_failed);
#endif
	if (rc < 0)
		return rc;
	return summary_write(s, segment, s->space.segments[segment].sequence, count,
			     space_draft(&s->space, segment));
}

/* Without a summary the segment is read whole, by cleaning and by the next open: nothing is lost. */
void segment_seal(struct strata *s, uint32_t segment)
{
	uint32_t count;

	os_mutex_lock(&s->lock);
	count = s->space.segments[segment].record_count;
	count_written(s, page_offset(summary_pages(count)));
	os_mutex_unlock(&s->lock);
	(void)write_draft(s, segment, count);
	/* Its figures, which cost a sync each time: a budget must know them after a crash, others may not. */
	if (s->set.durability != STRATA_NONE || s->set.write_budget_bytes > 0)
		(void)superblock_write(s);
	os_mutex_lock(&s->lock);
	space_sealed(&s->space, segment);
	os_cond_broadcast(&s->written);
	os_mutex_unlock(&s->lock);
}

/* --- opening ---------------------------------------------------------------------------------- */

static int write_head(struct strata *s, uint32_t segment, uint64_t sequence)
{
	int rc = 0;

	/* What lies in a hole is slow to write, and may find no room. */
	if (!s->device && !s->space.segments[segment].backed)
		rc = os_file_allocate(s->fd, segment_offset(s, segment), s->geometry.segment_bytes);
	if (rc < 0 && rc != -EOPNOTSUPP)
		return rc;
	head_make(s->hash, segment, sequence, s->head);
	return os_file_write(s->fd, s->head, sizeof(*s->head), segment_offset(s, segment));
}

/* The new one is open before the old one is shut: one that has no successor still takes what fits. */
static int open_next(struct strata *s, enum stream stream)
{
	uint32_t segment, old = SEGMENT_NONE;
	uint64_t sequence = 0;
	int      rc;

	os_mutex_lock(&s->lock);
	segment = space_take(&s->space);
	if (segment != SEGMENT_NONE)
		sequence = s->space.segments[segment].sequence;
	os_mutex_unlock(&s->lock);
	/* All drafts are taken by segments that wait for writes. */
	if (segment == SEGMENT_NONE)
		return -EAGAIN;
	rc = write_head(s, segment, sequence);
	os_mutex_lock(&s->lock);
	count_written(s, STRATA_PAGE);
	if (rc == 0) {
		old = space_shut(&s->space, stream);
		space_opened(&s->space, segment, stream);
		s->space.segments[segment].syncs_failed = s->syncs_failed;
	} else {
		space_not_opened(&s->space, segment);
		if (write_result(rc) == KVS_RESULT_NO_SPACE)
			space_shrink(&s->space);
	}
	os_mutex_unlock(&s->lock);
	if (old != SEGMENT_NONE)
		segment_seal(s, old);
	return rc;
}

/* What is dead in an open segment comes back only once it is sealed. */
static bool shut_open_segments(struct strata *s)
{
	bool any = false;
	int  stream;

	for (stream = 0; stream < STREAM_COUNT; stream++) {
		uint32_t segment;

		os_mutex_lock(&s->lock);
		any = any || s->space.open[stream] != SEGMENT_NONE;
		segment = space_shut(&s->space, (enum stream)stream);
		os_mutex_unlock(&s->lock);
		if (segment != SEGMENT_NONE)
			segment_seal(s, segment);
	}
	return any;
}

static int make_puts_room(struct strata *s, uint32_t pages)
{
	const int rc = segment_clean(s, pages);

	if (rc == KVS_E_FULL && shut_open_segments(s))
		return 0;
	return rc;
}

int room_make_rolling(struct strata *s, enum stream stream, uint32_t pages)
{
	uint32_t tries;

	/* Each try cleans a segment, and none is cleaned for nothing twice. */
	for (tries = 0; tries < 2 * s->geometry.segment_count; tries++) {
		bool has_room, may_take;
		int  rc;

		os_mutex_lock(&s->lock);
		has_room = space_has_room(&s->space, stream, pages);
		may_take = s->space.free_count > (stream == STREAM_PUTS ? FREE_KEPT : 0);
		os_mutex_unlock(&s->lock);
		if (has_room)
			return 0;
		if (may_take)
			return open_next(s, stream);
		if (stream == STREAM_MOVES)
			return KVS_E_FULL;
		rc = make_puts_room(s, pages);
		if (rc < 0)
			return rc;
	}
	return KVS_E_FULL;
}

int room_make(struct strata *s, enum stream stream, uint32_t pages)
{
	int rc;

	os_mutex_lock(&s->roll);
	rc = room_make_rolling(s, stream, pages);
	os_mutex_unlock(&s->roll);
	return rc;
}
