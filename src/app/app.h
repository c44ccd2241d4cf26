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

#include "base/err.h"
#include "conf/conf.h"

enum app_exit { APP_DONE = 0, APP_FAILED = 1, APP_USAGE = 2 };

struct app_command {
	const char *name;     /* "replay" */
	const char *usage;    /* what follows the name: "[FLAGS]", "check FILE" */
	const char *summary;  /* one line for `kvstrata --help`, without a full stop */
	const char *example;  /* one command line for `kvstrata --help` */
	const char *text;     /* paragraphs: what it does and what it prints; ends with a newline */
	const char *examples; /* lines for `kvstrata NAME --help`, two blanks in front; ends with a newline */

	const struct conf_option *options;
	size_t                    option_count;
	size_t settings_bytes; /* of the struct that the options' offsets refer to; 0 without options */

	/*
	 * Combinations that no single option can refuse: 0, or KVS_E_INVALID with a sentence.
	 * NULL: none.
	 */
	int (*check)(const void *settings, struct kvs_error *err);

	/*
	 * Commands of its own, NULL-terminated, each named "NAME PART"; NULL: none.  The word behind
	 * NAME chooses one; run() answers where it chooses none.
	 */
	const struct app_command *const *parts;

	/* argv[0] is the last word of the name; never sees --help.  Returns an exit status. */
	int (*run)(int argc, char **argv);
};

extern const struct app_command replay_command;
extern const struct app_command simulate_command;
extern const struct app_command config_command;
extern const struct app_command bench_command;

/**
 * Read defaults, --config and the flags behind argv[0] into settings (zeroed, settings_bytes), then
 * check them.
 *
 * Owner   *ret_conf owns the texts in settings; conf_close() when done.
 * Errors  Returns APP_USAGE after printing the sentence; APP_DONE otherwise.
 */
int app_configure(const struct app_command *command, int argc, char **argv, void *settings,
		  struct conf **ret_conf);

/* Usage, text, flags and examples on stdout. */
void app_help(const struct app_command *command);

/* "kvstrata COMMAND: sentence" on stderr, one line; returns status for `return app_fail(...)`. */
int app_fail(const char *command, const struct kvs_error *err, enum app_exit status);

#endif
