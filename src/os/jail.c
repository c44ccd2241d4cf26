/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vfork, so that a host with hundreds of gigabytes mapped copies none of its page tables.
 *
 * The child (jail_child.c) tells over a socket.  After a true vfork it has become the program or ended
 * when we go on, and all is said.  A sanitizer may make a fork of it: then the stream's end says so.
 * We do not wait for that otherwise, as a process that the host forks meanwhile may hold it open.
 */
#include "os/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "os/fd.h"
#include "os/jail_parts.h"
#include "os/os.h"

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

/* waitid() takes a pidfd since Linux 5.4; an enumerator of newer headers. */
#define WAIT_PIDFD ((idtype_t)3)

extern char **environ;

/* --- the program and its environment ---------------------------------------------------------- */

static int can_run(const char *path)
{
	struct stat file;

	if (stat(path, &file) < 0)
		return -errno;
	if (!S_ISREG(file.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0)
		return -EACCES;
	return 0;
}

/* Where a shell looks: not os_environment(), which knows no PATH where a process gained rights. */
static const char *search_path(void)
{
	char **entry;

	for (entry = environ; entry && *entry; entry++) {
		if (strncmp(*entry, "PATH=", 5) == 0)
			return *entry + 5;
	}
	return "/usr/local/bin:/usr/bin:/bin";
}

/* One that is there and may not be run is the better answer than none. */
static int find_program(const char *name, char path[PATH_MAX])
{
	const char *at = search_path();
	int         rc = -ENOENT;

	for (;; at++) {
		const char *end = strchrnul(at, ':');
		const int   bytes = (int)(end - at);
		const int   made = snprintf(path, PATH_MAX, "%.*s%s%s", bytes, at,
					    bytes ? "/" : "./", name);
		const int   found = made < PATH_MAX ? can_run(path) : -ENOENT;

		if (found == 0)
			return 0;
		if (found == -EACCES)
			rc = found;
		at = end;
		if (*at == '\0')
			return rc;
	}
}

static int resolve(const char *name, char path[PATH_MAX])
{
	if (name[0] == '\0')
		return -ENOENT;
	if (!strchr(name, '/'))
		return find_program(name, path);
	return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static size_t count(char *const *list)
{
	size_t n = 0;

	while (list && list[n])
		n++;
	return n;
}

static bool is_named(const char *entry, char *const *list)
{
	const size_t bytes = (size_t)(strchrnul(entry, '=') - entry);

	for (; list && *list; list++) {
		if (strncmp(entry, *list, bytes) == 0 && (*list)[bytes] == '=')
			return true;
	}
	return false;
}

/* Ours and then theirs, which go first; NULL without memory.  Free the list, not what it names. */
static char **join_environment(char *const *theirs)
{
	const size_t ours_count = count(environ), their_count = count(theirs);
	char       **joined = calloc(ours_count + their_count + 1, sizeof(*joined));
	size_t       used = 0, i;

	if (!joined)
		return NULL;
	for (i = 0; i < ours_count; i++) {
		if (!is_named(environ[i], theirs))
			joined[used++] = environ[i];
	}
	for (i = 0; i < their_count; i++)
		joined[used++] = theirs[i];
	return joined;
}

/* --- start ------------------------------------------------------------------------------------ */

static pid_t spawn(struct jail_start *start)
{
	const pid_t pid = vfork();

	if (pid == 0)
		jail_become(start);
	return pid < 0 ? -errno : pid;
}

/*
 * A handler of the host's must not run in a child that has the host's memory, and a thread that is
 * cancelled must not be unwound there.
 */
static pid_t spawn_quietly(struct jail_start *start)
{
	sigset_t all, before;
	int      cancel;
	pid_t    pid;

	sigfillset(&all);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = spawn(start);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_setcancelstate(cancel, NULL);
	return pid;
}

/* One word: 1 with *ret_word, and *fd when one comes along; 0 at the end. */
static int hear_word(int report, int flags, struct jail_word *ret_word, int *fd)
{
	struct iovec part = { ret_word, sizeof(*ret_word) };
	union {
		struct cmsghdr header;
		char           bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr   message = { .msg_iov = &part,
				    .msg_iovlen = 1,
				    .msg_control = &control,
				    .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *header;
	ssize_t         done;

	do {
		done = recvmsg(report, &message, flags | MSG_CMSG_CLOEXEC);
	} while (done < 0 && errno == EINTR);
	header = done > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(header), sizeof(*fd));
	return done == (ssize_t)sizeof(*ret_word);
}

/* 0 when it is the program now, and *fd its pidfd; else -errno, and *fd may be. */
static int hear(int report, bool all_said, int *fd)
{
	const int        flags = all_said ? MSG_DONTWAIT : 0;
	struct jail_word word = { 0 };

	while (word.code == 0 && hear_word(report, flags, &word, fd))
		;
	if (word.code != 0)
		return -word.code;
	/* Killed before it could say a word, or we have no room for its descriptor. */
	return *fd < 0 ? -ECHILD : 0;
}

/* It has ended or is about to. */
static void reap(pid_t pid, int fd)
{
	siginfo_t info;

	if (fd < 0)
		(void)waitpid(pid, NULL, 0);
	else
		(void)waitid(WAIT_PIDFD, (id_t)fd, &info, WEXITED);
	os_close(fd);
}

static int start_here(struct jail_start *start, int report, struct os_jail *ret_jail)
{
	const pid_t pid = spawn_quietly(start);
	int         fd = -1, rc;

	os_close(start->report);
	if (pid < 0)
		return pid;
	rc = hear(report, start->reached, &fd);
	if (rc == 0) {
		fd = fd_above_stdio(fd);
		rc = fd < 0 ? fd : 0;
	}
	if (rc < 0) {
		/* It may be the program, and its descriptor lost for want of room. */
		if (fd < 0)
			(void)kill(pid, SIGKILL);
		reap(pid, fd);
		return rc;
	}
	*ret_jail = (struct os_jail){ pid, fd, start->filter != NULL };
	return 0;
}

/* With what the child needs open. */
static int start_with(struct jail_start *start, struct os_jail *ret_jail)
{
	const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	int       ends[2], rc;

	start->nowhere = fd_above_stdio(nowhere < 0 ? -errno : nowhere);
	if (start->nowhere < 0)
		return start->nowhere;
	rc = fd_pair_above_stdio(SOCK_SEQPACKET, ends);
	if (rc == 0) {
		start->report = ends[1];
		rc = start_here(start, ends[0], ret_jail);
		os_close(ends[0]);
	}
	os_close(start->nowhere);
	return rc;
}

int os_jail_start(const struct os_jail_plan *plan, struct os_jail *ret_jail)
{
	struct sock_filter code[JAIL_FILTER_MAX];
	struct sock_fprog  filter = { .filter = code };
	char               path[PATH_MAX];
	struct jail_start  start = { path, plan->argv, NULL,     plan->fds, plan->fd_count, -1,
				     plan->output, -1, getpid(), NULL,      false };
	char             **environment;
	int                rc = resolve(plan->argv[0], path);

	KVS_ASSERT(plan->fd_count >= 0 && plan->fd_count <= OS_JAIL_FDS_MAX);
	if (rc < 0)
		return rc;
	if (plan->confine) {
		filter.len = (unsigned short)jail_filter_build(code);
		start.filter = &filter;
		if (filter.len == 0)
			return -ENOTSUP;
	}
	environment = join_environment(plan->environment);
	if (!environment)
		return -ENOMEM;
	start.environment = environment;
	rc = start_with(&start, ret_jail);
	free(environment);
	return rc;
}

/* --- end -------------------------------------------------------------------------------------- */

void os_jail_kill(const struct os_jail *jail)
{
	if (jail->pid > 0)
		(void)syscall(SYS_pidfd_send_signal, jail->fd, SIGKILL, NULL, 0);
}

bool os_jail_wait(struct os_jail *jail, uint64_t timeout_ns)
{
	const uint64_t deadline_ns = os_until_ns(timeout_ns);
	struct os_wait wait = { .fd = jail->fd, .to_read = true };
	siginfo_t      info;
	int            ready;

	if (jail->pid == 0)
		return true;
	/* One wait's time may be less than ours. */
	do {
		ready = os_wait(&wait, 1, deadline_ns);
	} while (ready == 0 && os_now_ns() < deadline_ns);
	if (ready <= 0)
		return false;
	/* Nobody there: the host ignores its children's ends, or has waited for this one. */
	(void)waitid(WAIT_PIDFD, (id_t)jail->fd, &info, WEXITED | WNOHANG);
	os_close(jail->fd);
	*jail = (struct os_jail){ 0, -1, jail->confined };
	return true;
}
