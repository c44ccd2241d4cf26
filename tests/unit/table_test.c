/* SPDX-License-Identifier: Apache-2.0 */
/* Block tables of one group: what a demand adds, what is in reserve, what expires. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "coord/table.h"

#define SLOTS 16u

static struct groups groups; /* 0: full, 1: window of 10, 2: state; blocks of 4 */

static const struct group_spec specs[] = {
	{ .name = "full", .kind = GROUP_FULL, .block_tokens = 4, .packing = 1 },
	{ .name = "window", .kind = GROUP_WINDOW, .block_tokens = 4, .window_tokens = 10, .packing = 1 },
	{ .name = "state", .kind = GROUP_STATE, .block_tokens = 4, .packing = 1 },
};

static int make_groups(void **state)
{
	(void)state;
	return groups_make(specs, ARRAY_COUNT(specs), 4, &groups, NULL);
}

/* Do as an admission does; block numbers count from 1. */
static void grow(struct table *table, const struct group *group, struct demand demand)
{
	struct growth growth;
	uint32_t      i;

	assert_int_equal(table_plan(table, group, &demand, &growth, NULL), 0);
	table_push_holes(table, growth.begin - table->count);
	for (i = 0; i < growth.blocks; i++)
		table_push(table, table->count + 1);
	table->available = growth.available;
	table_audit(table, group);
}

static struct table filled(uint32_t *slots, uint32_t tokens)
{
	struct table table;

	table_init(&table, slots, SLOTS);
	grow(&table, &groups.group[0], demand_dense(tokens, 0));
	return table;
}

static void a_new_table_is_empty(void **state)
{
	uint32_t     slots[SLOTS];
	struct table table;

	(void)state;
	table_init(&table, slots, SLOTS);
	table_audit(&table, &groups.group[0]);
	assert_int_equal(table.count, 0);
	assert_int_equal(table.available, 0);
	assert_int_equal(table.reclaimed, 0);
}

/* Tokens first, more tokens, slots and room afterwards. */
static void a_dense_demand_fills_the_last_block_before_it_takes_another(void **state)
{
	static const struct {
		uint32_t first, more, slots, available;
	} cases[] = {
		{ 4, 0, 1, 0 }, { 3, 0, 1, 1 }, { 3, 1, 1, 0 }, { 2, 7, 3, 3 }, { 0, 0, 0, 0 },
	};
	uint32_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		uint32_t     slots[SLOTS];
		struct table table = filled(slots, cases[i].first);

		grow(&table, &groups.group[0], demand_dense(cases[i].more, 0));
		assert_int_equal(table.count, cases[i].slots);
		assert_int_equal(table.available, cases[i].available);
	}
}

static void a_reserve_is_room_until_it_is_used(void **state)
{
	uint32_t         slots[SLOTS];
	struct table     table = filled(slots, 0);
	struct kvs_error err;

	(void)state;
	grow(&table, &groups.group[0], demand_dense(1, 8));
	assert_int_equal(table.count, 3);
	assert_int_equal(table.available, 11);
	grow(&table, &groups.group[0], demand_dense(0, 8));
	assert_int_equal(table.count, 3);
	assert_int_equal(table_consume(&table, &groups.group[0], 8, &err), 0);
	assert_int_equal(table.available, 3);
	assert_int_equal(table_consume(&table, &groups.group[0], 4, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "group 0 \"full\": tokens: 4 to use, 3 are reserved");
	assert_int_equal(table.available, 3);
}

static void a_sparse_demand_names_its_end_and_leaves_holes(void **state)
{
	uint32_t     slots[SLOTS];
	struct table table;
	uint32_t     i;

	(void)state;
	table_init(&table, slots, SLOTS);
	grow(&table, &groups.group[2], demand_sparse(16, 0, 3));
	assert_int_equal(table.count, 4);
	assert_int_equal(table.available, 0);
	assert_int_equal(table.reclaimed, 3);
	for (i = 0; i < 3; i++)
		assert_int_equal(slots[i], BLOCK_NULL);
	assert_int_equal(slots[3], 4);
	grow(&table, &groups.group[2], demand_sparse(30, 1, 7));
	assert_int_equal(table.count, 8);
	assert_int_equal(table.available, 2);
	/* Holes behind a block are no frontier. */
	assert_int_equal(table.reclaimed, 3);
	assert_int_equal(slots[6], BLOCK_NULL);
	assert_int_equal(slots[7], 8);
}

static void a_sparse_demand_may_go_on_in_a_tails_copy(void **state)
{
	uint32_t     slots[SLOTS];
	struct table table = filled(slots, 6);

	(void)state;
	grow(&table, &groups.group[2], demand_sparse(8, 0, 1));
	assert_int_equal(table.count, 2);
	assert_int_equal(table.available, 0);
}

static void check_refused(const struct table *table, struct demand demand, const char *words)
{
	struct growth    growth = { 99, 99, 99 };
	struct kvs_error err;

	assert_int_equal(table_plan(table, &groups.group[2], &demand, &growth, &err), KVS_E_INVALID);
	assert_ptr_equal(strstr(err.message, "group 2 \"state\": "), err.message);
	assert_non_null(strstr(err.message, words));
	assert_int_equal(growth.blocks, 99);
}

static void a_demand_that_cannot_be_meant_is_refused(void **state)
{
	uint32_t           slots[SLOTS], other_slots[SLOTS];
	const struct table whole = filled(slots, 8), reserved = filled(other_slots, 5);
	struct table       ahead = reserved;

	(void)state;
	ahead.available += 4;
	ahead.count++;
	check_refused(&whole, demand_sparse(0, 8, 2), "tokens: 0");
	check_refused(&whole, demand_sparse(12, 0, 1), "first_slot: 1");
	check_refused(&whole, demand_sparse(12, 0, 3), "first_slot: 3");
	check_refused(&ahead, demand_sparse(16, 0, 3), "available: ");
	check_refused(&reserved, demand_sparse(4, 4, 1), "tokens: the demand ends at 4");
	check_refused(&whole, demand_sparse(SLOTS * 4 + 1, 0, 2), "17 slots");
	check_refused(&whole, demand_dense(SLOTS * 4, 0), "18 slots");
	check_refused(&whole, demand_dense(TOKENS_MAX, 0), "at most");
	check_refused(&whole, demand_dense(UINT32_MAX, UINT32_MAX), "at most");
	check_refused(&whole, demand_sparse(UINT32_MAX, UINT32_MAX, 2), "at most");
}

/* Window of 10, blocks of 4: group, tokens that are computed, slots that expire. */
static void what_no_query_attends_to_expires(void **state)
{
	static const struct {
		uint32_t group, computed, expired;
	} cases[] = {
		{ 0, 1000, 0 }, { 1, 0, 0 },  { 1, 12, 0 }, { 1, 13, 1 },   { 1, 16, 1 },
		{ 1, 17, 2 },   { 2, 4, 0 },  { 2, 5, 1 },  { 2, 16, 3 },   { 2, 17, 4 },
		{ 1, 1000, 4 }, /* not more than there are */
	};
	uint32_t     slots[SLOTS], i;
	struct table table = filled(slots, 16);

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		assert_int_equal(table_expired(&table, &groups.group[cases[i].group],
					       cases[i].computed),
				 cases[i].expired);
	}
	table.reclaimed = 2; /* A frontier never goes back. */
	assert_int_equal(table_expired(&table, &groups.group[1], 0), 2);
}

static void where_the_next_token_goes_nothing_expires(void **state)
{
	uint32_t     slots[SLOTS];
	struct table table = filled(slots, 14);

	(void)state;
	assert_int_equal(table.available, 2);
	assert_int_equal(table_expired(&table, &groups.group[2], 1000), 3);
	table.available += 4; /* a block in reserve */
	assert_int_equal(table_expired(&table, &groups.group[2], 1000), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_table_is_empty),
		cmocka_unit_test(a_dense_demand_fills_the_last_block_before_it_takes_another),
		cmocka_unit_test(a_reserve_is_room_until_it_is_used),
		cmocka_unit_test(a_sparse_demand_names_its_end_and_leaves_holes),
		cmocka_unit_test(a_sparse_demand_may_go_on_in_a_tails_copy),
		cmocka_unit_test(a_demand_that_cannot_be_meant_is_refused),
		cmocka_unit_test(what_no_query_attends_to_expires),
		cmocka_unit_test(where_the_next_token_goes_nothing_expires),
	};

	return cmocka_run_group_tests(tests, make_groups, NULL);
}
