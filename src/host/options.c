/* SPDX-License-Identifier: Apache-2.0 */
#include "host/options.h"

#include <inttypes.h>

#include "evict/evict.h"
#include "host/space.h"

#define PAGE_MASK (SPACE_PAGE_BYTES - 1)

static int check_range(const char *field, uint64_t value, uint64_t least, uint64_t most,
		       struct kvs_error *err)
{
	if (value >= least && value <= most)
		return 0;
	return err_set(err, KVS_E_INVALID, "%s: %" PRIu64 "; use %" PRIu64 " to %" PRIu64, field,
		       value, least, most);
}

static int check_field(const struct host_options *options, uint32_t i, struct kvs_error *err)
{
	const struct kvs_span *const field = &options->fields[i];
	const uint64_t               most = (uint64_t)SPACE_FIELD_PAGES << SPACE_PAGE_BITS;

	if (!field->ptr || (uintptr_t)field->ptr & PAGE_MASK) {
		return err_set(err, KVS_E_INVALID,
			       "fields[%u].ptr: %p; it must be on a page of 4 KiB", i, field->ptr);
	}
	if (field->bytes & PAGE_MASK || field->bytes < 2 * SPACE_PAGE_BYTES ||
	    field->bytes > most) {
		return err_set(err, KVS_E_INVALID,
			       "fields[%u].bytes: %zu; use a multiple of 4 KiB, 8 KiB to 1 GiB", i,
			       field->bytes);
	}
	return 0;
}

/* Fields are few thousand at most, and opened once. */
static int check_apart(const struct host_options *options, uint32_t i, struct kvs_error *err)
{
	const uint8_t *const base = options->fields[i].ptr;
	uint32_t             j;

	for (j = 0; j < i; j++) {
		const uint8_t *const other = options->fields[j].ptr;

		if (base < other + options->fields[j].bytes &&
		    other < base + options->fields[i].bytes) {
			return err_set(err, KVS_E_INVALID, "fields[%u]: it overlaps fields[%u]", i,
				       j);
		}
	}
	return 0;
}

static int check_fields(const struct host_options *options, struct kvs_error *err)
{
	uint32_t i;

	if (!options->fields)
		return err_set(err, KVS_E_INVALID, "fields: none; the memory is needed");
	if (check_range("field_count", options->field_count, 1, SPACE_FIELDS_MAX, err) < 0)
		return KVS_E_INVALID;
	for (i = 0; i < options->field_count; i++) {
		if (check_field(options, i, err) < 0 || check_apart(options, i, err) < 0)
			return KVS_E_INVALID;
	}
	return 0;
}

static int check_tables(const struct host_options *options, struct kvs_error *err)
{
	if (check_range("object_max", options->object_max, 1, HOST_OBJECTS_MAX, err) < 0 ||
	    check_range("lock_max", options->lock_max, 1, HOST_OBJECTS_MAX, err) < 0 ||
	    check_range("client_max", options->client_max, 1, HOST_CLIENTS_MAX, err) < 0 ||
	    check_range("shard_count", options->shard_count, 1, HOST_SHARDS_MAX, err) < 0)
		return KVS_E_INVALID;
	if (options->shard_count & (options->shard_count - 1)) {
		return err_set(err, KVS_E_INVALID, "shard_count: %u; use a power of two",
			       options->shard_count);
	}
	return 0;
}

/* Written so that a value which is no number fails as well. */
static int check_marks(const struct host_options *options, struct kvs_error *err)
{
	if (options->low > 0 && options->low <= options->high && options->high <= 1)
		return 0;
	return err_set(err, KVS_E_INVALID, "low, high: %g, %g; use 0 < low <= high <= 1",
		       options->low, options->high);
}

static int check_times(const struct host_options *options, struct kvs_error *err)
{
	if (check_range("write_ttl_ns", options->write_ttl_ns, 1, HOST_FOREVER, err) < 0)
		return KVS_E_INVALID;
	return check_range("read_ttl_ns", options->read_ttl_ns, 1, HOST_FOREVER, err);
}

static int check_listeners(const struct host_options *options, struct kvs_error *err)
{
	uint32_t i;

	if (check_range("listener_count", options->listener_count, 0, HOST_LISTENERS_MAX, err) < 0)
		return KVS_E_INVALID;
	for (i = 0; i < options->listener_count; i++) {
		if (!options->listeners[i].notify) {
			return err_set(err, KVS_E_INVALID,
				       "listeners[%u].notify: none; a listener needs one", i);
		}
		if (options->listeners[i].events >> HOST_EVENT_COUNT) {
			return err_set(err, KVS_E_INVALID,
				       "listeners[%u].events: %#x; use bits 0 to %u", i,
				       options->listeners[i].events, HOST_EVENT_COUNT - 1);
		}
	}
	return 0;
}

int options_check(const struct host_options *options, struct kvs_error *err)
{
	if (check_fields(options, err) < 0 || check_tables(options, err) < 0 ||
	    check_marks(options, err) < 0 || check_times(options, err) < 0 ||
	    check_listeners(options, err) < 0)
		return KVS_E_INVALID;
	if (!options->policy)
		return err_set(err, KVS_E_INVALID, "policy: none; name one");
	if (evict_known(options->policy, err) < 0)
		return KVS_E_INVALID;
	if (options->quota_bytes > 0 && !options->isolate) {
		return err_set(err, KVS_E_INVALID,
			       "quota_bytes: %" PRIu64
			       " without isolate; quotas need tenants apart",
			       options->quota_bytes);
	}
	return 0;
}
