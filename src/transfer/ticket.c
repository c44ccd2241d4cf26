/* SPDX-License-Identifier: Apache-2.0 */
/* See ticket.h: the life of a ticket as a table. */
#include <inttypes.h>
#include <stdio.h>

#include "base/bits.h"
#include "base/err.h"
#include "transfer/parts.h"

typedef void act(struct transfer *transfer, struct ticket *ticket, const struct fact *fact);

static void nothing(struct transfer *transfer, struct ticket *ticket, const struct fact *fact)
{
	(void)transfer;
	(void)ticket;
	(void)fact;
}

static void send(struct transfer *transfer, struct ticket *ticket, const struct fact *fact)
{
	(void)fact;
	transfer_emit(transfer, &ticket->op);
}

static void end(struct transfer *transfer, struct ticket *ticket, const struct fact *fact)
{
	(void)fact;
	ticket_stop_waiting(transfer, ticket);
	ticket_end(transfer, ticket);
}

/*
 * A cancel frees the place of an op that is still queued; of one that runs only its fact ends the
 * ticket.
 */
static void orphan(struct transfer *transfer, struct ticket *ticket, const struct fact *fact)
{
	const struct op cancel = { .op_id = ticket->op.op_id, .kind = OP_CANCEL };

	(void)fact;
	ticket_stop_waiting(transfer, ticket);
	ticket->lease = (struct lease){ 0 };
	transfer_emit(transfer, &cancel);
#ifdef KVS_MUTANT_RELEASE_ON_DEADLINE
	/* Planted bug: gives the destinations back while the store may still write them. */
	cache_reservation_release(transfer->cache, &ticket->reservation);
	ticket_charge(transfer, ticket, 0);
#endif
}

static void hold(struct transfer *transfer, struct ticket *ticket, const struct fact *fact)
{
	(void)fact;
	transfer_hold(transfer, ticket);
}

static void let_go(struct transfer *transfer, struct ticket *ticket, const struct fact *fact)
{
	(void)fact;
	transfer->ready--;
	if (list_is_linked(transfer->timed, ticket_slot(transfer, ticket)))
		list_remove(&transfer->holds, transfer->timed, ticket_slot(transfer, ticket));
	ticket_end(transfer, ticket);
}

static void end_drain(struct transfer *transfer, struct ticket *ticket, const struct fact *fact)
{
	if (ticket->op.kind == OP_GET) {
		transfer->counts.counters[TRANSFER_DISCARDED] +=
			bits_count(fact->ok.words, fact->key_count);
	}
	ticket_end(transfer, ticket);
}

static void end_put(struct transfer *transfer, struct ticket *ticket, const struct fact *fact)
{
	put_done(transfer, ticket, fact);
	ticket_end(transfer, ticket);
}

static void keep(struct transfer *transfer, struct ticket *ticket, const struct fact *fact)
{
	(void)fact;
	ticket_stop_waiting(transfer, ticket);
	transfer->quarantined++;
	transfer->counts.counters[TRANSFER_QUARANTINES]++;
}

static void keep_and_wake(struct transfer *transfer, struct ticket *ticket, const struct fact *fact)
{
	keep(transfer, ticket, fact);
	transfer_wake_up(transfer, ticket, READ_QUARANTINE);
}

static void keep_put(struct transfer *transfer, struct ticket *ticket, const struct fact *fact)
{
	keep(transfer, ticket, fact);
	put_done(transfer, ticket, fact);
}

static void release(struct transfer *transfer, struct ticket *ticket, const struct fact *fact)
{
	(void)fact;
	transfer->quarantined--;
	ticket_end(transfer, ticket);
}

/*
 * An op's blocks are the ticket's until RETIRED, whatever became of the request.  FREE as a target
 * ends the ticket and gives its blocks back.
 */
static const struct edge {
	enum ticket_state from;
	enum ticket_event on;
	enum ticket_state to;
	act              *act;
} edges[] = {
	{ TICKET_FREE,       TICKET_ON_START_READ, TICKET_QUERY,      send },
	{ TICKET_FREE,       TICKET_ON_START_PUT,  TICKET_PUT,        send },
	{ TICKET_QUERY,      TICKET_ON_HIT,        TICKET_GET,        send },
	{ TICKET_QUERY,      TICKET_ON_MISS,       TICKET_FREE,       end },
	{ TICKET_QUERY,      TICKET_ON_DETACH,     TICKET_DRAIN,      orphan },
	{ TICKET_GET,        TICKET_ON_RETIRED,    TICKET_READY,      hold },
	{ TICKET_GET,        TICKET_ON_MISS,       TICKET_FREE,       end },
	{ TICKET_GET,        TICKET_ON_UNRETIRED,  TICKET_QUARANTINE, keep_and_wake },
	{ TICKET_GET,        TICKET_ON_DETACH,     TICKET_DRAIN,      orphan },
	{ TICKET_READY,      TICKET_ON_DETACH,     TICKET_FREE,       let_go },
	{ TICKET_DRAIN,      TICKET_ON_RETIRED,    TICKET_FREE,       end_drain },
	{ TICKET_DRAIN,      TICKET_ON_UNRETIRED,  TICKET_QUARANTINE, keep },
	{ TICKET_PUT,        TICKET_ON_RETIRED,    TICKET_FREE,       end_put },
	{ TICKET_PUT,        TICKET_ON_UNRETIRED,  TICKET_QUARANTINE, keep_put },
	{ TICKET_QUARANTINE, TICKET_ON_DETACH,     TICKET_QUARANTINE, nothing },
	{ TICKET_QUARANTINE, TICKET_ON_NOTICE,     TICKET_FREE,       release },
};

const char *ticket_state_name(enum ticket_state state)
{
	static const char *const names[TICKET_STATE_COUNT] = { "FREE",  "QUERY", "GET",
							             "READY",
							       "DRAIN", "PUT",   "QUARANTINE" };

	return names[state];
}

const char *ticket_event_name(enum ticket_event event)
{
	static const char *const names[TICKET_EVENT_COUNT] = {
		"START_READ", "START_PUT", "HIT", "MISS", "RETIRED", "UNRETIRED", "DETACH", "NOTICE"
	};

	return names[event];
}

void ticket_step(struct transfer *transfer, struct ticket *ticket, enum ticket_event on,
		 const struct fact *fact)
{
	size_t i;

	for (i = 0; i < ARRAY_COUNT(edges); i++) {
		if (edges[i].from != ticket->state || edges[i].on != on)
			continue;
		ticket->state = edges[i].to; /* The only assignment to a ticket's state. */
		edges[i].act(transfer, ticket, fact);
		return;
	}
	KVS_PANIC("ticket %" PRIu64 ": no edge from %s on %s", ticket->op.op_id,
		  ticket_state_name(ticket->state), ticket_event_name(on));
}

void ticket_edges_print(char *buffer, size_t buffer_bytes)
{
	size_t used = 0;
	size_t i;

	buffer[0] = '\0';
	for (i = 0; i < ARRAY_COUNT(edges) && used < buffer_bytes; i++) {
		used += (size_t)snprintf(buffer + used, buffer_bytes - used, "%s -> %s on %s\n",
					 ticket_state_name(edges[i].from),
					 ticket_state_name(edges[i].to),
					 ticket_event_name(edges[i].on));
	}
}
