/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"

static void error_names_field_value_rule(void **state)
{
	struct kvs_error err;

	(void)state;
	assert_int_equal(err_set(&err, KVS_E_INVALID, "x: \"%s\" is wrong", "v"), KVS_E_INVALID);
	assert_string_equal(err.message, "x: \"v\" is wrong");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(error_names_field_value_rule) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
