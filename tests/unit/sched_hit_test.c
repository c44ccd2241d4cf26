/* SPDX-License-Identifier: Apache-2.0 */
/* Prefix hits: what a request restores from what others, and itself before, have computed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "loom.h"

/* One request from its prompt to its end; it is published as far as its tokens but the last one go. */
static void live(struct loom *loom, const char *id, uint32_t count, uint32_t outputs)
{
	loom_submit(loom, id, 1, count, outputs);
	loom_rounds(loom, outputs);
	loom_finish(loom, id);
	loom_next(loom);
}

static void a_second_request_reuses_the_first_ones_pages(void **state)
{
	struct loom loom;
	int32_t     first[4];
	uint32_t    i, before;

	(void)state;
	loom_usual(&loom, 63, 32);
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 8, 4);
	loom_next(&loom);
	for (i = 0; i < 4; i++)
		first[i] = loom_slot(&loom, "r1", 0, i);
	loom_extend(&loom, "r1");
	loom_finish(&loom, "r1");
	loom_next(&loom);
	before = loom_free(&loom);
	loom_submit(&loom, "r2", 1, 12, 4);
	assert_string_equal(loom_next(&loom), "r2 p8+4");
	assert_string_equal(loom_line(&loom, "r2", 0), "xxxxxxx");
	for (i = 0; i < 4; i++)
		assert_int_equal(loom_slot(&loom, "r2", 0, i), first[i]);
	assert_int_equal(loom_fresh(&loom, 0), 3);
	assert_int_equal(loom_free(&loom), before - 14);
	loom_close(&loom);
}

/* The last token that was sampled has no cache: 7 of 8 tokens are three pages. */
static void an_end_right_after_the_prompt_publishes_it(void **state)
{
	struct loom loom;

	(void)state;
	loom_usual(&loom, 63, 32);
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 8, 4);
	loom_next(&loom);
	loom_finish(&loom, "r1");
	loom_next(&loom);
	loom_submit(&loom, "r2", 1, 8, 4);
	assert_string_equal(loom_next(&loom), "r2 p6+2");
	loom_close(&loom);
}

static void a_clear_of_device_forgets_an_idle_prefix(void **state)
{
	struct loom loom;

	(void)state;
	loom_usual(&loom, 63, 32);
	loom_open(&loom);
	live(&loom, "r1", 8, 1);
	assert_int_equal(sched_clear_device(loom.sched, &loom.err), 0);
	loom_submit(&loom, "r2", 1, 8, 4);
	assert_string_equal(loom_next(&loom), "r2 p0+8");
	loom_close(&loom);
}

static void a_clear_of_device_leaves_what_is_in_use(void **state)
{
	struct loom loom;

	(void)state;
	loom_usual(&loom, 63, 32);
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 8, 4);
	loom_rounds(&loom, 2);
	assert_int_equal(sched_clear_device(loom.sched, &loom.err), KVS_E_BUSY);
	loom_finish(&loom, "r1");
	loom_next(&loom);
	loom_submit(&loom, "r2", 1, 8, 4);
	assert_string_equal(loom_next(&loom), "r2 p6+2");
	loom_close(&loom);
}

/* --- replay ----------------------------------------------------------------------------------- */

static void open_replay(struct loom *loom, uint32_t replay_tokens)
{
	loom_usual(loom, 63, 32);
	loom->options.replay_tokens = replay_tokens;
	loom_open(loom);
}

static void what_is_replayed_lands_in_blocks_of_its_own(void **state)
{
	struct loom loom;
	int32_t     first[3];
	uint32_t    i;

	(void)state;
	open_replay(&loom, 4);
	loom_submit(&loom, "r1", 1, 8, 4);
	loom_next(&loom);
	for (i = 0; i < 3; i++)
		first[i] = loom_slot(&loom, "r1", 0, i);
	loom_extend(&loom, "r1");
	loom_finish(&loom, "r1");
	loom_next(&loom);
	loom_submit(&loom, "r2", 1, 8, 4);
	assert_string_equal(loom_next(&loom), "r2 p4+4");
	assert_int_equal(loom_slot(&loom, "r2", 0, 0), first[0]);
	assert_int_equal(loom_slot(&loom, "r2", 0, 1), first[1]);
	assert_int_not_equal(loom_slot(&loom, "r2", 0, 2), first[2]);
	loom_extend(&loom, "r2");
	loom_finish(&loom, "r2");
	loom_next(&loom);
	/* And is as good as any other page for the next one. */
	loom_submit(&loom, "r3", 1, 12, 4);
	assert_string_equal(loom_next(&loom), "r3 p8+4");
	loom_close(&loom);
}

static void a_suffix_that_is_computed_anyway_is_replay_enough(void **state)
{
	struct loom loom;

	(void)state;
	open_replay(&loom, 4);
	live(&loom, "r1", 4, 1);
	loom_submit(&loom, "r2", 1, 8, 4);
	assert_string_equal(loom_next(&loom), "r2 p4+4");
	loom_close(&loom);
}

static void a_replay_longer_than_the_prompt_computes_it_all(void **state)
{
	struct loom loom;

	(void)state;
	open_replay(&loom, 32);
	live(&loom, "r1", 8, 1);
	loom_submit(&loom, "r2", 1, 8, 4);
	assert_string_equal(loom_next(&loom), "r2 p0+8");
	loom_close(&loom);
}

static void a_replay_is_private_in_groups_of_small_blocks_too(void **state)
{
	struct loom loom;
	uint32_t    i;
	int32_t     first[16];

	(void)state;
	loom_init(&loom, 8, 63);
	loom_full(&loom, 8, 1);
	loom_window(&loom, 2, 4, 4);
	loom.options.replay_tokens = 8;
	/* A chunk that ends at 24 leaves the window's blocks there. */
	loom.options.chunk_tokens = 24;
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 32, 4);
	loom_next(&loom);
	loom_next(&loom);
	for (i = 12; i < 16; i++)
		first[i] = loom_slot(&loom, "r1", 1, i);
	loom_extend(&loom, "r1");
	loom_finish(&loom, "r1");
	loom_next(&loom);
	loom_submit(&loom, "r3", 1, 32, 4);
	assert_string_equal(loom_next(&loom), "r3 p24+8");
	assert_int_equal(loom.plan->forward.tables[0].width, 5);
	assert_int_equal(loom.plan->forward.tables[1].width, 17);
	/* Those that have a name: the window's last ones. */
	for (i = 14; i < 16; i++)
		assert_int_not_equal(loom_slot(&loom, "r3", 1, i), first[i]);
	loom_close(&loom);
}

/* --- off -------------------------------------------------------------------------------------- */

static void nothing_matches_where_the_prefix_cache_is_off(void **state)
{
	struct loom loom;
	uint32_t    before;

	(void)state;
	loom_usual(&loom, 63, 32);
	loom.options.prefix_cache = false;
	loom_open(&loom);
	live(&loom, "r1", 8, 1);
	before = loom_free(&loom);
	loom_submit(&loom, "r2", 1, 12, 4);
	assert_string_equal(loom_next(&loom), "r2 p0+12");
	assert_int_equal(loom_free(&loom), before - 14);
	loom_close(&loom);
}

static void a_replay_means_nothing_where_the_prefix_cache_is_off(void **state)
{
	struct loom loom;

	(void)state;
	loom_usual(&loom, 63, 32);
	loom.options.prefix_cache = false;
	loom.options.replay_tokens = 4;
	loom_open(&loom);
	live(&loom, "r1", 8, 1);
	loom_submit(&loom, "r2", 1, 8, 4);
	assert_string_equal(loom_next(&loom), "r2 p0+8");
	loom_close(&loom);
}

/* --- windows, outputs ------------------------------------------------------------------------- */

static void a_window_is_restored_just_before_the_boundary(void **state)
{
	struct loom loom;
	int32_t     kept[2];
	uint32_t    before;

	(void)state;
	loom_usual(&loom, 63, 4);
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 8, 4);
	loom_next(&loom);
	kept[0] = loom_slot(&loom, "r1", 1, 2);
	kept[1] = loom_slot(&loom, "r1", 1, 3);
	loom_extend_all(&loom);
	loom_finish(&loom, "r1");
	loom_next(&loom);
	before = loom_free(&loom);
	loom_submit(&loom, "r2", 1, 10, 4);
	assert_string_equal(loom_next(&loom), "r2 p8+2");
	assert_string_equal(loom_line(&loom, "r2", 1), "..xxxx");
	assert_int_equal(loom_slot(&loom, "r2", 1, 2), kept[0]);
	assert_int_equal(loom_slot(&loom, "r2", 1, 3), kept[1]);
	assert_int_equal(loom_free(&loom), before - 10);
	loom_close(&loom);
}

static void pages_of_outputs_serve_the_next_turns(void **state)
{
	struct loom loom;
	uint32_t    before;

	(void)state;
	loom_usual(&loom, 63, 32);
	loom_open(&loom);
	live(&loom, "r1", 6, 3);
	assert_int_equal(loom_free(&loom), 63);
	before = loom_free(&loom);
	loom_submit(&loom, "r2", 1, 10, 4);
	assert_string_equal(loom_next(&loom), "r2 p8+2");
	assert_int_equal(loom_free(&loom), before - 12);
	loom_extend_all(&loom);
	loom_rounds(&loom, 2);
	loom_finish(&loom, "r2");
	loom_next(&loom);
	before = loom_free(&loom);
	loom_submit(&loom, "r3", 1, 16, 4);
	assert_string_equal(loom_next(&loom), "r3 p12+4");
	assert_int_equal(loom_free(&loom), before - 18);
	loom_close(&loom);
}

static void what_slid_out_of_a_window_while_decoding_serves_others(void **state)
{
	struct loom loom;
	int32_t     kept[2];

	(void)state;
	loom_usual(&loom, 63, 4);
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 6, 8);
	loom_rounds(&loom, 3);
	/* At 8 tokens slots 2 and 3 are published; 4 more steps and the window has left them. */
	loom_next(&loom);
	kept[0] = loom_slot(&loom, "r1", 1, 2);
	kept[1] = loom_slot(&loom, "r1", 1, 3);
	loom_extend_all(&loom);
	loom_rounds(&loom, 4);
	loom_finish(&loom, "r1");
	loom_next(&loom);
	loom_submit(&loom, "r2", 1, 9, 4);
	assert_string_equal(loom_next(&loom), "r2 p8+1");
	assert_string_equal(loom_line(&loom, "r2", 1), "..xxx");
	assert_int_equal(loom_slot(&loom, "r2", 1, 2), kept[0]);
	assert_int_equal(loom_slot(&loom, "r2", 1, 3), kept[1]);
	loom_close(&loom);
}

/* --- promotion -------------------------------------------------------------------------------- */

static void open_with_states(struct loom *loom)
{
	loom_init(loom, 2, 63);
	loom_full(loom, 2, 1);
	loom_state(loom, 2, 1);
	loom_state(loom, 2, 1);
	loom_state(loom, 2, 1);
	loom_open(loom);
}

/* The second request computes what the first had up to where they part, and leaves the states there. */
static void a_third_request_reuses_the_boundary_that_the_second_left(void **state)
{
	static const int32_t other[] = { 1, 2, 3, 4, 5, 6, 7, 8, 90, 91, 92 };
	struct loom          loom;

	(void)state;
	open_with_states(&loom);
	loom_submit(&loom, "r1", 1, 11, 4);
	assert_string_equal(loom_next(&loom), "r1 p0+10");
	assert_string_equal(loom_next(&loom), "r1 p10+1");
	loom_extend(&loom, "r1");
	loom_finish(&loom, "r1");
	loom_next(&loom);
	loom_submit_tokens(&loom, "r2", other, 11, 4);
	assert_string_equal(loom_next(&loom), "r2 p0+8");
	assert_string_equal(loom_next(&loom), "r2 p8+2");
	assert_string_equal(loom_next(&loom), "r2 p10+1");
	loom_abort(&loom, "r2");
	loom_next(&loom);
	loom_submit(&loom, "r3", 1, 9, 4);
	assert_string_equal(loom_next(&loom), "r3 p8+1");
	loom_close(&loom);
}

static void a_request_that_promotes_goes_alone(void **state)
{
	static const int32_t other[] = { 1, 2, 3, 4, 5, 6, 70, 71, 72, 73 };
	struct loom          loom;

	(void)state;
	loom_init(&loom, 2, 63);
	loom_full(&loom, 2, 1);
	loom_state(&loom, 2, 1);
	loom_open(&loom);
	live(&loom, "r0", 10, 1);
	loom_submit_tokens(&loom, "r1", other, 10, 4);
	loom_submit(&loom, "r2", 70, 4, 4);
	assert_string_equal(loom_next(&loom), "r1 p0+6");
	loom_close(&loom);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_second_request_reuses_the_first_ones_pages),
		cmocka_unit_test(an_end_right_after_the_prompt_publishes_it),
		cmocka_unit_test(a_clear_of_device_forgets_an_idle_prefix),
		cmocka_unit_test(a_clear_of_device_leaves_what_is_in_use),
		cmocka_unit_test(what_is_replayed_lands_in_blocks_of_its_own),
		cmocka_unit_test(a_suffix_that_is_computed_anyway_is_replay_enough),
		cmocka_unit_test(a_replay_longer_than_the_prompt_computes_it_all),
		cmocka_unit_test(a_replay_is_private_in_groups_of_small_blocks_too),
		cmocka_unit_test(nothing_matches_where_the_prefix_cache_is_off),
		cmocka_unit_test(a_replay_means_nothing_where_the_prefix_cache_is_off),
		cmocka_unit_test(a_window_is_restored_just_before_the_boundary),
		cmocka_unit_test(pages_of_outputs_serve_the_next_turns),
		cmocka_unit_test(what_slid_out_of_a_window_while_decoding_serves_others),
		cmocka_unit_test(a_third_request_reuses_the_boundary_that_the_second_left),
		cmocka_unit_test(a_request_that_promotes_goes_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
