/* SPDX-License-Identifier: Apache-2.0 */
/* What a shortage of credits or of room on Host does to a reservation: a shorter boundary, or a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "errand.h"

static const struct group_spec one_full[BOX_GROUPS] = { BOX_FULL(4, 1) };
static const struct group_spec full_and_state[BOX_GROUPS] = { BOX_FULL(4, 1), BOX_STATE(4, 1) };

/* Pages of nobody's prompt, published on Host; the later the more valuable. */
static void put_others(struct errand *errand, uint32_t group, uint32_t count)
{
	box_put_host(&errand->box, group, BOX_PAGES - count, BOX_PAGES);
}

/* --- credits ---------------------------------------------------------------------------------- */

static void A3_11_rows_and_warm_blocks_together_fit_into_the_credits(void **state)
{
	struct errand errand;

	(void)state;
	errand_open(&errand, 4, 8, 32, full_and_state);
	box_put(&errand.box, 0, 0, 2);      /* Device's cost nothing */
	box_put_host(&errand.box, 0, 1, 5); /* 3 warm ones */
	errand_hint(&errand, 0, 5, 8);
	errand_hint(&errand, 1, 5, 8);
	/* 32 tokens: 3 warm, history 5 to 7, a checkpoint.  24: 3 warm, 5, a checkpoint. */
	assert_int_equal(errand_ask(&errand, 8, 7), RESERVE_ROWS);
	assert_int_equal(errand.reservation.tokens, 32);
	assert_int_equal(errand.reservation.warm_count, 3);
	assert_int_equal(errand_ask(&errand, 8, 6), RESERVE_ROWS);
	assert_int_equal(errand.reservation.tokens, 28);
	assert_int_equal(errand.reservation.shortened_by, RESERVE_CREDITS);
	assert_int_equal(errand_ask(&errand, 8, 5), RESERVE_ROWS);
	assert_int_equal(errand.reservation.tokens, 24);
	assert_int_equal(errand.reservation.row_count, 2);
	errand_close(&errand);
}

static void A3_17_a_block_costs_one_whatever_its_packing(void **state)
{
	static const struct group_spec packed[BOX_GROUPS] = { BOX_FULL(1, 4) };
	struct errand                  errand;

	(void)state;
	errand_open(&errand, 4, 4, 8, packed);
	errand_hint(&errand, 0, 0, 2);
	assert_int_equal(errand_ask(&errand, 2, 7), RESERVE_ROWS);
	assert_int_equal(errand.reservation.tokens, 4);
	assert_int_equal(errand.reservation.shortened_by, RESERVE_CREDITS);
	assert_int_equal(errand_ask(&errand, 2, 8), RESERVE_ROWS);
	assert_int_equal(errand.reservation.tokens, 8);
	errand_close(&errand);
}

static void A3_18_without_credits_nothing_is_taken_and_the_reason_says_so(void **state)
{
	struct errand errand;

	(void)state;
	errand_open(&errand, 4, 4, 8, full_and_state);
	put_others(&errand, 0, 8);
	errand_hint(&errand, 0, 0, 3);
	errand_hint(&errand, 1, 2, 3);
	assert_int_equal(errand_ask(&errand, 3, 3), RESERVE_CREDITS);
	assert_int_equal(errand_host(&errand).idle, 8);
	assert_int_equal(errand.reservation.tokens, 0);
	errand_close(&errand);
}

static void a_read_has_no_more_rows_than_there_is_room_for(void **state)
{
	struct errand            errand;
	struct cache_reserve_ask ask = { .credits = ERRAND_CREDITS };
	enum reserve_answer      answer;

	(void)state;
	errand_open(&errand, 4, 4, 8, one_full);
	errand_hint(&errand, 0, 0, 4);
	ask.prompt = (struct cache_prompt){ &errand.box.space, errand.box.hashes, 4, NULL, 0 };
	ask.page_hints = errand.page_hints;
	errand.reservation = (struct cache_reservation){ .rows = errand.rows, .row_max = 2 };
	assert_int_equal(cache_reserve(&errand.reserver, &ask, &errand.reservation, &answer, NULL), 0);
	assert_int_equal(answer, RESERVE_ROWS);
	assert_int_equal(errand.reservation.tokens, 8);
	assert_int_equal(errand.reservation.shortened_by, RESERVE_CREDITS);
	errand_close(&errand);
}

/* --- room on Host ----------------------------------------------------------------------------- */

static void A3_6_a_full_host_shortens_to_the_page_boundary_below_a_tail(void **state)
{
	struct errand errand;

	(void)state;
	errand_open(&errand, 4, 4, 4, one_full);
	errand_hint(&errand, 0, 0, 4);
	errand_tail(&errand, 18, 1);
	errand_tail(&errand, 14, 1);
	assert_int_equal(errand_ask(&errand, 4, ERRAND_CREDITS), RESERVE_ROWS);
	assert_int_equal(errand.reservation.tokens, 16);
	assert_int_equal(errand.reservation.tail_tokens, 0);
	assert_int_equal(errand.reservation.shortened_by, RESERVE_HOST_FULL);
	errand_close(&errand);
}

static void A3_6_the_next_shorter_boundary_may_be_a_tail(void **state)
{
	struct errand errand;

	(void)state;
	errand_open(&errand, 4, 4, 8, full_and_state);
	errand_hint(&errand, 0, 0, 4);
	errand_hint(&errand, 1, 3, 4);
	errand_tail(&errand, 14, 3);
	assert_int_equal(errand_ask(&errand, 4, 4), RESERVE_CREDITS);
	assert_int_equal(errand_ask(&errand, 4, 5), RESERVE_ROWS);
	assert_int_equal(errand.reservation.tokens, 16);
	errand.page_hints[0] &= ~(UINT64_C(1) << 6); /* history of the last page */
	assert_int_equal(errand_ask(&errand, 4, 5), RESERVE_ROWS);
	assert_int_equal(errand.reservation.tokens, 14);
	assert_int_equal(errand.reservation.tail_tokens, 2);
	errand_close(&errand);
}

/* Warm blocks are the least valuable ones of a full Host: without their pins they would go first. */
static void A3_6_making_room_evicts_no_warm_block_and_leaves_no_pin(void **state)
{
	struct errand errand;
	uint32_t      page;

	(void)state;
	errand_open(&errand, 4, 4, 8, one_full);
	box_put_host(&errand.box, 0, 0, 3);
	put_others(&errand, 0, 5);
	errand_hint(&errand, 0, 3, 8);
	assert_int_equal(errand_ask(&errand, 8, ERRAND_CREDITS), RESERVE_ROWS);
	assert_int_equal(errand.reservation.tokens, 32);
	assert_int_equal(errand.reservation.warm_count, 3);
	for (page = 0; page < 3; page++)
		assert_true(box_view(&errand.box, STRATUM_HOST, 0, page).idle);
	assert_int_equal(errand_host(&errand).idle, 3);
	errand_close(&errand);
}

/* Four blocks are needed, three can be had: they are not evicted for nothing. */
static void A3_6_a_boundary_that_cannot_have_room_changes_nothing(void **state)
{
	struct errand errand;
	uint32_t      pinned;
	uint64_t      clock;

	(void)state;
	errand_open(&errand, 4, 4, 4, full_and_state);
	put_others(&errand, 0, 4);
	pinned = box_find(&errand.box, STRATUM_HOST, 0, BOX_PAGES - 1);
	cache_pin(errand.box.cache, STRATUM_HOST, 0, pinned);
	clock = cache_clock(errand.box.cache);
	errand_hint(&errand, 0, 0, 3);
	errand_hint(&errand, 1, 2, 3);
	assert_int_equal(errand_ask(&errand, 3, ERRAND_CREDITS), RESERVE_HOST_FULL);
	assert_int_equal(errand_host(&errand).published, 4);
	assert_int_equal(errand_host(&errand).idle, 3);
	assert_int_equal(cache_clock(errand.box.cache), clock);
	assert_int_equal(cache_unpin(errand.box.cache, STRATUM_HOST, 0, pinned), 1);
	assert_int_equal(errand_ask(&errand, 3, ERRAND_CREDITS), RESERVE_ROWS);
	errand_close(&errand);
}

/* Publish on Host blocks that were acquired together, in an order of one's own. */
static void publish_in_order(struct errand *errand, uint32_t group, const uint32_t *order,
			     uint32_t count)
{
	uint32_t blocks[8];
	uint32_t i;

	for (i = 0; i < count; i++)
		blocks[i] = cache_host_acquire(errand->box.cache, group);
	for (i = 0; i < count; i++) {
		const struct cell_name name = { &errand->box.space,
						&errand->box.hashes[BOX_PAGES - 1 - order[i]], group, 0 };

		cache_host_publish(errand->box.cache, &name, blocks[order[i]], CELL_CHUNK);
	}
}

/*
 * Two parents of two idle blocks.  The history takes the least valuable block of each, so that the
 * checkpoint finds no whole parent, though one of them would have held the history.
 */
static void A3_6_what_was_evicted_in_vain_is_given_back_and_a_shorter_boundary_tried(void **state)
{
	static const struct group_spec pairs[BOX_GROUPS] = { BOX_FULL(4, 2), BOX_STATE(4, 1) };
	static const uint32_t          order[] = { 0, 2, 1, 3 };
	struct errand                  errand;

	(void)state;
	errand_open(&errand, 4, 4, 2, pairs);
	publish_in_order(&errand, 0, order, 4);
	errand_hint(&errand, 0, 0, 2);
	errand_hint(&errand, 1, 1, 2);
	assert_int_equal(errand_ask(&errand, 2, ERRAND_CREDITS), RESERVE_HOST_FULL);
	assert_int_equal(errand_host(&errand).held, 2);
	assert_int_equal(errand_host(&errand).idle, 2);
	errand_hint(&errand, 1, 0, 1);
	assert_int_equal(errand_ask(&errand, 2, ERRAND_CREDITS), RESERVE_ROWS);
	assert_int_equal(errand.reservation.tokens, 4);
	assert_int_equal(errand.reservation.row_count, 2);
	assert_int_equal(errand.rows[0].group, 0);
	assert_int_equal(errand.rows[1].group, 1);
	errand_close(&errand);
}

static void without_host_there_is_no_room(void **state)
{
	struct errand errand;

	(void)state;
	errand_open(&errand, 4, 4, 0, one_full);
	errand_hint(&errand, 0, 0, 2);
	assert_int_equal(errand_ask(&errand, 2, ERRAND_CREDITS), RESERVE_HOST_FULL);
	errand_close(&errand);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A3_11_rows_and_warm_blocks_together_fit_into_the_credits),
		cmocka_unit_test(A3_17_a_block_costs_one_whatever_its_packing),
		cmocka_unit_test(A3_18_without_credits_nothing_is_taken_and_the_reason_says_so),
		cmocka_unit_test(a_read_has_no_more_rows_than_there_is_room_for),
		cmocka_unit_test(A3_6_a_full_host_shortens_to_the_page_boundary_below_a_tail),
		cmocka_unit_test(A3_6_the_next_shorter_boundary_may_be_a_tail),
		cmocka_unit_test(A3_6_making_room_evicts_no_warm_block_and_leaves_no_pin),
		cmocka_unit_test(A3_6_a_boundary_that_cannot_have_room_changes_nothing),
		cmocka_unit_test(A3_6_what_was_evicted_in_vain_is_given_back_and_a_shorter_boundary_tried),
		cmocka_unit_test(without_host_there_is_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
