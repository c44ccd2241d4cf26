/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts that a peer computes: where they land, what their ranks save, and who comes back how. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/err.h"
#include "loom.h"

/* Blocks of a page; more groups may be added. */
static void init(struct loom *loom, enum sched_role role, uint32_t page_tokens, uint32_t parents)
{
	loom_init(loom, page_tokens, parents);
	loom->options.role = role;
}

static void submit(struct loom *loom, const char *id, int32_t first, uint32_t count, uint32_t new_tokens)
{
	loom_submit(loom, id, first, count, new_tokens);
	loom_bootstrapped(loom, id);
}

/* Its prompt lands, and it decodes once. */
static void land(struct loom *loom, const char *id, int32_t first, uint32_t count, uint32_t new_tokens)
{
	submit(loom, id, first, count, new_tokens);
	loom_next(loom);
	loom_prefilled(loom, id);
	loom_next(loom);
}

static void a_prompt_has_all_its_room_before_it_lands(void **state)
{
	struct loom loom;

	(void)state;
	init(&loom, SCHED_DECODE, 2, 8);
	loom_full(&loom, 2, 1);
	loom_open(&loom);
	submit(&loom, "r1", 1, 4, 4);
	assert_string_equal(loom_next(&loom), "r1 r0+4");
	assert_string_equal(loom_line(&loom, "r1", 0), "xxx");
	assert_int_equal(loom_free(&loom), 5);
	assert_string_equal(loom_next(&loom), "");
	assert_int_equal(loom_free(&loom), 5);
	loom_prefilled(&loom, "r1");
	assert_string_equal(loom_next(&loom), "r1 d4+1");
	assert_int_equal(loom_free(&loom), 5);
	loom_close(&loom);
}

static void a_decode_rank_takes_a_peers_prompt_whole(void **state)
{
	struct loom loom;

	(void)state;
	init(&loom, SCHED_DECODE, 4, 31);
	loom_full(&loom, 4, 1);
	loom_state(&loom, 4, 1);
	loom.options.chunk_tokens = 8;
	loom_open(&loom);
	submit(&loom, "r1", 1, 10, 4);
	assert_string_equal(loom_next(&loom), "r1 r0+10");
	loom_close(&loom);
}

static void peers_prompts_are_let_in_one_a_plan(void **state)
{
	struct loom loom;

	(void)state;
	init(&loom, SCHED_DECODE, 2, 9);
	loom_full(&loom, 2, 1);
	loom_open(&loom);
	submit(&loom, "r1", 1, 4, 4);
	submit(&loom, "r2", 50, 4, 4);
	submit(&loom, "r3", 90, 4, 4);
	assert_string_equal(loom_next(&loom), "r1 r0+4");
	assert_string_equal(loom_next(&loom), "r2 r0+4");
	assert_string_equal(loom_next(&loom), "r3 r0+4");
	assert_int_equal(loom_free(&loom), 0);
	loom_close(&loom);
}

static void a_decode_rank_has_a_host_and_streams_nothing(void **state)
{
	struct loom loom;

	(void)state;
	init(&loom, SCHED_DECODE, 2, 31);
	loom_full(&loom, 2, 1);
	loom.options.host_parents = 32;
	loom_open(&loom);
	land(&loom, "r1", 1, 8, 4);
	assert_int_equal(loom.plan->copy_count, 0);
	loom_extend(&loom, "r1");
	loom_finish(&loom, "r1");
	loom_next(&loom);
	assert_int_equal(loom.plan->copy_count, 0);
	assert_int_equal(sched_load(loom.sched).candidates, 0);
	loom_close(&loom);

	/* Nor does it need one. */
	init(&loom, SCHED_DECODE, 2, 31);
	loom_full(&loom, 2, 1);
	loom_open(&loom);
	loom_close(&loom);
}

static void a_prefill_rank_hands_over_and_decodes_nothing(void **state)
{
	struct loom loom;

	(void)state;
	init(&loom, SCHED_PREFILL, 2, 31);
	loom_full(&loom, 2, 1);
	loom_open(&loom);
	submit(&loom, "r1", 1, 4, 4);
	submit(&loom, "r2", 50, 4, 4);
	assert_string_equal(loom_next(&loom), "r1 p0+4, r2 p0+4");
	loom_extend_all(&loom);
	submit(&loom, "r3", 90, 4, 4);
	assert_string_equal(loom_next(&loom), "r3 p0+4");
	assert_int_equal(sched_load(loom.sched).prefill_done, 3);
	assert_int_equal(loom_feed(&loom, SCHED_HANDED_OVER, "r1", 0), 0);
	loom_next(&loom);
	assert_int_equal(loom.plan->ended_count, 1);
	assert_string_equal(loom.plan->ended[0].id, "r1");
	assert_int_equal(sched_load(loom.sched).prefill_done, 2);
	loom_close(&loom);
}

/* --- where it lands --------------------------------------------------------------------------- */

static void history_lands_whole_and_a_state_in_its_last_block(void **state)
{
	struct loom loom;

	(void)state;
	init(&loom, SCHED_DECODE, 2, 6);
	loom_full(&loom, 2, 2);
	loom_state(&loom, 2, 1);
	loom_open(&loom);
	submit(&loom, "r1", 1, 8, 1);
	loom_next(&loom);
	assert_string_equal(loom_line(&loom, "r1", 0), "xxxxx");
	assert_string_equal(loom_line(&loom, "r1", 1), "...x");
	assert_int_equal(loom_free(&loom), 2);
	loom_prefilled(&loom, "r1");
	loom_next(&loom);
	loom_extend(&loom, "r1");
	loom_finish(&loom, "r1");
	loom_next(&loom);
	assert_int_equal(loom_free(&loom), 6);
	loom_close(&loom);
}

/* The history decides what is sent; a state is sent whatever Device has. */
static void history_that_is_there_is_not_sent_again(void **state)
{
	struct loom loom;

	(void)state;
	init(&loom, SCHED_DECODE, 2, 16);
	loom_full(&loom, 2, 1);
	loom_state(&loom, 2, 1);
	loom_open(&loom);
	land(&loom, "r1", 1, 8, 2);
	loom_extend(&loom, "r1");
	loom_finish(&loom, "r1");
	loom_next(&loom);
	submit(&loom, "r2", 1, 10, 2);
	assert_string_equal(loom_next(&loom), "r2 r8+2");
	assert_string_equal(loom_line(&loom, "r2", 1), "....x");
	loom_close(&loom);
}

static void a_state_of_small_blocks_lands_in_the_last_of_them(void **state)
{
	struct loom loom;

	(void)state;
	init(&loom, SCHED_DECODE, 2, 31);
	loom_full(&loom, 2, 1);
	loom_state(&loom, 1, 1);
	loom_open(&loom);
	submit(&loom, "r1", 1, 8, 2);
	loom_next(&loom);
	assert_string_equal(loom_line(&loom, "r1", 1), ".......x");
	loom_close(&loom);
}

/* What the window has of an earlier prompt stays an island before what lands. */
static void a_window_lands_behind_what_was_restored(void **state)
{
	struct loom loom;
	int32_t     kept[2];

	(void)state;
	init(&loom, SCHED_DECODE, 2, 31);
	loom_full(&loom, 2, 1);
	loom_window(&loom, 2, 1, 4);
	loom_open(&loom);
	submit(&loom, "r1", 1, 8, 2);
	loom_next(&loom);
	kept[0] = loom_slot(&loom, "r1", 1, 2);
	kept[1] = loom_slot(&loom, "r1", 1, 3);
	loom_prefilled(&loom, "r1");
	loom_next(&loom);
	loom_extend(&loom, "r1");
	loom_finish(&loom, "r1");
	loom_next(&loom);
	submit(&loom, "r2", 1, 16, 2);
	assert_string_equal(loom_next(&loom), "r2 r8+8");
	assert_string_equal(loom_line(&loom, "r2", 1), "..xx..xxx");
	assert_int_equal(loom_slot(&loom, "r2", 1, 2), kept[0]);
	assert_int_equal(loom_slot(&loom, "r2", 1, 3), kept[1]);
	loom_prefilled(&loom, "r2");
	loom_next(&loom);
	assert_string_equal(loom_line(&loom, "r2", 1), "......xxx");
	loom_close(&loom);
}

static void what_landed_is_decoded_behind_with_or_without_a_prefix_cache(void **state)
{
	static const uint32_t widths[] = { 5, 5, 6 };
	struct loom           loom;
	uint32_t              i;

	(void)state;
	init(&loom, SCHED_DECODE, 2, 31);
	loom_full(&loom, 2, 1);
	loom_window(&loom, 2, 1, 4);
	loom.options.prefix_cache = false;
	loom_open(&loom);
	submit(&loom, "r1", 1, 8, 8);
	for (i = 0; i < 3; i++) {
		loom_next(&loom);
		/* The prompt, a step into its reserve, and steps of its own. */
		assert_int_equal(loom.plan->forward.tables[1].width, widths[i]);
		if (i == 0)
			loom_prefilled(&loom, "r1");
		else
			loom_extend(&loom, "r1");
		if (i == 1)
			loom_rounds(&loom, 1);
	}
	loom_close(&loom);
}

/* --- who comes back --------------------------------------------------------------------------- */

/* Two requests of 4 tokens that fill Device; at 7 tokens each would need one page more. */
static void fill_with_two(struct loom *loom)
{
	submit(loom, "r1", 1, 4, 4);
	assert_string_equal(loom_next(loom), "r1 r0+4");
	submit(loom, "r2", 50, 4, 4);
	assert_string_equal(loom_next(loom), "r2 r0+4");
	assert_int_equal(loom_free(loom), 0);
	loom_prefilled(loom, "r1");
	loom_prefilled(loom, "r2");
	loom_rounds(loom, 2);
	assert_string_equal(loom_next(loom), "");
	assert_int_equal(sched_load(loom->sched).retracted, 1);
}

static void who_comes_back_computes_its_prompt_itself(void **state)
{
	struct loom loom;

	(void)state;
	init(&loom, SCHED_DECODE, 2, 6);
	loom_full(&loom, 2, 1);
	loom.options.prefix_cache = false;
	loom.options.chunk_tokens = 4;
	loom_open(&loom);
	fill_with_two(&loom);
	loom_finish(&loom, "r2");
	/* Two chunks, and nothing that a peer sends in between. */
	submit(&loom, "r3", 90, 2, 2);
	assert_string_equal(loom_next(&loom), "r1 p0+4");
	assert_string_equal(loom_next(&loom), "r1 p4+3");
	loom_extend(&loom, "r1");
	assert_string_equal(loom_next(&loom), "r1 d7+1");
	loom_close(&loom);
}

static void who_comes_back_loads_what_its_retraction_saved(void **state)
{
	struct loom loom;

	(void)state;
	init(&loom, SCHED_DECODE, 2, 6);
	loom_full(&loom, 2, 1);
	loom.options.prefix_cache = false;
	loom.options.host_parents = 3;
	loom_open(&loom);
	fill_with_two(&loom);
	/* The names of the retracted one, and nobody else's, when its copies are there. */
	assert_int_equal(loom_move_count(&loom, loom.plan->copies[0]), 3);
	assert_int_equal(loom_host_cached(&loom), 0);
	assert_int_equal(cache_host_free(sched_cache(loom.sched)), 0);
	loom_done(&loom);
	assert_string_equal(loom_next(&loom), "r2 d6+1");
	assert_int_equal(loom_host_cached(&loom), 3);
	loom_extend(&loom, "r2");
	loom_finish(&loom, "r2");
	loom_next(&loom);
	assert_non_null(loom_row(&loom, "r1"));
	assert_int_equal(loom_row(&loom, "r1")->begin, 6);
	loom_close(&loom);
}

/* What was computed lands or is told; who has so many tokens is finished.  False when nobody is there. */
static bool play(struct loom *loom, uint32_t tokens)
{
	char     landing[SCHED_ID_BYTES] = "";
	bool     alive = false;
	uint32_t i;

	loom_next(loom);
	if (loom->plan->forward.row_count > 0 && loom->plan->forward.rows[0].kind == BATCH_REMOTE)
		(void)snprintf(landing, sizeof(landing), "%s", loom->plan->forward.rows[0].id);
	loom_extend_all(loom);
	if (landing[0] != '\0')
		loom_prefilled(loom, landing);
	loom_done(loom);
	for (i = 0; i < SRIG_REQUESTS; i++) {
		const struct srig_request *const request = &loom->rig.requests[i];

		alive |= request->id[0] != '\0';
		if (request->id[0] != '\0' && request->told >= tokens)
			loom_finish(loom, request->id);
	}
	return alive;
}

/* Of a window only what a query sees comes back with an image, or there were not room enough. */
static void an_image_takes_no_room_for_what_nobody_sees(void **state)
{
	struct loom loom;
	uint32_t    retracted = 0;
	uint32_t    rounds;

	(void)state;
	init(&loom, SCHED_DECODE, 6, 14);
	loom_full(&loom, 3, 4);
	loom_window(&loom, 3, 3, 1);
	loom.options.prefix_cache = false;
	loom.options.host_parents = 24;
	loom.options.chunk_tokens = 8;
	loom.options.overlap_depth = 1;
	loom.options.batch_max = 3;
	loom.options.snapshot_max = 2;
	loom.options.snapshot_block_max = 64;
	loom_open(&loom);
	submit(&loom, "w0", 1, 57, 33);
	submit(&loom, "b1", 1000, 41, 49);
	submit(&loom, "w2", 2000, 7, 83);
	for (rounds = 0; play(&loom, 90); rounds++) {
		assert_true(rounds < 300);
		retracted |= sched_load(loom.sched).retracted;
	}
	assert_int_equal(retracted, 1);
	loom_close(&loom);
}

/* What landed goes on before anybody comes back. */
static void a_finished_landing_goes_before_a_recovery(void **state)
{
	struct loom loom;

	(void)state;
	init(&loom, SCHED_DECODE, 2, 9);
	loom_full(&loom, 2, 1);
	loom.options.prefix_cache = false;
	loom_open(&loom);
	submit(&loom, "r1", 1, 4, 8);
	loom_next(&loom);
	submit(&loom, "r2", 50, 4, 8);
	loom_next(&loom);
	loom_prefilled(&loom, "r1");
	loom_prefilled(&loom, "r2");
	loom_rounds(&loom, 2);
	submit(&loom, "r3", 90, 4, 4);
	assert_string_equal(loom_next(&loom), "r3 r0+4");
	/* Neither of the others has room for its seventh token. */
	assert_string_equal(loom_next(&loom), "");
	assert_int_equal(sched_load(loom.sched).retracted, 1);
	loom_prefilled(&loom, "r3");
	assert_string_equal(loom_next(&loom), "r3 d4+1, r2 d6+1");
	loom_close(&loom);
}

/* Nobody is there to be retracted for it. */
static void who_finds_no_room_beside_a_landing_waits_for_it(void **state)
{
	struct loom loom;

	(void)state;
	init(&loom, SCHED_DECODE, 2, 5);
	loom_full(&loom, 2, 1);
	loom_open(&loom);
	submit(&loom, "r1", 1, 4, 4);
	assert_string_equal(loom_next(&loom), "r1 r0+4");
	submit(&loom, "r2", 50, 4, 4);
	assert_string_equal(loom_next(&loom), "");
	assert_string_equal(loom_next(&loom), "");
	loom_prefilled(&loom, "r1");
	assert_string_equal(loom_next(&loom), "r1 d4+1");
	loom_extend(&loom, "r1");
	loom_finish(&loom, "r1");
	assert_string_equal(loom_next(&loom), "r2 r0+4");
	loom_close(&loom);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prompt_has_all_its_room_before_it_lands),
		cmocka_unit_test(a_decode_rank_takes_a_peers_prompt_whole),
		cmocka_unit_test(peers_prompts_are_let_in_one_a_plan),
		cmocka_unit_test(a_decode_rank_has_a_host_and_streams_nothing),
		cmocka_unit_test(a_prefill_rank_hands_over_and_decodes_nothing),
		cmocka_unit_test(history_lands_whole_and_a_state_in_its_last_block),
		cmocka_unit_test(history_that_is_there_is_not_sent_again),
		cmocka_unit_test(a_state_of_small_blocks_lands_in_the_last_of_them),
		cmocka_unit_test(a_window_lands_behind_what_was_restored),
		cmocka_unit_test(what_landed_is_decoded_behind_with_or_without_a_prefix_cache),
		cmocka_unit_test(who_comes_back_computes_its_prompt_itself),
		cmocka_unit_test(who_comes_back_loads_what_its_retraction_saved),
		cmocka_unit_test(an_image_takes_no_room_for_what_nobody_sees),
		cmocka_unit_test(a_finished_landing_goes_before_a_recovery),
		cmocka_unit_test(who_finds_no_room_beside_a_landing_waits_for_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
