/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of an op on their way through a store: which are asked for, what came back, and what that
 * becomes in the fact.
 *
 * Equal keys are folded: the store is asked for the first, the others share its result.  A GET of
 * one key in two lengths is two questions, so those rows never lie in one batch.  Rows of other
 * owners are not asked for and succeed.
 *
 * Path     run.c asks in batches, async.c row by row; both answer here.
 * Threads  None of its own: the worker's that runs the op.
 */
#ifndef EXEC_ROWS_H
#define EXEC_ROWS_H

#include "exec/run.h"

struct rows {
	struct kvs_store  *store;
	const struct op   *op;
	bool               retired; /* as far as answers came */
	bool               disbelieved; /* some of them, in that they retired */
	enum exec_evidence evidence;
	struct op_mask     locked;
	struct op_mask     cut;     /* a batch begins here: its key was asked for in another length */
	uint16_t           first[OP_KEYS_MAX];  /* the row that is asked for this one; often itself */
	enum kvs_result    result[OP_KEYS_MAX]; /* UNKNOWN until answered */
};

/* The op is held until rows_end(). */
void rows_begin(struct rows *rows, struct kvs_store *store, const struct op *op);

/*
 * The next rows to ask for, from row `from` on: *ret_first and the next, at most `most` in a row.
 * Returns how many; 0 at the end.
 */
uint32_t rows_next(const struct rows *rows, uint32_t from, uint32_t most, uint32_t *ret_first);

/*
 * Rows first .. first + count - 1 have their results, or with rc < 0 none; `retired` is what the
 * store says of their spans.
 */
void rows_answer(struct rows *rows, uint32_t first, uint32_t count, int rc, bool retired);

/* Rows that nobody answered: the store said nothing of their spans. */
void rows_lose(struct rows *rows);

void rows_end(struct rows *rows, struct fact *ret_fact, struct exec_report *ret_report);

#endif
