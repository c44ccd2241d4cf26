/* SPDX-License-Identifier: Apache-2.0 */
/* See faults.h.  Keys go to the inner store one by one, so that a fault hits one key of a batch. */
#include "faults.h"

#include <errno.h>

#include "sim.h"

static const char *const names[] = {
#define FAULT(name, text) [name] = text,
	FAULTS(FAULT)
#undef FAULT
};

static bool is_outage(int fault)
{
	return fault == FAULT_OUTAGE || fault == FAULT_CALL || fault == FAULT_GET || fault == FAULT_PUT;
}

static bool is_late(int fault)
{
	return fault == FAULT_LATE_GET || fault == FAULT_LATE_PUT;
}

void faults_draw(struct sim *sim)
{
	struct prng *const prng = &sim->world.prng;
	int                fault;

	for (fault = 0; fault < FAULT_COUNT; fault++) {
		/*
		 * Weights of any order of magnitude: rare faults meet in other ways than frequent ones.  A
		 * store that is down most of the time shows little: those that make an outage are seldom on.
		 */
		if (prng_chance(prng, 1, is_outage(fault) ? 5 : is_late(fault) ? 3 : 2)) {
			sim->faults.weight[fault] = (uint32_t)world_draw(
				&sim->world, UINT64_C(4) << world_draw(&sim->world, 8));
			if (fault >= FAULT_UPKEEP)
				sim->faults.weight[fault] = 50 + sim->faults.weight[fault] / 2;
			if (fault == FAULT_LOST || fault == FAULT_STALL || fault == FAULT_ABORT)
				sim->faults.weight[fault] = 1 + sim->faults.weight[fault] / 32;
		}
		if (sim->faults.weight[fault] > 0)
			NOTE("fault %s: %u of 1024", names[fault], sim->faults.weight[fault]);
	}
}

bool fault_hits(struct sim *sim, enum fault fault)
{
	const uint32_t weight = sim->faults.weight[fault];

	return weight > 0 && !sim->faults.stopped && prng_chance(&sim->world.prng, weight, 1024);
}

bool fault_away(struct sim *sim)
{
	if (fault_hits(sim, FAULT_OUTAGE) && sim->faults.away_until <= sim->world.now) {
		sim->faults.away_until = sim->world.now + world_draw(&sim->world, 40);
		NOTE("the store goes away until %" PRIu64, sim->faults.away_until);
	}
	return !sim->faults.stopped && sim->world.now < sim->faults.away_until;
}

/* Nothing was done, and the caller hears of it. */
static bool call_fails(struct sim *sim)
{
	return fault_away(sim) || fault_hits(sim, FAULT_CALL);
}

static struct faulty_store *of(struct kvs_store *store)
{
	return (struct faulty_store *)store;
}

/* The store keeps its hands on this op's spans, for 1 to 4 touches more. */
static bool retires(struct faulty_store *faulty, enum fault late)
{
	struct sim_part *const part = &faulty->op->parts[faulty->rank];

	if (part->late == 0 && fault_hits(faulty->sim, late)) {
		part->late = (uint32_t)world_draw(&faulty->sim->world, 4);
		part->silent = fault_hits(faulty->sim, FAULT_SILENT);
	}
	return part->late == 0;
}

static void faulty_describe(struct kvs_store *store, struct kvs_store_info *ret_info)
{
	of(store)->inner->ops->describe(of(store)->inner, ret_info);
}

static int faulty_exists(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
			 enum kvs_result *result)
{
	struct faulty_store *const faulty = of(store);
	int                        rc;
	uint32_t                   i;

	if (call_fails(faulty->sim))
		return -EIO;
	rc = faulty->inner->ops->exists(faulty->inner, key, count, result);
	for (i = 0; i < count; i++) {
		if (fault_hits(faulty->sim, FAULT_HIDE))
			result[i] = KVS_RESULT_MISSING;
	}
	return rc;
}

/* A lock is a promise: no object goes while somebody holds one. */
static void evict(struct faulty_store *faulty, const struct kvs_key *key)
{
	const struct sim_object *const object = locker_object(faulty->sim, key);
	enum kvs_result                result;

	if (!fault_hits(faulty->sim, FAULT_EVICT) || (object && object->kept > 0))
		return;
	faulty->inner->ops->remove(faulty->inner, key, 1, &result);
	faulty->sim->covers->evictions++;
}

static enum kvs_result get_one(struct faulty_store *faulty, const struct kvs_key *key,
			       const struct kvs_span *span)
{
	struct sim *const sim = faulty->sim;
	enum kvs_result   result = KVS_RESULT_FAILED;
	bool              retired;

	if (fault_hits(sim, FAULT_GET))
		return result;
	if (fault_hits(sim, FAULT_HIDE))
		return KVS_RESULT_MISSING;
	evict(faulty, key);
	faulty->inner->ops->get(faulty->inner, key, span, 1, &result, &retired);
	if (result != KVS_RESULT_DONE)
		return result;
	check_key(sim, "create-only", key, span->ptr);
	if (!fault_hits(sim, FAULT_CORRUPT))
		return result;
	shape_scribble(faulty->op->op_id, span->ptr, span->bytes);
	return KVS_RESULT_CORRUPT;
}

static int faulty_get(struct kvs_store *store, const struct kvs_key *key,
		      const struct kvs_span *span, uint32_t count, enum kvs_result *result,
		      bool *ret_retired)
{
	struct faulty_store *const faulty = of(store);
	uint32_t                   i;

	*ret_retired = retires(faulty, FAULT_LATE_GET);
	if (call_fails(faulty->sim))
		return -EIO;
	for (i = 0; i < count; i++)
		result[i] = get_one(faulty, &key[i], &span[i]);
	return 0;
}

static enum kvs_result put_one(struct faulty_store *faulty, const struct kvs_key *key,
			       const struct kvs_span *span)
{
	struct sim *const sim = faulty->sim;
	enum kvs_result   result = KVS_RESULT_FAILED;
	bool              retired;

	if (fault_hits(sim, FAULT_PUT))
		return KVS_RESULT_FAILED;
	if (fault_hits(sim, FAULT_NO_SPACE))
		return KVS_RESULT_NO_SPACE;
	check_key(sim, "quarantine", key, span->ptr);
	faulty->inner->ops->put(faulty->inner, key, span, 1, &result, &retired);
	if (result == KVS_RESULT_DONE)
		locker_learn(sim, key);
	return result;
}

static int faulty_put(struct kvs_store *store, const struct kvs_key *key,
		      const struct kvs_span *span, uint32_t count, enum kvs_result *result,
		      bool *ret_retired)
{
	struct faulty_store *const faulty = of(store);
	uint32_t                   i;

	*ret_retired = retires(faulty, FAULT_LATE_PUT);
	if (call_fails(faulty->sim))
		return -EIO;
	for (i = 0; i < count; i++)
		result[i] = put_one(faulty, &key[i], &span[i]);
	return 0;
}

static int faulty_lock(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		       enum kvs_result *result)
{
	struct faulty_store *const faulty = of(store);
	uint32_t                   i;

	if (call_fails(faulty->sim))
		return -EIO;
	for (i = 0; i < count; i++) {
		result[i] = KVS_RESULT_MISSING;
		if (!fault_hits(faulty->sim, FAULT_HIDE))
			faulty->inner->ops->lock(faulty->inner, &key[i], 1, &result[i]);
		if (result[i] == KVS_RESULT_DONE)
			locker_object(faulty->sim, &key[i])->kept++;
	}
	return 0;
}

static void faulty_unlock(struct kvs_store *store, const struct kvs_key *key, uint32_t count)
{
	struct faulty_store *const faulty = of(store);
	struct sim *const          sim = faulty->sim;
	uint32_t                   i;

	for (i = 0; i < count; i++) {
		if (locker_object(sim, &key[i])->kept-- == 0)
			FAIL("locks-home", "an object is unlocked once too often");
		faulty->inner->ops->unlock(faulty->inner, &key[i], 1);
	}
}

const struct kvs_store_ops faulty_store_ops = {
	.name = "faulty", .describe = faulty_describe, .exists = faulty_exists, .get = faulty_get,
	.put = faulty_put, .lock = faulty_lock, .unlock = faulty_unlock
};
