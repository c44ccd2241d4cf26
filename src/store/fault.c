/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys go to the inner store one by one, so that a fault hits one key of a batch and its neighbours
 * go on.
 */
#include "store/fault.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/prng.h"

struct fault {
	struct kvs_store   store;
	struct kvs_store  *inner;
	struct store_fault plan;
	_Atomic uint64_t   gets;
	_Atomic uint64_t   puts;
};

static struct fault *fault_of(struct kvs_store *store)
{
	return (struct fault *)store;
}

/* Relaxed: the counts order nothing, they only number the calls. */
static uint64_t next_of(_Atomic uint64_t *counter)
{
	return atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static bool is_due(const struct fault *fault, uint64_t number, uint64_t every)
{
	return every && (number + mix64(fault->plan.seed) % every) % every == 0;
}

static void flip_byte(const struct fault *fault, uint64_t number, const struct kvs_span *span)
{
	((uint8_t *)span->ptr)[mix64(fault->plan.seed ^ number) % span->bytes] ^= 1;
}

static int fault_get(struct kvs_store *store, const struct kvs_key *key,
		     const struct kvs_span *span, uint32_t count, enum kvs_result *result,
		     bool *ret_retired)
{
	struct fault *fault = fault_of(store);
	bool          retired = true;
	uint32_t      i;

	for (i = 0; i < count; i++) {
		const uint64_t number = next_of(&fault->gets);
		bool           one_retired = false;

		result[i] = KVS_RESULT_FAILED;
		if (is_due(fault, number, fault->plan.fail_get_every))
			continue;
		(void)fault->inner->ops->get(fault->inner, &key[i], &span[i], 1, &result[i],
					     &one_retired);
		retired &= one_retired;
		if (result[i] == KVS_RESULT_DONE &&
		    is_due(fault, number, fault->plan.corrupt_get_every))
			flip_byte(fault, number, &span[i]);
	}
	*ret_retired = retired;
	return 0;
}

static int fault_put(struct kvs_store *store, const struct kvs_key *key,
		     const struct kvs_span *span, uint32_t count, enum kvs_result *result,
		     bool *ret_retired)
{
	struct fault *fault = fault_of(store);
	bool          retired = true;
	uint32_t      i;

	for (i = 0; i < count; i++) {
		const uint64_t number = next_of(&fault->puts);
		bool           one_retired = false;

		result[i] = KVS_RESULT_FAILED;
		if (is_due(fault, number, fault->plan.fail_put_every))
			continue;
		result[i] = KVS_RESULT_NO_SPACE;
		if (is_due(fault, number, fault->plan.no_space_put_every))
			continue;
		(void)fault->inner->ops->put(fault->inner, &key[i], &span[i], 1, &result[i],
					     &one_retired);
		retired &= one_retired;
	}
	*ret_retired = retired;
	return 0;
}

static int fault_exists(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
			enum kvs_result *result)
{
	struct kvs_store *inner = fault_of(store)->inner;

	return inner->ops->exists(inner, key, count, result);
}

static int fault_remove(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
			enum kvs_result *result)
{
	struct kvs_store *inner = fault_of(store)->inner;

	return inner->ops->remove(inner, key, count, result);
}

static void fault_describe(struct kvs_store *store, struct kvs_store_info *ret_info)
{
	struct fault *fault = fault_of(store);

	fault->inner->ops->describe(fault->inner, ret_info);
	ret_info->memory_bytes += sizeof(*fault);
	ret_info->verified &= fault->plan.corrupt_get_every == 0;
}

static int fault_close(struct kvs_store *store)
{
	struct fault *fault = fault_of(store);
	const int     rc = fault->inner->ops->close(fault->inner);

	if (rc == 0)
		free(fault);
	return rc;
}

static const struct kvs_store_ops fault_ops = {
	.abi = KVS_STORE_ABI, .name = "fault",    .close = fault_close, .describe = fault_describe,
	.exists = fault_exists, .get = fault_get, .put = fault_put,     .remove = fault_remove
};

int store_fault_open(struct kvs_store *inner, const struct store_fault *plan,
		     struct kvs_store **ret_store, struct kvs_error *err)
{
	struct fault *fault = malloc(sizeof(*fault));

	if (!fault)
		return err_set(err, -ENOMEM, "store: no memory");
	*fault = (struct fault){ .store = { &fault_ops }, .inner = inner, .plan = *plan };
	*ret_store = &fault->store;
	return 0;
}
