/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn of the prefetch controller: collect, give up, start, deliver, tell.
 *
 * What is there is collected before deadlines are looked at: a completion comes before the deadline
 * that is seen in the same turn.  Nothing that takes a lock of its own is called under the loop's.
 */
#include "ctrl/prefetch_desk.h"

#include <string.h>

#include "base/bits.h"

#define RETIRED_IDS 16

uint32_t prefetch_turn_count(struct prefetch_ctrl *ctrl, const struct list *list)
{
	uint32_t count;

	os_mutex_lock(&ctrl->loop.lock);
	count = list->count;
	os_mutex_unlock(&ctrl->loop.lock);
	return count;
}

static struct ask_slot *slot_of(struct prefetch_ctrl *ctrl, const struct prefetch_run *run)
{
	return &ctrl->asks[run->ask->request_id % ctrl->limits.queue_max];
}

void prefetch_turn_take_seats(struct prefetch_ctrl *ctrl)
{
	os_mutex_lock(&ctrl->loop.lock);
	ctrl->seats = ctrl->loop.seats;
	ctrl->turning = true;
	os_mutex_unlock(&ctrl->loop.lock);
	ctrl->tools.info_count = seats_infos(&ctrl->seats, ctrl->tools.infos);
}

/* --- collecting ------------------------------------------------------------------------------- */

static void collect_run(struct prefetch_ctrl *ctrl, struct prefetch_run *run, uint32_t n)
{
	struct adapter *const   adapter = ctrl->seats.at[n].adapter;
	struct run_tasks *const tasks = &run->tasks[n];
	bool                    retired;

	if (tasks->lookup_id != 0 && adapter_query_lookup(adapter, tasks->lookup_id, ctrl->answer))
		prefetch_run_looked_up(run, &ctrl->tools, n, ctrl->answer);
	if (tasks->load_id != 0 && !tasks->doubt &&
	    adapter_query_load(adapter, tasks->load_id, ctrl->answer, &retired))
		prefetch_run_loaded(run, &ctrl->tools, n, ctrl->answer, retired);
}

static void retire(struct prefetch_ctrl *ctrl, uint32_t n, uint64_t load_id)
{
	uint32_t slot;

	SLOTS_EACH(&ctrl->busy, slot) {
		struct prefetch_run *const run = &ctrl->runs[slot];

		if (run->tasks[n].doubt && run->tasks[n].load_id == load_id) {
			prefetch_run_retired(run, &ctrl->tools, n);
			return;
		}
	}
	KVS_PANIC("load %llu of adapter %u is unknown", (unsigned long long)load_id, n);
}

static void collect(struct prefetch_ctrl *ctrl, uint32_t n)
{
	uint64_t ids[RETIRED_IDS];
	uint32_t slot, got, i;

	SLOTS_EACH(&ctrl->busy, slot) {
		collect_run(ctrl, &ctrl->runs[slot], n);
		if (ctrl->seats.at[n].leaving)
			prefetch_run_leave(&ctrl->runs[slot], &ctrl->tools, n);
	}
	do {
		got = adapter_pop_retired(ctrl->seats.at[n].adapter, TASK_LOAD, ids, RETIRED_IDS);
		for (i = 0; i < got; i++)
			retire(ctrl, n, ids[i]);
	} while (got == RETIRED_IDS);
}

/* --- runs ------------------------------------------------------------------------------------- */

struct prefetch_run *prefetch_turn_begin(struct prefetch_ctrl *ctrl, struct ask_slot *slot)
{
	const uint32_t number = slots_acquire(&ctrl->busy);

	/* Whoever starts was admitted; who ends in the queue has the spare one, and leaves it. */
	KVS_ASSERT(number != SLOT_NONE);
	prefetch_run_begin(&ctrl->runs[number], &slot->ask);
	return &ctrl->runs[number];
}

void prefetch_turn_deliver(struct prefetch_ctrl *ctrl, struct prefetch_run *run)
{
	struct ask_slot *const slot = slot_of(ctrl, run);
	const uint64_t         request_id = run->ask->request_id;
	void (*done)(void *, uint64_t) = NULL;
	void *done_arg = NULL;

	os_mutex_lock(&ctrl->loop.lock);
	/* Who sees a result sees it counted. */
	ctrl->stats = ctrl->now;
	slot->found_known = run->found_known;
	slot->found_boundary = run->found_boundary;
	if (slot->stage == ASK_UNDER_WAY && prefetch_run_has_result(run)) {
		slot->stage = ASK_READY;
		slot->result = run->result;
		memcpy(slot->locked, run->have, bits_words(run->ask->key_count) * sizeof(uint64_t));
		if (!slot->dropped) {
			done = slot->done;
			done_arg = slot->done_arg;
		}
	}
	if (run->state == RUN_OVER) {
		slots_release(&ctrl->busy, (uint32_t)(run - ctrl->runs));
		slot->has_run = false;
		prefetch_slot_settle_locked(ctrl, slot);
	}
	os_mutex_unlock(&ctrl->loop.lock);
	if (done)
		done(done_arg, request_id);
}

static void deliver_all(struct prefetch_ctrl *ctrl)
{
	uint32_t slot;

	SLOTS_EACH(&ctrl->busy, slot)
		prefetch_turn_deliver(ctrl, &ctrl->runs[slot]);
}

/* --- starting --------------------------------------------------------------------------------- */

static uint64_t bytes_in_flight(const struct prefetch_ctrl *ctrl)
{
	uint64_t bytes = 0;
	uint32_t number;

	SLOTS_EACH(&ctrl->busy, number) {
		const uint64_t more = ctrl->runs[number].bytes;

		bytes = more < UINT64_MAX - bytes ? bytes + more : UINT64_MAX;
	}
	return bytes;
}

static bool admits(const struct prefetch_ctrl *ctrl, uint64_t need_bytes)
{
	const uint64_t limit = ctrl->limits.in_flight_bytes;
	uint64_t       used;

	if (ctrl->busy.busy_count == ctrl->limits.in_flight_max)
		return false;
	if (limit == 0 || ctrl->busy.busy_count == 0)
		return true;
	used = bytes_in_flight(ctrl);
	return used < limit && need_bytes <= limit - used;
}

/*
 * In the order of submission: one that is too large holds up those behind it.  *ret_stale: somebody
 * came or leaves since the seats were looked at, and a request that was made after that must know.
 */
static struct ask_slot *next_queued(struct prefetch_ctrl *ctrl, bool *ret_stale)
{
	struct ask_slot *slot = NULL;

	os_mutex_lock(&ctrl->loop.lock);
	*ret_stale = ctrl->seats.version != ctrl->loop.seats.version;
	if (!*ret_stale && ctrl->queue.head != SLOT_NONE &&
	    admits(ctrl, ctrl->asks[ctrl->queue.head].ask.need_bytes)) {
		slot = &ctrl->asks[list_pop_head(&ctrl->queue, ctrl->links)];
		prefetch_slot_take_up_locked(slot);
	}
	os_mutex_unlock(&ctrl->loop.lock);
	return slot;
}

static void start_all(struct prefetch_ctrl *ctrl)
{
	uint32_t         left = prefetch_turn_count(ctrl, &ctrl->queue);
	struct ask_slot *slot;
	bool             stale;

	while (left > 0 && ((slot = next_queued(ctrl, &stale)) || stale)) {
		struct prefetch_run *run;

		if (stale) {
			prefetch_turn_take_seats(ctrl);
			continue;
		}
		left--;
		run = prefetch_turn_begin(ctrl, slot);
		prefetch_run_start(run, &ctrl->tools);
		prefetch_turn_deliver(ctrl, run);
	}
}

/* --- a turn ----------------------------------------------------------------------------------- */

static uint64_t used_seats(const struct prefetch_ctrl *ctrl)
{
	uint64_t used = 0;
	uint32_t number, n;

	SLOTS_EACH(&ctrl->busy, number) {
		for (n = 0; n < KVS_ADAPTERS_MAX; n++) {
			if (prefetch_run_uses(&ctrl->runs[number], n))
				used |= UINT64_C(1) << n;
		}
	}
	return used;
}

static void tell(struct prefetch_ctrl *ctrl)
{
	const uint64_t used = used_seats(ctrl);
	uint32_t       number;

	ctrl->now.in_flight = ctrl->busy.busy_count;
	ctrl->now.in_flight_bytes = bytes_in_flight(ctrl);
	ctrl->now.draining = 0;
	SLOTS_EACH(&ctrl->busy, number)
		ctrl->now.draining += prefetch_run_has_result(&ctrl->runs[number]);
	os_mutex_lock(&ctrl->loop.lock);
	ctrl->stats = ctrl->now;
	ctrl->turning = false;
	loop_free_seats_locked(&ctrl->loop, used, 1U << TASK_LOOKUP | 1U << TASK_LOAD);
	os_cond_broadcast(&ctrl->loop.moved);
	os_mutex_unlock(&ctrl->loop.lock);
}

uint64_t prefetch_turn(struct prefetch_ctrl *ctrl)
{
	uint64_t deadline_ns;
	uint32_t n;

	prefetch_turn_take_seats(ctrl);
	for (n = 0; n < KVS_ADAPTERS_MAX; n++) {
		if (ctrl->seats.at[n].adapter)
			collect(ctrl, n);
	}
	deliver_all(ctrl);
	prefetch_drop_all(ctrl);
	deadline_ns = prefetch_expire(ctrl);
	start_all(ctrl);
	tell(ctrl);
	return deadline_ns;
}
