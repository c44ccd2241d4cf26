/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manager: Host objects, their stores and both controllers as one thing.
 *
 * It owns the arena, the Host, the adapters, the controllers, and the table of prefetches; public functions
 * (api/) check arguments and call it.  Its meaning is kvstrata/manager.h's; here is what only the library sees.
 *
 * Upkeep   One thread: expires what is due and brings Host below its watermark, when pressed and once a second.
 * Order    of closing: prefetch controller, store controller, adapters, clients, Host, arena.
 */
#ifndef MANAGER_MANAGER_H
#define MANAGER_MANAGER_H

#include <kvstrata/manager.h>

#include "base/err.h"

struct manager;

/* options are complete (struct_size and all).  Errors as kvs_open()'s. */
int manager_open(const struct kvs_options *options, struct manager **ret_manager,
		 struct kvs_error *err);
int manager_close(struct manager *manager);

#endif
