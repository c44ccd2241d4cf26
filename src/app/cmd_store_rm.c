/* SPDX-License-Identifier: Apache-2.0 */
/* `kvstrata store rm`: removes objects from a strata file that nobody else has open. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/cmd_store.h"
#include "app/key_text.h"
#include "base/units.h"
#include "conf/items.h"

static_assert(KEY_TEXT_BYTES <= ITEMS_BYTES, "a key is an item");

/* Keys removed at a time. */
#define BATCH 64u

struct settings {
	const char *namespace;
	const char *key;
	bool        all;
	bool        json;
};

static const struct conf_option options[] = {
	{ OPTION(settings, namespace), .type = CONF_TEXT, .metavar = "HEX",
	  .help = "every object of this namespace, 32 digits" },
	{ OPTION(settings, key), .type = CONF_TEXT, .list = true, .metavar = "KEY",
	  .help = "NAMESPACE:GROUP:OFFSET:HASH as list has them, commas between several" },
	{ OPTION(settings, all), .type = CONF_BOOL, .help = "every object" },
	{ OPTION(settings, json), .type = CONF_BOOL, .help = "print one JSON object" },
};

/* What is to go: keys, or a namespace, or all. */
struct removal {
	struct kvs_key       *keys;
	uint32_t              key_count;
	struct kvs_namespace  space;
	struct kvs_namespace *of; /* NULL: of all */
	uint64_t              removed;
	uint64_t              missing; /* of the keys */
};

/* --- what is asked for ------------------------------------------------------------------------ */

static uint32_t count_items(const char *list)
{
	uint32_t count = 1;

	for (; *list; list++)
		count += *list == ',';
	return count;
}

static int add_key(void *ctx, const char *item, struct kvs_error *err)
{
	struct removal *const removal = ctx;

	if (!key_text_parse(item, &removal->keys[removal->key_count])) {
		return err_set(err, KVS_E_INVALID,
			       "--key: \"%.64s\" is not a key; use NAMESPACE:GROUP:OFFSET:HASH, with 32 and 64 hexadecimal digits",
			       item);
	}
	removal->key_count++;
	return 0;
}

static int read_keys(const char *list, struct removal *removal, struct kvs_error *err)
{
	removal->keys = malloc(count_items(list) * sizeof(*removal->keys));
	if (!removal->keys)
		return err_set(err, -ENOMEM, "%s", kvs_strerror(-ENOMEM));
	return items_each("--key", list, add_key, removal, err);
}

static int read_removal(const struct settings *set, struct removal *removal, struct kvs_error *err)
{
	if ((set->namespace != NULL) + (set->key != NULL) + set->all != 1) {
		return err_set(err, KVS_E_INVALID,
			       "needs one of --namespace HEX, --key KEY, --all: what is to go?");
	}
	if (set->key)
		return read_keys(set->key, removal, err);
	if (set->namespace && !key_text_parse_space(set->namespace, &removal->space)) {
		return err_set(err, KVS_E_INVALID,
			       "--namespace: \"%.64s\" is not a namespace; use 32 hexadecimal digits",
			       set->namespace);
	}
	removal->of = set->namespace ? &removal->space : NULL;
	return 0;
}

/* --- removing --------------------------------------------------------------------------------- */

static int remove_keys(struct kvs_store *store, struct removal *removal)
{
	enum kvs_result result[BATCH];
	uint32_t        at, i;

	for (at = 0; at < removal->key_count; at += BATCH) {
		const uint32_t left = removal->key_count - at;
		const uint32_t count = left < BATCH ? left : BATCH;
		const int      rc = strata_remove(store, removal->keys + at, count, result);

		if (rc < 0)
			return rc;
		for (i = 0; i < count; i++) {
			removal->removed += result[i] == KVS_RESULT_DONE;
			removal->missing += result[i] == KVS_RESULT_MISSING;
			if (result[i] == KVS_RESULT_FAILED)
				return -EIO;
		}
	}
	return 0;
}

/* Once, at the end, instead of behind each batch. */
static int sync_file(const char *path)
{
	const int fd = os_file_open(path, OS_NO_WAIT);
	const int rc = fd < 0 ? fd : os_file_sync(fd);

	os_close(fd);
	return rc;
}

static int remove_all(const char *path, struct removal *removal, struct kvs_error *err)
{
	struct kvs_store *store;
	int               rc = cmd_store_take(path, &store, err);

	if (rc < 0)
		return rc;
	rc = removal->keys ? remove_keys(store, removal)
			   : strata_purge(store, removal->of, &removal->removed);
	(void)strata_close(store);
	if (rc == 0)
		rc = sync_file(path);
	if (rc < 0) {
		return err_set(err, rc, "\"%.128s\": not everything could be removed: %s", path,
			       kvs_strerror(rc));
	}
	return 0;
}

static int report(const struct settings *set, const struct removal *removal, struct kvs_error *err)
{
	char removed[UNITS_TEXT_BYTES], missing[UNITS_TEXT_BYTES];

	if (set->json) {
		printf("{\"removed\": %" PRIu64 ", \"missing\": %" PRIu64 "}\n", removal->removed,
		       removal->missing);
		return app_flush(err);
	}
	printf("objects removed: %s", units_format_count(removal->removed, removed));
	if (removal->missing > 0)
		printf("; not there: %s", units_format_count(removal->missing, missing));
	putchar('\n');
	return app_flush(err);
}

/* --- the command ------------------------------------------------------------------------------ */

static int run(int argc, char **argv)
{
	struct settings  set = { 0 };
	struct removal   removal = { 0 };
	struct kvs_error err;
	const char      *path;
	struct conf     *conf;
	int rc, status = cmd_store_configure(&store_rm_command, argc, argv, &set, &path, &conf);

	if (status != APP_DONE)
		return status;
	rc = read_removal(&set, &removal, &err);
	if (rc == 0)
		rc = remove_all(path, &removal, &err);
	if (rc == 0)
		rc = report(&set, &removal, &err);
	if (rc < 0)
		status = app_fail(store_rm_command.name, &err);
	free(removal.keys);
	conf_close(conf);
	return status;
}

const struct app_command store_rm_command = {
	.name = "store rm",
	.usage = "PATH (--namespace HEX | --key KEY,... | --all) [FLAGS]",
	.summary = "removes objects",
	.text = "Removes the objects of a namespace, or those of the keys given, or all, and tells how many\n"
		"there were.  The store must not be open in another process.  When it is done, they are gone\n"
		"for good: a crash brings none of them back.\n"
		"\n"
		"Their room is free for new objects; a file keeps its disk space.  To have that back, use\n"
		"`kvstrata store format --force`.\n",
	.examples = "  kvstrata store rm /var/tmp/kv --namespace 00112233445566778899aabbccddeeff\n"
		    "  kvstrata store rm /var/tmp/kv --all\n",
	.options = options,
	.option_count = ARRAY_COUNT(options),
	.settings_bytes = sizeof(struct settings),
	.run = run,
};
