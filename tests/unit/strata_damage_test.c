/* SPDX-License-Identifier: Apache-2.0 */
/* A strata file whose bytes changed behind its back: never a wrong byte, and as little lost as can be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "named_block.h"
#include "quarry.h"

#define SEGMENTS 5u
#define COUNT 8u /* two segments, both sealed by the close */

static int setup(void **state)
{
	static struct quarry quarry;

	quarry_init(&quarry, SEGMENTS);
	quarry_open(&quarry);
	quarry_put_range(&quarry, 0, COUNT);
	quarry_close(&quarry);
	*state = &quarry;
	return 0;
}

static int teardown(void **state)
{
	quarry_fini(*state);
	return 0;
}

/* The one is gone, all others are as they were. */
static void expect_all_but(struct quarry *quarry, uint32_t lost)
{
	uint32_t i;

	for (i = 0; i < COUNT; i++) {
		assert_int_equal(quarry_get(quarry, i),
				 i == lost ? KVS_RESULT_MISSING : KVS_RESULT_DONE);
	}
}

static void a_wrong_payload_is_corrupt_then_missing(void **state)
{
	static const uint32_t places[] = { 0, 1, 4095, 4096, QUARRY_BLOCK - 1 };
	struct quarry *const  quarry = *state;
	size_t                i;

	for (i = 0; i < ARRAY_COUNT(places); i++) {
		struct quarry copy, second;

		quarry_crash(quarry, &copy);
		quarry_flip(&copy, quarry_payload_at(5) + places[i]);
		quarry_open(&copy);
		assert_int_equal(quarry_exists(&copy, 5), KVS_RESULT_DONE);
		assert_int_equal(quarry_get(&copy, 5), KVS_RESULT_CORRUPT);
		expect_all_but(&copy, 5);
		assert_int_equal(quarry_info(&copy).corrupt_objects, 1);
		/* It is marked at once: no later open offers it again. */
		quarry_crash(&copy, &second);
		quarry_open(&second);
		assert_int_equal(quarry_exists(&second, 5), KVS_RESULT_MISSING);
		assert_int_equal(quarry_info(&second).corrupt_objects, 0);
		quarry_fini(&second);
		quarry_put_range(&copy, 5, 6);
		quarry_get_range(&copy, 0, COUNT);
		quarry_fini(&copy);
	}
}

/* Whole, but each under the other's key. */
static void payloads_swapped_are_corrupt(void **state)
{
	struct quarry *const quarry = *state;
	static uint8_t       first[QUARRY_BLOCK], second[QUARRY_BLOCK];

	quarry_peek(quarry, quarry_payload_at(1), first, sizeof(first));
	quarry_peek(quarry, quarry_payload_at(6), second, sizeof(second));
	quarry_poke(quarry, quarry_payload_at(1), second, sizeof(second));
	quarry_poke(quarry, quarry_payload_at(6), first, sizeof(first));
	quarry_open(quarry);
	assert_int_equal(quarry_get(quarry, 1), KVS_RESULT_CORRUPT);
	assert_int_equal(quarry_get(quarry, 6), KVS_RESULT_CORRUPT);
	assert_int_equal(quarry_info(quarry).object_count, COUNT - 2);
}

/* The last bytes of the segment. */
static uint64_t foot_at(uint32_t segment)
{
	return quarry_segment_at(segment + 1) - sizeof(struct summary_foot);
}

/* Then the records speak for themselves. */
static void a_damaged_summary_costs_nothing(void **state)
{
	const uint64_t page = quarry_segment_at(1) - STRATA_PAGE;
	const uint64_t places[] = { page,
				    page + 57,
				    page + sizeof(struct summary_entry) * COUNT / 2 - 1,
				    foot_at(0),
				    foot_at(0) + 8,
				    foot_at(0) + 32,
				    foot_at(0) + 63 };
	struct quarry *const quarry = *state;
	size_t               i;

	for (i = 0; i < ARRAY_COUNT(places); i++) {
		struct quarry copy;

		quarry_crash(quarry, &copy);
		quarry_flip(&copy, places[i]);
		quarry_open(&copy);
		assert_int_equal(quarry_report(&copy).segments_unsealed, 1);
		quarry_get_range(&copy, 0, COUNT);
		quarry_reopen(&copy);
		assert_int_equal(quarry_report(&copy).segments_unsealed, 0);
		quarry_get_range(&copy, 0, COUNT);
		quarry_fini(&copy);
	}
}

/* The same while it is open: what is locked goes along, found by its headers. */
static void a_segment_is_cleaned_without_its_summary(void **state)
{
	const uint64_t       page = quarry_segment_at(1) - STRATA_PAGE;
	const uint64_t       places[] = { page + 57, foot_at(0) + 8, foot_at(0) + 32 };
	struct quarry *const quarry = *state;
	size_t               i;

	for (i = 0; i < ARRAY_COUNT(places); i++) {
		struct quarry copy;
		uint32_t      number;

		quarry_crash(quarry, &copy);
		quarry_open(&copy);
		assert_int_equal(quarry_lock(&copy, 0), KVS_RESULT_DONE);
		assert_int_equal(quarry_lock(&copy, 2), KVS_RESULT_DONE);
		quarry_flip(&copy, places[i]);
		for (number = 100; number < 100 + 3 * SEGMENTS * QUARRY_SLOTS; number++)
			(void)quarry_put(&copy, number);
		assert_true(quarry_info(&copy).moved_objects >= 2);
		assert_int_equal(quarry_info(&copy).corrupt_objects, 0);
		quarry_get_range(&copy, 0, 1);
		quarry_get_range(&copy, 2, 3);
		quarry_fini(&copy);
	}
}

/* Headers are for segments that have no summary, and for a walk that verifies. */
static bool see_damage(void *ctx, const struct strata_finding *finding)
{
	struct strata_finding *const last = ctx;

	if (finding->damage) {
		*last = *finding;
		last->key = NULL;
		if (finding->key)
			assert_int_equal(finding->key->offset, 5);
	}
	return true;
}

static void a_walk_finds_what_is_damaged(void **state)
{
	const struct {
		uint64_t    flip, offset, bytes;
		const char *damage;
	} rows[] = {
		{ quarry_payload_at(5) + 100, quarry_payload_at(5), QUARRY_BLOCK,
		  "its payload does not match its checksum" },
		{ quarry_header_at(5) + 100, quarry_header_at(5), 0, "a page of headers is damaged" },
		{ quarry_header_at(5), quarry_header_at(5), 0, "a page of headers is damaged" },
	};
	struct quarry *const quarry = *state;
	size_t               i;

	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		struct strata_finding found = { 0 };
		struct quarry         copy;

		quarry_crash(quarry, &copy);
		quarry_flip(&copy, rows[i].flip);
		quarry_open(&copy);
		assert_int_equal(strata_walk(copy.store, false, see_damage, &found), 0);
		assert_null(found.damage);
		assert_int_equal(strata_walk(copy.store, true, see_damage, &found), 0);
		assert_string_equal(found.damage, rows[i].damage);
		assert_int_equal(found.segment, 1);
		assert_int_equal(found.offset, rows[i].offset);
		assert_int_equal(found.bytes, rows[i].bytes);
		quarry_fini(&copy);
	}
}

/* Nobody can tell whose records they are without it; the other segments are untouched by that. */
static void a_damaged_head_loses_its_segment_only(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             i;

	quarry_flip(quarry, quarry_segment_at(0) + 24);
	quarry_open(quarry);
	assert_int_equal(quarry_report(quarry).damaged_structures, 1);
	for (i = 0; i < COUNT; i++) {
		assert_int_equal(quarry_get(quarry, i),
				 i < QUARRY_SLOTS ? KVS_RESULT_MISSING : KVS_RESULT_DONE);
	}
	quarry_put_range(quarry, 100, 100 + 2 * QUARRY_SLOTS);
	quarry_reopen(quarry);
	assert_int_equal(quarry_report(quarry).damaged_structures, 0);
	quarry_get_range(quarry, 100, 100 + 2 * QUARRY_SLOTS);
}

/* Of two copies written in turns the older one is whole: what only the newer one knew is lost. */
static void a_torn_tally_leaves_the_one_before(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             copy_number, found;

	quarry_open(quarry);
	assert_int_equal(quarry_remove(quarry, 0), KVS_RESULT_DONE);
	assert_int_equal(quarry_remove(quarry, 1), KVS_RESULT_DONE);
	quarry_close(quarry);
	quarry_open(quarry);
	assert_int_equal(quarry_get(quarry, 1), KVS_RESULT_MISSING);
	quarry_close(quarry);
	for (copy_number = 0, found = 0; copy_number < STRATA_TALLIES; copy_number++) {
		struct quarry copy;

		quarry_crash(quarry, &copy);
		quarry_flip(&copy, quarry_segment_at(0) +
					   page_offset(STRATA_TALLY_PAGE + copy_number) + 60);
		quarry_open(&copy);
		assert_int_equal(quarry_get(&copy, 0), KVS_RESULT_MISSING);
		found += quarry_get(&copy, 1) == KVS_RESULT_DONE;
		quarry_get_range(&copy, 2, COUNT);
		quarry_fini(&copy);
	}
	assert_int_equal(found, 1);
}

/* As far as there is a file, its objects are there. */
static void a_shortened_file_loses_what_was_cut(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             cut;

	for (cut = 0; cut <= 2 * COUNT; cut++) {
		const uint32_t kept = cut / 2;
		struct quarry  copy;
		uint32_t       i;

		/* At a page, and within a sector. */
		quarry_crash(quarry, &copy);
		assert_int_equal(truncate(copy.place.path,
					  (off_t)quarry_payload_at(kept) + cut % 2 * 100),
				 0);
		quarry_open(&copy);
		for (i = 0; i < COUNT; i++) {
			assert_int_equal(quarry_get(&copy, i),
					 i < kept ? KVS_RESULT_DONE : KVS_RESULT_MISSING);
		}
		for (i = kept; i < COUNT; i++)
			quarry_put_range(&copy, i, i + 1);
		quarry_reopen(&copy);
		quarry_get_range(&copy, 0, COUNT);
		quarry_fini(&copy);
	}
}

/* A record that is copied to another place says where it belongs. */
static void a_record_elsewhere_is_no_object(void **state)
{
	struct quarry *const quarry = *state;
	static uint8_t       record[QUARRY_BLOCK + STRATA_PAGE];

	quarry_open(quarry);
	assert_int_equal(quarry_remove(quarry, 2), KVS_RESULT_DONE);
	quarry_close(quarry);
	quarry_peek(quarry, quarry_header_at(2), record, sizeof(record));
	quarry_poke(quarry, quarry_header_at(7), record, sizeof(record));
	quarry_flip(quarry, foot_at(1));
	quarry_open(quarry);
	assert_int_equal(quarry_report(quarry).stale_records, 1);
	assert_int_equal(quarry_get(quarry, 2), KVS_RESULT_MISSING);
	assert_int_equal(quarry_get(quarry, 7), KVS_RESULT_MISSING);
	assert_int_equal(quarry_info(quarry).object_count, COUNT - 2);
}

/* What was damaged in a hot object is found when it is moved, and is not moved on. */
static void damage_is_not_moved(void **state)
{
	struct quarry *const quarry = *state;

	quarry_flip(quarry, quarry_payload_at(1) + 5000);
	quarry_open(quarry);
	assert_int_equal(quarry_exists(quarry, 0), KVS_RESULT_DONE);
	assert_int_equal(quarry_exists(quarry, 1), KVS_RESULT_DONE);
	quarry_put_range(quarry, 100, 100 + 4 * QUARRY_SLOTS);
	assert_int_equal(quarry_info(quarry).corrupt_objects, 1);
	assert_int_equal(quarry_get(quarry, 0), KVS_RESULT_DONE);
	assert_int_equal(quarry_get(quarry, 1), KVS_RESULT_MISSING);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_wrong_payload_is_corrupt_then_missing),
		TEST(payloads_swapped_are_corrupt),
		TEST(a_damaged_summary_costs_nothing),
		TEST(a_segment_is_cleaned_without_its_summary),
		TEST(a_walk_finds_what_is_damaged),
		TEST(a_damaged_head_loses_its_segment_only),
		TEST(a_torn_tally_leaves_the_one_before),
		TEST(a_shortened_file_loses_what_was_cut),
		TEST(a_record_elsewhere_is_no_object),
		TEST(damage_is_not_moved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
