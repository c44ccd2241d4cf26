/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making room: what goes when memory, a record or a quota is short.
 *
 * A victim that turns out to be locked or pinned is parked: it leaves the order and comes back when
 * it is idle, so that each is met once and a search is O(1) amortised.  With tenants apart, the one
 * that holds the most gives first.
 */
#ifndef HOST_VICTIMS_H
#define HOST_VICTIMS_H

#include "host/visit.h"

/*
 * The idle object of the shard that goes next; it is out of the order already.  TENANT_NONE: of
 * any. SLOT_NONE: there is none.
 */
uint32_t victims_next(struct visit *visit, uint32_t tenant);

#define VICTIMS_STEP 8u
/* After each VICTIMS_STEP victims, and when a visit had some: there will be more. */
void victims_prefetch(const struct visit *visit);

/* It is evicted; its place goes to the space, or is the caller's. */
void         victims_evict(struct visit *visit, uint32_t slot);
struct freed victims_evict_keep(struct visit *visit, uint32_t slot);

/* Turns of all shards, from `first` on, each with what is over dropped first; no lock is held. */
struct turns {
	struct host    *host;
	struct notices *notices;
	uint64_t        now_ns; /* 0: unknown */
	uint32_t        first;
};

/* Pages that would be free if all went that may: exact when nobody else calls. */
uint64_t victims_reach(const struct turns *turns);

/* A place of so many pages, whatever has to go; SPACE_NONE: it would not help, or does not. */
uint32_t victims_make_place(const struct turns *turns, uint32_t pages);

/* As tenants_charge(), and what has to go is the tenant's own. */
int victims_make_quota(const struct turns *turns, const struct kvs_namespace *space, uint64_t bytes,
		       uint32_t *ret_tenant);

/*
 * Evict up to object_max objects of a tenant (TENANT_NONE: any), while `more` says so; how many.
 * going: pages that are evicted and not yet free.
 */
typedef bool victims_more(const struct host *host, uint32_t tenant, uint64_t going);
uint32_t     victims_go(const struct turns *turns, uint32_t tenant, uint32_t object_max,
			victims_more *more);

#endif
