/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults, by swarm: each run enables a random half of them, each with a weight of its own.
 *
 * A run with everything at once hides what only shows when something never happens.  The store of
 * the run is the real `mem` store behind a table of calls that fails as the swarm says.  The worst
 * of it is the late write: a get or put that says it has not retired, and touches its spans for
 * some ticks more.
 */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include <kvstrata/store.h>

#include "op/op.h"

#define FAULTS(X) \
	X(FAULT_DELAY, "delay")       /* something takes many ticks */ \
	X(FAULT_OUTAGE, "outage")     /* every store call fails, for many ticks */ \
	X(FAULT_CALL, "call")         /* a store call returns an error: nothing was done */ \
	X(FAULT_GET, "get")           /* a key's get fails */ \
	X(FAULT_PUT, "put")           /* a key's put fails */ \
	X(FAULT_HIDE, "hide")         /* an object that is there is not found */ \
	X(FAULT_CORRUPT, "corrupt")   /* a get leaves wrong bytes and says so */ \
	X(FAULT_NO_SPACE, "no-space") /* a put is refused for capacity */ \
	X(FAULT_EVICT, "evict")       /* an object goes between QUERY and GET */ \
	X(FAULT_LATE_GET, "late-get") /* a get ends unretired, and writes its spans later */ \
	X(FAULT_LATE_PUT, "late-put") /* a put ends unretired, and reads its spans later */ \
	X(FAULT_SILENT, "silent")     /* and its retirement is never told */ \
	X(FAULT_TORN, "torn")         /* a get writes wrong bytes first */ \
	X(FAULT_DEADLINE_TICK, "on-deadline") /* a job ends on the very tick of a deadline */ \
	X(FAULT_ABORT, "abort")           /* a request is given up */ \
	X(FAULT_STALL, "stall")           /* one rank's workers stand still */ \
	X(FAULT_LOST, "lost")             /* one rank takes no op */ \
	X(FAULT_BAD_REPORT, "bad-report") /* a rank's report is no report */ \
	X(FAULT_BAD_EVENT, "bad-event")   /* the engine says what cannot be */ \
	X(FAULT_FREEZE, "freeze")         /* no forward, or no storage, for a while */ \
	X(FAULT_CLEAR, "clear") \
	X(FAULT_WEIGHTS, "weights")       /* other ones: another namespace */ \
	X(FAULT_DRAIN, "drain")           /* all work ends, then the replica begins anew */ \
	X(FAULT_DROP, "drop")             /* the replica begins anew at once */

/* From this one on they are drawn once in many rounds: with a weight that is high. */
#define FAULT_UPKEEP FAULT_FREEZE

enum fault {
#define FAULT(name, text) name,
	FAULTS(FAULT)
#undef FAULT
	FAULT_COUNT
};

struct sim;
struct sim_op;

struct faults {
	uint32_t weight[FAULT_COUNT]; /* of 1024 */
	uint64_t away_until;          /* tick at which the present outage ends */
	bool     stopped;
};

/* The store that workers see, the op they run, and on which rank. */
struct faulty_store {
	struct kvs_store  store;
	struct kvs_store *inner;
	struct sim       *sim;
	struct sim_op    *op;
	uint32_t          rank;
};

void faults_draw(struct sim *sim);

/* Whether this fault happens now. */
bool fault_hits(struct sim *sim, enum fault fault);

/* Whether the store is away; an outage may begin here. */
bool fault_away(struct sim *sim);

extern const struct kvs_store_ops faulty_store_ops;

#endif
