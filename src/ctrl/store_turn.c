/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn of the store controller: hear, collect, drop, feed, delete, tell.
 *
 * What may be called here takes locks of its own, so nothing is called under the loop's.
 */
#include "ctrl/store_parts.h"

#include <string.h>

/* Results and retirements fetched at a time. */
#define RESULTS 16

static void count(struct store_ctrl *ctrl, enum store_ctrl_counter counter, uint64_t by)
{
	ctrl->now.counters[counter] += by;
}

/* --- hearing ---------------------------------------------------------------------------------- */

/* Keys of a batch that are in Host now, with their bytes, to the front; how many. */
static uint32_t look_at(struct store_ctrl *ctrl, uint32_t key_count)
{
	uint32_t there = 0, i;

	KVS_ASSERT(host_pin(ctrl->host, ctrl->keys, key_count, ctrl->pins, ctrl->spans, ctrl->rc) == 0);
	for (i = 0; i < key_count; i++) {
		if (ctrl->rc[i] != 0)
			continue;
		ctrl->keys[there] = ctrl->keys[i];
		ctrl->bytes[there] = ctrl->spans[i].bytes;
		ctrl->pins[there] = ctrl->pins[i];
		there++;
	}
	/* A key waits by name: only its size was wanted. */
	host_unpin(ctrl->host, ctrl->pins, there);
	count(ctrl, STORE_CTRL_GONE, key_count - there);
	return there;
}

static void queue_up(struct store_ctrl *ctrl, uint32_t key_count, uint64_t number)
{
	const uint64_t staying = seats_staying(&ctrl->seats);
	uint32_t       i;

	for (i = 0; i < key_count; i++) {
		const uint64_t targets = ctrl->targets[i] & staying;

		count(ctrl, STORE_CTRL_MISNAMED,
		      (uint64_t)__builtin_popcountll(ctrl->targets[i] & ~staying));
		if (targets) {
			count(ctrl, STORE_CTRL_UNQUEUED,
			      store_queue_add(&ctrl->queue, &ctrl->keys[i], ctrl->bytes[i], number,
					      targets));
		}
	}
}

/* The first key_count of the batch were heard; all are as old as the first. */
static void hear(struct store_ctrl *ctrl, uint32_t key_count, uint64_t number)
{
	struct kvs_adapter_info infos[KVS_ADAPTERS_MAX];
	uint32_t                info_count, there;

	if (key_count == 0)
		return;
	info_count = seats_infos(&ctrl->seats, infos);
	if (info_count == 0) {
		count(ctrl, STORE_CTRL_UNWANTED, key_count);
		return;
	}
	there = look_at(ctrl, key_count);
	if (there == 0)
		return;
	memset(ctrl->targets, 0, there * sizeof(*ctrl->targets));
	ctrl->policy->targets(infos, info_count, ctrl->keys, ctrl->bytes, there, ctrl->targets);
	queue_up(ctrl, there, number);
}

/* --- collecting ------------------------------------------------------------------------------- */

/* The record goes before the pins, so that whatever comes between gives nothing back twice. */
static void end_task(struct store_ctrl *ctrl, uint32_t adapter, struct store_task *task)
{
	const uint32_t pin_count = task->count;

	memcpy(ctrl->pins, task->pins, pin_count * sizeof(*ctrl->pins));
	store_queue_release(&ctrl->queue, adapter, task);
	host_unpin(ctrl->host, ctrl->pins, pin_count);
}

static void take_result(struct store_ctrl *ctrl, uint32_t adapter, const struct task_result *result)
{
	struct store_task *const task = store_queue_find(&ctrl->queue, adapter, result->task_id);

	count(ctrl, result->ok ? STORE_CTRL_STORED : STORE_CTRL_FAILED, task->count);
	ctrl->now.stored_bytes += result->moved_bytes;
	store_queue_settle(&ctrl->queue, task, result->ok);
	if (result->retired) {
		end_task(ctrl, adapter, task);
		return;
	}
	count(ctrl, STORE_CTRL_DOUBT, 1);
	store_queue_doubt(&ctrl->queue, adapter, task);
}

static void collect(struct store_ctrl *ctrl, uint32_t adapter)
{
	struct adapter *const from = ctrl->seats.at[adapter].adapter;
	struct task_result    results[RESULTS];
	uint64_t              ids[RESULTS];
	uint32_t              got, i;

	do {
		got = adapter_pop_stored(from, results, RESULTS);
		for (i = 0; i < got; i++)
			take_result(ctrl, adapter, &results[i]);
	} while (got == RESULTS);
	do {
		got = adapter_pop_retired(from, TASK_STORE, ids, RESULTS);
		for (i = 0; i < got; i++)
			end_task(ctrl, adapter, store_queue_find(&ctrl->queue, adapter, ids[i]));
	} while (got == RESULTS);
}

/* --- feeding ---------------------------------------------------------------------------------- */

/* Pin what the task names; how many of its keys are left, their spans in ctrl->spans. */
static uint32_t pin(struct store_ctrl *ctrl, struct store_task *task)
{
	const uint64_t bytes = ctrl->queue.keys[task->keys[0]].bytes;
	uint32_t       there = 0, i;

	for (i = 0; i < task->count; i++)
		ctrl->keys[i] = ctrl->queue.keys[task->keys[i]].key;
	KVS_ASSERT(host_pin(ctrl->host, ctrl->keys, task->count, task->pins, ctrl->spans, ctrl->rc) == 0);
	for (i = 0; i < task->count; i++) {
		/* Written again in another size: its own notice tells of it. */
		if (ctrl->rc[i] == 0 && ctrl->spans[i].bytes != bytes) {
			host_unpin(ctrl->host, &task->pins[i], 1);
			ctrl->rc[i] = KVS_E_STALE;
		}
		if (ctrl->rc[i] != 0)
			continue;
		ctrl->keys[there] = ctrl->keys[i];
		ctrl->spans[there++] = ctrl->spans[i];
	}
	count(ctrl, STORE_CTRL_GONE, store_queue_keep(&ctrl->queue, task, ctrl->rc));
	return there;
}

/* False when the adapter has no room: the task was put back. */
static bool submit(struct store_ctrl *ctrl, uint32_t adapter, struct store_task *task)
{
	const uint32_t key_count = pin(ctrl, task);
	int            rc;

	if (key_count == 0) {
		store_queue_release(&ctrl->queue, adapter, task);
		return true;
	}
	rc = adapter_submit_store(ctrl->seats.at[adapter].adapter, ctrl->keys, ctrl->spans, key_count,
				  &task->task_id);
	if (rc == 0) {
		count(ctrl, STORE_CTRL_TASKS, 1);
		count(ctrl, STORE_CTRL_SUBMITTED, key_count);
		return true;
	}
	if (rc == KVS_E_FULL) {
		host_unpin(ctrl->host, task->pins, key_count);
		store_queue_put_back(&ctrl->queue, adapter, task);
		return false;
	}
	count(ctrl, STORE_CTRL_REFUSED, key_count);
	store_queue_settle(&ctrl->queue, task, false);
	end_task(ctrl, adapter, task);
	return true;
}

static void feed(struct store_ctrl *ctrl, uint32_t adapter)
{
	struct store_task *task;

	if (store_queue_stuck(&ctrl->queue, adapter))
		count(ctrl, STORE_CTRL_UNQUEUED, store_queue_drop(&ctrl->queue, adapter));
	do {
		task = store_queue_next(&ctrl->queue, adapter);
	} while (task && submit(ctrl, adapter, task));
}

/* --- deleting --------------------------------------------------------------------------------- */

static void delete_batch(struct store_ctrl *ctrl, uint32_t key_count)
{
	uint32_t to = 0, i;

	memset(ctrl->drop, 0, key_count * sizeof(*ctrl->drop));
	ctrl->policy->deletions(ctrl->keys, key_count, ctrl->drop);
	for (i = 0; i < key_count; i++) {
		if (ctrl->drop[i])
			ctrl->keys[to++] = ctrl->keys[i];
	}
	if (to == 0)
		return;
	KVS_ASSERT(host_remove(ctrl->host, ctrl->keys, to, false, ctrl->rc) == 0);
	for (i = 0; i < to; i++) {
		if (ctrl->rc[i] == 0)
			count(ctrl, STORE_CTRL_DELETED, 1);
		else if (ctrl->rc[i] == KVS_E_LOCKED)
			count(ctrl, STORE_CTRL_KEPT, 1);
	}
}

static void delete_ended(struct store_ctrl *ctrl)
{
	uint32_t key_count;

	do {
		key_count = 0;
		while (key_count < STORE_HEAR_KEYS &&
		       store_queue_pop_ended(&ctrl->queue, &ctrl->keys[key_count]))
			key_count++;
		if (key_count > 0 && ctrl->policy->deletions)
			delete_batch(ctrl, key_count);
	} while (key_count == STORE_HEAR_KEYS);
}

/* --- a turn ----------------------------------------------------------------------------------- */

/* Adapters with tasks, and those with keys that the next turn drops, as bits. */
static uint64_t busy(const struct store_ctrl *ctrl)
{
	uint64_t words = 0;
	uint32_t n;

	for (n = 0; n < KVS_ADAPTERS_MAX; n++) {
		if (ctrl->queue.lines[n].busy.busy_count > 0 || ctrl->queue.lines[n].count > 0)
			words |= UINT64_C(1) << n;
	}
	return words;
}

static void sum_up(struct store_ctrl *ctrl)
{
	uint32_t n;

	ctrl->now.waiting = 0;
	ctrl->now.in_flight = 0;
	ctrl->now.in_flight_bytes = 0;
	for (n = 0; n < KVS_ADAPTERS_MAX; n++) {
		ctrl->now.waiting += ctrl->queue.lines[n].count;
		ctrl->now.in_flight += ctrl->queue.lines[n].busy.busy_count;
		ctrl->now.in_flight_bytes += ctrl->queue.lines[n].bytes;
	}
}

/* What other threads see of the turn. */
static bool tell(struct store_ctrl *ctrl)
{
	bool more;

	sum_up(ctrl);
	os_mutex_lock(&ctrl->loop.lock);
	ctrl->stats = ctrl->now;
	loop_free_seats_locked(&ctrl->loop, busy(ctrl), 1 << TASK_STORE);
	if (ctrl->flushing > 0) {
		ctrl->settled = store_queue_oldest(&ctrl->queue, ctrl->taken);
		os_cond_broadcast(&ctrl->loop.moved);
	}
	more = ctrl->inbox.count > 0;
	os_mutex_unlock(&ctrl->loop.lock);
	return more;
}

/* Seats and keys as of one moment: what was written after an attach finds the adapter. */
static uint32_t take_inbox(struct store_ctrl *ctrl)
{
	uint32_t taken = 0;

	os_mutex_lock(&ctrl->loop.lock);
	ctrl->seats = ctrl->loop.seats;
	while (taken < STORE_HEAR_KEYS && ring_pop(&ctrl->inbox, &ctrl->keys[taken]))
		taken++;
	os_mutex_unlock(&ctrl->loop.lock);
	return taken;
}

bool store_turn(struct store_ctrl *ctrl)
{
	const uint64_t number = ctrl->taken;
	const uint32_t taken = take_inbox(ctrl);
	uint32_t       n;

	ctrl->taken += taken;
	hear(ctrl, taken, number);
	for (n = 0; n < KVS_ADAPTERS_MAX; n++) {
		if (!ctrl->seats.at[n].adapter)
			continue;
		collect(ctrl, n);
		if (ctrl->seats.at[n].leaving)
			count(ctrl, STORE_CTRL_UNQUEUED, store_queue_drop(&ctrl->queue, n));
		feed(ctrl, n);
	}
	delete_ended(ctrl);
	return tell(ctrl);
}

void store_turn_drop_all(struct store_ctrl *ctrl)
{
	uint32_t taken, n;

	for (n = 0; n < KVS_ADAPTERS_MAX; n++)
		count(ctrl, STORE_CTRL_UNQUEUED, store_queue_drop(&ctrl->queue, n));
	do {
		taken = take_inbox(ctrl);
		count(ctrl, STORE_CTRL_UNQUEUED, taken);
		ctrl->taken += taken;
	} while (taken > 0);
}
