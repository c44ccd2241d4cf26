/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server says on its standard output that it is ready; until then nobody waits for time to pass.
 * A port that was free may be taken before the server binds it: then the next one is tried.
 */
#include "redis.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"

extern char **environ;

#define TRIES 20

bool run_program(char *const argv[])
{
	posix_spawn_file_actions_t actions;
	pid_t                      pid;
	int                        status = -1;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	if (posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ) != 0)
		return false;
	posix_spawn_file_actions_destroy(&actions);
	KVS_ASSERT(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool redis_is_installed(void)
{
	return run_program((char *[]){ "redis-server", "--version", NULL });
}

int free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t          bytes = sizeof(address);
	const int          fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	KVS_ASSERT(bind(fd, (struct sockaddr *)&address, bytes) == 0);
	KVS_ASSERT(getsockname(fd, (struct sockaddr *)&address, &bytes) == 0);
	close(fd);
	return ntohs(address.sin_port);
}

static bool has_ipv6(void)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6,
					.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	const int           fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const bool has = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;

	close(fd);
	return has;
}

/* An authority, and a certificate for the name redis.test that it signed. */
static bool make_certificates(const char *directory)
{
	char authority[96], authority_key[96], key[96], request[96], certificate[96], names[96];
	FILE *file;

	snprintf(authority, sizeof(authority), "%s/ca.pem", directory);
	snprintf(authority_key, sizeof(authority_key), "%s/ca.key", directory);
	snprintf(key, sizeof(key), "%s/server.key", directory);
	snprintf(request, sizeof(request), "%s/server.csr", directory);
	snprintf(certificate, sizeof(certificate), "%s/server.pem", directory);
	snprintf(names, sizeof(names), "%s/names", directory);
	file = fopen(names, "w");
	KVS_ASSERT(file);
	fprintf(file, "subjectAltName=DNS:redis.test\n");
	fclose(file);
	return run_program((char *[]){ "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
				       "-days", "2", "-subj", "/CN=test authority", "-keyout",
				       authority_key, "-out", authority, NULL }) &&
	       run_program((char *[]){ "openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj",
				       "/CN=redis.test", "-keyout", key, "-out", request, NULL }) &&
	       run_program((char *[]){ "openssl", "x509", "-req", "-in", request, "-CA", authority,
				       "-CAkey", authority_key, "-CAcreateserial", "-days", "2",
				       "-extfile", names, "-out", certificate, NULL });
}

/* Whether it got as far as taking connections. */
static bool wait_ready(struct redis *redis)
{
	char   text[8192];
	size_t used = 0;

	while (used < sizeof(text) - 1) {
		const ssize_t done = read(redis->log, text + used, sizeof(text) - 1 - used);

		if (done <= 0)
			return false;
		used += (size_t)done;
		text[used] = '\0';
		if (strstr(text, "eady to accept connections"))
			return true;
	}
	return false;
}

static void spawn(struct redis *redis)
{
	char certificate[96], key[96];
	char *words[] = { "redis-server", "--port", redis->port, "--unixsocket", redis->socket,
			  "--dir", redis->directory, "--save", "", "--appendonly", "no", "--bind",
			  "127.0.0.1", redis->has_ipv6 ? "::1" : "127.0.0.1", "--tls-port",
			  redis->has_tls ? redis->tls_port : "0",
			  /* Without certificates the list ends here. */
			  redis->has_tls ? "--tls-cert-file" : NULL, certificate,
			  "--tls-key-file", key, "--tls-ca-cert-file", redis->authority,
			  "--tls-auth-clients", "no", NULL };
	int   ends[2];

	snprintf(certificate, sizeof(certificate), "%s/server.pem", redis->directory);
	snprintf(key, sizeof(key), "%s/server.key", redis->directory);
	KVS_ASSERT(pipe2(ends, O_CLOEXEC) == 0);
	redis->pid = fork();
	KVS_ASSERT(redis->pid >= 0);
	if (redis->pid == 0) {
		/* A test that dies must not leave its server behind. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], 1);
		dup2(ends[1], 2);
		execvp(words[0], words);
		_exit(127);
	}
	close(ends[1]);
	redis->log = ends[0];
}

static void reap(struct redis *redis)
{
	if (redis->pid > 0)
		KVS_ASSERT(waitpid(redis->pid, NULL, 0) == redis->pid);
	close(redis->log);
	redis->pid = 0;
}

void redis_kill(struct redis *redis)
{
	kill(redis->pid, SIGKILL);
	reap(redis);
}

void redis_restart(struct redis *redis)
{
	int i;

	/* Connections of the killed one may keep the port for a moment. */
	for (i = 0; i < TRIES; i++) {
		spawn(redis);
		if (wait_ready(redis))
			return;
		reap(redis);
	}
	KVS_PANIC("redis-server does not come back on port %s", redis->port);
}

static void place(struct redis *redis)
{
	snprintf(redis->socket, sizeof(redis->socket), "%s/socket", redis->directory);
	snprintf(redis->authority, sizeof(redis->authority), "%s/ca.pem", redis->directory);
	snprintf(redis->port, sizeof(redis->port), "0");
}

void redis_start_in(struct redis *redis, const char *directory)
{
	*redis = (struct redis){ .is_guest = true };
	snprintf(redis->directory, sizeof(redis->directory), "%s", directory);
	place(redis);
	spawn(redis);
	KVS_ASSERT(wait_ready(redis));
}

void redis_start(struct redis *redis)
{
	int i;

	*redis = (struct redis){ .has_ipv6 = has_ipv6() };
	snprintf(redis->directory, sizeof(redis->directory), "/tmp/kvstrata-redis-XXXXXX");
	KVS_ASSERT(mkdtemp(redis->directory));
	place(redis);
	redis->has_tls = make_certificates(redis->directory);
	for (i = 0; i < TRIES; i++) {
		snprintf(redis->port, sizeof(redis->port), "%d", free_port());
		snprintf(redis->tls_port, sizeof(redis->tls_port), "%d", free_port());
		spawn(redis);
		if (wait_ready(redis))
			return;
		reap(redis);
	}
	KVS_PANIC("redis-server does not start");
}

void redis_stop(struct redis *redis)
{
	if (redis->pid > 0)
		redis_kill(redis);
	if (!redis->is_guest)
		run_program((char *[]){ "rm", "-r", redis->directory, NULL });
}
