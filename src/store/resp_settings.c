/* SPDX-License-Identifier: Apache-2.0 */
/* One function a group of options; each sentence names store.FIELD, and none shows a secret. */
#include "store/resp_settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "os/os.h"
#include "store/spec.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)

#define PORT_DEFAULT "6379"

const char *const resp_options[] = {
	"db", "user", "password", "password_file", "connections", "pipeline", "connect_timeout",
	"timeout", "connect", "tls", "tls_ca", "tls_name", "prefix", "format", "bytes_in_flight",
	NULL
};

/* Copy text of `bytes` where it fits. */
static int keep(const char *field, const char *text, size_t bytes, char *ret_text, size_t room,
		struct kvs_error *err)
{
	if (bytes >= room) {
		return err_set(err, KVS_E_INVALID, "store.%s: is longer than %zu bytes", field,
			       room - 1);
	}
	memcpy(ret_text, text, bytes);
	ret_text[bytes] = '\0';
	return 0;
}

static int read_text(const struct kvs_store_config *config, const char *key, char *ret_text,
		     size_t room, struct kvs_error *err)
{
	const char *text = spec_option(config, key);

	if (!text)
		return 0;
	if (!*text)
		return err_set(err, KVS_E_INVALID, "store.%s: is empty", key);
	return keep(key, text, strlen(text), ret_text, room, err);
}

static int read_port(const char *text, struct resp_settings *set, struct kvs_error *err)
{
	const size_t digits = strspn(text, "0123456789");
	unsigned     value = 0;

	if (digits > 0 && digits < sizeof(set->port) && !text[digits])
		sscanf(text, "%u", &value);
	if (value == 0 || value > 65535) {
		return err_set(err, KVS_E_INVALID,
			       "store.port: \"%.32s\" is not a port; use 1 to 65535", text);
	}
	snprintf(set->port, sizeof(set->port), "%u", value);
	return 0;
}

/* "[::1]" ends at its bracket, any other host at the colon. */
static int read_host(const char *place, struct resp_settings *set, struct kvs_error *err)
{
	const bool   bracket = *place == '[';
	const char  *host = place + bracket;
	const size_t bytes = strcspn(host, bracket ? "]" : ":");
	const char  *rest = host + bytes;

	if (bytes == 0)
		return err_set(err, KVS_E_INVALID, "store.host: is missing; write resp:HOST:PORT");
	if (bracket && *rest != ']') {
		return err_set(err, KVS_E_INVALID, "store.host: \"%.64s\" has no closing bracket",
			       place);
	}
	rest += bracket;
	if (*rest && *rest != ':') {
		return err_set(err, KVS_E_INVALID,
			       "store.host: \"%.64s\": after the bracket comes :PORT", place);
	}
	if (strchr(rest + (*rest != '\0'), ':')) {
		return err_set(err, KVS_E_INVALID,
			       "store.host: \"%.64s\" has several colons; write [ADDRESS]:PORT",
			       place);
	}
	if (keep("host", host, bytes, set->host, sizeof(set->host), err) < 0)
		return KVS_E_INVALID;
	if (*rest && read_port(rest + 1, set, err) < 0)
		return KVS_E_INVALID;
	snprintf(set->place, sizeof(set->place), bracket ? "[%.255s]:%s" : "%.255s:%s", set->host,
		 set->port);
	return 0;
}

static int read_place(const char *place, struct resp_settings *set, struct kvs_error *err)
{
	const char *const mark = "unix:";
	const char       *path = place + strlen(mark);

	if (strncmp(place, mark, strlen(mark)) != 0) {
		/* As in a URL: not quoted, for what stands before it is a secret. */
		if (strchr(place, '@')) {
			return err_set(err, KVS_E_INVALID,
				       "store.host: has an @; a login goes into user=, password="
				       " or password_file=");
		}
		return read_host(place, set, err);
	}
	if (!*path)
		return err_set(err, KVS_E_INVALID, "store.path: is missing; write resp:unix:/PATH");
	snprintf(set->place, sizeof(set->place), "%.107s", path);
	return keep("path", path, strlen(path), set->path, sizeof(set->path), err);
}

/* The first line of a file. */
static int read_password_file(const char *path, struct resp_settings *set, struct kvs_error *err)
{
	const int fd = os_file_open(path, 0);
	char      text[RESP_SECRET_MAX + 1] = "";
	uint64_t  bytes = 0;
	int       rc = fd < 0 ? fd : os_file_size(fd, &bytes);

	bytes = bytes < sizeof(text) - 1 ? bytes : sizeof(text) - 1;
	if (rc == 0)
		rc = os_file_read(fd, text, bytes, 0);
	os_close(fd);
	if (rc < 0) {
		explicit_bzero(text, sizeof(text));
		return err_set(err, rc, "store.password_file: \"%.128s\" cannot be read: %s", path,
			       kvs_strerror(rc));
	}
	bytes = strcspn(text, "\r\n");
	if (bytes == 0)
		rc = err_set(err, KVS_E_INVALID, "store.password_file: its first line is empty");
	else
		rc = keep("password_file", text, bytes, set->password, sizeof(set->password), err);
	explicit_bzero(text, sizeof(text));
	return rc;
}

static int read_login(const struct kvs_store_config *config, struct resp_settings *set,
		      struct kvs_error *err)
{
	const char *const path = spec_option(config, "password_file");
	int               rc = 0;

	if (path && spec_option(config, "password")) {
		return err_set(err, KVS_E_INVALID,
			       "store.password_file: is given beside password; use one");
	}
	if (read_text(config, "user", set->user, sizeof(set->user), err) < 0 ||
	    read_text(config, "password", set->password, sizeof(set->password), err) < 0)
		return KVS_E_INVALID;
	if (path)
		rc = read_password_file(path, set, err);
	if (rc == 0 && set->user[0] && !set->password[0]) {
		return err_set(err, KVS_E_INVALID,
			       "store.password: is missing; user \"%.64s\" needs one", set->user);
	}
	return rc;
}

static int read_tls(const struct kvs_store_config *config, struct resp_settings *set,
		    struct kvs_error *err)
{
	if (spec_switch(config, "tls", &set->tls, err) < 0 ||
	    read_text(config, "tls_ca", set->tls_ca, sizeof(set->tls_ca), err) < 0 ||
	    read_text(config, "tls_name", set->tls_name, sizeof(set->tls_name), err) < 0)
		return KVS_E_INVALID;
	if (!set->tls && (set->tls_ca[0] || set->tls_name[0])) {
		return err_set(err, KVS_E_INVALID, "store.%s: is given without tls=on",
			       set->tls_ca[0] ? "tls_ca" : "tls_name");
	}
	if (set->tls && !set->tls_name[0] && !set->host[0]) {
		return err_set(err, KVS_E_INVALID,
			       "store.tls_name: is missing; a path has no name");
	}
	if (!set->tls_name[0])
		memcpy(set->tls_name, set->host, sizeof(set->tls_name));
	return 0;
}

static int read_prefix(const struct kvs_store_config *config, struct resp_settings *set,
		       struct kvs_error *err)
{
	if (read_text(config, "prefix", set->prefix, sizeof(set->prefix), err) < 0)
		return KVS_E_INVALID;
	if (set->prefix[strspn(set->prefix, LABEL_PREFIX_LETTERS)]) {
		return err_set(err, KVS_E_INVALID,
			       "store.prefix: \"%.64s\" may hold letters, digits, _ . and - only",
			       set->prefix);
	}
	return 0;
}

struct range {
	const char *key;
	uint64_t    value, min, max;
};

static int check_range(const struct range *range, struct kvs_error *err)
{
	if (range->value >= range->min && range->value <= range->max)
		return 0;
	return err_set(err, KVS_E_INVALID,
		       "store.%s: %" PRIu64 " is not in %" PRIu64 " .. %" PRIu64, range->key,
		       range->value, range->min, range->max);
}

static int check_time(const char *key, uint64_t ns, struct kvs_error *err)
{
	if (ns >= MS && ns <= 10 * MINUTE)
		return 0;
	return err_set(err, KVS_E_INVALID, "store.%s: is not between 1ms and 10m", key);
}

static int read_numbers(const struct kvs_store_config *config, struct resp_settings *set,
			struct kvs_error *err)
{
	const char *const bytes = spec_option(config, "bytes_in_flight");

	if (spec_count(config, "db", &set->db, err) < 0 ||
	    spec_count(config, "connections", &set->connections, err) < 0 ||
	    spec_count(config, "pipeline", &set->pipeline, err) < 0 ||
	    (bytes && spec_size("bytes_in_flight", bytes, &set->bytes_in_flight, err) < 0) ||
	    spec_duration(config, "connect_timeout", &set->connect_timeout_ns, err) < 0 ||
	    spec_duration(config, "timeout", &set->timeout_ns, err) < 0 ||
	    check_time("connect_timeout", set->connect_timeout_ns, err) < 0 ||
	    check_time("timeout", set->timeout_ns, err) < 0)
		return KVS_E_INVALID;

	const struct range ranges[] = {
		{ "db", set->db, 0, INT32_MAX },
		{ "connections", set->connections, 1, RESP_CONNECTIONS_MAX },
		{ "pipeline", set->pipeline, 1, RESP_PIPELINE_MAX },
		{ "bytes_in_flight", set->bytes_in_flight, 4096, UINT64_C(1) << 32 },
	};
	size_t i;

	for (i = 0; i < ARRAY_COUNT(ranges); i++) {
		if (check_range(&ranges[i], err) < 0)
			return KVS_E_INVALID;
	}
	return 0;
}

int resp_settings_read(const struct kvs_store_config *config, struct resp_settings *ret_settings,
		       struct kvs_error *err)
{
	struct resp_settings set = { .port = PORT_DEFAULT,
				     .prefix = "kvs",
				     .connections = 2,
				     .pipeline = 8,
				     .connect_timeout_ns = SECOND,
				     .timeout_ns = 2 * SECOND,
				     .bytes_in_flight = UINT64_C(2048) << 10,
				     .required = true,
				     .verified = true };
	int                  rc;

	if (read_place(config->place, &set, err) < 0 ||
	    read_tls(config, &set, err) < 0 || read_prefix(config, &set, err) < 0 ||
	    read_numbers(config, &set, err) < 0 ||
	    spec_word(config, "connect", "required", "lazy", &set.required, err) < 0 ||
	    spec_word(config, "format", "verified", "raw", &set.verified, err) < 0)
		return KVS_E_INVALID;
	rc = read_login(config, &set, err);
	if (rc == 0)
		*ret_settings = set;
	explicit_bzero(set.password, sizeof(set.password));
	return rc;
}
