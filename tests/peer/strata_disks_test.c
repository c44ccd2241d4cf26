/* SPDX-License-Identifier: Apache-2.0 */
/* A strata file on file systems of every kind: with and without O_DIRECT, full, and read-only. */
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "strata/strata.h"
#include "yard.h"

#define MIB (UINT64_C(1) << 20)

static const char *absent; /* why there are no disks */

static int start(void **state)
{
	(void)state;
	return absent != NULL;
}

static int clear(void **state)
{
	(void)state;
	yard_abandon(yard_path("at"));
	return 0;
}

static int stop(void **state)
{
	(void)state;
	yard_close();
	return 0;
}

static char *spec_of(const char *directory, const char *options)
{
	static char spec[192];

	snprintf(spec, sizeof(spec), "strata:%s/store?durability=put&%s", directory, options);
	return spec;
}

static struct kvs_store_info run_on(const char *directory)
{
	struct kvs_store_info info;
	struct load           load;

	load_run(&load, spec_of(directory, "capacity=8MiB&io=plain"), false);
	load_close(&load);
	assert_int_equal(unlink(yard_path("at/store")), 0);
	load_run(&load, spec_of(directory, "capacity=8MiB"), true);
	info = load_info(&load);
	load_close(&load);
	return info;
}

static void expect_well_on(const char *type, uint64_t bytes)
{
	const char *const device = yard_device(bytes, 512);
	const char *const directory = yard_path("at");

	if (!device || !yard_format(device, type) || !yard_mount(device, type, directory, NULL))
		skip();
	assert_true(run_on(directory).direct);
	yard_unmount(directory);
}

static void ext4_keeps_it(void **state)
{
	(void)state;
	expect_well_on("ext4", 32 * MIB);
}

/* Less than 300 MiB xfs refuses. */
static void xfs_keeps_it(void **state)
{
	(void)state;
	expect_well_on("xfs", 320 * MIB);
}

static void tmpfs_keeps_it(void **state)
{
	const char *const directory = yard_path("at");

	(void)state;
	if (!yard_mount("none", "tmpfs", directory, "size=32m"))
		skip();
	(void)run_on(directory);
	yard_unmount(directory);
}

static void ramfs_keeps_it_without_fallocate(void **state)
{
	const char *const     directory = yard_path("at");
	struct kvs_store_info info;

	(void)state;
	if (!yard_mount("none", "ramfs", directory, NULL))
		skip();
	info = run_on(directory);
	/* Newer kernels have no file system without O_DIRECT. */
	if (!info.direct)
		assert_non_null(strstr(info.note, "no O_DIRECT on this file system"));
	yard_unmount(directory);
}

/* Where the disk ends before the capacity: some puts are refused, and counted, and room is made. */
static void expect_full_disk_on(const char *directory, bool lanes)
{
	struct load load;
	uint64_t    then;

	load_open(&load, spec_of(directory, "capacity=64MiB"), lanes);
	load_put(&load, 0, 512);
	load_check(&load);
	assert_true(load.refused > 0);
	/* What is used stays where it can, and new objects still find room. */
	assert_true(load.put > 256);
	load_reopen(&load);
	then = load_info(&load).object_count;
	load_put(&load, 512, 1024);
	load_check(&load);
	assert_true(load.put > 256);
	assert_in_range(load_info(&load).object_count, then / 2, 2 * then);
	load_remove(&load, 0, 1024);
	load_put(&load, 1024, 1024 + 64);
	assert_true(load.put > 256 + 32);
	load_reopen(&load);
	load_close(&load);
	assert_int_equal(unlink(yard_path("at/store")), 0);
}

static void a_full_ext4_goes_on(void **state)
{
	const char *const device = yard_device(24 * MIB, 512);
	const char *const directory = yard_path("at");

	(void)state;
	if (!device || !yard_format(device, "ext4") || !yard_mount(device, "ext4", directory, NULL))
		skip();
	expect_full_disk_on(directory, false);
	expect_full_disk_on(directory, true);
	yard_unmount(directory);
}

static void a_full_tmpfs_goes_on(void **state)
{
	const char *const directory = yard_path("at");

	(void)state;
	if (!yard_mount("none", "tmpfs", directory, "size=16m"))
		skip();
	expect_full_disk_on(directory, false);
	expect_full_disk_on(directory, true);
	yard_unmount(directory);
}

/* ramfs has no end; a disk without fallocate finds out when it writes. */
static void a_file_that_others_squeeze_goes_on(void **state)
{
	const char *const directory = yard_path("at");
	struct load       load;
	FILE             *other;
	char              page[4096] = { 1 };

	(void)state;
	if (!yard_mount("none", "tmpfs", directory, "size=24m"))
		skip();
	load_open(&load, spec_of(directory, "capacity=20MiB"), false);
	load_put(&load, 0, 64);
	/* Somebody else takes all that is left. */
	other = fopen(yard_path("at/other"), "w");
	assert_non_null(other);
	while (fwrite(page, sizeof(page), 1, other) == 1 && fflush(other) == 0)
		;
	fclose(other);
	load_put(&load, 64, 512);
	load_check(&load);
	assert_true(load.refused > 0 && load.put > 256);
	load_reopen(&load);
	/* And gives it back: segments that were given up are tried again at the next open. */
	assert_int_equal(unlink(yard_path("at/other")), 0);
	load_reopen(&load);
	load_put(&load, 512, 1024);
	assert_int_equal(load.refused, 0);
	load_check(&load);
	load_close(&load);
	yard_unmount(directory);
}

static void a_read_only_file_system_is_named(void **state)
{
	const char *const device = yard_device(32 * MIB, 512);
	const char *const directory = yard_path("at");
	struct load       load;
	char              start_of_sentence[128];

	(void)state;
	if (!device || !yard_format(device, "ext4") || !yard_mount(device, "ext4", directory, NULL))
		skip();
	load_open(&load, spec_of(directory, "capacity=8MiB"), false);
	load_put(&load, 0, 32);
	load_close(&load);
	yard_read_only(directory);
	snprintf(start_of_sentence, sizeof(start_of_sentence),
		 "store.path: \"%s/store\": cannot be opened: Read-only file system", directory);
	rig_refused(spec_of(directory, "capacity=8MiB"), -EROFS, start_of_sentence);
	yard_unmount(directory);
}

/* `kvstrata store` looks at what it may not write. */
static void what_is_read_only_can_be_looked_at(void **state)
{
	static const struct kvs_store_ops ops = { .name = "strata" };
	const char *const                 device = yard_device(32 * MIB, 512);
	const char *const                 directory = yard_path("at");
	struct strata_settings set = { .block_bytes = LOAD_BLOCK, .evict_policy = "lru",
				       .verify = true, .read_only = true };
	struct kvs_store_info  info;
	struct kvs_store      *store;
	struct kvs_error       err = { 0 };
	struct load            load;

	(void)state;
	if (!device || !yard_format(device, "ext4") || !yard_mount(device, "ext4", directory, NULL))
		skip();
	load_open(&load, spec_of(directory, "capacity=8MiB"), false);
	load_put(&load, 0, 32);
	load_close(&load);
	yard_read_only(directory);
	set.path = yard_path("at/store");
	assert_int_equal(strata_open(&set, &ops, &store, &err), 0);
	strata_describe(store, &info);
	assert_int_equal(info.object_count, 32);
	assert_int_equal(strata_close(store), 0);
	yard_unmount(directory);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(ext4_keeps_it, clear),
		cmocka_unit_test_teardown(xfs_keeps_it, clear),
		cmocka_unit_test_teardown(tmpfs_keeps_it, clear),
		cmocka_unit_test_teardown(ramfs_keeps_it_without_fallocate, clear),
		cmocka_unit_test_teardown(a_full_ext4_goes_on, clear),
		cmocka_unit_test_teardown(a_full_tmpfs_goes_on, clear),
		cmocka_unit_test_teardown(a_file_that_others_squeeze_goes_on, clear),
		cmocka_unit_test_teardown(a_read_only_file_system_is_named, clear),
		cmocka_unit_test_teardown(what_is_read_only_can_be_looked_at, clear),
	};

	absent = yard_open();
	if (absent) {
		print_message("1..0 # SKIP %s\n", absent);
		return 0;
	}
	return cmocka_run_group_tests(tests, start, stop);
}
