/* SPDX-License-Identifier: Apache-2.0 */
/* The `kvstrata` command: finds the subcommand and runs it, or explains. */
#include <stdio.h>
#include <string.h>

#include "app/app.h"
#include "base/text.h"
#include "conf/nearest.h"
#include "os/os.h"

/* In the order in which a newcomer would try them; NULL ends it. */
static const struct app_command *const commands[] = {
	&replay_command,
	&simulate_command,
	&store_command,
	&config_command,
	&bench_command,
	NULL,
};

static void print_help(void)
{
	size_t i;

	printf("kvstrata keeps the KV cache of LLM inference in three strata: Device, Host and Store.\n"
	       "\n"
	       "This command shows what such a cache does for your traffic, without a model or a GPU:\n"
	       "replay moves real bytes through all strata and checks them, simulate only counts hits,\n"
	       "for sizing.\n"
	       "\n"
	       "Usage: kvstrata COMMAND [FLAGS]\n"
	       "\n"
	       "Commands\n");
	for (i = 0; commands[i]; i++) {
		printf("  %-10s %s\n             $ %s\n", commands[i]->name, commands[i]->summary,
		       commands[i]->example);
	}
	printf("\n"
	       "More\n"
	       "  kvstrata COMMAND --help   what it does, every flag, examples\n"
	       "  kvstrata --version        the version\n"
	       "\n"
	       "Flags can also come from a JSON file with --config FILE: --block-bytes 64KiB is then\n"
	       "{\"block_bytes\": \"64KiB\"}.\n"
	       "\n"
	       "Exit status: 0 done, 1 the work failed, 2 the arguments or the configuration are wrong.\n");
}

static const struct app_command *find(const char *name)
{
	size_t i;

	for (i = 0; commands[i]; i++) {
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	}
	return NULL;
}

static int refuse_unknown(const char *name)
{
	struct nearest nearest;
	char           hint[NEAREST_HINT_BYTES];
	char           quoted[65];
	size_t         i;

	nearest_init(&nearest, name);
	nearest_offer(&nearest, "help");
	for (i = 0; commands[i]; i++)
		nearest_offer(&nearest, commands[i]->name);
	snprintf(quoted, sizeof(quoted), "%s", name);
	text_mask_secrets(text_printable(quoted));
	fprintf(stderr, "kvstrata: \"%s\" is not a command; %s\n", quoted,
		nearest_hint(&nearest, "kvstrata --help lists them", hint));
	return APP_USAGE;
}

static bool is_help_flag(const char *argument)
{
	return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static int explain(const char *name)
{
	const struct app_command *command = find(name);

	if (!command)
		return refuse_unknown(name);
	app_help(command);
	return APP_DONE;
}

/* The command that the word behind its name chooses; the command itself where it chooses none. */
static const struct app_command *find_part(const struct app_command *command, const char *word)
{
	const size_t skip = strlen(command->name) + 1;
	size_t       i;

	for (i = 0; word && command->parts && command->parts[i]; i++) {
		if (strcmp(command->parts[i]->name + skip, word) == 0)
			return command->parts[i];
	}
	return command;
}

static int run_command(int argc, char **argv)
{
	const struct app_command *whole = find(argv[0]);
	const struct app_command *command;
	int                       i;

	if (!whole)
		return refuse_unknown(argv[0]);
	command = find_part(whole, argv[1]);
	for (i = 1; i < argc; i++) {
		if (is_help_flag(argv[i])) {
			app_help(command);
			return APP_DONE;
		}
	}
	return command == whole ? command->run(argc, argv) : command->run(argc - 1, argv + 1);
}

static int dispatch(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "kvstrata: needs a command; kvstrata --help lists them\n");
		return APP_USAGE;
	}
	if (strcmp(argv[1], "help") == 0 && argc > 2)
		return explain(argv[2]);
	if (strcmp(argv[1], "help") == 0 || is_help_flag(argv[1])) {
		print_help();
		return APP_DONE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("kvstrata %s\n", kvs_version());
		return APP_DONE;
	}
	return run_command(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
	struct kvs_error err;
	int              status;

	os_program_start();
	status = dispatch(argc, argv);

	/* A report that did not reach its reader is no success; whoever failed has said why. */
	if (app_flush(&err) < 0 && status == APP_DONE) {
		fprintf(stderr, "kvstrata: %s\n", err.message);
		status = APP_FAILED;
	}
	return status;
}
