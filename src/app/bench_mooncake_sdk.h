/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other side of `kvstrata bench mooncake`: the SDK's own Python client in a process that lives as
 * long as the bench and is told what to move.
 */
#ifndef APP_BENCH_MOONCAKE_SDK_H
#define APP_BENCH_MOONCAKE_SDK_H

#include "app/bench_mooncake_cluster.h"

/* What either side is asked to move. */
struct bench_moves {
	bool     is_put;
	uint64_t bytes;   /* of an object */
	uint32_t batch;   /* objects a call */
	uint32_t threads;
	uint64_t objects; /* a multiple of what all threads move at a time */
	uint64_t rounds;  /* over all objects */
};

/* What it did. */
struct bench_speed {
	double gb_s;
	double call_us; /* a call of one batch, median */
};

struct bench_sdk {
	struct bench_talk talk;
};

/* With so many clients, which share `memory_bytes` of registered memory; it waits for room in the pool. */
int  bench_sdk_open(struct bench_sdk *sdk, const struct bench_sdk_home *home, const char *master,
		    uint64_t clients, uint64_t memory_bytes, struct kvs_error *err);
void bench_sdk_close(struct bench_sdk *sdk);

/* Puts are of new objects; what was there before has been removed, and that is not timed. */
int bench_sdk_move(struct bench_sdk *sdk, const struct bench_moves *moves,
		   struct bench_speed *ret_speed, struct kvs_error *err);

/* Remove all its objects. */
int bench_sdk_drop(struct bench_sdk *sdk, struct kvs_error *err);

#endif
