/* SPDX-License-Identifier: Apache-2.0 */
/* `kvstrata store list`: the keys of a strata file, one a line. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/cmd_store.h"
#include "app/key_text.h"

struct settings {
	const char *namespace;
	uint64_t    limit;
	bool        json;
};

static const struct conf_option options[] = {
	{ OPTION(settings, namespace), .type = CONF_TEXT, .metavar = "HEX",
	  .help = "only keys of this namespace, 32 digits" },
	{ OPTION(settings, limit), .type = CONF_COUNT, .metavar = "N", .fallback = "all",
	  .word = "all", .word_value = 0, .min = 1, .help = "stop after so many keys" },
	{ OPTION(settings, json), .type = CONF_BOOL, .help = "print a JSON array of objects" },
};

struct list {
	const struct settings      *set;
	const struct kvs_namespace *space; /* NULL: all */
	uint64_t                    count;
	uint64_t                    nameless; /* segments whose keys cannot be read */
	int                         rc;       /* of the output */
};

static void print_key(const struct strata_finding *finding)
{
	char space[KEY_TEXT_SPACE_BYTES], hash[KEY_TEXT_HASH_BYTES], group[KEY_TEXT_GROUP_BYTES];

	printf("%s %s %" PRIu32 " %s %" PRIu64 "\n",
	       key_text_space(&finding->key->space, space), key_text_group(finding->key, group),
	       finding->key->offset, key_text_hash(finding->key, hash), finding->bytes);
}

static void print_key_json(const struct strata_finding *finding, bool first)
{
	char space[KEY_TEXT_SPACE_BYTES], hash[KEY_TEXT_HASH_BYTES];

	printf("%s\n  {\"namespace\": \"%s\", \"group\": %u, \"replica\": %u"
	       ", \"offset\": %" PRIu32 ", \"hash\": \"%s\", \"bytes\": %" PRIu64 "}",
	       first ? "" : ",", key_text_space(&finding->key->space, space), finding->key->group,
	       finding->key->replica, finding->key->offset, key_text_hash(finding->key, hash),
	       finding->bytes);
}

static bool see(void *ctx, const struct strata_finding *finding)
{
	struct list *const list = ctx;

	if (!finding->key) {
		list->nameless++;
		return true;
	}
	if (list->space && memcmp(list->space, &finding->key->space, sizeof(*list->space)) != 0)
		return true;
	if (list->set->json)
		print_key_json(finding, list->count == 0);
	else
		print_key(finding);
	list->rc = app_printed();
	list->count++;
	return list->count != list->set->limit && list->rc == 0;
}

static int list_keys(const char *path, struct list *list, struct kvs_error *err)
{
	struct kvs_store *store;
	int               rc = cmd_store_look(path, &store, err);

	if (rc < 0)
		return rc;
	if (list->set->json)
		printf("[");
	rc = strata_walk(store, false, see, list);
	(void)strata_close(store);
	if (list->set->json)
		printf("\n]\n");
	if (rc < 0)
		return err_set(err, rc, "%s", kvs_strerror(rc));
	rc = list->rc < 0 ? app_refuse_output(list->rc, err) : app_flush(err);
	if (rc < 0 || list->nameless == 0)
		return rc;
	return err_set(err, KVS_E_PROTO,
		       "\"%.128s\": %" PRIu64
		       " segments have damaged summaries; their keys are missing here",
		       path, list->nameless);
}

static int list_chosen(const char *path, const struct settings *set, struct kvs_error *err)
{
	struct kvs_namespace space;
	struct list          list = { .set = set };

	if (set->namespace && !key_text_parse_space(set->namespace, &space)) {
		return err_set(err, KVS_E_INVALID,
			       "--namespace: \"%.64s\" is not a namespace; use 32 hexadecimal digits",
			       set->namespace);
	}
	list.space = set->namespace ? &space : NULL;
	return list_keys(path, &list, err);
}

static int run(int argc, char **argv)
{
	struct settings  set = { 0 };
	struct kvs_error err;
	const char      *path;
	struct conf     *conf;
	int status = cmd_store_configure(&store_list_command, argc, argv, &set, &path, &conf);

	if (status != APP_DONE)
		return status;
	if (list_chosen(path, &set, &err) < 0)
		status = app_fail(store_list_command.name, &err);
	conf_close(conf);
	return status;
}

const struct app_command store_list_command = {
	.name = "store list",
	.usage = "PATH [FLAGS]",
	.summary = "prints the keys of a store",
	.text = "Prints one line a key: namespace, group, offset, hash, bytes of payload, in the order in\n"
		"which objects lie in the file.  Joined with colons, the first four are the key that\n"
		"`kvstrata store rm --key` takes.  Of a replica past 0 its number is behind the group's:\n"
		"3.1 is group 3, replica 1.\n"
		"\n"
		"It reads summaries, no payload, and writes nothing.  What a process puts or removes\n"
		"meanwhile may be missing or may be told all the same.\n",
	.examples = "  kvstrata store list /var/tmp/kv --limit 10\n"
		    "  kvstrata store list /var/tmp/kv --namespace 00112233445566778899aabbccddeeff --json\n",
	.options = options,
	.option_count = ARRAY_COUNT(options),
	.settings_bytes = sizeof(struct settings),
	.run = run,
};
