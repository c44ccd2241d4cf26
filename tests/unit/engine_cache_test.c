/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests from prompt to finish over real blocks, scenario by scenario: chunks, windows, checkpoints,
 * hits, tails.  Each forward checks every row that it sees.  P = 2 and q = 2 unless told otherwise; the
 * number of usable parents is that of the scenario.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "guest.h"

#define FULL_2 { "full", GROUP_FULL, 2, 0, 1 }
#define WINDOW_2(window) { "window", GROUP_WINDOW, 2, (window), 1 }

static const uint32_t     layers[YARD_GROUPS] = { 2, 2, 2, 2 };
static struct yard_counts counts;

static struct yard *open_yard(const struct group_spec *groups, uint32_t group_count, uint32_t page,
			      uint32_t parents, uint32_t host_parents)
{
	const struct yard_spec spec = { groups, layers, group_count, page, parents, host_parents,
					GUEST_PAGES, false };

	memset(&counts, 0, sizeof(counts));
	return yard_open(&spec, &counts);
}

/* Tokens first, first + 1, ... */
static void prompt(struct yard *yard, struct guest *guest, uint64_t id, int32_t first, uint32_t count)
{
	int32_t  tokens[GUEST_TOKENS];
	uint32_t i;

	for (i = 0; i < count; i++)
		tokens[i] = first + (int32_t)i;
	guest_open(yard, guest, id, tokens, count);
}

/* The next chunk or step; the tokens that it computes. */
static uint32_t step(struct yard *yard, struct guest *guest, uint32_t budget)
{
	uint32_t begin;

	assert_int_equal(guest_admit(yard, guest, budget), 0);
	begin = guest->computed;
	guest_forward(yard, guest);
	yard_audit(yard);
	return guest->computed - begin;
}

static void prefill(struct yard *yard, struct guest *guest, uint32_t budget)
{
	while (guest->phase != GUEST_DECODE)
		step(yard, guest, budget);
}

static uint32_t available(const struct yard *yard)
{
	return cache_available(yard->cache);
}

/* A row of a table, drawn: '0' for a hole, 'x' for a block. */
static void assert_row(const struct guest *guest, uint32_t group, const char *drawn)
{
	char     row[GUEST_TOKENS + 1] = "";
	uint32_t i;

	for (i = 0; i < guest->tables[group].count; i++)
		row[i] = guest->slots[group][i] == BLOCK_NULL ? '0' : 'x';
	assert_string_equal(row, drawn);
}

static uint32_t holes(const struct guest *guest, uint32_t group)
{
	uint32_t count = 0;
	uint32_t i;

	for (i = 0; i < guest->tables[group].count; i++)
		count += guest->slots[group][i] == BLOCK_NULL;
	return count;
}

static void assert_all_back(struct yard *yard)
{
	assert_int_equal(available(yard), yard->spec.device_parents);
	yard_close(yard);
}

/* --- chunks ----------------------------------------------------------------------------------- */

static void a_prompt_in_two_chunks_grows_its_table_then_decodes(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(32) };
	struct yard *const             yard = open_yard(groups, 2, 2, 63, 0);
	struct guest                   r1;

	(void)state;
	prompt(yard, &r1, 1, 1, 8);
	assert_int_equal(step(yard, &r1, 4), 4);
	assert_int_equal(step(yard, &r1, 4), 4);
	assert_int_equal(r1.phase, GUEST_DECODE);
	assert_int_equal(holes(&r1, 0), 0);
	assert_int_equal(step(yard, &r1, 4), 1);
	guest_finish(yard, &r1);
	assert_all_back(yard);
}

static void chunks_end_at_the_pages_of_a_state(void **state)
{
	static const struct group_spec groups[] = { { "full", GROUP_FULL, 4, 0, 1 },
						    { "state", GROUP_STATE, 4, 0, 1 } };
	struct yard *const             yard = open_yard(groups, 2, 4, 32, 0);
	struct guest                   r1;

	(void)state;
	prompt(yard, &r1, 1, 1, 12);
	assert_int_equal(step(yard, &r1, 6), 4);
	assert_int_equal(step(yard, &r1, 6), 4);
	assert_int_equal(step(yard, &r1, 6), 4);
	guest_finish(yard, &r1);
	assert_all_back(yard);
}

static void a_prompt_that_ends_inside_a_page_is_body_and_tail(void **state)
{
	static const struct group_spec groups[] = { { "full", GROUP_FULL, 4, 0, 1 },
						    { "state", GROUP_STATE, 4, 0, 1 } };
	struct yard *const             yard = open_yard(groups, 2, 4, 32, 0);
	struct guest                   r1;

	(void)state;
	prompt(yard, &r1, 1, 1, 10);
	assert_int_equal(step(yard, &r1, 64), 8);
	/* Input, body's checkpoint, and the tail's, reserved. */
	assert_row(&r1, 1, "0xx");
	assert_int_equal(step(yard, &r1, 64), 2);
	assert_int_equal(r1.phase, GUEST_DECODE);
	guest_finish(yard, &r1);
	assert_all_back(yard);
}

static void a_chunk_of_a_state_takes_one_checkpoint_and_decode_the_next(void **state)
{
	static const struct group_spec groups[] = { { "full", GROUP_FULL, 4, 0, 1 },
						    { "state", GROUP_STATE, 4, 0, 1 } };
	struct yard *const             yard = open_yard(groups, 2, 4, 32, 0);
	struct guest                   r1;

	(void)state;
	prompt(yard, &r1, 1, 1, 12);
	assert_int_equal(step(yard, &r1, 12), 12);
	assert_row(&r1, 0, "xxxx");
	assert_row(&r1, 1, "00x");
	assert_int_equal(step(yard, &r1, 12), 1);
	assert_row(&r1, 1, "00xx");
	guest_finish(yard, &r1);
	assert_all_back(yard);
}

static void the_last_chunk_of_a_state_has_input_and_output(void **state)
{
	static const struct group_spec groups[] = { { "full", GROUP_FULL, 4, 0, 1 },
						    { "state", GROUP_STATE, 4, 0, 1 } };
	struct yard *const             yard = open_yard(groups, 2, 4, 32, 0);
	struct guest                   r1;

	(void)state;
	prompt(yard, &r1, 1, 1, 16);
	assert_int_equal(step(yard, &r1, 12), 12);
	assert_int_equal(step(yard, &r1, 12), 4);
	assert_row(&r1, 1, "00xx");
	guest_abort(yard, &r1);
	assert_all_back(yard);
}

/* --- windows ---------------------------------------------------------------------------------- */

static void a_window_slides_to_holes_while_a_prompt_is_computed(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(4) };
	static const uint32_t          decode_holes[] = { 4, 5, 5, 6 }, widths[] = { 7, 7, 8, 8 };
	struct yard *const             yard = open_yard(groups, 2, 2, 31, 0);
	struct guest                   r1;
	uint32_t                       before, i;

	(void)state;
	prompt(yard, &r1, 1, 1, 12);
	step(yard, &r1, 4);
	step(yard, &r1, 4);
	assert_row(&r1, 1, "xxxx");
	before = available(yard);
	step(yard, &r1, 4);
	assert_row(&r1, 1, "00xxxxx");
	assert_int_equal(available(yard), before + 2 - 4 - 2);
	for (i = 0; i < 4; i++) {
		step(yard, &r1, 1);
		assert_int_equal(holes(&r1, 1), decode_holes[i]);
		assert_int_equal(r1.tables[1].count, widths[i]);
		/* N = 14 still attends to the last token of slot 5. */
		assert_int_equal(r1.slots[1][5] == BLOCK_NULL, i == 3);
	}
	guest_finish(yard, &r1);
	assert_all_back(yard);
}

/* Computed 4: none; 5: slot 0; 6: slot 1 is alive still; 7: slot 1 is out. */
static void a_decode_step_keeps_the_oldest_block_of_the_window(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(4) };
	static const char *const       rows[] = { "xxx", "0xx", "0xxx", "00xx" };
	struct yard *const             yard = open_yard(groups, 2, 2, 31, 0);
	struct guest                   r1;
	uint32_t                       i;

	(void)state;
	prompt(yard, &r1, 1, 1, 4);
	prefill(yard, &r1, 64);
	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		assert_int_equal(r1.computed, 4 + i);
		step(yard, &r1, 1);
		assert_row(&r1, 1, rows[i]);
	}
	guest_finish(yard, &r1);
	assert_all_back(yard);
}

/* 12 usable: the third chunk needs 6, and 4 and the 2 that slid are there. */
static void a_long_prompt_fits_because_its_window_slides(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(4) };
	struct yard *const             yard = open_yard(groups, 2, 2, 12, 0);
	struct guest                   r1;

	(void)state;
	prompt(yard, &r1, 1, 1, 12);
	step(yard, &r1, 4);
	assert_int_equal(available(yard), 8);
	step(yard, &r1, 4);
	assert_int_equal(available(yard), 4);
	step(yard, &r1, 4);
	assert_int_equal(available(yard), 0);
	step(yard, &r1, 1);
	assert_int_equal(available(yard), 2);
	guest_finish(yard, &r1);
	assert_all_back(yard);
}

static void a_window_stays_small_while_full_history_grows(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(4) };
	struct yard *const             yard = open_yard(groups, 2, 2, 16, 0);
	struct guest                   r1;
	uint32_t                       peak = 0;

	(void)state;
	prompt(yard, &r1, 1, 1, 20);
	while (r1.phase != GUEST_DECODE) {
		step(yard, &r1, 4);
		if (r1.tables[1].count - holes(&r1, 1) > peak)
			peak = r1.tables[1].count - holes(&r1, 1);
	}
	assert_int_equal(peak, 5);
	assert_int_equal(r1.tables[0].count, 11);
	guest_finish(yard, &r1);
	assert_all_back(yard);
}

static void three_groups_each_keep_what_they_attend_to(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(4),
						    { "wide", GROUP_WINDOW, 2, 8, 1 } };
	struct yard *const             yard = open_yard(groups, 3, 2, 63, 0);
	struct guest                   r1, r2;

	(void)state;
	prompt(yard, &r1, 1, 1, 12);
	prompt(yard, &r2, 2, 101, 8);
	prefill(yard, &r1, 4);
	prefill(yard, &r2, 4);
	step(yard, &r1, 1);
	step(yard, &r2, 1);
	assert_int_equal(holes(&r1, 0), 0);
	assert_int_equal(holes(&r1, 1), 4);
	assert_int_equal(holes(&r1, 2), 2);
	assert_int_equal(holes(&r2, 1), 2);
	assert_int_equal(holes(&r2, 2), 0);
	guest_finish(yard, &r1);
	guest_finish(yard, &r2);
	assert_all_back(yard);
}

static void two_full_groups_keep_all_history(void **state)
{
	static const struct group_spec groups[] = { FULL_2, { "other", GROUP_FULL, 2, 0, 1 } };
	struct yard *const             yard = open_yard(groups, 2, 2, 31, 0);
	struct guest                   r1;
	uint32_t                       i;

	(void)state;
	prompt(yard, &r1, 1, 1, 6);
	prefill(yard, &r1, 64);
	for (i = 0; i < 6; i++)
		step(yard, &r1, 1);
	assert_int_equal(holes(&r1, 0) + holes(&r1, 1), 0);
	guest_finish(yard, &r1);
	assert_all_back(yard);
}

static void pages_of_one_token_slide_one_by_one(void **state)
{
	static const struct group_spec groups[] = { { "full", GROUP_FULL, 1, 0, 1 },
						    { "window", GROUP_WINDOW, 1, 2, 1 } };
	struct yard *const             yard = open_yard(groups, 2, 1, 31, 0);
	struct guest                   r1;

	(void)state;
	prompt(yard, &r1, 1, 1, 3);
	prefill(yard, &r1, 64);
	assert_row(&r1, 0, "xxxx");
	step(yard, &r1, 1);
	assert_row(&r1, 1, "00xx");
	guest_finish(yard, &r1);
	assert_all_back(yard);
}

/* --- room ------------------------------------------------------------------------------------- */

static void an_abort_at_any_time_gives_all_back(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(4) };
	struct yard *const             yard = open_yard(groups, 2, 2, 31, 0);
	struct guest                   r1;

	(void)state;
	prompt(yard, &r1, 1, 1, 12);
	step(yard, &r1, 4);
	guest_abort(yard, &r1);
	assert_int_equal(available(yard), 31);
	prompt(yard, &r1, 2, 1, 12);
	prefill(yard, &r1, 4);
	step(yard, &r1, 1);
	guest_abort(yard, &r1);
	assert_all_back(yard);
}

static void a_second_request_waits_for_the_first(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(4) };
	struct yard *const             yard = open_yard(groups, 2, 2, 10, 0);
	struct guest                   r1, r2;

	(void)state;
	prompt(yard, &r1, 1, 1, 8);
	prompt(yard, &r2, 2, 101, 8);
	prefill(yard, &r1, 64);
	assert_int_equal(available(yard), 0);
	assert_int_equal(guest_admit(yard, &r2, 64), KVS_E_FULL);
	step(yard, &r1, 1);
	assert_int_equal(available(yard), 2);
	assert_int_equal(guest_admit(yard, &r2, 64), KVS_E_FULL);
	guest_finish(yard, &r1);
	prefill(yard, &r2, 64);
	guest_finish(yard, &r2);
	assert_all_back(yard);
}

/* a takes 6 and 2 in reserve: b, that needs 4, finds 2; without a all 10 are b's. */
static void room_in_reserve_is_nobody_elses(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(32) };
	struct yard *const             yard = open_yard(groups, 2, 2, 10, 0);
	struct guest                   a, b;

	(void)state;
	prompt(yard, &a, 1, 1, 6);
	prefill(yard, &a, 64);
	assert_int_equal(available(yard), 2);
	prompt(yard, &b, 2, 101, 2);
	assert_int_equal(guest_admit(yard, &b, 64), KVS_E_FULL);
	guest_abort(yard, &a);
	prompt(yard, &b, 3, 101, 8);
	prefill(yard, &b, 64);
	assert_int_equal(available(yard), 0);
	guest_finish(yard, &b);
	assert_all_back(yard);
}

static void a_retracted_request_with_a_state_comes_back_where_it_stood(void **state)
{
	static const struct group_spec groups[] = { FULL_2, { "state", GROUP_STATE, 2, 0, 1 } };
	struct yard *const             yard = open_yard(groups, 2, 2, 31, 31);
	struct guest                   r1;

	(void)state;
	prompt(yard, &r1, 1, 1, 7);
	prefill(yard, &r1, 64);
	step(yard, &r1, 1);
	step(yard, &r1, 1);
	yard_settle(yard);
	guest_retract(yard, &r1);
	yard_settle(yard);
	assert_int_equal(available(yard), 31);
	assert_true(cache_clear_device(yard->cache));
	/* Nine tokens have their rows: eight under names, the ninth's in the image. */
	assert_int_equal(step(yard, &r1, 64), 1);
	assert_int_equal(r1.hit, 8);
	assert_int_equal(r1.computed, 10);
	guest_finish(yard, &r1);
	yard_settle(yard);
	assert_all_back(yard);
}

static uint32_t releasable(struct yard *yard, struct guest *guest)
{
	struct table *const tables = guest->tables;

	return cache_releasable(yard->cache, &tables, 1);
}

/*
 * One request waits for its loads, one for its forward, and a third is retracted to make room for a
 * fourth: it gets that one's blocks and no others.  A block that is being loaded is not to be had even
 * with its own request's consent.
 */
static void a_retraction_takes_nothing_from_a_load_or_a_forward(void **state)
{
	static const struct group_spec groups[] = { FULL_2 };
	struct yard *const             yard = open_yard(groups, 1, 2, 12, 12);
	struct guest                   loads, forward, decodes, waits;
	uint32_t                       slots[2][GUEST_TOKENS];

	(void)state;
	prompt(yard, &loads, 1, 1, 8);
	prefill(yard, &loads, 64);
	guest_finish(yard, &loads);
	yard_drain(yard);
	yard_settle(yard);
	assert_true(cache_clear_device(yard->cache));

	prompt(yard, &decodes, 2, 201, 6);
	prefill(yard, &decodes, 64);
	yard_settle(yard);
	prompt(yard, &loads, 3, 1, 8);
	assert_int_equal(guest_admit(yard, &loads, 64), 0);
	assert_int_equal(guest_loading(yard, &loads), 1);
	assert_int_equal(loads.tables[0].count, 5);
	assert_int_equal(releasable(yard, &loads), 2); /* not the three that are being loaded */
	prompt(yard, &forward, 4, 101, 2);
	assert_int_equal(guest_admit(yard, &forward, 64), 0);
	prompt(yard, &waits, 5, 301, 5);
	assert_int_equal(guest_admit(yard, &waits, 64), KVS_E_FULL);
	memcpy(slots[0], loads.slots[0], sizeof(slots[0]));
	memcpy(slots[1], forward.slots[0], sizeof(slots[1]));

	guest_retract(yard, &decodes);
	yard_settle_saves(yard);
	assert_int_equal(guest_admit(yard, &waits, 64), 0);
	assert_memory_equal(loads.slots[0], slots[0], sizeof(slots[0]));
	assert_memory_equal(forward.slots[0], slots[1], sizeof(slots[1]));
	assert_int_equal(guest_loading(yard, &loads), 1);
	guest_forward(yard, &waits); /* writes its rows: whoever shared a block would read them */
	guest_forward(yard, &loads);
	guest_forward(yard, &forward);
	yard_settle(yard);
	assert_int_equal(releasable(yard, &loads), 5);
	guest_finish(yard, &loads);
	guest_finish(yard, &forward);
	guest_finish(yard, &waits);
	guest_abort(yard, &decodes);
	yard_settle(yard);
	assert_all_back(yard);
}

/* --- hits ------------------------------------------------------------------------------------- */

static void two_requests_share_the_blocks_of_a_prefix(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(32) };
	struct yard *const             yard = open_yard(groups, 2, 2, 63, 0);
	struct guest                   r1, r2;
	uint32_t                       before;

	(void)state;
	prompt(yard, &r1, 1, 1, 8);
	prefill(yard, &r1, 64);
	/* What its last forward computed is published as it finishes. */
	guest_finish(yard, &r1);
	before = available(yard);
	prompt(yard, &r2, 2, 1, 12);
	assert_int_equal(step(yard, &r2, 64), 4);
	assert_int_equal(r2.hit, 8);
	assert_row(&r2, 0, "xxxxxxx");
	assert_int_equal(available(yard), before - 14);
	/* r1's blocks, not copies of them. */
	assert_int_equal(counts.copies + counts.loads, 0);
	guest_finish(yard, &r2);
	prompt(yard, &r1, 3, 1, 8);
	assert_int_equal(step(yard, &r1, 64), 2);
	assert_int_equal(r1.hit, 6);
	guest_finish(yard, &r1);
	assert_all_back(yard);
}

static void a_clear_takes_idle_prefixes_and_no_others(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(32) };
	struct yard *const             yard = open_yard(groups, 2, 2, 63, 0);
	struct guest                   r1, r2;

	(void)state;
	prompt(yard, &r1, 1, 1, 8);
	prefill(yard, &r1, 64);
	step(yard, &r1, 1);
	assert_false(cache_clear_device(yard->cache));
	guest_finish(yard, &r1);
	prompt(yard, &r2, 2, 1, 8);
	assert_int_equal(step(yard, &r2, 64), 2);
	assert_int_equal(r2.hit, 6);
	guest_abort(yard, &r2);
	assert_true(cache_clear_device(yard->cache));
	prompt(yard, &r2, 3, 1, 8);
	assert_int_equal(step(yard, &r2, 64), 8);
	guest_finish(yard, &r2);
	assert_all_back(yard);
}

static void replayed_tokens_are_computed_into_private_blocks(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(32) };
	struct yard *const             yard = open_yard(groups, 2, 2, 63, 0);
	struct guest                   r1, r2, r3;

	(void)state;
	prompt(yard, &r1, 1, 1, 8);
	prefill(yard, &r1, 64);
	step(yard, &r1, 1);
	prompt(yard, &r2, 2, 1, 8);
	r2.replay = 4;
	assert_int_equal(step(yard, &r2, 64), 4);
	assert_int_equal(r2.hit, 4);
	assert_int_equal(r2.slots[0][0], r1.slots[0][0]);
	assert_int_equal(r2.slots[0][1], r1.slots[0][1]);
	assert_true(r2.slots[0][2] != r1.slots[0][2]);
	guest_finish(yard, &r2);
	guest_finish(yard, &r1);
	prompt(yard, &r3, 3, 1, 12);
	r3.replay = 4;
	assert_int_equal(step(yard, &r3, 64), 4);
	assert_int_equal(r3.hit, 8);
	guest_finish(yard, &r3);
	prompt(yard, &r3, 4, 1, 12);
	r3.replay = 32;
	assert_int_equal(step(yard, &r3, 64), 12);
	guest_finish(yard, &r3);
	assert_all_back(yard);
}

/* P = 8, blocks of 8 and 2: of 32 tokens 24 are hit, and rows are 5 and 17 wide. */
static void a_replayed_tail_is_private_across_packed_groups(void **state)
{
	static const struct group_spec groups[] = { { "history", GROUP_FULL, 8, 0, 1 },
						    { "window", GROUP_WINDOW, 2, 64, 4 } };
	struct yard *const             yard = open_yard(groups, 2, 8, 63, 0);
	struct guest                   r1, r2;

	(void)state;
	prompt(yard, &r1, 1, 1, 32);
	prefill(yard, &r1, 64);
	step(yard, &r1, 1);
	prompt(yard, &r2, 2, 1, 32);
	r2.replay = 8;
	assert_int_equal(step(yard, &r2, 64), 8);
	assert_int_equal(r2.hit, 24);
	assert_int_equal(r2.tables[0].count, 5);
	assert_int_equal(r2.tables[1].count, 17);
	assert_int_equal(r2.slots[0][2], r1.slots[0][2]);
	assert_true(r2.slots[0][3] != r1.slots[0][3]);
	assert_true(r2.slots[1][12] != r1.slots[1][12]);
	guest_finish(yard, &r1);
	guest_finish(yard, &r2);
	assert_all_back(yard);
}

static void a_hit_brings_only_what_the_window_sees(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(4) };
	struct yard *const             yard = open_yard(groups, 2, 2, 63, 0);
	struct guest                   r1, r2;
	uint32_t                       before;

	(void)state;
	prompt(yard, &r1, 1, 1, 8);
	prefill(yard, &r1, 64);
	guest_finish(yard, &r1);
	before = available(yard);
	prompt(yard, &r2, 2, 1, 10);
	assert_int_equal(step(yard, &r2, 64), 2);
	assert_int_equal(r2.hit, 8);
	assert_row(&r2, 1, "00xxxx");
	assert_int_equal(available(yard), before - 10);
	guest_finish(yard, &r2);
	assert_all_back(yard);
}

/* A conversation of three turns; what was decoded is hit as what was prompted. */
static void decoded_pages_are_hit_by_the_next_turn(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(32) };
	struct yard *const             yard = open_yard(groups, 2, 2, 63, 0);
	struct guest                   turn, next;
	uint32_t                       before;

	(void)state;
	prompt(yard, &turn, 1, 1, 6);
	prefill(yard, &turn, 64);
	while (turn.computed < 8)
		step(yard, &turn, 1);
	guest_finish(yard, &turn);
	before = available(yard);
	turn.tokens[9] = 77;
	guest_open(yard, &next, 2, turn.tokens, 10);
	assert_int_equal(step(yard, &next, 64), 2);
	assert_int_equal(next.hit, 8);
	assert_int_equal(available(yard), before - 12);
	while (next.computed < 12)
		step(yard, &next, 1);
	guest_finish(yard, &next);
	next.tokens[13] = next.tokens[14] = next.tokens[15] = 78;
	guest_open(yard, &turn, 3, next.tokens, 16);
	assert_int_equal(step(yard, &turn, 64), 4);
	assert_int_equal(turn.hit, 12);
	assert_int_equal(available(yard), before - 18);
	guest_finish(yard, &turn);
	assert_all_back(yard);
}

static void a_decoded_page_that_slid_out_is_hit_still(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(4) };
	struct yard *const             yard = open_yard(groups, 2, 2, 63, 0);
	struct guest                   turn, next;
	uint32_t                       old[2];

	(void)state;
	prompt(yard, &turn, 1, 1, 6);
	prefill(yard, &turn, 64);
	while (turn.computed < 8)
		step(yard, &turn, 1);
	memcpy(old, &turn.slots[1][2], sizeof(old));
	guest_finish(yard, &turn);
	guest_open(yard, &next, 2, turn.tokens, 9);
	next.tokens[next.token_count++] = 5;
	next.prefill = 10;
	assert_int_equal(step(yard, &next, 64), 2);
	assert_row(&next, 1, "00xxxx");
	assert_memory_equal(old, &next.slots[1][2], sizeof(old));
	guest_finish(yard, &next);
	assert_all_back(yard);
}

/* --- tails ------------------------------------------------------------------------------------ */

/* P = 8: 13 tokens leave a tail of 5, which the next turn copies and writes behind. */
static void A3_2_a_tail_is_hit_by_the_next_turn_in_every_group(void **state)
{
	static const struct group_spec groups[] = { { "full", GROUP_FULL, 8, 0, 1 },
						    { "window", GROUP_WINDOW, 2, 6, 3 },
						    { "state", GROUP_STATE, 4, 0, 2 } };
	struct yard *const             yard = open_yard(groups, 3, 8, 31, 31);
	struct guest                   turn, next, other;

	(void)state;
	prompt(yard, &turn, 1, 1, 13);
	prefill(yard, &turn, 64);
	guest_finish(yard, &turn);
	guest_open(yard, &next, 2, turn.tokens, 14);
	next.tokens[next.token_count++] = 9;
	next.prefill = next.token_count;
	other = next;
	other.id = 3;
	table_init(&other.tables[0], other.slots[0], GUEST_TOKENS);
	table_init(&other.tables[1], other.slots[1], GUEST_TOKENS);
	table_init(&other.tables[2], other.slots[2], GUEST_TOKENS);
	assert_int_equal(step(yard, &next, 64), 2);
	assert_int_equal(next.hit, 13);
	/* One of FULL; of the window of token 13, blocks 4, 5, 6; the checkpoint. */
	assert_int_equal(counts.copies, 5);
	/* And again, because nobody wrote on it: this time from Host. */
	yard_drain(yard);
	yard_settle(yard);
	guest_abort(yard, &next);
	yard_settle(yard);
	assert_true(cache_clear_device(yard->cache));
	assert_int_equal(step(yard, &other, 64), 2);
	assert_int_equal(other.hit, 13);
	assert_int_equal(counts.copies, 5);
	assert_true(counts.tail_loads > 0);
	guest_finish(yard, &other);
	yard_settle(yard);
	assert_all_back(yard);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prompt_in_two_chunks_grows_its_table_then_decodes),
		cmocka_unit_test(chunks_end_at_the_pages_of_a_state),
		cmocka_unit_test(a_prompt_that_ends_inside_a_page_is_body_and_tail),
		cmocka_unit_test(a_chunk_of_a_state_takes_one_checkpoint_and_decode_the_next),
		cmocka_unit_test(the_last_chunk_of_a_state_has_input_and_output),
		cmocka_unit_test(a_window_slides_to_holes_while_a_prompt_is_computed),
		cmocka_unit_test(a_decode_step_keeps_the_oldest_block_of_the_window),
		cmocka_unit_test(a_long_prompt_fits_because_its_window_slides),
		cmocka_unit_test(a_window_stays_small_while_full_history_grows),
		cmocka_unit_test(three_groups_each_keep_what_they_attend_to),
		cmocka_unit_test(two_full_groups_keep_all_history),
		cmocka_unit_test(pages_of_one_token_slide_one_by_one),
		cmocka_unit_test(an_abort_at_any_time_gives_all_back),
		cmocka_unit_test(a_second_request_waits_for_the_first),
		cmocka_unit_test(room_in_reserve_is_nobody_elses),
		cmocka_unit_test(a_retracted_request_with_a_state_comes_back_where_it_stood),
		cmocka_unit_test(a_retraction_takes_nothing_from_a_load_or_a_forward),
		cmocka_unit_test(two_requests_share_the_blocks_of_a_prefix),
		cmocka_unit_test(a_clear_takes_idle_prefixes_and_no_others),
		cmocka_unit_test(replayed_tokens_are_computed_into_private_blocks),
		cmocka_unit_test(a_replayed_tail_is_private_across_packed_groups),
		cmocka_unit_test(a_hit_brings_only_what_the_window_sees),
		cmocka_unit_test(decoded_pages_are_hit_by_the_next_turn),
		cmocka_unit_test(a_decoded_page_that_slid_out_is_hit_still),
		cmocka_unit_test(A3_2_a_tail_is_hit_by_the_next_turn_in_every_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
