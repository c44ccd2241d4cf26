/* SPDX-License-Identifier: Apache-2.0 */
#include "host/victims.h"

#include "base/err.h"
#include "host/life.h"
#include "host/lock.h"

/*
 * Objects that a shard gives in one visit while the shards take turns: its order is not spent
 * before others'.
 */
#define TURN_OBJECTS 16u

/* --- in one shard ----------------------------------------------------------------------------- */

/*
 * Busy ones that a search has met: it ends after so many, and they are out of the next one's way.
 */
#define MET_MAX 32u

struct search {
	const struct shard *shard;
	uint32_t            met_count;
	uint32_t            met[MET_MAX];
};

static bool is_idle(void *ctx, uint32_t slot)
{
	struct search *const search = ctx;

	if (!is_busy(&search->shard->records[slot]) || search->met_count == MET_MAX)
		return true;
	search->met[search->met_count++] = slot;
	return false;
}

/* The next of a part, busy or idle; SLOT_NONE. */
static uint32_t pop(struct shard *shard, uint32_t part)
{
	struct search search;
	uint32_t      slot, i;

	/* Not as a whole: what it met needs no zeroes, and this runs for each victim. */
	search.shard = shard;
	search.met_count = 0;
	slot = evict_victim_part(shard->order, part, is_idle, &search);
	for (i = 0; i < search.met_count; i++)
		life_park(shard, search.met[i]);
	return slot;
}

static uint32_t next_of_part(struct shard *shard, uint32_t part)
{
	uint32_t slot;

	for (;;) {
		slot = pop(shard, part);
		if (slot == SLOT_NONE || !is_busy(&shard->records[slot]))
			return slot;
		life_park(shard, slot);
	}
}

/* Of those that have something in the shard, who holds the most in all of them. */
static void choose_heaviest(struct visit *visit)
{
	const struct tenants *const tenants = &visit->host->tenants;
	const uint32_t known = atomic_load_explicit(&tenants->known, memory_order_relaxed);
	uint64_t       most = 0;
	uint32_t       i;

	visit->part = TENANT_NONE;
	visit->runner_up = 0;
	for (i = 0; i < known; i++) {
		const uint64_t bytes = tenants_bytes_of(tenants, i);

		if (bytes <= visit->runner_up || evict_part_count(visit->shard->order, i) == 0)
			continue;
		if (bytes > most) {
			visit->runner_up = most;
			visit->part = i;
			most = bytes;
		} else {
			visit->runner_up = bytes;
		}
	}
}

/* Who was chosen stays it until another holds more, or it has nothing left that may go. */
static uint32_t next_of_heaviest(struct visit *visit)
{
	uint32_t slot;

	for (;;) {
		if (visit->part == TENANT_NONE ||
		    tenants_bytes_of(&visit->host->tenants, visit->part) < visit->runner_up)
			choose_heaviest(visit);
		if (visit->part == TENANT_NONE)
			return SLOT_NONE;
		slot = next_of_part(visit->shard, visit->part);
		if (slot != SLOT_NONE)
			return slot;
		if (evict_part_count(visit->shard->order, visit->part) > 0)
			return SLOT_NONE; /* a policy that evicts nothing */
		visit->part = TENANT_NONE;
	}
}

uint32_t victims_next(struct visit *visit, uint32_t tenant)
{
	if (visit->shard->idle == 0)
		return SLOT_NONE;
	if (tenant == TENANT_NONE && visit->host->isolate)
		return next_of_heaviest(visit);
	visit->part = tenant == TENANT_NONE ? 0 : tenant;
	return next_of_part(visit->shard, visit->part);
}

/*
 * Who goes next is cold memory.  The records of those after next are sent for now, and the buckets
 * that name the next, whose records were sent for before.
 */
void victims_prefetch(const struct visit *visit)
{
	const struct shard *const shard = visit->shard;
	uint32_t                  slots[2 * VICTIMS_STEP];
	uint32_t                  known, i;

	if (visit->part == TENANT_NONE)
		return;
	known = evict_ahead(shard->order, visit->part, slots, 2 * VICTIMS_STEP);
	for (i = 0; i < known && i < VICTIMS_STEP; i++)
		map_prefetch(&shard->map, shard->records[slots[i]].hash);
	for (; i < known; i++) {
		__builtin_prefetch(&shard->records[slots[i]].hash, 1);
		__builtin_prefetch(&shard->records[slots[i]].key, 1);
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

struct freed victims_evict_keep(struct visit *visit, uint32_t slot)
{
	const struct record *const record = &visit->shard->records[slot];
	const struct freed         freed = { record->place, pages_of(record->bytes) };

	count(visit, slot);
	life_remove_keep(visit, slot);
	return freed;
}

/* --- in all of them --------------------------------------------------------------------------- */

static bool always(const struct host *host, uint32_t tenant, uint64_t going)
{
	(void)host;
	(void)tenant;
	(void)going;
	return true;
}

static uint32_t evict_some(struct visit *visit, uint32_t tenant, uint32_t object_max,
			   victims_more *more)
{
	uint64_t going = 0;
	uint32_t gone, slot;

	for (gone = 0; gone < object_max && more(visit->host, tenant, going); gone++) {
		slot = victims_next(visit, tenant);
		if (slot == SLOT_NONE)
			break;
		going += pages_of(visit->shard->records[slot].bytes);
		victims_evict(visit, slot);
	}
	return gone;
}

/* Evict up to object_max of a tenant in a shard; what is over goes before. */
static uint32_t take_turn(const struct turns *turns, uint32_t shard, uint32_t tenant,
			  uint32_t object_max, victims_more *more)
{
	struct host *const host = turns->host;
	struct visit       visit;
	uint32_t           gone;

	KVS_ASSERT_CMP(object_max, <=, VISIT_FREED_MAX);
	visit_make_room(host, turns->notices, object_max + VISIT_ASIDE_MAX);
	visit_begin(&visit, host, shard & (host->shard_count - 1), turns->now_ns, turns->notices);
	(void)lock_expire(&visit);
	visit_give(&visit);
	gone = evict_some(&visit, tenant, object_max, more);
	visit_end(&visit);
	return gone;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t victims_go(const struct turns *turns, uint32_t tenant, uint32_t object_max,
		    victims_more *more)
{
	const uint32_t shard_count = turns->host->shard_count;
	uint32_t       gone = 0, barren = 0, shard, own;

	for (shard = turns->first;
	     gone < object_max && barren < shard_count && more(turns->host, tenant, 0); shard++) {
		own = take_turn(turns, shard, tenant, least(TURN_OBJECTS, object_max - gone), more);
		gone += own;
		barren = own > 0 ? 0 : barren + 1;
	}
	return gone;
}

uint64_t victims_reach(const struct turns *turns)
{
	struct host *const host = turns->host;
	uint64_t           pages = 0;
	uint32_t           i;

	for (i = 0; i < host->shard_count; i++) {
		(void)take_turn(turns, i, TENANT_NONE, 0, always);
		os_mutex_lock(&host->shards[i].mutex);
		pages += host->shards[i].idle_pages;
		os_mutex_unlock(&host->shards[i].mutex);
	}
	return pages + host->space.page_count -
	       atomic_load_explicit(&host->used_pages, memory_order_relaxed);
}

/* One object a turn, until a place is there: the last resort is a walk over the runs of a class. */
uint32_t victims_make_place(const struct turns *turns, uint32_t pages)
{
	struct host *const host = turns->host;
	uint32_t           place = SPACE_NONE, barren = 0, shard, gone;

	if (space_of_host_take(host, pages, 1, &place) == 1)
		return place;
	/* What is over goes first, everywhere, and may be enough. */
	if (victims_reach(turns) < pages)
		return SPACE_NONE;
	if (space_of_host_take(host, pages, 1, &place) == 1)
		return place;
	for (shard = turns->first; barren < host->shard_count; shard++) {
		gone = take_turn(turns, shard, TENANT_NONE, 1, always);
		if (gone > 0 && space_of_host_take(host, pages, 1, &place) == 1)
			return place;
		barren = gone > 0 ? 0 : barren + 1;
	}
	return space_of_host_search(host, pages);
}

int victims_make_quota(const struct turns *turns, const struct kvs_namespace *space, uint64_t bytes,
		       uint32_t *ret_tenant)
{
	struct tenants *const tenants = &turns->host->tenants;
	uint32_t              barren = 0, shard, gone;
	int                   rc = tenants_charge(tenants, space, bytes, ret_tenant);

	if (rc == KVS_E_CREDIT) {
		(void)victims_reach(turns);
		rc = tenants_charge(tenants, space, bytes, ret_tenant);
	}
	for (shard = turns->first; rc == KVS_E_CREDIT && barren < turns->host->shard_count;
	     shard++) {
		gone = take_turn(turns, shard, *ret_tenant, 1, always);
		barren = gone > 0 ? 0 : barren + 1;
		rc = tenants_charge(tenants, space, bytes, ret_tenant);
	}
	return rc;
}
