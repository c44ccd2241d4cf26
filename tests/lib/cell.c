/* SPDX-License-Identifier: Apache-2.0 */
/* See cell.h. */
#include "cell.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "os/os.h"

/* Longer than any of this takes; nothing waits so long unless it is broken. */
#define LONG_NS UINT64_C(60000000000)

void cell_play(int argc, char **argv, const struct cell_part *parts, size_t count)
{
	size_t i;

	for (i = 0; argc == 2 && i < count; i++) {
		if (strcmp(argv[1], parts[i].name) == 0) {
			parts[i].play();
			_exit(0);
		}
	}
}

void cell_tell(const void *bytes, size_t count)
{
	const char *at = bytes;

	while (count > 0) {
		const ssize_t done = write(CELL_LINE, at, count);

		if (done <= 0)
			_exit(1);
		at += done;
		count -= (size_t)done;
	}
}

int cell_start(const char *part, bool confine, int fd, struct cell *ret_cell)
{
	char               *argv[] = { "/proc/self/exe", (char *)part, NULL };
	struct os_jail_plan plan = { .argv = argv,
				     .fd_count = fd < 0 ? 1 : 2,
				     .output = STDERR_FILENO,
				     .confine = confine };
	int                 ends[2], rc;

	KVS_ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
	plan.fds[0] = ends[1];
	plan.fds[1] = fd;
	ret_cell->line = ends[0];
	rc = os_jail_start(&plan, &ret_cell->jail);
	os_close(ends[1]);
	if (rc < 0)
		os_close(ends[0]);
	return rc;
}

size_t cell_hear(const struct cell *cell, void *bytes, size_t room)
{
	size_t  used = 0;
	ssize_t done = 1;

	while (used < room && done > 0) {
		done = read(cell->line, (char *)bytes + used, room - used);
		if (done < 0 && errno == EINTR)
			done = 1;
		else if (done > 0)
			used += (size_t)done;
	}
	return used;
}

void cell_end(struct cell *cell)
{
	KVS_ASSERT(os_jail_wait(&cell->jail, LONG_NS));
	os_close(cell->line);
}

void cell_kill(struct cell *cell)
{
	os_jail_kill(&cell->jail);
	cell_end(cell);
}
