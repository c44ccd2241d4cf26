/* SPDX-License-Identifier: Apache-2.0 */
/* How far a prompt can be restored: one group, groups together, Device and Host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"

/* --- one group -------------------------------------------------------------------------------- */

static void full_history_reaches_to_its_first_miss(void **state)
{
	(void)state;
	scene_play((struct scene){ 4, 3, 0, 2, 2, { { FULL(4), "xx-", NULL, "xx" } } });
	scene_play((struct scene){ 4, 5, 0, 2, 2, { { FULL(4), "xx-x-", NULL, "xx" } } });
	scene_play((struct scene){ 4, 3, 0, 0, 0, { { FULL(4), NULL, NULL, "" } } });
	scene_play((struct scene){ 4, 3, 0, 0, 0, { { FULL(4), "-xx", NULL, "" } } });
	scene_play((struct scene){ 4, 3, 0, 3, 3, { { FULL(4), "xxx", NULL, "xxx" } } });
}

static void a_window_needs_its_run_before_the_boundary_and_no_more(void **state)
{
	(void)state;
	scene_play((struct scene){ 4, 5, 0, 0, 0, { { WINDOW(4, 10), NULL, NULL, "" } } });
	scene_play((struct scene){ 4, 5, 0, 4, 0, { { WINDOW(4, 10), "-xxx-", NULL, "-xxx" } } });
	scene_play((struct scene){ 4, 5, 0, 3, 0, { { WINDOW(4, 4), "x-x--", NULL, "--x" } } });
	scene_play((struct scene){ 4, 5, 0, 5, 0, { { WINDOW(4, 10), "--xxx", NULL, "--xxx" } } });
	scene_play((struct scene){ 4, 5, 0, 5, 0, { { WINDOW(4, 10), "xxxxx", NULL, "--xxx" } } });
}

static void a_run_that_reaches_the_start_may_be_short(void **state)
{
	(void)state;
	scene_play((struct scene){ 4, 2, 0, 2, 0, { { WINDOW(4, 10), "xx", NULL, "xx" } } });
	scene_play((struct scene){ 4, 5, 0, 2, 0, { { WINDOW(4, 10), "xx-xx", NULL, "xx" } } });
}

static void a_window_of_one_needs_nothing(void **state)
{
	(void)state;
	scene_play((struct scene){ 4, 3, 0, 3, 0, { { WINDOW(4, 1), NULL, NULL, "---" } } });
	scene_play((struct scene){ 2, 3, 0, 3, 3,
			     { { FULL(2), NULL, "xxx", "xxx" }, { WINDOW(2, 1), NULL, NULL, "---" } } });
}

static void a_state_is_one_checkpoint_with_holes_below(void **state)
{
	(void)state;
	scene_play((struct scene){ 4, 4, 0, 4, 0, { { STATE(4), "---x", NULL, "---x" } } });
	scene_play((struct scene){ 4, 4, 0, 4, 0, { { WINDOW(4, 5), "---x", NULL, "---x" } } });
	scene_play((struct scene){ 4, 4, 0, 3, 0, { { STATE(4), "--x-", NULL, "--x" } } });
}

/* Both matchers by themselves, from a beginning that is not the prompt's. */
static void a_match_may_begin_anywhere(void **state)
{
	const struct scene scene = { 4, 5, 0, 0, 0,
				     { { FULL(4), NULL, "-xxxx", "" },
				       { WINDOW(4, 10), NULL, "-xxx-", "" },
				       { WINDOW(4, 1), NULL, NULL, "" } } };
	const struct group *group;
	struct prompt       prompt;
	struct view         view;

	(void)state;
	scene_open(&scene, &prompt);
	view = prompt_view(&prompt, HELD_HOST, 0);
	group = prompt.pages.groups.group;
	assert_int_equal(match_run(&view, &group[0], 1, 5), 5);
	assert_int_equal(match_run(&view, &group[0], 1, 3), 3);
	assert_int_equal(match_run(&view, &group[0], 0, 5), 0);
	assert_int_equal(match_run(&view, &group[0], 3, 3), 3);
	assert_int_equal(match_window(&view, &group[1], 0, 5), 4);
	assert_int_equal(match_window(&view, &group[1], 0, 3), 0);
	assert_int_equal(match_window(&view, &group[1], 1, 3), 3);
	assert_int_equal(match_window(&view, &group[1], 2, 2), 2);
	assert_int_equal(match_window(&view, &group[2], 1, 3), 3);
	view.held_in = HELD_DEVICE;
	assert_int_equal(match_run(&view, &group[0], 1, 5), 1);
	assert_int_equal(match_window(&view, &group[1], 1, 5), 1);
	prompt_close(&prompt);
}

/* --- groups together -------------------------------------------------------------------------- */

/* A state without a checkpoint holds nobody up; what the others hold decides, closed coverage too. */
static void groups_of_an_ignored_kind_need_nothing(void **state)
{
	const struct scene scene = { 4, 4, 0, 0, 0,
				     { { FULL(4), "xxx-", NULL, "" },
				       { WINDOW(4, 4), "xx-x", NULL, "" },
				       { STATE(4), NULL, NULL, "" } } };
	struct prompt      prompt;
	struct view        view;
	struct joint       joint;

	(void)state;
	scene_open(&scene, &prompt);
	view = prompt_view(&prompt, HELD_DEVICE, 0);
	assert_int_equal(match_joint(&view, 4).pages, 0);
	view.ignored = 1u << GROUP_STATE;
	joint = match_joint(&view, 4);
	assert_int_equal(joint.pages, 2);
	assert_int_equal(joint.closed_pages, 3);
	assert_true(match_legal(&view, 8));
	assert_false(match_legal(&view, 12));
	view.ignored |= 1u << GROUP_FULL;
	joint = match_joint(&view, 4);
	assert_int_equal(joint.pages, 4);
	assert_int_equal(joint.closed_pages, 0);
	prompt_close(&prompt);
}

static void the_shortest_full_group_bounds_all(void **state)
{
	(void)state;
	scene_play((struct scene){ 4, 3, 0, 2, 2,
			     { { FULL(4), "xxx", NULL, "xx" }, { FULL(4), "xx-", NULL, "xx" } } });
	scene_play((struct scene){ 4, 6, 0, 5, 6,
			     { { FULL(4), "xxxxxx", NULL, "xxxxx" },
			       { FULL(4), "xxxxxx", NULL, "xxxxx" },
			       { WINDOW(4, 8), "--xxx-", NULL, "---xx" } } });
}

static void full_and_window_meet_at_one_boundary(void **state)
{
	(void)state;
	/* Nothing of the window. */
	scene_play((struct scene){ 4, 4, 0, 0, 4,
			     { { FULL(4), "xxxx", NULL, "" }, { WINDOW(4, 10), NULL, NULL, "" } } });
	/* The full group cuts the window's run. */
	scene_play((struct scene){ 4, 5, 0, 0, 4,
			     { { FULL(4), "xxxx-", NULL, "" }, { WINDOW(4, 10), "--xxx", NULL, "" } } });
	/* It cuts, and enough is left. */
	scene_play((struct scene){ 4, 5, 0, 4, 4,
			     { { FULL(4), "xxxx-", NULL, "xxxx" },
			       { WINDOW(4, 10), "-xxxx", NULL, "-xxx" } } });
	/* The window cuts the full group. */
	scene_play((struct scene){ 4, 5, 0, 4, 5,
			     { { FULL(4), "xxxxx", NULL, "xxxx" },
			       { WINDOW(4, 10), "-xxx-", NULL, "-xxx" } } });
	scene_play((struct scene){ 4, 5, 0, 4, 5,
			     { { FULL(4), "xxxxx", NULL, "xxxx" },
			       { WINDOW(4, 10), "-xxx-", NULL, "-xxx" },
			       { WINDOW(4, 10), "-xxx-", NULL, "-xxx" } } });
}

static void windows_of_several_lengths_meet_at_one_boundary(void **state)
{
	(void)state;
	scene_play((struct scene){ 2, 5, 0, 5, 5,
			     { { FULL(2), "xxxxx", NULL, "xxxxx" },
			       { WINDOW(2, 6), "--xxx", NULL, "--xxx" },
			       { WINDOW(2, 2), "----x", NULL, "----x" } } });
	scene_play((struct scene){ 2, 5, 0, 0, 5,
			     { { FULL(2), "xxxxx", NULL, "" },
			       { WINDOW(2, 6), "--xxx", NULL, "" },
			       { WINDOW(2, 2), "---x-", NULL, "" } } });
	scene_play((struct scene){ 4, 4, 0, 4, 4,
			     { { FULL(4), "xxxx", NULL, "xxxx" },
			       { WINDOW(4, 8), "--xx", NULL, "--xx" },
			       { STATE(4), "---x", NULL, "---x" } } });
}

/* 7 of the first, then 6 of the second, then 3, then 2: each answer undoes the one before. */
static void windows_that_cut_each_other_converge(void **state)
{
	struct scene scene = { 4, 8, 0, 2, 8,
			       { { FULL(4), "xxxxxxxx", NULL, "xx" },
				 { WINDOW(4, 10), "xxx-xxx-", NULL, "xx" },
				 { WINDOW(4, 10), "xx-xxx--", NULL, "xx" } } };

	(void)state;
	scene_play(scene);
	/* The order of groups makes no difference. */
	scene.group[1].device = "xx-xxx--";
	scene.group[2].device = "xxx-xxx-";
	scene_play(scene);
}

/* A page of 8 tokens is one block of the full group and four of the window, which needs two. */
static void blocks_smaller_than_a_page_are_matched_by_page(void **state)
{
	(void)state;
	scene_play((struct scene){ 8, 1, 0, 1, 1,
			     { { FULL(8), "x", NULL, "x" }, { WINDOW(2, 5), "--xx", NULL, "--xx" } } });
	/* A boundary inside the second page is none. */
	scene_play((struct scene){ 8, 2, 0, 1, 2,
			     { { FULL(8), "xx", NULL, "x" },
			       { WINDOW(2, 5), "--xxxx--", NULL, "--xx" } } });
	scene_play((struct scene){ 8, 2, 0, 0, 2,
			     { { FULL(8), "xx", NULL, "" }, { WINDOW(2, 5), "---xxx--", NULL, "" } } });
	scene_play((struct scene){ 8, 2, 0, 1, 1,
			     { { FULL(2), "xxxxxxx-", NULL, "xxxx" },
			       { STATE(8), "xx", NULL, "x" } } });
}

/* What a prompt could reuse if its missing window or checkpoint were published once. */
static void closed_coverage_outlives_the_windows(void **state)
{
	(void)state;
	scene_play((struct scene){ 4, 8, 0, 4, 8,
			     { { FULL(4), "xxxxxxxx", NULL, "xxxx" },
			       { STATE(4), "---x----", NULL, "---x" } } });
	scene_play((struct scene){ 4, 8, 0, 4, 6,
			     { { FULL(4), "xxxxxxxx", NULL, "xxxx" },
			       { FULL(4), "xxxxxx--", NULL, "xxxx" },
			       { STATE(4), "---x----", NULL, "---x" } } });
	scene_play((struct scene){ 4, 8, 0, 4, 4,
			     { { FULL(4), "xxxx----", NULL, "xxxx" },
			       { STATE(4), "---x---x", NULL, "---x" } } });
	scene_play((struct scene){ 4, 8, 0, 4, 0,
			     { { WINDOW(4, 10), "-xxx----", NULL, "-xxx" },
			       { STATE(4), "---x----", NULL, "---x" } } });
}

/* --- Device and Host -------------------------------------------------------------------------- */

static void host_extends_what_the_device_has(void **state)
{
	(void)state;
	scene_play((struct scene){ 2, 4, 1, 4, 4,
			     { { FULL(2), "x---", "-xxx", "xxx" },
			       { WINDOW(2, 4), "x---", "--xx", "-xx" } } });
	/* The window's tail is missing. */
	scene_play((struct scene){ 2, 4, 1, 3, 4,
			     { { FULL(2), "x---", "-xxx", "xx" },
			       { WINDOW(2, 4), "x---", "-xx-", "xx" } } });
	/* A gap of full history. */
	scene_play((struct scene){ 2, 4, 1, 2, 2,
			     { { FULL(2), "x---", "-x-x", "x" },
			       { WINDOW(2, 4), "x---", "-xxx", "x" } } });
	scene_play((struct scene){ 2, 4, 1, 1, 1,
			     { { FULL(2), "x", NULL, "" }, { WINDOW(2, 4), "x", NULL, "" } } });
	/* What is held already is not asked of Host. */
	scene_play((struct scene){ 2, 4, 2, 2, 2,
			     { { FULL(2), "xx--", "xx--", "" },
			       { WINDOW(2, 4), "xx--", "xx--", "" } } });
}

static void host_windows_converge_behind_what_is_held(void **state)
{
	(void)state;
	scene_play((struct scene){ 2, 6, 0, 4, 6,
			     { { FULL(2), NULL, "xxxxxx", "xxxx" },
			       { WINDOW(2, 4), NULL, "--xx-x", "--xx" } } });
	scene_play((struct scene){ 2, 5, 1, 5, 5,
			     { { FULL(2), "x----", "-xxxx", "xxxx" },
			       { WINDOW(2, 6), "x----", "--xxx", "-xxx" },
			       { WINDOW(2, 2), "x----", "----x", "---x" } } });
	scene_play((struct scene){ 2, 5, 1, 1, 5,
			     { { FULL(2), "x----", "-xxxx", "" },
			       { WINDOW(2, 6), "x----", "--xxx", "" },
			       { WINDOW(2, 2), "x----", "---x-", "" } } });
	scene_play((struct scene){ 4, 4, 1, 4, 4,
			     { { FULL(4), "x---", "-xxx", "xxx" },
			       { STATE(4), "x---", "---x", "--x" } } });
}

/* Full history to 32 tokens, its only checkpoint at 16: Host need not have that history again. */
static void A3_4_what_the_device_holds_past_the_joint_boundary_counts(void **state)
{
	struct scene scene = { 4, 8, 4, 8, 8,
			       { { FULL(4), "xxxxxxxx", NULL, "xxxx" },
				 { STATE(4), "---x----", "-------x", "---x" } } };

	(void)state;
	scene_play(scene);
	/* Neither does it need a checkpoint that the Device has above. */
	scene_play((struct scene){ 4, 8, 4, 8, 8,
			     { { FULL(4), "xxxx----", "----xxxx", "xxxx" },
			       { STATE(4), "---x---x", NULL, "---x" } } });
	/* Asked of Host alone it would. */
	scene.pages = 4;
	scene.closed_pages = 4;
	scene.group[0].used = "";
	scene.group[1].used = "";
	scene_play_in(&scene, HELD_HOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_history_reaches_to_its_first_miss),
		cmocka_unit_test(a_window_needs_its_run_before_the_boundary_and_no_more),
		cmocka_unit_test(a_run_that_reaches_the_start_may_be_short),
		cmocka_unit_test(a_window_of_one_needs_nothing),
		cmocka_unit_test(a_state_is_one_checkpoint_with_holes_below),
		cmocka_unit_test(a_match_may_begin_anywhere),
		cmocka_unit_test(groups_of_an_ignored_kind_need_nothing),
		cmocka_unit_test(the_shortest_full_group_bounds_all),
		cmocka_unit_test(full_and_window_meet_at_one_boundary),
		cmocka_unit_test(windows_of_several_lengths_meet_at_one_boundary),
		cmocka_unit_test(windows_that_cut_each_other_converge),
		cmocka_unit_test(blocks_smaller_than_a_page_are_matched_by_page),
		cmocka_unit_test(closed_coverage_outlives_the_windows),
		cmocka_unit_test(host_extends_what_the_device_has),
		cmocka_unit_test(host_windows_converge_behind_what_is_held),
		cmocka_unit_test(A3_4_what_the_device_holds_past_the_joint_boundary_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
