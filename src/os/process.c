/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other programs, run and read by a program: never by the library, whose host owns its children.  For
 * that there is os/jail.h.
 */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "os/fd.h"

/* In the child: nothing but system calls until exec.  What fails is told through `report`. */
static _Noreturn void become(char *const argv[], int input, int output, int report)
{
	sigset_t none;
	int      code;

	/* What we block, another program must not: its own end may be a signal. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (input >= 0)
		dup2(input, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	execvp(argv[0], argv);
	code = errno;
	(void)!write(report, &code, sizeof(code));
	_exit(127);
}

static void close_both(const int ends[2])
{
	os_close(ends[0]);
	os_close(ends[1]);
}

/* input: the child's end, or -1. */
static int start(char *const argv[], int input, struct os_process *ret_process)
{
	int     output[2], report[2], code = 0;
	pid_t   pid;
	ssize_t told;

	if (pipe2(output, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(report, O_CLOEXEC) < 0) {
		code = errno;
		close_both(output);
		return -code;
	}
	pid = fork();
	if (pid == 0)
		become(argv, input, output[1], report[1]);
	if (pid < 0)
		code = errno;
	os_close(output[1]);
	os_close(report[1]);
	/* The pipe closes with a successful exec: nothing is told then. */
	told = pid < 0 ? 0 : read(report[0], &code, sizeof(code));
	os_close(report[0]);
	if (pid < 0 || told > 0) {
		os_close(output[0]);
		if (pid > 0)
			waitpid(pid, NULL, 0);
		return -code;
	}
	*ret_process = (struct os_process){ pid, -1, output[0] };
	return 0;
}

int os_process_start(char *const argv[], struct os_process *ret_process)
{
	return start(argv, -1, ret_process);
}

int os_process_start_fed(char *const argv[], struct os_process *ret_process)
{
	int ends[2];
	/* No pipe: one whose reader is gone would raise SIGPIPE. */
	int rc = fd_pair_above_stdio(SOCK_STREAM, ends);

	if (rc < 0)
		return rc;
	rc = start(argv, ends[1], ret_process);
	os_close(ends[1]);
	if (rc == 0)
		ret_process->input = ends[0];
	else
		os_close(ends[0]);
	return rc;
}

int os_process_write(const struct os_process *process, const void *bytes, size_t count)
{
	const char *at = bytes;

	while (count > 0) {
		const ssize_t done = send(process->input, at, count, MSG_NOSIGNAL);

		if (done < 0 && errno != EINTR)
			return -errno;
		if (done > 0) {
			at += done;
			count -= (size_t)done;
		}
	}
	return 0;
}

ssize_t os_process_read(const struct os_process *process, void *bytes, size_t room)
{
	ssize_t done;

	do {
		done = read(process->output, bytes, room);
	} while (done < 0 && errno == EINTR);
	return done < 0 ? -errno : done;
}

int os_process_wait(struct os_process *process)
{
	int   status = 0;
	pid_t pid;

	/* Who reads all that we say ends with it. */
	os_close(process->input);
	process->input = -1;
	do {
		pid = waitpid(process->pid, &status, 0);
	} while (pid < 0 && errno == EINTR);
	KVS_ASSERT(pid == process->pid);
	os_close(process->output);
	process->output = -1;
	process->pid = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void os_process_kill(struct os_process *process)
{
	if (process->pid > 0) {
		(void)kill(process->pid, SIGKILL);
		(void)os_process_wait(process);
	}
}

void os_process_pause(const struct os_process *process)
{
	if (process->pid > 0)
		(void)kill(process->pid, SIGSTOP);
}

void os_process_resume(const struct os_process *process)
{
	if (process->pid > 0)
		(void)kill(process->pid, SIGCONT);
}
