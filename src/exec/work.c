/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The workers: take a job, run it against the store without a lock, say what became of it.
 *
 * They sleep on their class's condition.  One that finished a job wakes the next where the bytes it
 * set free may let another job run, and one that took a job wakes the next while more jobs wait.
 */
#include "exec/shell.h"

/* A lost wake-up then costs a tenth of a second, never a hang. */
#define IDLE_NS UINT64_C(100000000)

/*
 * How long a lane that could take more jobs waits for the store before it looks for them: a job that
 * comes meanwhile, and finds no other worker, waits as long.
 */
#define GLANCE_NS UINT64_C(1000000)

#define UNLOCK_MAX 64u

void exec_calls_begin(struct exec *exec)
{
	if (exec->one_thread)
		os_mutex_lock(&exec->calls);
}

void exec_calls_end(struct exec *exec)
{
	if (exec->one_thread)
		os_mutex_unlock(&exec->calls);
}

static void busy_begin(struct exec *exec, enum exec_class class)
{
	if (exec->busy[class]++ == 0)
		exec->busy_since[class] = os_now_ns();
}

static void busy_end(struct exec *exec, enum exec_class class)
{
	if (--exec->busy[class] == 0)
		exec->busy_ns[class] += os_now_ns() - exec->busy_since[class];
}

static void moved_add(struct exec_moved *total, const struct exec_moved *moved)
{
	total->put_keys += moved->put_keys;
	total->put_new_keys += moved->put_new_keys;
	total->put_bytes += moved->put_bytes;
	total->get_keys += moved->get_keys;
	total->get_bytes += moved->get_bytes;
	total->corrupt_keys += moved->corrupt_keys;
	total->no_space_keys += moved->no_space_keys;
}

void exec_wake(struct exec *exec)
{
	const bool signal = exec->armed && exec_core_ready(&exec->core);

	exec->armed = exec->armed && !signal;
	os_mutex_unlock(&exec->lock);
	/* Release: what it tells of is written.  The reader takes the lock besides. */
	atomic_store_explicit(&exec->ready, true, memory_order_release);
	if (signal)
		os_eventfd_signal(exec->event_fd);
}

void exec_announce(struct exec *exec)
{
	exec_wake(exec);
	if (exec->notify)
		exec->notify(exec->notify_arg);
	os_mutex_lock(&exec->lock);
}

/* With the lock: tell the store of locks that it need not keep.  Drops it for the call. */
static bool tell_of_locks(struct exec *exec)
{
	struct kvs_key keys[UNLOCK_MAX];
	const uint32_t count = locks_tell(&exec->core.locks, keys, UNLOCK_MAX);

	if (count == 0)
		return false;
	os_mutex_unlock(&exec->lock);
	exec_calls_begin(exec);
	exec->store->ops->unlock(exec->store, keys, count);
	exec_calls_end(exec);
	os_mutex_lock(&exec->lock);
	return true;
}

static void finish(struct exec *exec, enum exec_class class, uint32_t job, const struct fact *fact,
		   const struct exec_report *report)
{
	exec_core_finish(&exec->core, job, fact, report, os_now_ns());
	moved_add(&exec->moved, &report->moved);
	if (!fact->retired)
		exec_doubt(exec);
	if (exec->core.queue[class].count > 0)
		os_cond_signal(&exec->work[class]);
}

/*
 * A job, with a wake-up for the next: one that ended may have set free bytes for several, and woke
 * one worker only.
 */
static uint32_t take(struct exec *exec, enum exec_class class)
{
	const uint32_t job = exec_core_take(&exec->core, class);

	if (job != SLOT_NONE && exec->core.queue[class].count > 0)
		os_cond_signal(&exec->work[class]);
	return job;
}

/* Until there may be a job, or something to ask. */
static void rest(struct exec *exec, enum exec_class class)
{
	os_cond_wait(&exec->work[class], &exec->lock, exec_settle_after(exec, IDLE_NS));
}

/* --- a synchronous store ---------------------------------------------------------------------- */

/* The op cannot change: it is RUNNING. */
static void work_one(struct exec *exec, enum exec_class class, uint32_t job)
{
	const struct op *const op = &exec->core.jobs[job].op;
	struct fact            fact;
	struct exec_report     report;

	busy_begin(exec, class);
	os_mutex_unlock(&exec->lock);
	exec_calls_begin(exec);
	exec_run(exec->store, op, &fact, &report);
	exec_calls_end(exec);
	os_mutex_lock(&exec->lock);
	busy_end(exec, class);
	finish(exec, class, job, &fact, &report);
	exec_announce(exec);
}

/* True when it did something.  At the end nobody holds anything, and the store hears of that, too. */
static bool tend_locks(struct exec *exec, enum exec_class class)
{
	if (class != EXEC_QUERY)
		return false;
	if (exec->closing)
		locks_give_all(&exec->core.locks);
	return tell_of_locks(exec);
}

static void work_calls(struct exec *exec, enum exec_class class)
{
	for (;;) {
		uint32_t job;

		if (tend_locks(exec, class) || exec_settle(exec))
			continue;
		job = take(exec, class);
		if (job != SLOT_NONE)
			work_one(exec, class, job);
		else if (exec->closing)
			return;
		else
			rest(exec, class);
	}
}

/* --- an asynchronous one ---------------------------------------------------------------------- */

static bool fill_lane(struct exec *exec, const struct worker *worker)
{
	const bool was_empty = worker->async->open_count == 0;

	while (!async_full(worker->async)) {
		const uint32_t job = take(exec, worker->class);

		if (job == SLOT_NONE)
			break;
		async_add(worker->async, job, &exec->core.jobs[job].op);
	}
	if (worker->async->open_count == 0)
		return false;
	if (was_empty)
		busy_begin(exec, worker->class);
	return true;
}

static void empty_lane(struct exec *exec, const struct worker *worker)
{
	struct fact        fact;
	struct exec_report report;
	bool               any = false;
	uint32_t           job;

	while (async_take(worker->async, &job, &fact, &report)) {
		finish(exec, worker->class, job, &fact, &report);
		any = true;
	}
	if (worker->async->open_count == 0)
		busy_end(exec, worker->class);
	if (any)
		exec_announce(exec);
}

static void work_lane(struct exec *exec, const struct worker *worker)
{
	for (;;) {
		(void)exec_settle(exec);
		if (!fill_lane(exec, worker)) {
			if (exec->closing)
				return;
			rest(exec, worker->class);
			continue;
		}
		os_mutex_unlock(&exec->lock);
		async_submit(worker->async);
		async_reap(worker->async, async_full(worker->async) ? IDLE_NS : GLANCE_NS);
		os_mutex_lock(&exec->lock);
		empty_lane(exec, worker);
	}
}

void *exec_work(void *arg)
{
	struct worker *const worker = arg;
	struct exec *const   exec = worker->exec;

	os_mutex_lock(&exec->lock);
	if (worker->async)
		work_lane(exec, worker);
	else
		work_calls(exec, worker->class);
	exec->alive--;
	os_cond_broadcast(&exec->gone);
	os_mutex_unlock(&exec->lock);
	return NULL;
}
