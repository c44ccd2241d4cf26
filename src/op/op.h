/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waist: operations going down, facts coming up.
 *
 * Above it request states, tickets and plans; below it queues, workers and stores.  All are plain
 * values.
 *
 *   op        one storage job: QUERY, GET or PUT over keys; CANCEL names an existing op.  Immutable
 *             once submitted.
 *   fact      what one owner's executor says of one op: exactly one per dispatched op.
 *   notice    a retirement notice: an op whose fact came unretired has retired after all.
 *   pressure  how much one owner's executor has before it; goes up with the facts.
 *
 * An error is not an outcome: a refused submission has no effect and no fact.  Completion is not
 * retirement: `retired` is a field of its own, it defaults to false, and nothing derives it from
 * success.
 */
#ifndef OP_OP_H
#define OP_OP_H

#include <stdbool.h>
#include <stdint.h>

#include <kvstrata/base.h>

#include "base/bits.h"

/* 1,024 keys are 64 MiB at 64 KiB a block: more would hold a worker past a deadline.  Longer reads split. */
#define OP_KEYS_MAX 1024

enum op_kind {
	OP_QUERY,  /* which keys exist?  Touches no payload. */
	OP_GET,    /* fill spans */
	OP_PUT,    /* keep spans, create-only */
	OP_UNLOCK, /* release what a locking QUERY holds */
	OP_REMOVE,
	OP_CANCEL  /* op_id names the victim; no fact of its own */
};

enum op_flag {
	OP_LOCK = 1u << 0 /* QUERY: hold what is found until UNLOCK */
};

/* One bit a key of an op. */
struct op_mask {
	uint64_t words[OP_KEYS_MAX / 64];
};

struct op {
	uint64_t               op_id; /* strictly increasing, never reused; 0 names nothing */
	enum op_kind           kind;
	uint32_t               flags;
	uint32_t               key_count; /* 1 .. OP_KEYS_MAX; 0 for CANCEL */
	const struct kvs_key  *keys;      /* held, with spans, until the op's fact; spans until it retired */
	const struct kvs_span *spans;     /* GET, PUT; NULL otherwise */
	struct op_mask         owned;     /* rows this owner holds; the rest succeed without being touched */
};

/* Why an op ended as it did, for people and counters; no decision derives retirement from it. */
#define OP_REASONS(X) \
	X(OP_REASON_NONE, "none") \
	X(OP_REASON_CANCELLED, "cancelled") /* still queued when the cancel came */ \
	X(OP_REASON_MISS, "miss")           /* some object was not there */ \
	X(OP_REASON_CORRUPT, "corrupt")     /* some object failed verification */ \
	X(OP_REASON_NO_SPACE, "no_space")   /* the store refused some put for capacity */ \
	X(OP_REASON_BACKEND, "backend")     /* the medium or the peer failed */ \
	X(OP_REASON_HEALTH, "health")       /* refused in cooldown */ \
	X(OP_REASON_QUEUE, "queue")         /* refused: queue or outstanding limit full */ \
	X(OP_REASON_QUARANTINE, "quarantine") \
	X(OP_REASON_CLOSED, "closed")

enum op_reason {
#define OP_REASON(name, text) name,
	OP_REASONS(OP_REASON)
#undef OP_REASON
	OP_REASON_COUNT
};

struct fact {
	uint64_t       op_id;
	uint32_t       key_count;
	uint64_t       moved_bytes;  /* by this owner, none for objects already there; never agreed */
	bool           retired;      /* nothing will touch the op's spans again */
	enum op_reason reason;
	struct op_mask ok;           /* QUERY: exists; GET: full length, verified; PUT: is stored */
	struct op_mask object_fault; /* confirmed missing or invalid object; never set where ok is */
	struct op_mask read_here;    /* GET: this owner tried to read the row; clear gives no evidence */
};

/* The only edge out of quarantine. */
struct retirement_notice {
	uint64_t op_id;
};

/* Owner-local load; the caller's pressure gate reads it.  Query bytes are zero. */
struct pressure {
	uint32_t queued_jobs;
	uint64_t queued_bytes;
	uint64_t oldest_ns; /* age of the oldest job that is queued, runs or has not retired */
};

const char *op_kind_name(enum op_kind kind);
const char *op_reason_name(enum op_reason reason);

/* All key_count rows owned: what an op of a single owner carries. */
void op_own_all(struct op *op);

/* A fact for op with nothing known: no row ok, not retired. */
void fact_init(struct fact *fact, const struct op *op);

/* The fact of an op that an executor refused: nothing ran, so it has retired. */
void fact_refused(struct fact *fact, const struct op *op, enum op_reason reason);

/**
 * Check a fact against the op it answers, as input from another owner.
 *
 * Errors  KVS_E_PROTO  id or mask length differ, a bit set past key_count, ok and
 *                      object_fault overlap, a QUERY or PUT reports read failures.
 */
int fact_check(const struct fact *fact, const struct op *op, struct kvs_error *err);

#endif
