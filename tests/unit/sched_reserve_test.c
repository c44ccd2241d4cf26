/* SPDX-License-Identifier: Apache-2.0 */
/* Room that a decode step asks for: how many blocks, of whom, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "loom.h"

static void open_pages(struct loom *loom, uint32_t page_tokens)
{
	loom_init(loom, page_tokens, 31);
	loom_full(loom, page_tokens, 1);
	loom_open(loom);
}

/* Up to its first decode step, whose token has come. */
static void decode_once(struct loom *loom, const char *id, uint32_t count)
{
	loom_submit(loom, id, 1, count, 100);
	loom_rounds(loom, 2);
}

static void a_reserve_takes_pages_with_the_next_step(void **state)
{
	struct loom loom;

	(void)state;
	open_pages(&loom, 16);
	decode_once(&loom, "r1", 8);
	loom_reserve(&loom, "r1", 16);
	loom_next(&loom);
	assert_string_equal(loom_line(&loom, "r1", 0), "xx");
	loom_close(&loom);
}

static void without_a_reserve_a_step_takes_what_it_computes(void **state)
{
	struct loom loom;

	(void)state;
	open_pages(&loom, 16);
	decode_once(&loom, "r1", 8);
	loom_next(&loom);
	assert_string_equal(loom_line(&loom, "r1", 0), "x");
	loom_close(&loom);
}

static void the_last_reserve_counts(void **state)
{
	struct loom loom;

	(void)state;
	open_pages(&loom, 16);
	decode_once(&loom, "r1", 8);
	loom_reserve(&loom, "r1", 16);
	loom_reserve(&loom, "r1", 1);
	loom_next(&loom);
	assert_string_equal(loom_line(&loom, "r1", 0), "x");
	loom_close(&loom);
}

static void a_reserve_may_take_several_pages(void **state)
{
	struct loom loom;

	(void)state;
	open_pages(&loom, 8);
	decode_once(&loom, "r1", 4);
	loom_reserve(&loom, "r1", 20);
	loom_next(&loom);
	assert_true(loom.plan->forward.tables[0].width > 2);
	loom_close(&loom);
}

static void a_reserve_is_of_one_step(void **state)
{
	struct loom loom;

	(void)state;
	open_pages(&loom, 16);
	decode_once(&loom, "r1", 8);
	loom_reserve(&loom, "r1", 16);
	loom_next(&loom);
	loom_extend(&loom, "r1");
	loom_next(&loom);
	assert_string_equal(loom_line(&loom, "r1", 0), "xx");
	assert_int_equal(loom_fresh(&loom, 0), 0);
	/* And may come again. */
	loom_extend(&loom, "r1");
	loom_reserve(&loom, "r1", 32);
	loom_next(&loom);
	assert_string_equal(loom_line(&loom, "r1", 0), "xxx");
	loom_close(&loom);
}

static void behind_a_prompt_the_reserve_is_that_of_a_step(void **state)
{
	struct loom loom;

	(void)state;
	open_pages(&loom, 16);
	loom_submit(&loom, "r1", 1, 16, 100);
	loom_next(&loom);
	assert_string_equal(loom_line(&loom, "r1", 0), "xx");
	loom_extend(&loom, "r1");
	assert_int_equal(loom_feed(&loom, SCHED_RESERVE, "r1", 64), KVS_E_INVALID);
	loom_next(&loom);
	assert_string_equal(loom_line(&loom, "r1", 0), "xx");
	loom_close(&loom);
}

static void each_request_has_its_own_reserve(void **state)
{
	struct loom loom;

	(void)state;
	open_pages(&loom, 16);
	loom_submit(&loom, "r1", 1, 8, 100);
	loom_submit(&loom, "r2", 50, 8, 100);
	loom_rounds(&loom, 2);
	loom_reserve(&loom, "r1", 16);
	loom_next(&loom);
	assert_string_equal(loom_line(&loom, "r1", 0), "xx");
	assert_string_equal(loom_line(&loom, "r2", 0), "x-");
	loom_close(&loom);
}

static void before_it_decodes_a_request_reserves_nothing(void **state)
{
	struct loom loom;

	(void)state;
	open_pages(&loom, 16);
	loom_submit(&loom, "r1", 1, 8, 100);
	assert_int_equal(loom_feed(&loom, SCHED_RESERVE, "r1", 8), KVS_E_INVALID);
	loom_close(&loom);
}

/* A step of D tokens behind a prompt that fills its pages: so many pages of one token. */
static void a_step_of_several_tokens_has_its_room_before_it_comes(void **state)
{
	static const uint32_t widths[] = { 1, 2, 4, 8 };
	uint32_t              i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(widths); i++) {
		struct loom loom;

		loom_init(&loom, 1, 63);
		loom_full(&loom, 1, 1);
		loom.options.overlap_depth = 1;
		loom.options.decode_tokens = widths[i];
		loom_open(&loom);
		loom_submit(&loom, "r1", 1, 4, 20);
		loom_next(&loom);
		assert_int_equal(loom.plan->forward.tables[0].width, 4 + widths[i]);
		loom_close(&loom);
	}
}

static void overlap_is_of_one_forward_at_most_and_needs_a_step(void **state)
{
	static const struct {
		uint32_t depth, tokens;
		int      rc;
	} cases[] = { { 0, 1, 0 }, { 1, 1, 0 }, { 2, 1, KVS_E_INVALID }, { 1, 0, KVS_E_INVALID } };
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		struct loom loom;

		loom_init(&loom, 2, 31);
		loom_full(&loom, 2, 1);
		loom.options.overlap_depth = cases[i].depth;
		loom.options.decode_tokens = cases[i].tokens;
		assert_int_equal(sched_open(&loom.options, &loom.sched, &loom.err), cases[i].rc);
		if (cases[i].rc == 0)
			sched_close(loom.sched);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reserve_takes_pages_with_the_next_step),
		cmocka_unit_test(without_a_reserve_a_step_takes_what_it_computes),
		cmocka_unit_test(the_last_reserve_counts),
		cmocka_unit_test(a_reserve_may_take_several_pages),
		cmocka_unit_test(a_reserve_is_of_one_step),
		cmocka_unit_test(behind_a_prompt_the_reserve_is_that_of_a_step),
		cmocka_unit_test(each_request_has_its_own_reserve),
		cmocka_unit_test(before_it_decodes_a_request_reserves_nothing),
		cmocka_unit_test(a_step_of_several_tokens_has_its_room_before_it_comes),
		cmocka_unit_test(overlap_is_of_one_forward_at_most_and_needs_a_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
