/* SPDX-License-Identifier: Apache-2.0 */
/* What every subcommand does alike: read its settings, explain itself, fail in one line. */
#include "app/app.h"

#include <stdio.h>

int app_fail(const char *command, const struct kvs_error *err, enum app_exit status)
{
	fprintf(stderr, "kvstrata %s: %s\n", command, err->message);
	return (int)status;
}

int app_configure(const struct app_command *command, int argc, char **argv, void *settings,
		  struct conf **ret_conf)
{
	struct kvs_error err;
	struct conf     *conf;
	int rc = conf_read(command->options, command->option_count, settings, argc - 1, argv + 1,
			   &conf, &err);

	if (rc < 0)
		return app_fail(command->name, &err, APP_USAGE);
	if (command->check && command->check(settings, &err) < 0) {
		conf_close(conf);
		return app_fail(command->name, &err, APP_USAGE);
	}
	*ret_conf = conf;
	return APP_DONE;
}

void app_help(const struct app_command *command)
{
	printf("Usage: kvstrata %s %s\n\n%s", command->name, command->usage, command->text);
	if (command->option_count > 0) {
		printf("\nFlags\n");
		conf_help(command->options, command->option_count, stdout);
	}
	printf("\nExamples\n%s", command->examples);
}
