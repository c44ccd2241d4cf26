/* SPDX-License-Identifier: Apache-2.0 */
#include "host/victims.h"

#include "base/err.h"
#include "host/life.h"

/*
 * Objects that a shard gives in one visit while the shards take turns: its order is not spent
 * before others'.
 */
#define TURN_OBJECTS 16u

/* --- in one shard ----------------------------------------------------------------------------- */

struct wanted {
	const struct shard *shard;
	uint32_t            tenant;
};

static bool is_of(void *ctx, uint32_t slot)
{
	const struct wanted *const wanted = ctx;

	return wanted->shard->records[slot].tenant == wanted->tenant;
}

static uint32_t pop(struct shard *shard, uint32_t tenant)
{
	struct wanted wanted = { shard, tenant };

	if (tenant == TENANT_NONE)
		return evict_victim(shard->order, NULL, NULL);
	return evict_victim(shard->order, is_of, &wanted);
}

uint32_t victims_next(struct visit *visit, uint32_t tenant)
{
	struct shard *const shard = visit->shard;
	uint32_t            slot;

	if (shard->idle == 0)
		return SLOT_NONE;
	for (;;) {
		slot = pop(shard, tenant);
		if (slot == SLOT_NONE || !is_busy(&shard->records[slot]))
			return slot;
		life_park(shard, slot);
	}
}

static void count(struct visit *visit, uint32_t slot)
{
	visit_count(visit, HOST_EVICTED);
	visit->shard->counters[HOST_EVICTED_BYTES] +=
		(uint64_t)pages_of(visit->shard->records[slot].bytes) << SPACE_PAGE_BITS;
}

void victims_evict(struct visit *visit, uint32_t slot)
{
	count(visit, slot);
	life_remove(visit, slot);
}

uint32_t victims_evict_keep(struct visit *visit, uint32_t slot)
{
	const uint32_t place = visit->shard->records[slot].place;

	count(visit, slot);
	life_remove_keep(visit, slot);
	return place;
}

/* --- in all of them --------------------------------------------------------------------------- */

static uint32_t take_turn(struct host *host, uint32_t shard, uint32_t tenant, uint32_t object_max,
			  struct notices *notices)
{
	struct visit visit;
	uint32_t     gone, slot;

	if (notices->count + object_max > NOTICES_MAX)
		notices_tell(notices, host->listeners, host->listener_count);
	visit_begin(&visit, host, shard, 0, notices);
	for (gone = 0; gone < object_max; gone++) {
		slot = victims_next(&visit, tenant);
		if (slot == SLOT_NONE)
			break;
		victims_evict(&visit, slot);
	}
	visit_end(&visit);
	return gone;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t victims_go(struct host *host, uint32_t tenant, uint32_t object_max, uint32_t first,
		    victims_more *more, struct notices *notices)
{
	uint32_t gone = 0, barren = 0, shard, own;

	for (shard = first; gone < object_max && barren < host->shard_count && more(host, tenant);
	     shard++) {
		own = take_turn(host, shard & (host->shard_count - 1), tenant,
				least(TURN_OBJECTS, object_max - gone), notices);
		gone += own;
		barren = own > 0 ? 0 : barren + 1;
	}
	return gone;
}

/* Pages that would be free if all that may go went: what they are when nobody else calls. */
static uint64_t pages_within_reach(struct host *host)
{
	uint64_t pages = host->space.page_count -
			 atomic_load_explicit(&host->used_pages, memory_order_relaxed);
	uint32_t i;

	for (i = 0; i < host->shard_count; i++) {
		os_mutex_lock(&host->shards[i].mutex);
		pages += host->shards[i].idle_pages;
		os_mutex_unlock(&host->shards[i].mutex);
	}
	return pages;
}

uint32_t victims_make_place(struct host *host, uint32_t pages, uint32_t first,
			    struct notices *notices)
{
	uint32_t place = SPACE_NONE, barren = 0, shard, gone;

	if (space_of_host_take(host, pages, 1, &place) == 1)
		return place;
	if (pages_within_reach(host) < pages)
		return SPACE_NONE;
	for (shard = first; barren < host->shard_count; shard++) {
		gone = take_turn(host, shard & (host->shard_count - 1), TENANT_NONE, 1, notices);
		if (gone > 0 && space_of_host_take(host, pages, 1, &place) == 1)
			return place;
		barren = gone > 0 ? 0 : barren + 1;
	}
	return space_of_host_search(host, pages);
}

bool victims_make_quota(struct host *host, const struct kvs_namespace *space, uint64_t bytes,
			uint32_t first, struct notices *notices, uint32_t *ret_tenant)
{
	uint32_t barren = 0, shard, gone;
	int      rc;

	for (shard = first; barren < host->shard_count; shard++) {
		rc = tenants_charge(&host->tenants, space, bytes, ret_tenant);
		if (rc != KVS_E_CREDIT)
			return rc == 0;
		gone = take_turn(host, shard & (host->shard_count - 1), *ret_tenant, 1, notices);
		barren = gone > 0 ? 0 : barren + 1;
	}
	return tenants_charge(&host->tenants, space, bytes, ret_tenant) == 0;
}
