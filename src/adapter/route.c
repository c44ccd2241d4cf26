/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See route.h.  A worker that finished a job, or heard that doubts are over, comes here through the
 * executor's notify hook, fetches what facts and notices there are and signals their tasks' kinds; so
 * does everybody who looks for a result that is not there yet, so that a hint that got lost costs
 * latency only.
 */
#include "adapter/route.h"

#include "base/err.h"

/* Facts fetched at a time, on a worker's stack: half a kilobyte each. */
#define FACT_BATCH 8

static void finished(struct adapter *adapter, const struct task *task)
{
	const uint64_t now_ns = os_now_ns();
	const uint64_t took_ns = now_ns > task->submitted_ns ? now_ns - task->submitted_ns : 1;
	const uint64_t bytes = task->moved_bytes;

	adapter->stats.finished[task->kind]++;
	adapter->stats.moved_bytes[task->kind] += bytes;
	if (bytes > 0) {
		histogram_add(&adapter->throughput[task->kind],
			      (uint64_t)((double)bytes * 1e9 / (double)took_ns));
	}
	os_eventfd_signal(adapter->fds[task->kind]);
}

void route_fact(struct adapter *adapter, const struct fact *fact)
{
	const struct task *const task =
		&adapter->tasks.tasks[tasks_answer(&adapter->tasks, fact)];

	if (task->state == TASK_FINISHED)
		finished(adapter, task);
}

static void route_facts(struct adapter *adapter)
{
	struct fact     facts[FACT_BATCH];
	struct pressure pressure;
	uint32_t        count, i;

	do {
		count = exec_poll(adapter->exec, facts, FACT_BATCH, &pressure);
		for (i = 0; i < count; i++)
			route_fact(adapter, &facts[i]);
	} while (count == FACT_BATCH);
}

int route_notice(struct adapter *adapter, const struct retirement_notice *notice)
{
	uint32_t  task = SLOT_NONE;
	const int rc = exec_notice(adapter->exec, notice);

	if (rc == 0)
		task = tasks_notice(&adapter->tasks, notice);
	if (task != SLOT_NONE && adapter->tasks.tasks[task].state == TASK_RETIRED)
		os_eventfd_signal(adapter->fds[adapter->tasks.tasks[task].kind]);
	return rc;
}

/* One owner agrees with itself at once. */
static void route_notices(struct adapter *adapter)
{
	struct retirement_notice notice;

	while (exec_poll_notices(adapter->exec, &notice, 1) > 0)
		KVS_ASSERT(route_notice(adapter, &notice) == 0);
}

void route_all(struct adapter *adapter)
{
	route_facts(adapter);
	route_notices(adapter);
}
