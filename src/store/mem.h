/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store `mem:SIZE`, the reference of all others: equal slots in this process's memory.
 *
 * Life of a slot    FREE -> WRITING -> PRESENT -> (DOOMED ->) FREE.  Only PRESENT slots are found.
 *                   A DOOMED one has left the index and waits for its last reader.
 * Locking           One mutex guards index, order and states, and is never held while payload is
 *                   hashed or copied: a put owns its WRITING slot alone, a get pins its slot, and a
 *                   pinned slot is neither evicted nor reused.
 * Two puts at once  of one key write once.  The later one gets KVS_RESULT_UNKNOWN: the object is
 *                   not stored yet, so nothing is claimed, and the owner may offer it again.
 * Locks             are counts; one goes with its object when that is removed or found wrong.
 * Verification      XXH3-64 over the payload, seeded with key and length, so that bytes of another
 *                   object never pass.  What fails leaves the index, and its slot is reused.
 * Policy none       keeps what there is: a put that finds no free slot is refused and counted.
 * Limits            slot_count objects; nothing allocates after open.  Pages are the kernel's until
 *                   a slot is first written, so a large capacity costs only what is used.
 */
#ifndef STORE_MEM_H
#define STORE_MEM_H

#include <stdbool.h>
#include <stdint.h>

#include <kvstrata/store.h>

#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "evict/evict.h"
#include "os/os.h"

/* The index is about 110 bytes an object: 2^26 objects are 7 GiB of it. */
#define MEM_OBJECTS_MAX (UINT32_C(1) << 26)

enum mem_state {
	MEM_FREE,    /* in the free list */
	MEM_WRITING, /* in the index, not found; one put owns it */
	MEM_PRESENT, /* in the index and the order */
	MEM_DOOMED   /* in neither; freed with its last pin */
};

/* Key, checksum and bytes belong to the put that writes, and stay as they are while pinned. */
struct mem_record {
	struct kvs_key key;
	uint64_t       checksum;
	uint32_t       bytes;
	uint16_t       pins;
	uint16_t       state; /* enum mem_state */
	uint32_t       locks; /* a locked object is not evicted */
};

struct mem {
	struct kvs_store store;
	uint64_t         capacity_bytes;
	uint64_t         block_bytes;
	uint32_t         slot_count;
	uint64_t         corrupt_every; /* 0: never */
	bool             verify;
	uint8_t         *pages; /* slot after slot */

	struct os_mutex    mutex; /* guards all below */
	struct mem_record *records;
	struct map         index;
	struct evict      *order; /* the PRESENT slots */
	struct list        free;
	struct link       *free_links;
	uint64_t           get_count;
	uint64_t           object_count;
	uint64_t           evicted_objects;
	uint64_t           corrupt_objects;
	uint64_t           refused_full;
	uint32_t           peak_slots; /* slots ever written: the highest and all below it */
};

/* --- the index, mem_index.c: all with the mutex, but for open and close ----------------------- */

int      mem_index_open(struct mem *mem, const char *evict_policy, struct kvs_error *err);
void     mem_index_close(struct mem *mem); /* also after a failed open */
uint64_t mem_index_bytes(const struct mem *mem);

/* The PRESENT slot of key, used; SLOT_NONE when there is none. */
uint32_t mem_use(struct mem *mem, const struct kvs_key *key);

/*
 * DONE and a WRITING slot under key; or EXISTS (a use), UNKNOWN (being written), NO_SPACE (all
 * pinned or locked).
 */
enum kvs_result mem_claim(struct mem *mem, const struct kvs_key *key, uint32_t *ret_slot);

/* WRITING to PRESENT. */
void mem_publish(struct mem *mem, uint32_t slot);
/* PRESENT to FREE, or to DOOMED while it is read. */
void mem_withdraw(struct mem *mem, uint32_t slot);

void mem_pin(struct mem *mem, uint32_t slot);
void mem_unpin(struct mem *mem, uint32_t slot);

void mem_hold(struct mem *mem, uint32_t slot);
/* No use, and no error when there is no such object or no lock on it. */
void mem_let_go(struct mem *mem, const struct kvs_key *key);

/* Panics unless index, order, free list and states agree.  For a quiet store. */
void mem_audit(const struct mem *mem);

#endif
