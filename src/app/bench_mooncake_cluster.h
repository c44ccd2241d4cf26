/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster of `kvstrata bench mooncake`: a master and a provider of memory on the loopback, each in a
 * process of its own, started with an interpreter that has the wheel; or somebody else's.
 */
#ifndef APP_BENCH_MOONCAKE_CLUSTER_H
#define APP_BENCH_MOONCAKE_CLUSTER_H

#include "app/bench_talk.h"

/* What the SDK runs on: an interpreter, and our program for it. */
struct bench_sdk_home {
	const char *python;
	char        program[512];
};

/* Errors: KVS_E_INVALID when the program is not there. */
int bench_sdk_home_find(struct bench_sdk_home *home, const char *python, struct kvs_error *err);

struct bench_cluster {
	struct bench_talk master, provider; /* not of somebody else's */
	bool              ours;
	char              address[300];     /* the master's HOST:PORT */
	char              http[32];         /* of its HTTP interface; "": not known */
};

/* address: HOST:PORT of a master that runs; NULL: start one, with a pool of so many bytes. */
int  bench_cluster_open(struct bench_cluster *cluster, const struct bench_sdk_home *home,
			const char *address, uint64_t pool_bytes, struct kvs_error *err);
void bench_cluster_close(struct bench_cluster *cluster);

/* Now and then: its programs stop when nobody hears them.  An error when one has ended. */
int bench_cluster_check(struct bench_cluster *cluster, struct kvs_error *err);

#endif
