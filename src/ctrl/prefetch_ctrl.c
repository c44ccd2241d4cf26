/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See prefetch_ctrl.h.  What callers enter: slots of requests under the lock; the thread does the
 * rest.
 */
#include "ctrl/prefetch_ctrl.h"

#include <string.h>

#include "base/bits.h"
#include "ctrl/prefetch_desk.h"

#define KINDS (1U << TASK_LOOKUP | 1U << TASK_LOAD)

/* --- open and close --------------------------------------------------------------------------- */

static void *run(void *arg)
{
	struct prefetch_ctrl *const ctrl = arg;

	while (!loop_stopping(&ctrl->loop)) {
		const uint64_t deadline_ns = prefetch_turn(ctrl);
		const uint64_t now_ns = os_now_ns();

		loop_sleep(&ctrl->loop, deadline_ns > now_ns ? deadline_ns - now_ns : 0);
	}
	return NULL;
}

static int start(struct prefetch_ctrl *ctrl, struct kvs_error *err)
{
	int rc = host_client_open(ctrl->host, HOST_NO_TTL, &ctrl->client);

	if (rc < 0)
		return err_set(err, rc, "prefetch controller: no client: %s", kvs_strerror(rc));
	rc = loop_open(&ctrl->loop);
	if (rc == 0) {
		rc = loop_start(&ctrl->loop, "kvs-prefetch", run, ctrl);
		if (rc == 0)
			return 0;
		loop_close(&ctrl->loop);
	}
	(void)host_client_close(ctrl->host, ctrl->client, os_now_ns());
	return err_set(err, rc, "prefetch controller: cannot start: %s", kvs_strerror(rc));
}

int prefetch_ctrl_open(struct host *host, const struct kvs_prefetch_policy *policy,
		       const struct ctrl_limits *limits, struct prefetch_ctrl **ret_ctrl,
		       struct kvs_error *err)
{
	struct prefetch_ctrl *ctrl;
	int                   rc = prefetch_tables_open(limits, &ctrl, err);

	if (rc < 0)
		return rc;
	ctrl->host = host;
	ctrl->tools.hands = &prefetch_hands;
	ctrl->tools.arg = ctrl;
	ctrl->tools.policy = policy;
	ctrl->tools.stats = &ctrl->now;
	rc = start(ctrl, err);
	if (rc < 0) {
		prefetch_tables_close(ctrl);
		return rc;
	}
	*ret_ctrl = ctrl;
	return 0;
}

/* What is late retires, or time is over. */
static bool wind_up(struct prefetch_ctrl *ctrl, uint64_t deadline_ns)
{
	uint64_t now_ns;

	prefetch_turn_stop(ctrl);
	for (;;) {
		(void)prefetch_turn(ctrl);
		if (ctrl->busy.busy_count == 0)
			return true;
		now_ns = os_now_ns();
		if (now_ns >= deadline_ns)
			return false;
		loop_sleep(&ctrl->loop, deadline_ns - now_ns);
	}
}

int prefetch_ctrl_close(struct prefetch_ctrl *ctrl, uint64_t deadline_ns)
{
	if (!ctrl)
		return 0;
	loop_stop(&ctrl->loop);
	if (!wind_up(ctrl, deadline_ns))
		return KVS_E_QUARANTINE;
	KVS_ASSERT(host_client_close(ctrl->host, ctrl->client, os_now_ns()) == 0);
	loop_close(&ctrl->loop);
	prefetch_tables_close(ctrl);
	return 0;
}

/* --- adapters --------------------------------------------------------------------------------- */

int prefetch_ctrl_attach(struct prefetch_ctrl *ctrl, uint32_t number, struct adapter *adapter,
			 const char *name)
{
	return loop_attach(&ctrl->loop, number, adapter, name, KINDS);
}

void prefetch_ctrl_detach(struct prefetch_ctrl *ctrl, uint32_t number)
{
	loop_detach(&ctrl->loop, number, KINDS);
}

bool prefetch_ctrl_detached(struct prefetch_ctrl *ctrl, uint32_t number, uint64_t deadline_ns)
{
	return loop_detached(&ctrl->loop, number, deadline_ns);
}

/* --- slots ------------------------------------------------------------------------------------ */

struct ask_slot *prefetch_slot_locked(struct prefetch_ctrl *ctrl, uint64_t request_id)
{
	struct ask_slot *const slot = &ctrl->asks[request_id % ctrl->limits.queue_max];

	if (slot->stage == ASK_FREE || slot->stage == ASK_FILLING ||
	    slot->ask.request_id != request_id)
		return NULL;
	return slot;
}

void prefetch_slot_take_up_locked(struct ask_slot *slot)
{
	slot->stage = ASK_UNDER_WAY;
	slot->has_run = true;
}

void prefetch_slot_settle_locked(struct prefetch_ctrl *ctrl, struct ask_slot *slot)
{
	if (slot->stage != ASK_TAKEN || slot->has_run)
		return;
	slot->stage = ASK_FREE;
	slots_release(&ctrl->slots, (uint32_t)(slot - ctrl->asks));
}

void prefetch_slot_drop_locked(struct prefetch_ctrl *ctrl, struct ask_slot *slot)
{
	const uint32_t number = (uint32_t)(slot - ctrl->asks);

	if (slot->dropped || slot->stage == ASK_FREE || slot->stage == ASK_FILLING ||
	    slot->stage == ASK_TAKEN)
		return;
	slot->dropped = true;
	if (slot->stage == ASK_QUEUED)
		list_remove(&ctrl->queue, ctrl->links, number);
	list_push_tail(&ctrl->dropped, ctrl->links, number);
}

/* --- submission ------------------------------------------------------------------------------- */

static uint64_t need_bytes(const struct prefetch_ask *ask)
{
	uint64_t need = 0;
	uint32_t i;

	for (i = 0; i < ask->key_count; i++) {
		if (bits_test(ask->held, i))
			continue;
		need = ask->bytes[i] < UINT64_MAX - need ? need + ask->bytes[i] : UINT64_MAX;
	}
	return need;
}

/* Without the lock: the slot is the submitter's. */
static void fill(struct ask_slot *slot, const struct prefetch_request *request, uint32_t key_count)
{
	struct prefetch_ask *const ask = &slot->ask;

	ask->reader = request->reader;
	ask->flat = *request->flat;
	ask->chunk_count = request->chunk_count;
	ask->key_count = key_count;
	ask->lock_count = request->lock_count;
	ask->retain = request->retain;
	ask->deadline_ns = request->deadline_ns;
	memcpy(ask->keys, request->keys, key_count * sizeof(*ask->keys));
	memcpy(ask->bytes, request->bytes, key_count * sizeof(*ask->bytes));
	memcpy(ask->held, request->held, bits_words(key_count) * sizeof(*ask->held));
	ask->need_bytes = need_bytes(ask);
	slot->done = request->done;
	slot->done_arg = request->done_arg;
}

static int acquire(struct prefetch_ctrl *ctrl, uint32_t *ret_number)
{
	int rc = 0;

	os_mutex_lock(&ctrl->loop.lock);
	if (ctrl->loop.stopping)
		rc = KVS_E_CLOSED;
	else if (ctrl->slots.busy_count == ctrl->limits.queue_max)
		rc = KVS_E_FULL;
	ctrl->refused_full += rc == KVS_E_FULL;
	if (rc == 0) {
		*ret_number = slots_acquire(&ctrl->slots);
		KVS_ASSERT(*ret_number != SLOT_NONE);
		ctrl->asks[*ret_number].stage = ASK_FILLING;
	}
	os_mutex_unlock(&ctrl->loop.lock);
	return rc;
}

static int queue_up(struct prefetch_ctrl *ctrl, uint32_t number, uint64_t *ret_request_id)
{
	struct ask_slot *const slot = &ctrl->asks[number];
	int                    rc = 0;

	os_mutex_lock(&ctrl->loop.lock);
	slot->dropped = false;
	slot->has_run = false;
	slot->found_known = false;
	if (ctrl->loop.stopping) {
		slot->stage = ASK_TAKEN;
		prefetch_slot_settle_locked(ctrl, slot);
		rc = KVS_E_CLOSED;
	} else {
		/* Ids grow, and say where their slot is. */
		slot->ask.request_id = ++ctrl->serial * ctrl->limits.queue_max + number;
		slot->stage = ASK_QUEUED;
		list_push_tail(&ctrl->queue, ctrl->links, number);
		ctrl->submitted++;
		*ret_request_id = slot->ask.request_id;
	}
	os_mutex_unlock(&ctrl->loop.lock);
	loop_signal(&ctrl->loop);
	return rc;
}

int prefetch_ctrl_submit(struct prefetch_ctrl *ctrl, const struct prefetch_request *request,
			 uint64_t *ret_request_id)
{
	const uint64_t key_count = (uint64_t)request->chunk_count * flat_keys(request->flat);
	uint32_t       number;
	int            rc;

	if (key_count == 0 || key_count > ctrl->limits.request_keys || request->lock_count == 0 ||
	    request->lock_count > HOST_LOCKS_MAX)
		return KVS_E_INVALID;
	rc = acquire(ctrl, &number);
	if (rc < 0)
		return rc;
	fill(&ctrl->asks[number], request, (uint32_t)key_count);
	return queue_up(ctrl, number, ret_request_id);
}

/* --- results ---------------------------------------------------------------------------------- */

bool prefetch_ctrl_take(struct prefetch_ctrl *ctrl, uint64_t request_id,
			struct prefetch_result *ret_result, uint64_t *ret_locked)
{
	struct ask_slot *slot;
	bool             taken = false;

	os_mutex_lock(&ctrl->loop.lock);
	slot = prefetch_slot_locked(ctrl, request_id);
	if (slot && slot->stage == ASK_READY && !slot->dropped) {
		*ret_result = slot->result;
		memcpy(ret_locked, slot->locked,
		       bits_words(slot->ask.key_count) * sizeof(*ret_locked));
		slot->stage = ASK_TAKEN;
		prefetch_slot_settle_locked(ctrl, slot);
		taken = true;
	}
	os_mutex_unlock(&ctrl->loop.lock);
	return taken;
}

bool prefetch_ctrl_found(struct prefetch_ctrl *ctrl, uint64_t request_id, uint32_t *ret_boundary)
{
	const struct ask_slot *slot;
	bool                   known;

	os_mutex_lock(&ctrl->loop.lock);
	slot = prefetch_slot_locked(ctrl, request_id);
	known = slot && slot->found_known && !slot->dropped && slot->stage != ASK_TAKEN;
	if (known)
		*ret_boundary = slot->found_boundary;
	os_mutex_unlock(&ctrl->loop.lock);
	return known;
}

void prefetch_ctrl_cancel(struct prefetch_ctrl *ctrl, uint64_t request_id)
{
	struct ask_slot *slot;

	os_mutex_lock(&ctrl->loop.lock);
	slot = prefetch_slot_locked(ctrl, request_id);
	if (slot)
		prefetch_slot_drop_locked(ctrl, slot);
	os_mutex_unlock(&ctrl->loop.lock);
	loop_signal(&ctrl->loop);
}

bool prefetch_ctrl_idle(struct prefetch_ctrl *ctrl, uint64_t deadline_ns)
{
	bool idle;

	os_mutex_lock(&ctrl->loop.lock);
	for (;;) {
		idle = !ctrl->turning && ctrl->queue.count == 0 && ctrl->dropped.count == 0 &&
		       ctrl->stats.in_flight == 0;
		if (idle || !loop_wait_locked(&ctrl->loop, deadline_ns))
			break;
	}
	os_mutex_unlock(&ctrl->loop.lock);
	return idle;
}

void prefetch_ctrl_stats(struct prefetch_ctrl *ctrl, struct prefetch_ctrl_stats *ret_stats)
{
	os_mutex_lock(&ctrl->loop.lock);
	*ret_stats = ctrl->stats;
	ret_stats->submitted = ctrl->submitted;
	ret_stats->refused_full = ctrl->refused_full;
	ret_stats->queued = ctrl->queue.count;
	os_mutex_unlock(&ctrl->loop.lock);
}
