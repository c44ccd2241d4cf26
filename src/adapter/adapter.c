/* SPDX-License-Identifier: Apache-2.0 */
/* See adapter.h.  Opening, tasks in and results out; route.c has what comes between. */
#include "adapter/route.h"

#include <errno.h>
#include <stdlib.h>

#include "os/os.h"

static void facts_wait(void *arg)
{
	struct adapter *const adapter = arg;

	os_mutex_lock(&adapter->lock);
	route_all(adapter);
	os_mutex_unlock(&adapter->lock);
}

/* --- open and close ------------------------------------------------------ */

static int check(const struct adapter_options *options, struct kvs_error *err)
{
	static const char *const names[TASK_KIND_COUNT] = { "store", "lookup", "load" };
	int                      kind;

	for (kind = 0; kind < TASK_KIND_COUNT; kind++) {
		if (options->op_max[kind] == 0 || options->op_max[kind] > ADAPTER_OPS_MAX) {
			return err_set(err, KVS_E_INVALID,
				       "adapter %s ops: %u is out of range; use 1 to %u",
				       names[kind], options->op_max[kind], ADAPTER_OPS_MAX);
		}
	}
	return 0;
}

/* What open made so far; the executor is gone, or never was. */
static void discard(struct adapter *adapter)
{
	int kind;

	for (kind = 0; kind < TASK_KIND_COUNT; kind++)
		os_close(adapter->fds[kind]);
	tasks_close(&adapter->tasks);
	os_mutex_fini(&adapter->lock);
	free(adapter);
}

static int open_parts(struct adapter *adapter, struct kvs_store *store,
		      const struct adapter_options *options, struct kvs_error *err)
{
	struct exec_options exec = options->exec;
	int                 kind;

	for (kind = 0; kind < TASK_KIND_COUNT; kind++) {
		adapter->fds[kind] = os_eventfd();
		if (adapter->fds[kind] < 0) {
			return err_set(err, adapter->fds[kind], "adapter: no event descriptor: %s",
				       kvs_strerror(adapter->fds[kind]));
		}
	}
	if (tasks_open(&adapter->tasks, options->op_max) < 0) {
		return err_set(err, -ENOMEM, "adapter: no memory for %u, %u and %u ops",
			       options->op_max[0], options->op_max[1], options->op_max[2]);
	}
	exec.notify = facts_wait;
	exec.notify_arg = adapter;
	return exec_open(store, &exec, &adapter->exec, err);
}

int adapter_open(struct kvs_store *store, const struct adapter_options *options,
		 struct adapter **ret_adapter, struct kvs_error *err)
{
	struct adapter *adapter;
	int             rc = check(options, err);

	if (rc < 0)
		return rc;
	adapter = calloc(1, sizeof(*adapter));
	if (!adapter)
		return err_set(err, -ENOMEM, "adapter: no memory");
	adapter->fds[0] = adapter->fds[1] = adapter->fds[2] = -1;
	os_mutex_init(&adapter->lock);
	rc = open_parts(adapter, store, options, err);
	if (rc < 0) {
		discard(adapter);
		return rc;
	}
	*ret_adapter = adapter;
	return 0;
}

int adapter_close(struct adapter *adapter, uint64_t deadline_ns)
{
	int rc;

	if (!adapter)
		return 0;
	os_mutex_lock(&adapter->lock);
	adapter->closing = true;
	os_mutex_unlock(&adapter->lock);
	/* Without the lock: what workers end and what the executor drops comes here once more. */
	rc = exec_close(adapter->exec, deadline_ns);
	if (rc == 0)
		discard(adapter);
	return rc;
}

int adapter_fd(const struct adapter *adapter, enum task_kind kind)
{
	return adapter->fds[kind];
}

/* --- submission ---------------------------------------------------------- */

/* Every part gets its fact: one that the executor refuses has it at once. */
static void dispatch(struct adapter *adapter, enum task_kind kind, uint32_t slot)
{
	for (; slot != SLOT_NONE; slot = adapter->tasks.parts[slot].next) {
		const struct op *const op = &adapter->tasks.parts[slot].op;
		const int              rc = exec_submit(adapter->exec, op);
		struct fact            fact;

		if (rc == 0)
			continue;
		adapter->stats.refused_ops[kind]++;
		fact_refused(&fact, op, exec_refusal_reason(rc));
		route_fact(adapter, &fact);
	}
}

static bool spans_hold(const struct kvs_span *spans, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (!spans[i].ptr || spans[i].bytes == 0 || spans[i].room < spans[i].bytes)
			return false;
	}
	return true;
}

static int submit(struct adapter *adapter, enum task_kind kind, const struct kvs_key *keys,
		  const struct kvs_span *spans, uint32_t count, uint64_t *ret_task_id)
{
	uint32_t task = SLOT_NONE;
	int      rc = 0;

	if (count == 0 || count > (uint64_t)adapter->tasks.part_max[kind] * OP_KEYS_MAX ||
	    (spans && !spans_hold(spans, count)))
		return KVS_E_INVALID;
	os_mutex_lock(&adapter->lock);
	if (adapter->closing)
		rc = KVS_E_CLOSED;
	else
		task = tasks_start(&adapter->tasks, kind, keys, spans, count, os_now_ns());
	if (task != SLOT_NONE) {
		adapter->stats.submitted[kind]++;
		*ret_task_id = tasks_id(&adapter->tasks, task);
		dispatch(adapter, kind, task);
	} else if (rc == 0) {
		adapter->stats.refused_full[kind]++;
		rc = KVS_E_FULL;
	}
	os_mutex_unlock(&adapter->lock);
	return rc;
}

int adapter_submit_store(struct adapter *adapter, const struct kvs_key *keys,
			 const struct kvs_span *spans, uint32_t count, uint64_t *ret_task_id)
{
	return submit(adapter, TASK_STORE, keys, spans, count, ret_task_id);
}

int adapter_submit_lookup(struct adapter *adapter, const struct kvs_key *keys, uint32_t count,
			  uint64_t *ret_task_id)
{
	return submit(adapter, TASK_LOOKUP, keys, NULL, count, ret_task_id);
}

int adapter_submit_load(struct adapter *adapter, const struct kvs_key *keys,
			const struct kvs_span *spans, uint32_t count, uint64_t *ret_task_id)
{
	return submit(adapter, TASK_LOAD, keys, spans, count, ret_task_id);
}

/* --- results ------------------------------------------------------------- */

/* The last that waited was taken: the descriptor has nothing more to say. */
static void settle_fd(struct adapter *adapter, enum task_kind kind)
{
	if (tasks_ready(&adapter->tasks, kind) == 0)
		os_eventfd_drain(adapter->fds[kind]);
}

uint32_t adapter_pop_stored(struct adapter *adapter, struct task_result *ret_results,
			    uint32_t result_max)
{
	const struct list *const done = &adapter->tasks.finished[TASK_STORE];
	uint32_t                 count = 0;

	os_mutex_lock(&adapter->lock);
	route_all(adapter);
	for (; count < result_max && done->count > 0; count++) {
		tasks_take(&adapter->tasks, done->head, &ret_results[count], NULL);
		if (!ret_results[count].ok)
			ret_results[count].moved_bytes = 0;
	}
	settle_fd(adapter, TASK_STORE);
	os_mutex_unlock(&adapter->lock);
	return count;
}

static bool query(struct adapter *adapter, enum task_kind kind, uint64_t task_id,
		  uint64_t *ret_words, bool *ret_retired)
{
	struct task_result result;
	uint32_t           task;

	os_mutex_lock(&adapter->lock);
	task = tasks_find(&adapter->tasks, kind, task_id);
	if (task == SLOT_NONE) {
		route_all(adapter);
		task = tasks_find(&adapter->tasks, kind, task_id);
	}
	if (task != SLOT_NONE) {
		tasks_take(&adapter->tasks, task, &result, ret_words);
		*ret_retired = result.retired;
		settle_fd(adapter, kind);
	}
	os_mutex_unlock(&adapter->lock);
	return task != SLOT_NONE;
}

bool adapter_query_lookup(struct adapter *adapter, uint64_t task_id, uint64_t *ret_words)
{
	bool retired;

	return query(adapter, TASK_LOOKUP, task_id, ret_words, &retired);
}

bool adapter_query_load(struct adapter *adapter, uint64_t task_id, uint64_t *ret_words,
			bool *ret_retired)
{
	return query(adapter, TASK_LOAD, task_id, ret_words, ret_retired);
}

void adapter_unlock(struct adapter *adapter, const struct kvs_key *keys, uint32_t count)
{
	exec_unlock(adapter->exec, keys, count);
}

int adapter_notice(struct adapter *adapter, const struct retirement_notice *notice)
{
	int rc;

	os_mutex_lock(&adapter->lock);
	/* The executor knows an op as unretired from the delivery of its fact on. */
	route_all(adapter);
	rc = route_notice(adapter, notice);
	os_mutex_unlock(&adapter->lock);
	return rc;
}

uint32_t adapter_pop_retired(struct adapter *adapter, enum task_kind kind, uint64_t *ret_task_ids,
			     uint32_t id_max)
{
	uint32_t count = 0;

	os_mutex_lock(&adapter->lock);
	route_all(adapter);
	while (count < id_max && (ret_task_ids[count] = tasks_tell(&adapter->tasks, kind)) != 0)
		count++;
	settle_fd(adapter, kind);
	os_mutex_unlock(&adapter->lock);
	return count;
}

/* --- figures ------------------------------------------------------------- */

void adapter_stats(struct adapter *adapter, struct adapter_stats *ret_stats)
{
	int kind;

	os_mutex_lock(&adapter->lock);
	*ret_stats = adapter->stats;
	for (kind = 0; kind < TASK_KIND_COUNT; kind++)
		ret_stats->ready[kind] = tasks_ready(&adapter->tasks, (enum task_kind)kind);
	exec_stats(adapter->exec, &ret_stats->exec);
	os_mutex_unlock(&adapter->lock);
}

void adapter_describe(struct adapter *adapter, struct kvs_store_info *ret_info)
{
	exec_describe(adapter->exec, ret_info);
}

const struct histogram *adapter_throughput(const struct adapter *adapter, enum task_kind kind)
{
	return &adapter->throughput[kind];
}

void adapter_audit(struct adapter *adapter)
{
	os_mutex_lock(&adapter->lock);
	tasks_audit(&adapter->tasks);
	os_mutex_unlock(&adapter->lock);
}
