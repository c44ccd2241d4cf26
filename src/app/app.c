/* SPDX-License-Identifier: Apache-2.0 */
/* What every subcommand does alike: read its settings, explain itself, fail in one line. */
#include "app/app.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "conf/nearest.h"
#include "os/os.h"

int app_fail(const char *command, const struct kvs_error *err)
{
	char sentence[sizeof(err->message)];

	/* It quotes what came from files and flags: one line, and nothing that moves a terminal. */
	memcpy(sentence, err->message, sizeof(sentence));
	fprintf(stderr, "kvstrata %s: %s\n", command, text_mask_secrets(text_printable(sentence)));
	return err->code == KVS_E_INVALID ? APP_USAGE : APP_FAILED;
}

int app_configure(const struct app_command *command, int argc, char **argv, void *settings,
		  struct conf **ret_conf)
{
	struct kvs_error err;

	if (conf_read(command->options, command->option_count, settings, argc - 1, argv + 1,
		      ret_conf, &err) == 0)
		return APP_DONE;
	/* A configuration file that cannot be read is a wrong argument, too. */
	app_fail(command->name, &err);
	return APP_USAGE;
}

int app_refuse_part(const struct app_command *command, const char *noun, int argc, char **argv)
{
	const size_t     skip = strlen(command->name) + 1;
	char             hint[NEAREST_HINT_BYTES], otherwise[64];
	struct nearest   nearest;
	struct kvs_error err;
	size_t           i;

	snprintf(otherwise, sizeof(otherwise), "kvstrata %s --help lists them", command->name);
	if (argc < 2) {
		err_set(&err, KVS_E_INVALID, "needs the name of a %s; %s", noun, otherwise);
		return app_fail(command->name, &err);
	}
	nearest_init(&nearest, argv[1]);
	for (i = 0; command->parts[i]; i++)
		nearest_offer(&nearest, command->parts[i]->name + skip);
	err_set(&err, KVS_E_INVALID, "\"%.64s\" is not a %s; %s", argv[1], noun,
		nearest_hint(&nearest, otherwise, hint));
	return app_fail(command->name, &err);
}

/* A flag without effect is a misunderstanding; a file may well serve several runs. */
int app_check_trace(const struct app_command *command, const struct conf *conf, const char *trace,
		    struct kvs_error *err)
{
	size_t i;

	for (i = 0; trace && i < command->option_count; i++) {
		const char *name = command->options[i].name;

		if ((strcmp(name, "seed") == 0 || strcmp(name, "requests") == 0) &&
		    conf_source(conf, i) == CONF_FROM_FLAG) {
			return err_set(err, KVS_E_INVALID,
				       "--%s: given with --trace; it is for generated requests only",
				       name);
		}
	}
	return 0;
}

/* 0, or the first errno; a failure of long ago has left none. */
static int flush(FILE *file)
{
	const bool failed_before = ferror(file) != 0;

	if (fflush(file) != 0)
		return errno;
	return failed_before ? EIO : 0;
}

int app_flush(struct kvs_error *err)
{
	const int failed = flush(stdout);

	return failed ? app_refuse_output(-failed, err) : 0;
}

int app_printed(void)
{
	if (!ferror(stdout))
		return 0;
	return errno ? -errno : -EIO;
}

int app_refuse_output(int rc, struct kvs_error *err)
{
	return err_set(err, rc, "standard output: %s", kvs_strerror(rc));
}

int app_open_file(const char *name, const char *path, FILE **ret_file, struct kvs_error *err)
{
	FILE *const file = fopen(path, "we");

	if (!file) {
		return err_set(err, -errno, "%s: cannot open %.120s: %s", name, path,
			       strerror(errno));
	}
	*ret_file = file;
	return 0;
}

int app_close_file(FILE *file, const char *name, const char *path, struct kvs_error *err)
{
	int failed = flush(file);

	if (fclose(file) != 0 && !failed)
		failed = errno;
	if (!failed)
		return 0;
	return err_set(err, -failed, "%s: cannot write %.120s: %s", name, path, strerror(failed));
}

static void print_parts(const struct app_command *command)
{
	const size_t skip = strlen(command->name) + 1;
	size_t       i;

	if (!command->parts)
		return;
	printf("\nCommands\n");
	for (i = 0; command->parts[i]; i++)
		printf("  %-8s %s\n", command->parts[i]->name + skip, command->parts[i]->summary);
}

void app_help(const struct app_command *command)
{
	printf("Usage: kvstrata %s %s\n\n%s", command->name, command->usage, command->text);
	print_parts(command);
	if (command->option_count > 0) {
		printf("\nFlags\n");
		conf_help(command->options, command->option_count, stdout);
	}
	printf("\nExamples\n%s", command->examples);
}

/* A file that does not exist yet has its name only. */
int app_check_output(const char *flag, const char *output, const char *input, struct kvs_error *err)
{
	if (!output || !input || (strcmp(output, input) != 0 && !os_file_same(output, input)))
		return 0;
	return err_set(err, KVS_E_INVALID, "--%s: \"%.100s\" is an input of this run; use another file",
		       flag, output);
}
