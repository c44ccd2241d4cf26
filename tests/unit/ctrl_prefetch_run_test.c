/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a run, as the document shows it.  What runs do, model/prefetch asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ctrl/prefetch_run.h"
#include "edges.h"

static void the_document_shows_the_table_as_it_is(void **state)
{
	(void)state;
	edges_expect_document(SOURCE_ROOT "/docs/design/controllers.md", prefetch_run_edges_print);
}

/* From the edge into DRAIN on there is a result, and no edge on which anything could be published. */
static void never_late_the_only_way_out_of_drain_is_quiet(void **state)
{
	char        table[EDGES_BYTES];
	const char *line;
	int         out = 0;

	(void)state;
	prefetch_run_edges_print(table, sizeof(table));
	for (line = table; (line = strstr(line, "DRAIN -> ")); line++)
		out++;
	assert_int_equal(out, 1);
	assert_non_null(strstr(table, "DRAIN -> OVER on QUIET\n"));
	assert_null(strstr(table, "OVER -> "));
}

static void a_short_buffer_gets_the_beginning(void **state)
{
	(void)state;
	edges_expect_cut(prefetch_run_edges_print);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_document_shows_the_table_as_it_is),
		cmocka_unit_test(never_late_the_only_way_out_of_drain_is_quiet),
		cmocka_unit_test(a_short_buffer_gets_the_beginning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
