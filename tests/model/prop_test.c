/* SPDX-License-Identifier: Apache-2.0 */
/* The harness itself, on a room with a planted bug: found, shrunk, and right rooms are left alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "prop.h"

enum { ADD, NOISE, TAKE };

struct world {
	uint32_t sum;
	bool     sound;
};

static bool next_is_sound;

static void *world_open(void)
{
	struct world *const world = calloc(1, sizeof(*world));

	KVS_ASSERT(world);
	world->sound = next_is_sound;
	return world;
}

/* Wrong exactly when an unsound world takes after it was added to twice. */
static void world_step(void *arg, const struct prop_op *op)
{
	struct world *const world = arg;

	if (op->kind == ADD)
		world->sum++;
	if (op->kind == TAKE)
		KVS_ASSERT(world->sound || world->sum < 2);
}

static const struct prop_kind kinds[] = { { "ADD", 1 }, { "NOISE", 50 }, { "TAKE", 1 } };
static const struct prop      prop = { .name = "planted",
				       .kinds = kinds,
				       .kind_count = ARRAY_COUNT(kinds),
				       .list_count = 5,
				       .op_count = 300,
				       .open = world_open,
				       .step = world_step,
				       .close = free };

static void a_right_room_passes(void **state)
{
	(void)state;
	next_is_sound = true;
	assert_true(prop_run(&prop));
}

static void a_bug_is_shrunk_to_what_it_needs(void **state)
{
	struct prop_op ops[60] = { { .kind = NOISE } };
	uint32_t       i;

	(void)state;
	next_is_sound = false;
	for (i = 0; i < ARRAY_COUNT(ops); i++)
		ops[i].kind = i % 7 == 3 ? ADD : i % 11 == 5 ? TAKE : NOISE;
	assert_false(prop_replay(&prop, ops, ARRAY_COUNT(ops), false));
	assert_int_equal(prop_shrink(&prop, ops, ARRAY_COUNT(ops)), 3);
	assert_int_equal(ops[0].kind, ADD);
	assert_int_equal(ops[1].kind, ADD);
	assert_int_equal(ops[2].kind, TAKE);
	assert_true(prop_replay(&prop, ops, 2, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_right_room_passes),
		cmocka_unit_test(a_bug_is_shrunk_to_what_it_needs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
