/* SPDX-License-Identifier: Apache-2.0 */
/* Stores at run time, and figures. */
#include <string.h>

#include "api/parts.h"

int kvs_flush(struct kvs *kvs, uint64_t timeout_ns)
{
	int                   rc;
	struct manager *const manager = api_enter(kvs, &rc, NULL);

	return manager ? manager_flush(manager, timeout_ns) : rc;
}

int kvs_store_add(struct kvs *kvs, const char *spec, uint32_t *ret_number, struct kvs_error *err)
{
	uint32_t              number;
	int                   rc;
	struct manager *const manager = api_enter(kvs, &rc, err);

	if (!manager || API_NEED(spec, err) < 0)
		return manager ? KVS_E_INVALID : rc;
	rc = manager_store_add(manager, spec, &number, err);
	if (rc == 0 && ret_number)
		*ret_number = number;
	return rc;
}

int kvs_store_remove(struct kvs *kvs, uint32_t number, uint64_t timeout_ns, struct kvs_error *err)
{
	int                   rc;
	struct manager *const manager = api_enter(kvs, &rc, err);

	return manager ? manager_store_remove(manager, number, timeout_ns, err) : rc;
}

int kvs_status(struct kvs *kvs, struct kvs_status *ret_status)
{
	struct kvs_status     status;
	size_t                bytes;
	int                   rc;
	struct manager *const manager = api_enter(kvs, &rc, NULL);

	if (!manager || !ret_status || ret_status->struct_size < sizeof(ret_status->struct_size))
		return manager ? KVS_E_INVALID : rc;
	bytes = ret_status->struct_size < sizeof(status) ? ret_status->struct_size : sizeof(status);
	manager_status(manager, &status);
	status.struct_size = ret_status->struct_size;
	memcpy(ret_status, &status, bytes);
	return 0;
}

int kvs_metrics(struct kvs *kvs, char *ret_text, size_t room)
{
	int                   rc;
	struct manager *const manager = api_enter(kvs, &rc, NULL);

	if (!manager || (room > 0 && !ret_text))
		return manager ? KVS_E_INVALID : rc;
	return manager_metrics(manager, ret_text, room);
}
