/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of a store for a prompt.  A plan is told as its boundaries, longest first, each
 * with the keys it adds: group, page, offset where a page has several blocks of the group, and "t"
 * for a tail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "death.h"
#include "plan/query.h"

#define PAGES 8u
#define TAILS 3u

struct rig {
	struct kvs_namespace space;
	struct pages         pages;
	struct prefix_hash   hashes[PAGES];
	struct tail          tails[TAILS];
	uint32_t             entries[PAGES];
	struct view          view;
	struct query_limits  limits;
	struct query_ask     ask;
	struct query         query;
	char                 said[512];
};

static const struct group_spec full_state[] = { { "F", GROUP_FULL, 4, 0, 1 },
						{ "M", GROUP_STATE, 4, 0, 1 } };
static const struct group_spec full_two_states[] = { { "F", GROUP_FULL, 4, 0, 1 },
						     { "M", GROUP_STATE, 4, 0, 1 },
						     { "N", GROUP_STATE, 4, 0, 1 } };
static const struct group_spec full_only[] = { { "F", GROUP_FULL, 4, 0, 1 } };

/* A prompt of which the first 32 tokens, 8 pages of 4, may be restored; nothing is held. */
static void open_rig(struct rig *rig, const struct group_spec *specs, uint32_t count,
		     uint32_t page_tokens)
{
	struct groups groups;
	uint32_t      i;

	*rig = (struct rig){ .space = { "space" } };
	assert_int_equal(groups_make(specs, count, page_tokens, &groups, NULL), 0);
	assert_int_equal(pages_open(&rig->pages, &groups, PAGES + TAILS), 0);
	for (i = 0; i < PAGES; i++)
		rig->hashes[i] = (struct prefix_hash){ { 1, (uint8_t)i } };
	rig->view = (struct view){ .pages = &rig->pages,
				   .entries = rig->entries,
				   .page_count = PAGES,
				   .held_in = HELD_DEVICE | HELD_HOST };
	rig->limits = (struct query_limits){ .page_max = PAGES,
					     .tail_max = TAILS,
					     .key_max = 100,
					     .lookahead_tokens = 1000 };
	rig->ask = (struct query_ask){ .view = &rig->view,
				       .space = &rig->space,
				       .hashes = rig->hashes,
				       .tails = rig->tails,
				       .bound_tokens = PAGES * page_tokens,
				       .credits = 100 };
}

static void close_rig(struct rig *rig)
{
	query_close(&rig->query);
	pages_close(&rig->pages);
}

/* Group g of pages [first, end) is held, all of its blocks. */
static void hold(struct rig *rig, enum stratum_id stratum, uint32_t g, uint32_t first, uint32_t end)
{
	const struct group *const group = &rig->pages.groups.group[g];
	uint32_t                  page, i;

	for (page = first; page < end; page++) {
		for (i = 0; i < group->page_blocks; i++) {
			pages_add(&rig->pages, &rig->space, &rig->hashes[page],
				  group->first_column + i, stratum, 1);
		}
	}
}

static void add_tail(struct rig *rig, uint32_t tokens)
{
	rig->tails[rig->ask.tail_count++] = (struct tail){ tokens, { { 2, (uint8_t)tokens } } };
}

static int say_key(const struct query *query, uint32_t i, char *text, size_t size)
{
	const struct query_key *const key = &query->keys[i];
	const struct groups *const    groups = &query->groups;
	const struct group *const     group = &groups->group[groups->column_group[key->column]];
	char                          offset[16] = "";

	if (group->page_blocks > 1)
		snprintf(offset, sizeof(offset), ".%u", key->column - group->first_column);
	return snprintf(text, size, " %s%u%s%s", group->spec.name, key->page, offset,
			key->tail == TAIL_NONE ? "" : "t");
}

static const char *const reasons[] = { [QUERY_ASKED] = "asked",
				       [QUERY_COVERED] = "covered",
				       [QUERY_SHORT] = "short",
				       [QUERY_NO_BOUNDARY] = "no boundary",
				       [QUERY_CREDITS] = "credits" };

/* Plan anew with the rig's limits.  "32: F7 M7; 28: M6", or why there is nothing. */
static const char *plan(struct rig *rig)
{
	const struct query *const query = &rig->query;
	enum query_bypass         bypass;
	size_t                    used = 0;
	uint32_t                  i, key = 0;

	query_close(&rig->query);
	assert_int_equal(query_open(&rig->query, &rig->pages.groups, &rig->limits, NULL), 0);
	pages_find_all(&rig->pages, &rig->space, rig->hashes, PAGES, rig->entries);
	bypass = query_plan(&rig->query, &rig->ask);
	query_audit(&rig->query, &rig->ask);
	assert_int_equal(query->counts.plans[bypass], 1);
	if (bypass != QUERY_ASKED)
		return reasons[bypass];
	for (i = 0; i < query->boundary_count; i++) {
		used += (size_t)snprintf(rig->said + used, sizeof(rig->said) - used, "%s%u:",
					 i ? "; " : "", query->boundaries[i].at.tokens);
		for (; key < query->boundaries[i].key_end; key++) {
			used += (size_t)say_key(query, key, rig->said + used,
						sizeof(rig->said) - used);
		}
	}
	return rig->said;
}

/* --- whether to ask --------------------------------------------------------------------------- */

static void A3_1_a_local_hit_at_the_bound_asks_for_nothing(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig, full_only, 1, 4);
	rig.ask.local_tokens = 32;
	assert_string_equal(plan(&rig), "covered");
	rig.ask.bound_tokens = 0;
	rig.ask.local_tokens = 0;
	assert_string_equal(plan(&rig), "covered");
	close_rig(&rig);
}

static void A3_1_an_extension_below_the_minimum_asks_for_nothing(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig, full_only, 1, 4);
	hold(&rig, STRATUM_DEVICE, 0, 0, 6);
	rig.ask.local_tokens = 24;
	rig.limits.extension_min = 9;
	assert_string_equal(plan(&rig), "short");
	rig.limits.extension_min = 8;
	assert_string_equal(plan(&rig), "32: F6 F7");
	/* The bound is far enough; the last boundary before it is not. */
	rig.ask.bound_tokens = 31;
	rig.limits.extension_min = 5;
	assert_string_equal(plan(&rig), "short");
	close_rig(&rig);
}

static void A3_1_no_boundary_behind_the_hit_asks_for_nothing(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig, full_only, 1, 4);
	rig.ask.local_tokens = 24;
	rig.ask.bound_tokens = 27;
	assert_string_equal(plan(&rig), "no boundary");
	close_rig(&rig);
}

static void A3_14_only_boundaries_beyond_the_local_hit_are_considered(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig, full_state, 2, 4);
	hold(&rig, STRATUM_DEVICE, 0, 0, 6);
	hold(&rig, STRATUM_HOST, 1, 5, 6);
	rig.ask.local_tokens = 24;
	assert_string_equal(plan(&rig), "32: F6 F7 M7; 28: M6");
	close_rig(&rig);
}

/*
 * The caller knew of less than there is: what is complete is no question, nor is anything shorter.
 */
static void a_boundary_that_is_there_ends_the_plan(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig, full_state, 2, 4);
	hold(&rig, STRATUM_HOST, 0, 0, 6);
	hold(&rig, STRATUM_HOST, 1, 5, 6);
	assert_string_equal(plan(&rig), "32: F6 F7 M7; 28: M6");
	rig.ask.credits = 1;
	assert_string_equal(plan(&rig), "credits");
	rig.ask.bound_tokens = 24;
	assert_string_equal(plan(&rig), "covered");
	close_rig(&rig);
}

/* --- what to ask for -------------------------------------------------------------------------- */

static void A3_3_the_longest_boundary_comes_first_and_old_checkpoints_last(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig, full_state, 2, 4);
	rig.ask.credits = 9;
	assert_string_equal(plan(&rig), "32: F0 F1 F2 F3 F4 F5 F6 F7 M7");
	rig.ask.credits = 11;
	assert_string_equal(plan(&rig), "32: F0 F1 F2 F3 F4 F5 F6 F7 M7; 28: M6; 24: M5");
	rig.ask.credits = 8;
	assert_string_equal(plan(&rig), "28: F0 F1 F2 F3 F4 F5 F6 M6");
	assert_int_equal(rig.query.counts.cut_credits, 1 + 6);
	close_rig(&rig);
}

/* One credit is left: 28 needs two more, 24 only one, because the other checkpoint is there. */
static void A3_3_a_fallback_adds_all_that_it_misses_or_nothing(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig, full_two_states, 3, 4);
	hold(&rig, STRATUM_HOST, 0, 0, 7);
	hold(&rig, STRATUM_HOST, 1, 5, 6);
	rig.ask.credits = 4;
	assert_string_equal(plan(&rig), "32: F7 M7 N7; 24: N5");
	rig.ask.credits = 5;
	assert_string_equal(plan(&rig), "32: F7 M7 N7; 28: M6 N6");
	rig.ask.credits = 6;
	assert_string_equal(plan(&rig), "32: F7 M7 N7; 28: M6 N6; 24: N5");
	close_rig(&rig);
}

static void A3_3_boundaries_that_a_longer_one_includes_cost_nothing(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig, full_only, 1, 4);
	hold(&rig, STRATUM_HOST, 0, 0, 5);
	rig.ask.local_tokens = 20;
	rig.ask.credits = 3;
	assert_string_equal(plan(&rig), "32: F5 F6 F7; 28:; 24:");
	close_rig(&rig);
}

/* Device holds history to 32 and one checkpoint at 16: of 32 the checkpoint alone is missing. */
static void A3_4_history_behind_the_last_checkpoint_is_not_asked_for_again(void **state)
{
	static const struct group_spec specs[] = { { "F", GROUP_FULL, 4, 0, 1 },
						   { "M", GROUP_STATE, 16, 0, 1 } };
	struct rig                     rig;

	(void)state;
	open_rig(&rig, specs, 2, 16);
	hold(&rig, STRATUM_DEVICE, 0, 0, 2);
	hold(&rig, STRATUM_DEVICE, 1, 0, 1);
	rig.ask.local_tokens = 16;
	rig.ask.bound_tokens = 40;
	assert_string_equal(plan(&rig), "32: M1");
	rig.ask.bound_tokens = 50;
	assert_string_equal(plan(&rig), "48: F2.0 F2.1 F2.2 F2.3 M2; 32: M1");
	close_rig(&rig);
}

static void A3_4_what_either_stratum_holds_is_not_asked_for(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig, full_state, 2, 4);
	hold(&rig, STRATUM_DEVICE, 0, 0, 2);
	hold(&rig, STRATUM_HOST, 0, 1, 4);
	hold(&rig, STRATUM_HOST, 0, 5, 6);
	hold(&rig, STRATUM_DEVICE, 0, 6, 7);
	rig.ask.credits = 3;
	assert_string_equal(plan(&rig), "32: F4 F7 M7");
	rig.view.held_in = HELD_DEVICE;
	rig.ask.credits = 6;
	assert_string_equal(plan(&rig), "32: F2 F3 F4 F5 F7 M7");
	close_rig(&rig);
}

/* A window of 5 over blocks of 2 needs the two before a boundary, wherever the page begins. */
static void a_window_asks_for_its_lookback_alone(void **state)
{
	static const struct group_spec specs[] = { { "F", GROUP_FULL, 8, 0, 1 },
						   { "S", GROUP_WINDOW, 2, 5, 1 } };
	static const struct group_spec wide[] = { { "S", GROUP_WINDOW, 4, 10, 1 } };
	static const struct group_spec none[] = { { "S", GROUP_WINDOW, 4, 1, 1 } };
	struct rig                     rig;

	(void)state;
	open_rig(&rig, specs, 2, 8);
	rig.ask.bound_tokens = 16;
	assert_string_equal(plan(&rig), "16: F0 F1 S1.2 S1.3; 8: S0.2 S0.3");
	close_rig(&rig);
	/* Three blocks of lookback: each shorter boundary adds the one that is not shared. */
	open_rig(&rig, wide, 1, 4);
	hold(&rig, STRATUM_HOST, 0, 3, 4);
	rig.ask.bound_tokens = 24;
	assert_string_equal(plan(&rig), "24: S4 S5; 20: S2; 16: S1; 12: S0; 8:; 4:");
	close_rig(&rig);
	/* A window of 1 needs nothing: every boundary is there. */
	open_rig(&rig, none, 1, 4);
	assert_string_equal(plan(&rig), "covered");
	close_rig(&rig);
}

/* --- tails ------------------------------------------------------------------------------------ */

static void A3_2_tails_and_page_boundaries_are_one_order(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig, full_state, 2, 4);
	add_tail(&rig, 31);
	add_tail(&rig, 26);
	add_tail(&rig, 25);
	hold(&rig, STRATUM_HOST, 0, 0, 6);
	hold(&rig, STRATUM_HOST, 1, 4, 5);
	rig.ask.local_tokens = 20;
	rig.ask.bound_tokens = 31;
	assert_string_equal(plan(&rig), "31: F6 F7t M7t; 28: M6; 26: F6t M6t; 25: F6t M6t; 24: M5");
	rig.ask.credits = 6;
	assert_string_equal(plan(&rig), "31: F6 F7t M7t; 28: M6; 26: F6t M6t");
	rig.ask.credits = 2;
	assert_string_equal(plan(&rig), "28: F6 M6");
	close_rig(&rig);
}

/* Whole blocks of a tail page bear the tail's name too; what is held of it is not asked for. */
static void A3_15_a_tails_blocks_bear_the_tails_name(void **state)
{
	static const struct group_spec specs[] = { { "F", GROUP_FULL, 2, 0, 1 },
						   { "M", GROUP_STATE, 8, 0, 1 } };
	struct rig                     rig;
	struct kvs_key                 asked, published;
	uint32_t                       cell;

	(void)state;
	open_rig(&rig, specs, 2, 8);
	hold(&rig, STRATUM_HOST, 0, 0, 2);
	add_tail(&rig, 13);
	rig.ask.bound_tokens = 13;
	pages_add(&rig.pages, &rig.space, &rig.tails[0].hash, 1, STRATUM_HOST, 1);
	assert_string_equal(plan(&rig), "13: F1.0t F1.2t M1t; 8: M0");
	query_key_name(&rig.query, &rig.ask, 1, &asked);
	cell = pages_add(&rig.pages, &rig.space, &rig.tails[0].hash, 2, STRATUM_HOST, 1);
	pages_key(&rig.pages, cell, &published);
	assert_memory_equal(&asked, &published, sizeof(asked));
	query_key_name(&rig.query, &rig.ask, 3, &asked);
	cell = pages_add(&rig.pages, &rig.space, &rig.hashes[0], 4, STRATUM_HOST, 1);
	pages_key(&rig.pages, cell, &published);
	assert_memory_equal(&asked, &published, sizeof(asked));
	close_rig(&rig);
}

/* --- limits ----------------------------------------------------------------------------------- */

static void A3_16_keys_and_lookahead_are_limited_and_counted(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig, full_state, 2, 4);
	rig.limits.key_max = 5;
	assert_string_equal(plan(&rig), "16: F0 F1 F2 F3 M3");
	assert_int_equal(rig.query.counts.cut_keys, 4 + 3);
	assert_int_equal(rig.query.counts.cut_credits, 0);
	assert_int_equal(rig.query.counts.cut_lookahead, 0);
	rig.limits.key_max = 100;
	rig.limits.lookahead_tokens = 11;
	assert_string_equal(plan(&rig), "8: F0 F1 M1; 4: M0");
	assert_int_equal(rig.query.counts.cut_lookahead, 1);
	assert_int_equal(query_reach(&rig.limits, 4, 32), 15);
	assert_int_equal(query_reach(&rig.limits, 30, 32), 32);
	add_tail(&rig, 13);
	add_tail(&rig, 11);
	assert_string_equal(plan(&rig), "11: F0 F1 F2t M2t; 8: M1; 4: M0");
	close_rig(&rig);
}

/* Four blocks of one parent are four credits. */
static void A3_17_a_key_costs_a_credit_whatever_its_packing(void **state)
{
	static const struct group_spec packed[] = { { "F", GROUP_FULL, 2, 0, 4 } };
	struct rig                     rig;

	(void)state;
	open_rig(&rig, packed, 1, 8);
	rig.ask.bound_tokens = 8;
	rig.ask.credits = 3;
	assert_string_equal(plan(&rig), "credits");
	rig.ask.credits = 4;
	assert_string_equal(plan(&rig), "8: F0.0 F0.1 F0.2 F0.3");
	close_rig(&rig);
}

static void A3_18_no_boundary_within_the_budget_is_a_bypass_for_credits(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig, full_state, 2, 4);
	rig.ask.credits = 1;
	assert_string_equal(plan(&rig), "credits");
	assert_int_equal(rig.query.key_count, 0);
	assert_int_equal(rig.query.boundary_count, 0);
	rig.ask.credits = 0;
	assert_string_equal(plan(&rig), "credits");
	rig.ask.credits = 2;
	assert_string_equal(plan(&rig), "4: F0 M0");
	close_rig(&rig);
}

/* --- input and mistakes ----------------------------------------------------------------------- */

static void check_refused(const struct query_limits *limits, const char *sentence)
{
	struct groups    groups;
	struct query     query;
	struct kvs_error err = { 0 };

	assert_int_equal(groups_make(full_state, 2, 4, &groups, NULL), 0);
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

static void plan_it(void *rig)
{
	plan(rig);
}

static void mistakes_are_panics(void **state)
{
	struct rig rig;

	(void)state;
	open_rig(&rig, full_only, 1, 4);
	rig.ask.bound_tokens = 36;
	assert_true(death_panics(plan_it, &rig, NULL, 0));
	rig.ask.bound_tokens = 32;
	add_tail(&rig, 5);
	add_tail(&rig, 6);
	assert_true(death_panics(plan_it, &rig, NULL, 0));
	rig.ask.tail_count = 0;
	add_tail(&rig, 8);
	assert_true(death_panics(plan_it, &rig, NULL, 0));
	rig.ask.tail_count = TAILS + 1;
	assert_true(death_panics(plan_it, &rig, NULL, 0));
	close_rig(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A3_1_a_local_hit_at_the_bound_asks_for_nothing),
		cmocka_unit_test(A3_1_an_extension_below_the_minimum_asks_for_nothing),
		cmocka_unit_test(A3_1_no_boundary_behind_the_hit_asks_for_nothing),
		cmocka_unit_test(A3_14_only_boundaries_beyond_the_local_hit_are_considered),
		cmocka_unit_test(a_boundary_that_is_there_ends_the_plan),
		cmocka_unit_test(A3_3_the_longest_boundary_comes_first_and_old_checkpoints_last),
		cmocka_unit_test(A3_3_a_fallback_adds_all_that_it_misses_or_nothing),
		cmocka_unit_test(A3_3_boundaries_that_a_longer_one_includes_cost_nothing),
		cmocka_unit_test(A3_4_history_behind_the_last_checkpoint_is_not_asked_for_again),
		cmocka_unit_test(A3_4_what_either_stratum_holds_is_not_asked_for),
		cmocka_unit_test(a_window_asks_for_its_lookback_alone),
		cmocka_unit_test(A3_2_tails_and_page_boundaries_are_one_order),
		cmocka_unit_test(A3_15_a_tails_blocks_bear_the_tails_name),
		cmocka_unit_test(A3_16_keys_and_lookahead_are_limited_and_counted),
		cmocka_unit_test(A3_17_a_key_costs_a_credit_whatever_its_packing),
		cmocka_unit_test(A3_18_no_boundary_within_the_budget_is_a_bypass_for_credits),
		cmocka_unit_test(limits_that_make_no_sense_are_refused),
		cmocka_unit_test(mistakes_are_panics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
