/* SPDX-License-Identifier: Apache-2.0 */
/* Both programs are read to their end, or the server until it is ready. */
#include "app/bench_redis.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A port that was free may be taken before the server binds it. */
#define TRIES 20

static bool wait_ready(const struct bench_redis *redis)
{
	char   text[8192];
	size_t used = 0;

	while (used < sizeof(text) - 1) {
		const ssize_t done = os_process_read(&redis->process, text + used,
						     sizeof(text) - 1 - used);

		if (done <= 0)
			return false;
		used += (size_t)done;
		text[used] = '\0';
		if (strstr(text, "eady to accept connections"))
			return true;
	}
	return false;
}

static int start(struct bench_redis *redis, struct kvs_error *err)
{
	char *argv[] = { "redis-server", "--port", redis->port, "--bind", "127.0.0.1", "--save", "",
			 "--appendonly", "no", NULL };
	int   i;

	snprintf(redis->host, sizeof(redis->host), "127.0.0.1");
	for (i = 0; i < TRIES; i++) {
		const int port = os_socket_free_port();
		int       rc = port;

		if (port > 0) {
			snprintf(redis->port, sizeof(redis->port), "%u", (unsigned)port & 0xffff);
			rc = os_process_start(argv, &redis->process);
		}
		if (rc < 0)
			return err_set(err, rc, "redis-server: cannot be run: %s", kvs_strerror(rc));
		if (wait_ready(redis))
			return 0;
		os_process_kill(&redis->process);
	}
	return err_set(err, -EADDRINUSE, "redis-server: does not come up");
}

int bench_redis_open(struct bench_redis *redis, const char *address, struct kvs_error *err)
{
	const char *const colon = address ? strrchr(address, ':') : NULL;

	*redis = (struct bench_redis){ .process.output = -1 };
	if (!address)
		return start(redis, err);
	if (!colon || colon == address || !colon[1] || strlen(colon + 1) >= sizeof(redis->port) ||
	    (size_t)(colon - address) >= sizeof(redis->host))
		return err_set(err, KVS_E_INVALID, "--server: \"%.64s\" is not HOST:PORT", address);
	snprintf(redis->host, sizeof(redis->host), "%.*s", (int)(colon - address), address);
	snprintf(redis->port, sizeof(redis->port), "%.7s", colon + 1);
	return 0;
}

void bench_redis_close(struct bench_redis *redis)
{
	os_process_kill(&redis->process);
}

/* "SET","44444.44","..." : the second field of the line that begins with the test's name. */
static bool find_rate(const char *text, const char *name, double *ret_rate)
{
	char        head[16];
	const char *line;

	snprintf(head, sizeof(head), "\"%s\",\"", name);
	line = strstr(text, head);
	if (!line)
		return false;
	*ret_rate = strtod(line + strlen(head), NULL);
	return *ret_rate > 0;
}

static int run(char *const argv[], char *ret_text, size_t room, struct kvs_error *err)
{
	struct os_process process;
	size_t            used = 0;
	ssize_t           done = 1;
	int               rc = os_process_start(argv, &process);

	if (rc < 0)
		return err_set(err, rc, "redis-benchmark: cannot be run: %s", kvs_strerror(rc));
	while (used < room - 1 && (done = os_process_read(&process, ret_text + used,
							  room - 1 - used)) > 0)
		used += (size_t)done;
	ret_text[used] = '\0';
	/* It says more than a table of two lines: then it is no table. */
	if (used == room - 1)
		os_process_kill(&process);
	else
		rc = os_process_wait(&process);
	if (used < room - 1 && rc == 0)
		return 0;
	return err_set(err, -EIO, "redis-benchmark: failed: %.100s", ret_text);
}

int bench_redis_measure(const struct bench_redis *redis, const struct bench_load *load, bool is_put,
			double *ret_rate, struct kvs_error *err)
{
	char  numbers[5][24], text[4096];
	char *argv[] = { "redis-benchmark", "-h", (char *)redis->host, "-p", (char *)redis->port,
			 "-d", numbers[0], "-c", numbers[1], "-P", numbers[2], "-r", numbers[3],
			 "-n", numbers[4], "-t", is_put ? "set" : "get", "--csv", NULL };

	snprintf(numbers[0], sizeof(numbers[0]), "%" PRIu64, load->bytes);
	snprintf(numbers[1], sizeof(numbers[1]), "%" PRIu64, load->connections);
	snprintf(numbers[2], sizeof(numbers[2]), "%" PRIu64, load->pipeline);
	snprintf(numbers[3], sizeof(numbers[3]), "%" PRIu64, load->keys);
	snprintf(numbers[4], sizeof(numbers[4]), "%" PRIu64, load->requests);
	if (run(argv, text, sizeof(text), err) < 0)
		return err ? err->code : -EIO;
	if (find_rate(text, is_put ? "SET" : "GET", ret_rate))
		return 0;
	return err_set(err, KVS_E_PROTO, "redis-benchmark: said no rate: %.100s", text);
}
