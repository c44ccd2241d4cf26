/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing, purging, verifying: administrative calls, which read what the catalog does not hold, keys
 * and all payload, and may take long.
 *
 * A segment's entries come from its draft while it is unsealed, from its summary later.  What the
 * catalog does not name is dead and passed over.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "strata/core.h"

/* Keys a purge removes at a time. */
#define PURGE_KEYS 64u

/* A cursor is a segment and an ordinal, one higher than 0 at the first. */
#define CURSOR_SHIFT 32

struct listing {
	struct strata        *s;
	uint8_t              *summary;
	struct summary_entry *entries;
	uint32_t              count;
	uint64_t              sequence; /* of the segment */
	bool                  sealed;   /* the entries are those of a summary on disk */
};

static int listing_open(struct listing *listing, struct strata *s)
{
	*listing = (struct listing){ .s = s };
	listing->summary =
		aligned_alloc(STRATA_PAGE, page_offset(summary_pages(s->geometry.records_max)));
	listing->entries = (struct summary_entry *)listing->summary;
	return listing->summary ? 0 : -ENOMEM;
}

/* With the lock.  Of an unsealed one the draft is all there is. */
static bool copy_draft(struct listing *listing, uint32_t number)
{
	const struct strata *const  s = listing->s;
	const struct segment *const segment = &s->space.segments[number];

	listing->count = segment->record_count;
	listing->sequence = segment->sequence;
	if (segment->state < SEGMENT_OPEN || segment->state > SEGMENT_SEALING)
		return false;
	memcpy(listing->entries, space_draft(&s->space, number),
	       listing->count * sizeof(*listing->entries));
	return true;
}

/* 0 entries of a free segment. */
static int load(struct listing *listing, uint32_t number)
{
	struct strata *const s = listing->s;
	bool                 drafted;

	os_mutex_lock(&s->lock);
	drafted = copy_draft(listing, number);
	if (s->space.segments[number].live_count == 0)
		listing->count = 0;
	os_mutex_unlock(&s->lock);
	listing->sealed = !drafted;
	if (drafted || listing->count == 0)
		return 0;
	return summary_read(s, number, listing->sequence, listing->summary, &listing->count);
}

/* The object is in the catalog, and lies there. */
static bool is_live(struct strata *s, uint32_t segment, const struct summary_entry *entry)
{
	const uint32_t page = segment_page(&s->geometry, segment) + entry->page;
	uint32_t       number;
	bool           live;

	if (entry->pages == 0)
		return false;
	os_mutex_lock(&s->lock);
	number = catalog_find(&s->catalog, key_print(s->hash, &entry->key));
	live = number != SLOT_NONE && s->catalog.entries[number].state == ENTRY_PRESENT &&
	       s->catalog.entries[number].page == page;
	os_mutex_unlock(&s->lock);
	return live;
}

/* --- list and purge --------------------------------------------------------------------------- */

static bool is_of(const struct kvs_key *key, const struct kvs_namespace *space)
{
	return !space || memcmp(&key->space, space, sizeof(*space)) == 0;
}

/* A segment whose summary cannot be read has no names: its objects are found by their keys only. */
static uint32_t list_segment(struct listing *listing, uint32_t segment, uint32_t *ordinal,
			     const struct kvs_namespace *space, struct kvs_key *keys,
			     uint32_t key_max)
{
	uint32_t count = 0;

	for (; *ordinal < listing->count && count < key_max; ++*ordinal) {
		const struct summary_entry *const entry = &listing->entries[*ordinal];

		if (is_of(&entry->key, space) && is_live(listing->s, segment, entry))
			keys[count++] = entry->key;
	}
	return count;
}

int strata_list(struct kvs_store *store, const struct kvs_namespace *space, uint64_t *cursor,
		struct kvs_key *keys, uint32_t key_max, uint32_t *ret_count)
{
	struct strata *const s = strata_of(store);
	uint32_t             segment = (uint32_t)(*cursor >> CURSOR_SHIFT);
	uint32_t             ordinal = (uint32_t)*cursor;
	struct listing       listing;
	uint32_t             count = 0;
	int                  rc = listing_open(&listing, s);

	if (rc < 0)
		return rc;
	for (; segment < s->geometry.segment_count && count < key_max; segment++, ordinal = 0) {
		if (load(&listing, segment) < 0)
			continue;
		count += list_segment(&listing, segment, &ordinal, space, keys + count,
				      key_max - count);
		if (ordinal < listing.count)
			break;
	}
	free(listing.summary);
	*cursor = segment < s->geometry.segment_count
			  ? (uint64_t)segment << CURSOR_SHIFT | ordinal
			  : 0;
	*ret_count = count;
	return 0;
}

/* Keys of one namespace, the next of a walk over all segments: list and remove together. */
static int purge_segment(struct listing *listing, uint32_t segment,
			 const struct kvs_namespace *space, uint64_t *removed)
{
	struct kvs_key  keys[PURGE_KEYS];
	enum kvs_result result[PURGE_KEYS];
	uint32_t        ordinal = 0, count, i;
	int             rc = 0;

	do {
		count = list_segment(listing, segment, &ordinal, space, keys, PURGE_KEYS);
		(void)strata_remove(&listing->s->store, keys, count, result);
		for (i = 0; i < count; i++) {
			*removed += result[i] == KVS_RESULT_DONE;
			rc = result[i] == KVS_RESULT_FAILED ? -EIO : rc;
		}
	} while (count > 0);
	return rc;
}

/* What stays on disk would be found by the next open: then the purge failed. */
int strata_purge(struct kvs_store *store, const struct kvs_namespace *space, uint64_t *ret_count)
{
	struct strata *const s = strata_of(store);
	struct listing       listing;
	uint64_t             removed = 0;
	uint32_t             segment;
	int                  rc = listing_open(&listing, s), failed = 0;

	if (rc < 0)
		return rc;
	/* Cleaning would move objects to where this walk has been. */
	os_mutex_lock(&s->roll);
	for (segment = 0; segment < s->geometry.segment_count; segment++) {
		rc = load(&listing, segment);
		if (rc == 0)
			rc = purge_segment(&listing, segment, space, &removed);
		failed = rc < 0 ? rc : failed;
	}
	os_mutex_unlock(&s->roll);
	free(listing.summary);
	if (failed < 0)
		return failed;
	*ret_count = removed;
	return 0;
}

/* --- walk ------------------------------------------------------------------------------------- */

/* Another process may have used the segment anew since this one read its head. */
static bool is_still_there(const struct strata *s, uint32_t number)
{
	_Alignas(STRATA_PAGE) struct segment_head head;
	uint64_t                                  sequence;

	return !s->set.read_only ||
	       (os_file_read(s->fd, &head, sizeof(head),
			     segment_offset(s, number)) == 0 &&
		head_judge(&head, s->hash, number, &sequence) == HEAD_VALID &&
		sequence == s->space.segments[number].sequence);
}

static const char *verify_record(const struct strata *s, const struct record *record,
				 uint8_t *buffer)
{
	const uint64_t bytes = page_offset(record->pages);
	const int      rc = os_file_read(s->fd, buffer, bytes, payload_offset(s, record));

	if (rc < 0)
		return rc == -ENODATA ? "the file ends before it does" : kvs_strerror(rc);
	return payload_checksum(&record->key, buffer, bytes) == record->checksum
		       ? NULL
		       : "its payload does not match its checksum";
}

struct walk {
	struct listing   listing;
	struct verifying verifying; /* without a buffer nothing is verified */
	strata_see      *see;
	void            *ctx;
	uint32_t         end;       /* of the last record, in its segment */
	uint32_t         headers;   /* the page of those before it; 0: looked at */
};

/*
 * The headers that a live record was written with, once.  What is torn in an unsealed segment is no
 * damage, and what was torn there before it was sealed has no record behind it.
 */
static bool walk_headers(struct walk *walk, uint32_t segment)
{
	const uint32_t page = walk->headers;

	walk->headers = 0;
	if (page == 0 || !walk->verifying.buffer || !walk->listing.sealed)
		return true;
	return verify_headers(&walk->verifying, segment, page);
}

static void pass_entry(struct walk *walk, const struct summary_entry *entry)
{
	/* One page between two records is of headers; more is room of a write that failed. */
	if (entry->pages > 0 && entry->page == walk->end + 1)
		walk->headers = walk->end;
	if (entry->pages > 0)
		walk->end = entry->page + entry->pages;
}

static bool walk_entry(struct walk *walk, uint32_t segment, uint32_t ordinal)
{
	struct strata *const              s = walk->listing.s;
	const struct summary_entry *const entry = &walk->listing.entries[ordinal];
	const struct record record = { .key = entry->key, .checksum = entry->payload_checksum,
				       .segment = segment, .page = entry->page,
				       .pages = entry->pages, .ordinal = ordinal };
	struct strata_finding finding = { .key = &record.key, .bytes = page_offset(entry->pages),
					  .segment = segment, .offset = payload_offset(s, &record) };

	pass_entry(walk, entry);
	if (!is_live(s, segment, entry))
		return true;
	if (!walk_headers(walk, segment))
		return false;
	if (walk->verifying.buffer)
		finding.damage = verify_record(s, &record, walk->verifying.buffer);
	/* It may have gone while it was read. */
	if (finding.damage && (!is_live(s, segment, entry) || !is_still_there(s, segment)))
		return true;
	return walk->see(walk->ctx, &finding);
}

static bool walk_segment(struct walk *walk, uint32_t segment)
{
	struct strata *const s = walk->listing.s;
	const uint32_t       told = walk->verifying.told;
	uint32_t             i;

	if (walk->verifying.buffer && !verify_segment(&walk->verifying, segment))
		return false;
	if (load(&walk->listing, segment) < 0) {
		const struct strata_finding finding = {
			.segment = segment,
			.offset = segment_offset(s, segment),
			.damage = "its summary is damaged" };

		return walk->verifying.told > told || !is_still_there(s, segment) ||
		       walk->see(walk->ctx, &finding);
	}
	walk->end = STRATA_RECORD_PAGE;
	walk->headers = 0;
	for (i = 0; i < walk->listing.count; i++) {
		if (!walk_entry(walk, segment, i))
			return false;
	}
	return true;
}

int strata_walk(struct kvs_store *store, bool verify, strata_see *see, void *ctx)
{
	struct strata *const s = strata_of(store);
	struct walk          walk = { .see = see, .ctx = ctx };
	uint32_t             segment = 0;
	int                  rc = listing_open(&walk.listing, s);

	walk.verifying = (struct verifying){ .s = s, .see = see, .ctx = ctx };
	if (verify)
		walk.verifying.buffer = aligned_alloc(STRATA_PAGE, s->geometry.segment_bytes);
	if (verify && !walk.verifying.buffer)
		rc = -ENOMEM;
	if (rc == 0 && verify && !verify_superblocks(&walk.verifying))
		segment = s->geometry.segment_count;
	while (rc == 0 && segment < s->geometry.segment_count && walk_segment(&walk, segment))
		segment++;
	free(walk.listing.summary);
	free(walk.verifying.buffer);
	return rc;
}
