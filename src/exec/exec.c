/* SPDX-License-Identifier: Apache-2.0 */
/* See exec.h.  Opening, closing, and what callers do in between; work.c has the workers. */
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "exec/shell.h"

/* Waking a sleeper takes 70 us; a fact that comes within this is had in less than one. */
#define SPIN_NS UINT64_C(20000)

/* A look at the clock costs as much as some looks at the word. */
#define SPINS_A_LOOK 64

/* --- opening ---------------------------------------------------------------------------------- */

static int check_workers(const struct exec_options *options, struct kvs_error *err)
{
	uint32_t total = 0;
	int      class;

	for (class = 0; class < EXEC_CLASS_COUNT; class++) {
		if (options->workers[class] == 0 || options->workers[class] > EXEC_WORKERS_MAX) {
			return err_set(err, KVS_E_INVALID,
				       "executor workers: %u is out of range; use 1 to %u a class",
				       options->workers[class], EXEC_WORKERS_MAX);
		}
		total += options->workers[class];
	}
	if (total > EXEC_WORKERS_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "executor workers: %u in all are too many; the limit is %u", total,
			       EXEC_WORKERS_MAX);
	}
	return 0;
}

static int start_worker(struct exec *exec, enum exec_class class, struct kvs_error *err)
{
	static const char *const names[EXEC_CLASS_COUNT] = { "kvs-query", "kvs-get", "kvs-put" };
	struct worker *const     worker = &exec->workers[exec->worker_count];
	int                      rc = 0;

	*worker = (struct worker){ .exec = exec, .class = class, .lane = exec->worker_count };
	if (class != EXEC_QUERY && exec->store->ops->submit)
		rc = async_open(exec->store, worker->lane, &worker->async);
	if (rc == 0)
		rc = os_thread_start(&worker->thread, names[class], exec_work, worker);
	if (rc < 0) {
		async_close(worker->async);
		return err_set(err, rc, "executor: cannot start a worker thread: %s",
			       kvs_strerror(rc));
	}
	exec->worker_count++;
	return 0;
}

/* Under the lock, so that a worker sees all of it, its own place and number included. */
static int start_workers(struct exec *exec, const struct exec_options *options,
			 struct kvs_error *err)
{
	int      rc = 0;
	int      class;
	uint32_t i;

	os_mutex_lock(&exec->lock);
	for (class = 0; class < EXEC_CLASS_COUNT; class++) {
		for (i = 0; rc == 0 && i < options->workers[class]; i++)
			rc = start_worker(exec, (enum exec_class)class, err);
	}
	exec->alive = exec->worker_count;
	os_mutex_unlock(&exec->lock);
	return rc;
}

static void join_workers(struct exec *exec)
{
	for (; exec->worker_count > 0; exec->worker_count--) {
		os_thread_join(exec->workers[exec->worker_count - 1].thread);
		async_close(exec->workers[exec->worker_count - 1].async);
	}
}

/* Workers have left, and nobody else is inside. */
static void discard(struct exec *exec)
{
	int class;

	exec_core_close(&exec->core);
	for (class = 0; class < EXEC_CLASS_COUNT; class++)
		os_cond_fini(&exec->work[class]);
	os_cond_fini(&exec->gone);
	os_mutex_fini(&exec->lock);
	os_mutex_fini(&exec->calls);
	os_close(exec->event_fd);
	free(exec);
}

/* True when all workers have left. */
static bool stop_workers(struct exec *exec, uint64_t deadline_ns)
{
	const uint64_t begin_ns = os_now_ns();
	uint64_t       gone_ns;
	bool           left;
	int            class;

	os_mutex_lock(&exec->lock);
	exec->closing = true;
	exec_core_stop(&exec->core, begin_ns);
	for (class = 0; class < EXEC_CLASS_COUNT; class++)
		os_cond_broadcast(&exec->work[class]);
	if (exec_core_ready(&exec->core))
		exec_announce(exec);
	while (exec->alive > 0 && (gone_ns = os_now_ns() - begin_ns) < deadline_ns)
		os_cond_wait(&exec->gone, &exec->lock, deadline_ns - gone_ns);
	left = exec->alive == 0;
	os_mutex_unlock(&exec->lock);
	return left;
}

static void init_shell(struct exec *exec, struct kvs_store *store,
		       const struct exec_options *options)
{
	int class;

	exec->store = store;
	exec->notify = options->notify;
	exec->notify_arg = options->notify_arg;
	os_mutex_init(&exec->lock);
	os_mutex_init(&exec->calls);
	os_cond_init(&exec->gone);
	for (class = 0; class < EXEC_CLASS_COUNT; class++)
		os_cond_init(&exec->work[class]);
}

/*
 * What the store says of itself decides how it is called.  A lane waits for answers inside a call,
 * and calls that may not overlap would wait with it.
 */
static int open_core(struct exec *exec, const struct exec_limits *limits, struct kvs_error *err)
{
	struct kvs_store_info info;
	int                   rc = exec_core_open(&exec->core, limits, err);

	if (rc < 0)
		return rc;
	exec->store->ops->describe(exec->store, &info);
	if (info.one_thread && exec->store->ops->submit) {
		return err_set(err, KVS_E_INVALID,
			       "store \"%s\": one_thread and submit() together are not allowed; use get() and put()",
			       exec->store->ops->name);
	}
	exec->one_thread = info.one_thread;
	if (info.away)
		health_start_down(&exec->core.health, os_now_ns());
	return 0;
}

int exec_open(struct kvs_store *store, const struct exec_options *options, struct exec **ret_exec,
	      struct kvs_error *err)
{
	struct exec *exec;
	int          rc = check_workers(options, err);

	if (rc < 0)
		return rc;
	exec = calloc(1, sizeof(*exec));
	if (!exec)
		return err_set(err, -ENOMEM, "no memory for the executor");
	init_shell(exec, store, options);
	exec->event_fd = os_eventfd();
	rc = exec->event_fd;
	if (rc < 0)
		err_set(err, rc, "executor: no event descriptor: %s", kvs_strerror(rc));
	else
		rc = open_core(exec, &options->limits, err);
	if (rc == 0)
		rc = start_workers(exec, options, err);
	if (rc < 0) {
		if (exec->worker_count > 0)
			stop_workers(exec, UINT64_MAX);
		join_workers(exec);
		discard(exec);
		return rc;
	}
	/* Last: a store cannot forget it.  Where it fails the store works on, and its note says so. */
	if (options->memory.slice_count > 0 && store->ops->register_memory)
		(void)store->ops->register_memory(store, &options->memory);
	*ret_exec = exec;
	return 0;
}

/* --- closing ---------------------------------------------------------------------------------- */

int exec_close(struct exec *exec, uint64_t deadline_ns)
{
	const uint64_t until_ns = os_until_ns(deadline_ns);
	bool           stuck;

	if (!exec)
		return 0;
	if (!stop_workers(exec, deadline_ns))
		return KVS_E_QUARANTINE;
	join_workers(exec);
	exec_settle_until(exec, until_ns);
	os_mutex_lock(&exec->lock);
	/* The query workers saw to that before they left, within the deadline. */
	KVS_ASSERT(exec->core.locks.held == 0 && exec->core.locks.owing.count == 0);
	stuck = exec->core.unsettled_count > 0;
	os_mutex_unlock(&exec->lock);
	if (stuck || exec->store->ops->close(exec->store) < 0)
		return KVS_E_QUARANTINE;
	discard(exec);
	return 0;
}

/* --- callers ---------------------------------------------------------------------------------- */

int exec_submit(struct exec *exec, const struct op *op)
{
	int rc;

	os_mutex_lock(&exec->lock);
	rc = exec_core_submit(&exec->core, op, os_now_ns());
	if (rc == 0)
		os_cond_signal(&exec->work[exec_class_of(op->kind)]);
	os_mutex_unlock(&exec->lock);
	return rc;
}

void exec_cancel(struct exec *exec, uint64_t op_id)
{
	int class;

	os_mutex_lock(&exec->lock);
	exec_core_cancel(&exec->core, op_id, os_now_ns());
	/* What stood behind a job too large to run may be small enough. */
	for (class = 0; class < EXEC_CLASS_COUNT; class++) {
		if (exec->core.queue[class].count > 0)
			os_cond_signal(&exec->work[class]);
	}
	/* A cancelled op's fact waits like any other. */
	exec_wake(exec);
}

void exec_unlock(struct exec *exec, const struct kvs_key *keys, uint32_t count)
{
	os_mutex_lock(&exec->lock);
	exec_core_unlock(&exec->core, keys, count);
	if (exec->core.locks.owing.count > 0)
		os_cond_signal(&exec->work[EXEC_QUERY]);
	os_mutex_unlock(&exec->lock);
}

uint32_t exec_poll(struct exec *exec, struct fact *ret_facts, uint32_t fact_max,
		   struct pressure *ret_pressure)
{
	uint32_t count;

	os_mutex_lock(&exec->lock);
	count = exec_core_poll(&exec->core, os_now_ns(), ret_facts, fact_max, ret_pressure);
	atomic_store_explicit(&exec->ready, exec_core_ready(&exec->core), memory_order_relaxed);
	os_mutex_unlock(&exec->lock);
	return count;
}

bool exec_arm(struct exec *exec)
{
	bool armed;

	os_mutex_lock(&exec->lock);
	armed = !exec_core_ready(&exec->core);
	exec->armed = armed;
	/* What is left in it from before says nothing of what comes. */
	if (armed)
		os_eventfd_drain(exec->event_fd);
	os_mutex_unlock(&exec->lock);
	return armed;
}

static bool is_ready(struct exec *exec)
{
	return atomic_load_explicit(&exec->ready, memory_order_acquire);
}

static bool spin(struct exec *exec, uint64_t for_ns)
{
	const uint64_t begin_ns = os_now_ns();
	int            i;

	do {
		for (i = 0; i < SPINS_A_LOOK; i++) {
			if (is_ready(exec))
				return true;
			os_relax();
		}
	} while (os_now_ns() - begin_ns < for_ns);
	return false;
}

bool exec_wait(struct exec *exec, uint64_t timeout_ns)
{
	if (spin(exec, timeout_ns < SPIN_NS ? timeout_ns : SPIN_NS))
		return true;
	if (!exec_arm(exec))
		return true;
	return os_wait_readable(&exec->event_fd, 1, timeout_ns);
}

int exec_fd(const struct exec *exec)
{
	return exec->event_fd;
}

void exec_stats(struct exec *exec, struct exec_stats *ret_stats)
{
	const struct exec_core *const core = &exec->core;
	int                           i;

	os_mutex_lock(&exec->lock);
	ret_stats->moved = exec->moved;
	for (i = 0; i < EXEC_CLASS_COUNT; i++) {
		ret_stats->busy_ns[i] = exec->busy_ns[i];
		if (exec->busy[i] > 0)
			ret_stats->busy_ns[i] += os_now_ns() - exec->busy_since[i];
	}
	for (i = 0; i < EXEC_COUNTER_COUNT; i++)
		ret_stats->counters[i] = core->counters[i];
	ret_stats->outages = core->health.outages;
	ret_stats->health = core->health.state;
	ret_stats->locks_held = core->locks.held;
	ret_stats->outstanding = core->slots.busy_count;
	os_mutex_unlock(&exec->lock);
}

void exec_describe(struct exec *exec, struct kvs_store_info *ret_info)
{
	exec->store->ops->describe(exec->store, ret_info);
}
