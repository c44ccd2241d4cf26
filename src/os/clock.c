/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks: one monotonic for deadlines, two of CPU time for the cost of work, the calendar for dates. */
#include "os/os.h"

#include <time.h>

#include "base/err.h"

static uint64_t read_ns(clockid_t clock)
{
	struct timespec at;

	KVS_ASSERT(clock_gettime(clock, &at) == 0);
	return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

uint64_t os_now_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

uint64_t os_thread_cpu_ns(void)
{
	return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t os_process_cpu_ns(void)
{
	return read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t os_until_ns(uint64_t timeout_ns)
{
	const uint64_t now_ns = os_now_ns();

	return timeout_ns < INT64_MAX - now_ns ? now_ns + timeout_ns : INT64_MAX;
}

uint64_t os_wall_day(void)
{
	struct timespec at;

	KVS_ASSERT(clock_gettime(CLOCK_REALTIME, &at) == 0);
	/* Before 1970 lies nothing but a clock that was never set. */
	return at.tv_sec > 0 ? (uint64_t)at.tv_sec / 86400 : 0;
}
