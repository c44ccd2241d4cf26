/* SPDX-License-Identifier: Apache-2.0 */
/* One table of fields; each is looked for in one source after the other. */
#include "store/mooncake_source.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/text.h"
#include "os/os.h"
#include "store/spec.h"

#define FILE_BYTES_MAX (64u << 10)
#define CONFIG_VARIABLE "MOONCAKE_CONFIG_PATH"

struct field {
	const char *keys[2]; /* of the spec and of the file */
	const char *variable;
	bool        number;  /* an integer of JSON will do */
};

static const struct field fields[MOONCAKE_FIELD_COUNT] = {
	[MOONCAKE_MASTER] = { { "master_server_address", "master_server_addr" },
			      "MOONCAKE_MASTER", false },
	[MOONCAKE_METADATA_SERVER] = { { "metadata_server" },
				       "MOONCAKE_TE_META_DATA_SERVER", false },
	[MOONCAKE_LOCAL_HOSTNAME] = { { "local_hostname" }, "MOONCAKE_LOCAL_HOSTNAME", false },
	[MOONCAKE_PROTOCOL] = { { "protocol" }, "MOONCAKE_PROTOCOL", false },
	[MOONCAKE_DEVICE] = { { "device_name", "rdma_devices" }, "MOONCAKE_DEVICE", false },
	[MOONCAKE_TENANT] = { { "tenant_id" }, "MOONCAKE_TENANT_ID", false },
	[MOONCAKE_SEGMENT_SIZE] = { { "global_segment_size" },
				    "MOONCAKE_GLOBAL_SEGMENT_SIZE", true },
	[MOONCAKE_BUFFER_SIZE] = { { "local_buffer_size" }, "MOONCAKE_LOCAL_BUFFER_SIZE", true },
	[MOONCAKE_METRICS_PORT] = { { "master_metrics_port" },
				    "MOONCAKE_MASTER_METRICS_PORT", true },
};

/* Mooncake's own file, where one is named. */
struct file {
	char    where[96]; /* "PATH: ", as sentences begin */
	json_t *root;
};

static bool is_plain(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	for (; *at; at++) {
		if (iscntrl(*at) || strchr("\"'\\", *at))
			return false;
		/* U+0080 to U+009F in UTF-8. */
		if (at[0] == 0xc2 && at[1] >= 0x80 && at[1] <= 0x9f)
			return false;
	}
	return true;
}

int mooncake_text_check(const char *where, const char *text, size_t room, struct kvs_error *err)
{
	char shown[65];

	if (strlen(text) >= room)
		return err_set(err, KVS_E_INVALID, "%s: is longer than %zu bytes", where, room - 1);
	if (is_plain(text))
		return 0;
	snprintf(shown, sizeof(shown), "%s", text);
	return err_set(err, KVS_E_INVALID,
		       "%s: \"%s\" has a quote, a backslash or a control character", where,
		       text_printable(shown));
}

/* given->where is where the text comes from. */
static int take(struct mooncake_given *given, const char *text, struct kvs_error *err)
{
	if (mooncake_text_check(given->where, text, sizeof(given->text), err) < 0)
		return KVS_E_INVALID;
	memcpy(given->text, text, strlen(text) + 1);
	return 0;
}

/* Where a text is given already, the next one is too much. */
static int take_once(struct mooncake_given *given, const char *where, const char *key,
		     const char *text, struct kvs_error *err)
{
	char earlier[sizeof(given->where)];

	memcpy(earlier, given->where, sizeof(earlier));
	snprintf(given->where, sizeof(given->where), "%s%s", where, key);
	if (*earlier) {
		return err_set(err, KVS_E_INVALID, "%s: %s gives the same; use one of them",
			       given->where, earlier);
	}
	return take(given, text, err);
}

static int read_options(const struct kvs_store_config *config, const struct field *field,
			struct mooncake_given *given, struct kvs_error *err)
{
	size_t i;

	for (i = 0; i < ARRAY_COUNT(field->keys) && field->keys[i]; i++) {
		const char *const text = spec_option(config, field->keys[i]);

		if (text && !*text)
			return err_set(err, KVS_E_INVALID, "store.%s: is empty", field->keys[i]);
		if (text && take_once(given, "store.", field->keys[i], text, err) < 0)
			return KVS_E_INVALID;
	}
	return 0;
}

/* NULL when it is neither a string nor, where that will do, an integer. */
static const char *member_text(const json_t *value, bool number, char room[24])
{
	const char *const text = json_string_value(value);

	if (text || !number || !json_is_integer(value))
		return text;
	snprintf(room, 24, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
	return room;
}

static int read_members(const struct file *file, const struct field *field,
			struct mooncake_given *given, struct kvs_error *err)
{
	size_t i;

	for (i = 0; i < ARRAY_COUNT(field->keys) && field->keys[i]; i++) {
		const char *const   key = field->keys[i];
		const json_t *const value = json_object_get(file->root, key);
		char                number[24];
		const char *const   text = member_text(value, field->number, number);

		if (!value || json_is_null(value))
			continue;
		if (!text) {
			return err_set(err, KVS_E_INVALID, "%s%s: is %s", file->where, key,
				       field->number ? "neither a string nor an integer"
						     : "not a string");
		}
		if (*text && take_once(given, file->where, key, text, err) < 0)
			return KVS_E_INVALID;
	}
	return 0;
}

static int read_environment(const struct field *field, struct mooncake_given *given,
			    struct kvs_error *err)
{
	const char *const text = os_environment(field->variable);

	return text ? take_once(given, "", field->variable, text, err) : 0;
}

static int parse(const char *text, size_t bytes, struct file *file, struct kvs_error *err)
{
	json_error_t where;

	file->root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &where);
	if (!file->root) {
		return err_set(err, KVS_E_INVALID, "%sline %d, column %d: %.96s", file->where,
			       where.line, where.column, text_printable(where.text));
	}
	if (json_is_object(file->root))
		return 0;
	json_decref(file->root);
	file->root = NULL;
	return err_set(err, KVS_E_INVALID, "%sis not one JSON object", file->where);
}

static int load(int fd, struct file *file, struct kvs_error *err)
{
	uint64_t bytes = 0;
	char    *text;
	int      rc;

	if (os_file_kind(fd) != OS_FILE_REGULAR)
		return err_set(err, KVS_E_INVALID, "%sis not a regular file", file->where);
	rc = os_file_size(fd, &bytes);
	if (rc == 0 && bytes > FILE_BYTES_MAX)
		return err_set(err, KVS_E_INVALID, "%sis larger than 64 KiB", file->where);
	text = rc == 0 ? malloc(bytes + 1) : NULL;
	if (rc == 0)
		rc = text ? os_file_read(fd, text, bytes, 0) : -ENOMEM;
	rc = rc == 0 ? parse(text, bytes, file, err)
		     : err_set(err, rc, "%scannot be read: %s", file->where, kvs_strerror(rc));
	free(text);
	return rc;
}

/* file->root stays NULL where no file is named. */
static int open_file(const struct kvs_store_config *config, struct file *file,
		     struct kvs_error *err)
{
	const char *const option = spec_option(config, "config");
	const char *const path = option ? option : os_environment(CONFIG_VARIABLE);
	const size_t      bytes = path ? strlen(path) : 0;
	char              shown[97];
	int               fd, rc;

	*file = (struct file){ 0 };
	if (!path)
		return 0;
	/* The end of a long path says more than its beginning. */
	snprintf(file->where, sizeof(file->where), "%s: ", bytes > 80 ? path + bytes - 80 : path);
	text_printable(file->where);
	fd = os_file_open(path, OS_NO_WAIT);
	if (fd < 0) {
		snprintf(shown, sizeof(shown), "%s", path);
		return err_set(err, fd, "%s: \"%s\" cannot be opened: %s",
			       option ? "store.config" : CONFIG_VARIABLE, text_printable(shown),
			       kvs_strerror(fd));
	}
	rc = load(fd, file, err);
	os_close(fd);
	return rc;
}

static int read_field(const struct kvs_store_config *config, const struct file *file,
		      const struct field *field, struct mooncake_given *given,
		      struct kvs_error *err)
{
	int rc = read_options(config, field, given, err);

	if (rc == 0 && !*given->text && file->root)
		rc = read_members(file, field, given, err);
	if (rc == 0 && !*given->text)
		rc = read_environment(field, given, err);
	return rc;
}

int mooncake_sources_read(const struct kvs_store_config *config,
			  struct mooncake_given ret_given[MOONCAKE_FIELD_COUNT],
			  struct kvs_error *err)
{
	struct file file;
	int         i, rc = open_file(config, &file, err);

	memset(ret_given, 0, MOONCAKE_FIELD_COUNT * sizeof(*ret_given));
	if (rc == 0 && *config->place)
		rc = take_once(&ret_given[MOONCAKE_MASTER], "store.master", "", config->place, err);
	for (i = 0; i < MOONCAKE_FIELD_COUNT && rc == 0; i++)
		rc = read_field(config, &file, &fields[i], &ret_given[i], err);
	json_decref(file.root);
	return rc;
}
