/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linear probing with backward shift: a removal closes the gap it leaves, so that no tombstones
 * pile up in a cache that replaces entries for days.  The tag spares most visits to the owner's
 * records.
 */
#include "base/map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/err.h"

static uint32_t tag_of(uint64_t hash)
{
	return (uint32_t)(hash >> 32);
}

static uint32_t home_of(const struct map *map, uint64_t hash)
{
	return tag_of(hash) & map->mask;
}

static const uint8_t *key_of(const struct map *map, uint32_t slot)
{
	return map->keys + slot * map->key_stride;
}

/* Buckets are a power of two, so that at most 3/4 are taken. */
static uint64_t buckets_for(uint32_t capacity)
{
	uint64_t buckets = 8;

	while (buckets * 3 / 4 < capacity)
		buckets *= 2;
	return buckets;
}

size_t map_bucket_bytes(uint32_t capacity)
{
	return buckets_for(capacity) * sizeof(struct map_bucket);
}

void map_open_in(struct map *map, void *memory, uint32_t capacity, const void *keys,
		 size_t key_stride, size_t key_bytes)
{
	const uint64_t bucket_count = buckets_for(capacity);
	uint64_t       i;

	KVS_ASSERT_CMP(capacity, >, 0);
	KVS_ASSERT_CMP(capacity, <=, UINT32_C(1) << 31);
	*map = (struct map){ .buckets = memory, .mask = (uint32_t)(bucket_count - 1),
			     .capacity = capacity, .keys = keys, .key_stride = key_stride,
			     .key_bytes = key_bytes, .borrowed = true };
	for (i = 0; i < bucket_count; i++)
		map->buckets[i] = (struct map_bucket){ .slot = SLOT_NONE };
}

int map_open(struct map *map, uint32_t capacity, const void *keys, size_t key_stride,
	     size_t key_bytes)
{
	void *const memory = malloc(map_bucket_bytes(capacity));

	*map = (struct map){ 0 };
	if (!memory)
		return -ENOMEM;
	map_open_in(map, memory, capacity, keys, key_stride, key_bytes);
	map->borrowed = false;
	return 0;
}

void map_close(struct map *map)
{
	if (!map->borrowed)
		free(map->buckets);
	*map = (struct map){ 0 };
}

uint64_t map_hash(const struct map *map, const void *key)
{
	return xxh3_64(key, map->key_bytes);
}

uint32_t map_find(const struct map *map, uint64_t hash, const void *key)
{
	uint32_t b;

	for (b = home_of(map, hash); map->buckets[b].slot != SLOT_NONE; b = (b + 1) & map->mask) {
		if (map->buckets[b].tag == tag_of(hash) &&
		    memcmp(key_of(map, map->buckets[b].slot), key, map->key_bytes) == 0)
			return map->buckets[b].slot;
	}
	return SLOT_NONE;
}

void map_insert(struct map *map, uint64_t hash, uint32_t slot)
{
	uint32_t b;

	KVS_ASSERT_CMP(map->count, <, map->capacity);
	for (b = home_of(map, hash); map->buckets[b].slot != SLOT_NONE; b = (b + 1) & map->mask) {
		if (map->buckets[b].tag == tag_of(hash)) {
			KVS_ASSERT(memcmp(key_of(map, map->buckets[b].slot), key_of(map, slot),
					  map->key_bytes) != 0);
		}
	}
	map->buckets[b] = (struct map_bucket){ .slot = slot, .tag = tag_of(hash) };
	map->count++;
}

/* Close the gap: pull back each follower whose home, which its tag tells, does not lie behind it. */
static void shift_back(struct map *map, uint32_t gap)
{
	uint32_t b = gap;

	for (;;) {
		uint32_t home;

		b = (b + 1) & map->mask;
		if (map->buckets[b].slot == SLOT_NONE)
			break;
		home = map->buckets[b].tag & map->mask;
		if (((b - home) & map->mask) < ((b - gap) & map->mask))
			continue;
		map->buckets[gap] = map->buckets[b];
		gap = b;
	}
	map->buckets[gap].slot = SLOT_NONE;
}

void map_remove(struct map *map, uint64_t hash, uint32_t slot)
{
	uint32_t b;

	for (b = home_of(map, hash); map->buckets[b].slot != slot; b = (b + 1) & map->mask)
		KVS_ASSERT(map->buckets[b].slot != SLOT_NONE);
	map->count--;
	shift_back(map, b);
}

size_t map_bytes(const struct map *map)
{
	return ((size_t)map->mask + 1) * sizeof(*map->buckets);
}

void map_audit(const struct map *map)
{
	uint32_t seen = 0;
	uint64_t i;

	/* 64 bits: the mask of the largest map is UINT32_MAX. */
	for (i = 0; i <= map->mask; i++) {
		const uint32_t slot = map->buckets[i].slot;

		if (slot == SLOT_NONE)
			continue;
		seen++;
		KVS_ASSERT_CMP(map_find(map, map_hash(map, key_of(map, slot)), key_of(map, slot)),
			       ==, slot);
	}
	KVS_ASSERT_CMP(seen, ==, map->count);
}
