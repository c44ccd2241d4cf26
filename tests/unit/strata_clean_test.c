/* SPDX-License-Identifier: Apache-2.0 */
/* A strata file under pressure: its limits, who stays and who goes, and what is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/err.h"
#include "evict/evict.h"
#include "named_block.h"
#include "os/hook.h"
#include "os/os.h"
#include "quarry.h"
#include "strata/core.h"

/* Of the segments one is kept for cleaning. */
#define SEGMENTS 8u
#define BLOCKS ((SEGMENTS - 1) * QUARRY_SLOTS)

static int setup(void **state)
{
	static struct quarry quarry;

	quarry_init(&quarry, SEGMENTS);
	*state = &quarry;
	return 0;
}

static int teardown(void **state)
{
	os_io_hook_set(NULL, NULL);
	quarry_fini(*state);
	return 0;
}

/* --- limits ----------------------------------------------------------------------------------- */

static void expect_small_file(const struct quarry *quarry, uint64_t capacity)
{
	struct stat status;

	assert_int_equal(stat(quarry->place.path, &status), 0);
	assert_true((uint64_t)status.st_size <= capacity);
	/* ext4 counts a page of its own for files of more than four extents. */
	assert_true((uint64_t)status.st_blocks * 512 <= capacity + 4096);
}

/* Sizes, removals, uses, locks and opens at random; a capacity that is no multiple of segments. */
static void X5_the_capacity_is_never_exceeded(void **state)
{
	struct quarry *const quarry = *state;
	struct prng          prng;
	uint32_t             policy, step;

	for (policy = 0; evict_giving_names[policy]; policy++) {
		quarry->set.evict_policy = evict_giving_names[policy];
		quarry->set.segment_bytes = 11 * STRATA_PAGE;
		quarry->set.capacity_bytes = (2 + 4 * 11 + 7) * STRATA_PAGE;
		place_close(&quarry->place);
		quarry->place = place_open();
		quarry_open(quarry);
		prng_seed(&prng, policy);
		for (step = 0; step < 600; step++) {
			const uint32_t number = (uint32_t)prng_below(&prng, 30);
			const uint32_t bytes = number % 2 ? STRATA_PAGE : QUARRY_BLOCK;

			switch (prng_below(&prng, 8)) {
			case 0:
				quarry_remove(quarry, number);
				break;
			case 1:
				assert_int_not_equal(quarry_get_bytes(quarry, number, bytes),
						     KVS_RESULT_CORRUPT);
				break;
			default:
				assert_in_range(quarry_put_bytes(quarry, number, bytes),
						KVS_RESULT_DONE, KVS_RESULT_EXISTS);
				break;
			}
			if (step % 50 == 0)
				quarry_reopen(quarry);
			strata_audit(quarry->store);
			expect_small_file(quarry, quarry->set.capacity_bytes);
			assert_true(quarry_info(quarry).used_bytes <= quarry->set.capacity_bytes);
		}
		assert_true(quarry_info(quarry).evicted_objects > 0);
		quarry_close(quarry);
	}
}

/* A new file takes space as it is filled. */
static void a_segment_takes_space_when_it_is_first_used(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             i;

	quarry_open(quarry);
	expect_small_file(quarry, STRATA_SUPERBLOCKS * STRATA_PAGE);
	for (i = 0; i < BLOCKS; i++) {
		quarry_put_range(quarry, i, i + 1);
		expect_small_file(quarry, QUARRY_CAPACITY(i / QUARRY_SLOTS + 1));
	}
}

/* A disk that is full behind the segment of that number. */
static bool refuse_space(void *ctx, struct os_io *io, int64_t *ret_result)
{
	const uint32_t segments = *(const uint32_t *)ctx;

	if (io->kind != OS_IO_ALLOCATE || io->offset < quarry_segment_at(segments))
		return false;
	*ret_result = -ENOSPC;
	return true;
}

/*
 * One put meets the end of the disk.  From then on there is a smaller store, which has no segment to spare
 * at first: the hot go, too, where they would hold up everybody.  Locked objects stay.
 */
static void a_full_disk_makes_a_smaller_store(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             segments = 4, refused = 0, i;

	quarry_open(quarry);
	os_io_hook_set(refuse_space, &segments);
	for (i = 0; i < 20 * QUARRY_SLOTS; i++) {
		const enum kvs_result result = quarry_put(quarry, i);

		refused += result == KVS_RESULT_NO_SPACE;
		assert_true(result == KVS_RESULT_DONE || result == KVS_RESULT_NO_SPACE);
		if (result == KVS_RESULT_DONE)
			quarry_get_range(quarry, i, i + 1);
		strata_audit(quarry->store);
		expect_small_file(quarry, QUARRY_CAPACITY(segments));
	}
	assert_int_equal(refused, 1);
	assert_int_equal(quarry_info(quarry).refused_full, refused);
	assert_true(quarry_info(quarry).moved_objects > 0);
	assert_in_range(quarry_info(quarry).object_count, QUARRY_SLOTS, segments * QUARRY_SLOTS);
	/* Once there is room again, the next open takes it. */
	os_io_hook_set(NULL, NULL);
	quarry_reopen(quarry);
	quarry_put_range(quarry, 1000, 1000 + BLOCKS - QUARRY_SLOTS);
	assert_int_equal(quarry_count(quarry, 1000, 1000 + BLOCKS), BLOCKS - QUARRY_SLOTS);
}

/* A file system that promises no space in advance has none when the payload comes. */
static bool refuse_payload(void *ctx, struct os_io *io, int64_t *ret_result)
{
	(void)ctx;
	if (io->kind != OS_IO_WRITE || io->bytes != QUARRY_BLOCK)
		return false;
	*ret_result = -ENOSPC;
	return true;
}

static void a_write_that_finds_no_space_is_a_refusal_and_counted(void **state)
{
	struct quarry *const quarry = *state;

	quarry_open(quarry);
	os_io_hook_set(refuse_payload, NULL);
	assert_int_equal(quarry_put(quarry, 1), KVS_RESULT_NO_SPACE);
	os_io_hook_set(NULL, NULL);
	assert_int_equal(quarry_info(quarry).refused_full, 1);
	quarry_put_range(quarry, 1, 2);
	assert_int_equal(quarry_info(quarry).refused_full, 1);
}

static void the_number_of_objects_has_a_limit(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             i;

	quarry->set.objects_max = 3;
	quarry_open(quarry);
	quarry_put_range(quarry, 0, 3);
	assert_int_equal(quarry_info(quarry).evicted_objects, 0);
	quarry_get_range(quarry, 0, 1);
	quarry_put_range(quarry, 3, 4);
	assert_int_equal(quarry_info(quarry).object_count, 3);
	assert_int_equal(quarry_info(quarry).evicted_objects, 1);
	/* Exact here: the order of uses, not of segments. */
	assert_int_equal(quarry_exists(quarry, 1), KVS_RESULT_MISSING);
	quarry_get_range(quarry, 0, 1);
	for (i = 0; i < 3; i++)
		(void)quarry_lock(quarry, (uint32_t[]){ 0, 2, 3 }[i]);
	assert_int_equal(quarry_put(quarry, 4), KVS_RESULT_NO_SPACE);
	assert_int_equal(quarry_info(quarry).refused_full, 1);
	quarry_unlock(quarry, 2);
	assert_int_equal(quarry_put(quarry, 4), KVS_RESULT_DONE);
	assert_int_equal(quarry_exists(quarry, 2), KVS_RESULT_MISSING);
	quarry_reopen(quarry);
	assert_int_equal(quarry_info(quarry).object_count, 3);
	quarry_get_range(quarry, 3, 5);
}

/* A file that was filled with more objects than the next open may keep: the oldest go. */
static void a_lower_limit_of_objects_keeps_the_youngest(void **state)
{
	struct quarry *const quarry = *state;

	quarry_open(quarry);
	quarry_put_range(quarry, 0, 12);
	quarry_close(quarry);
	quarry->set.objects_max = 5;
	quarry_open(quarry);
	assert_int_equal(quarry_info(quarry).object_count, 5);
	quarry_get_range(quarry, 7, 12);
	quarry_close(quarry);
	quarry->set.objects_max = 0;
	quarry_open(quarry);
	quarry_get_range(quarry, 7, 12);
}

/* --- who stays and who goes ------------------------------------------------------------------- */

/* Without uses a segment goes whole, the oldest first. */
static void what_nobody_used_goes_in_the_order_it_came(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             i;

	quarry_open(quarry);
	quarry_put_range(quarry, 0, BLOCKS);
	assert_int_equal(quarry_info(quarry).evicted_objects, 0);
	for (i = BLOCKS; i < 4 * BLOCKS; i++) {
		const uint32_t gone = (i / QUARRY_SLOTS + 1) * QUARRY_SLOTS - BLOCKS;

		quarry_put_range(quarry, i, i + 1);
		assert_int_equal(quarry_count(quarry, 0, gone), 0);
		assert_int_equal(quarry_count(quarry, gone, i + 1), i + 1 - gone);
		assert_int_equal(quarry_info(quarry).evicted_objects, gone);
	}
	assert_int_equal(quarry_info(quarry).moved_objects, 0);
}

/* Everywhere but with fifo: what was used since it was put or moved is written again. */
static void what_is_used_stays(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             i;

	quarry_open(quarry);
	quarry_put_range(quarry, 0, BLOCKS);
	for (i = BLOCKS; i < 5 * BLOCKS; i++) {
		quarry_get_range(quarry, 1, 3);
		quarry_put_range(quarry, i, i + 1);
	}
	assert_in_range(quarry_info(quarry).moved_objects, 2, 40);
	quarry_get_range(quarry, 1, 3);
	assert_int_equal(quarry_count(quarry, 0, BLOCKS), 2);
	assert_true(quarry_report(quarry).written_bytes > quarry_report(quarry).put_bytes);
}

/*
 * At most half of a segment, what was used most first.  The first that is moved takes the segment that was
 * kept, so a second one is emptied.
 */
static void no_more_than_half_is_written_again(void **state)
{
	struct quarry *const quarry = *state;

	quarry_open(quarry);
	quarry_put_range(quarry, 0, BLOCKS);
	quarry_get_range(quarry, 0, QUARRY_SLOTS);
	quarry_get_range(quarry, 1, QUARRY_SLOTS - 1);
	quarry_put_range(quarry, BLOCKS, BLOCKS + 1);
	assert_int_equal(quarry_info(quarry).moved_objects, QUARRY_SLOTS / 2);
	assert_int_equal(quarry_info(quarry).evicted_objects, QUARRY_SLOTS / 2 + QUARRY_SLOTS);
	assert_int_equal(quarry_count(quarry, 0, QUARRY_SLOTS), QUARRY_SLOTS / 2);
	quarry_get_range(quarry, 1, QUARRY_SLOTS - 1);
}

/* Puts of which every fourth is used: what is moved fills a segment, which is then cleaned in its turn. */
static void put_and_use(struct quarry *quarry, uint32_t from, uint32_t to)
{
	for (; from < to; from++) {
		quarry_put_range(quarry, from, from + 1);
		if (from % 4 == 0)
			quarry_get_range(quarry, from, from + 1);
	}
}

/* A use is good for one move: who is not used again goes the next time. */
static void a_use_is_good_for_one_move(void **state)
{
	struct quarry *const quarry = *state;

	quarry_open(quarry);
	quarry_put_range(quarry, 0, BLOCKS);
	quarry_get_range(quarry, 2, 3);
	put_and_use(quarry, BLOCKS, 2 * BLOCKS);
	assert_int_equal(quarry_count(quarry, 2, 3), 1);
	put_and_use(quarry, 2 * BLOCKS, 6 * BLOCKS);
	assert_int_equal(quarry_count(quarry, 2, 3), 0);
}

/* Room that removals left is used before anything is evicted. */
static void the_removed_make_room_before_others_go(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             i;

	quarry_open(quarry);
	quarry_put_range(quarry, 0, BLOCKS);
	for (i = 8; i < 16; i++)
		assert_int_equal(quarry_remove(quarry, i), KVS_RESULT_DONE);
	quarry_put_range(quarry, BLOCKS, BLOCKS + 8);
	assert_int_equal(quarry_info(quarry).evicted_objects, 0);
	quarry_get_range(quarry, 0, 8);
	quarry_get_range(quarry, 16, BLOCKS + 8);
}

/* --- locks ------------------------------------------------------------------------------------ */

static void what_is_locked_stays_and_moves(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             i;

	quarry_open(quarry);
	quarry_put_range(quarry, 0, BLOCKS);
	/* Three of a segment, more than a hot one would keep; and one each of two others. */
	for (i = 0; i < 3; i++)
		assert_int_equal(quarry_lock(quarry, i), KVS_RESULT_DONE);
	assert_int_equal(quarry_lock(quarry, 5), KVS_RESULT_DONE);
	assert_int_equal(quarry_lock(quarry, 10), KVS_RESULT_DONE);
	assert_int_equal(quarry_lock(quarry, 10), KVS_RESULT_DONE);
	for (i = BLOCKS; i < 8 * BLOCKS; i++) {
		quarry_put_range(quarry, i, i + 1);
		strata_audit(quarry->store);
	}
	assert_true(quarry_info(quarry).moved_objects > 0);
	quarry_unlock(quarry, 10);
	quarry_put_range(quarry, i, i + 2 * BLOCKS);
	quarry_get_range(quarry, 0, 3);
	quarry_get_range(quarry, 5, 6);
	quarry_get_range(quarry, 10, 11);
	/* No lock and no use: they go like all others.  The gets were one use. */
	for (i = 0; i < 11; i++)
		quarry_unlock(quarry, i);
	put_and_use(quarry, 1000, 1000 + 6 * BLOCKS);
	assert_int_equal(quarry_count(quarry, 0, 11), 0);
}

static void with_everything_locked_puts_are_refused_and_counted(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             locked = 0, refused = 0, i;

	quarry_open(quarry);
	for (i = 0; i < 3 * BLOCKS; i++) {
		const enum kvs_result result = quarry_put(quarry, i);

		if (result == KVS_RESULT_DONE) {
			assert_int_equal(quarry_lock(quarry, i), KVS_RESULT_DONE);
			locked++;
		} else {
			assert_int_equal(result, KVS_RESULT_NO_SPACE);
			refused++;
		}
	}
	/* What cleaning writes together takes less room. */
	assert_in_range(locked, BLOCKS - QUARRY_SLOTS, (SEGMENTS - 1) * QUARRY_SLOTS_TOGETHER);
	assert_int_equal(quarry_info(quarry).refused_full, refused);
	assert_int_equal(quarry_info(quarry).evicted_objects, 0);
	strata_audit(quarry->store);
	quarry_get_range(quarry, 0, locked);
	/* What is not put leaves no trace. */
	assert_int_equal(quarry_exists(quarry, 3 * BLOCKS - 1), KVS_RESULT_MISSING);
	for (i = 0; i < QUARRY_SLOTS; i++)
		quarry_unlock(quarry, i);
	quarry_put_range(quarry, 3 * BLOCKS - 1, 3 * BLOCKS);
	quarry_reopen(quarry);
	quarry_get_range(quarry, QUARRY_SLOTS, locked);
}

/* Of no use to anybody once the object is gone. */
static void a_lock_goes_with_its_object(void **state)
{
	struct quarry *const quarry = *state;

	quarry_open(quarry);
	quarry_put_range(quarry, 0, 4);
	assert_int_equal(quarry_lock(quarry, 1), KVS_RESULT_DONE);
	assert_int_equal(quarry_remove(quarry, 1), KVS_RESULT_DONE);
	strata_audit(quarry->store);
	quarry_unlock(quarry, 1);
	quarry_put_range(quarry, 1, 2);
	quarry_unlock(quarry, 1);
	quarry_put_range(quarry, 4, 3 * BLOCKS);
	assert_int_equal(quarry_count(quarry, 0, 4), 0);
	assert_int_equal(quarry_lock(quarry, 1), KVS_RESULT_MISSING);
}

/* --- what is refused by wish ------------------------------------------------------------------ */

/* Sums are by what was written, of the day that it was written on. */
static void X5_a_write_budget_is_kept_and_counted(void **state)
{
	const uint64_t       budget = 30 * (QUARRY_BLOCK + STRATA_PAGE);
	struct quarry *const quarry = *state;
	uint64_t             day = os_wall_day();
	uint32_t             i, done = 0;

	quarry->set.write_budget_bytes = budget;
	quarry_open(quarry);
	for (i = 0; i < 60; i++) {
		const enum kvs_result result = quarry_put(quarry, i);

		assert_true(result == KVS_RESULT_DONE || result == KVS_RESULT_NO_SPACE);
		done += result == KVS_RESULT_DONE;
		if (i % 10 == 0)
			quarry_reopen(quarry);
	}
	if (day != os_wall_day()) {
		print_message("# midnight: another day's budget began\n");
		return;
	}
	assert_in_range(done, 15, 29);
	quarry_reopen(quarry);
	assert_in_range(quarry_report(quarry).day_bytes, budget / 2, budget + 20 * STRATA_PAGE);
	assert_int_equal(quarry_report(quarry).day, day);
	assert_int_equal(quarry_put(quarry, 100), KVS_RESULT_NO_SPACE);
	assert_int_equal(quarry_put(quarry, 101), KVS_RESULT_NO_SPACE);
	assert_int_equal(quarry_info(quarry).refused_budget, 2);
	/* What is there, is there. */
	assert_int_equal(quarry_put(quarry, 0), KVS_RESULT_EXISTS);
	quarry_get_range(quarry, 0, done);
	assert_int_equal(quarry_remove(quarry, 0), KVS_RESULT_DONE);
}

static void a_day_later_the_budget_is_whole(void **state)
{
	struct quarry *const quarry = *state;
	struct strata       *s;

	quarry->set.write_budget_bytes = 7 * STRATA_PAGE;
	quarry_open(quarry);
	assert_int_equal(quarry_put(quarry, 1), KVS_RESULT_DONE);
	assert_int_equal(quarry_put(quarry, 2), KVS_RESULT_NO_SPACE);
	s = strata_of(quarry->store);
	s->day--;
	assert_int_equal(quarry_put(quarry, 2), KVS_RESULT_DONE);
	assert_true(quarry_report(quarry).written_bytes > quarry_report(quarry).day_bytes);
}

static void X5_admission_takes_the_second_offer(void **state)
{
	struct quarry *const quarry = *state;

	quarry->set.admit_second = true;
	quarry_open(quarry);
	assert_int_equal(quarry_put(quarry, 1), KVS_RESULT_NO_SPACE);
	assert_int_equal(quarry_put(quarry, 2), KVS_RESULT_NO_SPACE);
	assert_int_equal(quarry_exists(quarry, 1), KVS_RESULT_MISSING);
	assert_int_equal(quarry_put(quarry, 1), KVS_RESULT_DONE);
	assert_int_equal(quarry_put(quarry, 1), KVS_RESULT_EXISTS);
	assert_int_equal(quarry_info(quarry).refused_admission, 2);
	assert_int_equal(quarry_put(quarry, 2), KVS_RESULT_DONE);
	/* Once removed it is new again. */
	assert_int_equal(quarry_remove(quarry, 1), KVS_RESULT_DONE);
	assert_int_equal(quarry_put(quarry, 1), KVS_RESULT_NO_SPACE);
	assert_int_equal(quarry_info(quarry).refused_admission, 3);
	assert_int_equal(quarry_report(quarry).put_bytes, 2 * QUARRY_BLOCK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(X5_the_capacity_is_never_exceeded),
		TEST(a_segment_takes_space_when_it_is_first_used),
		TEST(a_full_disk_makes_a_smaller_store),
		TEST(a_write_that_finds_no_space_is_a_refusal_and_counted),
		TEST(the_number_of_objects_has_a_limit),
		TEST(a_lower_limit_of_objects_keeps_the_youngest),
		TEST(what_nobody_used_goes_in_the_order_it_came),
		TEST(what_is_used_stays),
		TEST(no_more_than_half_is_written_again),
		TEST(a_use_is_good_for_one_move),
		TEST(the_removed_make_room_before_others_go),
		TEST(what_is_locked_stays_and_moves),
		TEST(with_everything_locked_puts_are_refused_and_counted),
		TEST(a_lock_goes_with_its_object),
		TEST(X5_a_write_budget_is_kept_and_counted),
		TEST(a_day_later_the_budget_is_whole),
		TEST(X5_admission_takes_the_second_offer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
