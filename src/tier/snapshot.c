/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking an image, and the rest of a retraction.  See snapshot.h.  A stash's rows have references of
 * their own, so that an image may be dropped any time.
 */
#include "tier/snapshot.h"

#include <errno.h>
#include <stdlib.h>

#include "match/joint.h"
#include "tier/parts.h"

static int check_limits(uint32_t snapshot_max, uint32_t block_max, struct kvs_error *err)
{
	int rc = limit_check("block_max", block_max, SNAPSHOT_BLOCKS_MAX, err);

	if (rc == 0)
		rc = limit_check("snapshot_max", snapshot_max, SNAPSHOT_BLOCKS_MAX, err);
	if (rc == 0 && snapshot_max > SNAPSHOT_BLOCKS_MAX / block_max) {
		return err_set(err, KVS_E_INVALID,
			       "snapshot_max: %u, with block_max %u must be at most %u",
			       snapshot_max, block_max, SNAPSHOT_BLOCKS_MAX / block_max);
	}
	return rc;
}

int snapshots_open(struct snapshots *snapshots, struct mover *mover, uint32_t snapshot_max,
		   uint32_t block_max, struct kvs_error *err)
{
	const int rc = check_limits(snapshot_max, block_max, err);

	*snapshots = (struct snapshots){ 0 };
	if (rc < 0)
		return rc;
	*snapshots = (struct snapshots){ .cache = mover->cache, .mover = mover,
					 .block_max = block_max };
	snapshots->items = calloc(snapshot_max, sizeof(*snapshots->items));
	snapshots->blocks = calloc((size_t)snapshot_max * block_max, sizeof(*snapshots->blocks));
	snapshots->moves = calloc(block_max, sizeof(*snapshots->moves));
	if (snapshots->items && snapshots->blocks && snapshots->moves &&
	    slots_open(&snapshots->slots, snapshot_max) == 0)
		return 0;
	snapshots_close(snapshots);
	return err_set(err, -ENOMEM, "snapshot_max: %u, no memory for so many images of %u blocks",
		       snapshot_max, block_max);
}

void snapshots_close(struct snapshots *snapshots)
{
	KVS_ASSERT_CMP(snapshots->slots.busy_count, ==, 0);
	slots_close(&snapshots->slots);
	free(snapshots->moves);
	free(snapshots->blocks);
	free(snapshots->items);
	*snapshots = (struct snapshots){ 0 };
}

size_t snapshots_bytes(const struct snapshots *snapshots)
{
	const size_t snapshot_max = snapshots->slots.count;

	return snapshot_max * sizeof(*snapshots->items) + slots_bytes(&snapshots->slots) +
	       snapshot_max * snapshots->block_max * sizeof(*snapshots->blocks) +
	       snapshots->block_max * sizeof(*snapshots->moves);
}

static const struct groups *groups_of(const struct snapshots *snapshots)
{
	return cache_groups(snapshots->cache);
}

/* --- taking an image -------------------------------------------------------------------------- */

/* How far names alone restore the request: the page boundary that the image begins at. */
static uint64_t published_tokens(const struct snapshots *snapshots, const struct retraction *retraction)
{
	const struct cache_prompt prompt = { .space = retraction->completed.space,
					     .hashes = retraction->completed.hashes,
					     .page_count = retraction->completed.page_count };
	struct cache_probe        probe;

	/* Refused: longer than any prompt that is probed, so that names do not bring it back. */
	if (cache_probe(snapshots->cache, &prompt, PROBE_ALL, &probe, NULL) < 0)
		return 0;
	return probe.host_tokens;
}

/* One group's rows of an image, appended to moves; false when they do not fit, or one is a hole. */
static bool list_group(struct snapshots *snapshots, const struct retraction *retraction,
		       uint32_t group, uint64_t base, uint32_t *count)
{
	const struct group *const group_of = &groups_of(snapshots)->group[group];
	const struct table *const table = &retraction->tables[group];
	const uint64_t            computed = retraction->completed.computed;
	uint32_t                  position, end;

	match_needed(group_of, computed, &position, &end);
	if (position < group_blocks(group_of, base))
		position = group_blocks(group_of, base);
	for (; position < end; position++) {
		if (*count == snapshots->block_max) {
			snapshots->counts.too_large++;
			return false;
		}
		if (position >= table->count || table->slots[position] == BLOCK_NULL) {
			snapshots->counts.incomplete++;
			return false;
		}
		snapshots->moves[(*count)++] = (struct cache_move){
			.group = group, .position = position, .source = table->slots[position],
			.tokens = group_tokens_in(group_of, position, computed)
		};
	}
	return true;
}

/* A place on Host for each row of moves, with one reference; false and none. */
static bool find_places(struct snapshots *snapshots, uint32_t count)
{
	struct cache_move *const moves = snapshots->moves;
	uint32_t                 i;

	for (i = 0; i < count; i++) {
		moves[i].target = cache_host_acquire(snapshots->cache, moves[i].group);
		if (moves[i].target != BLOCK_NULL)
			continue;
		while (i-- > 0)
			cache_unpin(snapshots->cache, STRATUM_HOST, moves[i].group, moves[i].target);
		return false;
	}
	return true;
}

/* The rows of moves become a snapshot and its stash. */
static void keep_image(struct snapshots *snapshots, uint32_t slot, struct snapshot snapshot)
{
	struct snapshot_block *const blocks = snapshot_blocks(snapshots, slot);
	uint32_t                     i;

	for (i = 0; i < snapshot.block_count; i++) {
		const struct cache_move *const move = &snapshots->moves[i];

		blocks[i] = (struct snapshot_block){ move->group, move->position, move->target };
		cache_pin(snapshots->cache, STRATUM_HOST, move->group, move->target);
		cache_pin(snapshots->cache, STRATUM_DEVICE, move->group, move->source);
	}
	if (snapshot.block_count > 0) {
		snapshot.stash = mover_stash(snapshots->mover, snapshot.request, snapshots->moves,
					     snapshot.block_count);
	}
	snapshots->items[slot] = snapshot;
	snapshots->counts.taken++;
}

static uint32_t take_image(struct snapshots *snapshots, const struct retraction *retraction)
{
	struct snapshot snapshot = { .request = retraction->request,
				     .computed = retraction->completed.computed };
	uint32_t        group, slot;

	snapshot.base = published_tokens(snapshots, retraction);
	if (snapshot.base >= snapshot.computed)
		return SLOT_NONE;
	for (group = 0; group < groups_of(snapshots)->count; group++) {
		if (!list_group(snapshots, retraction, group, snapshot.base, &snapshot.block_count))
			return SLOT_NONE;
	}
	slot = slots_acquire(&snapshots->slots);
	if (slot != SLOT_NONE && mover_can_stash(snapshots->mover, snapshot.block_count) &&
	    find_places(snapshots, snapshot.block_count)) {
		keep_image(snapshots, slot, snapshot);
		return slot;
	}
	if (slot != SLOT_NONE)
		slots_release(&snapshots->slots, slot);
	snapshots->counts.no_room++;
	return SLOT_NONE;
}

/* --- retraction ------------------------------------------------------------------------------- */

/* Keep, or no longer, what Host has of the prefix: places for its end are not to cost its beginning. */
static void hold_prefix(const struct snapshots *snapshots, const struct cache_completed *completed,
			bool hold)
{
	const struct pages *const pages = cache_pages(snapshots->cache);
	uint32_t                  page, column;

	for (page = 0; page < completed->page_count; page++) {
		const uint32_t entry =
			pages_find(pages, completed->space, &completed->hashes[page]);

		for (column = 0; entry != SLOT_NONE && column < pages->groups.columns; column++) {
			const uint32_t group = pages->groups.column_group[column];
			const uint32_t block = pages_block(pages, pages_cell(pages, entry, column),
							   STRATUM_HOST);

			if (block == BLOCK_NULL)
				continue;
			if (hold)
				cache_pin(snapshots->cache, STRATUM_HOST, group, block);
			else
				cache_unpin(snapshots->cache, STRATUM_HOST, group, block);
		}
	}
}

static int check(const struct snapshots *snapshots, const struct cache_completed *completed,
		 struct kvs_error *err)
{
	const uint64_t tokens = (uint64_t)completed->page_count * groups_of(snapshots)->page_tokens;

	if (completed->computed > TOKENS_MAX) {
		return err_set(err, KVS_E_INVALID, "computed: %llu tokens, must be at most %d",
			       (unsigned long long)completed->computed, TOKENS_MAX);
	}
	if (completed->computed < tokens) {
		return err_set(err, KVS_E_INVALID,
			       "computed: %llu tokens, must be at least those of %u pages, %llu",
			       (unsigned long long)completed->computed, completed->page_count,
			       (unsigned long long)tokens);
	}
	return 0;
}

int snapshot_retract(struct snapshots *snapshots, const struct retraction *retraction,
		     struct retracted *ret_retracted, struct kvs_error *err)
{
	const struct cache_completed *const completed = &retraction->completed;
	struct cache *const                 cache = snapshots->cache;
	struct retracted                    retracted = { .snapshot = SLOT_NONE };
	int                                 rc = check(snapshots, completed, err);

	if (rc == 0)
		rc = cache_advance(cache, retraction->tables, completed, retraction->epoch, err);
	if (rc < 0)
		return rc;
	if (cache_pool(cache, STRATUM_HOST)) {
		hold_prefix(snapshots, completed, true);
		retracted.save_ticket = mover_save_prefix(snapshots->mover, completed->space,
							  completed->hashes,
							  completed->page_count);
		retracted.snapshot = take_image(snapshots, retraction);
		hold_prefix(snapshots, completed, false);
	}
	if (retracted.snapshot != SLOT_NONE)
		retracted.stash_ticket = snapshots->items[retracted.snapshot].stash;
	cache_free(cache, retraction->tables);
	*ret_retracted = retracted;
	return 0;
}
