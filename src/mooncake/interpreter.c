/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter itself.
 *
 * "python3" may be a script that looks for one and starts processes for that, which a confined agent
 * may not.  So whatever the name leads to is asked once, unconfined, where it lives.
 */
#include "mooncake/agent_parts.h"

#include <errno.h>
#include <string.h>

#define REAP_NS UINT64_C(1000000000)

/* What it says within the deadline, up to its end; the bytes, or -errno. */
static int listen_to(int fd, char *text, size_t room, uint64_t deadline_ns)
{
	size_t used = 0;

	while (used < room) {
		struct os_wait     wait = { .fd = fd, .to_read = true };
		const struct iovec rest = { text + used, room - used };
		const ssize_t      done = os_socket_readv(fd, &rest, 1);

		if (done > 0)
			used += (size_t)done;
		else if (done == -ECONNRESET)
			return (int)used;
		else if (done != -EAGAIN)
			return (int)done;
		else if (os_wait(&wait, 1, deadline_ns) <= 0)
			return -ETIMEDOUT;
	}
	return -ENAMETOOLONG;
}

static int ask(const char *python, char *text, size_t room, uint64_t deadline_ns)
{
	char *const         argv[] = { (char *)python, "-c",
				       "import sys; sys.stdout.write(sys.executable or '')", NULL };
	struct os_jail_plan plan = { .argv = argv };
	struct os_jail      jail;
	int                 ends[2], rc = os_socket_pair(ends);

	if (rc < 0)
		return rc;
	plan.output = ends[1];
	rc = os_jail_start(&plan, &jail);
	os_close(ends[1]);
	if (rc == 0) {
		rc = listen_to(ends[0], text, room, deadline_ns);
		os_jail_kill(&jail);
		/* Killed and without a lock: its end is a matter of moments. */
		(void)os_jail_wait(&jail, REAP_NS);
	}
	os_close(ends[0]);
	return rc;
}

/* A path of a program, not of a script that has one run. */
static bool is_itself(const char *python)
{
	const int fd = strchr(python, '/') ? os_file_open(python, OS_NO_WAIT) : -1;
	char      start[2];
	const int rc = fd < 0 ? fd : os_file_read(fd, start, sizeof(start), 0);

	os_close(fd);
	return rc == 0 && memcmp(start, "#!", sizeof(start)) != 0;
}

int interpreter_find(const struct mooncake_settings *settings, char ret_path[MOONCAKE_PATH_MAX],
		     struct kvs_error *err)
{
	const char *python = settings->python;
	int         rc;

	if (is_itself(python)) {
		memcpy(ret_path, python, strlen(python) + 1);
		return 0;
	}
	rc = ask(python, ret_path, MOONCAKE_PATH_MAX - 1,
		 os_until_ns(settings->connect_timeout_ns));
	if (rc < 0) {
		return err_set(err, rc == -ETIMEDOUT ? rc : KVS_E_INVALID,
			       "store.python: \"%.120s\" cannot be run: %s", python,
			       kvs_strerror(rc));
	}
	ret_path[rc] = '\0';
	/* An old one, or none at all, says something else: it will say so itself. */
	if (ret_path[0] != '/' || strchr(ret_path, '\n'))
		memcpy(ret_path, python, strlen(python) + 1);
	return 0;
}
