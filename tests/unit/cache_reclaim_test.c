/* SPDX-License-Identifier: Apache-2.0 */
/* What a window lets go of: which slots become holes, and what becomes of the blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lab.h"

#define DEVICE STRATUM_DEVICE

static void open_with(struct lab *lab, struct lab_request *request, const struct lab_model *model,
		      uint32_t tokens)
{
	const struct lab_step step = lab_tokens(tokens);

	lab_open(lab, model);
	lab_begin(lab, request);
	lab_admit(lab, request, &step);
}

struct reclaiming {
	const char *name;
	uint32_t    q, window_tokens, tokens;
	uint64_t    computed;
	const char *table;
	uint32_t    empty; /* of 4 parents */
};

static const struct reclaiming reclaimings[] = {
	{ "nothing inside the window", 4, 16, 8, 8, "xx", 2 },
	{ "no more than there is", 4, 16, 8, 1000, "..", 4 },
	{ "every block that slid out", 2, 4, 8, 8, "..xx", 2 },
	{ "not the block of the oldest token in reach", 2, 4, 8, 6, ".xxx", 1 },
};

static void blocks_behind_the_window_are_given_back(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(reclaimings); i++) {
		const struct reclaiming *const row = &reclaimings[i];
		const struct lab_model         model = {
			row->q, 4, 0, { LAB_WINDOW(row->q, row->window_tokens, 1) }
		};
		struct lab_request request;
		struct lab         lab;

		print_message("# %s\n", row->name);
		open_with(&lab, &request, &model, row->tokens);
		lab_reclaim(&lab, &request, row->computed);
		lab_expect_table(&lab, &request, 0, row->table);
		assert_int_equal(lab_empty(&lab, DEVICE), row->empty);
		lab_reclaim(&lab, &request, row->computed); /* a hole stays a hole */
		lab_reclaim(&lab, &request, 0);             /* and the frontier never goes back */
		lab_expect_table(&lab, &request, 0, row->table);
		lab_free(&lab, &request);
		lab_close(&lab);
	}
}

static void what_slid_out_can_be_taken_again(void **state)
{
	static const struct lab_model model = { 2, 4, 0, { LAB_WINDOW(2, 4, 1) } };
	struct lab_step               step = lab_tokens(4);
	struct lab_request            request;
	struct lab                    lab;

	(void)state;
	open_with(&lab, &request, &model, 8);
	lab_refuse(&lab, &request, &step, KVS_E_FULL);
	lab_reclaim(&lab, &request, 8);
	lab_admit(&lab, &request, &step);
	lab_expect_table(&lab, &request, 0, "..xxxx");
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void a_named_block_that_slid_out_is_still_hit(void **state)
{
	static const struct lab_model model = { 4, 8, 0, { LAB_WINDOW(4, 4, 1) } };
	struct lab_request            request;
	struct lab                    lab;
	uint32_t                      block;

	(void)state;
	open_with(&lab, &request, &model, 8);
	lab_publish(&lab, &request, 0, 1, CELL_CHUNK);
	block = request.slots[0][0];
	lab_reclaim(&lab, &request, 8);
	lab_expect_table(&lab, &request, 0, ".x");
	assert_int_equal(lab_block(&lab, DEVICE, 0, 0), block);
	assert_true(lab_view(&lab, DEVICE, 0, 0).idle);
	lab_probe(&lab, 1);
	assert_int_equal(lab.probe.device_tokens, 4);
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void history_never_slides_out(void **state)
{
	static const struct lab_model model = {
		2, 16, 0, { LAB_FULL(2, 1), LAB_WINDOW(2, 4, 1) }
	};
	struct lab_request            request;
	struct lab                    lab;

	(void)state;
	open_with(&lab, &request, &model, 6);
	lab_reclaim(&lab, &request, 5);
	lab_expect_table(&lab, &request, 0, "xxx");
	lab_expect_table(&lab, &request, 1, ".xx");
	lab_free(&lab, &request);
	lab_close(&lab);
}

/*
 * A block that a copy to Host still reads can not be taken, though it slid out; but it could be if the
 * copy were done, and that is worth to wait for.
 */
static void a_block_under_a_copy_can_be_taken_once_the_copy_is_done(void **state)
{
	static const struct lab_model model = { 4, 2, 0, { LAB_WINDOW(4, 4, 1) } };
	struct lab_step               step = lab_tokens(4);
	struct lab_request            request;
	struct lab                    lab;
	struct cache_block            released = { 0 };

	(void)state;
	open_with(&lab, &request, &model, 8);
	lab_publish(&lab, &request, 0, 1, CELL_CHUNK);
	released.block = request.slots[0][0];
	assert_int_equal(cache_pin(lab.cache, DEVICE, 0, released.block), 3);
	step.completed.computed = 7;
	lab_refuse(&lab, &request, &step, KVS_E_FULL);
	assert_true(lab_can_admit(&lab, &request, &step, &released, 1));
	assert_false(lab_view(&lab, DEVICE, 0, 0).idle);
	assert_int_equal(cache_unpin(lab.cache, DEVICE, 0, released.block), 2);
	assert_false(lab_view(&lab, DEVICE, 0, 0).idle);
	lab_admit(&lab, &request, &step);
	lab_expect_table(&lab, &request, 0, ".xx");
	lab_expect_held(&lab, DEVICE, 0, "");
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* Published, it can be had once its name goes; while a copy reads it, not even then. */
static void the_slide_credit_counts_what_a_reclaim_makes_takable(void **state)
{
	static const struct lab_model model = { 4, 2, 0, { LAB_WINDOW(4, 4, 1) } };
	struct lab_request            request;
	const struct table *const     table = &request.tables[0];
	struct lab                    lab;

	(void)state;
	open_with(&lab, &request, &model, 8);
	assert_int_equal(cache_slide_credit(lab.cache, table, 0, 6, false), 0);
	assert_int_equal(cache_slide_credit(lab.cache, table, 0, 7, false), 1);
	assert_int_equal(cache_slide_credit(lab.cache, table, 0, 7, true), 0);
	lab_publish(&lab, &request, 0, 1, CELL_CHUNK);
	assert_int_equal(cache_slide_credit(lab.cache, table, 0, 7, false), 1);
	assert_int_equal(cache_slide_credit(lab.cache, table, 0, 7, true), 1);
	cache_pin(lab.cache, DEVICE, 0, request.slots[0][0]);
	assert_int_equal(cache_slide_credit(lab.cache, table, 0, 7, false), 0);
	cache_unpin(lab.cache, DEVICE, 0, request.slots[0][0]);
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void several_windows_slide_each_by_its_own(void **state)
{
	static const struct lab_model model = {
		2, 20, 0, { LAB_FULL(2, 1), LAB_WINDOW(2, 6, 1), LAB_WINDOW(2, 2, 1) }
	};
	static const uint32_t         expected[] = { 0, 2, 4 };
	struct lab_request            request;
	struct lab                    lab;
	uint32_t                      before, g;

	(void)state;
	open_with(&lab, &request, &model, 10);
	before = lab_empty(&lab, DEVICE);
	for (g = 0; g < 3; g++) {
		assert_int_equal(cache_slide_credit(lab.cache, &request.tables[g], g, 10, false),
				 expected[g]);
	}
	lab_reclaim(&lab, &request, 10);
	assert_int_equal(lab_empty(&lab, DEVICE), before + 6);
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void nothing_slides_out_where_no_request_gets(void **state)
{
	static const struct lab_model model = { 4, 2, 0, { LAB_WINDOW(4, 4, 1) } };
	static const uint64_t         past[] = { COMPUTED_NONE, (uint64_t)TOKENS_MAX + 1 };
	struct lab_request            request;
	struct lab                    lab;
	uint32_t                      i;

	(void)state;
	open_with(&lab, &request, &model, 8);
	for (i = 0; i < ARRAY_COUNT(past); i++) {
		assert_int_equal(cache_slide_credit(lab.cache, &request.tables[0], 0, past[i], false),
				 0);
		lab_reclaim(&lab, &request, past[i]);
		lab_expect_table(&lab, &request, 0, "xx");
	}
	assert_int_equal(cache_slide_credit(lab.cache, &request.tables[0], 0, TOKENS_MAX, false), 2);
	lab_free(&lab, &request);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_behind_the_window_are_given_back),
		cmocka_unit_test(what_slid_out_can_be_taken_again),
		cmocka_unit_test(a_named_block_that_slid_out_is_still_hit),
		cmocka_unit_test(history_never_slides_out),
		cmocka_unit_test(a_block_under_a_copy_can_be_taken_once_the_copy_is_done),
		cmocka_unit_test(the_slide_credit_counts_what_a_reclaim_makes_takable),
		cmocka_unit_test(several_windows_slide_each_by_its_own),
		cmocka_unit_test(nothing_slides_out_where_no_request_gets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
