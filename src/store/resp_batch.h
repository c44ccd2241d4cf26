/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One batch over the connections it leased: a sliding window of commands on each, and one wait for
 * all.
 *
 * A row goes out when a connection has a free slot and less than bytes_in_flight are on their way
 * to or from the whole store.  A batch with less than two rows on their way may always send one, so
 * that none can starve another and large objects follow each other without a gap.
 *
 * A connection that breaks, or whose oldest reply is late, is closed with FAILED for its rows; the
 * others carry on, and without any the rows left are FAILED too.
 */
#ifndef STORE_RESP_BATCH_H
#define STORE_RESP_BATCH_H

#include "store/resp_pool.h"

struct resp_batch {
	enum resp_kind         kind;
	const struct kvs_key  *key;
	const struct kvs_span *span; /* NULL for what has no payload */
	uint32_t               count;
	enum kvs_result       *result;
};

/**
 * Lease, run, return.  Nothing of a span is touched once this has returned, however it went.
 *
 * Errors  -errno or KVS_E_* when no connection could be had: every result is UNKNOWN.
 */
int resp_batch_run(struct resp_pool *pool, const struct resp_batch *batch);

#endif
