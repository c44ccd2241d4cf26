/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets: the cache owner's record of one storage transaction, from its first op until its bytes
 * are settled.
 *
 * A read lives through QUERY, GET and READY; a lease is the request's claim on it and may go at any
 * time, the ticket stays until its I/O has retired.  A write is one PUT.  QUARANTINE holds blocks
 * whose I/O was never proven over; only a retirement notice leads out.  edges[] in ticket.c is the
 * whole life; ticket_step() is the only place that assigns a state.
 */
#ifndef TRANSFER_TICKET_H
#define TRANSFER_TICKET_H

#include <stdbool.h>
#include <stdint.h>

#include "coord/reserve.h"
#include "op/op.h"
#include "plan/query.h"

enum ticket_state {
	TICKET_FREE,
	TICKET_QUERY,      /* waits for existence; holds nothing */
	TICKET_GET,        /* holds private Host destinations; the request waits */
	TICKET_READY,      /* what came is published, and held for the request */
	TICKET_DRAIN,      /* nobody waits; blocks, if any, stay ours until the I/O retires */
	TICKET_PUT,        /* holds pinned Host sources */
	TICKET_QUARANTINE, /* blocks are lost until a notice */
	TICKET_STATE_COUNT
};

enum ticket_event {
	TICKET_ON_START_READ,
	TICKET_ON_START_PUT,
	TICKET_ON_HIT,       /* the query found a prefix and destinations were reserved */
	TICKET_ON_MISS,      /* nothing to fetch, no room for it, or nothing came */
	TICKET_ON_RETIRED,   /* the fact came; nothing touches the spans any more */
	TICKET_ON_UNRETIRED, /* the fact came; something may */
	TICKET_ON_DETACH,    /* the lease went: deadline, abort, gate, admission or expiry */
	TICKET_ON_NOTICE,
	TICKET_EVENT_COUNT
};

struct transfer;
struct ticket; /* transfer/parts.h */

/* Take the edge for this event: the new state, then its action.  A missing edge is a panic. */
void ticket_step(struct transfer *transfer, struct ticket *ticket, enum ticket_event on,
		 const struct fact *fact);

const char *ticket_state_name(enum ticket_state state);
const char *ticket_event_name(enum ticket_event event);

/* The table as text, one "FROM -> TO on EVENT" a line, for docs/design/ticket.md. */
void ticket_edges_print(char *buffer, size_t buffer_bytes);

/* What an audit from outside may know of a ticket. */
struct ticket_view {
	enum ticket_state state;
	enum op_kind      kind;        /* of the op in flight */
	uint64_t          op_id;
	uint64_t          deadline_ns; /* of the wait; of the hold once READY */
	uint32_t          block_count; /* Host blocks held */
	const struct op  *op;
};

struct ticket_view ticket_view(const struct ticket *ticket);
/* A held block: its group and number. */
void ticket_block(const struct ticket *ticket, uint32_t i, uint32_t *ret_group,
		  uint32_t *ret_block);

#endif
