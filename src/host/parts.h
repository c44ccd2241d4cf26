/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the host room: its structs, and who may touch them.
 *
 * A key's hash chooses its shard; a shard's mutex guards all that hangs on it.  Besides there are
 * three leaf locks, which are taken last and held for a table update: the space's, the tenants',
 * the clients'.
 */
#ifndef HOST_PARTS_H
#define HOST_PARTS_H

#include <assert.h>
#include <stdatomic.h>

#include "base/list.h"
#include "base/map.h"
#include "evict/evict.h"
#include "host/claims.h"
#include "host/clients.h"
#include "host/host.h"
#include "host/space.h"
#include "host/tables.h"
#include "host/tenants.h"
#include "os/os.h"

enum record_state { RECORD_FREE, RECORD_STAGED, RECORD_RESIDENT, RECORD_DOOMED };

enum record_flag {
	RECORD_TEMPORARY = 1 << 0,
	RECORD_SPENT = 1 << 1,  /* temporary, its last lock is gone, a pin is left */
	RECORD_PARKED = 1 << 2, /* resident, but out of the order: it was next while locked or pinned */
	RECORD_NO_TTL = 1 << 3  /* staged by a client of HOST_NO_TTL */
};

/*
 * One object.  Records of one key hang together by `next`, the resident or doomed one first, then
 * those that are staged; the map has the first.  What goes is judged by the second cache line
 * alone.
 */
struct record {
	struct kvs_key key;
	uint64_t       tag;  /* staged: with client, whose it is */

	uint64_t    hash;
	uint64_t    expiry_ns; /* staged */
	struct link write;     /* staged: in the shard's list of those */
	uint32_t    client;    /* staged: its slot */
	uint32_t    place;     /* SPACE_NONE while it is looked for */
	uint32_t    bytes;     /* payload */
	uint32_t    next;      /* of its key, or of the free */
	uint32_t    locks;     /* counts of its claims, summed up */
	uint32_t    pins;
	uint32_t    claim;     /* the first */
	uint16_t    tenant;
	uint8_t     state, flags;
} __attribute__((aligned(64)));

static_assert(sizeof(struct record) == 128, "a record is two cache lines");
static_assert(offsetof(struct record, hash) == 64, "the key has the first with the tag");

struct shard {
	struct os_mutex mutex;
	uint64_t        now_ns; /* the latest that a call brought */
	struct map      map;
	struct record  *records;
	uint32_t        capacity;
	uint32_t        known; /* records at and past it were never used */
	uint32_t        free;  /* the first, SLOT_NONE */
	struct evict   *order; /* of the resident */

	/* The staged: those that expire, the first first, and those that do not. */
	struct list writes, loads;

	struct claims claims;

	uint64_t staged_pages, idle_pages;
	uint32_t staged, objects, doomed, temporary, idle; /* idle: resident without lock and pin */
	uint64_t locks, pins;
	uint64_t counters[HOST_COUNTER_COUNT];
} __attribute__((aligned(64)));

struct host {
	uint64_t             write_ttl_ns, read_ttl_ns;
	uint64_t             high_pages, low_pages;
	uint32_t             shard_count;
	uint32_t             heard; /* bit HOST_...: somebody listens */
	bool                 isolate;
	struct host_listener listeners[HOST_LISTENERS_MAX];
	uint32_t             listener_count;
	void (*pressed)(void *arg);
	void *pressed_arg;

	struct tables  tables;
	struct clients clients;
	struct tenants tenants;
	struct shard  *shards;

	_Atomic uint64_t sequence;
	_Atomic uint32_t hand; /* where relieving goes on */
	_Atomic bool     is_pressed;
	_Atomic bool     is_relieving; /* `high` was passed, `low` is not reached yet */

	/* What the space has, for those who only want to know; written with its lock held. */
	_Atomic uint64_t used_pages;
	_Atomic uint32_t short_pages; /* so many in a row were not to be had; UINT32_MAX: unknown */
	struct os_mutex  space_lock;
	struct host_space space;
};

/* Pages of a place for so many bytes, and its trailer. */
static inline uint32_t pages_of(uint64_t bytes)
{
	return (uint32_t)((bytes + SPACE_PAGE_BYTES - 1) >> SPACE_PAGE_BITS) + 1;
}


static inline bool is_busy(const struct record *record)
{
	return record->locks > 0 || record->pins > 0;
}

static inline struct kvs_span span_of(const struct host *host, const struct record *record)
{
	return (struct kvs_span){ .ptr = host_space_address(&host->space, record->place),
				  .bytes = record->bytes,
				  .room = (size_t)pages_of(record->bytes) << SPACE_PAGE_BITS };
}

#endif
