/* SPDX-License-Identifier: Apache-2.0 */
/* What a model's groups are, in blocks and columns, and which descriptions are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "match/groups.h"

static const struct group_spec full = { .name = "full", .kind = GROUP_FULL, .block_tokens = 64,
					.packing = 1 };
static const struct group_spec window = { .name = "swa", .kind = GROUP_WINDOW, .block_tokens = 16,
					  .window_tokens = 40, .packing = 4 };
static const struct group_spec state = { .name = "state", .kind = GROUP_STATE, .block_tokens = 128,
					 .packing = 2 };

static void make(const struct group_spec *specs, uint32_t count, uint32_t page_tokens,
		 struct groups *ret_groups)
{
	assert_int_equal(groups_make(specs, count, page_tokens, ret_groups, NULL), 0);
}

/* A group alone, of kind and block and window. */
static struct group group_of(enum group_kind kind, uint32_t block_tokens, uint32_t window_tokens)
{
	const struct group_spec spec = { .name = "g", .kind = kind, .block_tokens = block_tokens,
					 .window_tokens = window_tokens, .packing = 1 };
	struct groups           groups;

	make(&spec, 1, block_tokens, &groups);
	return groups.group[0];
}

static void groups_are_numbered_in_order_and_keep_what_was_said(void **state_)
{
	const struct group_spec specs[] = { full, window, state };
	struct groups           groups;
	uint32_t                g;

	(void)state_;
	make(specs, 3, 128, &groups);
	assert_int_equal(groups.count, 3);
	assert_int_equal(groups.page_tokens, 128);
	for (g = 0; g < 3; g++) {
		assert_string_equal(groups.group[g].spec.name, specs[g].name);
		assert_int_equal(groups.group[g].spec.kind, specs[g].kind);
		assert_int_equal(groups.group[g].spec.block_tokens, specs[g].block_tokens);
		assert_int_equal(groups.group[g].spec.packing, specs[g].packing);
	}
	assert_true(group_is_closed(&groups.group[0]));
	assert_false(group_is_closed(&groups.group[1]));
	assert_false(group_is_closed(&groups.group[2]));
}

static void a_page_is_the_blocks_of_all_groups_in_a_row(void **state_)
{
	const struct group_spec specs[] = { full, window, state };
	const uint32_t          owners[] = { 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2 };
	struct groups           groups;
	uint32_t                column;

	(void)state_;
	make(specs, 3, 128, &groups);
	assert_int_equal(groups.columns, 11);
	for (column = 0; column < 11; column++)
		assert_int_equal(groups.column_group[column], owners[column]);
	assert_int_equal(groups.group[0].page_blocks, 2);
	assert_int_equal(groups.group[1].page_blocks, 8);
	assert_int_equal(groups.group[2].page_blocks, 1);
	assert_int_equal(groups.group[2].first_column, 10);
	assert_true(group_columns(&groups.group[0], 0, 0, 2) == 0x3);
	assert_true(group_columns(&groups.group[1], 0, 0, 8) == 0x3fc);
	assert_true(group_columns(&groups.group[2], 0, 0, 1) == 0x400);
	/* Of positions 5 to 17: three of page 0, all of page 1, two of page 2, none of page 3. */
	assert_true(group_columns(&groups.group[1], 0, 5, 18) == 0x380);
	assert_true(group_columns(&groups.group[1], 1, 5, 18) == 0x3fc);
	assert_true(group_columns(&groups.group[1], 2, 5, 18) == 0xc);
	assert_true(group_columns(&groups.group[1], 3, 5, 18) == 0);
	assert_true(group_columns(&groups.group[1], 1, 12, 12) == 0);
}

/* Blocks of 16: the last may be reached in part. */
static void tokens_and_blocks_convert_both_ways(void **state_)
{
	const struct group_spec specs[] = { full, window };
	const struct group     *group;
	struct groups           groups;

	(void)state_;
	make(specs, 2, 128, &groups);
	group = &groups.group[1];
	assert_int_equal(group->spec.block_tokens, 16);
	assert_int_equal(group_blocks(group, 0), 0);
	assert_int_equal(group_blocks(group, 1), 1);
	assert_int_equal(group_blocks(group, 16), 1);
	assert_int_equal(group_blocks(group, 17), 2);
	assert_int_equal(group_blocks(group, TOKENS_MAX), UINT32_C(1) << 27);
	assert_int_equal(group_tokens_at(group, 0), 0);
	assert_int_equal(group_tokens_at(group, UINT32_C(1) << 28), UINT64_C(1) << 32);
	assert_int_equal(group_tokens_in(group, 1, 17), 1);
	assert_int_equal(group_tokens_in(group, 1, 32), 16);
	assert_int_equal(group_tokens_in(group, 1, 100), 16);
	assert_int_equal(group_column(group, 0), 2);
	assert_int_equal(group_column(group, 13), 7);
}

/* One hashed page serves groups of any packing: a full group of eight and three states. */
static void groups_of_one_page_size_may_pack_differently(void **state_)
{
	const char *const names[] = { "full", "s1", "s2", "s3" };
	struct group_spec specs[4];
	struct groups     groups;
	uint32_t          g;

	(void)state_;
	for (g = 0; g < 4; g++) {
		specs[g] = (struct group_spec){ .name = names[g],
						.kind = g == 0 ? GROUP_FULL : GROUP_STATE,
						.block_tokens = 128, .packing = g == 0 ? 8 : 1 };
	}
	make(specs, 4, 128, &groups);
	assert_int_equal(groups.columns, 4);
	assert_int_equal(groups.group[0].spec.packing, 8);
	assert_int_equal(groups.packing_max, 8);
	for (g = 0; g < 4; g++)
		assert_int_equal(groups.group[g].page_blocks, 1);
}

static void the_lookback_is_what_a_window_reaches_before_a_boundary(void **state_)
{
	(void)state_;
	assert_int_equal(group_of(GROUP_FULL, 4, 0).lookback, 0);
	assert_int_equal(group_of(GROUP_STATE, 4, 0).lookback, 1);
	assert_int_equal(group_of(GROUP_STATE, 1, 0).lookback, 1);
	assert_int_equal(group_of(GROUP_WINDOW, 4, 1).lookback, 0);
	assert_int_equal(group_of(GROUP_WINDOW, 4, 2).lookback, 1);
	assert_int_equal(group_of(GROUP_WINDOW, 4, 4).lookback, 1);
	assert_int_equal(group_of(GROUP_WINDOW, 4, 5).lookback, 1);
	assert_int_equal(group_of(GROUP_WINDOW, 4, 6).lookback, 2);
	assert_int_equal(group_of(GROUP_WINDOW, 4, 10).lookback, 3);
	assert_int_equal(group_of(GROUP_WINDOW, 1, UINT32_MAX).lookback, UINT32_MAX - 1);
}

static void a_state_is_a_window_of_two(void **state_)
{
	const struct group snapshot = group_of(GROUP_STATE, 4, 0);
	const struct group pair = group_of(GROUP_WINDOW, 4, 2);
	uint32_t           i;

	(void)state_;
	assert_int_equal(snapshot.window_tokens, 2);
	for (i = 0; i < 40; i++) {
		assert_int_equal(group_expired_blocks(&snapshot, i), group_expired_blocks(&pair, i));
		assert_int_equal(group_first_needed(&snapshot, i), group_first_needed(&pair, i));
	}
}

static void what_no_later_query_attends_to_expires(void **state_)
{
	static const struct {
		enum group_kind kind;
		uint32_t        q, window, computed, expired;
	} rows[] = {
		{ GROUP_WINDOW, 4, 16, 8, 0 },    { GROUP_WINDOW, 2, 4, 5, 1 },
		{ GROUP_WINDOW, 2, 4, 8, 2 },     { GROUP_WINDOW, 2, 4, 12, 4 },
		{ GROUP_WINDOW, 4, 4, 7, 1 },     { GROUP_WINDOW, 4, 10, 1000, 247 },
		{ GROUP_WINDOW, 4, 1, 8, 2 },     { GROUP_STATE, 4, 0, 16, 3 },
		{ GROUP_STATE, 4, 0, 17, 4 },     { GROUP_STATE, 4, 0, 0, 0 },
		{ GROUP_FULL, 4, 0, 1000, 0 },    { GROUP_FULL, 2, 0, 10, 0 },
		{ GROUP_WINDOW, 2, 6, 10, 2 },    { GROUP_WINDOW, 2, 2, 10, 4 },
		{ GROUP_WINDOW, 1, 4, 4, 1 },     { GROUP_WINDOW, 1, 4, 3, 0 },
	};
	size_t i;

	(void)state_;
	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		const struct group group = group_of(rows[i].kind, rows[i].q, rows[i].window);

		assert_int_equal(group_expired_blocks(&group, rows[i].computed), rows[i].expired);
	}
}

/* Two tokens a step, blocks of two, a window of four: what lives stays at three blocks. */
static void a_window_keeps_the_live_blocks_of_a_long_run_few(void **state_)
{
	const struct group group = group_of(GROUP_WINDOW, 2, 4);
	uint32_t           step;

	(void)state_;
	for (step = 0; step < 20; step++) {
		const uint32_t computed = 2 * step;

		assert_in_range((computed + 2) / 2 - group_expired_blocks(&group, computed), 1, 3);
	}
}

/* --- refused ---------------------------------------------------------------------------------- */

static void refuse(const struct group_spec *specs, uint32_t count, uint32_t page_tokens,
		   const char *sentence)
{
	struct kvs_error err;
	struct groups    groups;
	struct groups    before;

	memset(&groups, 0x5a, sizeof(groups));
	before = groups;
	assert_int_equal(groups_make(specs, count, page_tokens, &groups, &err), KVS_E_INVALID);
	assert_string_equal(err.message, sentence);
	assert_memory_equal(&groups, &before, sizeof(groups));
}

static void a_page_has_tokens_and_a_model_groups(void **state_)
{
	struct group_spec specs[GROUPS_MAX + 1];
	uint32_t          g;

	(void)state_;
	for (g = 0; g <= GROUPS_MAX; g++)
		specs[g] = full;
	refuse(specs, 1, 0, "page_tokens: 0 is out of range; use 1 to 2147483647");
	refuse(specs, 1, UINT32_C(1) << 31,
	       "page_tokens: 2147483648 is out of range; use 1 to 2147483647");
	refuse(specs, 0, 128, "groups: 0 is out of range; use 1 to 16");
	refuse(specs, GROUPS_MAX + 1, 128, "groups: 17 is out of range; use 1 to 16");
}

/* The spec of group 1 with one thing changed; group 0 is fine. */
static void refuse_second(struct group_spec second, const char *sentence)
{
	const struct group_spec specs[] = { full, second };

	refuse(specs, 2, 128, sentence);
}

static struct group_spec with_block(struct group_spec spec, uint32_t block_tokens)
{
	spec.block_tokens = block_tokens;
	return spec;
}

static struct group_spec with_window(struct group_spec spec, uint32_t window_tokens)
{
	spec.window_tokens = window_tokens;
	return spec;
}

static struct group_spec with_name(struct group_spec spec, const char *name)
{
	spec.name = name;
	return spec;
}

static void a_refusal_names_the_group_and_the_field(void **state_)
{
	struct group_spec unpacked = window, unkind = window;
	char              name[300] = "";

	(void)state_;
	unpacked.packing = 0;
	unkind.kind = (enum group_kind)7;
	refuse_second(with_block(window, 0),
		      "group 1 \"swa\": block_tokens: 0 does not divide page_tokens, 128");
	refuse_second(with_block(window, 48),
		      "group 1 \"swa\": block_tokens: 48 does not divide page_tokens, 128");
	refuse_second(with_block(window, 256),
		      "group 1 \"swa\": block_tokens: 256 does not divide page_tokens, 128");
	refuse_second(unpacked, "group 1 \"swa\": packing: 0 is too small; use at least 1");
	refuse_second(with_window(window, 0),
		      "group 1 \"swa\": window_tokens: 0 is too small; use at least 1");
	refuse_second(with_window(state, 2),
		      "group 1 \"state\": window_tokens: 2, but the kind has no window; use 0");
	refuse_second(with_window(with_name(full, "other"), 5),
		      "group 1 \"other\": window_tokens: 5, but the kind has no window; use 0");
	refuse_second(unkind, "group 1 \"swa\": kind: 7 is unknown; use full, window or state");
	refuse_second(with_name(window, NULL), "group 1: name: is empty; give one");
	refuse_second(with_name(window, ""), "group 1: name: is empty; give one");
	refuse_second(with_name(window, "full"),
		      "group 1 \"full\": name: is that of group 0; each has its own");
	/* A name as long as a sentence leaves room for field and rule. */
	memset(name, 'x', sizeof(name) - 1);
	refuse_second(with_name(with_window(window, 0), name),
		      "group 1 \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\": "
		      "window_tokens: 0 is too small; use at least 1");
}

static void a_page_has_at_most_a_word_of_blocks(void **state_)
{
	const struct group_spec most[] = { with_block(window, 4), with_block(full, 4) };
	const struct group_spec over[] = { with_block(window, 4), with_block(full, 4), state };
	const struct group_spec alone[] = { with_block(full, 2) };
	struct groups           groups;

	(void)state_;
	make(most, 2, 128, &groups);
	assert_int_equal(groups.columns, COLUMNS_MAX);
	assert_true(group_columns(&groups.group[1], 0, 0, 32) == 0xffffffff00000000);
	make(alone, 1, 128, &groups);
	assert_true(group_columns(&groups.group[0], 0, 0, 64) == UINT64_MAX);
	refuse(over, 3, 128,
	       "group 2 \"state\": block_tokens: 128 makes more than 64 blocks of a page over all "
	       "groups");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_are_numbered_in_order_and_keep_what_was_said),
		cmocka_unit_test(a_page_is_the_blocks_of_all_groups_in_a_row),
		cmocka_unit_test(tokens_and_blocks_convert_both_ways),
		cmocka_unit_test(groups_of_one_page_size_may_pack_differently),
		cmocka_unit_test(the_lookback_is_what_a_window_reaches_before_a_boundary),
		cmocka_unit_test(a_state_is_a_window_of_two),
		cmocka_unit_test(what_no_later_query_attends_to_expires),
		cmocka_unit_test(a_window_keeps_the_live_blocks_of_a_long_run_few),
		cmocka_unit_test(a_page_has_tokens_and_a_model_groups),
		cmocka_unit_test(a_refusal_names_the_group_and_the_field),
		cmocka_unit_test(a_page_has_at_most_a_word_of_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
