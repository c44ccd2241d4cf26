/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold between the calls of a pool: each count and each order can be told from refs alone. */
#include "base/err.h"
#include "pool/state.h"

/* Returns how many places of a parent are held; those past the packing never are. */
static uint32_t held_places(const struct pool *pool, uint32_t parent, uint32_t packing)
{
	const uint32_t base = parent_base(pool, parent);
	uint32_t       held = 0;
	uint32_t       slot;

	for (slot = 0; slot < pool->stride; slot++) {
		const uint32_t refs = pool->refs[base + slot];

		held += refs > 0;
		if (slot >= packing)
			KVS_ASSERT_CMP(refs, ==, 0);
		if (pool->stride > 1)
			KVS_ASSERT_CMP(tower_has(&pool->free, base + slot), ==, refs == 0);
	}
	return held;
}

static void audit_parent(const struct pool *pool, uint32_t parent)
{
	const struct pool_parent *const own = &pool->parents[parent - 1];
	const bool                      bound = own->group != SLOT_NONE;
	uint32_t                        packing = 0;

	if (bound) {
		KVS_ASSERT_CMP(own->group, <, pool->group_count);
		packing = pool->groups[own->group].packing;
	}
	KVS_ASSERT_CMP(held_places(pool, parent, packing), ==, own->used);
	KVS_ASSERT_CMP(own->used > 0, ==, bound);
	KVS_ASSERT_CMP(list_is_linked(pool->links, parent - 1), ==, !bound);
}

/* Every partial parent is in its group's order, and the order has no other. */
static void audit_group(const struct pool *pool, uint32_t group)
{
	const struct pool_group *const own = &pool->groups[group];
	uint32_t                       room = 0, partial = 0;
	uint32_t                       parent;

	for (parent = 1; parent <= pool->parent_count; parent++) {
		const struct pool_parent *const row = &pool->parents[parent - 1];

		if (row->group != group)
			continue;
		room += own->packing - row->used;
		if (row->used == own->packing)
			continue;
		partial++;
		KVS_ASSERT(partial_has(&own->partial, parent, own->packing - row->used));
	}
	KVS_ASSERT_CMP(own->room, ==, room);
	KVS_ASSERT_CMP(partial_count(&own->partial), ==, partial);
	partial_audit(&own->partial);
}

void pool_audit(const struct pool *pool)
{
	uint32_t unbound = 0;
	uint32_t i;

	list_audit(&pool->unbound, pool->links, pool->parent_count);
	for (i = 1; i <= pool->parent_count; i++) {
		audit_parent(pool, i);
		unbound += pool->parents[i - 1].group == SLOT_NONE;
	}
	/* As many are linked as are unbound, so the one list that there is holds just these. */
	KVS_ASSERT_CMP(pool->unbound.count, ==, unbound);
	for (i = 0; i < pool->group_count; i++)
		audit_group(pool, i);
	if (pool->stride > 1)
		tower_audit(&pool->free);
}
