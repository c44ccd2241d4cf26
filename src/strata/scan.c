/* SPDX-License-Identifier: Apache-2.0 */
/* See scan.h. */
#include "strata/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

/* What is read at a time. */
#define PIECE_BYTES (UINT64_C(1) << 20)

int read_or_zero(const struct strata *s, void *buffer, uint64_t bytes, uint64_t offset)
{
	int rc = os_file_read(s->fd, buffer, bytes, offset);

	if (rc == -ENODATA) {
		memset(buffer, 0, bytes);
		rc = os_file_read(s->fd, buffer, bytes, offset);
	}
	return rc == -ENODATA ? 0 : rc;
}

int scan_open(struct scan *scan, const struct strata *s)
{
	const struct geometry *const geometry = &s->geometry;

	*scan = (struct scan){ .s = s };
	scan->entries =
		aligned_alloc(STRATA_PAGE, page_offset(summary_pages(geometry->records_max)));
	scan->piece = aligned_alloc(STRATA_PAGE, PIECE_BYTES);
	scan->payload = aligned_alloc(STRATA_PAGE, geometry->segment_bytes);
	scan->claimed = malloc(bits_words(geometry->segment_pages) * sizeof(*scan->claimed));
	return scan->entries && scan->piece && scan->payload && scan->claimed ? 0 : -ENOMEM;
}

void scan_close(struct scan *scan)
{
	free(scan->entries);
	free(scan->piece);
	free(scan->payload);
	free(scan->claimed);
	*scan = (struct scan){ 0 };
}

static void count_headers(struct scan *scan, enum header_verdict verdict)
{
	scan->counts.torn += verdict == HEADER_DAMAGED;
	scan->counts.stale += verdict == HEADER_STALE;
	scan->counts.foreign += verdict == HEADER_FOREIGN;
}

/* Whether the payload that a header speaks of is there, too. */
static int check_payload(struct scan *scan, const struct record *record, bool *ret_whole)
{
	const uint64_t bytes = page_offset(record->pages);
	const int      rc =
		read_or_zero(scan->s, scan->payload, bytes, payload_offset(scan->s, record));

	*ret_whole = rc == 0 &&
		     payload_checksum(&record->key, scan->payload, bytes) == record->checksum;
#ifdef KVS_MUTANT_TRUST_SCAN /* Planted bug: a header stands for its payload. */
	*ret_whole = rc == 0;
#endif
	/* A page that cannot be read costs its record. */
	return rc == -EIO ? 0 : rc;
}

/* No two share a page or an ordinal; else each of many headers could have the whole segment read. */
static bool claim(struct scan *scan, const struct record *record)
{
	const uint32_t end = record->page + record->pages;
	uint32_t       page;

	if (scan->entries[record->ordinal].pages > 0 ||
	    bits_next_set(scan->claimed, record->page, end) < end)
		return false;
	for (page = record->page; page < end; page++)
		bits_set(scan->claimed, page);
	return true;
}

static int see_record(struct scan *scan, const struct record *record)
{
	bool whole;
	int  rc = check_payload(scan, record, &whole);

	if (rc < 0)
		return rc;
	if (!whole) {
		scan->counts.torn++;
		return 0;
	}
	scan->entries[record->ordinal] = record_entry(record);
	if (record->ordinal >= scan->count)
		scan->count = record->ordinal + 1;
	return 0;
}

static int see_page(struct scan *scan, uint32_t segment, uint64_t sequence, uint32_t page,
		    const struct header *header)
{
	const enum header_verdict verdict =
		header_judge(header, scan->s->hash, sequence, segment, page);
	uint32_t i;
	int      rc = 0;

	count_headers(scan, verdict);
	if (verdict != HEADER_VALID)
		return 0;
	for (i = 0; rc == 0 && i < header->count; i++) {
		struct record record;

		if (header_record(header, i, &scan->s->geometry, &record) && claim(scan, &record))
			rc = see_record(scan, &record);
		else
			scan->counts.damaged++;
	}
	return rc;
}

static int see_piece(struct scan *scan, uint32_t segment, uint64_t sequence, uint32_t first,
		     uint32_t pages)
{
	uint32_t i;
	int      rc = read_or_zero(scan->s, scan->piece, page_offset(pages),
				   segment_offset(scan->s, segment) + page_offset(first));

	/* The rest may still be there. */
	if (rc == -EIO) {
		scan->counts.damaged++;
		return 0;
	}
	for (i = 0; rc == 0 && i < pages; i++) {
		rc = see_page(scan, segment, sequence, first + i,
			      (const struct header *)(scan->piece + page_offset(i)));
	}
	return rc;
}

int scan_segment(struct scan *scan, uint32_t segment, uint64_t sequence)
{
	const uint32_t piece = PIECE_BYTES / STRATA_PAGE;
	const uint32_t end = scan->s->geometry.segment_pages;
	uint32_t       first;
	int            rc = 0;

	scan->count = 0;
	memset(scan->claimed, 0, bits_words(end) * sizeof(*scan->claimed));
	memset(scan->entries, 0, scan->s->geometry.records_max * sizeof(*scan->entries));
	for (first = STRATA_RECORD_PAGE; rc == 0 && first < end; first += piece) {
		rc = see_piece(scan, segment, sequence, first,
			       end - first < piece ? end - first : piece);
	}
	return rc;
}
