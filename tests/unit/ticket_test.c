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
#include "edges.h"
#include "transfer/parts.h"
#include "hoist.h"

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

static bool is_printed(const char *table, enum ticket_state from, enum ticket_event on)
{
	return edges_has(table, ticket_state_name(from), ticket_event_name(on));
}

static void every_missing_edge_panics_and_says_which(void **state)
{
	static struct attempt attempt;
	char                  table[EDGES_BYTES], said[512], want[128];
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
	char table[EDGES_BYTES];
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

static void the_document_shows_the_table_as_it_is(void **state)
{
	(void)state;
	edges_expect_document(SOURCE_ROOT "/docs/design/ticket.md", ticket_edges_print);
}

static void the_documents_of_both_transactions_share_the_table(void **state)
{
	const uint32_t of_read =
		edges_expect_part(SOURCE_ROOT "/docs/design/read.md", ticket_edges_print);
	const uint32_t of_write =
		edges_expect_part(SOURCE_ROOT "/docs/design/write.md", ticket_edges_print);
	const uint32_t edges =
		edges_expect_part(SOURCE_ROOT "/docs/design/ticket.md", ticket_edges_print);

	(void)state;
	/* A notice ends both. */
	assert_int_equal(of_read + of_write, edges + 1);
}

static void a_short_buffer_gets_the_beginning(void **state)
{
	(void)state;
	edges_expect_cut(ticket_edges_print);
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
