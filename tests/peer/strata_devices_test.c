/* SPDX-License-Identifier: Apache-2.0 */
/* A strata store on a raw block device, which may be somebody else's. */
#include "load.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/units.h"
#include "strata/strata.h"
#include "yard.h"

#define MIB (UINT64_C(1) << 20)
#define DEVICE_BYTES (8 * MIB)

static const char *absent; /* why there are no devices */

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

static char *spec_of(const char *device, const char *options)
{
	static char specs[2][192];
	static int  turn;
	char *const spec = specs[turn++ % 2];

	snprintf(spec, sizeof(specs[0]), "strata:%s%s", device, options);
	return spec;
}

static const char *device_of(uint64_t bytes, uint32_t sector_bytes)
{
	const char *const device = yard_device(bytes, sector_bytes);

	if (!device)
		skip();
	return device;
}

/* Refused with this code and both of these in the sentence, and the device is as it was. */
static void expect_refused(const char *device, const char *options, int code, const char *part,
			   const char *other)
{
	const uint64_t    then = yard_checksum(device);
	struct kvs_store *store = NULL;
	struct kvs_error  err = { 0 };

	assert_int_equal(store_open(spec_of(device, options), LOAD_BLOCK, "lru", &store, &err),
			 code);
	if (!strstr(err.message, part) || !strstr(err.message, other))
		fail_msg("%s", err.message);
	assert_int_equal(yard_checksum(device), then);
}

static void expect_well_on(uint32_t sector_bytes, bool lanes)
{
	const char *const device = device_of(DEVICE_BYTES, sector_bytes);
	struct load       load;

	load_run(&load, spec_of(device, lanes ? "" : "?io=plain"), lanes);
	assert_int_equal(load_info(&load).capacity_bytes, DEVICE_BYTES);
	assert_true(load_info(&load).direct);
	load_close(&load);
}

static void a_device_is_used_whole(void **state)
{
	(void)state;
	expect_well_on(512, false);
	expect_well_on(512, true);
}

static void large_sectors_are_well(void **state)
{
	(void)state;
	expect_well_on(4096, false);
	expect_well_on(4096, true);
}

static void a_capacity_is_all_it_uses(void **state)
{
	static const char mine[] = "behind the capacity";
	const char *const device = device_of(2 * DEVICE_BYTES, 512);
	char              found[sizeof(mine)] = "";
	char              has[32], wanted[32];
	struct load       load;
	FILE             *file;

	(void)state;
	yard_write(device, DEVICE_BYTES, mine);
	load_run(&load, spec_of(device, "?capacity=8MiB"), true);
	load_close(&load);
	file = fopen(device, "r");
	assert_non_null(file);
	assert_int_equal(fseek(file, (long)DEVICE_BYTES, SEEK_SET), 0);
	assert_int_equal(fread(found, 1, sizeof(mine) - 1, file), sizeof(mine) - 1);
	fclose(file);
	assert_string_equal(found, mine);
	/* It says how large it is; whoever asks for more is told. */
	expect_refused(device, "?capacity=16MiB", KVS_E_PROTO,
		       units_format_size(DEVICE_BYTES, has), units_format_size(16 * MIB, wanted));
}

static void more_than_it_has_is_refused(void **state)
{
	const char *const device = device_of(DEVICE_BYTES, 512);
	char              has[32], wanted[32];

	(void)state;
	expect_refused(device, "?capacity=9MiB", KVS_E_INVALID, units_format_size(9 * MIB, wanted),
		       units_format_size(DEVICE_BYTES, has));
}

static void a_mounted_device_is_refused(void **state)
{
	const char *const device = device_of(32 * MIB, 512);
	const char *const directory = yard_path("at");

	(void)state;
	if (!yard_format(device, "ext4") || !yard_mount(device, "ext4", directory, NULL))
		skip();
	/* A file system that may write does, a while after it was mounted. */
	yard_read_only(directory);
	expect_refused(device, "", -EBUSY, device, "mounted or otherwise in use");
	expect_refused(device, "?capacity=8MiB", -EBUSY, device, "mounted or otherwise in use");
	yard_unmount(directory);
}

static void a_device_in_use_by_a_store_is_refused(void **state)
{
	const char *const device = device_of(DEVICE_BYTES, 512);
	struct kvs_store *store = NULL;
	struct kvs_error  err = { 0 };
	struct load       load;

	(void)state;
	load_open(&load, spec_of(device, ""), false);
	assert_true(store_open(spec_of(device, ""), LOAD_BLOCK, "lru", &store, &err) < 0);
	assert_int_equal(err.code, KVS_E_BUSY);
	assert_non_null(strstr(err.message, "is open in another store of this process"));
	load_put(&load, 0, 32);
	load_check(&load);
	load_close(&load);
}

/* File systems that begin at the front, a kilobyte on, and 64 of them on behind zeroes. */
static void what_others_left_is_not_touched(void **state)
{
	const char *device;

	(void)state;
	device = device_of(DEVICE_BYTES, 512);
	yard_write(device, 0, "XFSB, or anything else");
	expect_refused(device, "", KVS_E_PROTO, "is no strata file", "left as it is");
	device = device_of(32 * MIB, 512);
	if (yard_format(device, "ext4"))
		expect_refused(device, "", KVS_E_PROTO, "is no strata file", "left as it is");
	device = device_of(DEVICE_BYTES, 512);
	yard_write(device, 0x10040, "_BHRfS_M");
	expect_refused(device, "", KVS_E_PROTO, "is no strata file", "left as it is");
}

static struct strata_settings settings_of(const char *device)
{
	return (struct strata_settings){ .path = device, .block_bytes = LOAD_BLOCK,
					 .evict_policy = "lru", .verify = true };
}

static bool count_finding(void *ctx, const struct strata_finding *finding)
{
	(void)finding;
	++*(uint32_t *)ctx;
	return true;
}

static void a_new_format_shows_nothing_of_the_old(void **state)
{
	const char *const      device = device_of(DEVICE_BYTES, 512);
	struct strata_settings set = settings_of(device);
	struct kvs_error       err = { 0 };
	struct load            load;
	uint32_t               findings = 0;

	(void)state;
	load_run(&load, spec_of(device, ""), false);
	load_close(&load);
	assert_int_equal(strata_format(&set, &err), 0);
	load_open(&load, spec_of(device, ""), false);
	assert_int_equal(load.objects_then, 0);
	load_check(&load);
	assert_int_equal(strata_walk(load.store, true, count_finding, &findings), 0);
	assert_int_equal(findings, 0);
	/* Every segment holds heads, records and summaries of the old one when a crash leaves it open. */
	load_put(&load, 0, 200);
	load_reopen(&load);
	load_close(&load);
}

/* What a device that was formatted over another file system says, it says of its own. */
static void a_format_takes_what_was_refused(void **state)
{
	const char *const      device = device_of(32 * MIB, 512);
	struct strata_settings set = settings_of(device);
	struct kvs_error       err = { 0 };
	struct load            load;

	(void)state;
	if (!yard_format(device, "ext4"))
		skip();
	assert_int_equal(strata_format(&set, &err), 0);
	load_open(&load, spec_of(device, ""), true);
	load_put(&load, 0, 600);
	load_reopen(&load);
	load_close(&load);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_device_is_used_whole, clear),
		cmocka_unit_test_teardown(large_sectors_are_well, clear),
		cmocka_unit_test_teardown(a_capacity_is_all_it_uses, clear),
		cmocka_unit_test_teardown(more_than_it_has_is_refused, clear),
		cmocka_unit_test_teardown(a_mounted_device_is_refused, clear),
		cmocka_unit_test_teardown(a_device_in_use_by_a_store_is_refused, clear),
		cmocka_unit_test_teardown(what_others_left_is_not_touched, clear),
		cmocka_unit_test_teardown(a_new_format_shows_nothing_of_the_old, clear),
		cmocka_unit_test_teardown(a_format_takes_what_was_refused, clear),
	};

	absent = yard_open();
	if (absent) {
		print_message("1..0 # SKIP %s\n", absent);
		return 0;
	}
	return cmocka_run_group_tests(tests, start, stop);
}
