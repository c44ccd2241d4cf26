/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel may refuse a strata file, answered in its place: O_DIRECT, fallocate, room, quota, the
 * size of a file.
 */
#include "load.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/hook.h"
#include "os/os.h"
#include "place.h"

static struct refusal {
	enum os_io_kind kind;
	int             code;
	uint32_t        passes; /* let these go first */
	uint32_t        times;  /* then refuse so many */
	bool            direct_only;
	uint64_t        beyond; /* only what ends behind it */
	uint32_t        refused;
} refusal;

static struct place place;
static char         spec[128];

static bool refuse(void *ctx, struct os_io *io, int64_t *ret_result)
{
	struct refusal *const r = ctx;

	if (io->kind != r->kind || (r->direct_only && !(io->flags & OS_DIRECT)) ||
	    (r->beyond && io->offset + io->bytes <= r->beyond))
		return false;
	if (r->passes > 0) {
		r->passes--;
		return false;
	}
	if (r->refused == r->times)
		return false;
	r->refused++;
	*ret_result = r->code;
	return true;
}

static void refuse_from_now(enum os_io_kind kind, int code, uint32_t passes, uint32_t times)
{
	refusal = (struct refusal){ .kind = kind, .code = code, .passes = passes, .times = times };
	os_io_hook_set(refuse, &refusal);
}

static int begin(void **state)
{
	(void)state;
	place = place_open();
	snprintf(spec, sizeof(spec), "strata:%s?capacity=8MiB&io=plain", place.path);
	return 0;
}

static int end(void **state)
{
	(void)state;
	os_io_hook_set(NULL, NULL);
	place_close(&place);
	return 0;
}

static void without_o_direct_it_says_so(void **state)
{
	struct load load;

	(void)state;
	refuse_from_now(OS_IO_OPEN, -EINVAL, 0, UINT32_MAX);
	refusal.direct_only = true;
	load_run(&load, spec, false);
	assert_true(refusal.refused > 0);
	assert_false(load_info(&load).direct);
	assert_string_equal(load_info(&load).note,
			    "no O_DIRECT on this file system: payload goes through the page cache");
	load_close(&load);
}

static void without_fallocate_it_is_well(void **state)
{
	struct load load;

	(void)state;
	refuse_from_now(OS_IO_ALLOCATE, -EOPNOTSUPP, 0, UINT32_MAX);
	load_run(&load, spec, false);
	assert_true(refusal.refused > 0);
	load_close(&load);
}

static const int no_room[] = { -ENOSPC, -EDQUOT, -EFBIG };

/* A segment that gets no room is not asked for again; the store goes on with what it has. */
static void a_segment_without_room_is_done_without(void **state)
{
	struct load load;
	size_t      i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(no_room); i++) {
		load_open(&load, spec, false);
		refuse_from_now(OS_IO_ALLOCATE, no_room[i], 0, UINT32_MAX);
		refusal.beyond = 2 << 20;
		load_put(&load, 0, 512);
		load_check(&load);
		assert_true(load.refused > 0 && load.refused < 64);
		assert_true(load_info(&load).evicted_objects > 0);
		load_reopen(&load);
		os_io_hook_set(NULL, NULL);
		load_reopen(&load);
		load_put(&load, 512, 1024);
		assert_int_equal(load.refused, 0);
		load_check(&load);
		load_close(&load);
		unlink(place.path);
	}
}

/* Where fallocate is no promise, a write finds out. */
static void a_write_without_room_is_refused(void **state)
{
	struct load load;
	size_t      i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(no_room); i++) {
		load_open(&load, spec, false);
		refuse_from_now(OS_IO_WRITE, no_room[i], 40, 25);
		load_put(&load, 0, 512);
		assert_int_equal(refusal.refused, 25);
		load_check(&load);
		assert_true(load.refused > 0 && load.refused <= 25);
		load_reopen(&load);
		load_put(&load, 512, 600);
		assert_int_equal(load.refused, 0);
		load_close(&load);
		unlink(place.path);
	}
}

static void expect_no_store(int code, const char *why)
{
	struct stat       found;
	struct kvs_store *store = NULL;
	struct kvs_error  err = { 0 };

	assert_int_equal(store_open(spec, LOAD_BLOCK, "lru", &store, &err), code);
	if (!strstr(err.message, place.path) || !strstr(err.message, why))
		fail_msg("%s", err.message);
	/* And the next open finds nothing of it, or what it can use. */
	os_io_hook_set(NULL, NULL);
	if (stat(place.path, &found) == 0) {
		assert_int_equal(store_open(spec, LOAD_BLOCK, "lru", &store, &err), 0);
		assert_int_equal(store->ops->close(store), 0);
	}
	unlink(place.path);
}

static void a_file_that_cannot_be_made_is_named(void **state)
{
	uint32_t passes;
	size_t   i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(no_room); i++) {
		refuse_from_now(OS_IO_OPEN, no_room[i], 0, UINT32_MAX);
		expect_no_store(no_room[i], strerror(-no_room[i]));
		/* Its superblocks, and then the first epoch's. */
		for (passes = 0; passes < 3; passes++) {
			refuse_from_now(OS_IO_WRITE, no_room[i], passes, UINT32_MAX);
			expect_no_store(no_room[i], strerror(-no_room[i]));
		}
	}
	refuse_from_now(OS_IO_SYNC, -EIO, 0, UINT32_MAX);
	expect_no_store(-EIO, strerror(EIO));
}

/* The shell's `ulimit -f`, which programs get as an error: os_program_start(). */
static void a_limit_of_the_files_size_is_no_end(void **state)
{
	struct rlimit then, small;
	struct load   load;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &then), 0);
	small = (struct rlimit){ .rlim_cur = 3 << 20, .rlim_max = then.rlim_max };
	assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	load_open(&load, spec, false);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	load_put(&load, 0, 512);
	load_check(&load);
	assert_true(load.refused > 0 && load.refused < 64);
	load_reopen(&load);
	load_put(&load, 512, 1024);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &then), 0);
	load_check(&load);
	load_close(&load);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_o_direct_it_says_so, begin, end),
		cmocka_unit_test_setup_teardown(without_fallocate_it_is_well, begin, end),
		cmocka_unit_test_setup_teardown(a_segment_without_room_is_done_without, begin, end),
		cmocka_unit_test_setup_teardown(a_write_without_room_is_refused, begin, end),
		cmocka_unit_test_setup_teardown(a_file_that_cannot_be_made_is_named, begin, end),
		cmocka_unit_test_setup_teardown(a_limit_of_the_files_size_is_no_end, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
