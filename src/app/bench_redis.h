/* SPDX-License-Identifier: Apache-2.0 */
/* The other side of `kvstrata bench resp`: a redis-server, and redis-benchmark as the ceiling. */
#ifndef APP_BENCH_REDIS_H
#define APP_BENCH_REDIS_H

#include "base/err.h"
#include "os/os.h"

struct bench_redis {
	struct os_process process; /* pid 0: the server is somebody else's */
	char              host[256];
	char              port[8];
};

/* address: HOST:PORT of a server that runs; NULL: start one on the loopback, without persistence. */
int  bench_redis_open(struct bench_redis *redis, const char *address, struct kvs_error *err);
void bench_redis_close(struct bench_redis *redis);

/* What redis-benchmark is asked for. */
struct bench_load {
	uint64_t bytes, connections, pipeline;
	uint64_t keys;     /* among how many it chooses */
	uint64_t requests;
};

/* Requests a second of its SET, or of its GET. */
int bench_redis_measure(const struct bench_redis *redis, const struct bench_load *load, bool is_put,
			double *ret_rate, struct kvs_error *err);

#endif
