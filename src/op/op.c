/* SPDX-License-Identifier: Apache-2.0 */
/* Values at the waist: their names, their first state, and what a fact of another owner must satisfy. */
#include "op/op.h"

#include <inttypes.h>

#include "base/err.h"

const char *op_kind_name(enum op_kind kind)
{
	switch (kind) {
	case OP_QUERY:
		return "query";
	case OP_GET:
		return "get";
	case OP_PUT:
		return "put";
	case OP_UNLOCK:
		return "unlock";
	case OP_REMOVE:
		return "remove";
	case OP_CANCEL:
		return "cancel";
	}
	KVS_PANIC("no op kind %d", (int)kind);
}

const char *op_reason_name(enum op_reason reason)
{
	static const char *const names[] = {
#define OP_REASON(name, text) [name] = text,
		OP_REASONS(OP_REASON)
#undef OP_REASON
	};

	KVS_ASSERT_CMP(reason, <, OP_REASON_COUNT);
	return names[reason];
}

void op_own_all(struct op *op)
{
	KVS_ASSERT_CMP(op->key_count, <=, OP_KEYS_MAX);
	op->owned = (struct op_mask){ 0 };
	bits_fill(op->owned.words, op->key_count);
}

void fact_init(struct fact *fact, const struct op *op)
{
	*fact = (struct fact){ .op_id = op->op_id, .key_count = op->key_count };
}

void fact_refused(struct fact *fact, const struct op *op, enum op_reason reason)
{
	fact_init(fact, op);
	fact->retired = true;
	fact->reason = reason;
}

static bool mask_overlaps(const struct op_mask *a, const struct op_mask *b)
{
	size_t i;

	for (i = 0; i < ARRAY_COUNT(a->words); i++) {
		if (a->words[i] & b->words[i])
			return true;
	}
	return false;
}

static int mask_check(const char *name, const struct op_mask *mask, uint32_t key_count,
		      struct kvs_error *err)
{
	const size_t bit = bits_next_set(mask->words, key_count, OP_KEYS_MAX);

	if (bit == OP_KEYS_MAX)
		return 0;
	return err_set(err, KVS_E_PROTO, "fact.%s: bit %zu is set; the op has %" PRIu32 " keys",
		       name, bit, key_count);
}

/* Only a GET reads, so only a GET may speak of what it read. */
static int reads_check(const struct fact *fact, const struct op *op, struct kvs_error *err)
{
	if (op->kind == OP_GET)
		return 0;
	if (bits_next_set(fact->object_fault.words, 0, OP_KEYS_MAX) == OP_KEYS_MAX &&
	    bits_next_set(fact->read_here.words, 0, OP_KEYS_MAX) == OP_KEYS_MAX)
		return 0;
	return err_set(err, KVS_E_PROTO,
		       "fact.object_fault: a %s reports what it read; only a get reads",
		       op_kind_name(op->kind));
}

int fact_check(const struct fact *fact, const struct op *op, struct kvs_error *err)
{
	KVS_ASSERT_CMP(op->key_count, <=, OP_KEYS_MAX);
	if (fact->op_id != op->op_id) {
		return err_set(err, KVS_E_PROTO,
			       "fact.op_id: %" PRIu64 " answers another op than %" PRIu64,
			       fact->op_id, op->op_id);
	}
	if (fact->key_count != op->key_count) {
		return err_set(err, KVS_E_PROTO,
			       "fact.key_count: %" PRIu32 " is not the op's %" PRIu32,
			       fact->key_count, op->key_count);
	}
	if ((unsigned int)fact->reason >= OP_REASON_COUNT) {
		return err_set(err, KVS_E_PROTO, "fact.reason: %u is no reason",
			       (unsigned int)fact->reason);
	}
	if (mask_check("ok", &fact->ok, op->key_count, err) < 0 ||
	    mask_check("object_fault", &fact->object_fault, op->key_count, err) < 0 ||
	    mask_check("read_here", &fact->read_here, op->key_count, err) < 0)
		return KVS_E_PROTO;
	if (mask_overlaps(&fact->ok, &fact->object_fault)) {
		return err_set(err, KVS_E_PROTO,
			       "fact.object_fault: a row is both ok and at fault");
	}
	return reads_check(fact, op, err);
}
