/* SPDX-License-Identifier: Apache-2.0 */
/* What belongs to the library as a whole: its version, and how public functions see arguments. */
#include <kvstrata/kvstrata.h>

#include <string.h>

#include "api/parts.h"

#define TEXT(number) #number
#define VERSION(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

const char *kvs_version(void)
{
	return VERSION(KVS_VERSION_MAJOR, KVS_VERSION_MINOR, KVS_VERSION_PATCH);
}

int api_need(const void *pointer, const char *name, struct kvs_error *err)
{
	return pointer ? 0 : err_set(err, KVS_E_INVALID, "%s: NULL", name);
}

int api_count(uint32_t count, uint32_t most, struct kvs_error *err)
{
	if (count >= 1 && count <= most)
		return 0;
	return err_set(err, KVS_E_INVALID, "count: %u is out of range; use 1 to %u", count, most);
}

int api_take(const char *name, const void *from, void *ret, size_t room, struct kvs_error *err)
{
	size_t bytes;

	memcpy(&bytes, from, sizeof(bytes));
	if (bytes == 0)
		bytes = room;
	if (bytes < sizeof(bytes) || bytes > room) {
		return err_set(err, KVS_E_INVALID, "%s: struct_size: %zu; use 0 or %zu to %zu", name,
			       bytes, sizeof(bytes), room);
	}
	memset(ret, 0, room);
	memcpy(ret, from, bytes);
	return 0;
}

int api_explain(int rc, const char *subject, struct kvs_error *err)
{
	return rc < 0 ? err_set(err, rc, "%s: %s", subject, kvs_strerror(rc)) : rc;
}
