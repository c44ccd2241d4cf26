/* SPDX-License-Identifier: Apache-2.0 */
/* Retraction: when Device is full, the largest gives its blocks up and comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "loom.h"

/* Two requests of 4 tokens that fill Device, and at 7 tokens each would need one page more. */
static void fill_with_two(struct loom *loom)
{
	loom_submit(loom, "r1", 1, 4, 8);
	loom_submit(loom, "r2", 50, 4, 8);
	assert_string_equal(loom_next(loom), "r1 p0+4, r2 p0+4");
	assert_int_equal(loom_free(loom), 0);
	loom_extend_all(loom);
	loom_rounds(loom, 1);
	assert_string_equal(loom_next(loom), "r1 d5+1, r2 d5+1");
}

static void the_largest_goes_when_nobody_can_go_on(void **state)
{
	struct loom loom;

	(void)state;
	loom_usual(&loom, 12, 32);
	loom.options.prefix_cache = false;
	loom_open(&loom);
	fill_with_two(&loom);
	/* A result under way may free blocks: until it has come nobody goes. */
	loom_extend(&loom, "r1");
	assert_string_equal(loom_next(&loom), "");
	assert_int_equal(loom_free(&loom), 0);
	assert_int_equal(sched_load(loom.sched).waiting, 0);
	loom_extend(&loom, "r2");
	assert_string_equal(loom_next(&loom), "");
	/* Both have 7 tokens: the order of ids decides. */
	assert_int_equal(loom_free(&loom), 6);
	assert_int_equal(sched_load(loom.sched).waiting, 1);
	assert_string_equal(loom_next(&loom), "r2 d6+1");
	loom_extend(&loom, "r2");
	loom_finish(&loom, "r2");
	assert_string_equal(loom_next(&loom), "r1 p0+7");
	loom_close(&loom);
}

static void those_that_compute_end_before_the_victim_comes_back(void **state)
{
	struct loom loom;

	(void)state;
	loom_init(&loom, 4, 8);
	loom_full(&loom, 4, 1);
	loom_state(&loom, 4, 1);
	loom.options.prefix_cache = false;
	loom_open(&loom);
	loom_submit(&loom, "a", 1, 8, 4);
	loom_submit(&loom, "b", 50, 8, 4);
	assert_string_equal(loom_next(&loom), "a p0+8, b p0+8");
	assert_int_equal(loom_free(&loom), 0);
	loom_extend_all(&loom);
	loom_submit(&loom, "c", 90, 8, 4);
	assert_string_equal(loom_next(&loom), "");
	assert_int_equal(loom_free(&loom), 4);
	/* Room for c there is, but it would take b's. */
	assert_string_equal(loom_next(&loom), "b d8+1");
	loom_extend(&loom, "b");
	assert_string_equal(loom_next(&loom), "b d9+1");
	loom_extend(&loom, "b");
	loom_finish(&loom, "b");
	assert_string_equal(loom_next(&loom), "a p0+9, c p0+8");
	loom_close(&loom);
}

static void with_a_host_the_victims_prefix_is_saved_at_once(void **state)
{
	struct loom loom;
	bool        saved;

	(void)state;
	loom_usual(&loom, 12, 32);
	loom.options.host_parents = 32;
	loom.options.snapshot_max = 4;
	loom_open(&loom);
	fill_with_two(&loom);
	loom_extend_all(&loom);
	/* What was saved meanwhile has come. */
	loom_done(&loom);
	assert_string_equal(loom_next(&loom), "");
	saved = loom.plan->copy_count > 0;
	assert_true(saved);
	assert_int_equal(sched_load(loom.sched).retracted, 1);
	loom_close(&loom);
}

/* --- back in chunks --------------------------------------------------------------------------- */

/* a has 9 tokens and is retracted, b has ended. */
static void retract_nine(struct loom *loom)
{
	loom_init(loom, 4, 3);
	loom_full(loom, 4, 1);
	loom->options.prefix_cache = false;
	loom->options.chunk_tokens = 4;
	loom_open(loom);
	loom_submit(loom, "a", 1, 7, 5);
	assert_string_equal(loom_next(loom), "a p0+4");
	assert_string_equal(loom_next(loom), "a p4+3");
	loom_extend(loom, "a");
	loom_submit(loom, "b", 50, 3, 5);
	assert_string_equal(loom_next(loom), "b p0+3");
	loom_extend(loom, "b");
	assert_string_equal(loom_next(loom), "a d7+1, b d3+1");
	loom_extend_all(loom);
	assert_string_equal(loom_next(loom), "");
	assert_int_equal(loom_free(loom), 2);
	assert_string_equal(loom_next(loom), "b d4+1");
	loom_extend(loom, "b");
	loom_finish(loom, "b");
}

static void a_victim_comes_back_in_chunks(void **state)
{
	struct loom loom;

	(void)state;
	retract_nine(&loom);
	assert_string_equal(loom_next(&loom), "a p0+4");
	assert_string_equal(loom_next(&loom), "a p4+4");
	assert_string_equal(loom_next(&loom), "a p8+1");
	assert_true(loom_row(&loom, "a")->ends_prompt);
	/* Its outputs are part of the prompt now. */
	assert_int_equal(loom_row(&loom, "a")->tokens[0], 9);
	loom_extend(&loom, "a");
	assert_string_equal(loom_next(&loom), "a d9+1");
	loom_close(&loom);
}

static void within_its_chunks_a_victim_owes_no_token(void **state)
{
	struct loom loom;

	(void)state;
	retract_nine(&loom);
	assert_string_equal(loom_next(&loom), "a p0+4");
	assert_int_equal(loom_try_extend(&loom, "a"), KVS_E_INVALID);
	assert_string_equal(loom_next(&loom), "a p4+4");
	loom_close(&loom);
}

/* --- room ------------------------------------------------------------------------------------- */

static void a_prompt_under_way_is_not_overtaken_for_want_of_room(void **state)
{
	struct loom loom;

	(void)state;
	loom_usual(&loom, 18, 32);
	loom.options.prefix_cache = false;
	loom.options.chunk_tokens = 4;
	loom_open(&loom);
	loom_submit(&loom, "h", 1, 8, 2);
	loom_rounds(&loom, 2);
	loom_submit(&loom, "r2", 50, 12, 2);
	assert_string_equal(loom_next(&loom), "r2 p0+4");
	assert_string_equal(loom_next(&loom), "r2 p4+4");
	assert_int_equal(loom_free(&loom), 0);
	loom_submit(&loom, "r3", 90, 2, 2);
	assert_string_equal(loom_next(&loom), "");
	assert_int_equal(loom_free(&loom), 10);
	assert_int_equal(sched_load(loom.sched).waiting, 2);
	assert_string_equal(loom_next(&loom), "r2 p8+4");
	loom_close(&loom);
}

static void what_fits_exactly_comes_back_and_lives_to_its_end(void **state)
{
	struct loom loom;

	(void)state;
	loom_init(&loom, 2, 8);
	loom_full(&loom, 2, 1);
	loom_full(&loom, 2, 1);
	loom.options.prefix_cache = false;
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 4, 4);
	loom_submit(&loom, "r2", 50, 1, 4);
	assert_string_equal(loom_next(&loom), "r1 p0+4, r2 p0+1");
	loom_extend_all(&loom);
	loom_rounds(&loom, 1);
	assert_string_equal(loom_next(&loom), "r1 d5+1");
	loom_extend_all(&loom);
	assert_string_equal(loom_next(&loom), "");
	assert_int_equal(loom_free(&loom), 6);
	assert_string_equal(loom_next(&loom), "r2 d2+1");
	loom_extend_all(&loom);
	loom_finish(&loom, "r2");
	assert_string_equal(loom_next(&loom), "r1 p0+7");
	assert_int_equal(loom_free(&loom), 0);
	loom_extend_all(&loom);
	assert_string_equal(loom_next(&loom), "r1 d7+1");
	loom_extend_all(&loom);
	loom_finish(&loom, "r1");
	loom_next(&loom);
	assert_int_equal(loom_free(&loom), 8);
	loom_close(&loom);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_largest_goes_when_nobody_can_go_on),
		cmocka_unit_test(those_that_compute_end_before_the_victim_comes_back),
		cmocka_unit_test(with_a_host_the_victims_prefix_is_saved_at_once),
		cmocka_unit_test(a_victim_comes_back_in_chunks),
		cmocka_unit_test(within_its_chunks_a_victim_owes_no_token),
		cmocka_unit_test(a_prompt_under_way_is_not_overtaken_for_want_of_room),
		cmocka_unit_test(what_fits_exactly_comes_back_and_lives_to_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
