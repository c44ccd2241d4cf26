/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tickets for copies between Device and Host.
 *
 * A LOAD holds the Host sources of an admitted request until its H2D fence; a SAVE holds Device
 * sources and private Host destinations until the D2H is acknowledged, and publishes to Host then,
 * never before.  The copies themselves are the device engine's.
 *
 * Limits   ticket_max tickets of page_max pages, fixed at open.
 * Threads  The cache thread only.
 */
#ifndef TIER_TIER_H
#define TIER_TIER_H

#include "base/slots.h"
#include "coord/coord.h"

enum tier_kind { TIER_LOAD, TIER_SAVE };

struct tier_pair {
	uint32_t device_block;
	uint32_t host_block;
	uint32_t page; /* SAVE: its key is keys[page] */
};

struct tier_ticket {
	enum tier_kind    kind;
	uint32_t          request;    /* LOAD: who waits for the fence */
	uint32_t          pair_count;
	struct tier_pair *pairs;
	uint32_t          key_count;
	struct kvs_key   *keys;       /* SAVE: the whole prompt's, those that are not copied included */
};

struct tier {
	struct coord       *coord;
	struct tier_ticket *tickets;
	struct slots        slots;
	uint32_t            page_max;
	uint64_t            unsaved;  /* computed pages without a Host copy: no block or no ticket was free */
};

int  tier_open(struct tier *tier, struct coord *coord, uint32_t ticket_max, uint32_t page_max,
	       struct kvs_error *err);
void tier_close(struct tier *tier);

/* Take over the caller's references on count Host blocks.  SLOT_NONE, nothing taken: no ticket is free. */
uint32_t tier_load(struct tier *tier, uint32_t request, const uint32_t *device_blocks,
		   const uint32_t *host_blocks, uint32_t count);

/*
 * Copy those of the pages to Host that are not there.  SLOT_NONE when there is nothing to copy or
 * no ticket is free.
 */
uint32_t tier_save(struct tier *tier, const struct kvs_key *keys, const uint32_t *device_blocks,
		    uint32_t count);

/*
 * The engine says this ticket's copies are done: release the sources, publish the destinations.
 * The ticket stays readable until tier_end(), so that the caller can wake the request or offer the
 * keys.
 */
const struct tier_ticket *tier_done(struct tier *tier, uint32_t ticket);
void                      tier_end(struct tier *tier, uint32_t ticket);

/* O(n): whatever a ticket copies from or to is held, and no destination on the Host is published. */
void tier_audit(const struct tier *tier);

static inline uint32_t tier_in_flight(const struct tier *tier)
{
	return tier->slots.busy_count;
}

#endif
