/* SPDX-License-Identifier: Apache-2.0 */
/* Boundaries that are asked for: bounds, hints, tails, and what holds of any joint boundary. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "death.h"
#include "match/boundary.h"
#include "scene.h"

/* Pages of 4: tails in the middle of a page, before the first and behind the last. */
static void boundaries_come_longest_first_pages_and_tails_alike(void **state)
{
	static const struct tail     tails[] = { { .tokens = 14 }, { .tokens = 11 }, { .tokens = 9 },
						 { .tokens = 2 } };
	static const struct boundary expected[] = { { 14, 3, 0 },         { 12, 3, TAIL_NONE },
						    { 11, 2, 1 },         { 9, 2, 2 },
						    { 8, 2, TAIL_NONE },  { 4, 1, TAIL_NONE },
						    { 2, 0, 3 },          { 0, 0, TAIL_NONE },
						    { 0, 0, TAIL_NONE } };
	struct boundary_walk         walk = boundary_walk(tails, 4, 4, 3, UINT32_MAX);
	struct boundary              found;
	size_t                       i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(expected); i++) {
		found = boundary_next(&walk);
		assert_memory_equal(&found, &expected[i], sizeof(found));
	}
	walk = boundary_walk(tails, 4, 4, 3, 11); /* a reach is the last that may be */
	found = boundary_next(&walk);
	assert_memory_equal(&found, &expected[2], sizeof(found));
	walk = boundary_walk(tails, 4, 4, 3, 10);
	found = boundary_next(&walk);
	assert_memory_equal(&found, &expected[3], sizeof(found));
}

static void a_bound_is_respected_by_every_group(void **state)
{
	const struct scene scene = { 4, 6, 0, 0, 0,
				     { { FULL(4), "xxxxxx", NULL, "" },
				       { STATE(4), "xx-xxx", NULL, "" } } };
	const uint32_t pages[] = { 0, 1, 2, 2, 4, 5, 6 };
	struct prompt  prompt;
	struct view    view;
	uint32_t       bound;

	(void)state;
	scene_open(&scene, &prompt);
	view = prompt_view(&prompt, HELD_DEVICE, 0);
	for (bound = 0; bound <= 6; bound++) {
		assert_int_equal(match_joint(&view, bound).pages, pages[bound]);
		assert_int_equal(match_joint(&view, bound).closed_pages, bound);
	}
	prompt_close(&prompt);
}

static void a_hint_counts_only_where_hints_are_given(void **state)
{
	const struct scene scene = { 4, 3, 0, 0, 0,
				     { { FULL(4), "x--", NULL, "" }, { STATE(4), NULL, "x--", "" } } };
	const uint64_t     hints = 0x34; /* full 1 and 2, state 2 */
	struct prompt      prompt;
	struct view        view;

	(void)state;
	scene_open(&scene, &prompt);
	view = prompt_view(&prompt, HELD_DEVICE | HELD_HOST, 0);
	assert_int_equal(match_joint(&view, 3).pages, 1);
	view.hints = &hints;
	assert_int_equal(match_joint(&view, 3).pages, 3);
	assert_int_equal(match_joint(&view, 2).pages, 1);
	view.held_in = HELD_HOST;
	assert_int_equal(match_joint(&view, 3).pages, 0);
	prompt_close(&prompt);
}

/* --- tails ------------------------------------------------------------------------------------ */

/* The second page is a tail: blocks of its own, as many as its tokens fill or begin. */
static void a_tail_is_legal_when_every_group_has_it(void **state)
{
	const struct scene scene = { 8, 2, 0, 0, 0,
				     { { FULL(4), "xxx-", NULL, "" },
				       { WINDOW(4, 5), "-xx-", NULL, "" },
				       { STATE(8), "-x", NULL, "" } } };
	struct prompt prompt;
	struct view   view;
	uint64_t      tokens;

	(void)state;
	scene_open(&scene, &prompt);
	view = prompt_view(&prompt, HELD_DEVICE, 0);
	for (tokens = 0; tokens <= 16; tokens++) {
		assert_int_equal(match_legal(&view, tokens),
				 tokens == 0 || (tokens >= 9 && tokens <= 12));
	}
	pages_drop(&prompt.pages, pages_cell(&prompt.pages, view.entries[1], 4), STRATUM_DEVICE);
	assert_false(match_legal(&view, 10));
	prompt_close(&prompt);
}

/* A window of 5 needs 4 tokens: at 8 one block of 4, at 10 parts of two. */
static void a_boundary_inside_a_block_can_need_one_block_more(void **state)
{
	const struct scene scene = { 8, 2, 0, 0, 0, { { WINDOW(4, 5), "-xx-", NULL, "" } } };
	struct prompt      prompt;
	struct view        view;
	uint32_t           first, end;

	(void)state;
	scene_open(&scene, &prompt);
	view = prompt_view(&prompt, HELD_DEVICE, 0);
	match_needed(&prompt.pages.groups.group[0], 8, &first, &end);
	assert_int_equal(first, 1);
	assert_int_equal(end, 2);
	match_needed(&prompt.pages.groups.group[0], 10, &first, &end);
	assert_int_equal(first, 1);
	assert_int_equal(end, 3);
	assert_true(match_legal(&view, 10));
	pages_drop(&prompt.pages, pages_cell(&prompt.pages, view.entries[0], 1), STRATUM_DEVICE);
	assert_false(match_legal(&view, 10));
	assert_true(match_legal(&view, 12));
	prompt_close(&prompt);
}

/* The block of the next token is no hole: that token is yet to be written there. */
static void a_window_of_one_leaves_the_next_token_its_block(void **state)
{
	const struct scene scene = { 8, 2, 0, 0, 0, { { WINDOW(4, 1), NULL, NULL, "" } } };
	struct prompt      prompt;
	uint32_t           first, end;

	(void)state;
	scene_open(&scene, &prompt);
	match_needed(&prompt.pages.groups.group[0], 10, &first, &end);
	assert_int_equal(first, 2);
	assert_int_equal(end, 2);
	prompt_close(&prompt);
}

/* --- random ----------------------------------------------------------------------------------- */

/* Publish and drop at random, Device alone. */
static void shake(struct prompt *prompt, struct prng *prng)
{
	bool     held[12][2] = { 0 };
	uint32_t i;

	for (i = 0; i < 60; i++) {
		const uint32_t page = (uint32_t)prng_below(prng, 12);
		const uint32_t column = (uint32_t)prng_below(prng, 2);
		const bool     drop = prng_chance(prng, 1, 5);

		if (drop != held[page][column])
			continue;
		held[page][column] = !drop;
		if (drop) {
			pages_drop(&prompt->pages,
				   pages_cell(&prompt->pages,
					      pages_find(&prompt->pages, &prompt->space,
							 &prompt->hashes[page]),
					      column),
				   STRATUM_DEVICE);
		} else {
			pages_add(&prompt->pages, &prompt->space, &prompt->hashes[page], column,
				  STRATUM_DEVICE, i + 1);
		}
	}
}

static void each_group_alone_supports_the_joint_boundary(void **state)
{
	const struct scene scene = { 4, 12, 0, 0, 0,
				     { { FULL(4), NULL, NULL, "" }, { WINDOW(4, 8), NULL, NULL, "" } } };
	uint32_t           round, hits = 0;
	struct prng        prng;

	(void)state;
	prng_seed(&prng, 97);
	for (round = 0; round < 200; round++) {
		struct prompt prompt;
		struct view   view;
		uint32_t      pages;

		scene_open(&scene, &prompt);
		shake(&prompt, &prng);
		view = prompt_view(&prompt, HELD_DEVICE, 0);
		pages = match_joint(&view, 12).pages;
		hits += pages > 2;
		assert_int_equal(match_run(&view, &prompt.pages.groups.group[0], 0, pages), pages);
		assert_int_equal(match_window(&view, &prompt.pages.groups.group[1], 0, pages), pages);
		prompt_close(&prompt);
	}
	assert_true(hits > 20);
}

/* --- mistakes --------------------------------------------------------------------------------- */

static void match_past_the_view(void *view)
{
	match_joint(view, 4);
}

static void match_inside_what_is_held(void *view)
{
	match_joint(view, 0);
}

static void ask_past_the_view(void *view)
{
	match_legal(view, 13);
}

/* Boundaries past 31 bits. */
static void match_past_the_limit(void *arg)
{
	struct view *const view = arg;

	view->page_count = UINT32_C(1) << 29;
	view->held_pages = view->page_count;
	match_joint(view, view->page_count);
}

static void mistakes_are_panics(void **state)
{
	void (*const mistakes[])(void *) = { match_past_the_view, match_inside_what_is_held,
					     ask_past_the_view, match_past_the_limit };
	const struct scene scene = { 4, 3, 0, 0, 0, { { FULL(4), "xxx", NULL, "" } } };
	struct prompt      prompt;
	struct view        view;
	size_t             i;

	(void)state;
	scene_open(&scene, &prompt);
	view = prompt_view(&prompt, HELD_DEVICE, 1);
	for (i = 0; i < ARRAY_COUNT(mistakes); i++)
		assert_true(death_panics(mistakes[i], &view, NULL, 0));
	prompt_close(&prompt);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boundaries_come_longest_first_pages_and_tails_alike),
		cmocka_unit_test(a_bound_is_respected_by_every_group),
		cmocka_unit_test(a_hint_counts_only_where_hints_are_given),
		cmocka_unit_test(a_tail_is_legal_when_every_group_has_it),
		cmocka_unit_test(a_boundary_inside_a_block_can_need_one_block_more),
		cmocka_unit_test(a_window_of_one_leaves_the_next_token_its_block),
		cmocka_unit_test(each_group_alone_supports_the_joint_boundary),
		cmocka_unit_test(mistakes_are_panics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
