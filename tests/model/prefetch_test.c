/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of prefetch requests against brute force: the greatest boundary that all groups support over what
 * could be had, and every lock and reservation in a ledger.
 *
 * Requests have random groups, windows and copies; Host and up to three adapters random contents; lookups
 * and loads end in any order, fail in part, stay unretired; deadlines, cancels and stops come at any
 * point; objects come to the Host and go meanwhile; room in it is short at times, and some keys it refuses
 * whatever room there is.  The hands are the test's: they assert what may not happen, and when.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "ctrl/prefetch_run.h"
#include "named_block.h"
#include "prop.h"

#define KEYS 96u
#define CHUNKS_MAX 12u
#define GROUPS 4u
#define ADAPTERS 3u
#define WORDS ((KEYS + 63) / 64)

/* A load that is under way, or in doubt. */
struct cargo {
	uint32_t count;
	uint32_t keys[KEYS];
};

struct world {
	struct prefetch_run        run;
	struct prefetch_tools      tools;
	struct prefetch_ctrl_stats stats;
	struct prefetch_ask        ask;
	struct kvs_key             keys[KEYS];
	uint64_t                   bytes[KEYS], held[WORDS];
	uint32_t                   windows[GROUPS], group_count, copies;
	uint32_t                   odd; /* how the policy errs */
	uint64_t                   next_task;
	bool                       began; /* there is a run */

	bool         stored[ADAPTERS][KEYS];
	uint32_t     store_locks[ADAPTERS][KEYS];
	struct cargo cargo[ADAPTERS];
	bool         resident[KEYS], staged[KEYS];
	bool         barred[KEYS]; /* Host takes no object for it, nor a lock of the reader */
	uint32_t     reader_locks[KEYS];
	bool         had[KEYS]; /* locked for the reader at some time */
	uint32_t     room;      /* objects that can be staged */

	/* What brute force says of the plan, once there is one. */
	bool     planned;
	uint32_t plan_boundary, unbounded;
	enum prefetch_end gave_up; /* END_WHOLE: it was not */
};

static uint32_t key_number(const struct world *world, const struct kvs_key *key)
{
	const uint32_t number = key->offset;

	KVS_ASSERT_CMP(number, <, world->ask.key_count);
	return number;
}

/* --- brute force ------------------------------------------------------------------------------- */

/* Whether a restore at a boundary uses a key, by what windows mean. */
static bool is_needed(const struct world *world, uint32_t boundary, uint32_t key)
{
	const uint32_t chunk = key / (world->group_count * world->copies);
	const uint32_t window = world->windows[key / world->copies % world->group_count];

	if (chunk >= boundary)
		return false;
	return window == FLAT_ALL || window >= boundary || chunk >= boundary - window;
}

/* The greatest boundary whose keys are all there, of which at most `room` have to be staged. */
static uint32_t best(const struct world *world, const bool *there, const bool *free_of_room, uint32_t room)
{
	uint32_t boundary, key;

	for (boundary = world->ask.chunk_count; boundary > 0; boundary--) {
		uint32_t missing = 0, cost = 0;

		for (key = 0; key < world->ask.key_count; key++) {
			if (!is_needed(world, boundary, key))
				continue;
			missing += !there[key];
			cost += !free_of_room[key];
		}
		if (missing == 0 && cost <= room)
			return boundary;
	}
	return 0;
}

/* --- the policy -------------------------------------------------------------------------------- */

static struct world *policy_world; /* a policy has no argument of its own */

/* What the odd policy says of a key; the same in every call. */
static uint8_t answer(const struct world *world, uint32_t number, uint64_t found)
{
	const uint64_t draw = mix64(((uint64_t)world->odd << 32) | number) % 16;

	if (world->odd % 4 == 0 || draw > 3)
		return found ? (uint8_t)__builtin_ctzll(found) : KVS_NO_ADAPTER;
	if (draw == 0)
		return KVS_NO_ADAPTER;
	if (draw == 1)
		return 200;
	if (draw == 2)
		return ADAPTERS - 1;
	return found ? (uint8_t)(63 - __builtin_clzll(found)) : 0;
}

static void plan(const struct kvs_adapter_info *adapters, uint32_t adapter_count,
		 const struct kvs_key *keys, const uint64_t *found, uint32_t count, uint8_t *from)
{
	uint32_t i;

	(void)adapters;
	KVS_ASSERT(adapter_count > 0);
	for (i = 0; i < count; i++) {
		KVS_ASSERT_CMP(from[i], ==, KVS_NO_ADAPTER);
		from[i] = answer(policy_world, keys[i].offset, found[i]);
	}
}

/* Before the run plans: what brute force makes of the same facts. */
static void expect_plan(struct world *world)
{
	bool     there[KEYS] = { false }, free_of_room[KEYS] = { false };
	uint32_t key, n;

	for (key = 0; key < world->ask.key_count; key++) {
		uint64_t found = 0;
		uint8_t  from;

		for (n = 0; n < world->tools.info_count; n++)
			found |= (uint64_t)(world->store_locks[n][key] > 0) << n;
		from = answer(world, key, found);
		there[key] = world->had[key] || (from < ADAPTERS && (found >> from & 1));
		free_of_room[key] = world->had[key] || world->resident[key];
	}
	world->unbounded = best(world, there, free_of_room, KEYS);
	for (key = 0; key < world->ask.key_count; key++)
		there[key] &= world->had[key] || !world->barred[key];
	world->plan_boundary = best(world, there, free_of_room, world->room);
	world->planned = true;
}

/* --- hands ------------------------------------------------------------------------------------- */

static void look(void *arg, const struct kvs_key *keys, uint32_t count, uint64_t *ret_words)
{
	const struct world *const world = arg;
	uint32_t                  i;

	memset(ret_words, 0, bits_words(count) * sizeof(*ret_words));
	for (i = 0; i < count; i++) {
		if (world->resident[key_number(world, &keys[i])])
			bits_set(ret_words, i);
	}
}

static void lock_one(struct world *world, uint32_t key)
{
	KVS_ASSERT_CMP(world->reader_locks[key], ==, 0);
	KVS_ASSERT(!prefetch_run_has_result(&world->run));
	world->reader_locks[key] = world->ask.lock_count;
	world->had[key] = true;
}

static void lock(void *arg, const struct prefetch_ask *ask, const struct kvs_key *keys, uint32_t count,
		 int *ret_rc)
{
	struct world *const world = arg;
	uint32_t            i;

	(void)ask;
	for (i = 0; i < count; i++) {
		const uint32_t key = key_number(world, &keys[i]);

		ret_rc[i] = world->resident[key] ? 0 : KVS_E_MISSING;
		if (world->barred[key])
			ret_rc[i] = KVS_E_FULL;
		if (ret_rc[i] == 0)
			lock_one(world, key);
	}
}

static void unlock(void *arg, const struct prefetch_ask *ask, const struct kvs_key *keys, uint32_t count)
{
	struct world *const world = arg;
	uint32_t            i;

	for (i = 0; i < count; i++) {
		const uint32_t key = key_number(world, &keys[i]);

		KVS_ASSERT_CMP(world->reader_locks[key], ==, ask->lock_count);
		world->reader_locks[key] = 0;
	}
}

/* Which of a batch that does not fit would fit is not said: a Host serves rows in any order. */
static void reserve(void *arg, const struct prefetch_ask *ask, bool temporary, const struct kvs_key *keys,
		    const uint64_t *bytes, uint32_t count, struct kvs_span *ret_spans, int *ret_rc)
{
	struct world *const world = arg;
	uint32_t            wanted = 0, used = 0, i;

	KVS_ASSERT_CMP(temporary, ==, !ask->retain);
	for (i = 0; i < KEYS; i++)
		used += world->staged[i];
	for (i = 0; i < count; i++) {
		const uint32_t key = key_number(world, &keys[i]);

		KVS_ASSERT(!world->staged[key] && world->reader_locks[key] == 0);
		KVS_ASSERT_CMP(bytes[i], ==, world->bytes[key]);
		ret_rc[i] = world->resident[key] ? KVS_E_EXISTS : world->barred[key] ? KVS_E_BUSY : 0;
		wanted += ret_rc[i] == 0;
	}
	for (i = 0; i < count; i++) {
		if (ret_rc[i] != 0)
			continue;
		if (used + wanted > world->room) {
			ret_rc[i] = KVS_E_FULL;
			continue;
		}
		world->staged[key_number(world, &keys[i])] = true;
		ret_spans[i] = (struct kvs_span){ .bytes = bytes[i], .room = keys[i].offset };
	}
}

static bool is_loading(const struct world *world, uint32_t adapter, uint32_t key)
{
	uint32_t i;

	for (i = 0; i < world->cargo[adapter].count; i++) {
		if (world->cargo[adapter].keys[i] == key)
			return true;
	}
	return false;
}

/* Bytes that something may still write are nobody's to reuse. */
static void unstage(struct world *world, uint32_t key)
{
	uint32_t n;

	KVS_ASSERT(world->staged[key]);
	for (n = 0; n < ADAPTERS; n++)
		KVS_ASSERT(!is_loading(world, n, key));
	world->staged[key] = false;
}

/* The invariant never-late. */
static void publish(void *arg, const struct prefetch_ask *ask, const struct kvs_key *keys, uint32_t count,
		    int *ret_rc)
{
	struct world *const world = arg;
	uint32_t            i;

	(void)ask;
	KVS_ASSERT(!prefetch_run_has_result(&world->run));
	for (i = 0; i < count; i++) {
		const uint32_t key = key_number(world, &keys[i]);

		/* No lock is left now and then: the row stays staged. */
		ret_rc[i] = mix64(world->next_task * 64 + key) % 16 == 0 ? KVS_E_FULL : 0;
		if (ret_rc[i] != 0)
			continue;
		unstage(world, key);
		world->resident[key] = true;
		lock_one(world, key);
	}
}

static void discard(void *arg, const struct prefetch_ask *ask, const struct kvs_key *keys, uint32_t count)
{
	struct world *const world = arg;
	uint32_t            i;

	(void)ask;
	for (i = 0; i < count; i++)
		unstage(world, key_number(world, &keys[i]));
}

static int lookup(void *arg, uint32_t adapter, const struct kvs_key *keys, uint32_t count,
		  uint64_t *ret_task_id)
{
	struct world *const world = arg;
	uint32_t            i;

	KVS_ASSERT_CMP(adapter, <, world->tools.info_count);
	for (i = 0; i < count; i++)
		KVS_ASSERT_CMP(world->reader_locks[key_number(world, &keys[i])], ==, 0);
	*ret_task_id = ++world->next_task;
	return mix64(world->next_task) % 20 == 0 ? KVS_E_FULL : 0;
}

/* Before loads start, all that is not loaded has been unlocked, at every adapter. */
static void check_phase_one(const struct world *world)
{
	uint32_t n, key;

	for (n = 0; n < ADAPTERS; n++) {
		for (key = 0; key < KEYS; key++)
			KVS_ASSERT(!world->store_locks[n][key] || world->staged[key]);
	}
}

static int load(void *arg, uint32_t adapter, const struct kvs_key *keys, const struct kvs_span *spans,
		uint32_t count, uint64_t *ret_task_id)
{
	struct world *const world = arg;
	uint32_t            i, n;

	check_phase_one(world);
	KVS_ASSERT(count > 0 && world->cargo[adapter].count == 0);
	*ret_task_id = ++world->next_task;
	if (mix64(world->next_task) % 20 == 1)
		return KVS_E_FULL;
	for (i = 0; i < count; i++) {
		const uint32_t key = key_number(world, &keys[i]);

		KVS_ASSERT(world->staged[key]);
		KVS_ASSERT_CMP(spans[i].room, ==, key);
		KVS_ASSERT_CMP(world->store_locks[adapter][key], ==, 1);
		for (n = 0; n < ADAPTERS; n++)
			KVS_ASSERT(!is_loading(world, n, key));
		world->cargo[adapter].keys[i] = key;
	}
	world->cargo[adapter].count = count;
	return 0;
}

static void unlock_store(void *arg, uint32_t adapter, const struct kvs_key *keys, uint32_t count)
{
	struct world *const world = arg;
	uint32_t            i;

	for (i = 0; i < count; i++) {
		const uint32_t key = key_number(world, &keys[i]);

		KVS_ASSERT_CMP(world->store_locks[adapter][key], ==, 1);
		KVS_ASSERT(!is_loading(world, adapter, key));
		world->store_locks[adapter][key] = 0;
	}
}

static const struct prefetch_hands hands = { .look = look,
					     .lock = lock,
					     .unlock = unlock,
					     .reserve = reserve,
					     .publish = publish,
					     .discard = discard,
					     .lookup = lookup,
					     .load = load,
					     .unlock_store = unlock_store };

static const struct kvs_prefetch_policy policy = { .name = "odd", .plan = plan };

/* --- checks ------------------------------------------------------------------------------------ */

static enum prefetch_end expected_end(const struct world *world, uint32_t boundary)
{
	const uint32_t aim = world->planned ? world->plan_boundary : world->ask.chunk_count;

	if (world->gave_up == END_CANCELLED || world->gave_up == END_STOPPED)
		return world->gave_up;
	if (boundary == world->ask.chunk_count)
		return END_WHOLE;
	if (boundary < aim)
		return world->gave_up == END_DEADLINE ? END_DEADLINE : END_FAILED;
	return aim < world->unbounded ? END_HOST_FULL : END_MISSING;
}

/* Of all that the reader ever had, the result is the greatest boundary, and exactly its keys are locked. */
static void check_result(const struct world *world)
{
	const struct prefetch_result *const result = &world->run.result;
	const bool dropped = world->gave_up == END_CANCELLED || world->gave_up == END_STOPPED;
	uint32_t   boundary = 0, locked = 0, key;

	if (!dropped)
		boundary = best(world, world->had, world->had, 0);
	KVS_ASSERT_CMP(result->boundary, ==, boundary);
	KVS_ASSERT_CMP(result->end, ==, expected_end(world, boundary));
	for (key = 0; key < world->ask.key_count; key++) {
		const bool needed = is_needed(world, boundary, key);

		KVS_ASSERT_CMP(bits_test(world->run.have, key), ==, needed);
		KVS_ASSERT_CMP(world->reader_locks[key], ==, needed ? world->ask.lock_count : 0);
		locked += needed;
	}
	KVS_ASSERT_CMP(result->from_host + result->from_store, ==, locked);
}

/* Nothing is left but what the result says. */
static void check_over(const struct world *world)
{
	uint32_t n, key;

	for (key = 0; key < KEYS; key++) {
		KVS_ASSERT(!world->staged[key]);
		for (n = 0; n < ADAPTERS; n++)
			KVS_ASSERT_CMP(world->store_locks[n][key], ==, 0);
	}
	KVS_ASSERT_CMP(world->run.bytes, ==, 0);
}

static void check(const struct world *world)
{
	if (!world->began)
		return;
	prefetch_run_audit(&world->run);
	if (prefetch_run_has_result(&world->run))
		check_result(world);
	if (world->run.state == RUN_OVER)
		check_over(world);
	if (world->planned && world->run.state == RUN_LOAD)
		KVS_ASSERT_CMP(world->run.boundary, ==, world->plan_boundary);
}

/* --- steps ------------------------------------------------------------------------------------- */

enum { BEGIN, START, LOOKED_UP, LOADED, RETIRED, GIVE_UP, LEAVE, COME, GO };

static const struct prop_kind kinds[] = { { "BEGIN", 8 },  { "START", 8 },   { "LOOKED_UP", 20 },
					  { "LOADED", 14 }, { "RETIRED", 4 }, { "GIVE_UP", 3 },
					  { "LEAVE", 1 },  { "COME", 3 },    { "GO", 2 } };

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));
	uint32_t            i;

	KVS_ASSERT(world);
	KVS_ASSERT(prefetch_run_open(&world->run, KEYS) == 0);
	KVS_ASSERT(prefetch_tools_open(&world->tools, KEYS) == 0);
	world->tools.hands = &hands;
	world->tools.arg = world;
	world->tools.policy = &policy;
	world->tools.stats = &world->stats;
	world->ask.keys = world->keys;
	world->ask.bytes = world->bytes;
	world->ask.held = world->held;
	for (i = 0; i < KEYS; i++) {
		world->keys[i] = key_of(i);
		world->bytes[i] = 1 + i;
	}
	for (i = 0; i < ADAPTERS; i++)
		world->tools.infos[i] = (struct kvs_adapter_info){ .number = i, .healthy = true };
	policy_world = world;
	return world;
}

/* Bits in mind: most keys are there, so that boundaries lie anywhere. */
static bool draw(struct prng *prng, uint32_t part)
{
	return prng_below(prng, 16) < part;
}

static void draw_groups(struct world *world, struct prng *prng)
{
	uint32_t g;

	world->group_count = 1 + (uint32_t)prng_below(prng, GROUPS);
	world->copies = 1 + (uint32_t)prng_below(prng, 2);
	for (g = 0; g < world->group_count; g++)
		world->windows[g] = draw(prng, 8) ? FLAT_ALL : (uint32_t)prng_below(prng, 5);
	KVS_ASSERT(flat_make(world->windows, world->group_count, world->copies, &world->ask.flat,
			     NULL) == 0);
	world->ask.chunk_count = 1 + (uint32_t)prng_below(prng, CHUNKS_MAX);
	world->ask.key_count = world->ask.chunk_count * flat_keys(&world->ask.flat);
}

static void draw_contents(struct world *world, struct prng *prng)
{
	const uint32_t host = (uint32_t)prng_below(prng, 17), store = (uint32_t)prng_below(prng, 17);
	const bool     barred = draw(prng, 4);
	uint32_t       key, n;

	memset(world->held, 0, sizeof(world->held));
	world->ask.need_bytes = 0;
	for (key = 0; key < world->ask.key_count; key++) {
		const bool held = draw(prng, host) && draw(prng, 10);

		world->resident[key] = held || draw(prng, 1);
		world->reader_locks[key] = held ? world->ask.lock_count : 0;
		world->had[key] = held;
		world->barred[key] = barred && draw(prng, 1);
		if (held)
			bits_set(world->held, key);
		else
			world->ask.need_bytes += world->bytes[key];
		for (n = 0; n < ADAPTERS; n++)
			world->stored[n][key] = draw(prng, store);
	}
}

static void begin(struct world *world, const struct prop_op *op)
{
	struct prng prng;

	if (world->run.state != RUN_OVER)
		return;
	prng_seed(&prng, ((uint64_t)op->arg[0] << 32) | op->arg[1]);
	world->ask.request_id++;
	world->ask.lock_count = 1 + (uint32_t)prng_below(&prng, 3);
	world->ask.retain = draw(&prng, 4);
	world->odd = (uint32_t)prng_below(&prng, 1000);
	world->room = draw(&prng, 8) ? KEYS : (uint32_t)prng_below(&prng, 40);
	world->tools.info_count = (uint32_t)prng_below(&prng, ADAPTERS + 1);
	draw_groups(world, &prng);
	draw_contents(world, &prng);
	world->planned = false;
	world->unbounded = 0;
	world->gave_up = END_WHOLE;
	world->began = true;
	prefetch_run_begin(&world->run, &world->ask);
}

static void start(struct world *world)
{
	uint32_t key;

	if (world->run.state != RUN_QUEUED)
		return;
	/* It looks again: what has come is as good as held.  With nobody to ask the plan follows at once. */
	for (key = 0; key < world->ask.key_count; key++)
		world->had[key] |= world->resident[key] && !world->barred[key];
	expect_plan(world);
	for (key = 0; key < world->ask.key_count; key++)
		world->had[key] = world->reader_locks[key] > 0;
	prefetch_run_start(&world->run, &world->tools);
	if (world->run.state == RUN_LOOKUP)
		world->planned = false;
}

/* The from-th adapter with a task of a kind; ADAPTERS when there is none. */
static uint32_t pick(const struct world *world, uint32_t from, bool (*is_it)(const struct run_tasks *))
{
	uint32_t i;

	for (i = 0; i < ADAPTERS; i++) {
		if (is_it(&world->run.tasks[(from + i) % ADAPTERS]))
			return (from + i) % ADAPTERS;
	}
	return ADAPTERS;
}

static bool looks(const struct run_tasks *tasks)
{
	return tasks->lookup_id != 0;
}

static bool loads(const struct run_tasks *tasks)
{
	return tasks->load_id != 0 && !tasks->doubt;
}

static bool doubts(const struct run_tasks *tasks)
{
	return tasks->doubt;
}

/* The store locks what it finds; rows are the keys that were asked, in order. */
static void looked_up(struct world *world, const struct prop_op *op)
{
	const uint32_t n = pick(world, op->arg[0], looks);
	uint64_t       words[WORDS] = { 0 };
	uint32_t       row = 0, key;

	if (n == ADAPTERS)
		return;
	for (key = 0; key < world->ask.key_count; key++) {
		if (!bits_test(world->run.asked, key))
			continue;
		if (world->stored[n][key]) {
			bits_set(words, row);
			world->store_locks[n][key] = 1;
		}
		row++;
	}
	if (world->run.state == RUN_LOOKUP && world->run.lookups == 1)
		expect_plan(world);
	prefetch_run_looked_up(&world->run, &world->tools, n, words);
}

static void loaded(struct world *world, const struct prop_op *op)
{
	const uint32_t n = pick(world, op->arg[0], loads);
	const uint32_t fails = op->arg[1] % 16;
	const bool     retired = op->arg[1] / 16 % 4 != 0;
	uint64_t       words[WORDS] = { 0 };
	struct cargo  *cargo;
	uint32_t       left = 0, i;

	if (n == ADAPTERS)
		return;
	cargo = &world->cargo[n];
	for (i = 0; i < cargo->count; i++) {
		if (mix64(((uint64_t)op->arg[1] << 32) | i) % 16 >= (fails < 12 ? 0 : fails))
			bits_set(words, i);
	}
	/* Rows that came are over; of an op that did not retire no row came. */
	for (i = 0; i < cargo->count; i++) {
		if (!retired && !bits_test(words, i))
			cargo->keys[left++] = cargo->keys[i];
	}
	cargo->count = left;
	prefetch_run_loaded(&world->run, &world->tools, n, words, retired);
}

static void retired(struct world *world, const struct prop_op *op)
{
	const uint32_t n = pick(world, op->arg[0], doubts);

	if (n == ADAPTERS)
		return;
	world->cargo[n].count = 0;
	prefetch_run_retired(&world->run, &world->tools, n);
}

static void give_up(struct world *world, const struct prop_op *op)
{
	static const enum prefetch_end whys[] = { END_DEADLINE, END_DEADLINE,
						  END_CANCELLED, END_STOPPED };

	if (!world->began || prefetch_run_has_result(&world->run))
		return;
	world->gave_up = whys[op->arg[0] % ARRAY_COUNT(whys)];
	prefetch_run_give_up(&world->run, &world->tools, world->gave_up);
}

/* The highest adapter leaves; a run that looks has nothing there any more. */
static void leave(struct world *world)
{
	uint32_t n, key;

	if (!world->began || world->tools.info_count == 0)
		return;
	n = --world->tools.info_count;
	prefetch_run_leave(&world->run, &world->tools, n);
	for (key = 0; world->run.state == RUN_LOOKUP && key < KEYS; key++)
		KVS_ASSERT_CMP(world->store_locks[n][key], ==, 0);
}

/* Other writers and the eviction: an object comes, one that nobody reads goes. */
static void come(struct world *world, uint32_t draw_key)
{
	if (world->began)
		world->resident[draw_key % world->ask.key_count] = true;
}

static void go(struct world *world, uint32_t draw_key)
{
	if (world->began && world->reader_locks[draw_key % world->ask.key_count] == 0)
		world->resident[draw_key % world->ask.key_count] = false;
}

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;

	switch (op->kind) {
	case BEGIN:
		begin(world, op);
		break;
	case START:
		if (world->began)
			start(world);
		break;
	case LOOKED_UP:
		looked_up(world, op);
		break;
	case LOADED:
		loaded(world, op);
		break;
	case RETIRED:
		retired(world, op);
		break;
	case GIVE_UP:
		give_up(world, op);
		break;
	case LEAVE:
		leave(world);
		break;
	case COME:
		come(world, op->arg[0]);
		break;
	case GO:
		go(world, op->arg[0]);
		break;
	default:
		KVS_PANIC("no step %u", op->kind);
	}
	check(world);
}

/* Every run comes to its end, whatever was left open. */
static void world_close(void *arg)
{
	struct world *const  world = arg;
	const struct prop_op stop = { .arg = { 3, 0 } }, fine = { .arg = { 0, 16 } };

	give_up(world, &stop);
	while (world->began && world->run.state != RUN_OVER) {
		looked_up(world, &fine);
		loaded(world, &fine);
		retired(world, &fine);
	}
	check(world);
	prefetch_tools_close(&world->tools);
	prefetch_run_close(&world->run);
	free(world);
}

PROP_MAIN("prefetch", B4_2_the_greatest_boundary_is_had_and_every_lock_comes_home, 400, 400, world_close)
