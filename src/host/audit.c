/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that is known twice must agree. */
#include <stdlib.h>

#include "base/err.h"
#include "host/life.h"
#include "host/shard.h"

/* What the records of a shard add up to. */
struct sums {
	uint64_t staged_pages, idle_pages, locks, pins;
	uint32_t staged, objects, doomed, temporary, idle, in_order, expiring, claims, mapped;
};

/* --- a record --------------------------------------------------------------------------------- */

static void audit_claims(const struct shard *shard, uint32_t slot, struct sums *sums)
{
	const struct record *const record = &shard->records[slot];
	uint32_t                   locks = 0;
	uint32_t                   claim;

	for (claim = record->claim; claim != SLOT_NONE; claim = shard->claims.claims[claim].next) {
		KVS_ASSERT_CMP(shard->claims.claims[claim].record, ==, slot);
		KVS_ASSERT_CMP(shard->claims.claims[claim].count, >, 0);
		KVS_ASSERT_CMP(shard->claims.claims[claim].count, <=, HOST_LOCKS_MAX);
		locks += shard->claims.claims[claim].count;
		sums->claims++;
	}
	KVS_ASSERT_CMP(locks, ==, record->locks);
	sums->locks += record->locks;
	sums->pins += record->pins;
}

static void audit_staged(const struct shard *shard, uint32_t slot, struct sums *sums)
{
	const struct record *const record = &shard->records[slot];

	KVS_ASSERT(!is_busy(record));
	KVS_ASSERT(record->expiry_ns == HOST_FOREVER || !(record->flags & RECORD_NO_TTL));
	sums->staged++;
	sums->staged_pages += pages_of(record->bytes);
	sums->expiring += record->expiry_ns != HOST_FOREVER;
}

static void audit_resident(const struct shard *shard, uint32_t slot, struct sums *sums)
{
	const struct record *const record = &shard->records[slot];
	const bool                 in_order = evict_present(shard->order, slot);

	KVS_ASSERT_CMP(in_order, !=, (record->flags & RECORD_PARKED) != 0);
	KVS_ASSERT(in_order || is_busy(record));
	KVS_ASSERT(!(record->flags & RECORD_SPENT) || record->pins > 0);
	sums->objects++;
	sums->temporary += (record->flags & RECORD_TEMPORARY) != 0;
	sums->in_order += in_order;
	if (!is_busy(record)) {
		sums->idle++;
		sums->idle_pages += pages_of(record->bytes);
	}
}

/* The first of its key is the one that the map has; behind it all are staged. */
static void audit_chain(const struct shard *shard, uint32_t slot, struct sums *sums)
{
	const struct record *const record = &shard->records[slot];
	const uint32_t             first = life_find(shard, record->hash, &record->key);
	uint32_t                   at = first;

	KVS_ASSERT_CMP(record->hash, ==, map_hash(&shard->map, &record->key));
	KVS_ASSERT(first != SLOT_NONE);
	sums->mapped += first == slot;
	if (first == slot)
		return;
	KVS_ASSERT_CMP(record->state, ==, RECORD_STAGED);
	while (at != slot) {
		at = shard->records[at].next;
		KVS_ASSERT(at != SLOT_NONE);
	}
}

static void audit_record(const struct shard *shard, uint32_t slot, struct sums *sums)
{
	const struct record *const record = &shard->records[slot];

	KVS_ASSERT(record->place != SPACE_NONE);
	audit_chain(shard, slot, sums);
	audit_claims(shard, slot, sums);
	if (record->state == RECORD_STAGED)
		audit_staged(shard, slot, sums);
	if (record->state == RECORD_RESIDENT)
		audit_resident(shard, slot, sums);
	if (record->state == RECORD_DOOMED) {
		KVS_ASSERT(is_busy(record));
		KVS_ASSERT(!evict_present(shard->order, slot));
		sums->doomed++;
	}
}

/* --- a shard ---------------------------------------------------------------------------------- */

static uint32_t audit_list(const struct shard *shard, const struct list *list)
{
	uint64_t last_ns = 0;
	uint32_t prev = SLOT_NONE, count = 0;
	uint32_t slot;

	for (slot = list->head; slot != SLOT_NONE; slot = shard->records[slot].write.next) {
		const struct record *const record = &shard->records[slot];

		KVS_ASSERT_CMP(record->state, ==, RECORD_STAGED);
		KVS_ASSERT_CMP(record->write.prev, ==, prev);
		KVS_ASSERT_CMP(record->expiry_ns, >=, last_ns);
		KVS_ASSERT_CMP(++count, <=, list->count);
		last_ns = record->expiry_ns;
		prev = slot;
	}
	KVS_ASSERT_CMP(list->tail, ==, prev);
	KVS_ASSERT_CMP(list->count, ==, count);
	return count;
}

static void audit_lists(const struct shard *shard, const struct sums *sums)
{
	KVS_ASSERT_CMP(audit_list(shard, &shard->writes), ==, sums->expiring);
	KVS_ASSERT_CMP(audit_list(shard, &shard->loads), ==, sums->staged - sums->expiring);
}

static void audit_sums(const struct shard *shard, const struct sums *sums)
{
	KVS_ASSERT_CMP(shard->staged, ==, sums->staged);
	KVS_ASSERT_CMP(shard->staged_pages, ==, sums->staged_pages);
	KVS_ASSERT_CMP(shard->objects, ==, sums->objects);
	KVS_ASSERT_CMP(shard->doomed, ==, sums->doomed);
	KVS_ASSERT_CMP(shard->temporary, ==, sums->temporary);
	KVS_ASSERT_CMP(shard->idle, ==, sums->idle);
	KVS_ASSERT_CMP(shard->idle_pages, ==, sums->idle_pages);
	KVS_ASSERT_CMP(shard->locks, ==, sums->locks);
	KVS_ASSERT_CMP(shard->pins, ==, sums->pins);
	KVS_ASSERT_CMP(shard->claims.count, ==, sums->claims);
	KVS_ASSERT_CMP(evict_count(shard->order), ==, sums->in_order);
	KVS_ASSERT_CMP(shard->map.count, ==, sums->mapped);
}

static uint64_t charge_of(const struct record *record)
{
	return (uint64_t)pages_of(record->bytes) << SPACE_PAGE_BITS;
}

void shard_audit(struct shard *shard, uint64_t *pages, uint64_t *bytes)
{
	struct sums sums = { 0 };
	uint32_t    free_count = 0, used = 0;
	uint32_t    slot;

	os_mutex_lock(&shard->mutex);
	for (slot = 0; slot < shard->known; slot++) {
		const struct record *const record = &shard->records[slot];

		if (record->state == RECORD_FREE)
			continue;
		used++;
		audit_record(shard, slot, &sums);
		*pages += pages_of(record->bytes);
		if (bytes)
			bytes[record->tenant] += charge_of(record);
	}
	for (slot = shard->free; slot != SLOT_NONE; slot = shard->records[slot].next)
		free_count++;
	KVS_ASSERT_CMP(used + free_count, ==, shard->known);
	audit_sums(shard, &sums);
	audit_lists(shard, &sums);
	map_audit(&shard->map);
	evict_audit(shard->order);
	claims_audit(&shard->claims);
	os_mutex_unlock(&shard->mutex);
}

/* --- the whole -------------------------------------------------------------------------------- */

static void audit_tenants(const struct tenants *tenants, const uint64_t *bytes)
{
	uint32_t i;

	for (i = 0; i < tenants->known; i++)
		KVS_ASSERT_CMP(tenants_bytes_of(tenants, i), ==, bytes[i]);
}

void host_audit(struct host *host)
{
	uint64_t *const bytes = host->isolate ? calloc(HOST_TENANTS_MAX, sizeof(*bytes)) : NULL;
	uint64_t        pages = 0;
	uint32_t        i;

	for (i = 0; i < host->shard_count; i++)
		shard_audit(&host->shards[i], &pages, bytes);
	if (bytes)
		audit_tenants(&host->tenants, bytes);
	free(bytes);
	os_mutex_lock(&host->space_lock);
	host_space_audit(&host->space);
	KVS_ASSERT_CMP(host->space.page_count - host->space.free_count, ==, pages);
	KVS_ASSERT_CMP(atomic_load(&host->used_pages), ==, pages);
	os_mutex_unlock(&host->space_lock);
}
