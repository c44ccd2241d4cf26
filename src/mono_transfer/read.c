/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The read transaction: QUERY what is missing, reserve for what was found, GET, publish what came
 * whole.
 *
 * A hit is only ever established by publishing: the store's answer to a QUERY is a hint that buys
 * destinations.
 */
#include "mono_transfer/parts.h"

static bool refuse(struct mono_transfer *transfer, enum mono_transfer_outcome reason,
		   enum mono_transfer_outcome *ret_reason)
{
	transfer->outcomes[reason]++;
	*ret_reason = reason;
	return false;
}

/* Why an op failed, as the request's outcome. */
static enum mono_transfer_outcome outcome_of(const struct fact *fact)
{
	switch (fact->reason) {
	case OP_REASON_NONE:
	case OP_REASON_MISS:
		return MONO_TRANSFER_MISS;
	case OP_REASON_CORRUPT:
		return MONO_TRANSFER_CORRUPT;
	case OP_REASON_QUARANTINE:
		return MONO_TRANSFER_QUARANTINE;
	case OP_REASON_HEALTH:
		return MONO_TRANSFER_COOLDOWN;
	case OP_REASON_QUEUE:
	case OP_REASON_CLOSED:
		return MONO_TRANSFER_REFUSED;
	case OP_REASON_CANCELLED:
	case OP_REASON_NO_SPACE:
	case OP_REASON_BACKEND:
	case OP_REASON_COUNT:
		break;
	}
	return MONO_TRANSFER_BACKEND;
}

/*
 * The keys that the Host does not hold, in order, up to the ticket's size.  All of them lie beyond
 * the Device's prefix, where only the Host can supply: a copy further up on the Device does not
 * help.
 */
static uint32_t collect_missing(struct mono_transfer *transfer, const struct kvs_key *keys,
				uint32_t key_count, struct kvs_key *ret_missing)
{
	uint32_t count = 0;
	uint32_t i;

	for (i = 0; i < key_count && count < transfer->limits.keys_max; i++) {
		if (stratum_find(&transfer->coord->host, &keys[i]) == SLOT_NONE)
			ret_missing[count++] = keys[i];
	}
	return count;
}

bool mono_transfer_read(struct mono_transfer *transfer, uint32_t request,
			const struct kvs_key *keys, uint32_t key_count,
			uint64_t *ret_lease_id, enum mono_transfer_outcome *ret_reason)
{
	struct mono_ticket *ticket;

	KVS_ASSERT_CMP(key_count, >, 0);
	if (transfer->quarantined > 0)
		return refuse(transfer, MONO_TRANSFER_QUARANTINE, ret_reason);
	if (transfer->host_refs >= transfer->limits.host_credits)
		return refuse(transfer, MONO_TRANSFER_CREDITS, ret_reason);
	ticket = mono_transfer_ticket(transfer);
	if (!ticket)
		return refuse(transfer, MONO_TRANSFER_CREDITS, ret_reason);

	ticket->request = request;
	ticket->lease_id = ticket->op.op_id;
	ticket->deadline_ns = mono_transfer_until(transfer, transfer->limits.deadline_ns);
	ticket->op.kind = OP_QUERY;
	ticket->op.spans = NULL;
	ticket->op.key_count = collect_missing(transfer, keys, key_count, ticket->keys);
	/* The caller asks for keys beyond its local prefix, so the Host lacks the first one. */
	KVS_ASSERT_CMP(ticket->op.key_count, >, 0);
	op_own_all(&ticket->op);
	*ret_lease_id = ticket->lease_id;
	mono_ticket_step(transfer, ticket, MONO_TICKET_ON_START_READ, NULL);
	return true;
}

/* Keep the found prefix, less what was published since, and give each key a private destination. */
static bool reserve(struct mono_transfer *transfer, struct mono_ticket *ticket, uint32_t found,
		    enum mono_transfer_outcome *ret_reason)
{
	struct stratum *const      host = &transfer->coord->host;
	enum mono_transfer_outcome short_of = MONO_TRANSFER_MISS;
	uint32_t                   count = 0;
	uint32_t                   i;

	for (i = 0; i < found; i++) {
		uint32_t block;

		if (stratum_find(host, &ticket->keys[i]) != SLOT_NONE)
			continue;
		if (transfer->host_refs + count >= transfer->limits.host_credits) {
			short_of = MONO_TRANSFER_CREDITS;
			break;
		}
		block = stratum_acquire(host);
		if (block == SLOT_NONE) {
			short_of = MONO_TRANSFER_HOST_ROOM;
			break;
		}
		ticket->keys[count] = ticket->keys[i];
		ticket->blocks[count] = block;
		ticket->spans[count++] = arena_block(transfer->part, block);
	}
	ticket->block_count = count;
	transfer->host_refs += count;
	if (count == 0)
		*ret_reason = short_of;
	return count > 0;
}

/* Destinations for what a QUERY found; why not, when there are none. */
static bool destine(struct mono_transfer *transfer, struct mono_ticket *ticket,
		    const struct fact *fact, enum mono_transfer_outcome *ret_reason)
{
	const uint32_t found = (uint32_t)bits_prefix(fact->ok.words, fact->key_count);

	if (found > 0 && transfer->quarantined == 0)
		return reserve(transfer, ticket, found, ret_reason);
	*ret_reason = found > 0 ? MONO_TRANSFER_QUARANTINE : outcome_of(fact);
	return false;
}

void mono_transfer_found(struct mono_transfer *transfer, struct mono_ticket *ticket,
			 const struct fact *fact)
{
	enum mono_transfer_outcome reason;

	if (!destine(transfer, ticket, fact, &reason)) {
		mono_transfer_wake_up(transfer, ticket, reason);
		mono_ticket_step(transfer, ticket, MONO_TICKET_ON_MISS, fact);
		return;
	}
	ticket->op = (struct op){ .op_id = transfer->next_op_id++,
				  .kind = OP_GET,
				  .key_count = ticket->block_count,
				  .keys = ticket->keys,
				  .spans = ticket->spans };
	op_own_all(&ticket->op);
	mono_ticket_step(transfer, ticket, MONO_TICKET_ON_HIT, fact);
}

/*
 * Whole rows become Host entries, held for the request until its admission or the end of the hold;
 * the others give their blocks back.  All of them have retired.
 */
void mono_transfer_publish(struct mono_transfer *transfer, struct mono_ticket *ticket,
			   const struct fact *fact)
{
	struct stratum *const host = &transfer->coord->host;
	uint32_t              kept = 0;
	uint32_t              i;

	for (i = 0; i < ticket->block_count; i++) {
		uint32_t block = ticket->blocks[i];

		if (!bits_test(fact->ok.words, i)) {
			stratum_unpin(host, block);
			continue;
		}
		block = stratum_publish(host, &ticket->keys[i], block);
		if (block == ticket->blocks[i])
			transfer->fetched_by[block] = ticket->lease_id;
		ticket->blocks[kept++] = block;
	}
	transfer->host_refs -= ticket->block_count - kept;
	ticket->block_count = kept;
	ticket->deadline_ns = mono_transfer_until(transfer, transfer->limits.hold_ns);
	mono_transfer_wake_up(transfer, ticket, kept > 0 ? MONO_TRANSFER_READY : outcome_of(fact));
}
