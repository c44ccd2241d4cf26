/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The prefix index of one group, the scheduler's: which keys are published, and in which block of which
 * stratum.  pages.h will replace it.
 *
 * One entry a key serves Device and Host together; it lives while at least one of them holds the
 * key.  The index says where bytes are; who may drop them is the business of the stratum that owns
 * the block.
 *
 * Limits   entry_max entries, fixed at open: the sum of both strata's blocks is always enough.
 * Threads  The cache thread only.
 */
#ifndef MATCH_INDEX_H
#define MATCH_INDEX_H

#include <stdint.h>

#include <kvstrata/base.h>

#include "base/map.h"
#include "base/slots.h"

enum stratum_id { STRATUM_DEVICE, STRATUM_HOST, STRATUM_COUNT };

struct index_entry {
	struct kvs_key key;
	uint32_t       block[STRATUM_COUNT]; /* SLOT_NONE where the stratum does not hold it */
};

struct prefix_index {
	struct index_entry *entries;
	struct slots        slots;
	struct map          map;
};

/* 0, or -ENOMEM. */
int  index_open(struct prefix_index *index, uint32_t entry_max);
void index_close(struct prefix_index *index);

/* The entry of a key; SLOT_NONE when no stratum holds it. */
uint32_t index_find(const struct prefix_index *index, const struct kvs_key *key);

/* The block that holds a key in a stratum; SLOT_NONE when none does. */
uint32_t index_block(const struct prefix_index *index, enum stratum_id stratum,
		     const struct kvs_key *key);

/* Say that block of stratum holds key; the stratum must not hold it yet (asserted).  Returns the entry. */
uint32_t index_add(struct prefix_index *index, enum stratum_id stratum, const struct kvs_key *key,
		   uint32_t block);

/* The stratum no longer holds the key of this entry; the entry goes with its last block. */
void index_drop(struct prefix_index *index, enum stratum_id stratum, uint32_t entry);

void index_audit(const struct prefix_index *index);

#endif
