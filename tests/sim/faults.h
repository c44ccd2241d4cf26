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
	X(FAULT_ABORT, "abort")               /* a request is given up */

enum fault {
#define FAULT(name, text) name,
	FAULTS(FAULT)
#undef FAULT
		FAULT_COUNT
};

struct sim;

struct faults {
	uint32_t weight[FAULT_COUNT]; /* of 1024 */
	uint64_t away_until;          /* tick at which the present outage ends */
	bool     stopped;
};

/* The store that workers see, and the op they run. */
struct faulty_store {
	struct kvs_store  store;
	struct kvs_store *inner;
	struct sim       *sim;
	uint64_t          op_id;
};

void faults_draw(struct sim *sim);

/* Whether this fault happens now. */
bool fault_hits(struct sim *sim, enum fault fault);

/* Whether the store is away; an outage may begin here. */
bool fault_away(struct sim *sim);

/* What a store of no manners leaves in a span: rows that name the op. */
void fault_scribble(uint64_t op_id, const struct kvs_span *span);

extern const struct kvs_store_ops faulty_store_ops;

#endif
