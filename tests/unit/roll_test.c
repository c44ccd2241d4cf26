/* SPDX-License-Identifier: Apache-2.0 */
/* Rolls of names: order, places that are kept, and what is forgotten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transfer/roll.h"

static const struct kvs_namespace space = { { 1 } };
static const struct kvs_namespace other = { { 2 } };

static struct prefix_hash page(uint8_t number)
{
	return (struct prefix_hash){ { number } };
}

static bool add(struct roll *roll, uint8_t number, uint32_t column)
{
	const struct prefix_hash hash = page(number);
	const bool               kept = roll_add(roll, &space, &hash, column);

	roll_audit(roll);
	return kept;
}

static void erase(struct roll *roll, uint8_t number, uint32_t column)
{
	const struct prefix_hash hash = page(number);

	roll_erase(roll, &space, &hash, column);
	roll_audit(roll);
}

static uint64_t columns(const struct roll *roll, uint8_t number)
{
	const struct prefix_hash hash = page(number);

	return roll_columns(roll, &space, &hash);
}

static void the_oldest_goes_first(void **state)
{
	struct roll roll;

	(void)state;
	assert_int_equal(roll_open(&roll, 3), 0);
	assert_true(add(&roll, 1, 0));
	assert_true(add(&roll, 1, 63));
	assert_true(add(&roll, 2, 5));
	assert_int_equal(columns(&roll, 1), 1 | UINT64_C(1) << 63);
	assert_false(add(&roll, 3, 1));
	assert_true(columns(&roll, 1) == UINT64_C(1) << 63);
	assert_false(add(&roll, 3, 2));
	assert_true(columns(&roll, 1) == 0);
	assert_int_equal(columns(&roll, 3), 6);
	roll_close(&roll);
}

static void a_name_that_is_there_keeps_its_place(void **state)
{
	struct roll roll;

	(void)state;
	assert_int_equal(roll_open(&roll, 2), 0);
	add(&roll, 1, 0);
	add(&roll, 2, 0);
	assert_true(add(&roll, 1, 0));
	assert_false(add(&roll, 3, 0));
	assert_true(columns(&roll, 1) == 0);
	assert_int_equal(columns(&roll, 2), 1);
	roll_close(&roll);
}

static void the_last_name_of_a_page_may_go_for_a_new_one_of_it(void **state)
{
	struct roll roll;

	(void)state;
	assert_int_equal(roll_open(&roll, 1), 0);
	add(&roll, 1, 0);
	assert_false(add(&roll, 1, 1));
	assert_int_equal(columns(&roll, 1), 2);
	roll_close(&roll);
}

static void names_are_erased_one_by_one_and_forgotten_at_once(void **state)
{
	const struct prefix_hash one = page(1);
	struct roll              roll;

	(void)state;
	assert_int_equal(roll_open(&roll, 4), 0);
	add(&roll, 1, 0);
	add(&roll, 1, 1);
	add(&roll, 2, 1);
	assert_true(roll_columns(&roll, &other, &one) == 0);
	erase(&roll, 3, 0);
	erase(&roll, 2, 0);
	erase(&roll, 1, 1);
	assert_int_equal(columns(&roll, 1), 1);
	assert_int_equal(roll.age.count, 2);
	roll_clear(&roll);
	roll_audit(&roll);
	assert_int_equal(roll.age.count, 0);
	assert_true(columns(&roll, 1) == 0);
	roll_close(&roll);
}

static void a_roll_of_none_takes_none(void **state)
{
	struct roll roll;

	(void)state;
	assert_int_equal(roll_open(&roll, 0), 0);
	assert_true(add(&roll, 1, 0));
	erase(&roll, 1, 0);
	assert_true(columns(&roll, 1) == 0);
	assert_int_equal(roll_bytes(&roll), 0);
	roll_clear(&roll);
	roll_close(&roll);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_oldest_goes_first),
		cmocka_unit_test(a_name_that_is_there_keeps_its_place),
		cmocka_unit_test(the_last_name_of_a_page_may_go_for_a_new_one_of_it),
		cmocka_unit_test(names_are_erased_one_by_one_and_forgotten_at_once),
		cmocka_unit_test(a_roll_of_none_takes_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
