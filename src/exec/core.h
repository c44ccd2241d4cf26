/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor's core: which op waits, which runs, which is done, and whether the store may be asked
 * at all.
 *
 * Pure: no thread, no clock, no allocation after open; the shell (exec.h) calls it under one lock,
 * the simulator calls it directly.  Life of a job:
 *
 *   QUEUED --take--> RUNNING --finish--> DONE --poll--> gone, or STUCK when the fact came unretired
 *   QUEUED --cancel, stop--> DONE
 *   STUCK --notice--> gone
 *
 * Doubt    A job whose fact is unretired is in doubt, DONE or STUCK, until its notice.  Once the
 *          store has proved that its I/O is over it is *settled*, too, and exec_core_poll_notices()
 *          says so once; not where its word was disbelieved to begin with.  What ends the doubt is
 *          exec_core_notice() alone, because owners that decide together end it together.
 * Limits   outstanding_max jobs in all, undelivered facts and stuck jobs included; queue_max a
 *          class.  A full queue refuses; a refused op has no effect and no fact.
 * Classes  QUERY, GET and PUT wait in queues of their own: a lookup never waits behind bulk I/O.
 *          Payload that runs at once is bounded in bytes, a class.
 * Health   is private: evidence comes with each finished job, and refusals are all that is seen of
 *          it.  A job's epoch is the one in which it was taken from its queue.
 */
#ifndef EXEC_CORE_H
#define EXEC_CORE_H

#include "base/list.h"
#include "base/slots.h"
#include "exec/health.h"
#include "exec/locks.h"
#include "exec/run.h"
#include "op/op.h"

/* Cooldowns where the limits have none: long enough not to hammer, short enough not to be missed. */
#define EXEC_COOLDOWN_MIN_NS UINT64_C(100000000)
#define EXEC_COOLDOWN_MAX_NS UINT64_C(10000000000)

#define EXEC_LOCKS_MAX (1u << 24)

enum exec_class { EXEC_QUERY, EXEC_GET, EXEC_PUT, EXEC_CLASS_COUNT };

struct exec_limits {
	uint32_t outstanding_max; /* jobs, from submission until their fact is polled */
	uint32_t queue_max;       /* waiting jobs a class */
	uint32_t lock_max;        /* keys that locking queries may hold at once; 0: no such queries */
	uint64_t bytes_max[EXEC_CLASS_COUNT]; /* payload running at once; 0: no limit; queries have none */
	uint64_t cooldown_min_ns; /* both 0: EXEC_COOLDOWN_MIN_NS, EXEC_COOLDOWN_MAX_NS */
	uint64_t cooldown_max_ns;
};

#define EXEC_COUNTERS(X) \
	X(EXEC_SUBMITTED, "submitted") \
	X(EXEC_REFUSED_QUEUE, "refused_queue")           /* queue or outstanding limit full */ \
	X(EXEC_REFUSED_LOCKS, "refused_locks")           /* lock table full */ \
	X(EXEC_REFUSED_HEALTH, "refused_health")         /* cooldown, or a probe under way */ \
	X(EXEC_REFUSED_QUARANTINE, "refused_quarantine") \
	X(EXEC_REFUSED_CLOSED, "refused_closed") \
	X(EXEC_CANCELLED, "cancelled")                   /* while queued, closing included */ \
	X(EXEC_COMPLETED, "completed")                   /* facts; cancelled ones included */ \
	X(EXEC_UNRETIRED, "unretired")                   /* of them */ \
	X(EXEC_SETTLED, "settled")                       /* of those, proved over by the store */ \
	X(EXEC_NOTICES, "notices")                       /* retirements told later */ \
	X(EXEC_PROBES, "probes")                         /* ops that asked whether an outage is over */

enum exec_counter {
#define EXEC_COUNTER(name, text) name,
	EXEC_COUNTERS(EXEC_COUNTER)
#undef EXEC_COUNTER
	EXEC_COUNTER_COUNT
};

enum exec_state { EXEC_QUEUED, EXEC_RUNNING, EXEC_DONE, EXEC_STUCK };

struct exec_job {
	struct op       op;
	struct fact     fact;
	enum exec_state state;
	uint64_t        submitted_ns;
	uint64_t        bytes;
	uint64_t        epoch; /* RUNNING: of the store's health when it was taken */
	uint64_t        doubt; /* DONE, STUCK: its number among the unretired, from 1; 0: retired */
	bool            settled; /* in doubt, and the store has proved it over */
	bool            disbelieved; /* it was in no doubt itself: nothing that it says ends this */
};

struct exec_core {
	struct exec_limits limits;
	struct slots       slots;
	struct exec_job   *jobs;
	struct link       *links;                     /* a job is in at most one of the lists below */
	struct list        queue[EXEC_CLASS_COUNT];
	struct list        done;                      /* in order of completion */
	struct list        notices;                   /* STUCK and settled, not told yet */
	struct link       *live_links;
	struct list        live;                      /* not known to have retired, oldest first */
	uint64_t           queued_bytes;
	uint32_t           running[EXEC_CLASS_COUNT];
	uint64_t           running_bytes[EXEC_CLASS_COUNT];
	uint32_t           unretired_count;           /* jobs whose fact is unretired, polled or not */
	uint32_t           unsettled_count;           /* of them, not settled */
	uint32_t           disbelieved_count;         /* of those, never will be */
	uint64_t           last_doubt;                /* a number */
	uint32_t           probe;                     /* the job that asks whether an outage is over */
	bool               stopped;
	uint64_t           last_op_id;
	struct health      health;
	struct locks       locks;
	uint64_t           counters[EXEC_COUNTER_COUNT];
};

/* Errors: KVS_E_INVALID with a sentence (limits, locks, cooldown), -ENOMEM; nothing is left open. */
int exec_core_open(struct exec_core *core, const struct exec_limits *limits, struct kvs_error *err);
void exec_core_close(struct exec_core *core);

/**
 * Queue an op.  Its id must be larger than every id before it: asserted, ids are the scheduler's
 * own.  So is the kind: CANCEL and UNLOCK are calls of their own.
 *
 * Errors  Nothing happened in any case, and no fact follows:
 *         KVS_E_CLOSED      stopped;
 *         KVS_E_QUARANTINE  bytes of an earlier op have not retired;
 *         KVS_E_FULL        the class queue, the outstanding limit or the lock table is full;
 *         KVS_E_HEALTH      the store is in cooldown, or a probe asks whether it still is.
 */
int exec_core_submit(struct exec_core *core, const struct op *op, uint64_t now_ns);

/* What a refusal becomes at dispatch: one retired fact with this reason. */
enum op_reason exec_refusal_reason(int code);

/*
 * The oldest waiting job of a class, now RUNNING; SLOT_NONE when there is none, or when its payload
 * and what runs would exceed bytes_max together.  One job alone may.
 */
uint32_t exec_core_take(struct exec_core *core, enum exec_class class);

/* A running job ended with this fact; the report is exec_run()'s. */
void exec_core_finish(struct exec_core *core, uint32_t job, const struct fact *fact,
		      const struct exec_report *report, uint64_t now_ns);

/* Inert when the op is not waiting: started I/O runs on, and its fact comes. */
void exec_core_cancel(struct exec_core *core, uint64_t op_id, uint64_t now_ns);

/* From now on everything is refused; what waits gets its fact, what runs ends by itself. */
void exec_core_stop(struct exec_core *core, uint64_t now_ns);

/*
 * Give back what locking queries held.  Never fails and takes no job: see locks.h.  Keys whose last
 * lock this was are owed to the store: locks_tell().
 */
void exec_core_unlock(struct exec_core *core, const struct kvs_key *keys, uint32_t count);

/*
 * Deliver up to fact_max facts in order of completion, and the load as it is then.  Returns how
 * many.
 */
uint32_t exec_core_poll(struct exec_core *core, uint64_t now_ns, struct fact *ret_facts,
			uint32_t fact_max, struct pressure *ret_pressure);

/*
 * The store has proved that what was in doubt is over: every job whose doubt is numbered up to
 * `last`, which is core->last_doubt of before the store was asked.  Jobs that came into doubt while
 * it answered are not meant.
 */
void exec_core_settle(struct exec_core *core, uint64_t last);

/* Notices of settled jobs whose fact was polled, each once; returns how many. */
uint32_t exec_core_poll_notices(struct exec_core *core, struct retirement_notice *ret_notices,
				uint32_t notice_max);

/*
 * An op whose fact came unretired has retired after all, settled or not.  KVS_E_STALE when no such
 * op is stuck, as before its fact was polled.
 */
int exec_core_notice(struct exec_core *core, const struct retirement_notice *notice);

/* Facts or notices wait to be polled. */
static inline bool exec_core_ready(const struct exec_core *core)
{
	return core->done.count > 0 || core->notices.count > 0;
}

static inline enum exec_class exec_class_of(enum op_kind kind)
{
	return kind == OP_GET ? EXEC_GET : kind == OP_PUT ? EXEC_PUT : EXEC_QUERY;
}

const char *exec_counter_name(enum exec_counter counter);

void exec_core_audit(const struct exec_core *core);

#endif
