/* SPDX-License-Identifier: Apache-2.0 */
/* A put that is refused: by a pool that is full, by one without storage, or nobody knows. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "wharf.h"

#define SECOND_NS UINT64_C(1000000000)

static void fill_up(struct wharf *wharf)
{
	wharf->cluster.object_max = wharf->cluster.object_count;
}

static void a_full_pool_refuses_and_is_counted(void **state)
{
	struct wharf *const wharf = *state;

	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	fill_up(wharf);
	assert_int_equal(wharf_put(wharf, 2, 4096), KVS_RESULT_NO_SPACE);
	assert_true(wharf->retired);
	assert_int_equal(wharf_put(wharf, 3, 4096), KVS_RESULT_NO_SPACE);
	assert_int_equal(wharf_info(wharf).refused_full, 2);
	assert_int_equal(wharf->fetches, 1);
	assert_string_equal(wharf->url, "http://127.0.0.1:2/get_all_segments");
	assert_null(strstr(wharf_info(wharf).note, "provider is mounted"));
	assert_int_equal(wharf_get(wharf, 1, 4096), KVS_RESULT_DONE);
}

static void a_pool_without_storage_is_an_outage(void **state)
{
	static const char *const none[] = { "", "\n", " \r\n" };
	struct wharf *const      wharf = *state;
	size_t                   i;

	for (i = 0; i < ARRAY_COUNT(none); i++) {
		wharf->segments = none[i];
		wharf->cluster.object_max = 0;
		assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_FAILED);
		assert_true(wharf->retired);
		assert_int_equal(wharf_info(wharf).refused_full, 0);
		assert_non_null(strstr(wharf_info(wharf).note, "no storage provider is mounted"));
		wharf_close(wharf);
		byway_init(&wharf->byway, &wharf->cluster);
		wharf_open(wharf);
	}
}

/* Once bytes moved, somebody lends memory: the note does not stay behind. */
static void a_provider_that_comes_is_seen(void **state)
{
	struct wharf *const wharf = *state;

	wharf->segments = "";
	fill_up(wharf);
	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_FAILED);
	wharf->cluster.object_max = 1;
	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_DONE);
	assert_null(strstr(wharf_info(wharf).note, "provider is mounted"));
	assert_int_equal(wharf_put(wharf, 2, 4096), KVS_RESULT_NO_SPACE);
}

static void what_nobody_tells_counts_as_full(void **state)
{
	struct wharf *const wharf = *state;

	wharf->segments = NULL;
	fill_up(wharf);
	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_NO_SPACE);
	assert_int_equal(wharf_info(wharf).refused_full, 1);
	assert_non_null(strstr(wharf_info(wharf).note, "not told (nobody listens)"));
}

static void without_an_interface_nobody_is_asked(void **state)
{
	struct wharf *const wharf = *state;

	wharf_close(wharf);
	wharf->settings.metrics[0] = '\0';
	byway_init(&wharf->byway, &wharf->cluster);
	wharf_open(wharf);
	assert_null(strstr(wharf_info(wharf).note, "metrics="));
	fill_up(wharf);
	assert_int_equal(wharf_put(wharf, 1, 4096), KVS_RESULT_NO_SPACE);
	assert_int_equal(wharf->fetches, 0);
	assert_non_null(strstr(wharf_info(wharf).note, "metrics= is not set"));
}

/* --- the question by itself ------------------------------------------------------------------- */

struct desk {
	struct mooncake_provider provider;
	const char              *body;
	uint32_t                 asked;
	bool                     asks_again; /* while it answers */
	uint64_t                 again_ns;
};

static bool answer(void *context, const char *url, uint64_t timeout_ns, char *body, size_t room,
		   size_t *ret_bytes, char *ret_why, size_t why_bytes)
{
	struct desk *const desk = context;

	(void)url;
	assert_int_equal(timeout_ns, SECOND_NS);
	desk->asked++;
	if (desk->asks_again) {
		desk->asks_again = false;
		assert_int_equal(mooncake_provider_ask(&desk->provider, desk->again_ns),
				 MOONCAKE_POOL_EMPTY);
	}
	if (!desk->body) {
		snprintf(ret_why, why_bytes, "no");
		return false;
	}
	*ret_bytes = strlen(desk->body);
	assert_true(*ret_bytes <= room);
	memcpy(body, desk->body, *ret_bytes);
	return true;
}

static void it_is_asked_once_a_second(void **state)
{
	struct desk desk = { .body = "" };

	(void)state;
	mooncake_provider_init(&desk.provider, "h:1", answer, &desk);
	assert_int_equal(mooncake_provider_ask(&desk.provider, 5), MOONCAKE_POOL_EMPTY);
	desk.body = "segment";
	assert_int_equal(mooncake_provider_ask(&desk.provider, 4 + SECOND_NS),
			 MOONCAKE_POOL_EMPTY);
	/* Refused before, and comes behind who asked. */
	assert_int_equal(mooncake_provider_ask(&desk.provider, 4), MOONCAKE_POOL_EMPTY);
	assert_int_equal(desk.asked, 1);
	assert_int_equal(mooncake_provider_ask(&desk.provider, 5 + SECOND_NS),
			 MOONCAKE_POOL_PROVIDED);
	desk.body = NULL;
	assert_int_equal(mooncake_provider_ask(&desk.provider, 5 + 2 * SECOND_NS),
			 MOONCAKE_POOL_UNTOLD);
	assert_int_equal(desk.asked, 3);
	mooncake_provider_fini(&desk.provider);
}

static bool answer_nothing_printable(void *context, const char *url, uint64_t timeout_ns, char *body,
				     size_t room, size_t *ret_bytes, char *ret_why, size_t why_bytes)
{
	(void)context;
	(void)url;
	(void)timeout_ns;
	(void)ret_why;
	(void)why_bytes;
	memset(body, 0, room);
	*ret_bytes = room;
	return true;
}

/* Whatever that is, it is no empty list. */
static void zeros_are_no_blanks(void **state)
{
	struct mooncake_provider provider;

	(void)state;
	mooncake_provider_init(&provider, "h:1", answer_nothing_printable, NULL);
	assert_int_equal(mooncake_provider_ask(&provider, 1), MOONCAKE_POOL_PROVIDED);
	mooncake_provider_fini(&provider);
}

/* A second worker takes what is known; it does not wait for the network. */
static void one_asks_at_a_time(void **state)
{
	struct desk desk = { .body = "", .again_ns = 9 * SECOND_NS };

	(void)state;
	mooncake_provider_init(&desk.provider, "h:1", answer, &desk);
	assert_int_equal(mooncake_provider_ask(&desk.provider, 1), MOONCAKE_POOL_EMPTY);
	desk.asks_again = true;
	desk.body = "segment";
	assert_int_equal(mooncake_provider_ask(&desk.provider, 2 * SECOND_NS),
			 MOONCAKE_POOL_PROVIDED);
	assert_int_equal(desk.asked, 2);
	mooncake_provider_fini(&desk.provider);
}

struct pair {
	struct mooncake_provider provider;
	atomic_bool              comes; /* the second is about to ask */
	pthread_t                thread;
	enum mooncake_pool_state second;
};

static void *ask_second(void *arg)
{
	struct pair *const pair = arg;

	atomic_store(&pair->comes, true);
	pair->second = mooncake_provider_ask(&pair->provider, 2);
	return NULL;
}

static bool answer_when_both_ask(void *context, const char *url, uint64_t timeout_ns, char *body,
				 size_t room, size_t *ret_bytes, char *ret_why, size_t why_bytes)
{
	struct pair *const pair = context;
	int                i;

	(void)url;
	(void)timeout_ns;
	(void)body;
	(void)room;
	(void)ret_why;
	(void)why_bytes;
	assert_int_equal(os_thread_start(&pair->thread, "second", ask_second, pair), 0);
	while (!atomic_load(&pair->comes))
		sched_yield();
	/* Most likely it waits by then; it gets the same answer if it does not. */
	for (i = 0; i < 50; i++)
		sched_yield();
	*ret_bytes = 0;
	return true;
}

/* Nothing is known yet: two puts that are refused together are told the same. */
static void the_first_answer_is_waited_for(void **state)
{
	struct pair pair = { .second = MOONCAKE_POOL_UNTOLD };

	(void)state;
	mooncake_provider_init(&pair.provider, "h:1", answer_when_both_ask, &pair);
	assert_int_equal(mooncake_provider_ask(&pair.provider, 1), MOONCAKE_POOL_EMPTY);
	os_thread_join(pair.thread);
	assert_int_equal(pair.second, MOONCAKE_POOL_EMPTY);
	mooncake_provider_fini(&pair.provider);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, wharf_setup, wharf_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_full_pool_refuses_and_is_counted),
		TEST(a_pool_without_storage_is_an_outage),
		TEST(a_provider_that_comes_is_seen),
		TEST(what_nobody_tells_counts_as_full),
		TEST(without_an_interface_nobody_is_asked),
		cmocka_unit_test(it_is_asked_once_a_second),
		cmocka_unit_test(zeros_are_no_blanks),
		cmocka_unit_test(one_asks_at_a_time),
		cmocka_unit_test(the_first_answer_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
