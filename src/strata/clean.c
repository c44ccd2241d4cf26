/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cleaning: one segment's objects leave, hot ones for another segment, and it is free.
 *
 * What is hot the eviction policy says.  At most half of a segment is written again, what was used
 * most first, so that a write of the user's costs at most one more; locked objects go along whatever
 * that costs.  The rest is evicted.
 */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "strata/clean.h"
#include "strata/scan.h"

/* Uses that let an object go first when there is too little room for all that were used. */
#define HEAT_HIGH 2u

uint32_t cleaning_entry(const struct strata *s, const struct cleaning *cleaning, uint32_t i)
{
	const struct summary_entry *const entry = &cleaning->entries[i];
	const uint32_t page = segment_page(&s->geometry, cleaning->segment) + entry->page;
	uint32_t       number;

	if (entry->pages == 0 || bits_test(s->space.segments[cleaning->segment].dead, i))
		return SLOT_NONE;
	number = catalog_find(&s->catalog, key_print(s->hash, &entry->key));
	if (number == SLOT_NONE || s->catalog.entries[number].state != ENTRY_PRESENT ||
	    s->catalog.entries[number].page != page)
		return SLOT_NONE;
	return number;
}

/* Where the summary is gone the records themselves still say what they are. */
static int scan_entries(struct strata *s, struct cleaning *cleaning, uint64_t sequence)
{
	struct scan scan = { 0 };
	int         rc = scan_open(&scan, s);

	if (rc == 0)
		rc = scan_segment(&scan, cleaning->segment, sequence);
	if (rc == 0) {
		cleaning->count = scan.count;
		memcpy(s->summary, scan.entries, scan.count * sizeof(*scan.entries));
	}
	scan_close(&scan);
	return rc;
}

static int read_entries(struct strata *s, struct cleaning *cleaning)
{
	const uint64_t sequence = s->space.segments[cleaning->segment].sequence;
	const int      rc = summary_read(s, cleaning->segment, sequence, s->summary,
					 &cleaning->count);

	cleaning->entries = (struct summary_entry *)s->summary;
	return rc == -ENOENT || rc == KVS_E_PROTO || rc == -EIO
		       ? scan_entries(s, cleaning, sequence)
		       : rc;
}

/* --- what stays ------------------------------------------------------------------------------- */

static void keep(struct cleaning *cleaning, uint32_t i)
{
	bits_set(cleaning->kept, i);
	cleaning->kept_pages += cleaning->entries[i].pages;
}

/* With the lock: keep what is locked, or used at least so often and has room. */
static void keep_from(struct strata *s, struct cleaning *cleaning, uint32_t heat)
{
	const uint32_t limit = space_usable(&s->space) / 2;
	uint32_t       i;

	for (i = 0; i < cleaning->count; i++) {
		const uint32_t number = cleaning_entry(s, cleaning, i);
		const uint32_t pages = cleaning->entries[i].pages;

		if (number == SLOT_NONE || bits_test(cleaning->kept, i))
			continue;
		if (s->catalog.entries[number].locks > 0 ||
		    (catalog_heat(&s->catalog, number) >= heat && cleaning->kept_pages + pages <= limit))
			keep(cleaning, i);
	}
}

/* Those that may stay, and the rest is gone. */
static void choose(struct strata *s, struct cleaning *cleaning)
{
	uint32_t i;

	os_mutex_lock(&s->lock);
	keep_from(s, cleaning, UINT32_MAX);
	keep_from(s, cleaning, HEAT_HIGH);
	keep_from(s, cleaning, 1);
	for (i = 0; i < cleaning->count; i++) {
		const uint32_t number = cleaning_entry(s, cleaning, i);

		if (number == SLOT_NONE || bits_test(cleaning->kept, i))
			continue;
		entry_expel(s, number);
		s->counts.evicted++;
	}
	os_mutex_unlock(&s->lock);
}

/* --- the whole -------------------------------------------------------------------------------- */

/* What is named by the catalog, but neither by a summary nor by its own headers. */
static void lose_rest(struct strata *s, uint32_t segment)
{
	uint32_t number;

	os_mutex_lock(&s->lock);
	for (number = 0;
	     s->space.segments[segment].live_count > 0 && number < s->catalog.known; number++) {
		const struct entry *const entry = &s->catalog.entries[number];

		if (entry->state == ENTRY_PRESENT &&
		    space_segment_of(&s->space, entry->page) == segment) {
			entry_kill(s, number);
			s->counts.evicted++;
		}
	}
	os_mutex_unlock(&s->lock);
}

/* What was moved out of it: its old record is as good as the new one until that is synced. */
static void bury_moved(struct strata *s, const struct cleaning *cleaning)
{
	uint32_t i;

	os_mutex_lock(&s->lock);
	for (i = 0; i < cleaning->count; i++) {
		if (bits_test(cleaning->moved, i))
			space_bury(&s->space, cleaning->segment, i);
	}
	os_mutex_unlock(&s->lock);
}

/*
 * Moved records are synced before a tally says that the old ones are dead: a power failure between the
 * two would take both.  Its dead are told of before it is written over: an older record of the same key
 * may still lie there.  A device that fails a sync keeps no promise: then the old ones are buried, too,
 * so that none comes back after its key was removed.
 */
static int finish(struct strata *s, const struct cleaning *cleaning, int rc)
{
	const uint32_t segment = cleaning->segment;
	int            sync_rc = 0;

#ifndef KVS_MUTANT_BURY_FIRST /* Planted bug: two copies, both of which a crash may take. */
	if (cleaning->moved_count > 0)
		sync_rc = promise_sync(s, cleaning->failed_before);
#endif
	bury_moved(s, cleaning);
	if (rc == 0)
		rc = sync_rc;
#ifndef KVS_MUTANT_NO_CLEAN_TALLY /* Planted bug: what was dead there may come back from elsewhere. */
	if (rc == 0)
		rc = tallies_write(s);
#endif
#ifndef KVS_MUTANT_NO_CLEAN_SYNC /* Planted bug: writes over what is not dead for sure. */
	if (rc == 0)
		rc = promise_sync(s, cleaning->failed_before);
#endif
	os_mutex_lock(&s->lock);
	if (rc == 0)
		space_clean_end(&s->space, segment);
	else
		space_clean_abandon(&s->space, segment);
	os_cond_broadcast(&s->written);
	os_mutex_unlock(&s->lock);
	return rc;
}

int segment_clean(struct strata *s, uint32_t pages)
{
	struct cleaning cleaning = { 0 };
	bool            moving;
	int             rc;

	os_mutex_lock(&s->lock);
	cleaning.segment = space_victim(&s->space, pages);
	cleaning.failed_before = s->syncs_failed;
	moving = space_is_moving(&s->space);
	if (cleaning.segment != SEGMENT_NONE)
		space_clean_begin(&s->space, cleaning.segment);
	os_mutex_unlock(&s->lock);
	if (cleaning.segment == SEGMENT_NONE)
		return moving ? -EAGAIN : KVS_E_FULL;
	rc = read_entries(s, &cleaning);
	if (rc == 0) {
		choose(s, &cleaning);
		rc = cleaning_move(s, &cleaning);
	}
	if (rc == 0)
		lose_rest(s, cleaning.segment);
	return finish(s, &cleaning, rc);
}
