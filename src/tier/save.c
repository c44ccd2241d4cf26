/* SPDX-License-Identifier: Apache-2.0 */
/* Which names go to Host: a drain of the candidates, and a prefix at once.  See mover.h. */
#include "tier/parts.h"

static_assert(GROUPS_MAX <= 64, "a set of groups is one word");

/* A save ticket that is being filled. */
struct save {
	struct mover *mover;
	uint32_t      slot; /* of the ticket; SLOT_NONE: none is free */
	uint64_t      full; /* groups for which Host has no place: none comes back while this lasts */
};

/* There is nothing to copy: Host has the name, or will have it, or Device lost it. */
static bool is_settled(struct mover *mover, const struct candidate *candidate)
{
	const struct cell_name name = candidate_name(candidate);
	const uint64_t         hash = map_hash(&mover->names, candidate);

	if (cache_find(mover->cache, STRATUM_HOST, &name) != BLOCK_NULL)
		mover->counts.on_host++;
	else if (map_find(&mover->names, hash, candidate) != SLOT_NONE)
		mover->counts.in_flight++;
	else if (cache_find(mover->cache, STRATUM_DEVICE, &name) == BLOCK_NULL)
		mover->counts.gone++;
	else
		return false;
	return true;
}

/* Make a row of a name that is not settled; false when it must wait. */
static bool take(struct save *save, const struct candidate *candidate)
{
	struct mover *const    mover = save->mover;
	const struct cell_name name = candidate_name(candidate);
	const uint32_t         group = candidate->group;
	struct mover_row       row = { .name = *candidate, .group = group,
				       .source = cache_find(mover->cache, STRATUM_DEVICE, &name),
				       .path = COPY_DEVICE_TO_HOST,
				       .tokens = cache_groups(mover->cache)->group[group].spec.block_tokens };
	struct cell_view       view;

	if (mover->saving_rows == mover->save_row_max || (save->full >> group) & 1)
		return false;
	row.target = cache_host_acquire(mover->cache, group);
	if (row.target == BLOCK_NULL) {
		save->full |= UINT64_C(1) << group;
		return false;
	}
	KVS_ASSERT(cache_view(mover->cache, STRATUM_DEVICE, group, row.source, &view));
	row.kind = view.kind;
#ifndef KVS_MUTANT_DROP_SOURCE /* Planted bug: a save does not hold what it reads. */
	cache_pin(mover->cache, STRATUM_DEVICE, group, row.source);
#endif
	mover_add(mover, save->slot, &row);
	return true;
}

uint64_t mover_drain(struct mover *mover)
{
	struct save      save = { .mover = mover };
	struct candidate candidate;
	uint32_t         left = mover->candidates ? candidates_count(mover->candidates) : 0;

	if (left == 0 || !cache_pool(mover->cache, STRATUM_HOST))
		return 0;
	if (!mover_can_save(mover)) {
		mover->counts.waited += left;
		return 0;
	}
	save.slot = mover_begin(mover, TICKET_SAVE, 0);
	for (; left > 0; left--) {
		KVS_ASSERT(candidates_pop(mover->candidates, &candidate));
		if (is_settled(mover, &candidate) || take(&save, &candidate))
			continue;
		candidates_put_back(mover->candidates, &candidate);
		mover->counts.waited++;
	}
	return mover_commit(mover, save.slot);
}

static void put_off(struct mover *mover, const struct cell_name *name)
{
	if (!mover->candidates) {
		mover->counts.unsaved++;
		return;
	}
	mover->counts.waited++;
	candidates_push(mover->candidates, name);
}

/* The cells of a page's group, of those that Device has: into the ticket, else into the queue. */
static void take_or_queue(struct save *save, const struct kvs_namespace *space,
			  const struct prefix_hash *hash, uint32_t group)
{
	struct mover *const       mover = save->mover;
	const struct pages *const pages = cache_pages(mover->cache);
	const struct group *const group_of = &pages->groups.group[group];
	const uint32_t            entry = pages_find(pages, space, hash);
	struct cell_name          name = { space, hash, group, 0 };

	if (entry == SLOT_NONE)
		return;
	for (; name.offset < group_of->page_blocks; name.offset++) {
		const struct candidate candidate = candidate_of(&name);
		const uint32_t         cell = pages_cell(pages, entry, group_of->first_column + name.offset);

		if (pages_block(pages, cell, STRATUM_DEVICE) == BLOCK_NULL)
			continue;
		if (is_settled(mover, &candidate))
			continue;
		if (save->slot == SLOT_NONE || !take(save, &candidate))
			put_off(mover, &name);
	}
}

uint64_t mover_save_prefix(struct mover *mover, const struct kvs_namespace *space,
			   const struct prefix_hash *hashes, uint32_t page_count)
{
	struct save save = { .mover = mover, .slot = SLOT_NONE };
	uint32_t    group, page;

	if (!cache_pool(mover->cache, STRATUM_HOST))
		return 0;
	if (mover_can_save(mover))
		save.slot = mover_begin(mover, TICKET_SAVE, 0);
	for (group = 0; group < cache_groups(mover->cache)->count; group++) {
		for (page = 0; page < page_count; page++)
			take_or_queue(&save, space, &hashes[page], group);
	}
	return save.slot == SLOT_NONE ? 0 : mover_commit(mover, save.slot);
}
