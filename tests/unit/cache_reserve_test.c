/* SPDX-License-Identifier: Apache-2.0 */
/* Which boundary a reservation chooses, what it takes for it, and what a shortage does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "errand.h"

static const struct group_spec one_full[BOX_GROUPS] = { BOX_FULL(4, 1) };
static const struct group_spec full_and_state[BOX_GROUPS] = { BOX_FULL(4, 1), BOX_STATE(4, 1) };
static const struct group_spec three_kinds[BOX_GROUPS] = { BOX_FULL(4, 2), BOX_WINDOW(6, 4, 1),
							   BOX_STATE(8, 1) };

/* Rows as pairs of group and position. */
static void expect_rows(const struct errand *errand, const uint32_t (*rows)[2], uint32_t count)
{
	uint32_t i;

	assert_int_equal(errand->reservation.row_count, count);
	for (i = 0; i < count; i++) {
		assert_int_equal(errand->rows[i].group, rows[i][0]);
		assert_int_equal(errand->rows[i].position, rows[i][1]);
	}
}

/* Pages of nobody's prompt, published on Host; the later the more valuable. */
static void put_others(struct errand *errand, uint32_t group, uint32_t count)
{
	box_put_host(&errand->box, group, BOX_PAGES - count, BOX_PAGES);
}

/* --- the boundary ----------------------------------------------------------------------------- */

static void A3_6_the_longest_boundary_that_the_hints_complete_is_reserved(void **state)
{
	static const uint32_t whole[][2] = { { 0, 0 }, { 0, 1 }, { 0, 2 }, { 0, 3 }, { 0, 4 },
					     { 0, 5 }, { 0, 6 }, { 0, 7 }, { 1, 7 } };
	static const uint32_t shorter[][2] = { { 0, 0 }, { 0, 1 }, { 0, 2 }, { 0, 3 },
					       { 0, 4 }, { 0, 5 }, { 1, 5 } };
	struct errand         errand;

	(void)state;
	errand_open(&errand, 4, 4, 32, full_and_state);
	errand_hint(&errand, 0, 0, 8);
	errand_hint(&errand, 1, 5, 6);
	assert_int_equal(errand_ask(&errand, 8, ERRAND_CREDITS), RESERVE_ROWS);
	assert_int_equal(errand.reservation.tokens, 24);
	expect_rows(&errand, shorter, ARRAY_COUNT(shorter));
	errand_hint(&errand, 1, 7, 8);
	assert_int_equal(errand_ask(&errand, 8, ERRAND_CREDITS), RESERVE_ROWS);
	assert_int_equal(errand.reservation.tokens, 32);
	expect_rows(&errand, whole, ARRAY_COUNT(whole));
	assert_int_equal(errand.reservation.shortened_by, RESERVE_ROWS);
	assert_int_equal(errand_host(&errand).held, 9);
	assert_int_equal(errand_host(&errand).published, 0);
	errand_close(&errand);
}

static void A3_6_windows_and_states_are_got_at_the_boundary_alone(void **state)
{
	/* Pages of 8 tokens: 2 blocks of the history and of the window, whose lookback is 2. */
	static const uint32_t page_end[][2] = { { 0, 0 }, { 0, 1 }, { 0, 2 }, { 0, 3 },
						{ 1, 2 }, { 1, 3 }, { 2, 1 } };
	struct errand         errand;
	uint32_t              i;

	(void)state;
	errand_open(&errand, 8, 4, 32, three_kinds);
	errand_hint(&errand, 0, 0, 2);
	errand_hint(&errand, 1, 0, 2);
	errand_hint(&errand, 2, 0, 2);
	assert_int_equal(errand_ask(&errand, 2, ERRAND_CREDITS), RESERVE_ROWS);
	assert_int_equal(errand.reservation.tokens, 16);
	expect_rows(&errand, page_end, ARRAY_COUNT(page_end));
	for (i = 0; i < errand.reservation.row_count; i++) {
		const struct cell_name name = cache_row_name(&errand.reservation, i);
		const uint32_t         page = errand.rows[i].position / (name.group == 2 ? 1 : 2);

		assert_false(errand.rows[i].of_tail);
		assert_memory_equal(name.hash, &errand.box.hashes[page], sizeof(*name.hash));
		assert_int_equal(name.offset, name.group == 2 ? 0 : errand.rows[i].position % 2);
	}
	errand_close(&errand);
}

/* A tail of 2 tokens lies in the first of its page's blocks: others of them are not got. */
static void A3_15_a_tail_is_reserved_under_its_own_hash_and_count(void **state)
{
	static const uint32_t rows[][2] = { { 0, 0 }, { 0, 1 }, { 0, 2 }, { 1, 1 }, { 1, 2 }, { 2, 1 } };
	struct errand         errand;

	(void)state;
	errand_open(&errand, 8, 4, 32, three_kinds);
	errand_hint(&errand, 0, 0, 2);
	errand_hint(&errand, 1, 0, 1);
	errand_tail(&errand, 10, 0x15); /* the first column of each group */
	assert_int_equal(errand_ask(&errand, 2, ERRAND_CREDITS), RESERVE_ROWS);
	assert_int_equal(errand.reservation.tokens, 10);
	expect_rows(&errand, rows, ARRAY_COUNT(rows));
	assert_true(errand.rows[2].of_tail && errand.rows[4].of_tail && errand.rows[5].of_tail);
	assert_false(errand.rows[1].of_tail || errand.rows[3].of_tail);
	assert_memory_equal(&errand.rows[2].hash, &errand.tails[0].hash, sizeof(errand.rows[2].hash));
	assert_int_equal(errand.reservation.tail_tokens, 2);
	assert_memory_equal(&errand.reservation.tail_hash, &errand.tails[0].hash,
			    sizeof(errand.reservation.tail_hash));
	assert_true(errand.reservation.has_prior);
	assert_memory_equal(&errand.reservation.prior_hash, &errand.box.hashes[0],
			    sizeof(errand.reservation.prior_hash));
	errand_close(&errand);
}

/* --- what is there already -------------------------------------------------------------------- */

/* Device's history is longer than its last checkpoint: only the checkpoint is missing. */
static void A3_14_device_history_behind_the_joint_boundary_is_not_got_again(void **state)
{
	static const uint32_t rows[][2] = { { 1, 7 } };
	struct errand         errand;

	(void)state;
	errand_open(&errand, 4, 32, 32, full_and_state);
	box_put(&errand.box, 0, 0, 8);
	box_put(&errand.box, 1, 3, 4);
	errand_hint(&errand, 0, 0, 8);
	errand_hint(&errand, 1, 0, 8);
	assert_int_equal(errand_ask(&errand, 8, 1), RESERVE_ROWS);
	assert_int_equal(errand.reservation.tokens, 32);
	assert_int_equal(errand.reservation.local_tokens, 16);
	expect_rows(&errand, rows, 1);
	errand_close(&errand);
}

/* Below Device's boundary nothing is got, pinned or charged, whatever Host and store have there. */
static void A3_14_what_device_restores_is_not_looked_at(void **state)
{
	static const uint32_t rows[][2] = { { 0, 6 }, { 0, 7 }, { 1, 7 } };
	struct errand         errand;

	(void)state;
	errand_open(&errand, 4, 32, 32, full_and_state);
	box_put(&errand.box, 0, 0, 4);
	box_put(&errand.box, 1, 3, 4);
	box_put_host(&errand.box, 0, 0, 6);
	box_put_host(&errand.box, 1, 0, 3);
	errand_hint(&errand, 0, 0, 8);
	errand_hint(&errand, 1, 0, 8);
	assert_int_equal(errand_ask(&errand, 8, 5), RESERVE_ROWS);
	assert_int_equal(errand.reservation.tokens, 32);
	assert_int_equal(errand.reservation.warm_count, 2);
	expect_rows(&errand, rows, ARRAY_COUNT(rows));
	errand_close(&errand);
}

/* The checkpoint at 24 tokens was Host's when the store was asked, so nobody asked for it. */
static void A3_14_eviction_between_query_and_get_shortens_and_makes_no_hit(void **state)
{
	static const uint32_t history[][2] = { { 0, 4 }, { 0, 5 } };
	static const uint32_t shorter[][2] = { { 0, 4 }, { 1, 4 } };
	struct errand         errand;

	(void)state;
	errand_open(&errand, 4, 4, 7, full_and_state);
	box_put_host(&errand.box, 1, 5, 6);
	box_put_host(&errand.box, 0, 0, 4);
	errand_hint(&errand, 0, 4, 6);
	assert_int_equal(errand_ask(&errand, 8, ERRAND_CREDITS), RESERVE_ROWS);
	assert_int_equal(errand.reservation.tokens, 24);
	expect_rows(&errand, history, ARRAY_COUNT(history));
	cache_reservation_release(errand.box.cache, &errand.reservation);
	put_others(&errand, 1, 3);
	assert_int_equal(box_find(&errand.box, STRATUM_HOST, 1, 5), BLOCK_NULL);
	assert_int_equal(errand_ask(&errand, 8, ERRAND_CREDITS), RESERVE_NO_HINT);
	assert_int_equal(errand.reservation.tokens, 0);
	errand_hint(&errand, 1, 4, 5);
	assert_int_equal(errand_ask(&errand, 8, ERRAND_CREDITS), RESERVE_ROWS);
	assert_int_equal(errand.reservation.tokens, 20);
	expect_rows(&errand, shorter, ARRAY_COUNT(shorter));
	assert_int_equal(errand_local(&errand, 8), 0);
	errand_close(&errand);
}

static void A3_13_what_others_published_meanwhile_needs_no_rows(void **state)
{
	struct errand errand;

	(void)state;
	errand_open(&errand, 4, 4, 16, one_full);
	errand_hint(&errand, 0, 0, 4);
	assert_int_equal(errand_ask(&errand, 4, ERRAND_CREDITS), RESERVE_ROWS);
	box_put_host(&errand.box, 0, 0, 4);
	assert_int_equal(errand_ask(&errand, 4, ERRAND_CREDITS), RESERVE_COVERED);
	assert_int_equal(errand.reservation.tokens, 16);
	/* A longer prompt of which the store has no more. */
	assert_int_equal(errand_ask(&errand, 5, ERRAND_CREDITS), RESERVE_NO_HINT);
	assert_int_equal(errand.reservation.local_tokens, 16);
	assert_int_equal(errand_ask(&errand, 0, ERRAND_CREDITS), RESERVE_COVERED);
	errand_close(&errand);
}

/* --- input ------------------------------------------------------------------------------------ */

static void a_prompt_that_does_not_fit_is_refused_in_a_sentence(void **state)
{
	const struct tail        tails[] = { { 7, box_hash(7) }, { 6, box_hash(6) }, { 5, box_hash(5) } };
	struct errand            errand;
	struct cache_reserve_ask ask = { .credits = 1 };
	enum reserve_answer      answer = RESERVE_ROWS;

	(void)state;
	errand_open(&errand, 4, 4, 4, one_full);
	ask.prompt = (struct cache_prompt){ &errand.box.space, errand.box.hashes, 1, tails, 3 };
	assert_int_equal(cache_reserve(&errand.reserver, &ask, &errand.reservation, &answer, &errand.box.err),
			 KVS_E_INVALID);
	assert_string_equal(errand.box.err.message, "tail_count: 3, at most 2");
	ask.prompt.tail_count = 0;
	ask.prompt.page_count = BOX_PAGES + 1;
	assert_int_equal(cache_reserve(&errand.reserver, &ask, &errand.reservation, &answer, &errand.box.err),
			 KVS_E_INVALID);
	assert_string_equal(errand.box.err.message, "page_count: 33, at most 32");
	assert_int_equal(errand.reservation.row_count, 0);
	errand_close(&errand);
}

/* A block is pinned twice, and a name got twice: the second copy is dropped. */
static void equal_hashes_in_one_prompt_do_no_harm(void **state)
{
	struct errand errand;

	(void)state;
	errand_open(&errand, 4, 4, 6, one_full);
	box_put_host(&errand.box, 0, 0, 1);
	errand.box.hashes[1] = errand.box.hashes[0];
	errand.box.hashes[3] = errand.box.hashes[2];
	errand_hint(&errand, 0, 2, 4);
	assert_int_equal(errand_ask(&errand, 4, ERRAND_CREDITS), RESERVE_ROWS);
	assert_int_equal(errand.reservation.warm_count, 2);
	assert_int_equal(errand.reservation.row_count, 2);
	assert_int_equal(errand_publish(&errand, 0x3, true), 2);
	assert_int_equal(errand.rows[0].block, errand.rows[1].block);
	cache_reservation_release(errand.box.cache, &errand.reservation);
	assert_int_equal(errand_host(&errand).idle, 2);
	errand_close(&errand);
}

/* Of Device it has nothing yet: no table, so no demand and nothing to give back. */
static void a_request_that_waits_for_its_read_is_no_demand_on_device(void **state)
{
	struct box_request  request;
	struct table *const tables = request.tables;
	struct errand       errand;
	uint32_t            available;

	(void)state;
	errand_open(&errand, 4, 4, 8, one_full);
	box_put(&errand.box, 0, 0, 1);
	box_request(&errand.box, &request);
	available = cache_available(errand.box.cache);
	errand_hint(&errand, 0, 1, 4);
	assert_int_equal(errand_ask(&errand, 4, ERRAND_CREDITS), RESERVE_ROWS);
	assert_int_equal(cache_available(errand.box.cache), available);
	assert_int_equal(cache_active(errand.box.cache, &tables, 1), 0);
	assert_int_equal(cache_releasable(errand.box.cache, &tables, 1), 0);
	assert_int_equal(box_take(&errand.box, &request, 16), 0); /* as if there were no read at all */
	cache_free(errand.box.cache, request.tables);
	errand_close(&errand);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A3_6_the_longest_boundary_that_the_hints_complete_is_reserved),
		cmocka_unit_test(A3_6_windows_and_states_are_got_at_the_boundary_alone),
		cmocka_unit_test(A3_15_a_tail_is_reserved_under_its_own_hash_and_count),
		cmocka_unit_test(A3_14_device_history_behind_the_joint_boundary_is_not_got_again),
		cmocka_unit_test(A3_14_what_device_restores_is_not_looked_at),
		cmocka_unit_test(A3_14_eviction_between_query_and_get_shortens_and_makes_no_hit),
		cmocka_unit_test(A3_13_what_others_published_meanwhile_needs_no_rows),
		cmocka_unit_test(a_prompt_that_does_not_fit_is_refused_in_a_sentence),
		cmocka_unit_test(equal_hashes_in_one_prompt_do_no_harm),
		cmocka_unit_test(a_request_that_waits_for_its_read_is_no_demand_on_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
