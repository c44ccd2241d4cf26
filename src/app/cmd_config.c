/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `kvstrata config check [manager] FILE`: what replay, or kvs_open_json(), would use, without
 * running it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/options.h"
#include "app/app.h"

/* Rules of a whole file, beyond those of its options. */
typedef int check(const void *settings, struct kvs_error *err);

static int check_manager(const void *settings, struct kvs_error *err)
{
	const struct api_settings *const set = settings;
	char *const                      list = set->stores ? strdup(set->stores) : NULL;
	struct kvs_options               options;
	int                              rc = api_options_from(set, list, &options, err);

	if (rc == 0)
		rc = manager_options_check(&options, err);
	free(list);
	return rc;
}

/* Settings that obey the rules of each option. */
static int print_checked(const char *path, const void *settings, const struct conf *conf,
			 check *whole)
{
	struct kvs_error err;

	if (whole && whole(settings, &err) < 0) {
		err_prefix(&err, "%.96s", path);
		return app_fail(config_command.name, &err);
	}
	conf_print(conf, stdout);
	return APP_DONE;
}

/* Under this command's name, so that an error tells who refuses. */
static int check_file(const struct app_command *rules, char *path, check *whole)
{
	char              *argv[] = { (char *)config_command.name, "--config", path };
	struct app_command command = *rules;
	struct conf       *conf;
	void              *settings = calloc(1, rules->settings_bytes);
	int                status;

	if (!settings) {
		struct kvs_error err = { 0 };

		err_set(&err, -ENOMEM, "%s", strerror(ENOMEM));
		return app_fail(config_command.name, &err);
	}
	command.name = config_command.name;
	status = app_configure(&command, ARRAY_COUNT(argv), argv, settings, &conf);
	if (status == APP_DONE) {
		status = print_checked(path, settings, conf, whole);
		conf_close(conf);
	}
	free(settings);
	return status;
}

static int run(int argc, char **argv)
{
	const struct app_command manager = { .options = api_options,
					     .option_count = api_options_count,
					     .settings_bytes = sizeof(struct api_settings) };
	struct kvs_error         err;

	if (argc == 3 && strcmp(argv[1], "check") == 0)
		return check_file(&replay_command, argv[2], NULL);
	if (argc == 4 && strcmp(argv[1], "check") == 0 && strcmp(argv[2], "manager") == 0)
		return check_file(&manager, argv[3], check_manager);
	err_set(&err, KVS_E_INVALID, "needs two arguments; use kvstrata config %s",
		config_command.usage);
	return app_fail(config_command.name, &err);
}

const struct app_command config_command = {
	.name = "config",
	.usage = "check [manager] FILE",
	.summary = "checks a configuration file and prints what it means",
	.example = "kvstrata config check kvstrata.json",
	.text = "Reads FILE as `kvstrata replay --config FILE` would, and prints every option with its\n"
		"value and where the value came from: default or file.  Unknown keys, wrong types and\n"
		"values out of range are refused with the key, the value and what is allowed.\n"
		"With \"manager\" it reads the file as kvs_open_json() of the library would.\n",
	.examples =
		"  echo '{\"block_bytes\": \"64KiB\", \"store\": \"mem:1GiB\"}' > kvstrata.json\n"
		"  kvstrata config check kvstrata.json\n"
		"  kvstrata replay --config kvstrata.json\n"
		"  echo '{\"host_bytes\": \"4GiB\", \"stores\": [\"mem:8GiB\"]}' > door.json\n"
		"  kvstrata config check manager door.json\n",
	.run = run,
};
