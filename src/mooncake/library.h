/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SDK's client library in this process, by dlopen.
 *
 * Symbols   All are resolved before any is called; an error lists those that are missing.
 * Threads   One a lane, "hands", make every call of the SDK, the first of them its create, setup and
 *           destroy: create blocks signals of the thread that calls it.  A call that hangs past the
 *           limit keeps its hand, and what the hand uses, until it comes back; its lane is down.
 * Retirement  A failure that proves nothing is never taken back: nobody can kill a thread.  The library
 *           stays loaded for the life of the process.
 */
#ifndef MOONCAKE_LIBRARY_H
#define MOONCAKE_LIBRARY_H

#include "mooncake/way.h"

/* Where the settings name no library: what the environment says, then this name. */
#define MOONCAKE_LIBRARY_VARIABLE "MOONCAKE_STORE_LIBRARY"
#define MOONCAKE_LIBRARY_NAME "libmooncake_store.so"

/**
 * Load the library, create a client, set it up.
 *
 * Errors  KVS_E_INVALID  it cannot be loaded, or lacks symbols, all of them named; the settings;
 *         -ECONNREFUSED, -errno  no TCP connection to the master;
 *         -ETIMEDOUT, -EIO  setup hung past connect_timeout_ns, or failed, with its code, or a first
 *                        lookup did.  Where `required` is not set the last two lines are no
 *                        errors: the lanes come up when asked.
 * Left    A thread that hangs in an open() that failed is left behind, with the memory it uses, and
 *         frees both when it comes back.
 */
int mooncake_library_open(const struct mooncake_settings *settings, struct mooncake_way **ret_way,
			  struct kvs_error *err);

#endif
