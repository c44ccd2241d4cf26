/* SPDX-License-Identifier: Apache-2.0 */
/* One JSON object: each member becomes the text that a flag would have been. */
#include "conf/parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/text.h"
#include "conf/nearest.h"

static int load(FILE *file, char *content, size_t *ret_bytes, struct kvs_error *err)
{
	size_t bytes = fread(content, 1, FILE_BYTES_MAX + 1, file);

	if (ferror(file))
		return err_set(err, -errno, "%s", strerror(errno));
	if (bytes > FILE_BYTES_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "is larger than 1MiB, the most a configuration may have");
	}
	*ret_bytes = bytes;
	return 0;
}

static int parse(const char *content, size_t bytes, json_t **ret_root, struct kvs_error *err)
{
	json_error_t where;
	json_t *root = json_loadb(content, bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &where);

	if (!root) {
		return err_set(err, KVS_E_INVALID, "line %d, column %d: %s", where.line,
			       where.column, text_printable(where.text));
	}
	if (!json_is_object(root)) {
		json_decref(root);
		return err_set(err, KVS_E_INVALID, "must hold one JSON object of options");
	}
	*ret_root = root;
	return 0;
}

static int read_object(const char *path, json_t **ret_root, struct kvs_error *err)
{
	FILE  *file = fopen(path, "r");
	char  *content;
	size_t bytes = 0;
	int    rc;

	if (!file)
		return err_set(err, -errno, "%s", strerror(errno));
	content = malloc(FILE_BYTES_MAX + 1);
	rc = content ? load(file, content, &bytes, err)
		     : err_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	if (rc == 0)
		rc = parse(content, bytes, ret_root, err);
	free(content);
	fclose(file);
	return rc;
}

/* Compact JSON on one line; the caller frees it. */
static char *dump(const json_t *json)
{
	return json_dumps(json, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
}

static bool is_item(const json_t *json)
{
	const char *string = json_string_value(json);

	return string ? *string && !strchr(string, ',') : json_is_integer(json);
}

/* ["lru",1000] to "lru,1000"; NULL when an item is no string or integer, empty, or has a comma. */
static char *join(const json_t *array)
{
	size_t room = 1, used = 0, i;
	char  *text;

	for (i = 0; i < json_array_size(array); i++) {
		const json_t *item = json_array_get(array, i);

		if (!is_item(item))
			return NULL;
		room += 1 + (json_is_string(item) ? json_string_length(item) : 20);
	}
	text = calloc(1, room);
	for (i = 0; text && i < json_array_size(array); i++) {
		const json_t *item = json_array_get(array, i);

		if (json_is_string(item)) {
			used += (size_t)snprintf(text + used, room - used, "%s%s", i ? "," : "",
						 json_string_value(item));
		} else {
			used += (size_t)snprintf(text + used, room - used, "%s%lld", i ? "," : "",
						 (long long)json_integer_value(item));
		}
	}
	return text;
}

/* A string may stand for text, for a quantity with a unit, and for an option's bare word. */
static bool may_be_string(const struct conf_option *option, const char *string)
{
	if (option->type == CONF_COUNT || option->type == CONF_NUMBER)
		return option->word && strcmp(option->word, string) == 0;
	return option->type != CONF_BOOL;
}

/* The member as a flag would have it, the caller's; NULL when its JSON type does not suit. */
static char *text_of(const struct conf_option *option, const json_t *json)
{
	if (json_is_string(json)) {
		return may_be_string(option, json_string_value(json))
			       ? strdup(json_string_value(json))
			       : NULL;
	}
	if (json_is_array(json))
		return option->list ? join(json) : NULL;
	if (json_is_number(json))
		return value_is_numeric(option->type) ? dump(json) : NULL;
	return json_is_boolean(json) && option->type == CONF_BOOL ? dump(json) : NULL;
}

static int read_member(const struct conf_option *option, const json_t *json, struct value *value,
		       struct kvs_error *err)
{
	char                shown[VALUE_SHOWN_BYTES];
	struct value_origin origin = { .source = CONF_FROM_FILE,
				       .label = option->name,
				       .shown = shown };
	char               *text = text_of(option, json);
	char               *json_text = dump(json);
	int                 rc;

	value_show(json_text ? json_text : "?", "", shown);
	rc = text ? value_parse(option, &origin, text, value, err)
		  : value_refuse(option, &origin, err);
	free(json_text);
	free(text);
	return rc;
}

static int refuse_unknown(const struct conf *conf, const char *key, struct kvs_error *err)
{
	struct nearest nearest;
	char           shown[VALUE_SHOWN_BYTES], hint[NEAREST_HINT_BYTES];
	size_t         i;

	value_show(key, "", shown);
	nearest_init(&nearest, key);
	for (i = 0; i < conf->option_count; i++)
		nearest_offer(&nearest, conf->options[i].name);
	return err_set(err, KVS_E_INVALID, "%s: unknown key; %s", shown,
		       nearest_hint(&nearest, "--help lists the keys as flags", hint));
}

static int read_members(struct conf *conf, json_t *root, struct kvs_error *err)
{
	const char *key;
	json_t     *json;

	json_object_foreach(root, key, json) {
		size_t i = 0;
		int    rc;

		while (i < conf->option_count && strcmp(conf->options[i].name, key) != 0)
			i++;
		if (i == conf->option_count)
			return refuse_unknown(conf, key, err);
		rc = read_member(&conf->options[i], json, &conf->values[i], err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int file_read(struct conf *conf, const char *path, struct kvs_error *err)
{
	json_t *root = NULL;
	int     rc = read_object(path, &root, err);

	if (rc == 0)
		rc = read_members(conf, root, err);
	if (rc < 0)
		err_prefix(err, "%.96s", path);
	json_decref(root);
	return rc;
}
