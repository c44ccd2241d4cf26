/* SPDX-License-Identifier: Apache-2.0 */
/* See core.h. */
#include "exec/core.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"

int exec_core_open(struct exec_core *core, const struct exec_limits *limits, struct kvs_error *err)
{
	int class;

	*core = (struct exec_core){ .limits = *limits };
	if (limits->outstanding_max == 0 || limits->queue_max == 0)
		return err_set(err, KVS_E_INVALID,
			       "executor limits: 0 is not allowed; use at least 1");
	core->jobs = calloc(limits->outstanding_max, sizeof(*core->jobs));
	core->links = calloc(limits->outstanding_max, sizeof(*core->links));
	if (!core->jobs || !core->links || slots_open(&core->slots, limits->outstanding_max) < 0) {
		exec_core_close(core);
		return err_set(err, -ENOMEM, "no memory for %u outstanding operations",
			       limits->outstanding_max);
	}
	list_links_init(core->links, limits->outstanding_max);
	for (class = 0; class < EXEC_CLASS_COUNT; class++)
		list_init(&core->queue[class]);
	list_init(&core->done);
	return 0;
}

void exec_core_close(struct exec_core *core)
{
	slots_close(&core->slots);
	free(core->jobs);
	free(core->links);
	*core = (struct exec_core){ 0 };
}

/* Of the rows that this owner moves. */
static uint64_t payload_bytes(const struct op *op)
{
	uint64_t bytes = 0;
	uint32_t i;

	if (op->kind != OP_GET && op->kind != OP_PUT)
		return 0;
	for (i = 0; i < op->key_count; i++)
		bytes += bits_test(op->owned.words, i) ? op->spans[i].bytes : 0;
	return bytes;
}

int exec_core_submit(struct exec_core *core, const struct op *op, uint64_t now_ns)
{
	struct list *const queue = &core->queue[exec_class_of(op->kind)];
	uint32_t           job;

	KVS_ASSERT_CMP(op->op_id, >, core->last_op_id);
	KVS_ASSERT(op->kind != OP_CANCEL);
	KVS_ASSERT_CMP(op->key_count, >, 0);
	KVS_ASSERT_CMP(op->key_count, <=, OP_KEYS_MAX);
	if (core->stuck_count > 0) {
		core->counters[EXEC_REFUSED_QUARANTINE]++;
		return KVS_E_QUARANTINE;
	}
	job = queue->count < core->limits.queue_max ? slots_acquire(&core->slots) : SLOT_NONE;
	if (job == SLOT_NONE) {
		core->counters[EXEC_REFUSED_QUEUE]++;
		return KVS_E_FULL;
	}
	core->last_op_id = op->op_id;
	core->jobs[job] = (struct exec_job){
		.op = *op, .state = EXEC_QUEUED, .submitted_ns = now_ns, .bytes = payload_bytes(op)
	};
	list_push_tail(queue, core->links, job);
	core->counters[EXEC_SUBMITTED]++;
	return 0;
}

uint32_t exec_core_take(struct exec_core *core, enum exec_class class)
{
	const uint32_t job = list_pop_head(&core->queue[class], core->links);

	if (job != SLOT_NONE)
		core->jobs[job].state = EXEC_RUNNING;
	return job;
}

/* The only way to DONE: from here on the fact waits for the next poll. */
static void complete(struct exec_core *core, uint32_t job, const struct fact *fact)
{
	core->jobs[job].fact = *fact;
	core->jobs[job].state = EXEC_DONE;
	list_push_tail(&core->done, core->links, job);
	core->counters[EXEC_COMPLETED]++;
	if (!fact->retired) {
		/* Refuse from this moment, not from delivery: the bytes are in doubt already. */
		core->stuck_count++;
		core->counters[EXEC_UNRETIRED]++;
	}
}

void exec_core_finish(struct exec_core *core, uint32_t job, const struct fact *fact)
{
	KVS_ASSERT(slots_busy(&core->slots, job));
	KVS_ASSERT_CMP(core->jobs[job].state, ==, EXEC_RUNNING);
	KVS_ASSERT_CMP(core->jobs[job].op.op_id, ==, fact->op_id);
	complete(core, job, fact);
}

void exec_core_cancel(struct exec_core *core, uint64_t op_id)
{
	uint32_t    job;
	struct fact fact;

	for (job = slots_next(&core->slots, 0); job != SLOT_NONE;
	     job = slots_next(&core->slots, job + 1)) {
		const struct op *const op = &core->jobs[job].op;

		if (op->op_id != op_id || core->jobs[job].state != EXEC_QUEUED)
			continue;
		list_remove(&core->queue[exec_class_of(op->kind)], core->links, job);
		fact_refused(&fact, op, OP_REASON_CANCELLED);
		complete(core, job, &fact);
		core->counters[EXEC_CANCELLED]++;
		return;
	}
}

static void measure(const struct exec_core *core, uint64_t now_ns,
		    struct exec_pressure *ret_pressure)
{
	struct exec_pressure pressure = { 0 };
	uint32_t             job;

	for (job = slots_next(&core->slots, 0); job != SLOT_NONE;
	     job = slots_next(&core->slots, job + 1)) {
		const struct exec_job *const j = &core->jobs[job];

		if (j->state != EXEC_QUEUED && j->state != EXEC_RUNNING)
			continue;
		if (now_ns - j->submitted_ns > pressure.oldest_ns)
			pressure.oldest_ns = now_ns - j->submitted_ns;
		if (j->state == EXEC_QUEUED) {
			pressure.queued_jobs++;
			pressure.queued_bytes += j->bytes;
		}
	}
	*ret_pressure = pressure;
}

uint32_t exec_core_poll(struct exec_core *core, uint64_t now_ns, struct fact *ret_facts,
			uint32_t fact_max, struct exec_pressure *ret_pressure)
{
	uint32_t count = 0;

	while (count < fact_max && core->done.count > 0) {
		const uint32_t job = list_pop_head(&core->done, core->links);

		ret_facts[count++] = core->jobs[job].fact;
		if (core->jobs[job].fact.retired)
			slots_release(&core->slots, job);
		else
			core->jobs[job].state = EXEC_STUCK;
	}
	measure(core, now_ns, ret_pressure);
	return count;
}

int exec_core_notice(struct exec_core *core, const struct retirement_notice *notice)
{
	uint32_t job;

	for (job = slots_next(&core->slots, 0); job != SLOT_NONE;
	     job = slots_next(&core->slots, job + 1)) {
		if (core->jobs[job].state != EXEC_STUCK ||
		    core->jobs[job].op.op_id != notice->op_id)
			continue;
		slots_release(&core->slots, job);
		core->stuck_count--;
		return 0;
	}
	return KVS_E_STALE;
}

void exec_core_audit(const struct exec_core *core)
{
	uint32_t count[EXEC_STUCK + 1] = { 0 };
	uint32_t queued = 0, unretired = 0;
	uint32_t job;
	int      class;

	slots_audit(&core->slots);
	for (class = 0; class < EXEC_CLASS_COUNT; class++) {
		list_audit(&core->queue[class], core->links, core->limits.outstanding_max);
		queued += core->queue[class].count;
	}
	list_audit(&core->done, core->links, core->limits.outstanding_max);
	for (job = slots_next(&core->slots, 0); job != SLOT_NONE;
	     job = slots_next(&core->slots, job + 1)) {
		const struct exec_job *const j = &core->jobs[job];

		count[j->state]++;
		unretired += (j->state == EXEC_DONE || j->state == EXEC_STUCK) && !j->fact.retired;
	}
	KVS_ASSERT_CMP(queued, ==, count[EXEC_QUEUED]);
	KVS_ASSERT_CMP(core->done.count, ==, count[EXEC_DONE]);
	KVS_ASSERT_CMP(unretired, ==, core->stuck_count);
}
