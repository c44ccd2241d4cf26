/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the library that hang: who waits, who does not, and what a late answer proves. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "cave.h"

static const struct stub_plan holds = { .calls = 1, .holds = true };

static int open_cave(void **state)
{
	struct cave *const cave = cave_make_open();
	bool               retired;

	assert_int_equal(cave_call(cave, 1, MOONCAKE_PUT, 2, &retired), 0);
	*state = cave;
	return 0;
}

static int close_cave(void **state)
{
	cave_close(*state);
	return 0;
}

static bool settled(struct cave *cave)
{
	return cave->way->ops->settled(cave->way);
}

static void come_back(struct cave *cave, uint32_t lane)
{
	cave->stub->release();
	cave_wait_home(cave, lane);
}

static void a_caller_leaves_a_call_that_hangs_and_its_bytes_are_in_doubt(void **state)
{
	struct cave *const cave = *state;
	bool               retired = true;

	cave->stub->plan(STUB_GET, &holds);
	assert_int_equal(cave_call_briefly(cave, 1, MOONCAKE_GET, 2, &retired), -ETIMEDOUT);
	assert_false(retired);
	assert_false(settled(cave));
	come_back(cave, 1);
}

static void what_moves_nothing_leaves_no_doubt(void **state)
{
	struct cave *const cave = *state;
	bool               retired = false;

	cave->stub->plan(STUB_EXISTS, &holds);
	assert_int_equal(cave_call_briefly(cave, 0, MOONCAKE_EXISTS, 2, &retired), -ETIMEDOUT);
	assert_true(retired);
	assert_true(settled(cave));
	come_back(cave, 0);
	assert_int_equal(cave_call(cave, 0, MOONCAKE_EXISTS, 2, &retired), 0);
	assert_int_equal(cave->codes[0], 1);
}

static void a_lost_lane_is_refused_at_once_and_others_work(void **state)
{
	struct cave *const       cave = *state;
	struct mooncake_way_info info;
	bool                     retired;

	cave->stub->plan(STUB_PUT, &holds);
	(void)cave_call_briefly(cave, 1, MOONCAKE_PUT, 2, &retired);
	retired = false;
	assert_int_equal(cave_call(cave, 1, MOONCAKE_GET, 2, &retired), KVS_E_BUSY);
	assert_true(retired);
	assert_int_equal(cave_figures(cave).calls[STUB_GET], 0);
	assert_int_equal(cave_call(cave, 2, MOONCAKE_GET, 2, &retired), 0);
	info = cave_describe(cave);
	assert_int_equal(info.lanes_up, 2);
	assert_string_equal(info.note, "1 of 3 lanes hang in a call");
	come_back(cave, 1);
	info = cave_describe(cave);
	assert_int_equal(info.lanes_up, 3);
	assert_string_equal(info.note, "");
	assert_int_equal(cave_call(cave, 1, MOONCAKE_GET, 2, &retired), 0);
	assert_int_equal(cave->codes[1], CAVE_BYTES);
}

/* The stub reads names, buffers and sizes only after its caller's have gone. */
static void what_a_hanging_call_was_given_outlives_its_caller(void **state)
{
	struct cave *const cave = *state;
	uint8_t            before[2][CAVE_BYTES];
	bool               retired;

	memcpy(before, cave->bytes, sizeof(before));
	memset(cave->bytes, 0, sizeof(cave->bytes));
	cave->stub->plan(STUB_GET, &holds);
	(void)cave_call_briefly(cave, 1, MOONCAKE_GET, 2, &retired);
	come_back(cave, 1);
	assert_memory_equal(cave->bytes, before, sizeof(before));
}

static void a_late_answer_that_proves_it_ends_the_doubt(void **state)
{
	struct cave *const cave = *state;
	bool               retired;

	cave->stub->plan(STUB_GET, &holds);
	(void)cave_call_briefly(cave, 1, MOONCAKE_GET, 3, &retired);
	cave->stub->plan(STUB_PUT, &holds);
	(void)cave_call_briefly(cave, 2, MOONCAKE_PUT, 1, &retired);
	assert_false(settled(cave));
	come_back(cave, 1);
	cave_wait_home(cave, 2);
	assert_true(settled(cave));
}

static void one_of_two_late_answers_is_not_enough(void **state)
{
	struct cave *const     cave = *state;
	const struct stub_plan fails = { .calls = 1, .holds = true, .code_count = 1,
					 .codes = { -900 } };
	bool                   retired;

	cave->stub->plan(STUB_GET, &holds);
	(void)cave_call_briefly(cave, 1, MOONCAKE_GET, 2, &retired);
	cave->stub->plan(STUB_PUT, &fails);
	(void)cave_call_briefly(cave, 2, MOONCAKE_PUT, 2, &retired);
	come_back(cave, 1);
	cave_wait_home(cave, 2);
	assert_false(settled(cave));
	cave_forget_doubts(cave);
}

static void check_late(struct cave *cave, struct stub_plan plan)
{
	bool retired;

	plan.calls = 1;
	plan.holds = true;
	cave->stub->plan(STUB_GET, &plan);
	(void)cave_call_briefly(cave, 1, MOONCAKE_GET, 2, &retired);
	come_back(cave, 1);
	assert_false(settled(cave));
	assert_int_equal(cave->way->ops->close(cave->way), KVS_E_QUARANTINE);
	/* The lane is up again all the same. */
	assert_int_equal(cave_call(cave, 1, MOONCAKE_GET, 2, &retired), 0);
	assert_true(retired);
	assert_false(settled(cave));
	cave_forget_doubts(cave);
}

static void a_late_answer_that_proves_nothing_leaves_it(void **state)
{
	check_late(*state, (struct stub_plan){ .code_count = 2, .codes = { CAVE_BYTES, -800 } });
	check_late(*state, (struct stub_plan){ .rc = -1 });
	check_late(*state, (struct stub_plan){ .cuts = true, .rows = 1 });
}

static void a_late_lookup_proves_nothing_about_others(void **state)
{
	struct cave *const cave = *state;
	bool               retired;

	cave_answer(cave, STUB_PUT, -800);
	assert_int_equal(cave_call(cave, 1, MOONCAKE_PUT, 1, &retired), 0);
	cave->stub->plan(STUB_EXISTS, &holds);
	(void)cave_call_briefly(cave, 0, MOONCAKE_EXISTS, 1, &retired);
	come_back(cave, 0);
	assert_false(settled(cave));
	cave_forget_doubts(cave);
}

static void a_close_waits_for_no_call_and_works_when_it_is_back(void **state)
{
	struct cave *const cave = *state;
	bool               retired;

	cave->stub->plan(STUB_PUT, &holds);
	(void)cave_call_briefly(cave, 1, MOONCAKE_PUT, 1, &retired);
	assert_int_equal(cave->way->ops->close(cave->way), KVS_E_QUARANTINE);
	assert_int_equal(cave_figures(cave).calls[STUB_DESTROY], 0);
	come_back(cave, 1);
	assert_int_equal(cave->way->ops->close(cave->way), 0);
	cave->way = NULL;
	assert_int_equal(cave_figures(cave).calls[STUB_DESTROY], 1);
}

static void a_close_that_was_refused_has_changed_nothing(void **state)
{
	struct cave *const cave = *state;
	bool               retired;

	cave->stub->plan(STUB_EXISTS, &holds);
	(void)cave_call_briefly(cave, 0, MOONCAKE_EXISTS, 1, &retired);
	assert_true(settled(cave));
	assert_int_equal(cave->way->ops->close(cave->way), KVS_E_QUARANTINE);
	assert_int_equal(cave_call(cave, 1, MOONCAKE_GET, 1, &retired), 0);
	assert_int_equal(cave->codes[0], CAVE_BYTES);
	come_back(cave, 0);
}

static void a_destroy_that_hangs_may_be_waited_for_again(void **state)
{
	struct cave *const cave = cave_make();

	(void)state;
	cave->settings.timeout_ns = 1000000;
	cave->settings.required = false;
	cave_open(cave);
	cave_wait_keeper(cave);
	cave->stub->plan(STUB_DESTROY, &holds);
	assert_int_equal(cave->way->ops->close(cave->way), KVS_E_QUARANTINE);
	cave->stub->wait_held(1);
	assert_int_equal(cave->way->ops->close(cave->way), KVS_E_QUARANTINE);
	cave->stub->release();
	cave_wait_keeper(cave);
	cave_close(cave);
}

static void a_registration_that_hangs_is_noted_and_waited_for(void **state)
{
	struct cave *const      cave = cave_make();
	const struct kvs_memory memory = { cave->spans, CAVE_NAMES, -1 };

	(void)state;
	cave->settings.timeout_ns = 1000000;
	cave->settings.required = false;
	cave_open(cave);
	cave_wait_keeper(cave);
	cave->stub->plan(STUB_REGISTER, &holds);
	assert_int_equal(cave->way->ops->register_memory(cave->way, &memory), -ETIMEDOUT);
	cave->stub->wait_held(1);
	assert_string_equal(cave_describe(cave).note,
			    "memory is not registered: register_buffer() hangs");
	assert_int_equal(cave->way->ops->close(cave->way), KVS_E_QUARANTINE);
	cave->stub->release();
	cave_wait_keeper(cave);
	assert_string_equal(cave_describe(cave).note, "");
	cave_library(cave)->settings.timeout_ns = CAVE_FOREVER_NS;
	cave_close(cave);
}

int main(void)
{
#define CAVE_TEST(name) cmocka_unit_test_setup_teardown(name, open_cave, close_cave)
	const struct CMUnitTest tests[] = {
		CAVE_TEST(a_caller_leaves_a_call_that_hangs_and_its_bytes_are_in_doubt),
		CAVE_TEST(what_moves_nothing_leaves_no_doubt),
		CAVE_TEST(a_lost_lane_is_refused_at_once_and_others_work),
		CAVE_TEST(what_a_hanging_call_was_given_outlives_its_caller),
		CAVE_TEST(a_late_answer_that_proves_it_ends_the_doubt),
		CAVE_TEST(one_of_two_late_answers_is_not_enough),
		CAVE_TEST(a_late_answer_that_proves_nothing_leaves_it),
		CAVE_TEST(a_late_lookup_proves_nothing_about_others),
		CAVE_TEST(a_close_waits_for_no_call_and_works_when_it_is_back),
		CAVE_TEST(a_close_that_was_refused_has_changed_nothing),
		cmocka_unit_test(a_destroy_that_hangs_may_be_waited_for_again),
		cmocka_unit_test(a_registration_that_hangs_is_noted_and_waited_for),
	};

	return cmocka_run_group_tests_name("mooncake_library_hang", tests, NULL, NULL);
}
