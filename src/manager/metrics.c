/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All there is to count as Prometheus text.
 *
 * A registry is made for each text, since stores come and go: whoever scrapes waits for it, nobody
 * else does.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "manager/parts.h"
#include "metrics/metrics.h"

/* A text that is being made; the first error ends it. */
struct sheet {
	struct metrics *metrics;
	int             rc;
};

static void put(struct sheet *sheet, enum metric_kind kind, const char *name, const char *label,
		const char *help, uint64_t value)
{
	_Atomic uint64_t *cell;

	if (sheet->rc == 0)
		sheet->rc = metrics_value(sheet->metrics, kind, name, label, help, 1, &cell, NULL);
	if (sheet->rc == 0)
		atomic_store_explicit(cell, value, memory_order_relaxed);
}

#define GAUGE(name, help, value) put(sheet, METRIC_GAUGE, "kvstrata_" name, NULL, help, value)
#define COUNTER(name, help, value) \
	put(sheet, METRIC_COUNTER, "kvstrata_" name "_total", NULL, help, value)

static void put_host(struct sheet *sheet, struct manager *manager)
{
	struct host_usage usage;

	host_usage(manager->host, &usage);
	GAUGE("host_bytes", "Host memory for objects", usage.bytes);
	GAUGE("host_used_bytes", "of it used, in whole pages, trailers included", usage.used_bytes);
	GAUGE("host_staged_bytes", "of it being written", usage.staged_bytes);
	GAUGE("host_objects", "resident objects", usage.objects);
	GAUGE("host_staged", "objects being written", usage.staged);
	GAUGE("host_doomed", "removed objects that somebody still uses", usage.doomed);
	GAUGE("host_temporary", "resident objects that go with their last lock", usage.temporary);
	GAUGE("host_locks", "locks, counts summed up", usage.locks);
	GAUGE("host_pins", "claims of operations", usage.pins);
	GAUGE("clients", "open clients", manager_clients_count(manager));
	GAUGE("prefetches", "prefetches not yet released", manager_prefetches_count(manager));
#define HOST_COUNTER(name, text) \
	COUNTER("host_" text, "keys, or bytes, of calls on Host", usage.counters[name]);
	HOST_COUNTERS(HOST_COUNTER)
#undef HOST_COUNTER
}

static void put_store_ctrl(struct sheet *sheet, struct manager *manager)
{
	struct store_ctrl_stats stats;

	store_ctrl_stats(manager->store_ctrl, &stats);
#define STORE_CTRL_COUNTER(name, text) \
	COUNTER("store_" text, "keys, or tasks, on their way to the stores", stats.counters[name]);
	STORE_CTRL_COUNTERS(STORE_CTRL_COUNTER)
#undef STORE_CTRL_COUNTER
	COUNTER("store_moved_bytes", "bytes that stores really took", stats.stored_bytes);
	GAUGE("store_waiting", "keys that wait for a store", stats.waiting);
	GAUGE("store_in_flight", "tasks under way", stats.in_flight);
	GAUGE("store_in_flight_bytes", "payload under way", stats.in_flight_bytes);
}

static void put_prefetch_ctrl(struct sheet *sheet, struct manager *manager)
{
	struct prefetch_ctrl_stats stats;

	prefetch_ctrl_stats(manager->prefetch_ctrl, &stats);
	COUNTER("prefetch_submitted", "requests handed to the stores", stats.submitted);
	COUNTER("prefetch_refused", "requests refused for want of a place", stats.refused_full);
#define PREFETCH_END(name, text) \
	put(sheet, METRIC_COUNTER, "kvstrata_prefetch_ended_total", "end=\"" text "\"", \
	    "requests by what cut their boundary", stats.ends[name]);
	PREFETCH_ENDS(PREFETCH_END)
#undef PREFETCH_END
	COUNTER("prefetch_keys_asked", "keys looked up, each store of each", stats.keys_asked);
	COUNTER("prefetch_keys_found", "and found", stats.keys_found);
	COUNTER("prefetch_keys_loaded", "keys loaded and published", stats.keys_loaded);
	COUNTER("prefetch_keys_failed", "keys that were found and not loaded", stats.keys_failed);
	COUNTER("prefetch_keys_late", "keys loaded past the end of their request", stats.late_keys);
	COUNTER("prefetch_loaded_bytes", "bytes loaded", stats.loaded_bytes);
	COUNTER("prefetch_misplanned", "answers of the policy that no store had", stats.misplanned);
	GAUGE("prefetch_queued", "requests that wait", stats.queued);
	GAUGE("prefetch_in_flight", "requests under way, those that drain included",
	      stats.in_flight);
	GAUGE("prefetch_draining", "requests whose late I/O runs", stats.draining);
	GAUGE("prefetch_in_flight_bytes", "Host memory for requests under way",
	      stats.in_flight_bytes);
}

/* A family of all stores: their number is the label. */
static void put_store(void *arg, uint32_t number, const struct store *store)
{
	struct sheet *const   sheet = arg;
	struct kvs_store_info info = { 0 };
	struct adapter_stats  stats;
	char                  label[32];

	adapter_stats(store->adapter, &stats);
	adapter_describe(store->adapter, &info);
	snprintf(label, sizeof(label), "store=\"%" PRIu32 "\"", number);
#define STORE(kind, name, help, value) \
	put(sheet, METRIC_##kind, "kvstrata_adapter_" name, label, help, value)
	STORE(GAUGE, "up", "1: in no cooldown", stats.exec.health == HEALTH_UP);
	STORE(GAUGE, "capacity_bytes", "hard limit of the store; 0 when unknown",
	      info.capacity_bytes);
	STORE(GAUGE, "used_bytes", "of it used", info.used_bytes);
	STORE(GAUGE, "locks", "objects locked for loads", stats.exec.locks_held);
	STORE(COUNTER, "outages_total", "times the store went into cooldown", stats.exec.outages);
	STORE(COUNTER, "stored_bytes_total", "bytes put", stats.moved_bytes[TASK_STORE]);
	STORE(COUNTER, "loaded_bytes_total", "bytes got", stats.moved_bytes[TASK_LOAD]);
	STORE(COUNTER, "corrupt_total", "objects found wrong", info.corrupt_objects);
	STORE(COUNTER, "unretired_total", "operations that ended unretired",
	      stats.exec.counters[EXEC_UNRETIRED]);
#undef STORE
	if (sheet->rc == 0) {
		sheet->rc = metrics_histogram(
			sheet->metrics, "kvstrata_adapter_store_bytes_per_second", label,
			"of tasks that moved bytes, from submission to completion", 1,
			adapter_throughput(store->adapter, TASK_STORE), NULL);
	}
	if (sheet->rc == 0) {
		sheet->rc = metrics_histogram(
			sheet->metrics, "kvstrata_adapter_load_bytes_per_second", label,
			"of tasks that moved bytes, from submission to completion", 1,
			adapter_throughput(store->adapter, TASK_LOAD), NULL);
	}
}

int manager_metrics(struct manager *manager, char *ret_text, size_t room)
{
	struct sheet sheet = { 0 };
	size_t       length = 0;

	sheet.rc = metrics_open("", &sheet.metrics, NULL);
	if (sheet.rc < 0)
		return sheet.rc;
	put_host(&sheet, manager);
	put_store_ctrl(&sheet, manager);
	put_prefetch_ctrl(&sheet, manager);
	/* The text reads the histograms of adapters. */
	os_mutex_lock(&manager->figures_lock);
	manager_stores_each(manager, put_store, &sheet);
	KVS_ASSERT(sheet.rc == 0);
	length = metrics_text(sheet.metrics, ret_text, room);
	os_mutex_unlock(&manager->figures_lock);
	metrics_close(sheet.metrics);
	return length > INT_MAX ? INT_MAX : (int)length;
}
