/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a GET brought: whole rows become Host's, and are held for the request until its admission or
 * the end of the hold.  All of it has retired, on every owner.
 */
#include "base/bits.h"
#include "transfer/parts.h"

/*
 * Rows that kept the block that the GET filled came with this ticket; others had been published
 * before.
 */
static void note_fetched(struct transfer *transfer, const struct ticket *ticket)
{
	const struct cache_reservation *const reservation = &ticket->reservation;
	uint32_t                              i;

	for (i = 0; i < reservation->row_count; i++) {
		const struct cache_row *const row = &reservation->rows[i];

		if (row->block == BLOCK_NULL || row->block != transfer->filled[i])
			continue;
		transfer->fetched_by[transfer_place(transfer, row->group, row->block)] =
			1 + ticket_slot(transfer, ticket);
	}
}

static void record_tail(struct transfer *transfer, const struct cache_reservation *reservation)
{
	if (!reservation->tail_published)
		return;
	tails_record(&transfer->tails, &reservation->space,
		     reservation->has_prior ? &reservation->prior_hash : NULL,
		     reservation->tail_tokens,
		     &reservation->tail_hash);
}

/* The first row in the prompt that did not come. */
static void point_at_failed(const struct transfer *transfer, struct ticket *ticket,
			    const struct fact *fact)
{
	const struct cache_reservation *const reservation = &ticket->reservation;
	uint64_t                              first_tokens = UINT64_MAX;
	uint32_t                              i;

	for (i = 0; i < reservation->row_count; i++) {
		const struct cache_row *const row = &reservation->rows[i];
		const uint64_t                tokens =
			group_tokens_at(&transfer->groups->group[row->group], row->position);

		if (bits_test(fact->ok.words, i) || tokens >= first_tokens)
			continue;
		first_tokens = tokens;
		ticket->shortfall.group = row->group;
		ticket->shortfall.position = row->position;
	}
	/* It was there when the store was asked. */
	ticket->shortfall.cause =
		outcome_of(fact) == READ_NEVER_STORED ? READ_EVICTED : outcome_of(fact);
	ticket->shortfall.tokens = (uint32_t)transfer_probe(transfer, &ticket->ask, ticket->tails,
							    ticket->tail_count)
					   .host_tokens;
}

bool transfer_publish(struct transfer *transfer, struct ticket *ticket, const struct fact *fact)
{
	struct cache_reservation *const reservation = &ticket->reservation;
	uint32_t                        published = 0;
	uint32_t                        i;

	ticket_stop_waiting(transfer, ticket);
	if (bits_next_set(fact->ok.words, 0, fact->key_count) < fact->key_count) {
		for (i = 0; i < reservation->row_count; i++)
			transfer->filled[i] = reservation->rows[i].block;
		published = cache_reservation_publish(transfer->cache, reservation, fact->ok.words,
						      true);
		note_fetched(transfer, ticket);
		record_tail(transfer, reservation);
		for (i = 0; i < reservation->row_count; i++) {
			if (bits_test(fact->ok.words, i))
				watch_stir(transfer, &ticket->keys[i]);
		}
		ticket_charge(transfer, ticket, published);
	}
	transfer->counts.counters[TRANSFER_PUBLISHED] += published;
	if (published < reservation->row_count)
		point_at_failed(transfer, ticket, fact);
	return published > 0;
}

void transfer_hold(struct transfer *transfer, struct ticket *ticket)
{
	transfer->ready++;
	ticket->deadline_ns = transfer_until(transfer, transfer->limits.hold_ns);
	list_push_tail(&transfer->holds, transfer->timed, ticket_slot(transfer, ticket));
	transfer_wake_up(transfer, ticket, READ_READY);
}
