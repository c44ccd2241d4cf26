/* SPDX-License-Identifier: Apache-2.0 */
/* See fault_batch.h. */
#include "store/fault_batch.h"

#include <errno.h>
#include <string.h>

/* The faults that fall on the call as a whole, one after the other. */
static int call_begin(struct fault *fault, enum fault_op op)
{
	uint64_t draw;
	uint32_t i = fault_dice_call(&fault->dice, op, 0, &draw);

	for (; i != FAULT_NONE; i = fault_dice_call(&fault->dice, op, i + 1, &draw)) {
		const struct fault_rule *rule = &fault->dice.plan.rules[i];

		if (rule->kind == FAULT_ERROR)
			return -EIO;
		if (fault_hold_call(&fault->hold, rule->kind == FAULT_LOST
							  ? FAULT_HOLD_LOST
							  : fault_wait_ns(rule, draw)) < 0)
			return -EIO;
	}
	return 0;
}

/* Rows that no fault hit. */
static void pass(struct fault_batch *batch, uint32_t first, uint32_t count)
{
	struct kvs_store *inner = batch->fault->inner;
	bool              retired = batch->look != NULL;
	uint32_t          i;
	int               rc;

	if (count == 0)
		return;
	rc = batch->look ? batch->look(inner, batch->key + first, count, batch->result + first)
			 : batch->move(inner, batch->key + first, batch->span + first, count,
				       batch->result + first, &retired);
	batch->retired &= retired;
	if (!retired)
		batch->fault->inner_doubts = true;
	for (i = first; rc < 0 && i < first + count; i++)
		batch->result[i] = KVS_RESULT_UNKNOWN;
	batch->answered += rc < 0 ? 0 : count;
	batch->rc = rc < 0 ? rc : batch->rc;
}

/* Read the row elsewhere and hand on its first half. */
static void pass_short(struct fault_batch *batch, uint32_t row)
{
	struct fault          *fault = batch->fault;
	const struct kvs_span *span = &batch->span[row];
	struct fault_batch     one = *batch;

	os_mutex_lock(&fault->mutex);
	one.span = &(struct kvs_span){ fault->scratch, span->bytes, fault->scratch_bytes };
	one.key += row;
	one.result += row;
	pass(&one, 0, 1);
	if (batch->result[row] == KVS_RESULT_DONE)
		memcpy(span->ptr, fault->scratch, span->bytes / 2);
	os_mutex_unlock(&fault->mutex);
	batch->retired = one.retired;
	batch->answered = one.answered;
	batch->rc = one.rc;
}

static void fail_row(struct fault_batch *batch, uint32_t row, const struct fault_rule *rule,
		     uint64_t draw)
{
	static const enum kvs_result results[FAULT_KIND_COUNT] = {
		[FAULT_FAIL] = KVS_RESULT_FAILED,
		[FAULT_MISS] = KVS_RESULT_MISSING,
		[FAULT_NO_SPACE] = KVS_RESULT_NO_SPACE,
		[FAULT_LATE_WRITE] = KVS_RESULT_FAILED,
	};

	if (rule->kind == FAULT_SHORT) {
		pass_short(batch, row);
		return;
	}
	if (rule->kind == FAULT_CORRUPT) {
		pass(batch, row, 1);
		if (batch->result[row] == KVS_RESULT_DONE)
			((uint8_t *)batch->span[row].ptr)[draw % batch->span[row].bytes] ^= 1;
		return;
	}
	if (rule->kind == FAULT_LATE_WRITE) {
		batch->retired &= rule->claims_retired;
		fault_late_write(&batch->fault->late, &batch->span[row],
				 os_now_ns() + fault_wait_ns(rule, draw));
	}
	batch->result[row] = results[rule->kind];
	batch->answered++;
}

int fault_batch_run(struct fault_batch *batch, enum fault_op op, uint32_t count)
{
	uint32_t i, first = 0;
	uint64_t draw;

	batch->rc = call_begin(batch->fault, op);
	for (i = 0; i < count; i++)
		batch->result[i] = KVS_RESULT_UNKNOWN;
	if (batch->rc < 0)
		return batch->rc;
	for (i = 0; i < count; i++) {
		const uint32_t number = fault_dice_row(&batch->fault->dice, op, &draw);

		if (number == FAULT_NONE)
			continue;
		pass(batch, first, i - first);
		fail_row(batch, i, &batch->fault->dice.plan.rules[number], draw);
		first = i + 1;
	}
	pass(batch, first, count - first);
	return batch->answered ? 0 : batch->rc;
}
