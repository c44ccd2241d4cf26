/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing, step by step. */
#include "manager/parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One object for each 32 KiB where the options do not say. */
#define OBJECT_BYTES_EACH UINT64_C(32768)

/*
 * A batch of 64 locks few of so many shards, and threads seldom meet in one.  Each keeps an order
 * of its own, so that a Host of few objects has fewer: what goes next is then exact.
 */
#define SHARDS_MAX 16u
#define OBJECTS_PER_SHARD 256u

/* Pairs of client and object: memory is touched only as they come into use. */
#define LOCKS_MAX (UINT64_C(1) << 26)

/* Beside the users' and the prefetches': the prefetch controller's own. */
#define CLIENTS_BESIDE 1u

static int open_arena(struct manager *manager, struct kvs_error *err)
{
	int      rc = arena_open(manager->options.host_bytes, 0, &manager->arena, err);
	uint32_t count, i;

	if (rc < 0) {
		err_prefix(err, "host_bytes");
		return rc;
	}
	count = arena_report(manager->arena)->slice_count;
	manager->slices = calloc(count, sizeof(*manager->slices));
	if (!manager->slices)
		return err_set(err, -ENOMEM, "host_bytes: no memory for %u slices", count);
	for (i = 0; i < count; i++)
		manager->slices[i] = arena_slice(manager->arena, i);
	return 0;
}

static int find_policies(struct manager *manager, struct kvs_error *err)
{
	const int rc = store_policy_find(manager->options.store_policy, &manager->store_policy,
					 err);

	return rc < 0 ? rc
		      : prefetch_policy_find(manager->options.prefetch_policy,
					     &manager->prefetch_policy, err);
}

static int open_store_ctrl(struct manager *manager, struct kvs_error *err)
{
	const struct kvs_options *const options = &manager->options;
	const struct ctrl_limits        limits = { .in_flight_max = options->store_in_flight,
						   .in_flight_bytes = options->store_in_flight_bytes,
						   .queue_max = options->store_queue };

	return store_ctrl_open(manager->store_policy, &limits, &manager->store_ctrl, err);
}

static uint32_t object_max(const struct kvs_options *options)
{
	const uint64_t objects = options->objects ? options->objects
						  : options->host_bytes / OBJECT_BYTES_EACH + 1;

	return (uint32_t)(objects < HOST_OBJECTS_MAX ? objects : HOST_OBJECTS_MAX);
}

static uint32_t shard_count(uint32_t objects)
{
	uint32_t shards = 1;

	while (shards < SHARDS_MAX && 2 * shards * OBJECTS_PER_SHARD <= objects)
		shards *= 2;
	return shards;
}

/* Every prefetch may lock all its keys, and every client a batch. */
static uint32_t lock_max(const struct kvs_options *options)
{
	const uint64_t locks = (uint64_t)options->prefetches * options->prefetch_keys +
			       (uint64_t)options->clients * KVS_BATCH_MAX;

	return (uint32_t)(locks < LOCKS_MAX ? locks : LOCKS_MAX);
}

/* The Host takes the policy by its own name for it. */
static int open_host_over(struct manager *manager, const struct kvs_span *pieces, uint32_t count,
			  struct kvs_error *err)
{
	const struct kvs_options *const options = &manager->options;
	const struct host_options       host = {
		      .fields = pieces,
		      .field_count = count,
		      .object_max = object_max(options),
		      .lock_max = lock_max(options),
		      .client_max = options->clients + options->prefetches + CLIENTS_BESIDE,
		      .shard_count = shard_count(object_max(options)),
		      .policy = options->host_policy,
		      .write_ttl_ns = options->write_ttl_ns,
		      .read_ttl_ns = options->read_ttl_ns,
		      .high = options->high,
		      .low = options->low,
		      .isolate = options->isolate,
		      .quota_bytes = options->quota_bytes,
		      .listeners = { store_ctrl_listener(manager->store_ctrl) },
		      .listener_count = 1,
		      .pressed = manager_upkeep_press,
		      .pressed_arg = manager,
	};

	return host_open(&host, &manager->host, err);
}

static int open_host(struct manager *manager, struct kvs_error *err)
{
	const size_t     bytes = manager->options.host_bytes;
	struct kvs_span *pieces = calloc(arena_piece_count(bytes), sizeof(*pieces));
	uint32_t         count;
	int              rc;

	if (!pieces)
		return err_set(err, -ENOMEM, "host_bytes: no memory");
	rc = arena_carve_bytes(manager->arena, bytes, pieces, &count, err);
	if (rc == 0)
		rc = open_host_over(manager, pieces, count, err);
	free(pieces);
	return rc;
}

static int open_prefetch_ctrl(struct manager *manager, struct kvs_error *err)
{
	const struct kvs_options *const options = &manager->options;
	/* What was cancelled keeps its place until its I/O retired. */
	const struct ctrl_limits limits = { .in_flight_max = options->prefetch_in_flight,
					    .in_flight_bytes = options->prefetch_in_flight_bytes,
					    .queue_max = options->prefetches +
							 options->prefetch_in_flight,
					    .request_keys = options->prefetch_keys };

	return prefetch_ctrl_open(manager->host, manager->prefetch_policy, &limits,
				  &manager->prefetch_ctrl, err);
}

static int start_store_ctrl(struct manager *manager, struct kvs_error *err)
{
	const int rc = store_ctrl_start(manager->store_ctrl, manager->host);

	return rc < 0 ? err_set(err, rc, "store controller: no thread: %s", kvs_strerror(rc)) : 0;
}

static int open_wake(struct manager *manager, struct kvs_error *err)
{
	manager->wake_fd = os_eventfd();
	return manager->wake_fd < 0
		       ? err_set(err, manager->wake_fd, "upkeep: no event descriptor: %s",
				 kvs_strerror(manager->wake_fd))
		       : 0;
}

int manager_open(const struct kvs_options *options, struct manager **ret_manager,
		 struct kvs_error *err)
{
	/* What is only looked up comes before what takes memory and time. */
	static int (*const steps[])(struct manager *manager, struct kvs_error *err) = {
		find_policies,           open_wake,           open_arena,
		open_store_ctrl,         open_host,           manager_clients_open,
		manager_prefetches_open, open_prefetch_ctrl,  start_store_ctrl,
		manager_stores_open,     manager_upkeep_start
	};
	struct manager *manager;
	size_t          i;
	int             rc = manager_options_check(options, err);

	if (rc < 0)
		return rc;
	manager = calloc(1, sizeof(*manager));
	if (!manager)
		return err_set(err, -ENOMEM, "kvs: no memory");
	manager->options = *options;
	snprintf(manager->evict_policy, sizeof(manager->evict_policy), "%s",
		 options->store_evict_policy);
	os_mutex_init(&manager->lock);
	os_mutex_init(&manager->stores_lock);
	os_mutex_init(&manager->figures_lock);
	manager->wake_fd = -1;
	for (i = 0; rc == 0 && i < ARRAY_COUNT(steps); i++)
		rc = steps[i](manager, err);
	if (rc < 0) {
		(void)manager_close(manager);
		return rc;
	}
	*ret_manager = manager;
	return 0;
}

/* Both, whatever the first one says. */
static int worse(int a, int b)
{
	return a < 0 ? a : b;
}

/* Threads and stores; what is 0 afterwards has let go of Host and its memory. */
static int stop(struct manager *manager)
{
	const uint64_t deadline_ns = os_until_ns(manager->options.close_timeout_ns);
	int            rc;

	manager_upkeep_stop(manager);
	rc = prefetch_ctrl_close(manager->prefetch_ctrl, deadline_ns);
	manager->stopped = true;
	rc = worse(rc, store_ctrl_close(manager->store_ctrl, deadline_ns));
	return worse(rc, manager_stores_close(manager, deadline_ns));
}

/*
 * Whose I/O is in doubt: a late byte may land in the arena, a worker that comes back may look at
 * its buffers' owners.  They stay reachable, so that a leak checker does not take them for
 * forgotten.
 */
static void leave_behind(struct manager *manager)
{
	static _Atomic(struct manager *) all;

	manager->left = atomic_load(&all);
	while (!atomic_compare_exchange_weak(&all, &manager->left, manager))
		;
}

int manager_close(struct manager *manager)
{
	const int rc = stop(manager);

	manager_clients_end(manager);
	os_close(manager->wake_fd);
	if (rc < 0) {
		leave_behind(manager);
		return KVS_E_QUARANTINE;
	}
	host_close(manager->host);
	arena_close(manager->arena);
	free(manager->slices);
	manager_prefetches_free(manager);
	manager_clients_free(manager);
	os_mutex_fini(&manager->figures_lock);
	os_mutex_fini(&manager->stores_lock);
	os_mutex_fini(&manager->lock);
	free(manager);
	return 0;
}

uint32_t manager_prefetch_keys(const struct manager *manager)
{
	return manager->options.prefetch_keys;
}

void manager_audit(struct manager *manager)
{
	uint32_t number;

	manager_prefetches_audit(manager);
	host_audit(manager->host);
	arena_audit(manager->arena);
	for (number = 0; number < KVS_ADAPTERS_MAX; number++) {
		if (manager->stores[number].adapter)
			adapter_audit(manager->stores[number].adapter);
	}
}
