/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores come and go: an executor and its adapter each, under a number that both controllers know.
 *
 * One change at a time, and each may wait for I/O.  Those who only look hold figures_lock, and a
 * store that leaves says so before it waits for them.
 */
#include "manager/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"

/* For an executor with nothing to do, when its turn comes past the deadline. */
#define CLOSE_LEAST_NS UINT64_C(100000000)

static struct adapter_options adapter_options(const struct manager *manager)
{
	const struct kvs_options *const options = &manager->options;
	const uint32_t                  loads = manager_load_ops(options);
	const uint32_t                  ops = options->store_in_flight + 2 * loads;
	const uint32_t                  locks = loads * OP_KEYS_MAX;

	return (struct adapter_options){
		.exec = { .limits = { .outstanding_max = ops,
				      .queue_max = ops,
				      .lock_max = locks < EXEC_LOCKS_MAX ? locks : EXEC_LOCKS_MAX },
			  .workers = { [EXEC_QUERY] = options->query_workers,
				       [EXEC_GET] = options->get_workers,
				       [EXEC_PUT] = options->put_workers },
			  .memory = { manager->slices, arena_report(manager->arena)->slice_count,
				      arena_fd(manager->arena) } },
		.op_max = { [TASK_STORE] = options->store_in_flight,
			    [TASK_LOOKUP] = loads,
			    [TASK_LOAD] = loads },
	};
}

static void set_state(struct manager *manager, struct store *store, enum store_state state)
{
	os_mutex_lock(&manager->figures_lock);
	store->state = state;
	os_mutex_unlock(&manager->figures_lock);
}

/* Its adapter is closed: the number is free. */
static void forget(struct manager *manager, struct store *store)
{
	os_mutex_lock(&manager->figures_lock);
	*store = (struct store){ .state = STORE_NONE };
	os_mutex_unlock(&manager->figures_lock);
}

static void detach(struct manager *manager, uint32_t number)
{
	store_ctrl_detach(manager->store_ctrl, number);
	prefetch_ctrl_detach(manager->prefetch_ctrl, number);
}

static bool detached(struct manager *manager, uint32_t number, uint64_t deadline_ns)
{
	return store_ctrl_detached(manager->store_ctrl, number, deadline_ns) &&
	       prefetch_ctrl_detached(manager->prefetch_ctrl, number, deadline_ns);
}

/* --- attaching -------------------------------------------------------------------------------- */

static int open_adapter(struct manager *manager, struct kvs_store *opened, struct store *store,
			struct kvs_error *err)
{
	const struct adapter_options options = adapter_options(manager);
	int                          rc;

	/* Late I/O of a store may land in it, whatever else ends. */
	arena_retain(manager->arena);
	store->name = opened->ops->name;
	rc = adapter_open(opened, &options, &store->adapter, err);
	if (rc < 0)
		(void)opened->ops->close(opened);
	return rc;
}

static int attach(struct manager *manager, uint32_t number, struct kvs_error *err)
{
	struct store *const store = &manager->stores[number];
	int rc = store_ctrl_attach(manager->store_ctrl, number, store->adapter, store->name);

	if (rc == 0) {
		rc = prefetch_ctrl_attach(manager->prefetch_ctrl, number, store->adapter,
					  store->name);
	}
	return rc < 0 ? err_set(err, rc, "store: %s cannot be attached: %s", store->name,
				kvs_strerror(rc))
		      : 0;
}

/* A store controller that has it may have begun with it: one that does not leave in time stays LEAVING. */
static void give_up(struct manager *manager, uint32_t number)
{
	struct store *const store = &manager->stores[number];

	set_state(manager, store, STORE_LEAVING);
	detach(manager, number);
	if (detached(manager, number, os_until_ns(CLOSE_LEAST_NS)) &&
	    adapter_close(store->adapter, CLOSE_LEAST_NS) == 0)
		forget(manager, store);
}

static struct store *find_place(struct manager *manager)
{
	uint32_t number;

	for (number = 0; number < KVS_ADAPTERS_MAX; number++) {
		if (!manager->stores[number].adapter)
			return &manager->stores[number];
	}
	return NULL;
}

static int add(struct manager *manager, struct kvs_store *opened, uint32_t *ret_number,
	       struct kvs_error *err)
{
	struct store *const store = find_place(manager);
	uint32_t            number;
	int                 rc;

	if (!store) {
		(void)opened->ops->close(opened);
		return err_set(err, KVS_E_FULL, "stores: %u are attached, as many as may be",
			       KVS_ADAPTERS_MAX);
	}
	number = (uint32_t)(store - manager->stores);
	rc = open_adapter(manager, opened, store, err);
	if (rc < 0)
		return rc;
	rc = attach(manager, number, err);
	if (rc < 0) {
		give_up(manager, number);
		return rc;
	}
	set_state(manager, store, STORE_ATTACHED);
	atomic_fetch_add(&manager->store_count, 1);
	*ret_number = number;
	return 0;
}

int manager_store_take(struct manager *manager, struct kvs_store *store, uint32_t *ret_number,
		       struct kvs_error *err)
{
	int rc;

	os_mutex_lock(&manager->stores_lock);
	rc = add(manager, store, ret_number, err);
	os_mutex_unlock(&manager->stores_lock);
	return rc;
}

int manager_store_add(struct manager *manager, const char *spec, uint32_t *ret_number,
		      struct kvs_error *err)
{
	struct kvs_store *store;
	int rc = store_open(spec, manager->options.object_bytes, manager->evict_policy, &store,
			    err);

	if (rc < 0)
		return rc;
	if (!store) {
		return err_set(err, KVS_E_INVALID,
			       "store: none is no store that could be attached");
	}
	return manager_store_take(manager, store, ret_number, err);
}

int manager_stores_open(struct manager *manager, struct kvs_error *err)
{
	uint32_t number, i;
	int      rc = 0;

	for (i = 0; rc == 0 && i < KVS_ADAPTERS_MAX && manager->options.stores[i]; i++) {
		if (strcmp(manager->options.stores[i], "none") == 0)
			continue;
		rc = manager_store_add(manager, manager->options.stores[i], &number, err);
		if (rc < 0)
			err_prefix(err, "stores[%u]", i);
	}
	return rc;
}

/* --- detaching -------------------------------------------------------------------------------- */

static int remove_store(struct manager *manager, uint32_t number, uint64_t deadline_ns,
			struct kvs_error *err)
{
	struct store *const store = &manager->stores[number];

	if (store->state == STORE_ATTACHED) {
		set_state(manager, store, STORE_LEAVING);
		atomic_fetch_sub(&manager->store_count, 1);
		detach(manager, number);
	}
	if (!detached(manager, number, deadline_ns) ||
	    adapter_close(store->adapter, until(deadline_ns)) < 0) {
		return err_set(err, -ETIMEDOUT,
			       "store %u: its I/O still runs; it is detached when that ends",
			       number);
	}
	forget(manager, store);
	return 0;
}

int manager_store_remove(struct manager *manager, uint32_t number, uint64_t timeout_ns,
			 struct kvs_error *err)
{
	const uint64_t deadline_ns = os_until_ns(timeout_ns);
	int            rc;

	os_mutex_lock(&manager->stores_lock);
	if (number < KVS_ADAPTERS_MAX && manager->stores[number].adapter)
		rc = remove_store(manager, number, deadline_ns, err);
	else
		rc = err_set(err, KVS_E_STALE, "number: no store has the number %u", number);
	os_mutex_unlock(&manager->stores_lock);
	return rc;
}

int manager_stores_close(struct manager *manager, uint64_t deadline_ns)
{
	uint32_t number;
	int      rc = 0;

	for (number = 0; number < KVS_ADAPTERS_MAX; number++) {
		struct store *const store = &manager->stores[number];
		const uint64_t      left_ns = until(deadline_ns);

		if (adapter_close(store->adapter,
				  left_ns > CLOSE_LEAST_NS ? left_ns : CLOSE_LEAST_NS) < 0)
			rc = KVS_E_QUARANTINE;
		else
			forget(manager, store);
	}
	return rc;
}

int manager_flush(struct manager *manager, uint64_t timeout_ns)
{
	return store_ctrl_flush(manager->store_ctrl, os_until_ns(timeout_ns)) ? 0 : -ETIMEDOUT;
}

void manager_stores_each(struct manager *manager,
			 void (*visit)(void *arg, uint32_t number, const struct store *store),
			 void *arg)
{
	uint32_t number;

	for (number = 0; number < KVS_ADAPTERS_MAX; number++) {
		if (manager->stores[number].state == STORE_ATTACHED)
			visit(arg, number, &manager->stores[number]);
	}
}
