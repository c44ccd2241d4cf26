/* SPDX-License-Identifier: Apache-2.0 */
/* See copies.h. */
#include "tier/copies.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "tier/parts.h"

/* What makes two rows the same: the first words of a row. */
static_assert(offsetof(struct copy, tokens) == 4 * sizeof(uint32_t), "the key is the front of a row");

int copies_open(struct copies *copies, uint32_t ticket_max, uint32_t row_max, struct kvs_error *err)
{
	int rc = limit_check("ticket_max", ticket_max, 2 * MOVER_TICKETS_MAX, err);

	*copies = (struct copies){ 0 };
	if (rc == 0)
		rc = limit_check("row_max", row_max, MOVER_ROWS_MAX, err);
	if (rc < 0)
		return rc;
	*copies = (struct copies){ .ticket_max = ticket_max, .row_max = row_max };
	copies->tickets = calloc(ticket_max, sizeof(*copies->tickets));
	copies->first_row = calloc(ticket_max, sizeof(*copies->first_row));
	copies->rows = calloc(row_max, sizeof(*copies->rows));
	if (copies->tickets && copies->first_row && copies->rows &&
	    map_open(&copies->map, row_max, copies->rows, sizeof(*copies->rows),
		     offsetof(struct copy, tokens)) == 0)
		return 0;
	copies_close(copies);
	return err_set(err, -ENOMEM, "row_max: %u, no memory for so many rows of %u tickets",
		       row_max, ticket_max);
}

void copies_close(struct copies *copies)
{
	map_close(&copies->map);
	free(copies->rows);
	free(copies->first_row);
	free(copies->tickets);
	*copies = (struct copies){ 0 };
}

size_t copies_bytes(const struct copies *copies)
{
	return copies->ticket_max * (sizeof(*copies->tickets) + sizeof(*copies->first_row)) +
	       copies->row_max * sizeof(*copies->rows) + map_bytes(&copies->map);
}

void copies_clear(struct copies *copies)
{
	while (copies->row_count > 0) {
		copies->row_count--;
		map_remove(&copies->map, map_hash(&copies->map, &copies->rows[copies->row_count]),
			   copies->row_count);
	}
	copies->ticket_count = 0;
}

bool copies_begin(struct copies *copies, uint64_t id)
{
	if (copies->ticket_count == copies->ticket_max)
		return false;
	copies->tickets[copies->ticket_count] = id;
	copies->first_row[copies->ticket_count++] = copies->row_count;
	return true;
}

bool copies_add(struct copies *copies, const struct copy *row)
{
	const uint64_t hash = map_hash(&copies->map, row);

	KVS_ASSERT_CMP(copies->ticket_count, >, 0);
	if (map_find(&copies->map, hash, row) != SLOT_NONE) {
		copies->repeated++;
		return true;
	}
	if (copies->row_count == copies->row_max)
		return false;
	copies->rows[copies->row_count] = *row;
	copies->rows[copies->row_count].ticket = copies->ticket_count - 1;
	map_insert(&copies->map, hash, copies->row_count++);
	return true;
}

bool copies_add_ticket(struct copies *copies, const struct mover *mover,
		       const struct mover_ticket *ticket)
{
	uint32_t i;

	if (copies->row_max - copies->row_count < ticket->rows.count ||
	    !copies_begin(copies, ticket->id))
		return false;
	MOVER_ROWS(mover, ticket, i) {
		const struct mover_row *const row = &mover->rows[i];

		KVS_ASSERT(copies_add(copies, &(struct copy){ .path = row->path,
							      .group = row->group,
							      .source = row->source,
							      .target = row->target,
							      .tokens = row->tokens }));
	}
	return true;
}
