/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that come and go, time that passes, watermarks and quotas. */
#include "base/err.h"
#include "host/life.h"
#include "host/lock.h"
#include "host/victims.h"

/* What a client leaves is dropped in visits of so many. */
#define LEFT_MAX (NOTICES_MAX / 2)

/* --- clients ---------------------------------------------------------------------------------- */

int host_client_open(struct host *host, unsigned flags, host_client *ret_client)
{
	if (flags & ~(unsigned)HOST_NO_TTL)
		return KVS_E_INVALID;
	return clients_enter(&host->clients, flags, ret_client);
}

/*
 * Nobody is told of them, so that all go in one visit.  It looks at what all clients stage: those
 * that only read, and come and go with each prefetch, are spared it.
 */
static void drop_writes(struct visit *visit, const struct list *list, uint32_t client)
{
	struct shard *const shard = visit->shard;
	uint32_t            slot, next;

	for (slot = list->head; slot != SLOT_NONE; slot = next) {
		next = shard->records[slot].write.next;
		if (shard->records[slot].client != client)
			continue;
		visit_count(visit, HOST_ABANDONED);
		life_drop(visit, slot);
	}
}

/* True when the shard has nothing of the client any more. */
static bool drop_left(struct visit *visit, uint32_t client)
{
	struct shard *const shard = visit->shard;
	struct list *const  locks = &shard->claims.of_client[client];
	uint32_t            i;

	if (clients_has_staged(&visit->host->clients, client)) {
		drop_writes(visit, &shard->writes, client);
		drop_writes(visit, &shard->loads, client);
	}
	for (i = 0; i < LEFT_MAX && locks->head != SLOT_NONE; i++)
		lock_give(visit, locks->head, shard->claims.claims[locks->head].count);
	return locks->head == SLOT_NONE;
}

int host_client_close(struct host *host, host_client client, uint64_t now_ns)
{
	struct notices notices;
	struct visit   visit;
	uint32_t       shard;
	bool           done;

	if (!clients_retire(&host->clients, client))
		return KVS_E_CLOSED;
	notices_init(&notices);
	for (shard = 0; shard < host->shard_count; shard += done) {
		visit_begin(&visit, host, shard, now_ns, &notices);
		done = drop_left(&visit, client_slot(client));
		visit_end(&visit);
		notices_tell(&notices, host->listeners, host->listener_count);
	}
	clients_leave(&host->clients, client);
	return 0;
}

/* --- time ------------------------------------------------------------------------------------- */

void host_expire(struct host *host, uint64_t now_ns)
{
	struct notices notices;
	struct visit   visit;
	uint32_t       shard;
	bool           done;

	notices_init(&notices);
	for (shard = 0; shard < host->shard_count; shard += done) {
		visit_begin(&visit, host, shard, now_ns, &notices);
		done = lock_expire(&visit);
		visit_end(&visit);
		notices_tell(&notices, host->listeners, host->listener_count);
	}
}

/* --- room ------------------------------------------------------------------------------------- */

static uint64_t used_pages(const struct host *host)
{
	return atomic_load_explicit(&host->used_pages, memory_order_relaxed);
}

static bool is_above_low(const struct host *host, uint32_t tenant, uint64_t going)
{
	(void)tenant;
	return used_pages(host) > host->low_pages + going;
}

/* A tenant's bytes go with its objects. */
static bool exceeds_quota(const struct host *host, uint32_t tenant, uint64_t going)
{
	(void)going;
	return tenants_exceeds(&host->tenants, tenant);
}

/* From `high` on until `low` is reached, however many calls that takes. */
static bool is_to_relieve(struct host *host)
{
	const uint64_t used = used_pages(host);

	if (used > host->high_pages)
		atomic_store_explicit(&host->is_relieving, true, memory_order_relaxed);
	else if (used <= host->low_pages)
		atomic_store_explicit(&host->is_relieving, false, memory_order_relaxed);
	return atomic_load_explicit(&host->is_relieving, memory_order_relaxed);
}

uint32_t host_relieve(struct host *host, uint64_t now_ns, uint32_t object_max)
{
	struct notices     notices;
	const struct turns turns = { .host = host,
				     .notices = &notices,
				     .now_ns = now_ns,
				     .first = atomic_fetch_add_explicit(&host->hand, 1,
									memory_order_relaxed) };
	uint32_t           gone = 0;

	host_expire(host, now_ns);
	notices_init(&notices);
	if (is_to_relieve(host))
		gone = victims_go(&turns, TENANT_NONE, object_max, is_above_low);
	notices_tell(&notices, host->listeners, host->listener_count);
	(void)is_to_relieve(host);
	/* Whether it helped or not: the next reservation past `high` presses again. */
	atomic_store_explicit(&host->is_pressed, false, memory_order_relaxed);
	return gone;
}

int host_quota(struct host *host, const struct kvs_namespace *tenant, uint64_t quota_bytes,
	       uint64_t now_ns)
{
	struct notices     notices;
	const struct turns turns = { .host = host, .notices = &notices, .now_ns = now_ns };
	uint32_t           number;
	int                rc;

	if (!host->isolate)
		return KVS_E_UNSUPPORTED;
	rc = tenants_quota(&host->tenants, tenant, quota_bytes, &number);
	if (rc < 0)
		return rc;
	host_expire(host, now_ns);
	notices_init(&notices);
	(void)victims_go(&turns, number, UINT32_MAX, exceeds_quota);
	notices_tell(&notices, host->listeners, host->listener_count);
	return 0;
}

bool host_tenant(struct host *host, const struct kvs_namespace *tenant, uint64_t *ret_bytes,
		 uint64_t *ret_quota)
{
	return host->isolate && tenants_look(&host->tenants, tenant, ret_bytes, ret_quota);
}
