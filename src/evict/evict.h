/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eviction orders: which slot goes next.
 *
 * One code for the Host stratum, the stores and `kvstrata simulate`, so that a simulated curve
 * speaks of the system that will run.  An order knows slot numbers only: no keys, no bytes, no pins
 * of its own.
 *
 *   lru         the least recently used goes first
 *   fifo        the first inserted goes first; uses change nothing
 *   lru-leaf    lru, and evict_settle() re-touches a request's chain from its end, so that a prefix
 *               always outlives its suffix
 *   s3fifo      a small queue (a tenth), a main queue and a ghost of names: one-time visitors leave
 *               early
 *   host-order  never used since insertion goes before used, each by recency
 *   arc         a queue of what was used once and one of what was used again, each with a ghost,
 *               and a balance that follows from what comes back
 *   none        nobody goes: a full owner refuses what is new
 *
 * Parts    An order may have parts, one a tenant: each is an order of its own over the slots that
 *          were inserted into it.  They share slot numbers, so that a part costs under 100 bytes
 *          whatever the capacity, and room for names: equal hashes are one name, whichever part
 *          they come from.  A call that names no part speaks of part 0, the only one of most
 *          orders, or of a slot, which knows its own.
 * Cost     O(1) an insert, use, removal; a victim is O(1) plus the slots that `may` refuses.
 * Limits   slot numbers below capacity; nothing allocates after open, but memory is touched only as
 *          slots come into use: number them from 0.
 * Order    Depends on the sequence of calls alone.
 * Threads  None of its own: the caller's.
 */
#ifndef EVICT_EVICT_H
#define EVICT_EVICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"

struct evict;

/* A slot number plus one fits into 32 bits, with room to double. */
#define EVICT_CAPACITY_MAX (UINT32_C(1) << 31)

/* Where there are several, two bytes a slot say which part has it. */
#define EVICT_PARTS_MAX (UINT32_C(1) << 16)

/*
 * Names in the order above, NULL-terminated: all, and those whose orders give victims.  An option
 * that takes a policy has the ones or the others as its choices.
 */
extern const char *const evict_names[];
extern const char *const evict_giving_names[];

/* 0 for one of evict_names; else KVS_E_INVALID and a sentence that lists them. */
int evict_known(const char *name, struct kvs_error *err);

/* The same with evict_giving_names, for owners that could not go on without a victim. */
int evict_gives(const char *name, struct kvs_error *err);

/**
 * Open an order over slots 0 .. capacity - 1, all absent.
 *
 * Errors  KVS_E_INVALID  name as evict_known() refuses it, capacity 0 or past EVICT_CAPACITY_MAX;
 *         -ENOMEM.
 */
int  evict_open(const char *name, uint32_t capacity, struct evict **ret_evict,
		struct kvs_error *err);
void evict_close(struct evict *evict); /* accepts NULL */

/* The same with part_count parts; also KVS_E_INVALID for 0 of them or more than EVICT_PARTS_MAX. */
int evict_open_parts(const char *name, uint32_t capacity, uint32_t part_count,
		     struct evict **ret_evict, struct kvs_error *err);

/*
 * slot must be absent.  hash names its content: s3fifo and arc remember it after eviction, the
 * others ignore it.
 */
void evict_insert(struct evict *evict, uint32_t slot, uint64_t hash);
void evict_insert_part(struct evict *evict, uint32_t part, uint32_t slot, uint64_t hash);
/* A use of a present slot. */
void evict_touch(struct evict *evict, uint32_t slot);
/* slot leaves for a reason of its owner's: it is not remembered. */
void evict_remove(struct evict *evict, uint32_t slot);

/*
 * For owners whose slots go in groups, whatever the order: how often a present slot was used since
 * it was inserted or renewed, up to a few times, and 0 where the policy does not care.
 */
uint32_t evict_heat(const struct evict *evict, uint32_t slot);
/*
 * It was used enough, or is in use now, and begins again behind all others: at the tail of its
 * part's queue of those that were used, where the policy has one.  An owner renews what its `may`
 * refused, after the call, and the next call comes to others first.
 */
void evict_renew(struct evict *evict, uint32_t slot);
/* It goes with its group, remembered as evict_victim() would have. */
void evict_expel(struct evict *evict, uint32_t slot);

/*
 * A request has used or inserted these slots, prefix first; absent ones are skipped.  Only lru-leaf
 * acts, in the part of each.
 */
void evict_settle(struct evict *evict, const uint32_t *slots, uint32_t count);

typedef bool evict_may(void *ctx, uint32_t slot);

/**
 * Take out the slot that goes next; it is absent afterwards (s3fifo remembers a one-time visitor,
 * arc everyone).
 *
 * may, when not NULL, refuses slots that are pinned; they keep their place.  It is asked while the
 * order is walked, and calls nothing of it.  SLOT_NONE when no slot may go.
 */
uint32_t evict_victim(struct evict *evict, evict_may *may, void *ctx);
uint32_t evict_victim_part(struct evict *evict, uint32_t part, evict_may *may, void *ctx);

/*
 * A guess at the slots of a part that go next, count at most, for an owner who wants their memory at
 * hand by then; how many.  It changes nothing.
 */
uint32_t evict_ahead(const struct evict *evict, uint32_t part, uint32_t *ret_slots, uint32_t count);

bool     evict_present(const struct evict *evict, uint32_t slot);
uint32_t evict_count(const struct evict *evict); /* of all parts */
uint32_t evict_part_count(const struct evict *evict, uint32_t part);
size_t   evict_bytes(const struct evict *evict); /* memory in use, the struct included */
void     evict_audit(const struct evict *evict);

#endif
