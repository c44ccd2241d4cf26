/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold of a mover between two calls.  See mover.h. */
#include "tier/mover.h"

/* What the tickets come to, row by row. */
struct census {
	uint32_t rows, saved_names, targets, saving_rows, saving, loading;
};

static void audit_held(const struct mover *mover, enum stratum_id stratum, uint32_t group,
		       uint32_t block)
{
	KVS_ASSERT_CMP(pool_refs(cache_pool(mover->cache, stratum), group, block), >, 0);
}

static void audit_save(const struct mover *mover, const struct mover_row *row, uint32_t i)
{
	const struct cell_name name = candidate_name(&row->name);

	KVS_ASSERT_CMP(row->group, ==, row->name.group);
	/* Held, so it cannot have been evicted. */
	KVS_ASSERT_CMP(cache_find(mover->cache, STRATUM_DEVICE, &name), ==, row->source);
	KVS_ASSERT_CMP(map_find(&mover->names, map_hash(&mover->names, &row->name), &row->name), ==,
		       i);
}

static void audit_row(const struct mover *mover, const struct mover_ticket *ticket, uint32_t i,
		      struct census *census)
{
	const struct mover_row *const row = &mover->rows[i];
	const bool                    to_host = !ticket_is_load(ticket->kind);
	struct cell_view              view;

	census->rows++;
	audit_held(mover, row->path == COPY_HOST_TO_DEVICE ? STRATUM_HOST : STRATUM_DEVICE,
		   row->group, row->source);
	audit_held(mover, to_host ? STRATUM_HOST : STRATUM_DEVICE, row->group, row->target);
	KVS_ASSERT_CMP(row->path == COPY_DEVICE_TO_HOST, ==, to_host);
	KVS_ASSERT_CMP(&mover->tickets[row->ticket_slot] == ticket, ==, true);
	if (!to_host) {
		census->targets++;
		KVS_ASSERT_CMP(mover_fence(mover, row->group, row->target), ==, ticket->id);
		return;
	}
	census->saving_rows++;
	KVS_ASSERT(!cache_view(mover->cache, STRATUM_HOST, row->group, row->target, &view));
	if (ticket->kind == TICKET_SAVE) {
		census->saved_names++;
		audit_save(mover, row, i);
	}
}

static void audit_ticket(const struct mover *mover, const struct mover_ticket *ticket,
			 struct census *census)
{
	uint32_t row;

	list_audit(&ticket->rows, mover->links, mover->row_max);
	KVS_ASSERT_CMP(ticket->rows.count, >, 0);
	KVS_ASSERT_CMP(ticket->id, >, 0);
	KVS_ASSERT_CMP(ticket->id, <=, mover->last_id);
	KVS_ASSERT(mover_find(mover, ticket->id) == ticket);
	*(ticket_is_load(ticket->kind) ? &census->loading : &census->saving) += 1;
	MOVER_ROWS(mover, ticket, row)
		audit_row(mover, ticket, row, census);
}

void mover_audit(const struct mover *mover)
{
	struct census census = { 0 };
	uint32_t      slot;

	slots_audit(&mover->slots);
	map_audit(&mover->ids);
	map_audit(&mover->names);
	map_audit(&mover->targets);
	list_audit(&mover->free, mover->links, mover->row_max);
	SLOTS_EACH(&mover->slots, slot)
		audit_ticket(mover, &mover->tickets[slot], &census);
	KVS_ASSERT_CMP(census.rows + mover->free.count, ==, mover->row_max);
	KVS_ASSERT_CMP(census.saved_names, ==, mover->names.count);
	KVS_ASSERT_CMP(census.targets, ==, mover->targets.count);
	KVS_ASSERT_CMP(census.saving_rows, ==, mover->saving_rows);
	KVS_ASSERT_CMP(census.saving, ==, mover->saving_tickets);
	KVS_ASSERT_CMP(census.loading, ==, mover->loading_tickets);
	KVS_ASSERT_CMP(mover->ids.count, ==, mover->slots.busy_count);
	KVS_ASSERT_CMP(mover->saving_tickets, <=, mover->save_ticket_max);
	KVS_ASSERT_CMP(mover->saving_rows, <=, mover->save_row_max);
	KVS_ASSERT_CMP(mover->loading_tickets, <=, mover->load_ticket_max);
}
