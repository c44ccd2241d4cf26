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
#include "sched/parts.h"
#include "sched_rig.h"

#define TEXT_BYTES 4096u

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

/* Whether the printed table has an edge from this state on this event. */
static bool is_printed(const char *table, enum request_state from, enum request_event on)
{
	char        line[128], want_from[32], want_on[32];
	const char *at = table;

	snprintf(want_from, sizeof(want_from), "%s -> ", request_state_name(from));
	snprintf(want_on, sizeof(want_on), " on %s", request_event_name(on));
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
	const struct sched_options options = srig_options();
	char                       table[TEXT_BYTES], said[512], want[128];
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
	char table[TEXT_BYTES];
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

static void read_document(char *ret_text, size_t text_bytes)
{
	FILE *const file = fopen(SOURCE_ROOT "/docs/design/scheduler.md", "r");
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
	static char       document[8 * TEXT_BYTES];
	char              table[TEXT_BYTES];
	char             *begin, *end;

	(void)state;
	request_edges_print(table, sizeof(table));
	read_document(document, sizeof(document));
	begin = strstr(document, fence);
	assert_non_null(begin);
	begin += strlen(fence);
	end = strstr(begin, "```");
	assert_non_null(end);
	*end = '\0';
	assert_string_equal(begin, table);
}

static void a_short_buffer_gets_the_beginning(void **state)
{
	char table[TEXT_BYTES], start[40];

	(void)state;
	request_edges_print(table, sizeof(table));
	memset(start, 'x', sizeof(start));
	request_edges_print(start, sizeof(start) - 1);
	assert_int_equal(strlen(start), sizeof(start) - 2);
	assert_memory_equal(start, table, sizeof(start) - 2);
	assert_int_equal(start[sizeof(start) - 1], 'x');
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
