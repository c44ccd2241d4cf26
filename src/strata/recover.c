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
#include "strata/core.h"

/* What a scan reads at a time. */
#define SCAN_BYTES (UINT64_C(1) << 20)

struct place {
	uint64_t sequence;
	uint32_t segment;
};

struct recovery {
	struct strata        *s;
	struct place         *places; /* of segments with a valid head, by sequence */
	uint32_t              place_count;
	uint8_t              *buffer; /* a summary, or a piece of a scan */
	uint8_t              *payload; /* the largest that a segment can hold: only to scan */
	uint64_t             *claimed; /* pages of the scanned segment that a record has, a bit each */
	uint64_t             *sequences; /* of the entries' records: only while recovering */
	struct summary_entry *entries; /* what a scan found, by ordinal */
	struct tally         *tally;
	uint64_t              file_bytes;
	uint64_t              highest; /* sequence */
	uint32_t              gone_count; /* entries that are GONE */
	uint32_t              gone_at;    /* where to look for the next of them */
};

static uint64_t segment_offset(const struct recovery *r, uint32_t segment)
{
	return page_offset(segment_page(&r->s->geometry, segment));
}

/*
 * What was never written reads as nothing.  Where a file grows with its writes, because the file system
 * cannot allocate, it ends in the midst of a segment: what lies before its end counts.
 */
static int read_or_zero(const struct recovery *r, void *buffer, uint64_t bytes, uint64_t offset)
{
	int rc = os_file_read(r->s->fd, buffer, bytes, offset);

	if (rc == -ENODATA) {
		memset(buffer, 0, bytes);
		rc = os_file_read(r->s->fd, buffer, bytes, offset);
	}
	return rc == -ENODATA ? 0 : rc;
}

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

/* --- an unsealed segment ---------------------------------------------------------------------- */

static void count_header(struct recovery *r, enum header_verdict verdict)
{
	r->s->counts.torn += verdict == HEADER_DAMAGED;
	r->s->counts.stale += verdict == HEADER_STALE;
	r->s->counts.foreign += verdict == HEADER_FOREIGN;
}

/* Whether the payload that a header speaks of is there, too. */
static int check_payload(struct recovery *r, const struct record *record, bool *ret_whole)
{
	const uint64_t bytes = page_offset(record->pages);
	const int      rc = read_or_zero(r, r->payload, bytes, payload_offset(r->s, record));

	*ret_whole = rc == 0 &&
		     payload_checksum(&record->key, r->payload, bytes) == record->checksum;
#ifdef KVS_MUTANT_TRUST_SCAN /* Planted bug: a header stands for its payload. */
	*ret_whole = rc == 0;
#endif
	/* A page that cannot be read costs its record. */
	return rc == -EIO ? 0 : rc;
}

/* No two share a page or an ordinal; else each of many headers could have the whole segment read. */
static bool claim(struct recovery *r, const struct record *record)
{
	const uint32_t end = record->page + record->pages;
	uint32_t       page;

	if (r->entries[record->ordinal].pages > 0 ||
	    bits_next_set(r->claimed, record->page, end) < end)
		return false;
	for (page = record->page; page < end; page++)
		bits_set(r->claimed, page);
	return true;
}

static int see_record(struct recovery *r, const struct record *record, uint32_t *count)
{
	bool whole;
	int  rc = check_payload(r, record, &whole);

	if (rc < 0)
		return rc;
	if (!whole) {
		r->s->counts.torn++;
		return 0;
	}
	r->entries[record->ordinal] = (struct summary_entry){ .key = record->key,
							      .page = record->page,
							      .pages = record->pages,
							      .payload_checksum = record->checksum,
							      .sequence = record->sequence };
	if (record->ordinal >= *count)
		*count = record->ordinal + 1;
	return 0;
}

static int see_page(struct recovery *r, const struct place *place, uint32_t page,
		    const struct header *header, uint32_t *count)
{
	const enum header_verdict verdict =
		header_judge(header, r->s->hash, place->sequence, place->segment, page);
	uint32_t i;
	int      rc = 0;

	count_header(r, verdict);
	if (verdict != HEADER_VALID)
		return 0;
	for (i = 0; rc == 0 && i < header->count; i++) {
		struct record record;

		if (header_record(header, i, &r->s->geometry, &record) && claim(r, &record))
			rc = see_record(r, &record, count);
		else
			r->s->counts.damaged++;
	}
	return rc;
}

static int scan(struct recovery *r, const struct place *place, uint32_t *ret_count)
{
	const uint32_t piece = SCAN_BYTES / STRATA_PAGE;
	const uint32_t end = r->s->geometry.segment_pages;
	uint32_t       first, i;
	int            rc = 0;

	*ret_count = 0;
	memset(r->claimed, 0, bits_words(end) * sizeof(*r->claimed));
	memset(r->entries, 0, r->s->geometry.records_max * sizeof(*r->entries));
	for (first = STRATA_RECORD_PAGE; rc == 0 && first < end; first += piece) {
		const uint32_t pages = end - first < piece ? end - first : piece;

		rc = read_or_zero(r, r->buffer, page_offset(pages),
				  segment_offset(r, place->segment) + page_offset(first));
		/* The rest may still be there. */
		if (rc == -EIO) {
			r->s->counts.damaged++;
			rc = 0;
			continue;
		}
		for (i = 0; rc == 0 && i < pages; i++) {
			rc = see_page(r, place, first + i,
				      (const struct header *)(r->buffer + page_offset(i)),
				      ret_count);
		}
	}
	return rc;
}

/* --- a segment -------------------------------------------------------------------------------- */

/* The entries of a sealed segment, in the buffer. */
static bool read_summary(struct recovery *r, const struct place *place, uint32_t *ret_count)
{
	const uint64_t end = segment_offset(r, place->segment) + r->s->geometry.segment_bytes;
	uint64_t       bytes;
	uint32_t       count;

	if (read_or_zero(r, r->buffer, STRATA_PAGE, end - STRATA_PAGE) < 0)
		return false;
	r->s->counts.damaged += foot_state(r->buffer) == STRUCTURE_DAMAGED;
	if (!foot_judge(r->buffer, r->s->hash, &r->s->geometry, place->segment, place->sequence,
			&count))
		return false;
	bytes = page_offset(summary_pages(count));
	if (bytes > STRATA_PAGE && read_or_zero(r, r->buffer, bytes, end - bytes) < 0)
		return false;
	if (!summary_judge(r->buffer, count, &r->s->geometry)) {
		r->s->counts.damaged++;
		return false;
	}
	*ret_count = count;
	return true;
}

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
		const int           rc = read_or_zero(r, tally, sizeof(*tally),
						      segment_offset(r, place->segment) +
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
	const uint64_t       bytes = page_offset(summary_pages(count));

	if (s->set.read_only) {
		/* Another process may have begun with more of them than there are drafts. */
		if (count > 0)
			(void)space_keep_unsealed(&s->space, place->segment, r->entries, count);
		return;
	}
	/* Records that the device may still lose are not vouched for. */
	if (promise_sync(s) < 0)
		return;
	summary_seal(s->hash, place->segment, place->sequence, count, r->entries);
	(void)os_file_write(s->fd, r->entries, bytes,
			    segment_offset(r, place->segment) + s->geometry.segment_bytes - bytes);
	count_written(s, bytes);
}

static int recover_segment(struct recovery *r, const struct place *place)
{
	struct segment *const       segment = &r->s->space.segments[place->segment];
	const struct summary_entry *entries = (const struct summary_entry *)r->buffer;
	const bool                  sealed = read_summary(r, place, &segment->record_count);
	int                         rc;

	space_recovered(&r->s->space, place->segment, place->sequence);
	rc = read_tallies(r, place);
	if (rc < 0)
		return rc;
	if (!sealed) {
		r->s->counts.unsealed++;
		entries = r->entries;
		rc = scan(r, place, &segment->record_count);
		if (rc < 0)
			return rc;
	}
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
	(void)os_file_write(r->s->fd, r->buffer, STRATA_PAGE, segment_offset(r, segment));
	count_written(r->s, STRATA_PAGE);
}

static int find_segments(struct recovery *r)
{
	struct strata *const s = r->s;
	uint32_t             segment;

	for (segment = 0; segment < s->geometry.segment_count; segment++) {
		struct place      place = { .segment = segment };
		enum head_verdict verdict = HEAD_DAMAGED;
		int               rc;

		/* A file ends behind the last segment that was used; it may have room for a million. */
		if (segment_offset(r, segment) >= r->file_bytes)
			break;
		rc = read_or_zero(r, r->buffer, STRATA_PAGE, segment_offset(r, segment));
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
		s->counts.damaged += verdict == HEAD_DAMAGED;
		if (verdict == HEAD_DAMAGED && rc == 0)
			erase_head(r, segment);
	}
	qsort(r->places, r->place_count, sizeof(*r->places), by_sequence);
	return 0;
}

static void recovery_close(struct recovery *r)
{
	free(r->places);
	free(r->buffer);
	free(r->payload);
	free(r->sequences);
	free(r->entries);
	free(r->tally);
	free(r->claimed);
}

static int recovery_open(struct recovery *r, struct strata *s)
{
	const struct geometry *const geometry = &s->geometry;
	const uint64_t summary = page_offset(summary_pages(geometry->records_max));

	*r = (struct recovery){ .s = s };
	r->places = malloc(geometry->segment_count * sizeof(*r->places));
	r->buffer = aligned_alloc(STRATA_PAGE, summary > SCAN_BYTES ? summary : SCAN_BYTES);
	r->payload = aligned_alloc(STRATA_PAGE, geometry->segment_bytes);
	r->sequences = malloc(s->catalog.entry_max * sizeof(*r->sequences));
	r->entries = aligned_alloc(STRATA_PAGE, summary);
	r->tally = aligned_alloc(STRATA_PAGE, STRATA_TALLIES * sizeof(*r->tally));
	r->claimed = malloc(bits_words(geometry->segment_pages) * sizeof(*r->claimed));
	return r->places && r->buffer && r->payload && r->sequences && r->entries && r->tally && r->claimed
		       ? 0
		       : -ENOMEM;
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
	recovery_close(&r);
	if (rc < 0)
		return err_set(err, rc, "cannot be read: %s", kvs_strerror(rc));
	return 0;
}
