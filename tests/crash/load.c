/* SPDX-License-Identifier: Apache-2.0 */
/* What the store is asked to do: see world.h. */
#include "world.h"

struct batch {
	uint32_t        count;
	uint32_t        numbers[BATCH_MAX];
	struct kvs_key  keys[BATCH_MAX];
	struct kvs_span spans[BATCH_MAX];
	enum kvs_result results[BATCH_MAX];
};

/* Some keys are asked for more often than others, so that cleaning has something hot to move. */
static uint32_t any_key(struct world *world)
{
	const uint64_t count = prng_chance(&world->prng, 1, 2) ? world->key_count
							       : world->key_count / 4;

	return (uint32_t)prng_below(&world->prng, count);
}

static void add(struct world *world, struct batch *batch, uint32_t number)
{
	batch->numbers[batch->count] = number;
	batch->keys[batch->count] = object_key(number);
	batch->spans[batch->count] = object_span(world, number, batch->count);
	batch->count++;
	world->objects[number].busy = true;
	world->objects[number].touched = false;
}

static struct batch choose(struct world *world, uint32_t most)
{
	const uint32_t wanted = 1 + (uint32_t)prng_below(&world->prng, most);
	struct batch   batch = { 0 };
	uint32_t       i;

	for (i = 0; i < wanted; i++) {
		const uint32_t number = any_key(world);

		if (!world->objects[number].busy)
			add(world, &batch, number);
	}
	return batch;
}

static void let_go(struct world *world, const struct batch *batch)
{
	uint32_t i;

	for (i = 0; i < batch->count; i++)
		world->objects[batch->numbers[i]].busy = false;
}

/* --- calls ------------------------------------------------------------------------------------ */

/* Through a lane, which without a ring does the same in another order. */
static void put_by_lane(struct world *world, struct batch *batch)
{
	struct kvs_io      io[BATCH_MAX];
	struct kvs_io_done done[BATCH_MAX];
	uint32_t           answered = 0, i;

	for (i = 0; i < batch->count; i++) {
		io[i] = (struct kvs_io){ .cookie = i, .is_put = true, .key = &batch->keys[i],
					 .span = batch->spans[i] };
	}
	KVS_ASSERT_CMP(strata_submit(world->store, 0, io, batch->count), ==, batch->count);
	while (answered < batch->count) {
		const int count = strata_reap(world->store, 0, done, BATCH_MAX, 0);

		KVS_ASSERT(count > 0);
		for (i = 0; i < (uint32_t)count; i++) {
			KVS_ASSERT(done[i].retired);
			batch->results[done[i].cookie] = done[i].result;
		}
		answered += (uint32_t)count;
	}
	world->covers->lanes++;
}

static void put(struct world *world)
{
	struct batch batch = choose(world, BATCH_MAX);
	uint32_t     generations[BATCH_MAX], i;
	bool         retired = false;

	for (i = 0; i < batch.count; i++) {
		generations[i] = world->objects[batch.numbers[i]].high + 1;
		object_fill(&batch.spans[i], batch.numbers[i], generations[i]);
	}
	if (prng_chance(&world->prng, 1, 4)) {
		put_by_lane(world, &batch);
	} else {
		KVS_ASSERT(strata_put(world->store, batch.keys, batch.spans, batch.count,
				      batch.results, &retired) == 0 && retired);
	}
	for (i = 0; i < batch.count; i++)
		oracle_put(world, batch.numbers[i], generations[i], batch.results[i]);
	let_go(world, &batch);
}

void load_must_work(struct world *world)
{
	uint32_t number, tried = 0;

	for (number = 0; number < world->key_count && tried < 8; number++) {
		struct batch   batch = { 0 };
		const uint32_t generation = world->objects[number].high + 1;
		bool           retired;

		if (world->objects[number].now > 0)
			continue;
		tried++;
		add(world, &batch, number);
		object_fill(&batch.spans[0], number, generation);
		KVS_ASSERT(strata_put(world->store, batch.keys, batch.spans, 1, batch.results,
				      &retired) == 0);
		oracle_put(world, number, generation, batch.results[0]);
		if (batch.results[0] != KVS_RESULT_DONE)
			violate("works", "a put of key %u is refused", number);
		let_go(world, &batch);
	}
}

static void get(struct world *world)
{
	struct batch batch = choose(world, BATCH_MAX);
	uint32_t     i;
	bool         retired = false;

	KVS_ASSERT(strata_get(world->store, batch.keys, batch.spans, batch.count, batch.results,
			      &retired) == 0 && retired);
	for (i = 0; i < batch.count; i++)
		oracle_get(world, batch.numbers[i], i, batch.results[i]);
	let_go(world, &batch);
}

static void remove_some(struct world *world)
{
	struct batch batch = choose(world, 3);
	uint32_t     i;

	KVS_ASSERT(strata_remove(world->store, batch.keys, batch.count, batch.results) == 0);
	for (i = 0; i < batch.count; i++)
		oracle_remove(world, batch.numbers[i], batch.results[i]);
	let_go(world, &batch);
}

static void lock(struct world *world)
{
	struct batch batch = choose(world, 2);
	uint32_t     i;

	KVS_ASSERT(strata_lock(world->store, batch.keys, batch.count, batch.results) == 0);
	for (i = 0; i < batch.count; i++) {
		oracle_exists(world, batch.numbers[i], batch.results[i]);
		world->objects[batch.numbers[i]].locks += batch.results[i] == KVS_RESULT_DONE;
	}
	let_go(world, &batch);
}

static void unlock(struct world *world)
{
	const uint32_t       number = any_key(world);
	const struct kvs_key key = object_key(number);

	if (world->objects[number].locks == 0)
		return;
	strata_unlock(world->store, &key, 1);
	world->objects[number].locks--;
}

/* What was evicted unnoticed is looked for first: a purge promises nothing of it. */
static void purge(struct world *world)
{
	const uint32_t             space = (uint32_t)prng_below(&world->prng, SPACES);
	const struct kvs_namespace name = object_key(space).space;
	uint64_t                   count = 0;
	uint32_t                   i;
	int                        rc;

	for (i = space; i < world->key_count; i += SPACES) {
		const struct kvs_key key = object_key(i);
		enum kvs_result      result;

		world->objects[i].busy = true;
		KVS_ASSERT(strata_exists(world->store, &key, 1, &result) == 0);
		oracle_exists(world, i, result);
	}
	rc = strata_purge(world->store, &name, &count);
	for (i = space; i < world->key_count; i += SPACES) {
		oracle_purged(world, i, rc);
		world->objects[i].busy = false;
	}
}

static bool see(void *ctx, const struct strata_finding *finding)
{
	struct world *const world = ctx;

	if (finding->damage && world->set.durability != STRATA_NONE && !world->device.crashed &&
	    !world->device.failed)
		violate("whole", "a walk finds damage: %s", finding->damage);
	return true;
}

static void walk(struct world *world)
{
	KVS_ASSERT(strata_walk(world->store, prng_chance(&world->prng, 1, 2), see, world) == 0);
}

/* --- steps ------------------------------------------------------------------------------------ */

static void clear_touched(struct world *world)
{
	uint32_t i;

	for (i = 0; i < world->key_count; i++)
		world->objects[i].touched = false;
}

/* The power may fail in the writes that come next, where much is under way. */
static void aim_crash(struct world *world, uint32_t within)
{
	struct device *const device = &world->device;

	if (device->writes_left > within)
		device->writes_left = 1 + prng_below(&world->prng, within);
}

void load_step(struct world *world)
{
	const uint64_t dice = prng_below(&world->prng, 1000);

	clear_touched(world);
	if (dice < 480) {
		put(world);
	} else if (dice < 880 - world->remove_share) {
		get(world);
	} else if (dice < 880) {
		if (prng_chance(&world->prng, 1, 24))
			aim_crash(world, 3);
		remove_some(world);
	} else if (dice < 880 + world->lock_share) {
		lock(world);
	} else if (dice < 980) {
		unlock(world);
	} else if (dice < 984) {
		purge(world);
	} else {
		walk(world);
	}
}

/* One that cleaning is writing again, or has; SLOT_NONE. */
static uint32_t moving_key(struct world *world)
{
	const struct strata *const s = strata_of(world->store);
	const bool                 now = prng_chance(&world->prng, 1, 2);
	uint32_t                   number;

	for (number = 0; number < world->key_count; number++) {
		const struct kvs_key key = object_key(number);
		const uint32_t       found = catalog_find(&s->catalog, key_print(s->hash, &key));

		if (found == SLOT_NONE || s->catalog.entries[found].state != ENTRY_PRESENT)
			continue;
		if (now ? s->catalog.entries[found].moving > 0
			: space_segment_of(&s->space, s->catalog.entries[found].page) ==
				  s->space.open[STREAM_MOVES])
			return number;
	}
	return SLOT_NONE;
}

/* Puts are left out: they may wait for what the interrupted call holds. */
void load_between(struct world *world)
{
	const uint32_t        moving = moving_key(world);
	const uint32_t        number = moving == SLOT_NONE ? any_key(world) : moving;
	struct object *const  object = &world->objects[number];
	const struct kvs_key  key = object_key(number);
	const struct kvs_span span = object_span(world, number, BATCH_MAX);
	enum kvs_result       result;
	bool                  retired;

	if (object->busy)
		return;
	world->inside = true;
	world->covers->between++;
	world->covers->moving += moving != SLOT_NONE;
	if (moving != SLOT_NONE && prng_chance(&world->prng, 1, 8))
		aim_crash(world, 4);
	if (prng_chance(&world->prng, 1, 2)) {
		KVS_ASSERT(strata_remove(world->store, &key, 1, &result) == 0);
		oracle_remove(world, number, result);
	} else {
		KVS_ASSERT(strata_get(world->store, &key, &span, 1, &result, &retired) == 0);
		oracle_get(world, number, BATCH_MAX, result);
	}
	object->touched = true;
	world->inside = false;
}
