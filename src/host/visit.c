/* SPDX-License-Identifier: Apache-2.0 */
#include "host/visit.h"

#include "base/err.h"

void visit_make_room(struct host *host, struct notices *notices, uint32_t more)
{
	KVS_ASSERT_CMP(more, <=, NOTICES_MAX);
	if (notices->count + more > NOTICES_MAX)
		notices_tell(notices, host->listeners, host->listener_count);
}

void visit_begin(struct visit *visit, struct host *host, uint32_t shard, uint64_t now_ns,
		 struct notices *notices)
{
	visit->host = host;
	visit->shard = &host->shards[shard];
	visit->notices = notices;
	visit->part = TENANT_NONE;
	visit->freed_count = 0;
	os_mutex_lock(&visit->shard->mutex);
	/*
	 * Threads read the clock before they wait for the mutex: lists by expiry want time to grow.
	 */
	if (now_ns > visit->shard->now_ns)
		visit->shard->now_ns = now_ns;
}

/* Relaxed: numbers order what a mutex orders already; between shards there is nothing to order. */
static void number(struct visit *visit)
{
	struct notices *const notices = visit->notices;
	const uint32_t        count = notices->count - notices->numbered;
	uint64_t              sequence;

	if (count == 0)
		return;
	sequence = atomic_fetch_add_explicit(&visit->host->sequence, count, memory_order_relaxed);
	while (notices->numbered < notices->count)
		notices->sequence[notices->numbered++] = sequence++;
}

void visit_give(struct visit *visit)
{
	if (visit->freed_count > 0)
		space_of_host_give(visit->host, visit->freed, visit->freed_count);
	visit->freed_count = 0;
}

void visit_end(struct visit *visit)
{
	visit_give(visit);
	number(visit);
	os_mutex_unlock(&visit->shard->mutex);
}

/* --- the space -------------------------------------------------------------------------------- */

/* Relaxed here and below: a hint for those who do not hold the lock. */
static void show_use(struct host *host)
{
	atomic_store_explicit(&host->used_pages, host->space.page_count - host->space.free_count,
			      memory_order_relaxed);
}

uint32_t space_of_host_take(struct host *host, uint32_t pages, uint32_t count, uint32_t *ret_places)
{
	uint32_t taken;

	if (pages >= atomic_load_explicit(&host->short_pages, memory_order_relaxed))
		return 0;
	os_mutex_lock(&host->space_lock);
	taken = host_space_take(&host->space, pages, count, ret_places);
	if (taken < count)
		atomic_store_explicit(&host->short_pages, pages, memory_order_relaxed);
	show_use(host);
	os_mutex_unlock(&host->space_lock);
	return taken;
}

uint32_t space_of_host_search(struct host *host, uint32_t pages)
{
	uint32_t place;

	os_mutex_lock(&host->space_lock);
	place = host_space_search(&host->space, pages);
	show_use(host);
	os_mutex_unlock(&host->space_lock);
	return place;
}

void space_of_host_give(struct host *host, const struct freed *freed, uint32_t count)
{
	uint32_t i;

	os_mutex_lock(&host->space_lock);
	for (i = 0; i < count; i++)
		host_space_give(&host->space, freed[i].place, freed[i].pages);
	atomic_store_explicit(&host->short_pages, UINT32_MAX, memory_order_relaxed);
	show_use(host);
	os_mutex_unlock(&host->space_lock);
}
