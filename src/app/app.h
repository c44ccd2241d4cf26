/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `kvstrata` command: what its subcommands share.
 *
 * A subcommand is one constant struct app_command in cmd_<name>.c; the table in main.c lists them.
 * main.c answers --help from it, so a subcommand only declares its words and options and runs.
 *
 * Exit status: 0 done, 1 the work failed, 2 the arguments or the configuration are wrong.
 */
#ifndef APP_APP_H
#define APP_APP_H

#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "conf/conf.h"

enum app_exit { APP_DONE = 0, APP_FAILED = 1, APP_USAGE = 2 };

struct app_command {
	const char *name;     /* "replay" */
	const char *usage;    /* what follows the name: "[FLAGS]", "check FILE" */
	const char *summary;  /* one line for the help of what it is a part of, without a full stop */
	const char *example;  /* one command line for `kvstrata --help` */
	const char *text;     /* paragraphs: what it does and what it prints; ends with a newline */
	const char *examples; /* lines for `kvstrata NAME --help`, two blanks in front; ends with a newline */

	const struct conf_option *options;
	size_t                    option_count;
	size_t                    settings_bytes; /* of the struct with the options' fields; 0: none */

	/*
	 * Commands of its own, NULL-terminated, each named "NAME PART"; NULL: none.  The word behind
	 * NAME chooses one; run() answers where it chooses none.
	 */
	const struct app_command *const *parts;

	/* argv[0] is the last word of the name; never sees --help.  Returns an exit status. */
	int (*run)(int argc, char **argv);
};

/* Name and place of an option whose field is called like it. */
#define OPTION(settings, field) .name = #field, .offset = offsetof(struct settings, field)

extern const struct app_command replay_command;
extern const struct app_command simulate_command;
extern const struct app_command config_command;
extern const struct app_command bench_command;
extern const struct app_command store_command;

/**
 * Read defaults, --config and the flags behind argv[0] into settings (zeroed, settings_bytes).
 *
 * Owner   *ret_conf owns the texts in settings; conf_close() when done.
 * Errors  Returns APP_USAGE after printing the sentence; APP_DONE otherwise.
 */
int app_configure(const struct app_command *command, int argc, char **argv, void *settings,
		  struct conf **ret_conf);

/* Usage, text, flags and examples on stdout. */
void app_help(const struct app_command *command);

/* KVS_E_INVALID for the first flag that only generated requests obey; trace may be NULL. */
int app_check_trace(const struct app_command *command, const struct conf *conf, const char *trace,
		    struct kvs_error *err);

/* KVS_E_INVALID when a flag's output file is also an input; both may be NULL. */
int app_check_output(const char *flag, const char *output, const char *input,
		     struct kvs_error *err);

/*
 * For the run() of a command with parts, where the arguments choose none: says so, with the part that
 * is nearest to what was written.  noun names a part: "bench".
 */
int app_refuse_part(const struct app_command *command, const char *noun, int argc, char **argv);

/*
 * "kvstrata COMMAND: sentence" on stderr, one line.  Returns the exit status: what is the user's to
 * mend, KVS_E_INVALID, is APP_USAGE; what the machine refused is APP_FAILED.
 */
int app_fail(const char *command, const struct kvs_error *err);

/* Everything printed has reached its reader, or a sentence why not. */
int app_flush(struct kvs_error *err);

/*
 * For who prints without end: behind each piece, 0 or the -errno of a piece that did not arrive.
 * app_flush() at the end finds that one failed, but no longer why.
 */
int app_printed(void);
/* "standard output: ..." for one of these; returns it. */
int app_refuse_output(int rc, struct kvs_error *err);

/* A file to write, named by option name; whoever closes it learns whether all of it was written. */
int app_open_file(const char *name, const char *path, FILE **ret_file, struct kvs_error *err);
int app_close_file(FILE *file, const char *name, const char *path, struct kvs_error *err);

#endif
