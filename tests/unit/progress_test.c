/* SPDX-License-Identifier: Apache-2.0 */
/* What the progress bar says, and that it says nothing where nobody looks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "app/progress.h"

#define NS_PER_S UINT64_C(1000000000)

static const struct progress replaying = { .title = "replaying",
					   .unit = "req",
					   .start_ns = 5 * NS_PER_S };

static void line_tells_rate_and_time_left(void **state)
{
	char line[PROGRESS_LINE_BYTES];

	(void)state;
	assert_string_equal(
		progress_line(&replaying, 0.5, 6144, 9 * NS_PER_S, line),
		"replaying 6,144 req  [##########----------]  50 %  1,536 req/s  4.0 s left");
	assert_string_equal(progress_line(&replaying, 0.01, 10, 15 * NS_PER_S, line),
			    "replaying 10 req  [--------------------]  1 %  1 req/s  16 min left");
}

static void line_survives_both_ends(void **state)
{
	char line[PROGRESS_LINE_BYTES];

	(void)state;
	assert_string_equal(progress_line(&replaying, 0, 0, 5 * NS_PER_S, line),
			    "replaying 0 req  [--------------------]  0 %  0 req/s  ?");
	assert_string_equal(progress_line(&replaying, 1.5, 8, 7 * NS_PER_S, line),
			    "replaying 8 req  [####################]  100 %  4 req/s  0.0 s left");
}

static void unwanted_bar_draws_nothing(void **state)
{
	struct progress progress;

	(void)state;
	progress_start(&progress, "replaying", "req", false, 0);
	progress_update(&progress, 0.5, 1, NS_PER_S);
	assert_int_equal(progress.drawn_ns, 0);
	progress_finish(&progress);
}

static void bar_is_drawn_ten_times_a_second(void **state)
{
	struct progress progress = replaying;

	(void)state;
	progress.shown = true;
	progress_update(&progress, 0.1, 1, 6 * NS_PER_S);
	progress_update(&progress, 0.2, 2, 6 * NS_PER_S + NS_PER_S / 20);
	assert_true(progress.drawn_ns == 6 * NS_PER_S);
	progress_update(&progress, 0.3, 3, 6 * NS_PER_S + NS_PER_S / 10);
	assert_true(progress.drawn_ns == 6 * NS_PER_S + NS_PER_S / 10);
	progress_clear(&progress);
	assert_true(progress.shown);
	progress_update(&progress, 0.4, 4, 6 * NS_PER_S + NS_PER_S / 9);
	assert_true(progress.drawn_ns == 6 * NS_PER_S + NS_PER_S / 9);
	progress_finish(&progress);
	assert_false(progress.shown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_tells_rate_and_time_left),
		cmocka_unit_test(line_survives_both_ends),
		cmocka_unit_test(unwanted_bar_draws_nothing),
		cmocka_unit_test(bar_is_drawn_ten_times_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
