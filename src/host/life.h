/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a record: every change of its state, and of what hangs on the state (the map, the
 * chain of its key, lists, order, counts).
 *
 *   FREE --begin--> STAGED --publish--> RESIDENT --remove--> FREE
 *                   STAGED --drop-----> FREE
 *                                       RESIDENT --doom----> DOOMED --settle--> FREE
 *
 * Threads  Whoever visits the shard.
 */
#ifndef HOST_LIFE_H
#define HOST_LIFE_H

#include "host/visit.h"

/* The first record of a key: the resident or doomed one, else one that is staged; SLOT_NONE. */
static inline uint32_t life_find(const struct shard *shard, uint64_t hash,
				 const struct kvs_key *key)
{
	return map_find(&shard->map, hash, key);
}

/* The resident one; SLOT_NONE. */
static inline uint32_t life_resident(const struct shard *shard, uint64_t hash,
				     const struct kvs_key *key)
{
	const uint32_t slot = life_find(shard, hash, key);

	return slot != SLOT_NONE && shard->records[slot].state == RECORD_RESIDENT ? slot
										  : SLOT_NONE;
}

/*
 * What a writer, by its client's slot and its tag, stages of the key whose first record this is;
 * SLOT_NONE.
 */
uint32_t life_staged(const struct shard *shard, uint32_t first, uint32_t client, uint64_t tag);

/* Whether anybody stages the key whose first record this is. */
bool life_is_staged(const struct shard *shard, uint32_t first);

/* What a record begins as. */
struct life_start {
	uint64_t hash;
	uint64_t bytes;
	uint64_t tag;
	uint64_t expiry_ns;
	uint32_t client;
	uint32_t tenant;
	uint8_t  flags;
};

/*
 * STAGED without a place, which must follow before the visit ends; first is that of its key.
 * SLOT_NONE: no record is free.
 */
uint32_t life_begin(struct visit *visit, const struct kvs_key *key, uint32_t first,
		    const struct life_start *start);
void     life_place(struct visit *visit, uint32_t slot, uint32_t place);

/* The bytes of a STAGED one are for nobody. */
void life_drop(struct visit *visit, uint32_t slot);

/* STAGED becomes RESIDENT and the first of its key, whose first, STAGED too, is given. */
void life_publish(struct visit *visit, uint32_t slot, uint32_t first);

/* A RESIDENT one without lock and pin, in the order or just taken out of it. */
void life_remove(struct visit *visit, uint32_t slot);
/* The same, but its place is the caller's. */
void life_remove_keep(struct visit *visit, uint32_t slot);

/* A RESIDENT one with lock or pin. */
void life_doom(struct visit *visit, uint32_t slot);

/* A RESIDENT one that was there for its readers only stays like others. */
static inline void life_keep(struct visit *visit, uint32_t slot)
{
	struct record *const record = &visit->shard->records[slot];

	if (record->flags & RECORD_TEMPORARY)
		visit->shard->temporary--;
	record->flags &= (uint8_t)~(RECORD_TEMPORARY | RECORD_SPENT);
}

/* Before a lock or pin is taken of a RESIDENT one; after one was given back. */
void life_hold(struct visit *visit, uint32_t slot);
void life_settle(struct visit *visit, uint32_t slot);

/* It was next in the order while locked or pinned: out of the order until it is idle. */
void life_park(struct shard *shard, uint32_t slot);

#endif
