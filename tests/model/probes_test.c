/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes against a row a key, no queue and no map: few keys and a short lease, so that bounds are
 * reached, leases end, and answers come after all was forgotten.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "mooncake/probes.h"
#include "prop.h"

#define KEYS 300

struct row {
	bool     kept;     /* may have a lease */
	bool     found;
	bool     doubted;  /* the question is from before all was forgotten */
	uint64_t stamp_ns;
	uint64_t place;    /* in the order of stamps given */
};

struct world {
	struct probes *probes;
	uint64_t       now_ns;
	uint64_t       lease_ns, grown_ns, forgotten_ns;
	uint64_t       places, skipped;
	uint32_t       probe_max, bound;
	struct row     rows[KEYS];
};

static struct kvs_key key_at(uint32_t number)
{
	return (struct kvs_key){ .hash = { (uint8_t)number, (uint8_t)(number >> 8) }, .offset = number };
}

static bool has_passed(const struct world *world, uint64_t since_ns, uint64_t age_ns, uint64_t now_ns)
{
	(void)world;
	return now_ns >= since_ns + age_ns;
}

static uint32_t kept(const struct world *world)
{
	uint32_t i, count = 0;

	for (i = 0; i < KEYS; i++)
		count += world->rows[i].kept;
	return count;
}

static bool is_known(const struct world *world, const struct row *row)
{
	return row->kept && row->found && !row->doubted &&
	       !has_passed(world, row->stamp_ns, world->lease_ns / 2, world->now_ns);
}

static struct row *first_kept(struct world *world)
{
	struct row *first = NULL;
	uint32_t    i;

	for (i = 0; i < KEYS; i++) {
		struct row *const row = &world->rows[i];

		if (row->kept && (!first || row->place < first->place))
			first = row;
	}
	return first;
}

static void expire(struct world *world, uint64_t now_ns)
{
	struct row *row;

	while ((row = first_kept(world)) && has_passed(world, row->stamp_ns, world->lease_ns, now_ns))
		row->kept = false;
}

static void grow(struct world *world)
{
	const uint32_t step = world->probe_max < 8 ? 1 : world->probe_max / 8;

	for (; world->grown_ns + world->lease_ns <= world->now_ns; world->grown_ns += world->lease_ns) {
		/* All of it or as much as there is room for. */
		world->bound += step;
		if (world->bound > world->probe_max)
			world->bound = world->probe_max;
	}
}

static void stamp(struct world *world, struct row *row, bool found, uint64_t now_ns)
{
	*row = (struct row){ .kept = true, .found = found, .stamp_ns = now_ns,
			     .place = ++world->places };
}

static enum probe model_look(struct world *world, struct row *row)
{
	expire(world, world->now_ns);
	grow(world);
	if (is_known(world, row))
		return PROBE_FOUND;
	if (row->kept ? kept(world) <= world->bound : kept(world) < world->bound) {
		stamp(world, row, false, world->now_ns);
		return PROBE_ASK;
	}
	world->skipped++;
	return PROBE_SKIP;
}

static void model_found(struct world *world, struct row *row, uint64_t now_ns)
{
	const bool is_news = now_ns > world->forgotten_ns;
	bool       was_found;

	expire(world, now_ns);
	was_found = row->kept && row->found && !row->doubted;
	if (row->kept && now_ns <= row->stamp_ns)
		row->found |= is_news;
	else if (row->kept || kept(world) < world->probe_max)
		stamp(world, row, is_news || was_found, now_ns);
}

static void model_refused(struct world *world)
{
	const uint32_t least = world->probe_max < PROBES_LEAST ? world->probe_max : PROBES_LEAST;

	grow(world);
	world->bound /= 2;
	if (world->bound < least)
		world->bound = least;
	world->grown_ns = world->now_ns;
}

static void compare(const struct world *world)
{
	uint32_t i;

	probes_audit(world->probes);
	KVS_ASSERT_CMP(probes_count(world->probes), ==, kept(world));
	KVS_ASSERT_CMP(probes_bound(world->probes), ==, world->bound);
	KVS_ASSERT_CMP(probes_skipped(world->probes), ==, world->skipped);
	for (i = 0; i < KEYS; i++) {
		const struct kvs_key key = key_at(i);

		KVS_ASSERT_CMP(probes_know(world->probes, &key, world->now_ns), ==,
			       is_known(world, &world->rows[i]));
	}
}

static void reopen(struct world *world, uint32_t lease, uint32_t probe_max)
{
	probes_close(world->probes);
	*world = (struct world){ .now_ns = world->now_ns,
				 .grown_ns = world->now_ns,
				 .lease_ns = 1 + lease % 100,
				 .probe_max = 1 + probe_max % (KEYS * 3 / 4) };
	world->bound = world->probe_max;
	KVS_ASSERT(probes_open(world->lease_ns, world->probe_max, &world->probes) == 0);
	KVS_ASSERT_CMP(probes_bytes(world->probes), >=, world->probe_max * sizeof(struct kvs_key));
}

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	world->now_ns = 1000;
	reopen(world, 19, 150);
	return world;
}

enum { REOPEN, PASS, LOOK, FIND, MISS, REMOVE, FORGET, REFUSE };

static const struct prop_kind kinds[] = { { "REOPEN", 1 }, { "PASS", 20 }, { "LOOK", 100 },
					  { "FIND", 60 },  { "MISS", 10 }, { "REMOVE", 2 }, { "FORGET", 1 },
					  { "REFUSE", 3 } };

/* As soon as a look says so, or some time after; calls end in any order. */
static void find(struct world *world, uint32_t number, uint32_t age)
{
	const struct kvs_key key = key_at(number);
	const uint64_t       began_ns = world->now_ns - age % (world->lease_ns + 1);

	probes_found(world->probes, &key, began_ns);
	model_found(world, &world->rows[number], began_ns);
}

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const  world = arg;
	const uint32_t       number = op->arg[0] % KEYS;
	const struct kvs_key key = key_at(number);

	switch (op->kind) {
	case REOPEN:
		reopen(world, op->arg[0], op->arg[1]);
		break;
	case PASS:
		world->now_ns += op->arg[0] % (op->arg[1] % 16 ? 4 : 2 * world->lease_ns);
		break;
	case LOOK:
		KVS_ASSERT_CMP(probes_look(world->probes, &key, world->now_ns), ==,
			       model_look(world, &world->rows[number]));
		break;
	case FIND:
		find(world, number, op->arg[1] % 4 ? 0 : op->arg[1]);
		break;
	case MISS:
		probes_forget(world->probes, &key);
		world->rows[number].kept = false;
		break;
	case REMOVE:
		probes_removed(world->probes, &key, world->now_ns);
		world->rows[number].kept = false;
		world->forgotten_ns = world->now_ns;
		break;
	case FORGET:
		probes_forget_all(world->probes, world->now_ns);
		world->forgotten_ns = world->now_ns;
		for (uint32_t i = 0; i < KEYS; i++)
			world->rows[i].doubted = true;
		break;
	default:
		probes_refused(world->probes, world->now_ns);
		model_refused(world);
	}
	compare(world);
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	probes_close(world->probes);
	free(world);
}

PROP_MAIN("probes", probes_are_what_each_key_was_told, 60, 1500, world_close)
