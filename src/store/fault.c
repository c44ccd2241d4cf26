/* SPDX-License-Identifier: Apache-2.0 */
/* See fault.h.  The table of functions; fault_batch.c is what they do. */
#include "store/fault.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/fault_batch.h"
#include "store/kind.h"
#include "store/store.h"

static int fault_move(struct fault *fault, enum fault_op op, move_call *move,
		      const struct kvs_key *key, const struct kvs_span *span, uint32_t count,
		      enum kvs_result *result, bool *ret_retired)
{
	struct fault_batch batch = { .fault = fault, .key = key, .span = span, .result = result,
				     .move = move, .retired = true };
	const int          rc = fault_batch_run(&batch, op, count);

	*ret_retired = batch.retired;
	return rc;
}

static int fault_get(struct kvs_store *store, const struct kvs_key *key,
		     const struct kvs_span *span, uint32_t count, enum kvs_result *result,
		     bool *ret_retired)
{
	move_call *const move = fault_of(store)->inner->ops->get;

	return fault_move(fault_of(store), FAULT_GET, move, key, span, count, result, ret_retired);
}

static int fault_put(struct kvs_store *store, const struct kvs_key *key,
		     const struct kvs_span *span, uint32_t count, enum kvs_result *result,
		     bool *ret_retired)
{
	move_call *const move = fault_of(store)->inner->ops->put;

	return fault_move(fault_of(store), FAULT_PUT, move, key, span, count, result, ret_retired);
}

static int fault_look(struct fault *fault, look_call *look, const struct kvs_key *key,
		      uint32_t count, enum kvs_result *result)
{
	struct fault_batch batch = {
		.fault = fault, .key = key, .result = result, .look = look, .retired = true
	};

	return fault_batch_run(&batch, FAULT_EXISTS, count);
}

static int fault_exists(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
			enum kvs_result *result)
{
	struct fault *fault = fault_of(store);

	return fault_look(fault, fault->inner->ops->exists, key, count, result);
}

static int fault_lock(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		      enum kvs_result *result)
{
	struct fault *fault = fault_of(store);

	return fault_look(fault, fault->inner->ops->lock, key, count, result);
}

static void fault_unlock(struct kvs_store *store, const struct kvs_key *key, uint32_t count)
{
	struct kvs_store *inner = fault_of(store)->inner;

	inner->ops->unlock(inner, key, count);
}

static int fault_remove(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
			enum kvs_result *result)
{
	struct kvs_store *inner = fault_of(store)->inner;

	return inner->ops->remove(inner, key, count, result);
}

static int fault_list(struct kvs_store *store, const struct kvs_namespace *space, uint64_t *cursor,
		      struct kvs_key *keys, uint32_t key_max, uint32_t *ret_count)
{
	struct kvs_store *inner = fault_of(store)->inner;

	return inner->ops->list(inner, space, cursor, keys, key_max, ret_count);
}

static int fault_purge(struct kvs_store *store, const struct kvs_namespace *space,
		       uint64_t *ret_count)
{
	struct kvs_store *inner = fault_of(store)->inner;

	return inner->ops->purge(inner, space, ret_count);
}

static int fault_register(struct kvs_store *store, const struct kvs_memory *memory)
{
	struct kvs_store *inner = fault_of(store)->inner;

	return inner->ops->register_memory(inner, memory);
}

/* What the inner store left in doubt is its own to prove; where it cannot, nobody can. */
static bool fault_settled(struct kvs_store *store)
{
	struct fault *const     fault = fault_of(store);
	struct kvs_store *const inner = fault->inner;

	if (fault->has_late && fault_late_count(&fault->late) > 0)
		return false;
	return inner->ops->settled ? inner->ops->settled(inner) : !fault->inner_doubts;
}

static void fault_describe(struct kvs_store *store, struct kvs_store_info *ret_info)
{
	struct fault *fault = fault_of(store);
	uint32_t      i;

	fault->inner->ops->describe(fault->inner, ret_info);
	ret_info->memory_bytes += sizeof(*fault) + fault->scratch_bytes;
	for (i = 0; i < fault->dice.plan.rule_count; i++) {
		const enum fault_kind kind = fault->dice.plan.rules[i].kind;

		ret_info->verified &= kind != FAULT_SHORT && kind != FAULT_CORRUPT;
		ret_info->failures_retire &= kind != FAULT_LATE_WRITE;
	}
	snprintf(ret_info->note, sizeof(ret_info->note), "fails on purpose: its plan has %u faults",
		 fault->dice.plan.rule_count);
}

void store_fault_release(struct kvs_store *store)
{
	fault_hold_release(&fault_of(store)->hold);
}

void store_fault_land(struct kvs_store *store)
{
	if (fault_of(store)->has_late)
		fault_late_land(&fault_of(store)->late);
}

uint32_t store_fault_held(struct kvs_store *store)
{
	return fault_hold_count(&fault_of(store)->hold);
}

uint64_t store_fault_count(struct kvs_store *store, uint32_t number)
{
	KVS_ASSERT_CMP(number, <, fault_of(store)->dice.plan.rule_count);
	return atomic_load_explicit(&fault_of(store)->dice.fallen[number], memory_order_relaxed);
}

static void fault_free(struct fault *fault)
{
	if (fault->has_late)
		fault_late_close(&fault->late);
	if (fault->scratch)
		os_pages_unmap(fault->scratch, fault->scratch_bytes);
	os_mutex_fini(&fault->mutex);
	fault_hold_close(&fault->hold);
	free(fault);
}

/* Held calls leave first: they are the one exception to "close comes alone". */
static int fault_close(struct kvs_store *store)
{
	struct fault *fault = fault_of(store);
	int           rc;

	fault_hold_end(&fault->hold);
	rc = fault->inner->ops->close(fault->inner);
	if (rc == 0)
		fault_free(fault);
	return rc;
}

/* Only what the inner store has. */
static void table_make(struct fault *fault)
{
	const struct kvs_store_ops *inner = fault->inner->ops;

	fault->ops = store_fault_ops;
	fault->store.ops = &fault->ops;
	if (!inner->list)
		fault->ops.list = NULL;
	if (!inner->purge)
		fault->ops.purge = NULL;
	if (!inner->lock) {
		fault->ops.lock = NULL;
		fault->ops.unlock = NULL;
	}
	if (!inner->register_memory)
		fault->ops.register_memory = NULL;
	if (!inner->settled && !fault->has_late)
		fault->ops.settled = NULL;
}

static bool has(const struct fault_plan *plan, enum fault_kind kind)
{
	uint32_t i;

	for (i = 0; i < plan->rule_count; i++) {
		if (plan->rules[i].kind == kind)
			return true;
	}
	return false;
}

static int inner_open(struct fault *fault, const struct kvs_store_config *config,
		      struct kvs_error *err)
{
	const char       *spec = fault->dice.plan.inner;
	struct kvs_store *inner = NULL;
	int               rc;

	/* A plan that names itself would have no end. */
	if (strncmp(spec, "fault:", 6) == 0 || strcmp(spec, "none") == 0) {
		return err_set(err, KVS_E_INVALID,
			       "inner: \"%.64s\" cannot be wrapped; use another store", spec);
	}
	rc = store_open(spec, config->block_bytes, config->evict_policy, &inner, err);
	if (rc < 0) {
		err_prefix(err, "inner");
		return rc;
	}
	if (!inner->ops->get || !inner->ops->put) {
		err_set(err, KVS_E_INVALID, "inner: %.32s has no get and put to wrap",
			inner->ops->name);
		(void)inner->ops->close(inner);
		return KVS_E_INVALID;
	}
	fault->inner = inner;
	return 0;
}

static int helpers_open(struct fault *fault, const struct kvs_store_config *config,
			struct kvs_error *err)
{
	int rc = 0;

	if (has(&fault->dice.plan, FAULT_SHORT)) {
		fault->scratch_bytes = config->block_bytes + config->trailer_bytes;
		rc = os_pages_map(fault->scratch_bytes, &fault->scratch);
	}
	if (rc == 0 && has(&fault->dice.plan, FAULT_LATE_WRITE)) {
		rc = fault_late_open(&fault->late);
		fault->has_late = rc == 0;
	}
	return rc < 0 ? err_set(err, rc, "needs a block and a thread: %s", kvs_strerror(rc)) : 0;
}

static int fault_open(const struct kvs_store_config *config, struct kvs_store **ret_store,
		      struct kvs_error *err)
{
	struct fault *fault;
	int           rc;

	if (!*config->place)
		return err_set(err, KVS_E_INVALID, "store.plan: is missing; write fault:PLAN.json");
	fault = calloc(1, sizeof(*fault));
	if (!fault)
		return err_set(err, -ENOMEM, "store: no memory");
	os_mutex_init(&fault->mutex);
	fault_hold_open(&fault->hold);
	rc = fault_plan_read(config->place, &fault->dice.plan, err);
	if (rc == 0)
		rc = helpers_open(fault, config, err);
	if (rc == 0)
		rc = inner_open(fault, config, err);
	if (rc < 0) {
		err_prefix(err, "store.plan: \"%.96s\"", config->place);
		fault_free(fault);
		return rc;
	}
	table_make(fault);
	*ret_store = &fault->store;
	return 0;
}

static const char *const fault_options[] = { NULL };

const struct kvs_store_ops store_fault_ops = {
	.abi = KVS_STORE_ABI,
	.name = "fault",
	.options = fault_options,
	.open = fault_open,
	.close = fault_close,
	.describe = fault_describe,
	.exists = fault_exists,
	.get = fault_get,
	.put = fault_put,
	.remove = fault_remove,
	.list = fault_list,
	.purge = fault_purge,
	.lock = fault_lock,
	.unlock = fault_unlock,
	.register_memory = fault_register,
	.settled = fault_settled,
};
