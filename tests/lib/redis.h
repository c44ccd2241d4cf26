/* SPDX-License-Identifier: Apache-2.0 */
/* A redis-server of the test's own: a process with its files in a temporary folder. */
#ifndef LIB_REDIS_H
#define LIB_REDIS_H

#include <stdbool.h>
#include <sys/types.h>

struct redis {
	pid_t pid;
	int   log; /* its standard output */
	char  port[8];
	char  tls_port[8];
	char  directory[64];
	char  socket[96];      /* path of the Unix socket */
	char  authority[96];   /* path of the certificate that signed that of "redis.test" */
	bool  has_tls, has_ipv6;
	bool  is_guest;        /* in somebody else's folder */
};

/* Whether redis-server is installed; a test without it says so and returns. */
bool redis_is_installed(void);

/* Returns once it takes connections: on free loopback ports and a Unix socket. */
void redis_start(struct redis *redis);
/* The same on a Unix socket alone, in a folder that stays the caller's. */
void redis_start_in(struct redis *redis, const char *directory);
void redis_stop(struct redis *redis);

/* Kill it as a crash would, and start it again on the same ports. */
void redis_kill(struct redis *redis);
void redis_restart(struct redis *redis);

/* Run a program and wait for it; whether it ended with status 0. */
bool run_program(char *const argv[]);

/* A TCP port of the loopback that nobody uses at the moment. */
int free_port(void);

#endif
