/* SPDX-License-Identifier: Apache-2.0 */
/* One object's steps, none of which does I/O: see core.h. */
#include <errno.h>
#include <string.h>

#include "strata/core.h"

bool span_fits(const struct strata *s, const struct kvs_span *span)
{
	return span->bytes > 0 && span->bytes <= s->set.block_bytes &&
	       span->bytes % STRATA_PAGE == 0 && (uintptr_t)span->ptr % STRATA_PAGE == 0;
}

static void record_forget(struct strata *s, uint32_t number)
{
	struct entry *const entry = &s->catalog.entries[number];
	const uint32_t      segment = space_segment_of(&s->space, entry->page);

	if (entry->locks > 0)
		space_unlock(&s->space, segment, entry->pages);
	entry->locks = 0;
	space_forget(&s->space, segment, entry->pages, entry->ordinal);
#ifndef KVS_MUTANT_FORGET_MOVE /* Planted bug: what was removed lives on where it was moved to. */
	/* Its new record may be on the device already, and would speak for the key after a crash. */
	if (entry->moving > 0) {
		const struct record_place *const place = &s->moving[entry->moving - 1];

		space_bury(&s->space, place->segment, place->ordinal);
	}
#endif
}

void entry_kill(struct strata *s, uint32_t number)
{
	record_forget(s, number);
	catalog_drop(&s->catalog, number);
}

void entry_expel(struct strata *s, uint32_t number)
{
	record_forget(s, number);
	catalog_expel(&s->catalog, number);
}

void count_written(struct strata *s, uint64_t bytes)
{
	const uint32_t today = (uint32_t)os_wall_day();

	if (s->day != today) {
		s->day = today;
		s->day_bytes = 0;
	}
	s->day_bytes += bytes;
	s->written_bytes += bytes;
}

/* --- get -------------------------------------------------------------------------------------- */

/* A caller's wrong length says nothing about the object: it stays. */
enum kvs_result get_begin(struct strata *s, const struct kvs_key *key, uint64_t bytes,
			  struct reading *ret_reading)
{
	const uint64_t  print = key_print(s->hash, key);
	enum kvs_result result = KVS_RESULT_MISSING;
	uint32_t        number;

	os_mutex_lock(&s->lock);
	number = catalog_use(&s->catalog, print);
	if (number != SLOT_NONE) {
		const struct entry *const entry = &s->catalog.entries[number];

		result = page_offset(entry->pages) == bytes ? KVS_RESULT_DONE : KVS_RESULT_CORRUPT;
		*ret_reading = (struct reading){ .key = *key, .checksum = entry->checksum,
						 .page = entry->page, .pages = entry->pages };
	}
	if (result == KVS_RESULT_DONE) {
		s->get_count++;
		ret_reading->flip = s->set.corrupt_every &&
				    s->get_count % s->set.corrupt_every == 0;
		space_read_begin(&s->space, space_segment_of(&s->space, ret_reading->page));
	}
	os_mutex_unlock(&s->lock);
	return result;
}

static enum kvs_result judge(const struct strata *s, const struct reading *reading, uint8_t *payload,
			     int rc)
{
	const uint64_t bytes = page_offset(reading->pages);

	/* A file that ends early has lost the object. */
	if (rc < 0)
		return rc == -ENODATA ? KVS_RESULT_CORRUPT : KVS_RESULT_FAILED;
	if (reading->flip)
		payload[bytes / 2] ^= 1;
	if (!s->set.verify || payload_checksum(&reading->key, payload, bytes) == reading->checksum)
		return KVS_RESULT_DONE;
	return KVS_RESULT_CORRUPT;
}

/* Of several readers that find it wrong the first takes it out; it may have been moved meanwhile. */
static bool withdraw(struct strata *s, const struct reading *reading)
{
	const uint32_t number = catalog_find(&s->catalog, key_print(s->hash, &reading->key));
	const bool     there = number != SLOT_NONE &&
			   s->catalog.entries[number].state == ENTRY_PRESENT &&
			   s->catalog.entries[number].page == reading->page;

	if (there) {
		entry_kill(s, number);
		s->counts.corrupt++;
	}
	return there;
}

enum kvs_result get_end(struct strata *s, const struct reading *reading, void *payload, int rc)
{
	const enum kvs_result result = judge(s, reading, payload, rc);
	bool                  withdrawn;

	os_mutex_lock(&s->lock);
	withdrawn = result == KVS_RESULT_CORRUPT && withdraw(s, reading);
	space_read_end(&s->space, space_segment_of(&s->space, reading->page));
	os_cond_broadcast(&s->written);
	os_mutex_unlock(&s->lock);
	/* One that cannot be marked on disk fails again after the next open. */
	if (withdrawn && !s->set.read_only)
		(void)tallies_write(s);
	return result;
}

/* --- put -------------------------------------------------------------------------------------- */

static bool is_over_budget(struct strata *s, uint64_t bytes)
{
	count_written(s, 0);
	return s->set.write_budget_bytes > 0 && s->day_bytes + bytes > s->set.write_budget_bytes;
}

/* With the lock, for a key that is not there. */
static enum kvs_result admit(struct strata *s, uint64_t print, uint64_t bytes)
{
	if (is_over_budget(s, bytes)) {
		s->counts.refused_budget++;
		return KVS_RESULT_NO_SPACE;
	}
	if (s->set.admit_second && !ghost_take(&s->seen, print)) {
		ghost_add(&s->seen, print);
		s->counts.refused_admission++;
		return KVS_RESULT_NO_SPACE;
	}
	return KVS_RESULT_DONE;
}

static enum kvs_result claim(struct strata *s, uint64_t print, uint64_t bytes, uint32_t *ret_entry)
{
	const uint32_t  found = catalog_find(&s->catalog, print);
	enum kvs_result result;
	uint32_t        victim;

	if (found != SLOT_NONE) {
		if (s->catalog.entries[found].state == ENTRY_WRITING)
			return KVS_RESULT_UNKNOWN;
		(void)catalog_use(&s->catalog, print);
		return KVS_RESULT_EXISTS;
	}
	result = admit(s, print, bytes);
	if (result != KVS_RESULT_DONE)
		return result;
	*ret_entry = catalog_add(&s->catalog, print);
	if (*ret_entry != SLOT_NONE)
		return KVS_RESULT_DONE;
	/* The catalog is full before the file is: small objects, or many that are being written. */
	victim = catalog_victim(&s->catalog);
	if (victim == SLOT_NONE) {
		s->counts.refused_full++;
		return KVS_RESULT_NO_SPACE;
	}
	entry_kill(s, victim);
	s->counts.evicted++;
	*ret_entry = catalog_add(&s->catalog, print);
	return KVS_RESULT_DONE;
}

enum kvs_result put_begin(struct strata *s, const struct kvs_key *key, uint64_t bytes,
			  struct writing *ret_writing)
{
	const uint64_t  print = key_print(s->hash, key);
	const uint32_t  pages = (uint32_t)(bytes / STRATA_PAGE);
	enum kvs_result result;

	if (s->set.read_only)
		return KVS_RESULT_NO_SPACE;
	*ret_writing = (struct writing){ .record = { .key = *key, .pages = pages },
					 .entry = SLOT_NONE };
	os_mutex_lock(&s->lock);
	/* With headers of its own, at the most. */
	result = claim(s, print, page_offset(pages + 1), &ret_writing->entry);
	ret_writing->syncs_failed = s->syncs_failed;
	os_mutex_unlock(&s->lock);
	return result;
}

static bool place(struct strata *s, struct group *group, struct header *header,
		  struct record *record)
{
	uint64_t sequence = 0;
	bool     placed;

	os_mutex_lock(&s->lock);
	placed = space_place(&s->space, STREAM_PUTS, group, record);
	if (placed) {
		sequence = s->space.segments[record->segment].sequence;
		count_written(s, page_offset(record->pages + (group->count == 1)));
	}
	os_mutex_unlock(&s->lock);
	if (placed && group->count == 1)
		header_begin(s->hash, record->segment, sequence, group->page, header);
	if (placed)
		header_add(header, record);
	return placed;
}

/* Others may take the room that was made: each has then written something. */
int put_place(struct strata *s, const void *payload, struct group *group, struct header *header,
	      struct writing *writing)
{
	struct record *const record = &writing->record;

	if (!writing->hashed) {
		record->checksum =
			payload_checksum(&record->key, payload, page_offset(record->pages));
		writing->hashed = true;
	}
	while (!place(s, group, header, record)) {
		int rc;

		if (group->count > 0)
			return PUT_NEW_GROUP;
		rc = room_make(s, STREAM_PUTS, record->pages);
		if (write_result(rc) == KVS_RESULT_NO_SPACE) {
			os_mutex_lock(&s->lock);
			s->counts.refused_full++;
			os_mutex_unlock(&s->lock);
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

void put_drop(struct strata *s, const struct writing *writing)
{
	os_mutex_lock(&s->lock);
	catalog_drop(&s->catalog, writing->entry);
	/* It was offered, and not taken. */
	if (s->set.admit_second)
		ghost_add(&s->seen, key_print(s->hash, &writing->record.key));
	os_mutex_unlock(&s->lock);
}

enum kvs_result write_result(int rc)
{
	if (rc == 0)
		return KVS_RESULT_DONE;
	if (rc == KVS_E_FULL || rc == -ENOSPC || rc == -EDQUOT || rc == -EFBIG)
		return KVS_RESULT_NO_SPACE;
	return KVS_RESULT_FAILED;
}

static void publish(struct strata *s, const struct writing *writing)
{
	const struct record *const record = &writing->record;
	struct entry *const        entry = &s->catalog.entries[writing->entry];

	entry->checksum = record->checksum;
	entry->page = segment_page(&s->geometry, record->segment) + record->page;
	entry->pages = record->pages;
	entry->ordinal = (uint16_t)record->ordinal;
	catalog_publish(&s->catalog, writing->entry);
	space_count(&s->space, record->segment, record->pages);
	s->put_bytes += page_offset(record->pages);
}

enum kvs_result put_end(struct strata *s, const struct writing *writing, int rc)
{
	const uint32_t segment = writing->record.segment;
	bool           to_seal;

	os_mutex_lock(&s->lock);
	if (rc == 0 && s->set.durability == STRATA_PUT && writing->syncs_failed != s->syncs_failed)
		rc = -EIO;
	if (rc == 0)
		publish(s, writing);
	else
		catalog_drop(&s->catalog, writing->entry);
	s->counts.refused_full += write_result(rc) == KVS_RESULT_NO_SPACE;
	to_seal = space_written(&s->space, &writing->record, rc == 0);
	/* Where the device fails once it may fail again: what comes goes elsewhere. */
	if (write_result(rc) == KVS_RESULT_FAILED && s->space.open[STREAM_PUTS] == segment)
		to_seal = space_shut(&s->space, STREAM_PUTS) != SEGMENT_NONE;
	os_cond_broadcast(&s->written);
	os_mutex_unlock(&s->lock);
	if (to_seal)
		segment_seal(s, segment);
	return write_result(rc);
}
