/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is rewritten in place, in two copies by turns: the tallies of dead records and the superblock.
 * A copy that is torn leaves the other, so one is written only when the other has been synced: with
 * both under way a power failure may tear both.
 */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "strata/core.h"

/* --- sync ------------------------------------------------------------------------------------- */

void sync_failed(struct strata *s)
{
	os_mutex_lock(&s->lock);
	s->syncs_failed++;
	os_mutex_unlock(&s->lock);
}

uint64_t syncs_failed(struct strata *s)
{
	uint64_t count;

	os_mutex_lock(&s->lock);
	count = s->syncs_failed;
	os_mutex_unlock(&s->lock);
	return count;
}

/* What was stamped before it began is durable. */
static int sync_stamps(struct strata *s)
{
	uint64_t stamp;
	int      rc;

	os_mutex_lock(&s->lock);
	stamp = s->stamp;
	os_mutex_unlock(&s->lock);
	rc = os_file_sync(s->fd);
	os_mutex_lock(&s->lock);
	if (rc < 0)
		s->syncs_failed++;
	else if (stamp > s->stamp_synced)
		s->stamp_synced = stamp;
	os_mutex_unlock(&s->lock);
	return rc;
}

/* Before the older copy is written: the newer one is durable. */
static int sync_copy(struct strata *s, uint64_t stamp)
{
	bool synced;

	os_mutex_lock(&s->lock);
#ifdef KVS_MUTANT_UNSYNCED_COPY /* Planted bug: both copies under way at once. */
	stamp = 0;
#endif
	synced = stamp <= s->stamp_synced;
	os_mutex_unlock(&s->lock);
	return synced ? 0 : sync_stamps(s);
}

/* A write in place ended, well or not. */
static void put_stamp(struct strata *s, uint64_t *ret_stamp)
{
	os_mutex_lock(&s->lock);
	*ret_stamp = ++s->stamp;
	os_mutex_unlock(&s->lock);
}

int promise_sync(struct strata *s, uint64_t failed_before)
{
	int rc = s->set.durability == STRATA_NONE ? 0 : sync_stamps(s);

	if (rc == 0 && s->set.durability != STRATA_NONE && syncs_failed(s) != failed_before)
		rc = -EIO;
	return rc;
}

/* --- tallies ---------------------------------------------------------------------------------- */

static bool draw_tally(struct strata *s, uint32_t number)
{
	struct segment *const segment = &s->space.segments[number];
	struct tally *const   page = s->page;
	bool                  due;

	os_mutex_lock(&s->lock);
	due = segment->tally_dirty && segment->state > SEGMENT_OPENING &&
	      segment->state < SEGMENT_ABSENT;
	if (due) {
		memset(page, 0, sizeof(*page));
		page->segment = number;
		page->store = s->hash;
		page->sequence = segment->sequence;
		page->update = ++segment->tally_update;
		memcpy(page->dead, segment->dead,
		       bits_words(s->geometry.records_max) * sizeof(page->dead[0]));
		segment->tally_dirty = false;
		count_written(s, STRATA_PAGE);
	}
	os_mutex_unlock(&s->lock);
	return due;
}

static int write_tally(struct strata *s, uint32_t segment)
{
#ifdef KVS_MUTANT_ONE_COPY /* Planted bug: one that is torn leaves none. */
	const uint32_t copy = 0;
#else
	const uint32_t copy = (uint32_t)(s->page->update % STRATA_TALLIES);
#endif
	const uint32_t page = segment_page(&s->geometry, segment) + STRATA_TALLY_PAGE + copy;
	int            rc = 0;

	tally_seal(s->page);
	if (s->set.durability != STRATA_NONE)
		rc = sync_copy(s, s->space.segments[segment].tally_stamp);
	if (rc == 0) {
		rc = os_file_write(s->fd, s->page, sizeof(*s->page), page_offset(page));
		put_stamp(s, &s->space.segments[segment].tally_stamp);
	}
	if (rc < 0) {
		/* The next try is for the same copy: the other may be all there is. */
		os_mutex_lock(&s->lock);
		s->space.segments[segment].tally_update--;
		s->space.segments[segment].tally_dirty = true;
		s->space.any_dirty = true;
		os_mutex_unlock(&s->lock);
	}
	return rc;
}

int tally_write(struct strata *s, uint32_t segment)
{
	int rc = 0;

	os_mutex_lock(&s->tallies);
	os_mutex_lock(&s->lock);
	s->space.segments[segment].tally_dirty = true;
	os_mutex_unlock(&s->lock);
	if (draw_tally(s, segment))
		rc = write_tally(s, segment);
	os_mutex_unlock(&s->tallies);
	return rc;
}

int tallies_write(struct strata *s)
{
	uint32_t segment;
	bool     any;
	int      rc = 0;

	os_mutex_lock(&s->tallies);
	os_mutex_lock(&s->lock);
	any = s->space.any_dirty;
	s->space.any_dirty = false;
	os_mutex_unlock(&s->lock);
	for (segment = 0; any && segment < s->geometry.segment_count; segment++) {
		if (draw_tally(s, segment)) {
			const int failed = write_tally(s, segment);

			rc = rc < 0 ? rc : failed;
		}
	}
	os_mutex_unlock(&s->tallies);
	return rc;
}

/* --- the superblock --------------------------------------------------------------------------- */

int superblock_write(struct strata *s)
{
	struct superblock *const superblock = s->superblock;
	int                      rc;

	os_mutex_lock(&s->tallies);
	os_mutex_lock(&s->lock);
	count_written(s, STRATA_PAGE);
	superblock->put_bytes = s->put_bytes;
	superblock->written_bytes = s->written_bytes;
	superblock->day = s->day;
	superblock->day_bytes = s->day_bytes;
	os_mutex_unlock(&s->lock);
	rc = sync_copy(s, s->superblock_stamp);
	if (rc == 0) {
		superblock->update++;
		superblock_seal(superblock);
		rc = os_file_write(s->fd, superblock, sizeof(*superblock),
				   page_offset((uint32_t)(superblock->update % STRATA_SUPERBLOCKS)));
		put_stamp(s, &s->superblock_stamp);
		/* The next try is for the same copy. */
		superblock->update -= rc < 0;
	}
	os_mutex_unlock(&s->tallies);
	return rc;
}
