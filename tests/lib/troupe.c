/* SPDX-License-Identifier: Apache-2.0 */
/* See troupe.h. */
#include "troupe.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "mooncake/agent_parts.h"
#include "redis.h"

#define SECOND UINT64_C(1000000000)

static int listen_somewhere(int *ret_port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t          bytes = sizeof(address);
	const int          fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	KVS_ASSERT(bind(fd, (struct sockaddr *)&address, bytes) == 0 && listen(fd, 1024) == 0);
	KVS_ASSERT(getsockname(fd, (struct sockaddr *)&address, &bytes) == 0);
	*ret_port = ntohs(address.sin_port);
	return fd;
}

void troupe_init(struct troupe *troupe, uint64_t lanes)
{
	void *memory;
	int   port;

	*troupe = (struct troupe){ .master = listen_somewhere(&port) };
	troupe->settings = (struct mooncake_settings){
		.local_hostname = "127.0.0.1", .metadata_server = "P2PHANDSHAKE", .protocol = "tcp",
		.tenant = "default", .replica_count = 1, .python = "python3",
		.agent = SOURCE_ROOT "/src/mooncake/kvstrata-mooncake-agent", .lanes = lanes,
		/* No test waits for one of these to pass but one that says so. */
		.timeout_ns = 600 * SECOND, .connect_timeout_ns = 600 * SECOND,
		.reap_timeout_ns = 600 * SECOND, .required = true, .prefix = "kvs",
	};
	snprintf(troupe->settings.master, sizeof(troupe->settings.master), "127.0.0.1:%d", port);
	snprintf(troupe->folder, sizeof(troupe->folder), "/tmp/kvstrata-troupe-XXXXXX");
	KVS_ASSERT(mkdtemp(troupe->folder));
	KVS_ASSERT(setenv("FAKE_SDK_DIR", troupe->folder, 1) == 0);
	KVS_ASSERT(setenv("PYTHONPATH", SOURCE_ROOT "/tests/sdk", 1) == 0);
	KVS_ASSERT(setenv("PYTHONDONTWRITEBYTECODE", "1", 1) == 0);
	KVS_ASSERT(unsetenv("FAKE_SDK_SETUP") == 0);
	KVS_ASSERT(os_pages_map_shared("troupe", TROUPE_BYTES, false, &memory, &troupe->memory_fd) == 0);
	troupe->memory = memory;
}

void troupe_open(struct troupe *troupe)
{
	/* Two slices that follow one another. */
	const struct kvs_span   slices[] = {
		{ troupe->memory, TROUPE_BYTES / 2, TROUPE_BYTES / 2 },
		{ troupe->memory + TROUPE_BYTES / 2, TROUPE_BYTES / 2, TROUPE_BYTES / 2 },
	};
	const struct kvs_memory memory = { slices, 2, troupe->memory_fd };
	struct kvs_error        err = { 0 };

	if (mooncake_agent_open(&troupe->settings, &troupe->way, &err) < 0)
		KVS_PANIC("no agents: %s", err.message);
	KVS_ASSERT(troupe->way->ops->register_memory(troupe->way, &memory) == 0);
}

int troupe_close(struct troupe *troupe)
{
	struct mooncake_way *way = troupe->way;

	troupe->way = NULL;
	return way ? way->ops->close(way) : 0;
}

void troupe_fini(struct troupe *troupe)
{
	KVS_ASSERT(troupe_close(troupe) == 0);
	os_pages_unmap(troupe->memory, TROUPE_BYTES);
	close(troupe->memory_fd);
	close(troupe->master);
	KVS_ASSERT(run_program((char *[]){ "rm", "-r", troupe->folder, NULL }));
}

int troupe_call(struct troupe *troupe, uint32_t lane, enum mooncake_verb verb, const char *name,
		size_t offset, size_t bytes, int64_t *ret_code, bool *ret_retired)
{
	const struct kvs_span      span = { troupe->memory + offset, bytes, bytes };
	const struct mooncake_call call = { .verb = verb, .count = 1, .names = &name, .spans = &span,
					    .codes = ret_code };

	return troupe->way->ops->call(troupe->way, lane, &call, ret_retired);
}

struct mooncake_way_info troupe_describe(struct troupe *troupe)
{
	struct mooncake_way_info info;

	troupe->way->ops->describe(troupe->way, &info);
	return info;
}

void troupe_await_lanes(struct troupe *troupe, uint32_t lanes)
{
	while (troupe_describe(troupe).lanes_up < lanes)
		poll(NULL, 0, 1);
}

/* What the lock protects, no more. */
static void look(struct troupe *troupe, uint32_t index, enum lane_state *ret_state, pid_t *ret_pid)
{
	struct agent_way *way = (struct agent_way *)troupe->way;

	os_mutex_lock(&way->lock);
	*ret_state = way->lanes[index].state;
	*ret_pid = way->lanes[index].jail.pid;
	os_mutex_unlock(&way->lock);
}

void troupe_await_busy(struct troupe *troupe, uint32_t lane)
{
	enum lane_state state;
	pid_t           pid;

	for (look(troupe, lane, &state, &pid); state != LANE_BUSY; look(troupe, lane, &state, &pid))
		poll(NULL, 0, 1);
}

pid_t troupe_pid(struct troupe *troupe, uint32_t lane)
{
	enum lane_state state;
	pid_t           pid;

	look(troupe, lane, &state, &pid);
	return pid;
}
