/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where things lie: the segments, who writes into them, what in them still counts.
 *
 * Life of a segment
 *
 *   FREE -> OPENING -> OPEN -> CLOSED -> SEALING -> SEALED -> CLEANING -> DRAINING -> FREE
 *
 * Records are placed in OPEN segments only, one for each stream: what callers put, and what cleaning
 * moves.  A CLOSED one waits for the last write into it, a DRAINING one for the last read.  Whoever
 * is told that a segment is his to seal, or to clean, is alone with it.
 *
 * Drafts     An unsealed segment's summary grows in memory, in one of a few buffers: no more segments
 *            than buffers are unsealed at once.
 * Counts     Pages that count are those of records that the catalog names.  The rest of a segment is
 *            dead, and comes back when it is cleaned.
 * Threads    None of its own: under the store's lock.  Pure: no I/O.
 */
#ifndef STRATA_SPACE_H
#define STRATA_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "strata/format.h"

enum segment_state {
	SEGMENT_FREE,
	SEGMENT_OPENING,
	SEGMENT_OPEN,
	SEGMENT_CLOSED,
	SEGMENT_SEALING,
	SEGMENT_SEALED,
	SEGMENT_CLEANING,
	SEGMENT_DRAINING,
	SEGMENT_ABSENT /* FREE, but the disk has no room for it: until the next open */
};

enum stream { STREAM_PUTS, STREAM_MOVES, STREAM_COUNT };

#define SPACE_DRAFTS 4u

#define SEGMENT_NONE UINT32_MAX

struct segment {
	uint64_t  sequence;
	uint64_t  tally_update; /* of the tally written last */
	uint64_t  tally_stamp;  /* when that was: under the store's lock for tallies */
	uint64_t  syncs_failed; /* before its first record */
	uint64_t *dead;         /* a bit an ordinal */
	uint32_t  live_pages;   /* of payload */
	uint32_t  live_count;
	uint32_t  locked_pages; /* of the live ones: they may not be lost */
	uint32_t  next_page;    /* where the next record, or page of headers, begins */
	uint32_t  record_count; /* ordinals given out */
	uint32_t  readers;      /* of payload in it */
	uint32_t  writers;
	uint8_t   state;
	uint8_t   draft;        /* while it is unsealed */
	bool      tally_dirty;  /* dead bits that are not on disk */
	bool      tally_lost;   /* its newest copy, perhaps: a sync failed; then it is dirty, too */
	bool      backed;       /* it has been given disk space, and a head */
};

struct space {
	struct geometry       geometry;
	struct segment       *segments;
	uint64_t             *dead_bits; /* of all segments */
	struct summary_entry *drafts[SPACE_DRAFTS]; /* page-aligned, with room for the foot */
	bool                  draft_busy[SPACE_DRAFTS];
	uint32_t              open[STREAM_COUNT]; /* SEGMENT_NONE: none */
	uint32_t              free_count;
	uint32_t              next_free; /* where to look for one first: the file is used in order */
	uint64_t              live_pages;
	bool                  any_dirty;  /* some segment's tally may be */
	uint64_t              next_sequence; /* of segments and of records */
};

int  space_open(struct space *space, const struct geometry *geometry); /* or -ENOMEM */
void space_close(struct space *space); /* zeroed is fine */

/* A draft's memory. */
static inline struct summary_entry *space_draft(const struct space *space, uint32_t segment)
{
	return space->drafts[space->segments[segment].draft];
}

static inline uint32_t space_segment_of(const struct space *space, uint32_t file_page)
{
	return (file_page - STRATA_SUPERBLOCKS) / space->geometry.segment_pages;
}

/* Pages that one record may take of an empty segment. */
uint32_t space_usable(const struct space *space);

/* Records that are written together: their page of headers lies before the first of them. */
struct group {
	uint32_t segment;
	uint32_t page;  /* of the headers, in the segment */
	uint32_t count; /* records; 0: it has no place yet */
};

/*
 * Place a record of so many pages of payload in the stream's open segment, with the group: segment,
 * page, ordinal and sequence are filled in, the draft has it, and the segment has one writer more.
 * False: no room, none is open, or the group is full or lies elsewhere: another group may find room.
 */
bool space_place(struct space *space, enum stream stream, struct group *group,
		 struct record *record);
/* Whether a new group's first would find room. */
bool space_has_room(const struct space *space, enum stream stream, uint32_t pages);

/*
 * A write ended; one that failed leaves a hole.  True: the segment is the caller's to seal.
 */
bool space_written(struct space *space, const struct record *record, bool done);

/* No more records into the stream's segment.  Its number when it is the caller's to seal. */
uint32_t space_shut(struct space *space, enum stream stream);

/* A FREE segment to OPENING, with a draft and a sequence of its own; SEGMENT_NONE. */
uint32_t space_take(struct space *space);
/* Its head is on disk: OPEN for a stream that has none; or it could not be written: FREE. */
void space_opened(struct space *space, uint32_t segment, enum stream stream);
void space_not_opened(struct space *space, uint32_t segment);
/* The disk is full: what has no space on it yet will not be asked for again. */
void space_shrink(struct space *space);

void space_sealed(struct space *space, uint32_t segment); /* SEALING to SEALED; the draft is free */

/* A record of a named entry begins, or ceases, to count; then its bit says so. */
void space_count(struct space *space, uint32_t segment, uint32_t pages);
void space_forget(struct space *space, uint32_t segment, uint32_t pages, uint32_t ordinal);
/* It ceases to count, and its bit is not to say so yet: the same bytes were written elsewhere. */
void space_leave(struct space *space, uint32_t segment, uint32_t pages);
/* A record that does not count is dead. */
void space_bury(struct space *space, uint32_t segment, uint32_t ordinal);

void space_read_begin(struct space *space, uint32_t segment);
void space_read_end(struct space *space, uint32_t segment);

/* Pages of a named record come under a lock, or from under it. */
void space_lock(struct space *space, uint32_t segment, uint32_t pages);
void space_unlock(struct space *space, uint32_t segment, uint32_t pages);

/*
 * The segment to clean next, for a record of so many pages: one in which little counts if there is
 * one, else the oldest of which half may be lost, else the one with the fewest locked pages, if
 * cleaning that gains anything.  SEALED, and nobody reads it.  SEGMENT_NONE.
 */
uint32_t space_victim(const struct space *space, uint32_t pages);
void     space_clean_begin(struct space *space, uint32_t segment);
/* Nothing in it counts any more.  FREE, or DRAINING while somebody reads. */
void space_clean_end(struct space *space, uint32_t segment);
/* It could not be cleaned: SEALED again. */
void space_clean_abandon(struct space *space, uint32_t segment);

/* Found on disk: FREE to SEALED. */
void space_recovered(struct space *space, uint32_t segment, uint64_t sequence);
/*
 * It has no summary on disk and will not be given one, because nobody may write: the entries stay in a
 * draft, SEALING for good.  False: all drafts are taken.
 */
bool space_keep_unsealed(struct space *space, uint32_t segment, const struct summary_entry *entries,
			 uint32_t count);

/* Whether its tallies are those of its present use, and may be written. */
static inline bool space_has_tally(const struct space *space, uint32_t segment)
{
	return space->segments[segment].state > SEGMENT_OPENING &&
	       space->segments[segment].state < SEGMENT_ABSENT;
}

/* Something is under way that may make a segment cleanable, or free a draft. */
bool space_is_moving(const struct space *space);

/* Segments with a head on disk, whatever it is worth. */
uint32_t space_heads(const struct space *space);

uint64_t space_bytes(const struct space *space);

void space_audit(const struct space *space);

#endif
