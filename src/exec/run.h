/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One op against one store: calls the store and states what happened as a fact.
 *
 * Beside the fact goes a report: what moved, and what the calls say of the store's health.
 *
 * Thread   Any; touches only the op, its spans and the store.  Workers call it without a lock, the
 *          simulator at a time of its choice.
 */
#ifndef EXEC_RUN_H
#define EXEC_RUN_H

#include <kvstrata/store.h>
#include "op/op.h"

/* Bytes that moved, by this owner's store calls; idempotent puts and folded rows move none. */
struct exec_moved {
	uint64_t put_keys;     /* stored or already there */
	uint64_t put_new_keys;
	uint64_t put_bytes;    /* of the new ones */
	uint64_t get_keys;     /* whole and verified */
	uint64_t get_bytes;
	uint64_t corrupt_keys;
	uint64_t no_space_keys;
};

/*
 * Of an outage: a call that failed, a row that FAILED or said what nobody understands, a put that
 * has not retired.  Never a miss, a corrupt object or a refusal for capacity: those are answers.
 */
enum exec_evidence {
	EXEC_EVIDENCE_NONE, /* the store was not asked, or what it said proves nothing */
	EXEC_EVIDENCE_UP,
	EXEC_EVIDENCE_OUTAGE
};

struct exec_report {
	struct exec_moved  moved;
	enum exec_evidence evidence;
	struct op_mask     locked; /* rows for which the store took a lock */
	bool               disbelieved; /* it is unretired against the store's word */
};

/*
 * Equal keys of the op reach the store once; the other rows get what became of the first.  Rows of
 * other owners succeed and are left alone.
 */
void exec_run(struct kvs_store *store, const struct op *op, struct fact *ret_fact,
	      struct exec_report *ret_report);

#endif
