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

struct shared_disk {
	struct quarry  *quarry;
	struct ferry   *ferry;
	uint32_t        syncs;
};

/* The first sync succeeds, but before it another caller's has failed: the kernel told that one alone. */
static bool fail_of_another(void *ctx, struct os_io *io, int64_t *ret_result)
{
	struct shared_disk *const disk = ctx;

	if (io->kind != OS_IO_SYNC)
		return false;
	if (++disk->syncs == 1) {
		ferry_load(disk->ferry, 0, 7, true);
		ferry_cross(disk->quarry->store, 1, disk->ferry, 1);
		return false;
	}
	*ret_result = -EIO;
	return true;
}

static void a_failed_sync_takes_what_was_written_before_it(void **state)
{
	struct quarry *const quarry = *state;
	struct ferry *const   ferry = ferry_open();
	struct ferry *const   another = ferry_open();
	int                  by_lane;

	quarry->set.durability = STRATA_PUT;
	quarry_open(quarry);
	quarry_put_range(quarry, 0, 2);
	for (by_lane = 0; by_lane < 2; by_lane++) {
		struct shared_disk disk = { .quarry = quarry, .ferry = another };

		os_io_hook_set(fail_of_another, &disk);
		assert_int_equal(by_lane ? ferry_one(quarry->store, ferry, 2, true) : quarry_put(quarry, 2),
				 KVS_RESULT_FAILED);
		os_io_hook_set(NULL, NULL);
		assert_int_equal(another->result[0], KVS_RESULT_FAILED);
		assert_int_equal(quarry_get(quarry, 2), KVS_RESULT_MISSING);
		strata_audit(quarry->store);
	}
	/* The next ones are promised anew. */
	quarry_put_range(quarry, 2, 4);
	quarry_get_range(quarry, 0, 4);
	ferry_close(another);
	ferry_close(ferry);
}

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
		TEST(syncs_are_as_promised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
