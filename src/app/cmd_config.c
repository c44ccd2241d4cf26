/* SPDX-License-Identifier: Apache-2.0 */
/* `kvstrata config check FILE`: what replay would use, without running it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"

static int check_file(char *path)
{
	char       *argv[] = { (char *)config_command.name, "--config", path };
	struct conf *conf;
	void        *settings = calloc(1, replay_command.settings_bytes);
	/*
	 * Replay's options and rules under this command's name, so that an error tells who refuses.
	 */
	struct app_command replay = replay_command;
	int                status;

	if (!settings) {
		struct kvs_error err = { 0 };

		err_set(&err, -ENOMEM, "%s", strerror(ENOMEM));
		return app_fail(config_command.name, &err);
	}
	replay.name = config_command.name;
	status = app_configure(&replay, ARRAY_COUNT(argv), argv, settings, &conf);
	if (status == APP_DONE) {
		conf_print(conf, stdout);
		conf_close(conf);
	}
	free(settings);
	return status;
}

static int run(int argc, char **argv)
{
	struct kvs_error err;

	if (argc != 3 || strcmp(argv[1], "check") != 0) {
		err_set(&err, KVS_E_INVALID, "needs two arguments; use kvstrata config %s",
			config_command.usage);
		return app_fail(config_command.name, &err);
	}
	return check_file(argv[2]);
}

const struct app_command config_command = {
	.name = "config",
	.usage = "check FILE",
	.summary = "checks a configuration file and prints what it means",
	.example = "kvstrata config check kvstrata.json",
	.text = "Reads FILE as `kvstrata replay --config FILE` would, and prints every option with its\n"
		"value and where the value came from: default or file.  Unknown keys, wrong types and\n"
		"values out of range are refused with the key, the value and what is allowed.\n",
	.examples =
		"  echo '{\"block_bytes\": \"64KiB\", \"store\": \"mem:1GiB\"}' > kvstrata.json\n"
		"  kvstrata config check kvstrata.json\n"
		"  kvstrata replay --config kvstrata.json\n",
	.run = run,
};
