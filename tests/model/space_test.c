/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The segments of a strata file through random lives, against lists of records: what lies where, what
 * counts, who is told to seal, which segment is to be cleaned, and what becomes of its room.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "prop.h"
#include "strata/space.h"

#define SEGMENTS 7u
#define SEGMENT_PAGES 20u
#define BLOCK_PAGES 3u
#define RECORDS 64u

enum phase { NONE, WRITING, LIVE, DEAD };

struct written {
	enum phase    phase;
	struct record record;
	uint32_t      locks;
	uint32_t      readers; /* also of one that is dead */
	uint32_t      lead;    /* pages of headers before it */
};

struct world {
	struct space   space;
	struct written records[RECORDS];
	struct group   groups[STREAM_COUNT];
	uint64_t       last_sequence;
	bool           used[SEGMENTS]; /* they have space on the disk */
	bool           shrunk;
};

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));
	struct geometry     geometry;

	KVS_ASSERT(world);
	KVS_ASSERT(geometry_make((STRATA_SUPERBLOCKS + SEGMENTS * SEGMENT_PAGES) * STRATA_PAGE,
				 SEGMENT_PAGES * STRATA_PAGE, BLOCK_PAGES * STRATA_PAGE, &geometry,
				 NULL) == 0);
	KVS_ASSERT(space_open(&world->space, &geometry) == 0);
	world->space.next_sequence = 1;
	return world;
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	space_close(&world->space);
	free(world);
}

static const struct segment *segment_of(const struct world *world, uint32_t number)
{
	return &world->space.segments[number];
}

static struct written *slot_in(struct world *world, enum phase phase, uint32_t from)
{
	uint32_t i;

	for (i = 0; i < RECORDS; i++) {
		struct written *const written = &world->records[(from + i) % RECORDS];

		if (written->phase == phase)
			return written;
	}
	return NULL;
}

static bool overlaps(const struct written *a, const struct written *b)
{
	return a->record.segment == b->record.segment &&
	       a->record.page - a->lead < b->record.page + b->record.pages &&
	       b->record.page - b->lead < a->record.page + a->record.pages;
}

/* Nothing is sealed before its last write has ended, and then by one that is told so. */
static void seal(struct world *world, uint32_t number)
{
	uint32_t i;

	for (i = 0; i < RECORDS; i++) {
		KVS_ASSERT(world->records[i].phase != WRITING ||
			   world->records[i].record.segment != number);
	}
	KVS_ASSERT_CMP(segment_of(world, number)->state, ==, SEGMENT_SEALING);
	space_sealed(&world->space, number);
}

static void open_one(struct world *world, enum stream stream, bool fails)
{
	uint32_t old = SEGMENT_NONE;
	uint32_t unsealed = 0, free_count = 0, number, i;

	for (i = 0; i < SEGMENTS; i++) {
		const uint8_t state = segment_of(world, i)->state;

		unsealed += state >= SEGMENT_OPENING && state <= SEGMENT_SEALING;
		free_count += state == SEGMENT_FREE;
	}
	number = space_take(&world->space);
	KVS_ASSERT_CMP(number == SEGMENT_NONE, ==, unsealed == SPACE_DRAFTS || free_count == 0);
	if (number == SEGMENT_NONE)
		return;
	KVS_ASSERT_CMP(segment_of(world, number)->sequence, >, world->last_sequence);
	world->last_sequence = segment_of(world, number)->sequence;
	if (fails) {
		space_not_opened(&world->space, number);
		return;
	}
	old = space_shut(&world->space, stream);
	space_opened(&world->space, number, stream);
	world->used[number] = true;
	if (old != SEGMENT_NONE)
		seal(world, old);
}

/* A group that has a place goes on there or finds none; a new one finds one if there is room. */
static bool try_place(struct world *world, enum stream stream, struct record *record)
{
	struct group *const group = &world->groups[stream];
	const struct group  before = *group;
	const bool          room = space_has_room(&world->space, stream, record->pages);
	const bool          placed = space_place(&world->space, stream, group, record);

	if (before.count == 0)
		KVS_ASSERT_CMP(placed, ==, room);
	if (placed && before.count > 0) {
		KVS_ASSERT_CMP(group->count, ==, before.count + 1);
		KVS_ASSERT_CMP(group->segment, ==, before.segment);
		KVS_ASSERT_CMP(group->page, ==, before.page);
	}
	KVS_ASSERT_CMP(group->count, <=, HEADER_RECORDS);
	if (!placed)
		*group = (struct group){ 0 };
	return placed;
}

static void place(struct world *world, enum stream stream, uint32_t pages, uint32_t from)
{
	struct written *const written = slot_in(world, NONE, from);
	struct written        own = { .phase = WRITING, .record = { .pages = pages } };
	uint32_t              i;

	if (!written || !try_place(world, stream, &own.record))
		return;
	own.lead = world->groups[stream].count == 1;
	KVS_ASSERT_CMP(own.record.page - own.lead, >=, STRATA_RECORD_PAGE);
	if (own.lead)
		KVS_ASSERT_CMP(world->groups[stream].page, ==, own.record.page - 1);
	KVS_ASSERT_CMP(own.record.segment, ==, world->groups[stream].segment);
	KVS_ASSERT_CMP(own.record.sequence, >, world->last_sequence);
	world->last_sequence = own.record.sequence;
	/* Before the summary, and where nothing else lies that still matters. */
	KVS_ASSERT_CMP(own.record.page + pages +
			       summary_pages(segment_of(world, own.record.segment)->record_count),
		       <=, SEGMENT_PAGES);
	for (i = 0; i < RECORDS; i++) {
		const struct written *const other = &world->records[i];

		KVS_ASSERT(other->phase == NONE || (other->phase == DEAD && other->readers == 0) ||
			   !overlaps(other, &own));
	}
	*written = own;
}

static void end_write(struct world *world, uint32_t from, bool done)
{
	struct written *const      written = slot_in(world, WRITING, from);
	const struct summary_entry *entry;
	bool                       to_seal;

	if (!written)
		return;
	entry = &space_draft(&world->space, written->record.segment)[written->record.ordinal];
	KVS_ASSERT_CMP(entry->sequence, ==, written->record.sequence);
	if (done)
		space_count(&world->space, written->record.segment, written->record.pages);
	to_seal = space_written(&world->space, &written->record, done);
	KVS_ASSERT_CMP(entry->pages, ==, done ? written->record.pages : 0);
	written->phase = done ? LIVE : NONE;
	if (to_seal)
		seal(world, written->record.segment);
}

static void forget(struct world *world, struct written *written)
{
	const struct record *const record = &written->record;

	if (written->locks)
		space_unlock(&world->space, record->segment, record->pages);
	written->locks = 0;
	space_forget(&world->space, record->segment, record->pages, record->ordinal);
	KVS_ASSERT(bits_test(segment_of(world, record->segment)->dead, record->ordinal));
	KVS_ASSERT(segment_of(world, record->segment)->tally_dirty);
	written->phase = written->readers ? DEAD : NONE;
}

static void set_lock(struct world *world, struct written *written, bool on)
{
	if (written->phase != LIVE || written->locks == on)
		return;
	written->locks = on;
	if (on)
		space_lock(&world->space, written->record.segment, written->record.pages);
	else
		space_unlock(&world->space, written->record.segment, written->record.pages);
}

/* A whole segment, so that cleaning it would gain nothing. */
static void lock_segment(struct world *world, uint32_t segment)
{
	uint32_t i;

	for (i = 0; i < RECORDS; i++) {
		if (world->records[i].record.segment == segment)
			set_lock(world, &world->records[i], true);
	}
}

static void begin_read(struct world *world, uint32_t from)
{
	struct written *const written = slot_in(world, LIVE, from);

	if (!written)
		return;
	written->readers++;
	space_read_begin(&world->space, written->record.segment);
}

static void end_read(struct world *world, uint32_t from)
{
	uint32_t i;

	for (i = 0; i < RECORDS; i++) {
		struct written *const written = &world->records[(from + i) % RECORDS];

		if (written->readers == 0)
			continue;
		written->readers--;
		space_read_end(&world->space, written->record.segment);
		if (written->phase == DEAD && written->readers == 0)
			written->phase = NONE;
		return;
	}
}

/* --- who is cleaned --------------------------------------------------------------------------- */

static uint32_t pages_of(const struct world *world, uint32_t segment, bool locked_only)
{
	uint32_t pages = 0, i;

	for (i = 0; i < RECORDS; i++) {
		const struct written *const written = &world->records[i];

		if (written->phase == LIVE && written->record.segment == segment &&
		    (!locked_only || written->locks))
			pages += written->record.pages;
	}
	return pages;
}

/* Nothing in it counts, or little; else half of it may be lost; else the fewer are locked the better. */
static uint64_t class_of(const struct world *world, uint32_t segment)
{
	const uint32_t usable = SEGMENT_PAGES - STRATA_RECORD_PAGE - 2;
	const uint32_t locked = pages_of(world, segment, true);

	if (pages_of(world, segment, false) == 0)
		return 0;
	if (pages_of(world, segment, false) <= usable / 4)
		return 1;
	return locked <= usable / 2 ? 2 : 3 + locked;
}

static bool may_be_cleaned(const struct world *world, uint32_t segment, uint32_t pages)
{
	return segment_of(world, segment)->state == SEGMENT_SEALED &&
	       segment_of(world, segment)->readers == 0 &&
	       pages_of(world, segment, true) + pages <= SEGMENT_PAGES - STRATA_RECORD_PAGE - 2;
}

static uint32_t expected_victim(const struct world *world, uint32_t pages)
{
	uint32_t best = SEGMENT_NONE, i;

	for (i = 0; i < SEGMENTS; i++) {
		if (!may_be_cleaned(world, i, pages))
			continue;
		if (best == SEGMENT_NONE || class_of(world, i) < class_of(world, best) ||
		    (class_of(world, i) == class_of(world, best) &&
		     segment_of(world, i)->sequence < segment_of(world, best)->sequence))
			best = i;
	}
	return best;
}

static void clean(struct world *world, uint32_t pages, bool abandoned, bool is_read)
{
	const uint32_t victim = space_victim(&world->space, pages);
	uint32_t       i, readers = 0;

	KVS_ASSERT_CMP(victim, ==, expected_victim(world, pages));
	if (victim == SEGMENT_NONE)
		return;
	space_clean_begin(&world->space, victim);
	for (i = 0; i < RECORDS; i++) {
		struct written *const written = &world->records[i];

		if (written->phase != LIVE || written->record.segment != victim)
			continue;
		/* Some begin to read meanwhile: the segment waits for the last of them. */
		for (; is_read && readers < 2; readers++) {
			written->readers++;
			space_read_begin(&world->space, victim);
		}
		if (!abandoned)
			forget(world, written);
	}
	if (abandoned) {
		space_clean_abandon(&world->space, victim);
		KVS_ASSERT_CMP(segment_of(world, victim)->state, ==, SEGMENT_SEALED);
		return;
	}
	space_clean_end(&world->space, victim);
	KVS_ASSERT_CMP(segment_of(world, victim)->state, ==,
		       segment_of(world, victim)->readers ? SEGMENT_DRAINING : SEGMENT_FREE);
}

/* --- the whole -------------------------------------------------------------------------------- */

static void compare(const struct world *world)
{
	uint64_t live = 0;
	bool     moving = false;
	uint32_t i;

	space_audit(&world->space);
	for (i = 0; i < SEGMENTS; i++) {
		const struct segment *const segment = segment_of(world, i);

		KVS_ASSERT_CMP(segment->live_pages, ==, pages_of(world, i, false));
		KVS_ASSERT_CMP(segment->locked_pages, ==, pages_of(world, i, true));
		live += segment->live_pages;
		moving |= (segment->state >= SEGMENT_CLOSED && segment->state <= SEGMENT_SEALING) ||
			  segment->state == SEGMENT_DRAINING ||
			  (segment->state == SEGMENT_SEALED && segment->readers > 0);
		KVS_ASSERT(segment->state != SEGMENT_DRAINING || segment->readers > 0);
		KVS_ASSERT(segment->state != SEGMENT_ABSENT || (world->shrunk && !world->used[i]));
	}
	KVS_ASSERT_CMP(world->space.live_pages, ==, live);
	KVS_ASSERT_CMP(space_is_moving(&world->space), ==, moving);
}

enum {
	OPEN,
	OPEN_FAILS,
	PLACE,
	WRITTEN,
	WRITE_FAILS,
	SHUT,
	FORGET,
	LOCK,
	UNLOCK,
	LOCK_SEGMENT,
	READ,
	READ_END,
	CLEAN,
	ABANDON,
	SHRINK
};

static const struct prop_kind kinds[] = {
	[OPEN] = { "OPEN", 16 },
	[OPEN_FAILS] = { "OPEN_FAILS", 2 },
	[PLACE] = { "PLACE", 60 },
	[WRITTEN] = { "WRITTEN", 60 },
	[WRITE_FAILS] = { "WRITE_FAILS", 4 },
	[SHUT] = { "SHUT", 6 },
	[FORGET] = { "FORGET", 14 },
	[LOCK] = { "LOCK", 8 },
	[UNLOCK] = { "UNLOCK", 6 },
	[LOCK_SEGMENT] = { "LOCK_SEGMENT", 2 },
	[READ] = { "READ", 8 },
	[READ_END] = { "READ_END", 8 },
	[CLEAN] = { "CLEAN", 16 },
	[ABANDON] = { "ABANDON", 2 },
	[SHRINK] = { "SHRINK", 1 },
};

static void step_segments(struct world *world, const struct prop_op *op)
{
	const enum stream stream = op->arg[0] % 3 ? STREAM_PUTS : STREAM_MOVES;
	const uint32_t    pages = 1 + op->arg[1] % BLOCK_PAGES;
	uint32_t          number;

	switch (op->kind) {
	case OPEN:
	case OPEN_FAILS:
		open_one(world, stream, op->kind == OPEN_FAILS);
		break;
	case SHUT:
		number = space_shut(&world->space, stream);
		if (number != SEGMENT_NONE)
			seal(world, number);
		break;
	case CLEAN:
	case ABANDON:
		clean(world, pages, op->kind == ABANDON, op->arg[0] % 4 == 0);
		break;
	case SHRINK:
		/* Rarely: it is for good. */
		if (op->arg[0] % 8 == 0) {
			space_shrink(&world->space);
			world->shrunk = true;
		}
		break;
	default:
		break;
	}
}

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const   world = arg;
	const enum stream     stream = op->arg[0] % 3 ? STREAM_PUTS : STREAM_MOVES;
	struct written *const live = slot_in(world, LIVE, op->arg[0]);

	switch (op->kind) {
	case PLACE:
		place(world, stream, 1 + op->arg[1] % BLOCK_PAGES, op->arg[1]);
		break;
	case WRITTEN:
	case WRITE_FAILS:
		end_write(world, op->arg[0], op->kind == WRITTEN);
		break;
	case FORGET:
		if (live)
			forget(world, live);
		break;
	case LOCK:
	case UNLOCK:
		if (live)
			set_lock(world, live, op->kind == LOCK);
		break;
	case LOCK_SEGMENT:
		if (live)
			lock_segment(world, live->record.segment);
		break;
	case READ:
		begin_read(world, op->arg[0]);
		break;
	case READ_END:
		end_read(world, op->arg[0]);
		break;
	default:
		step_segments(world, op);
		break;
	}
	compare(world);
}

PROP_MAIN("space", segments_live_as_their_records_say, 150, 1200, world_close)
