/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a ticket's edges: what is missing panics, and the document shows what is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "death.h"
#include "transfer/parts.h"
#include "hoist.h"

#define TEXT_BYTES 4096u

struct attempt {
	struct hoist      hoist;
	enum ticket_state from;
	enum ticket_event on;
};

static void step(void *arg)
{
	struct attempt *const attempt = arg;
	struct ticket *const  ticket = ticket_take(attempt->hoist.transfer, OP_GET);

	ticket->state = attempt->from;
	ticket_step(attempt->hoist.transfer, ticket, attempt->on, NULL);
}

/* Whether the printed table has an edge from this state on this event. */
static bool is_printed(const char *table, enum ticket_state from, enum ticket_event on)
{
	char        line[128], want_from[32], want_on[32];
	const char *at = table;

	snprintf(want_from, sizeof(want_from), "%s -> ", ticket_state_name(from));
	snprintf(want_on, sizeof(want_on), " on %s", ticket_event_name(on));
	while (sscanf(at, "%127[^\n]", line) == 1) {
		const size_t length = strlen(line);

		if (strncmp(line, want_from, strlen(want_from)) == 0 &&
		    strcmp(line + length - strlen(want_on), want_on) == 0)
			return true;
		at += length + 1;
	}
	return false;
}

static void every_missing_edge_panics_and_says_which(void **state)
{
	static struct attempt attempt;
	char                  table[TEXT_BYTES], said[512], want[128];
	uint32_t              missing = 0, present = 0;
	int                   from, on;

	(void)state;
	hoist_open_plain(&attempt.hoist, hoist_full, &hoist_limits);
	ticket_edges_print(table, sizeof(table));
	for (from = 0; from < TICKET_STATE_COUNT; from++) {
		for (on = 0; on < TICKET_EVENT_COUNT; on++) {
			attempt.from = (enum ticket_state)from;
			attempt.on = (enum ticket_event)on;
			if (is_printed(table, attempt.from, attempt.on)) {
				present++;
				continue;
			}
			missing++;
			assert_true(death_panics(step, &attempt, said, sizeof(said)));
			snprintf(want, sizeof(want), "no edge from %s on %s",
				 ticket_state_name(attempt.from),
				 ticket_event_name(attempt.on));
			assert_non_null(strstr(said, want));
		}
	}
	assert_int_equal(missing + present, TICKET_STATE_COUNT * TICKET_EVENT_COUNT);
	assert_int_equal(present, 16);
	hoist_close(&attempt.hoist);
}

/* Quarantine ends by a notice only, and what is in flight ends by its fact only. */
static void only_a_notice_leads_out_of_quarantine(void **state)
{
	char table[TEXT_BYTES];
	int  on;

	(void)state;
	ticket_edges_print(table, sizeof(table));
	assert_non_null(strstr(table, "QUARANTINE -> FREE on NOTICE\n"));
	assert_non_null(strstr(table, "QUARANTINE -> QUARANTINE on DETACH\n"));
	for (on = 0; on < TICKET_EVENT_COUNT; on++) {
		assert_int_equal(is_printed(table, TICKET_QUARANTINE, (enum ticket_event)on),
				 on == TICKET_ON_NOTICE || on == TICKET_ON_DETACH);
	}
}

static void read_document(const char *path, char *ret_text, size_t text_bytes)
{
	FILE *const file = fopen(path, "r");
	size_t      used;

	assert_non_null(file);
	used = fread(ret_text, 1, text_bytes - 1, file);
	assert_int_equal(ferror(file), 0);
	assert_true(used < text_bytes - 1);
	ret_text[used] = '\0';
	fclose(file);
}

/* The lines between the fences of a document. */
static char *edges_of(const char *path)
{
	static const char fence[] = "```edges\n";
	static char       document[4 * TEXT_BYTES];
	char             *begin, *end;

	read_document(path, document, sizeof(document));
	begin = strstr(document, fence);
	assert_non_null(begin);
	begin += strlen(fence);
	end = strstr(begin, "```");
	assert_non_null(end);
	*end = '\0';
	return begin;
}

static void the_document_shows_the_table_as_it_is(void **state)
{
	char table[TEXT_BYTES];

	(void)state;
	ticket_edges_print(table, sizeof(table));
	assert_string_equal(edges_of(SOURCE_ROOT "/docs/design/ticket.md"), table);
}

/* Each line of `lines` is one of the table, in its order; how many. */
static uint32_t expect_part(const char *table, char *lines)
{
	uint32_t count = 0;
	char    *rest = NULL;
	char    *line;

	for (line = strtok_r(lines, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		table = strstr(table, line);
		assert_non_null(table);
		assert_int_equal(table[strlen(line)], '\n');
		count++;
	}
	return count;
}

static void the_documents_of_both_transactions_share_the_table(void **state)
{
	char     table[TEXT_BYTES];
	uint32_t edges = 0;
	uint32_t parts;
	size_t   i;

	(void)state;
	ticket_edges_print(table, sizeof(table));
	for (i = 0; i < strlen(table); i++)
		edges += table[i] == '\n';
	parts = expect_part(table, edges_of(SOURCE_ROOT "/docs/design/read.md"));
	parts += expect_part(table, edges_of(SOURCE_ROOT "/docs/design/write.md"));
	/* A notice ends both. */
	assert_int_equal(parts, edges + 1);
}

static void a_short_buffer_gets_the_beginning(void **state)
{
	char table[TEXT_BYTES], start[40];

	(void)state;
	ticket_edges_print(table, sizeof(table));
	memset(start, 'x', sizeof(start));
	ticket_edges_print(start, sizeof(start) - 1);
	assert_int_equal(strlen(start), sizeof(start) - 2);
	assert_int_equal(start[sizeof(start) - 1], 'x');
	assert_memory_equal(start, table, sizeof(start) - 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_missing_edge_panics_and_says_which),
		cmocka_unit_test(only_a_notice_leads_out_of_quarantine),
		cmocka_unit_test(the_document_shows_the_table_as_it_is),
		cmocka_unit_test(the_documents_of_both_transactions_share_the_table),
		cmocka_unit_test(a_short_buffer_gets_the_beginning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
