/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities: every rule of the grammar, its limits, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/units.h"

typedef int (*parser)(const char *text, uint64_t *ret_value);

static void accept(parser parse, const char *text, uint64_t expected)
{
	uint64_t value = 1;

	if (parse(text, &value) != 0 || value != expected)
		fail_msg("'%s' gives %llu", text, (unsigned long long)value);
}

static void refuse(parser parse, const char *text)
{
	uint64_t value = 12345;

	if (parse(text, &value) != KVS_E_INVALID || value != 12345)
		fail_msg("'%s' is not refused", text);
}

static void sizes(void **state)
{
	(void)state;
	accept(units_size, "0", 0);
	accept(units_size, "65536", 65536);
	accept(units_size, "65_536", 65536);
	accept(units_size, "64KiB", 65536);
	accept(units_size, "1_024KiB", 1 << 20);
	accept(units_size, "3MiB", 3 << 20);
	accept(units_size, "4GiB", UINT64_C(4) << 30);
	accept(units_size, "1.5GiB", UINT64_C(3) << 29);
	accept(units_size, "0.25TiB", UINT64_C(1) << 38);
	accept(units_size, "0.3KiB", 307);
	accept(units_size, "007", 7);
	accept(units_size, "1.000000KiB", 1024);
}

static void durations(void **state)
{
	(void)state;
	accept(units_duration, "0", 0);
	accept(units_duration, "50ns", 50);
	accept(units_duration, "800us", 800000);
	accept(units_duration, "250ms", 250000000);
	accept(units_duration, "2s", 2000000000);
	accept(units_duration, "1.5s", 1500000000);
	accept(units_duration, "5m", UINT64_C(300000000000));
	accept(units_duration, "0s", 0);
	accept(units_duration, "0.001s", 1000000);
}

static void counts(void **state)
{
	(void)state;
	accept(units_count, "0", 0);
	accept(units_count, "12031", 12031);
	accept(units_count, "12_031", 12031);
}

/* The largest value of each grammar, and the next. */
static void limits(void **state)
{
	(void)state;
	accept(units_count, "9223372036854775807", INT64_MAX);
	refuse(units_count, "9223372036854775808");
	refuse(units_count, "99999999999999999999999999");
	accept(units_size, "9223372036854775807", INT64_MAX);
	accept(units_size, "8388607TiB", UINT64_C(8388607) << 40);
	refuse(units_size, "8388608TiB");
	accept(units_duration, "9223372036.5s", UINT64_C(9223372036500000000));
	refuse(units_duration, "9223372036.9s");
	refuse(units_duration, "9223372037s");
	refuse(units_size, "1.0000001KiB");
}

static void bad_quantities(void **state)
{
	static const char *const bad[] = { "",	       " ",	"-1",	    "+1",    " 1",
					   "1 ",       "KiB",	".",	    ".5KiB", "1.KiB",
					   "1.5.5KiB", "1e3",	"0x10",	    "_1",    "1_",
					   "1__0",     "1_KiB", "1.5_0KiB", "1,000", "nan",
					   "1 KiB",    "1KB",	"1kib",	    "1K",    "1PiB",
					   "1KiBs",    "1\n",	"\xc2\xb2" };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(bad); i++) {
		refuse(units_size, bad[i]);
		refuse(units_duration, bad[i]);
		refuse(units_count, bad[i]);
	}
}

/* What one grammar takes and another does not. */
static void units_belong_to_their_grammar(void **state)
{
	(void)state;
	refuse(units_size, "1.5");
	refuse(units_size, "5s");
	refuse(units_duration, "5");
	refuse(units_duration, "5KiB");
	refuse(units_duration, "5h");
	refuse(units_duration, "5M");
	refuse(units_duration, "1.5ns");
	refuse(units_count, "5KiB");
	refuse(units_count, "1.0");
}

static void text_of_quantities(void **state)
{
	char text[UNITS_TEXT_BYTES];

	(void)state;
	assert_string_equal(units_format_size(0, text), "0 B");
	assert_string_equal(units_format_size(1023, text), "1023 B");
	assert_string_equal(units_format_size(65536, text), "64 KiB");
	assert_string_equal(units_format_size(UINT64_C(3) << 29, text), "1.50 GiB");
	assert_string_equal(units_format_size(UINT64_MAX, text), "16777216.00 TiB");
	assert_string_equal(units_format_count(0, text), "0");
	assert_string_equal(units_format_count(999, text), "999");
	assert_string_equal(units_format_count(12031, text), "12,031");
	assert_string_equal(units_format_count(1000000, text), "1,000,000");
	assert_string_equal(units_format_count(UINT64_MAX, text), "18,446,744,073,709,551,615");
}

/* What is written is what would be read. */
static void exact_text_of_quantities(void **state)
{
	char text[UNITS_TEXT_BYTES];

	(void)state;
	assert_string_equal(units_exact_size(0, text), "0");
	assert_string_equal(units_exact_size(1000, text), "1000");
	assert_string_equal(units_exact_size(65536, text), "64KiB");
	assert_string_equal(units_exact_size(UINT64_C(3) << 29, text), "1536MiB");
	assert_string_equal(units_exact_duration(0, text), "0");
	assert_string_equal(units_exact_duration(1001, text), "1001ns");
	assert_string_equal(units_exact_duration(1500000000, text), "1500ms");
	assert_string_equal(units_exact_duration(UINT64_C(60000000000), text), "60s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(durations),
		cmocka_unit_test(counts),
		cmocka_unit_test(limits),
		cmocka_unit_test(bad_quantities),
		cmocka_unit_test(units_belong_to_their_grammar),
		cmocka_unit_test(text_of_quantities),
		cmocka_unit_test(exact_text_of_quantities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
