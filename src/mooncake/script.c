/* SPDX-License-Identifier: Apache-2.0 */
/* Where the agents' program is, and what it is told first. */
#include "mooncake/agent_parts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SCRIPT_NAME "kvstrata-mooncake-agent"
#define SCRIPT_VARIABLE "KVSTRATA_MOONCAKE_AGENT"

#define MS UINT64_C(1000000)

int script_find(const struct mooncake_settings *settings, char ret_path[MOONCAKE_PATH_MAX],
		struct kvs_error *err)
{
	const char *named = settings->agent[0] ? settings->agent : os_environment(SCRIPT_VARIABLE);
	int         fd;

	if (!named) {
		if (os_program_find(SCRIPT_NAME, ret_path, MOONCAKE_PATH_MAX) == 0)
			return 0;
		return err_set(err, KVS_E_INVALID, "store.agent: " SCRIPT_NAME " is neither beside "
			       "this program nor on the PATH; name it here or in " SCRIPT_VARIABLE);
	}
	fd = os_file_open(named, OS_NO_WAIT);
	if (fd < 0) {
		return err_set(err, KVS_E_INVALID, "store.agent: \"%.100s\" cannot be read: %s",
			       named, kvs_strerror(fd));
	}
	os_close(fd);
	if (strlen(named) >= MOONCAKE_PATH_MAX) {
		return err_set(err, KVS_E_INVALID, "store.agent: is longer than %u bytes",
			       MOONCAKE_PATH_MAX - 1);
	}
	memcpy(ret_path, named, strlen(named) + 1);
	return 0;
}

struct writer {
	char  *text;
	size_t used, room;
};

static void write_more(struct writer *writer, const char *format, ...) PRINTF_LIKE(2, 3);

static void write_more(struct writer *writer, const char *format, ...)
{
	va_list list;
	int     bytes;

	va_start(list, format);
	bytes = vsnprintf(writer->text + writer->used, writer->room - writer->used, format, list);
	va_end(list);
	KVS_ASSERT(bytes >= 0 && (size_t)bytes < writer->room - writer->used);
	writer->used += (size_t)bytes;
}

static void write_text(struct writer *writer, const char *name, const char *value)
{
	write_more(writer, "\"%s\":\"", name);
	for (; *value; value++) {
		const unsigned char letter = (unsigned char)*value;

		if (letter < 0x20 || letter == '"' || letter == '\\' || letter == 0x7f)
			write_more(writer, "\\u%04x", letter);
		else
			write_more(writer, "%c", letter);
	}
	write_more(writer, "\",");
}

static void write_number(struct writer *writer, const char *name, uint64_t value)
{
	write_more(writer, "\"%s\":%" PRIu64 ",", name, value);
}

/* Shorter than the call's limit, so that a silent master is a code and no hang. */
static uint64_t rpc_timeout_ms(const struct mooncake_settings *settings)
{
	const uint64_t ms = settings->timeout_ns / 4 * 3 / MS;

	return ms ? ms : 1;
}

size_t script_hello(const struct mooncake_settings *settings, uint32_t lane, char *body,
		    size_t room)
{
	const uint64_t connect_ms = settings->connect_timeout_ns / MS;
	struct writer  writer = { body, 0, room };

	write_more(&writer, "{");
	write_text(&writer, "local_hostname", settings->local_hostname);
	write_text(&writer, "metadata_server", settings->metadata_server);
	write_text(&writer, "master", settings->master);
	write_text(&writer, "protocol", settings->protocol);
	write_text(&writer, "device", settings->device);
	write_text(&writer, "tenant", settings->tenant);
	write_text(&writer, "python", settings->python);
	/* What one process lends, one client lends: the lookups'. */
	write_number(&writer, "segment_bytes",
		     lane == MOONCAKE_LOOKUPS ? settings->segment_bytes : 0);
	write_number(&writer, "local_buffer_bytes", settings->local_buffer_bytes);
	write_number(&writer, "replica_count", settings->replica_count);
	write_number(&writer, "connect_timeout_ms", connect_ms ? connect_ms : 1);
	write_number(&writer, "rpc_timeout_ms", rpc_timeout_ms(settings));
	write_more(&writer, "\"sentinel\":\"%s" MOONCAKE_SENTINEL "\"}", settings->prefix);
	return writer.used;
}
