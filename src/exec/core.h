/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The executor's core: which op waits, which runs, which is done.
 *
 * Pure: no thread, no clock, no allocation after open; the shell (exec.h) calls it under one lock,
 * the simulator calls it directly.  Life of a job:
 *
 *   QUEUED --take--> RUNNING --finish--> DONE --poll--> gone, or STUCK when the fact came unretired
 *   QUEUED --cancel--> DONE
 *   STUCK --notice--> gone
 *
 * Limits   outstanding_max jobs in all, undelivered facts and stuck jobs included; queue_max a
 *          class.  A full queue refuses; a refused op has no effect and no fact.
 * Classes  QUERY, GET and PUT wait in queues of their own: a lookup never waits behind bulk I/O.
 */
#ifndef EXEC_CORE_H
#define EXEC_CORE_H

#include "base/list.h"
#include "base/slots.h"
#include <kvstrata/store.h>
#include "op/op.h"

enum exec_class { EXEC_QUERY, EXEC_GET, EXEC_PUT, EXEC_CLASS_COUNT };

struct exec_limits {
	uint32_t outstanding_max; /* jobs, from submission until their fact is polled */
	uint32_t queue_max;       /* waiting jobs a class */
};

/* Owner-local load; the caller's pressure gate reads it.  Query bytes are zero. */
struct exec_pressure {
	uint32_t queued_jobs;
	uint64_t queued_bytes;
	uint64_t oldest_ns; /* age of the oldest queued or running job */
};

enum exec_counter {
	EXEC_SUBMITTED,
	EXEC_REFUSED_QUEUE,
	EXEC_REFUSED_QUARANTINE,
	EXEC_CANCELLED,
	EXEC_COMPLETED,
	EXEC_UNRETIRED,
	EXEC_COUNTER_COUNT
};

enum exec_state { EXEC_QUEUED, EXEC_RUNNING, EXEC_DONE, EXEC_STUCK };

struct exec_job {
	struct op       op;
	struct fact     fact;
	enum exec_state state;
	uint64_t        submitted_ns;
	uint64_t        bytes;
};

struct exec_core {
	struct exec_limits limits;
	struct slots       slots;
	struct exec_job   *jobs;
	struct link       *links;                    /* a job is in at most one of the lists below */
	struct list        queue[EXEC_CLASS_COUNT];
	struct list        done;                     /* in order of completion */
	uint32_t           stuck_count;              /* unretired facts delivered, or about to be */
	uint64_t           last_op_id;
	uint64_t           counters[EXEC_COUNTER_COUNT];
};

int exec_core_open(struct exec_core *core, const struct exec_limits *limits, struct kvs_error *err);
void exec_core_close(struct exec_core *core);

/**
 * Queue an op.  Its id must be larger than every id before it: asserted, ids are the scheduler's
 * own.
 *
 * Errors  KVS_E_FULL        the class queue or the outstanding limit is full;
 *         KVS_E_QUARANTINE  bytes of an earlier op have not retired.  Nothing happened in both
 *                           cases.
 */
int exec_core_submit(struct exec_core *core, const struct op *op, uint64_t now_ns);

/* The oldest waiting job of a class, now RUNNING; SLOT_NONE when there is none. */
uint32_t exec_core_take(struct exec_core *core, enum exec_class class);

/* A running job ended with this fact. */
void exec_core_finish(struct exec_core *core, uint32_t job, const struct fact *fact);

/* Inert when the op is not waiting: started I/O runs on, and its fact comes. */
void exec_core_cancel(struct exec_core *core, uint64_t op_id);

/*
 * Deliver up to fact_max facts in order of completion, and the load as it is then.  Returns how
 * many.
 */
uint32_t exec_core_poll(struct exec_core *core, uint64_t now_ns, struct fact *ret_facts,
			uint32_t fact_max, struct exec_pressure *ret_pressure);

/* An op whose fact came unretired has retired after all.  KVS_E_STALE when no such op is stuck. */
int exec_core_notice(struct exec_core *core, const struct retirement_notice *notice);

static inline enum exec_class exec_class_of(enum op_kind kind)
{
	return kind == OP_GET ? EXEC_GET : kind == OP_PUT ? EXEC_PUT : EXEC_QUERY;
}

void exec_core_audit(const struct exec_core *core);

#endif
