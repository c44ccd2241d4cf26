/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of kvs_options: every field's kind, range and default, once for the struct and for the
 * configuration file.
 *
 * A line is X(kind, field, least, most, multiple, fallback, help); least, most and multiple are 0
 * where the kind has none.  The fallback is what KVS_OPTIONS_INIT says, as a user would write it: a
 * test compares them.
 *
 *   SIZE, DURATION, LARGE  uint64_t     COUNT  uint32_t     NUMBER  double     SWITCH  bool
 *   NAME, POLICY           const char *; POLICY may also be plugin:PATH
 *   LIST                   specs, NULL behind the last
 */
#ifndef MANAGER_OPTIONS_H
#define MANAGER_OPTIONS_H

#include <kvstrata/manager.h>

#include "base/err.h"
#include "ctrl/ctrl.h"

/* A piece of the arena is a slice of 1 GiB, and an object with its trailer lies in one. */
#define OPTIONS_OBJECT_MAX ((UINT64_C(1) << 30) - 4096)
#define OPTIONS_HOST_MAX   (UINT64_C(1) << 46)

/* Together with what the controllers need they are what Host can have. */
#define OPTIONS_CLIENTS_MAX    1024
#define OPTIONS_PREFETCHES_MAX 2048

/* What the prefetch controller's tables have room for, requests that were cancelled included. */
#define OPTIONS_KEYS_MAX (1u << 26)

/* 2^63 ns is as long as the kernel counts. */
#define OPTIONS_FOREVER (UINT64_C(1) << 63)

#define MANAGER_OPTIONS(X) \
	X(SIZE, host_bytes, 16384, OPTIONS_HOST_MAX, 4096, "1GiB", \
	  "Host memory for objects, their trailers included") \
	X(SIZE, object_bytes, 4096, OPTIONS_OBJECT_MAX, 4096, "16MiB", "the largest object") \
	X(COUNT, objects, 0, 1 << 26, 0, "0", "at most so many in Host; 0: one for each 32 KiB of it") \
	X(COUNT, clients, 1, OPTIONS_CLIENTS_MAX, 0, "64", "open at once") \
	X(NAME, host_policy, 0, 0, 0, "lru", "which object goes first") \
	X(NUMBER, high, 0.01, 1, 0, "0.95", "part of Host above which room is made ahead of need") \
	X(NUMBER, low, 0.01, 1, 0, "0.90", "and down to which") \
	X(DURATION, write_ttl_ns, 1000000, OPTIONS_FOREVER, 0, "600s", "of a reservation") \
	X(DURATION, read_ttl_ns, 1000000, OPTIONS_FOREVER, 0, "300s", "of a lock") \
	X(SWITCH, isolate, 0, 0, 0, "false", "namespaces are tenants with quotas") \
	X(SIZE, quota_bytes, 0, OPTIONS_HOST_MAX, 0, "0", "of a tenant without one of its own; 0: none") \
	X(LIST, stores, 0, 0, 0, NULL, "store specs, in order") \
	X(NAME, store_evict_policy, 0, 0, 0, "lru", "which object goes first in stores that evict") \
	X(POLICY, store_policy, 0, 0, 0, "default", "which objects go to which store") \
	X(POLICY, prefetch_policy, 0, 0, 0, "default", "which store an object comes from") \
	X(COUNT, store_in_flight, 1, 256, 0, "8", "tasks a store") \
	X(SIZE, store_in_flight_bytes, 0, OPTIONS_HOST_MAX, 0, "256MiB", "a store; 0: no limit") \
	X(COUNT, store_queue, 1, CTRL_QUEUE_MAX, 0, "65536", "keys that wait, a store") \
	X(COUNT, prefetch_in_flight, 1, 256, 0, "8", "requests") \
	X(SIZE, prefetch_in_flight_bytes, 0, OPTIONS_HOST_MAX, 0, "0", \
	  "of Host reserved by them; 0: no limit") \
	X(COUNT, prefetches, 1, OPTIONS_PREFETCHES_MAX, 0, "64", "not yet released, all clients") \
	X(COUNT, prefetch_keys, 1, KVS_PREFETCH_MAX, 0, "4096", "of one prefetch") \
	X(DURATION, prefetch_deadline_ns, 0, OPTIONS_FOREVER, 0, "0s", \
	  "where a prefetch has none; 0s: none") \
	X(COUNT, query_workers, 1, 62, 0, "1", "threads a store that look objects up") \
	X(COUNT, get_workers, 1, 62, 0, "2", "and that load") \
	X(COUNT, put_workers, 1, 62, 0, "1", "and that store") \
	X(DURATION, close_timeout_ns, 0, OPTIONS_FOREVER, 0, "5s", "how long a close waits for storage")

/*
 * Every field within its range, and those that depend on each other: KVS_E_INVALID with field,
 * value, rule.
 */
int manager_options_check(const struct kvs_options *options, struct kvs_error *err);

/* Ops of OP_KEYS_MAX keys that all prefetches under way can need of a store at once. */
uint32_t manager_load_ops(const struct kvs_options *options);

#endif
