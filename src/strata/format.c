/* SPDX-License-Identifier: Apache-2.0 */
/* See format.h. */
#include "strata/format.h"

#include <inttypes.h>
#include <string.h>

#include "base/digest.h"
#include "base/units.h"

static const uint8_t superblock_magic[8] = "kvstrata";
static const uint8_t head_magic[8] = "kvs-head";
static const uint8_t tally_magic[8] = "kvs-dead";
static const uint8_t header_magic[8] = "kvs-data";
static const uint8_t foot_magic[8] = "kvs-foot";

/* --- geometry --------------------------------------------------------------------------------- */

/*
 * Large enough that opening and sealing one costs nothing beside filling it and that the last record
 * wastes little; small enough that what is cleaned at once is little.
 */
#define SEGMENT_BYTES_USUAL (UINT64_C(32) << 20)
#define SEGMENT_BLOCKS_USUAL 32u
#define SEGMENTS_USUAL 64u
#define SEGMENT_BYTES_MAX (UINT64_C(4) << 30) /* a record's bytes are read into memory */

static uint64_t page_down(uint64_t bytes)
{
	return bytes / STRATA_PAGE * STRATA_PAGE;
}

/* Of one that holds a single record. */
static uint64_t segment_bytes_min(uint64_t block_bytes)
{
	return block_bytes + (STRATA_RECORD_PAGE + 1 + UINT64_C(1)) * STRATA_PAGE;
}

static uint64_t segment_bytes_usual(uint64_t capacity_bytes, uint64_t block_bytes)
{
	const uint64_t least = segment_bytes_min(block_bytes);
	const uint64_t wanted = (block_bytes + STRATA_PAGE) * SEGMENT_BLOCKS_USUAL +
				STRATA_RECORD_PAGE * STRATA_PAGE + STRATA_PAGE;
	const uint64_t share = page_down(capacity_bytes / SEGMENTS_USUAL);
	uint64_t       bytes = wanted > SEGMENT_BYTES_USUAL ? wanted : SEGMENT_BYTES_USUAL;

	if (bytes > share)
		bytes = share;
	return bytes < least ? least : bytes;
}

/* Pages of headers that count records take when they are written as many at a time as can be. */
static uint32_t header_pages(uint32_t count)
{
	return (count + HEADER_RECORDS - 1) / HEADER_RECORDS;
}

static uint32_t records_max(uint32_t segment_pages)
{
	const uint32_t room = segment_pages - STRATA_RECORD_PAGE;
	uint32_t       count = room < STRATA_RECORDS_MAX ? room : STRATA_RECORDS_MAX;

	while (count + header_pages(count) + summary_pages(count) > room)
		count--;
	return count;
}

static int check_segment(uint64_t capacity_bytes, uint64_t segment_bytes, uint64_t block_bytes,
			 struct kvs_error *err)
{
	char size[32], least[32], block[32];

	if (segment_bytes < segment_bytes_min(block_bytes) || segment_bytes > SEGMENT_BYTES_MAX ||
	    segment_bytes % STRATA_PAGE != 0) {
		return err_set(err, KVS_E_INVALID,
			       "store.segment: %s is not a multiple of 4 KiB of at least %s, which holds one block of %s",
			       units_format_size(segment_bytes, size),
			       units_format_size(segment_bytes_min(block_bytes), least),
			       units_format_size(block_bytes, block));
	}
	if (capacity_bytes > STRATA_CAPACITY_MAX) {
		return err_set(err, KVS_E_INVALID, "store.capacity: %s is more than %s",
			       units_format_size(capacity_bytes, size),
			       units_format_size(STRATA_CAPACITY_MAX, least));
	}
	if (capacity_bytes < geometry_file_bytes(&(struct geometry){
				     .segment_count = STRATA_SEGMENTS_MIN,
				     .segment_bytes = segment_bytes })) {
		return err_set(err, KVS_E_INVALID,
			       "store.capacity: %" PRIu64
			       " bytes are too few for blocks of %s; at least %s is needed",
			       capacity_bytes, units_format_size(block_bytes, block),
			       units_format_size(STRATA_SUPERBLOCKS * STRATA_PAGE +
							 STRATA_SEGMENTS_MIN * segment_bytes,
						 least));
	}
	if (capacity_bytes / segment_bytes > STRATA_SEGMENTS_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "store.segment: %s makes more than %u segments of %s; choose a larger one",
			       units_format_size(segment_bytes, size), STRATA_SEGMENTS_MAX,
			       units_format_size(capacity_bytes, least));
	}
	return 0;
}

uint64_t geometry_file_bytes(const struct geometry *geometry)
{
	return STRATA_SUPERBLOCKS * (uint64_t)STRATA_PAGE +
	       geometry->segment_count * geometry->segment_bytes;
}

static void geometry_fill(uint64_t capacity_bytes, uint64_t segment_bytes, struct geometry *geometry)
{
	const uint64_t pages = segment_bytes / STRATA_PAGE;

	*geometry = (struct geometry){
		.capacity_bytes = capacity_bytes,
		.segment_bytes = segment_bytes,
		.segment_count =
			(uint32_t)((capacity_bytes - STRATA_SUPERBLOCKS * STRATA_PAGE) /
				   segment_bytes),
		.segment_pages = (uint32_t)pages,
		.records_max = records_max((uint32_t)pages),
	};
}

int geometry_make(uint64_t capacity_bytes, uint64_t segment_bytes, uint64_t block_bytes,
		  struct geometry *ret_geometry, struct kvs_error *err)
{
	if (segment_bytes == 0)
		segment_bytes = segment_bytes_usual(capacity_bytes, block_bytes);
	if (check_segment(capacity_bytes, segment_bytes, block_bytes, err) < 0)
		return KVS_E_INVALID;
	geometry_fill(capacity_bytes, segment_bytes, ret_geometry);
	return 0;
}

/* --- making ----------------------------------------------------------------------------------- */

uint64_t store_hash(const uint8_t id[16])
{
	return xxh3_64(id, 16);
}

uint64_t key_print(uint64_t store, const struct kvs_key *key)
{
	return xxh3_64_seeded(key, sizeof(*key), store);
}

uint64_t payload_checksum(const struct kvs_key *key, const void *payload, uint64_t bytes)
{
	return xxh3_64_seeded(payload, bytes, xxh3_64_seeded(key, sizeof(*key), bytes));
}

/* Each struct ends with the checksum of what comes before it. */
#define CHECKSUM(object) xxh3_64(object, offsetof(__typeof__(*(object)), checksum))

void superblock_seal(struct superblock *superblock)
{
	memcpy(superblock->magic, superblock_magic, sizeof(superblock_magic));
	superblock->version = STRATA_VERSION;
	superblock->page_bytes = STRATA_PAGE;
	superblock->checksum = CHECKSUM(superblock);
}

void tally_seal(struct tally *tally)
{
	memcpy(tally->magic, tally_magic, sizeof(tally_magic));
	tally->version = STRATA_VERSION;
	tally->checksum = CHECKSUM(tally);
}

void head_make(uint64_t store, uint32_t segment, uint64_t sequence, struct segment_head *ret_head)
{
	memset(ret_head, 0, sizeof(*ret_head));
	memcpy(ret_head->magic, head_magic, sizeof(head_magic));
	ret_head->version = STRATA_VERSION;
	ret_head->segment = segment;
	ret_head->store = store;
	ret_head->sequence = sequence;
	ret_head->checksum = CHECKSUM(ret_head);
}

struct summary_entry record_entry(const struct record *record)
{
	return (struct summary_entry){ .key = record->key,
				       .page = record->page,
				       .pages = record->pages,
				       .payload_checksum = record->checksum,
				       .sequence = record->sequence };
}

void header_begin(uint64_t store, uint32_t segment, uint64_t segment_sequence, uint32_t page,
		  struct header *ret_header)
{
	memset(ret_header, 0, sizeof(*ret_header));
	memcpy(ret_header->magic, header_magic, sizeof(header_magic));
	ret_header->version = STRATA_VERSION;
	ret_header->segment = segment;
	ret_header->store = store;
	ret_header->sequence = segment_sequence;
	ret_header->page = page;
}

void header_add(struct header *header, const struct record *record)
{
	KVS_ASSERT_CMP(header->count, <, HEADER_RECORDS);
	header->entries[header->count++] = (struct header_entry){ .record = record_entry(record),
								  .ordinal = record->ordinal };
}

void header_seal(struct header *header)
{
	header->checksum = CHECKSUM(header);
}

static struct summary_foot *foot_of(void *summary, uint32_t count)
{
	return (struct summary_foot *)((uint8_t *)summary +
				       (size_t)summary_pages(count) * STRATA_PAGE) - 1;
}

void summary_seal(uint64_t store, uint32_t segment, uint64_t sequence, uint32_t count,
		  void *summary)
{
	struct summary_foot *const foot = foot_of(summary, count);
	const size_t               used = count * sizeof(struct summary_entry);

	memset((uint8_t *)summary + used, 0, (size_t)((uint8_t *)(foot + 1) - (uint8_t *)summary) - used);
	memcpy(foot->magic, foot_magic, sizeof(foot_magic));
	foot->version = STRATA_VERSION;
	foot->segment = segment;
	foot->store = store;
	foot->sequence = sequence;
	foot->count = count;
	foot->entries_checksum = xxh3_64(summary, used);
	foot->checksum = CHECKSUM(foot);
}

/* --- judging ---------------------------------------------------------------------------------- */

static enum structure_state state_of(const void *page, size_t offset, const uint8_t magic[8])
{
	const size_t bytes = STRATA_PAGE - offset, covered = bytes - sizeof(uint64_t);
	uint8_t      copy[STRATA_PAGE];
	uint64_t     checksum;

	memcpy(copy, (const uint8_t *)page + offset, bytes);
	memcpy(&checksum, copy + covered, sizeof(checksum));
	if (memcmp(copy, magic, 8) == 0) {
		return checksum == xxh3_64(copy, covered) ? STRUCTURE_WHOLE : STRUCTURE_DAMAGED;
	}
	memcpy(copy, magic, 8);
	return checksum == xxh3_64(copy, covered) ? STRUCTURE_DAMAGED : STRUCTURE_NONE;
}

enum structure_state superblock_state(const void *page)
{
	return state_of(page, 0, superblock_magic);
}

enum structure_state head_state(const void *page)
{
	return state_of(page, 0, head_magic);
}

enum structure_state tally_state(const void *page)
{
	return state_of(page, 0, tally_magic);
}

enum structure_state header_state(const void *page)
{
	return state_of(page, 0, header_magic);
}

enum structure_state foot_state(const void *last_page)
{
	return state_of(last_page, STRATA_PAGE - sizeof(struct summary_foot), foot_magic);
}

enum superblock_verdict superblock_judge(const struct superblock *superblock,
					 struct geometry *ret_geometry)
{
	if (memcmp(superblock->magic, superblock_magic, sizeof(superblock_magic)) != 0)
		return SUPERBLOCK_FOREIGN;
	/* Before the checksum, which another version may keep elsewhere. */
	if (superblock->version != STRATA_VERSION)
		return SUPERBLOCK_VERSION;
	if (superblock->checksum != CHECKSUM(superblock))
		return SUPERBLOCK_DAMAGED;
	if (superblock->page_bytes != STRATA_PAGE ||
	    superblock->epoch > STRATA_EPOCH_MAX ||
	    check_segment(superblock->capacity_bytes, superblock->segment_bytes, STRATA_PAGE,
			  NULL) < 0)
		return SUPERBLOCK_DAMAGED;
	geometry_fill(superblock->capacity_bytes, superblock->segment_bytes, ret_geometry);
	return ret_geometry->segment_count == superblock->segment_count ? SUPERBLOCK_VALID
								       : SUPERBLOCK_DAMAGED;
}

/* Of a segment or of a record. */
static bool sequence_fits(uint64_t sequence)
{
	return sequence >> STRATA_EPOCH_SHIFT <= STRATA_EPOCH_MAX;
}

enum head_verdict head_judge(const struct segment_head *head, uint64_t store, uint32_t segment,
			     uint64_t *ret_sequence)
{
	if (memcmp(head->magic, head_magic, sizeof(head_magic)) != 0)
		return HEAD_NONE;
	if (head->checksum != CHECKSUM(head) || !sequence_fits(head->sequence))
		return HEAD_DAMAGED;
	/* What another store left on the device. */
	if (head->version != STRATA_VERSION || head->store != store || head->segment != segment)
		return HEAD_NONE;
	*ret_sequence = head->sequence;
	return HEAD_VALID;
}

bool tally_judge(const struct tally *tally, uint64_t store, uint32_t segment, uint64_t sequence)
{
#ifdef KVS_MUTANT_STALE_TALLY /* Planted bug: believes the tally of an earlier use. */
	sequence = tally->sequence;
#endif
	return memcmp(tally->magic, tally_magic, sizeof(tally_magic)) == 0 &&
	       tally->checksum == CHECKSUM(tally) && tally->version == STRATA_VERSION &&
	       tally->store == store && tally->segment == segment && tally->sequence == sequence;
}

/* Whether such a record can lie there, with the summary that has to come behind it; see space.c. */
static bool place_judge(const struct geometry *geometry, uint32_t page, uint64_t pages,
			uint32_t ordinal)
{
	return pages > 0 && page > STRATA_RECORD_PAGE && pages < geometry->segment_pages &&
	       ordinal < geometry->records_max &&
	       page + pages + summary_pages(ordinal + 1) <= geometry->segment_pages;
}

enum header_verdict header_judge(const struct header *header, uint64_t store,
				 uint64_t segment_sequence, uint32_t segment, uint32_t own_page)
{
	if (memcmp(header->magic, header_magic, sizeof(header_magic)) != 0)
		return HEADER_NONE;
	if (header->checksum != CHECKSUM(header))
		return HEADER_DAMAGED;
	if (header->version != STRATA_VERSION || header->store != store)
		return HEADER_FOREIGN;
	if (header->count > HEADER_RECORDS)
		return HEADER_DAMAGED;
	if (header->sequence != segment_sequence || header->segment != segment ||
	    header->page != own_page)
		return HEADER_STALE;
	return HEADER_VALID;
}

/* What the checksum covers is what somebody wrote, not what makes sense. */
bool header_record(const struct header *header, uint32_t i, const struct geometry *geometry,
		   struct record *ret_record)
{
	const struct header_entry *const entry = &header->entries[i];

	if (!sequence_fits(entry->record.sequence) || entry->record.page <= header->page ||
	    !place_judge(geometry, entry->record.page, entry->record.pages, entry->ordinal))
		return false;
	*ret_record = (struct record){ .key = entry->record.key,
				       .sequence = entry->record.sequence,
				       .checksum = entry->record.payload_checksum,
				       .segment = header->segment,
				       .page = entry->record.page,
				       .pages = entry->record.pages,
				       .ordinal = entry->ordinal };
	return true;
}

bool foot_judge(const void *last_page, uint64_t store, const struct geometry *geometry,
		uint32_t segment, uint64_t sequence, uint32_t *ret_count)
{
	struct summary_foot foot;

	memcpy(&foot, (const uint8_t *)last_page + STRATA_PAGE - sizeof(foot), sizeof(foot));
#ifdef KVS_MUTANT_STALE_SUMMARY /* Planted bug: believes the summary of an earlier use. */
	sequence = foot.sequence;
#endif
	if (memcmp(foot.magic, foot_magic, sizeof(foot_magic)) != 0 ||
	    foot.checksum != CHECKSUM(&foot) || foot.version != STRATA_VERSION ||
	    foot.store != store || foot.segment != segment ||
	    foot.sequence != sequence ||
	    foot.count > geometry->records_max)
		return false;
	*ret_count = foot.count;
	return true;
}

static bool entries_fit(const struct summary_entry *entries, uint32_t count,
			const struct geometry *geometry)
{
	uint32_t next = STRATA_RECORD_PAGE, i;

	for (i = 0; i < count; i++) {
		if (entries[i].pages == 0)
			continue;
		if (entries[i].page < next || !sequence_fits(entries[i].sequence) ||
		    !place_judge(geometry, entries[i].page, entries[i].pages, count - 1))
			return false;
		next = entries[i].page + entries[i].pages;
	}
	return true;
}

bool summary_judge(const void *summary, uint32_t count, const struct geometry *geometry)
{
	struct summary_foot foot;

	memcpy(&foot, (const uint8_t *)summary + (size_t)summary_pages(count) * STRATA_PAGE -
			      sizeof(foot),
	       sizeof(foot));
	return foot.count == count &&
	       foot.entries_checksum == xxh3_64(summary, count * sizeof(struct summary_entry)) &&
	       entries_fit(summary, count, geometry);
}
