/* SPDX-License-Identifier: Apache-2.0 */
#include "naive.h"

#include <stdlib.h>

/* --- what is held ----------------------------------------------------------------------------- */

static void value(struct cache *cache, struct naive_block *block)
{
	const struct group *const group = &cache_groups(cache)->group[block->group];
	struct cell_view          view;

	block->published = cache_view(cache, STRATUM_DEVICE, block->group, block->block, &view);
	if (!block->published)
		return;
	block->epoch = view.epoch;
	if (group->spec.kind == GROUP_FULL) {
		block->grade = 3;
		block->rank = -(int64_t)view.position;
	} else if (view.kind == CELL_CHUNK && !view.was_acquired) {
		block->grade = 1;
		block->rank = view.position;
	} else {
		block->grade = 2;
	}
}

static void list_held(struct cache *cache, struct naive_plan *plan)
{
	const struct pool *const pool = cache_pool(cache, STRATUM_DEVICE);
	uint32_t                 parent, slot, group;

	for (parent = 1; parent <= pool_parent_count(pool); parent++) {
		if (!pool_bound(pool, parent, &group))
			continue;
		for (slot = 0; slot < pool_packing(pool, group); slot++) {
			const uint32_t block = 1 + (parent - 1) * pool_packing(pool, group) + slot;

			if (pool_refs(pool, group, block) == 0)
				continue;
			KVS_ASSERT_CMP(plan->block_count, <, NAIVE_BLOCKS);
			plan->blocks[plan->block_count] =
				(struct naive_block){ .group = group, .block = block,
						      .refs = pool_refs(pool, group, block) };
			value(cache, &plan->blocks[plan->block_count++]);
		}
	}
}

static struct naive_block *find(struct naive_plan *plan, uint32_t group, uint32_t block)
{
	uint32_t i;

	for (i = 0; i < plan->block_count; i++) {
		if (plan->blocks[i].group == group && plan->blocks[i].block == block)
			return &plan->blocks[i];
	}
	KVS_PANIC("block %u of group %u is not held", block, group);
}

/* --- what is needed --------------------------------------------------------------------------- */

/* Does any query from token `at` on attend to a token of this block? */
static bool attended(const struct group *group, uint64_t at, uint32_t position)
{
	const uint64_t block_end = ((uint64_t)position + 1) * group->spec.block_tokens;

	return group->spec.kind == GROUP_FULL || block_end + group->window_tokens > at + 1;
}

static uint32_t device_block(struct cache *cache, const struct naive_names *names, uint64_t hit,
			     uint32_t group, uint32_t position)
{
	const struct groups *const groups = cache_groups(cache);
	const uint32_t             page = position / groups->group[group].page_blocks;
	const bool                 tail = page == hit / groups->page_tokens;
	const struct cell_name     name = { names->space, tail ? &names->tail : &names->hashes[page],
					    group, position % groups->group[group].page_blocks };

	return cache_find(cache, STRATUM_DEVICE, &name);
}

/* Blocks that the hit takes; what Device holds of it must stay, and a page's blocks are shared. */
static void need_hit(struct cache *cache, const struct cache_probe *probe,
		     const struct naive_names *names, uint32_t g, struct naive_plan *plan)
{
	const struct groups *const groups = cache_groups(cache);
	const struct group *const  group = &groups->group[g];
	const uint32_t             q = group->spec.block_tokens;
	const uint64_t             hit = probe->host_tokens;
	uint32_t                   position, block;

	for (position = 0; (uint64_t)position * q < hit; position++) {
		if (!attended(group, hit, position))
			continue;
		/* A window of 1 attends to nothing old, but its next token may lie in this block. */
		if (group->window_tokens == 1 && group->spec.kind != GROUP_FULL) {
			plan->needed[g]++;
			continue;
		}
		block = device_block(cache, names, hit, g, position);
		if (block == BLOCK_NULL || position / group->page_blocks == hit / groups->page_tokens)
			plan->needed[g]++;
		if (block != BLOCK_NULL)
			find(plan, g, block)->must_stay = true;
	}
}

static void need_demand(const struct group *group, const struct table *table,
			const struct demand *demand, uint64_t hit, bool claimed, uint64_t *needed)
{
	const uint32_t q = group->spec.block_tokens;
	const uint64_t count = claimed ? (hit + q - 1) / q : table->count;
	const uint64_t end = claimed ? hit : count * q - table->available;
	const uint64_t grown = demand->first_slot == DEMAND_DENSE ? end : 0;
	const uint64_t slots = (grown + demand->tokens + demand->reserve + q - 1) / q;
	uint64_t       from = count;

	if (demand->first_slot != DEMAND_DENSE && demand->first_slot > from)
		from = demand->first_slot;
	if (slots > from)
		*needed += slots - from;
}

static void let_expire(const struct group *group, const struct table *table, uint32_t g,
		       uint64_t computed, struct naive_plan *plan)
{
	uint32_t i;

	if (computed == COMPUTED_NONE)
		return;
	for (i = 0; i < table->count; i++) {
		if (table->slots[i] != BLOCK_NULL && !attended(group, computed, i))
			find(plan, g, table->slots[i])->letting_go++;
	}
}

/* --- the plan --------------------------------------------------------------------------------- */

static bool is_candidate(const struct naive_block *block)
{
	return !block->must_stay && block->refs == block->letting_go + block->published;
}

/* Candidates first; among them the documented order. */
static int compare(const void *left, const void *right)
{
	const struct naive_block *const a = left, *const b = right;

	if (is_candidate(a) != is_candidate(b))
		return is_candidate(a) ? -1 : 1;
	if (a->epoch != b->epoch)
		return a->epoch < b->epoch ? -1 : 1;
	if (a->grade != b->grade)
		return a->grade < b->grade ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	return a->block < b->block ? -1 : 1;
}

/* Count parents anew, without the victims. */
static bool makes_room(struct cache *cache, const struct naive_plan *plan, uint32_t victims)
{
	const struct pool *const pool = cache_pool(cache, STRATUM_DEVICE);
	uint32_t                 used[NAIVE_BLOCKS] = { 0 };
	uint64_t                 room[GROUPS_MAX] = { 0 };
	uint64_t                 unbound = 0, parents = 0;
	uint32_t                 i, g;

	for (i = 0; i < plan->block_count; i++) {
		const struct naive_block *const block = &plan->blocks[i];

		if (i >= plan->candidate_count || !(victims >> i & 1))
			used[pool_parent_of(pool, block->group, block->block)]++;
	}
	for (i = 1; i <= pool_parent_count(pool); i++) {
		if (used[i] == 0)
			unbound++;
		else if (pool_bound(pool, i, &g))
			room[g] += pool_packing(pool, g) - used[i];
	}
	for (g = 0; g < cache_groups(cache)->count; g++) {
		if (plan->needed[g] > room[g]) {
			parents += (plan->needed[g] - room[g] + pool_packing(pool, g) - 1) /
				   pool_packing(pool, g);
		}
	}
	return parents <= unbound;
}

void naive_plan(struct cache *cache, const struct cache_admission *admission,
		const struct naive_names *names, const struct cache_block *released,
		uint32_t released_count, struct naive_plan *plan)
{
	const struct groups *const      groups = cache_groups(cache);
	const struct cache_probe *const probe = admission->probe;
	uint64_t                        victims;
	uint32_t                        g, i;

	*plan = (struct naive_plan){ 0 };
	list_held(cache, plan);
	for (g = 0; g < groups->count; g++) {
		if (probe)
			need_hit(cache, probe, names, g, plan);
		need_demand(&groups->group[g], &admission->tables[g], &admission->demands[g],
			    probe ? probe->host_tokens : 0, probe != NULL, &plan->needed[g]);
		let_expire(&groups->group[g], &admission->tables[g], g,
			   admission->completed.computed, plan);
	}
	for (i = 0; i < released_count; i++)
		find(plan, released[i].group, released[i].block)->letting_go++;
	qsort(plan->blocks, plan->block_count, sizeof(*plan->blocks), compare);
	while (plan->candidate_count < plan->block_count &&
	       is_candidate(&plan->blocks[plan->candidate_count]))
		plan->candidate_count++;
	KVS_ASSERT_CMP(plan->candidate_count, <, 24);
	for (victims = 0; victims >> plan->candidate_count == 0; victims++) {
		if (!makes_room(cache, plan, (uint32_t)victims))
			continue;
		plan->possible = true;
		plan->victims = (uint32_t)victims;
		return;
	}
}
