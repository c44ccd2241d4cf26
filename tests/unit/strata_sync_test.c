/* SPDX-License-Identifier: Apache-2.0 */
/* What of a strata file is synced when, and what a sync that failed takes with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>

#include <cmocka.h>

#include "base/err.h"
#include "ferry.h"
#include "named_block.h"
#include "os/hook.h"
#include "quarry.h"
#include "strata/core.h"

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

/* --- what is synced ---------------------------------------------------------------------------- */

struct syncs {
	uint32_t writes; /* that a put relies on, since the last sync */
	uint32_t syncs;
	int64_t  answer; /* of a sync; 0: it is done */
};

/* In a store of 32 MiB: not its superblock, and no summary, which ends a segment and can be missed. */
static bool is_of_a_put(const struct os_io *io)
{
	struct geometry geometry;
	const uint64_t  end = (io->offset + io->bytes) / STRATA_PAGE - STRATA_SUPERBLOCKS;

	assert_int_equal(geometry_make(32 << 20, 0, QUARRY_BLOCK, &geometry, NULL), 0);
	return io->kind == OS_IO_WRITE && io->offset >= page_offset(STRATA_SUPERBLOCKS) &&
	       end % geometry.segment_pages != 0;
}

static bool watch_syncs(void *ctx, struct os_io *io, int64_t *ret_result)
{
	struct syncs *const syncs = ctx;

	syncs->writes += is_of_a_put(io);
	if (io->kind != OS_IO_SYNC)
		return false;
	syncs->syncs++;
	syncs->writes = 0;
	*ret_result = syncs->answer;
	return syncs->answer < 0;
}

/* One sync behind all of their writes, not one for each. */
static void a_batch_is_synced_together(void **state)
{
	struct quarry *const quarry = *state;
	struct ferry *const   ferry = ferry_open();
	struct syncs         syncs = { 0 };
	struct kvs_span      spans[64];
	enum kvs_result      results[64];
	bool                 retired;
	uint32_t             i;

	quarry->set.durability = STRATA_PUT;
	quarry_open_large(quarry);
	assert_int_equal(quarry_info(quarry).durability, KVS_DURABILITY_PUT);
	os_io_hook_set(watch_syncs, &syncs);
	for (i = 0; i < 64; i++) {
		ferry_load(ferry, i, i, true);
		spans[i] = ferry->io[i].span;
	}
	assert_int_equal(strata_put(quarry->store, ferry->keys, spans, 64, results, &retired), 0);
	/* One for each page of headers, of which a segment's end begins a new one. */
	assert_in_range(syncs.syncs, 2, 4);
	assert_int_equal(syncs.writes, 0);
	for (i = 0; i < 64; i++)
		assert_int_equal(results[i], KVS_RESULT_DONE);
	syncs.syncs = 0;
	quarry_remove(quarry, 0);
	assert_int_equal(syncs.syncs, 1);
	/* A lane's, too: never more than writes, and none is answered before. */
	for (i = 0; i < 64; i++)
		ferry_load(ferry, i, 100 + i, true);
	syncs = (struct syncs){ 0 };
	ferry_cross(quarry->store, 0, ferry, 64);
	assert_in_range(syncs.syncs, 1, 63);
	assert_int_equal(syncs.writes, 0);
	os_io_hook_set(NULL, NULL);
	ferry_close(ferry);
}

/* What the device did not promise is not there, by calls and by lanes. */
static void a_failed_sync_is_a_failed_put(void **state)
{
	struct quarry *const quarry = *state;
	struct ferry *const   ferry = ferry_open();
	struct syncs         syncs = { .answer = -EIO };
	uint32_t             i;

	quarry->set.durability = STRATA_PUT;
	quarry_open(quarry);
	quarry_put_range(quarry, 0, 2);
	os_io_hook_set(watch_syncs, &syncs);
	assert_int_equal(quarry_put(quarry, 2), KVS_RESULT_FAILED);
	ferry_load(ferry, 0, 3, true);
	ferry_load(ferry, 1, 4, true);
	ferry_cross(quarry->store, 0, ferry, 2);
	assert_int_equal(ferry->result[0], KVS_RESULT_FAILED);
	assert_int_equal(ferry->result[1], KVS_RESULT_FAILED);
	assert_int_equal(quarry_remove(quarry, 1), KVS_RESULT_FAILED);
	os_io_hook_set(NULL, NULL);
	strata_audit(quarry->store);
	for (i = 2; i < 5; i++)
		assert_int_equal(quarry_get(quarry, i), KVS_RESULT_MISSING);
	quarry_put_range(quarry, 2, 5);
	quarry_get_range(quarry, 2, 5);
	quarry_get_range(quarry, 0, 1);
	ferry_close(ferry);
}

/* --- a sync that failed for somebody else ----------------------------------------------------- */

/*
 * The kernel tells one caller of a sync, once, that writes were lost: so ours that succeeds behind
 * another's that failed vouches for nothing.  Here that is a removal, in a segment of its own, whose
 * sync fails; it needs no lock that anybody holds while he syncs what he promised.  While one writes,
 * locks are held, and the failure is only told, as a lane tells of one.
 */
struct shared_disk {
	struct quarry  *quarry;
	uint32_t        victim; /* the object that is removed */
	uint32_t        at;     /* it comes before our sync of this number, from 1; 0: never */
	bool            early;  /* it is told of as we write what is watched, or anything */
	uint32_t        syncs;  /* ours so far */
	bool            inside; /* the other's call */
	enum kvs_result removed;
	uint64_t        watched; /* a place in the file */
	uint32_t        written; /* there */
};

static bool fail_of_another(void *ctx, struct os_io *io, int64_t *ret_result)
{
	struct shared_disk *const disk = ctx;

	const bool                there = io->kind == OS_IO_WRITE && io->offset == disk->watched;

	disk->written += there;
	if (disk->early && (there || (io->kind == OS_IO_WRITE && !disk->watched))) {
		disk->early = false;
		sync_failed(strata_of(disk->quarry->store));
	}
	if (io->kind != OS_IO_SYNC)
		return false;
	if (disk->inside) {
		*ret_result = -EIO;
		return true;
	}
	if (++disk->syncs == disk->at) {
		disk->inside = true;
		disk->removed = quarry_remove(disk->quarry, disk->victim);
		disk->inside = false;
	}
	return false;
}

static void share_disk(struct shared_disk *disk)
{
	disk->removed = KVS_RESULT_UNKNOWN;
	os_io_hook_set(fail_of_another, disk);
}

static void leave_disk(struct shared_disk *disk)
{
	os_io_hook_set(NULL, NULL);
	assert_true(disk->syncs >= disk->at && !disk->early);
	assert_int_equal(disk->removed, disk->at > 0 ? KVS_RESULT_FAILED : KVS_RESULT_UNKNOWN);
	strata_audit(disk->quarry->store);
}

static void a_failed_sync_takes_what_was_written_before_it(void **state)
{
	struct quarry *const quarry = *state;
	struct ferry *const   ferry = ferry_open();
	uint32_t             i;

	quarry->set.durability = STRATA_PUT;
	quarry_open(quarry);
	quarry_put_range(quarry, 0, QUARRY_SLOTS);
	for (i = 0; i < 4; i++) {
		const bool         by_lane = i % 2, early = i >= 2;
		struct shared_disk disk = { .quarry = quarry, .victim = i, .at = !early,
					    .early = early };

		share_disk(&disk);
		assert_int_equal(by_lane ? ferry_one(quarry->store, ferry, 10, true)
					 : quarry_put(quarry, 10),
				 KVS_RESULT_FAILED);
		leave_disk(&disk);
		assert_int_equal(quarry_get(quarry, 10), KVS_RESULT_MISSING);
	}
	/* The next ones are promised anew. */
	quarry_put_range(quarry, 10, 12);
	quarry_get_range(quarry, 10, 12);
	ferry_close(ferry);
}

static void a_failed_sync_takes_the_removals_before_it(void **state)
{
	struct quarry *const quarry = *state;
	int                  early;

	for (early = 0; early < 2; early++) {
		struct shared_disk disk = { .quarry = quarry, .victim = QUARRY_SLOTS, .at = !early,
					    .early = early };

		quarry->set.durability = early ? STRATA_SEGMENT : STRATA_PUT;
		quarry_open(quarry);
		quarry_put_range(quarry, 0, 2 * QUARRY_SLOTS);
		share_disk(&disk);
		assert_int_equal(quarry_remove(quarry, 0), KVS_RESULT_FAILED);
		leave_disk(&disk);
		/* It may be back after a crash, and is not there until then. */
		assert_int_equal(quarry_get(quarry, 0), KVS_RESULT_MISSING);
		assert_int_equal(quarry_remove(quarry, 1), KVS_RESULT_DONE);
		quarry_get_range(quarry, 2, QUARRY_SLOTS);
		quarry_close(quarry);
		assert_int_equal(strata_format(&quarry->set, NULL), 0);
	}
}

/* The page on which a segment's summary ends, which names it. */
static uint64_t foot_at(uint32_t segment)
{
	return quarry_segment_at(segment + 1) - STRATA_PAGE;
}

/*
 * A segment's records are synced before its summary vouches for them.  The failure comes while it takes
 * records, or as it is sealed: then it gets none, and the next open reads it whole.
 */
static void a_failed_sync_leaves_a_segment_without_a_summary(void **state)
{
	struct quarry *const quarry = *state;
	int                  when;

	for (when = 0; when < 3; when++) {
		struct shared_disk   disk = { .quarry = quarry, .victim = 0, .watched = foot_at(1) };
		struct quarry        crashed;

		quarry->set.durability = STRATA_SEGMENT;
		quarry_open(quarry);
		quarry_put_range(quarry, 0, QUARRY_SLOTS + 2);
		if (when == 1) {
			disk.inside = true;
			share_disk(&disk);
			assert_int_equal(quarry_remove(quarry, 0), KVS_RESULT_FAILED);
			disk.inside = false;
		}
		disk.at = when == 2;
		share_disk(&disk);
		quarry_put_range(quarry, QUARRY_SLOTS + 2, 2 * QUARRY_SLOTS + 1);
		leave_disk(&disk);
		assert_int_equal(disk.written, when == 0);
		quarry_crash(quarry, &crashed);
		quarry_open(&crashed);
		/* The one that was being written is read whole anyway. */
		assert_int_equal(quarry_report(&crashed).segments_unsealed, when == 0 ? 1 : 2);
		quarry_get_range(&crashed, QUARRY_SLOTS, 2 * QUARRY_SLOTS + 1);
		quarry_fini(&crashed);
		/* The next one was open by then; those that are opened since are promised anew. */
		disk = (struct shared_disk){ .quarry = quarry, .watched = foot_at(3) };
		share_disk(&disk);
		quarry_put_range(quarry, 2 * QUARRY_SLOTS + 1, 4 * QUARRY_SLOTS + 1);
		leave_disk(&disk);
		assert_int_equal(disk.written, 1);
		quarry_close(quarry);
		assert_int_equal(strata_format(&quarry->set, NULL), 0);
	}
}

/* As if the device had lost what was moved there: the first record of a segment and its headers. */
static void lose_first_record(const struct quarry *quarry, uint32_t segment)
{
	static const uint8_t none[STRATA_PAGE + QUARRY_BLOCK];
	uint8_t              page[STRATA_PAGE];
	const uint64_t       at = quarry_segment_at(segment) + page_offset(STRATA_RECORD_PAGE);

	quarry_peek(quarry, at, page, sizeof(page));
	assert_memory_not_equal(page, none, sizeof(page));
	quarry_poke(quarry, at, none, sizeof(none));
}

/* Object 1 moves from the first segment to the last as this put makes room. */
static enum kvs_result put_and_move(struct quarry *quarry, struct shared_disk *disk)
{
	enum kvs_result result;

	quarry_put_range(quarry, 0, BLOCKS);
	quarry_get_range(quarry, 1, 2);
	share_disk(disk);
	result = quarry_put(quarry, BLOCKS);
	leave_disk(disk);
	assert_int_equal(quarry_info(quarry).moved_objects, 1);
	return result;
}

/* Of a segment's tallies the one that is written first. */
static uint64_t first_tally_at(uint32_t segment)
{
	return quarry_segment_at(segment) + page_offset(STRATA_TALLY_PAGE + 1);
}

/*
 * Moved records are synced before a tally buries the old ones, and that before they are written over.
 * The failure comes before the first sync, while the tally is written, before the second sync, or while
 * the move is written.
 */
static void a_failed_sync_takes_the_moves_before_it(void **state)
{
	struct quarry *const quarry = *state;
	uint32_t             when;

	quarry->set.durability = STRATA_SEGMENT;
	for (when = 0; when < 5; when++) {
		const bool         unburied = when == 1 || when == 4;
		struct shared_disk disk = { .quarry = quarry, .victim = 3 * QUARRY_SLOTS };
		struct quarry      crashed;

		disk.at = when == 1 ? 1 : when == 3 ? 2 : 0;
		disk.watched = when == 2 ? first_tally_at(0) : 0;
		disk.early = when == 2 || when == 4;
		quarry_open(quarry);
		assert_int_equal(put_and_move(quarry, &disk),
				 when == 0 ? KVS_RESULT_DONE : KVS_RESULT_FAILED);
		/* Then the old record counts: no tally says otherwise. */
		quarry_crash(quarry, &crashed);
		if (unburied)
			lose_first_record(&crashed, SEGMENTS - 1);
		quarry_open(&crashed);
		quarry_get_range(&crashed, 1, 2);
		quarry_fini(&crashed);
		/* Nothing is held up by it for good. */
		quarry_put_range(quarry, BLOCKS + 1, 3 * BLOCKS);
		quarry_close(quarry);
		assert_int_equal(strata_format(&quarry->set, NULL), 0);
	}
}

/* --- two copies ------------------------------------------------------------------------------- */

/* Where tallies of segment 0, or superblocks, were written last. */
struct copies {
	struct quarry *quarry;
	uint64_t       begin, end; /* of the pages that are watched */
	uint64_t       last;
	uint32_t       count;
	bool           fails; /* our syncs */
	bool           early; /* another's, as we write there */
};

static bool watch_copies(void *ctx, struct os_io *io, int64_t *ret_result)
{
	struct copies *const copies = ctx;

	if (io->kind == OS_IO_WRITE && io->offset >= copies->begin && io->offset < copies->end) {
		copies->last = io->offset;
		copies->count++;
		if (copies->early)
			sync_failed(strata_of(copies->quarry->store));
	}
	*ret_result = -EIO;
	return io->kind == OS_IO_SYNC && copies->fails;
}

static uint64_t tally_of_removal(struct copies *copies, uint32_t number)
{
	const bool     fails = copies->fails || copies->early;
	const uint32_t before = copies->count;

	assert_int_equal(quarry_remove(copies->quarry, number),
			 fails ? KVS_RESULT_FAILED : KVS_RESULT_DONE);
	copies->fails = copies->early = false;
	assert_int_equal(copies->count, before + 1);
	return copies->last;
}

/*
 * A sync behind the second removal's tally fails, and with it that is lost.  The third one's is torn as the
 * power fails: it must not have been written over the first, which is all there is.
 */
static void check_lost_tally(struct quarry *quarry, bool early)
{
	static const uint8_t torn[512] = { 1, 2, 3 };
	struct quarry        crashed;
	struct copies        copies = { .quarry = quarry,
					.begin = quarry_segment_at(0) + page_offset(STRATA_TALLY_PAGE) };
	uint64_t             second, third;
	uint8_t              before[STRATA_PAGE];

	copies.end = copies.begin + page_offset(STRATA_TALLIES);
	os_io_hook_set(watch_copies, &copies);
	assert_int_equal(tally_of_removal(&copies, 0), first_tally_at(0));
	quarry_peek(quarry, copies.begin, before, sizeof(before));
	copies.early = early;
	copies.fails = !early;
	second = tally_of_removal(&copies, 1);
	assert_int_equal(second, copies.begin);
	third = tally_of_removal(&copies, 2);
	quarry_crash(quarry, &crashed);
	quarry_poke(&crashed, second, before, sizeof(before));
	quarry_poke(&crashed, third, torn, sizeof(torn));
	os_io_hook_set(NULL, NULL);
	quarry_open(&crashed);
	assert_int_equal(quarry_get(&crashed, 0), KVS_RESULT_MISSING);
	quarry_get_range(&crashed, 3, QUARRY_SLOTS);
	quarry_fini(&crashed);
	assert_int_equal(third, second);
	/* Once it is durable they take turns again. */
	os_io_hook_set(watch_copies, &copies);
	assert_int_equal(tally_of_removal(&copies, 3), first_tally_at(0));
	os_io_hook_set(NULL, NULL);
}

static void a_tally_that_a_failed_sync_took_is_written_again(void **state)
{
	struct quarry *const quarry = *state;
	int                  early;

	quarry->set.durability = STRATA_SEGMENT;
	for (early = 0; early < 2; early++) {
		quarry_open(quarry);
		quarry_put_range(quarry, 0, QUARRY_SLOTS);
		check_lost_tally(quarry, early);
		quarry_close(quarry);
		assert_int_equal(strata_format(&quarry->set, NULL), 0);
	}
}

/* Written as each segment is sealed. */
static uint64_t superblock_of_seal(struct copies *copies, uint32_t segment)
{
	const uint32_t before = copies->count;

	quarry_put_range(copies->quarry, segment * QUARRY_SLOTS + 1, (segment + 1) * QUARRY_SLOTS + 1);
	assert_int_equal(copies->count, before + 1);
	return copies->last;
}

static void a_superblock_that_a_failed_sync_took_is_written_again(void **state)
{
	struct quarry *const quarry = *state;
	struct copies        copies = { .quarry = quarry, .end = page_offset(STRATA_SUPERBLOCKS) };
	uint64_t             first, second;

	quarry->set.durability = STRATA_SEGMENT;
	quarry_open(quarry);
	quarry_put_range(quarry, 0, 1);
	os_io_hook_set(watch_copies, &copies);
	first = superblock_of_seal(&copies, 0);
	second = superblock_of_seal(&copies, 1);
	assert_int_equal(first + second, STRATA_PAGE);
	copies.fails = true;
	assert_int_equal(quarry_remove(quarry, 0), KVS_RESULT_FAILED);
	copies.fails = false;
	assert_int_equal(superblock_of_seal(&copies, 2), second);
	copies.early = true;
	assert_int_equal(superblock_of_seal(&copies, 3), first);
	copies.early = false;
	assert_int_equal(superblock_of_seal(&copies, 4), first);
	assert_int_equal(superblock_of_seal(&copies, 5), second);
	os_io_hook_set(NULL, NULL);
	quarry_reopen(quarry);
	quarry_get_range(quarry, 1, 6 * QUARRY_SLOTS + 1);
}

/* --- what is promised -------------------------------------------------------------------------- */

/* Without a promise there is no sync; a segment's records are synced before its summary. */
static void syncs_are_as_promised(void **state)
{
	struct quarry *const quarry = *state;
	struct syncs         syncs = { 0 };

	quarry_open(quarry);
	os_io_hook_set(watch_syncs, &syncs);
	quarry_put_range(quarry, 0, 3 * BLOCKS);
	assert_int_equal(quarry_remove(quarry, 3 * BLOCKS - 1), KVS_RESULT_DONE);
	assert_int_equal(syncs.syncs, 0);
	os_io_hook_set(NULL, NULL);
	quarry_close(quarry);
	quarry->set.durability = STRATA_SEGMENT;
	quarry_open(quarry);
	assert_int_equal(quarry_info(quarry).durability, KVS_DURABILITY_PROCESS);
	os_io_hook_set(watch_syncs, &syncs);
	quarry_put_range(quarry, 100, 100 + 3 * QUARRY_SLOTS);
	assert_in_range(syncs.syncs, 2, 3 * 2);
	syncs.syncs = 0;
	assert_int_equal(quarry_remove(quarry, 100), KVS_RESULT_DONE);
	assert_int_equal(syncs.syncs, 1);
	os_io_hook_set(NULL, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_batch_is_synced_together),
		TEST(a_failed_sync_is_a_failed_put),
		TEST(a_failed_sync_takes_what_was_written_before_it),
		TEST(a_failed_sync_takes_the_removals_before_it),
		TEST(a_failed_sync_takes_the_moves_before_it),
		TEST(a_failed_sync_leaves_a_segment_without_a_summary),
		TEST(a_tally_that_a_failed_sync_took_is_written_again),
		TEST(a_superblock_that_a_failed_sync_took_is_written_again),
		TEST(syncs_are_as_promised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
