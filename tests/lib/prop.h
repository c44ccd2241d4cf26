/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property tests: random lists of operations, run on a room and on a model so naive that it is
 * plainly right.
 *
 * A step does one operation on both and compares them with KVS_ASSERT.  Each list runs in a child
 * process, so that a failed comparison, a panic of the room and a sanitizer's report are all the
 * same thing: a failed list.  It is shrunk by deleting chunks, then single operations, and printed
 * in the form that prop_replay() takes.
 *
 * Seed     KVSTRATA_SEED, or a fixed default; printed first.  The same seed gives the same lists.
 */
#ifndef PROP_H
#define PROP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct prop_op {
	uint32_t kind;
	uint32_t arg[2]; /* any value: the step reduces it to what makes sense */
};

struct prop_kind {
	const char *name;
	uint32_t    weight; /* how often, relative to the other kinds; at least 1 */
};

struct prop {
	const char             *name;
	const struct prop_kind *kinds;
	uint32_t                kind_count;
	uint32_t                list_count; /* lists to run */
	uint32_t                op_count;   /* operations of each */
	void *(*open)(void); /* room and model, equal */
	void (*step)(void *world, const struct prop_op *op);
	void (*close)(void *world);
};

/*
 * Run all lists.  False when one failed; the shortest form of it that was found is on stderr then.
 */
bool prop_run(const struct prop *prop);

/* Whether one list passes; loud lets the failed comparison speak. */
bool prop_replay(const struct prop *prop, const struct prop_op *ops, uint32_t count, bool loud);

/* Shorten a failing list in place; returns how many operations are left.  Each of them is needed to fail. */
uint32_t prop_shrink(const struct prop *prop, struct prop_op *ops, uint32_t count);

/*
 * The rest of a program whose one test says what the room claims.  Its operations are kinds[], and
 * world_open() and world_step() are the file's.
 */
#define PROP_MAIN(room, claim, lists, ops, close_world) \
	static void claim(void **state) \
	{ \
		static const struct prop prop = { .name = (room), \
						  .kinds = kinds, \
						  .kind_count = ARRAY_COUNT(kinds), \
						  .list_count = (lists), \
						  .op_count = (ops), \
						  .open = world_open, \
						  .step = world_step, \
						  .close = (close_world) }; \
\
		(void)state; \
		assert_true(prop_run(&prop)); \
	} \
\
	int main(void) \
	{ \
		const struct CMUnitTest tests[] = { cmocka_unit_test(claim) }; \
\
		return cmocka_run_group_tests(tests, NULL, NULL); \
	}

#endif
