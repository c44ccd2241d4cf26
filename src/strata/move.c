/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving: what stays of a segment that is cleaned is read, checked and written again, several objects at
 * a time where they are small.
 *
 * Nobody else places records in the stream for moves, so that a group lies in one piece on disk as it
 * does in scratch: headers, then payloads.  An object that is removed while it is written is dead in both
 * places: record_forget() in object.c sees to the new one.
 */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "strata/clean.h"

static struct header *header_of(const struct strata *s)
{
	return (struct header *)s->scratch;
}

static uint8_t *payload_of(const struct strata *s, const struct moving *moving)
{
	return s->scratch + STRATA_PAGE + moving->bytes;
}

/* What cannot be moved is lost, locked or not. */
static void lose(struct strata *s, const struct cleaning *cleaning, uint32_t i, int rc)
{
	const bool corrupt = rc == KVS_E_PROTO || rc == -ENODATA;
	uint32_t   number;

	os_mutex_lock(&s->lock);
	number = cleaning_entry(s, cleaning, i);
	if (number != SLOT_NONE) {
		entry_kill(s, number);
		s->counts.corrupt += corrupt;
		s->counts.evicted += !corrupt;
	}
	os_mutex_unlock(&s->lock);
}

/* --- writing ---------------------------------------------------------------------------------- */

/* With the lock: the entry's record lies elsewhere now.  The old one is not dead before that is synced. */
static void rename_record(struct strata *s, uint32_t number, const struct record *record)
{
	struct entry *const entry = &s->catalog.entries[number];
	const uint32_t      old = space_segment_of(&s->space, entry->page);

	if (entry->locks > 0) {
		space_unlock(&s->space, old, entry->pages);
		space_lock(&s->space, record->segment, entry->pages);
	}
	space_leave(&s->space, old, entry->pages);
	space_count(&s->space, record->segment, record->pages);
	entry->page = segment_page(&s->geometry, record->segment) + record->page;
	entry->ordinal = (uint16_t)record->ordinal;
	entry->moving = 0;
	catalog_renew(&s->catalog, number);
	s->counts.moved++;
}

/* It may have been removed while it was written. */
static void settle(struct strata *s, struct cleaning *cleaning, uint32_t i,
		   const struct record *record, int rc)
{
	bool     to_seal;
	uint32_t number;

	os_mutex_lock(&s->lock);
	number = cleaning_entry(s, cleaning, i);
	if (rc == 0 && number != SLOT_NONE) {
		rename_record(s, number, record);
		bits_set(cleaning->moved, i);
		cleaning->moved_count++;
	} else if (rc == 0) {
		space_bury(&s->space, record->segment, record->ordinal);
	}
	to_seal = space_written(&s->space, record, rc == 0);
	os_mutex_unlock(&s->lock);
	if (rc < 0)
		lose(s, cleaning, i, rc);
	if (to_seal)
		segment_seal(s, record->segment);
}

static void flush(struct strata *s, struct cleaning *cleaning)
{
	struct moving *const moving = &cleaning->moving;
	const uint32_t       count = moving->group.count;
	uint32_t             i;
	int                  rc;

	if (count == 0)
		return;
	header_seal(header_of(s));
	rc = os_file_write(s->fd, s->scratch, STRATA_PAGE + moving->bytes,
			   header_offset(s, &moving->group));
	for (i = 0; i < count; i++)
		settle(s, cleaning, moving->from[i], &moving->records[i], rc);
	moving->group.count = 0;
	moving->bytes = 0;
}

/* --- placing ---------------------------------------------------------------------------------- */

enum placed { PLACED, PLACED_NOWHERE, PLACED_GONE /* the object was removed meanwhile */ };

static void add(struct strata *s, struct moving *moving, uint32_t i, uint32_t number,
		const struct record *record)
{
	const uint32_t at = moving->group.count - 1;

	moving->records[at] = *record;
	moving->from[at] = i;
	moving->bytes += page_offset(record->pages);
	s->moving[at] = (struct record_place){ record->segment, record->ordinal };
	s->catalog.entries[number].moving = (uint8_t)(at + 1);
	if (at == 0) {
		header_begin(s->hash, record->segment,
			     s->space.segments[record->segment].sequence, moving->group.page,
			     header_of(s));
	}
	header_add(header_of(s), record);
	count_written(s, page_offset(record->pages + (at == 0)));
}

static enum placed try_place(struct strata *s, struct cleaning *cleaning, uint32_t i,
			     struct record *record)
{
	struct moving *const moving = &cleaning->moving;
	enum placed          placed = PLACED_GONE;
	uint32_t             number;

	os_mutex_lock(&s->lock);
	number = cleaning_entry(s, cleaning, i);
	if (number != SLOT_NONE) {
		placed = space_place(&s->space, STREAM_MOVES, &moving->group, record)
				 ? PLACED
				 : PLACED_NOWHERE;
	}
	if (placed == PLACED)
		add(s, moving, i, number, record);
	os_mutex_unlock(&s->lock);
	return placed;
}

/* Its payload lies behind those of the group; where that is full it begins the next one. */
static int place(struct strata *s, struct cleaning *cleaning, uint32_t i, struct record *record)
{
	struct moving *const moving = &cleaning->moving;

	while (try_place(s, cleaning, i, record) == PLACED_NOWHERE) {
		const uint8_t *const payload = payload_of(s, moving);
		int                  rc;

		flush(s, cleaning);
		memmove(payload_of(s, moving), payload, page_offset(record->pages));
		rc = room_make_rolling(s, STREAM_MOVES, record->pages);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* --- reading ---------------------------------------------------------------------------------- */

static int read_payload(const struct strata *s, const struct cleaning *cleaning, uint32_t i,
			uint8_t *payload)
{
	const struct summary_entry *const entry = &cleaning->entries[i];
	const uint32_t page = segment_page(&s->geometry, cleaning->segment) + entry->page;
	const uint64_t bytes = page_offset(entry->pages);
	const int      rc = os_file_read(s->fd, payload, bytes, page_offset(page));

	if (rc < 0)
		return rc;
	return payload_checksum(&entry->key, payload, bytes) == entry->payload_checksum
		       ? 0
		       : KVS_E_PROTO;
}

static int move(struct strata *s, struct cleaning *cleaning, uint32_t i)
{
	struct moving *const              moving = &cleaning->moving;
	const struct summary_entry *const entry = &cleaning->entries[i];
	const uint64_t bytes = page_offset(entry->pages);
	struct record  record = { .key = entry->key, .pages = entry->pages,
				  .checksum = entry->payload_checksum };
	int            rc;

	/* Of a time when blocks were larger: there is no buffer for it. */
	if (bytes > moves_bytes(s))
		return -EFBIG;
	if (moving->bytes + bytes > moves_bytes(s))
		flush(s, cleaning);
	rc = read_payload(s, cleaning, i, payload_of(s, moving));
	return rc < 0 ? rc : place(s, cleaning, i, &record);
}

static bool is_locked(struct strata *s, const struct cleaning *cleaning, uint32_t i)
{
	uint32_t number;
	bool     locked;

	os_mutex_lock(&s->lock);
	number = cleaning_entry(s, cleaning, i);
	locked = number != SLOT_NONE && s->catalog.entries[number].locks > 0;
	os_mutex_unlock(&s->lock);
	return locked;
}

/* On a disk that is full no segment is kept free: hot objects must not hold every put. */
int cleaning_move(struct strata *s, struct cleaning *cleaning)
{
	uint32_t i;
	int      rc = 0;

	for (i = 0; i < cleaning->count; i++) {
		if (!bits_test(cleaning->kept, i))
			continue;
		rc = move(s, cleaning, i);
		if (rc == -EAGAIN || (rc == KVS_E_FULL && is_locked(s, cleaning, i)))
			break;
		if (rc < 0)
			lose(s, cleaning, i, rc);
		rc = 0;
	}
	flush(s, cleaning);
	return rc;
}
