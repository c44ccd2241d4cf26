/* SPDX-License-Identifier: Apache-2.0 */
/* Several groups in one forward: a table each, blocks of their own, and all of them come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loom.h"

static void three_groups_have_a_line_each_and_let_go_in_turn(void **state)
{
	struct loom loom;

	(void)state;
	loom_usual(&loom, 63, 4);
	loom_window(&loom, 2, 1, 8);
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 8, 8);
	loom_next(&loom);
	assert_string_equal(loom_line(&loom, "r1", 0), "xxxxx");
	assert_string_equal(loom_line(&loom, "r1", 1), "xxxxx");
	assert_string_equal(loom_line(&loom, "r1", 2), "xxxxx");
	loom_extend(&loom, "r1");
	loom_rounds(&loom, 3);
	/* At 11 tokens. */
	loom_next(&loom);
	assert_string_equal(loom_line(&loom, "r1", 0), "xxxxxx");
	assert_string_equal(loom_line(&loom, "r1", 1), "....xx");
	assert_string_equal(loom_line(&loom, "r1", 2), "..xxxx");
	loom_extend(&loom, "r1");
	loom_finish(&loom, "r1");
	loom_next(&loom);
	assert_int_equal(loom_free(&loom), 63);
	loom_close(&loom);
}

static void no_two_requests_share_a_block(void **state)
{
	struct loom loom;
	uint32_t    g, i, k;

	(void)state;
	loom_usual(&loom, 63, 4);
	loom_window(&loom, 2, 1, 8);
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 4, 8);
	loom_submit(&loom, "r2", 100, 6, 8);
	assert_string_equal(loom_next(&loom), "r1 p0+4, r2 p0+6");
	assert_string_equal(loom_line(&loom, "r1", 0), "xxx-");
	for (g = 0; g < 3; g++) {
		for (i = 0; i < 3; i++) {
			const int32_t own = loom_slot(&loom, "r1", g, i);

			for (k = 0; k < 4; k++)
				assert_int_not_equal(own, loom_slot(&loom, "r2", g, k));
		}
	}
	assert_int_equal(loom_fresh(&loom, 0), 7);
	loom_close(&loom);
}

static void full_groups_have_no_holes(void **state)
{
	struct loom loom;

	(void)state;
	loom_init(&loom, 2, 63);
	loom_full(&loom, 2, 1);
	loom_full(&loom, 2, 1);
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 8, 8);
	loom_rounds(&loom, 4);
	loom_next(&loom);
	assert_string_equal(loom_line(&loom, "r1", 0), "xxxxxx");
	assert_string_equal(loom_line(&loom, "r1", 1), "xxxxxx");
	loom_close(&loom);
}

static void what_ends_out_of_order_gives_back_exactly_its_own(void **state)
{
	struct loom loom;

	(void)state;
	loom_usual(&loom, 63, 4);
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 4, 8);
	loom_submit(&loom, "r2", 50, 6, 8);
	loom_submit(&loom, "r3", 100, 8, 8);
	loom_next(&loom);
	assert_int_equal(loom_free(&loom), 63 - 2 * (3 + 4 + 5));
	loom_extend_all(&loom);
	loom_finish(&loom, "r2");
	/* Of the window of the others two blocks slide out. */
	loom_next(&loom);
	assert_int_equal(loom_free(&loom), 63 - 2 * (3 + 5) + 2);
	loom_extend_all(&loom);
	loom_finish(&loom, "r3");
	loom_finish(&loom, "r1");
	loom_next(&loom);
	assert_int_equal(loom_free(&loom), 63);
	loom_close(&loom);
}

static void pages_of_one_token_slide_and_come_back(void **state)
{
	struct loom loom;

	(void)state;
	loom_init(&loom, 1, 31);
	loom_full(&loom, 1, 1);
	loom_window(&loom, 1, 1, 2);
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 3, 8);
	loom_next(&loom);
	assert_string_equal(loom_line(&loom, "r1", 0), "xxxx");
	loom_extend(&loom, "r1");
	loom_next(&loom);
	assert_string_equal(loom_line(&loom, "r1", 0), "xxxx");
	assert_string_equal(loom_line(&loom, "r1", 1), "..xx");
	loom_extend(&loom, "r1");
	loom_finish(&loom, "r1");
	loom_next(&loom);
	assert_int_equal(loom_free(&loom), 31);
	loom_close(&loom);
}

static void a_prefill_and_a_decode_share_a_mixed_plan(void **state)
{
	struct loom loom;

	(void)state;
	loom_usual(&loom, 63, 4);
	loom.options.mixed = true;
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 8, 8);
	loom_rounds(&loom, 1);
	loom_submit(&loom, "r2", 100, 4, 8);
	assert_string_equal(loom_next(&loom), "r2 p0+4, r1 d8+1");
	assert_int_equal(loom.plan->forward.prefill_count, 1);
	assert_string_equal(loom_line(&loom, "r2", 0), "xxx--");
	assert_string_equal(loom_line(&loom, "r1", 1), "..xxx");
	loom_close(&loom);
}

static void each_line_has_its_own_holes(void **state)
{
	struct loom loom;

	(void)state;
	loom_usual(&loom, 63, 4);
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 4, 8);
	loom_submit(&loom, "r2", 100, 8, 8);
	loom_rounds(&loom, 2);
	assert_string_equal(loom_next(&loom), "r1 d5+1, r2 d9+1");
	assert_string_equal(loom_line(&loom, "r1", 1), ".xx--");
	assert_string_equal(loom_line(&loom, "r2", 1), "...xx");
	loom_close(&loom);
}

/* Pages of 8: 9 tokens take two blocks of 8, and five of 2. */
static void each_group_has_blocks_of_its_own_size(void **state)
{
	struct loom loom;

	(void)state;
	loom_init(&loom, 8, 31);
	loom_full(&loom, 8, 1);
	loom_full(&loom, 2, 4);
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 8, 8);
	loom_next(&loom);
	assert_int_equal(loom.plan->forward.tables[0].width, 2);
	assert_int_equal(loom.plan->forward.tables[1].width, 5);
	loom_close(&loom);
}

/* One full group and three states, as many large models have. */
static void open_four_groups(struct loom *loom)
{
	loom_init(loom, 2, 32);
	loom_full(loom, 2, 1);
	loom_state(loom, 2, 1);
	loom_state(loom, 2, 1);
	loom_state(loom, 2, 1);
	loom_open(loom);
}

static void four_groups_share_one_device(void **state)
{
	struct loom loom;
	int32_t     seen[16];
	uint32_t    count = 0;
	uint32_t    g, i, k;

	(void)state;
	open_four_groups(&loom);
	loom_submit(&loom, "r1", 1, 4, 8);
	loom_next(&loom);
	assert_string_equal(loom_line(&loom, "r1", 0), "xxx");
	for (g = 0; g < 4; g++) {
		for (i = 0; i < loom.plan->forward.tables[g].width; i++) {
			if (loom_slot(&loom, "r1", g, i) > 0)
				seen[count++] = loom_slot(&loom, "r1", g, i);
		}
	}
	/* Numbers are those of parents here: three of the full group, one of each state. */
	assert_int_equal(count, 6);
	for (i = 0; i < count; i++) {
		for (k = 0; k < i; k++)
			assert_int_not_equal(seen[i], seen[k]);
	}
	assert_int_equal(loom_free(&loom), 32 - 6);
	loom_abort(&loom, "r1");
	loom_next(&loom);
	assert_int_equal(loom_free(&loom), 32);
	loom_close(&loom);
}

static void four_groups_are_restored_together(void **state)
{
	struct loom loom;
	int32_t     state_slot;

	(void)state;
	open_four_groups(&loom);
	loom_submit(&loom, "r1", 1, 8, 8);
	loom_next(&loom);
	state_slot = loom_slot(&loom, "r1", 3, 3);
	loom_extend(&loom, "r1");
	loom_finish(&loom, "r1");
	loom_next(&loom);
	assert_int_equal(loom_free(&loom), 32);
	loom_submit(&loom, "r2", 1, 11, 8);
	assert_string_equal(loom_next(&loom), "r2 p8+2");
	assert_int_equal(loom_slot(&loom, "r2", 3, 3), state_slot);
	assert_string_equal(loom_next(&loom), "r2 p10+1");
	loom_extend(&loom, "r2");
	loom_finish(&loom, "r2");
	loom_next(&loom);
	assert_int_equal(loom_free(&loom), 32);
	loom_close(&loom);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_groups_have_a_line_each_and_let_go_in_turn),
		cmocka_unit_test(no_two_requests_share_a_block),
		cmocka_unit_test(full_groups_have_no_holes),
		cmocka_unit_test(what_ends_out_of_order_gives_back_exactly_its_own),
		cmocka_unit_test(pages_of_one_token_slide_and_come_back),
		cmocka_unit_test(a_prefill_and_a_decode_share_a_mixed_plan),
		cmocka_unit_test(each_line_has_its_own_holes),
		cmocka_unit_test(each_group_has_blocks_of_its_own_size),
		cmocka_unit_test(four_groups_share_one_device),
		cmocka_unit_test(four_groups_are_restored_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
