/* SPDX-License-Identifier: Apache-2.0 */
/* See loop.h. */
#include "ctrl/loop.h"

#include <errno.h>

/* The longest sleep: what a lost hint may cost. */
#define SLEEP_MAX_NS UINT64_C(100000000)

/* More are told by the next sleep. */
#define TAGS 16

int loop_open(struct loop *loop)
{
	int rc;

	*loop = (struct loop){ .epoll_fd = -1 };
	loop->event_fd = os_eventfd();
	if (loop->event_fd < 0)
		return loop->event_fd;
	loop->epoll_fd = os_epoll();
	rc = loop->epoll_fd;
	if (rc >= 0)
		rc = os_epoll_add(loop->epoll_fd, loop->event_fd, 0);
	if (rc < 0) {
		os_close(loop->epoll_fd);
		os_close(loop->event_fd);
		return rc;
	}
	os_mutex_init(&loop->lock);
	os_cond_init(&loop->moved);
	return 0;
}

void loop_close(struct loop *loop)
{
	os_cond_fini(&loop->moved);
	os_mutex_fini(&loop->lock);
	os_close(loop->epoll_fd);
	os_close(loop->event_fd);
}

/* --- the thread ------------------------------------------------------------------------------- */

int loop_start(struct loop *loop, const char *name, void *(*run)(void *), void *arg)
{
	int rc;

	/* Under the lock, so that the thread's first turn sees that it runs. */
	os_mutex_lock(&loop->lock);
	KVS_ASSERT(!loop->running && !loop->stopping);
	rc = os_thread_start(&loop->thread, name, run, arg);
	loop->running = rc == 0;
	os_mutex_unlock(&loop->lock);
	return rc;
}

void loop_stop(struct loop *loop)
{
	bool runs;

	os_mutex_lock(&loop->lock);
	loop->stopping = true;
	runs = loop->running;
	loop->running = false;
	os_mutex_unlock(&loop->lock);
	loop_signal(loop);
	if (runs)
		os_thread_join(loop->thread);
}

bool loop_stopping(struct loop *loop)
{
	bool stopping;

	os_mutex_lock(&loop->lock);
	stopping = loop->stopping;
	os_mutex_unlock(&loop->lock);
	return stopping;
}

void loop_signal(const struct loop *loop)
{
	os_eventfd_signal(loop->event_fd);
}

void loop_sleep(const struct loop *loop, uint64_t timeout_ns)
{
	uint64_t tags[TAGS];

	/* Which are ready does not matter: a turn looks at all. */
	os_epoll_wait(loop->epoll_fd, tags, TAGS,
		      timeout_ns < SLEEP_MAX_NS ? timeout_ns : SLEEP_MAX_NS);
	os_eventfd_drain(loop->event_fd);
}

bool loop_wait_locked(struct loop *loop, uint64_t deadline_ns)
{
	const uint64_t now_ns = os_now_ns();

	if (now_ns >= deadline_ns)
		return false;
	os_cond_wait(&loop->moved, &loop->lock, deadline_ns - now_ns);
	return true;
}

/* --- adapters --------------------------------------------------------------------------------- */

static void unwatch(const struct loop *loop, const struct adapter *adapter, uint32_t kinds)
{
	int kind;

	for (kind = 0; kind < TASK_KIND_COUNT; kind++) {
		if (kinds >> kind & 1)
			os_epoll_remove(loop->epoll_fd, adapter_fd(adapter, (enum task_kind)kind));
	}
}

static int watch(const struct loop *loop, const struct adapter *adapter, uint32_t kinds)
{
	int kind, rc = 0;

	for (kind = 0; kind < TASK_KIND_COUNT; kind++) {
		if (!(kinds >> kind & 1))
			continue;
		rc = os_epoll_add(loop->epoll_fd, adapter_fd(adapter, (enum task_kind)kind), 0);
		if (rc < 0) {
			unwatch(loop, adapter, kinds & ((1U << kind) - 1));
			return rc;
		}
	}
	return 0;
}

static int attach_locked(struct loop *loop, uint32_t number, struct adapter *adapter,
			 const char *name, uint32_t kinds)
{
	struct seat *const seat = &loop->seats.at[number];
	int                rc;

	if (loop->stopping)
		return KVS_E_CLOSED;
	if (seat->adapter)
		return KVS_E_BUSY;
	rc = watch(loop, adapter, kinds);
	if (rc == 0)
		*seat = (struct seat){ .adapter = adapter, .name = name };
	loop->seats.version++;
	return rc;
}

int loop_attach(struct loop *loop, uint32_t number, struct adapter *adapter, const char *name,
		uint32_t kinds)
{
	int rc;

	if (number >= KVS_ADAPTERS_MAX || !adapter)
		return KVS_E_INVALID;
	os_mutex_lock(&loop->lock);
	rc = attach_locked(loop, number, adapter, name, kinds);
	os_mutex_unlock(&loop->lock);
	return rc;
}

void loop_detach(struct loop *loop, uint32_t number, uint32_t kinds)
{
	if (number >= KVS_ADAPTERS_MAX)
		return;
	os_mutex_lock(&loop->lock);
	loop->seats.at[number].leaving = loop->seats.at[number].adapter != NULL;
	loop->seats.version++;
	/* Before the thread runs nothing is under way anywhere. */
	if (!loop->running && !loop->stopping)
		loop_free_seats_locked(loop, 0, kinds);
	os_mutex_unlock(&loop->lock);
	loop_signal(loop);
}

bool loop_detached(struct loop *loop, uint32_t number, uint64_t deadline_ns)
{
	bool is_free;

	if (number >= KVS_ADAPTERS_MAX)
		return true;
	os_mutex_lock(&loop->lock);
	while (loop->seats.at[number].adapter && loop_wait_locked(loop, deadline_ns))
		;
	is_free = loop->seats.at[number].adapter == NULL;
	os_mutex_unlock(&loop->lock);
	return is_free;
}

void loop_free_seats_locked(struct loop *loop, uint64_t busy, uint32_t kinds)
{
	uint32_t n;

	for (n = 0; n < KVS_ADAPTERS_MAX; n++) {
		struct seat *const seat = &loop->seats.at[n];

		if (!seat->leaving || (busy >> n & 1))
			continue;
		unwatch(loop, seat->adapter, kinds);
		*seat = (struct seat){ 0 };
		loop->seats.version++;
		os_cond_broadcast(&loop->moved);
	}
}

uint64_t seats_staying(const struct seats *seats)
{
	uint64_t staying = 0;
	uint32_t n;

	for (n = 0; n < KVS_ADAPTERS_MAX; n++) {
		if (seats->at[n].adapter && !seats->at[n].leaving)
			staying |= UINT64_C(1) << n;
	}
	return staying;
}

uint32_t seats_infos(const struct seats *seats, struct kvs_adapter_info *ret_infos)
{
	const uint64_t staying = seats_staying(seats);
	uint32_t       count = 0, n;

	for (n = 0; n < KVS_ADAPTERS_MAX; n++) {
		struct adapter_stats  stats;
		struct kvs_store_info info;

		if (!(staying >> n & 1))
			continue;
		adapter_stats(seats->at[n].adapter, &stats);
		adapter_describe(seats->at[n].adapter, &info);
		ret_infos[count++] = (struct kvs_adapter_info){
			.number = n,
			.name = seats->at[n].name,
			.capacity_bytes = info.capacity_bytes,
			.used_bytes = info.used_bytes,
			.healthy = stats.exec.health == HEALTH_UP,
		};
	}
	return count;
}

/* --- limits ----------------------------------------------------------------------------------- */

int ctrl_limits_check(const struct ctrl_limits *limits, const char *who, struct kvs_error *err)
{
	if (limits->in_flight_max == 0 || limits->in_flight_max > CTRL_IN_FLIGHT_MAX) {
		return err_set(err, KVS_E_INVALID, "%s in flight: %u is out of range; use 1 to %u", who,
			       limits->in_flight_max, CTRL_IN_FLIGHT_MAX);
	}
	if (limits->queue_max == 0 || limits->queue_max > CTRL_QUEUE_MAX) {
		return err_set(err, KVS_E_INVALID, "%s queue: %u is out of range; use 1 to %u", who,
			       limits->queue_max, CTRL_QUEUE_MAX);
	}
	return 0;
}
