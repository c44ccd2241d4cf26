/* SPDX-License-Identifier: Apache-2.0 */
/* A host keeps its brackets: every address here is handed on as text. */
#include "store/mooncake_address.h"

#include <stdio.h>
#include <string.h>

#include "os/os.h"
#include "store/spec.h"

#define MASTER_PORT 50051u
#define METRICS_PORT 9003u

#define HOST_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-:[]%"

struct address {
	char     host[MOONCAKE_TEXT_MAX - 8]; /* in brackets where it was */
	unsigned port;
};

static int refuse_address(const char *where, const char *text, const char *why,
			  struct kvs_error *err)
{
	return err_set(err, KVS_E_INVALID, "%s: \"%.80s\" %s; write HOST:PORT", where, text, why);
}

static int read_port(const char *where, const char *text, unsigned *ret_port, struct kvs_error *err)
{
	const size_t digits = strspn(text, "0123456789");
	unsigned     port = 0;

	if (digits > 0 && digits < 6 && !text[digits])
		sscanf(text, "%u", &port);
	if (port == 0 || port > 65535) {
		return err_set(err, KVS_E_INVALID, "%s: \"%.32s\" is not a port; use 1 to 65535",
			       where, text);
	}
	*ret_port = port;
	return 0;
}

/* Without a port it is as it was. */
static int read_address(const char *where, const char *text, struct address *address,
			struct kvs_error *err)
{
	const bool   bracket = *text == '[';
	const size_t inner = strcspn(text, bracket ? "]" : ":");
	const size_t bytes = inner + (bracket && text[inner] == ']');
	const char  *rest = text + bytes;

	if (strstr(text, "://"))
		return refuse_address(where, text, "is a URL", err);
	if (bracket && rest[-1] != ']')
		return refuse_address(where, text, "has no closing bracket", err);
	if (bytes == 0 || (bracket && bytes == 2))
		return refuse_address(where, text, "has no host", err);
	if (text[strspn(text, HOST_LETTERS)])
		return refuse_address(where, text, "has characters that no host has", err);
	if (*rest && (*rest != ':' || strchr(rest + 1, ':')))
		return refuse_address(where, text, "is no host and a port", err);
	if (bytes >= sizeof(address->host))
		return refuse_address(where, text, "is too long a host", err);
	if (*rest && read_port(where, rest + 1, &address->port, err) < 0)
		return KVS_E_INVALID;
	snprintf(address->host, sizeof(address->host), "%.*s", (int)bytes, text);
	return 0;
}

static void keep_address(const struct address *address, char ret_text[MOONCAKE_TEXT_MAX])
{
	snprintf(ret_text, MOONCAKE_TEXT_MAX, "%s:%u", address->host, address->port);
}

static int read_metrics(const struct kvs_store_config *config, const struct mooncake_given *port,
			const char *master_host, struct mooncake_settings *set,
			struct kvs_error *err)
{
	const char *const text = spec_option(config, "metrics");
	struct address    metrics = { .port = METRICS_PORT };

	if (*port->text && read_port(port->where, port->text, &metrics.port, err) < 0)
		return KVS_E_INVALID;
	if (text && strcmp(text, "off") == 0)
		return 0;
	if (text) {
		if (mooncake_text_check("store.metrics", text, sizeof(set->metrics), err) < 0 ||
		    read_address("store.metrics", text, &metrics, err) < 0)
			return KVS_E_INVALID;
	} else {
		snprintf(metrics.host, sizeof(metrics.host), "%s", master_host);
	}
	keep_address(&metrics, set->metrics);
	return 0;
}

static bool is_loopback(const char *host)
{
	if (strncmp(host, "127.", 4) == 0)
		return !host[strspn(host, "0123456789.")];
	return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0;
}

/* How others reach this process: its segment, and the reads of what it put. */
static int read_local(const struct mooncake_given *given, const char *master_host,
		      struct mooncake_settings *set, struct kvs_error *err)
{
	int rc;

	if (*given->text) {
		const char *const colon = strrchr(given->text, ':');

		/* Each lane is a client, and takes a port of its own. */
		if (colon && (strchr(given->text, ':') == colon || colon[-1] == ']')) {
			return err_set(err, KVS_E_INVALID,
				       "%s: \"%.64s\" has a port; write a host, the client of each"
				       " lane finds a port", given->where, given->text);
		}
		if (given->text[strspn(given->text, HOST_LETTERS)]) {
			return err_set(err, KVS_E_INVALID,
				       "%s: \"%.64s\" has characters that no host has",
				       given->where, given->text);
		}
		memcpy(set->local_hostname, given->text, sizeof(set->local_hostname));
		return 0;
	}
	if (is_loopback(master_host)) {
		memcpy(set->local_hostname, "127.0.0.1", sizeof("127.0.0.1"));
		return 0;
	}
	rc = os_socket_host_name(set->local_hostname, sizeof(set->local_hostname));
	if (rc == 0)
		return 0;
	return err_set(err, rc, "store.local_hostname: is missing; this machine has no name: %s",
		       kvs_strerror(rc));
}

int mooncake_addresses_read(const struct kvs_store_config *config,
			    const struct mooncake_given *given, struct mooncake_settings *set,
			    struct kvs_error *err)
{
	const struct mooncake_given *const place = &given[MOONCAKE_MASTER];
	struct address                     master = { .port = MASTER_PORT };

	if (!*place->text) {
		return err_set(err, KVS_E_INVALID,
			       "store.master: is missing; write mooncake:HOST:PORT, or name it in"
			       " config=FILE or MOONCAKE_MASTER");
	}
	if (read_address(place->where, place->text, &master, err) < 0)
		return KVS_E_INVALID;
	keep_address(&master, set->master);
	if (read_metrics(config, &given[MOONCAKE_METRICS_PORT], master.host, set, err) < 0)
		return KVS_E_INVALID;
	return read_local(&given[MOONCAKE_LOCAL_HOSTNAME], master.host, set, err);
}
