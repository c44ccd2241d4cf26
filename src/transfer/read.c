/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The read transaction: QUERY what is missing, reserve for what was found, GET, publish what came whole.
 *
 * A hit is only ever established by publishing: the store's answer to a QUERY is a hint that buys destinations.
 */
#include "transfer/transfer.h"

static enum transfer_outcome refuse(struct transfer *transfer, enum transfer_outcome outcome)
{
	transfer->outcomes[outcome]++;
	return outcome;
}

/*
 * The keys that the Host lacks, in order, up to the ticket's size.  A Device copy is no answer: these pages
 * lie beyond the local prefix, so the request can use them through the Host only.
 */
static uint32_t collect_missing(struct transfer *transfer, const struct kvs_key *keys, uint32_t key_count,
				struct kvs_key *ret_missing)
{
	uint32_t count = 0;
	uint32_t i;

	for (i = 0; i < key_count && count < transfer->limits.keys_max; i++) {
		if (stratum_find(&transfer->coord->host, &keys[i]) == SLOT_NONE)
			ret_missing[count++] = keys[i];
	}
	return count;
}

enum transfer_outcome transfer_read(struct transfer *transfer, uint32_t request, const struct kvs_key *keys,
				    uint32_t key_count, uint64_t *ret_lease_id)
{
	struct ticket *ticket;

	KVS_ASSERT_CMP(key_count, >, 0);
	if (transfer->quarantined > 0)
		return refuse(transfer, TRANSFER_QUARANTINE);
	if (transfer->host_refs >= transfer->limits.host_credits)
		return refuse(transfer, TRANSFER_CREDITS);
	ticket = transfer_ticket(transfer);
	if (!ticket)
		return refuse(transfer, TRANSFER_CREDITS);

	ticket->request = request;
	ticket->lease_id = ticket->op.op_id;
	if (transfer->limits.deadline_ns != UINT64_MAX)
		ticket->deadline_ns = transfer->now_ns + transfer->limits.deadline_ns;
	ticket->op.kind = OP_QUERY;
	ticket->op.spans = NULL;
	ticket->op.key_count = collect_missing(transfer, keys, key_count, ticket->keys);
	/* The caller asks for keys beyond its local prefix, so the first one is missing. */
	KVS_ASSERT_CMP(ticket->op.key_count, >, 0);
	op_own_all(&ticket->op);
	*ret_lease_id = ticket->lease_id;
	ticket_step(transfer, ticket, TICKET_ON_START_READ, NULL);
	return TRANSFER_READY;
}

/* Keep the found prefix, less what was published since, and give each key a private destination. */
static enum transfer_outcome reserve(struct transfer *transfer, struct ticket *ticket, uint32_t found)
{
	struct stratum *const  host = &transfer->coord->host;
	enum transfer_outcome  short_of = TRANSFER_MISS;
	uint32_t               count = 0;
	uint32_t               i;

	for (i = 0; i < found; i++) {
		uint32_t block;

		if (stratum_find(host, &ticket->keys[i]) != SLOT_NONE)
			continue;
		if (transfer->host_refs + count >= transfer->limits.host_credits) {
			short_of = TRANSFER_CREDITS;
			break;
		}
		block = stratum_acquire(host);
		if (block == SLOT_NONE) {
			short_of = TRANSFER_HOST_ROOM;
			break;
		}
		ticket->keys[count] = ticket->keys[i];
		ticket->blocks[count] = block;
		ticket->spans[count++] = arena_block(transfer->part, block);
	}
	ticket->block_count = count;
	transfer->host_refs += count;
	return count > 0 ? TRANSFER_READY : short_of;
}

void transfer_found(struct transfer *transfer, struct ticket *ticket, const struct fact *fact)
{
	const uint32_t        found = (uint32_t)bits_prefix(fact->ok.words, fact->key_count);
	enum transfer_outcome outcome = found > 0 ? reserve(transfer, ticket, found) : transfer_outcome_of(fact);

	if (outcome != TRANSFER_READY) {
		transfer_wake_up(transfer, ticket, outcome);
		ticket_step(transfer, ticket, TICKET_ON_MISS, fact);
		return;
	}
	ticket->op = (struct op){ .op_id = transfer->next_op_id++, .kind = OP_GET, .key_count = ticket->block_count,
				  .keys = ticket->keys, .spans = ticket->spans };
	op_own_all(&ticket->op);
	ticket_step(transfer, ticket, TICKET_ON_HIT, fact);
}

/*
 * Whole rows become Host entries, held for the request until its admission or the end of the hold; the others
 * give their blocks back.  All of them have retired.
 */
void transfer_publish(struct transfer *transfer, struct ticket *ticket, const struct fact *fact)
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
	ticket->deadline_ns = transfer->now_ns + transfer->limits.hold_ns;
	transfer_wake_up(transfer, ticket, kept > 0 ? TRANSFER_READY : transfer_outcome_of(fact));
}
