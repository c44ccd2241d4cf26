/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks: what a controller asked of an adapter, until its result was taken and its buffers are free.
 *
 * A task is a batch of any length, an op carries OP_KEYS_MAX keys: so a task has parts, one op each.
 * It lies in the slot of its first part and has the id of its first op, so that one sequence
 * numbers both.  Keys and spans are copied into the parts and stay there until the task is gone;
 * payload is the caller's and is never copied.
 *
 *   PENDING --last fact--> FINISHED --take--> gone, or STUCK where a fact came unretired
 *   STUCK --last notice--> RETIRED --tell--> gone
 *
 * Pure: no thread, no clock, no allocation after open.
 *
 * Limits   part_max parts of a kind, those of results that nobody took and of stuck tasks included:
 *          stores never take the room of lookups.
 */
#ifndef ADAPTER_TASKS_H
#define ADAPTER_TASKS_H

#include "base/list.h"
#include "base/map.h"
#include "base/slots.h"
#include "op/op.h"

enum task_kind { TASK_STORE, TASK_LOOKUP, TASK_LOAD, TASK_KIND_COUNT };

enum task_state { TASK_PENDING, TASK_FINISHED, TASK_STUCK, TASK_RETIRED };

struct task_part {
	struct op      op;        /* its arrays are the slot's own */
	struct op_mask ok;        /* none of them when the fact came unretired */
	uint32_t       task;      /* slot of the first part */
	uint32_t       next;      /* SLOT_NONE: the last */
	bool           answered;  /* its fact came */
	bool           unretired; /* and said that something may still touch the spans */
};

struct task {
	enum task_kind  kind;
	enum task_state state;
	uint32_t        waiting_count;   /* parts without their fact */
	uint32_t        unretired_count; /* parts that wait for a notice */
	uint64_t        moved_bytes;
	uint64_t        submitted_ns;
	enum op_reason  reason;          /* the worst of its parts */
};

struct task_result {
	uint64_t       task_id;
	bool           ok;          /* every row of the task */
	bool           retired;     /* nothing will touch the task's spans again */
	uint64_t       moved_bytes; /* 0 for objects that were already there */
	enum op_reason reason;
};

struct tasks {
	uint32_t          part_max[TASK_KIND_COUNT];
	uint32_t          part_count[TASK_KIND_COUNT];
	struct slots      slots;
	struct task_part *parts;
	struct task      *tasks; /* in the slots of first parts */
	struct kvs_key   *keys;  /* OP_KEYS_MAX a slot, as are the spans */
	struct kvs_span  *spans;
	struct map        ops;   /* parts by op id */
	struct map        once;  /* keys of the task being started; empty otherwise */
	struct link      *links; /* a task is in at most one of the lists below */
	struct list       finished[TASK_KIND_COUNT]; /* in order of completion */
	struct list       retired[TASK_KIND_COUNT];
	uint64_t          last_id;
};

/* At least 1 part a kind.  0, or -ENOMEM. */
int  tasks_open(struct tasks *tasks, const uint32_t *part_max);
void tasks_close(struct tasks *tasks);

/**
 * Take room for a task and number its ops; the caller submits them in the order of the parts.
 *
 * Shape   count is 1 .. part_max * OP_KEYS_MAX; spans is NULL for a lookup.  A key that a store task
 *         names again is not owned by the later row: it succeeds untouched, and the task as a whole
 *         fails when the first one does.
 * Errors  SLOT_NONE: the kind has too few parts left; nothing happened.
 */
uint32_t tasks_start(struct tasks *tasks, enum task_kind kind, const struct kvs_key *keys,
		     const struct kvs_span *spans, uint32_t count, uint64_t now_ns);

/* The fact of an op that waits for it: asserted.  Returns its task, which may be FINISHED now. */
uint32_t tasks_answer(struct tasks *tasks, const struct fact *fact);

/* An unretired op has retired after all.  Returns its task; SLOT_NONE when no such op is known. */
uint32_t tasks_notice(struct tasks *tasks, const struct retirement_notice *notice);

/* The FINISHED task of a kind by id; SLOT_NONE for one that is pending, taken or unknown. */
uint32_t tasks_find(const struct tasks *tasks, enum task_kind kind, uint64_t task_id);

/*
 * The result of a FINISHED task, which leaves that state.  ret_words, if any, gets one bit a key of
 * the task.
 */
void tasks_take(struct tasks *tasks, uint32_t task, struct task_result *ret_result,
		uint64_t *ret_words);

/* The id of the oldest RETIRED task of a kind, now gone; 0 when there is none. */
uint64_t tasks_tell(struct tasks *tasks, enum task_kind kind);

/* Results and retirements of a kind that wait for the caller. */
static inline uint32_t tasks_ready(const struct tasks *tasks, enum task_kind kind)
{
	return tasks->finished[kind].count + tasks->retired[kind].count;
}

static inline uint64_t tasks_id(const struct tasks *tasks, uint32_t task)
{
	return tasks->parts[task].op.op_id;
}

void tasks_audit(const struct tasks *tasks);

#endif
