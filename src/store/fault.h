/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store that fails on purpose, around any other: for tests.
 *
 * Faults fall on every Nth key of a kind of call, counted over all threads from a phase that the
 * seed gives; 0 is never.  A failed get or put does not reach the inner store.  A corrupted get
 * comes after the inner store's check: the wrong byte reaches the caller, which is what a store
 * without verification does.
 */
#ifndef STORE_FAULT_H
#define STORE_FAULT_H

#include <kvstrata/store.h>

#include "base/err.h"

struct store_fault {
	uint64_t seed;
	uint64_t corrupt_get_every;  /* DONE with one byte flipped */
	uint64_t fail_get_every;     /* KVS_RESULT_FAILED */
	uint64_t fail_put_every;     /* KVS_RESULT_FAILED */
	uint64_t no_space_put_every; /* KVS_RESULT_NO_SPACE */
};

/* On success inner is the wrapper's and closes with it.  -ENOMEM. */
int store_fault_open(struct kvs_store *inner, const struct store_fault *plan,
		     struct kvs_store **ret_store, struct kvs_error *err);

#endif
