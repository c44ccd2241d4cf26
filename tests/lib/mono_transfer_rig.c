/* SPDX-License-Identifier: Apache-2.0 */
/* See mono_transfer_rig.h. */
#include "mono_transfer_rig.h"

const struct mono_transfer_limits rig_limits = { .op_credits = 4,
						 .host_credits = 32,
						 .keys_max = RIG_KEYS_MAX,
						 .put_keys_max = 4,
						 .backup_queue = 8,
						 .deadline_ns = 1000,
						 .hold_ns = 500 };

void rig_open(struct rig *rig, const struct mono_transfer_limits *limits, uint32_t host_blocks)
{
	const struct coord_options options = { .device_blocks = 8,
					       .host_blocks = host_blocks,
					       .device_policy = "lru",
					       .host_policy = "lru" };
	const size_t bytes = arena_part_bytes(RIG_BLOCK_BYTES, host_blocks);

	KVS_ASSERT_CMP(host_blocks, <=, RIG_HOST_MAX);
	KVS_ASSERT_CMP(limits->keys_max, <=, RIG_KEYS_MAX);
	*rig = (struct rig){ .now_ns = 1 };
	KVS_ASSERT(arena_open(bytes, ARENA_LAZY, &rig->arena, NULL) == 0);
	KVS_ASSERT(arena_carve(rig->arena, RIG_BLOCK_BYTES, host_blocks, &rig->part, NULL) == 0);
	KVS_ASSERT(coord_open(&rig->coord, &options, NULL) == 0);
	KVS_ASSERT(mono_transfer_open(&rig->transfer, limits, &rig->coord, &rig->part, NULL) == 0);
	mono_transfer_begin(&rig->transfer, rig->now_ns);
}

void rig_close(struct rig *rig)
{
	mono_transfer_close(&rig->transfer);
	coord_close(&rig->coord);
	arena_close(rig->arena);
}

static uint32_t ticket_refs(const struct rig *rig, uint32_t block)
{
	const struct mono_transfer *const transfer = &rig->transfer;
	uint32_t                          refs = 0;
	uint32_t                          slot, i;

	for (slot = 0; slot < transfer->limits.op_credits; slot++) {
		const struct mono_ticket *const ticket = &transfer->tickets[slot];

		for (i = 0; i < ticket->block_count; i++)
			refs += ticket->blocks[i] == block;
	}
	return refs;
}

void rig_audit(struct rig *rig)
{
	struct stratum *const host = &rig->coord.host;
	uint32_t              block;

	mono_transfer_audit(&rig->transfer);
	coord_audit(&rig->coord);
	for (block = 0; block < rig->part.block_count; block++) {
		KVS_ASSERT_CMP(stratum_refs(host, block), ==,
			       stratum_published(host, block) + ticket_refs(rig, block) +
				       rig->pins[block]);
	}
}

static uint32_t publish(struct stratum *stratum, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	uint32_t             block = stratum_acquire(stratum);

	KVS_ASSERT_CMP(block, !=, SLOT_NONE);
	block = stratum_publish(stratum, &key, block);
	stratum_unpin(stratum, block);
	return block;
}

uint32_t rig_publish(struct rig *rig, uint32_t number)
{
	return publish(&rig->coord.host, number);
}

uint32_t rig_publish_device(struct rig *rig, uint32_t number)
{
	return publish(&rig->coord.device, number);
}

uint32_t rig_find(const struct rig *rig, uint32_t number)
{
	const struct kvs_key key = key_of(number);

	return stratum_find(&rig->coord.host, &key);
}

void rig_pin(struct rig *rig, uint32_t block)
{
	stratum_pin(&rig->coord.host, block);
	rig->pins[block]++;
}

void rig_unpin(struct rig *rig, uint32_t block)
{
	KVS_ASSERT_CMP(rig->pins[block], >, 0);
	stratum_unpin(&rig->coord.host, block);
	rig->pins[block]--;
}

uint32_t rig_pin_all(struct rig *rig)
{
	uint32_t count = 0;
	uint32_t block;

	for (; (block = stratum_acquire(&rig->coord.host)) != SLOT_NONE; count++)
		rig->pins[block]++;
	rig_audit(rig);
	return count;
}

void rig_round(struct rig *rig, const struct fact *facts, uint32_t fact_count)
{
	mono_transfer_begin(&rig->transfer, rig->now_ns);
	mono_transfer_tick(&rig->transfer, facts, fact_count);
	rig_audit(rig);
}

void rig_round_of(struct rig *rig, struct fact fact)
{
	rig_round(rig, &fact, 1);
}

uint64_t rig_read(struct rig *rig, uint32_t request, uint32_t first, uint32_t count)
{
	struct kvs_key             keys[RIG_HOST_MAX];
	enum mono_transfer_outcome reason;
	uint64_t                   lease_id = 0;
	uint32_t                   i;

	KVS_ASSERT_CMP(count, <=, RIG_HOST_MAX);
	for (i = 0; i < count; i++)
		keys[i] = key_of(first + i);
	KVS_ASSERT(mono_transfer_read(&rig->transfer, request, keys, count, &lease_id, &reason));
	rig_audit(rig);
	return lease_id;
}

struct op rig_get(struct rig *rig, uint32_t request, uint32_t first, uint32_t count,
		  uint64_t *ret_lease_id)
{
	struct op op;

	mono_transfer_begin(&rig->transfer, rig->now_ns);
	*ret_lease_id = rig_read(rig, request, first, count);
	op = rig_last_op(rig);
	rig_round_of(rig, rig_fact(&op, RIG_ALL_ROWS, true));
	op = rig_last_op(rig);
	KVS_ASSERT_CMP(op.kind, ==, OP_GET);
	return op;
}

struct op rig_last_op(const struct rig *rig)
{
	KVS_ASSERT_CMP(rig->transfer.out.op_count, >, 0);
	return rig->transfer.out.ops[rig->transfer.out.op_count - 1];
}

struct fact rig_fact(const struct op *op, uint64_t ok_rows, bool retired)
{
	struct fact fact;

	KVS_ASSERT_CMP(op->key_count, <=, RIG_KEYS_MAX);
	fact_init(&fact, op);
	fact.ok.words[0] = ok_rows & ((UINT64_C(1) << op->key_count) - 1);
	fact.retired = retired;
	return fact;
}

struct fact rig_refused(const struct op *op, enum op_reason reason)
{
	struct fact fact;

	fact_refused(&fact, op, reason);
	return fact;
}
