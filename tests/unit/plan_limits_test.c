/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of queries: tails, limits and mistakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "death.h"
#include "quest.h"

/* --- tails ------------------------------------------------------------------------------------ */

static void A3_2_tails_and_page_boundaries_are_one_order(void **state)
{
	struct quest quest;

	(void)state;
	quest_open(&quest, quest_full_state, 2, 4);
	quest_tail(&quest, 31);
	quest_tail(&quest, 26);
	quest_tail(&quest, 25);
	quest_hold(&quest, STRATUM_HOST, 0, 0, 6);
	quest_hold(&quest, STRATUM_HOST, 1, 4, 5);
	quest.ask.local_tokens = 20;
	quest.ask.bound_tokens = 31;
	assert_string_equal(quest_plan(&quest), "31: F6 F7t M7t; 28: M6; 26: F6t M6t; 25: F6t M6t; 24: M5");
	quest.ask.credits = 6;
	assert_string_equal(quest_plan(&quest), "31: F6 F7t M7t; 28: M6; 26: F6t M6t");
	quest.ask.credits = 2;
	assert_string_equal(quest_plan(&quest), "28: F6 M6");
	quest_close(&quest);
}

/* The name of a planned key. */
static void name_of(const struct quest *quest, uint32_t i, struct kvs_key *ret_key)
{
	const struct query_key *const key = &quest->query.keys[i];
	const uint32_t                group = quest->query.groups.column_group[key->column];

	key_make(quest->ask.space,
		 key->tail == TAIL_NONE ? &quest->ask.hashes[key->page]
					: &quest->ask.tails[key->tail].hash,
		 group, 0, key->column - quest->query.groups.group[group].first_column, ret_key);
}

/* Whole blocks of a tail page bear the tail's name too; what is held of it is not asked for. */
static void A3_15_a_tails_blocks_bear_the_tails_name(void **state)
{
	static const struct group_spec specs[] = { { "F", GROUP_FULL, 2, 0, 1 },
						   { "M", GROUP_STATE, 8, 0, 1 } };
	struct quest                   quest;
	struct kvs_key                 asked, published;
	uint32_t                       cell;

	(void)state;
	quest_open(&quest, specs, 2, 8);
	quest_hold(&quest, STRATUM_HOST, 0, 0, 2);
	quest_tail(&quest, 13);
	quest.ask.bound_tokens = 13;
	pages_add(&quest.pages, &quest.space, &quest.tails[0].hash, 1, STRATUM_HOST, 1);
	assert_string_equal(quest_plan(&quest), "13: F1.0t F1.2t M1t; 8: M0");
	name_of(&quest, 1, &asked);
	cell = pages_add(&quest.pages, &quest.space, &quest.tails[0].hash, 2, STRATUM_HOST, 1);
	pages_key(&quest.pages, cell, &published);
	assert_memory_equal(&asked, &published, sizeof(asked));
	name_of(&quest, 3, &asked);
	cell = pages_add(&quest.pages, &quest.space, &quest.hashes[0], 4, STRATUM_HOST, 1);
	pages_key(&quest.pages, cell, &published);
	assert_memory_equal(&asked, &published, sizeof(asked));
	quest_close(&quest);
}

/* --- limits ----------------------------------------------------------------------------------- */

static void A3_16_keys_and_lookahead_are_limited_and_counted(void **state)
{
	struct quest quest;

	(void)state;
	quest_open(&quest, quest_full_state, 2, 4);
	quest.limits.key_max = 5;
	assert_string_equal(quest_plan(&quest), "16: F0 F1 F2 F3 M3");
	assert_int_equal(quest.query.counts.cut_keys, 4 + 3);
	assert_int_equal(quest.query.counts.cut_credits, 0);
	assert_int_equal(quest.query.counts.cut_lookahead, 0);
	quest.limits.key_max = 100;
	quest.limits.lookahead_tokens = 11;
	assert_string_equal(quest_plan(&quest), "8: F0 F1 M1; 4: M0");
	assert_int_equal(quest.query.counts.cut_lookahead, 1);
	assert_int_equal(query_reach(&quest.limits, 4, 32), 15);
	assert_int_equal(query_reach(&quest.limits, 30, 32), 32);
	quest_tail(&quest, 13);
	quest_tail(&quest, 11);
	assert_string_equal(quest_plan(&quest), "11: F0 F1 F2t M2t; 8: M1; 4: M0");
	quest_close(&quest);
}

/* A boundary that needs what no store has is passed over; what is held is no hindrance. */
static void A3_16_absent_blocks_end_the_boundaries_that_need_them(void **state)
{
	const uint64_t absent[2] = { UINT64_C(1) << 7 }; /* M3 */
	const uint64_t history[2] = { UINT64_C(1) << 2 }; /* F1 */
	struct quest   quest;

	(void)state;
	quest_open(&quest, quest_full_state, 2, 4);
	quest.ask.bound_tokens = 16;
	quest.ask.page_absent = absent;
	assert_string_equal(quest_plan(&quest), "12: F0 F1 F2 M2; 8: M1; 4: M0");
	assert_int_equal(quest.query.counts.cut_absent, 1);
	assert_int_equal(query_key_group(&quest.query, &quest.query.barrier), 1);
	assert_int_equal(query_key_position(&quest.query, &quest.query.barrier), 3);
	quest.ask.page_absent = history;
	assert_string_equal(quest_plan(&quest), "4: F0 M0");
	quest_hold(&quest, STRATUM_HOST, 0, 1, 2);
	assert_string_equal(quest_plan(&quest), "16: F0 F2 F3 M3; 12: M2; 8: M1; 4: M0");
	quest.ask.local_tokens = 4;
	quest.ask.bound_tokens = 8;
	quest.ask.page_absent = (const uint64_t[]){ UINT64_C(1) << 3, 0 };
	assert_string_equal(quest_plan(&quest), "absent");
	quest_close(&quest);
}

/* Four blocks of one parent are four credits. */
static void A3_17_a_key_costs_a_credit_whatever_its_packing(void **state)
{
	static const struct group_spec packed[] = { { "F", GROUP_FULL, 2, 0, 4 } };
	struct quest                   quest;

	(void)state;
	quest_open(&quest, packed, 1, 8);
	quest.ask.bound_tokens = 8;
	quest.ask.credits = 3;
	assert_string_equal(quest_plan(&quest), "credits");
	quest.ask.credits = 4;
	assert_string_equal(quest_plan(&quest), "8: F0.0 F0.1 F0.2 F0.3");
	quest_close(&quest);
}

static void A3_18_no_boundary_within_the_budget_is_a_bypass_for_credits(void **state)
{
	struct quest quest;

	(void)state;
	quest_open(&quest, quest_full_state, 2, 4);
	quest.ask.credits = 1;
	assert_string_equal(quest_plan(&quest), "credits");
	assert_int_equal(quest.query.key_count, 0);
	assert_int_equal(quest.query.boundary_count, 0);
	quest.ask.credits = 0;
	assert_string_equal(quest_plan(&quest), "credits");
	quest.ask.credits = 2;
	assert_string_equal(quest_plan(&quest), "4: F0 M0");
	quest_close(&quest);
}

/* --- input and mistakes ----------------------------------------------------------------------- */

static void check_refused(const struct query_limits *limits, const char *sentence)
{
	struct groups    groups;
	struct query     query;
	struct kvs_error err = { 0 };

	assert_int_equal(groups_make(quest_full_state, 2, 4, &groups, NULL), 0);
	assert_int_equal(query_open(&query, &groups, limits, &err), KVS_E_INVALID);
	assert_string_equal(err.message, sentence);
}

static void limits_that_make_no_sense_are_refused(void **state)
{
	(void)state;
	check_refused(&(struct query_limits){ .key_max = 1 },
		      "page_max: 0 is too small; use at least 1");
	check_refused(&(struct query_limits){ .page_max = 1 },
		      "key_max: 0 is too small; use at least 1");
	check_refused(&(struct query_limits){ .page_max = UINT32_MAX, .key_max = 1 },
		      "page_max, tail_max: 4294967295 and 0 of 2 blocks each are too many; "
		      "use at most 2147483647 blocks");
}

static void plan_it(void *quest)
{
	quest_plan(quest);
}

static void mistakes_are_panics(void **state)
{
	struct quest quest;

	(void)state;
	quest_open(&quest, quest_full_only, 1, 4);
	quest.ask.bound_tokens = 36;
	assert_true(death_panics(plan_it, &quest, NULL, 0));
	quest.ask.bound_tokens = 32;
	quest_tail(&quest, 5);
	quest_tail(&quest, 6);
	assert_true(death_panics(plan_it, &quest, NULL, 0));
	quest.ask.tail_count = 0;
	quest_tail(&quest, 8);
	assert_true(death_panics(plan_it, &quest, NULL, 0));
	quest.ask.tail_count = QUEST_TAILS + 1;
	assert_true(death_panics(plan_it, &quest, NULL, 0));
	quest_close(&quest);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A3_2_tails_and_page_boundaries_are_one_order),
		cmocka_unit_test(A3_15_a_tails_blocks_bear_the_tails_name),
		cmocka_unit_test(A3_16_keys_and_lookahead_are_limited_and_counted),
		cmocka_unit_test(A3_17_a_key_costs_a_credit_whatever_its_packing),
		cmocka_unit_test(A3_16_absent_blocks_end_the_boundaries_that_need_them),
		cmocka_unit_test(A3_18_no_boundary_within_the_budget_is_a_bypass_for_credits),
		cmocka_unit_test(limits_that_make_no_sense_are_refused),
		cmocka_unit_test(mistakes_are_panics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
