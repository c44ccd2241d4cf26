/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store of equal slots: everything but the bytes.
 *
 * A slotted store maps keys to slots, evicts when all are taken, and verifies what it reads; a
 * *medium* below it moves one payload into or out of one slot.  mem and strata are two media.
 *
 * Life of a slot    FREE -> WRITING -> PRESENT -> (DOOMED ->) FREE.  Only PRESENT slots are found.
 *                   A DOOMED one has left the index and waits for its last reader.
 * Locking           One mutex guards index, order and states, and is never held during a medium's
 *                   I/O, hashing or copying: a writer owns its WRITING slot alone, a reader pins
 *                   its slot, and a pinned slot is neither evicted nor reused.
 * Two puts at once  of one key write once.  The later one gets KVS_RESULT_UNKNOWN: the object is
 *                   not stored yet and may never be, so nothing is claimed, and the owner may offer
 *                   it again.
 * Locks             are counts in memory; one goes with its object when that is removed or found
 *                   wrong.
 * Verification      XXH3-64 over the payload, seeded with key and length, so that bytes of another
 *                   object never pass.  What fails leaves the index, its header is erased on the
 *                   medium, and its slot is reused.
 * Limits            slot_count objects; nothing allocates after open.
 */
#ifndef STORE_SLOTTED_H
#define STORE_SLOTTED_H

#include <stdbool.h>
#include <stdint.h>

#include <kvstrata/store.h>

#include "base/list.h"
#include "base/map.h"
#include "evict/evict.h"
#include "os/os.h"
#include "store/spec.h"

/* The index lives in memory, about 110 bytes an object: 2^26 objects are 7 GiB of it. */
#define SLOTTED_OBJECTS_MAX (UINT32_C(1) << 26)

/* What is known of the bytes in a slot, on the medium too. */
struct object {
	struct kvs_key key;
	uint64_t       checksum; /* object_checksum() */
	uint32_t       bytes;
};

uint64_t object_checksum(const struct kvs_key *key, const void *payload, uint32_t bytes);

struct medium;

/* Each returns 0 or -errno, and touches no span after it returned. */
struct medium_ops {
	/* Payload first, then the object that names it; sequence grows from write to write. */
	int (*write)(struct medium *medium, uint32_t slot, uint64_t sequence,
		     const struct object *object, const void *payload);
	/* -ENODATA when the medium ends inside the slot. */
	int (*read)(struct medium *medium, uint32_t slot, void *payload, uint32_t bytes);
	/* Forget what the slot holds, so that no later open finds it. */
	int (*erase)(struct medium *medium, uint32_t slot);
	void (*close)(struct medium *medium);
};

/* The head of every medium's own struct. */
struct medium {
	const struct medium_ops *ops;
};

struct slotted_traits {
	uint32_t            slot_count;
	uint64_t            block_bytes;
	uint64_t            capacity_bytes;
	uint64_t            fixed_bytes; /* of the capacity, what holds no payload */
	uint32_t            span_align;  /* addresses and lengths of spans are multiples of it */
	enum kvs_durability durability;
	bool                direct; /* payload bypasses the page cache */
};

/* For tests: options of every slotted store. */
#define SLOTTED_OPTIONS "corrupt_every", "verify"

struct record {
	struct object object;
	uint16_t      pins;
	uint16_t      state;
	uint32_t      locks; /* a locked object is not evicted */
};

struct slotted {
	struct kvs_store      store;
	struct medium        *medium; /* owned */
	struct slotted_traits traits;
	uint64_t              corrupt_every; /* 0: never */
	bool                  verify;
	const char           *note; /* for describe(), set before the store is handed out; NULL: none */

	struct os_mutex mutex; /* guards all below */
	struct record  *records;
	struct map      index;
	struct evict   *order; /* the PRESENT slots */
	struct list     free;
	struct link    *free_links;
	uint64_t        sequence; /* of the next write */
	uint64_t        get_count;
	uint64_t        object_count;
	uint64_t        evicted_objects;
	uint64_t        corrupt_objects;
	uint32_t        peak_slots; /* slots ever written: the highest and all below it */
};

/*
 * The number of slots that fit into capacity_bytes less fixed_bytes, or why it cannot be.
 * slot_bytes is a block and what lies beside it.
 */
int slotted_count(uint64_t capacity_bytes, uint64_t fixed_bytes, uint64_t slot_bytes,
		  uint64_t block_bytes, uint32_t *ret_count, struct kvs_error *err);

/* On success medium belongs to the store. */
int slotted_open(const struct kvs_store_ops *ops, struct medium *medium,
		 const struct slotted_traits *traits, const struct kvs_store_config *config,
		 struct slotted **ret_slotted, struct kvs_error *err);

/*
 * Recovery, before the store is handed out: an object found on the medium, oldest first.  Of two
 * with one key the earlier is erased.  sequence is that of its write.
 */
void slotted_adopt(struct slotted *slotted, uint32_t slot, uint64_t sequence,
		   const struct object *object);

/* Panics unless index, order, free list and states agree.  For a quiet store. */
void slotted_audit(struct slotted *slotted);

/* The entries of a backend's table. */
int  slotted_close(struct kvs_store *store);
void slotted_describe(struct kvs_store *store, struct kvs_store_info *ret_info);
int  slotted_exists(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		    enum kvs_result *result);
int  slotted_get(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		 uint32_t count, enum kvs_result *result, bool *ret_retired);
int  slotted_put(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		 uint32_t count, enum kvs_result *result, bool *ret_retired);
int  slotted_remove(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		    enum kvs_result *result);
int  slotted_list(struct kvs_store *store, const struct kvs_namespace *space, uint64_t *cursor,
		  struct kvs_key *keys, uint32_t key_max, uint32_t *ret_count);
int  slotted_purge(struct kvs_store *store, const struct kvs_namespace *space, uint64_t *ret_count);
int  slotted_lock(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		  enum kvs_result *result);
void slotted_unlock(struct kvs_store *store, const struct kvs_key *key, uint32_t count);

#define SLOTTED_OPS(kind, option_names, open_store) \
	{ .abi = KVS_STORE_ABI, \
	  .name = (kind), \
	  .options = (option_names), \
	  .open = (open_store), \
	  .close = slotted_close, \
	  .describe = slotted_describe, \
	  .exists = slotted_exists, \
	  .get = slotted_get, \
	  .put = slotted_put, \
	  .remove = slotted_remove, \
	  .list = slotted_list, \
	  .purge = slotted_purge, \
	  .lock = slotted_lock, \
	  .unlock = slotted_unlock }

#endif
