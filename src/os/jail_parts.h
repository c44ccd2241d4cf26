/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of os/jail.h: what a child is told, what it becomes, and what it is refused. */
#ifndef OS_JAIL_PARTS_H
#define OS_JAIL_PARTS_H

#include <linux/filter.h>
#include <stdbool.h>
#include <sys/types.h>

#include "os/jail.h"

/* Instructions of a filter: more than the table makes. */
#define JAIL_FILTER_MAX 512

/* All that the child needs, made before it is: it may share our memory, and take no lock there. */
struct jail_start {
	const char              *path;
	char *const             *argv;
	char *const             *environment;
	const int               *fds;
	int                      fd_count;
	int                      nowhere, output; /* /dev/null; -1: nowhere */
	int                      report;          /* a socket: struct jail_word */
	pid_t                    parent;
	const struct sock_fprog *filter; /* NULL: unconfined */
	volatile bool            reached; /* written by the child: here, if it shares our memory */
};

/* What a child tells: once with its pidfd, once more when it cannot become the program. */
struct jail_word {
	int code; /* of errno; 0: a pidfd comes with it */
};

/* In the child, signals blocked: nothing but system calls. */
_Noreturn void jail_become(struct jail_start *start);

/* Instructions written; 0 where the machine's calls are not known. */
int jail_filter_build(struct sock_filter code[JAIL_FILTER_MAX]);

#endif
