/* SPDX-License-Identifier: Apache-2.0 */
/*
 * locks against plain counts: what each key's holders and queries are, and what a store that counts
 * locks would keep.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "exec/locks.h"
#include "named_block.h"
#include "prop.h"

#define KEYS 12u
#define LOCK_MAX 8u
#define QUERIES 6u
#define ROWS 4u

struct query {
	bool           open;
	struct op      op;
	struct kvs_key keys[ROWS];
};

struct world {
	struct locks locks;
	struct query queries[QUERIES];
	uint32_t     asked[KEYS];
	uint32_t     held[KEYS];
	uint32_t     kept[KEYS]; /* by the store */
};

static uint32_t taken(const struct world *world)
{
	uint32_t count = 0;
	uint32_t i;

	for (i = 0; i < KEYS; i++)
		count += world->asked[i] + world->held[i] + world->kept[i] > 0;
	return count;
}

static void ask(struct world *world, struct query *query, uint32_t bits)
{
	bool     expected;
	uint32_t i;

	query->op = (struct op){ .op_id = 1, .kind = OP_QUERY, .flags = OP_LOCK,
				 .key_count = 1 + bits % ROWS, .keys = query->keys };
	query->op.owned.words[0] = bits >> 8;
	for (i = 0; i < query->op.key_count; i++) {
		query->keys[i] = key_of((bits >> (8 + 4 * i)) % KEYS);
		world->asked[query->keys[i].offset] += bits_test(query->op.owned.words, i);
	}
	expected = taken(world) <= LOCK_MAX;
	for (i = 0; !expected && i < query->op.key_count; i++)
		world->asked[query->keys[i].offset] -= bits_test(query->op.owned.words, i);
	KVS_ASSERT_CMP(locks_ask(&world->locks, &query->op), ==, expected);
	query->open = expected;
}

/* Rows that the bits say are found; the store keeps a lock for the first of equal keys. */
static void end(struct world *world, struct query *query, uint32_t bits)
{
	const struct op_mask granted = { .words = { bits } };
	struct op_mask       kept = { .words = { 0 } };
	uint32_t             i, j;

	for (i = 0; i < query->op.key_count; i++) {
		const uint32_t key = query->keys[i].offset;
		bool           first = true;

		if (!bits_test(query->op.owned.words, i))
			continue;
		world->asked[key]--;
		world->held[key] += bits_test(granted.words, i);
		for (j = 0; j < i; j++)
			first &= query->keys[j].offset != key || !bits_test(kept.words, j);
		if (!bits_test(granted.words, i) || !first)
			continue;
		bits_set(kept.words, i);
		world->kept[key]++;
	}
	locks_settle(&world->locks, &query->op, &granted, &kept);
	query->open = false;
}

static void give(struct world *world, uint32_t number)
{
	const struct kvs_key key = key_of(number);

	locks_give(&world->locks, &key);
	world->held[number] -= world->held[number] > 0;
}

static void tell(struct world *world, uint32_t key_max)
{
	struct kvs_key keys[KEYS];
	bool           told[KEYS] = { false };
	uint32_t       owing = 0, count, i;

	for (i = 0; i < KEYS; i++)
		owing += world->kept[i] > (world->asked[i] + world->held[i] > 0);
	count = locks_tell(&world->locks, keys, key_max);
	KVS_ASSERT_CMP(count, ==, owing < key_max ? owing : key_max);
	for (i = 0; i < count; i++) {
		const uint32_t number = keys[i].offset;

		KVS_ASSERT(!told[number]);
		told[number] = true;
		KVS_ASSERT_CMP(world->kept[number], >,
			       world->asked[number] + world->held[number] > 0);
		world->kept[number]--;
	}
}

static void give_all(struct world *world)
{
	uint32_t i;

	locks_give_all(&world->locks);
	for (i = 0; i < KEYS; i++)
		world->held[i] = 0;
}

static void compare(const struct world *world)
{
	uint64_t held = 0, asked = 0;
	uint32_t i;

	locks_audit(&world->locks);
	for (i = 0; i < KEYS; i++) {
		held += world->held[i];
		asked += world->asked[i];
		/* What is held is kept by the store, whatever it was told. */
		if (world->held[i] > 0)
			KVS_ASSERT_CMP(world->kept[i], >, 0);
	}
	KVS_ASSERT_CMP(world->locks.held, ==, held);
	KVS_ASSERT_CMP(world->locks.asked, ==, asked);
	KVS_ASSERT_CMP(world->locks.slots.busy_count, ==, taken(world));
}

enum { ASK, GIVE, TELL, GIVE_ALL };

static const struct prop_kind kinds[] = {
	{ "ASK", 40 }, { "GIVE", 50 }, { "TELL", 30 }, { "GIVE_ALL", 1 }
};

static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;
	struct query *const query = &world->queries[op->arg[0] % QUERIES];

	if (op->kind == GIVE)
		give(world, op->arg[0] % KEYS);
	else if (op->kind == TELL)
		tell(world, 1 + op->arg[0] % 3);
	else if (op->kind == GIVE_ALL)
		give_all(world);
	else if (query->open)
		end(world, query, op->arg[1]);
	else
		ask(world, query, op->arg[1]);
	compare(world);
}

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	KVS_ASSERT(locks_open(&world->locks, LOCK_MAX) == 0);
	return world;
}

static void world_close(void *arg)
{
	struct world *const world = arg;

	locks_close(&world->locks);
	free(world);
}

PROP_MAIN("locks", locks_are_counts, 60, 500, world_close)
