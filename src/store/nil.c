/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store that keeps nothing: it measures everything above a store.
 *
 * No call touches a span.  Every put succeeds; with hit=1, the default, every key is found and every
 * get succeeds with whatever the block held before, with hit=0 nothing is ever found.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/kind.h"
#include "store/spec.h"

struct nil {
	struct kvs_store store;
	uint64_t         block_bytes;
	enum kvs_result  found;
};

static int answer(enum kvs_result *result, uint32_t count, enum kvs_result all, int rc)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		result[i] = all;
	return rc;
}

static int move(const struct nil *nil, const struct kvs_span *span, uint32_t count,
		enum kvs_result *result, enum kvs_result all, bool *ret_retired)
{
	uint32_t i;

	*ret_retired = true;
	for (i = 0; i < count; i++) {
		if (span[i].bytes == 0 || span[i].bytes > nil->block_bytes)
			return answer(result, count, KVS_RESULT_UNKNOWN, KVS_E_INVALID);
	}
	return answer(result, count, all, 0);
}

static int nil_get(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		   uint32_t count, enum kvs_result *result, bool *ret_retired)
{
	const struct nil *nil = (struct nil *)store;

	(void)key;
	return move(nil, span, count, result, nil->found, ret_retired);
}

static int nil_put(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		   uint32_t count, enum kvs_result *result, bool *ret_retired)
{
	(void)key;
	return move((struct nil *)store, span, count, result, KVS_RESULT_DONE, ret_retired);
}

/* exists and remove: what is found is removed, and found again. */
static int nil_find(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		    enum kvs_result *result)
{
	(void)key;
	return answer(result, count, ((struct nil *)store)->found, 0);
}

static void nil_describe(struct kvs_store *store, struct kvs_store_info *ret_info)
{
	(void)store;
	*ret_info = (struct kvs_store_info){
		.memory_bytes = sizeof(struct nil),
		.failures_retire = true,
		.note = "keeps nothing: a get leaves the block as it was; for benchmarks only"
	};
}

static int nil_close(struct kvs_store *store)
{
	free(store);
	return 0;
}

static int nil_open(const struct kvs_store_config *config, struct kvs_store **ret_store,
		    struct kvs_error *err)
{
	const char *hit = spec_option(config, "hit");
	struct nil *nil;

	if (*config->place) {
		return err_set(err, KVS_E_INVALID, "store: \"%.64s\" is too much; nil takes no path",
			       config->place);
	}
	if (hit && strcmp(hit, "0") != 0 && strcmp(hit, "1") != 0)
		return err_set(err, KVS_E_INVALID, "store.hit: \"%.64s\" is neither 0 nor 1", hit);
	nil = malloc(sizeof(*nil));
	if (!nil)
		return err_set(err, -ENOMEM, "store: no memory");
	*nil = (struct nil){ .store = { &store_nil_ops },
			     .block_bytes = config->block_bytes,
			     .found = hit && *hit == '0' ? KVS_RESULT_MISSING : KVS_RESULT_DONE };
	*ret_store = &nil->store;
	return 0;
}

static const char *const nil_options[] = { "hit", NULL };

const struct kvs_store_ops store_nil_ops = {
	.abi = KVS_STORE_ABI,
	.name = "nil",
	.options = nil_options,
	.open = nil_open,
	.close = nil_close,
	.describe = nil_describe,
	.exists = nil_find,
	.get = nil_get,
	.put = nil_put,
	.remove = nil_find,
};
