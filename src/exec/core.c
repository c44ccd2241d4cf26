/* SPDX-License-Identifier: Apache-2.0 */
/* See core.h. */
#include "exec/core.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"

static int check_limits(const struct exec_limits *limits, struct kvs_error *err)
{
	if (limits->outstanding_max == 0 || limits->queue_max == 0) {
		return err_set(err, KVS_E_INVALID,
			       "executor limits: 0 is not allowed; use at least 1");
	}
	if (limits->lock_max > EXEC_LOCKS_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "executor locks: %u are too many; the limit is %u", limits->lock_max,
			       EXEC_LOCKS_MAX);
	}
	if (limits->cooldown_min_ns > limits->cooldown_max_ns ||
	    (limits->cooldown_min_ns == 0) != (limits->cooldown_max_ns == 0)) {
		return err_set(err, KVS_E_INVALID,
			       "executor cooldown: %llu to %llu ns is no range; use 1 or more, or 0 for both",
			       (unsigned long long)limits->cooldown_min_ns,
			       (unsigned long long)limits->cooldown_max_ns);
	}
	return 0;
}

int exec_core_open(struct exec_core *core, const struct exec_limits *limits, struct kvs_error *err)
{
	const bool     cooldown = limits->cooldown_min_ns > 0;
	const uint32_t job_max = limits->outstanding_max;
	int            class;

	*core = (struct exec_core){ .limits = *limits, .probe = SLOT_NONE };
	if (check_limits(limits, err) < 0)
		return KVS_E_INVALID;
	core->jobs = calloc(job_max, sizeof(*core->jobs));
	core->links = calloc(job_max, sizeof(*core->links));
	core->live_links = calloc(job_max, sizeof(*core->live_links));
	if (!core->jobs || !core->links || !core->live_links ||
	    slots_open(&core->slots, job_max) < 0 ||
	    locks_open(&core->locks, limits->lock_max) < 0) {
		exec_core_close(core);
		return err_set(err, -ENOMEM, "no memory for %u outstanding operations and %u locks",
			       job_max, limits->lock_max);
	}
	health_init(&core->health, cooldown ? limits->cooldown_min_ns : EXEC_COOLDOWN_MIN_NS,
		    cooldown ? limits->cooldown_max_ns : EXEC_COOLDOWN_MAX_NS);
	list_links_init(core->links, job_max);
	list_links_init(core->live_links, job_max);
	for (class = 0; class < EXEC_CLASS_COUNT; class++)
		list_init(&core->queue[class]);
	list_init(&core->done);
	list_init(&core->notices);
	list_init(&core->live);
	return 0;
}

void exec_core_close(struct exec_core *core)
{
	locks_close(&core->locks);
	slots_close(&core->slots);
	free(core->jobs);
	free(core->links);
	free(core->live_links);
	*core = (struct exec_core){ 0 };
}

/* --- in --------------------------------------------------------------------------------------- */

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

static bool is_locking(const struct op *op)
{
	return op->kind == OP_QUERY && (op->flags & OP_LOCK);
}

static int refuse(struct exec_core *core, enum exec_counter counter, int code)
{
	core->counters[counter]++;
	return code;
}

/*
 * A probe that still runs was sent into an earlier outage: the store is asked by one at a time, so
 * the next waits for it.
 */
static bool is_admitted(struct exec_core *core, uint64_t now_ns)
{
	if (core->health.state != HEALTH_UP && core->probe != SLOT_NONE)
		return false;
	return health_admit(&core->health, now_ns);
}

/* The last question is the health's, because its yes may be for this op alone. */
static int check_room(struct exec_core *core, const struct op *op, uint64_t now_ns)
{
	if (core->stopped)
		return refuse(core, EXEC_REFUSED_CLOSED, KVS_E_CLOSED);
	if (core->unretired_count > 0)
		return refuse(core, EXEC_REFUSED_QUARANTINE, KVS_E_QUARANTINE);
	if (core->queue[exec_class_of(op->kind)].count == core->limits.queue_max ||
	    core->slots.busy_count == core->limits.outstanding_max)
		return refuse(core, EXEC_REFUSED_QUEUE, KVS_E_FULL);
	if (is_locking(op) && !locks_ask(&core->locks, op))
		return refuse(core, EXEC_REFUSED_LOCKS, KVS_E_FULL);
	if (!is_admitted(core, now_ns)) {
		if (is_locking(op)) {
			locks_settle(&core->locks, op, &(struct op_mask){ 0 },
				     &(struct op_mask){ 0 });
		}
		return refuse(core, EXEC_REFUSED_HEALTH, KVS_E_HEALTH);
	}
	return 0;
}

int exec_core_submit(struct exec_core *core, const struct op *op, uint64_t now_ns)
{
	uint32_t job;
	int      rc;

	KVS_ASSERT_CMP(op->op_id, >, core->last_op_id);
	KVS_ASSERT(op->kind != OP_CANCEL && op->kind != OP_UNLOCK);
	KVS_ASSERT_CMP(op->key_count, >, 0);
	KVS_ASSERT_CMP(op->key_count, <=, OP_KEYS_MAX);
	rc = check_room(core, op, now_ns);
	if (rc < 0)
		return rc;
	job = slots_acquire(&core->slots);
	core->last_op_id = op->op_id;
	core->jobs[job].op = *op;
	core->jobs[job].state = EXEC_QUEUED;
	core->jobs[job].submitted_ns = now_ns;
	core->jobs[job].doubt = 0;
	core->jobs[job].settled = false;
	core->jobs[job].disbelieved = false;
	core->jobs[job].bytes = payload_bytes(op);
	core->queued_bytes += core->jobs[job].bytes;
	list_push_tail(&core->queue[exec_class_of(op->kind)], core->links, job);
	list_push_tail(&core->live, core->live_links, job);
	core->counters[EXEC_SUBMITTED]++;
	if (core->health.state == HEALTH_PROBING) {
		core->probe = job;
		core->counters[EXEC_PROBES]++;
	}
	return 0;
}

enum op_reason exec_refusal_reason(int code)
{
	switch (code) {
	case KVS_E_FULL:
		return OP_REASON_QUEUE;
	case KVS_E_HEALTH:
		return OP_REASON_HEALTH;
	case KVS_E_QUARANTINE:
		return OP_REASON_QUARANTINE;
	case KVS_E_CLOSED:
		return OP_REASON_CLOSED;
	default:
		KVS_PANIC("%d is no refusal", code);
	}
}

/* --- through ---------------------------------------------------------------------------------- */

uint32_t exec_core_take(struct exec_core *core, enum exec_class class)
{
	const uint32_t   job = core->queue[class].head;
	const uint64_t   most = core->limits.bytes_max[class];
	struct exec_job *taken;

	if (job == SLOT_NONE)
		return SLOT_NONE;
	taken = &core->jobs[job];
	if (most > 0 && core->running[class] > 0 &&
	    (core->running_bytes[class] >= most ||
	     taken->bytes > most - core->running_bytes[class]))
		return SLOT_NONE;
	list_remove(&core->queue[class], core->links, job);
	core->queued_bytes -= taken->bytes;
	core->running[class]++;
	core->running_bytes[class] += taken->bytes;
	taken->state = EXEC_RUNNING;
	taken->epoch = core->health.epoch;
	return job;
}

/* The only way to DONE: from here on the fact waits for the next poll. */
static void complete(struct exec_core *core, uint32_t job, const struct fact *fact)
{
	core->jobs[job].fact = *fact;
	core->jobs[job].state = EXEC_DONE;
	list_push_tail(&core->done, core->links, job);
	core->counters[EXEC_COMPLETED]++;
	if (fact->retired) {
		list_remove(&core->live, core->live_links, job);
	} else {
		/* Refuse from this moment, not from delivery: the bytes are in doubt already. */
		core->jobs[job].doubt = ++core->last_doubt;
		core->unretired_count++;
		core->unsettled_count++;
		core->disbelieved_count += core->jobs[job].disbelieved;
		core->counters[EXEC_UNRETIRED]++;
	}
}

/*
 * What the job says of the store.  A probe that said nothing leaves the question open for the next
 * op; one whose outage was overtaken by another has no say.
 */
static void weigh(struct exec_core *core, uint32_t job, enum exec_evidence evidence,
		  uint64_t now_ns)
{
	if (evidence == EXEC_EVIDENCE_UP)
		health_success(&core->health, core->jobs[job].epoch);
	else if (evidence == EXEC_EVIDENCE_OUTAGE)
		health_failure(&core->health, core->jobs[job].epoch, now_ns);
	if (job == core->probe) {
		core->probe = SLOT_NONE;
		health_unprobe(&core->health, now_ns);
	}
}

/*
 * A lock is granted with the fact that tells of it, never without: a row that was found and is not
 * held would be evicted under its user.
 */
static void settle_locks(struct exec_core *core, const struct op *op, const struct fact *fact,
			 const struct op_mask *locked)
{
	if (is_locking(op))
		locks_settle(&core->locks, op, &fact->ok, locked);
}

void exec_core_finish(struct exec_core *core, uint32_t job, const struct fact *fact,
		      const struct exec_report *report, uint64_t now_ns)
{
	struct exec_job *const done = &core->jobs[job];
	const enum exec_class  class = exec_class_of(done->op.kind);

	KVS_ASSERT(slots_busy(&core->slots, job));
	KVS_ASSERT_CMP(done->state, ==, EXEC_RUNNING);
	KVS_ASSERT_CMP(done->op.op_id, ==, fact->op_id);
	core->running[class]--;
	core->running_bytes[class] -= done->bytes;
	weigh(core, job, report->evidence, now_ns);
	settle_locks(core, &done->op, fact, &report->locked);
	done->disbelieved = report->disbelieved;
	complete(core, job, fact);
}

/* A job that no worker has seen ends here. */
static void drop(struct exec_core *core, uint32_t job, enum op_reason reason, uint64_t now_ns)
{
	const struct op *const op = &core->jobs[job].op;
	struct fact            fact;

	list_remove(&core->queue[exec_class_of(op->kind)], core->links, job);
	core->queued_bytes -= core->jobs[job].bytes;
	fact_refused(&fact, op, reason);
	core->jobs[job].epoch = core->health.epoch;
	weigh(core, job, EXEC_EVIDENCE_NONE, now_ns);
	settle_locks(core, op, &fact, &(struct op_mask){ 0 });
	complete(core, job, &fact);
	core->counters[EXEC_CANCELLED]++;
}

void exec_core_cancel(struct exec_core *core, uint64_t op_id, uint64_t now_ns)
{
	uint32_t job;

	for (job = slots_next(&core->slots, 0); job != SLOT_NONE;
	     job = slots_next(&core->slots, job + 1)) {
		if (core->jobs[job].op.op_id == op_id && core->jobs[job].state == EXEC_QUEUED) {
			drop(core, job, OP_REASON_CANCELLED, now_ns);
			return;
		}
	}
}

void exec_core_stop(struct exec_core *core, uint64_t now_ns)
{
	int class;

	core->stopped = true;
	for (class = 0; class < EXEC_CLASS_COUNT; class++) {
		while (core->queue[class].count > 0)
			drop(core, core->queue[class].head, OP_REASON_CLOSED, now_ns);
	}
}

void exec_core_unlock(struct exec_core *core, const struct kvs_key *keys, uint32_t count)
{
	uint32_t i;

#ifdef KVS_MUTANT_LOSE_UNLOCK /* Planted bug: an unlock needs room in the queue like any op. */
	if (core->queue[EXEC_QUERY].count == core->limits.queue_max)
		return;
#endif
	for (i = 0; i < count; i++)
		locks_give(&core->locks, &keys[i]);
}

/* --- out -------------------------------------------------------------------------------------- */

/* Jobs become live in order of submission, so that the oldest is the first that has not retired. */
static void measure(const struct exec_core *core, uint64_t now_ns,
		    struct pressure *ret_pressure)
{
	struct pressure pressure = { .queued_bytes = core->queued_bytes };
	int                  class;

	for (class = 0; class < EXEC_CLASS_COUNT; class++)
		pressure.queued_jobs += core->queue[class].count;
	if (core->live.count > 0)
		pressure.oldest_ns = now_ns - core->jobs[core->live.head].submitted_ns;
	*ret_pressure = pressure;
}

/* A notice never comes before the fact it takes back. */
static void stick(struct exec_core *core, uint32_t job)
{
	core->jobs[job].state = EXEC_STUCK;
	if (core->jobs[job].settled)
		list_push_tail(&core->notices, core->links, job);
}

uint32_t exec_core_poll(struct exec_core *core, uint64_t now_ns, struct fact *ret_facts,
			uint32_t fact_max, struct pressure *ret_pressure)
{
	uint32_t count = 0;

	while (count < fact_max && core->done.count > 0) {
		const uint32_t job = list_pop_head(&core->done, core->links);

		ret_facts[count++] = core->jobs[job].fact;
		if (core->jobs[job].fact.retired)
			slots_release(&core->slots, job);
		else
			stick(core, job);
	}
	measure(core, now_ns, ret_pressure);
	return count;
}
