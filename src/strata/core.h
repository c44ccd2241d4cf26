/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store's own shape, for the files of this room.
 *
 * An object's way is cut into steps that do no I/O, with the I/O between them: get_begin, a read,
 * get_end; put_begin, put_place, a write, put_end.  batch.c does the I/O with pread and pwrite,
 * lanes (lane.h) with io_uring; everything else is the same for both.
 *
 * Locks, outermost first
 *
 *   roll     whoever opens or cleans a segment; held across I/O
 *   tallies  whoever writes tallies or a superblock; held across I/O
 *   lock     catalog, space and counters; a leaf, never held across I/O
 */
#ifndef STRATA_CORE_H
#define STRATA_CORE_H

#include "evict/ghost.h"
#include "os/os.h"
#include "strata/catalog.h"
#include "strata/space.h"
#include "strata/strata.h"

#define STRATA_LANES_MAX 64u
#define STRATA_SLICES_MAX 256u

struct lane;

/* What puts were refused for, and what was found. */
struct strata_counts {
	uint64_t evicted;
	uint64_t corrupt;
	uint64_t moved;             /* written again when their segment was cleaned */
	uint64_t refused_full;      /* all is locked or being written, or the disk has no room */
	uint64_t refused_budget;
	uint64_t refused_admission;
	uint64_t torn, stale, foreign, damaged; /* by recovery */
	uint64_t missing;           /* segments that had a head at the last close and have none */
	uint64_t unsealed;          /* segments that recovery read whole */
};

struct record_place {
	uint32_t segment;
	uint32_t ordinal;
};

struct strata {
	struct kvs_store       store;
	struct strata_settings set;
	struct geometry        geometry;
	int                    fd;
	bool                   direct;
	bool                   device;
	bool                   created; /* the file, by this open */
	uint32_t               heads;   /* segments that must have one, or fewer after a crash */
	uint64_t               hash; /* of the id */
	const char            *note; /* "" for none */

	struct os_mutex        roll;
	uint8_t               *scratch; /* roll: headers and payloads, for cleaning */
	uint8_t               *summary; /* roll: the largest summary */
	struct segment_head   *head;    /* roll; page-aligned */

	struct os_mutex        tallies;
	struct superblock     *superblock; /* tallies; page-aligned */
	struct tally          *page;       /* tallies; page-aligned */
	uint64_t               superblock_stamp; /* of its newest copy */
	bool                   superblock_lost;  /* that copy, perhaps */

	struct os_mutex        lock;
	struct os_cond         written; /* a segment was sealed, or may be cleaned now */
	struct catalog         catalog;
	struct space           space;
	struct ghost           seen;    /* admission: keys that were offered once */
	struct strata_counts   counts;
	uint64_t               get_count;
	uint64_t               put_bytes, written_bytes; /* ever */
	uint64_t               day_bytes;                /* on that day */
	uint32_t               day;
	struct record_place    moving[HEADER_RECORDS]; /* where cleaning writes entries that move */
	uint64_t               syncs_failed; /* see sync_failed() */
	uint64_t               stamp;        /* writes in place so far */
	uint64_t               stamp_synced; /* those up to it are durable */

	struct iovec           slices[STRATA_SLICES_MAX];
	uint32_t               slice_count;
	struct lane           *lanes[STRATA_LANES_MAX]; /* each its own thread's once it is there */
};

static inline struct strata *strata_of(struct kvs_store *store)
{
	return (struct strata *)store;
}

static inline uint64_t segment_offset(const struct strata *s, uint32_t segment)
{
	return page_offset(segment_page(&s->geometry, segment));
}

/* Of the file, where a group's page of headers lies. */
static inline uint64_t header_offset(const struct strata *s, const struct group *group)
{
	return page_offset(segment_page(&s->geometry, group->segment) + group->page);
}

/* What cleaning moves at a time: several small objects, or a large one. */
static inline uint64_t moves_bytes(const struct strata *s)
{
	const uint64_t several = UINT64_C(1) << 20;

	return s->set.block_bytes > several ? s->set.block_bytes : several;
}

static inline uint64_t payload_offset(const struct strata *s, const struct record *record)
{
	return page_offset(segment_page(&s->geometry, record->segment) + record->page);
}

/* Whether a span can be moved: its length, alignment and size. */
bool span_fits(const struct strata *s, const struct kvs_span *span);

/* --- object.c: one object's steps ------------------------------------------------------------- */

struct reading {
	struct kvs_key key;
	uint64_t       checksum;
	uint32_t       page; /* of the file */
	uint32_t       pages;
	bool           flip; /* a test asked for a wrong byte */
};

/* DONE: pages at page are to be read, and nobody reuses them before get_end(). */
enum kvs_result get_begin(struct strata *s, const struct kvs_key *key, uint64_t bytes,
			  struct reading *ret_reading);
/* rc is the read's. */
enum kvs_result get_end(struct strata *s, const struct reading *reading, void *payload, int rc);

struct writing {
	struct record record;
	uint64_t      syncs_failed; /* before it began */
	uint32_t      entry;
	bool          hashed;
};

/* DONE: the key is claimed, and put_end() or put_drop() must follow. */
enum kvs_result put_begin(struct strata *s, const struct kvs_key *key, uint64_t bytes,
			  struct writing *ret_writing);

#define PUT_NEW_GROUP 1

/*
 * Hash the payload and find it a place in the group, whose first record begins the page of headers.
 * 0: write it; PUT_NEW_GROUP: not in this one, which is to be ended, but perhaps in a new one; -EAGAIN:
 * no place just now, ask again when a write has ended; else the refusal, after which put_drop() is due.
 */
int put_place(struct strata *s, const void *payload, struct group *group, struct header *header,
	      struct writing *writing);
void            put_drop(struct strata *s, const struct writing *writing);
/* The write ended, and was synced where that is asked for; rc is its.  A sync that failed since counts. */
enum kvs_result put_end(struct strata *s, const struct writing *writing, int rc);

/* NO_SPACE for a full store, disk, quota or file-size limit; else FAILED, or DONE for 0. */
enum kvs_result write_result(int rc);

/* With the lock: a named entry's record ceases to count, and the entry goes. */
void entry_kill(struct strata *s, uint32_t entry);
/* The same for one that goes to make room: the policy may remember it. */
void entry_expel(struct strata *s, uint32_t entry);
/* With the lock: what was written, for budget and report. */
void count_written(struct strata *s, uint64_t bytes);

/* batch.c: a whole get, with pread.  The span fits. */
enum kvs_result get_now(struct strata *s, const struct kvs_key *key, const struct kvs_span *span);

/* --- roll.c: opening and sealing segments ----------------------------------------------------- */

/*
 * See to it that the stream's open segment takes a record of so many pages.  0: try it; -EAGAIN: not
 * before a write under way has ended; KVS_E_FULL: nothing can make room; -errno.
 */
int room_make(struct strata *s, enum stream stream, uint32_t pages);
/* With roll held. */
int room_make_rolling(struct strata *s, enum stream stream, uint32_t pages);

/* Write the summary of a segment that is the caller's to seal. */
void segment_seal(struct strata *s, uint32_t segment);

/* --- summary.c -------------------------------------------------------------------------------- */

/*
 * The entries of a segment that was sealed under this sequence, and how many; buffer has room for the
 * largest summary.  -ENOENT: there are none; KVS_E_PROTO: there were, and they are damaged; -errno.
 * The count is what the foot says, 0 without one.
 */
int summary_read(const struct strata *s, uint32_t segment, uint64_t sequence, void *buffer,
		 uint32_t *ret_count);
/* Entries that stand at the beginning of buffer. */
int summary_write(const struct strata *s, uint32_t segment, uint64_t sequence, uint32_t count,
		  void *buffer);

/* --- clean.c ---------------------------------------------------------------------------------- */

/* With roll held: empty one segment.  As room_make(). */
int segment_clean(struct strata *s, uint32_t pages);

/* --- tally.c: what is rewritten in place ------------------------------------------------------ */

/* Write the tally of each segment whose dead bits changed. */
int tallies_write(struct strata *s);
/* Write the tally of one, changed or not. */
int tally_write(struct strata *s, uint32_t segment);
/*
 * A failed sync may have lost anything that was written before it, and the kernel tells its one caller only:
 * the next one succeeds.  So each is counted, and a sync vouches for what was begun after the last failure;
 * and a copy that it may have taken is the one that is written next.
 */
void     sync_failed(struct strata *s);
uint64_t syncs_failed(struct strata *s);
/*
 * Sync what was begun when so many had failed, where the store promises anything beyond the end of the
 * process.
 */
int promise_sync(struct strata *s, uint64_t failed_before);
/*
 * Write one superblock copy, the older one; syncs first where the newer one may not be durable.  One that a
 * failed sync may have taken is written again.
 */
int superblock_write(struct strata *s);

/* --- recover.c -------------------------------------------------------------------------------- */

/* Fill catalog and space from the file; seals what was not, unless read-only. */
int recover(struct strata *s, struct kvs_error *err);

/* --- verify.c --------------------------------------------------------------------------------- */

struct verifying {
	struct strata *s;
	uint8_t       *buffer; /* a segment */
	strata_see    *see;
	void          *ctx;
	uint32_t       told;   /* findings so far */
};

/* What is no record.  False: see() wants no more. */
bool verify_superblocks(struct verifying *verifying);
bool verify_segment(struct verifying *verifying, uint32_t segment);
bool verify_headers(struct verifying *verifying, uint32_t segment, uint32_t page);

/* --- file.c ----------------------------------------------------------------------------------- */

/* Open, lock, format what is empty, read the superblock: geometry and all that hangs on it. */
int file_open(struct strata *s, struct kvs_error *err);
int file_format(struct strata *s, struct kvs_error *err); /* open, lock, overwrite */

/* --- lane.c ----------------------------------------------------------------------------------- */

void lane_close(struct lane *lane); /* NULL is fine */
bool lane_is_idle(const struct lane *lane);

#endif
