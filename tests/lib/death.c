/* SPDX-License-Identifier: Apache-2.0 */
/* The child's stderr is a pipe: what it says is read until it ends. */
#include "death.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"

static _Noreturn void die_in_child(void (*act)(void *arg), void *arg, int stderr_fd)
{
	const struct rlimit no_core = { 0, 0 };

	dup2(stderr_fd, STDERR_FILENO);
	setrlimit(RLIMIT_CORE, &no_core);
	signal(SIGABRT, SIG_DFL);
	act(arg);
	_exit(0);
}

/* To the end of the pipe, keeping the front. */
static void read_all(int fd, char *ret_said, size_t said_bytes)
{
	size_t  used = 0;
	char    piece[256];
	ssize_t got, i;

	while ((got = read(fd, piece, sizeof(piece))) > 0) {
		for (i = 0; i < got && used + 1 < said_bytes; i++)
			ret_said[used++] = piece[i];
	}
	if (said_bytes)
		ret_said[used] = '\0';
}

bool death_panics(void (*act)(void *arg), void *arg, char *ret_said, size_t said_bytes)
{
	int   ends[2];
	int   status = 0;
	pid_t child;

	fflush(NULL);
	KVS_ASSERT(pipe(ends) == 0);
	child = fork();
	if (child == 0)
		die_in_child(act, arg, ends[1]);
	close(ends[1]);
	read_all(ends[0], ret_said, said_bytes);
	close(ends[0]);
	KVS_ASSERT(child > 0 && waitpid(child, &status, 0) == child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}
