/* SPDX-License-Identifier: Apache-2.0 */
/* See rows.h. */
#include "exec/rows.h"

#include <assert.h>
#include <string.h>

#include "base/digest.h"
#include "base/err.h"

static_assert(OP_KEYS_MAX < UINT16_MAX, "rows are counted in 16 bits");

/* --- folding ---------------------------------------------------------------------------------- */

#define ROW_NONE UINT16_MAX

static bool same_key(const struct op *op, uint32_t a, uint32_t b)
{
	return memcmp(&op->keys[a], &op->keys[b], sizeof(*op->keys)) == 0;
}

/* Open addressing over the rows seen so far; at most half full. */
static uint32_t fold_row(struct rows *rows, uint16_t *table, uint32_t mask, uint32_t row)
{
	const struct op *const op = rows->op;
	uint32_t b = (uint32_t)xxh3_64(&op->keys[row], sizeof(op->keys[row])) & mask;

	for (; table[b] != ROW_NONE; b = (b + 1) & mask) {
		if (!same_key(op, table[b], row))
			continue;
		if (op->kind != OP_GET || op->spans[table[b]].bytes == op->spans[row].bytes)
			return table[b];
		bits_set(rows->cut.words, row);
	}
	table[b] = (uint16_t)row;
	return row;
}

static void fold(struct rows *rows)
{
	const uint32_t count = rows->op->key_count;
	uint16_t       table[2 * OP_KEYS_MAX];
	uint32_t       buckets = 2;
	uint32_t       row;

	while (buckets < 2 * count)
		buckets *= 2;
	memset(table, 0xff, buckets * sizeof(*table));
	for (row = 0; row < count; row++) {
		rows->first[row] = (uint16_t)row;
		if (bits_test(rows->op->owned.words, row))
			rows->first[row] = (uint16_t)fold_row(rows, table, buckets - 1, row);
	}
}

static bool is_asked(const struct rows *rows, uint32_t row)
{
	return bits_test(rows->op->owned.words, row) && rows->first[row] == row;
}

/* --- in and out ------------------------------------------------------------------------------- */

void rows_begin(struct rows *rows, struct kvs_store *store, const struct op *op)
{
	rows->store = store;
	rows->op = op;
	/* Nobody has been handed a span yet; each answer must prove its own retirement. */
	rows->retired = true;
	rows->disbelieved = false;
	rows->evidence = EXEC_EVIDENCE_NONE;
	rows->locked = (struct op_mask){ 0 };
	rows->cut = (struct op_mask){ 0 };
	static_assert(KVS_RESULT_UNKNOWN == 0, "zeroed results are unknown");
	memset(rows->result, 0, op->key_count * sizeof(*rows->result));
	fold(rows);
}

uint32_t rows_next(const struct rows *rows, uint32_t from, uint32_t most, uint32_t *ret_first)
{
	const uint32_t end = rows->op->key_count;
	uint32_t       count = 0;

	while (from < end && !is_asked(rows, from))
		from++;
	while (count < most && from + count < end && is_asked(rows, from + count) &&
	       (count == 0 || !bits_test(rows->cut.words, from + count)))
		count++;
	*ret_first = from;
	return count;
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
	struct kvs_store_info info;

	store->ops->describe(store, &info);
	return info.failures_retire;
}

static void weigh(struct rows *rows, enum exec_evidence evidence)
{
	if (evidence > rows->evidence)
		rows->evidence = evidence;
}

/* What a row that is not simply done says of the store.  True when nobody can understand it. */
static bool weigh_row(struct rows *rows, uint32_t row)
{
	if (!can_answer(rows->op->kind, rows->result[row])) {
		rows->result[row] = KVS_RESULT_UNKNOWN;
		weigh(rows, EXEC_EVIDENCE_OUTAGE);
		return true;
	}
	if (rows->result[row] == KVS_RESULT_FAILED)
		weigh(rows, EXEC_EVIDENCE_OUTAGE);
	else if (rows->result[row] != KVS_RESULT_UNKNOWN)
		weigh(rows, EXEC_EVIDENCE_UP);
	return false;
}

/* Every op comes by here with all its rows: what is done costs one comparison. */
static bool weigh_rows(struct rows *rows, uint32_t first, uint32_t count)
{
	bool     malformed = false, done = false;
	uint32_t row;

	for (row = first; row < first + count; row++) {
		if (rows->result[row] == KVS_RESULT_DONE)
			done = true;
		else
			malformed |= weigh_row(rows, row);
	}
	if (done)
		weigh(rows, EXEC_EVIDENCE_UP);
	return malformed;
}

void rows_answer(struct rows *rows, uint32_t first, uint32_t count, int rc, bool retired)
{
	bool malformed = false;

	if (rc >= 0)
		malformed = weigh_rows(rows, first, count);
	else
		memset(&rows->result[first], 0, count * sizeof(*rows->result));
	/* Our own mistake says nothing of the store. */
	if (rc < 0 && rc != KVS_E_INVALID)
		weigh(rows, EXEC_EVIDENCE_OUTAGE);
	/* A call that says what it cannot know proves nothing of its spans either. */
	if (malformed && rows->op->spans && retired && !failures_retire(rows->store)) {
		rows->disbelieved = true;
		retired = false;
	}
	if (!retired && rows->op->kind == OP_PUT)
		weigh(rows, EXEC_EVIDENCE_OUTAGE);
	rows->retired = rows->retired && retired;
}

void rows_lose(struct rows *rows)
{
	rows->retired = false;
	weigh(rows, EXEC_EVIDENCE_OUTAGE);
}

/* --- the fact --------------------------------------------------------------------------------- */

static void worse(struct fact *fact, enum op_reason reason)
{
	if (reason > fact->reason)
		fact->reason = reason;
}

/* Rows that the store moved itself: nearly all of nearly every op, so they are done a word at a time. */
static void fresh_rows(const struct rows *rows, struct fact *fact, struct exec_moved *moved)
{
	const struct op *const op = rows->op;
	uint64_t               bytes = 0, count = 0;
	uint32_t               row, end;

	for (row = 0; row < op->key_count; row = end) {
		uint64_t *const ok = &fact->ok.words[row / 64];
		uint64_t        fresh = 0;

		end = row + 64 < op->key_count ? row + 64 : op->key_count;
		for (; row < end; row++) {
			const bool is_fresh = rows->result[row] == KVS_RESULT_DONE &&
					      rows->first[row] == row;

			fresh |= (uint64_t)is_fresh << row % 64;
			bytes += is_fresh && op->spans ? op->spans[row].bytes : 0;
		}
		*ok = fresh;
		count += bits_count(&fresh, 64);
	}
	if (op->kind == OP_GET) {
		fact->read_here = fact->ok;
		moved->get_keys = count;
		moved->get_bytes = bytes;
	} else if (op->kind == OP_PUT) {
		moved->put_keys = moved->put_new_keys = count;
		moved->put_bytes = bytes;
	}
}

/* There already, or the same as a row before: a success that moved no bytes of the store. */
static void row_done(const struct rows *rows, uint32_t row, struct fact *fact,
		     struct exec_moved *moved)
{
	bits_set(fact->ok.words, row);
	moved->get_keys += rows->op->kind == OP_GET;
	moved->put_keys += rows->op->kind == OP_PUT;
}

/* What one result says of its row.  Only a GET gives evidence against an object. */
static void row_fact(const struct rows *rows, uint32_t row, struct fact *fact,
		     struct exec_moved *moved)
{
	const enum kvs_result result = rows->result[rows->first[row]];
	const bool            read = rows->op->kind == OP_GET;

	if (read && result != KVS_RESULT_UNKNOWN)
		bits_set(fact->read_here.words, row);
	switch (result) {
	case KVS_RESULT_DONE:
	case KVS_RESULT_EXISTS:
		row_done(rows, row, fact, moved);
		return;
	case KVS_RESULT_MISSING:
		worse(fact, OP_REASON_MISS);
		break;
	case KVS_RESULT_CORRUPT:
		moved->corrupt_keys += rows->first[row] == row;
		worse(fact, OP_REASON_CORRUPT);
		break;
	case KVS_RESULT_NO_SPACE:
		moved->no_space_keys += rows->first[row] == row;
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

/* Equal in key and length, so equal in bytes; one caller may even name one span twice. */
static void copy_folded(const struct op *op, uint32_t from, uint32_t to)
{
	memmove(op->spans[to].ptr, op->spans[from].ptr, op->spans[to].bytes);
}

void rows_end(struct rows *rows, struct fact *ret_fact, struct exec_report *ret_report)
{
	const struct op *const op = rows->op;
	uint32_t               row;

	fact_init(ret_fact, op);
	*ret_report = (struct exec_report){ .evidence = rows->evidence, .locked = rows->locked,
					     .disbelieved = rows->disbelieved };
	fresh_rows(rows, ret_fact, &ret_report->moved);
	for (row = (uint32_t)bits_next_clear(ret_fact->ok.words, 0, op->key_count);
	     row < op->key_count;
	     row = (uint32_t)bits_next_clear(ret_fact->ok.words, row + 1, op->key_count)) {
		if (!bits_test(op->owned.words, row)) {
			bits_set(ret_fact->ok.words, row);
			continue;
		}
		row_fact(rows, row, ret_fact, &ret_report->moved);
		if (op->kind == OP_GET && rows->first[row] != row &&
		    bits_test(ret_fact->ok.words, row))
			copy_folded(op, rows->first[row], row);
	}
#ifdef KVS_MUTANT_SUCCESS_RETIRES /* Planted bug: takes completion for retirement. */
	rows->retired |= bits_prefix(ret_fact->ok.words, op->key_count) == op->key_count;
#endif
	ret_fact->retired = rows->retired;
	ret_fact->moved_bytes = ret_report->moved.get_bytes + ret_report->moved.put_bytes;
}
