/* SPDX-License-Identifier: Apache-2.0 */
/* A mover's tables and their limits.  See mover.h. */
#include "tier/mover.h"

#include <errno.h>
#include <stdlib.h>

#include "tier/parts.h"

static_assert((uint64_t)MOVER_ROWS_MAX * sizeof(struct mover_row) <= SIZE_MAX,
	      "the size of the largest table is a number");

/* Blocks that Device can have at once: each may be the target of one row. */
static uint64_t device_blocks(const struct cache *cache)
{
	return (uint64_t)cache_total(cache, STRATUM_DEVICE) * cache_groups(cache)->packing_max;
}

static int check(const struct mover_options *options, struct kvs_error *err)
{
	const uint64_t blocks = device_blocks(options->cache);
	const uint32_t tickets = MOVER_TICKETS_MAX;
	int            rc;

	rc = limit_check("save_ticket_max", options->save_ticket_max, tickets, err);
	if (rc == 0)
		rc = limit_check("save_row_max", options->save_row_max, MOVER_ROWS_MAX, err);
	if (rc == 0)
		rc = limit_check("load_ticket_max", options->load_ticket_max, tickets, err);
	if (rc == 0 && options->save_row_max + blocks > MOVER_ROWS_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "save_row_max: %u, and %llu blocks of Device, must be at most %u",
			       options->save_row_max, (unsigned long long)blocks, MOVER_ROWS_MAX);
	}
	return rc;
}

static int open_tables(struct mover *mover, uint32_t ticket_count)
{
	struct mover_row *rows;
	uint32_t          i;

	mover->tickets = calloc(ticket_count, sizeof(*mover->tickets));
	mover->rows = calloc(mover->row_max, sizeof(*mover->rows));
	mover->links = calloc(mover->row_max, sizeof(*mover->links));
	mover->sources = calloc(mover->save_row_max, sizeof(*mover->sources));
	rows = mover->rows;
	if (!mover->tickets || !rows || !mover->links || !mover->sources)
		return -ENOMEM;
	if (slots_open(&mover->slots, ticket_count) < 0 ||
	    map_open(&mover->ids, ticket_count, &mover->tickets->id, sizeof(*mover->tickets),
		     sizeof(mover->tickets->id)) < 0 ||
	    map_open(&mover->names, mover->save_row_max, &rows->name, sizeof(*rows),
		     sizeof(rows->name)) < 0 ||
	    map_open(&mover->targets, mover->row_max - mover->save_row_max, &rows->group,
		     sizeof(*rows), sizeof(rows->group) + sizeof(rows->target)) < 0)
		return -ENOMEM;
	list_links_init(mover->links, mover->row_max);
	list_init(&mover->free);
	for (i = 0; i < mover->row_max; i++)
		list_push_tail(&mover->free, mover->links, i);
	return 0;
}

int mover_open(struct mover *mover, const struct mover_options *options, struct kvs_error *err)
{
	const int rc = check(options, err);

	*mover = (struct mover){ 0 };
	if (rc < 0)
		return rc;
	*mover = (struct mover){
		.cache = options->cache, .candidates = options->candidates,
		.save_ticket_max = options->save_ticket_max, .save_row_max = options->save_row_max,
		.load_ticket_max = options->load_ticket_max,
		.row_max = options->save_row_max + (uint32_t)device_blocks(options->cache)
	};
	if (open_tables(mover, options->save_ticket_max + options->load_ticket_max) == 0)
		return 0;
	mover_close(mover);
	return err_set(err, -ENOMEM, "save_row_max: %u, no memory for these and the rows of loads",
		       options->save_row_max);
}

void mover_close(struct mover *mover)
{
	KVS_ASSERT_CMP(mover->slots.busy_count, ==, 0);
	map_close(&mover->targets);
	map_close(&mover->names);
	map_close(&mover->ids);
	slots_close(&mover->slots);
	free(mover->sources);
	free(mover->links);
	free(mover->rows);
	free(mover->tickets);
	*mover = (struct mover){ 0 };
}

size_t mover_bytes(const struct mover *mover)
{
	return mover->slots.count * sizeof(*mover->tickets) + slots_bytes(&mover->slots) +
	       mover->row_max * (sizeof(*mover->rows) + sizeof(*mover->links)) +
	       mover->save_row_max * sizeof(*mover->sources) + map_bytes(&mover->ids) +
	       map_bytes(&mover->names) + map_bytes(&mover->targets);
}
