/* SPDX-License-Identifier: Apache-2.0 */
/* See stratum.h.  idle_count moves exactly where a published block's count crosses between one and two. */
#include "coord/stratum.h"

#include <errno.h>
#include <stdlib.h>

/* The pool's only group. */
#define GROUP 0u

static uint32_t to_pool(uint32_t block)
{
	return block + 1;
}

static uint32_t from_pool(uint32_t number)
{
	return number - 1;
}

int stratum_open(struct stratum *stratum, enum stratum_id id, struct prefix_index *index,
		 uint32_t block_count, const char *policy, struct kvs_error *err)
{
	const uint32_t packing = 1;
	uint32_t       block;
	int            rc;

	*stratum = (struct stratum){ .id = id, .index = index };
	rc = evict_gives(policy, err);
	if (rc == 0)
		rc = evict_open(policy, block_count, &stratum->order, err);
	if (rc < 0)
		return rc;
	stratum->entry = malloc(block_count * sizeof(*stratum->entry));
	if (!stratum->entry)
		rc = err_set(err, -ENOMEM, "no memory for the tables of %u blocks", block_count);
	else
		rc = pool_open(block_count, &packing, 1, &stratum->pool, err);
	if (rc < 0) {
		stratum_close(stratum);
		return rc;
	}
	for (block = 0; block < block_count; block++)
		stratum->entry[block] = SLOT_NONE;
	return 0;
}

static void drop_all(struct stratum *stratum)
{
	uint32_t block;

	for (block = 0; block < pool_parent_count(stratum->pool); block++) {
		while (stratum_refs(stratum, block) > 0)
			pool_unpin(stratum->pool, GROUP, to_pool(block));
	}
}

void stratum_close(struct stratum *stratum)
{
	if (stratum->pool)
		drop_all(stratum);
	pool_close(stratum->pool);
	free(stratum->entry);
	evict_close(stratum->order);
	*stratum = (struct stratum){ 0 };
}

bool stratum_published(const struct stratum *stratum, uint32_t block)
{
	return stratum->entry[block] != SLOT_NONE;
}

uint32_t stratum_refs(const struct stratum *stratum, uint32_t block)
{
	return pool_refs(stratum->pool, GROUP, to_pool(block));
}

static bool may_evict(void *ctx, uint32_t block)
{
	const struct stratum *const stratum = ctx;

	return stratum_refs(stratum, block) == 1;
}

static bool evict_one(struct stratum *stratum)
{
	uint32_t block;

	if (stratum->idle_count == 0)
		return false;
	block = evict_victim(stratum->order, may_evict, stratum);
	KVS_ASSERT_CMP(block, !=, SLOT_NONE);
	index_drop(stratum->index, stratum->id, stratum->entry[block]);
	stratum->entry[block] = SLOT_NONE;
	stratum->idle_count--;
	stratum->evicted++;
	KVS_ASSERT_CMP(pool_unpin(stratum->pool, GROUP, to_pool(block)), ==, 0);
	return true;
}

uint32_t stratum_room(const struct stratum *stratum)
{
	return pool_unbound(stratum->pool) + stratum->idle_count;
}

uint32_t stratum_acquire(struct stratum *stratum)
{
	uint32_t number;

	if (pool_unbound(stratum->pool) == 0 && !evict_one(stratum))
		return SLOT_NONE;
	KVS_ASSERT(pool_acquire(stratum->pool, GROUP, 1, &number));
	return from_pool(number);
}

void stratum_pin(struct stratum *stratum, uint32_t block)
{
	if (pool_pin(stratum->pool, GROUP, to_pool(block)) == 2 && stratum_published(stratum, block))
		stratum->idle_count--;
}

void stratum_unpin(struct stratum *stratum, uint32_t block)
{
	if (pool_unpin(stratum->pool, GROUP, to_pool(block)) == 1 && stratum_published(stratum, block))
		stratum->idle_count++;
}

uint32_t stratum_publish(struct stratum *stratum, const struct kvs_key *key, uint32_t block)
{
	const uint32_t holder = stratum_find(stratum, key);

	KVS_ASSERT(!stratum_published(stratum, block));
	if (holder != SLOT_NONE) {
		stratum_pin(stratum, holder);
		stratum_unpin(stratum, block);
		evict_touch(stratum->order, holder);
		return holder;
	}
	stratum->entry[block] = index_add(stratum->index, stratum->id, key, block);
	pool_pin(stratum->pool, GROUP, to_pool(block));
	evict_insert(stratum->order, block, map_hash(&stratum->index->map, key));
	return block;
}

uint32_t stratum_find(const struct stratum *stratum, const struct kvs_key *key)
{
	return index_block(stratum->index, stratum->id, key);
}

void stratum_touch(struct stratum *stratum, const struct kvs_key *key)
{
	const uint32_t block = stratum_find(stratum, key);

	if (block != SLOT_NONE)
		evict_touch(stratum->order, block);
}

void stratum_audit(struct stratum *stratum)
{
	uint32_t published = 0, idle = 0;
	uint32_t block;

	pool_audit(stratum->pool);
	evict_audit(stratum->order);
	for (block = 0; block < pool_parent_count(stratum->pool); block++) {
		const uint32_t entry = stratum->entry[block];

		KVS_ASSERT_CMP(evict_present(stratum->order, block), ==, entry != SLOT_NONE);
		if (entry == SLOT_NONE)
			continue;
		KVS_ASSERT_CMP(stratum->index->entries[entry].block[stratum->id], ==, block);
		published++;
		idle += stratum_refs(stratum, block) == 1;
	}
	KVS_ASSERT_CMP(published, ==, evict_count(stratum->order));
	KVS_ASSERT_CMP(idle, ==, stratum->idle_count);
}
