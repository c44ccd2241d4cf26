/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle must be silent on its own bytes and name the place of every kind of damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "death.h"
#include "engine/engine.h"

#define PAGE_TOKENS 8u
#define LAYERS 3u
#define BLOCK_BYTES (PAGE_TOKENS * LAYERS * 8)
#define PAGES 4u
#define REQUEST 41u

struct rig {
	struct engine        engine;
	struct engine_prompt prompt;
	uint64_t             page_ids[PAGES];
	void                *blocks[PAGES];
	uint64_t             words[PAGES][BLOCK_BYTES / 8];
};

/* A prompt of token_count tokens whose pages were all computed. */
static void compute(struct rig *rig, uint64_t first_id, uint64_t token_count)
{
	const uint64_t page_count = (token_count + PAGE_TOKENS - 1) / PAGE_TOKENS;
	uint32_t       i;

	engine_init(&rig->engine, PAGE_TOKENS, BLOCK_BYTES);
	memset(rig->words, 0xee, sizeof(rig->words));
	for (i = 0; i < PAGES; i++) {
		rig->page_ids[i] = first_id + i;
		rig->blocks[i] = rig->words[i];
	}
	rig->prompt = (struct engine_prompt){ .request = REQUEST,
					      .page_ids = rig->page_ids,
					      .page_count = (uint32_t)page_count,
					      .token_count = token_count,
					      .blocks = rig->blocks };
	engine_prefill(&rig->engine, &rig->prompt, 0);
}

static void assert_clean(const struct rig *rig, uint64_t rows)
{
	assert_int_equal(rig->engine.rows_checked, rows);
	assert_int_equal(rig->engine.wrong_bytes, 0);
	assert_false(rig->engine.wrong_seen);
}

/* The check sees damage and names the page where it begins; at least so many bytes are wrong. */
static void assert_seen(struct rig *rig, uint32_t page, uint64_t bytes_min)
{
	engine_check(&rig->engine, &rig->prompt);
	assert_true(rig->engine.wrong_seen);
	assert_int_equal(rig->engine.wrong_request, REQUEST);
	assert_int_equal(rig->engine.wrong_page, page);
	assert_true(rig->engine.wrong_bytes >= bytes_min);
}

static void computed_pages_check_clean_and_every_row_is_counted(void **state)
{
	struct rig rig;

	(void)state;
	compute(&rig, 10, PAGES * PAGE_TOKENS);
	assert_clean(&rig, 0);
	engine_check(&rig.engine, &rig.prompt);
	assert_clean(&rig, PAGES * PAGE_TOKENS);
	engine_check(&rig.engine, &rig.prompt);
	assert_clean(&rig, 2 * PAGES * PAGE_TOKENS);
}

static void a_prefill_checks_the_hits_and_computes_the_rest(void **state)
{
	struct rig rig;

	(void)state;
	compute(&rig, 10, PAGES * PAGE_TOKENS);
	/* Two pages stay as if restored; the others are another request's leavings. */
	memset(rig.words[2], 0x11, 2 * sizeof(rig.words[0]));
	engine_prefill(&rig.engine, &rig.prompt, 2);
	assert_clean(&rig, 2 * PAGE_TOKENS);
	engine_check(&rig.engine, &rig.prompt);
	assert_clean(&rig, 6 * PAGE_TOKENS);
}

/* Rows behind the prompt's end belong to nobody: neither written nor looked at. */
static void a_partial_last_page_ends_at_the_last_token(void **state)
{
	const size_t used = 3 * LAYERS;
	struct rig   rig;
	size_t       i;

	(void)state;
	compute(&rig, 10, PAGE_TOKENS + 3);
	for (i = used; i < BLOCK_BYTES / 8; i++)
		assert_true(rig.words[1][i] == UINT64_C(0xeeeeeeeeeeeeeeee));
	rig.words[1][used] = 0;
	engine_check(&rig.engine, &rig.prompt);
	assert_clean(&rig, PAGE_TOKENS + 3);
	rig.words[1][used - 1] ^= 1;
	assert_seen(&rig, 1, 1);
	assert_int_equal(rig.engine.wrong_bytes, 1);
}

static void one_token_is_one_row(void **state)
{
	struct rig rig;

	(void)state;
	compute(&rig, 10, 1);
	engine_check(&rig.engine, &rig.prompt);
	assert_clean(&rig, 1);
	rig.words[0][LAYERS - 1] ^= UINT64_C(1) << 63;
	assert_seen(&rig, 0, 1);
}

static void every_flipped_byte_is_seen_alone(void **state)
{
	struct rig rig;
	uint32_t   page;
	size_t     byte;

	(void)state;
	compute(&rig, 10, PAGES * PAGE_TOKENS);
	for (page = 0; page < PAGES; page++) {
		for (byte = 0; byte < BLOCK_BYTES; byte++) {
			rig.engine.wrong_seen = false;
			rig.engine.wrong_bytes = 0;
			((uint8_t *)rig.blocks[page])[byte] ^= 0x80;
			assert_seen(&rig, page, 1);
			assert_int_equal(rig.engine.wrong_bytes, 1);
			((uint8_t *)rig.blocks[page])[byte] ^= 0x80;
		}
	}
}

static void two_blocks_swapped_are_seen_at_the_first(void **state)
{
	struct rig rig;

	(void)state;
	compute(&rig, 10, PAGES * PAGE_TOKENS);
	rig.blocks[1] = rig.words[3];
	rig.blocks[3] = rig.words[1];
	assert_seen(&rig, 1, BLOCK_BYTES);
}

/* The same page of tokens behind another prefix has other rows: a block belongs to its prefix. */
static void a_block_of_another_prompt_is_seen(void **state)
{
	struct rig rig, other;

	(void)state;
	compute(&rig, 10, PAGES * PAGE_TOKENS);
	compute(&other, 10, PAGE_TOKENS);
	other.page_ids[0] = 99;
	other.prompt.page_count = PAGES;
	other.prompt.token_count = PAGES * PAGE_TOKENS;
	engine_prefill(&other.engine, &other.prompt, 0);
	rig.blocks[2] = other.words[2];
	assert_seen(&rig, 2, BLOCK_BYTES / 2);
	/* And the page's rows do not depend on what follows it. */
	compute(&other, 10, 2 * PAGE_TOKENS);
	assert_memory_equal(rig.words[1], other.words[1], BLOCK_BYTES);
}

static void a_torn_block_is_seen(void **state)
{
	struct rig rig;

	(void)state;
	compute(&rig, 10, PAGES * PAGE_TOKENS);
	memset((uint8_t *)rig.blocks[3] + BLOCK_BYTES / 2, 0, BLOCK_BYTES / 2);
	assert_seen(&rig, 3, BLOCK_BYTES / 4);
}

/* The first rows are right, the last ones are of an earlier, longer-lived version of the block. */
static void a_stale_tail_is_seen(void **state)
{
	struct rig rig, earlier;

	(void)state;
	compute(&rig, 10, PAGES * PAGE_TOKENS);
	compute(&earlier, 50, PAGES * PAGE_TOKENS);
	memcpy(&rig.words[0][7 * LAYERS], &earlier.words[0][7 * LAYERS], LAYERS * 8);
	assert_seen(&rig, 0, 1);
	assert_true(rig.engine.wrong_bytes <= LAYERS * 8);
}

/* Rows shifted by one: every word is a right one in the wrong place. */
static void a_misplaced_row_or_layer_is_seen(void **state)
{
	struct rig rig;

	(void)state;
	compute(&rig, 10, PAGES * PAGE_TOKENS);
	memmove(&rig.words[2][LAYERS], &rig.words[2][0], BLOCK_BYTES - LAYERS * 8);
	assert_seen(&rig, 2, BLOCK_BYTES / 2);
	compute(&rig, 10, PAGES * PAGE_TOKENS);
	memmove(&rig.words[2][1], &rig.words[2][0], BLOCK_BYTES - 8);
	assert_seen(&rig, 2, BLOCK_BYTES / 2);
}

static void the_first_wrong_block_stays_the_one_named(void **state)
{
	struct rig rig;

	(void)state;
	compute(&rig, 10, PAGES * PAGE_TOKENS);
	rig.words[2][0] ^= 1;
	assert_seen(&rig, 2, 1);
	rig.words[1][0] ^= 1;
	rig.prompt.request = REQUEST + 1;
	engine_prefill(&rig.engine, &rig.prompt, PAGES);
	assert_int_equal(rig.engine.wrong_request, REQUEST);
	assert_int_equal(rig.engine.wrong_page, 2);
	assert_int_equal(rig.engine.wrong_bytes, 3);
}

static void tokens_follow_from_the_page_id(void **state)
{
	int32_t  first[2 * PAGE_TOKENS], second[PAGE_TOKENS];
	uint32_t i;

	(void)state;
	engine_page_tokens(7, 2 * PAGE_TOKENS, first);
	engine_page_tokens(7, PAGE_TOKENS, second);
	assert_memory_equal(first, second, sizeof(second));
	for (i = 0; i < 2 * PAGE_TOKENS; i++)
		assert_true(first[i] >= 0);
	engine_page_tokens(8, PAGE_TOKENS, second);
	assert_memory_not_equal(first, second, sizeof(second));
}

static void init_with_a_crooked_block(void *engine)
{
	engine_init(engine, PAGE_TOKENS, BLOCK_BYTES + 8);
}

static void init_with_a_page_too_long(void *engine)
{
	engine_init(engine, ENGINE_PAGE_TOKENS_MAX + 1, 8 * ((size_t)ENGINE_PAGE_TOKENS_MAX + 1));
}

static void mistakes_are_panics(void **state)
{
	struct engine engine;

	(void)state;
	assert_true(death_panics(init_with_a_crooked_block, &engine, NULL, 0));
	assert_true(death_panics(init_with_a_page_too_long, &engine, NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(computed_pages_check_clean_and_every_row_is_counted),
		cmocka_unit_test(a_prefill_checks_the_hits_and_computes_the_rest),
		cmocka_unit_test(a_partial_last_page_ends_at_the_last_token),
		cmocka_unit_test(one_token_is_one_row),
		cmocka_unit_test(every_flipped_byte_is_seen_alone),
		cmocka_unit_test(two_blocks_swapped_are_seen_at_the_first),
		cmocka_unit_test(a_block_of_another_prompt_is_seen),
		cmocka_unit_test(a_torn_block_is_seen),
		cmocka_unit_test(a_stale_tail_is_seen),
		cmocka_unit_test(a_misplaced_row_or_layer_is_seen),
		cmocka_unit_test(the_first_wrong_block_stays_the_one_named),
		cmocka_unit_test(tokens_follow_from_the_page_id),
		cmocka_unit_test(mistakes_are_panics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
