/* SPDX-License-Identifier: Apache-2.0 */
/* The store of a rig: a list of objects.  See sched_rig.h. */
#include "sched_rig_parts.h"

#include <string.h>

#include "base/bits.h"

struct sched_options srig_store_options(void)
{
	struct sched_options options = srig_options();

	options.host_parents = 32;
	options.with_store = true;
	options.transfer = (struct transfer_limits){ .op_credits = 8,
						     .host_credits = 64,
						     .keys_max = 64,
						     .put_keys_max = 8,
						     .backup_max = 64,
						     .negative_max = 16,
						     .history_max = 64,
						     .tail_hint_max = 64,
						     .tails_max = 4,
						     .extension_min = 1,
						     .lookahead_tokens = 1000,
						     .deadline_ns = 1000,
						     .hold_ns = 500 };
	return options;
}

static struct srig_object *find_object(struct srig *rig, const struct kvs_key *key)
{
	uint32_t i;

	for (i = 0; i < rig->object_count; i++) {
		if (memcmp(&rig->objects[i].key, key, sizeof(*key)) == 0)
			return &rig->objects[i];
	}
	return NULL;
}

static bool serve_key(struct srig *rig, const struct op *op, uint32_t i)
{
	struct srig_object *object = find_object(rig, &op->keys[i]);

	if (op->kind != OP_QUERY)
		KVS_ASSERT_CMP(op->spans[i].bytes, <=, SRIG_OBJECT_BYTES);
	if (op->kind == OP_GET && object)
		memcpy(op->spans[i].ptr, object->bytes, op->spans[i].bytes);
	if (op->kind == OP_PUT && !object) {
		KVS_ASSERT_CMP(rig->object_count, <, SRIG_OBJECTS);
		object = &rig->objects[rig->object_count++];
		object->key = op->keys[i];
		memcpy(object->bytes, op->spans[i].ptr, op->spans[i].bytes);
	}
	return object;
}

static struct fact serve(struct srig *rig, const struct op *op, bool cancelled)
{
	struct fact fact = { .op_id = op->op_id, .key_count = op->key_count, .retired = true };
	uint32_t    i;

	if (cancelled) {
		fact.reason = OP_REASON_CANCELLED;
		return fact;
	}
	for (i = 0; i < op->key_count; i++) {
		if (op->kind == OP_GET)
			bits_set(fact.read_here.words, i);
		if (serve_key(rig, op, i)) {
			bits_set(fact.ok.words, i);
		} else {
			fact.reason = OP_REASON_MISS;
			if (op->kind == OP_GET)
				bits_set(fact.object_fault.words, i);
		}
	}
	return fact;
}

void srig_let_store(struct srig *rig)
{
	uint32_t i;

	for (i = 0; i < rig->op_count; i++)
		rig->facts[rig->fact_count++] = serve(rig, &rig->ops[i], rig->cancelled[i]);
	rig->op_count = 0;
}

static void take_op(struct srig *rig, const struct op *op)
{
	uint32_t i;

	rig->queries += op->kind == OP_QUERY;
	rig->gets += op->kind == OP_GET;
	rig->puts += op->kind == OP_PUT;
	for (i = 0; i < rig->op_count; i++)
		rig->cancelled[i] |= op->kind == OP_CANCEL && rig->ops[i].op_id == op->op_id;
	if (op->kind == OP_CANCEL)
		return;
	KVS_ASSERT_CMP(rig->op_count + rig->fact_count, <, SRIG_OPS);
	rig->cancelled[rig->op_count] = false;
	rig->ops[rig->op_count++] = *op;
}

void srig_take_ops(struct srig *rig)
{
	uint32_t i;

	for (i = 0; i < rig->plan->op_count; i++)
		take_op(rig, &rig->plan->ops[i]);
	if (!rig->store_held)
		srig_let_store(rig);
}
