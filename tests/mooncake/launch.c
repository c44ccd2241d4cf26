/* SPDX-License-Identifier: Apache-2.0 */
#include "launch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/prng.h"

/* Mooncake's own choice ends at 17000, the kernel's begins at 32768. */
#define PORT_FIRST 18000u
#define PORT_COUNT 14000u

void launch_begin(struct launch *launch, char *program)
{
	launch->argv[0] = program;
	launch->argv[1] = NULL;
	launch->count = 0;
}

void launch_add(struct launch *launch, const char *format, ...)
{
	char *const row = launch->rows[launch->count];
	va_list     args;

	KVS_ASSERT(launch->count < LAUNCH_WORDS_MAX);
	va_start(args, format);
	vsnprintf(row, LAUNCH_WORD_BYTES, format, args);
	va_end(args);
	launch->argv[++launch->count] = row;
	launch->argv[launch->count + 1] = NULL;
}

/* Ends with us. */
static void become(const char *directory, const char *name, char *const argv[])
{
	char path[96];
	int  log;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	log = open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
	dup2(log, 1);
	dup2(log, 2);
	setenv("MC_TCP_ENABLE_CONNECTION_POOL", "1", 1);
	setenv("MC_STORE_MEMCPY", "0", 1);
	setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
	execv(argv[0], argv);
	_exit(127);
}

pid_t launch_start(const struct launch *launch, const char *directory, const char *name)
{
	const pid_t pid = fork();

	KVS_ASSERT(pid >= 0);
	if (pid == 0)
		become(directory, name, launch->argv);
	return pid;
}

/* The end of a log, for a test that fails. */
void launch_show(const char *directory, const char *name)
{
	char  path[96], line[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "r");
	if (!file)
		return;
	fseek(file, -4000, SEEK_END);
	while (fgets(line, sizeof(line), file))
		fprintf(stderr, "%s: %s", name, line);
	fclose(file);
}

bool launch_has_ended(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

void launch_end(pid_t *pid)
{
	if (*pid > 0) {
		kill(*pid, SIGKILL);
		KVS_ASSERT(waitpid(*pid, NULL, 0) == *pid);
	}
	*pid = 0;
}

static bool is_free(uint32_t port)
{
	const struct sockaddr_in address = { .sin_family = AF_INET,
					     .sin_port = htons((uint16_t)port),
					     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const bool free = bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0;

	close(fd);
	return free;
}

/* Processes begin at different ones. */
uint32_t launch_port(void)
{
	static uint32_t count;
	const uint64_t  mine = (uint64_t)getpid() << 32;
	uint32_t        i, port = 0;

	for (i = 0; i < PORT_COUNT && port == 0; i++) {
		const uint32_t next = PORT_FIRST + (uint32_t)(mix64(mine | ++count) % PORT_COUNT);

		if (is_free(next))
			port = next;
	}
	KVS_ASSERT(port);
	return port;
}
