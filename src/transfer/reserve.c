/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the answer of a QUERY to a GET.
 *
 * What the store says is a hint that buys destinations: a hit is only ever established by
 * publishing.
 */
#include "base/bits.h"
#include "transfer/parts.h"

enum read_outcome outcome_of(const struct fact *fact)
{
	switch (fact->reason) {
	case OP_REASON_NONE:
	case OP_REASON_MISS:
		return READ_NEVER_STORED;
	case OP_REASON_CORRUPT:
		return READ_CORRUPT;
	case OP_REASON_QUARANTINE:
		return READ_QUARANTINE;
	case OP_REASON_HEALTH:
		return READ_COOLDOWN;
	case OP_REASON_QUEUE:
	case OP_REASON_CLOSED:
		return READ_REFUSED;
	case OP_REASON_CANCELLED:
	case OP_REASON_NO_SPACE:
	case OP_REASON_BACKEND:
	case OP_REASON_COUNT:
		break;
	}
	return READ_BACKEND;
}

/* Of what the longest boundary misses, the first block in the prompt that the store lacks; NULL. */
static const struct query_key *first_missing(const struct transfer *transfer,
					     const struct ticket *ticket, const struct fact *fact)
{
	const struct query_key *first = NULL;
	uint64_t                first_tokens = UINT64_MAX;
	uint32_t                i;

	for (i = 0; i < ticket->wanted_end; i++) {
		const struct query_key *const key = &ticket->asked[i];
		const struct group *const     group =
			&transfer->groups->group[query_key_group(&transfer->query, key)];
		const uint64_t tokens =
			group_tokens_at(group, query_key_position(&transfer->query, key));

		if (bits_test(fact->ok.words, i) || tokens >= first_tokens)
			continue;
		first = key;
		first_tokens = tokens;
	}
	return first;
}

/* Nothing longer is there: whose fault is it? */
static enum read_outcome missing(const struct transfer *transfer, struct ticket *ticket,
				 const struct fact *fact)
{
	const struct query_key *const first = first_missing(transfer, ticket, fact);
	const enum read_outcome       outcome = outcome_of(fact);

	if (outcome != READ_NEVER_STORED)
		return outcome;
	if (!first)
		return READ_LOST;
	return bits_test(ticket->was_put.words, (size_t)(first - ticket->asked)) ? READ_EVICTED
									       : READ_NEVER_STORED;
}

/* --- the reservation -------------------------------------------------------------------------- */

/* Set the bit of each block that the store has, or clear it again. */
static void mark_hints(struct transfer *transfer, const struct ticket *ticket,
		       const struct fact *fact, bool set)
{
	uint32_t i;

	for (i = 0; i < ticket->op.key_count; i++) {
		const struct query_key *const key = &ticket->asked[i];
		const size_t bit = (size_t)key->page * transfer->groups->columns + key->column;

		if (!bits_test(fact->ok.words, i))
			continue;
		if (key->tail == TAIL_NONE && set)
			bits_set(transfer->page_bits, bit);
		else if (key->tail == TAIL_NONE)
			bits_clear(transfer->page_bits, bit);
		else if (set)
			transfer->tail_bits[key->tail] |= UINT64_C(1) << key->column;
		else
			transfer->tail_bits[key->tail] = 0;
	}
}

/*
 * Why it ends before the longest boundary that was asked for: want of room, an object, or what was
 * there.
 */
static void point_at_end(const struct transfer *transfer, struct ticket *ticket,
			 const struct fact *fact)
{
	const enum reserve_answer     by = ticket->reservation.shortened_by;
	const struct query_key *const first = first_missing(transfer, ticket, fact);
	struct shortfall *const       shortfall = &ticket->shortfall;

	shortfall->group = SHORTFALL_NONE;
	if (by == RESERVE_CREDITS || by == RESERVE_HOST_FULL) {
		shortfall->cause = by == RESERVE_CREDITS ? READ_CREDITS : READ_HOST_ROOM;
		return;
	}
	shortfall->cause = missing(transfer, ticket, fact);
	if (!first || outcome_of(fact) != READ_NEVER_STORED)
		return;
	shortfall->group = query_key_group(&transfer->query, first);
	shortfall->position = query_key_position(&transfer->query, first);
}

static enum reserve_answer reserve(struct transfer *transfer, struct ticket *ticket,
				   const struct fact *fact)
{
	const struct cache_reserve_ask ask = {
		.prompt = { ticket->ask.space, ticket->ask.hashes, ticket->ask.page_count,
			    ticket->tails, ticket->tail_count },
		.page_hints = transfer->page_bits,
		.tail_hints = transfer->tail_bits,
		.credits = transfer->limits.host_credits - transfer->host_refs,
	};
	enum reserve_answer answer;
	int                 rc;

	mark_hints(transfer, ticket, fact, true);
	rc = cache_reserve(&transfer->reserver, &ask, &ticket->reservation, &answer, NULL);
	KVS_ASSERT(rc == 0); /* It was checked when it was asked for. */
	mark_hints(transfer, ticket, fact, false);
	ticket->shortfall.tokens = ticket->reservation.tokens;
	if (ticket->reservation.tokens < ticket->wanted_tokens)
		point_at_end(transfer, ticket, fact);
	return answer;
}

/* Destinations for what a QUERY found, READ_ASKED; else why there are none. */
static enum read_outcome destine(struct transfer *transfer, struct ticket *ticket,
				 const struct fact *fact)
{
	const enum read_outcome closed = transfer_closed(transfer);
	enum reserve_answer     answer;

	if (closed != READ_ASKED)
		return closed;
	answer = reserve(transfer, ticket, fact);
	if (answer == RESERVE_ROWS)
		return READ_ASKED;
	if (answer == RESERVE_COVERED || ticket->reservation.local_tokens >= ticket->wanted_tokens)
		return READ_LOCAL;
	return ticket->shortfall.cause;
}

void transfer_found(struct transfer *transfer, struct ticket *ticket, const struct fact *fact)
{
	const struct cache_reservation *const reservation = &ticket->reservation;
	const enum read_outcome               outcome = destine(transfer, ticket, fact);
	uint32_t                              i;

	if (outcome != READ_ASKED) {
		transfer->counts.counters[TRANSFER_LOCAL] += outcome == READ_LOCAL;
		if (outcome == READ_LOCAL)
			ticket->shortfall.group = SHORTFALL_NONE;
		transfer_wake_up(transfer, ticket, outcome);
		ticket_step(transfer, ticket, TICKET_ON_MISS, fact);
		return;
	}
	ticket_op(transfer, ticket, OP_GET);
	for (i = 0; i < reservation->row_count; i++) {
		const struct cache_row *const row = &reservation->rows[i];

		op_add(transfer, ticket, &reservation->space, &row->hash, row->group, row->offset,
		       row->block);
	}
	ticket_charge(transfer, ticket, reservation->row_count);
	ticket->wanted_tokens = reservation->tokens;
	watch_end(transfer, ticket);
	watch_begin(transfer, ticket, &ticket->keys[reservation->row_count - 1]);
	ticket_step(transfer, ticket, TICKET_ON_HIT, fact);
}
