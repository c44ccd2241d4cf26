/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores by name.
 *
 *   none                          no store
 *   mem:4GiB                      payload in this process's memory; gone at close
 *   mooncake:HOST:PORT?way=agent  a Mooncake Store cluster; mooncake_settings.h has all of it
 *   resp:HOST:PORT?connections=2  a Redis server; resp_settings.h has all of it
 *   strata:PATH?capacity=8GiB     one file, everything in it counted against its capacity
 *   nil:?hit=0                    keeps nothing: for benchmarks
 *   fault:PLAN.json               any of the others, failing on purpose: for tests, see fault_plan.h
 *   plugin:./libNAME.so           a backend of your own; options go to its open()
 *
 * Options follow a `?` as key=value, joined by `&`; the first `?` ends the path.  Two of mem and
 * strata are for tests only: corrupt_every=N flips a byte of what every Nth get read, before it is
 * verified, and verify=off hands out what was read unchecked.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <kvstrata/store.h>

#include "base/err.h"

/**
 * Open the store that spec names, for objects of at most block_bytes.
 *
 * Shape   block_bytes is a multiple of 4 KiB; spans have ARENA_TRAILER_BYTES of room behind their
 *         payload.  *ret_store is NULL for `none`.
 * Owner   The caller's, until ops->close().
 * Errors  KVS_E_INVALID  the spec, the size or the policy, by field;
 *         KVS_E_BUSY     another process or store has the file open;
 *         KVS_E_PROTO    the file is no strata file, damaged, or of another geometry: it stays as
 *                        it was; or no plugin of this ABI;
 *         -errno         the file cannot be opened or created, or memory is short.
 */
int store_open(const char *spec, uint64_t block_bytes, const char *evict_policy,
	       struct kvs_store **ret_store, struct kvs_error *err);

#endif
