/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests over real blocks, scenario by scenario: chunks and windows.  Each forward checks every row that
 * it sees.  P = 2 and q = 2 unless told otherwise; the number of usable parents is that of the scenario.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stay.h"

/* --- chunks ----------------------------------------------------------------------------------- */

static void a_prompt_in_two_chunks_grows_its_table_then_decodes(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(32) };
	struct yard *const             yard = stay_open(groups, 2, 2, 63, 0);
	struct guest                   r1;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 8);
	assert_int_equal(stay_step(yard, &r1, 4), 4);
	assert_int_equal(stay_step(yard, &r1, 4), 4);
	assert_int_equal(r1.phase, GUEST_DECODE);
	assert_int_equal(stay_holes(&r1, 0), 0);
	assert_int_equal(stay_step(yard, &r1, 4), 1);
	guest_finish(yard, &r1);
	stay_close(yard);
}

static void chunks_end_at_the_pages_of_a_state(void **state)
{
	static const struct group_spec groups[] = { { "full", GROUP_FULL, 4, 0, 1 },
						    { "state", GROUP_STATE, 4, 0, 1 } };
	struct yard *const             yard = stay_open(groups, 2, 4, 32, 0);
	struct guest                   r1;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 12);
	assert_int_equal(stay_step(yard, &r1, 6), 4);
	assert_int_equal(stay_step(yard, &r1, 6), 4);
	assert_int_equal(stay_step(yard, &r1, 6), 4);
	guest_finish(yard, &r1);
	stay_close(yard);
}

static void a_prompt_that_ends_inside_a_page_is_body_and_tail(void **state)
{
	static const struct group_spec groups[] = { { "full", GROUP_FULL, 4, 0, 1 },
						    { "state", GROUP_STATE, 4, 0, 1 } };
	struct yard *const             yard = stay_open(groups, 2, 4, 32, 0);
	struct guest                   r1;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 10);
	assert_int_equal(stay_step(yard, &r1, 64), 8);
	/* Input, body's checkpoint, and the tail's, reserved. */
	stay_expect_row(&r1, 1, "0xx");
	assert_int_equal(stay_step(yard, &r1, 64), 2);
	assert_int_equal(r1.phase, GUEST_DECODE);
	guest_finish(yard, &r1);
	stay_close(yard);
}

static void a_chunk_of_a_state_takes_one_checkpoint_and_decode_the_next(void **state)
{
	static const struct group_spec groups[] = { { "full", GROUP_FULL, 4, 0, 1 },
						    { "state", GROUP_STATE, 4, 0, 1 } };
	struct yard *const             yard = stay_open(groups, 2, 4, 32, 0);
	struct guest                   r1;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 12);
	assert_int_equal(stay_step(yard, &r1, 12), 12);
	stay_expect_row(&r1, 0, "xxxx");
	stay_expect_row(&r1, 1, "00x");
	assert_int_equal(stay_step(yard, &r1, 12), 1);
	stay_expect_row(&r1, 1, "00xx");
	guest_finish(yard, &r1);
	stay_close(yard);
}

static void the_last_chunk_of_a_state_has_input_and_output(void **state)
{
	static const struct group_spec groups[] = { { "full", GROUP_FULL, 4, 0, 1 },
						    { "state", GROUP_STATE, 4, 0, 1 } };
	struct yard *const             yard = stay_open(groups, 2, 4, 32, 0);
	struct guest                   r1;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 16);
	assert_int_equal(stay_step(yard, &r1, 12), 12);
	assert_int_equal(stay_step(yard, &r1, 12), 4);
	stay_expect_row(&r1, 1, "00xx");
	guest_abort(yard, &r1);
	stay_close(yard);
}

/* --- windows ---------------------------------------------------------------------------------- */

static void a_window_slides_to_holes_while_a_prompt_is_computed(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(4) };
	static const uint32_t          decode_holes[] = { 4, 5, 5, 6 }, widths[] = { 7, 7, 8, 8 };
	struct yard *const             yard = stay_open(groups, 2, 2, 31, 0);
	struct guest                   r1;
	uint32_t                       before, i;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 12);
	stay_step(yard, &r1, 4);
	stay_step(yard, &r1, 4);
	stay_expect_row(&r1, 1, "xxxx");
	before = stay_available(yard);
	stay_step(yard, &r1, 4);
	stay_expect_row(&r1, 1, "00xxxxx");
	assert_int_equal(stay_available(yard), before + 2 - 4 - 2);
	for (i = 0; i < 4; i++) {
		stay_step(yard, &r1, 1);
		assert_int_equal(stay_holes(&r1, 1), decode_holes[i]);
		assert_int_equal(r1.tables[1].count, widths[i]);
		/* N = 14 still attends to the last token of slot 5. */
		assert_int_equal(r1.slots[1][5] == BLOCK_NULL, i == 3);
	}
	guest_finish(yard, &r1);
	stay_close(yard);
}

/* Computed 4: none; 5: slot 0; 6: slot 1 is alive still; 7: slot 1 is out. */
static void a_decode_step_keeps_the_oldest_block_of_the_window(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(4) };
	static const char *const       rows[] = { "xxx", "0xx", "0xxx", "00xx" };
	struct yard *const             yard = stay_open(groups, 2, 2, 31, 0);
	struct guest                   r1;
	uint32_t                       i;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 4);
	stay_prefill(yard, &r1, 64);
	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		assert_int_equal(r1.computed, 4 + i);
		stay_step(yard, &r1, 1);
		stay_expect_row(&r1, 1, rows[i]);
	}
	guest_finish(yard, &r1);
	stay_close(yard);
}

/* 12 usable: the third chunk needs 6, and 4 and the 2 that slid are there. */
static void a_long_prompt_fits_because_its_window_slides(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(4) };
	struct yard *const             yard = stay_open(groups, 2, 2, 12, 0);
	struct guest                   r1;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 12);
	stay_step(yard, &r1, 4);
	assert_int_equal(stay_available(yard), 8);
	stay_step(yard, &r1, 4);
	assert_int_equal(stay_available(yard), 4);
	stay_step(yard, &r1, 4);
	assert_int_equal(stay_available(yard), 0);
	stay_step(yard, &r1, 1);
	assert_int_equal(stay_available(yard), 2);
	guest_finish(yard, &r1);
	stay_close(yard);
}

static void a_window_stays_small_while_full_history_grows(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(4) };
	struct yard *const             yard = stay_open(groups, 2, 2, 16, 0);
	struct guest                   r1;
	uint32_t                       peak = 0;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 20);
	while (r1.phase != GUEST_DECODE) {
		stay_step(yard, &r1, 4);
		if (r1.tables[1].count - stay_holes(&r1, 1) > peak)
			peak = r1.tables[1].count - stay_holes(&r1, 1);
	}
	assert_int_equal(peak, 5);
	assert_int_equal(r1.tables[0].count, 11);
	guest_finish(yard, &r1);
	stay_close(yard);
}

static void three_groups_each_keep_what_they_attend_to(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(4),
						    { "wide", GROUP_WINDOW, 2, 8, 1 } };
	struct yard *const             yard = stay_open(groups, 3, 2, 63, 0);
	struct guest                   r1, r2;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 12);
	stay_prompt(yard, &r2, 2, 101, 8);
	stay_prefill(yard, &r1, 4);
	stay_prefill(yard, &r2, 4);
	stay_step(yard, &r1, 1);
	stay_step(yard, &r2, 1);
	assert_int_equal(stay_holes(&r1, 0), 0);
	assert_int_equal(stay_holes(&r1, 1), 4);
	assert_int_equal(stay_holes(&r1, 2), 2);
	assert_int_equal(stay_holes(&r2, 1), 2);
	assert_int_equal(stay_holes(&r2, 2), 0);
	guest_finish(yard, &r1);
	guest_finish(yard, &r2);
	stay_close(yard);
}

static void two_full_groups_keep_all_history(void **state)
{
	static const struct group_spec groups[] = { FULL_2, { "other", GROUP_FULL, 2, 0, 1 } };
	struct yard *const             yard = stay_open(groups, 2, 2, 31, 0);
	struct guest                   r1;
	uint32_t                       i;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 6);
	stay_prefill(yard, &r1, 64);
	for (i = 0; i < 6; i++)
		stay_step(yard, &r1, 1);
	assert_int_equal(stay_holes(&r1, 0) + stay_holes(&r1, 1), 0);
	guest_finish(yard, &r1);
	stay_close(yard);
}

static void pages_of_one_token_slide_one_by_one(void **state)
{
	static const struct group_spec groups[] = { { "full", GROUP_FULL, 1, 0, 1 },
						    { "window", GROUP_WINDOW, 1, 2, 1 } };
	struct yard *const             yard = stay_open(groups, 2, 1, 31, 0);
	struct guest                   r1;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 3);
	stay_prefill(yard, &r1, 64);
	stay_expect_row(&r1, 0, "xxxx");
	stay_step(yard, &r1, 1);
	stay_expect_row(&r1, 1, "00xx");
	guest_finish(yard, &r1);
	stay_close(yard);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prompt_in_two_chunks_grows_its_table_then_decodes),
		cmocka_unit_test(chunks_end_at_the_pages_of_a_state),
		cmocka_unit_test(a_prompt_that_ends_inside_a_page_is_body_and_tail),
		cmocka_unit_test(a_chunk_of_a_state_takes_one_checkpoint_and_decode_the_next),
		cmocka_unit_test(the_last_chunk_of_a_state_has_input_and_output),
		cmocka_unit_test(a_window_slides_to_holes_while_a_prompt_is_computed),
		cmocka_unit_test(a_decode_step_keeps_the_oldest_block_of_the_window),
		cmocka_unit_test(a_long_prompt_fits_because_its_window_slides),
		cmocka_unit_test(a_window_stays_small_while_full_history_grows),
		cmocka_unit_test(three_groups_each_keep_what_they_attend_to),
		cmocka_unit_test(two_full_groups_keep_all_history),
		cmocka_unit_test(pages_of_one_token_slide_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
