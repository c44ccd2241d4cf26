/* SPDX-License-Identifier: Apache-2.0 */
/* See run.h.  A store sees runs of rows that lie together. */
#include "exec/run.h"

#include "base/err.h"
#include "exec/rows.h"

/* Long enough to fill a pipeline, short enough that one call does not hold a worker for long. */
#define RUN_MAX 128u

static int call_store(struct rows *rows, uint32_t first, uint32_t count, bool *ret_retired)
{
	struct kvs_store *const     store = rows->store;
	const struct op *const      op = rows->op;
	const struct kvs_key *const key = op->keys + first;
	enum kvs_result *const      result = rows->result + first;

	switch (op->kind) {
	case OP_QUERY:
		*ret_retired = true;
		if ((op->flags & OP_LOCK) && store->ops->lock)
			return store->ops->lock(store, key, count, result);
		return store->ops->exists(store, key, count, result);
	case OP_GET:
		return store->ops->get(store, key, op->spans + first, count, result, ret_retired);
	case OP_PUT:
		return store->ops->put(store, key, op->spans + first, count, result, ret_retired);
	case OP_REMOVE:
		*ret_retired = true;
		return store->ops->remove(store, key, count, result);
	case OP_UNLOCK:
	case OP_CANCEL:
		break;
	}
	KVS_PANIC("no store call for %s", op_kind_name(op->kind));
}

/* The store keeps a lock for each row it found. */
static void note_locks(struct rows *rows, uint32_t first, uint32_t count)
{
	uint32_t row;

	for (row = first; row < first + count; row++) {
		if (rows->result[row] == KVS_RESULT_DONE)
			bits_set(rows->locked.words, row);
	}
}

void exec_run(struct kvs_store *store, const struct op *op, struct fact *ret_fact,
	      struct exec_report *ret_report)
{
	const bool  locks = op->kind == OP_QUERY && (op->flags & OP_LOCK) && store->ops->lock;
	struct rows rows;
	uint32_t    first = 0, count;

	rows_begin(&rows, store, op);
	while ((count = rows_next(&rows, first, RUN_MAX, &first)) > 0) {
		bool      retired = false;
		const int rc = call_store(&rows, first, count, &retired);

		rows_answer(&rows, first, count, rc, retired);
		if (locks)
			note_locks(&rows, first, count);
		first += count;
	}
	rows_end(&rows, ret_fact, ret_report);
}
