/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper: see library_parts.h.  It alone makes, sets up and destroys the client. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "mooncake/codes.h"
#include "mooncake/library_parts.h"

#define PAUSE_MAX_NS 10000000000u

static struct library *library_of(struct hand *hand)
{
	return (struct library *)((char *)hand - offsetof(struct library, keeper));
}

/* "HOST:PORT" and "[::1]:PORT"; false for anything else, which is the SDK's to understand. */
static bool split(const char *master, char host[MOONCAKE_TEXT_MAX], const char **ret_port)
{
	const char *colon = strrchr(master, ':');
	size_t      bytes = colon ? (size_t)(colon - master) : 0;

	if (bytes == 0 || strchr(master, '/'))
		return false;
	if (master[0] == '[' && colon[-1] == ']') {
		master++;
		bytes -= 2;
	}
	memcpy(host, master, bytes);
	host[bytes] = '\0';
	*ret_port = colon + 1;
	return true;
}

/* The SDK takes half a minute to find out that nobody listens, and does not say so. */
static int reach(struct library *library)
{
	const struct mooncake_settings *settings = &library->settings;
	char        host[MOONCAKE_TEXT_MAX];
	const char *port;
	int         fd;

	if (!split(settings->master, host, &port))
		return 0;
	/* A share of the time that open() waits, so that this sentence is there when it is over. */
	fd = os_socket_connect(host, port, os_until_ns(settings->connect_timeout_ns / 2));
	if (fd >= 0) {
		os_close(fd);
		return 0;
	}
	return err_set(&library->said, fd, "store.master: %.128s: %s",
		       settings->master, kvs_strerror(fd));
}

static int set_up(struct library *library)
{
	const struct mooncake_settings *s = &library->settings;
	const int rc = library->sdk.setup(library->client, s->local_hostname, s->metadata_server,
					  s->segment_bytes, s->local_buffer_bytes, s->protocol,
					  s->device, s->master);

	if (rc == 0)
		return 0;
	/* What a client is after this is not said: the next try has a new one. */
	library->sdk.destroy(library->client);
	library->client = NULL;
	return err_set(&library->said, -EIO,
		       "store: the client for the master at %.96s cannot be set up: setup() gave %d, %s",
		       s->master, rc, mooncake_code_name(rc));
}

static void connect_client(struct library *library)
{
	uint32_t i;

	library->said = (struct kvs_error){ 0 };
	if (reach(library) < 0)
		return;
	library->client = library->sdk.create();
	if (!library->client) {
		err_set(&library->said, -EIO, "store.library: create() gave no client");
		return;
	}
	if (set_up(library) < 0)
		return;
	for (i = 0; i < library->lane_count; i++)
		library->lanes[i].client = library->client;
}

static void register_regions(struct library *library)
{
	uint32_t i;

	library->register_rc = 0;
	for (i = 0; i < library->region_count && library->register_rc == 0; i++) {
		library->register_rc = library->sdk.register_buffer(
			library->client, library->regions[i].ptr, library->regions[i].bytes);
	}
}

static void end(struct library *library)
{
	uint32_t i;

	for (i = 0; i < library->lane_count; i++)
		hand_stop(&library->lanes[i].hand);
	if (library->client)
		library->sdk.destroy(library->client);
	library->client = NULL;
}

void library_keeper_work(struct hand *hand)
{
	struct library *const library = library_of(hand);

	switch (library->job) {
	case KEEPER_CONNECT:
		connect_client(library);
		break;
	case KEEPER_REGISTER:
		register_regions(library);
		break;
	case KEEPER_END:
		end(library);
		break;
	}
}

static void has_failed(struct library *library)
{
	snprintf(library->why, sizeof(library->why), "%.95s", library->said.message);
	library->retry_ns = os_now_ns() + library->pause_ns;
	library->pause_ns = library->pause_ns < PAUSE_MAX_NS / 2 ? library->pause_ns * 2
								: PAUSE_MAX_NS;
}

static void has_registered(struct library *library)
{
	library->told = true;
	if (library->register_rc == 0) {
		library->unheard[0] = '\0';
		return;
	}
	snprintf(library->unheard, sizeof(library->unheard),
		 "memory is not registered: register_buffer() gave %d, %s", library->register_rc,
		 mooncake_code_name(library->register_rc));
}

bool library_keeper_home(struct hand *hand)
{
	struct library *const library = library_of(hand);
	const bool            again = library->left && library->job != KEEPER_END;

	switch (library->job) {
	case KEEPER_CONNECT:
		if (library->said.code < 0) {
			has_failed(library);
			break;
		}
		library->up = library->region_count == 0 || again;
		library->job = KEEPER_REGISTER;
		if (!library->up)
			return true;
		break;
	case KEEPER_REGISTER:
		has_registered(library);
		library->up = true;
		break;
	case KEEPER_END:
		library->over = true;
		break;
	}
	if (again)
		library->job = KEEPER_END;
	return again;
}

void library_keeper_gone(struct hand *hand)
{
	library_free(library_of(hand));
}

void library_keeper_connect_again(struct library *library)
{
	if (library->keeper.state != HAND_HOME || os_now_ns() < library->retry_ns)
		return;
	library->job = KEEPER_CONNECT;
	hand_send(&library->keeper);
}
