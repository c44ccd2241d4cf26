/* SPDX-License-Identifier: Apache-2.0 */
/* What is easily got wrong in a cache of groups and strata, one test each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lab.h"

#define DEVICE STRATUM_DEVICE
#define HOST   STRATUM_HOST

/* 1: "tokens" is an increment in a dense demand and an absolute end in a sparse one. */
static void tokens_are_an_increment_or_an_end(void **state)
{
	static const struct lab_model model = { 4, 16, 0, { LAB_FULL(4, 1), LAB_STATE(4, 1) } };
	struct lab_step               step = lab_tokens(8);
	struct lab_request            request;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	lab_begin(&lab, &request);
	step.demands[1] = demand_sparse(8, 0, 1);
	lab_admit(&lab, &request, &step);
	lab_expect_table(&lab, &request, 0, "xx");
	lab_expect_table(&lab, &request, 1, ".x");
	step.demands[1] = demand_sparse(8, 0, 2); /* 8 more would be slots 2 and 3; its end is slot 1 */
	lab_refuse(&lab, &request, &step, KVS_E_INVALID);
	step.demands[1] = demand_sparse(16, 0, 3);
	lab_admit(&lab, &request, &step);
	lab_expect_table(&lab, &request, 0, "xxxx");
	lab_expect_table(&lab, &request, 1, ".x.x");
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* 2: tokens of a probe are counted from the start, in Host's part too; hits are Host's own. */
static void tokens_of_a_probe_are_absolute(void **state)
{
	static const struct lab_model model = { 4, 16, 16, { LAB_FULL(4, 1) } };
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	lab_fill(&lab, DEVICE, 0, "xx");
	lab_fill(&lab, HOST, 0, "..xxx");
	lab_probe(&lab, 4); /* pages: an absolute end, not so many behind Device's */
	assert_int_equal(lab.probe.device_tokens, 8);
	assert_int_equal(lab.probe.host_tokens, 16);
	assert_int_equal(lab_hits(&lab, 0, DEVICE), 2);
	assert_int_equal(lab_hits(&lab, 0, HOST), 2);
	lab_close(&lab);
}

/* 3: equal numbers of two groups, or of two strata, are different blocks. */
static void equal_numbers_are_different_blocks(void **state)
{
	static const struct lab_model model = { 4, 2, 1, { LAB_FULL(4, 2), LAB_FULL(4, 1) } };
	struct lab_step               step = lab_tokens(0);
	struct lab_request            request;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	lab_fill(&lab, DEVICE, 0, ".x"); /* parent 1, slot 0: block 1 */
	lab_fill(&lab, DEVICE, 0, "x");  /* parent 1, slot 1: block 2 */
	lab_fill(&lab, DEVICE, 1, "x");  /* parent 2: block 2 of its group */
	lab_fill(&lab, HOST, 0, ".xx");  /* blocks 1 and 2 */
	assert_int_equal(lab_block(&lab, DEVICE, 0, 1), 1);
	assert_int_equal(lab_block(&lab, DEVICE, 0, 0), 2);
	assert_int_equal(lab_block(&lab, DEVICE, 1, 0), 2);
	assert_int_equal(lab_block(&lab, HOST, 0, 1), 1);
	assert_int_equal(lab_block(&lab, HOST, 0, 2), 2);

	lab_begin(&lab, &request);
	step.demands[0].tokens = 4; /* the oldest goes: block 1 of group 0 on Device */
	lab_admit(&lab, &request, &step);
	assert_int_equal(request.slots[0][0], 1);
	lab_expect_held(&lab, DEVICE, 0, "x");
	lab_expect_held(&lab, DEVICE, 1, "x");
	lab_expect_held(&lab, HOST, 0, ".xx");
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* 4: publishing can put another block into the caller's table: the one that bears the name. */
static void publishing_may_change_a_table(void **state)
{
	static const struct lab_model model = { 4, 8, 0, { LAB_FULL(4, 1) } };
	const struct lab_step         step = lab_tokens(8);
	struct lab_request            first, second;
	struct lab                    lab;
	uint32_t                      own;

	(void)state;
	lab_open(&lab, &model);
	lab_begin(&lab, &first);
	lab_admit(&lab, &first, &step);
	lab_begin(&lab, &second);
	lab_admit(&lab, &second, &step);
	lab_publish(&lab, &first, 0, 1, CELL_CHUNK);
	own = second.slots[0][1];
	assert_int_equal(lab_empty(&lab, DEVICE), 4);
	lab_publish(&lab, &second, 0, 2, CELL_ENDPOINT);
	assert_int_equal(second.slots[0][0], first.slots[0][0]);
	assert_int_equal(second.slots[0][1], own);
	assert_int_equal(lab_empty(&lab, DEVICE), 5); /* the duplicate is free */
	assert_int_equal(lab_refs(&lab, DEVICE, 0, 0), 3);
	assert_int_equal(lab_view(&lab, DEVICE, 0, 0).kind, CELL_ENDPOINT);
	assert_int_equal(lab_view(&lab, DEVICE, 0, 0).epoch, 2);
	assert_int_equal(lab.inserted, 2);
	lab_free(&lab, &first);
	lab_free(&lab, &second);
	lab_close(&lab);
}

/*
 * 5: publish, then reclaim, then evict, then take.  The pool of 4 is full.  At computed 15 the window of
 * 4 lets go of slots 0 to 2, of which 2 gets its name just before; then 2 blocks are taken.
 */
static void what_slides_out_is_named_before_and_can_be_taken_after(void **state)
{
	static const struct lab_model model = { 4, 4, 0, { LAB_WINDOW(4, 4, 1) } };
	struct lab_step               step = lab_tokens(15);
	struct lab_request            request;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	lab_begin(&lab, &request);
	lab_admit(&lab, &request, &step);
	step = lab_tokens(9); /* 2 more blocks */
	lab_complete(&lab, &step, 3, 0, CELL_CHUNK, 15);
	lab_admit(&lab, &request, &step);
	lab_expect_table(&lab, &request, 0, "...xxx");
	lab_expect_held(&lab, DEVICE, 0, "..x");
	assert_true(lab_view(&lab, DEVICE, 0, 2).idle);
	step = lab_tokens(4);
	lab_admit(&lab, &request, &step); /* its name goes for the block */
	lab_expect_held(&lab, DEVICE, 0, "");
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* 6: Device gives up the oldest, Host what was never used. */
static void the_strata_give_up_in_different_orders(void **state)
{
	static const struct lab_model model = { 4, 2, 2, { LAB_FULL(4, 1) } };
	const struct lab_step         step = lab_tokens(4);
	struct lab_request            request;
	struct lab                    lab;
	uint32_t                      block;

	(void)state;
	lab_open(&lab, &model);
	lab_fill(&lab, HOST, 0, "x");
	lab_use(&lab, 1);
	lab_fill(&lab, DEVICE, 0, "x");
	lab_use(&lab, 1);
	lab_prompt(&lab, 1, 0);
	lab_fill(&lab, HOST, 0, "x");
	lab_fill(&lab, DEVICE, 0, "x"); /* never used, and the newest */

	lab_begin(&lab, &request);
	lab_admit(&lab, &request, &step);
	lab_expect_held(&lab, DEVICE, 0, "x");
	block = cache_host_acquire(lab.cache, 0);
	lab_expect_held(&lab, HOST, 0, "");
	lab_prompt(&lab, 0, 0);
	lab_expect_held(&lab, DEVICE, 0, "");
	lab_expect_held(&lab, HOST, 0, "x");
	assert_int_equal(cache_unpin(lab.cache, HOST, 0, block), 0);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* 6: a Host parent is free when it is empty; one that could be evicted, or has room, is not. */
static void free_on_host_are_empty_parents_only(void **state)
{
	static const struct lab_model model = { 4, 2, 2, { LAB_FULL(4, 2) } };
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	assert_int_equal(cache_host_free(lab.cache), 2);
	lab_fill(&lab, HOST, 0, "x");
	assert_int_equal(cache_host_free(lab.cache), 1);
	assert_int_equal(cache_available(lab.cache), 2);
	lab_fill(&lab, DEVICE, 0, "x");
	assert_int_equal(cache_available(lab.cache), 2); /* on Device, what is idle is available */
	lab_close(&lab);
}

/* 9: one chunk that ends a token too far, and no prompt is restored any more, for any group. */
static void a_state_past_its_boundary_costs_all_groups_their_hits(void **state)
{
	static const struct lab_model model = { 4, 32, 0, { LAB_FULL(4, 1), LAB_STATE(4, 1) } };
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	lab_run(&lab, 17, CELL_CHUNK);
	lab_expect_held(&lab, DEVICE, 0, "xxxx");
	lab_expect_held(&lab, DEVICE, 1, "");
	lab_probe(&lab, 4);
	assert_int_equal(lab.probe.device_tokens, 0);
	assert_int_equal(lab.probe.promotion_tokens, 16);
	lab_run(&lab, 16, CELL_CHUNK);
	lab_probe(&lab, 4);
	assert_int_equal(lab.probe.device_tokens, 16);
	lab_close(&lab);
}

/* 11: parents are handed out in the order in which they came free, and tables free backwards. */
static void blocks_follow_the_order_of_release(void **state)
{
	static const uint32_t         order[] = { 5, 3, 2, 1, 4 };
	static const struct lab_model model = { 4, 5, 0, { LAB_FULL(4, 1), LAB_FULL(4, 1) } };
	struct lab_step               step = lab_tokens(0);
	struct lab_request            first, second;
	struct lab                    lab;
	uint32_t                      i;

	(void)state;
	lab_open(&lab, &model);
	lab_begin(&lab, &first);
	step.demands[0].tokens = 12; /* 1, 2, 3 */
	step.demands[1].tokens = 4;  /* 4 */
	lab_admit(&lab, &first, &step);
	lab_free(&lab, &first);
	lab_begin(&lab, &second);
	step.demands[0].tokens = 20;
	step.demands[1].tokens = 0;
	lab_admit(&lab, &second, &step);
	for (i = 0; i < 5; i++)
		assert_int_equal(second.slots[0][i], order[i]);
	lab_free(&lab, &second);
	lab_close(&lab);
}

/* 12: refused in every way there is, a hit is still there to be claimed. */
static void a_refused_admission_leaves_the_probe_as_it_was(void **state)
{
	static const struct lab_model model = { 4, 6, 6, { LAB_FULL(4, 1), LAB_WINDOW(4, 4, 1) } };
	struct lab_step               step;
	struct lab_request            request;
	struct lab_rows               rows;
	struct cache_admitted         admitted;
	struct lab                    lab;

	(void)state;
	lab_open(&lab, &model);
	lab_fill(&lab, DEVICE, 0, "x");
	lab_fill(&lab, HOST, 0, ".x");
	lab_fill(&lab, HOST, 1, ".x");
	lab_probe(&lab, 2);
	lab_begin(&lab, &request);
	step = lab_probed(8); /* 2 loads and 4 fresh ones in 5 parents */
	lab_refuse(&lab, &request, &step, KVS_E_FULL);
	step = lab_probed(4);
	step.demands[1] = demand_sparse(12, 0, 1); /* inside the table that the claim makes */
	lab_refuse(&lab, &request, &step, KVS_E_INVALID);
	step = lab_probed(4 * LAB_SLOTS); /* more slots than the table has */
	lab_refuse(&lab, &request, &step, KVS_E_INVALID);
	step = lab_probed(4);
	lab_complete(&lab, &step, 1, 0, CELL_NONE, 4); /* a new page without a kind */
	lab_refuse(&lab, &request, &step, KVS_E_INVALID);
	lab_complete(&lab, &step, 1, 0, CELL_CHUNK, 3); /* a page that is not computed */
	lab_refuse(&lab, &request, &step, KVS_E_INVALID);
	lab_complete(&lab, &step, 1, 1, CELL_CHUNK, 4); /* a kind without a new page */
	lab_refuse(&lab, &request, &step, KVS_E_INVALID);
	request.epoch = cache_clock(lab.cache) + 1;
	step = lab_probed(4);
	lab_refuse(&lab, &request, &step, KVS_E_INVALID);
	request.epoch = 0;
	admitted = lab_admit(&lab, &request, &step);
	rows = lab_rows_of(&admitted);
	assert_int_equal(admitted.host_tokens, 8);
	assert_int_equal(admitted.load_count, 2);
	lab_expect_table(&lab, &request, 0, "xxx");
	lab_expect_table(&lab, &request, 1, ".xx");
	lab_moved(&lab, &rows);
	lab_free(&lab, &request);
	lab_close(&lab);
}

/* 12: what changes the index makes a probe stale, and so does another probe. */
static void a_stale_probe_is_refused(void **state)
{
	static const struct lab_model model = { 4, 8, 8, { LAB_FULL(4, 1) } };
	const struct lab_step         step = lab_probed(0);
	struct lab_request            request;
	struct cache_probe            old;
	struct lab                    lab;
	uint32_t                      block;

	(void)state;
	lab_open(&lab, &model);
	lab_begin(&lab, &request);
	lab_fill(&lab, DEVICE, 0, "x");
	lab_probe(&lab, 2);
	old = lab.probe;
	lab_probe(&lab, 1);
	lab.probe = old;
	lab_refuse(&lab, &request, &step, KVS_E_STALE);
	lab_probe(&lab, 2);
	lab_fill(&lab, HOST, 0, ".x");
	lab_refuse(&lab, &request, &step, KVS_E_STALE);
	while (lab_empty(&lab, HOST) > 0) {
		lab_prompt(&lab, 1 + lab_empty(&lab, HOST), 0);
		lab_fill(&lab, HOST, 0, "x");
	}
	lab_prompt(&lab, 0, 0);
	lab_probe(&lab, 2);
	assert_int_equal(lab.probe.host_tokens, 8);
	block = cache_host_acquire(lab.cache, 0); /* Host gives up the page that the probe found */
	lab_expect_held(&lab, HOST, 0, "");
	lab_refuse(&lab, &request, &step, KVS_E_STALE);
	assert_int_equal(cache_unpin(lab.cache, HOST, 0, block), 0);
	lab_probe(&lab, 2);
	assert_true(cache_clear_device(lab.cache));
	lab_refuse(&lab, &request, &step, KVS_E_STALE);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_are_an_increment_or_an_end),
		cmocka_unit_test(tokens_of_a_probe_are_absolute),
		cmocka_unit_test(equal_numbers_are_different_blocks),
		cmocka_unit_test(publishing_may_change_a_table),
		cmocka_unit_test(what_slides_out_is_named_before_and_can_be_taken_after),
		cmocka_unit_test(the_strata_give_up_in_different_orders),
		cmocka_unit_test(free_on_host_are_empty_parents_only),
		cmocka_unit_test(a_state_past_its_boundary_costs_all_groups_their_hits),
		cmocka_unit_test(blocks_follow_the_order_of_release),
		cmocka_unit_test(a_refused_admission_leaves_the_probe_as_it_was),
		cmocka_unit_test(a_stale_probe_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
