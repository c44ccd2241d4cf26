/* SPDX-License-Identifier: Apache-2.0 */
/* See space.h.  Every state of a segment changes here. */
#include "strata/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

static size_t draft_bytes(const struct geometry *geometry)
{
	return (size_t)summary_pages(geometry->records_max) * STRATA_PAGE;
}

int space_open(struct space *space, const struct geometry *geometry)
{
	const size_t words = bits_words(geometry->records_max);
	uint32_t     i;

	*space = (struct space){ .geometry = *geometry,
				 .open = { SEGMENT_NONE, SEGMENT_NONE },
				 .free_count = geometry->segment_count };
	space->segments = calloc(geometry->segment_count, sizeof(*space->segments));
	space->dead_bits = calloc(geometry->segment_count * words, sizeof(*space->dead_bits));
	if (!space->segments || !space->dead_bits)
		return -ENOMEM;
	for (i = 0; i < geometry->segment_count; i++)
		space->segments[i].dead = space->dead_bits + i * words;
	for (i = 0; i < SPACE_DRAFTS; i++) {
		space->drafts[i] = aligned_alloc(STRATA_PAGE, draft_bytes(geometry));
		if (!space->drafts[i])
			return -ENOMEM;
	}
	return 0;
}

void space_close(struct space *space)
{
	uint32_t i;

	for (i = 0; i < SPACE_DRAFTS; i++)
		free(space->drafts[i]);
	free(space->dead_bits);
	free(space->segments);
	*space = (struct space){ 0 };
}

uint32_t space_usable(const struct space *space)
{
	return space->geometry.segment_pages - STRATA_RECORD_PAGE - 2;
}

/* --- records ---------------------------------------------------------------------------------- */

static bool fits(const struct space *space, const struct segment *segment, uint32_t pages)
{
	const uint64_t end = (uint64_t)segment->next_page + pages +
			     summary_pages(segment->record_count + 1);

	return segment->record_count < space->geometry.records_max &&
	       end <= space->geometry.segment_pages;
}

bool space_has_room(const struct space *space, enum stream stream, uint32_t pages)
{
	const uint32_t number = space->open[stream];

	return number != SEGMENT_NONE && fits(space, &space->segments[number], 1 + pages);
}

/* The group goes on behind its last record, unless another one came between: that only costs a gap. */
static bool may_join(const struct space *space, const struct group *group, uint32_t number,
		     uint32_t pages)
{
	return group->count < HEADER_RECORDS && group->segment == number &&
	       fits(space, &space->segments[number], pages);
}

bool space_place(struct space *space, enum stream stream, struct group *group,
		 struct record *record)
{
	const uint32_t  number = space->open[stream];
	struct segment *segment;

	if (group->count == 0 ? !space_has_room(space, stream, record->pages)
			      : number == SEGMENT_NONE ||
					!may_join(space, group, number, record->pages))
		return false;
	segment = &space->segments[number];
	if (group->count++ == 0) {
		group->segment = number;
		group->page = segment->next_page++;
	}
	record->segment = number;
	record->page = segment->next_page;
	record->ordinal = segment->record_count++;
	record->sequence = space->next_sequence++;
	segment->next_page += record->pages;
	segment->writers++;
	space_draft(space, number)[record->ordinal] = record_entry(record);
	return true;
}

/* CLOSED, and nobody writes any more. */
static bool is_to_seal(struct segment *segment)
{
	if (segment->state != SEGMENT_CLOSED || segment->writers > 0)
		return false;
	segment->state = SEGMENT_SEALING;
	return true;
}

bool space_written(struct space *space, const struct record *record, bool done)
{
	struct segment *const segment = &space->segments[record->segment];

	KVS_ASSERT_CMP(segment->writers, >, 0);
	segment->writers--;
	/* What was called a failure may have reached the disk all the same, with its headers. */
	if (!done) {
		space_draft(space, record->segment)[record->ordinal] = (struct summary_entry){ 0 };
		space_bury(space, record->segment, record->ordinal);
	}
	return is_to_seal(segment);
}

uint32_t space_shut(struct space *space, enum stream stream)
{
	const uint32_t number = space->open[stream];

	if (number == SEGMENT_NONE)
		return SEGMENT_NONE;
	KVS_ASSERT_CMP(space->segments[number].state, ==, SEGMENT_OPEN);
	space->segments[number].state = SEGMENT_CLOSED;
	space->open[stream] = SEGMENT_NONE;
	return is_to_seal(&space->segments[number]) ? number : SEGMENT_NONE;
}

void space_count(struct space *space, uint32_t segment, uint32_t pages)
{
	space->segments[segment].live_pages += pages;
	space->segments[segment].live_count++;
	space->live_pages += pages;
}

void space_leave(struct space *space, uint32_t number, uint32_t pages)
{
	struct segment *const segment = &space->segments[number];

	KVS_ASSERT_CMP(segment->live_count, >, 0);
	KVS_ASSERT_CMP(segment->live_pages, >=, pages);
	segment->live_pages -= pages;
	segment->live_count--;
	space->live_pages -= pages;
}

void space_forget(struct space *space, uint32_t segment, uint32_t pages, uint32_t ordinal)
{
	space_leave(space, segment, pages);
	space_bury(space, segment, ordinal);
}

void space_bury(struct space *space, uint32_t segment, uint32_t ordinal)
{
	bits_set(space->segments[segment].dead, ordinal);
	space->segments[segment].tally_dirty = true;
	space->any_dirty = true;
}

/* --- segments --------------------------------------------------------------------------------- */

static uint32_t free_draft(const struct space *space)
{
	uint32_t draft = 0;

	while (draft < SPACE_DRAFTS && space->draft_busy[draft])
		draft++;
	return draft;
}

static uint32_t free_segment(struct space *space)
{
	const uint32_t count = space->geometry.segment_count;
	uint32_t       i;

	for (i = 0; i < count; i++) {
		const uint32_t number = (space->next_free + i) % count;

		if (space->segments[number].state == SEGMENT_FREE) {
			space->next_free = (number + 1) % count;
			return number;
		}
	}
	return SEGMENT_NONE;
}

uint32_t space_take(struct space *space)
{
	const uint32_t  draft = free_draft(space);
	const uint32_t  number = draft < SPACE_DRAFTS ? free_segment(space) : SEGMENT_NONE;
	struct segment *segment;
	uint64_t       *dead;

	if (number == SEGMENT_NONE)
		return SEGMENT_NONE;
	segment = &space->segments[number];
	KVS_ASSERT_CMP(segment->live_count + segment->readers + segment->writers, ==, 0);
	dead = segment->dead;
	memset(dead, 0, bits_words(space->geometry.records_max) * sizeof(*dead));
	/*
	 * Tallies go on by turns: the first one goes where the older of the last use lies.  Until the new
	 * head is durable a crash may bring the old one back, and then its newest tally is needed.
	 */
	*segment = (struct segment){ .sequence = space->next_sequence++,
#ifndef KVS_MUTANT_RESTART_TURNS /* Planted bug: writes over the newest tally of the last use. */
				     .tally_update = segment->tally_update,
#endif
				     .dead = dead,
				     .next_page = STRATA_RECORD_PAGE,
				     .state = SEGMENT_OPENING,
				     .backed = segment->backed,
				     .draft = (uint8_t)draft };
	space->draft_busy[draft] = true;
	space->free_count--;
	return number;
}

void space_opened(struct space *space, uint32_t segment, enum stream stream)
{
	KVS_ASSERT_CMP(space->segments[segment].state, ==, SEGMENT_OPENING);
	KVS_ASSERT_CMP(space->open[stream], ==, SEGMENT_NONE);
	space->segments[segment].state = SEGMENT_OPEN;
	space->segments[segment].backed = true;
	space->open[stream] = segment;
}

static void set_free(struct space *space, struct segment *segment)
{
	segment->state = SEGMENT_FREE;
	segment->tally_dirty = false;
	space->free_count++;
}

void space_not_opened(struct space *space, uint32_t number)
{
	struct segment *const segment = &space->segments[number];

	KVS_ASSERT_CMP(segment->state, ==, SEGMENT_OPENING);
	space->draft_busy[segment->draft] = false;
	set_free(space, segment);
}

void space_shrink(struct space *space)
{
	uint32_t number;

	for (number = 0; number < space->geometry.segment_count; number++) {
		struct segment *const segment = &space->segments[number];

		if (segment->state != SEGMENT_FREE || segment->backed)
			continue;
		segment->state = SEGMENT_ABSENT;
		space->free_count--;
	}
}

void space_sealed(struct space *space, uint32_t number)
{
	struct segment *const segment = &space->segments[number];

	KVS_ASSERT_CMP(segment->state, ==, SEGMENT_SEALING);
	segment->state = SEGMENT_SEALED;
	space->draft_busy[segment->draft] = false;
}

void space_read_begin(struct space *space, uint32_t segment)
{
	space->segments[segment].readers++;
}

void space_read_end(struct space *space, uint32_t number)
{
	struct segment *const segment = &space->segments[number];

	KVS_ASSERT_CMP(segment->readers, >, 0);
	segment->readers--;
	if (segment->state == SEGMENT_DRAINING && segment->readers == 0)
		set_free(space, segment);
}

void space_lock(struct space *space, uint32_t segment, uint32_t pages)
{
	space->segments[segment].locked_pages += pages;
}

void space_unlock(struct space *space, uint32_t segment, uint32_t pages)
{
	KVS_ASSERT_CMP(space->segments[segment].locked_pages, >=, pages);
	space->segments[segment].locked_pages -= pages;
}

static bool is_cleanable(const struct segment *segment)
{
	return segment->state == SEGMENT_SEALED && segment->readers == 0;
}

/* Worth a look before its turn: four such make room for three. */
static bool is_nearly_empty(const struct space *space, const struct segment *segment)
{
	return segment->live_pages <= space_usable(space) / 4;
}

/*
 * Lower goes first; segments of one class by age.  An empty one needs no room to be cleaned: after an open
 * it may be all that can be, for what was free before is found as sealed and empty.
 */
static uint64_t rank(const struct space *space, const struct segment *segment)
{
	if (segment->live_pages == 0)
		return 0;
	if (is_nearly_empty(space, segment))
		return 1;
	return segment->locked_pages <= space_usable(space) / 2 ? 2 : 3 + segment->locked_pages;
}

uint32_t space_victim(const struct space *space, uint32_t pages)
{
	const struct segment *best = NULL;
	uint64_t              best_rank = 0;
	uint32_t              number;

	for (number = 0; number < space->geometry.segment_count; number++) {
		const struct segment *const segment = &space->segments[number];
		uint64_t                    own;

		if (!is_cleanable(segment) ||
		    segment->locked_pages + pages > space_usable(space))
			continue;
		own = rank(space, segment);
		if (best && (own > best_rank ||
			     (own == best_rank && segment->sequence > best->sequence)))
			continue;
		best = segment;
		best_rank = own;
	}
	return best ? (uint32_t)(best - space->segments) : SEGMENT_NONE;
}

void space_clean_begin(struct space *space, uint32_t segment)
{
	KVS_ASSERT_CMP(space->segments[segment].state, ==, SEGMENT_SEALED);
	space->segments[segment].state = SEGMENT_CLEANING;
}

void space_clean_end(struct space *space, uint32_t number)
{
	struct segment *const segment = &space->segments[number];

	KVS_ASSERT_CMP(segment->state, ==, SEGMENT_CLEANING);
	KVS_ASSERT_CMP(segment->live_count, ==, 0);
	if (segment->readers > 0)
		segment->state = SEGMENT_DRAINING;
	else
		set_free(space, segment);
}

void space_clean_abandon(struct space *space, uint32_t segment)
{
	KVS_ASSERT_CMP(space->segments[segment].state, ==, SEGMENT_CLEANING);
	space->segments[segment].state = SEGMENT_SEALED;
}

void space_recovered(struct space *space, uint32_t number, uint64_t sequence)
{
	struct segment *const segment = &space->segments[number];

	KVS_ASSERT_CMP(segment->state, ==, SEGMENT_FREE);
	segment->state = SEGMENT_SEALED;
	segment->sequence = sequence;
	segment->backed = true;
	space->free_count--;
}

bool space_keep_unsealed(struct space *space, uint32_t number, const struct summary_entry *entries,
			 uint32_t count)
{
	const uint32_t draft = free_draft(space);

	KVS_ASSERT_CMP(space->segments[number].state, ==, SEGMENT_SEALED);
	if (draft == SPACE_DRAFTS)
		return false;
	space->draft_busy[draft] = true;
	space->segments[number].draft = (uint8_t)draft;
	space->segments[number].state = SEGMENT_SEALING;
	memcpy(space->drafts[draft], entries, count * sizeof(*entries));
	return true;
}

bool space_is_moving(const struct space *space)
{
	uint32_t number;

	for (number = 0; number < space->geometry.segment_count; number++) {
		const struct segment *const segment = &space->segments[number];

		if (segment->state == SEGMENT_CLOSED || segment->state == SEGMENT_SEALING ||
		    segment->state == SEGMENT_DRAINING || segment->state == SEGMENT_OPENING ||
		    (segment->state == SEGMENT_SEALED && segment->readers > 0))
			return true;
	}
	return false;
}

uint32_t space_heads(const struct space *space)
{
	uint32_t heads = 0, number;

	for (number = 0; number < space->geometry.segment_count; number++)
		heads += space->segments[number].backed;
	return heads;
}

uint64_t space_bytes(const struct space *space)
{
	const struct geometry *const geometry = &space->geometry;

	return geometry->segment_count *
		       (sizeof(struct segment) + bits_words(geometry->records_max) * 8) +
	       SPACE_DRAFTS * draft_bytes(geometry);
}

void space_audit(const struct space *space)
{
	uint64_t live_pages = 0;
	uint32_t free_count = 0, unsealed = 0, busy = 0, i;

	for (i = 0; i < space->geometry.segment_count; i++) {
		const struct segment *const segment = &space->segments[i];

		free_count += segment->state == SEGMENT_FREE;
		unsealed += segment->state >= SEGMENT_OPENING && segment->state <= SEGMENT_SEALING;
		live_pages += segment->live_pages;
		if (segment->state == SEGMENT_FREE)
			KVS_ASSERT_CMP(segment->live_count + segment->readers, ==, 0);
		KVS_ASSERT_CMP(segment->live_count == 0, ==, segment->live_pages == 0);
		KVS_ASSERT_CMP(segment->live_count, <=, segment->record_count);
		KVS_ASSERT_CMP(segment->locked_pages, <=, segment->live_pages);
		KVS_ASSERT_CMP(segment->next_page, <=, space->geometry.segment_pages);
	}
	for (i = 0; i < SPACE_DRAFTS; i++)
		busy += space->draft_busy[i];
	KVS_ASSERT_CMP(free_count, ==, space->free_count);
	KVS_ASSERT_CMP(live_pages, ==, space->live_pages);
	KVS_ASSERT_CMP(unsealed, ==, busy);
}
