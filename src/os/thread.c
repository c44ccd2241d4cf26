/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads, mutexes and condition variables.
 *
 * The pthread calls used here fail only when we misuse them, so a failure panics; starting a thread
 * is the exception, because the machine may refuse it.
 */
#include "os/os.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/err.h"

/* The kernel's limit on thread names, without the terminator. */
#define NAME_BYTES_MAX 15

int os_thread_start(pthread_t *ret_thread, const char *name, void *(*run)(void *), void *arg)
{
	sigset_t  all, before;
	pthread_t thread;
	int       rc;

	KVS_ASSERT_CMP(strlen(name), <=, NAME_BYTES_MAX);
	/* A new thread inherits the mask, so it never runs with a signal open. */
	sigfillset(&all);
	KVS_ASSERT(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
	rc = pthread_create(&thread, NULL, run, arg);
	KVS_ASSERT(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
	if (rc)
		return -rc;
	/* The name is a help for people: without it everything still works. */
	(void)pthread_setname_np(thread, name);
	*ret_thread = thread;
	return 0;
}

void os_thread_join(pthread_t thread)
{
	KVS_ASSERT(pthread_join(thread, NULL) == 0);
}

void os_thread_detach(pthread_t thread)
{
	KVS_ASSERT(pthread_detach(thread) == 0);
}

void os_mutex_init(struct os_mutex *mutex)
{
	pthread_mutexattr_t attr;

	/*
	 * Our locks are leaves held for a table update: a short spin before the system call took the
	 * executor's completions from 1.7 to 1.1 us.
	 */
	KVS_ASSERT(pthread_mutexattr_init(&attr) == 0);
	KVS_ASSERT(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP) == 0);
	KVS_ASSERT(pthread_mutex_init(&mutex->mutex, &attr) == 0);
	KVS_ASSERT(pthread_mutexattr_destroy(&attr) == 0);
}

void os_mutex_fini(struct os_mutex *mutex)
{
	KVS_ASSERT(pthread_mutex_destroy(&mutex->mutex) == 0);
}

void os_mutex_lock(struct os_mutex *mutex)
{
	KVS_ASSERT(pthread_mutex_lock(&mutex->mutex) == 0);
}

void os_mutex_unlock(struct os_mutex *mutex)
{
	KVS_ASSERT(pthread_mutex_unlock(&mutex->mutex) == 0);
}

void os_cond_init(struct os_cond *cond)
{
	pthread_condattr_t attr;

	KVS_ASSERT(pthread_condattr_init(&attr) == 0);
	KVS_ASSERT(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
	KVS_ASSERT(pthread_cond_init(&cond->cond, &attr) == 0);
	KVS_ASSERT(pthread_condattr_destroy(&attr) == 0);
}

void os_cond_fini(struct os_cond *cond)
{
	KVS_ASSERT(pthread_cond_destroy(&cond->cond) == 0);
}

bool os_cond_wait(struct os_cond *cond, struct os_mutex *mutex, uint64_t timeout_ns)
{
	const uint64_t        until = os_until_ns(timeout_ns);
	const struct timespec at = { .tv_sec = (time_t)(until / 1000000000),
				     .tv_nsec = (long)(until % 1000000000) };
	const int             rc = pthread_cond_timedwait(&cond->cond, &mutex->mutex, &at);

	KVS_ASSERT(rc == 0 || rc == ETIMEDOUT);
	return rc == 0;
}

void os_cond_signal(struct os_cond *cond)
{
	KVS_ASSERT(pthread_cond_signal(&cond->cond) == 0);
}

void os_cond_broadcast(struct os_cond *cond)
{
	KVS_ASSERT(pthread_cond_broadcast(&cond->cond) == 0);
}
