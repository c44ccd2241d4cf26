/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The write transaction: offer, recheck, PUT.
 *
 * Candidates own nothing: a block evicted before its turn is skipped, so write pressure never pins
 * Host memory.  Only a dispatched PUT holds its sources, until they retire.
 */
#include "base/bits.h"
#include "transfer/parts.h"

static uint32_t put_ticket_max(const struct transfer *transfer)
{
	return transfer->limits.op_credits / 2;
}

static uint32_t put_ref_max(const struct transfer *transfer)
{
	return transfer->limits.host_credits / 2;
}

/* --- candidates ------------------------------------------------------------------------------- */

static void count_drops(struct transfer *transfer, enum backup_drop reason, uint32_t count)
{
	transfer->counts.drops[reason] += count;
	transfer->counts.counters[TRANSFER_PRESSURE_DROPS] += reason == BACKUP_PRESSURE ? count : 0;
}

void backups_drop(struct transfer *transfer, enum backup_drop reason)
{
	struct backup_candidate candidate;

	while (ring_pop(&transfer->backups, &candidate))
		count_drops(transfer, reason, 1);
}

void transfer_discard_backups(struct transfer *transfer)
{
	backups_drop(transfer, BACKUP_CLEANUP);
}

/*
 * Why an offer is not even queued; BACKUP_DROP_COUNT: it is.  In quarantine it waits for the
 * notice.
 */
static enum backup_drop rejection(const struct transfer *transfer)
{
	if (put_ticket_max(transfer) == 0 || put_ref_max(transfer) == 0)
		return BACKUP_DISABLED;
	if (transfer->gate_closed)
		return BACKUP_PRESSURE;
	if (transfer->intent || !transfer->permits.storage)
		return BACKUP_CLEANUP;
	return BACKUP_DROP_COUNT;
}

void transfer_offer(struct transfer *transfer, const struct cell_name *name)
{
	const struct backup_candidate candidate = { *name->space, *name->hash, name->group,
						    name->offset };
	const enum backup_drop        reason = rejection(transfer);
	struct backup_candidate       oldest;

	if (reason != BACKUP_DROP_COUNT) {
		count_drops(transfer, reason, 1);
		return;
	}
	if (ring_full(&transfer->backups)) {
		ring_pop(&transfer->backups, &oldest);
		count_drops(transfer, BACKUP_OVERFLOW, 1);
	}
	ring_push(&transfer->backups, &candidate);
}

/* --- dispatch --------------------------------------------------------------------------------- */

/* Host references that a put may still take, of both its own half and the whole. */
static uint32_t refs_left(const struct transfer *transfer)
{
	const uint32_t own = put_ref_max(transfer) - transfer->put_refs;
	const uint32_t all = transfer->limits.host_credits - transfer->host_refs;

	return own < all ? own : all;
}

static void add(struct transfer *transfer, struct ticket *ticket,
		const struct backup_candidate *candidate)
{
	const struct cell_name name = { &candidate->space, &candidate->hash, candidate->group,
					candidate->offset };
	const uint32_t         block = cache_find(transfer->cache, STRATUM_HOST, &name);
	size_t                 place;

	if (block == BLOCK_NULL) {
		count_drops(transfer, BACKUP_GONE, 1);
		return;
	}
	place = transfer_place(transfer, name.group, block);
	/* Published twice, or offered twice: the put under way keeps it for both. */
	if (bits_test(transfer->putting, place)) {
		transfer->counts.counters[TRANSFER_COALESCED]++;
		return;
	}
	bits_set(transfer->putting, place);
#ifndef KVS_MUTANT_DROP_PIN /* Planted bug: a put does not hold what it reads. */
	cache_pin(transfer->cache, STRATUM_HOST, name.group, block);
#endif
	ticket->sources[ticket->source_count++] = (struct cache_block){ name.group, block };
	op_add(transfer, ticket, name.space, name.hash, name.group, name.offset, block);
}

/* Pin resident candidates into the ticket, up to a batch. */
static void collect(struct transfer *transfer, struct ticket *ticket)
{
	const uint32_t   left = refs_left(transfer);
	const uint32_t   batch = transfer->limits.put_keys_max;
	const uint32_t   most = left < batch ? left : batch;
	struct backup_candidate candidate;

	while (ticket->source_count < most && ring_pop(&transfer->backups, &candidate))
		add(transfer, ticket, &candidate);
	ticket_charge(transfer, ticket, ticket->source_count);
}

bool backups_may_start(const struct transfer *transfer)
{
	return transfer->backups.count > 0 && transfer_closed(transfer) == READ_ASKED &&
	       transfer->put_tickets < put_ticket_max(transfer) && refs_left(transfer) > 0 &&
	       transfer->slots.busy_count < transfer->limits.op_credits;
}

void backups_dispatch(struct transfer *transfer)
{
	while (backups_may_start(transfer)) {
		struct ticket *const ticket = ticket_take(transfer, OP_PUT);

		transfer->put_tickets++;
		collect(transfer, ticket);
		if (ticket->source_count == 0) {
			/* Every candidate was gone, or is being put. */
			ticket_forget_id(transfer, ticket);
			ticket_end(transfer, ticket);
			return;
		}
		ticket_step(transfer, ticket, TICKET_ON_START_PUT, NULL);
	}
}

void put_done(struct transfer *transfer, const struct ticket *ticket, const struct fact *fact)
{
	const bool no_space = fact->reason == OP_REASON_NO_SPACE;
	uint32_t   stored = 0;
	uint32_t   i;

	for (i = 0; i < fact->key_count; i++) {
		if (!bits_test(fact->ok.words, i))
			continue;
		history_take(transfer, &ticket->keys[i]);
		stored++;
	}
	count_drops(transfer, no_space ? BACKUP_NO_SPACE : BACKUP_FAILED, fact->key_count - stored);
}
