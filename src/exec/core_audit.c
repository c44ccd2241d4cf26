/* SPDX-License-Identifier: Apache-2.0 */
/* What the core is for its watchers: counters by name, and the proof that its sums hold. */
#include "base/err.h"
#include "exec/core.h"

const char *exec_counter_name(enum exec_counter counter)
{
	static const char *const names[] = {
#define NAME(name, text) [name] = (text),
		EXEC_COUNTERS(NAME)
#undef NAME
	};

	return names[counter];
}

static void audit_lists(const struct exec_core *core)
{
	int class;

	for (class = 0; class < EXEC_CLASS_COUNT; class++)
		list_audit(&core->queue[class], core->links, core->limits.outstanding_max);
	list_audit(&core->done, core->links, core->limits.outstanding_max);
	list_audit(&core->notices, core->links, core->limits.outstanding_max);
	list_audit(&core->live, core->live_links, core->limits.outstanding_max);
}

/* What is in doubt has a number, what is settled was in doubt, and what waits to be told is settled. */
static void audit_doubt(const struct exec_core *core)
{
	uint32_t unsettled = 0, disbelieved = 0, waiting = 0, job;

	for (job = slots_next(&core->slots, 0); job != SLOT_NONE;
	     job = slots_next(&core->slots, job + 1)) {
		const struct exec_job *const j = &core->jobs[job];
		const bool                   doubted = j->state >= EXEC_DONE && !j->fact.retired;
		const bool told_of = j->state == EXEC_STUCK && list_is_linked(core->links, job);

		KVS_ASSERT_CMP(j->doubt > 0, ==, doubted);
		KVS_ASSERT_CMP(j->doubt, <=, core->last_doubt);
		KVS_ASSERT(j->settled || !told_of);
		KVS_ASSERT(doubted || !j->settled);
		KVS_ASSERT(!j->disbelieved || (doubted && !j->settled));
		unsettled += doubted && !j->settled;
		disbelieved += j->disbelieved;
		waiting += told_of;
	}
	KVS_ASSERT_CMP(unsettled, ==, core->unsettled_count);
	KVS_ASSERT_CMP(disbelieved, ==, core->disbelieved_count);
	KVS_ASSERT_CMP(waiting, ==, core->notices.count);
}

void exec_core_audit(const struct exec_core *core)
{
	uint32_t count[EXEC_STUCK + 1] = { 0 };
	uint64_t bytes[EXEC_STUCK + 1] = { 0 };
	uint32_t live = 0, unretired = 0, job;

	slots_audit(&core->slots);
	locks_audit(&core->locks);
	audit_lists(core);
	audit_doubt(core);
	for (job = slots_next(&core->slots, 0); job != SLOT_NONE;
	     job = slots_next(&core->slots, job + 1)) {
		const struct exec_job *const j = &core->jobs[job];
		const bool                   over = j->state >= EXEC_DONE && j->fact.retired;

		count[j->state]++;
		bytes[j->state] += j->bytes;
		live += !over;
		unretired += j->state >= EXEC_DONE && !over;
		KVS_ASSERT_CMP(list_is_linked(core->live_links, job), ==, !over);
		KVS_ASSERT(job != core->probe || j->state <= EXEC_RUNNING);
	}
	KVS_ASSERT_CMP(core->queue[0].count + core->queue[1].count + core->queue[2].count, ==,
		       count[EXEC_QUEUED]);
	KVS_ASSERT_CMP(core->queued_bytes, ==, bytes[EXEC_QUEUED]);
	KVS_ASSERT_CMP(core->running_bytes[0] + core->running_bytes[1] + core->running_bytes[2], ==,
		       bytes[EXEC_RUNNING]);
	KVS_ASSERT_CMP(core->done.count, ==, count[EXEC_DONE]);
	KVS_ASSERT_CMP(core->live.count, ==, live);
	KVS_ASSERT_CMP(unretired, ==, core->unretired_count);
	/* Somebody asks, or nobody would ever know. */
	KVS_ASSERT(core->health.state != HEALTH_PROBING || core->probe != SLOT_NONE);
}
