/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets: the cache's record of one storage transaction, from its first op until its bytes
 * are settled.
 *
 * A read ticket lives through QUERY, GET and READY; a lease is the request's claim on it and may go
 * at any time, the ticket stays until its I/O retired.  A write ticket is one PUT.  QUARANTINE
 * holds blocks whose I/O was never proven over; only a retirement notice leads out.  edges[] in
 * ticket.c is the whole life; mono_ticket_step() is the only place that assigns a state.
 */
#ifndef MONO_TRANSFER_TICKET_H
#define MONO_TRANSFER_TICKET_H

#include <stdbool.h>
#include <stdint.h>

#include "op/op.h"

enum mono_ticket_state {
	MONO_TICKET_FREE,
	MONO_TICKET_QUERY,      /* waits for existence; holds nothing */
	MONO_TICKET_GET,        /* blocks[] are private Host destinations; the request waits */
	MONO_TICKET_READY,      /* blocks[] are published and held for the request */
	MONO_TICKET_DRAIN,      /* nobody waits; blocks[], if any, stay ours until the I/O retires */
	MONO_TICKET_PUT,        /* blocks[] are pinned Host sources */
	MONO_TICKET_QUARANTINE, /* blocks[] are lost until a notice */
	MONO_TICKET_STATE_COUNT
};

enum mono_ticket_event {
	MONO_TICKET_ON_START_READ,
	MONO_TICKET_ON_START_PUT,
	MONO_TICKET_ON_HIT,       /* the query found a prefix and destinations were reserved */
	MONO_TICKET_ON_MISS,      /* nothing to fetch, or no room for it */
	MONO_TICKET_ON_RETIRED,   /* the fact came; nothing touches the spans any more */
	MONO_TICKET_ON_UNRETIRED, /* the fact came; something may */
	MONO_TICKET_ON_DETACH,    /* the lease went: deadline, abort, admission or expiry */
	MONO_TICKET_ON_NOTICE,
	MONO_TICKET_EVENT_COUNT
};

struct mono_ticket {
	enum mono_ticket_state state;
	uint64_t               lease_id;    /* the read's own id, that of its QUERY; 0 for a put */
	uint32_t               request;     /* the caller's name for who waits */
	uint64_t               deadline_ns; /* of the wait; of the hold once READY */
	struct op              op;          /* the op in flight; its arrays are the three below */
	uint32_t               block_count; /* Host blocks held: 0 until GET, then op.key_count */
	struct kvs_key        *keys;        /* keys_max of each, allocated at open */
	struct kvs_span       *spans;
	uint32_t              *blocks;
};

struct mono_transfer;

/* Take the edge for this event: the new state, then its action.  A missing edge is a panic. */
void mono_ticket_step(struct mono_transfer *transfer, struct mono_ticket *ticket,
		      enum mono_ticket_event on, const struct fact *fact);

const char *mono_ticket_state_name(enum mono_ticket_state state);
const char *mono_ticket_event_name(enum mono_ticket_event event);

/* The table as text, one "FROM -> TO on EVENT" a line, for docs/design/mono_ticket.md. */
void mono_ticket_edges_print(char *buffer, size_t buffer_bytes);

#endif
