/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gets and puts of a Mooncake store: what stands around their calls.
 *
 *   put   seals the payload; what a probe found lately is EXISTS, without a call; a refusal for
 *         room is NO_SPACE, or FAILED when the cluster has no storage at all
 *   get   takes a whole object only: its length, then its seal.  An object of the right length
 *         whose seal is wrong is removed, or its key could never be put again.
 */
#ifndef STORE_MOONCAKE_MOVES_H
#define STORE_MOONCAKE_MOVES_H

#include <kvstrata/store.h>

/* See kvs_store_ops. */
int mooncake_get(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		 uint32_t count, enum kvs_result *result, bool *ret_retired);
int mooncake_put(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		 uint32_t count, enum kvs_result *result, bool *ret_retired);

#endif
