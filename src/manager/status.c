/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of Host, controllers and stores in one struct. */
#include "manager/parts.h"

static void add_store(void *arg, uint32_t number, const struct store *store)
{
	struct kvs_status *const status = arg;
	struct adapter_stats     stats;

	(void)number;
	adapter_stats(store->adapter, &stats);
	status->stores++;
	if (stats.exec.health != HEALTH_UP ||
	    stats.exec.counters[EXEC_UNRETIRED] > stats.exec.counters[EXEC_NOTICES])
		status->healthy = false;
}

static void add_host(struct manager *manager, struct kvs_status *status)
{
	struct host_usage usage;

	host_usage(manager->host, &usage);
	status->host_bytes = usage.bytes;
	status->host_used_bytes = usage.used_bytes;
	status->host_staged_bytes = usage.staged_bytes;
	status->objects = usage.objects;
	status->staged = usage.staged;
	status->temporary = usage.temporary;
	status->locks = usage.locks;
	status->pins = usage.pins;
	status->hits = usage.counters[HOST_HITS];
	status->misses = usage.counters[HOST_MISSES];
	status->evicted = usage.counters[HOST_EVICTED];
	status->refused = usage.counters[HOST_REFUSED_BYTES] +
			  usage.counters[HOST_REFUSED_OBJECTS] +
			  usage.counters[HOST_REFUSED_LOCKS] + usage.counters[HOST_REFUSED_QUOTA] +
			  usage.counters[HOST_REFUSED_TENANTS];
}

static void add_controllers(struct manager *manager, struct kvs_status *status)
{
	struct store_ctrl_stats    stored;
	struct prefetch_ctrl_stats loaded;

	store_ctrl_stats(manager->store_ctrl, &stored);
	prefetch_ctrl_stats(manager->prefetch_ctrl, &loaded);
	status->stored_keys = stored.counters[STORE_CTRL_STORED];
	status->stored_bytes = stored.stored_bytes;
	status->store_failures = stored.counters[STORE_CTRL_FAILED];
	status->store_waiting = stored.waiting;
	status->loaded_keys = loaded.keys_loaded;
	status->loaded_bytes = loaded.loaded_bytes;
	status->load_failures = loaded.keys_failed;
	status->loads_in_flight = loaded.in_flight;
}

void manager_status(struct manager *manager, struct kvs_status *ret_status)
{
	*ret_status = (struct kvs_status){ .healthy = true };
	add_host(manager, ret_status);
	add_controllers(manager, ret_status);
	ret_status->clients = manager_clients_count(manager);
	ret_status->prefetches = manager_prefetches_count(manager);
	os_mutex_lock(&manager->figures_lock);
	manager_stores_each(manager, add_store, ret_status);
	os_mutex_unlock(&manager->figures_lock);
}
