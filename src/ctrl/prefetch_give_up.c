/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that end before their work does: cancelled, past their deadline, stopped. */
#include "base/bits.h"
#include "ctrl/prefetch_desk.h"

/* --- cancelled -------------------------------------------------------------------------------- */

static struct prefetch_run *run_of(struct prefetch_ctrl *ctrl, const struct ask_slot *slot)
{
	uint32_t number;

	SLOTS_EACH(&ctrl->busy, number) {
		if (ctrl->runs[number].ask == &slot->ask)
			return &ctrl->runs[number];
	}
	return NULL;
}

/* Locks of a result that nobody will take. */
static void unlock_result(struct prefetch_ctrl *ctrl, struct ask_slot *slot)
{
	uint32_t count = 0, i;

	for (i = 0; i < slot->ask.key_count; i++) {
		if (bits_test(slot->locked, i))
			ctrl->tools.keys[count++] = slot->ask.keys[i];
	}
	if (count > 0)
		prefetch_hands.unlock(ctrl, &slot->ask, ctrl->tools.keys, count);
}

/* A dropped request of any stage; for one in the queue the spare run is as good as any. */
static void drop(struct prefetch_ctrl *ctrl, struct ask_slot *slot)
{
	struct prefetch_run *run = run_of(ctrl, slot);

	if (!run && slot->stage == ASK_UNDER_WAY)
		run = prefetch_turn_begin(ctrl, slot);
	if (run && !prefetch_run_has_result(run))
		prefetch_run_give_up(run, &ctrl->tools, END_CANCELLED);
	if (run)
		prefetch_turn_deliver(ctrl, run);
	unlock_result(ctrl, slot);
	os_mutex_lock(&ctrl->loop.lock);
	slot->stage = ASK_TAKEN;
	prefetch_slot_settle_locked(ctrl, slot);
	os_mutex_unlock(&ctrl->loop.lock);
}

static struct ask_slot *next_dropped(struct prefetch_ctrl *ctrl)
{
	struct ask_slot *slot = NULL;
	uint32_t         number;

	os_mutex_lock(&ctrl->loop.lock);
	number = list_pop_head(&ctrl->dropped, ctrl->links);
	if (number != SLOT_NONE) {
		slot = &ctrl->asks[number];
		if (slot->stage == ASK_QUEUED)
			prefetch_slot_take_up_locked(slot);
	}
	os_mutex_unlock(&ctrl->loop.lock);
	return slot;
}

void prefetch_drop_all(struct prefetch_ctrl *ctrl)
{
	uint32_t         left = prefetch_turn_count(ctrl, &ctrl->dropped);
	struct ask_slot *slot;

	for (; left > 0 && (slot = next_dropped(ctrl)); left--)
		drop(ctrl, slot);
}

/* --- past their deadline ---------------------------------------------------------------------- */

/*
 * The first in the queue whose time is over, out of it; NULL.  *deadline_ns: the nearest of the
 * others.
 */
static struct ask_slot *next_expired(struct prefetch_ctrl *ctrl, uint64_t now_ns,
				     uint64_t *deadline_ns)
{
	struct ask_slot *expired = NULL;
	uint32_t         number;

	os_mutex_lock(&ctrl->loop.lock);
	for (number = ctrl->queue.head; number != SLOT_NONE; number = ctrl->links[number].next) {
		const uint64_t at_ns = ctrl->asks[number].ask.deadline_ns;

		if (at_ns <= now_ns) {
			list_remove(&ctrl->queue, ctrl->links, number);
			expired = &ctrl->asks[number];
			prefetch_slot_take_up_locked(expired);
			break;
		}
		if (at_ns < *deadline_ns)
			*deadline_ns = at_ns;
	}
	os_mutex_unlock(&ctrl->loop.lock);
	return expired;
}

static void give_up(struct prefetch_ctrl *ctrl, struct prefetch_run *run, enum prefetch_end why)
{
	prefetch_run_give_up(run, &ctrl->tools, why);
	prefetch_turn_deliver(ctrl, run);
}

uint64_t prefetch_expire(struct prefetch_ctrl *ctrl)
{
	const uint64_t   now_ns = os_now_ns();
	uint32_t         left = prefetch_turn_count(ctrl, &ctrl->queue), number;
	uint64_t         deadline_ns = UINT64_MAX;
	struct ask_slot *slot;

	SLOTS_EACH(&ctrl->busy, number) {
		struct prefetch_run *const run = &ctrl->runs[number];

		if (prefetch_run_has_result(run))
			continue;
		if (run->ask->deadline_ns <= now_ns)
			give_up(ctrl, run, END_DEADLINE);
		else if (run->ask->deadline_ns < deadline_ns)
			deadline_ns = run->ask->deadline_ns;
	}
	for (; left > 0 && (slot = next_expired(ctrl, now_ns, &deadline_ns)); left--)
		give_up(ctrl, prefetch_turn_begin(ctrl, slot), END_DEADLINE);
	return deadline_ns;
}

/* --- stopped ---------------------------------------------------------------------------------- */

void prefetch_turn_stop(struct prefetch_ctrl *ctrl)
{
	uint64_t         none = UINT64_MAX;
	struct ask_slot *slot;
	uint32_t         number;

	prefetch_turn_take_seats(ctrl);
	prefetch_drop_all(ctrl);
	while ((slot = next_expired(ctrl, UINT64_MAX, &none)))
		give_up(ctrl, prefetch_turn_begin(ctrl, slot), END_STOPPED);
	SLOTS_EACH(&ctrl->busy, number) {
		if (!prefetch_run_has_result(&ctrl->runs[number]))
			give_up(ctrl, &ctrl->runs[number], END_STOPPED);
	}
	os_mutex_lock(&ctrl->loop.lock);
	SLOTS_EACH(&ctrl->slots, number) {
		/* What was stopped holds no lock, and may still be asked for. */
		if (ctrl->asks[number].result.end != END_STOPPED)
			prefetch_slot_drop_locked(ctrl, &ctrl->asks[number]);
	}
	os_mutex_unlock(&ctrl->loop.lock);
	prefetch_drop_all(ctrl);
}
