/* SPDX-License-Identifier: Apache-2.0 */
/* The table of stores. */
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arena/arena.h"
#include "store/kind.h"
#include "store/plugin.h"
#include "store/spec.h"

/* One line a kind. */
#define STORE_KINDS(X) \
	X(mem) \
	X(mooncake) \
	X(nil) \
	X(resp) \
	X(strata) \
	X(fault)

static const struct kvs_store_ops *const kinds[] = {
#define STORE_KIND(name) &store_##name##_ops,
	STORE_KINDS(STORE_KIND)
#undef STORE_KIND
};

#define BLOCK_MULTIPLE UINT64_C(4096)

/* Objects are counted in 32 bits, and a block never crosses a 1 GiB slice of the Host arena. */
#define BLOCK_BYTES_MAX (UINT64_C(1) << 30)

static const struct kvs_store_ops *kind_find(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_COUNT(kinds); i++) {
		if (strcmp(kinds[i]->name, name) == 0)
			return kinds[i];
	}
	return NULL;
}

static int refuse_kind(const char *name, struct kvs_error *err)
{
	char   list[128] = "none";
	size_t used = strlen(list);
	size_t i;

	if (strcmp(name, "none") == 0)
		return err_set(err, KVS_E_INVALID, "store: none takes no path and no options");
	for (i = 0; i < ARRAY_COUNT(kinds) && used < sizeof(list); i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, ", %s", kinds[i]->name);
	if (used < sizeof(list))
		snprintf(list + used, sizeof(list) - used, ", plugin");
	return err_set(err, KVS_E_INVALID, "store: \"%.64s\" is not a kind of store; use %s", name,
		       list);
}

static int open_parts(struct store_spec *parts, uint64_t block_bytes, const char *evict_policy,
		      struct kvs_store **ret_store, struct kvs_error *err)
{
	const bool                  is_plugin = strcmp(parts->kind, "plugin") == 0;
	const struct kvs_store_ops *kind = kind_find(parts->kind);
	const int                   rc = is_plugin ? plugin_load(parts->place, &kind, err) : 0;

	if (rc < 0)
		return rc;
	if (!kind)
		return refuse_kind(parts->kind, err);
	parts->kind = kind->name;
	if (spec_check(parts, kind->options, err) < 0)
		return KVS_E_INVALID;

	const struct kvs_store_config config = { .struct_size = sizeof(config),
						 .place = parts->place,
						 .options = parts->options,
						 .option_count = parts->option_count,
						 .block_bytes = block_bytes,
						 .trailer_bytes = ARENA_TRAILER_BYTES,
						 .evict_policy = evict_policy };

	return is_plugin ? plugin_open(kind, &config, ret_store, err)
			 : kind->open(&config, ret_store, err);
}

int store_open(const char *spec, uint64_t block_bytes, const char *evict_policy,
	       struct kvs_store **ret_store, struct kvs_error *err)
{
	struct store_spec parts;
	int               rc;

	if (strcmp(spec, "none") == 0) {
		*ret_store = NULL;
		return 0;
	}
	if (block_bytes == 0 || block_bytes > BLOCK_BYTES_MAX ||
	    block_bytes % BLOCK_MULTIPLE != 0) {
		return err_set(err, KVS_E_INVALID,
			       "block_bytes: %" PRIu64 " is not a multiple of 4 KiB up to 1 GiB",
			       block_bytes);
	}
	rc = spec_parse(spec, &parts, err);
	if (rc == 0)
		rc = open_parts(&parts, block_bytes, evict_policy, ret_store, err);
	/* A password may be among the options. */
	explicit_bzero(parts.text, sizeof(parts.text));
	return rc;
}
