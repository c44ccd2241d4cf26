/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a request's edges: what is missing panics, and the document shows what is there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "death.h"
#include "edges.h"
#include "sched/parts.h"
#include "sched_rig.h"

static struct srig rig;

struct attempt {
	enum request_state from;
	enum request_event on;
};

static void step(void *arg)
{
	const struct attempt *const attempt = arg;
	struct request *const       request = &rig.sched->requests[0];

	request->state = attempt->from;
	request_step(rig.sched, request, attempt->on);
}

static bool is_printed(const char *table, enum request_state from, enum request_event on)
{
	return edges_has(table, request_state_name(from), request_event_name(on));
}

static void every_missing_edge_panics_and_says_which(void **state)
{
	const struct sched_options options = srig_options();
	char                       table[EDGES_BYTES], said[512], want[128];
	uint32_t                   present = 0;
	int                        from, on;

	(void)state;
	srig_open(&rig, &options);
	request_edges_print(table, sizeof(table));
	for (from = 0; from < REQUEST_STATE_COUNT; from++) {
		for (on = 0; on < REQUEST_EVENT_COUNT; on++) {
			struct attempt attempt = { (enum request_state)from, (enum request_event)on };

			if (is_printed(table, attempt.from, attempt.on)) {
				present++;
				continue;
			}
			assert_true(death_panics(step, &attempt, said, sizeof(said)));
			snprintf(want, sizeof(want), "no edge from %s on %s",
				 request_state_name(attempt.from), request_event_name(attempt.on));
			assert_non_null(strstr(said, want));
		}
	}
	assert_int_equal(present, 33);
	srig_close(&rig);
}

/* A request that waits for storage computes nothing, and one that was retracted asks no store. */
static void nothing_leads_from_a_wait_to_a_batch_nor_from_retraction_to_a_wait(void **state)
{
	char table[EDGES_BYTES];
	int  on;

	(void)state;
	request_edges_print(table, sizeof(table));
	for (on = 0; on < REQUEST_EVENT_COUNT; on++) {
		const enum request_event event = (enum request_event)on;

		assert_int_equal(is_printed(table, REQUEST_PREFETCHING, event),
				 event == REQUEST_ON_BOOTSTRAPPED || event == REQUEST_ON_RESUME ||
					 event == REQUEST_ON_RESUME_PEER || event == REQUEST_ON_ABORT);
		/* Everybody alive can be aborted. */
		assert_int_equal(is_printed(table, (enum request_state)(on % REQUEST_STATE_COUNT),
					    REQUEST_ON_ABORT),
				 on % REQUEST_STATE_COUNT != REQUEST_FREE &&
					 on % REQUEST_STATE_COUNT != REQUEST_FINISHED);
	}
	assert_false(is_printed(table, REQUEST_RETRACTED, REQUEST_ON_ASK));
}

static void the_document_shows_the_table_as_it_is(void **state)
{
	(void)state;
	edges_expect_document(SOURCE_ROOT "/docs/design/scheduler.md", request_edges_print);
}

static void a_short_buffer_gets_the_beginning(void **state)
{
	(void)state;
	edges_expect_cut(request_edges_print);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_missing_edge_panics_and_says_which),
		cmocka_unit_test(nothing_leads_from_a_wait_to_a_batch_nor_from_retraction_to_a_wait),
		cmocka_unit_test(the_document_shows_the_table_as_it_is),
		cmocka_unit_test(a_short_buffer_gets_the_beginning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
