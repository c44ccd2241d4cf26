/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second user of the store, with an executor of its own: it looks objects up and locks them, gives
 * them back, and now and then gives up a lookup.  It knows the last objects that were put.
 *
 * Its workers do what the shell's query workers do: tell the store of unlocks, then take a job.  Both
 * are a pair of events, so that an unlock on its way meets the next lock of the same object.
 */
#include <string.h>

#include "exec/run.h"
#include "sim.h"

static void look(void *context, uint64_t number);

static struct sim_lock_op *find(struct sim *sim, uint64_t op_id)
{
	uint32_t i;

	for (i = 0; i < LOCK_OPS; i++) {
		if (sim->locker.ops[i].op_id == op_id)
			return &sim->locker.ops[i];
	}
	return NULL;
}

/* --- workers ---------------------------------------------------------------------------------- */

static void wake(struct sim *sim)
{
	uint64_t i;

	for (i = 0; i < LOCK_WORKERS; i++) {
		if (!sim->locker.workers[i].busy)
			world_after(&sim->world, sim_delay(sim, 2), look, i);
	}
}

static void rest(struct sim *sim, uint64_t number)
{
	sim->locker.workers[number].busy = false;
	world_after(&sim->world, sim_delay(sim, 2), look, number);
}

static void tell(void *context, uint64_t number)
{
	struct sim *const             sim = context;
	struct sim_lock_worker *const worker = &sim->locker.workers[number];

	sim->store.store.ops->unlock(&sim->store.store, worker->told, worker->told_count);
	sim->covers->unlocks_told += worker->told_count;
	worker->told_count = 0;
	rest(sim, number);
}

static void finish(void *context, uint64_t number)
{
	struct sim *const             sim = context;
	struct sim_lock_worker *const worker = &sim->locker.workers[number];
	const struct sim_lock_op     *entry = find(sim, worker->fact.op_id);
	uint32_t                      row;

	if (!entry) {
		FAIL("one-done", "op %" PRIu64 " of the locker runs after its fact",
		     worker->fact.op_id);
	}
	for (row = 0; row < entry->key_count; row++) {
		sim->locker.objects[entry->objects[row]].promised +=
			bits_test(worker->fact.ok.words, row);
	}
	exec_core_finish(&sim->locker.exec, worker->job, &worker->fact, &worker->report,
			 sim->world.now);
	watch_evidence(sim, &sim->locker.health, &sim->locker.exec, worker->taken_step,
		       worker->report.evidence);
	rest(sim, number);
}

static void run(void *context, uint64_t number)
{
	struct sim *const             sim = context;
	struct sim_lock_worker *const worker = &sim->locker.workers[number];

	exec_run(&sim->store.store, &sim->locker.exec.jobs[worker->job].op, &worker->fact,
		 &worker->report);
	world_after(&sim->world, sim_delay(sim, sim->work_ticks), finish, number);
}

static void look(void *context, uint64_t number)
{
	struct sim *const             sim = context;
	struct sim_lock_worker *const worker = &sim->locker.workers[number];

	if (worker->busy)
		return;
	worker->told_count = locks_tell(&sim->locker.exec.locks, worker->told, LOCK_KEYS);
	if (worker->told_count == 0) {
		worker->job = exec_core_take(&sim->locker.exec, EXEC_QUERY);
		if (worker->job == SLOT_NONE)
			return;
		worker->taken_step = sim->world.step;
	}
	worker->busy = true;
	world_after(&sim->world, sim_delay(sim, sim->work_ticks),
		    worker->told_count > 0 ? tell : run, number);
}

/* --- the user --------------------------------------------------------------------------------- */

struct sim_object *locker_object(struct sim *sim, const struct kvs_key *key)
{
	uint32_t i;

	for (i = 0; i < OBJECTS_MAX; i++) {
		struct sim_object *const object = &sim->locker.objects[i];

		if (object->used && memcmp(&object->key, key, sizeof(*key)) == 0)
			return object;
	}
	return NULL;
}

static bool is_asked(const struct sim *sim, uint32_t object)
{
	uint32_t i, row;

	for (i = 0; i < LOCK_OPS; i++) {
		const struct sim_lock_op *const op = &sim->locker.ops[i];

		for (row = 0; op->op_id != 0 && row < op->key_count; row++) {
			if (op->objects[row] == object)
				return true;
		}
	}
	return false;
}

/* In the place of the oldest, unless somebody holds that or asks for it. */
void locker_learn(struct sim *sim, const struct kvs_key *key)
{
	struct sim_locker *const locker = &sim->locker;
	const uint32_t           at = locker->next_object % OBJECTS_MAX;
	struct sim_object *const object = &locker->objects[at];

	if (locker_object(sim, key))
		return;
	locker->next_object++;
	if (object->promised + object->held + object->kept > 0 || is_asked(sim, at))
		return;
	*object = (struct sim_object){ .key = *key, .used = true };
}

static void ask(struct sim *sim)
{
	struct sim_locker *const  locker = &sim->locker;
	struct sim_lock_op *const entry = find(sim, 0);
	const bool                was_up = locker->exec.health.state == HEALTH_UP;
	struct op                 op = { .kind = OP_QUERY, .flags = OP_LOCK };
	const uint32_t known = locker->next_object < OBJECTS_MAX ? locker->next_object : OBJECTS_MAX;
	uint32_t       i;
	int            rc;

	if (!entry || known == 0)
		return;
	entry->key_count = sim_draw(sim, 1, LOCK_KEYS);
	for (i = 0; i < entry->key_count; i++) {
		entry->objects[i] = sim_draw(sim, 0, known - 1);
		entry->keys[i] = locker->objects[entry->objects[i]].key;
	}
	op.op_id = locker->next_op + 1;
	op.keys = entry->keys;
	op.key_count = entry->key_count;
	op_own_all(&op);
	rc = exec_core_submit(&locker->exec, &op, sim->world.now);
	NOTE("locker: op %" PRIu64 " of %u keys%s", op.op_id, op.key_count,
	     rc < 0 ? ", refused" : "");
	sim->covers->lock_refusals += rc < 0;
	if (rc < 0)
		return;
	locker->next_op = entry->op_id = op.op_id;
	watch_taken(sim, &locker->health, &locker->exec, op.op_id, was_up);
	wake(sim);
}

static void give_up(struct sim *sim)
{
	struct sim_lock_op *const entry =
		&sim->locker.ops[world_draw(&sim->world, LOCK_OPS) - 1];

	if (entry->op_id == 0)
		return;
	NOTE("locker: cancel op %" PRIu64, entry->op_id);
	exec_core_cancel(&sim->locker.exec, entry->op_id, sim->world.now);
}

/* One lock of the first object at or after a drawn one. */
static void give(struct sim *sim)
{
	struct sim_locker *const locker = &sim->locker;
	const uint32_t           from = sim_draw(sim, 0, OBJECTS_MAX - 1);
	uint32_t                 i;

	for (i = 0; i < OBJECTS_MAX; i++) {
		struct sim_object *const object = &locker->objects[(from + i) % OBJECTS_MAX];

		if (object->held == 0)
			continue;
		NOTE("locker: gives object %u back", (from + i) % OBJECTS_MAX);
		sim->covers->unlocks++;
		sim->covers->unlocks_when_full +=
			locker->exec.queue[EXEC_QUERY].count == locker->exec.limits.queue_max;
		object->held--;
		exec_core_unlock(&locker->exec, &object->key, 1);
		wake(sim);
		return;
	}
}

static void collect(struct sim *sim)
{
	struct sim_locker *const locker = &sim->locker;
	struct pressure          pressure;
	struct fact              facts[LOCK_OPS];
	const uint32_t count = exec_core_poll(&locker->exec, sim->world.now, facts, LOCK_OPS,
					      &pressure);
	uint32_t i, row;

	for (i = 0; i < count; i++) {
		struct sim_lock_op *const entry = find(sim, facts[i].op_id);

		if (!entry) {
			FAIL("one-done", "op %" PRIu64 " of the locker is answered twice",
			     facts[i].op_id);
		}
		for (row = 0; row < entry->key_count; row++) {
			const bool ok = bits_test(facts[i].ok.words, row);

			locker->objects[entry->objects[row]].promised -= ok;
			locker->objects[entry->objects[row]].held += ok;
		}
		sim->covers->locks += bits_count(facts[i].ok.words, entry->key_count);
		sim->covers->lock_cancels += facts[i].reason == OP_REASON_CANCELLED;
		entry->op_id = 0;
	}
}

/* Locks are granted with the fact: until it is polled nobody knows of them. */
static void act(void *context, uint64_t unused)
{
	struct sim *const sim = context;
	const uint64_t    choice = world_draw(&sim->world, 8);

	(void)unused;
	collect(sim);
	if (sim->faults.stopped || choice <= 4)
		give(sim);
	else if (choice <= 7)
		ask(sim);
	else
		give_up(sim);
	world_after(&sim->world, sim_delay(sim, sim->locker.act_every), act, 0);
}

/* --- open and close --------------------------------------------------------------------------- */

void locker_open(struct sim *sim)
{
	const uint64_t           cooldown = world_draw(&sim->world, 40);
	const struct exec_limits limits = {
		.outstanding_max = (uint32_t)world_draw(&sim->world, LOCK_OPS),
		.queue_max = (uint32_t)world_draw(&sim->world, 2),
		.lock_max = (uint32_t)world_draw(&sim->world, 8),
		.cooldown_min_ns = cooldown,
		.cooldown_max_ns = cooldown * world_draw(&sim->world, 8),
	};
	struct kvs_error error;

	if (exec_core_open(&sim->locker.exec, &limits, &error) < 0)
		FAIL("open", "%s", error.message);
	sim->locker.act_every = world_draw(&sim->world, 20);
	/* By swarm, as with faults: half of the runs have none. */
	if (prng_chance(&sim->world.prng, 1, 2))
		world_after(&sim->world, 1, act, 0);
}

void locker_close(struct sim *sim)
{
	exec_core_close(&sim->locker.exec);
}

bool locker_at_rest(const struct sim *sim)
{
	const struct sim_locker *const locker = &sim->locker;
	uint32_t                       i;

	for (i = 0; i < OBJECTS_MAX; i++) {
		if (locker->objects[i].held > 0)
			return false;
	}
	for (i = 0; i < LOCK_OPS; i++) {
		if (locker->ops[i].op_id != 0)
			return false;
	}
	for (i = 0; i < LOCK_WORKERS; i++) {
		if (locker->workers[i].busy)
			return false;
	}
	return locker->exec.locks.owing.count == 0;
}
