/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a store is asked for a prompt, and for what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "quest.h"

/* --- whether to ask --------------------------------------------------------------------------- */

static void A3_1_a_local_hit_at_the_bound_asks_for_nothing(void **state)
{
	struct quest quest;

	(void)state;
	quest_open(&quest, quest_full_only, 1, 4);
	quest.ask.local_tokens = 32;
	assert_string_equal(quest_plan(&quest), "covered");
	quest.ask.bound_tokens = 0;
	quest.ask.local_tokens = 0;
	assert_string_equal(quest_plan(&quest), "covered");
	quest_close(&quest);
}

static void A3_1_an_extension_below_the_minimum_asks_for_nothing(void **state)
{
	struct quest quest;

	(void)state;
	quest_open(&quest, quest_full_only, 1, 4);
	quest_hold(&quest, STRATUM_DEVICE, 0, 0, 6);
	quest.ask.local_tokens = 24;
	quest.limits.extension_min = 9;
	assert_string_equal(quest_plan(&quest), "short");
	quest.limits.extension_min = 8;
	assert_string_equal(quest_plan(&quest), "32: F6 F7");
	/* The bound is far enough; the last boundary before it is not. */
	quest.ask.bound_tokens = 31;
	quest.limits.extension_min = 5;
	assert_string_equal(quest_plan(&quest), "short");
	quest_close(&quest);
}

static void A3_1_no_boundary_behind_the_hit_asks_for_nothing(void **state)
{
	struct quest quest;

	(void)state;
	quest_open(&quest, quest_full_only, 1, 4);
	quest.ask.local_tokens = 24;
	quest.ask.bound_tokens = 27;
	assert_string_equal(quest_plan(&quest), "no boundary");
	quest_close(&quest);
}

static void A3_14_only_boundaries_beyond_the_local_hit_are_considered(void **state)
{
	struct quest quest;

	(void)state;
	quest_open(&quest, quest_full_state, 2, 4);
	quest_hold(&quest, STRATUM_DEVICE, 0, 0, 6);
	quest_hold(&quest, STRATUM_HOST, 1, 5, 6);
	quest.ask.local_tokens = 24;
	assert_string_equal(quest_plan(&quest), "32: F6 F7 M7; 28: M6");
	quest_close(&quest);
}

/*
 * The caller knew of less than there is: what is complete is no question, nor is anything shorter.
 */
static void a_boundary_that_is_there_ends_the_plan(void **state)
{
	struct quest quest;

	(void)state;
	quest_open(&quest, quest_full_state, 2, 4);
	quest_hold(&quest, STRATUM_HOST, 0, 0, 6);
	quest_hold(&quest, STRATUM_HOST, 1, 5, 6);
	assert_string_equal(quest_plan(&quest), "32: F6 F7 M7; 28: M6");
	quest.ask.credits = 1;
	assert_string_equal(quest_plan(&quest), "credits");
	quest.ask.bound_tokens = 24;
	assert_string_equal(quest_plan(&quest), "covered");
	quest_close(&quest);
}

/* --- what to ask for -------------------------------------------------------------------------- */

static void A3_3_the_longest_boundary_comes_first_and_old_checkpoints_last(void **state)
{
	struct quest quest;

	(void)state;
	quest_open(&quest, quest_full_state, 2, 4);
	quest.ask.credits = 9;
	assert_string_equal(quest_plan(&quest), "32: F0 F1 F2 F3 F4 F5 F6 F7 M7");
	quest.ask.credits = 11;
	assert_string_equal(quest_plan(&quest), "32: F0 F1 F2 F3 F4 F5 F6 F7 M7; 28: M6; 24: M5");
	quest.ask.credits = 8;
	assert_string_equal(quest_plan(&quest), "28: F0 F1 F2 F3 F4 F5 F6 M6");
	assert_int_equal(quest.query.counts.cut_credits, 1 + 6);
	quest_close(&quest);
}

/* One credit is left: 28 needs two more, 24 only one, because the other checkpoint is there. */
static void A3_3_a_fallback_adds_all_that_it_misses_or_nothing(void **state)
{
	struct quest quest;

	(void)state;
	quest_open(&quest, quest_full_two_states, 3, 4);
	quest_hold(&quest, STRATUM_HOST, 0, 0, 7);
	quest_hold(&quest, STRATUM_HOST, 1, 5, 6);
	quest.ask.credits = 4;
	assert_string_equal(quest_plan(&quest), "32: F7 M7 N7; 24: N5");
	quest.ask.credits = 5;
	assert_string_equal(quest_plan(&quest), "32: F7 M7 N7; 28: M6 N6");
	quest.ask.credits = 6;
	assert_string_equal(quest_plan(&quest), "32: F7 M7 N7; 28: M6 N6; 24: N5");
	quest_close(&quest);
}

static void A3_3_boundaries_that_a_longer_one_includes_cost_nothing(void **state)
{
	struct quest quest;

	(void)state;
	quest_open(&quest, quest_full_only, 1, 4);
	quest_hold(&quest, STRATUM_HOST, 0, 0, 5);
	quest.ask.local_tokens = 20;
	quest.ask.credits = 3;
	assert_string_equal(quest_plan(&quest), "32: F5 F6 F7; 28:; 24:");
	quest_close(&quest);
}

/* Device holds history to 32 and one checkpoint at 16: of 32 the checkpoint alone is missing. */
static void A3_4_history_behind_the_last_checkpoint_is_not_asked_for_again(void **state)
{
	static const struct group_spec specs[] = { { "F", GROUP_FULL, 4, 0, 1 },
						   { "M", GROUP_STATE, 16, 0, 1 } };
	struct quest                   quest;

	(void)state;
	quest_open(&quest, specs, 2, 16);
	quest_hold(&quest, STRATUM_DEVICE, 0, 0, 2);
	quest_hold(&quest, STRATUM_DEVICE, 1, 0, 1);
	quest.ask.local_tokens = 16;
	quest.ask.bound_tokens = 40;
	assert_string_equal(quest_plan(&quest), "32: M1");
	quest.ask.bound_tokens = 50;
	assert_string_equal(quest_plan(&quest), "48: F2.0 F2.1 F2.2 F2.3 M2; 32: M1");
	quest_close(&quest);
}

static void A3_4_what_either_stratum_holds_is_not_asked_for(void **state)
{
	struct quest quest;

	(void)state;
	quest_open(&quest, quest_full_state, 2, 4);
	quest_hold(&quest, STRATUM_DEVICE, 0, 0, 2);
	quest_hold(&quest, STRATUM_HOST, 0, 1, 4);
	quest_hold(&quest, STRATUM_HOST, 0, 5, 6);
	quest_hold(&quest, STRATUM_DEVICE, 0, 6, 7);
	quest.ask.credits = 3;
	assert_string_equal(quest_plan(&quest), "32: F4 F7 M7");
	quest.view.held_in = HELD_DEVICE;
	quest.ask.credits = 6;
	assert_string_equal(quest_plan(&quest), "32: F2 F3 F4 F5 F7 M7");
	quest_close(&quest);
}

/* A window of 5 over blocks of 2 needs the two before a boundary, wherever the page begins. */
static void a_window_asks_for_its_lookback_alone(void **state)
{
	static const struct group_spec specs[] = { { "F", GROUP_FULL, 8, 0, 1 },
						   { "S", GROUP_WINDOW, 2, 5, 1 } };
	static const struct group_spec wide[] = { { "S", GROUP_WINDOW, 4, 10, 1 } };
	static const struct group_spec none[] = { { "S", GROUP_WINDOW, 4, 1, 1 } };
	struct quest                   quest;

	(void)state;
	quest_open(&quest, specs, 2, 8);
	quest.ask.bound_tokens = 16;
	assert_string_equal(quest_plan(&quest), "16: F0 F1 S1.2 S1.3; 8: S0.2 S0.3");
	quest_close(&quest);
	/* Three blocks of lookback: each shorter boundary adds the one that is not shared. */
	quest_open(&quest, wide, 1, 4);
	quest_hold(&quest, STRATUM_HOST, 0, 3, 4);
	quest.ask.bound_tokens = 24;
	assert_string_equal(quest_plan(&quest), "24: S4 S5; 20: S2; 16: S1; 12: S0; 8:; 4:");
	quest_close(&quest);
	/* A window of 1 needs nothing: every boundary is there. */
	quest_open(&quest, none, 1, 4);
	assert_string_equal(quest_plan(&quest), "covered");
	quest_close(&quest);
}

/* Of 17 columns to a page those of page 3 lie in two words. */
static void what_no_store_has_is_seen_wherever_its_bit_lies(void **state)
{
	static const struct group_spec specs[] = { { "F", GROUP_FULL, 4, 0, 1 },
						   { "M", GROUP_STATE, 64, 0, 1 } };

	uint64_t     absent[QUEST_PAGES * 17 / 64 + 2];
	uint32_t     column;
	struct quest quest;

	(void)state;
	quest_open(&quest, specs, 2, 64);
	quest.ask.page_absent = absent;
	for (column = 0; column < 16; column++) {
		memset(absent, 0, sizeof(absent));
		bits_set(absent, 3 * 17 + column);
		quest_plan(&quest);
		assert_true(quest.query.has_barrier);
		assert_int_equal(quest.query.barrier.page, 3);
		assert_int_equal(quest.query.barrier.column, column);
		assert_int_equal(quest.query.boundaries[0].at.tokens, 3 * 64);
	}
	quest_close(&quest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A3_1_a_local_hit_at_the_bound_asks_for_nothing),
		cmocka_unit_test(A3_1_an_extension_below_the_minimum_asks_for_nothing),
		cmocka_unit_test(A3_1_no_boundary_behind_the_hit_asks_for_nothing),
		cmocka_unit_test(A3_14_only_boundaries_beyond_the_local_hit_are_considered),
		cmocka_unit_test(a_boundary_that_is_there_ends_the_plan),
		cmocka_unit_test(A3_3_the_longest_boundary_comes_first_and_old_checkpoints_last),
		cmocka_unit_test(A3_3_a_fallback_adds_all_that_it_misses_or_nothing),
		cmocka_unit_test(A3_3_boundaries_that_a_longer_one_includes_cost_nothing),
		cmocka_unit_test(A3_4_history_behind_the_last_checkpoint_is_not_asked_for_again),
		cmocka_unit_test(A3_4_what_either_stratum_holds_is_not_asked_for),
		cmocka_unit_test(a_window_asks_for_its_lookback_alone),
		cmocka_unit_test(what_no_store_has_is_seen_wherever_its_bit_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
