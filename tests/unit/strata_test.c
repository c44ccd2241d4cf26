/* SPDX-License-Identifier: Apache-2.0 */
/* The strata file between two opens: what lasts, in which order, and what a crash leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "named_block.h"
#include "os/os.h"
#include "quarry.h"

/* Of the segments one is kept for cleaning. */
#define SEGMENTS 6u
#define BLOCKS ((SEGMENTS - 1) * QUARRY_SLOTS)

static int setup(void **state)
{
	static struct quarry quarry;

	quarry_init(&quarry, SEGMENTS);
	quarry_open(&quarry);
	*state = &quarry;
	return 0;
}

static int teardown(void **state)
{
	quarry_fini(*state);
	return 0;
}

/* --- a close ---------------------------------------------------------------------------------- */

static void A8_3_objects_of_every_size_outlive_a_close(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             i;

	for (i = 0; i < BLOCKS; i++) {
		assert_int_equal(quarry_put_bytes(quarry, i, i % 2 ? 4096 : QUARRY_BLOCK),
				 KVS_RESULT_DONE);
	}
	quarry_reopen(quarry);
	assert_int_equal(quarry_report(quarry).segments_unsealed, 0);
	assert_int_equal(quarry_info(quarry).object_count, BLOCKS);
	for (i = 0; i < BLOCKS; i++) {
		assert_int_equal(quarry_get_bytes(quarry, i, i % 2 ? 4096 : QUARRY_BLOCK),
				 KVS_RESULT_DONE);
	}
	assert_int_equal(quarry_info(quarry).corrupt_objects, 0);
}

/* What was put first goes first, whichever open it was put by. */
static void the_order_of_puts_outlives_a_close(void **state)
{
	struct quarry *const quarry = *state;

	quarry_put_range(quarry, 0, 8);
	quarry_reopen(quarry);
	quarry_put_range(quarry, 8, BLOCKS);
	assert_int_equal(quarry_info(quarry).evicted_objects, 0);
	quarry_reopen(quarry);
	quarry_put_range(quarry, BLOCKS, BLOCKS + QUARRY_SLOTS);
	assert_int_equal(quarry_count(quarry, 0, QUARRY_SLOTS), 0);
	assert_int_equal(quarry_count(quarry, QUARRY_SLOTS, BLOCKS + QUARRY_SLOTS), BLOCKS);
	quarry_reopen(quarry);
	quarry_get_range(quarry, QUARRY_SLOTS, BLOCKS + QUARRY_SLOTS);
}

static void removed_stays_removed(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             i;

	quarry_put_range(quarry, 0, 8);
	for (i = 1; i < 8; i += 2)
		assert_int_equal(quarry_remove(quarry, i), KVS_RESULT_DONE);
	quarry_reopen(quarry);
	for (i = 0; i < 8; i++)
		assert_int_equal(quarry_get(quarry, i), i % 2 ? KVS_RESULT_MISSING : KVS_RESULT_DONE);
	assert_int_equal(quarry_put(quarry, 1), KVS_RESULT_DONE);
	quarry_reopen(quarry);
	assert_int_equal(quarry_get(quarry, 1), KVS_RESULT_DONE);
	assert_int_equal(quarry_info(quarry).object_count, 5);
}

static void purged_stays_purged(void **state)
{
	struct quarry *const       quarry = *state;
	const struct kvs_namespace space = key_of(0).space;
	uint64_t                   count = 0;

	quarry_put_range(quarry, 0, 7);
	assert_int_equal(strata_purge(quarry->store, &space, &count), 0);
	assert_int_equal(count, 7);
	quarry_reopen(quarry);
	assert_int_equal(quarry_info(quarry).object_count, 0);
	quarry_put_range(quarry, 0, 7);
	quarry_get_range(quarry, 0, 7);
}

/* Moved by cleaning, and then the only copy there is. */
static void what_was_moved_outlives_a_close(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             i;

	quarry_put_range(quarry, 0, BLOCKS);
	for (i = 0; i < 3 * BLOCKS; i++) {
		assert_int_equal(quarry_get(quarry, 1), KVS_RESULT_DONE);
		assert_int_equal(quarry_put(quarry, BLOCKS + i), KVS_RESULT_DONE);
	}
	assert_true(quarry_info(quarry).moved_objects > 0);
	quarry_reopen(quarry);
	assert_int_equal(quarry_get(quarry, 1), KVS_RESULT_DONE);
}

/* --- a crash ---------------------------------------------------------------------------------- */

static void a_crash_takes_nothing_that_was_acknowledged(void **state)
{
	struct quarry *const quarry = *state;
	struct quarry        copy;
	uint32_t             i;

	for (i = 0; i < 11; i++) {
		quarry_put_range(quarry, i, i + 1);
		quarry_crash(quarry, &copy);
		quarry_open(&copy);
		assert_int_equal(quarry_report(&copy).segments_unsealed, 1);
		assert_int_equal(quarry_report(&copy).torn_records, 0);
		assert_int_equal(quarry_info(&copy).object_count, i + 1);
		quarry_get_range(&copy, 0, i + 1);
		quarry_fini(&copy);
	}
	assert_int_equal(quarry_remove(quarry, 3), KVS_RESULT_DONE);
	assert_int_equal(quarry_remove(quarry, 9), KVS_RESULT_DONE);
	quarry_crash(quarry, &copy);
	quarry_open(&copy);
	for (i = 0; i < 11; i++) {
		assert_int_equal(quarry_get(&copy, i),
				 i == 3 || i == 9 ? KVS_RESULT_MISSING : KVS_RESULT_DONE);
	}
	quarry_fini(&copy);
}

/* Also when the recovered store crashes before anything else is written. */
static void recovery_seals_what_it_read_whole(void **state)
{
	struct quarry *const quarry = *state;
	struct quarry        copy, second;

	quarry_put_range(quarry, 0, 6);
	quarry_crash(quarry, &copy);
	quarry_open(&copy);
	assert_int_equal(quarry_report(&copy).segments_unsealed, 1);
	quarry_crash(&copy, &second);
	quarry_open(&second);
	assert_int_equal(quarry_report(&second).segments_unsealed, 0);
	assert_int_equal(quarry_info(&second).object_count, 6);
	quarry_get_range(&second, 0, 6);
	quarry_fini(&second);
	quarry_fini(&copy);
}

/* Both streams have an open segment then: what callers put, and what cleaning moves. */
static void a_crash_while_cleaning_goes_on_takes_nothing(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             i, at;

	for (i = 0; i < 3 * BLOCKS; i++) {
		struct quarry copy;

		quarry_put_range(quarry, i, i + 1);
		if (i % 3 == 0)
			assert_int_equal(quarry_get(quarry, i), KVS_RESULT_DONE);
		quarry_crash(quarry, &copy);
		quarry_open(&copy);
		assert_in_range(quarry_report(&copy).segments_unsealed, 1, 2);
		assert_int_equal(quarry_report(&copy).torn_records, 0);
		for (at = 0; at <= i; at++) {
			if (quarry_exists(quarry, at) == KVS_RESULT_DONE)
				assert_int_equal(quarry_get(&copy, at), KVS_RESULT_DONE);
		}
		quarry_fini(&copy);
	}
	assert_true(quarry_info(quarry).moved_objects > 0);
}

/* In a segment that was used before, its earlier records still lie behind the new ones. */
static void what_a_segment_held_before_is_stale(void **state)
{
	struct quarry *const quarry = *state;
	struct quarry        copy;

	quarry_put_range(quarry, 0, 3 * BLOCKS + 1);
	quarry_crash(quarry, &copy);
	quarry_open(&copy);
	assert_int_equal(quarry_report(&copy).stale_records, QUARRY_SLOTS - 1);
	assert_int_equal(quarry_report(&copy).torn_records, 0);
	assert_int_equal(quarry_report(&copy).foreign_records, 0);
	assert_int_equal(quarry_info(&copy).object_count, quarry_info(quarry).object_count);
	assert_int_equal(quarry_get(&copy, 3 * BLOCKS), KVS_RESULT_DONE);
	quarry_fini(&copy);
}

static void records_of_another_store_are_foreign(void **state)
{
	struct quarry *const quarry = *state;
	struct quarry        other, copy;
	static uint8_t       record[QUARRY_BLOCK + STRATA_PAGE];

	quarry_init(&other, SEGMENTS);
	quarry_open(&other);
	quarry_put_range(&other, 0, 4);
	quarry_peek(&other, quarry_header_at(3), record, sizeof(record));
	quarry_fini(&other);

	quarry_put_range(quarry, 10, 12);
	quarry_crash(quarry, &copy);
	quarry_poke(&copy, quarry_header_at(3), record, sizeof(record));
	quarry_open(&copy);
	assert_int_equal(quarry_report(&copy).foreign_records, 1);
	assert_int_equal(quarry_info(&copy).object_count, 2);
	assert_int_equal(quarry_get(&copy, 3), KVS_RESULT_MISSING);
	quarry_fini(&copy);
}

/* A payload that did not reach the disk whole, and a header that did not; the others are there. */
static void a_torn_record_is_no_object(void **state)
{
	const uint64_t payload = quarry_payload_at(5), header = quarry_header_at(5);
	const uint64_t places[] = { payload, payload + 4095, payload + 4096,
				    payload + QUARRY_BLOCK - 1, header + 20, header + 4095 };
	struct quarry *const quarry = *state;
	size_t               i;

	quarry_put_range(quarry, 0, 7);
	for (i = 0; i < ARRAY_COUNT(places); i++) {
		struct quarry copy;

		quarry_crash(quarry, &copy);
		quarry_flip(&copy, places[i]);
		quarry_open(&copy);
		assert_int_equal(quarry_report(&copy).torn_records, 1);
		assert_int_equal(quarry_info(&copy).object_count, 6);
		assert_int_equal(quarry_get(&copy, 5), KVS_RESULT_MISSING);
		quarry_get_range(&copy, 0, 5);
		quarry_get_range(&copy, 6, 7);
		/* It is not counted again, and its key is free. */
		quarry_reopen(&copy);
		assert_int_equal(quarry_report(&copy).torn_records, 0);
		quarry_put_range(&copy, 5, 6);
		quarry_reopen(&copy);
		quarry_get_range(&copy, 0, 7);
		quarry_fini(&copy);
	}
}

/* Numbers of an open that crashed are never given out again, whichever of them reached the disk. */
static void each_open_has_numbers_of_its_own(void **state)
{
	struct quarry *const         quarry = *state;
	struct strata_segment_report first = { 0 }, second = { 0 };
	struct quarry                copy;

	quarry_put_range(quarry, 0, 1);
	assert_true(strata_inspect_segment(quarry->store, 0, &first));
	assert_false(strata_inspect_segment(quarry->store, SEGMENTS, &first));
	quarry_crash(quarry, &copy);
	quarry_open(&copy);
	assert_int_equal(quarry_report(&copy).epoch, quarry_report(quarry).epoch + 1);
	quarry_put_range(&copy, 1, 2);
	assert_true(strata_inspect_segment(copy.store, 1, &second));
	assert_string_equal(second.state, "open");
	assert_int_equal(first.sequence >> STRATA_EPOCH_SHIFT, quarry_report(quarry).epoch);
	assert_int_equal(second.sequence >> STRATA_EPOCH_SHIFT, quarry_report(&copy).epoch);
	quarry_fini(&copy);
}

/* --- the dead stay dead ----------------------------------------------------------------------- */

/*
 * Evicted with one segment, put again into another, removed, and that segment used anew: the first
 * record may still lie there, and nothing that lies elsewhere speaks against it.
 */
static void evicted_put_and_removed_never_comes_back(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             i;

	quarry_put_range(quarry, 0, BLOCKS);
	for (i = 0; i < 3 * BLOCKS; i++) {
		struct quarry copy;

		assert_int_equal(quarry_put(quarry, 100 + i), KVS_RESULT_DONE);
		if (quarry_exists(quarry, 0) == KVS_RESULT_MISSING) {
			assert_int_equal(quarry_put(quarry, 0), KVS_RESULT_DONE);
			assert_int_equal(quarry_remove(quarry, 0), KVS_RESULT_DONE);
		} else {
			continue;
		}
		quarry_crash(quarry, &copy);
		quarry_open(&copy);
		assert_int_equal(quarry_get(&copy, 0), KVS_RESULT_MISSING);
		quarry_reopen(&copy);
		assert_int_equal(quarry_get(&copy, 0), KVS_RESULT_MISSING);
		quarry_fini(&copy);
	}
}

/* The same at random, with crashes at any time: what was removed last is there in no copy. */
static void removals_at_random_last(void **state)
{
	struct quarry *const quarry = *state;
	bool                 removed[40] = { false };
	struct prng          prng;
	uint32_t             step, i;

	prng_seed(&prng, 7);
	for (step = 0; step < 1500; step++) {
		const uint32_t number = (uint32_t)prng_below(&prng, ARRAY_COUNT(removed));
		struct quarry  copy;

		if (prng_chance(&prng, 2, 3)) {
			if (quarry_put(quarry, number) == KVS_RESULT_DONE)
				removed[number] = false;
		} else if (quarry_remove(quarry, number) == KVS_RESULT_DONE) {
			removed[number] = true;
		}
		if (step % 15)
			continue;
		strata_audit(quarry->store);
		quarry_crash(quarry, &copy);
		quarry_open(&copy);
		for (i = 0; i < ARRAY_COUNT(removed); i++) {
			const bool there = quarry_exists(&copy, i) == KVS_RESULT_DONE;

			assert_false(removed[i] && there);
			if (quarry_count(quarry, i, i + 1) > 0)
				assert_true(there);
		}
		quarry_fini(&copy);
	}
}

static bool find_segment(void *ctx, const struct strata_finding *finding)
{
	uint32_t *const numbers = ctx; /* an object's, and the segment's where it lies */

	if (finding->key && finding->key->offset == numbers[0])
		numbers[1] = finding->segment;
	return true;
}

static uint32_t segment_of(struct quarry *quarry, uint32_t number)
{
	uint32_t numbers[2] = { number, UINT32_MAX };

	assert_int_equal(strata_walk(quarry->store, false, find_segment, numbers), 0);
	return numbers[1];
}

/*
 * The newest record says that an object is dead, and an older one lies in a segment that comes later and
 * has lost both its tallies: recovery remembers the dead until it has heard all.
 */
static void a_dead_record_speaks_for_its_key(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             i, segment, was = UINT32_MAX;

	quarry_put_range(quarry, 0, BLOCKS);
	quarry_get_range(quarry, 0, 1); /* the first to be moved: that segment is older than the next */
	quarry_put_range(quarry, 100, 101);
	for (i = 0; i < 2 * BLOCKS; i++) {
		struct quarry copy;

		quarry_get_range(quarry, 100, 101);
		quarry_put_range(quarry, 101 + i, 102 + i);
		segment = segment_of(quarry, 100);
		if (segment == was)
			continue;
		was = segment;
		quarry_crash(quarry, &copy);
		quarry_open(&copy);
		assert_int_equal(quarry_remove(&copy, 100), KVS_RESULT_DONE);
		quarry_close(&copy);
		for (segment = 0; segment < SEGMENTS; segment++) {
			if (segment == was)
				continue;
			quarry_flip(&copy, quarry_segment_at(segment) + 1 * STRATA_PAGE);
			quarry_flip(&copy, quarry_segment_at(segment) + 2 * STRATA_PAGE);
		}
		quarry_open(&copy);
		assert_int_equal(quarry_get(&copy, 100), KVS_RESULT_MISSING);
		quarry_fini(&copy);
	}
}

/* More records of dead keys than the catalog has entries: they take no place from the living. */
static void many_dead_take_nothing_from_the_living(void **state)
{
	struct quarry *const quarry = *state;
	struct quarry        copy;
	uint32_t             i;

	quarry_close(quarry);
	quarry->set.objects_max = 6;
	quarry_open(quarry);
	for (i = 0; i < 12; i++) {
		quarry_put_range(quarry, 100 + i, 101 + i);
		assert_int_equal(quarry_remove(quarry, 100 + i), KVS_RESULT_DONE);
	}
	quarry_put_range(quarry, 0, 6);
	quarry_crash(quarry, &copy);
	quarry_open(&copy);
	assert_int_equal(quarry_info(&copy).object_count, 6);
	quarry_get_range(&copy, 0, 6);
	quarry_fini(&copy);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(A8_3_objects_of_every_size_outlive_a_close),
		TEST(the_order_of_puts_outlives_a_close),
		TEST(removed_stays_removed),
		TEST(purged_stays_purged),
		TEST(what_was_moved_outlives_a_close),
		TEST(a_crash_takes_nothing_that_was_acknowledged),
		TEST(recovery_seals_what_it_read_whole),
		TEST(a_crash_while_cleaning_goes_on_takes_nothing),
		TEST(what_a_segment_held_before_is_stale),
		TEST(records_of_another_store_are_foreign),
		TEST(a_torn_record_is_no_object),
		TEST(each_open_has_numbers_of_its_own),
		TEST(evicted_put_and_removed_never_comes_back),
		TEST(removals_at_random_last),
		TEST(a_dead_record_speaks_for_its_key),
		TEST(many_dead_take_nothing_from_the_living),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
