/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See pool.h: parents that are bound, filled and unbound, and the references of their blocks.
 *
 * A parent's use changes in fill() and vacate() alone; both leave the group's room and its order of
 * partial parents as the new use says.
 */
#include "pool/pool.h"

#include <errno.h>
#include <stdlib.h>

#include "pool/state.h"

/* --- open and close --------------------------------------------------------------------------- */

static int check_packing(uint32_t parent_count, uint32_t group, uint32_t packing,
			 struct kvs_error *err)
{
	if (packing == 0) {
		return err_set(err, KVS_E_INVALID,
			       "group %u: packing: 0 blocks a parent hold nothing; use at least 1",
			       group);
	}
	if (packing > POOL_BLOCK_MAX / parent_count) {
		return err_set(err, KVS_E_INVALID,
			       "group %u: packing: %u blocks in each of %u parents are past block number %d, "
			       "the last of a 32-bit block table",
			       group, packing, parent_count, POOL_BLOCK_MAX);
	}
	return 0;
}

static int check(uint32_t parent_count, const uint32_t *packing, uint32_t group_count,
		 struct kvs_error *err)
{
	uint32_t group;
	int      rc = 0;

	if (parent_count == 0)
		return err_set(err, KVS_E_INVALID, "parent_count: 0 is no pool; use at least 1");
	if (group_count == 0)
		return err_set(err, KVS_E_INVALID, "group_count: 0 is no group; use at least 1");
	for (group = 0; rc == 0 && group < group_count; group++)
		rc = check_packing(parent_count, group, packing[group], err);
	return rc;
}

static void dispose(struct pool *pool)
{
	uint32_t group;

	for (group = 0; pool->groups && group < pool->group_count; group++)
		partial_close(&pool->groups[group].partial);
	tower_close(&pool->free);
	free(pool->refs);
	free(pool->links);
	free(pool->parents);
	free(pool->groups);
	free(pool);
}

static int open_groups(struct pool *pool, const uint32_t *packing)
{
	uint32_t group;
	int      rc = 0;

	pool->groups = calloc(pool->group_count, sizeof(*pool->groups));
	if (!pool->groups)
		return -ENOMEM;
	for (group = 0; rc == 0 && group < pool->group_count; group++) {
		struct pool_group *const own = &pool->groups[group];

		own->packing = packing[group];
		if (pool->stride < own->packing)
			pool->stride = own->packing;
		rc = partial_open(&own->partial, pool->parent_count, own->packing);
	}
	return rc;
}

static int open_parents(struct pool *pool)
{
	const uint32_t count = pool->parent_count;
	uint32_t       i;

	pool->parents = malloc(count * sizeof(*pool->parents));
	pool->links = malloc(count * sizeof(*pool->links));
	pool->refs = calloc((size_t)count * pool->stride, sizeof(*pool->refs));
	if (!pool->parents || !pool->links || !pool->refs)
		return -ENOMEM;
	list_init(&pool->unbound);
	list_links_init(pool->links, count);
	for (i = 0; i < count; i++) {
		pool->parents[i] = (struct pool_parent){ .group = SLOT_NONE };
		list_push_tail(&pool->unbound, pool->links, i);
	}
	return pool->stride == 1 ? 0 : tower_open(&pool->free, count * pool->stride, true);
}

int pool_open(uint32_t parent_count, const uint32_t *packing, uint32_t group_count,
	      struct pool **ret_pool, struct kvs_error *err)
{
	struct pool *pool;
	int          rc = check(parent_count, packing, group_count, err);

	if (rc < 0)
		return rc;
	pool = calloc(1, sizeof(*pool));
	if (pool) {
		pool->parent_count = parent_count;
		pool->group_count = group_count;
	}
	if (!pool || open_groups(pool, packing) < 0 || open_parents(pool) < 0) {
		if (pool)
			dispose(pool);
		return err_set(err, -ENOMEM, "no memory for a pool of %u parents", parent_count);
	}
	*ret_pool = pool;
	return 0;
}

void pool_close(struct pool *pool)
{
	if (!pool)
		return;
	/* A block that is still held may still be written to: its bytes must not go to another. */
	KVS_ASSERT_CMP(pool->unbound.count, ==, pool->parent_count);
	dispose(pool);
}

size_t pool_bytes(const struct pool *pool)
{
	size_t   bytes = sizeof(*pool);
	uint32_t group;

	if (!pool)
		return 0;
	for (group = 0; group < pool->group_count; group++)
		bytes += sizeof(*pool->groups) + partial_bytes(&pool->groups[group].partial);
	return bytes + tower_bytes(&pool->free) +
	       pool->parent_count * (sizeof(*pool->parents) + sizeof(*pool->links) +
				     pool->stride * sizeof(*pool->refs));
}

/* --- places ----------------------------------------------------------------------------------- */

static struct pool_group *group_at(const struct pool *pool, uint32_t group)
{
	KVS_ASSERT_CMP(group, <, pool->group_count);
	return &pool->groups[group];
}

static struct pool_parent *parent_at(const struct pool *pool, uint32_t parent)
{
	KVS_ASSERT_CMP(parent, >, 0);
	KVS_ASSERT_CMP(parent, <=, pool->parent_count);
	return &pool->parents[parent - 1];
}

struct place {
	uint32_t parent;
	uint32_t index; /* into refs */
};

/* Asserts that the group has such a number, held or not. */
static struct place locate(const struct pool *pool, uint32_t group, uint32_t block)
{
	const uint32_t packing = group_at(pool, group)->packing;
	const uint32_t parent = 1 + (block - 1) / packing;

	KVS_ASSERT_CMP(block, !=, POOL_NULL);
	KVS_ASSERT_CMP(parent, <=, pool->parent_count);
	return (struct place){ parent, parent_base(pool, parent) + (block - 1) % packing };
}

/* Asserts that the block is held, and by this group. */
static struct place locate_held(const struct pool *pool, uint32_t group, uint32_t block)
{
	const struct place place = locate(pool, group, block);

	KVS_ASSERT_CMP(parent_at(pool, place.parent)->group, ==, group);
	KVS_ASSERT_CMP(pool->refs[place.index], >, 0);
	return place;
}

/* --- taking and giving back ------------------------------------------------------------------- */

static uint32_t bind_next(struct pool *pool, uint32_t group)
{
	const uint32_t parent = 1 + list_pop_head(&pool->unbound, pool->links);

	KVS_ASSERT_CMP(parent_at(pool, parent)->group, ==, SLOT_NONE);
	parent_at(pool, parent)->group = group;
	group_at(pool, group)->room += group_at(pool, group)->packing;
	return parent;
}

static void unbind(struct pool *pool, uint32_t parent)
{
	struct pool_parent *const own = parent_at(pool, parent);
	struct pool_group *const  group = group_at(pool, own->group);

	group->room -= group->packing;
	own->group = SLOT_NONE;
	list_push_tail(&pool->unbound, pool->links, parent - 1);
}

/* Take the first free place at or after index: there is one in the same parent. */
static uint32_t take_place(struct pool *pool, uint32_t index)
{
	if (pool->stride > 1) {
		index = tower_next(&pool->free, index);
		tower_drop(&pool->free, index);
	}
	KVS_ASSERT_CMP(pool->refs[index], ==, 0);
	pool->refs[index] = 1;
	return index;
}

/* Take up to count blocks of a parent that is bound and has room; returns how many. */
static uint32_t fill(struct pool *pool, uint32_t parent, uint32_t count, uint32_t *ret_blocks)
{
	struct pool_parent *const own = parent_at(pool, parent);
	struct pool_group *const  group = group_at(pool, own->group);
	const uint32_t            room = group->packing - own->used;
	const uint32_t            taken = count < room ? count : room;
	const uint32_t            base = parent_base(pool, parent);
	uint32_t                  index = base;
	uint32_t                  i;

	KVS_ASSERT_CMP(taken, >, 0);
	partial_drop(&group->partial, parent, room);
	for (i = 0; i < taken; i++) {
		index = take_place(pool, index);
		KVS_ASSERT_CMP(index - base, <, group->packing);
		ret_blocks[i] = 1 + (parent - 1) * group->packing + index - base;
	}
	own->used += taken;
	group->room -= taken;
	partial_add(&group->partial, parent, room - taken);
	return taken;
}

bool pool_acquire(struct pool *pool, uint32_t group, uint32_t count, uint32_t *ret_blocks)
{
	struct pool_group *const own = group_at(pool, group);
	uint32_t                 taken;

	if (count > own->room + (uint64_t)pool->unbound.count * own->packing)
		return false;
	for (; count > 0; count -= taken, ret_blocks += taken) {
		uint32_t parent = partial_first(&own->partial);

		if (parent == 0)
			parent = bind_next(pool, group);
		taken = fill(pool, parent, count, ret_blocks);
	}
	return true;
}

/* The last reference to a place is gone. */
static void vacate(struct pool *pool, struct place place)
{
	struct pool_parent *const own = parent_at(pool, place.parent);
	struct pool_group *const  group = group_at(pool, own->group);
	const uint32_t            room = group->packing - own->used;

	KVS_ASSERT_CMP(own->used, >, 0);
	if (pool->stride > 1)
		tower_add(&pool->free, place.index);
	partial_drop(&group->partial, place.parent, room);
	own->used--;
	group->room++;
	partial_add(&group->partial, place.parent, room + 1);
	if (own->used == 0)
		unbind(pool, place.parent);
}

/* --- references ------------------------------------------------------------------------------- */

uint32_t pool_pin(struct pool *pool, uint32_t group, uint32_t block)
{
	uint32_t *const refs = &pool->refs[locate_held(pool, group, block).index];

	KVS_ASSERT_CMP(*refs, <, UINT32_MAX);
	return ++*refs;
}

uint32_t pool_unpin(struct pool *pool, uint32_t group, uint32_t block)
{
	struct place place;
	uint32_t     refs;

	if (block == POOL_NULL)
		return 0;
	place = locate_held(pool, group, block);
	refs = --pool->refs[place.index];
	if (refs == 0)
		vacate(pool, place);
	return refs;
}

uint32_t pool_refs(const struct pool *pool, uint32_t group, uint32_t block)
{
	struct place place;

	if (block == POOL_NULL)
		return 0;
	place = locate(pool, group, block);
	return parent_at(pool, place.parent)->group == group ? pool->refs[place.index] : 0;
}

/* --- capacity --------------------------------------------------------------------------------- */

uint32_t pool_parent_count(const struct pool *pool)
{
	return pool->parent_count;
}

uint32_t pool_unbound(const struct pool *pool)
{
	return pool->unbound.count;
}

uint32_t pool_room(const struct pool *pool, uint32_t group)
{
	return group_at(pool, group)->room;
}

uint32_t pool_packing(const struct pool *pool, uint32_t group)
{
	return group_at(pool, group)->packing;
}

uint32_t pool_parent_of(const struct pool *pool, uint32_t group, uint32_t block)
{
	return locate(pool, group, block).parent;
}

bool pool_bound(const struct pool *pool, uint32_t parent, uint32_t *ret_group)
{
	const uint32_t group = parent_at(pool, parent)->group;

	if (group == SLOT_NONE)
		return false;
	*ret_group = group;
	return true;
}

uint32_t pool_used(const struct pool *pool, uint32_t parent)
{
	return parent_at(pool, parent)->used;
}
