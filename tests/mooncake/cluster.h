/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Mooncake cluster of the test's own: one master and some providers, which lend memory.
 *
 * All listen on the loopback; the master on ports that were free, the others on ports of their
 * choice.  Each is a process that ends with the test.  Nothing here waits for time to pass, but for
 * what the master says over HTTP, or the end of a process.
 */
#ifndef MOONCAKE_CLUSTER_H
#define MOONCAKE_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CLUSTER_PROVIDERS_MAX 4u
#define CLUSTER_FLAGS_MAX 2u

/* 0 stands for the default behind the colon. */
struct cluster_options {
	uint32_t    providers;   /* started with it; none is none */
	uint32_t    segment_mib; /* of each: 64 */
	uint32_t    lease_ms;    /* of what was found or read: 10,000 */
	uint32_t    ttl_s;       /* a provider silent for so long is forgotten: 10 */
	const char *flags[CLUSTER_FLAGS_MAX]; /* more of the master; NULL: no more */
};

struct cluster {
	struct cluster_options options;
	pid_t                  master; /* 0: not running */
	pid_t                  providers[CLUSTER_PROVIDERS_MAX];
	char                   provider_ports[CLUSTER_PROVIDERS_MAX][8];
	char                   port[8];    /* the master's */
	char                   metrics[8]; /* of its HTTP interface */
	char                   directory[64]; /* what they say; shown when one does not start */
};

/* Whether Mooncake is installed; a test without it says so and returns.  Fails where it must be. */
bool cluster_is_installed(void);

/* Returns once each provider's segment is the master's to give away, and it knows. */
void cluster_start(struct cluster *cluster, const struct cluster_options *options);
void cluster_stop(struct cluster *cluster);

/* As a crash would; starting waits until it takes part again, with each provider that runs. */
void cluster_kill_master(struct cluster *cluster);
void cluster_start_master(struct cluster *cluster);
void cluster_kill_provider(struct cluster *cluster, uint32_t i);
/* One that is not running. */
void cluster_start_provider(struct cluster *cluster, uint32_t i);

/* Returns once every thread of it stands still. */
void cluster_pause(pid_t pid);
void cluster_resume(pid_t pid);

/* What the master says: how many segments it has; a number of its metrics by name. */
uint32_t cluster_segments(const struct cluster *cluster);
uint64_t cluster_gauge(const struct cluster *cluster, const char *name);

/* Until the master says this many; its patience with a silent provider may have to end first. */
void cluster_await_segments(const struct cluster *cluster, uint32_t count);

/* Ask again and again, a bounded number of times, until the answer is true. */
typedef bool cluster_question(void *arg);
bool cluster_await(cluster_question *question, void *arg);

/* A path in the environment with Mooncake: "bin/python". */
void cluster_path(const char *name, char ret_path[512]);

#endif
