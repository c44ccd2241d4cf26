/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `kvstrata store`: the strata file from outside.  What its parts share; each is cmd_store_NAME.c.
 *
 * Who only looks opens the file read-only and without its lock: another process may be writing.
 */
#ifndef APP_CMD_STORE_H
#define APP_CMD_STORE_H

#include "app/app.h"
#include "os/os.h"
#include "strata/strata.h"

extern const struct app_command store_format_command;
extern const struct app_command store_inspect_command;
extern const struct app_command store_verify_command;
extern const struct app_command store_list_command;
extern const struct app_command store_rm_command;

/* As app_configure(), for a command with one PATH, which may stand before, between or behind flags. */
int cmd_store_configure(const struct app_command *command, int argc, char **argv, void *settings,
			const char **ret_path, struct conf **ret_conf);

int cmd_store_look(const char *path, struct kvs_store **ret_store, struct kvs_error *err);
/* For writing: exclusive, and never over anything that is no store. */
int cmd_store_take(const char *path, struct kvs_store **ret_store, struct kvs_error *err);

/* Whether somebody has it open for writing, and who: for a sentence. */
bool cmd_store_in_use(const char *path, struct os_lock_holder *ret_holder);
/* "process 4711 (kvstrata)", into CMD_STORE_HOLDER_BYTES; returns it. */
#define CMD_STORE_HOLDER_BYTES 96u
char *cmd_store_holder(const struct os_lock_holder *holder, char *buffer);

/* The path as a page shows it, into CMD_STORE_PATH_BYTES; returns it. */
#define CMD_STORE_PATH_BYTES 256u
char *cmd_store_path(const char *path, char *buffer);

#endif
