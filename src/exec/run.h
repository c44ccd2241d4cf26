/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One op against one store: calls the store and states what happened as a fact.
 *
 * Thread   Any; touches only the op, its spans and the store.  Workers call it without a lock, the
 *          simulator at a time of its choice.
 */
#ifndef EXEC_RUN_H
#define EXEC_RUN_H

#include <kvstrata/store.h>
#include "op/op.h"

/* Bytes that moved, by this owner's store calls; idempotent puts move none. */
struct exec_moved {
	uint64_t put_keys;     /* stored or already there */
	uint64_t put_new_keys;
	uint64_t put_bytes;    /* of the new ones */
	uint64_t get_keys;     /* whole and verified */
	uint64_t get_bytes;
	uint64_t corrupt_keys;
	uint64_t no_space_keys;
};

void exec_run(struct kvs_store *store, const struct op *op, struct fact *ret_fact,
	      struct exec_moved *ret_moved);

#endif
