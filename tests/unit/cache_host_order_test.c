/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of Host's blocks go when it is full: a free one, the group's own least valuable, or all of the
 * least valuable parent.  Value is: was it ever acquired, epoch, group, parent, slot.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lab.h"

#define DEVICE STRATUM_DEVICE
#define HOST   STRATUM_HOST

static uint32_t take(struct lab *lab, uint32_t group)
{
	const uint32_t block = cache_host_acquire(lab->cache, group);

	lab_audit(lab);
	return block;
}

static void drop(struct lab *lab, uint32_t group, uint32_t block)
{
	assert_int_not_equal(block, BLOCK_NULL);
	assert_int_equal(cache_unpin(lab->cache, HOST, group, block), 0);
	lab_audit(lab);
}

/* --- replacement ------------------------------------------------------------------------------ */

static void a_cold_child_goes_before_a_parent_is_rebound(void **state)
{
	static const struct lab_model model = { 4, 2, 1, { LAB_FULL(4, 2) } };
	struct lab                    lab;
	uint32_t                      cold;

	(void)state;
	lab_open(&lab, &model);
	lab_fill(&lab, HOST, 0, "xx");
	cold = lab_block(&lab, HOST, 0, 0);
	assert_int_equal(take(&lab, 0), cold);
	lab_expect_held(&lab, HOST, 0, ".x");
	drop(&lab, 0, cold);
	lab_close(&lab);
}

/* Group 0 has two blocks in a parent, group 1 one. */
static const struct lab_model two_and_one = { 4, 8, 2, { LAB_FULL(4, 2), LAB_FULL(4, 1) } };

static void a_whole_parent_of_another_group_is_rebound(void **state)
{
	struct lab_model model = two_and_one;
	struct lab       lab;
	uint32_t         block, group = 0;

	(void)state;
	model.host = 1;
	lab_open(&lab, &model);
	lab_fill(&lab, HOST, 0, "xx");
	block = take(&lab, 1);
	assert_int_equal(block, 1);
	lab_expect_held(&lab, HOST, 0, "");
	assert_true(pool_bound(cache_pool(lab.cache, HOST), 1, &group));
	assert_int_equal(group, 1);
	drop(&lab, 1, block);
	lab_close(&lab);
}

/* 1. a free block; 2. the group's own coldest; 3. a parent, even were it colder than the group's own. */
static void the_groups_own_cold_block_goes_before_a_colder_parent(void **state)
{
	struct lab lab;
	uint32_t   blocks[3];

	(void)state;
	lab_open(&lab, &two_and_one);
	lab_fill(&lab, HOST, 1, "x"); /* epoch 1, parent 1 */
	lab_fill(&lab, HOST, 0, "x"); /* epoch 2, parent 2 */
	blocks[0] = take(&lab, 0);    /* parent 2 has room */
	lab_expect_held(&lab, HOST, 0, "x");
	blocks[1] = take(&lab, 0);
	lab_expect_held(&lab, HOST, 0, "");
	lab_expect_held(&lab, HOST, 1, "x");
	assert_int_equal(cache_host_free(lab.cache), 0);
	blocks[2] = take(&lab, 0); /* none of its own is left: group 1's parent */
	lab_expect_held(&lab, HOST, 1, "");
	drop(&lab, 0, blocks[0]);
	drop(&lab, 0, blocks[1]);
	drop(&lab, 0, blocks[2]);
	lab_close(&lab);
}

/* A parent is worth its best child.  Epochs: parent 1 has 5 and 2, parent 2 has 3 and 4. */
static void open_two_parents(struct lab *lab)
{
	uint32_t prompt;

	lab_open(lab, &two_and_one);
	for (prompt = 0; prompt < 5; prompt++) {
		lab_prompt(lab, prompt, 0);
		lab_fill(lab, HOST, 0, "x");
	}
	lab_prompt(lab, 0, 0);
	lab_expect_held(lab, HOST, 0, "");
}

static void expect_left(struct lab *lab, const char *picture)
{
	uint32_t prompt;

	for (prompt = 0; picture[prompt]; prompt++) {
		lab_prompt(lab, prompt, 0);
		lab_expect_held(lab, HOST, 0, picture[prompt] == 'x' ? "x" : "");
	}
}

static void the_parent_with_the_coldest_best_child_is_rebound(void **state)
{
	struct lab lab;
	uint32_t   block;

	(void)state;
	open_two_parents(&lab);
	block = take(&lab, 1);
	assert_int_equal(block, 2);
	expect_left(&lab, ".x..x");
	drop(&lab, 1, block);
	lab_close(&lab);
}

static void a_parent_with_a_pinned_child_is_left_alone(void **state)
{
	struct lab lab;
	uint32_t   pinned[2], block;

	(void)state;
	open_two_parents(&lab);
	lab_prompt(&lab, 2, 0);
	pinned[0] = lab_block(&lab, HOST, 0, 0);
	assert_int_equal(cache_pin(lab.cache, HOST, 0, pinned[0]), 2);
	block = take(&lab, 1);
	assert_int_equal(block, 1);
	expect_left(&lab, "..xx.");
	assert_int_equal(take(&lab, 1), BLOCK_NULL); /* a private block is no candidate either */
	expect_left(&lab, "..xx.");
	pinned[1] = take(&lab, 0); /* but the group's own idle one goes */
	expect_left(&lab, "..x..");
	drop(&lab, 0, pinned[1]);
	assert_int_equal(cache_unpin(lab.cache, HOST, 0, pinned[0]), 1);
	drop(&lab, 1, block);
	lab_close(&lab);
}

/* --- the order in which Host gives up --------------------------------------------------------- */

static const struct lab_model two_host_blocks = { 4, 8, 2, { LAB_FULL(4, 1) } };

/* Never acquired goes first, were it ever so new: the opposite of Device. */
static void what_was_never_acquired_goes_before_what_was(void **state)
{
	struct lab lab;
	uint32_t   block;

	(void)state;
	lab_open(&lab, &two_host_blocks);
	lab_fill(&lab, HOST, 0, "x"); /* epoch 1 */
	lab_use(&lab, 1);
	lab_prompt(&lab, 1, 0);
	lab_fill(&lab, HOST, 0, "x");
	assert_int_equal(lab_view(&lab, HOST, 0, 0).epoch, 3);
	block = take(&lab, 0);
	lab_expect_held(&lab, HOST, 0, "");
	lab_prompt(&lab, 0, 0);
	lab_expect_held(&lab, HOST, 0, "x");
	assert_int_equal(lab_view(&lab, HOST, 0, 0).epoch, 2);
	drop(&lab, 0, block);
	lab_close(&lab);
}

static void the_oldest_goes_first(void **state)
{
	struct lab lab;
	uint32_t   block, prompt;

	(void)state;
	lab_open(&lab, &two_host_blocks);
	lab_fill(&lab, HOST, 0, "x");
	lab_prompt(&lab, 1, 0);
	lab_fill(&lab, HOST, 0, "x");
	for (prompt = 2; prompt-- > 0;) { /* prompt 0 is the newest then */
		lab_prompt(&lab, prompt, 0);
		lab_use(&lab, 1);
	}
	block = take(&lab, 0);
	lab_expect_held(&lab, HOST, 0, "x");
	lab_prompt(&lab, 1, 0);
	lab_expect_held(&lab, HOST, 0, "");
	drop(&lab, 0, block);
	lab_close(&lab);
}

/* Of one epoch: the lowest parent within a group. */
static void of_equals_in_a_group_the_lowest_parent_goes(void **state)
{
	struct lab lab;
	uint32_t   block;

	(void)state;
	lab_open(&lab, &two_host_blocks);
	lab_fill(&lab, HOST, 0, ".x"); /* parent 1 */
	lab_fill(&lab, HOST, 0, "x");  /* parent 2 */
	lab_use(&lab, 2);
	assert_int_equal(lab_view(&lab, HOST, 0, 0).epoch, lab_view(&lab, HOST, 0, 1).epoch);
	block = take(&lab, 0);
	assert_int_equal(block, 1);
	lab_expect_held(&lab, HOST, 0, "x");
	drop(&lab, 0, block);
	lab_close(&lab);
}

/* Of one epoch: the lowest group, whichever its parent is. */
static void of_equal_parents_that_of_the_lowest_group_goes(void **state)
{
	static const struct lab_model model = {
		4, 8, 2, { LAB_FULL(4, 1), LAB_FULL(4, 1), LAB_FULL(4, 1) }
	};
	struct lab                    lab;
	uint32_t                      block;

	(void)state;
	lab_open(&lab, &model);
	lab_fill(&lab, HOST, 1, "x");
	lab_fill(&lab, HOST, 0, "x");
	lab_fill(&lab, DEVICE, 2, "x");
	lab_use(&lab, 1);
	block = take(&lab, 2);
	assert_int_equal(block, 2);
	lab_expect_held(&lab, HOST, 0, "");
	lab_expect_held(&lab, HOST, 1, "x");
	drop(&lab, 2, block);
	lab_close(&lab);
}

static void the_source_of_a_load_is_not_given_up(void **state)
{
	struct lab_model   model = two_host_blocks;
	struct lab_request request;
	struct lab_rows    rows;
	struct lab         lab;
	uint32_t           block;

	(void)state;
	model.host = 1;
	lab_open(&lab, &model);
	lab_fill(&lab, HOST, 0, "x");
	rows = lab_claim(&lab, &request, 1, 0);
	lab_free(&lab, &request);
	assert_int_equal(take(&lab, 0), BLOCK_NULL);
	lab_expect_held(&lab, HOST, 0, "x");
	lab_moved(&lab, &rows);
	block = take(&lab, 0);
	lab_expect_held(&lab, HOST, 0, "");
	drop(&lab, 0, block);
	lab_close(&lab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cold_child_goes_before_a_parent_is_rebound),
		cmocka_unit_test(a_whole_parent_of_another_group_is_rebound),
		cmocka_unit_test(the_groups_own_cold_block_goes_before_a_colder_parent),
		cmocka_unit_test(the_parent_with_the_coldest_best_child_is_rebound),
		cmocka_unit_test(a_parent_with_a_pinned_child_is_left_alone),
		cmocka_unit_test(what_was_never_acquired_goes_before_what_was),
		cmocka_unit_test(the_oldest_goes_first),
		cmocka_unit_test(of_equals_in_a_group_the_lowest_parent_goes),
		cmocka_unit_test(of_equal_parents_that_of_the_lowest_group_goes),
		cmocka_unit_test(the_source_of_a_load_is_not_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
