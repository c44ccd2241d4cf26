/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of the transfer room: what tickets share, and what the edges of their life do.
 *
 * transfer.c has the round and the tickets, read.c and backup.c the two transactions, ticket.c the
 * table that calls them.
 */
#ifndef TRANSFER_PARTS_H
#define TRANSFER_PARTS_H

#include "transfer/transfer.h"

/* Append an op or a wake to the round's outputs. */
void transfer_emit(struct transfer *transfer, const struct op *op);
void transfer_wake_up(struct transfer *transfer, const struct ticket *ticket,
		      enum transfer_outcome outcome);

/* That long from this round on; UINT64_MAX, which no tick reaches, when the clock has no such time. */
uint64_t transfer_until(const struct transfer *transfer, uint64_t ns);

/* A free ticket, its op arrays wired up; NULL without a credit. */
struct ticket *transfer_ticket(struct transfer *transfer);
/* Give the ticket's blocks back and free it. */
void transfer_ticket_end(struct transfer *transfer, struct ticket *ticket);

/* The answer to a QUERY: reserve destinations, or say why not. */
void transfer_found(struct transfer *transfer, struct ticket *ticket, const struct fact *fact);
/* A GET retired while its lease was attached: publish the whole rows. */
void transfer_publish(struct transfer *transfer, struct ticket *ticket, const struct fact *fact);

/* Start puts while credits last; count what a finished one could not keep. */
void transfer_dispatch_backups(struct transfer *transfer);
void transfer_put_done(struct transfer *transfer, const struct fact *fact);

#endif
