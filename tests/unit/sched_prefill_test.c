/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts in chunks: where they are cut, what each group takes for them, and when a window lets go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loom.h"

static void a_prompt_in_two_chunks_then_decodes(void **state)
{
	struct loom loom;

	(void)state;
	loom_usual(&loom, 31, 32);
	loom.options.chunk_tokens = 4;
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 8, 4);
	assert_string_equal(loom_next(&loom), "r1 p0+4");
	assert_false(loom_row(&loom, "r1")->ends_prompt);
	assert_string_equal(loom_line(&loom, "r1", 0), "xx");
	assert_int_equal(loom_row(&loom, "r1")->tokens[3], 4);
	assert_string_equal(loom_next(&loom), "r1 p4+4");
	assert_true(loom_row(&loom, "r1")->ends_prompt);
	assert_string_equal(loom_line(&loom, "r1", 0), "xxxxx");
	assert_int_equal(loom_row(&loom, "r1")->tokens[0], 5);
	loom_extend(&loom, "r1");
	assert_string_equal(loom_next(&loom), "r1 d8+1");
	assert_null(loom_row(&loom, "r1")->tokens);
	assert_string_equal(loom_line(&loom, "r1", 0), "xxxxx");
	loom_extend(&loom, "r1");
	loom_finish(&loom, "r1");
	assert_string_equal(loom_next(&loom), "");
	assert_int_equal(loom_free(&loom), 31);
	loom_close(&loom);
}

/* 30 tokens in forwards of 10: three chunks, whose tokens are the prompt's. */
static void a_long_prompt_is_split_over_plans(void **state)
{
	static const char *const rows[] = { "r1 p0+10", "r1 p10+10", "r1 p20+10" };
	struct loom              loom;
	uint32_t                 i, k;

	(void)state;
	loom_init(&loom, 2, 31);
	loom_full(&loom, 2, 1);
	loom.options.chunk_tokens = 10;
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 30, 4);
	for (i = 0; i < 3; i++) {
		assert_string_equal(loom_next(&loom), rows[i]);
		for (k = 0; k < 10; k++)
			assert_int_equal(loom_row(&loom, "r1")->tokens[k], 1 + i * 10 + k);
	}
	loom_close(&loom);
}

static void with_a_state_chunks_end_at_pages(void **state)
{
	struct loom loom;

	(void)state;
	loom_init(&loom, 4, 31);
	loom_full(&loom, 4, 1);
	loom_state(&loom, 4, 1);
	loom.options.chunk_tokens = 6;
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 12, 4);
	assert_string_equal(loom_next(&loom), "r1 p0+4");
	assert_string_equal(loom_next(&loom), "r1 p4+4");
	assert_string_equal(loom_next(&loom), "r1 p8+4");
	assert_true(loom_row(&loom, "r1")->ends_prompt);
	loom_close(&loom);
}

static void open_with_state(struct loom *loom, uint32_t block_tokens)
{
	loom_init(loom, 4, 31);
	loom_full(loom, 4, 1);
	loom_state(loom, block_tokens, 1);
}

static void the_last_chunk_is_split_behind_its_last_page(void **state)
{
	struct loom loom;

	(void)state;
	open_with_state(&loom, 4);
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 10, 4);
	assert_string_equal(loom_next(&loom), "r1 p0+8");
	assert_false(loom_row(&loom, "r1")->ends_prompt);
	/* The room of the tail was taken with the body's. */
	assert_string_equal(loom_line(&loom, "r1", 0), "xxx");
	assert_string_equal(loom_line(&loom, "r1", 1), ".xx");
	assert_string_equal(loom_next(&loom), "r1 p8+2");
	assert_true(loom_row(&loom, "r1")->ends_prompt);
	assert_int_equal(loom_fresh(&loom, 0), 0);
	assert_int_equal(loom_fresh(&loom, 1), 0);
	assert_int_equal(loom_row(&loom, "r1")->tokens[1], 10);
	loom_extend(&loom, "r1");
	assert_string_equal(loom_next(&loom), "r1 d10+1");
	loom_close(&loom);
}

static void without_a_prefix_cache_the_last_chunk_stays_whole(void **state)
{
	struct loom loom;

	(void)state;
	open_with_state(&loom, 4);
	loom.options.prefix_cache = false;
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 10, 4);
	assert_string_equal(loom_next(&loom), "r1 p0+10");
	loom_close(&loom);
}

static void a_prefill_rank_splits_its_last_chunk_too(void **state)
{
	struct loom loom;

	(void)state;
	open_with_state(&loom, 4);
	loom.options.role = SCHED_PREFILL;
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 10, 4);
	assert_int_equal(loom_feed(&loom, SCHED_BOOTSTRAPPED, "r1", 0), 0);
	assert_string_equal(loom_next(&loom), "r1 p0+8");
	assert_string_equal(loom_next(&loom), "r1 p8+2");
	loom_close(&loom);
}

static void a_state_takes_the_room_of_its_step_with_the_step(void **state)
{
	struct loom loom;

	(void)state;
	open_with_state(&loom, 4);
	loom.options.chunk_tokens = 12;
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 12, 4);
	assert_string_equal(loom_next(&loom), "r1 p0+12");
	assert_string_equal(loom_line(&loom, "r1", 0), "xxxx");
	assert_string_equal(loom_line(&loom, "r1", 1), "..x");
	assert_int_equal(loom_fresh(&loom, 0), 4);
	assert_int_equal(loom_fresh(&loom, 1), 1);
	loom_extend(&loom, "r1");
	assert_string_equal(loom_next(&loom), "r1 d12+1");
	assert_string_equal(loom_line(&loom, "r1", 1), "..xx");
	assert_int_equal(loom_fresh(&loom, 0), 0);
	assert_int_equal(loom_fresh(&loom, 1), 1);
	loom_close(&loom);
}

static void with_overlap_a_last_chunk_has_the_state_before_it_and_its_own(void **state)
{
	struct loom loom;

	(void)state;
	open_with_state(&loom, 4);
	loom.options.chunk_tokens = 12;
	loom.options.overlap_depth = 1;
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 16, 4);
	assert_string_equal(loom_next(&loom), "r1 p0+12");
	assert_string_equal(loom_line(&loom, "r1", 1), "..x");
	assert_string_equal(loom_next(&loom), "r1 p12+4");
	assert_string_equal(loom_line(&loom, "r1", 1), "..xx");
	loom_close(&loom);
}

static void forwards_of_less_than_a_page_are_refused_where_there_is_a_state(void **state)
{
	struct loom loom;

	(void)state;
	open_with_state(&loom, 4);
	loom.options.chunk_tokens = 3;
	assert_int_equal(sched_open(&loom.options, &loom.sched, &loom.err), KVS_E_INVALID);
	loom.options.chunk_tokens = 4;
	loom_open(&loom);
	loom_close(&loom);
}

/* Chunks of 4, a window of 4: what slides out is free for the chunk that slides it. */
static void a_window_slides_with_chunks_and_steps(void **state)
{
	static const char *const steps[] = { "....xxx", ".....xx", ".....xxx", "......xx" };
	struct loom              loom;
	uint32_t                 i, before;
	int32_t                  kept = 0;

	(void)state;
	loom_usual(&loom, 31, 4);
	loom.options.prefix_cache = false;
	loom.options.chunk_tokens = 4;
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 12, 8);
	loom_next(&loom);
	loom_next(&loom);
	assert_string_equal(loom_line(&loom, "r1", 1), "xxxx");
	before = loom_free(&loom);
	loom_next(&loom);
	assert_string_equal(loom_line(&loom, "r1", 0), "xxxxxxx");
	assert_string_equal(loom_line(&loom, "r1", 1), "..xxxxx");
	assert_int_equal(loom_free(&loom), before + 2 - 4 - 2);
	loom_extend(&loom, "r1");
	for (i = 0; i < 4; i++) {
		loom_next(&loom);
		assert_string_equal(loom_line(&loom, "r1", 1), steps[i]);
		if (i == 0)
			kept = loom_slot(&loom, "r1", 1, 5);
		if (i == 2)
			assert_int_equal(loom_slot(&loom, "r1", 1, 5), kept);
		loom_extend(&loom, "r1");
	}
	loom_close(&loom);
}

/* A query attends to 4 tokens, itself included: blocks of 2 go when the last of them is out. */
static void a_block_stays_while_one_token_of_it_is_seen(void **state)
{
	static const char *const steps[] = { "xxx", ".xx", ".xxx", "..xx" };
	struct loom              loom;
	uint32_t                 i;

	(void)state;
	loom_usual(&loom, 31, 4);
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 4, 8);
	loom_rounds(&loom, 1);
	for (i = 0; i < 4; i++) {
		loom_next(&loom);
		assert_string_equal(loom_line(&loom, "r1", 1), steps[i]);
		loom_extend(&loom, "r1");
	}
	loom_close(&loom);
}

static void an_abort_gives_everything_back_at_any_time(void **state)
{
	struct loom loom;

	(void)state;
	loom_usual(&loom, 31, 4);
	loom.options.chunk_tokens = 4;
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 12, 8);
	loom_next(&loom);
	loom_next(&loom);
	loom_abort(&loom, "r1");
	assert_string_equal(loom_next(&loom), "");
	assert_int_equal(loom_free(&loom), 31);
	loom_submit(&loom, "r1", 1, 4, 8);
	loom_rounds(&loom, 3);
	loom_abort(&loom, "r1");
	assert_string_equal(loom_next(&loom), "");
	assert_int_equal(loom_free(&loom), 31);
	loom_close(&loom);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prompt_in_two_chunks_then_decodes),
		cmocka_unit_test(a_long_prompt_is_split_over_plans),
		cmocka_unit_test(with_a_state_chunks_end_at_pages),
		cmocka_unit_test(the_last_chunk_is_split_behind_its_last_page),
		cmocka_unit_test(without_a_prefix_cache_the_last_chunk_stays_whole),
		cmocka_unit_test(a_prefill_rank_splits_its_last_chunk_too),
		cmocka_unit_test(a_state_takes_the_room_of_its_step_with_the_step),
		cmocka_unit_test(with_overlap_a_last_chunk_has_the_state_before_it_and_its_own),
		cmocka_unit_test(forwards_of_less_than_a_page_are_refused_where_there_is_a_state),
		cmocka_unit_test(a_window_slides_with_chunks_and_steps),
		cmocka_unit_test(a_block_stays_while_one_token_of_it_is_seen),
		cmocka_unit_test(an_abort_gives_everything_back_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
