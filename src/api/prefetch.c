/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetches: arguments, then the manager's answer. */
#include <string.h>

#include "api/parts.h"

int kvs_prefetch_submit(struct kvs *kvs, kvs_client client, const struct kvs_key *keys,
			uint32_t count, const struct kvs_ask *ask, kvs_prefetch *ret_prefetch,
			struct kvs_error *err)
{
	struct kvs_ask        whole = KVS_ASK_INIT;
	int                   rc;
	struct manager *const manager = api_enter(kvs, &rc, err);

	if (rc == 0)
		rc = API_NEED(keys, err);
	if (rc == 0)
		rc = api_count(count, manager_prefetch_keys(manager), err);
	if (rc == 0)
		rc = API_NEED(ret_prefetch, err);
	if (rc == 0 && ask)
		rc = api_take("ask", ask, &whole, sizeof(whole), err);
	if (rc < 0)
		return rc;
	if (!whole.windows != !whole.group_count) {
		return err_set(err, KVS_E_INVALID, "ask: windows and group_count: %s",
			       whole.windows ? "there are windows of 0 groups"
					    : "there are groups without windows");
	}
	return manager_submit(manager, client, keys, count, &whole, ret_prefetch, err);
}

int kvs_prefetch_info(struct kvs *kvs, kvs_prefetch prefetch, struct kvs_prefetch_info *ret_info)
{
	struct kvs_prefetch_info info;
	size_t                   bytes;
	int                      rc;
	struct manager *const    manager = api_enter(kvs, &rc, NULL);

	if (!manager || !ret_info || ret_info->struct_size < sizeof(ret_info->struct_size))
		return manager ? KVS_E_INVALID : rc;
	bytes = ret_info->struct_size < sizeof(info) ? ret_info->struct_size : sizeof(info);
	rc = manager_info(manager, prefetch, &info);
	if (rc == 0) {
		info.struct_size = ret_info->struct_size;
		memcpy(ret_info, &info, bytes);
	}
	return rc;
}

int kvs_prefetch_poll(struct kvs *kvs, kvs_prefetch prefetch, uint32_t *ret_chunks)
{
	int                   rc;
	struct manager *const manager = api_enter(kvs, &rc, NULL);

	if (!manager || !ret_chunks)
		return manager ? KVS_E_INVALID : rc;
	return manager_poll(manager, prefetch, ret_chunks);
}

int kvs_prefetch_wait(struct kvs *kvs, kvs_prefetch prefetch, uint64_t timeout_ns,
		      uint32_t *ret_chunks)
{
	int                   rc;
	struct manager *const manager = api_enter(kvs, &rc, NULL);

	if (!manager || !ret_chunks)
		return manager ? KVS_E_INVALID : rc;
	return manager_wait(manager, prefetch, timeout_ns, ret_chunks);
}

int kvs_prefetch_spans(struct kvs *kvs, kvs_prefetch prefetch, struct kvs_span *ret_spans,
		       uint32_t span_max, uint32_t *ret_count)
{
	int                   rc;
	struct manager *const manager = api_enter(kvs, &rc, NULL);

	if (!manager || !ret_count || (span_max > 0 && !ret_spans))
		return manager ? KVS_E_INVALID : rc;
	return manager_spans(manager, prefetch, ret_spans, span_max, ret_count);
}

int kvs_prefetch_read(struct kvs *kvs, kvs_prefetch prefetch,
		      int (*use)(void *arg, const struct kvs_span *spans, uint32_t count),
		      void *arg)
{
	int                   rc;
	struct manager *const manager = api_enter(kvs, &rc, NULL);

	if (!manager || !use)
		return manager ? KVS_E_INVALID : rc;
	return manager_read(manager, prefetch, use, arg);
}

int kvs_prefetch_release(struct kvs *kvs, kvs_prefetch prefetch)
{
	int                   rc;
	struct manager *const manager = api_enter(kvs, &rc, NULL);

	return manager ? manager_release(manager, prefetch) : rc;
}
