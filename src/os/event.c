/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eventfd and epoll: how a completion wakes a sleeping loop.
 *
 * A signal is a hint.  A doubled one is harmless; a lost one costs the length of a bounded sleep.
 */
#include "os/os.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/err.h"
#include "os/fd.h"

/* Tags a wait can return: more come with the next one. */
#define BATCH_MAX 64

/* 24 days: the longest sleep, os_epoll_wait()'s by its type. */
#define SLEEP_MAX_NS (INT_MAX * UINT64_C(1000000))

/* Descriptors that os_wait_readable() takes. */
#define WAIT_MAX 8

int os_eventfd(void)
{
	const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	return fd_above_stdio(fd < 0 ? -errno : fd);
}

void os_eventfd_signal(int fd)
{
	const uint64_t one = 1;
	ssize_t        done;

	do {
		done = write(fd, &one, sizeof(one));
	} while (done < 0 && errno == EINTR);
	/* A counter at its maximum is signalled as much as it can be. */
	KVS_ASSERT(done == sizeof(one) || errno == EAGAIN);
}

bool os_eventfd_drain(int fd)
{
	uint64_t value;
	ssize_t  done;

	do {
		done = read(fd, &value, sizeof(value));
	} while (done < 0 && errno == EINTR);
	KVS_ASSERT(done == sizeof(value) || errno == EAGAIN);
	return done == sizeof(value);
}

bool os_wait_readable(const int *fds, int count, uint64_t timeout_ns)
{
	const uint64_t        sleep_ns = timeout_ns < SLEEP_MAX_NS ? timeout_ns : SLEEP_MAX_NS;
	const struct timespec timeout = { .tv_sec = (time_t)(sleep_ns / 1000000000),
					  .tv_nsec = (long)(sleep_ns % 1000000000) };
	struct pollfd         inputs[WAIT_MAX];
	int                   i;

	KVS_ASSERT_CMP(count, <=, WAIT_MAX);
	for (i = 0; i < count; i++)
		inputs[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	/* An interruption ends the wait early, like a hint of nothing. */
	return ppoll(inputs, (nfds_t)count, &timeout, NULL) > 0;
}

int os_epoll(void)
{
	const int fd = epoll_create1(EPOLL_CLOEXEC);

	return fd_above_stdio(fd < 0 ? -errno : fd);
}

int os_epoll_add(int epoll_fd, int fd, uint64_t tag)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = tag };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

void os_epoll_remove(int epoll_fd, int fd)
{
	KVS_ASSERT(epoll_ctl(epoll_fd, EPOLL_CTL_DEL, fd, NULL) == 0);
}

/* Rounded up, so that a loop that sleeps until a deadline does not spin through the last millisecond. */
static int timeout_ms(uint64_t deadline_ns)
{
	const uint64_t now = os_now_ns();
	const uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
	const uint64_t ms = left / 1000000 + (left % 1000000 != 0);

	return ms < INT_MAX ? (int)ms : INT_MAX;
}

int os_epoll_wait(int epoll_fd, uint64_t *ret_tags, int count, uint64_t timeout_ns)
{
	const uint64_t     until = os_until_ns(timeout_ns);
	const int          most = count < BATCH_MAX ? count : BATCH_MAX;
	struct epoll_event events[BATCH_MAX];
	int                ready, i;

	KVS_ASSERT(count > 0);
	do {
		ready = epoll_wait(epoll_fd, events, most, timeout_ms(until));
	} while (ready < 0 && errno == EINTR);
	if (ready < 0)
		return -errno;
	for (i = 0; i < ready; i++)
		ret_tags[i] = events[i].data.u64;
	return ready;
}

void os_close(int fd)
{
	/* Linux frees the number even when close is interrupted: trying again could close somebody else's. */
	if (fd >= 0)
		(void)close(fd);
}
