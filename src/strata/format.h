/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies on disk: docs/design/strata-format.md in structs, and how to make and judge them.
 *
 * Pure: no I/O.  What is judged here was written by anybody: it is checked, never asserted, and
 * nothing of it is believed before its checksum and the place it was made for agree.
 */
#ifndef STRATA_FORMAT_H
#define STRATA_FORMAT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kvstrata/base.h>

#include "base/err.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	      "the structs are the file only where integers are little-endian");

#define STRATA_VERSION 2u
#define STRATA_PAGE 4096u

/* Where things lie: in the file, and in a segment. */
#define STRATA_SUPERBLOCKS 2u
#define STRATA_HEAD_PAGE 0u
#define STRATA_TALLY_PAGE 1u
#define STRATA_TALLIES 2u
#define STRATA_RECORD_PAGE 3u

/* Sequence numbers of one open for writing: more than it can use in a year at a million a second. */
#define STRATA_EPOCH_SHIFT 40

/* The numbers of one more epoch lie above, so that the next number can always be given out. */
#define STRATA_EPOCH_MAX ((UINT64_C(1) << (64 - STRATA_EPOCH_SHIFT)) - 2)

struct superblock {
	uint8_t  magic[8];
	uint32_t version;
	uint32_t page_bytes;
	uint8_t  id[16];
	uint64_t capacity_bytes;
	uint64_t segment_bytes;
	uint32_t segment_count;
	uint32_t day;           /* since 1970, UTC: of day_bytes */
	uint64_t epoch;         /* opens for writing so far */
	uint64_t update;        /* of two copies the newer one counts */
	uint64_t put_bytes;     /* payload of puts, ever */
	uint64_t written_bytes; /* all that was written, ever */
	uint64_t day_bytes;     /* and on that day */
	uint64_t closed_epoch;  /* the last that ended with a close; heads is of then */
	uint32_t heads;         /* segments with a head */
	uint32_t zero_too;
	uint8_t  zero[STRATA_PAGE - 120];
	uint64_t checksum;
};
static_assert(sizeof(struct superblock) == STRATA_PAGE, "the superblock is one page");
static_assert(offsetof(struct superblock, version) == 8, "every version has its number here");
static_assert(offsetof(struct superblock, epoch) == 56, "no padding");
static_assert(offsetof(struct superblock, heads) == 104, "no padding");
static_assert(offsetof(struct superblock, checksum) == STRATA_PAGE - 8, "the last word");

struct segment_head {
	uint8_t  magic[8];
	uint32_t version;
	uint32_t segment;
	uint64_t store; /* the id, hashed */
	uint64_t sequence;
	uint8_t  zero[STRATA_PAGE - 40];
	uint64_t checksum;
};
static_assert(sizeof(struct segment_head) == STRATA_PAGE, "a head is one page");
static_assert(offsetof(struct segment_head, checksum) == STRATA_PAGE - 8, "the last word");

#define TALLY_WORDS ((STRATA_PAGE - 64) / 8)

struct tally {
	uint8_t  magic[8];
	uint32_t version;
	uint32_t segment;
	uint64_t store;
	uint64_t sequence; /* of the segment */
	uint64_t update;   /* of two copies the newer one counts */
	uint64_t zero[2];
	uint64_t dead[TALLY_WORDS]; /* a bit an ordinal */
	uint64_t checksum;
};
static_assert(sizeof(struct tally) == STRATA_PAGE, "a tally is one page");
static_assert(offsetof(struct tally, dead) == 56, "no padding");

/* As many as a tally has bits for. */
#define STRATA_RECORDS_MAX (TALLY_WORDS * 64)

struct summary_entry {
	struct kvs_key key;
	uint32_t       page;  /* of the segment */
	uint32_t       pages; /* of payload; 0: a write that failed */
	uint64_t       payload_checksum;
	uint64_t       sequence;
};
static_assert(sizeof(struct kvs_key) == 56, "a key has no padding");
static_assert(sizeof(struct summary_entry) == 80, "no padding");
static_assert(offsetof(struct summary_entry, payload_checksum) == 64, "no padding");

/* What was written together has one page of headers, which lies before its payloads. */
struct header_entry {
	struct summary_entry record;
	uint32_t             ordinal; /* in its segment */
	uint32_t             zero;
};
static_assert(sizeof(struct header_entry) == 88, "no padding");

#define HEADER_RECORDS 45u

struct header {
	uint8_t             magic[8];
	uint32_t            version;
	uint32_t            segment;
	uint64_t            store;
	uint64_t            sequence; /* of the segment */
	uint32_t            page;     /* its own, of the segment */
	uint32_t            count;
	struct header_entry entries[HEADER_RECORDS];
	uint64_t            zero[11];
	uint64_t            checksum;
};
static_assert(sizeof(struct header) == STRATA_PAGE, "headers are one page");
static_assert(offsetof(struct header, entries) == 40, "no padding");
static_assert(offsetof(struct header, checksum) == STRATA_PAGE - 8, "the last word");

/* The last bytes of a sealed segment; its entries begin at the first page of the summary. */
struct summary_foot {
	uint8_t  magic[8];
	uint32_t version;
	uint32_t segment;
	uint64_t store;
	uint64_t sequence; /* of the segment */
	uint32_t count;    /* entries */
	uint32_t zero;
	uint64_t entries_checksum;
	uint64_t zeroes;
	uint64_t checksum;
};
static_assert(sizeof(struct summary_foot) == 64, "a foot lies in one sector");
static_assert(offsetof(struct summary_foot, checksum) == 56, "the last word");

/* --- geometry --------------------------------------------------------------------------------- */

struct geometry {
	uint64_t capacity_bytes;
	uint64_t segment_bytes;
	uint32_t segment_count;
	uint32_t segment_pages;
	uint32_t records_max; /* of a segment, when all are as small as can be */
};

/* Segments that a store needs to work: two that are written, one to clean into, one to clean. */
#define STRATA_SEGMENTS_MIN 4u

/* Page numbers are 32 bits wide. */
#define STRATA_CAPACITY_MAX (UINT64_C(1) << 44)

/* 16 MiB each in the largest file: each costs memory, and a read at open. */
#define STRATA_SEGMENTS_MAX (UINT32_C(1) << 20)

/* Pages of a summary of count entries. */
static inline uint32_t summary_pages(uint32_t count)
{
	return (uint32_t)((count * sizeof(struct summary_entry) + sizeof(struct summary_foot) +
			   STRATA_PAGE - 1) /
			  STRATA_PAGE);
}

/* The first page of a segment in the file. */
static inline uint32_t segment_page(const struct geometry *geometry, uint32_t segment)
{
	return STRATA_SUPERBLOCKS + segment * geometry->segment_pages;
}

static inline uint64_t page_offset(uint32_t page)
{
	return (uint64_t)page * STRATA_PAGE;
}

/**
 * Work out segments: segment_bytes 0 chooses a size that suits block_bytes, the largest payload.
 *
 * Errors  KVS_E_INVALID with a sentence about store.capacity or store.segment.
 */
int geometry_make(uint64_t capacity_bytes, uint64_t segment_bytes, uint64_t block_bytes,
		  struct geometry *ret_geometry, struct kvs_error *err);

/* Bytes of the file when every segment is in use; at most the capacity. */
uint64_t geometry_file_bytes(const struct geometry *geometry);

/* --- making ----------------------------------------------------------------------------------- */

/* What everything in a store repeats of its id. */
uint64_t store_hash(const uint8_t id[16]);

/* Of a key, in the catalog: nobody who does not know the id can make two keys meet. */
uint64_t key_print(uint64_t store, const struct kvs_key *key);

uint64_t payload_checksum(const struct kvs_key *key, const void *payload, uint64_t bytes);

/* The rest of the struct is the caller's; magic, version and checksum are put in. */
void superblock_seal(struct superblock *superblock);
void tally_seal(struct tally *tally);

void head_make(uint64_t store, uint32_t segment, uint64_t sequence, struct segment_head *ret_head);

/* Where a record lies and what of it the disk repeats. */
struct record {
	struct kvs_key key;
	uint64_t       sequence;
	uint64_t       checksum; /* of the payload */
	uint32_t       segment;
	uint32_t       page;     /* of the segment */
	uint32_t       pages;    /* of payload */
	uint32_t       ordinal;
};

/* What headers, drafts and summaries say of a record. */
struct summary_entry record_entry(const struct record *record);

/* A page of headers begins empty, takes records one by one, and is sealed. */
void header_begin(uint64_t store, uint32_t segment, uint64_t segment_sequence, uint32_t page,
		  struct header *ret_header);
void header_add(struct header *header, const struct record *record);
void header_seal(struct header *header);

/* Complete a summary whose count entries are at its beginning: zero what is between, add the foot. */
void summary_seal(uint64_t store, uint32_t segment, uint64_t sequence, uint32_t count,
		  void *summary);

/* Of two copies written in turns; whatever numbers they have, the next one is newer than both. */
static inline bool update_is_newer(uint64_t update, uint64_t than)
{
	return update - than - 1 < UINT64_MAX / 2;
}

/* --- judging ---------------------------------------------------------------------------------- */

/* Whether it is whole, whosever it is.  One that lost only its magic is still seen to be damaged. */
enum structure_state { STRUCTURE_NONE, STRUCTURE_WHOLE, STRUCTURE_DAMAGED };

/* Each of a whole page. */
enum structure_state superblock_state(const void *page);
enum structure_state head_state(const void *page);
enum structure_state tally_state(const void *page);
enum structure_state header_state(const void *page);
enum structure_state foot_state(const void *last_page);

enum superblock_verdict { SUPERBLOCK_VALID, SUPERBLOCK_FOREIGN, SUPERBLOCK_VERSION, SUPERBLOCK_DAMAGED };

enum superblock_verdict superblock_judge(const struct superblock *superblock,
					 struct geometry *ret_geometry);

/* DAMAGED: it was a head once; of whose store nobody can tell. */
enum head_verdict { HEAD_NONE, HEAD_VALID, HEAD_DAMAGED };

enum head_verdict head_judge(const struct segment_head *head, uint64_t store, uint32_t segment,
			     uint64_t *ret_sequence);
bool tally_judge(const struct tally *tally, uint64_t store, uint32_t segment, uint64_t sequence);

enum header_verdict {
	HEADER_NONE,    /* no headers at all */
	HEADER_VALID,
	HEADER_STALE,   /* of an earlier sequence of the segment, or of another place */
	HEADER_FOREIGN, /* of another store, or another version */
	HEADER_DAMAGED
};

/* own_page: where it was found, in the segment. */
enum header_verdict header_judge(const struct header *header, uint64_t store,
				 uint64_t segment_sequence, uint32_t segment, uint32_t own_page);

/* Entry i of a VALID page of headers; false: it names a place that cannot be. */
bool header_record(const struct header *header, uint32_t i, const struct geometry *geometry,
		   struct record *ret_record);

/* The last page of a segment: how many entries its summary has.  False: it is not sealed. */
bool foot_judge(const void *last_page, uint64_t store, const struct geometry *geometry,
		uint32_t segment, uint64_t sequence, uint32_t *ret_count);

/*
 * The entries, once read, are those of the foot, and their records lie one behind the other, as they
 * were placed: none shares a page with another or with the summary.
 */
bool summary_judge(const void *summary, uint32_t count, const struct geometry *geometry);

#endif
