/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry of policies: one table by name, and what shared objects bring.
 *
 *   store       default    every key to every adapter, Host keeps it
 *               skip-host  the same, then Host drops it: for a Host that is a buffer only
 *   prefetch    default    the lowest adapter that has the key; what is loaded goes with its reader
 *               retain     the same plan; what is loaded stays in Host
 *   either      plugin:./libNAME.so
 */
#ifndef CTRL_POLICY_H
#define CTRL_POLICY_H

#include <kvstrata/policy.h>

#include "base/err.h"

/* NULL-terminated: the choices of every option that takes one; plugin:PATH is one more. */
extern const char *const store_policy_names[];
extern const char *const prefetch_policy_names[];

/**
 * Find a policy by name, or load it.
 *
 * Owner   The table lives as long as the process: a shared object that was accepted is never
 *         unloaded.
 * Errors  KVS_E_INVALID  the name, with those that are known; a path without a /; the loader's
 *                        sentence;
 *         KVS_E_PROTO    no policy plugin, another ABI (both numbers named), no such policy in it,
 *                        or one that lacks a function.
 */
int store_policy_find(const char *name, const struct kvs_store_policy **ret_policy,
		      struct kvs_error *err);
int prefetch_policy_find(const char *name, const struct kvs_prefetch_policy **ret_policy,
			 struct kvs_error *err);

#endif
