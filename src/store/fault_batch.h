/* SPDX-License-Identifier: Apache-2.0 */
/* The store that fails, from inside: its struct, and how one call of many rows runs. */
#ifndef STORE_FAULT_BATCH_H
#define STORE_FAULT_BATCH_H

#include <kvstrata/store.h>

#include "store/fault_dice.h"
#include "store/fault_hold.h"
#include "store/fault_late.h"

struct fault {
	struct kvs_store     store;
	struct kvs_store_ops ops; /* without what the inner store lacks */
	struct kvs_store    *inner;
	struct fault_dice    dice;
	struct fault_hold    hold;
	struct fault_late    late;
	bool                 has_late; /* the plan has a late_write */
	_Atomic bool         inner_doubts; /* the inner store left something unretired itself */
	struct os_mutex      mutex;    /* guards what scratch points to; held across an inner get */
	void                *scratch;  /* a block for short reads */
	size_t               scratch_bytes;
};

static inline struct fault *fault_of(struct kvs_store *store)
{
	return (struct fault *)store;
}

typedef int look_call(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		      enum kvs_result *result);
typedef int move_call(struct kvs_store *store, const struct kvs_key *key,
		      const struct kvs_span *span, uint32_t count, enum kvs_result *result,
		      bool *ret_retired);

/* One call on its way: span is NULL and look set, or move is. */
struct fault_batch {
	struct fault          *fault;
	const struct kvs_key  *key;
	const struct kvs_span *span;
	enum kvs_result       *result;
	look_call             *look;
	move_call             *move;
	bool                   retired; /* so far */
	uint32_t               answered; /* rows */
	int                    rc;      /* of the last inner call that failed */
};

/* As a call of the table: an error only when nothing was done for any row. */
int fault_batch_run(struct fault_batch *batch, enum fault_op op, uint32_t count);

#endif
