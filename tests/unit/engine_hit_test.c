/* SPDX-License-Identifier: Apache-2.0 */
/* Requests over real blocks, scenario by scenario: prefixes and tails that are restored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "stay.h"

/* --- hits ------------------------------------------------------------------------------------- */

static void two_requests_share_the_blocks_of_a_prefix(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(32) };
	struct yard *const             yard = stay_open(groups, 2, 2, 63, 0);
	struct guest                   r1, r2;
	uint32_t                       before;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 8);
	stay_prefill(yard, &r1, 64);
	/* What its last forward computed is published as it finishes. */
	guest_finish(yard, &r1);
	before = stay_available(yard);
	stay_prompt(yard, &r2, 2, 1, 12);
	assert_int_equal(stay_step(yard, &r2, 64), 4);
	assert_int_equal(r2.hit, 8);
	stay_expect_row(&r2, 0, "xxxxxxx");
	assert_int_equal(stay_available(yard), before - 14);
	/* r1's blocks, not copies of them. */
	assert_int_equal(yard->counts->copies + yard->counts->loads, 0);
	guest_finish(yard, &r2);
	stay_prompt(yard, &r1, 3, 1, 8);
	assert_int_equal(stay_step(yard, &r1, 64), 2);
	assert_int_equal(r1.hit, 6);
	guest_finish(yard, &r1);
	stay_close(yard);
}

static void a_clear_takes_idle_prefixes_and_no_others(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(32) };
	struct yard *const             yard = stay_open(groups, 2, 2, 63, 0);
	struct guest                   r1, r2;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 8);
	stay_prefill(yard, &r1, 64);
	stay_step(yard, &r1, 1);
	assert_false(cache_clear_device(yard->cache));
	guest_finish(yard, &r1);
	stay_prompt(yard, &r2, 2, 1, 8);
	assert_int_equal(stay_step(yard, &r2, 64), 2);
	assert_int_equal(r2.hit, 6);
	guest_abort(yard, &r2);
	assert_true(cache_clear_device(yard->cache));
	stay_prompt(yard, &r2, 3, 1, 8);
	assert_int_equal(stay_step(yard, &r2, 64), 8);
	guest_finish(yard, &r2);
	stay_close(yard);
}

static void replayed_tokens_are_computed_into_private_blocks(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(32) };
	struct yard *const             yard = stay_open(groups, 2, 2, 63, 0);
	struct guest                   r1, r2, r3;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 8);
	stay_prefill(yard, &r1, 64);
	stay_step(yard, &r1, 1);
	stay_prompt(yard, &r2, 2, 1, 8);
	r2.replay = 4;
	assert_int_equal(stay_step(yard, &r2, 64), 4);
	assert_int_equal(r2.hit, 4);
	assert_int_equal(r2.slots[0][0], r1.slots[0][0]);
	assert_int_equal(r2.slots[0][1], r1.slots[0][1]);
	assert_true(r2.slots[0][2] != r1.slots[0][2]);
	guest_finish(yard, &r2);
	guest_finish(yard, &r1);
	stay_prompt(yard, &r3, 3, 1, 12);
	r3.replay = 4;
	assert_int_equal(stay_step(yard, &r3, 64), 4);
	assert_int_equal(r3.hit, 8);
	guest_finish(yard, &r3);
	stay_prompt(yard, &r3, 4, 1, 12);
	r3.replay = 32;
	assert_int_equal(stay_step(yard, &r3, 64), 12);
	guest_finish(yard, &r3);
	stay_close(yard);
}

/* P = 8, blocks of 8 and 2: of 32 tokens 24 are hit, and rows are 5 and 17 wide. */
static void a_replayed_tail_is_private_across_packed_groups(void **state)
{
	static const struct group_spec groups[] = { { "history", GROUP_FULL, 8, 0, 1 },
						    { "window", GROUP_WINDOW, 2, 64, 4 } };
	struct yard *const             yard = stay_open(groups, 2, 8, 63, 0);
	struct guest                   r1, r2;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 32);
	stay_prefill(yard, &r1, 64);
	stay_step(yard, &r1, 1);
	stay_prompt(yard, &r2, 2, 1, 32);
	r2.replay = 8;
	assert_int_equal(stay_step(yard, &r2, 64), 8);
	assert_int_equal(r2.hit, 24);
	assert_int_equal(r2.tables[0].count, 5);
	assert_int_equal(r2.tables[1].count, 17);
	assert_int_equal(r2.slots[0][2], r1.slots[0][2]);
	assert_true(r2.slots[0][3] != r1.slots[0][3]);
	assert_true(r2.slots[1][12] != r1.slots[1][12]);
	guest_finish(yard, &r1);
	guest_finish(yard, &r2);
	stay_close(yard);
}

static void a_hit_brings_only_what_the_window_sees(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(4) };
	struct yard *const             yard = stay_open(groups, 2, 2, 63, 0);
	struct guest                   r1, r2;
	uint32_t                       before;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 8);
	stay_prefill(yard, &r1, 64);
	guest_finish(yard, &r1);
	before = stay_available(yard);
	stay_prompt(yard, &r2, 2, 1, 10);
	assert_int_equal(stay_step(yard, &r2, 64), 2);
	assert_int_equal(r2.hit, 8);
	stay_expect_row(&r2, 1, "00xxxx");
	assert_int_equal(stay_available(yard), before - 10);
	guest_finish(yard, &r2);
	stay_close(yard);
}

/* A conversation of three turns; what was decoded is hit as what was prompted. */
static void decoded_pages_are_hit_by_the_next_turn(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(32) };
	struct yard *const             yard = stay_open(groups, 2, 2, 63, 0);
	struct guest                   turn, next;
	uint32_t                       before;

	(void)state;
	stay_prompt(yard, &turn, 1, 1, 6);
	stay_prefill(yard, &turn, 64);
	while (turn.computed < 8)
		stay_step(yard, &turn, 1);
	guest_finish(yard, &turn);
	before = stay_available(yard);
	turn.tokens[9] = 77;
	guest_open(yard, &next, 2, turn.tokens, 10);
	assert_int_equal(stay_step(yard, &next, 64), 2);
	assert_int_equal(next.hit, 8);
	assert_int_equal(stay_available(yard), before - 12);
	while (next.computed < 12)
		stay_step(yard, &next, 1);
	guest_finish(yard, &next);
	next.tokens[13] = next.tokens[14] = next.tokens[15] = 78;
	guest_open(yard, &turn, 3, next.tokens, 16);
	assert_int_equal(stay_step(yard, &turn, 64), 4);
	assert_int_equal(turn.hit, 12);
	assert_int_equal(stay_available(yard), before - 18);
	guest_finish(yard, &turn);
	stay_close(yard);
}

static void a_decoded_page_that_slid_out_is_hit_still(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(4) };
	struct yard *const             yard = stay_open(groups, 2, 2, 63, 0);
	struct guest                   turn, next;
	uint32_t                       old[2];

	(void)state;
	stay_prompt(yard, &turn, 1, 1, 6);
	stay_prefill(yard, &turn, 64);
	while (turn.computed < 8)
		stay_step(yard, &turn, 1);
	memcpy(old, &turn.slots[1][2], sizeof(old));
	guest_finish(yard, &turn);
	guest_open(yard, &next, 2, turn.tokens, 9);
	next.tokens[next.token_count++] = 5;
	next.prefill = 10;
	assert_int_equal(stay_step(yard, &next, 64), 2);
	stay_expect_row(&next, 1, "00xxxx");
	assert_memory_equal(old, &next.slots[1][2], sizeof(old));
	guest_finish(yard, &next);
	stay_close(yard);
}

/* --- tails ------------------------------------------------------------------------------------ */

/* P = 8: 13 tokens leave a tail of 5, which the next turn copies and writes behind. */
static void A3_2_a_tail_is_hit_by_the_next_turn_in_every_group(void **state)
{
	static const struct group_spec groups[] = { { "full", GROUP_FULL, 8, 0, 1 },
						    { "window", GROUP_WINDOW, 2, 6, 3 },
						    { "state", GROUP_STATE, 4, 0, 2 } };
	struct yard *const             yard = stay_open(groups, 3, 8, 31, 31);
	struct guest                   turn, next, other;

	(void)state;
	stay_prompt(yard, &turn, 1, 1, 13);
	stay_prefill(yard, &turn, 64);
	guest_finish(yard, &turn);
	guest_open(yard, &next, 2, turn.tokens, 14);
	next.tokens[next.token_count++] = 9;
	next.prefill = next.token_count;
	other = next;
	other.id = 3;
	table_init(&other.tables[0], other.slots[0], GUEST_TOKENS);
	table_init(&other.tables[1], other.slots[1], GUEST_TOKENS);
	table_init(&other.tables[2], other.slots[2], GUEST_TOKENS);
	assert_int_equal(stay_step(yard, &next, 64), 2);
	assert_int_equal(next.hit, 13);
	/* One of FULL; of the window of token 13, blocks 4, 5, 6; the checkpoint. */
	assert_int_equal(yard->counts->copies, 5);
	/* And again, because nobody wrote on it: this time from Host. */
	yard_drain(yard);
	yard_settle(yard);
	guest_abort(yard, &next);
	yard_settle(yard);
	assert_true(cache_clear_device(yard->cache));
	assert_int_equal(stay_step(yard, &other, 64), 2);
	assert_int_equal(other.hit, 13);
	assert_int_equal(yard->counts->copies, 5);
	assert_true(yard->counts->tail_loads > 0);
	guest_finish(yard, &other);
	yard_settle(yard);
	stay_close(yard);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
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
