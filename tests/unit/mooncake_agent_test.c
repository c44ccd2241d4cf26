/* SPDX-License-Identifier: Apache-2.0 */
/* Agents that work: every verb, lanes side by side, and calls that are refused. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "mooncake/frame.h"
#include "troupe.h"

#define BLOCK ((size_t)4096)
#define ROWS 64u

static int init(void **state)
{
	static struct troupe troupe;

	troupe_init(&troupe, 2);
	troupe_open(&troupe);
	*state = &troupe;
	return 0;
}

static int fini(void **state)
{
	troupe_fini(*state);
	return 0;
}

static int64_t call_one(struct troupe *troupe, uint32_t lane, enum mooncake_verb verb,
			const char *name, size_t offset)
{
	int64_t code = INT64_MIN;
	bool    retired = false;

	assert_int_equal(troupe_call(troupe, lane, verb, name, offset, BLOCK, &code, &retired), 0);
	assert_true(retired);
	return code;
}

static void what_is_put_is_found_read_and_removed(void **state)
{
	struct troupe *troupe = *state;

	memset(troupe->memory, 'a', BLOCK);
	memset(troupe->memory + 2 * BLOCK, 0, BLOCK);
	assert_int_equal(call_one(troupe, 0, MOONCAKE_EXISTS, "one", 0), 0);
	assert_int_equal(call_one(troupe, 1, MOONCAKE_PUT, "one", 0), 0);
	assert_int_equal(call_one(troupe, 0, MOONCAKE_EXISTS, "one", 0), 1);
	assert_int_equal(call_one(troupe, 2, MOONCAKE_GET, "one", 2 * BLOCK), BLOCK);
	assert_memory_equal(troupe->memory, troupe->memory + 2 * BLOCK, BLOCK);
	assert_int_equal(call_one(troupe, 0, MOONCAKE_REMOVE, "one", 0), 0);
	assert_int_equal(call_one(troupe, 0, MOONCAKE_REMOVE, "one", 0), -704);
	assert_int_equal(call_one(troupe, 2, MOONCAKE_GET, "one", 2 * BLOCK), -704);
}

static void a_purge_says_how_many_went(void **state)
{
	struct troupe *troupe = *state;

	assert_int_equal(call_one(troupe, 1, MOONCAKE_PUT, "kvs:a\"\\:1", 0), 0);
	assert_int_equal(call_one(troupe, 1, MOONCAKE_PUT, "kvs:b:2", 0), 0);
	assert_int_equal(call_one(troupe, 0, MOONCAKE_PURGE, "^kvs:.*", 0), 2);
	assert_int_equal(call_one(troupe, 0, MOONCAKE_PURGE, "^kvs:.*", 0), 0);
}

/* The slices of the memory meet in the middle of row 32. */
static void rows_keep_their_order_and_their_bytes(void **state)
{
	struct troupe        *troupe = *state;
	static char           names[ROWS][32];
	const char           *pointers[ROWS];
	struct kvs_span       spans[ROWS];
	int64_t               codes[ROWS];
	struct mooncake_call  call = { .verb = MOONCAKE_PUT, .count = ROWS, .names = pointers,
				       .spans = spans, .codes = codes };
	const size_t          step = TROUPE_BYTES / ROWS;
	bool                  retired;
	uint32_t              i;

	for (i = 0; i < ROWS; i++) {
		snprintf(names[i], sizeof(names[i]), "rows:%u", i);
		pointers[i] = names[i];
		spans[i] = (struct kvs_span){ troupe->memory + i * step, step - i, step };
		memset(spans[i].ptr, (int)i, step);
	}
	assert_int_equal(troupe->way->ops->call(troupe->way, 1, &call, &retired), 0);
	assert_true(retired);
	memset(troupe->memory, 0xff, TROUPE_BYTES);
	/* Every other row asks for what is not there. */
	for (i = 0; i < ROWS; i += 2)
		names[i][0] = 'R';
	call.verb = MOONCAKE_GET;
	assert_int_equal(troupe->way->ops->call(troupe->way, 2, &call, &retired), 0);
	assert_true(retired);
	for (i = 0; i < ROWS; i++) {
		assert_int_equal(codes[i], i % 2 ? (int64_t)(step - i) : -704);
		assert_int_equal(troupe->memory[i * step], i % 2 ? (int)i : 0xff);
		assert_int_equal(troupe->memory[i * step + step - i - 1], i % 2 ? (int)i : 0xff);
	}
	assert_int_equal(call_one(troupe, 0, MOONCAKE_PURGE, "^rows:", 0), ROWS);
}

static int refused(struct troupe *troupe, uint32_t lane, const struct mooncake_call *call)
{
	bool      retired = false;
	const int rc = troupe->way->ops->call(troupe->way, lane, call, &retired);

	assert_true(retired);
	return rc;
}

static void X2_spans_outside_the_memory_are_refused(void **state)
{
	struct troupe             *troupe = *state;
	static uint8_t             elsewhere[BLOCK];
	const char                *name = "one";
	int64_t                    code = 77;
	struct kvs_span            span = { elsewhere, BLOCK, BLOCK };
	const struct mooncake_call call = { .verb = MOONCAKE_GET, .count = 1, .names = &name,
					    .spans = &span, .codes = &code };

	assert_int_equal(refused(troupe, 1, &call), KVS_E_INVALID);
	span = (struct kvs_span){ troupe->memory + TROUPE_BYTES - BLOCK + 1, BLOCK, BLOCK };
	assert_int_equal(refused(troupe, 1, &call), KVS_E_INVALID);
	span = (struct kvs_span){ troupe->memory - 1, BLOCK, BLOCK };
	assert_int_equal(refused(troupe, 1, &call), KVS_E_INVALID);
	span = (struct kvs_span){ troupe->memory, SIZE_MAX, BLOCK };
	assert_int_equal(refused(troupe, 1, &call), KVS_E_INVALID);
	span = (struct kvs_span){ troupe->memory, 0, BLOCK };
	assert_int_equal(refused(troupe, 1, &call), KVS_E_INVALID);
	/* The lookups' agent has no memory. */
	span = (struct kvs_span){ troupe->memory, BLOCK, BLOCK };
	assert_int_equal(refused(troupe, 0, &call), KVS_E_INVALID);
	assert_int_equal(code, 77);
	assert_int_equal(troupe_describe(troupe).kills, 0);
	assert_int_equal(call_one(troupe, 1, MOONCAKE_GET, "one", 0), -704);
}

static void unsound_calls_are_refused(void **state)
{
	struct troupe       *troupe = *state;
	static char          longest[FRAME_NAME_MAX + 1];
	const char          *names[] = { "one", "two" };
	int64_t              codes[2];
	struct mooncake_call call = { .verb = MOONCAKE_EXISTS, .names = names, .codes = codes };

	assert_int_equal(refused(troupe, 0, &call), KVS_E_INVALID);
	call.count = MOONCAKE_NAMES_MAX + 1;
	assert_int_equal(refused(troupe, 0, &call), KVS_E_INVALID);
	call.count = 2;
	assert_int_equal(refused(troupe, 3, &call), KVS_E_INVALID);
	call.verb = MOONCAKE_PURGE;
	assert_int_equal(refused(troupe, 0, &call), KVS_E_INVALID);
	call.verb = MOONCAKE_EXISTS;
	names[1] = "";
	assert_int_equal(refused(troupe, 0, &call), KVS_E_INVALID);
	names[1] = longest;
	memset(longest, 'x', FRAME_NAME_MAX);
	assert_int_equal(refused(troupe, 0, &call), KVS_E_INVALID);
	longest[FRAME_NAME_MAX - 1] = '\0';
	/* The folder has no room for such a name; the SDK answers, which is enough. */
	assert_int_equal(refused(troupe, 0, &call), 0);
}

static void the_way_tells_what_it_is(void **state)
{
	struct troupe                 *troupe = *state;
	const struct mooncake_way_info info = troupe_describe(troupe);
	const struct kvs_span          slice = { troupe->memory, BLOCK, BLOCK };
	const struct kvs_memory        memory = { &slice, 1, troupe->memory_fd };
	const struct kvs_memory        nowhere = { &slice, 1, -1 };

	assert_int_equal(info.death_retires, KVS_DEATH_COPY);
	assert_true(info.reached);
	assert_int_equal(info.lanes_up, 3);
	assert_int_equal(info.restarts, 0);
	assert_int_equal(info.kills, 0);
	assert_string_equal(info.note, "");
	assert_true(info.memory_bytes > FRAME_CALL_MAX);
	assert_true(troupe->way->ops->settled(troupe->way));
	assert_int_equal(troupe->way->ops->register_memory(troupe->way, &memory), KVS_E_BUSY);
	assert_int_equal(troupe->way->ops->register_memory(troupe->way, &nowhere), KVS_E_INVALID);
}

struct errand {
	struct troupe *troupe;
	int            rc;
	bool           retired;
};

static void *hang(void *arg)
{
	struct errand *errand = arg;
	int64_t        code;

	errand->rc = troupe_call(errand->troupe, 1, MOONCAKE_GET, "one!hang", 0, BLOCK, &code,
				 &errand->retired);
	return NULL;
}

/* Whatever kills an agent in the middle of a call, its end is the proof. */
static void X2_an_agent_killed_from_outside_retires_its_call_and_stops_no_other(void **state)
{
	struct troupe *troupe = *state;
	struct errand  errand = { .troupe = troupe };
	int64_t        code;
	bool           retired = false;
	pthread_t      thread;

	assert_int_equal(pthread_create(&thread, NULL, hang, &errand), 0);
	troupe_await_busy(troupe, 1);
	assert_int_equal(troupe_call(troupe, 1, MOONCAKE_GET, "one", 0, BLOCK, &code, &retired),
			 KVS_E_BUSY);
	assert_true(retired);
	assert_int_equal(call_one(troupe, 2, MOONCAKE_GET, "one", BLOCK), -704);
	assert_int_equal(call_one(troupe, 0, MOONCAKE_EXISTS, "one", 0), 0);
	assert_int_equal(kill(troupe_pid(troupe, 1), SIGKILL), 0);
	pthread_join(thread, NULL);
	assert_true(errand.rc < 0);
	assert_true(errand.retired);
	assert_true(troupe->way->ops->settled(troupe->way));
	troupe_await_lanes(troupe, 3);
	assert_int_equal(troupe_describe(troupe).restarts, 1);
	assert_int_equal(call_one(troupe, 1, MOONCAKE_GET, "one", 0), -704);
}

/* A terminal interrupts all of its group: whoever opened the way decides, and its agents work on. */
static void an_interrupt_ends_no_agent(void **state)
{
	struct troupe *troupe = *state;
	const uint64_t before = troupe_describe(troupe).restarts;

	assert_int_equal(kill(troupe_pid(troupe, 2), SIGINT), 0);
	assert_int_equal(kill(troupe_pid(troupe, 2), SIGTERM), 0);
	assert_int_equal(call_one(troupe, 2, MOONCAKE_GET, "one", 0), -704);
	assert_int_equal(troupe_describe(troupe).restarts, before);
}

static void an_idle_agent_that_ends_is_started_again(void **state)
{
	struct troupe *troupe = *state;
	const uint64_t before = troupe_describe(troupe).restarts;

	assert_int_equal(kill(troupe_pid(troupe, 2), SIGKILL), 0);
	while (troupe_describe(troupe).restarts == before)
		poll(NULL, 0, 1);
	troupe_await_lanes(troupe, 3);
	/* With its memory. */
	assert_int_equal(call_one(troupe, 2, MOONCAKE_PUT, "two", 0), 0);
	assert_int_equal(call_one(troupe, 0, MOONCAKE_REMOVE, "two", 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_put_is_found_read_and_removed),
		cmocka_unit_test(a_purge_says_how_many_went),
		cmocka_unit_test(rows_keep_their_order_and_their_bytes),
		cmocka_unit_test(X2_spans_outside_the_memory_are_refused),
		cmocka_unit_test(unsound_calls_are_refused),
		cmocka_unit_test(the_way_tells_what_it_is),
		cmocka_unit_test(
			X2_an_agent_killed_from_outside_retires_its_call_and_stops_no_other),
		cmocka_unit_test(an_interrupt_ends_no_agent),
		cmocka_unit_test(an_idle_agent_that_ends_is_started_again),
	};

	return cmocka_run_group_tests(tests, init, fini);
}
