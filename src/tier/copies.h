/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copies of one plan as the device engine takes them: tickets in order, and rows that are each
 * moved once.
 *
 * Two rows are the same when path, group, source and target are.  The first one stays, under its
 * ticket; a ticket that lost all its rows so is still there and is still acknowledged.  That is
 * right because a plan's copies of one path are ordered: who comes second finds the bytes moved.
 * The same block numbers in two groups are different memory, and two rows.
 *
 * Legal order of calls: copies_clear(), then for each ticket copies_begin() and its rows.
 * Limits   1 to twice MOVER_TICKETS_MAX tickets and 1 to MOVER_ROWS_MAX rows, fixed at open.
 */
#ifndef TIER_COPIES_H
#define TIER_COPIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tier/mover.h"

struct copy {
	uint32_t path; /* enum copy_path */
	uint32_t group;
	uint32_t source;
	uint32_t target;
	uint32_t tokens;
	uint32_t ticket; /* its position in tickets */
};

struct copies {
	uint64_t    *tickets;   /* ids */
	uint32_t    *first_row; /* of each ticket; its rows end where the next one's begin */
	struct copy *rows;
	struct map   map;
	uint32_t     ticket_max, ticket_count;
	uint32_t     row_max, row_count;
	uint64_t     repeated;  /* rows that were there already */
};

/* Errors: KVS_E_INVALID  a limit out of range; -ENOMEM.  The sentence names the field. */
int    copies_open(struct copies *copies, uint32_t ticket_max, uint32_t row_max,
		   struct kvs_error *err);
void   copies_close(struct copies *copies); /* accepts a zeroed one */
size_t copies_bytes(const struct copies *copies); /* memory in use */
void   copies_clear(struct copies *copies);

/* False when there is no room; nothing changed then.  A row belongs to the last ticket. */
bool copies_begin(struct copies *copies, uint64_t id);
bool copies_add(struct copies *copies, const struct copy *row);

/* A ticket with all its rows, or nothing and false. */
bool copies_add_ticket(struct copies *copies, const struct mover *mover,
		       const struct mover_ticket *ticket);

static inline uint32_t copies_rows_of(const struct copies *copies, uint32_t ticket)
{
	const uint32_t end = ticket + 1 < copies->ticket_count ? copies->first_row[ticket + 1]
							       : copies->row_count;

	return end - copies->first_row[ticket];
}

#endif
