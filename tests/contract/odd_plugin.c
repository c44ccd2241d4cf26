/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins with one thing wrong each; ODD_* of the build says which. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <kvstrata/store.h>

static int look(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		enum kvs_result *result)
{
	(void)store, (void)key, (void)count, (void)result;
	return 0;
}

static int move(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		uint32_t count, enum kvs_result *result, bool *ret_retired)
{
	(void)store, (void)key, (void)span, (void)count, (void)result, (void)ret_retired;
	return 0;
}

static void describe(struct kvs_store *store, struct kvs_store_info *ret_info)
{
	(void)store, (void)ret_info;
}

static int odd_close(struct kvs_store *store)
{
	(void)store;
	return 0;
}

/* Refuses everything, with what it was given. */
static int odd_open(const struct kvs_store_config *config, struct kvs_store **ret_store,
		    struct kvs_error *err)
{
	size_t   used = 0;
	uint32_t i;

	(void)ret_store;
#ifdef ODD_STORELESS
	return 0;
#endif
#ifdef ODD_SILENT
	return -EACCES;
#endif
	for (i = 0; i < config->option_count; i++) {
		used += (size_t)snprintf(err->message + used, sizeof(err->message) - used, "%s=%s;",
					 config->options[i].key, config->options[i].value);
	}
	snprintf(err->message + used, sizeof(err->message) - used, "%llu+%llu",
		 (unsigned long long)config->block_bytes, (unsigned long long)config->trailer_bytes);
	return -EPERM;
}

#ifdef ODD_KNOWING
static const char *const options[] = { "width", "depth", NULL };
#endif

static const struct kvs_store_ops ops = {
#ifdef ODD_ABI
	.abi = 4711,
#else
	.abi = KVS_STORE_ABI,
#endif
	.name = "odd",
#ifdef ODD_KNOWING
	.options = options,
#endif
	.open = odd_open,
	.close = odd_close,
	.describe = describe,
	.exists = look,
#ifndef ODD_GETLESS
	.get = move,
#endif
	.put = move,
	.remove = look,
#ifdef ODD_LOCKED
	.lock = look,
#endif
};

#if defined(ODD_TABLELESS)
const struct kvs_store_ops *kvs_store_plugin(void);
__attribute__((visibility("default"))) const struct kvs_store_ops *kvs_store_plugin(void)
{
	return ops.name ? NULL : &ops;
}
#elif defined(ODD_NAMELESS)
__attribute__((visibility("default"))) const struct kvs_store_ops *odd_plugin(void);
const struct kvs_store_ops *odd_plugin(void)
{
	return &ops;
}
#else
KVS_STORE_PLUGIN(ops)
#endif
