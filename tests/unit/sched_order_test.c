/* SPDX-License-Identifier: Apache-2.0 */
/* Who comes first in a plan, who shares it, and what events do to a request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/err.h"
#include "loom.h"

static void open_plain(struct loom *loom)
{
	loom_init(loom, 2, 31);
	loom_full(loom, 2, 1);
	loom_open(loom);
}

/* --- order ------------------------------------------------------------------------------------ */

static void no_request_means_an_empty_plan(void **state)
{
	struct loom loom;

	(void)state;
	open_plain(&loom);
	assert_string_equal(loom_next(&loom), "");
	assert_int_equal(loom.plan->copy_count, 0);
	assert_int_equal(loom.plan->op_count, 0);
	assert_int_equal(loom.plan->ended_count, 0);
	loom_close(&loom);
}

static void a_plain_request_copies_nothing(void **state)
{
	struct loom loom;

	(void)state;
	loom_init(&loom, 2, 31);
	loom_full(&loom, 2, 1);
	loom.options.host_parents = 31;
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 4, 4);
	assert_string_equal(loom_next(&loom), "r1 p0+4");
	assert_int_equal(loom.plan->copy_count, 0);
	loom_close(&loom);
}

static void ids_break_ties(void **state)
{
	struct loom loom;

	(void)state;
	loom_init(&loom, 2, 31);
	loom_full(&loom, 2, 1);
	loom.options.batch_max = 1;
	loom_open(&loom);
	loom_submit(&loom, "r_zzz", 1, 4, 4);
	loom_submit(&loom, "r_aaa", 50, 4, 4);
	assert_string_equal(loom_next(&loom), "r_aaa p0+4");
	loom_close(&loom);
}

static void the_order_of_submission_does_not_matter(void **state)
{
	static const char *const orders[][3] = { { "a", "b", "c" }, { "c", "a", "b" }, { "b", "c", "a" } };
	struct loom              loom;
	uint32_t                 i, k;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(orders); i++) {
		open_plain(&loom);
		for (k = 0; k < 3; k++)
			loom_submit(&loom, orders[i][k], 10 * orders[i][k][0], 4, 4);
		assert_string_equal(loom_next(&loom), "a p0+4, b p0+4, c p0+4");
		loom_extend_all(&loom);
		assert_string_equal(loom_next(&loom), "a d4+1, b d4+1, c d4+1");
		loom_close(&loom);
	}
}

static void a_prompt_under_way_comes_before_new_ones(void **state)
{
	struct loom loom;

	(void)state;
	loom_init(&loom, 2, 31);
	loom_full(&loom, 2, 1);
	loom.options.chunk_tokens = 8;
	loom_open(&loom);
	loom_submit(&loom, "r2", 1, 12, 4);
	assert_string_equal(loom_next(&loom), "r2 p0+8");
	loom_submit(&loom, "r1", 50, 4, 4);
	assert_string_equal(loom_next(&loom), "r2 p8+4, r1 p0+4");
	loom_close(&loom);
}

/* An incomplete prompt stays at the head: nobody fills the rest of its forward. */
static void nothing_starts_behind_an_incomplete_prompt(void **state)
{
	struct loom loom;

	(void)state;
	loom_init(&loom, 2, 31);
	loom_full(&loom, 2, 1);
	loom.options.chunk_tokens = 10;
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 8, 4);
	loom_submit(&loom, "r2", 50, 8, 4);
	loom_submit(&loom, "r3", 90, 8, 4);
	assert_string_equal(loom_next(&loom), "r1 p0+8, r2 p0+2");
	assert_string_equal(loom_next(&loom), "r2 p2+6, r3 p0+4");
	loom_close(&loom);
}

static void decodes_wait_for_prompts_where_plans_are_not_mixed(void **state)
{
	struct loom loom;

	(void)state;
	open_plain(&loom);
	loom_submit(&loom, "r0", 1, 4, 4);
	loom_rounds(&loom, 1);
	loom_submit(&loom, "r1", 50, 4, 4);
	assert_string_equal(loom_next(&loom), "r1 p0+4");
	loom_extend_all(&loom);
	assert_string_equal(loom_next(&loom), "r0 d4+1, r1 d4+1");
	loom_close(&loom);
}

static void open_mixed(struct loom *loom, uint32_t chunk_tokens)
{
	loom_init(loom, 2, 63);
	loom_full(loom, 2, 1);
	loom->options.mixed = true;
	loom->options.chunk_tokens = chunk_tokens;
	loom_open(loom);
}

static void a_mixed_plan_has_new_prompts_and_decodes(void **state)
{
	struct loom loom;

	(void)state;
	open_mixed(&loom, 64);
	loom_submit(&loom, "r0", 1, 4, 4);
	loom_rounds(&loom, 1);
	loom_submit(&loom, "r1", 50, 6, 4);
	assert_string_equal(loom_next(&loom), "r1 p0+6, r0 d4+1");
	assert_null(loom_row(&loom, "r0")->tokens);
	assert_int_equal(loom_row(&loom, "r1")->tokens[5], 55);
	loom_close(&loom);
}

static void a_long_prompt_does_not_starve_decodes(void **state)
{
	struct loom loom;

	(void)state;
	open_mixed(&loom, 16);
	loom_submit(&loom, "r0", 1, 4, 8);
	loom_rounds(&loom, 1);
	loom_submit(&loom, "r1", 50, 40, 4);
	assert_string_equal(loom_next(&loom), "r1 p0+15, r0 d4+1");
	loom_extend_all(&loom);
	assert_string_equal(loom_next(&loom), "r1 p15+15, r0 d5+1");
	loom_close(&loom);
}

static void no_more_requests_compute_than_there_are_places(void **state)
{
	static const char *const ids[] = { "r1", "r2", "r3", "r4", "r5" };
	struct loom              loom;
	uint32_t                 i;

	(void)state;
	loom_init(&loom, 2, 31);
	loom_full(&loom, 2, 1);
	loom.options.batch_max = 2;
	loom_open(&loom);
	for (i = 0; i < ARRAY_COUNT(ids); i++)
		loom_submit(&loom, ids[i], (int32_t)(20 * i), 4, 4);
	assert_string_equal(loom_next(&loom), "r1 p0+4, r2 p0+4");
	assert_int_equal(sched_load(loom.sched).waiting, 3);
	loom_close(&loom);
}

static void decodes_go_together_until_one_ends(void **state)
{
	struct loom loom;

	(void)state;
	open_plain(&loom);
	loom_submit(&loom, "r1", 1, 4, 4);
	loom_submit(&loom, "r2", 50, 4, 4);
	loom_rounds(&loom, 1);
	assert_string_equal(loom_next(&loom), "r1 d4+1, r2 d4+1");
	loom_extend_all(&loom);
	loom_finish(&loom, "r1");
	assert_string_equal(loom_next(&loom), "r2 d5+1");
	assert_int_equal(loom.plan->ended_count, 1);
	assert_string_equal(loom.plan->ended[0].id, "r1");
	assert_int_equal(loom.plan->ended[0].end, SCHED_FINISHED);
	assert_int_equal(loom.plan->ended[0].token_count, 6);
	loom_close(&loom);
}

static void several_prompts_keep_their_own_tokens(void **state)
{
	struct loom loom;

	(void)state;
	open_plain(&loom);
	loom_submit(&loom, "r1", 1, 4, 4);
	loom_submit(&loom, "r2", 50, 3, 4);
	assert_string_equal(loom_next(&loom), "r1 p0+4, r2 p0+3");
	assert_memory_equal(loom_row(&loom, "r1")->tokens, ((int32_t[]){ 1, 2, 3, 4 }), 16);
	assert_memory_equal(loom_row(&loom, "r2")->tokens, ((int32_t[]){ 50, 51, 52 }), 12);
	loom_close(&loom);
}

/* --- states and events ------------------------------------------------------------------------ */

static void a_request_goes_from_waiting_to_its_end(void **state)
{
	struct loom loom;

	(void)state;
	open_plain(&loom);
	loom_submit(&loom, "r1", 1, 4, 4);
	assert_int_equal(sched_load(loom.sched).waiting, 1);
	assert_int_equal(sched_load(loom.sched).decoding, 0);
	loom_next(&loom);
	assert_int_equal(sched_load(loom.sched).waiting, 0);
	assert_int_equal(sched_load(loom.sched).prefill_done, 1);
	loom_extend(&loom, "r1");
	loom_next(&loom);
	assert_int_equal(sched_load(loom.sched).decoding, 1);
	loom_extend(&loom, "r1");
	loom_finish(&loom, "r1");
	loom_next(&loom);
	assert_int_equal(sched_load(loom.sched).decoding, 0);
	/* The id is free again. */
	loom_submit(&loom, "r1", 1, 4, 4);
	loom_close(&loom);
}

static void an_event_that_does_not_fit_says_which_and_where(void **state)
{
	struct loom loom;

	(void)state;
	open_plain(&loom);
	loom_submit(&loom, "r1", 1, 4, 4);
	assert_int_equal(loom_try_extend(&loom, "r1"), KVS_E_INVALID);
	assert_non_null(strstr(loom.err.message, "r1"));
	assert_non_null(strstr(loom.err.message, "SUBMITTED"));
	assert_int_equal(loom_feed(&loom, SCHED_RESERVE, "r1", 4), KVS_E_INVALID);
	/* Nothing has changed, and who is unknown may have ended by itself. */
	assert_string_equal(loom_next(&loom), "r1 p0+4");
	assert_int_equal(loom_feed(&loom, SCHED_FINISH, "nobody", 0), 0);
	loom_close(&loom);
}

/* What follows the first that does not fit has not happened. */
static void events_are_applied_in_their_order(void **state)
{
	static const int32_t     token = 5;
	const struct sched_event fit[] = {
		{ .kind = SCHED_EXTEND, .id = "r1", .tokens = &token, .token_count = 1 },
		{ .kind = SCHED_FINISH, .id = "r1" },
	};
	const struct sched_event unfit[] = {
		{ .kind = SCHED_EXTEND, .id = "r2", .tokens = &token, .token_count = 1 },
		{ .kind = SCHED_EXTEND, .id = "r2", .tokens = &token, .token_count = 1 },
		{ .kind = SCHED_FINISH, .id = "r2" },
	};
	struct loom loom;
	uint32_t    applied;

	(void)state;
	open_plain(&loom);
	loom_submit(&loom, "r1", 1, 4, 4);
	loom_submit(&loom, "r2", 1, 4, 4);
	loom_next(&loom);
	assert_int_equal(sched_feed(loom.sched, fit, 2, &applied, &loom.err), 0);
	assert_int_equal(applied, 2);
	assert_int_equal(sched_feed(loom.sched, unfit, 3, &applied, &loom.err), KVS_E_INVALID);
	assert_int_equal(applied, 1);
	assert_int_equal(sched_load(loom.sched).prefill_done, 1);
	loom_abort(&loom, "r2");
	loom_close(&loom);
}

static void a_prompt_without_tokens_is_refused(void **state)
{
	struct loom loom;

	(void)state;
	open_plain(&loom);
	assert_int_equal(loom_try_submit(&loom, "r1", 1, 0, 4), KVS_E_INVALID);
	assert_int_equal(sched_load(loom.sched).waiting, 0);
	loom_close(&loom);
}

static void a_batch_is_taken_whole_or_not_at_all(void **state)
{
	static const int32_t tokens[] = { 1, 2, 3, 4 };
	struct sched_request both[] = {
		{ .id = "r1", .tokens = tokens, .token_count = 4, .max_new_tokens = 4,
		  .logits_from = LOGITS_NONE },
		{ .id = "r1", .tokens = tokens, .token_count = 4, .max_new_tokens = 4,
		  .logits_from = LOGITS_NONE },
	};
	struct loom loom;

	(void)state;
	open_plain(&loom);
	assert_int_not_equal(sched_submit(loom.sched, both, 2, &loom.err), 0);
	both[1].id = "r2";
	both[1].token_count = 0;
	assert_int_not_equal(sched_submit(loom.sched, both, 2, &loom.err), 0);
	assert_int_equal(sched_load(loom.sched).waiting, 0);
	assert_string_equal(loom_next(&loom), "");
	loom_close(&loom);
}

/* --- places ----------------------------------------------------------------------------------- */

static void a_place_is_kept_from_prompt_to_end(void **state)
{
	struct loom loom;

	(void)state;
	open_plain(&loom);
	loom_submit(&loom, "r1", 1, 4, 4);
	loom_submit(&loom, "r2", 50, 4, 4);
	loom_next(&loom);
	assert_int_equal(loom_row(&loom, "r1")->place, 1);
	assert_int_equal(loom_row(&loom, "r2")->place, 2);
	loom_extend_all(&loom);
	loom_next(&loom);
	assert_int_equal(loom_row(&loom, "r1")->place, 1);
	assert_int_equal(loom_row(&loom, "r2")->place, 2);
	loom_close(&loom);
}

static void places_are_given_out_in_the_order_of_their_return(void **state)
{
	static const uint32_t places[] = { 1, 2, 1 };
	struct loom           loom;
	uint32_t              i;

	(void)state;
	loom_init(&loom, 2, 31);
	loom_full(&loom, 2, 1);
	loom.options.batch_max = 2;
	loom_open(&loom);
	for (i = 0; i < ARRAY_COUNT(places); i++) {
		loom_submit(&loom, "r1", (int32_t)(20 * i), 4, 4);
		loom_next(&loom);
		assert_int_equal(loom_row(&loom, "r1")->place, places[i]);
		loom_extend(&loom, "r1");
		loom_finish(&loom, "r1");
		loom_next(&loom);
	}
	loom_close(&loom);
}

static void who_finds_no_place_waits_and_holds_nothing(void **state)
{
	struct loom loom;

	(void)state;
	loom_init(&loom, 2, 31);
	loom_full(&loom, 2, 1);
	loom.options.batch_max = 1;
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 4, 4);
	loom_submit(&loom, "r2", 50, 4, 4);
	loom_next(&loom);
	assert_int_equal(loom_free(&loom), 31 - 3);
	loom_abort(&loom, "r1");
	assert_string_equal(loom_next(&loom), "r2 p0+4");
	loom_abort(&loom, "r2");
	loom_next(&loom);
	assert_int_equal(loom_free(&loom), 31);
	loom_close(&loom);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_request_means_an_empty_plan),
		cmocka_unit_test(a_plain_request_copies_nothing),
		cmocka_unit_test(ids_break_ties),
		cmocka_unit_test(the_order_of_submission_does_not_matter),
		cmocka_unit_test(a_prompt_under_way_comes_before_new_ones),
		cmocka_unit_test(nothing_starts_behind_an_incomplete_prompt),
		cmocka_unit_test(decodes_wait_for_prompts_where_plans_are_not_mixed),
		cmocka_unit_test(a_mixed_plan_has_new_prompts_and_decodes),
		cmocka_unit_test(a_long_prompt_does_not_starve_decodes),
		cmocka_unit_test(no_more_requests_compute_than_there_are_places),
		cmocka_unit_test(decodes_go_together_until_one_ends),
		cmocka_unit_test(several_prompts_keep_their_own_tokens),
		cmocka_unit_test(a_request_goes_from_waiting_to_its_end),
		cmocka_unit_test(an_event_that_does_not_fit_says_which_and_where),
		cmocka_unit_test(events_are_applied_in_their_order),
		cmocka_unit_test(a_prompt_without_tokens_is_refused),
		cmocka_unit_test(a_batch_is_taken_whole_or_not_at_all),
		cmocka_unit_test(a_place_is_kept_from_prompt_to_end),
		cmocka_unit_test(places_are_given_out_in_the_order_of_their_return),
		cmocka_unit_test(who_finds_no_place_waits_and_holds_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
