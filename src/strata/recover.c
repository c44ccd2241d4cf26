/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the file to catalog and space.  Single-threaded: nobody else sees the store yet.
 *
 * Segments come in the order of their sequence, and their records in the order they were put, which
 * stands in for the order of use.  The newest record of a key speaks for it; a dead one stays in the
 * catalog as GONE until all have been heard, so that an older one does not come back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "strata/scan.h"

struct place {
	uint64_t sequence;
	uint32_t segment;
};

struct recovery {
	struct strata        *s;
	struct place         *places; /* of segments with a valid head, by sequence */
	uint32_t              place_count;
	uint8_t              *buffer; /* a summary, or a page */
	uint64_t             *sequences; /* of the entries' records: only while recovering */
	struct scan           scan;
	struct tally         *tally;
	uint64_t              file_bytes;
	uint64_t              highest; /* sequence */
	uint32_t              gone_count; /* entries that are GONE */
	uint32_t              gone_at;    /* where to look for the next of them */
};

/* --- the catalog ------------------------------------------------------------------------------ */

static void supersede(struct recovery *r, uint32_t number)
{
	struct strata *const s = r->s;

	if (s->catalog.entries[number].state == ENTRY_PRESENT) {
		entry_kill(s, number);
	} else {
		catalog_drop(&s->catalog, number);
		r->gone_count--;
	}
}

/* The next of those that are GONE; there is one. */
static uint32_t next_gone(struct recovery *r)
{
	const struct catalog *const catalog = &r->s->catalog;

	while (catalog->entries[r->gone_at].state != ENTRY_GONE)
		r->gone_at = (r->gone_at + 1) % catalog->known;
	return r->gone_at;
}

/*
 * A catalog that is full gives up the dead first: whatever else lies there of their keys is marked on
 * disk, unless a crash or damage came between.  Then it gives up the oldest.
 */
static uint32_t make_entry(struct recovery *r, uint64_t print, bool dead)
{
	struct strata *const s = r->s;
	uint32_t             number = catalog_add(&s->catalog, print), victim;

	if (number != SLOT_NONE || dead)
		return number;
	if (r->gone_count > 0) {
		supersede(r, next_gone(r));
		return catalog_add(&s->catalog, print);
	}
	victim = catalog_victim(&s->catalog);
	if (victim == SLOT_NONE)
		return SLOT_NONE;
	entry_kill(s, victim);
	s->counts.evicted++;
	return catalog_add(&s->catalog, print);
}

static void adopt(struct recovery *r, uint32_t segment, uint32_t ordinal,
		  const struct summary_entry *found, uint64_t print)
{
	struct strata *const s = r->s;
	const bool           dead = bits_test(s->space.segments[segment].dead, ordinal);
	uint32_t             number = catalog_find(&s->catalog, print);
	struct entry        *entry;

	if (found->sequence > r->highest)
		r->highest = found->sequence;
	if (number != SLOT_NONE && r->sequences[number] > found->sequence) {
		if (!dead)
			space_bury(&s->space, segment, ordinal);
		return;
	}
	if (number != SLOT_NONE)
		supersede(r, number);
	number = make_entry(r, print, dead);
	if (number == SLOT_NONE) {
		if (!dead) {
			space_bury(&s->space, segment, ordinal);
			s->counts.evicted++;
		}
		return;
	}
	r->sequences[number] = found->sequence;
	entry = &s->catalog.entries[number];
	entry->checksum = found->payload_checksum;
	entry->page = segment_page(&s->geometry, segment) + found->page;
	entry->pages = found->pages;
	entry->ordinal = (uint16_t)ordinal;
	if (dead) {
		catalog_mark_gone(&s->catalog, number);
		r->gone_count++;
		return;
	}
	catalog_publish(&s->catalog, number);
	space_count(&s->space, segment, found->pages);
}

/* Each look-up of a million misses the caches: they are begun some records ahead. */
#define AHEAD 16u

static void adopt_all(struct recovery *r, uint32_t segment, const struct summary_entry *entries,
		      uint32_t count)
{
	const struct strata *const s = r->s;
	uint64_t                   prints[AHEAD];
	uint32_t                   i;

	for (i = 0; i < count + AHEAD; i++) {
		const uint32_t at = i - AHEAD;

		if (i >= AHEAD && entries[at].pages > 0)
			adopt(r, segment, at, &entries[at], prints[at % AHEAD]);
		if (i < count) {
			prints[i % AHEAD] = key_print(s->hash, &entries[i].key);
			catalog_prefetch(&s->catalog, prints[i % AHEAD]);
		}
	}
}

static void forget_gone(struct recovery *r)
{
	struct catalog *const catalog = &r->s->catalog;
	uint32_t            number;

	for (number = 0; number < catalog->known; number++) {
		if (catalog->entries[number].state == ENTRY_GONE)
			catalog_drop(catalog, number);
	}
}

/* --- a segment -------------------------------------------------------------------------------- */

/* A crash tore it: it is written anew, over the torn copy. */
static void mend_tally(struct recovery *r, uint32_t number, uint32_t copy)
{
	struct segment *const segment = &r->s->space.segments[number];

	r->s->counts.damaged++;
	if (r->s->set.read_only)
		return;
	/* Where there is no other, turns may begin with this one. */
	segment->tally_update += (segment->tally_update + 1) % STRATA_TALLIES != copy;
	(void)tally_write(r->s, number);
}

/* One copy that cannot be read must not hide the other; without its tally the dead would come back. */
static int read_tallies(struct recovery *r, const struct place *place)
{
	struct segment *const segment = &r->s->space.segments[place->segment];
	bool                  any = false, torn[STRATA_TALLIES] = { false };
	uint32_t              i;

	for (i = 0; i < STRATA_TALLIES; i++) {
		struct tally *const tally = &r->tally[i];
		const int           rc = read_or_zero(r->s, tally, sizeof(*tally),
						      segment_offset(r->s, place->segment) +
							      page_offset(STRATA_TALLY_PAGE + i));

		if (rc < 0 && rc != -EIO)
			return rc;
		r->s->counts.damaged += rc < 0;
		torn[i] = rc == 0 && tally_state(tally) == STRUCTURE_DAMAGED;
		/* The next one goes where the older one is, which its number says. */
		if (rc < 0 || !tally_judge(tally, r->s->hash, place->segment, place->sequence) ||
		    tally->update % STRATA_TALLIES != i ||
		    (any && !update_is_newer(tally->update, segment->tally_update)))
			continue;
		any = true;
		segment->tally_update = tally->update;
		memcpy(segment->dead, tally->dead,
		       bits_words(r->s->geometry.records_max) * sizeof(tally->dead[0]));
	}
	for (i = 0; i < STRATA_TALLIES; i++) {
		if (torn[i])
			mend_tally(r, place->segment, i);
	}
	return 0;
}

static uint32_t end_of(const struct summary_entry *entries, uint32_t count)
{
	uint32_t end = STRATA_RECORD_PAGE, i;

	for (i = 0; i < count; i++) {
		const uint32_t own = entries[i].page + entries[i].pages;

		if (entries[i].pages > 0 && own > end)
			end = own;
	}
	return end;
}

/* Its summary, so that no later open has to read it whole again. */
static void seal(struct recovery *r, const struct place *place, uint32_t count)
{
	struct strata *const s = r->s;

	if (s->set.read_only) {
		/* Another process may have begun with more of them than there are drafts. */
		if (count > 0)
			(void)space_keep_unsealed(&s->space, place->segment, r->scan.entries, count);
		return;
	}
	/* Records that the device may still lose are not vouched for. */
	if (promise_sync(s, 0) < 0)
		return;
	(void)summary_write(s, place->segment, place->sequence, count, r->scan.entries);
	count_written(s, page_offset(summary_pages(count)));
}

/* Where there is no summary, or none that can be read, the records themselves still say what they are. */
static int find_records(struct recovery *r, const struct place *place, bool *ret_sealed,
			const struct summary_entry **ret_entries, uint32_t *ret_count)
{
	int rc = summary_read(r->s, place->segment, place->sequence, r->buffer, ret_count);

	r->s->counts.damaged += rc == KVS_E_PROTO;
	*ret_sealed = rc == 0;
	*ret_entries = (const struct summary_entry *)r->buffer;
	if (rc == 0)
		return 0;
	r->s->counts.unsealed++;
	rc = scan_segment(&r->scan, place->segment, place->sequence);
	*ret_entries = r->scan.entries;
	*ret_count = r->scan.count;
	return rc;
}

static int recover_segment(struct recovery *r, const struct place *place)
{
	struct segment *const       segment = &r->s->space.segments[place->segment];
	const struct summary_entry *entries;
	bool                        sealed;
	int                         rc;

	space_recovered(&r->s->space, place->segment, place->sequence);
	rc = read_tallies(r, place);
	if (rc == 0)
		rc = find_records(r, place, &sealed, &entries, &segment->record_count);
	if (rc < 0)
		return rc;
	adopt_all(r, place->segment, entries, segment->record_count);
	segment->next_page = end_of(entries, segment->record_count);
	/* A crash may have come before its writes were told of: rather twice than never. */
	if (!sealed && r->s->set.write_budget_bytes > 0)
		count_written(r->s, page_offset(segment->next_page));
	if (!sealed)
		seal(r, place, segment->record_count);
	return 0;
}

/* --- the whole -------------------------------------------------------------------------------- */

static int by_sequence(const void *a, const void *b)
{
	const struct place *left = a, *right = b;

	return (left->sequence > right->sequence) - (left->sequence < right->sequence);
}

/* A segment without a head is free; one that was torn would be found damaged for ever. */
static void erase_head(struct recovery *r, uint32_t segment)
{
	if (r->s->set.read_only)
		return;
	memset(r->buffer, 0, STRATA_PAGE);
	(void)os_file_write(r->s->fd, r->buffer, STRATA_PAGE, segment_offset(r->s, segment));
	count_written(r->s, STRATA_PAGE);
}

static int find_segments(struct recovery *r)
{
	struct strata *const s = r->s;
	uint32_t             segment, seen = 0;

	for (segment = 0; segment < s->geometry.segment_count; segment++) {
		struct place      place = { .segment = segment };
		enum head_verdict verdict = HEAD_DAMAGED;
		int               rc;

		/* A file ends behind the last segment that was used; it may have room for a million. */
		if (segment_offset(r->s, segment) >= r->file_bytes)
			break;
		rc = read_or_zero(r->s, r->buffer, STRATA_PAGE, segment_offset(r->s, segment));
		/* A head that cannot be read is no head. */
		if (rc < 0 && rc != -EIO)
			return rc;
		if (rc == 0) {
			verdict = head_judge((const struct segment_head *)r->buffer, s->hash,
					     segment, &place.sequence);
		}
		if (verdict == HEAD_VALID)
			r->places[r->place_count++] = place;
		else if (verdict == HEAD_NONE && head_state(r->buffer) == STRUCTURE_DAMAGED)
			verdict = HEAD_DAMAGED;
		seen += verdict != HEAD_NONE;
		s->counts.damaged += verdict == HEAD_DAMAGED;
		if (verdict == HEAD_DAMAGED && rc == 0)
			erase_head(r, segment);
	}
	/* What was wiped whole, or cut off with the end of the file, looks free. */
	s->counts.missing = seen < s->heads ? s->heads - seen : 0;
	qsort(r->places, r->place_count, sizeof(*r->places), by_sequence);
	return 0;
}

static void recovery_close(struct recovery *r)
{
	free(r->places);
	free(r->buffer);
	free(r->sequences);
	free(r->tally);
	scan_close(&r->scan);
}

static int recovery_open(struct recovery *r, struct strata *s)
{
	const struct geometry *const geometry = &s->geometry;
	const uint64_t summary = page_offset(summary_pages(geometry->records_max));

	*r = (struct recovery){ .s = s };
	r->places = malloc(geometry->segment_count * sizeof(*r->places));
	r->buffer = aligned_alloc(STRATA_PAGE, summary);
	r->sequences = malloc(s->catalog.entry_max * sizeof(*r->sequences));
	r->tally = aligned_alloc(STRATA_PAGE, STRATA_TALLIES * sizeof(*r->tally));
	if (!r->places || !r->buffer || !r->sequences || !r->tally)
		return -ENOMEM;
	return scan_open(&r->scan, s);
}

/* The numbers of this open lie above all that an earlier one can have used. */
static void begin_epoch(struct recovery *r)
{
	const uint64_t first = r->s->superblock->epoch << STRATA_EPOCH_SHIFT;

	r->s->space.next_sequence = first > r->highest ? first : r->highest + 1;
}

int recover(struct strata *s, struct kvs_error *err)
{
	struct recovery r;
	uint32_t        i;
	int             rc = recovery_open(&r, s);

	if (rc == 0)
		rc = os_file_size(s->fd, &r.file_bytes);
	if (rc == 0)
		rc = find_segments(&r);
	for (i = 0; rc == 0 && i < r.place_count; i++) {
		if (r.places[i].sequence > r.highest)
			r.highest = r.places[i].sequence;
		rc = recover_segment(&r, &r.places[i]);
	}
	if (rc == 0) {
		forget_gone(&r);
		begin_epoch(&r);
	}
	s->counts.torn += r.scan.counts.torn;
	s->counts.stale += r.scan.counts.stale;
	s->counts.foreign += r.scan.counts.foreign;
	s->counts.damaged += r.scan.counts.damaged;
	recovery_close(&r);
	if (rc < 0)
		return err_set(err, rc, "cannot be read: %s", kvs_strerror(rc));
	return 0;
}
