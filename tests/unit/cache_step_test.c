/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a request over full history and a window: first chunk, further chunks, decode.  Each
 * publishes what the step before it completed, lets go of what slid out, and takes blocks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lab.h"

#define DEVICE STRATUM_DEVICE

/* A window of 16 with blocks of 4 needs four of them. */
static const struct lab_model long_window = { 4, 16, 0, { LAB_FULL(4, 1), LAB_WINDOW(4, 16, 1) } };
/* A window of 4 with blocks of 2 needs two. */
static const struct lab_model short_window = { 2, 16, 0, { LAB_FULL(2, 1), LAB_WINDOW(2, 4, 1) } };

static void expect_fresh(const struct cache_admitted *admitted, const struct lab_request *request,
			 uint32_t count)
{
	const uint32_t *fresh = admitted->fresh;
	uint32_t        g, i;

	for (g = 0; g < 2; g++) {
		const struct table *const table = &request->tables[g];

		assert_int_equal(admitted->fresh_count[g], count);
		for (i = 0; i < count; i++)
			assert_int_equal(*fresh++, table->slots[table->count - count + i]);
	}
}

static void a_first_chunk_takes_blocks_for_its_tokens(void **state)
{
	const struct lab_step step = lab_tokens(8);
	struct cache_admitted admitted;
	struct lab_request    request;
	struct lab            lab;

	(void)state;
	lab_open(&lab, &long_window);
	lab_begin(&lab, &request);
	admitted = lab_admit(&lab, &request, &step);
	expect_fresh(&admitted, &request, 2);
	assert_int_equal(admitted.device_tokens, 0);
	assert_int_equal(admitted.host_tokens, 0);
	assert_int_equal(lab_empty(&lab, DEVICE), 12);
	lab_free(&lab, &request);
	assert_int_equal(lab_empty(&lab, DEVICE), 16);
	lab_close(&lab);
}

static void a_first_chunk_claims_its_hit_and_takes_the_rest(void **state)
{
	const struct lab_step step = lab_probed(8);
	struct cache_admitted admitted;
	struct lab_request    request;
	struct lab            lab;
	uint32_t              g, i;

	(void)state;
	lab_open(&lab, &long_window);
	lab_run(&lab, 16, CELL_CHUNK);
	assert_int_equal(lab_empty(&lab, DEVICE), 8);
	lab_probe(&lab, 4);
	lab_begin(&lab, &request);
	admitted = lab_admit(&lab, &request, &step);
	expect_fresh(&admitted, &request, 2);
	assert_int_equal(admitted.device_tokens, 16);
	assert_int_equal(lab_empty(&lab, DEVICE), 4);
	for (g = 0; g < 2; g++) {
		lab_expect_table(&lab, &request, g, "xxxxxx");
		for (i = 0; i < 4; i++)
			assert_int_equal(request.slots[g][i], lab_block(&lab, DEVICE, g, i));
	}
	assert_int_equal(lab_pins(&lab, DEVICE), 8);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* A request of so many tokens in blocks of 2, nothing published yet. */
static void open_with(struct lab *lab, struct lab_request *request, uint32_t parents, uint32_t tokens)
{
	const struct lab_step step = lab_tokens(tokens);
	struct lab_model      model = short_window;

	model.device = parents;
	lab_open(lab, &model);
	lab_begin(lab, request);
	lab_admit(lab, request, &step);
}

static void a_chunk_publishes_the_one_before_it(void **state)
{
	struct lab_step       step = lab_tokens(4);
	struct cache_admitted admitted;
	struct lab_request    request;
	struct lab            lab;

	(void)state;
	open_with(&lab, &request, 16, 4);
	lab_complete(&lab, &step, 2, 0, CELL_CHUNK, 4);
	admitted = lab_admit(&lab, &request, &step);
	expect_fresh(&admitted, &request, 2);
	lab_expect_held(&lab, DEVICE, 0, "xx");
	lab_expect_held(&lab, DEVICE, 1, "xx");
	lab_expect_table(&lab, &request, 0, "xxxx");
	lab_expect_table(&lab, &request, 1, "xxxx");
	lab_complete(&lab, &step, 4, 2, CELL_ENDPOINT, 8);
	lab_advance(&lab, &request, &step);
	lab_expect_held(&lab, DEVICE, 0, "xxxx");
	lab_expect_held(&lab, DEVICE, 1, "xxxx");
	assert_int_equal(lab_view(&lab, DEVICE, 0, 1).kind, CELL_CHUNK);
	assert_int_equal(lab_view(&lab, DEVICE, 0, 2).kind, CELL_ENDPOINT);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* Computed 8: slots 0 and 1 slide out, blocks 2 and 3 are published; 2 come back and 4 are taken. */
static void a_chunk_slides_the_window_and_publishes_what_stays(void **state)
{
	struct lab_step    step = lab_tokens(4);
	struct lab_request request;
	struct lab         lab;
	uint32_t           before;

	(void)state;
	open_with(&lab, &request, 16, 8);
	before = lab_empty(&lab, DEVICE);
	lab_complete(&lab, &step, 4, 0, CELL_CHUNK, 8);
	lab_admit(&lab, &request, &step);
	lab_expect_table(&lab, &request, 0, "xxxxxx");
	lab_expect_table(&lab, &request, 1, "..xxxx");
	lab_expect_held(&lab, DEVICE, 0, "xxxx");
	lab_expect_held(&lab, DEVICE, 1, "..xx");
	assert_int_equal(lab_empty(&lab, DEVICE), before - 2);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* Computed 12: slots 0 to 3 slide out and make the room for 2 blocks in a full pool. */
static void a_chunk_slides_the_window_before_it_takes_blocks(void **state)
{
	struct lab_step    step = lab_tokens(2);
	struct lab_request request;
	struct lab         lab;

	(void)state;
	open_with(&lab, &request, 12, 12);
	assert_int_equal(lab_empty(&lab, DEVICE), 0);
	lab_refuse(&lab, &request, &step, KVS_E_FULL);
	step.completed.computed = 12;
	lab_admit(&lab, &request, &step);
	lab_expect_table(&lab, &request, 0, "xxxxxxx");
	lab_expect_table(&lab, &request, 1, "....xxx");
	assert_int_equal(lab_empty(&lab, DEVICE), 2);
	lab_free(&lab, &request);
	lab_close(&lab);
}

static void a_decode_step_takes_a_block_and_slides_the_window(void **state)
{
	struct lab_step       step = lab_tokens(1);
	struct cache_admitted admitted;
	struct lab_request    request;
	struct lab            lab;

	(void)state;
	open_with(&lab, &request, 16, 6);
	step.completed.computed = 6; /* the query attends to 3, 4 and 5 */
	lab_admit(&lab, &request, &step);
	lab_expect_table(&lab, &request, 0, "xxxx");
	lab_expect_table(&lab, &request, 1, ".xxx");
	assert_int_equal(request.tables[0].available, 1);
	assert_int_equal(request.tables[1].reclaimed, 1);
	assert_int_equal(lab_published(&lab, DEVICE, 0) + lab_published(&lab, DEVICE, 1), 0);
	step.completed.computed = 7;
	admitted = lab_admit(&lab, &request, &step); /* the block has room for a second token */
	expect_fresh(&admitted, &request, 0);
	lab_expect_table(&lab, &request, 0, "xxxx");
	lab_expect_table(&lab, &request, 1, "..xx");
	assert_int_equal(request.tables[0].available, 0);
	lab_free(&lab, &request);
	assert_int_equal(lab_empty(&lab, DEVICE), 16);
	lab_close(&lab);
}

static void a_decode_step_publishes_the_page_that_it_filled(void **state)
{
	struct lab_step    step = lab_tokens(1);
	struct lab_request request;
	struct lab         lab;

	(void)state;
	open_with(&lab, &request, 16, 4);
	lab_complete(&lab, &step, 2, 0, CELL_ENDPOINT, 4);
	lab_admit(&lab, &request, &step);
	lab_complete(&lab, &step, 2, 2, CELL_NONE, 5);
	lab_admit(&lab, &request, &step);
	lab_expect_held(&lab, DEVICE, 0, "xx");
	lab_complete(&lab, &step, 3, 2, CELL_CHUNK, 6);
	lab_admit(&lab, &request, &step);
	lab_expect_held(&lab, DEVICE, 0, "xxx");
	lab_expect_held(&lab, DEVICE, 1, "xxx");
	assert_int_equal(lab_view(&lab, DEVICE, 0, 2).kind, CELL_CHUNK);
	assert_int_equal(lab_view(&lab, DEVICE, 0, 1).kind, CELL_ENDPOINT);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* Without new pages nothing is published, however many old ones are named. */
static void a_step_without_new_pages_only_slides_and_takes_blocks(void **state)
{
	struct lab_step    step = lab_tokens(2);
	struct lab_request request;
	struct lab         lab;

	(void)state;
	open_with(&lab, &request, 16, 8);
	lab_complete(&lab, &step, 4, 4, CELL_NONE, 8);
	lab_admit(&lab, &request, &step);
	lab_expect_held(&lab, DEVICE, 0, "");
	lab_expect_held(&lab, DEVICE, 1, "");
	lab_expect_table(&lab, &request, 0, "xxxxx");
	lab_expect_table(&lab, &request, 1, "..xxx");
	assert_int_equal(lab.inserted, 0);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* P = 2, q = 2: 20 steps of 2 tokens, each published; the window never holds more than 3 blocks. */
static void steps_and_sliding_keep_a_window_within_bounds(void **state)
{
	static const struct lab_model model = { 2, 3, 0, { LAB_WINDOW(2, 4, 1) } };
	struct lab_step               step = lab_tokens(2);
	struct lab_request            request;
	struct lab                    lab;
	uint32_t                      i;

	(void)state;
	lab_open(&lab, &model);
	lab_begin(&lab, &request);
	for (i = 0; i < 20; i++) {
		lab_complete(&lab, &step, i, i > 0 ? i - 1 : 0, i > 0 ? CELL_CHUNK : CELL_NONE, 2 * i);
		lab_admit(&lab, &request, &step);
		assert_int_equal(request.tables[0].count, i + 1);
		assert_true(request.tables[0].count - request.tables[0].reclaimed <= 3);
	}
	assert_int_equal(request.tables[0].reclaimed, 17);
	lab_free(&lab, &request);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_first_chunk_takes_blocks_for_its_tokens),
		cmocka_unit_test(a_first_chunk_claims_its_hit_and_takes_the_rest),
		cmocka_unit_test(a_chunk_publishes_the_one_before_it),
		cmocka_unit_test(a_chunk_slides_the_window_and_publishes_what_stays),
		cmocka_unit_test(a_chunk_slides_the_window_before_it_takes_blocks),
		cmocka_unit_test(a_decode_step_takes_a_block_and_slides_the_window),
		cmocka_unit_test(a_decode_step_publishes_the_page_that_it_filled),
		cmocka_unit_test(a_step_without_new_pages_only_slides_and_takes_blocks),
		cmocka_unit_test(steps_and_sliding_keep_a_window_within_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
