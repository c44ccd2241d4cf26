/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index of a slotted store, for its own two files: states of slots, all under the store's
 * mutex.
 */
#ifndef STORE_SLOTTED_INDEX_H
#define STORE_SLOTTED_INDEX_H

#include "store/slotted.h"

enum slot_state {
	SLOT_FREE,    /* in the free list */
	SLOT_WRITING, /* in the index, not found; one put owns it */
	SLOT_PRESENT, /* in the index and the order */
	SLOT_DOOMED   /* in neither; freed with its last pin */
};

static inline struct slotted *slotted_of(struct kvs_store *store)
{
	return (struct slotted *)store;
}

/* The PRESENT slot of key, used; SLOT_NONE when there is none. */
uint32_t index_use_locked(struct slotted *s, const struct kvs_key *key);

struct claim {
	uint32_t slot;
	bool     evicted; /* the slot held another object until now */
	uint64_t sequence;
};

/*
 * DONE and a WRITING slot under key; or EXISTS (a use), UNKNOWN (being written), NO_SPACE (all
 * pinned or locked).
 */
enum kvs_result index_claim_locked(struct slotted *s, const struct kvs_key *key,
				   struct claim *ret_claim);

/* WRITING to PRESENT, WRITING to FREE, PRESENT to DOOMED. */
void index_publish_locked(struct slotted *s, uint32_t slot, const struct object *object);
void index_abandon_locked(struct slotted *s, uint32_t slot);
void index_withdraw_locked(struct slotted *s, uint32_t slot);

void index_unpin_locked(struct slotted *s, uint32_t slot);

/* A PRESENT slot; it goes with its locks when it is removed or found wrong. */
void index_lock_locked(struct slotted *s, uint32_t slot);
/* No use, and no error when there is no such object or no lock on it. */
void index_unlock_locked(struct slotted *s, const struct kvs_key *key);

#endif
