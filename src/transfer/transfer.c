/* SPDX-License-Identifier: Apache-2.0 */
/* The round.  See transfer.h. */
#include "transfer/transfer.h"

#include "base/bits.h"
#include "transfer/parts.h"

void transfer_begin(struct transfer *transfer)
{
	transfer->out.op_count = 0;
	transfer->out.wake_count = 0;
}

const struct transfer_outputs *transfer_out(const struct transfer *transfer)
{
	return &transfer->out;
}

/* --- the tick --------------------------------------------------------------------------------- */

static void expire_waits(struct transfer *transfer)
{
	while (transfer->waits.count > 0) {
		struct ticket *const ticket = &transfer->tickets[transfer->waits.head];

		if (transfer->now_ns < ticket->deadline_ns)
			return;
		transfer->counts.counters[TRANSFER_SOFT_TIMEOUTS]++;
		transfer_wake_up(transfer, ticket, READ_DEADLINE);
		ticket_step(transfer, ticket, TICKET_ON_DETACH, NULL);
	}
}

static void expire_holds(struct transfer *transfer)
{
	while (transfer->holds.count > 0) {
		struct ticket *const ticket = &transfer->tickets[transfer->holds.head];

		if (transfer->now_ns < ticket->deadline_ns)
			return;
		transfer->counts.counters[TRANSFER_EXPIRED_HOLDS]++;
#ifdef KVS_MUTANT_EXPIRED_HOLD_KEEPS_CREDIT /* Planted bug: the blocks go, their credits do not. */
		transfer->host_refs += ticket->charge;
#endif
		ticket_step(transfer, ticket, TICKET_ON_DETACH, NULL);
	}
}

static void expire(struct transfer *transfer)
{
	expire_waits(transfer);
	expire_holds(transfer);
}

static struct ticket *find(struct transfer *transfer, uint64_t op_id)
{
	const uint32_t slot = map_find(&transfer->ids, map_hash(&transfer->ids, &op_id), &op_id);

	/* Ids are never used again, so what is not there has been answered before. */
	KVS_ASSERT_CMP(slot, !=, SLOT_NONE);
	return &transfer->tickets[slot];
}

/* The fact of a GET that somebody waits for. */
static void got(struct transfer *transfer, struct ticket *ticket, const struct fact *fact)
{
	if (transfer_publish(transfer, ticket, fact)) {
		ticket_step(transfer, ticket, TICKET_ON_RETIRED, fact);
		return;
	}
	transfer_wake_up(transfer, ticket, ticket->shortfall.cause);
	ticket_step(transfer, ticket, TICKET_ON_MISS, fact);
}

/* Payload is in doubt or retired; what a GET says of objects is true however it ended. */
static void apply_io(struct transfer *transfer, const struct fact *fact)
{
	struct ticket *const ticket = find(transfer, fact->op_id);
	bool                 retired = fact->retired;

#ifdef KVS_MUTANT_PUBLISH_UNRETIRED /* Planted bug: publishes what the store may still write. */
	retired |= ticket->state == TICKET_GET;
#endif
	if (ticket->op.kind == OP_GET)
		negatives_take(transfer, ticket, fact);
	if (!retired) {
		ticket_step(transfer, ticket, TICKET_ON_UNRETIRED, fact);
		return;
	}
	ticket_forget_id(transfer, ticket);
#ifdef KVS_MUTANT_PUBLISH_DETACHED /* Planted bug: publishes what nobody waits for. */
	if (ticket->state == TICKET_DRAIN && ticket->op.kind == OP_GET &&
	    bits_prefix(fact->ok.words, fact->key_count) == fact->key_count)
		transfer_publish(transfer, ticket, fact);
#endif
	if (ticket->state == TICKET_GET)
		got(transfer, ticket, fact);
	else
		ticket_step(transfer, ticket, TICKET_ON_RETIRED, fact);
}

/* A QUERY was given no bytes that could be in doubt. */
static void apply_query(struct transfer *transfer, const struct fact *fact)
{
	struct ticket *const ticket = find(transfer, fact->op_id);

	ticket_forget_id(transfer, ticket);
	if (ticket->state == TICKET_QUERY)
		transfer_found(transfer, ticket, fact);
	else
		ticket_step(transfer, ticket, TICKET_ON_RETIRED, fact);
}

/*
 * Those of payload first: what comes into doubt with them stops new GETs, what they give back
 * serves them.
 */
static void apply_facts(struct transfer *transfer, const struct tick *tick)
{
	uint32_t i;

	for (i = 0; i < tick->fact_count; i++) {
		if (find(transfer, tick->facts[i].op_id)->op.kind != OP_QUERY)
			apply_io(transfer, &tick->facts[i]);
	}
	for (i = 0; i < tick->fact_count; i++) {
		const struct ticket *const ticket = transfer_find(transfer, tick->facts[i].op_id);

		if (ticket && ticket->op.kind == OP_QUERY)
			apply_query(transfer, &tick->facts[i]);
	}
}

static void apply_notices(struct transfer *transfer, const struct tick *tick)
{
	uint32_t i;

	for (i = 0; i < tick->notice_count; i++) {
		struct ticket *const ticket = find(transfer, tick->notices[i].op_id);

		ticket_forget_id(transfer, ticket);
		ticket_step(transfer, ticket, TICKET_ON_NOTICE, NULL);
	}
}

void transfer_tick(struct transfer *transfer, const struct tick *tick)
{
	KVS_ASSERT_CMP(tick->now_ns, >=, transfer->now_ns);
	transfer->now_ns = tick->now_ns;
	transfer->permits = tick->permits;
	gate_apply(transfer, tick);
#ifndef KVS_MUTANT_DEADLINES_LAST /* Planted bug: completes and publishes on the tick of its deadline. */
	expire(transfer);
#endif
	watch_apply(transfer);
	apply_facts(transfer, tick);
#ifdef KVS_MUTANT_DEADLINES_LAST
	expire(transfer);
#endif
	apply_notices(transfer, tick);
	backups_dispatch(transfer);
}

/* --- leases ----------------------------------------------------------------------------------- */

void transfer_drop_lease(struct transfer *transfer, struct lease lease)
{
	struct ticket *const ticket = &transfer->tickets[lease.ticket];

	if (lease.id != 0 && ticket->lease.id == lease.id)
		ticket_step(transfer, ticket, TICKET_ON_DETACH, NULL);
}

/* --- maintenance ------------------------------------------------------------------------------ */

bool transfer_is_quiet(const struct transfer *transfer)
{
	return transfer->slots.busy_count == 0;
}

bool transfer_clear(struct transfer *transfer)
{
	if (!transfer_is_quiet(transfer))
		return false;
	transfer_discard_backups(transfer);
	tails_clear(&transfer->tails);
	roll_clear(&transfer->negatives);
	roll_clear(&transfer->history);
	return true;
}

void transfer_record_tail(struct transfer *transfer, const struct kvs_namespace *space,
			  const struct prefix_hash *prior, uint32_t token_count,
			  const struct prefix_hash *hash)
{
	tails_record(&transfer->tails, space, prior, token_count, hash);
}

const struct tails *transfer_tails(const struct transfer *transfer)
{
	return &transfer->tails;
}

/* --- facts for people and for loops ----------------------------------------------------------- */

struct transfer_load transfer_load(const struct transfer *transfer)
{
	const uint32_t tickets = transfer->slots.busy_count;

	return (struct transfer_load){ .tickets = tickets,
				       .waiting = tickets - transfer->ready - transfer->quarantined,
				       .ready = transfer->ready,
				       .quarantined = transfer->quarantined,
				       .host_refs = transfer->host_refs,
				       .put_refs = transfer->put_refs,
				       .put_tickets = transfer->put_tickets,
				       .backups = transfer->backups.count,
				       .negatives = transfer->negatives.age.count,
				       .gate_closed = transfer->gate_closed,
				       .intent = transfer->intent };
}

uint64_t transfer_wake_ns(const struct transfer *transfer)
{
	uint64_t earliest_ns = UINT64_MAX;

	if (transfer->stirred.count > 0 || transfer->intent_new || backups_may_start(transfer))
		return transfer->now_ns;
	if (transfer->waits.count > 0)
		earliest_ns = transfer->tickets[transfer->waits.head].deadline_ns;
	if (transfer->holds.count > 0 &&
	    transfer->tickets[transfer->holds.head].deadline_ns < earliest_ns)
		earliest_ns = transfer->tickets[transfer->holds.head].deadline_ns;
	return earliest_ns;
}

struct transfer_counts transfer_counts(const struct transfer *transfer)
{
	return transfer->counts;
}

/* --- audit ------------------------------------------------------------------------------------ */

struct tally {
	uint32_t host_refs, put_refs, puts, quarantined, ready, waits, ids;
};

static void audit_ticket(const struct transfer *transfer, const struct ticket *ticket,
			 struct tally *tally)
{
	const bool put = ticket->op.kind == OP_PUT;
	const bool waits = ticket->state == TICKET_QUERY || ticket->state == TICKET_GET;
	const bool answered = ticket->state == TICKET_READY;

	tally->host_refs += ticket->charge;
	tally->put_refs += put ? ticket->charge : 0;
	tally->puts += put;
	tally->quarantined += ticket->state == TICKET_QUARANTINE;
	tally->ready += ticket->state == TICKET_READY;
	tally->waits += waits;
	tally->ids += !answered;
	KVS_ASSERT(transfer_find(transfer, ticket->op.op_id) == (answered ? NULL : ticket));
	KVS_ASSERT(waits || ticket->watch == SLOT_NONE);
	KVS_ASSERT(!(waits || answered) || ticket->lease.id != 0);
	KVS_ASSERT_CMP(list_is_linked(transfer->timed, ticket_slot(transfer, ticket)), ==,
		       waits || answered);
	if (ticket->reservation.row_count > 0)
		cache_reservation_audit(transfer->cache, &ticket->reservation);
}

static void audit_order(const struct transfer *transfer, const struct list *list)
{
	uint64_t last_ns = 0;
	uint32_t slot;

	list_audit(list, transfer->timed, transfer->limits.op_credits);
	for (slot = list->head; slot != SLOT_NONE; slot = transfer->timed[slot].next) {
		KVS_ASSERT_CMP(transfer->tickets[slot].deadline_ns, >=, last_ns);
		last_ns = transfer->tickets[slot].deadline_ns;
	}
}

void transfer_audit(const struct transfer *transfer)
{
	struct tally tally = { 0 };
	uint32_t     slot;

	slots_audit(&transfer->slots);
	map_audit(&transfer->ids);
	for (slot = 0; slot < transfer->slots.count; slot++) {
		const struct ticket *const ticket = &transfer->tickets[slot];

		KVS_ASSERT_CMP(slots_busy(&transfer->slots, slot), ==,
			       ticket->state != TICKET_FREE);
		if (ticket->state != TICKET_FREE)
			audit_ticket(transfer, ticket, &tally);
	}
	KVS_ASSERT_CMP(tally.host_refs, ==, transfer->host_refs);
	KVS_ASSERT_CMP(tally.put_refs, ==, transfer->put_refs);
	KVS_ASSERT_CMP(tally.puts, ==, transfer->put_tickets);
	KVS_ASSERT_CMP(tally.quarantined, ==, transfer->quarantined);
	KVS_ASSERT_CMP(tally.ready, ==, transfer->ready);
	KVS_ASSERT_CMP(tally.ready, ==, transfer->holds.count);
	KVS_ASSERT_CMP(tally.waits, ==, transfer->waits.count);
	KVS_ASSERT_CMP(tally.ids, ==, transfer->ids.count);
	KVS_ASSERT_CMP(transfer->host_refs, <=, transfer->limits.host_credits);
	KVS_ASSERT_CMP(transfer->put_refs, <=, transfer->limits.host_credits / 2);
	KVS_ASSERT_CMP(transfer->put_tickets, <=, transfer->limits.op_credits / 2);
	audit_order(transfer, &transfer->waits);
	audit_order(transfer, &transfer->holds);
	watch_audit(transfer);
	roll_audit(&transfer->negatives);
	roll_audit(&transfer->history);
	tails_audit(&transfer->tails);
}
