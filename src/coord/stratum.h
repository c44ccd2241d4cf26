/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One stratum of blocks: its pool, its eviction order and its entries in the prefix index, as one
 * owner.
 *
 * A block is in exactly one state:
 *   free       in the pool, no reference
 *   private    held by a request table or a ticket, no key yet: a copy or a read is filling it
 *   published  under a key; the index holds one reference of its own
 * A published block with that one reference only is *idle*: it may be evicted.  Whoever pins it
 * keeps it.
 *
 * Blocks here are numbers from 0, those of the pool from 1.  A stratum may be closed while blocks are
 * held: what is quarantined has no other end.
 *
 * Threads  The cache thread only.  Nothing allocates after open.
 */
#ifndef COORD_STRATUM_H
#define COORD_STRATUM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "evict/evict.h"
#include "match/index.h"
#include "pool/pool.h"

struct stratum {
	enum stratum_id      id;
	struct pool         *pool;       /* one group, a block a parent */
	struct evict        *order;      /* of the published blocks */
	struct prefix_index *index;      /* shared with the other stratum */
	uint32_t            *entry;      /* block -> index entry; SLOT_NONE while not published */
	uint32_t             idle_count; /* published blocks that only the index holds */
	uint64_t             evicted;    /* blocks evicted since open */
};

/*
 * policy is one of evict_giving_names: a stratum that stayed full would take no read and no copy any
 * more.  Errors: KVS_E_INVALID (policy), -ENOMEM.
 */
int  stratum_open(struct stratum *stratum, enum stratum_id id, struct prefix_index *index,
		  uint32_t block_count, const char *policy, struct kvs_error *err);
void stratum_close(struct stratum *stratum);

/* Blocks that stratum_acquire() could hand out one after the other: free ones and idle ones. */
uint32_t stratum_room(const struct stratum *stratum);

/* A private block, evicting an idle one when none is free; SLOT_NONE when every block is held. */
uint32_t stratum_acquire(struct stratum *stratum);

void stratum_pin(struct stratum *stratum, uint32_t block);
void stratum_unpin(struct stratum *stratum, uint32_t block);

/* References to a block, the index's included; 0 when it is free. */
uint32_t stratum_refs(const struct stratum *stratum, uint32_t block);

/*
 * Put a private block under its key; the caller keeps its reference.  Returns the block that holds
 * the key: when the stratum already had one, the caller's reference moves to that one and its own
 * block is dropped.
 */
uint32_t stratum_publish(struct stratum *stratum, const struct kvs_key *key, uint32_t block);

/* The block that holds a key, without pinning it; SLOT_NONE when absent. */
uint32_t stratum_find(const struct stratum *stratum, const struct kvs_key *key);

/* A use of the key, if this stratum holds it. */
void stratum_touch(struct stratum *stratum, const struct kvs_key *key);

bool stratum_published(const struct stratum *stratum, uint32_t block);

/* O(n): states, references and counts agree (one-state). */
void stratum_audit(struct stratum *stratum);

#endif
