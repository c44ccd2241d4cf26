/* SPDX-License-Identifier: Apache-2.0 */
#include "host/tenants.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"

int tenants_open(struct tenants *tenants, uint32_t max, uint64_t quota_bytes)
{
	*tenants = (struct tenants){ .max = max, .quota_bytes = quota_bytes };
	os_mutex_init(&tenants->mutex);
	tenants->tenants = calloc(max, sizeof(*tenants->tenants));
	if (!tenants->tenants)
		return -ENOMEM;
	return map_open(&tenants->map, max, &tenants->tenants->space, sizeof(*tenants->tenants),
			sizeof(struct kvs_namespace));
}

void tenants_close(struct tenants *tenants)
{
	map_close(&tenants->map);
	free(tenants->tenants);
	os_mutex_fini(&tenants->mutex);
}

/* Who holds nothing and was promised nothing: charges go up from zero with the mutex held alone. */
static uint32_t find_idle(const struct tenants *tenants)
{
	uint32_t i;

	for (i = 0; i < tenants->known; i++) {
		if (tenants_bytes_of(tenants, i) == 0 && !tenants->tenants[i].own_quota)
			return i;
	}
	return TENANT_NONE;
}

static uint32_t take_number(struct tenants *tenants)
{
	uint32_t number;

	if (tenants->known < tenants->max)
		return tenants->known++;
	number = find_idle(tenants);
	if (number != TENANT_NONE) {
		map_remove(&tenants->map, map_hash(&tenants->map, &tenants->tenants[number].space),
			   number);
	}
	return number;
}

/* The tenant of a namespace, made known when it is not; mutex held. */
static uint32_t enter(struct tenants *tenants, const struct kvs_namespace *space)
{
	const uint64_t hash = map_hash(&tenants->map, space);
	uint32_t       number = map_find(&tenants->map, hash, space);

	if (number != SLOT_NONE)
		return number;
	number = take_number(tenants);
	if (number == TENANT_NONE)
		return TENANT_NONE;
	tenants->tenants[number].space = *space;
	tenants->tenants[number].own_quota = false;
	atomic_store_explicit(&tenants->tenants[number].quota_bytes, tenants->quota_bytes,
			      memory_order_relaxed);
	map_insert(&tenants->map, hash, number);
	return number;
}

/* All orders are relaxed: the counters stand for themselves. */
bool tenants_charge_more(struct tenants *tenants, uint32_t number, uint64_t bytes)
{
	struct tenant *const tenant = &tenants->tenants[number];
	const uint64_t quota = atomic_load_explicit(&tenant->quota_bytes, memory_order_relaxed);
	uint64_t       now = atomic_load_explicit(&tenant->bytes, memory_order_relaxed);

	do {
		if (quota != 0 && (bytes > quota || now > quota - bytes))
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&tenant->bytes, &now, now + bytes, memory_order_relaxed, memory_order_relaxed));
	return true;
}

int tenants_charge(struct tenants *tenants, const struct kvs_namespace *space, uint64_t bytes,
		   uint32_t *ret_tenant)
{
	uint32_t number;
	int      rc = KVS_E_FULL;

	os_mutex_lock(&tenants->mutex);
	number = enter(tenants, space);
	if (number != TENANT_NONE) {
		*ret_tenant = number;
		rc = tenants_charge_more(tenants, number, bytes) ? 0 : KVS_E_CREDIT;
	}
	os_mutex_unlock(&tenants->mutex);
	return rc;
}

void tenants_refund(struct tenants *tenants, uint32_t tenant, uint64_t bytes)
{
	const uint64_t before = atomic_fetch_sub_explicit(&tenants->tenants[tenant].bytes, bytes,
							  memory_order_relaxed);

	KVS_ASSERT_CMP(before, >=, bytes);
}

int tenants_quota(struct tenants *tenants, const struct kvs_namespace *space, uint64_t quota_bytes,
		  uint32_t *ret_tenant)
{
	uint32_t number;

	os_mutex_lock(&tenants->mutex);
	number = enter(tenants, space);
	if (number != TENANT_NONE) {
		tenants->tenants[number].own_quota = quota_bytes != tenants->quota_bytes;
		atomic_store_explicit(&tenants->tenants[number].quota_bytes, quota_bytes,
				      memory_order_relaxed);
		*ret_tenant = number;
	}
	os_mutex_unlock(&tenants->mutex);
	return number == TENANT_NONE ? KVS_E_FULL : 0;
}

bool tenants_look(struct tenants *tenants, const struct kvs_namespace *space, uint64_t *ret_bytes,
		  uint64_t *ret_quota)
{
	uint32_t number;

	os_mutex_lock(&tenants->mutex);
	number = map_find(&tenants->map, map_hash(&tenants->map, space), space);
	if (number != SLOT_NONE) {
		*ret_bytes = tenants_bytes_of(tenants, number);
		*ret_quota = atomic_load_explicit(&tenants->tenants[number].quota_bytes,
						  memory_order_relaxed);
	}
	os_mutex_unlock(&tenants->mutex);
	return number != SLOT_NONE;
}

bool tenants_exceeds(const struct tenants *tenants, uint32_t tenant)
{
	const uint64_t quota = atomic_load_explicit(&tenants->tenants[tenant].quota_bytes,
						    memory_order_relaxed);

	return quota != 0 && tenants_bytes_of(tenants, tenant) > quota;
}

size_t tenants_bytes(const struct tenants *tenants)
{
	return tenants->max * sizeof(*tenants->tenants) + map_bytes(&tenants->map);
}
