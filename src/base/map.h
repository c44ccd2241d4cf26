/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fixed-capacity hash index over an array of records.
 *
 * The map holds slot numbers, not keys: record i's key lies at keys + i * key_stride, in the
 * owner's own array.  The owner writes the key into its record before map_insert() and keeps it
 * unchanged until map_remove().
 *
 * Shape    Open addressing with linear probing and backward shift, at most 3/4 full, 8 bytes a
 *          bucket.  A bucket knows its home, so that a removal visits no record.
 * Limits   capacity entries, fixed at open; the caller's slots are the bound, so an insert cannot
 *          find the map full.
 * Order    Nothing here exposes hash order: there is no iteration.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct map_bucket {
	uint32_t slot; /* SLOT_NONE when empty */
	uint32_t tag;  /* upper half of the hash; its lower bits chose the home bucket */
};

struct map {
	struct map_bucket *buckets;
	uint32_t           mask;
	uint32_t           count;
	uint32_t           capacity;
	const uint8_t     *keys;
	size_t             key_stride;
	size_t             key_bytes;
	bool               borrowed; /* the buckets are the owner's */
};

/* 0, or -ENOMEM. */
int  map_open(struct map *map, uint32_t capacity, const void *keys, size_t key_stride,
	      size_t key_bytes);
void map_close(struct map *map);

/* The same in memory of the owner's, map_bucket_bytes() at least, which outlives the map. */
void   map_open_in(struct map *map, void *memory, uint32_t capacity, const void *keys,
		   size_t key_stride, size_t key_bytes);
size_t map_bucket_bytes(uint32_t capacity);

/* hash is map_hash(key) throughout: a caller that needs it several times computes it once. */
/* SLOT_NONE when absent. */
uint32_t map_find(const struct map *map, uint64_t hash, const void *key);
/* The key of slot must not be present: asserted. */
void map_insert(struct map *map, uint64_t hash, uint32_t slot);
/* The slot must be present under hash: asserted. */
void map_remove(struct map *map, uint64_t hash, uint32_t slot);

/* Bring in the bucket that a look-up of the hash begins with: some look-ups ahead of it. */
static inline void map_prefetch(const struct map *map, uint64_t hash)
{
	__builtin_prefetch(&map->buckets[(uint32_t)(hash >> 32) & map->mask]);
}

/* Once the bucket is there: bring in the key that the look-up will compare, where there is one. */
static inline void map_prefetch_key(const struct map *map, uint64_t hash)
{
	const uint32_t                 tag = (uint32_t)(hash >> 32);
	const struct map_bucket *const bucket = &map->buckets[tag & map->mask];

	if (bucket->slot != SLOT_NONE && bucket->tag == tag)
		__builtin_prefetch(map->keys + bucket->slot * map->key_stride);
}

/* XXH3-64 of the map's key_bytes at key. */
uint64_t map_hash(const struct map *map, const void *key);

size_t map_bytes(const struct map *map);

/* O(n): every bucket is reachable from its home and counts agree. */
void map_audit(const struct map *map);

#endif
