/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strata file on a disk that loses power, and what is known of each of its objects.
 *
 * An object's payload names its key and its generation, which grows with each put, so that a wrong
 * byte tells where it came from.  After a crash a key may have any generation that its device can
 * have kept, from `low` to `high`, or be missing; where it was promised, it has exactly one.
 *
 * The store is looked into where it cannot be asked: at the moment of the crash the catalog says
 * which objects were evicted before, and which lie in sealed segments.
 */
#ifndef CRASH_WORLD_H
#define CRASH_WORLD_H

#include "device.h"
#include "strata/core.h"

#define KEYS_MAX 64u
#define BATCH_MAX 6u
#define BLOCK_PAGES_MAX 8u
#define SPACES 2u /* namespaces */

struct object {
	uint32_t now;     /* generation that the store has; 0: none, as far as is known */
	uint32_t low;     /* older ones are gone for good: removed, or a newer one is durable */
	uint32_t high;    /* the newest that a put was tried with */
	bool     must;    /* `now` survives a crash */
	bool     busy;    /* in a call that is under way */
	bool     touched; /* by a call in the middle of another */
	bool     gone_at_crash;
	uint32_t locks;
};

/* What the seeds reach; all of it in many seeds together. */
#define COVERS(X) \
	X(crashes) X(crashes_in_open) X(crashes_in_close) X(closes) X(failures) X(puts) X(exists) \
	X(full) X(gets) X(misses) X(removes) X(purges) X(moved) X(evicted) X(sealed) X(unsealed) \
	X(torn) X(stale) X(between) X(moving) X(older) X(lanes)

struct covers {
#define COVER(name) uint64_t name;
	COVERS(COVER)
#undef COVER
};

struct world {
	uint64_t               seed;
	uint32_t               cycle;
	const char            *durability;
	struct prng            prng;
	struct device          device;
	struct strata_settings set;
	struct kvs_store      *store;  /* NULL: closed */
	bool                   opened; /* once at least */
	bool                   trace;
	bool                   inside; /* a call in the middle of another is under way */
	uint32_t               key_count;
	uint32_t               lock_share, remove_share; /* of 1000 calls */
	uint64_t               noticed;    /* evictions since open */
	uint64_t               history;    /* everything that happened, hashed */
	struct object          objects[KEYS_MAX];
	uint8_t               *memory[BATCH_MAX + 1]; /* the last for calls in the middle of others */
	struct covers         *covers;
};

/* --- oracle.c --------------------------------------------------------------------------------- */

/* Say which invariant broke, and how to see it again; ends the process with 1. */
_Noreturn void violate(const char *invariant, const char *format, ...) PRINTF_LIKE(2, 3);
/* The world that violate() and a panic speak of. */
void           oracle_watch(const struct world *world);

struct kvs_key  object_key(uint32_t number);
uint64_t        object_bytes(const struct world *world, uint32_t number);
struct kvs_span object_span(const struct world *world, uint32_t number, uint32_t place);
void            object_fill(const struct kvs_span *span, uint32_t number, uint32_t generation);
/* The generation; anything but whole bytes of the key breaks an invariant. */
uint32_t        object_read(const struct kvs_span *span, uint32_t number);

void oracle_put(struct world *world, uint32_t number, uint32_t generation, enum kvs_result result);
void oracle_get(struct world *world, uint32_t number, uint32_t place, enum kvs_result result);
void oracle_exists(struct world *world, uint32_t number, enum kvs_result result);
void oracle_remove(struct world *world, uint32_t number, enum kvs_result result);
/* Its namespace was purged. */
void oracle_purged(struct world *world, uint32_t number, int rc);
void oracle_missing(struct world *world, uint32_t number); /* where it was to be */

void oracle_at_crash(struct world *world);
void oracle_at_close(struct world *world);
/* The store was opened: every key is read. */
void oracle_at_open(struct world *world);
/* Between calls. */
void oracle_audit(struct world *world);

/* --- load.c ----------------------------------------------------------------------------------- */

void load_step(struct world *world);
/* With nothing locked and the power on: there is room for a put, whatever has been used. */
void load_must_work(struct world *world);
/* In the middle of a call of the store: what another thread may do there. */
void load_between(struct world *world);

#endif
