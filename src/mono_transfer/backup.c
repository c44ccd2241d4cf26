/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The write transaction: offer, recheck, PUT.
 *
 * Candidates own nothing: a block evicted before its turn is skipped, so write pressure never pins
 * Host memory.  Only a dispatched PUT holds its sources, until they retire.
 */
#include "mono_transfer/parts.h"

static uint32_t put_ticket_max(const struct mono_transfer *transfer)
{
	return transfer->limits.op_credits / 2;
}

static uint32_t put_ref_max(const struct mono_transfer *transfer)
{
	return transfer->limits.host_credits / 2;
}

void mono_transfer_offer(struct mono_transfer *transfer, const struct kvs_key *key)
{
	struct kvs_key oldest;

	if (put_ticket_max(transfer) == 0 || put_ref_max(transfer) == 0) {
		transfer->drops[MONO_TRANSFER_DROP_DISABLED]++;
		return;
	}
	if (ring_full(&transfer->backups)) {
		ring_pop(&transfer->backups, &oldest);
		transfer->drops[MONO_TRANSFER_DROP_OVERFLOW]++;
	}
	ring_push(&transfer->backups, key);
}

void mono_transfer_discard_backups(struct mono_transfer *transfer)
{
	struct kvs_key key;

	while (ring_pop(&transfer->backups, &key))
		transfer->drops[MONO_TRANSFER_DROP_CLEANUP]++;
}

/* Host references that a put may still take, of both its own half and the whole. */
static uint32_t refs_left(const struct mono_transfer *transfer)
{
	const uint32_t own = put_ref_max(transfer) - transfer->put_host_refs;
	const uint32_t all = transfer->limits.host_credits - transfer->host_refs;

	return own < all ? own : all;
}

/* Pin resident candidates into the ticket, up to a batch. */
static void collect(struct mono_transfer *transfer, struct mono_ticket *ticket)
{
	struct stratum *const host = &transfer->coord->host;
	const uint32_t        left = refs_left(transfer);
	const uint32_t        batch = transfer->limits.put_keys_max;
	const uint32_t        most = left < batch ? left : batch;
	uint32_t              count = 0;
	struct kvs_key        key;

	while (count < most && ring_pop(&transfer->backups, &key)) {
		const uint32_t block = stratum_find(host, &key);

		if (block == SLOT_NONE) {
			transfer->drops[MONO_TRANSFER_DROP_GONE]++;
			continue;
		}
		/* Two requests computed it at once: the put under way keeps it for both. */
		if (bits_test(transfer->putting, block))
			continue;
		bits_set(transfer->putting, block);
#ifndef KVS_MUTANT_DROP_PIN /* Planted bug: a put does not hold what it reads. */
		stratum_pin(host, block);
#endif
		ticket->keys[count] = key;
		ticket->blocks[count] = block;
		ticket->spans[count++] = arena_block(transfer->part, block);
	}
	ticket->block_count = count;
	transfer->host_refs += count;
	transfer->put_host_refs += count;
}

void mono_transfer_dispatch_backups(struct mono_transfer *transfer)
{
	while (transfer->backups.count > 0 && transfer->quarantined == 0 &&
	       transfer->put_tickets < put_ticket_max(transfer) && refs_left(transfer) > 0) {
		struct mono_ticket *const ticket = mono_transfer_ticket(transfer);

		if (!ticket)
			return;
		ticket->op.kind = OP_PUT;
		transfer->put_tickets++;
		collect(transfer, ticket);
		if (ticket->block_count == 0) {
			/* Every candidate was gone, or is being put. */
			mono_transfer_ticket_end(transfer, ticket);
			return;
		}
		ticket->op.key_count = ticket->block_count;
		op_own_all(&ticket->op);
		mono_ticket_step(transfer, ticket, MONO_TICKET_ON_START_PUT, NULL);
	}
}

void mono_transfer_put_done(struct mono_transfer *transfer, const struct fact *fact)
{
	const bool no_space = fact->reason == OP_REASON_NO_SPACE;

	transfer->drops[no_space ? MONO_TRANSFER_DROP_NO_SPACE : MONO_TRANSFER_DROP_FAILED] +=
		fact->key_count - bits_count(fact->ok.words, fact->key_count);
}
