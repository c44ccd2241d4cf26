/* SPDX-License-Identifier: Apache-2.0 */
/* The round: deadlines, completions, backups; and what tickets share.  See transfer.h. */
#include "mono_transfer/parts.h"

#include <errno.h>
#include <stdlib.h>

#define OPS_A_TICKET 3u

static int check_limits(const struct mono_transfer_limits *limits, struct kvs_error *err)
{
	if (limits->op_credits == 0)
		return err_set(err, KVS_E_INVALID, "op_credits: 0 admits nothing; use at least 1");
	if (limits->host_credits == 0) {
		return err_set(err, KVS_E_INVALID,
			       "host_credits: 0 admits nothing; use at least 1");
	}
	if (limits->keys_max == 0 || limits->keys_max > OP_KEYS_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "keys of one read: %u is out of range; use 1 to %u",
			       limits->keys_max, OP_KEYS_MAX);
	}
	if (limits->put_keys_max == 0 || limits->put_keys_max > limits->keys_max) {
		return err_set(err, KVS_E_INVALID,
			       "keys of one put: %u is out of range; use 1 to %u",
			       limits->put_keys_max, limits->keys_max);
	}
	if (limits->backup_queue == 0)
		return err_set(err, KVS_E_INVALID, "backup_queue: 0 keeps nothing; use at least 1");
	return 0;
}

static int open_tickets(struct mono_transfer *transfer)
{
	const struct mono_transfer_limits *const limits = &transfer->limits;
	uint32_t                                 i;

	transfer->tickets = calloc(limits->op_credits, sizeof(*transfer->tickets));
	if (!transfer->tickets)
		return -ENOMEM;
	for (i = 0; i < limits->op_credits; i++) {
		struct mono_ticket *const ticket = &transfer->tickets[i];

		ticket->keys = calloc(limits->keys_max, sizeof(*ticket->keys));
		ticket->spans = calloc(limits->keys_max, sizeof(*ticket->spans));
		ticket->blocks = calloc(limits->keys_max, sizeof(*ticket->blocks));
		if (!ticket->keys || !ticket->spans || !ticket->blocks)
			return -ENOMEM;
	}
	return slots_open(&transfer->slots, limits->op_credits);
}

int mono_transfer_open(struct mono_transfer *transfer, const struct mono_transfer_limits *limits,
		       struct coord *coord, const struct arena_part *part, struct kvs_error *err)
{
	const int rc = check_limits(limits, err);

	*transfer = (struct mono_transfer){
		.limits = *limits, .coord = coord, .part = part, .next_op_id = 1
	};
	if (rc < 0)
		return rc;
	/*
	 * The most a ticket can emit in one round: the cancel of a read whose fact comes in the
	 * same round, the op of the next ticket in its place, and the cancel of that one.  Only the
	 * first of them wakes anybody.
	 */
	transfer->out.ops = calloc(OPS_A_TICKET * (size_t)limits->op_credits,
				   sizeof(*transfer->out.ops));
	transfer->out.wakes = calloc(limits->op_credits, sizeof(*transfer->out.wakes));
	transfer->putting = calloc(bits_words(part->block_count), sizeof(*transfer->putting));
	transfer->fetched_by = calloc(part->block_count, sizeof(*transfer->fetched_by));
	if (!transfer->out.ops || !transfer->out.wakes || !transfer->putting || !transfer->fetched_by ||
	    open_tickets(transfer) < 0 ||
	    ring_open(&transfer->backups, limits->backup_queue, sizeof(struct kvs_key)) < 0) {
		mono_transfer_close(transfer);
		return err_set(err, -ENOMEM, "no memory for %u tickets", limits->op_credits);
	}
	return 0;
}

void mono_transfer_close(struct mono_transfer *transfer)
{
	uint32_t i;

	for (i = 0; transfer->tickets && i < transfer->limits.op_credits; i++) {
		free(transfer->tickets[i].keys);
		free(transfer->tickets[i].spans);
		free(transfer->tickets[i].blocks);
	}
	free(transfer->tickets);
	free(transfer->out.ops);
	free(transfer->out.wakes);
	free(transfer->putting);
	free(transfer->fetched_by);
	slots_close(&transfer->slots);
	ring_close(&transfer->backups);
	*transfer = (struct mono_transfer){ 0 };
}

void mono_transfer_emit(struct mono_transfer *transfer, const struct op *op)
{
	KVS_ASSERT_CMP(transfer->out.op_count, <, OPS_A_TICKET * transfer->limits.op_credits);
	transfer->out.ops[transfer->out.op_count++] = *op;
}

void mono_transfer_wake_up(struct mono_transfer *transfer, const struct mono_ticket *ticket,
			   enum mono_transfer_outcome outcome)
{
	KVS_ASSERT_CMP(transfer->out.wake_count, <, transfer->limits.op_credits);
	transfer->out.wakes[transfer->out.wake_count++] = (struct mono_transfer_wake){
		.request = ticket->request, .lease_id = ticket->lease_id, .outcome = outcome
	};
	transfer->outcomes[outcome]++;
}

uint64_t mono_transfer_until(const struct mono_transfer *transfer, uint64_t ns)
{
	return ns < UINT64_MAX - transfer->now_ns ? transfer->now_ns + ns : UINT64_MAX;
}

struct mono_ticket *mono_transfer_ticket(struct mono_transfer *transfer)
{
	const uint32_t            slot = slots_acquire(&transfer->slots);
	struct mono_ticket *const ticket = slot == SLOT_NONE ? NULL : &transfer->tickets[slot];

	if (!ticket)
		return NULL;
	KVS_ASSERT_CMP(ticket->state, ==, MONO_TICKET_FREE);
	KVS_ASSERT_CMP(ticket->block_count, ==, 0);
	ticket->op = (struct op){ .op_id = transfer->next_op_id++,
				  .keys = ticket->keys,
				  .spans = ticket->spans };
	ticket->lease_id = 0;
	ticket->deadline_ns = UINT64_MAX;
	return ticket;
}

void mono_transfer_ticket_end(struct mono_transfer *transfer, struct mono_ticket *ticket)
{
	const bool put = ticket->op.kind == OP_PUT;
	uint32_t   i;

	KVS_ASSERT_CMP(ticket->state, ==, MONO_TICKET_FREE);
	for (i = 0; i < ticket->block_count; i++) {
		if (put)
			bits_clear(transfer->putting, ticket->blocks[i]);
		/* The block may be another lease's, when both read one key. */
		if (!put && transfer->fetched_by[ticket->blocks[i]] == ticket->lease_id)
			transfer->fetched_by[ticket->blocks[i]] = 0;
		stratum_unpin(&transfer->coord->host, ticket->blocks[i]);
	}
	transfer->host_refs -= ticket->block_count;
	if (put) {
		transfer->put_host_refs -= ticket->block_count;
		transfer->put_tickets--;
	}
	ticket->block_count = 0;
	slots_release(&transfer->slots, (uint32_t)(ticket - transfer->tickets));
}

static struct mono_ticket *find(struct mono_transfer *transfer, uint64_t id, bool by_lease)
{
	uint32_t slot;

	SLOTS_EACH(&transfer->slots, slot) {
		struct mono_ticket *const ticket = &transfer->tickets[slot];

		if ((by_lease ? ticket->lease_id : ticket->op.op_id) == id)
			return ticket;
	}
	return NULL;
}

static void apply_deadlines(struct mono_transfer *transfer)
{
	uint32_t slot;

	SLOTS_EACH(&transfer->slots, slot) {
		struct mono_ticket *const ticket = &transfer->tickets[slot];

		if (transfer->now_ns < ticket->deadline_ns)
			continue;
		ticket->deadline_ns = UINT64_MAX;
		if (ticket->state == MONO_TICKET_READY)
			transfer->expired_holds++;
		else
			mono_transfer_wake_up(transfer, ticket, MONO_TRANSFER_DEADLINE);
		mono_ticket_step(transfer, ticket, MONO_TICKET_ON_DETACH, NULL);
	}
}

/* A query's answer decides between two edges; every other fact is about retirement. */
static void apply_fact(struct mono_transfer *transfer, const struct fact *fact)
{
	struct mono_ticket *const ticket = find(transfer, fact->op_id, false);
	bool                      retired;

	/* Ids are never reused, so a fact without a ticket would be a second one. */
	KVS_ASSERT(ticket != NULL);
	/* A query was given no bytes that could be in doubt. */
	retired = fact->retired || ticket->op.kind == OP_QUERY;
	if (ticket->state == MONO_TICKET_QUERY) {
		mono_transfer_found(transfer, ticket, fact);
	} else {
		mono_ticket_step(transfer, ticket,
				 retired ? MONO_TICKET_ON_RETIRED : MONO_TICKET_ON_UNRETIRED, fact);
	}
}

void mono_transfer_begin(struct mono_transfer *transfer, uint64_t now_ns)
{
	transfer->now_ns = now_ns;
	transfer->out.op_count = 0;
	transfer->out.wake_count = 0;
}

void mono_transfer_tick(struct mono_transfer *transfer, const struct fact *facts,
			uint32_t fact_count)
{
	uint32_t i;

#ifndef KVS_MUTANT_DEADLINES_LAST /* Planted bug: completes and publishes on the tick of its deadline. */
	apply_deadlines(transfer);
#endif
	for (i = 0; i < fact_count; i++)
		apply_fact(transfer, &facts[i]);
#ifdef KVS_MUTANT_DEADLINES_LAST
	apply_deadlines(transfer);
#endif
	mono_transfer_dispatch_backups(transfer);
}

int mono_transfer_notice(struct mono_transfer *transfer, const struct retirement_notice *notice)
{
	struct mono_ticket *const ticket = find(transfer, notice->op_id, false);

	if (!ticket || ticket->state != MONO_TICKET_QUARANTINE)
		return KVS_E_STALE;
	mono_ticket_step(transfer, ticket, MONO_TICKET_ON_NOTICE, NULL);
	return 0;
}

void mono_transfer_drop_lease(struct mono_transfer *transfer, uint64_t lease_id)
{
	struct mono_ticket *const ticket = lease_id ? find(transfer, lease_id, true) : NULL;

	/* The ticket may have ended by itself, or nobody waits for it already. */
	if (!ticket || ticket->state == MONO_TICKET_DRAIN)
		return;
	ticket->deadline_ns = UINT64_MAX;
	mono_ticket_step(transfer, ticket, MONO_TICKET_ON_DETACH, NULL);
}

bool mono_transfer_fetched(const struct mono_transfer *transfer, uint64_t lease_id,
			   uint32_t host_block)
{
	return lease_id != 0 && transfer->fetched_by[host_block] == lease_id;
}

uint32_t mono_transfer_in_flight(const struct mono_transfer *transfer)
{
	uint32_t count = 0;
	uint32_t slot;

	SLOTS_EACH(&transfer->slots, slot) {
		const enum mono_ticket_state state = transfer->tickets[slot].state;

		count += state != MONO_TICKET_READY && state != MONO_TICKET_QUARANTINE;
	}
	return count;
}

uint64_t mono_transfer_wake_ns(const struct mono_transfer *transfer)
{
	uint64_t earliest_ns = UINT64_MAX;
	uint32_t slot;

	SLOTS_EACH(&transfer->slots, slot) {
		const struct mono_ticket *const ticket = &transfer->tickets[slot];
		const bool waits =
			ticket->state == MONO_TICKET_QUERY || ticket->state == MONO_TICKET_GET;

		if (waits && ticket->deadline_ns < earliest_ns)
			earliest_ns = ticket->deadline_ns;
	}
	return earliest_ns;
}

void mono_transfer_audit(const struct mono_transfer *transfer)
{
	uint32_t host_refs = 0, put_refs = 0, puts = 0, quarantined = 0;
	uint32_t slot;

	slots_audit(&transfer->slots);
	for (slot = 0; slot < transfer->slots.count; slot++) {
		const struct mono_ticket *const ticket = &transfer->tickets[slot];
		const bool                      put = ticket->op.kind == OP_PUT;

		KVS_ASSERT_CMP(slots_busy(&transfer->slots, slot), ==,
			       ticket->state != MONO_TICKET_FREE);
		if (ticket->state == MONO_TICKET_FREE)
			continue;
		host_refs += ticket->block_count;
		put_refs += put ? ticket->block_count : 0;
		puts += put;
		quarantined += ticket->state == MONO_TICKET_QUARANTINE;
	}
	KVS_ASSERT_CMP(host_refs, ==, transfer->host_refs);
	KVS_ASSERT_CMP(put_refs, ==, transfer->put_host_refs);
	KVS_ASSERT_CMP(puts, ==, transfer->put_tickets);
	KVS_ASSERT_CMP(quarantined, ==, transfer->quarantined);
	KVS_ASSERT_CMP(host_refs, <=, transfer->limits.host_credits);
	KVS_ASSERT_CMP(put_refs, <=, transfer->limits.host_credits / 2);
	KVS_ASSERT_CMP(puts, <=, transfer->limits.op_credits / 2);
}
