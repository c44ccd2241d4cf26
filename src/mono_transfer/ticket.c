/* SPDX-License-Identifier: Apache-2.0 */
/* See ticket.h: the life of a ticket as a table. */
#include <inttypes.h>
#include <stdio.h>

#include "base/err.h"
#include "mono_transfer/parts.h"

typedef void act(struct mono_transfer *transfer, struct mono_ticket *ticket,
		 const struct fact *fact);

static void nothing(struct mono_transfer *transfer, struct mono_ticket *ticket,
		    const struct fact *fact)
{
	(void)transfer;
	(void)ticket;
	(void)fact;
}

static void send(struct mono_transfer *transfer, struct mono_ticket *ticket,
		 const struct fact *fact)
{
	(void)fact;
	mono_transfer_emit(transfer, &ticket->op);
}

static void end(struct mono_transfer *transfer, struct mono_ticket *ticket, const struct fact *fact)
{
	(void)fact;
	mono_transfer_ticket_end(transfer, ticket);
}

/* A cancel frees the place of an op that is still queued; of one that runs only its fact ends the ticket. */
static void orphan(struct mono_transfer *transfer, struct mono_ticket *ticket,
		   const struct fact *fact)
{
	const struct op cancel = { .op_id = ticket->op.op_id, .kind = OP_CANCEL };

	(void)fact;
	mono_transfer_emit(transfer, &cancel);
#ifdef KVS_MUTANT_RELEASE_ON_DEADLINE
	/* Planted bug: gives the destinations back while the store may still write them. */
	while (ticket->block_count > 0) {
		stratum_unpin(&transfer->coord->host, ticket->blocks[--ticket->block_count]);
		transfer->host_refs--;
	}
#endif
}

static void publish(struct mono_transfer *transfer, struct mono_ticket *ticket,
		    const struct fact *fact)
{
	mono_transfer_publish(transfer, ticket, fact);
}

static void end_put(struct mono_transfer *transfer, struct mono_ticket *ticket,
		    const struct fact *fact)
{
	mono_transfer_put_done(transfer, fact);
	mono_transfer_ticket_end(transfer, ticket);
}

static void keep(struct mono_transfer *transfer, struct mono_ticket *ticket,
		 const struct fact *fact)
{
	(void)fact;
	ticket->deadline_ns = UINT64_MAX;
	transfer->quarantined++;
}

static void keep_and_wake(struct mono_transfer *transfer, struct mono_ticket *ticket,
			  const struct fact *fact)
{
	keep(transfer, ticket, fact);
	mono_transfer_wake_up(transfer, ticket, MONO_TRANSFER_QUARANTINE);
}

static void keep_put(struct mono_transfer *transfer, struct mono_ticket *ticket,
		     const struct fact *fact)
{
	keep(transfer, ticket, fact);
	mono_transfer_put_done(transfer, fact);
}

static void release(struct mono_transfer *transfer, struct mono_ticket *ticket,
		    const struct fact *fact)
{
	transfer->quarantined--;
	end(transfer, ticket, fact);
}

/*
 * An op's blocks are the ticket's until RETIRED, whatever became of the request.  FREE as a target
 * ends the ticket and gives its blocks back.
 */
static const struct edge {
	enum mono_ticket_state from;
	enum mono_ticket_event on;
	enum mono_ticket_state to;
	act                   *act;
} edges[] = {
	{ MONO_TICKET_FREE,       MONO_TICKET_ON_START_READ, MONO_TICKET_QUERY,      send },
	{ MONO_TICKET_FREE,       MONO_TICKET_ON_START_PUT,  MONO_TICKET_PUT,        send },
	{ MONO_TICKET_QUERY,      MONO_TICKET_ON_HIT,        MONO_TICKET_GET,        send },
	{ MONO_TICKET_QUERY,      MONO_TICKET_ON_MISS,       MONO_TICKET_FREE,       end },
	{ MONO_TICKET_QUERY,      MONO_TICKET_ON_DETACH,     MONO_TICKET_DRAIN,      orphan },
	{ MONO_TICKET_GET,        MONO_TICKET_ON_RETIRED,    MONO_TICKET_READY,      publish },
#ifdef KVS_MUTANT_PUBLISH_UNRETIRED /* Planted bug: publishes what the store may still write. */
	{ MONO_TICKET_GET,        MONO_TICKET_ON_UNRETIRED,  MONO_TICKET_READY,      publish },
#endif
	{ MONO_TICKET_GET,        MONO_TICKET_ON_UNRETIRED,  MONO_TICKET_QUARANTINE, keep_and_wake },
	{ MONO_TICKET_GET,        MONO_TICKET_ON_DETACH,     MONO_TICKET_DRAIN,      orphan },
	{ MONO_TICKET_READY,      MONO_TICKET_ON_DETACH,     MONO_TICKET_FREE,       end },
#ifdef KVS_MUTANT_PUBLISH_DETACHED /* Planted bug: publishes what nobody waits for. */
	{ MONO_TICKET_DRAIN,      MONO_TICKET_ON_RETIRED,    MONO_TICKET_READY,      publish },
#endif
	{ MONO_TICKET_DRAIN,      MONO_TICKET_ON_RETIRED,    MONO_TICKET_FREE,       end },
	{ MONO_TICKET_DRAIN,      MONO_TICKET_ON_UNRETIRED,  MONO_TICKET_QUARANTINE, keep },
	{ MONO_TICKET_PUT,        MONO_TICKET_ON_RETIRED,    MONO_TICKET_FREE,       end_put },
	{ MONO_TICKET_PUT,        MONO_TICKET_ON_UNRETIRED,  MONO_TICKET_QUARANTINE, keep_put },
	{ MONO_TICKET_QUARANTINE, MONO_TICKET_ON_DETACH,     MONO_TICKET_QUARANTINE, nothing },
	{ MONO_TICKET_QUARANTINE, MONO_TICKET_ON_NOTICE,     MONO_TICKET_FREE,       release },
};

const char *mono_ticket_state_name(enum mono_ticket_state state)
{
	static const char *const names[MONO_TICKET_STATE_COUNT] = { "FREE",      "QUERY", "GET",
								    "READY",     "DRAIN", "PUT",
								    "QUARANTINE" };

	return names[state];
}

const char *mono_ticket_event_name(enum mono_ticket_event event)
{
	static const char *const names[MONO_TICKET_EVENT_COUNT] = {
		"START_READ", "START_PUT", "HIT", "MISS", "RETIRED", "UNRETIRED", "DETACH", "NOTICE"
	};

	return names[event];
}

void mono_ticket_step(struct mono_transfer *transfer, struct mono_ticket *ticket,
		      enum mono_ticket_event on, const struct fact *fact)
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
		  mono_ticket_state_name(ticket->state), mono_ticket_event_name(on));
}

void mono_ticket_edges_print(char *buffer, size_t buffer_bytes)
{
	size_t used = 0;
	size_t i;

	buffer[0] = '\0';
	for (i = 0; i < ARRAY_COUNT(edges) && used < buffer_bytes; i++) {
		used += (size_t)snprintf(buffer + used, buffer_bytes - used, "%s -> %s on %s\n",
					 mono_ticket_state_name(edges[i].from),
					 mono_ticket_state_name(edges[i].to),
					 mono_ticket_event_name(edges[i].on));
	}
}
