/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See exec.h.  Workers sleep on their class's condition; the poller sleeps on the eventfd, if at
 * all.
 */
#include "exec/exec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "os/os.h"

/* A lost wake-up then costs a tenth of a second, never a hang. */
#define IDLE_NS UINT64_C(100000000)

struct worker {
	struct exec    *exec;
	enum exec_class class;
	pthread_t       thread;
};

struct exec {
	struct kvs_store *store;
	int               event_fd;
	uint32_t          worker_count;
	struct worker     workers[EXEC_WORKERS_MAX];

	struct os_mutex   lock; /* protects all below; a leaf; never held across a store call */
	struct os_cond    work[EXEC_CLASS_COUNT];
	struct exec_core  core;
	bool              closing;
	struct exec_stats stats;
	uint32_t          busy[EXEC_CLASS_COUNT];       /* workers in a store call */
	uint64_t          busy_since[EXEC_CLASS_COUNT]; /* when the first of them began */
};

static void busy_begin(struct exec *exec, enum exec_class class)
{
	if (exec->busy[class]++ == 0)
		exec->busy_since[class] = os_now_ns();
}

static void busy_end(struct exec *exec, enum exec_class class)
{
	if (--exec->busy[class] == 0)
		exec->stats.busy_ns[class] += os_now_ns() - exec->busy_since[class];
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

/* Run one job with the lock dropped around the store.  The op cannot change: it is RUNNING. */
static void work_one(struct exec *exec, enum exec_class class, uint32_t job)
{
	const struct op   op = exec->core.jobs[job].op;
	struct fact       fact;
	struct exec_moved moved;

	busy_begin(exec, class);
	os_mutex_unlock(&exec->lock);
	exec_run(exec->store, &op, &fact, &moved);
	os_mutex_lock(&exec->lock);
	busy_end(exec, class);
	exec_core_finish(&exec->core, job, &fact);
	moved_add(&exec->stats.moved, &moved);
	os_eventfd_signal(exec->event_fd);
}

static void *work(void *arg)
{
	struct worker *const worker = arg;
	struct exec *const   exec = worker->exec;

	os_mutex_lock(&exec->lock);
	while (!exec->closing) {
		const uint32_t job = exec_core_take(&exec->core, worker->class);

		if (job == SLOT_NONE)
			os_cond_wait(&exec->work[worker->class], &exec->lock, IDLE_NS);
		else
			work_one(exec, worker->class, job);
	}
	os_mutex_unlock(&exec->lock);
	return NULL;
}

static int start_workers(struct exec *exec, const struct exec_options *options,
			 struct kvs_error *err)
{
	static const char *const names[EXEC_CLASS_COUNT] = { "kvs-query", "kvs-get", "kvs-put" };
	int                      class;
	uint32_t                 i;

	for (class = 0; class < EXEC_CLASS_COUNT; class++) {
		for (i = 0; i < options->workers[class]; i++) {
			struct worker *const worker = &exec->workers[exec->worker_count];
			int                  rc;

			*worker = (struct worker){ .exec = exec, .class = (enum exec_class)class };
			rc = os_thread_start(&worker->thread, names[class], work, worker);
			if (rc < 0)
				return err_set(err, rc,
					       "executor: cannot start a worker thread: %s",
					       kvs_strerror(rc));
			exec->worker_count++;
		}
	}
	return 0;
}

static int check_workers(const struct exec_options *options, struct kvs_error *err)
{
	uint32_t total = 0;
	int      class;

	for (class = 0; class < EXEC_CLASS_COUNT; class++) {
		if (options->workers[class] == 0 || options->workers[class] > EXEC_WORKERS_MAX)
			return err_set(err, KVS_E_INVALID,
				       "executor workers: %u is out of range; use 1 to %u a class",
				       options->workers[class], EXEC_WORKERS_MAX);
		total += options->workers[class];
	}
	if (total > EXEC_WORKERS_MAX)
		return err_set(err, KVS_E_INVALID,
			       "executor workers: %u in all are too many; the limit is %u", total,
			       EXEC_WORKERS_MAX);
	return 0;
}

int exec_open(struct kvs_store *store, const struct exec_options *options, struct exec **ret_exec,
	      struct kvs_error *err)
{
	struct exec *exec;
	int          rc = check_workers(options, err);
	int          class;

	if (rc < 0)
		return rc;
	exec = calloc(1, sizeof(*exec));
	if (!exec)
		return err_set(err, -ENOMEM, "no memory for the executor");
	exec->store = store;
	os_mutex_init(&exec->lock);
	for (class = 0; class < EXEC_CLASS_COUNT; class++)
		os_cond_init(&exec->work[class]);
	exec->event_fd = os_eventfd();
	rc = exec->event_fd;
	if (rc < 0)
		err_set(err, rc, "executor: no event descriptor: %s", kvs_strerror(rc));
	else
		rc = exec_core_open(&exec->core, &options->limits, err);
	if (rc == 0)
		rc = start_workers(exec, options, err);
	if (rc < 0) {
		exec_close(exec);
		return rc;
	}
	*ret_exec = exec;
	return 0;
}

void exec_close(struct exec *exec)
{
	uint32_t i;
	int      class;

	if (!exec)
		return;
	os_mutex_lock(&exec->lock);
	exec->closing = true;
	for (class = 0; class < EXEC_CLASS_COUNT; class++)
		os_cond_broadcast(&exec->work[class]);
	os_mutex_unlock(&exec->lock);
	for (i = 0; i < exec->worker_count; i++)
		os_thread_join(exec->workers[i].thread);
	exec_core_close(&exec->core);
	for (class = 0; class < EXEC_CLASS_COUNT; class++)
		os_cond_fini(&exec->work[class]);
	os_mutex_fini(&exec->lock);
	if (exec->event_fd >= 0)
		os_close(exec->event_fd);
	free(exec);
}

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
	os_mutex_lock(&exec->lock);
	exec_core_cancel(&exec->core, op_id);
	/* A cancelled op's fact waits like any other. */
	os_eventfd_signal(exec->event_fd);
	os_mutex_unlock(&exec->lock);
}

uint32_t exec_poll(struct exec *exec, struct fact *ret_facts, uint32_t fact_max,
		   struct exec_pressure *ret_pressure)
{
	uint32_t count;

	os_mutex_lock(&exec->lock);
	os_eventfd_drain(exec->event_fd);
	count = exec_core_poll(&exec->core, os_now_ns(), ret_facts, fact_max, ret_pressure);
	/* Facts that did not fit keep the descriptor readable. */
	if (exec->core.done.count > 0)
		os_eventfd_signal(exec->event_fd);
	os_mutex_unlock(&exec->lock);
	return count;
}

int exec_fd(const struct exec *exec)
{
	return exec->event_fd;
}

void exec_stats(struct exec *exec, struct exec_stats *ret_stats)
{
	int class;

	os_mutex_lock(&exec->lock);
	*ret_stats = exec->stats;
	for (class = 0; class < EXEC_CLASS_COUNT; class++) {
		if (exec->busy[class] > 0)
			ret_stats->busy_ns[class] += os_now_ns() - exec->busy_since[class];
	}
	for (class = 0; class < EXEC_COUNTER_COUNT; class++)
		ret_stats->counters[class] = exec->core.counters[class];
	os_mutex_unlock(&exec->lock);
}
