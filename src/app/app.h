/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `kvstrata` command: what its subcommands share.
 *
 * Exit status: 0 done, 1 the work failed, 2 the arguments or the configuration are wrong.
 */
#ifndef APP_APP_H
#define APP_APP_H

#include "base/err.h"

enum app_exit { APP_DONE = 0, APP_FAILED = 1, APP_USAGE = 2 };

/* Each gets its own argv: argv[0] is the subcommand's name, flags follow.  Returns an exit status. */
int cmd_replay(int argc, char **argv);
int cmd_simulate(int argc, char **argv);
int cmd_config(int argc, char **argv);

/* "kvstrata COMMAND: sentence" on stderr, one line; returns status for `return app_fail(...)`. */
int app_fail(const char *command, const struct kvs_error *err, enum app_exit status);

#endif
