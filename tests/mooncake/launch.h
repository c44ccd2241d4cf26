/* SPDX-License-Identifier: Apache-2.0 */
/* A server of the test's own, as a process that ends with it; its output goes into a file. */
#ifndef MOONCAKE_LAUNCH_H
#define MOONCAKE_LAUNCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define LAUNCH_WORDS_MAX 16
#define LAUNCH_WORD_BYTES 96

/* The words of a command in rows. */
struct launch {
	char  rows[LAUNCH_WORDS_MAX][LAUNCH_WORD_BYTES];
	char *argv[LAUNCH_WORDS_MAX + 2]; /* the last is NULL */
	int   count;
};

/* The path is held until it started. */
void launch_begin(struct launch *launch, char *program);
__attribute__((format(printf, 2, 3)))
void launch_add(struct launch *launch, const char *format, ...);

/* What it says is appended to this file of the directory. */
pid_t launch_start(const struct launch *launch, const char *directory, const char *name);

/* The end of that file, for a test that fails. */
void launch_show(const char *directory, const char *name);

bool launch_has_ended(pid_t pid);
/* Kill it and wait; then *pid is 0.  Harmless when it is. */
void launch_end(pid_t *pid);

/*
 * A port of the loopback that nobody uses at the moment.
 *
 * It lies below those that the kernel gives to connections.  While a server is away its clients
 * connect again and again; one of them could be given the server's own port, reach itself and keep it.
 */
uint32_t launch_port(void);

#endif
