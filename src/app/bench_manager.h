/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `kvstrata bench manager`: door B.  bench_manager_host.c measures calls that need no store,
 * bench_manager_fetch.c prefetches, bench_manager.c is the command and its report.
 */
#ifndef APP_BENCH_MANAGER_H
#define APP_BENCH_MANAGER_H

#include <kvstrata/kvstrata.h>

#include "app/bench.h"
#include "app/bench_place.h"
#include "app/bench_watch.h"

struct bench_manager_settings {
	const char *path;
	const char *bytes;
	uint64_t    objects; /* that Host holds, for the calls without a store */
	uint64_t    moved;   /* 0: as many as are worth measuring */
	uint64_t    batch;
	uint64_t    runs;
	bool        json;
};

/* --- Host ------------------------------------------------------------------------------------- */

enum bench_manager_call {
	BENCH_FILL,     /* reserve and finish, into an empty Host */
	BENCH_REPLACE,  /* the same into a full one: each evicts another */
	BENCH_LOCK,     /* lock and unlock */
	BENCH_HIT,      /* a prefetch of what Host has: submit, poll, release */
	BENCH_MANAGER_CALLS
};

/* Medians of keys a second of CPU time: of the thread that calls, and of all threads. */
struct bench_manager_rate {
	double thread;
	double process;
};

int bench_manager_host(const struct bench_manager_settings *set, struct bench_watch *watch,
		       struct bench_manager_rate *ret_rates, struct kvs_error *err);

/* --- prefetches ------------------------------------------------------------------------------- */

enum bench_manager_store { BENCH_NIL, BENCH_MEM, BENCH_STRATA, BENCH_MANAGER_STORES };

/* Medians; NAN: not measured. */
struct bench_manager_fetch {
	enum bench_manager_store store;
	uint64_t                 bytes;   /* of an object */
	uint64_t                 objects; /* of a pass */
	double                   gb_s;
	double                   keys_s;
	double                   cpu_us;     /* a key, of all threads */
	double                   pass_gb_s;  /* what `bench store` reads of the same file */
	double                   pass_ratio; /* the runs' own */
};

/* Objects of a pass over so many bytes each, and what all rows of a size move. */
uint64_t bench_manager_objects(const struct bench_manager_settings *set, uint64_t bytes);
uint64_t bench_manager_moved(const struct bench_manager_settings *set, uint64_t bytes);

/* Of one size, BENCH_MANAGER_STORES rows. */
int bench_manager_fetch(const struct bench_manager_settings *set, struct bench_watch *watch,
			const struct bench_place *place, uint64_t bytes,
			struct bench_manager_fetch *ret_rows, struct kvs_error *err);

/* --- what both need --------------------------------------------------------------------------- */

/* A door with one client. */
struct bench_door {
	struct kvs *kvs;
	kvs_client  me;
};

int bench_door_open(struct bench_door *door, const struct kvs_options *options, struct kvs_error *err);
/* KVS_E_QUARANTINE is an error here: what was measured is worth nothing. */
int bench_door_close(struct bench_door *door, struct kvs_error *err);

#endif
