/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariants of executors: health and locks.
 *
 * Health is judged by what jobs said and when they began, never by the room's epochs; locks by what
 * facts granted and what the store keeps.
 */
#include "sim.h"

/* --- health ----------------------------------------------------------------------------------- */

static bool is_under_way(const struct exec_core *exec, uint64_t op_id)
{
	uint32_t job;

	SLOTS_EACH(&exec->slots, job) {
		if (exec->jobs[job].op.op_id == op_id)
			return exec->jobs[job].state <= EXEC_RUNNING;
	}
	return false;
}

void watch_taken(struct sim *sim, struct sim_health *health, const struct exec_core *exec,
		 uint64_t op_id, bool was_up)
{
	if (was_up)
		return;
	sim->covers->probes++;
	if (health->probe != 0 && is_under_way(exec, health->probe)) {
		FAIL("health", "op %" PRIu64 " is a probe, and op %" PRIu64 " still asks", op_id,
		     health->probe);
	}
	if (sim->world.now - health->fell_tick < exec->limits.cooldown_min_ns)
		FAIL("health", "op %" PRIu64 " is taken in the cooldown", op_id);
	health->probe = op_id;
}

/* A job that began before the last outage has no say in it, for better or worse. */
void watch_evidence(struct sim *sim, struct sim_health *health, const struct exec_core *exec,
		    uint64_t taken_step, enum exec_evidence evidence)
{
	const bool is_stale = health->epoch > 0 && taken_step <= health->fell_step;

	if (exec->health.epoch != health->epoch) {
		if (is_stale || evidence != EXEC_EVIDENCE_OUTAGE)
			FAIL("health", "an outage begins, and nothing tells of it");
		health->epoch = exec->health.epoch;
		health->fell_step = sim->world.step;
		health->fell_tick = sim->world.now;
		health->proven = false;
		sim->covers->outages++;
		NOTE("outage %" PRIu64, health->epoch);
	} else if (evidence == EXEC_EVIDENCE_UP) {
		sim->covers->stale_successes += is_stale && !health->proven;
		sim->covers->recoveries += !is_stale && !health->proven && health->epoch > 0;
		health->proven |= !is_stale;
	}
}

void check_health(struct sim *sim, const struct sim_health *health, const struct exec_core *exec)
{
	if (exec->health.epoch != health->epoch)
		FAIL("health", "an outage began without a job");
	if (exec->health.state == HEALTH_UP && health->epoch > 0 && !health->proven) {
		FAIL("health", "the store is held for up; since outage %" PRIu64 " nobody found it so",
		     health->epoch);
	}
}

/* --- locks ------------------------------------------------------------------------------------ */

static bool is_there(struct sim *sim, const struct kvs_key *key)
{
	struct kvs_store *const inner = sim->store.inner;
	enum kvs_result         result;

	inner->ops->exists(inner, key, 1, &result);
	return result == KVS_RESULT_DONE;
}

void check_locks(struct sim *sim)
{
	const struct sim_locker *const locker = &sim->locker;
	uint64_t                       held = 0;
	uint32_t                       i;

	for (i = 0; i < OBJECTS_MAX; i++) {
		const struct sim_object *const object = &locker->objects[i];
		const uint32_t                 here = object->held + object->promised;

		held += here;
		if (here == 0)
			continue;
		if (object->kept == 0)
			FAIL("locks-home", "object %u is held, and the store keeps no lock", i);
		if (!is_there(sim, &object->key))
			FAIL("locks-home", "object %u is held, and has left the store", i);
	}
	if (held != locker->exec.locks.held) {
		FAIL("locks-home", "%" PRIu64 " locks are held; the executor has %" PRIu64, held,
		     locker->exec.locks.held);
	}
}

void check_locks_rest(struct sim *sim)
{
	const struct sim_locker *const locker = &sim->locker;
	uint32_t                       i;

	if (locker->exec.locks.slots.busy_count > 0 || locker->exec.slots.busy_count > 0) {
		FAIL("locks-home", "at rest %u keys and %u ops of the locker are left",
		     locker->exec.locks.slots.busy_count, locker->exec.slots.busy_count);
	}
	for (i = 0; i < OBJECTS_MAX; i++) {
		if (locker->objects[i].kept > 0) {
			FAIL("locks-home", "at rest the store keeps %u locks of object %u",
			     locker->objects[i].kept, i);
		}
	}
}
