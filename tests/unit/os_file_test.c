/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a store: whole transfers whatever the kernel moves at a time, and what a path may name.
 *
 * A hook stands in the kernel's place (os/hook.h) and follows a script.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "death.h"
#include "os/hook.h"
#include "os/os.h"
#include "place.h"

/* --- the script ------------------------------------------------------------------------------- */

/* What becomes of one question; any after the last one pass. */
struct line {
	bool    answer;
	int64_t result;    /* of an answer */
	size_t  bytes_max; /* of a transfer that goes on; 0: all */
};

struct script {
	struct line  lines[4];
	size_t       every_max; /* of each transfer; 0: all */
	unsigned     asked;
	struct os_io seen; /* the last */
};

static bool follow(void *ctx, struct os_io *io, int64_t *ret_result)
{
	struct script *const script = ctx;
	const unsigned       at = script->asked++;
	const struct line    line = at < ARRAY_COUNT(script->lines) ? script->lines[at] :
								      (struct line){ 0 };

	script->seen = *io;
	if (line.answer) {
		*ret_result = line.result;
		return true;
	}
	if (line.bytes_max > 0 && io->bytes > line.bytes_max)
		io->bytes = line.bytes_max;
	if (script->every_max > 0 && io->bytes > script->every_max)
		io->bytes = script->every_max;
	return false;
}

static void begin(struct script *script)
{
	os_io_hook_set(follow, script);
}

static int end(void **state)
{
	(void)state;
	os_io_hook_set(NULL, NULL);
	return 0;
}

/* --- transfers -------------------------------------------------------------------------------- */

#define TEXT "abcdefghijkl"
#define BYTES (sizeof(TEXT) - 1)
#define AT 1000u

static void check_file(int fd)
{
	char found[BYTES + 1] = "";

	assert_int_equal(pread(fd, found, BYTES, AT), BYTES);
	assert_string_equal(found, TEXT);
	assert_int_equal(ftruncate(fd, 0), 0);
}

static void a_write_in_pieces_of_every_size_arrives_whole(void **state)
{
	struct place place = place_open();
	const int    fd = os_file_open(place.path, OS_WRITE | OS_CREATE);
	size_t       size;

	(void)state;
	for (size = 1; size <= BYTES; size++) {
		struct script script = { .every_max = size };

		begin(&script);
		assert_int_equal(os_file_write(fd, TEXT, BYTES, AT), 0);
		assert_int_equal(script.asked, (BYTES + size - 1) / size);
		check_file(fd);
	}
	os_close(fd);
	place_close(&place);
}

static void a_write_that_breaks_anywhere_goes_on_from_there(void **state)
{
	struct place place = place_open();
	const int    fd = os_file_open(place.path, OS_WRITE | OS_CREATE);
	size_t       split;

	(void)state;
	for (split = 1; split < BYTES; split++) {
		struct script script = { .lines = { { .bytes_max = split },
						    { .answer = true, .result = -EINTR } } };

		begin(&script);
		assert_int_equal(os_file_write(fd, TEXT, BYTES, AT), 0);
		assert_int_equal(script.asked, 3);
		assert_true(script.seen.offset == AT + split);
		assert_int_equal(script.seen.bytes, BYTES - split);
		check_file(fd);
	}
	os_close(fd);
	place_close(&place);
}

/* The hook says that bytes were written, which then nobody writes: what it answers is believed. */
static void an_answer_in_the_kernels_place_counts(void **state)
{
	struct place  place = place_open();
	const int     fd = os_file_open(place.path, OS_WRITE | OS_CREATE);
	struct script script = { .lines = { { .answer = true, .result = 9 } } };
	char          found[BYTES + 1] = "";

	(void)state;
	begin(&script);
	assert_int_equal(os_file_write(fd, TEXT, BYTES, 0), 0);
	assert_int_equal(script.seen.kind, OS_IO_WRITE);
	assert_int_equal(script.seen.fd, fd);
	assert_int_equal(pread(fd, found, BYTES, 0), BYTES);
	assert_memory_equal(found, "\0\0\0\0\0\0\0\0\0jkl", BYTES);
	os_close(fd);
	place_close(&place);
}

static void nothing_is_no_transfer(void **state)
{
	struct script script = { 0 };

	(void)state;
	begin(&script);
	assert_int_equal(os_file_write(-1, NULL, 0, 0), 0);
	assert_int_equal(os_file_read(-1, NULL, 0, 0), 0);
	assert_int_equal(script.asked, 0);
}

static void a_write_that_fails_says_why(void **state)
{
	struct place  place = place_open();
	const int     fd = os_file_open(place.path, OS_WRITE | OS_CREATE);
	struct script fails = { .lines = { { .bytes_max = 3 },
					   { .answer = true, .result = -ENOSPC } } };
	struct script idles = { .lines = { { .answer = true, .result = 0 } } };

	(void)state;
	begin(&fails);
	assert_int_equal(os_file_write(fd, TEXT, BYTES, 0), -ENOSPC);
	assert_int_equal(fails.asked, 2);
	begin(&idles);
	assert_int_equal(os_file_write(fd, TEXT, BYTES, 0), -EIO);
	assert_int_equal(idles.asked, 1);
	os_close(fd);
	place_close(&place);
}

static void a_read_in_pieces_arrives_whole(void **state)
{
	struct place  place = place_open();
	const int     fd = os_file_open(place.path, OS_WRITE | OS_CREATE);
	struct script script = { .lines = { { .bytes_max = 1 },
					    { .answer = true, .result = -EINTR } },
				 .every_max = 5 };
	struct script ends = { .lines = { { .bytes_max = 5 }, { .answer = true, .result = 0 } } };
	struct script fails = { .lines = { { .answer = true, .result = -EIO } } };
	char          found[BYTES + 1] = "";

	(void)state;
	assert_int_equal(os_file_write(fd, TEXT, BYTES, AT), 0);
	begin(&script);
	assert_int_equal(os_file_read(fd, found, BYTES, AT), 0);
	assert_string_equal(found, TEXT);
	assert_int_equal(script.asked, 5);
	assert_int_equal(script.seen.kind, OS_IO_READ);
	begin(&ends);
	assert_int_equal(os_file_read(fd, found, BYTES, AT), -ENODATA);
	begin(&fails);
	assert_int_equal(os_file_read(fd, found, BYTES, AT), -EIO);
	os_close(fd);
	place_close(&place);
}

/* --- the other questions ---------------------------------------------------------------------- */

static void every_call_is_shown_and_may_be_answered(void **state)
{
	struct place  place = place_open();
	const int     fd = os_file_open(place.path, OS_WRITE | OS_CREATE);
	struct script script = { .lines = { { .answer = true, .result = -EINTR },
					    { .answer = true, .result = -EIO },
					    { .answer = true, .result = -ENOSPC },
					    { .answer = true, .result = 0 } } };
	uint64_t      bytes = 9;

	(void)state;
	begin(&script);
	assert_int_equal(os_file_sync(fd), -EIO);
	assert_int_equal(script.asked, 2);
	assert_int_equal(script.seen.kind, OS_IO_SYNC);
	assert_int_equal(os_file_allocate(fd, 4096, 8192), -ENOSPC);
	assert_int_equal(script.seen.kind, OS_IO_ALLOCATE);
	assert_true(script.seen.offset == 4096 && script.seen.bytes == 8192);
	assert_int_equal(os_file_resize(fd, 77), 0);
	assert_int_equal(script.seen.kind, OS_IO_RESIZE);
	assert_int_equal(script.seen.bytes, 77);
	/* Nobody did it. */
	assert_int_equal(os_file_size(fd, &bytes), 0);
	assert_int_equal(bytes, 0);
	assert_int_equal(os_file_lock(fd), 0);
	assert_int_equal(script.seen.kind, OS_IO_LOCK);
	assert_int_equal(script.seen.fd, fd);
	os_close(fd);
	place_close(&place);
}

static void an_open_may_be_answered(void **state)
{
	struct place  place = place_open();
	struct script script = { .lines = { { .answer = true, .result = -EINTR },
					    { .answer = true, .result = -EACCES },
					    { .answer = true, .result = 500 } } };

	(void)state;
	begin(&script);
	assert_int_equal(os_file_open(place.path, OS_WRITE | OS_CREATE), -EACCES);
	assert_int_equal(script.asked, 2);
	assert_int_equal(script.seen.kind, OS_IO_OPEN);
	assert_int_equal(script.seen.flags, OS_WRITE | OS_CREATE);
	assert_int_equal(script.seen.fd, -1);
	assert_int_equal(os_file_open(place.path, 0), 500);
	assert_int_equal(access(place.path, F_OK), -1);
	place_close(&place);
}

static bool enlarge(void *ctx, struct os_io *io, int64_t *ret_result)
{
	(void)ctx;
	(void)ret_result;
	io->bytes++;
	return false;
}

static bool overstate(void *ctx, struct os_io *io, int64_t *ret_result)
{
	(void)ctx;
	*ret_result = (int64_t)io->bytes + 1;
	return true;
}

static void write_a_byte(void *hook)
{
	os_io_hook_set(*(os_io_hook **)hook, NULL);
	os_file_write(-1, TEXT, 1, 0);
}

static void a_hook_that_makes_more_of_it_is_a_mistake(void **state)
{
	os_io_hook *hooks[] = { enlarge, overstate };

	(void)state;
	assert_true(death_panics(write_a_byte, &hooks[0], NULL, 0));
	assert_true(death_panics(write_a_byte, &hooks[1], NULL, 0));
}

/* --- room ------------------------------------------------------------------------------------- */

static void allocated_bytes_are_backed_and_keep_what_was_there(void **state)
{
	const uint64_t bytes = 1 << 20;
	struct place   place = place_open();
	const int      fd = os_file_open(place.path, OS_WRITE | OS_CREATE);
	char           found[BYTES + 1] = "";
	struct stat    stat;
	int            rc;

	(void)state;
	assert_int_equal(os_file_write(fd, TEXT, BYTES, 0), 0);
	rc = os_file_allocate(fd, 0, bytes);
	if (rc == 0) {
		assert_int_equal(fstat(fd, &stat), 0);
		assert_int_equal(stat.st_size, bytes);
		assert_true((uint64_t)stat.st_blocks * 512 >= bytes);
		assert_int_equal(os_file_allocate(fd, bytes, 4096), 0);
		assert_int_equal(fstat(fd, &stat), 0);
		assert_int_equal(stat.st_size, bytes + 4096);
		/* Not one that is smaller either. */
		assert_int_equal(os_file_allocate(fd, 0, 4096), 0);
		assert_int_equal(fstat(fd, &stat), 0);
		assert_int_equal(stat.st_size, bytes + 4096);
	} else {
		assert_int_equal(rc, -EOPNOTSUPP);
	}
	assert_int_equal(os_file_read(fd, found, BYTES, 0), 0);
	assert_string_equal(found, TEXT);
	assert_int_equal(os_file_allocate(fd, 0, 0), -EINVAL);
	assert_int_equal(os_file_allocate(-1, 0, 4096), -EBADF);
	os_close(fd);
	place_close(&place);
}

/* --- what a path names ------------------------------------------------------------------------ */

static void kinds_are_told_apart(void **state)
{
	struct place place = place_open();
	const int    file = os_file_open(place.path, OS_WRITE | OS_CREATE);
	const int    folder = os_file_open(place.directory, 0);
	const int    character = os_file_open("/dev/null", OS_WRITE);
	int          ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(os_file_kind(file), OS_FILE_REGULAR);
	assert_int_equal(os_file_kind(folder), OS_FILE_OTHER);
	assert_int_equal(os_file_kind(character), OS_FILE_OTHER);
	assert_int_equal(os_file_kind(ends[0]), OS_FILE_OTHER);
	assert_int_equal(os_file_kind(-1), OS_FILE_OTHER);
	assert_false(os_file_is_device(file));
	assert_false(os_file_is_device(character));
	assert_int_equal(os_file_open(place.directory, OS_WRITE), -EISDIR);
	os_close(file);
	os_close(folder);
	os_close(character);
	os_close(ends[0]);
	os_close(ends[1]);
	place_close(&place);
}

static void a_new_file_was_not_there(void **state)
{
	struct place place = place_open();
	const int    fd = os_file_open(place.path, OS_WRITE | OS_NEW);
	struct stat  stat;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &stat), 0);
	assert_int_equal(stat.st_mode & 0077, 0);
	assert_int_equal(os_file_open(place.path, OS_WRITE | OS_NEW), -EEXIST);
	assert_int_equal(os_file_open(place.path, OS_WRITE | OS_NEW | OS_CREATE), -EEXIST);
	assert_int_equal(os_file_open("/dev/null", OS_NEW | OS_EXCLUSIVE_DEVICE), -EEXIST);
	os_close(fd);
	place_close(&place);
}

static void a_pipe_may_be_opened_without_its_other_end(void **state)
{
	struct place place = place_open();
	int          fd;

	(void)state;
	assert_int_equal(mkfifo(place.path, 0600), 0);
	fd = os_file_open(place.path, OS_NO_WAIT);
	assert_true(fd >= 0);
	assert_int_equal(os_file_kind(fd), OS_FILE_OTHER);
	os_close(fd);
	place_close(&place);
}

static void exclusive_device_says_nothing_about_a_file(void **state)
{
	const int    flags = OS_WRITE | OS_EXCLUSIVE_DEVICE;
	struct place place = place_open();
	int          first, second;

	(void)state;
	assert_int_equal(os_file_open(place.path, flags), -ENOENT);
	first = os_file_open(place.path, flags | OS_CREATE);
	second = os_file_open(place.path, flags | OS_CREATE);
	assert_true(first >= 0 && second >= 0);
	os_close(first);
	os_close(second);
	place_close(&place);
}

/* The device that holds the tests' own files is mounted.  It is opened for reading only. */
static void a_mounted_device_is_busy(void **state)
{
	struct place place = place_open();
	struct stat  stat_of, node;
	char         link[64], target[128] = "", device[64];
	const char  *name;
	int          fd;

	(void)state;
	assert_int_equal(stat(place.directory, &stat_of), 0);
	place_close(&place);
	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(stat_of.st_dev),
		 minor(stat_of.st_dev));
	(void)!readlink(link, target, sizeof(target) - 1);
	name = strrchr(target, '/');
	snprintf(device, sizeof(device), "/dev/%.50s", name ? name + 1 : "");
	fd = name ? os_file_open(device, OS_DIRECT) : -1;
	if (fd < 0 || fstat(fd, &node) < 0 || node.st_rdev != stat_of.st_dev) {
		os_close(fd);
		print_message("# the device under /tmp cannot be opened\n");
		skip();
	}
	assert_int_equal(os_file_kind(fd), OS_FILE_DEVICE);
	assert_true(os_file_is_device(fd));
	assert_int_equal(os_file_open(device, OS_DIRECT | OS_EXCLUSIVE_DEVICE), -EBUSY);
	assert_int_equal(os_file_open(device, OS_CREATE | OS_EXCLUSIVE_DEVICE), -EBUSY);
	assert_int_equal(os_file_allocate(fd, 0, 4096), -EBADF);
	os_close(fd);
}

/* Where the file system has no direct I/O, opening says so. */
static void a_direct_file_can_be_read_without_writing(void **state)
{
	struct place place = place_open();
	const int    fd = os_file_open(place.path, OS_WRITE | OS_CREATE);
	void        *page;
	int          direct;

	(void)state;
	assert_int_equal(os_pages_map(4096, &page), 0);
	memset(page, 7, 4096);
	assert_int_equal(os_file_write(fd, page, 4096, 0), 0);
	assert_int_equal(os_file_sync(fd), 0);
	memset(page, 0, 4096);
	direct = os_file_open(place.path, OS_DIRECT);
	if (direct < 0) {
		assert_int_equal(direct, -EINVAL);
	} else {
		assert_int_equal(os_file_read(direct, page, 4096, 0), 0);
		assert_int_equal(*(char *)page, 7);
		assert_int_equal(os_file_write(direct, page, 4096, 0), -EBADF);
	}
	os_pages_unmap(page, 4096);
	os_close(direct);
	os_close(fd);
	place_close(&place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_write_in_pieces_of_every_size_arrives_whole, end),
		cmocka_unit_test_teardown(a_write_that_breaks_anywhere_goes_on_from_there, end),
		cmocka_unit_test_teardown(an_answer_in_the_kernels_place_counts, end),
		cmocka_unit_test_teardown(nothing_is_no_transfer, end),
		cmocka_unit_test_teardown(a_write_that_fails_says_why, end),
		cmocka_unit_test_teardown(a_read_in_pieces_arrives_whole, end),
		cmocka_unit_test_teardown(every_call_is_shown_and_may_be_answered, end),
		cmocka_unit_test_teardown(an_open_may_be_answered, end),
		cmocka_unit_test(a_hook_that_makes_more_of_it_is_a_mistake),
		cmocka_unit_test(allocated_bytes_are_backed_and_keep_what_was_there),
		cmocka_unit_test(kinds_are_told_apart),
		cmocka_unit_test(a_new_file_was_not_there),
		cmocka_unit_test(a_pipe_may_be_opened_without_its_other_end),
		cmocka_unit_test(exclusive_device_says_nothing_about_a_file),
		cmocka_unit_test(a_mounted_device_is_busy),
		cmocka_unit_test(a_direct_file_can_be_read_without_writing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
