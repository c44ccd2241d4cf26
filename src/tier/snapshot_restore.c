/* SPDX-License-Identifier: Apache-2.0 */
/* Bringing an image back, or giving it up.  See snapshot.h. */
#include "tier/snapshot.h"

#include "match/joint.h"

static const struct groups *groups_of(const struct snapshots *snapshots)
{
	return cache_groups(snapshots->cache);
}

static const struct snapshot *item_of(const struct snapshots *snapshots, uint32_t snapshot)
{
	KVS_ASSERT(slots_busy(&snapshots->slots, snapshot));
	return &snapshots->items[snapshot];
}

bool snapshot_is_ready(const struct snapshots *snapshots, uint32_t snapshot)
{
	return !mover_find(snapshots->mover, item_of(snapshots, snapshot)->stash);
}

/* Does the image go behind this hit?  A refused hit may be as long as the image, so no count tells. */
static bool is_base(const struct snapshots *snapshots, const struct snapshot *item, uint64_t hit_tokens)
{
	return hit_tokens >= item->base && hit_tokens <= item->computed &&
	       hit_tokens % groups_of(snapshots)->page_tokens == 0;
}

uint64_t snapshot_tokens(const struct snapshots *snapshots, uint32_t snapshot, uint64_t hit_tokens)
{
	const struct snapshot *const item = item_of(snapshots, snapshot);

	if (!is_base(snapshots, item, hit_tokens) || !snapshot_is_ready(snapshots, snapshot))
		return hit_tokens;
	return item->computed;
}

static int check_target(const struct snapshots *snapshots, const struct snapshot_block *block,
			const struct table *table, struct kvs_error *err)
{
	const uint32_t    slot = block->position < table->count ? table->slots[block->position]
								: BLOCK_NULL;
	const char *const name = groups_of(snapshots)->group[block->group].spec.name;
	struct cell_view  view;
	uint64_t          filling;

	if (slot == BLOCK_NULL) {
		return err_set(err, KVS_E_INVALID,
			       GROUP_LABEL "tables: position %u has no block to restore into",
			       block->group, name, block->position);
	}
	if (cache_view(snapshots->cache, STRATUM_DEVICE, block->group, slot, &view)) {
		return err_set(err, KVS_E_INVALID,
			       GROUP_LABEL "tables: position %u has a published block, an image needs a "
					   "private one",
			       block->group, name, block->position);
	}
	filling = mover_fence(snapshots->mover, block->group, slot);
	if (filling > 0) {
		return err_set(err, KVS_E_INVALID,
			       GROUP_LABEL "tables: position %u is being filled by ticket %llu",
			       block->group, name, block->position, (unsigned long long)filling);
	}
	return 0;
}

/* The rows behind a hit, into moves. */
static int list_restore(struct snapshots *snapshots, uint32_t snapshot, const struct table *tables,
			uint64_t hit_tokens, uint32_t *ret_count, struct kvs_error *err)
{
	const struct snapshot *const item = &snapshots->items[snapshot];
	uint32_t                     i;

	*ret_count = 0;
	for (i = 0; i < item->block_count; i++) {
		const struct snapshot_block *const block = &snapshot_blocks(snapshots, snapshot)[i];
		const struct table *const          table = &tables[block->group];
		const struct group *const          group = &groups_of(snapshots)->group[block->group];
		int                                rc;

		if (group_tokens_at(group, block->position) < hit_tokens)
			continue;
		rc = check_target(snapshots, block, table, err);
		if (rc < 0)
			return rc;
		snapshots->moves[(*ret_count)++] = (struct cache_move){
			.group = block->group, .position = block->position, .source = block->block,
			.target = table->slots[block->position],
			.tokens = group_tokens_in(group, block->position, item->computed),
			.from_host = true
		};
	}
	return 0;
}

static void let_go(struct snapshots *snapshots, uint32_t snapshot)
{
	const uint32_t block_count = item_of(snapshots, snapshot)->block_count;
	uint32_t       i;

	for (i = 0; i < block_count; i++) {
		const struct snapshot_block *const block = &snapshot_blocks(snapshots, snapshot)[i];

		cache_unpin(snapshots->cache, STRATUM_HOST, block->group, block->block);
	}
	slots_release(&snapshots->slots, snapshot);
}

int snapshot_restore(struct snapshots *snapshots, uint32_t snapshot, struct table *tables,
		     uint64_t hit_tokens, uint64_t *ret_ticket, struct kvs_error *err)
{
	const struct snapshot *const item = item_of(snapshots, snapshot);
	uint32_t                     count, i;
	int                          rc;

	if (!snapshot_is_ready(snapshots, snapshot)) {
		return err_set(err, KVS_E_BUSY, "snapshot: %u, its copies to Host are under way",
			       snapshot);
	}
	if (!is_base(snapshots, item, hit_tokens)) {
		return err_set(err, KVS_E_INVALID,
			       "hit_tokens: %llu, must be a page boundary from %llu to %llu",
			       (unsigned long long)hit_tokens, (unsigned long long)item->base,
			       (unsigned long long)item->computed);
	}
	rc = list_restore(snapshots, snapshot, tables, hit_tokens, &count, err);
	if (rc < 0)
		return rc;
	if (count > 0 && !mover_can_load(snapshots->mover)) {
		return err_set(err, KVS_E_FULL, "load_ticket_max: %u, all are in flight",
			       snapshots->mover->load_ticket_max);
	}
	/* The ticket has references of its own, as the stash had. */
	for (i = 0; i < count; i++) {
		cache_pin(snapshots->cache, STRATUM_HOST, snapshots->moves[i].group,
			  snapshots->moves[i].source);
		cache_pin(snapshots->cache, STRATUM_DEVICE, snapshots->moves[i].group,
			  snapshots->moves[i].target);
	}
	*ret_ticket = mover_bring_back(snapshots->mover, item->request, snapshots->moves, count);
	cache_reclaim(snapshots->cache, tables, item->computed);
	let_go(snapshots, snapshot);
	snapshots->counts.restored++;
	return 0;
}

void snapshot_drop(struct snapshots *snapshots, uint32_t snapshot)
{
	let_go(snapshots, snapshot);
	snapshots->counts.dropped++;
}

bool snapshots_clear(struct snapshots *snapshots)
{
	return snapshots->slots.busy_count == 0 && mover_clear(snapshots->mover);
}

static void audit_block(const struct snapshots *snapshots, const struct snapshot *item,
			const struct snapshot_block *block)
{
	const struct group *const group = &groups_of(snapshots)->group[block->group];
	struct cell_view          view;
	uint32_t                  first, end;

	match_needed(group, item->computed, &first, &end);
	KVS_ASSERT_CMP(block->position, >=, first);
	KVS_ASSERT_CMP(block->position, <, end);
	KVS_ASSERT_CMP(group_tokens_at(group, block->position), >=, item->base);
	KVS_ASSERT_CMP(pool_refs(cache_pool(snapshots->cache, STRATUM_HOST), block->group,
				 block->block), >, 0);
	KVS_ASSERT(!cache_view(snapshots->cache, STRATUM_HOST, block->group, block->block, &view));
}

void snapshots_audit(const struct snapshots *snapshots)
{
	uint32_t slot, i;

	slots_audit(&snapshots->slots);
	SLOTS_EACH(&snapshots->slots, slot) {
		const struct snapshot *const     item = &snapshots->items[slot];
		const struct mover_ticket *const stash = mover_find(snapshots->mover, item->stash);

		KVS_ASSERT_CMP(item->base, <, item->computed);
		KVS_ASSERT_CMP(item->base % groups_of(snapshots)->page_tokens, ==, 0);
		KVS_ASSERT_CMP(item->block_count, <=, snapshots->block_max);
		if (stash) {
			KVS_ASSERT_CMP(stash->kind, ==, TICKET_STASH);
			KVS_ASSERT_CMP(stash->rows.count, ==, item->block_count);
		}
		for (i = 0; i < item->block_count; i++)
			audit_block(snapshots, item, &snapshot_blocks(snapshots, slot)[i]);
	}
}
