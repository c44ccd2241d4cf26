/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of `kvstrata bench mooncake` share: the settings, our side, the rows, the report.
 *
 *   bench_mooncake.c          the command, and the order of things
 *   bench_mooncake_cluster.c  master and provider
 *   bench_mooncake_sdk.c      the other side: the SDK's client in a process of its own
 *   bench_mooncake_ours.c     our side: the store, from as many threads
 *   bench_mooncake_row.c      both in turns
 *   bench_mooncake_exec.c     an executor whose master stands still, or is gone
 *   bench_mooncake_print.c    the report
 */
#ifndef APP_BENCH_MOONCAKE_H
#define APP_BENCH_MOONCAKE_H

#include "app/bench.h"
#include "app/bench_mooncake_cluster.h"
#include "app/bench_mooncake_sdk.h"
#include "app/bench_pass.h"

#define BENCH_BATCHES_MAX 4u
#define BENCH_BATCH_MAX 256u

/* As many gets or puts as a store of this kind may run at once. */
#define BENCH_LANES_MAX 16u

struct bench_mooncake_settings {
	const char *master;
	const char *python;
	const char *agent;
	const char *bytes;
	const char *batch;
	uint64_t    threads;
	uint64_t    runs;
	bool        share;
	bool        json;
};

/* --- our side --------------------------------------------------------------------------------- */

struct bench_ours {
	struct bench_window window; /* a batch a thread, registered with the store */
	struct kvs_store   *store;
};

int  bench_ours_open(struct bench_ours *ours, const char *spec, uint64_t bytes, uint32_t blocks,
		     struct kvs_error *err);
void bench_ours_close(struct bench_ours *ours);

/* As bench_sdk_move(); there is memory for all threads. */
int bench_ours_move(struct bench_ours *ours, const struct bench_moves *moves,
		    struct bench_speed *ret_speed, struct kvs_error *err);
int bench_ours_drop(struct bench_ours *ours, struct kvs_error *err);

/* Objects are named alike on both sides of a get. */
struct kvs_key bench_ours_key(uint64_t number);

/* --- rows ------------------------------------------------------------------------------------- */

enum bench_way { BENCH_GET, BENCH_PUT, BENCH_WAY_COUNT };

enum bench_mooncake_figure {
	MOONCAKE_RATIO,     /* ours, verified, to the SDK's */
	MOONCAKE_RAW_RATIO, /* ours without verification */
	MOONCAKE_GB_S,
	MOONCAKE_RAW_GB_S,
	MOONCAKE_SDK_GB_S,
	MOONCAKE_CALL_US,   /* of one batch */
	MOONCAKE_RAW_CALL_US,
	MOONCAKE_SDK_CALL_US,
	MOONCAKE_AGENT_US,  /* ours without verification takes so much longer for a batch */
	MOONCAKE_FIGURE_COUNT
};

struct bench_mooncake_row {
	uint64_t bytes;
	uint32_t batch, threads;
	double   figures[BENCH_WAY_COUNT][MOONCAKE_FIGURE_COUNT]; /* medians of the runs */
};

/* Both stores and the SDK's client, open for objects of one size. */
struct bench_sides {
	struct bench_cluster *cluster;
	struct bench_sdk     *sdk;
	struct bench_ours     verified, raw;
};

/* Of a row: whole turns of all threads, and enough of them to be out of the caches. */
uint64_t bench_row_objects(const struct bench_mooncake_row *row);

int bench_mooncake_measure(struct bench_sides *sides, uint64_t runs, struct bench_mooncake_row *row,
			   struct kvs_error *err);

/* --- the executor ----------------------------------------------------------------------------- */

enum bench_master { BENCH_MASTER_UP, BENCH_MASTER_PAUSED, BENCH_MASTER_DOWN, BENCH_MASTER_COUNT };

struct bench_calls {
	uint64_t submit_median_ns, submit_p99_ns;
	uint64_t poll_median_ns, poll_p99_ns;
	uint64_t taken, refused; /* submissions */
	uint64_t done, failed;   /* of those taken: all rows ok, or not */
};

/*
 * Submit and poll for some seconds in each state of our own cluster's master, which is gone afterwards.
 * spec: of the store; threads: workers for gets.
 */
int bench_mooncake_exec(struct bench_cluster *cluster, const char *spec, uint32_t threads,
			struct bench_calls ret_calls[BENCH_MASTER_COUNT], struct kvs_error *err);

/* --- the report ------------------------------------------------------------------------------- */

struct bench_mooncake_report {
	const struct bench_mooncake_settings *set;
	struct bench_mooncake_row             rows[BENCH_SIZES_MAX * BENCH_BATCHES_MAX];
	uint32_t                              row_count;
	struct bench_mooncake_row             small[BENCH_BATCHES_MAX]; /* what a call costs, not its bytes */
	uint32_t                              small_count;
	struct bench_calls                    calls[BENCH_MASTER_COUNT];
	bool                                  has_calls;
	char                                  note[128]; /* of the store */
};

int bench_mooncake_print(const struct bench_mooncake_report *report, struct kvs_error *err);

#endif
