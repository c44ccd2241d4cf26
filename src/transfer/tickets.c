/* SPDX-License-Identifier: Apache-2.0 */
/* What all tickets share: ids, credits, the lists of deadlines, and the round's outputs. */
#include "base/bits.h"
#include "transfer/parts.h"

/* --- outputs ---------------------------------------------------------------------------------- */

void transfer_emit(struct transfer *transfer, const struct op *op)
{
	static const enum transfer_counter counters[] = { [OP_QUERY] = TRANSFER_QUERIES,
							  [OP_GET] = TRANSFER_GETS,
							  [OP_PUT] = TRANSFER_PUTS,
							  [OP_CANCEL] = TRANSFER_CANCELS };

	KVS_ASSERT_CMP(transfer->out.op_count, <, OPS_A_TICKET * transfer->limits.op_credits);
	KVS_ASSERT(op->kind == OP_CANCEL || transfer->quarantined == 0);
	transfer->out.ops[transfer->out.op_count++] = *op;
	transfer->counts.counters[counters[op->kind]]++;
}

/* Where all was had nothing is to blame; an end that no block brought about blames none. */
static struct shortfall shortfall_of(const struct ticket *ticket, enum read_outcome outcome)
{
	const bool       is_had = outcome == READ_READY || outcome == READ_LOCAL;
	struct shortfall shortfall = ticket->shortfall;

	if (is_had && shortfall.tokens < shortfall.wanted_tokens)
		return shortfall;
	if (is_had)
		outcome = READ_READY;
	if (shortfall.cause != outcome)
		shortfall.group = SHORTFALL_NONE;
	shortfall.cause = outcome;
	return shortfall;
}

void transfer_wake_up(struct transfer *transfer, const struct ticket *ticket,
		      enum read_outcome outcome)
{
	KVS_ASSERT_CMP(transfer->out.wake_count, <, transfer->limits.op_credits);
	KVS_ASSERT_CMP(ticket->lease.id, !=, 0);
	transfer->out.wakes[transfer->out.wake_count++] =
		(struct transfer_wake){ .request = ticket->ask.request,
					.lease = ticket->lease,
					.outcome = outcome,
					.shortfall = shortfall_of(ticket, outcome) };
	transfer->counts.outcomes[outcome]++;
}

uint64_t transfer_until(const struct transfer *transfer, uint64_t ns)
{
	return ns < UINT64_MAX - transfer->now_ns ? transfer->now_ns + ns : UINT64_MAX;
}

/* --- ids -------------------------------------------------------------------------------------- */

static void remember_id(struct transfer *transfer, const struct ticket *ticket)
{
	map_insert(&transfer->ids, map_hash(&transfer->ids, &ticket->op.op_id),
		   ticket_slot(transfer, ticket));
}

void ticket_forget_id(struct transfer *transfer, struct ticket *ticket)
{
	map_remove(&transfer->ids, map_hash(&transfer->ids, &ticket->op.op_id),
		   ticket_slot(transfer, ticket));
}

uint32_t ticket_slot(const struct transfer *transfer, const struct ticket *ticket)
{
	return (uint32_t)(ticket - transfer->tickets);
}

void ticket_op(struct transfer *transfer, struct ticket *ticket, enum op_kind kind)
{
	uint64_t id = transfer->next_op_id++;

#ifdef KVS_MUTANT_REUSE_ID /* Planted bug: a GET goes out under the id of its QUERY. */
	if (kind == OP_GET)
		id = ticket->op.op_id;
#endif
	ticket->op = (struct op){ .op_id = id,
				  .kind = kind,
				  .keys = ticket->keys,
				  .spans = kind == OP_QUERY ? NULL : ticket->spans };
	remember_id(transfer, ticket);
}

struct ticket *ticket_take(struct transfer *transfer, enum op_kind kind)
{
	const uint32_t       slot = slots_acquire(&transfer->slots);
	struct ticket *const ticket = slot == SLOT_NONE ? NULL : &transfer->tickets[slot];

	if (!ticket)
		return NULL;
	KVS_ASSERT_CMP(ticket->state, ==, TICKET_FREE);
	KVS_ASSERT_CMP(ticket->charge, ==, 0);
	KVS_ASSERT_CMP(ticket->watch, ==, SLOT_NONE);
	ticket->lease = (struct lease){ 0 };
	ticket->deadline_ns = UINT64_MAX;
	ticket->source_count = 0;
	ticket->reservation.row_count = 0;
	ticket_op(transfer, ticket, kind);
	return ticket;
}

/* --- what a ticket holds ---------------------------------------------------------------------- */

size_t transfer_place(const struct transfer *transfer, uint32_t group, uint32_t block)
{
	const uint32_t packing = transfer->groups->group[group].spec.packing;

	return (size_t)((block - 1) / packing) * transfer->groups->packing_max +
	       (block - 1) % packing;
}

struct kvs_key row_key(const struct transfer *transfer, const struct kvs_namespace *space,
		       const struct prefix_hash *hash, uint32_t group, uint32_t offset)
{
	struct kvs_key key;

	key_make(space, hash, group, owner_replica(transfer->owner, group), offset, &key);
	return key;
}

void op_add(const struct transfer *transfer, struct ticket *ticket,
	    const struct kvs_namespace *space, const struct prefix_hash *hash, uint32_t group,
	    uint32_t offset, uint32_t block)
{
	const struct owner *const owner = transfer->owner;
	struct op *const          op = &ticket->op;

	KVS_ASSERT_CMP(op->key_count, <, transfer->limits.keys_max);
	ticket->keys[op->key_count] = row_key(transfer, space, hash, group, offset);
	ticket->spans[op->key_count] = (struct kvs_span){ 0 };
	if (owner_holds(owner, group, block)) {
		ticket->spans[op->key_count] = hostmap_span(transfer->hostmap, transfer->part,
							    group,
							    owner_local(owner, group, block));
		bits_set(op->owned.words, op->key_count);
	}
	op->key_count++;
}

void ticket_charge(struct transfer *transfer, struct ticket *ticket, uint32_t blocks)
{
#ifdef KVS_MUTANT_CHARGE_HALF /* Planted bug: half of a read's blocks are charged. */
	if (ticket->op.kind == OP_GET)
		blocks = (blocks + 1) / 2;
#endif
	transfer->host_refs = transfer->host_refs - ticket->charge + blocks;
	if (ticket->op.kind == OP_PUT)
		transfer->put_refs = transfer->put_refs - ticket->charge + blocks;
	ticket->charge = blocks;
}

static void release_rows(struct transfer *transfer, struct ticket *ticket)
{
	const struct cache_reservation *const reservation = &ticket->reservation;
	const uint32_t                        mark = 1 + ticket_slot(transfer, ticket);
	uint32_t                              i;

	for (i = 0; i < reservation->row_count; i++) {
		const struct cache_row *const row = &reservation->rows[i];
		uint32_t                     *by;

		if (row->block == BLOCK_NULL)
			continue;
		by = &transfer->fetched_by[transfer_place(transfer, row->group, row->block)];
		/* Where two tickets brought one name the block may be the other's. */
		if (*by == mark)
			*by = 0;
	}
	cache_reservation_release(transfer->cache, &ticket->reservation);
	ticket->reservation.row_count = 0;
}

static void release_sources(struct transfer *transfer, struct ticket *ticket)
{
	uint32_t i;

	for (i = 0; i < ticket->source_count; i++) {
		const struct cache_block *const source = &ticket->sources[i];

		bits_clear(transfer->putting,
			   transfer_place(transfer, source->group, source->block));
		cache_unpin(transfer->cache, STRATUM_HOST, source->group, source->block);
	}
	ticket->source_count = 0;
}

void ticket_stop_waiting(struct transfer *transfer, struct ticket *ticket)
{
	const uint32_t slot = ticket_slot(transfer, ticket);

	if (list_is_linked(transfer->timed, slot))
		list_remove(&transfer->waits, transfer->timed, slot);
	ticket->deadline_ns = UINT64_MAX;
	watch_end(transfer, ticket);
}

void ticket_end(struct transfer *transfer, struct ticket *ticket)
{
	release_rows(transfer, ticket);
	release_sources(transfer, ticket);
	ticket_charge(transfer, ticket, 0);
	transfer->put_tickets -= ticket->op.kind == OP_PUT;
	ticket->lease = (struct lease){ 0 };
	slots_release(&transfer->slots, ticket_slot(transfer, ticket));
}

/* --- for others ------------------------------------------------------------------------------- */

const struct ticket *transfer_find(const struct transfer *transfer, uint64_t op_id)
{
	const uint32_t slot = map_find(&transfer->ids, map_hash(&transfer->ids, &op_id), &op_id);

	return slot == SLOT_NONE ? NULL : &transfer->tickets[slot];
}

struct ticket_view ticket_view(const struct ticket *ticket)
{
	return (struct ticket_view){ .state = ticket->state,
				     .kind = ticket->op.kind,
				     .op_id = ticket->op.op_id,
				     .deadline_ns = ticket->deadline_ns,
				     .block_count = ticket->charge,
				     .op = &ticket->op };
}

void ticket_block(const struct ticket *ticket, uint32_t i, uint32_t *ret_group, uint32_t *ret_block)
{
	const struct cache_reservation *const reservation = &ticket->reservation;
	uint32_t                              row;

	if (ticket->op.kind == OP_PUT) {
		KVS_ASSERT_CMP(i, <, ticket->source_count);
		*ret_group = ticket->sources[i].group;
		*ret_block = ticket->sources[i].block;
		return;
	}
	for (row = 0; row < reservation->row_count; row++) {
		if (reservation->rows[row].block == BLOCK_NULL)
			continue;
		if (i-- > 0)
			continue;
		*ret_group = reservation->rows[row].group;
		*ret_block = reservation->rows[row].block;
		return;
	}
	KVS_PANIC("ticket %llu holds no such block", (unsigned long long)ticket->op.op_id);
}

bool transfer_fetched(const struct transfer *transfer, struct lease lease, uint32_t group,
		      uint32_t host_block)
{
	const struct ticket *const ticket = &transfer->tickets[lease.ticket];

	return lease.id != 0 && ticket->lease.id == lease.id &&
	       transfer->fetched_by[transfer_place(transfer, group,
						   host_block)] == 1 + lease.ticket;
}
