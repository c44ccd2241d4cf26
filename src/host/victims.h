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
 * The idle object of the shard that goes next, out of the order already; TENANT_NONE: of any.
 * SLOT_NONE: none.
 */
uint32_t victims_next(struct visit *visit, uint32_t tenant);

/* It is evicted; its place goes to the space, or is the caller's. */
void     victims_evict(struct visit *visit, uint32_t slot);
uint32_t victims_evict_keep(struct visit *visit, uint32_t slot);

/*
 * Visit the shards, from `first` on, until a place of so many pages is had; no lock is held.
 * SPACE_NONE: all that may go would not help, or does not.
 */
uint32_t victims_make_place(struct host *host, uint32_t pages, uint32_t first,
			    struct notices *notices);

/*
 * The same until the tenant of a namespace can be charged.  False: its quota is held by what may
 * not go.
 */
bool victims_make_quota(struct host *host, const struct kvs_namespace *space, uint64_t bytes,
			uint32_t first, struct notices *notices, uint32_t *ret_tenant);

/*
 * Evict up to object_max objects of a tenant (TENANT_NONE: any), shards in turn, while `more` says
 * so; how many.
 */
typedef bool victims_more(const struct host *host, uint32_t tenant);
uint32_t     victims_go(struct host *host, uint32_t tenant, uint32_t object_max, uint32_t first,
			victims_more *more, struct notices *notices);

#endif
