/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is rewritten in place, in two copies by turns: the tallies of dead records and the superblock.
 * A copy that is torn leaves the other, so one is written only when the other has been synced: with
 * both under way a power failure may tear both.  One that a failed sync may have taken is no other: it
 * is out of turn, written again, and numbered so that the turns go on from it.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "strata/core.h"

/* --- sync ------------------------------------------------------------------------------------- */

/* With the lock: its tally is to be written, now or later. */
static void set_dirty(struct strata *s, uint32_t number)
{
	s->space.segments[number].tally_dirty = true;
	s->space.any_dirty = true;
}

/* With the lock.  What was not synced before it may be gone. */
static void count_failed(struct strata *s)
{
	uint32_t number;

	s->syncs_failed++;
	s->superblock_lost = s->superblock_lost || s->superblock_stamp > s->stamp_synced;
	for (number = 0; number < s->geometry.segment_count; number++) {
		struct segment *const segment = &s->space.segments[number];

		if (segment->tally_stamp > s->stamp_synced && space_has_tally(&s->space, number)) {
			segment->tally_lost = true;
			set_dirty(s, number);
		}
	}
}

void sync_failed(struct strata *s)
{
	os_mutex_lock(&s->lock);
	count_failed(s);
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

/* What was stamped before it began is durable, but for what is known to be lost. */
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
		count_failed(s);
	else if (stamp > s->stamp_synced)
		s->stamp_synced = stamp;
	os_mutex_unlock(&s->lock);
	return rc;
}

/* Before the older copy is written: the newer one is durable, or lost. */
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

/* With the lock.  The number says which copy it is. */
static uint64_t next_update(uint64_t update, bool lost)
{
	return update + (lost ? STRATA_TALLIES : 1);
}

static_assert(STRATA_TALLIES == STRATA_SUPERBLOCKS, "one rule for both");

/* With the lock: a copy was written.  A sync that failed since that began may have taken it. */
static void put_stamp(struct strata *s, uint64_t failed_before, uint64_t *ret_stamp, bool *ret_lost)
{
	*ret_stamp = ++s->stamp;
	*ret_lost = s->syncs_failed != failed_before;
}

int promise_sync(struct strata *s, uint64_t failed_before)
{
	int rc = s->set.durability == STRATA_NONE ? 0 : sync_stamps(s);

	if (rc == 0 && s->set.durability != STRATA_NONE && syncs_failed(s) != failed_before)
		rc = -EIO;
	return rc;
}

/* --- tallies ---------------------------------------------------------------------------------- */

/* With the lock. */
static bool is_due(const struct strata *s, uint32_t number)
{
	return s->space.segments[number].tally_dirty && space_has_tally(&s->space, number);
}

/* As it is now, in the copy whose turn it is by then. */
static bool draw_tally(struct strata *s, uint32_t number, uint64_t *ret_failed_before)
{
	struct segment *const segment = &s->space.segments[number];
	struct tally *const   page = s->page;
	bool                  due;

	os_mutex_lock(&s->lock);
	due = is_due(s, number);
	if (due) {
		memset(page, 0, sizeof(*page));
		page->segment = number;
		page->store = s->hash;
		page->sequence = segment->sequence;
		page->update = next_update(segment->tally_update, segment->tally_lost);
		memcpy(page->dead, segment->dead,
		       bits_words(s->geometry.records_max) * sizeof(page->dead[0]));
		segment->tally_dirty = false;
		count_written(s, STRATA_PAGE);
	}
	*ret_failed_before = s->syncs_failed;
	os_mutex_unlock(&s->lock);
	return due;
}

static int write_page(struct strata *s, uint32_t segment)
{
#ifdef KVS_MUTANT_ONE_COPY /* Planted bug: one that is torn leaves none. */
	const uint32_t copy = 0;
#else
	const uint32_t copy = (uint32_t)(s->page->update % STRATA_TALLIES);
#endif
	const uint32_t page = segment_page(&s->geometry, segment) + STRATA_TALLY_PAGE + copy;

	tally_seal(s->page);
	return os_file_write(s->fd, s->page, sizeof(*s->page), page_offset(page));
}

/*
 * Synced first and drawn then: what is durable by then is lost to no sync that fails later.  After a
 * write that failed the next try is for the same copy: the other may be all there is.
 */
static int write_tally(struct strata *s, uint32_t number)
{
	struct segment *const segment = &s->space.segments[number];
	uint64_t              failed_before = 0;
	int                   rc = 0;

	if (s->set.durability != STRATA_NONE)
		rc = sync_copy(s, segment->tally_stamp);
	if (rc == 0) {
		if (!draw_tally(s, number, &failed_before))
			return 0;
		rc = write_page(s, number);
	}
	os_mutex_lock(&s->lock);
	if (rc == 0) {
		segment->tally_update = s->page->update;
		put_stamp(s, failed_before, &segment->tally_stamp, &segment->tally_lost);
	}
	if (rc < 0 || segment->tally_lost)
		set_dirty(s, number);
	os_mutex_unlock(&s->lock);
	return rc;
}

int tally_write(struct strata *s, uint32_t segment)
{
	int rc;

	os_mutex_lock(&s->tallies);
	os_mutex_lock(&s->lock);
	set_dirty(s, segment);
	os_mutex_unlock(&s->lock);
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
		bool due;

		os_mutex_lock(&s->lock);
		due = is_due(s, segment);
		os_mutex_unlock(&s->lock);
		if (due) {
			const int failed = write_tally(s, segment);

			rc = rc < 0 ? rc : failed;
		}
	}
	os_mutex_unlock(&s->tallies);
	return rc;
}

/* --- the superblock --------------------------------------------------------------------------- */

/* What it says as it is written; the number that it had. */
static uint64_t draw_superblock(struct strata *s, uint64_t *ret_failed_before)
{
	struct superblock *const superblock = s->superblock;
	const uint64_t           before = superblock->update;

	os_mutex_lock(&s->lock);
	count_written(s, STRATA_PAGE);
	superblock->put_bytes = s->put_bytes;
	superblock->written_bytes = s->written_bytes;
	superblock->day = s->day;
	superblock->day_bytes = s->day_bytes;
	superblock->update = next_update(before, s->superblock_lost);
	*ret_failed_before = s->syncs_failed;
	os_mutex_unlock(&s->lock);
	return before;
}

int superblock_write(struct strata *s)
{
	struct superblock *const superblock = s->superblock;
	uint64_t                 before, failed_before = 0;
	int                      rc;

	os_mutex_lock(&s->tallies);
	rc = sync_copy(s, s->superblock_stamp);
	if (rc == 0) {
		before = draw_superblock(s, &failed_before);
		superblock_seal(superblock);
		rc = os_file_write(s->fd, superblock, sizeof(*superblock),
				   page_offset((uint32_t)(superblock->update % STRATA_SUPERBLOCKS)));
		os_mutex_lock(&s->lock);
		/* The next try is for the same copy. */
		if (rc < 0)
			superblock->update = before;
		else
			put_stamp(s, failed_before, &s->superblock_stamp, &s->superblock_lost);
		os_mutex_unlock(&s->lock);
	}
	os_mutex_unlock(&s->tallies);
	return rc;
}
