/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operating system's wrappers: their error convention, and the policies that callers rely on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "death.h"
#include "os/os.h"
#include "place.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

/* --- clock ------------------------------------------------------------------------------------ */

static void clocks_run(void **state)
{
	const uint64_t    now = os_now_ns();
	const uint64_t    thread = os_thread_cpu_ns();
	const uint64_t    process = os_process_cpu_ns();
	volatile uint64_t work = 0;

	(void)state;
	while (os_thread_cpu_ns() < thread + MS)
		work++;
	assert_true(os_now_ns() > now);
	assert_true(os_process_cpu_ns() >= process + MS / 2);
}

static void the_day_is_the_calendars(void **state)
{
	const uint64_t before = (uint64_t)time(NULL) / 86400;
	const uint64_t day = os_wall_day();

	(void)state;
	assert_true(day >= before);
	assert_true(day <= (uint64_t)time(NULL) / 86400);
}

static void random_bytes_are_all_written_and_differ(void **state)
{
	uint8_t first[1000] = { 0 }, second[1000] = { 0 };
	size_t  i, zeros = 0;

	(void)state;
	assert_int_equal(os_random(first, sizeof(first) - 1), 0);
	assert_int_equal(os_random(second, sizeof(second)), 0);
	assert_memory_not_equal(first, second, sizeof(first));
	assert_int_equal(first[sizeof(first) - 1], 0);
	for (i = 0; i < sizeof(second); i++)
		zeros += second[i] == 0;
	/* Four are to be expected; a hundred never come. */
	assert_true(zeros < 100);
	assert_int_equal(os_random(NULL, 0), 0);
}

static void the_peak_of_memory_is_seen(void **state)
{
	const size_t bytes = (size_t)32 << 20;
	void        *ptr;

	(void)state;
	assert_int_equal(os_pages_map(bytes, &ptr), 0);
	memset(ptr, 1, bytes);
	assert_true(os_peak_rss_bytes() >= bytes);
	os_pages_unmap(ptr, bytes);
}

/* --- threads ---------------------------------------------------------------------------------- */

struct visit {
	char     name[16];
	sigset_t blocked;
};

static void *look_around(void *arg)
{
	struct visit *const visit = arg;

	pthread_sigmask(SIG_SETMASK, NULL, &visit->blocked);
	return NULL;
}

static void a_thread_blocks_signals_and_its_maker_does_not(void **state)
{
	struct visit visit = { 0 };
	pthread_t    thread;
	sigset_t     before, after;

	(void)state;
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(os_thread_start(&thread, "visitor", look_around, &visit), 0);
	os_thread_join(thread);
	assert_true(sigismember(&visit.blocked, SIGINT) == 1 &&
		    sigismember(&visit.blocked, SIGTERM) == 1);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_int_equal(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
}

struct meeting {
	struct os_mutex mutex;
	struct os_cond  cond;
	bool            open;
	char            name[16];
};

static void *wait_for_opening(void *arg)
{
	struct meeting *const meeting = arg;

	os_mutex_lock(&meeting->mutex);
	while (!meeting->open)
		os_cond_wait(&meeting->cond, &meeting->mutex, SECOND);
	os_mutex_unlock(&meeting->mutex);
	pthread_getname_np(pthread_self(), meeting->name, sizeof(meeting->name));
	return NULL;
}

static void a_signal_wakes_a_named_thread(void **state)
{
	struct meeting meeting = { .open = false };
	pthread_t      thread;

	(void)state;
	os_mutex_init(&meeting.mutex);
	os_cond_init(&meeting.cond);
	assert_int_equal(os_thread_start(&thread, "fifteen-letters", wait_for_opening, &meeting),
			 0);
	os_mutex_lock(&meeting.mutex);
	meeting.open = true;
	os_cond_signal(&meeting.cond);
	os_cond_broadcast(&meeting.cond);
	os_mutex_unlock(&meeting.mutex);
	os_thread_join(thread);
	assert_string_equal(meeting.name, "fifteen-letters");
	os_cond_fini(&meeting.cond);
	os_mutex_fini(&meeting.mutex);
}

static void nobody_signals(void **state)
{
	struct meeting meeting = { .open = false };
	const uint64_t begin = os_now_ns();

	(void)state;
	os_mutex_init(&meeting.mutex);
	os_cond_init(&meeting.cond);
	os_mutex_lock(&meeting.mutex);
	/* It may wake spuriously, but not for ever, and reports a time-out only after it. */
	while (os_cond_wait(&meeting.cond, &meeting.mutex, MS))
		;
	assert_true(os_now_ns() >= begin + MS);
	os_mutex_unlock(&meeting.mutex);
	os_cond_fini(&meeting.cond);
	os_mutex_fini(&meeting.mutex);
}

static void start_with_a_long_name(void *arg)
{
	pthread_t thread;

	os_thread_start(&thread, "sixteen--letters", look_around, arg);
}

static void a_long_name_is_our_mistake(void **state)
{
	struct visit visit;

	(void)state;
	assert_true(death_panics(start_with_a_long_name, &visit, NULL, 0));
}

/* --- events ----------------------------------------------------------------------------------- */

static void signals_add_up_to_one_hint(void **state)
{
	const uint64_t brim = UINT64_MAX - 1;
	const int      fd = os_eventfd();

	(void)state;
	assert_true(fd >= 0);
	assert_false(os_eventfd_drain(fd));
	os_eventfd_signal(fd);
	os_eventfd_signal(fd);
	assert_true(os_eventfd_drain(fd));
	assert_false(os_eventfd_drain(fd));
	/* A counter at its brim neither blocks nor panics. */
	assert_int_equal(write(fd, &brim, sizeof(brim)), sizeof(brim));
	os_eventfd_signal(fd);
	assert_true(os_eventfd_drain(fd));
	os_close(fd);
	os_close(-1);
}

static void epoll_names_what_is_ready(void **state)
{
	const int epoll_fd = os_epoll();
	const int first = os_eventfd();
	const int second = os_eventfd();
	uint64_t  tags[4];

	(void)state;
	assert_int_equal(os_epoll_add(epoll_fd, first, 11), 0);
	assert_int_equal(os_epoll_add(epoll_fd, second, UINT64_MAX), 0);
	assert_int_equal(os_epoll_add(epoll_fd, second, 3), -EEXIST);
	assert_int_equal(os_epoll_add(epoll_fd, -1, 3), -EBADF);
	assert_int_equal(os_epoll_wait(epoll_fd, tags, 4, 0), 0);
	os_eventfd_signal(second);
	assert_int_equal(os_epoll_wait(epoll_fd, tags, 4, SECOND), 1);
	assert_true(tags[0] == UINT64_MAX);
	os_eventfd_signal(first);
	assert_int_equal(os_epoll_wait(epoll_fd, tags, 1, SECOND), 1);
	assert_int_equal(os_epoll_wait(epoll_fd, tags, 4, UINT64_MAX), 2);
	assert_true(tags[0] + tags[1] == UINT64_MAX + UINT64_C(11));
	os_close(first);
	os_close(second);
	assert_int_equal(os_epoll_wait(-1, tags, 4, 0), -EBADF);
	os_close(epoll_fd);
}

static void ignore(int number)
{
	(void)number;
}

/* Interrupted every fifth of a millisecond, the wait still lasts its three. */
static void a_signal_does_not_shorten_a_wait(void **state)
{
	const struct sigaction handler = { .sa_handler = ignore };
	const struct itimerval often = { .it_interval = { 0, 200 }, .it_value = { 0, 200 } };
	const struct itimerval never = { 0 };
	const int              epoll_fd = os_epoll();
	struct sigaction       before;
	uint64_t               begin, tag;

	(void)state;
	sigaction(SIGALRM, &handler, &before);
	setitimer(ITIMER_REAL, &often, NULL);
	begin = os_now_ns();
	assert_int_equal(os_epoll_wait(epoll_fd, &tag, 1, 3 * MS), 0);
	assert_true(os_now_ns() >= begin + 3 * MS);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &before, NULL);
	os_close(epoll_fd);
}

/* --- pages ------------------------------------------------------------------------------------ */

/* The linker's names: what the kernel would have been asked to sleep.  Nothing is ever readable. */
static struct timespec asked;

int __wrap_ppoll(struct pollfd *inputs, nfds_t count, const struct timespec *timeout,
		 const sigset_t *mask);
int __wrap___ppoll_chk(struct pollfd *inputs, nfds_t count, const struct timespec *timeout,
		       const sigset_t *mask, size_t bytes);

int __wrap_ppoll(struct pollfd *inputs, nfds_t count, const struct timespec *timeout,
		 const sigset_t *mask)
{
	(void)inputs;
	(void)count;
	(void)mask;
	asked = *timeout;
	return 0;
}

/* ppoll() under _FORTIFY_SOURCE. */
int __wrap___ppoll_chk(struct pollfd *inputs, nfds_t count, const struct timespec *timeout,
		       const sigset_t *mask, size_t bytes)
{
	(void)bytes;
	return __wrap_ppoll(inputs, count, timeout, mask);
}

static void a_wait_without_a_time_has_an_end(void **state)
{
	const int fd = -1;

	(void)state;
	assert_false(os_wait_readable(&fd, 1, UINT64_MAX));
	assert_int_equal(asked.tv_sec, INT_MAX / 1000);
	assert_int_equal(asked.tv_nsec, INT_MAX % 1000 * 1000000L);
	assert_false(os_wait_readable(&fd, 1, UINT64_C(1500000000)));
	assert_int_equal(asked.tv_sec, 1);
	assert_int_equal(asked.tv_nsec, 500000000);
}

static void pages_are_zeroed_and_bounded(void **state)
{
	uint8_t *bytes;
	void    *ptr = NULL;
	size_t   i;

	(void)state;
	assert_int_equal(os_pages_map(SIZE_MAX / 2, &ptr), -ENOMEM);
	assert_null(ptr);
	assert_int_equal(os_pages_map(8192, &ptr), 0);
	assert_int_equal((uintptr_t)ptr % 4096, 0);
	for (bytes = ptr, i = 0; i < 8192; i++)
		assert_int_equal(bytes[i], 0);
	os_pages_unmap(ptr, 8192);
}

static void shared_pages_are_the_descriptors(void **state)
{
	void *ptr;
	char  there[3];
	int   fd;

	(void)state;
	assert_int_equal(os_pages_map_shared("t", 65536, false, &ptr, &fd), 0);
	memcpy((char *)ptr + 5000, "abc", 3);
	assert_int_equal(pread(fd, there, 3, 5000), 3);
	assert_memory_equal(there, "abc", 3);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(os_pages_no_fork(ptr, 65536), 0);
	os_pages_unmap(ptr, 65536);
	os_close(fd);
}

/* No machine has these huge pages; nothing is left behind. */
static void too_many_huge_pages_are_refused(void **state)
{
	const int free_before = dup(0);
	void     *ptr = NULL;
	int       fd = -7;
	int       free_after;

	(void)state;
	os_close(free_before);
	assert_true(os_pages_map_shared("t", (size_t)1 << 50, true, &ptr, &fd) < 0);
	assert_null(ptr);
	assert_int_equal(fd, -7);
	free_after = dup(0);
	os_close(free_after);
	assert_int_equal(free_after, free_before);
}

static void limits_are_sane(void **state)
{
	(void)state;
	assert_true(os_memory_bytes() >= (uint64_t)1 << 20);
	assert_true(os_memory_bytes() <= (uint64_t)1 << 50);
	assert_true(os_memlock_limit() > 0);
}

/* Others give memory back meanwhile, and the kernel rounds: a quarter of it must show, once. */
static void memory_that_is_taken_is_no_longer_available(void **state)
{
	const size_t bytes = (size_t)256 << 20;
	uint64_t     before, taken = 0;
	void        *ptr;
	int          try;

	(void)state;
	before = os_memory_available_bytes();
	assert_in_range(before, (uint64_t)1 << 20, os_memory_bytes());
	if (before < 2 * bytes)
		skip();
	for (try = 0; try < 20; try++) {
		before = os_memory_available_bytes();
		assert_int_equal(os_pages_map(bytes, &ptr), 0);
		memset(ptr, 1, bytes);
		taken = os_memory_available_bytes();
		os_pages_unmap(ptr, bytes);
		if (taken + bytes / 4 <= before)
			return;
	}
	assert_in_range(taken, 0, before - bytes / 4);
}

/* --- files ------------------------------------------------------------------------------------ */

static void a_directory_comes_fresh_and_goes_empty(void **state)
{
	char     path[] = "/tmp/kvstrata-os-XXXXXX", file[64], missing[] = "/nowhere/XXXXXX";
	uint64_t bytes = 0;
	int      fd;

	(void)state;
	assert_int_equal(os_directory_make(missing), -ENOENT);
	assert_int_equal(os_directory_make(path), 0);
	assert_null(strstr(path, "XXXXXX"));
	snprintf(file, sizeof(file), "%s/file", path);
	assert_int_equal(os_file_remove(file), -ENOENT);
	fd = os_file_open(file, OS_WRITE | OS_CREATE);
	assert_true(fd >= 0);
	os_close(fd);
	assert_int_equal(os_directory_remove(path), -ENOTEMPTY);
	assert_int_equal(os_file_remove(file), 0);
	assert_int_equal(os_disk_free(path, &bytes), 0);
	assert_true(bytes > 0);
	assert_int_equal(os_directory_remove(path), 0);
	assert_int_equal(os_disk_free(path, &bytes), -ENOENT);
}

static void a_file_keeps_its_bytes(void **state)
{
	struct place place = place_open();
	char         back[8] = "";
	struct stat  stat;
	uint64_t     bytes = 0;
	int          fd;

	(void)state;
	assert_int_equal(os_file_open(place.path, OS_WRITE), -ENOENT);
	fd = os_file_open(place.path, OS_WRITE | OS_CREATE);
	assert_true(fd >= 0);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fstat(fd, &stat), 0);
	assert_int_equal(stat.st_mode & 0077, 0);
	assert_int_equal(os_file_write(fd, "abcdefg", 7, 1000), 0);
	assert_int_equal(os_file_size(fd, &bytes), 0);
	assert_int_equal(bytes, 1007);
	assert_int_equal(os_file_read(fd, back, 7, 1000), 0);
	assert_string_equal(back, "abcdefg");
	assert_int_equal(os_file_read(fd, back, 7, 1001), -ENODATA);
	assert_int_equal(os_file_read(fd, back, 0, 5000), 0);
	assert_int_equal(os_file_resize(fd, 1003), 0);
	assert_int_equal(os_file_size(fd, &bytes), 0);
	assert_int_equal(bytes, 1003);
	assert_int_equal(os_file_sync(fd), 0);
	os_close(fd);
	place_close(&place);
}

static void file_errors_come_as_errno(void **state)
{
	const int full = os_file_open("/dev/full", OS_WRITE);
	const int null = os_file_open("/dev/null", 0);
	uint64_t  bytes = 9;
	char      byte = 0;

	(void)state;
	assert_int_equal(os_file_write(full, &byte, 1, 0), -ENOSPC);
	assert_int_equal(os_file_write(null, &byte, 1, 0), -EBADF);
	assert_int_equal(os_file_read(null, &byte, 1, 0), -ENODATA);
	assert_int_equal(os_file_read(full, &byte, 1, UINT64_MAX), -EINVAL);
	assert_int_equal(os_file_read(-1, &byte, 1, 0), -EBADF);
	assert_int_equal(os_file_size(-1, &bytes), -EBADF);
	assert_int_equal(bytes, 9);
	assert_int_equal(os_file_resize(null, 1), -EINVAL);
	assert_int_equal(os_file_sync(-1), -EBADF);
	assert_int_equal(os_file_lock(-1), -EBADF);
	os_close(full);
	os_close(null);
}

static void a_lock_has_one_holder(void **state)
{
	struct place place = place_open();
	const int    mine = os_file_open(place.path, OS_WRITE | OS_CREATE);
	const int    other = os_file_open(place.path, OS_WRITE);
	const int    copy = dup(mine);

	(void)state;
	assert_int_equal(os_file_lock(mine), 0);
	assert_int_equal(os_file_lock(mine), 0);
	assert_int_equal(os_file_lock(other), -EWOULDBLOCK);
	/* It belongs to the open file description, which lives as long as any descriptor of it. */
	os_close(mine);
	assert_int_equal(os_file_lock(other), -EWOULDBLOCK);
	os_close(copy);
	assert_int_equal(os_file_lock(other), 0);
	os_close(other);
	place_close(&place);
}

/* Where the file system has no direct I/O, opening says so. */
static void direct_files_are_refused_at_open_or_work(void **state)
{
	struct place place = place_open();
	const int    fd = os_file_open(place.path, OS_WRITE | OS_CREATE | OS_DIRECT);
	void        *page;

	(void)state;
	assert_int_equal(os_pages_map(4096, &page), 0);
	if (fd < 0)
		assert_int_equal(fd, -EINVAL);
	else
		assert_int_equal(os_file_write(fd, page, 4096, 0), 0);
	os_pages_unmap(page, 4096);
	os_close(fd);
	place_close(&place);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clocks_run),
		cmocka_unit_test(the_day_is_the_calendars),
		cmocka_unit_test(random_bytes_are_all_written_and_differ),
		cmocka_unit_test(the_peak_of_memory_is_seen),
		cmocka_unit_test(a_thread_blocks_signals_and_its_maker_does_not),
		cmocka_unit_test(a_signal_wakes_a_named_thread),
		cmocka_unit_test(nobody_signals),
		cmocka_unit_test(a_long_name_is_our_mistake),
		cmocka_unit_test(signals_add_up_to_one_hint),
		cmocka_unit_test(epoll_names_what_is_ready),
		cmocka_unit_test(a_signal_does_not_shorten_a_wait),
		cmocka_unit_test(a_wait_without_a_time_has_an_end),
		cmocka_unit_test(pages_are_zeroed_and_bounded),
		cmocka_unit_test(shared_pages_are_the_descriptors),
		cmocka_unit_test(too_many_huge_pages_are_refused),
		cmocka_unit_test(limits_are_sane),
		cmocka_unit_test(memory_that_is_taken_is_no_longer_available),
		cmocka_unit_test(a_directory_comes_fresh_and_goes_empty),
		cmocka_unit_test(a_file_keeps_its_bytes),
		cmocka_unit_test(file_errors_come_as_errno),
		cmocka_unit_test(a_lock_has_one_holder),
		cmocka_unit_test(direct_files_are_refused_at_open_or_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
