/* SPDX-License-Identifier: Apache-2.0 */
/* What lies on disk in a strata file: each judge takes what was made for its place, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/digest.h"
#include "base/err.h"
#include "named_block.h"
#include "strata/format.h"

#define MIB (UINT64_C(1) << 20)
#define STORE UINT64_C(0x1234567890abcdef)
#define SEQUENCE ((UINT64_C(7) << STRATA_EPOCH_SHIFT) + 99)
#define SEGMENT 5u

static struct geometry geometry_of(uint64_t capacity, uint64_t segment, uint64_t block)
{
	struct geometry  geometry = { 0 };
	struct kvs_error err = { 0 };

	if (geometry_make(capacity, segment, block, &geometry, &err) < 0)
		fail_msg("%s", err.message);
	return geometry;
}

static const struct record record = { .sequence = SEQUENCE + 4, .checksum = 0xabcdef,
				      .segment = SEGMENT, .page = 12, .pages = 4, .ordinal = 2 };

/* --- geometry --------------------------------------------------------------------------------- */

static void segments_fit_the_capacity(void **state)
{
	static const uint64_t blocks[] = { 4096, 8192, 65536, MIB, 64 * MIB };
	uint64_t              capacity;
	size_t                i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(blocks); i++) {
		const uint64_t least = 2 * 4096 + 4 * (blocks[i] + 5 * 4096);

		assert_int_equal(geometry_make(least - 1, 0, blocks[i], &(struct geometry){ 0 }, NULL),
				 KVS_E_INVALID);
		for (capacity = least; capacity <= STRATA_CAPACITY_MAX; capacity += capacity / 3 + 1) {
			const struct geometry geometry = geometry_of(capacity, 0, blocks[i]);
			const uint64_t        bytes = geometry_file_bytes(&geometry);

			assert_int_equal(geometry.capacity_bytes, capacity);
			assert_true(geometry.segment_count >= STRATA_SEGMENTS_MIN);
			assert_true(bytes <= capacity && capacity - bytes < geometry.segment_bytes);
			assert_int_equal(geometry.segment_bytes % STRATA_PAGE, 0);
			assert_int_equal(geometry.segment_pages,
					 geometry.segment_bytes / STRATA_PAGE);
			/* One block, with all that belongs to it. */
			assert_true(geometry.segment_bytes >= blocks[i] + 5 * 4096);
			assert_in_range(geometry.records_max, 1, STRATA_RECORDS_MAX);
		}
	}
	/* Where there is room, so many that what is cleaned at once is little. */
	assert_true(geometry_of(1024 * MIB, 0, 65536).segment_count >= 31);
	assert_true(geometry_of(STRATA_CAPACITY_MAX, 0, 65536).segment_bytes >= 32 * MIB);
}

static uint32_t pages_of(uint32_t count)
{
	return STRATA_RECORD_PAGE + count + (count + HEADER_RECORDS - 1) / HEADER_RECORDS +
	       summary_pages(count);
}

/* The records of the smallest kind, their headers and summary fit, and not one more does. */
static void a_segment_holds_as_many_records_as_it_says(void **state)
{
	uint32_t pages;

	(void)state;
	for (pages = 6; pages < 3000; pages++) {
		const uint64_t        bytes = page_offset(pages);
		const struct geometry geometry = geometry_of(8192 + 4 * bytes, bytes, 4096);
		const uint32_t        count = geometry.records_max;

		assert_true(pages_of(count) <= pages);
		assert_true(pages_of(count + 1) > pages);
	}
	assert_int_equal(geometry_of(1024 * 1024 * MIB, 1024 * MIB, 4096).records_max,
			 STRATA_RECORDS_MAX);
}

static void sizes_that_cannot_be_are_refused(void **state)
{
	static const struct {
		uint64_t    capacity, segment, block;
		const char *message;
	} bad[] = {
		{ 1024 * MIB, 84 * 1024 - 4096, 65536, "store.segment: 80 KiB" },
		{ 1024 * MIB, 84 * 1024 + 1, 65536, "store.segment: 84.00 KiB" },
		{ UINT64_MAX, (UINT64_C(1) << 40) + 4096, 65536, "store.segment: 1.00 TiB" },
		{ UINT64_MAX, 0, 65536, "store.capacity: 16777216.00 TiB is more than 16 TiB" },
		{ STRATA_CAPACITY_MAX + 1, 0, 65536, "store.capacity: 16.00 TiB is more than 16 TiB" },
		{ 0, 0, 65536, "store.capacity: 0 bytes are too few" },
		{ 0, MIB, 65536, "store.capacity: 0 bytes are too few" },
		{ 8192, 0, 4096, "store.capacity: 8192 bytes are too few" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(bad); i++) {
		struct geometry  geometry = { .segment_count = 77 };
		struct kvs_error err = { 0 };

		assert_int_equal(geometry_make(bad[i].capacity, bad[i].segment, bad[i].block,
					       &geometry, &err),
				 KVS_E_INVALID);
		if (strncmp(err.message, bad[i].message, strlen(bad[i].message)) != 0)
			fail_msg("%zu: %s", i, err.message);
		assert_int_equal(geometry.segment_count, 77);
	}
}

/* --- each byte counts ------------------------------------------------------------------------- */

typedef bool is_taken(const uint8_t *bytes);

/* Whichever bit of its bytes is another. */
static void expect_all_bits_to_count(uint8_t *bytes, size_t from, size_t to, is_taken *taken)
{
	size_t at;

	assert_true(taken(bytes));
	for (at = from; at < to; at++) {
		uint8_t bit;

		/* All bits of each byte for the first struct's worth, then one of each. */
		for (bit = 1; bit != 0; bit = (uint8_t)(at < 256 || at + 64 >= to ? bit << 1 : 0)) {
			bytes[at] ^= bit;
			if (taken(bytes))
				fail_msg("byte %zu, bit 0x%x", at, bit);
			bytes[at] ^= bit;
		}
	}
	assert_true(taken(bytes));
}

static _Alignas(4096) uint8_t page[4 * STRATA_PAGE];

static struct superblock superblock_of(uint64_t capacity, uint64_t segment)
{
	const struct geometry geometry = geometry_of(capacity, segment, 65536);
	struct superblock     superblock;

	memset(&superblock, 0, sizeof(superblock));
	superblock.capacity_bytes = geometry.capacity_bytes;
	superblock.segment_bytes = geometry.segment_bytes;
	superblock.segment_count = geometry.segment_count;
	superblock.epoch = 3;
	superblock.update = 9;
	memset(superblock.id, 0x77, sizeof(superblock.id));
	superblock_seal(&superblock);
	return superblock;
}

static bool superblock_is_taken(const uint8_t *bytes)
{
	struct superblock superblock;
	struct geometry   geometry;

	memcpy(&superblock, bytes, sizeof(superblock));
	return superblock_judge(&superblock, &geometry) == SUPERBLOCK_VALID;
}

static void every_byte_of_a_superblock_counts(void **state)
{
	struct superblock superblock = superblock_of(64 * MIB, 0);
	struct geometry   geometry;

	(void)state;
	memcpy(page, &superblock, sizeof(superblock));
	expect_all_bits_to_count(page, 0, STRATA_PAGE, superblock_is_taken);
	assert_int_equal(superblock_judge(&superblock, &geometry), SUPERBLOCK_VALID);
	assert_int_equal(geometry.segment_count, superblock.segment_count);
	superblock.magic[7] ^= 1;
	assert_int_equal(superblock_judge(&superblock, &geometry), SUPERBLOCK_FOREIGN);
	superblock.magic[7] ^= 1;
	superblock.version++;
	assert_int_equal(superblock_judge(&superblock, &geometry), SUPERBLOCK_VERSION);
	superblock.version--;
	superblock.update++;
	assert_int_equal(superblock_judge(&superblock, &geometry), SUPERBLOCK_DAMAGED);
}

static void seal_as_it_is(struct superblock *superblock)
{
	superblock->checksum = xxh3_64(superblock, offsetof(struct superblock, checksum));
}

/* Its checksum is right, and it makes no sense: who wrote it does not matter. */
static void a_superblock_without_sense_is_damaged(void **state)
{
	const struct superblock whole = superblock_of(64 * MIB, 2 * MIB);
	struct superblock       bad[8];
	struct geometry         geometry = { .segment_count = 77 };
	size_t                  i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(bad); i++)
		bad[i] = whole;
	bad[0].page_bytes = 512;
	bad[1].segment_bytes = 0;
	bad[2].segment_bytes = 2 * MIB + 1;
	bad[3].segment_count++;
	bad[4].segment_count = 0;
	bad[5].capacity_bytes = STRATA_CAPACITY_MAX + 1;
	bad[6].capacity_bytes = 0;
	bad[7].epoch = UINT64_C(1) << (64 - STRATA_EPOCH_SHIFT);
	for (i = 0; i < ARRAY_COUNT(bad); i++) {
		seal_as_it_is(&bad[i]);
		if (superblock_judge(&bad[i], &geometry) != SUPERBLOCK_DAMAGED)
			fail_msg("%zu", i);
	}
}

static bool head_is_taken(const uint8_t *bytes)
{
	struct segment_head head;
	uint64_t            sequence = 0;

	memcpy(&head, bytes, sizeof(head));
	return head_judge(&head, STORE, SEGMENT, &sequence) == HEAD_VALID && sequence == SEQUENCE;
}

static void every_byte_of_a_head_counts(void **state)
{
	struct segment_head head;
	uint64_t            sequence = 1;

	(void)state;
	head_make(STORE, SEGMENT, SEQUENCE, &head);
	memcpy(page, &head, sizeof(head));
	expect_all_bits_to_count(page, 0, STRATA_PAGE, head_is_taken);
	assert_int_equal(head_judge(&head, STORE + 1, SEGMENT, &sequence), HEAD_NONE);
	assert_int_equal(head_judge(&head, STORE, SEGMENT + 1, &sequence), HEAD_NONE);
	head.magic[0] ^= 1;
	assert_int_equal(head_judge(&head, STORE, SEGMENT, &sequence), HEAD_NONE);
	head.magic[0] ^= 1;
	head.sequence ^= 1;
	assert_int_equal(head_judge(&head, STORE, SEGMENT, &sequence), HEAD_DAMAGED);
	assert_int_equal(sequence, 1);
}

static bool tally_is_taken(const uint8_t *bytes)
{
	struct tally tally;

	memcpy(&tally, bytes, sizeof(tally));
	return tally_judge(&tally, STORE, SEGMENT, SEQUENCE);
}

static void every_byte_of_a_tally_counts(void **state)
{
	struct tally tally = { .segment = SEGMENT, .store = STORE, .sequence = SEQUENCE,
			       .update = 3, .dead = { [0] = 5, [TALLY_WORDS - 1] = 9 } };

	(void)state;
	tally_seal(&tally);
	memcpy(page, &tally, sizeof(tally));
	expect_all_bits_to_count(page, 0, STRATA_PAGE, tally_is_taken);
	assert_false(tally_judge(&tally, STORE + 1, SEGMENT, SEQUENCE));
	assert_false(tally_judge(&tally, STORE, SEGMENT + 1, SEQUENCE));
	assert_false(tally_judge(&tally, STORE, SEGMENT, SEQUENCE + 1));
}

/* --- headers ---------------------------------------------------------------------------------- */

#define OWN_PAGE 11u

static struct header *make_headers(uint32_t count)
{
	struct header *const header = (struct header *)page;
	struct record        own = record;
	uint32_t             i;

	header_begin(STORE, SEGMENT, SEQUENCE, OWN_PAGE, header);
	for (i = 0; i < count; i++) {
		own.key = key_of(77 + i);
		header_add(header, &own);
		own.page += own.pages;
		own.ordinal++;
		own.sequence++;
	}
	header_seal(header);
	return header;
}

static bool header_is_taken(const uint8_t *bytes)
{
	return header_judge((const struct header *)bytes, STORE, SEQUENCE, SEGMENT, OWN_PAGE) ==
	       HEADER_VALID;
}

static void every_byte_of_headers_counts(void **state)
{
	const struct geometry geometry = geometry_of(64 * MIB, MIB, 65536);
	const struct kvs_key  key = key_of(77 + HEADER_RECORDS - 1);
	struct header        *header;
	struct record         found;

	(void)state;
	memset(page, 0xee, sizeof(page));
	header = make_headers(HEADER_RECORDS);
	expect_all_bits_to_count(page, 0, STRATA_PAGE, header_is_taken);
	assert_int_equal(page[STRATA_PAGE], 0xee);
	assert_int_equal(header->count, HEADER_RECORDS);
	assert_true(header_record(header, HEADER_RECORDS - 1, &geometry, &found));
	assert_memory_equal(&found.key, &key, sizeof(key));
	assert_int_equal(found.sequence, record.sequence + HEADER_RECORDS - 1);
	assert_int_equal(found.checksum, record.checksum);
	assert_int_equal(found.page, record.page + (HEADER_RECORDS - 1) * record.pages);
	assert_int_equal(found.pages, record.pages);
	assert_int_equal(found.ordinal, record.ordinal + HEADER_RECORDS - 1);
	assert_int_equal(found.segment, SEGMENT);
	page[0] ^= 1;
	assert_int_equal(header_judge(header, STORE, SEQUENCE, SEGMENT, OWN_PAGE), HEADER_NONE);
	page[0] ^= 1;
	page[100] ^= 1;
	assert_int_equal(header_judge(header, STORE, SEQUENCE, SEGMENT, OWN_PAGE), HEADER_DAMAGED);
}

static void headers_of_elsewhere_are_told_apart(void **state)
{
	const struct header *const header = make_headers(1);

	(void)state;
	assert_int_equal(header_judge(header, STORE + 1, SEQUENCE, SEGMENT, OWN_PAGE),
			 HEADER_FOREIGN);
	assert_int_equal(header_judge(header, STORE, SEQUENCE + 1, SEGMENT, OWN_PAGE), HEADER_STALE);
	assert_int_equal(header_judge(header, STORE, SEQUENCE, SEGMENT + 1, OWN_PAGE), HEADER_STALE);
	assert_int_equal(header_judge(header, STORE, SEQUENCE, SEGMENT, OWN_PAGE + 1), HEADER_STALE);
}

/* The checksum is right, and it names a place that cannot be. */
static void headers_without_sense_name_no_record(void **state)
{
	const struct geometry geometry = geometry_of(64 * MIB, MIB, 65536);
	const struct {
		uint32_t page, pages, ordinal;
	} bad[] = {
		{ 12, 0, 2 },
		{ 2, 4, 2 },
		{ 0, 4, 2 },
		{ OWN_PAGE, 4, 2 },
		{ UINT32_MAX, 4, 2 },
		{ geometry.segment_pages - 4, 4, 2 },
		{ 12, geometry.segment_pages, 2 },
		{ 12, UINT32_MAX, 2 },
		{ 12, 4, geometry.records_max },
		{ 12, 4, UINT32_MAX },
	};
	struct header *header = make_headers(1);
	struct record  found;
	size_t         i;

	(void)state;
	assert_true(header_record(header, 0, &geometry, &found));
	for (i = 0; i < ARRAY_COUNT(bad); i++) {
		header->entries[0].record.page = bad[i].page;
		header->entries[0].record.pages = bad[i].pages;
		header->entries[0].ordinal = bad[i].ordinal;
		header_seal(header);
		if (header_record(header, 0, &geometry, &found))
			fail_msg("%zu", i);
	}
	header->count = HEADER_RECORDS + 1;
	header_seal(header);
	assert_int_equal(header_judge(header, STORE, SEQUENCE, SEGMENT, OWN_PAGE), HEADER_DAMAGED);
}

/* --- summaries -------------------------------------------------------------------------------- */

#define ENTRIES 60u

static const struct geometry *summary_geometry(void)
{
	static struct geometry geometry;

	geometry = geometry_of(64 * MIB, MIB, 65536);
	return &geometry;
}

static bool summary_is_taken(const uint8_t *bytes)
{
	uint32_t count = 0;

	return foot_judge(bytes + page_offset(summary_pages(ENTRIES) - 1), STORE, summary_geometry(),
			  SEGMENT, SEQUENCE, &count) &&
	       count == ENTRIES && summary_judge(bytes, count, summary_geometry());
}

static void every_byte_of_a_summary_counts(void **state)
{
	const size_t                pages = summary_pages(ENTRIES);
	const size_t                used = ENTRIES * sizeof(struct summary_entry);
	const size_t                foot = pages * STRATA_PAGE - sizeof(struct summary_foot);
	struct summary_entry *const entries = (struct summary_entry *)page;
	uint32_t                    i, count;

	(void)state;
	assert_int_equal(pages, 2);
	memset(page, 0xee, sizeof(page));
	for (i = 0; i < ENTRIES; i++) {
		entries[i] = (struct summary_entry){ .key = key_of(i), .page = 4 + 2 * i, .pages = 1,
						     .payload_checksum = i, .sequence = SEQUENCE + i };
	}
	summary_seal(STORE, SEGMENT, SEQUENCE, ENTRIES, page);
	expect_all_bits_to_count(page, 0, used, summary_is_taken);
	expect_all_bits_to_count(page, foot, pages * STRATA_PAGE, summary_is_taken);
	/* What lies between is no data, and no leak of another's memory either. */
	for (i = (uint32_t)used; i < foot; i++)
		assert_int_equal(page[i], 0);
	assert_int_equal(page[pages * STRATA_PAGE], 0xee);
	assert_false(foot_judge(page + STRATA_PAGE, STORE + 1, summary_geometry(), SEGMENT, SEQUENCE,
				&count));
	assert_false(foot_judge(page + STRATA_PAGE, STORE, summary_geometry(), SEGMENT + 1, SEQUENCE,
				&count));
	assert_false(foot_judge(page + STRATA_PAGE, STORE, summary_geometry(), SEGMENT, SEQUENCE + 1,
				&count));
	assert_false(summary_judge(page, ENTRIES - 1, summary_geometry()));
}

static void a_summary_of_more_than_fits_is_none(void **state)
{
	const struct geometry geometry = geometry_of(8192 + 4 * 28672, 28672, 8192);
	uint32_t              count = 99;

	(void)state;
	memset(page, 0, sizeof(page));
	summary_seal(STORE, SEGMENT, SEQUENCE, 0, page);
	assert_true(foot_judge(page, STORE, &geometry, SEGMENT, SEQUENCE, &count));
	assert_int_equal(count, 0);
	assert_true(summary_judge(page, 0, &geometry));
	summary_seal(STORE, SEGMENT, SEQUENCE, geometry.records_max + 1, page);
	assert_false(foot_judge(page, STORE, &geometry, SEGMENT, SEQUENCE, &count));
}

static bool entries_are_taken(const struct geometry *geometry, const struct summary_entry *entries,
			      uint32_t count)
{
	memset(page, 0, sizeof(page));
	memcpy(page, entries, count * sizeof(*entries));
	summary_seal(STORE, SEGMENT, SEQUENCE, count, page);
	return summary_judge(page, count, geometry);
}

static void an_entry_names_a_place_that_can_be(void **state)
{
	const struct geometry geometry = geometry_of(64 * MIB, MIB, 65536);
	const uint32_t        end = geometry.segment_pages;
	const struct {
		uint32_t page, pages;
		bool     good;
	} rows[] = {
		{ 4, 1, true },        { 4, 16, true },          { end - 2, 1, true },
		{ end - 1, 1, false }, { 3, 1, false },          { 0, 1, false },
		{ 4, end, false },     { 4, UINT32_MAX, false }, { UINT32_MAX, 1, false },
		{ 4, end - 5, true },  { 4, end - 4, false },    { 0, 0, true /* a hole */ },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		const struct summary_entry entry = { .page = rows[i].page, .pages = rows[i].pages };

		if (entries_are_taken(&geometry, &entry, 1) != rows[i].good)
			fail_msg("%zu", i);
	}
}

/* As they were placed: what counts in a segment could otherwise be more than it holds. */
static void entries_lie_one_behind_the_other(void **state)
{
	const struct geometry geometry = geometry_of(64 * MIB, MIB, 65536);
	struct summary_entry  entries[3] = { { .page = 4, .pages = 2 },
					     { .page = 0, .pages = 0 },
					     { .page = 6, .pages = 1 } };

	(void)state;
	assert_true(entries_are_taken(&geometry, entries, 3));
	entries[2].page = 5;
	assert_false(entries_are_taken(&geometry, entries, 3));
	entries[2].page = 4;
	assert_false(entries_are_taken(&geometry, entries, 3));
	entries[2] = (struct summary_entry){ .page = 6, .pages = 1, .sequence = UINT64_MAX };
	assert_false(entries_are_taken(&geometry, entries, 3));
}

/* --- prints and checksums --------------------------------------------------------------------- */

static void keys_and_stores_are_told_apart(void **state)
{
	const uint8_t        one[16] = { 1 }, other[16] = { 2 };
	const struct kvs_key a = key_of(1);
	struct kvs_key       b = a;

	(void)state;
	b.group ^= 1;
	memset(page, 7, sizeof(page));
	assert_true(store_hash(one) != store_hash(other));
	assert_true(key_print(1, &a) != key_print(2, &a));
	assert_true(key_print(1, &a) != key_print(1, &b));
	assert_true(payload_checksum(&a, page, 4096) != payload_checksum(&b, page, 4096));
	/* A longer payload that begins alike, and one that is all alike. */
	assert_true(payload_checksum(&a, page, 4096) != payload_checksum(&a, page, 8192));
	page[4095] ^= 1;
	assert_true(payload_checksum(&a, page, 4096) != payload_checksum(&a, page + 4096, 4096));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_fit_the_capacity),
		cmocka_unit_test(a_segment_holds_as_many_records_as_it_says),
		cmocka_unit_test(sizes_that_cannot_be_are_refused),
		cmocka_unit_test(every_byte_of_a_superblock_counts),
		cmocka_unit_test(a_superblock_without_sense_is_damaged),
		cmocka_unit_test(every_byte_of_a_head_counts),
		cmocka_unit_test(every_byte_of_a_tally_counts),
		cmocka_unit_test(every_byte_of_headers_counts),
		cmocka_unit_test(headers_of_elsewhere_are_told_apart),
		cmocka_unit_test(headers_without_sense_name_no_record),
		cmocka_unit_test(every_byte_of_a_summary_counts),
		cmocka_unit_test(a_summary_of_more_than_fits_is_none),
		cmocka_unit_test(an_entry_names_a_place_that_can_be),
		cmocka_unit_test(entries_lie_one_behind_the_other),
		cmocka_unit_test(keys_and_stores_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
