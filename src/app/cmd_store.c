/* SPDX-License-Identifier: Apache-2.0 */
/* `kvstrata store NAME`: the table of its parts, and what they share. */
#include "app/cmd_store.h"

#include <string.h>

#include "base/text.h"
#include "store/kind.h"
#include "strata/format.h"

/* How long to wait for the lock of a process that is ending, and how often to look. */
#define ENDING_WAIT_NS UINT64_C(2000000000)
#define RETRY_NS UINT64_C(5000000)

static const struct app_command *const parts[] = {
	&store_format_command,
	&store_inspect_command,
	&store_verify_command,
	&store_list_command,
	&store_rm_command,
	NULL,
};

/* --- arguments -------------------------------------------------------------------------------- */

static bool is_flag_of(const char *argument, const char *name)
{
	const char *at = argument + 2;

	for (; *name; name++, at++) {
		if (*at != (*name == '_' ? '-' : *name))
			return false;
	}
	return *at == '\0';
}

/* Whether the argument behind it is its value.  Of an unknown flag nobody knows; it is refused later. */
static bool takes_next(const struct app_command *command, const char *argument)
{
	size_t i;

	for (i = 0; i < command->option_count; i++) {
		if (is_flag_of(argument, command->options[i].name))
			return command->options[i].type != CONF_BOOL;
	}
	return is_flag_of(argument, "config");
}

/* Take the first bare word out of the arguments; NULL when there is none. */
static const char *take_path(const struct app_command *command, int *argc, char **argv)
{
	int i;

	for (i = 1; i < *argc; i++) {
		const char *const word = argv[i];

		if (strncmp(word, "--", 2) == 0) {
			i += takes_next(command, word);
			continue;
		}
		memmove(&argv[i], &argv[i + 1], (size_t)(*argc - i - 1) * sizeof(*argv));
		--*argc;
		return word;
	}
	return NULL;
}

int cmd_store_configure(const struct app_command *command, int argc, char **argv, void *settings,
			const char **ret_path, struct conf **ret_conf)
{
	const char *const path = take_path(command, &argc, argv);
	struct conf      *conf;
	struct kvs_error  err;
	int               status = app_configure(command, argc, argv, settings, &conf);

	if (status != APP_DONE)
		return status;
	if (path && *path) {
		*ret_path = path;
		*ret_conf = conf;
		return APP_DONE;
	}
	conf_close(conf);
	err_set(&err, KVS_E_INVALID,
		"needs the PATH of a file or block device; kvstrata %s --help explains",
		command->name);
	return app_fail(command->name, &err);
}

/* --- stores ----------------------------------------------------------------------------------- */

static int open_store(const char *path, bool read_only, struct kvs_store **ret_store,
		      struct kvs_error *err)
{
	const struct strata_settings set = { .path = path, .block_bytes = STRATA_PAGE,
					     .evict_policy = "lru", .verify = true,
					     .read_only = read_only };

	return strata_open(&set, &store_strata_ops, ret_store, err);
}

int cmd_store_look(const char *path, struct kvs_store **ret_store, struct kvs_error *err)
{
	return open_store(path, true, ret_store, err);
}

/* An open for writing formats what is empty: so it is looked at first. */
int cmd_store_take(const char *path, struct kvs_store **ret_store, struct kvs_error *err)
{
	int rc = open_store(path, true, ret_store, err);

	if (rc < 0)
		return rc;
	(void)strata_close(*ret_store);
	return open_store(path, false, ret_store, err);
}

/* The lock of a process that ended goes a moment after it. */
bool cmd_store_in_use(const char *path, struct os_lock_holder *ret_holder)
{
	const uint64_t until_ns = os_until_ns(ENDING_WAIT_NS);
	const int      fd = os_file_open(path, OS_NO_WAIT);
	bool           in_use = fd >= 0 && os_file_lock_holder(fd, ret_holder);

	while (in_use && ret_holder->ending && os_now_ns() < until_ns) {
		(void)os_wait_readable(NULL, 0, RETRY_NS);
		in_use = os_file_lock_holder(fd, ret_holder);
	}
	os_close(fd);
	return in_use;
}

char *cmd_store_holder(const struct os_lock_holder *holder, char *buffer)
{
	if (holder->pid == 0) {
		snprintf(buffer, CMD_STORE_HOLDER_BYTES,
			 "a process that has ended or cannot be seen from here");
	} else {
		snprintf(buffer, CMD_STORE_HOLDER_BYTES, "process %ld (%s)", holder->pid,
			 holder->name);
	}
	return text_printable(buffer);
}

char *cmd_store_path(const char *path, char *buffer)
{
	snprintf(buffer, CMD_STORE_PATH_BYTES, "%s", path);
	return text_printable(buffer);
}

/* --- the command ------------------------------------------------------------------------------ */

static int run(int argc, char **argv)
{
	return app_refuse_part(&store_command, "store command", argc, argv);
}

const struct app_command store_command = {
	.name = "store",
	.usage = "COMMAND PATH [FLAGS]",
	.summary = "makes, inspects, verifies, lists and empties a strata file",
	.example = "kvstrata store inspect /var/tmp/kv",
	.text = "Works on the file or block device of a store strata:PATH from outside.\n"
		"inspect, verify and list only read: another process may go on using the store.\n"
		"format and rm want it for themselves, and name the process that has it.\n"
		"`kvstrata store COMMAND --help` explains each.\n",
	.examples = "  kvstrata store format /var/tmp/kv --capacity 8GiB\n"
		    "  kvstrata store inspect /var/tmp/kv\n"
		    "  kvstrata store verify /var/tmp/kv --json\n"
		    "  kvstrata store list /var/tmp/kv --limit 10\n"
		    "  kvstrata store rm /var/tmp/kv --namespace 00112233445566778899aabbccddeeff\n",
	.parts = parts,
	.run = run,
};
