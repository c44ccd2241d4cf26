/* SPDX-License-Identifier: Apache-2.0 */
/* A redis-server of the test's own: a process on a free loopback port, its files in a temporary folder. */
#ifndef PEER_REDIS_H
#define PEER_REDIS_H

#include <stdbool.h>
#include <sys/types.h>

#include <hiredis/hiredis.h>

struct redis {
	pid_t pid;
	int   log; /* its standard output */
	char  port[8];
	char  tls_port[8];
	char  directory[64];
	char  socket[96];      /* path of the Unix socket */
	char  authority[96];   /* path of the certificate that signed the server's, for "redis.test" */
	bool  has_tls, has_ipv6;
};

/* Whether redis-server is installed; a test without it says so and returns. */
bool redis_is_installed(void);

/* Returns once it takes connections. */
void redis_start(struct redis *redis);
void redis_stop(struct redis *redis);

/* Kill it as a crash would, and start it again on the same ports. */
void redis_kill(struct redis *redis);
void redis_restart(struct redis *redis);

/* A client of its own; a command that must succeed, its reply the caller's. */
redisContext *redis_client(const struct redis *redis);
redisReply   *redis_do(redisContext *client, const char *format, ...);
/* The same without its reply. */
void          redis_run(redisContext *client, const char *format, ...);

/* Run a program and wait for it; whether it ended with status 0. */
bool run_program(char *const argv[]);

/* A TCP port of the loopback that nobody uses at the moment. */
int free_port(void);

#endif
