/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a run, as the document shows it.  What runs do, model/prefetch asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ctrl/prefetch_run.h"

#define TEXT_BYTES 1024

static void read_document(char *ret_text, size_t text_bytes)
{
	FILE *const file = fopen(SOURCE_ROOT "/docs/design/controllers.md", "r");
	size_t      used;

	assert_non_null(file);
	used = fread(ret_text, 1, text_bytes - 1, file);
	assert_int_equal(ferror(file), 0);
	assert_true(used < text_bytes - 1);
	ret_text[used] = '\0';
	fclose(file);
}

static void the_document_shows_the_table_as_it_is(void **state)
{
	static const char fence[] = "```edges\n";
	static char       document[16 * TEXT_BYTES];
	char              table[TEXT_BYTES];
	char             *begin, *end;

	(void)state;
	prefetch_run_edges_print(table, sizeof(table));
	read_document(document, sizeof(document));
	begin = strstr(document, fence);
	assert_non_null(begin);
	begin += strlen(fence);
	end = strstr(begin, "```");
	assert_non_null(end);
	*end = '\0';
	assert_string_equal(begin, table);
}

/* From the edge into DRAIN on there is a result, and no edge on which anything could be published. */
static void never_late_the_only_way_out_of_drain_is_quiet(void **state)
{
	char        table[TEXT_BYTES];
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
	char table[TEXT_BYTES], start[20];

	(void)state;
	prefetch_run_edges_print(table, sizeof(table));
	prefetch_run_edges_print(start, sizeof(start));
	assert_int_equal(strlen(start), sizeof(start) - 1);
	assert_int_equal(strncmp(start, table, sizeof(start) - 1), 0);
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
