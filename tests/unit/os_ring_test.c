/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring: what is queued arrives once, whole or with its reason, whatever way the kernel takes for it.
 *
 * Skipped where the kernel or a container has no io_uring.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <liburing.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/err.h"
#include "death.h"
#include "os/hook.h"
#include "os/os.h"
#include "os/ring.h"
#include "place.h"

#define MS UINT64_C(1000000)
/* Longer than any of this takes; nothing waits so long unless it is broken. */
#define LONG (60000 * MS)
#define ENTRIES 8u
#define PAGE 4096u

struct scene {
	struct os_ring *ring;
	struct place    place;
	int             fd;
	uint8_t        *pages; /* 16, shared */
	int             pages_fd;
};

static struct scene scene;

/* A test that failed may leave some in flight, which would panic and hide why it failed. */
static bool ring_is_idle(void)
{
	struct os_ring_done done[ENTRIES];

	if (scene.ring && os_ring_in_flight(scene.ring) > 0)
		os_ring_reap(scene.ring, done, ENTRIES, os_ring_in_flight(scene.ring), 100 * MS);
	return !scene.ring || os_ring_in_flight(scene.ring) == 0;
}

static int tear_down(void **state)
{
	(void)state;
	os_io_hook_set(NULL, NULL);
	if (ring_is_idle())
		os_ring_close(scene.ring);
	os_pages_unmap(scene.pages, 16 * PAGE);
	os_close(scene.pages_fd);
	os_close(scene.fd);
	place_close(&scene.place);
	return 0;
}

static int set_up(void **state)
{
	void *ptr;

	(void)state;
	scene = (struct scene){ .place = place_open() };
	scene.fd = os_file_open(scene.place.path, OS_WRITE | OS_CREATE);
	if (scene.fd < 0 || os_pages_map_shared("t", 16 * PAGE, false, &ptr, &scene.pages_fd) < 0)
		return -1;
	scene.pages = ptr;
	return 0;
}

static void open_ring(void)
{
	const int rc = os_ring_open(ENTRIES, &scene.ring);

	if (rc == -ENOSYS || rc == -EPERM) {
		print_message("# no io_uring here: %s\n", strerror(-rc));
		skip();
	}
	assert_int_equal(rc, 0);
}

static uint8_t *page(unsigned number)
{
	return scene.pages + (size_t)number * PAGE;
}

static void write_one(const void *bytes, size_t count, uint64_t offset, uint64_t tag)
{
	os_ring_write(scene.ring, scene.fd, bytes, count, offset, tag);
}

/* The one that is in flight. */
static struct os_ring_done reap_one(void)
{
	struct os_ring_done done[2];

	assert_int_equal(os_ring_reap(scene.ring, done, 2, 1, LONG), 1);
	return done[0];
}

#define assert_done(tag_, result_) \
	do { \
		const struct os_ring_done done_ = reap_one(); \
		assert_true(done_.tag == (tag_)); \
		assert_int_equal(done_.result, result_); \
	} while (0)

static void assert_file(uint64_t offset, uint8_t byte, size_t count)
{
	uint8_t found[2 * PAGE];
	size_t  i;

	assert_int_equal(pread(scene.fd, found, count, (off_t)offset), count);
	for (i = 0; i < count; i++)
		assert_int_equal(found[i], byte);
}

/* --- transfers -------------------------------------------------------------------------------- */

static void a_ring_without_entries_is_refused(void **state)
{
	struct os_ring *ring = NULL;

	(void)state;
	assert_int_equal(os_ring_open(0, &ring), -EINVAL);
	assert_int_equal(os_ring_open(UINT32_MAX, &ring), -EINVAL);
	assert_null(ring);
	os_ring_close(NULL);
}

static void bytes_go_and_come_back(void **state)
{
	(void)state;
	open_ring();
	memset(page(0), 'a', PAGE);
	write_one(page(0), PAGE, 3 * PAGE, UINT64_MAX);
	assert_done(UINT64_MAX, PAGE);
	os_ring_read(scene.ring, scene.fd, page(1), PAGE, 3 * PAGE, 0);
	assert_done(0, PAGE);
	assert_memory_equal(page(1), page(0), PAGE);
	/* What ends before `bytes` is a fact, and what lies behind the end is nothing. */
	os_ring_read(scene.ring, scene.fd, page(1), 2 * PAGE, 3 * PAGE + 96, 1);
	assert_done(1, PAGE - 96);
	os_ring_read(scene.ring, scene.fd, page(1), PAGE, 4 * PAGE, 2);
	assert_done(2, 0);
	os_ring_sync(scene.ring, scene.fd, 3);
	assert_done(3, 0);
	assert_int_equal(os_ring_in_flight(scene.ring), 0);
}

static void errors_are_results(void **state)
{
	const int read_only = os_file_open(scene.place.path, 0);

	(void)state;
	open_ring();
	os_ring_write(scene.ring, read_only, page(0), PAGE, 0, 1);
	assert_done(1, -EBADF);
	os_ring_read(scene.ring, -1, page(0), PAGE, 0, 2);
	assert_done(2, -EBADF);
	os_ring_read(scene.ring, scene.fd, page(0), PAGE, UINT64_MAX - 1, 3);
	assert_done(3, -EINVAL);
	os_ring_sync(scene.ring, -1, 4);
	assert_done(4, -EBADF);
	os_close(read_only);
}

/* It is in the middle, and its neighbours arrive. */
static void one_that_cannot_be_stops_no_other(void **state)
{
	struct os_ring_done done[4];
	uint64_t            seen = 0;
	int                 i;

	(void)state;
	open_ring();
	write_one(page(0), PAGE, 0, 1);
	os_ring_read(scene.ring, -1, page(0), PAGE, 0, 2);
	write_one(page(0), PAGE, PAGE, 3);
	assert_int_equal(os_ring_submit(scene.ring), 0);
	assert_int_equal(os_ring_reap(scene.ring, done, 4, 3, LONG), 3);
	for (i = 0; i < 3; i++) {
		seen |= UINT64_C(1) << done[i].tag;
		assert_int_equal(done[i].result, done[i].tag == 2 ? -EBADF : (int)PAGE);
	}
	assert_true(seen == 0xe);
}

/* --- what the kernel knows -------------------------------------------------------------------- */

/* The number is given to another file, and still means the one that was registered. */
static void a_registered_file_is_not_looked_up(void **state)
{
	struct place elsewhere = place_open();
	const int    other = os_file_open(elsewhere.path, OS_WRITE | OS_CREATE);
	const int    copy = dup(scene.fd);
	uint64_t     bytes;

	(void)state;
	open_ring();
	assert_int_equal(os_ring_register_file(scene.ring, -1), -EBADF);
	assert_int_equal(os_ring_register_file(scene.ring, other), 0);
	assert_int_equal(os_ring_register_file(scene.ring, scene.fd), 0);
	assert_int_equal(dup2(other, scene.fd), scene.fd);
	memset(page(0), 'a', PAGE);
	write_one(page(0), PAGE, 0, 1);
	assert_done(1, PAGE);
	os_ring_read(scene.ring, scene.fd, page(1), PAGE, 0, 2);
	assert_done(2, PAGE);
	assert_memory_equal(page(1), page(0), PAGE);
	os_ring_sync(scene.ring, scene.fd, 3);
	assert_done(3, 0);
	assert_int_equal(os_file_size(other, &bytes), 0);
	assert_int_equal(bytes, 0);
	assert_int_equal(os_file_size(copy, &bytes), 0);
	assert_int_equal(bytes, PAGE);
	os_close(copy);
	os_close(other);
	place_close(&elsewhere);
}

static void registered_files_have_an_end(void **state)
{
	unsigned i;

	(void)state;
	open_ring();
	for (i = 0; i < OS_RING_FILES_MAX; i++)
		assert_int_equal(os_ring_register_file(scene.ring, scene.fd), 0);
	assert_int_equal(os_ring_register_file(scene.ring, scene.fd), -ENOSPC);
}

/* Slices 4..7 and 1..2, in that order. */
static void register_slices(void)
{
	const struct iovec slices[2] = { { page(4), 4 * PAGE }, { page(1), 2 * PAGE } };
	const int          rc = os_ring_register_memory(scene.ring, slices, 2);

	if (rc == -ENOMEM) {
		print_message("# too little memory may be locked\n");
		skip();
	}
	assert_int_equal(rc, 0);
}

static void registered_memory_serves_reads_and_writes(void **state)
{
	const struct iovec slice = { page(0), PAGE };

	(void)state;
	open_ring();
	assert_int_equal(os_ring_register_memory(scene.ring, &slice, 0), -EINVAL);
	register_slices();
	assert_int_equal(os_ring_register_memory(scene.ring, &slice, 1), -EBUSY);
	assert_int_equal(os_ring_register_file(scene.ring, scene.fd), 0);
	memset(page(4), 'a', 4 * PAGE);
	write_one(page(5) + 10, PAGE, 0, 1);
	assert_done(1, PAGE);
	assert_file(0, 'a', PAGE);
	os_ring_read(scene.ring, scene.fd, page(1), PAGE, 0, 2);
	assert_done(2, PAGE);
	assert_memory_equal(page(1), page(4), PAGE);
}

/*
 * Other pages take the addresses of those that were registered: what finds the old ones goes by the
 * registration, what finds the new ones by the address.
 */
static void only_what_lies_in_one_slice_goes_by_the_registration(void **state)
{
	const struct {
		uint8_t *from;
		size_t   bytes;
		uint8_t  expected;
	} cases[] = {
		{ page(1), 1, 'o' },
		{ page(1), 2 * PAGE, 'o' },
		{ page(2) + 100, PAGE - 100, 'o' },
		{ page(2), PAGE + 1, 'n' },
		{ page(0) + PAGE - 1, 2, 'n' },
		{ page(3), PAGE, 'n' },
		{ page(3) + PAGE - 1, 2, 'n' },
		{ page(4), PAGE, 'o' },
		{ page(7), PAGE, 'o' },
		{ page(7) + 1, PAGE, 'n' },
		{ page(8), PAGE, 'n' },
	};
	unsigned i;

	(void)state;
	open_ring();
	memset(scene.pages, 'o', 16 * PAGE);
	register_slices();
	assert_ptr_equal(mmap(scene.pages, 16 * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 scene.pages);
	memset(scene.pages, 'n', 16 * PAGE);
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		write_one(cases[i].from, cases[i].bytes, 0, i);
		assert_done(i, (int)cases[i].bytes);
		assert_file(0, cases[i].expected, cases[i].bytes);
	}
	/* A read goes into the old page. */
	os_ring_read(scene.ring, scene.fd, page(2), 50, 0, 1);
	assert_done(1, 50);
	assert_int_equal(*page(2), 'n');
	write_one(page(2), 50, 0, 2);
	assert_done(2, 50);
	memset(page(2), 'x', PAGE);
	write_one(page(2), 51, 0, 3);
	assert_done(3, 51);
	assert_file(0, 'n', 50);
	assert_file(50, 'o', 1);
}

/* The kernel takes a ring down later, but the lock of its file is free at once. */
static void a_closed_ring_holds_no_lock(void **state)
{
	struct os_ring_done done[2];
	unsigned            i;

	(void)state;
	for (i = 0; i < 20; i++) {
		open_ring();
		assert_int_equal(os_file_lock(scene.fd), 0);
		assert_int_equal(os_ring_register_file(scene.ring, scene.fd), 0);
		write_one(page(0), PAGE, 0, 1);
		os_ring_sync(scene.ring, scene.fd, 2);
		assert_int_equal(os_ring_reap(scene.ring, done, 2, 2, LONG), 2);
		os_ring_close(scene.ring);
		scene.ring = NULL;
		os_close(scene.fd);
		scene.fd = os_file_open(scene.place.path, OS_WRITE);
	}
}

/* --- many ------------------------------------------------------------------------------------- */

static void a_full_ring_refills_and_loses_nothing(void **state)
{
	enum { COUNT = 1000 };
	static uint8_t      seen[COUNT];
	struct os_ring_done done[3];
	unsigned            queued = 0, reaped = 0, i;

	(void)state;
	open_ring();
	register_slices();
	memset(seen, 0, sizeof(seen));
	while (reaped < COUNT) {
		int got;

		for (; queued < COUNT && os_ring_room(scene.ring) > 0; queued++) {
			if (queued % 10 == 9) {
				os_ring_sync(scene.ring, scene.fd, queued);
			} else {
				write_one(page(queued % 16), 512 * (1 + queued % 2),
					  queued * UINT64_C(1024), queued);
			}
		}
		assert_int_equal(os_ring_room(scene.ring) + os_ring_in_flight(scene.ring),
				 ENTRIES);
		got = os_ring_reap(scene.ring, done, 3, 1, LONG);
		assert_in_range(got, 1, 3);
		for (i = 0; i < (unsigned)got; i++) {
			const uint64_t tag = done[i].tag;

			assert_true(tag < queued && !seen[tag]);
			seen[tag] = 1;
			assert_int_equal(done[i].result, tag % 10 == 9 ? 0 : tag % 2 ? 1024 : 512);
		}
		reaped += (unsigned)got;
	}
	assert_int_equal(os_ring_in_flight(scene.ring), 0);
	assert_int_equal(os_ring_reap(scene.ring, done, 3, 0, 0), 0);
}

static void one_too_many(void *arg)
{
	unsigned i;

	(void)arg;
	for (i = 0; i <= ENTRIES; i++)
		os_ring_sync(scene.ring, scene.fd, i);
}

static void close_too_early(void *arg)
{
	(void)arg;
	os_ring_sync(scene.ring, scene.fd, 0);
	os_ring_close(scene.ring);
}

static void a_full_ring_and_an_early_close_are_our_mistakes(void **state)
{
	(void)state;
	open_ring();
	assert_true(death_panics(one_too_many, NULL, NULL, 0));
	assert_true(death_panics(close_too_early, NULL, NULL, 0));
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* A read of a pipe that nobody writes to is in flight until somebody does. */
static void begin_endless(int ends[2])
{
	assert_int_equal(pipe(ends), 0);
	os_ring_read(scene.ring, ends[0], page(0), 1, 0, 5);
}

static void finish_endless(const int ends[2])
{
	assert_int_equal(write(ends[1], "z", 1), 1);
	assert_done(5, 1);
	assert_int_equal(*page(0), 'z');
	os_close(ends[0]);
	os_close(ends[1]);
}

static long sleeps(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw;
}

static void a_wait_ends_with_its_time(void **state)
{
	struct os_ring_done done[4];
	uint64_t            begin_ns = os_now_ns();
	long                before;
	int                 ends[2], count;

	(void)state;
	open_ring();
	begin_endless(ends);
	assert_int_equal(os_ring_reap(scene.ring, done, 4, 0, LONG), 0);
	assert_int_equal(os_ring_reap(scene.ring, done, 4, 1, 0), 0);
	before = sleeps();
	assert_int_equal(os_ring_reap(scene.ring, done, 4, 1, 3 * MS), 0);
	assert_true(os_now_ns() >= begin_ns + 3 * MS);
	assert_true(sleeps() > before);
	assert_int_equal(os_ring_in_flight(scene.ring), 1);
	/* What comes in time is not kept back; on a busy machine it may need a wait or two. */
	write_one(page(1), PAGE, 0, 6);
	do {
		begin_ns = os_now_ns();
		count = os_ring_reap(scene.ring, done, 4, 2, 3 * MS);
		assert_true(os_now_ns() >= begin_ns + 3 * MS);
	} while (count == 0);
	assert_int_equal(count, 1);
	assert_true(done[0].tag == 6);
	finish_endless(ends);
}

/* It could only wait for ever: nobody else may queue. */
static void nobody_waits_for_what_was_not_asked(void **state)
{
	struct os_ring_done done[4];

	(void)state;
	open_ring();
	assert_int_equal(os_ring_reap(scene.ring, done, 4, 4, UINT64_MAX), 0);
	write_one(page(1), PAGE, 0, 6);
	assert_int_equal(os_ring_reap(scene.ring, done, 4, 4, UINT64_MAX), 1);
}

static void what_the_caller_has_no_room_for_stays(void **state)
{
	struct os_ring_done done[4];
	unsigned            i;

	(void)state;
	open_ring();
	for (i = 0; i < 5; i++)
		write_one(page(1), PAGE, i * PAGE, i);
	assert_int_equal(os_ring_reap(scene.ring, done, 4, 4, LONG), 4);
	assert_int_equal(os_ring_in_flight(scene.ring), 1);
	assert_int_equal(os_ring_room(scene.ring), ENTRIES - 1);
	assert_int_equal(os_ring_reap(scene.ring, done, 4, 1, LONG), 1);
}

/* A reap that never waits still gets what ends, and hands over what is queued. */
static void looking_again_and_again_is_enough(void **state)
{
	struct os_ring_done done;
	int                 ends[2];

	(void)state;
	open_ring();
	begin_endless(ends);
	assert_int_equal(os_ring_reap(scene.ring, &done, 1, 0, 0), 0);
	assert_int_equal(write(ends[1], "z", 1), 1);
	while (os_ring_reap(scene.ring, &done, 1, 0, 0) == 0)
		;
	assert_true(done.tag == 5);
	assert_int_equal(done.result, 1);
	os_close(ends[0]);
	os_close(ends[1]);
}

static void ignore(int number)
{
	(void)number;
}

static void signals_neither_end_a_wait_nor_lose_anything(void **state)
{
	const struct sigaction handler = { .sa_handler = ignore };
	const struct itimerval often = { .it_interval = { 0, 200 }, .it_value = { 0, 200 } };
	const struct itimerval never = { 0 };
	struct os_ring_done    done;
	struct sigaction       before;
	uint64_t               begin_ns;
	int                    ends[2];

	(void)state;
	open_ring();
	begin_endless(ends);
	sigaction(SIGALRM, &handler, &before);
	setitimer(ITIMER_REAL, &often, NULL);
	begin_ns = os_now_ns();
	assert_int_equal(os_ring_reap(scene.ring, &done, 1, 1, 5 * MS), 0);
	assert_true(os_now_ns() >= begin_ns + 5 * MS);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &before, NULL);
	finish_endless(ends);
}

/* --- the hook --------------------------------------------------------------------------------- */

struct script {
	bool         answer;
	int64_t      result;
	size_t       bytes_max; /* 0: all */
	struct os_io seen;
};

static bool follow(void *ctx, struct os_io *io, int64_t *ret_result)
{
	struct script *const script = ctx;

	script->seen = *io;
	if (script->answer) {
		*ret_result = script->result;
		return true;
	}
	if (script->bytes_max > 0 && io->bytes > script->bytes_max)
		io->bytes = script->bytes_max;
	return false;
}

static void an_answer_becomes_a_completion(void **state)
{
	struct script       script = { .answer = true, .result = -EIO };
	struct os_ring_done done[4];
	uint64_t            bytes;

	(void)state;
	open_ring();
	os_io_hook_set(follow, &script);
	write_one(page(3), PAGE, 96, 1);
	assert_int_equal(script.seen.kind, OS_IO_WRITE);
	assert_int_equal(script.seen.fd, scene.fd);
	assert_true(script.seen.bytes == PAGE && script.seen.offset == 96);
	assert_ptr_equal(script.seen.buffer, page(3));
	script.result = 77;
	os_ring_read(scene.ring, scene.fd, page(3), PAGE, 0, 2);
	assert_int_equal(script.seen.kind, OS_IO_READ);
	script.result = -ENOSPC;
	os_ring_sync(scene.ring, scene.fd, 3);
	assert_int_equal(script.seen.kind, OS_IO_SYNC);
	assert_int_equal(os_ring_in_flight(scene.ring), 3);
	assert_int_equal(os_ring_submit(scene.ring), 0);
	assert_int_equal(os_ring_in_flight(scene.ring), 3);
	assert_int_equal(os_ring_reap(scene.ring, done, 1, 0, 0), 1);
	assert_true(done[0].tag == 1 && done[0].result == -EIO);
	/* One that the kernel does is among them. */
	script.answer = false;
	write_one(page(3), 100, 0, 4);
	assert_int_equal(os_ring_reap(scene.ring, done, 4, 3, LONG), 3);
	assert_true(done[0].tag == 2 && done[0].result == 77);
	assert_true(done[1].tag == 3 && done[1].result == -ENOSPC);
	assert_true(done[2].tag == 4 && done[2].result == 100);
	assert_int_equal(os_ring_in_flight(scene.ring), 0);
	assert_int_equal(os_file_size(scene.fd, &bytes), 0);
	assert_int_equal(bytes, 100);
}

static void answers_fill_the_ring_like_others(void **state)
{
	struct script       script = { .answer = true };
	struct os_ring_done done[ENTRIES];
	unsigned            round, i;

	(void)state;
	open_ring();
	os_io_hook_set(follow, &script);
	for (round = 0; round < 3; round++) {
		while (os_ring_room(scene.ring) > 0)
			os_ring_sync(scene.ring, scene.fd, os_ring_room(scene.ring));
		assert_int_equal(os_ring_reap(scene.ring, done, 5, 5, LONG), 5);
		for (i = 0; i < 5; i++)
			assert_true(done[i].tag == ENTRIES - i);
		os_ring_sync(scene.ring, scene.fd, 99);
		assert_int_equal(os_ring_reap(scene.ring, done, ENTRIES, 4, LONG), 4);
		assert_true(done[3].tag == 99);
	}
}

static void a_transfer_can_be_cut_anywhere(void **state)
{
	struct script script = { 0 };
	char          found[12];

	(void)state;
	open_ring();
	memcpy(page(1), "abcdefghijkl", 12);
	os_io_hook_set(follow, &script);
	for (script.bytes_max = 1; script.bytes_max <= 12; script.bytes_max++) {
		assert_int_equal(os_file_resize(scene.fd, 0), 0);
		write_one(page(1), 12, 0, script.bytes_max);
		assert_done(script.bytes_max, (int)script.bytes_max);
		assert_int_equal(pread(scene.fd, found, 12, 0), script.bytes_max);
		assert_memory_equal(found, "abcdefghijkl", script.bytes_max);
	}
	script.bytes_max = 3;
	os_ring_read(scene.ring, scene.fd, page(4), 12, 2, 1);
	assert_done(1, 3);
	assert_memory_equal(page(4), "cde\0", 4);
}

/* --- refusals --------------------------------------------------------------------------------- */

/* The kernel's: of so many next calls, with this reason. */
static struct {
	unsigned count;
	int      code;
	unsigned asked;
} refusals;

static bool refuses(void)
{
	refusals.asked++;
	return refusals.count > 0 && refusals.count-- > 0;
}

/* The linker's names. */
int __real_io_uring_submit(struct io_uring *uring);
int __wrap_io_uring_submit(struct io_uring *uring);
int __real_io_uring_submit_and_get_events(struct io_uring *uring);
int __wrap_io_uring_submit_and_get_events(struct io_uring *uring);
int __real_io_uring_submit_and_wait_timeout(struct io_uring *uring, struct io_uring_cqe **cqe,
					    unsigned count, struct __kernel_timespec *timeout,
					    sigset_t *mask);
int __wrap_io_uring_submit_and_wait_timeout(struct io_uring *uring, struct io_uring_cqe **cqe,
					    unsigned count, struct __kernel_timespec *timeout,
					    sigset_t *mask);

int __wrap_io_uring_submit(struct io_uring *uring)
{
	return refuses() ? refusals.code : __real_io_uring_submit(uring);
}

int __wrap_io_uring_submit_and_get_events(struct io_uring *uring)
{
	return refuses() ? refusals.code : __real_io_uring_submit_and_get_events(uring);
}

int __wrap_io_uring_submit_and_wait_timeout(struct io_uring *uring, struct io_uring_cqe **cqe,
					    unsigned count, struct __kernel_timespec *timeout,
					    sigset_t *mask)
{
	if (refuses())
		return refusals.code;
	return __real_io_uring_submit_and_wait_timeout(uring, cqe, count, timeout, mask);
}

static void refuse(unsigned count, int code)
{
	refusals.count = count;
	refusals.code = code;
	refusals.asked = 0;
}

static void what_the_kernel_has_no_room_for_is_offered_again(void **state)
{
	const int codes[] = { -EAGAIN, -EBUSY, -EINTR };
	unsigned  i;

	(void)state;
	open_ring();
	for (i = 0; i < ARRAY_COUNT(codes); i++) {
		struct os_ring_done done;

		write_one(page(0), PAGE, 0, i);
		refuse(1, codes[i]);
		assert_int_equal(os_ring_submit(scene.ring), 0);
		/* An interrupted call is made again at once. */
		assert_int_equal(refusals.asked, codes[i] == -EINTR ? 2 : 1);
		refuse(3, codes[i]);
		assert_int_equal(os_ring_in_flight(scene.ring), 1);
		assert_done(i, PAGE);
		write_one(page(0), PAGE, 0, 9);
		refuse(1, codes[i]);
		assert_int_equal(os_ring_reap(scene.ring, &done, 1, 0, 0), 0);
		/* Never again: the time passes all the same. */
		refuse(UINT32_MAX, codes[i]);
		assert_int_equal(os_ring_reap(scene.ring, &done, 1, 1, 3 * MS), 0);
		refuse(0, 0);
		assert_done(9, PAGE);
	}
}

static void a_refusal_for_good_is_told_and_loses_nothing(void **state)
{
	struct script       script = { .answer = true, .result = 4 };
	struct os_ring_done done[4];

	(void)state;
	open_ring();
	write_one(page(0), PAGE, 0, 1);
	refuse(1, -EEXIST);
	assert_int_equal(os_ring_submit(scene.ring), -EEXIST);
	refuse(1, -EEXIST);
	assert_int_equal(os_ring_reap(scene.ring, done, 4, 0, 0), -EEXIST);
	refuse(1, -EEXIST);
	assert_int_equal(os_ring_reap(scene.ring, done, 4, 1, LONG), -EEXIST);
	assert_int_equal(refusals.asked, 1);
	/* What is there comes first. */
	os_io_hook_set(follow, &script);
	write_one(page(0), PAGE, 0, 2);
	refuse(1, -EEXIST);
	assert_int_equal(os_ring_reap(scene.ring, done, 4, 2, LONG), 1);
	assert_true(done[0].tag == 2);
	assert_int_equal(os_ring_in_flight(scene.ring), 1);
	assert_done(1, PAGE);
}

#define case_of(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		case_of(a_ring_without_entries_is_refused),
		case_of(bytes_go_and_come_back),
		case_of(errors_are_results),
		case_of(one_that_cannot_be_stops_no_other),
		case_of(a_registered_file_is_not_looked_up),
		case_of(registered_files_have_an_end),
		case_of(registered_memory_serves_reads_and_writes),
		case_of(only_what_lies_in_one_slice_goes_by_the_registration),
		case_of(a_closed_ring_holds_no_lock),
		case_of(a_full_ring_refills_and_loses_nothing),
		case_of(a_full_ring_and_an_early_close_are_our_mistakes),
		case_of(a_wait_ends_with_its_time),
		case_of(nobody_waits_for_what_was_not_asked),
		case_of(what_the_caller_has_no_room_for_stays),
		case_of(looking_again_and_again_is_enough),
		case_of(signals_neither_end_a_wait_nor_lose_anything),
		case_of(an_answer_becomes_a_completion),
		case_of(answers_fill_the_ring_like_others),
		case_of(a_transfer_can_be_cut_anywhere),
		case_of(what_the_kernel_has_no_room_for_is_offered_again),
		case_of(a_refusal_for_good_is_told_and_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
