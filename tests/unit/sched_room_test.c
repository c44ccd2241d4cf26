/* SPDX-License-Identifier: Apache-2.0 */
/* Room: how long a request may be, who waits for it, and what is reserved. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "loom.h"

/* --- the limit of one request ----------------------------------------------------------------- */

static void open_two_full(struct loom *loom, uint32_t second_block_tokens)
{
	loom_init(loom, 2, 8);
	loom_full(loom, 2, 1);
	loom_full(loom, second_block_tokens, 1);
}

static void the_limit_counts_each_groups_blocks_and_the_overlap(void **state)
{
	static const struct {
		uint32_t block_tokens, overlap, limit;
	} cases[] = { { 2, 0, 8 }, { 1, 0, 5 }, { 2, 1, 7 } };
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		struct loom loom;

		open_two_full(&loom, cases[i].block_tokens);
		loom.options.overlap_depth = cases[i].overlap;
		loom_open(&loom);
		assert_int_equal(sched_request_limit(loom.sched), cases[i].limit);
		assert_int_equal(loom_try_submit(&loom, "r1", 1, cases[i].limit, 1), KVS_E_INVALID);
		loom_submit(&loom, "r1", 1, cases[i].limit - 1, 1);
		loom_close(&loom);
	}
}

static void the_limit_counts_checkpoints_and_tails(void **state)
{
	struct loom loom;

	(void)state;
	loom_init(&loom, 4, 2);
	loom_state(&loom, 4, 1);
	loom.options.chunk_tokens = 8;
	loom_open(&loom);
	assert_int_equal(sched_request_limit(loom.sched), 9);
	assert_int_equal(loom_try_submit(&loom, "r1", 1, 14, 0), KVS_E_INVALID);
	loom_close(&loom);

	loom_init(&loom, 4, 3);
	loom_state(&loom, 1, 1);
	loom.options.chunk_tokens = 8;
	loom_open(&loom);
	assert_int_equal(sched_request_limit(loom.sched), 7);
	/* A step is computed, whether or not new tokens are wanted. */
	assert_int_equal(loom_try_submit(&loom, "r1", 1, 7, 0), KVS_E_INVALID);
	loom_close(&loom);
}

static void the_limit_does_not_depend_on_host(void **state)
{
	uint32_t limit = 0;
	uint32_t host;

	(void)state;
	for (host = 1; host <= 64; host += 63) {
		struct loom loom;

		open_two_full(&loom, 2);
		loom.options.host_parents = host;
		loom_open(&loom);
		if (limit > 0)
			assert_int_equal(sched_request_limit(loom.sched), limit);
		limit = sched_request_limit(loom.sched);
		loom_close(&loom);
	}
}

static void a_prefill_rank_holds_no_room_for_new_tokens(void **state)
{
	struct loom loom;

	(void)state;
	loom_init(&loom, 2, 3);
	loom_full(&loom, 2, 1);
	loom.options.role = SCHED_PREFILL;
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 6, 100);
	assert_int_equal(loom_try_submit(&loom, "r2", 1, 7, 0), KVS_E_INVALID);
	loom_close(&loom);
}

static void a_decode_rank_holds_the_whole_request(void **state)
{
	struct loom loom;

	(void)state;
	loom_init(&loom, 2, 3);
	loom_full(&loom, 2, 1);
	loom.options.role = SCHED_DECODE;
	loom_open(&loom);
	assert_int_equal(sched_request_limit(loom.sched), 6);
	assert_int_equal(loom_try_submit(&loom, "r1", 1, 4, 4), KVS_E_INVALID);
	loom_close(&loom);
}

static void the_limit_of_a_decode_rank_counts_packed_windows(void **state)
{
	struct loom loom;

	(void)state;
	loom_init(&loom, 4, 2);
	loom_window(&loom, 2, 2, 4);
	loom.options.role = SCHED_DECODE;
	loom_open(&loom);
	assert_int_equal(sched_request_limit(loom.sched), 8);
	loom_close(&loom);
}

static void what_fits_exactly_lives_to_its_end(void **state)
{
	struct loom loom;
	uint32_t    i;

	(void)state;
	open_two_full(&loom, 2);
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 5, 3);
	assert_string_equal(loom_next(&loom), "r1 p0+5");
	loom_extend_all(&loom);
	for (i = 5; i < 8; i++) {
		assert_string_not_equal(loom_next(&loom), "");
		loom_extend_all(&loom);
	}
	loom_finish(&loom, "r1");
	loom_next(&loom);
	assert_int_equal(loom_free(&loom), 8);
	loom_close(&loom);
}

/* A tail is copied, so its source takes room besides: without that room it is computed instead. */
static void what_fits_exactly_does_so_without_a_tail(void **state)
{
	struct loom loom;

	(void)state;
	loom_init(&loom, 4, 3);
	loom_full(&loom, 4, 1);
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 6, 1);
	loom_rounds(&loom, 1);
	loom_finish(&loom, "r1");
	loom_submit(&loom, "r2", 1, 11, 1);
	assert_string_equal(loom_next(&loom), "r2 p4+7");
	loom_abort(&loom, "r2");
	loom_submit(&loom, "r3", 1, 7, 1);
	assert_string_equal(loom_next(&loom), "r3 p4+3");
	loom_close(&loom);
}

/*
 * r1 has left names in parents of both groups.  r2 gets free blocks beside them, and so holds a parent more
 * than it needs: in the midst of its prompt it is stuck, and nobody else is there.
 */
static void who_is_cramped_begins_anew_on_an_empty_device(void **state)
{
	struct loom loom;
	uint32_t    rounds;
	bool        restarted = false;
	bool        decodes = false;

	(void)state;
	loom_init(&loom, 4, 7);
	loom_full(&loom, 4, 4);
	loom_window(&loom, 2, 1, 7);
	loom.options.host_parents = 5;
	loom.options.chunk_tokens = 5;
	loom_open(&loom);
	assert_int_equal(sched_request_limit(loom.sched), 12);
	loom_submit(&loom, "r1", 1, 6, 5);
	for (rounds = 0; rounds < 6; rounds++) {
		loom_rounds(&loom, 1);
		loom_done(&loom);
	}
	loom_finish(&loom, "r1");
	loom_submit(&loom, "r2", 50, 10, 2);
	for (rounds = 0; rounds < 10 && !decodes; rounds++) {
		loom_next(&loom);
		decodes = loom_row(&loom, "r2") && loom_row(&loom, "r2")->kind == BATCH_DECODE;
		loom_extend_all(&loom);
		loom_done(&loom);
		restarted |= sched_load(loom.sched).retracted > 0;
	}
	assert_true(restarted);
	assert_true(decodes);
	loom_close(&loom);
}

/* --- waiting ---------------------------------------------------------------------------------- */

static void a_full_device_lets_the_second_wait_for_the_first(void **state)
{
	struct loom loom;

	(void)state;
	loom_usual(&loom, 10, 4);
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 8, 2);
	loom_submit(&loom, "r2", 50, 8, 2);
	assert_string_equal(loom_next(&loom), "r1 p0+8");
	assert_int_equal(loom_free(&loom), 0);
	loom_extend(&loom, "r1");
	assert_string_equal(loom_next(&loom), "r1 d8+1");
	assert_int_equal(loom_free(&loom), 2);
	loom_extend(&loom, "r1");
	loom_finish(&loom, "r1");
	assert_string_equal(loom_next(&loom), "r2 p0+8");
	loom_close(&loom);
}

static void a_plan_admits_no_more_than_there_is_room_for(void **state)
{
	struct loom loom;

	(void)state;
	loom_init(&loom, 2, 8);
	loom_full(&loom, 2, 1);
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 8, 4);
	loom_submit(&loom, "r2", 50, 8, 4);
	assert_string_equal(loom_next(&loom), "r1 p0+8");
	assert_int_equal(loom_free(&loom), 3);
	loom_close(&loom);
}

static void room_that_is_reserved_is_nobody_elses(void **state)
{
	struct loom loom;

	(void)state;
	loom_usual(&loom, 10, 32);
	loom_open(&loom);
	loom_submit(&loom, "a", 1, 6, 2);
	assert_string_equal(loom_next(&loom), "a p0+6");
	assert_int_equal(loom_free(&loom), 2);
	loom_extend(&loom, "a");
	loom_submit(&loom, "b", 50, 2, 2);
	assert_string_equal(loom_next(&loom), "a d6+1");
	assert_int_equal(loom_free(&loom), 2);
	/* Nor is it anybody's once its request is gone. */
	loom_abort(&loom, "a");
	assert_string_equal(loom_next(&loom), "b p0+2");
	loom_abort(&loom, "b");
	loom_submit(&loom, "c", 90, 8, 2);
	assert_string_equal(loom_next(&loom), "c p0+8");
	assert_int_equal(loom_free(&loom), 0);
	loom_close(&loom);
}

/* --- sliding ---------------------------------------------------------------------------------- */

static void a_long_prompt_fits_because_its_window_slides(void **state)
{
	struct loom loom;

	(void)state;
	loom_usual(&loom, 12, 4);
	loom.options.chunk_tokens = 4;
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 12, 2);
	loom_next(&loom);
	assert_int_equal(loom_free(&loom), 8);
	loom_next(&loom);
	assert_int_equal(loom_free(&loom), 4);
	assert_string_equal(loom_next(&loom), "r1 p8+4");
	assert_int_equal(loom_free(&loom), 0);
	loom_extend(&loom, "r1");
	assert_string_equal(loom_next(&loom), "r1 d12+1");
	assert_int_equal(loom_free(&loom), 2);
	loom_close(&loom);
}

static void a_window_stays_as_wide_as_it_is_while_a_prompt_grows(void **state)
{
	static const char *const lines[] = { "xx", "xxxx", "..xxxx", "....xxxx", "......xxxxx" };
	struct loom              loom;
	uint32_t                 i;

	(void)state;
	loom_usual(&loom, 16, 4);
	loom.options.chunk_tokens = 4;
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 20, 2);
	for (i = 0; i < ARRAY_COUNT(lines); i++) {
		loom_next(&loom);
		assert_string_equal(loom_line(&loom, "r1", 1), lines[i]);
	}
	assert_string_equal(loom_line(&loom, "r1", 0), "xxxxxxxxxxx");
	loom_close(&loom);
}

static void a_window_decodes_for_ever_in_little_room(void **state)
{
	struct loom loom;
	uint32_t    i;

	(void)state;
	loom_init(&loom, 2, 7);
	loom_window(&loom, 2, 1, 4);
	loom.options.chunk_tokens = 4;
	loom_open(&loom);
	loom_submit(&loom, "r1", 1, 4, 60);
	for (i = 0; i < 41; i++) {
		assert_string_not_equal(loom_next(&loom), "");
		loom_extend_all(&loom);
	}
	loom_close(&loom);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_limit_counts_each_groups_blocks_and_the_overlap),
		cmocka_unit_test(the_limit_counts_checkpoints_and_tails),
		cmocka_unit_test(the_limit_does_not_depend_on_host),
		cmocka_unit_test(a_prefill_rank_holds_no_room_for_new_tokens),
		cmocka_unit_test(a_decode_rank_holds_the_whole_request),
		cmocka_unit_test(the_limit_of_a_decode_rank_counts_packed_windows),
		cmocka_unit_test(what_fits_exactly_lives_to_its_end),
		cmocka_unit_test(what_fits_exactly_does_so_without_a_tail),
		cmocka_unit_test(who_is_cramped_begins_anew_on_an_empty_device),
		cmocka_unit_test(a_full_device_lets_the_second_wait_for_the_first),
		cmocka_unit_test(a_plan_admits_no_more_than_there_is_room_for),
		cmocka_unit_test(room_that_is_reserved_is_nobody_elses),
		cmocka_unit_test(a_long_prompt_fits_because_its_window_slides),
		cmocka_unit_test(a_window_stays_as_wide_as_it_is_while_a_prompt_grows),
		cmocka_unit_test(a_window_decodes_for_ever_in_little_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
