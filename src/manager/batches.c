/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of keys: to Host, under the client's name there.
 *
 * A client that was closed is KVS_E_STALE, before the call or in the middle of it.
 */
#include "manager/parts.h"

/* Host says of its client what users hear of theirs. */
static int stale(int rc)
{
	return rc == KVS_E_CLOSED ? KVS_E_STALE : rc;
}

/* A length of none, which Host refuses, where the row has one that nobody may have. */
static void lengths(const struct manager *manager, const struct kvs_write *write, uint32_t count,
		    uint64_t *ret_bytes)
{
	const uint64_t most = manager->options.object_bytes;
	uint64_t       same = write && write->bytes ? write->bytes : most;
	uint32_t       i;

	if (same > most)
		same = 0;
	if (write && write->bytes_each) {
		for (i = 0; i < count; i++)
			ret_bytes[i] = write->bytes_each[i] <= most ? write->bytes_each[i] : 0;
	} else {
		for (i = 0; i < count; i++)
			ret_bytes[i] = same;
	}
}

int manager_reserve(struct manager *manager, kvs_client client, const struct kvs_key *keys,
		    uint32_t count, const struct kvs_write *write, struct kvs_span *ret_spans,
		    int *ret_rc)
{
	const struct host_writer writer = { .client = manager_host_client(manager, client) };
	uint64_t                 bytes[KVS_BATCH_MAX];
	unsigned                 flags = 0;

	if (!writer.client)
		return KVS_E_STALE;
	if (write && write->temporary)
		flags |= HOST_TEMPORARY;
	if (write && write->whole)
		flags |= HOST_WHOLE;
	lengths(manager, write, count, bytes);
	return stale(host_reserve(manager->host, writer, keys, bytes, count, flags, os_now_ns(),
				  ret_spans, ret_rc));
}

int manager_finish(struct manager *manager, kvs_client client, const struct kvs_key *keys,
		   uint32_t count, int *ret_rc)
{
	const struct host_writer writer = { .client = manager_host_client(manager, client) };

	if (!writer.client)
		return KVS_E_STALE;
	return stale(host_finish(manager->host, writer, keys, count, os_now_ns(), ret_rc));
}

int manager_discard(struct manager *manager, kvs_client client, const struct kvs_key *keys,
		    uint32_t count, int *ret_rc)
{
	const struct host_writer writer = { .client = manager_host_client(manager, client) };

	return writer.client ? stale(host_discard(manager->host, writer, keys, count, ret_rc))
			     : KVS_E_STALE;
}

int manager_lock(struct manager *manager, kvs_client client, const struct kvs_key *keys,
		 uint32_t count, struct kvs_span *ret_spans, int *ret_rc)
{
	const host_client host = manager_host_client(manager, client);

	if (!host)
		return KVS_E_STALE;
	return stale(
		host_lock(manager->host, host, 1, keys, count, os_now_ns(), ret_spans, ret_rc));
}

int manager_unlock(struct manager *manager, kvs_client client, const struct kvs_key *keys,
		   uint32_t count, int *ret_rc)
{
	const host_client host = manager_host_client(manager, client);

	return host ? stale(host_unlock(manager->host, host, 1, keys, count, os_now_ns(), ret_rc))
		    : KVS_E_STALE;
}

int manager_touch(struct manager *manager, const struct kvs_key *keys, uint32_t count)
{
	return host_touch(manager->host, keys, count);
}

int manager_remove(struct manager *manager, const struct kvs_key *keys, uint32_t count, bool force,
		   int *ret_rc)
{
	return host_remove(manager->host, keys, count, force, ret_rc);
}

void manager_clear(struct manager *manager, const struct kvs_namespace *space, bool force,
		   uint64_t *ret_removed, uint64_t *ret_left)
{
	host_clear(manager->host, space, force, ret_removed, ret_left);
}

int manager_quota(struct manager *manager, const struct kvs_namespace *tenant, uint64_t bytes)
{
	return host_quota(manager->host, tenant, bytes, os_now_ns());
}
