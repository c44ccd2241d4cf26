/* SPDX-License-Identifier: Apache-2.0 */
/* Watermarks as a user writes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "app/replay_marks.h"

static void each_pair_becomes_its_marks(void **state)
{
	struct watermarks marks;

	(void)state;
	assert_int_equal(replay_marks_parse("jobs=48/32,bytes=1GiB/512MiB,age=2s/1s", &marks, NULL), 0);
	assert_int_equal(marks.jobs_high, 48);
	assert_int_equal(marks.jobs_low, 32);
	assert_int_equal(marks.bytes_high, UINT64_C(1) << 30);
	assert_int_equal(marks.bytes_low, UINT64_C(1) << 29);
	assert_int_equal(marks.age_high_ns, UINT64_C(2000000000));
	assert_int_equal(marks.age_low_ns, UINT64_C(1000000000));
}

static void what_is_not_named_closes_nothing(void **state)
{
	const struct watermarks none = { 0 };
	struct watermarks       marks;

	(void)state;
	assert_int_equal(replay_marks_parse("none", &marks, NULL), 0);
	assert_memory_equal(&marks, &none, sizeof(marks));
	assert_int_equal(replay_marks_parse("age=1ms/0", &marks, NULL), 0);
	assert_int_equal(marks.age_high_ns, 1000000);
	assert_int_equal(marks.jobs_high + marks.bytes_high, 0);
}

static void refuses(const char *text, const char *sentence)
{
	struct watermarks marks;
	struct kvs_error  err;

	assert_int_equal(replay_marks_parse(text, &marks, &err), KVS_E_INVALID);
	assert_string_equal(err.message, sentence);
}

static void anything_else_is_refused_with_its_item(void **state)
{
#define USE "use jobs=48/32, bytes=1GiB/512MiB or age=2s/1s"
#define PAIR "use HIGH/LOW, a high mark above 0 and a low one below it"
	(void)state;
	refuses("", "watermarks: \"\": " USE);
	refuses("jobs", "watermarks: \"jobs\": " USE);
	refuses("jobs=4", "watermarks: \"jobs=4\": " USE);
	refuses("queue=4/2", "watermarks: \"queue=4/2\": " USE);
	refuses("jobs=4/x", "watermarks: \"jobs=4/x\": " USE);
	refuses("jobs=4294967296/1", "watermarks: \"jobs=4294967296/1\": " USE);
	refuses("age=2/1", "watermarks: \"age=2/1\": " USE);
	refuses("jobs=0/0", "watermarks: \"jobs=0/0\": " PAIR);
	refuses("jobs=4/4", "watermarks: \"jobs=4/4\": " PAIR);
	refuses("age=1s/2s,jobs=4/2", "watermarks: \"age=1s/2s\": " PAIR);
	refuses("jobs=4/2,jobs=4/2", "watermarks: \"jobs=4/2\": is given twice");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_pair_becomes_its_marks),
		cmocka_unit_test(what_is_not_named_closes_nothing),
		cmocka_unit_test(anything_else_is_refused_with_its_item),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
