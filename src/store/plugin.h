/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores of other people: a table out of a shared object.
 *
 * The object stays loaded until the process ends, however its stores end: one that could not be
 * closed may have threads in its code.
 */
#ifndef STORE_PLUGIN_H
#define STORE_PLUGIN_H

#include <kvstrata/store.h>

#include "base/err.h"

/**
 * Load path and check the table it hands out.
 *
 * Errors  KVS_E_INVALID  the path names nothing that can be loaded;
 *         KVS_E_PROTO    it is no plugin, of another ABI, or its table lacks a function.
 */
int plugin_load(const char *path, const struct kvs_store_ops **ret_ops, struct kvs_error *err);

/* The table's open(), and what the table forgot: a sentence for its error, a store for its success. */
int plugin_open(const struct kvs_store_ops *ops, const struct kvs_store_config *config,
		struct kvs_store **ret_store, struct kvs_error *err);

#endif
