/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the room: limits that a caller gives, and how a ticket comes to be. */
#ifndef TIER_PARTS_H
#define TIER_PARTS_H

#include "tier/mover.h"

/* Errors: KVS_E_INVALID, unless the limit is from 1 to max. */
static inline int limit_check(const char *field, uint32_t limit, uint32_t max,
			      struct kvs_error *err)
{
	if (limit == 0 || limit > max)
		return err_set(err, KVS_E_INVALID, "%s: %u, must be 1 to %u", field, limit, max);
	return 0;
}

/* The slot of a ticket without rows; asserts that one of its kind is free. */
uint32_t mover_begin(struct mover *mover, enum ticket_kind kind, uint64_t request);
/* Append a row, which brings a reference on either side. */
void mover_add(struct mover *mover, uint32_t slot, const struct mover_row *row);
/* Give the ticket its id; 0 and no ticket when it has no rows. */
uint64_t mover_commit(struct mover *mover, uint32_t slot);

#endif
