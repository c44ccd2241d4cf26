/* SPDX-License-Identifier: Apache-2.0 */
/* What the world knows of each op and of each ticket of copies: entered at dispatch, from the plans. */
#include <string.h>

#include "sim.h"

struct sim_op *ledger_find(struct sim *sim, uint64_t op_id)
{
	uint32_t i;

	for (i = 0; i < OPS_MAX; i++) {
		if (sim->ops[i].op_id == op_id && !sim->ops[i].dropped)
			return &sim->ops[i];
	}
	return NULL;
}

static struct sim_op *find_free(struct sim *sim)
{
	uint32_t i;

	for (i = 0; i < OPS_MAX; i++) {
		if (sim->ops[i].op_id == 0)
			return &sim->ops[i];
	}
	KVS_PANIC("the ledger is full");
}

/* --- an op begins ----------------------------------------------------------------------------- */

static void enter_part(struct sim_part *part, const struct op *op)
{
	memset(part, 0, sizeof(*part));
	memcpy(part->keys, op->keys, op->key_count * sizeof(*part->keys));
	part->op = *op;
	part->op.keys = part->keys;
	if (!op->spans)
		return;
	memcpy(part->spans, op->spans, op->key_count * sizeof(*part->spans));
	part->op.spans = part->spans;
}

static void enter_row(struct sim *sim, struct sim_op *entry, uint32_t i, const struct kvs_key *key)
{
	struct sim_row *const row = &entry->rows[i];

	row->version = oracle_version(&key->space);
	row->group = key->group;
	row->offset = key->offset;
	if (row->version != sim->version || row->group >= sim->shape.group_count ||
	    !oracle_find(key->hash, &row->prefix)) {
		FAIL("same-plan", "op %" PRIu64 " names an object that no request has",
		     entry->op_id);
	}
}

/* The blocks that the ticket holds for it, and that its spans are those. */
static void enter_block(struct sim *sim, struct sim_op *entry, uint32_t i)
{
	struct sim_row *const row = &entry->rows[i];
	uint32_t              rank, group, block;

	for (rank = 0; rank < sim->shape.ranks; rank++) {
		const struct sim_part *const part = &entry->parts[rank];
		const struct ticket *const   ticket =
			transfer_find(sched_transfer(sim->ranks[rank].sched), entry->op_id);
		const uint8_t *bytes;

		ticket_block(ticket, i, &group, &block);
		if (group != row->group || (rank > 0 && block != row->block)) {
			FAIL("same-plan", "row %u of op %" PRIu64 " has another block on rank %u",
			     i, entry->op_id, rank);
		}
		row->block = block;
		bytes = host_block(sim, rank, group, block);
		if (bits_test(part->op.owned.words, i) != (bytes != NULL)) {
			FAIL("same-plan", "row %u of op %" PRIu64 " is not rank %u's to move", i,
			     entry->op_id, rank);
		}
		if (bytes && (part->spans[i].ptr != bytes ||
			      part->spans[i].bytes != shape_block_bytes(&sim->shape, group))) {
			FAIL("one-state", "row %u of op %" PRIu64 " has another span than its block",
			     i, entry->op_id);
		}
	}
}

static void enter_ticket(struct sim *sim, struct sim_op *entry)
{
	const struct ticket *const ticket =
		transfer_find(sched_transfer(sim->ranks[0].sched), entry->op_id);
	struct ticket_view view;
	uint32_t           i;

	if (!ticket)
		FAIL("one-state", "op %" PRIu64 " has no ticket", entry->op_id);
	view = ticket_view(ticket);
	entry->deadline_ns = view.deadline_ns;
	if (entry->kind == OP_QUERY) {
		if (view.block_count > 0)
			FAIL("pure-query", "op %" PRIu64 " holds blocks", entry->op_id);
		return;
	}
	if (view.block_count != entry->row_count) {
		FAIL("one-state", "op %" PRIu64 " of %u rows holds %u blocks", entry->op_id,
		     entry->row_count, view.block_count);
	}
	for (i = 0; i < entry->row_count; i++)
		enter_block(sim, entry, i);
}

struct sim_op *ledger_add(struct sim *sim, uint32_t index)
{
	const struct op *const op = &sim->ranks[0].plan->ops[index];
	struct sim_op *const   entry = find_free(sim);
	uint32_t               rank, i;

	if (op->op_id <= sim->last_op)
		FAIL("one-done", "op %" PRIu64 " follows op %" PRIu64, op->op_id, sim->last_op);
	if (op->key_count == 0 || op->key_count > sim->options.transfer.keys_max)
		FAIL("bounded", "op %" PRIu64 " has %u keys", op->op_id, op->key_count);
	sim->last_op = op->op_id;
	entry->op_id = op->op_id;
	entry->kind = op->kind;
	sim->covers->queries += op->kind == OP_QUERY;
	entry->row_count = op->key_count;
	entry->agreed = entry->doubted = entry->detached = entry->dropped = false;
	entry->round = 0;
	for (rank = 0; rank < sim->shape.ranks; rank++)
		enter_part(&entry->parts[rank], &sim->ranks[rank].plan->ops[index]);
	for (i = 0; i < op->key_count; i++)
		enter_row(sim, entry, i, &op->keys[i]);
	enter_ticket(sim, entry);
	return entry;
}

/* --- what becomes of it ----------------------------------------------------------------------- */

void ledger_answer(struct sim *sim, uint32_t rank, const struct fact *fact)
{
	struct sim_op *const   op = ledger_find(sim, fact->op_id);
	struct sim_rank *const of = &sim->ranks[rank];
	struct kvs_error       error;

	if (!op || op->parts[rank].answered)
		FAIL("one-done", "op %" PRIu64 " is answered twice on rank %u", fact->op_id, rank);
	if (fact_check(fact, &op->parts[rank].op, &error) < 0)
		FAIL("one-done", "%s", error.message);
	if (op->parts[rank].in_doubt && fact->retired)
		FAIL("quarantine", "op %" PRIu64 " is told as retired, and is not", fact->op_id);
	op->parts[rank].answered = true;
	op->parts[rank].fact = *fact;
	of->facts[of->fact_count++] = *fact;
}

/* A late touch or a worker may still need it. */
void ledger_forget(struct sim_op *op)
{
	uint32_t rank;

	for (rank = 0; rank < RANKS_MAX; rank++) {
		if (op->parts[rank].running || op->parts[rank].late > 0 || op->parts[rank].in_doubt)
			return;
	}
	op->op_id = 0;
	for (rank = 0; rank < RANKS_MAX; rank++)
		op->parts[rank].answered = op->parts[rank].silent = false;
}

uint32_t ledger_doubts(const struct sim *sim)
{
	uint32_t count = 0, i;

	for (i = 0; i < OPS_MAX; i++)
		count += sim->ops[i].op_id != 0 && !sim->ops[i].dropped && sim->ops[i].doubted;
	return count;
}

void tickets_add(struct sim *sim, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < TICKETS_MAX; i++) {
		if (sim->tickets[i].id == id)
			FAIL("one-state", "copy %" PRIu64 " is planned twice", id);
	}
	for (i = 0; sim->tickets[i].id != 0; i++)
		KVS_ASSERT_CMP(i + 1, <, TICKETS_MAX);
	sim->tickets[i] = (struct sim_ticket){ .id = id };
}
