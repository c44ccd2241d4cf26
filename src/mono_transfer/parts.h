/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of the mono_transfer room: what tickets share, and what the edges of their life do.
 *
 * transfer.c has the round and the tickets, read.c and backup.c the two transactions, ticket.c the
 * table that calls them.
 */
#ifndef MONO_TRANSFER_PARTS_H
#define MONO_TRANSFER_PARTS_H

#include "mono_transfer/transfer.h"

/* Append an op or a wake to the round's outputs. */
void mono_transfer_emit(struct mono_transfer *transfer, const struct op *op);
void mono_transfer_wake_up(struct mono_transfer *transfer, const struct mono_ticket *ticket,
			   enum mono_transfer_outcome outcome);

/* That long from this round on; UINT64_MAX, which no tick reaches, when the clock has no such time. */
uint64_t mono_transfer_until(const struct mono_transfer *transfer, uint64_t ns);

/* A free ticket, its op arrays wired up; NULL without a credit. */
struct mono_ticket *mono_transfer_ticket(struct mono_transfer *transfer);
/* Give the ticket's blocks back and free it. */
void mono_transfer_ticket_end(struct mono_transfer *transfer, struct mono_ticket *ticket);

/* The answer to a QUERY: reserve destinations, or say why not. */
void mono_transfer_found(struct mono_transfer *transfer, struct mono_ticket *ticket,
			 const struct fact *fact);
/* A GET retired while its lease was attached: publish the whole rows. */
void mono_transfer_publish(struct mono_transfer *transfer, struct mono_ticket *ticket,
			   const struct fact *fact);

/* Start puts while credits last; count what a finished one could not keep. */
void mono_transfer_dispatch_backups(struct mono_transfer *transfer);
void mono_transfer_put_done(struct mono_transfer *transfer, const struct fact *fact);

#endif
