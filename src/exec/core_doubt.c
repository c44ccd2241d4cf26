/* SPDX-License-Identifier: Apache-2.0 */
/* How doubt ends: the store's proof, the notice that tells of it, and the one that comes back. */
#include "base/err.h"
#include "exec/core.h"

void exec_core_settle(struct exec_core *core, uint64_t last)
{
	uint32_t job;

	KVS_ASSERT_CMP(last, <=, core->last_doubt);
	for (job = slots_next(&core->slots, 0); core->unsettled_count > 0 && job != SLOT_NONE;
	     job = slots_next(&core->slots, job + 1)) {
		struct exec_job *const doubted = &core->jobs[job];

		if (doubted->doubt == 0 || doubted->doubt > last || doubted->settled ||
		    doubted->disbelieved)
			continue;
		doubted->settled = true;
		core->unsettled_count--;
		core->counters[EXEC_SETTLED]++;
		if (doubted->state == EXEC_STUCK)
			list_push_tail(&core->notices, core->links, job);
	}
}

uint32_t exec_core_poll_notices(struct exec_core *core, struct retirement_notice *ret_notices,
				uint32_t notice_max)
{
	uint32_t count = 0;

	while (count < notice_max && core->notices.count > 0) {
		const uint32_t job = list_pop_head(&core->notices, core->links);

		ret_notices[count++].op_id = core->jobs[job].op.op_id;
	}
	return count;
}

static void forget(struct exec_core *core, uint32_t job)
{
	if (list_is_linked(core->links, job))
		list_remove(&core->notices, core->links, job);
	list_remove(&core->live, core->live_links, job);
	core->unretired_count--;
	core->unsettled_count -= !core->jobs[job].settled;
	core->disbelieved_count -= core->jobs[job].disbelieved;
	core->counters[EXEC_NOTICES]++;
	slots_release(&core->slots, job);
}

int exec_core_notice(struct exec_core *core, const struct retirement_notice *notice)
{
	uint32_t job;

	for (job = slots_next(&core->slots, 0); job != SLOT_NONE;
	     job = slots_next(&core->slots, job + 1)) {
		if (core->jobs[job].state != EXEC_STUCK ||
		    core->jobs[job].op.op_id != notice->op_id)
			continue;
		forget(core, job);
		return 0;
	}
	return KVS_E_STALE;
}
