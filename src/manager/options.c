/* SPDX-License-Identifier: Apache-2.0 */
#include "manager/options.h"

#include <inttypes.h>

#include "adapter/adapter.h"
#include "arena/arena.h"
#include "base/text.h"
#include "evict/evict.h"
#include "exec/exec.h"

/* --- one field -------------------------------------------------------------------------------- */

static int check_count(const char *field, uint64_t value, uint64_t least, uint64_t most, uint64_t multiple,
		       struct kvs_error *err)
{
	if (value < least || value > most) {
		return err_set(err, KVS_E_INVALID,
			       "%s: %" PRIu64 " is out of range; use %" PRIu64 " to %" PRIu64, field,
			       value, least, most);
	}
	if (multiple && value % multiple != 0) {
		return err_set(err, KVS_E_INVALID, "%s: %" PRIu64 " is not a multiple of %" PRIu64,
			       field, value, multiple);
	}
	return 0;
}

/* Forever is a word of its own, beyond every range. */
static int check_duration(const char *field, uint64_t value, uint64_t least, uint64_t most,
			  struct kvs_error *err)
{
	return value == KVS_FOREVER ? 0 : check_count(field, value, least, most, 0, err);
}

static int check_number(const char *field, double value, double least, double most, struct kvs_error *err)
{
	if (value >= least && value <= most)
		return 0;
	return err_set(err, KVS_E_INVALID, "%s: %g is out of range; use %g to %g", field, value, least, most);
}

static int check_text(const char *field, const char *value, struct kvs_error *err)
{
	return value ? 0 : err_set(err, KVS_E_INVALID, "%s: NULL; KVS_OPTIONS_INIT sets a name", field);
}

#define CHECK_SIZE(field, least, most, multiple) \
	check_count(#field, options->field, least, most, multiple, err)
#define CHECK_COUNT(field, least, most, multiple) \
	check_count(#field, options->field, least, most, multiple, err)
#define CHECK_DURATION(field, least, most, multiple) \
	check_duration(#field, options->field, least, most, err)
#define CHECK_NUMBER(field, least, most, multiple) check_number(#field, options->field, least, most, err)
#define CHECK_NAME(field, least, most, multiple)   check_text(#field, options->field, err)
#define CHECK_POLICY(field, least, most, multiple) check_text(#field, options->field, err)
#define CHECK_SWITCH(field, least, most, multiple) 0
#define CHECK_LIST(field, least, most, multiple)   0

static int check_fields(const struct kvs_options *options, struct kvs_error *err)
{
	int rc = 0;

#define CHECK(kind, field, least, most, multiple, fallback, help) \
	if (rc == 0) \
		rc = CHECK_##kind(field, least, most, multiple);
	MANAGER_OPTIONS(CHECK)
#undef CHECK
	return rc;
}

/* --- fields that depend on each other --------------------------------------------------------- */

/* An object and its trailer do not fit into one page, and Host takes no piece that can hold none. */
#define LAST_PIECE_LEAST (2 * (uint64_t)ARENA_TRAILER_BYTES)

static int check_host_bytes(const struct kvs_options *options, struct kvs_error *err)
{
	const uint64_t last = options->host_bytes % ARENA_SLICE_BYTES;

	if (last == 0 || last >= LAST_PIECE_LEAST)
		return 0;
	return err_set(err, KVS_E_INVALID,
		       "host_bytes: %" PRIu64 " are whole GiB and %" PRIu64
		       "; leave that out, or use at least %" PRIu64 " more than whole GiB",
		       options->host_bytes, last, LAST_PIECE_LEAST);
}

static int check_sizes(const struct kvs_options *options, struct kvs_error *err)
{
	if (check_host_bytes(options, err) < 0)
		return KVS_E_INVALID;
	if (options->object_bytes > options->host_bytes - ARENA_TRAILER_BYTES) {
		return err_set(err, KVS_E_INVALID,
			       "object_bytes: %" PRIu64 " and a trailer of %u are more than host_bytes, %"
			       PRIu64, options->object_bytes, ARENA_TRAILER_BYTES, options->host_bytes);
	}
	if (options->low > options->high) {
		return err_set(err, KVS_E_INVALID, "low: %g is more than high, %g", options->low,
			       options->high);
	}
	if (options->quota_bytes && !options->isolate) {
		return err_set(err, KVS_E_INVALID, "quota_bytes: %" PRIu64 " needs isolate",
			       options->quota_bytes);
	}
	return 0;
}

uint32_t manager_load_ops(const struct kvs_options *options)
{
	return options->prefetch_in_flight * ((options->prefetch_keys + OP_KEYS_MAX - 1) / OP_KEYS_MAX);
}

/* Those under way that were cancelled keep their place beside the others. */
static int check_prefetches(const struct kvs_options *options, struct kvs_error *err)
{
	const uint32_t requests = options->prefetches + options->prefetch_in_flight;

	if (requests <= OPTIONS_KEYS_MAX / options->prefetch_keys)
		return 0;
	return err_set(err, KVS_E_INVALID,
		       "prefetches, prefetch_in_flight, prefetch_keys: %u and %u of %u keys are more than %u keys in all",
		       options->prefetches, options->prefetch_in_flight, options->prefetch_keys,
		       OPTIONS_KEYS_MAX);
}

static int check_work(const struct kvs_options *options, struct kvs_error *err)
{
	const uint32_t workers = options->query_workers + options->get_workers + options->put_workers;

	if (workers > EXEC_WORKERS_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "query_workers, get_workers, put_workers: %u threads a store; use at most %u",
			       workers, EXEC_WORKERS_MAX);
	}
	if (manager_load_ops(options) > ADAPTER_OPS_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "prefetch_in_flight, prefetch_keys: %u requests of %u keys are more than %u at once",
			       options->prefetch_in_flight, options->prefetch_keys,
			       ADAPTER_OPS_MAX * OP_KEYS_MAX);
	}
	return check_prefetches(options, err);
}

static int check_evict(const char *field, const char *name, struct kvs_error *err)
{
	char names[80];

	if (evict_known(name, NULL) == 0)
		return 0;
	return err_set(err, KVS_E_INVALID, "%s: \"%.40s\" is not known; use one of: %s", field, name,
		       text_join(evict_names, " ", names, sizeof(names)));
}

int manager_options_check(const struct kvs_options *options, struct kvs_error *err)
{
	int rc = check_fields(options, err);

	if (rc == 0)
		rc = check_sizes(options, err);
	if (rc == 0)
		rc = check_work(options, err);
	if (rc == 0)
		rc = check_evict("host_policy", options->host_policy, err);
	if (rc == 0)
		rc = check_evict("store_evict_policy", options->store_evict_policy, err);
	return rc;
}
