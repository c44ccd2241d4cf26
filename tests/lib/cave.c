/* SPDX-License-Identifier: Apache-2.0 */
/* See cave.h. */
#include "cave.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define MINUTE_NS 60000000000u

static const struct stub_hooks *hooks(void)
{
	char              why[160];
	void             *library, *symbol;
	stub_hooks_entry *entry;

	if (!os_library_load(MOONCAKE_STUB_PATH, &library, why, sizeof(why)))
		KVS_PANIC("%s", why);
	symbol = os_library_symbol(library, STUB_HOOKS_SYMBOL);
	KVS_ASSERT(symbol != NULL);
	memcpy(&entry, &symbol, sizeof(entry));
	return entry();
}

void cave_listen(struct cave *cave)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const char *const  port = strrchr(cave->settings.master, ':');
	const int          on = 1;

	address.sin_port = htons((uint16_t)strtoul(port + 1, NULL, 10));
	cave->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	KVS_ASSERT(cave->listener >= 0);
	KVS_ASSERT(setsockopt(cave->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
	KVS_ASSERT(bind(cave->listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	KVS_ASSERT(listen(cave->listener, 64) == 0);
}

void cave_stop_listening(struct cave *cave)
{
	os_close(cave->listener);
	cave->listener = -1;
}

struct cave *cave_make(void)
{
	struct cave *const cave = calloc(1, sizeof(*cave));
	uint32_t           i;

	KVS_ASSERT(cave != NULL);
	cave->settings = (struct mooncake_settings){
		.local_hostname = "127.0.0.1",
		.metadata_server = "P2PHANDSHAKE",
		.protocol = "tcp",
		.tenant = "default",
		.library = MOONCAKE_STUB_PATH,
		.prefix = "kvs",
		.replica_count = 1,
		.way = MOONCAKE_LIBRARY,
		.lanes = 2,
		.timeout_ns = MINUTE_NS,
		.connect_timeout_ns = MINUTE_NS,
		.reap_timeout_ns = MINUTE_NS,
		.required = true,
	};
	for (i = 0; i < CAVE_NAMES; i++) {
		cave->spans[i] = (struct kvs_span){ cave->bytes[i], CAVE_BYTES, CAVE_BYTES };
		memset(cave->bytes[i], (int)(i + 1), CAVE_BYTES);
	}
	cave->stub = hooks();
	cave->stub->reset();
	snprintf(cave->settings.master, sizeof(cave->settings.master), "127.0.0.1:%d",
		 os_socket_free_port());
	cave_listen(cave);
	return cave;
}

void cave_open(struct cave *cave)
{
	struct kvs_error err = { 0 };

	if (mooncake_library_open(&cave->settings, &cave->way, &err) < 0)
		KVS_PANIC("%s", err.message);
}

struct cave *cave_make_open(void)
{
	struct cave *const cave = cave_make();

	cave_open(cave);
	return cave;
}

void cave_close(struct cave *cave)
{
	if (cave->way)
		KVS_ASSERT(cave->way->ops->close(cave->way) == 0);
	cave->stub->release();
	cave->stub->wait_clients(0);
	cave_stop_listening(cave);
	free(cave);
}

struct library *cave_library(struct cave *cave)
{
	return (struct library *)cave->way;
}

/* What a caller has lies on its stack. */
static int call(struct cave *cave, uint32_t lane, enum mooncake_verb verb, uint32_t count,
		uint64_t timeout_ns, bool *ret_retired)
{
	char            text[CAVE_NAMES][16];
	const char     *names[CAVE_NAMES];
	struct kvs_span spans[CAVE_NAMES];
	int64_t         codes[CAVE_NAMES];
	const struct mooncake_call call = { .verb = verb, .count = count, .names = names,
					    .spans = spans, .codes = codes };
	uint32_t                   i;
	int                        rc;

	for (i = 0; i < count; i++) {
		snprintf(text[i], sizeof(text[i]), "kvs:%u", i);
		names[i] = verb == MOONCAKE_PURGE ? "^kvs:" : text[i];
		spans[i] = cave->spans[i];
	}
	if (timeout_ns == CAVE_FOREVER_NS)
		rc = cave->way->ops->call(cave->way, lane, &call, ret_retired);
	else
		rc = library_call(cave_library(cave), lane, &call, timeout_ns, ret_retired);
	if (rc == 0)
		memcpy(cave->codes, codes, count * sizeof(*codes));
	memset(text, 0xee, sizeof(text));
	memset(spans, 0xee, sizeof(spans));
	memset(names, 0xee, sizeof(names));
	return rc;
}

int cave_call(struct cave *cave, uint32_t lane, enum mooncake_verb verb, uint32_t count,
	      bool *ret_retired)
{
	return call(cave, lane, verb, count, CAVE_FOREVER_NS, ret_retired);
}

int cave_call_briefly(struct cave *cave, uint32_t lane, enum mooncake_verb verb, uint32_t count,
		      bool *ret_retired)
{
	const uint32_t held = cave_figures(cave).held;
	const int      rc = call(cave, lane, verb, count, 1, ret_retired);

	cave->stub->wait_held(held + 1);
	return rc;
}

static void wait_home(struct cave *cave, struct hand *hand)
{
	struct library *const library = cave_library(cave);

	os_mutex_lock(&library->lock);
	KVS_ASSERT(hand_is_home_by(hand, CAVE_FOREVER_NS));
	os_mutex_unlock(&library->lock);
}

void cave_wait_home(struct cave *cave, uint32_t lane)
{
	wait_home(cave, &cave_library(cave)->lanes[lane].hand);
}

void cave_wait_keeper(struct cave *cave)
{
	wait_home(cave, &cave_library(cave)->keeper);
}

void cave_forget_doubts(struct cave *cave)
{
	struct library *const library = cave_library(cave);

	os_mutex_lock(&library->lock);
	library->doubts = 0;
	os_mutex_unlock(&library->lock);
}

struct stub_figures cave_figures(struct cave *cave)
{
	struct stub_figures figures;

	cave->stub->figures(&figures);
	return figures;
}

struct mooncake_way_info cave_describe(struct cave *cave)
{
	struct mooncake_way_info info;

	cave->way->ops->describe(cave->way, &info);
	return info;
}

void cave_answer(struct cave *cave, enum stub_call call, int64_t code)
{
	const bool             batch = call == STUB_EXISTS || call == STUB_GET || call == STUB_PUT;
	const struct stub_plan row = { .calls = 1, .code_count = 1, .codes = { code } };
	const struct stub_plan whole = { .calls = 1, .rc = code };

	cave->stub->plan(call, batch ? &row : &whole);
}
