/* SPDX-License-Identifier: Apache-2.0 */
/* Programs are ready when they can be connected to; what a pool has room for, the SDK's client finds out. */
#include "app/bench_mooncake_cluster.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PROGRAM "kvstrata-mooncake-bench"

/* A port that was free may be taken before a program binds it. */
#define TRIES 5

#define READY_NS UINT64_C(30000000000)
#define LOOK_NS UINT64_C(20000000)

struct port {
	char text[8];
};

int bench_sdk_home_find(struct bench_sdk_home *home, const char *python, struct kvs_error *err)
{
	home->python = python;
	if (os_program_find(PROGRAM, home->program, sizeof(home->program)) == 0)
		return 0;
	return err_set(err, KVS_E_INVALID,
		       PROGRAM ": is neither beside this program nor on the PATH; it is installed with it");
}

static int find_ports(struct port *ret_ports, uint32_t count, struct kvs_error *err)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		const int port = os_socket_free_port();

		if (port < 0)
			return err_set(err, port, "loopback: no free port: %s", kvs_strerror(port));
		snprintf(ret_ports[i].text, sizeof(ret_ports[i].text), "%u", (unsigned)port & 0xffff);
	}
	return 0;
}

/* Until it takes connections; -EAGAIN when it ended first, perhaps because its port was taken. */
static int wait_for_port(struct bench_talk *talk, const char *port, struct kvs_error *err)
{
	const uint64_t deadline_ns = os_until_ns(READY_NS);

	while (os_now_ns() < deadline_ns) {
		const int fd = os_socket_connect("127.0.0.1", port, os_until_ns(READY_NS));

		if (fd >= 0) {
			os_close(fd);
			return 0;
		}
		/* Its output is what changes when it ends. */
		(void)os_wait_readable(&talk->process.output, 1, LOOK_NS);
		if (!bench_talk_drain(talk)) {
			return err_set(err, talk->failed ? -EIO : -EAGAIN, "%s: %s", talk->name,
				       talk->said[0] ? talk->said : "ended without a word");
		}
	}
	return err_set(err, -ETIMEDOUT, "%s: does not come up: %s", talk->name, talk->said);
}

static int start_master(struct bench_cluster *cluster, const struct bench_sdk_home *home,
			struct kvs_error *err)
{
	struct port ports[2];
	char       *argv[] = { (char *)home->python, (char *)home->program, "master", ports[0].text,
			       ports[1].text, NULL };
	int         rc = find_ports(ports, ARRAY_COUNT(ports), err);

	if (rc == 0)
		rc = bench_talk_start(&cluster->master, "mooncake_master", argv, false, err);
	if (rc == 0)
		rc = wait_for_port(&cluster->master, ports[0].text, err);
	if (rc < 0)
		return rc;
	snprintf(cluster->address, sizeof(cluster->address), "127.0.0.1:%s", ports[0].text);
	snprintf(cluster->http, sizeof(cluster->http), "127.0.0.1:%s", ports[1].text);
	return 0;
}

static int start_provider(struct bench_cluster *cluster, const struct bench_sdk_home *home,
			  uint64_t pool_bytes, struct kvs_error *err)
{
	struct port port;
	char        bytes[24];
	char       *argv[] = { (char *)home->python, (char *)home->program, "provider", port.text,
			       cluster->address, bytes, NULL };
	int         rc = find_ports(&port, 1, err);

	snprintf(bytes, sizeof(bytes), "%" PRIu64, pool_bytes);
	if (rc == 0)
		rc = bench_talk_start(&cluster->provider, "mooncake_client", argv, false, err);
	return rc == 0 ? wait_for_port(&cluster->provider, port.text, err) : rc;
}

static int start(struct bench_cluster *cluster, const struct bench_sdk_home *home,
		 uint64_t pool_bytes, struct kvs_error *err)
{
	int rc, tries = 0;

	cluster->ours = true;
	do {
		bench_talk_end(&cluster->master);
		rc = start_master(cluster, home, err);
	} while (rc == -EAGAIN && ++tries < TRIES);
	if (rc < 0)
		return rc;
	do {
		bench_talk_end(&cluster->provider);
		rc = start_provider(cluster, home, pool_bytes, err);
	} while (rc == -EAGAIN && ++tries < TRIES);
	return rc;
}

/* The SDK would try for a minute and a half before it said anything. */
static int reach(const struct bench_cluster *cluster, const char *colon, const char *address,
		 struct kvs_error *err)
{
	char host[sizeof(cluster->address)];
	int  fd;

	snprintf(host, sizeof(host), "%.*s", (int)(colon - address), address);
	fd = os_socket_connect(host, colon + 1, os_until_ns(READY_NS));
	if (fd < 0) {
		return err_set(err, fd, "--master: cannot connect to %.128s: %s", address,
			       kvs_strerror(fd));
	}
	os_close(fd);
	return 0;
}

int bench_cluster_open(struct bench_cluster *cluster, const struct bench_sdk_home *home,
		       const char *address, uint64_t pool_bytes, struct kvs_error *err)
{
	const char *const colon = address ? strrchr(address, ':') : NULL;

	*cluster = (struct bench_cluster){ .ours = false };
	if (!address)
		return start(cluster, home, pool_bytes, err);
	if (!colon || colon == address || !colon[1] || strlen(address) >= sizeof(cluster->address))
		return err_set(err, KVS_E_INVALID, "--master: \"%.64s\" is not HOST:PORT", address);
	snprintf(cluster->address, sizeof(cluster->address), "%s", address);
	return reach(cluster, colon, address, err);
}

void bench_cluster_close(struct bench_cluster *cluster)
{
	bench_talk_end(&cluster->provider);
	bench_talk_end(&cluster->master);
}

int bench_cluster_check(struct bench_cluster *cluster, struct kvs_error *err)
{
	struct bench_talk *const both[] = { &cluster->master, &cluster->provider };
	uint32_t                 i;

	for (i = 0; cluster->ours && i < ARRAY_COUNT(both); i++) {
		if (!bench_talk_drain(both[i])) {
			return err_set(err, -EIO, "%s: has ended: %s", both[i]->name,
				       both[i]->said);
		}
	}
	return 0;
}
