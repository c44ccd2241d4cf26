/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariant flat, of Mooncake's client library: no call allocates, whatever becomes of it.
 *
 * The linker leads all calls of our floors and of this program to the counters, those of the stub not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "allocs.h"
#include "cave.h"

static void use(struct cave *cave)
{
	const struct stub_plan holds = { .calls = 1, .holds = true };
	enum mooncake_verb     verb;
	bool                   retired;

	for (verb = 0; verb < MOONCAKE_PURGE; verb++)
		assert_int_equal(cave_call(cave, 1, verb, CAVE_NAMES, &retired), 0);
	cave_answer(cave, STUB_PUT, -800);
	assert_int_equal(cave_call(cave, 2, MOONCAKE_PUT, 1, &retired), 0);
	cave->stub->plan(STUB_GET, &holds);
	(void)cave_call_briefly(cave, 1, MOONCAKE_GET, 2, &retired);
	(void)cave_call(cave, 1, MOONCAKE_GET, 2, &retired);
	cave->stub->release();
	cave_wait_home(cave, 1);
	(void)cave_describe(cave);
	(void)cave->way->ops->settled(cave->way);
}

static void no_allocation_after_open_of_the_library(void **state)
{
	struct cave *const cave = cave_make_open();
	const uint64_t     at_open = allocs_count;
	uint32_t           i;

	(void)state;
	assert_true(at_open > 0);
	for (i = 0; i < 10; i++)
		use(cave);
	assert_int_equal(allocs_count, at_open);
	cave_forget_doubts(cave);
	cave_close(cave);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_allocation_after_open_of_the_library),
	};

	return cmocka_run_group_tests_name("mooncake_library_flat", tests, NULL, NULL);
}
