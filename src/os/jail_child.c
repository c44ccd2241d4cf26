/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child of os/jail.h on its way to its program.
 *
 * It may run in its parent's memory while the parent's thread stands still and others do not: so no
 * lock, no allocation, and nothing written but the stack below the parent's, errno and `reached`.
 */
#include "os/jail_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The same number on every machine; older headers lack them. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* Where the plan's lie, and from where on nothing of the plan can, nor the first that is closed. */
#define FIRST_FD  3
#define FIRST_OUT (FIRST_FD + OS_JAIL_FDS_MAX + 1)

/* The kernel's own limit of descriptors as it comes; for kernels that cannot close a range. */
#define FD_MAX (1 << 20)

/* fd: -1, or sent along. */
static void say(int report, int code, int fd)
{
	struct jail_word word = { code };
	struct iovec     part = { &word, sizeof(word) };
	union {
		struct cmsghdr header;
		char           bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd >= 0) {
		memset(&control, 0, sizeof(control));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control.bytes);
	}
	if (sendmsg(report, &message, MSG_NOSIGNAL) < 0)
		_exit(127);
}

static _Noreturn void give_up(int report, int code)
{
	say(report, code, -1);
	_exit(127);
}

/* exec takes caught signals back by itself, but not ignored ones. */
static void reset_signals(void)
{
	const struct sigaction plain = { .sa_handler = SIG_DFL };
	int                    i;

	for (i = 1; i < NSIG; i++)
		(void)sigaction(i, &plain, NULL);
}

/*
 * A descriptor of itself, made where its number cannot be somebody else's: to its parent it may, as a
 * host that waits for any child may have reaped it.
 */
static void show_pidfd(int report)
{
	const int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	if (fd < 0)
		give_up(report, errno);
	say(report, 0, fd);
}

static void close_from(int first, int kept)
{
	struct rlimit limit = { 0, FD_MAX };
	int           fd, last;

	if (syscall(SYS_close_range, first, kept - 1, 0) == 0 &&
	    syscall(SYS_close_range, kept + 1, ~0u, 0) == 0)
		return;
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	last = limit.rlim_max < FD_MAX ? (int)limit.rlim_max : FD_MAX;
	for (fd = first; fd < last; fd++) {
		if (fd != kept)
			(void)close(fd);
	}
}

static int lift(int report, int fd)
{
	const int lifted = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_OUT);

	if (lifted < 0)
		give_up(report, errno);
	return lifted;
}

static void put(int report, int from, int to)
{
	if (dup2(from, to) < 0)
		give_up(report, errno);
}

/*
 * Lifted first, all of them: a place may be taken by one that is still to be moved.  Returns where the
 * report lies then.
 */
static int place_descriptors(const struct jail_start *start)
{
	const int report = lift(start->report, start->report);
	const int nowhere = lift(report, start->nowhere);
	const int output = start->output < 0 ? nowhere : lift(report, start->output);
	int       fds[OS_JAIL_FDS_MAX], i;

	for (i = 0; i < start->fd_count; i++)
		fds[i] = lift(report, start->fds[i]);
	put(report, nowhere, STDIN_FILENO);
	put(report, output, STDOUT_FILENO);
	put(report, output, STDERR_FILENO);
	for (i = 0; i < start->fd_count; i++)
		put(report, fds[i], FIRST_FD + i);
	close_from(FIRST_FD + start->fd_count, report);
	return report;
}

/* The kernel without seccomp and the one that may not be asked are the same to our caller. */
static void confine(const struct sock_fprog *filter, int report)
{
	/* It is no stranger that must be kept from guessing: it does not pay for slower branches. */
	const unsigned flags = SECCOMP_FILTER_FLAG_SPEC_ALLOW;

	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, filter) < 0)
		give_up(report, errno == ENOMEM ? ENOMEM : ENOTSUP);
}

_Noreturn void jail_become(struct jail_start *start)
{
	/*
	 * A dump may hold all our arena, and takes as long.  One byte also refuses a program that the
	 * kernel would run on it.
	 */
	const struct rlimit no_core = { 1, 1 };
	sigset_t            none;
	int                 report = start->report;

	start->reached = true;
	reset_signals();
	/*
	 * The terminal's Ctrl-C is for the host to judge.  Not a session: the scheduler deals a busy
	 * machine out by sessions, and who answers the host must not queue behind everybody else's.
	 */
	(void)setpgid(0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != start->parent)
		_exit(127);
	show_pidfd(report);
	report = place_descriptors(start);
	(void)setrlimit(RLIMIT_CORE, &no_core);
	/* A program that gained rights would lose the signal of our death, too. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		give_up(report, ENOTSUP);
	/* What we block, another program must not: its own end may be a signal. */
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (start->filter)
		confine(start->filter, report);
	execve(start->path, start->argv, start->environment);
	give_up(report, errno);
}
