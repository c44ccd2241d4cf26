/* SPDX-License-Identifier: Apache-2.0 */
/* A mover's tables and their limits.  See mover.h. */
#include "tier/mover.h"

#include <errno.h>
#include <stdlib.h>

static int check(const struct mover_options *options, uint64_t *ret_rows, struct kvs_error *err)
{
	const struct groups *const groups = cache_groups(options->cache);
	uint32_t                   packing = 1;
	uint32_t                   g;

	if (options->save_ticket_max == 0 || options->save_row_max == 0 || options->load_ticket_max == 0) {
		return err_set(err, KVS_E_INVALID,
			       "save_ticket_max, save_row_max, load_ticket_max: %u, %u, %u, each must be at least 1",
			       options->save_ticket_max, options->save_row_max, options->load_ticket_max);
	}
	for (g = 0; g < groups->count; g++) {
		if (groups->group[g].spec.packing > packing)
			packing = groups->group[g].spec.packing;
	}
	*ret_rows = (uint64_t)cache_total(options->cache, STRATUM_DEVICE) * packing +
		    options->save_row_max;
	if (*ret_rows >= INT32_MAX ||
	    (uint64_t)options->save_ticket_max + options->load_ticket_max >= INT32_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "save_row_max, save_ticket_max, load_ticket_max: %u, %u, %u, too many to number",
			       options->save_row_max, options->save_ticket_max, options->load_ticket_max);
	}
	return 0;
}

static int open_tables(struct mover *mover, uint32_t ticket_count)
{
	struct mover_row *rows;
	uint32_t          i;

	mover->tickets = calloc(ticket_count, sizeof(*mover->tickets));
	mover->rows = calloc(mover->row_max, sizeof(*mover->rows));
	mover->links = calloc(mover->row_max, sizeof(*mover->links));
	mover->holds = calloc(mover->save_row_max, sizeof(*mover->holds));
	rows = mover->rows;
	if (!mover->tickets || !rows || !mover->links || !mover->holds)
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
	uint64_t rows = 0;
	int      rc;

	*mover = (struct mover){ .cache = options->cache, .candidates = options->candidates,
				 .save_ticket_max = options->save_ticket_max,
				 .save_row_max = options->save_row_max,
				 .load_ticket_max = options->load_ticket_max };
	rc = check(options, &rows, err);
	if (rc < 0)
		return rc;
	mover->row_max = (uint32_t)rows;
	if (open_tables(mover, options->save_ticket_max + options->load_ticket_max) == 0)
		return 0;
	mover_close(mover);
	return err_set(err, -ENOMEM, "no memory for copy tickets of %llu rows",
		       (unsigned long long)rows);
}

void mover_close(struct mover *mover)
{
	KVS_ASSERT_CMP(mover->slots.busy_count, ==, 0);
	map_close(&mover->targets);
	map_close(&mover->names);
	map_close(&mover->ids);
	slots_close(&mover->slots);
	free(mover->holds);
	free(mover->links);
	free(mover->rows);
	free(mover->tickets);
	*mover = (struct mover){ 0 };
}

size_t mover_bytes(const struct mover *mover)
{
	return mover->slots.count * sizeof(*mover->tickets) +
	       mover->row_max * (sizeof(*mover->rows) + sizeof(*mover->links)) +
	       mover->save_row_max * sizeof(*mover->holds) + map_bytes(&mover->ids) +
	       map_bytes(&mover->names) + map_bytes(&mover->targets);
}
