/* SPDX-License-Identifier: Apache-2.0 */
/* Clients, and calls on batches of keys. */
#include "api/parts.h"

/* --- clients ---------------------------------------------------------------------------------- */

int kvs_client_open(struct kvs *kvs, kvs_client *ret_client, struct kvs_error *err)
{
	int                   rc;
	struct manager *const manager = api_enter(kvs, &rc, err);

	if (!manager || API_NEED(ret_client, err) < 0)
		return manager ? KVS_E_INVALID : rc;
	rc = manager_client_open(manager, ret_client);
	if (rc == KVS_E_FULL)
		return err_set(err, rc, "clients: as many are open as may be");
	return api_explain(rc, "client", err);
}

int kvs_client_close(struct kvs *kvs, kvs_client client)
{
	int                   rc;
	struct manager *const manager = api_enter(kvs, &rc, NULL);

	return manager ? manager_client_close(manager, client) : rc;
}

int kvs_client_fd(struct kvs *kvs, kvs_client client)
{
	int                   rc;
	struct manager *const manager = api_enter(kvs, &rc, NULL);

	return manager ? manager_client_fd(manager, client) : rc;
}

/* --- batches ---------------------------------------------------------------------------------- */

/* What all of them need; rc is 0, or why the call did not happen. */
static struct manager *enter_batch(struct kvs *kvs, const struct kvs_key *keys, uint32_t count,
				   const int *ret_rc, int *rc, struct kvs_error *err)
{
	struct manager *const manager = api_enter(kvs, rc, err);

	if (*rc == 0)
		*rc = API_NEED(keys, err);
	if (*rc == 0)
		*rc = api_count(count, KVS_BATCH_MAX, err);
	if (*rc == 0)
		*rc = API_NEED(ret_rc, err);
	return *rc < 0 ? NULL : manager;
}

int kvs_reserve_write(struct kvs *kvs, kvs_client client, const struct kvs_key *keys,
		      uint32_t count, const struct kvs_write *write, struct kvs_span *ret_spans,
		      int *ret_rc, struct kvs_error *err)
{
	struct kvs_write      whole = KVS_WRITE_INIT;
	int                   rc;
	struct manager *const manager = enter_batch(kvs, keys, count, ret_rc, &rc, err);

	if (!manager || API_NEED(ret_spans, err) < 0)
		return manager ? KVS_E_INVALID : rc;
	if (write && api_take("write", write, &whole, sizeof(whole), err) < 0)
		return KVS_E_INVALID;
	rc = manager_reserve(manager, client, keys, count, &whole, ret_spans, ret_rc);
	return api_explain(rc, "client", err);
}

int kvs_finish_write(struct kvs *kvs, kvs_client client, const struct kvs_key *keys, uint32_t count,
		     int *ret_rc, struct kvs_error *err)
{
	int                   rc;
	struct manager *const manager = enter_batch(kvs, keys, count, ret_rc, &rc, err);

	return manager ? api_explain(manager_finish(manager, client, keys, count, ret_rc), "client",
				     err)
		       : rc;
}

int kvs_discard_write(struct kvs *kvs, kvs_client client, const struct kvs_key *keys,
		      uint32_t count, int *ret_rc, struct kvs_error *err)
{
	int                   rc;
	struct manager *const manager = enter_batch(kvs, keys, count, ret_rc, &rc, err);

	return manager ? api_explain(manager_discard(manager, client, keys, count, ret_rc),
				     "client", err)
		       : rc;
}

int kvs_lock(struct kvs *kvs, kvs_client client, const struct kvs_key *keys, uint32_t count,
	     struct kvs_span *ret_spans, int *ret_rc, struct kvs_error *err)
{
	int                   rc;
	struct manager *const manager = enter_batch(kvs, keys, count, ret_rc, &rc, err);

	if (!manager || API_NEED(ret_spans, err) < 0)
		return manager ? KVS_E_INVALID : rc;
	rc = manager_lock(manager, client, keys, count, ret_spans, ret_rc);
	return api_explain(rc, "client", err);
}

int kvs_unlock(struct kvs *kvs, kvs_client client, const struct kvs_key *keys, uint32_t count,
	       int *ret_rc, struct kvs_error *err)
{
	int                   rc;
	struct manager *const manager = enter_batch(kvs, keys, count, ret_rc, &rc, err);

	return manager ? api_explain(manager_unlock(manager, client, keys, count, ret_rc), "client",
				     err)
		       : rc;
}

int kvs_touch(struct kvs *kvs, const struct kvs_key *keys, uint32_t count)
{
	const int             nothing = 0;
	int                   rc;
	struct manager *const manager = enter_batch(kvs, keys, count, &nothing, &rc, NULL);

	return manager ? manager_touch(manager, keys, count) : rc;
}

int kvs_remove(struct kvs *kvs, const struct kvs_key *keys, uint32_t count, bool force, int *ret_rc,
	       struct kvs_error *err)
{
	int                   rc;
	struct manager *const manager = enter_batch(kvs, keys, count, ret_rc, &rc, err);

	return manager ? api_explain(manager_remove(manager, keys, count, force, ret_rc), "kvs",
				     err)
		       : rc;
}

int kvs_clear(struct kvs *kvs, const struct kvs_namespace *space, bool force, uint64_t *ret_removed,
	      uint64_t *ret_left)
{
	uint64_t              removed, left;
	int                   rc;
	struct manager *const manager = api_enter(kvs, &rc, NULL);

	if (!manager)
		return rc;
	manager_clear(manager, space, force, &removed, &left);
	if (ret_removed)
		*ret_removed = removed;
	if (ret_left)
		*ret_left = left;
	return 0;
}

int kvs_quota(struct kvs *kvs, const struct kvs_namespace *tenant, uint64_t bytes,
	      struct kvs_error *err)
{
	int                   rc;
	struct manager *const manager = api_enter(kvs, &rc, err);

	if (!manager || API_NEED(tenant, err) < 0)
		return manager ? KVS_E_INVALID : rc;
	rc = manager_quota(manager, tenant, bytes);
	if (rc == KVS_E_UNSUPPORTED)
		return err_set(err, rc, "quota: namespaces are not tenants; open with isolate");
	return api_explain(rc, "tenant", err);
}
