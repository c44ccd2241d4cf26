/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the tickets for copies: what an open takes is what it says, an open that runs out of
 * it leaves nothing behind, and after an open nothing allocates.
 *
 * Allocations are counted, and made to fail, where the linker leads them (tests/unit/meson.build).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "quay.h"
#include "tier/copies.h"

static uint64_t allocations;
static uint64_t bytes_taken;
static uint64_t fail_at; /* the number of the allocation that fails; 0: none */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

static bool take(size_t bytes)
{
	bytes_taken += bytes;
	return ++allocations != fail_at;
}

void *__wrap_malloc(size_t bytes)
{
	return take(bytes) ? __real_malloc(bytes) : NULL;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	return take(count * bytes) ? __real_calloc(count, bytes) : NULL;
}

void *__wrap_realloc(void *old, size_t bytes)
{
	return take(bytes) ? __real_realloc(old, bytes) : NULL;
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
	return take(bytes) ? __real_aligned_alloc(alignment, bytes) : NULL;
}

/* A page is 8 tokens: 4 blocks of history, 4 of a window, 2 of a state. */
static const struct group_spec groups[] = {
	{ .name = "full", .kind = GROUP_FULL, .block_tokens = 2, .packing = 2 },
	{ .name = "window", .kind = GROUP_WINDOW, .block_tokens = 2, .window_tokens = 6,
	  .packing = 3 },
	{ .name = "state", .kind = GROUP_STATE, .block_tokens = 4, .packing = 1 },
};

static const struct quay_spec spec = { .groups = groups, .group_count = 3, .page_tokens = 8,
				       .device_parents = 40, .host_parents = 40 };

/* --- opens ------------------------------------------------------------------------------------ */

/* Open, then say the bytes and close; the error of the open. */
typedef int (*opening)(struct quay *quay, size_t *ret_bytes, struct kvs_error *err);

static int open_candidates(struct quay *quay, size_t *ret_bytes, struct kvs_error *err)
{
	struct candidates candidates;
	const int         rc = candidates_open(&candidates, 77, err);

	(void)quay;
	*ret_bytes = candidates_bytes(&candidates);
	candidates_close(&candidates);
	return rc;
}

static int open_copies(struct quay *quay, size_t *ret_bytes, struct kvs_error *err)
{
	struct copies copies;
	const int     rc = copies_open(&copies, 5, 70, err);

	(void)quay;
	*ret_bytes = rc == 0 ? copies_bytes(&copies) : 0;
	copies_close(&copies);
	return rc;
}

static int open_mover(struct quay *quay, size_t *ret_bytes, struct kvs_error *err)
{
	const struct mover_options options = { .cache = quay->cache, .save_ticket_max = 60,
					       .save_row_max = 33, .load_ticket_max = 8 };
	struct mover               mover;
	const int                  rc = mover_open(&mover, &options, err);

	*ret_bytes = rc == 0 ? mover_bytes(&mover) : 0;
	mover_close(&mover);
	return rc;
}

static int open_snapshots(struct quay *quay, size_t *ret_bytes, struct kvs_error *err)
{
	struct snapshots snapshots;
	const int        rc = snapshots_open(&snapshots, &quay->mover, 65, 9, err);

	*ret_bytes = rc == 0 ? snapshots_bytes(&snapshots) : 0;
	snapshots_close(&snapshots);
	return rc;
}

static const struct {
	opening     open;
	uint64_t    allocations; /* at least */
	const char *sentence;
} openings[] = {
	{ open_candidates, 1, "capacity: 77, no memory for so many names" },
	{ open_copies, 4, "row_max: 70, no memory for so many rows of 5 tickets" },
	{ open_mover, 8, "save_row_max: 33, no memory for these and the rows of loads" },
	{ open_snapshots, 4, "snapshot_max: 65, no memory for so many images of 9 blocks" },
};

static void what_an_open_takes_is_what_it_says(void **state)
{
	struct quay *const quay = quay_new(&spec);
	size_t             i, bytes;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(openings); i++) {
		bytes_taken = 0;
		assert_int_equal(openings[i].open(quay, &bytes, NULL), 0);
		assert_true(bytes > 0);
		assert_true(!LINKER_WRAPS || bytes == bytes_taken);
	}
	quay_free(quay);
}

/* Under a sanitizer what is left behind is a failure of its own. */
static void an_open_without_memory_leaves_nothing_behind(void **state)
{
	struct quay *const quay = quay_new(&spec);
	struct kvs_error   err;
	uint64_t           nth;
	size_t             i, bytes;
	int                rc;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(openings); i++) {
		rc = -ENOMEM;
		for (nth = 1; rc < 0; nth++) {
			allocations = 0;
			fail_at = nth;
			rc = openings[i].open(quay, &bytes, &err);
			fail_at = 0;
			if (rc == 0)
				break;
			assert_int_equal(rc, -ENOMEM);
			assert_int_equal(err.code, -ENOMEM);
			assert_string_equal(err.message, openings[i].sentence);
			assert_int_equal(bytes, 0);
		}
		assert_true(!LINKER_WRAPS || nth > openings[i].allocations);
	}
	quay_free(quay);
}

/* --- after ------------------------------------------------------------------------------------ */

/* Saved, retracted with an image, loaded and brought back; with a plan's copies on the way. */
static void live(struct quay *quay, struct copies *copies, uint64_t number)
{
	struct quay_request request, again;
	struct retraction   retraction = { .tables = request.tables };
	struct retracted    retracted;
	uint64_t            id;

	quay_prompt(quay, &request, number, (int32_t)(number * 100), 24);
	quay_run(quay, &request, 0, 16);
	quay_publish(quay, &request);
	id = mover_drain(&quay->mover);
	copies_clear(copies);
	assert_true(copies_add_ticket(copies, &quay->mover, mover_find(&quay->mover, id)));
	assert_true(quay_done(quay, id));
	assert_int_equal(quay_grow(quay, &request, 21), 0);
	quay_forward(quay, &request, 21);
	retraction.completed = quay_completed(quay, &request);
	retraction.epoch = request.epoch;
	assert_int_equal(snapshot_retract(&quay->snapshots, &retraction, &retracted, NULL), 0);
	assert_true(quay_done(quay, retracted.stash_ticket));
	assert_true(cache_clear_device(quay->cache));
	quay_prompt(quay, &again, number, (int32_t)(number * 100), 24);
	assert_int_equal(quay_start(quay, &again, 2, 21), 0);
	assert_int_equal(again.hit, 16);
	assert_int_equal(snapshot_restore(&quay->snapshots, retracted.snapshot, again.tables, 16,
					  &id, NULL), 0);
	again.computed = 21;
	assert_true(quay_done(quay, again.load_ticket));
	assert_true(quay_done(quay, id));
	quay_check_request(quay, &again);
	quay_finish(quay, &again);
	candidates_clear(&quay->candidates);
}

static void nothing_allocates_after_open(void **state)
{
	struct quay *const quay = quay_new(&spec);
	struct copies      copies;
	uint64_t           at_open, number;

	(void)state;
	assert_int_equal(copies_open(&copies, 4, 64, NULL), 0);
	at_open = allocations;
	for (number = 1; number <= 3; number++)
		live(quay, &copies, number);
	assert_int_equal(allocations, at_open);
	assert_int_equal(quay->snapshots.counts.restored, 3);
	copies_close(&copies);
	quay_free(quay);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_an_open_takes_is_what_it_says),
		cmocka_unit_test(an_open_without_memory_leaves_nothing_behind),
		cmocka_unit_test(nothing_allocates_after_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
