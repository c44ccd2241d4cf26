/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An adapter and one batch of numbered objects, as a controller has them.
 *
 * Calls that await something sleep on the adapter's descriptors, so a lost one hangs here and shows.
 */
#ifndef LIB_DESK_H
#define LIB_DESK_H

#include "adapter/adapter.h"
#include "crate.h"

#define DESK_KEYS 2500u /* three ops */
#define DESK_FOREVER_NS UINT64_MAX

struct batch {
	struct kvs_key  keys[DESK_KEYS];
	struct kvs_span spans[DESK_KEYS];
	uint64_t        bytes[DESK_KEYS][CRATE_BYTES / 8];
	uint64_t        words[DESK_KEYS / 64 + 1]; /* of the last lookup or load */
};

struct desk {
	struct crate    crate; /* the store, unless there is another */
	struct adapter *adapter;
	int             epoll_fd; /* on all three descriptors, tagged with their kind */
	struct batch    batch;
};

/* Room for 8 ops a kind and 64 in the executor, one query worker, two of each other class. */
extern const struct adapter_options desk_options;

/* On a crate, with locks of its own or not; on another store, which is the adapter's now. */
struct desk *desk_new(bool locks, const struct adapter_options *options);
struct desk *desk_on(struct kvs_store *store, const struct adapter_options *options);

/* The adapter is closed already. */
void desk_free(struct desk *desk);

/* cmocka's, on a crate that locks: at the end nothing is locked, whatever the test did. */
int desk_setup(void **state);
int desk_teardown(void **state);

/* Objects number, number + 1, ...; the buffers hold what a store of them would write. */
struct batch *desk_name(struct desk *desk, uint32_t number, uint32_t count);

bool desk_is_readable(const struct desk *desk, enum task_kind kind);
void desk_await(const struct desk *desk, enum task_kind kind);

/* Submit and take. */
struct task_result desk_store(struct desk *desk, uint32_t number, uint32_t count);
size_t             desk_lookup(struct desk *desk, uint32_t number, uint32_t count); /* found */
/* How many came; those rows have their bytes and no other buffer was touched. */
size_t             desk_load(struct desk *desk, uint32_t number, uint32_t count);
void               desk_unlock(struct desk *desk, uint32_t number, uint32_t count);

/* One half of them each. */
struct task_result desk_pop(struct desk *desk);
void               desk_await_lookup(struct desk *desk, uint64_t id);
uint64_t           desk_submit_load(struct desk *desk, uint32_t number, uint32_t count);
bool               desk_await_load(struct desk *desk, uint64_t id); /* whether it retired */

#endif
