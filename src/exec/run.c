/* SPDX-License-Identifier: Apache-2.0 */
/* See run.h.  Rows of other owners succeed and are left alone; a store sees runs of owned rows. */
#include "exec/run.h"

#include "base/err.h"

/* A page holds its results on the worker's stack. */
#define RUN_MAX 128

static int call_store(struct kvs_store *store, const struct op *op, uint32_t first, uint32_t count,
		      enum kvs_result *result, bool *ret_retired)
{
	const struct kvs_key *const key = op->keys + first;

	switch (op->kind) {
	case OP_QUERY:
		*ret_retired = true;
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

/* Whether a call of this kind can end so; anything else a store says is no answer. */
static bool can_answer(enum op_kind kind, enum kvs_result result)
{
	switch (result) {
	case KVS_RESULT_UNKNOWN:
	case KVS_RESULT_DONE:
	case KVS_RESULT_FAILED:
		return true;
	case KVS_RESULT_MISSING:
		return kind != OP_PUT;
	case KVS_RESULT_CORRUPT:
		return kind == OP_GET;
	case KVS_RESULT_EXISTS:
	case KVS_RESULT_NO_SPACE:
		return kind == OP_PUT;
	}
	return false;
}

static bool failures_retire(struct kvs_store *store)
{
	struct kvs_store_info limits;

	store->ops->describe(store, &limits);
	return limits.failures_retire;
}

static void worse(struct fact *fact, enum op_reason reason)
{
	if (reason > fact->reason)
		fact->reason = reason;
}

static void row_done(const struct op *op, uint32_t row, struct fact *fact, struct exec_moved *moved,
		     bool fresh)
{
	const uint64_t bytes = op->spans ? op->spans[row].bytes : 0;

	bits_set(fact->ok.words, row);
	if (op->kind == OP_GET) {
		moved->get_keys++;
		moved->get_bytes += bytes;
	} else if (op->kind == OP_PUT) {
		moved->put_keys++;
		moved->put_new_keys += fresh;
		moved->put_bytes += fresh ? bytes : 0;
	}
}

/* What one result says of its row.  Only a GET gives evidence against an object. */
static void row_fact(const struct op *op, uint32_t row, enum kvs_result result, struct fact *fact,
		     struct exec_moved *moved)
{
	const bool read = op->kind == OP_GET;

	if (read && result != KVS_RESULT_UNKNOWN)
		bits_set(fact->read_here.words, row);
	switch (result) {
	case KVS_RESULT_DONE:
		row_done(op, row, fact, moved, true);
		return;
	case KVS_RESULT_EXISTS:
		row_done(op, row, fact, moved, false);
		return;
	case KVS_RESULT_MISSING:
		worse(fact, OP_REASON_MISS);
		break;
	case KVS_RESULT_CORRUPT:
		moved->corrupt_keys++;
		worse(fact, OP_REASON_CORRUPT);
		break;
	case KVS_RESULT_NO_SPACE:
		moved->no_space_keys++;
		worse(fact, OP_REASON_NO_SPACE);
		return;
	case KVS_RESULT_UNKNOWN:
	case KVS_RESULT_FAILED:
		worse(fact, OP_REASON_BACKEND);
		return;
	}
	if (read)
		bits_set(fact->object_fault.words, row);
}

/* At most RUN_MAX owned rows from `first`. */
static void run_rows(struct kvs_store *store, const struct op *op, uint32_t first, uint32_t count,
		     struct fact *fact, struct exec_moved *moved)
{
	enum kvs_result result[RUN_MAX] = { KVS_RESULT_UNKNOWN };
	bool            retired = false;
	uint32_t        i;

	if (call_store(store, op, first, count, result, &retired) < 0) {
		for (i = 0; i < count; i++)
			result[i] = KVS_RESULT_UNKNOWN;
	}
	for (i = 0; i < count; i++) {
		if (!can_answer(op->kind, result[i])) {
			/*
			 * A call that says what it cannot know proves nothing of its spans either.
			 */
			result[i] = KVS_RESULT_UNKNOWN;
			retired = retired && (!op->spans || failures_retire(store));
		}
		row_fact(op, first + i, result[i], fact, moved);
	}
#ifdef KVS_MUTANT_SUCCESS_RETIRES /* Planted bug: takes completion for retirement. */
	retired |= bits_prefix(fact->ok.words, op->key_count) == op->key_count;
#endif
	fact->retired = fact->retired && retired;
}

void exec_run(struct kvs_store *store, const struct op *op, struct fact *ret_fact,
	      struct exec_moved *ret_moved)
{
	uint32_t row = 0;

	*ret_moved = (struct exec_moved){ 0 };
	fact_init(ret_fact, op);
	/*
	 * No store call yet, so nothing touches the spans; each call below must prove its own
	 * retirement.
	 */
	ret_fact->retired = true;
	while (row < op->key_count) {
		const uint32_t first = (uint32_t)bits_next_set(op->owned.words, row, op->key_count);
		uint32_t end = (uint32_t)bits_next_clear(op->owned.words, first, op->key_count);

		for (; row < first; row++)
			bits_set(ret_fact->ok.words, row);
		if (end - first > RUN_MAX)
			end = first + RUN_MAX;
		if (end > first)
			run_rows(store, op, first, end - first, ret_fact, ret_moved);
		row = end;
	}
	ret_fact->moved_bytes = ret_moved->get_bytes + ret_moved->put_bytes;
}
