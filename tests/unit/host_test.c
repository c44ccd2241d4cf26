/* SPDX-License-Identifier: Apache-2.0 */
/* Host objects from reservation to the last unlock: what each call says in each state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "inn.h"
#include "named_block.h"

static int setup(void **state)
{
	static struct inn inn;

	inn_init(&inn, 64);
	inn_open(&inn);
	*state = &inn;
	return 0;
}

static int teardown(void **state)
{
	inn_close(*state);
	return 0;
}

static void B1_1_an_object_is_reserved_finished_locked_and_unlocked(void **state)
{
	struct inn *const inn = *state;
	void             *at;

	assert_int_equal(inn_reserve(inn, 1, 5000, 0), 0);
	assert_int_equal(inn_span.bytes, 5000);
	assert_int_equal(inn_span.room, 3 * INN_PAGE);
	at = inn_span.ptr;
	fill(at, 1, 5000);
	assert_int_equal(inn_finish(inn, 1), 0);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_ptr_equal(inn_span.ptr, at);
	assert_true(is_filled(at, 1, 5000));
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), KVS_E_STALE);
}

static void B1_2_what_is_staged_is_missing_for_readers(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), KVS_E_MISSING);
	assert_false(inn_has(inn, 1));
	assert_int_equal(inn_finish(inn, 1), 0);
	assert_true(inn_has(inn, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			B1_1_an_object_is_reserved_finished_locked_and_unlocked, setup, teardown),
		cmocka_unit_test_setup_teardown(B1_2_what_is_staged_is_missing_for_readers, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
