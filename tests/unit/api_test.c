/* SPDX-License-Identifier: Apache-2.0 */
/* Every code has its own sentence; unknown codes have one too. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <kvstrata/kvstrata.h>

#define UNKNOWN "unknown error code"

static void own_codes_have_sentences(void **state)
{
	(void)state;
	assert_string_equal(kvs_strerror(KVS_E_FULL), "a bounded queue, table or arena is full");
#define CHECK(name, value, text) assert_string_equal(kvs_strerror(value), text);
	KVS_ERRORS(CHECK)
#undef CHECK
}

static void errno_codes_pass_through(void **state)
{
	(void)state;
	assert_string_equal(kvs_strerror(-ENOENT), "No such file or directory");
	assert_string_equal(kvs_strerror(0), "Success");
}

static void unknown_codes_have_a_sentence(void **state)
{
	const int codes[] = { 1, INT_MAX, INT_MIN, -4095, -2500, -1999 };
	size_t    i;

	(void)state;
	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		assert_string_equal(kvs_strerror(codes[i]), UNKNOWN);
}

static void version_has_three_numbers(void **state)
{
	(void)state;
	assert_string_equal(kvs_version(), PROJECT_VERSION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(own_codes_have_sentences),
		cmocka_unit_test(errno_codes_pass_through),
		cmocka_unit_test(unknown_codes_have_a_sentence),
		cmocka_unit_test(version_has_three_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
