/* SPDX-License-Identifier: Apache-2.0 */
/* How the library's way begins: what it is loaded from, its master, and one that comes later. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "cave.h"

static const struct stub_plan holds = { .calls = 1, .holds = true };

static int make_cave(void **state)
{
	*state = cave_make();
	return 0;
}

static int close_cave(void **state)
{
	cave_close(*state);
	return 0;
}

/* An open that fails, with its sentence. */
static void refuse(struct cave *cave, int code, const char *sentence)
{
	struct kvs_error err = { 0 };

	assert_int_equal(mooncake_library_open(&cave->settings, &cave->way, &err), code);
	assert_null(cave->way);
	assert_int_equal(err.code, code);
	if (!strstr(err.message, sentence))
		fail_msg("\"%s\" is not in \"%s\"", sentence, err.message);
}

static void name_library(struct cave *cave, const char *path)
{
	snprintf(cave->settings.library, sizeof(cave->settings.library), "%s", path);
}

static void no_library_is_an_error_that_names_it(void **state)
{
	name_library(*state, "./no-such-library.so");
	refuse(*state, KVS_E_INVALID, "store.library: ./no-such-library.so: cannot open shared object");
}

static void a_library_without_a_name_is_looked_for_by_the_sdks(void **state)
{
	struct cave *const cave = *state;

	name_library(cave, "");
	KVS_ASSERT(unsetenv(MOONCAKE_LIBRARY_VARIABLE) == 0);
	refuse(cave, KVS_E_INVALID, MOONCAKE_LIBRARY_NAME);
	KVS_ASSERT(setenv(MOONCAKE_LIBRARY_VARIABLE, "./of-the-environment.so", 1) == 0);
	refuse(cave, KVS_E_INVALID, "./of-the-environment.so");
	name_library(cave, "./of-the-settings.so");
	refuse(cave, KVS_E_INVALID, "./of-the-settings.so");
	KVS_ASSERT(setenv(MOONCAKE_LIBRARY_VARIABLE, "", 1) == 0);
	name_library(cave, "");
	refuse(cave, KVS_E_INVALID, MOONCAKE_LIBRARY_NAME);
	KVS_ASSERT(unsetenv(MOONCAKE_LIBRARY_VARIABLE) == 0);
}

static void what_a_library_lacks_is_named_in_full(void **state)
{
	name_library(*state, MOONCAKE_STUB_LACKING_PATH);
	refuse(*state, KVS_E_INVALID, "store.library: lacks mooncake_store_: setup remove_all");
}

static void a_library_of_something_else_is_told_so(void **state)
{
	name_library(*state, "libm.so.6");
	refuse(*state, KVS_E_INVALID, "\"libm.so.6\" exports no mooncake_store_create()");
}

static void the_settings_reach_the_sdk(void **state)
{
	struct cave *const              cave = *state;
	struct mooncake_settings *const settings = &cave->settings;
	struct stub_figures             figures;

	snprintf(settings->local_hostname, sizeof(settings->local_hostname), "node-7");
	snprintf(settings->device, sizeof(settings->device), "nic0");
	settings->segment_bytes = 1ull << 33;
	settings->local_buffer_bytes = 4096;
	cave_open(cave);
	figures = cave_figures(cave);
	assert_string_equal(figures.local_hostname, "node-7");
	assert_string_equal(figures.metadata_server, "P2PHANDSHAKE");
	assert_string_equal(figures.protocol, "tcp");
	assert_string_equal(figures.device, "nic0");
	assert_string_equal(figures.master, settings->master);
	assert_int_equal(figures.segment_bytes, 1ull << 33);
	assert_int_equal(figures.local_buffer_bytes, 4096);
}

/* A name that no object has: no lease is taken, and the SDK's own check of its health is no proof. */
static void the_master_is_asked_for_a_sentinel(void **state)
{
	struct cave *const       cave = *state;
	struct mooncake_way_info info;

	cave_open(cave);
	assert_int_equal(cave_figures(cave).rows[STUB_EXISTS], 1);
	assert_int_equal(cave_figures(cave).leases, 0);
	info = cave_describe(cave);
	assert_true(info.reached);
	assert_int_equal(info.lanes_up, 3);
	assert_int_equal(info.death_retires, KVS_DEATH_NOTHING);
	assert_int_equal(info.restarts + info.kills, 0);
	assert_true(info.memory_bytes > 3 * sizeof(struct library_lane));
	assert_string_equal(info.note, "");
}

static void a_master_where_nobody_listens_is_told_at_once(void **state)
{
	struct cave *const cave = *state;
	char               sentence[256];

	cave_stop_listening(cave);
	snprintf(sentence, sizeof(sentence), "store.master: %.64s: Connection refused",
		 cave->settings.master);
	refuse(cave, -ECONNREFUSED, sentence);
	assert_int_equal(cave_figures(cave).calls[STUB_CREATE], 0);
}

static void a_master_in_brackets_is_an_address_without_them(void **state)
{
	struct cave *const cave = *state;
	char               port[8];

	snprintf(port, sizeof(port), "%.7s", strrchr(cave->settings.master, ':') + 1);
	cave_stop_listening(cave);
	snprintf(cave->settings.master, sizeof(cave->settings.master), "[127.0.0.1]:%s", port);
	refuse(cave, -ECONNREFUSED, "[127.0.0.1]:");
	cave_listen(cave);
	cave_open(cave);
	assert_string_equal(cave_figures(cave).master, cave->settings.master);
}

static void no_client_is_an_error(void **state)
{
	cave_answer(*state, STUB_CREATE, -1);
	refuse(*state, -EIO, "create() gave no client");
}

static void a_setup_that_fails_is_told_with_its_code(void **state)
{
	struct cave *const cave = *state;

	cave_answer(cave, STUB_SETUP, -600);
	refuse(cave, -EIO, "setup() gave -600, INVALID_PARAMS");
	assert_int_equal(cave_figures(cave).clients, 0);
}

static void a_sentinel_without_an_answer_is_no_master(void **state)
{
	struct cave *const     cave = *state;
	const struct stub_plan nothing = { .calls = 1, .rc = -1 };

	cave_answer(cave, STUB_EXISTS, -900);
	refuse(cave, -EIO, "a lookup gave -900, RPC_FAIL");
	cave->stub->plan(STUB_EXISTS, &nothing);
	refuse(cave, -EIO, "no answer to a lookup");
	assert_int_equal(cave_figures(cave).clients, 0);
}

/* What hangs is left behind, and ends by itself when it comes back. */
static void check_left_behind(struct cave *cave, enum stub_call call, const char *sentence)
{
	cave->settings.connect_timeout_ns = 20000000;
	cave->stub->plan(call, &holds);
	refuse(cave, -ETIMEDOUT, sentence);
	cave->stub->wait_held(1);
	assert_int_equal(cave_figures(cave).clients, call != STUB_CREATE);
	cave->stub->release();
	cave->stub->wait_clients(0);
}

static void a_setup_that_hangs_is_left_behind(void **state)
{
	check_left_behind(*state, STUB_SETUP, "the client was not set up within connect_timeout");
}

static void a_sentinel_that_hangs_is_left_behind(void **state)
{
	struct cave *const cave = *state;

	/* Its time is what the setup left over: the latter must not use it up on a machine with load. */
	cave->settings.connect_timeout_ns = 100000000;
	cave->stub->plan(STUB_EXISTS, &holds);
	refuse(cave, -ETIMEDOUT, cave->settings.master);
	cave->stub->release();
	cave->stub->wait_clients(0);
}

static void make_away(struct cave *cave)
{
	cave->settings.required = false;
	cave_stop_listening(cave);
	cave_open(cave);
}

/* The pause is over. */
static void let_it_try(struct cave *cave)
{
	struct library *const library = cave_library(cave);

	os_mutex_lock(&library->lock);
	library->retry_ns = 0;
	os_mutex_unlock(&library->lock);
}

static void without_required_an_open_is_no_wait_for_a_master(void **state)
{
	struct cave *const       cave = *state;
	struct mooncake_way_info info;
	bool                     retired = false;

	make_away(cave);
	info = cave_describe(cave);
	assert_false(info.reached);
	assert_int_equal(info.lanes_up, 0);
	assert_non_null(strstr(info.note, "Connection refused"));
	assert_int_equal(cave_call(cave, 1, MOONCAKE_GET, 2, &retired), -ENOTCONN);
	assert_true(retired);
	assert_true(cave->way->ops->settled(cave->way));
}

static void a_client_whose_setup_failed_is_not_used_again(void **state)
{
	struct cave *const cave = *state;
	bool               retired;

	cave->settings.required = false;
	cave_answer(cave, STUB_SETUP, -1);
	cave_open(cave);
	assert_non_null(strstr(cave_describe(cave).note, "setup() gave -1"));
	assert_int_equal(cave_figures(cave).clients, 0);
	let_it_try(cave);
	(void)cave_call(cave, 0, MOONCAKE_EXISTS, 1, &retired);
	cave_wait_keeper(cave);
	assert_int_equal(cave_figures(cave).clients, 1);
	assert_int_equal(cave_call(cave, 0, MOONCAKE_EXISTS, 1, &retired), 0);
}

static void a_lane_that_is_asked_connects_when_the_master_has_come(void **state)
{
	struct cave *const cave = *state;
	bool               retired;

	make_away(cave);
	cave_listen(cave);
	let_it_try(cave);
	assert_int_equal(cave_call(cave, 1, MOONCAKE_PUT, 2, &retired), -ENOTCONN);
	cave_wait_keeper(cave);
	assert_int_equal(cave_describe(cave).lanes_up, 3);
	assert_false(cave_describe(cave).reached);
	/* The client's own: nobody else has answered. */
	cave_answer(cave, STUB_EXISTS, -900);
	assert_int_equal(cave_call(cave, 0, MOONCAKE_EXISTS, 1, &retired), 0);
	assert_false(cave_describe(cave).reached);
	assert_int_equal(cave_call(cave, 1, MOONCAKE_PUT, 2, &retired), 0);
	assert_true(cave_describe(cave).reached);
	assert_string_equal(cave_describe(cave).note, "");
}

static void memory_that_was_told_before_is_registered_then(void **state)
{
	struct cave *const      cave = *state;
	const struct kvs_memory memory = { cave->spans, CAVE_NAMES, -1 };
	bool                    retired;

	make_away(cave);
	assert_int_equal(cave->way->ops->register_memory(cave->way, &memory), 0);
	assert_int_equal(cave_figures(cave).calls[STUB_REGISTER], 0);
	cave_listen(cave);
	let_it_try(cave);
	(void)cave_call(cave, 0, MOONCAKE_EXISTS, 1, &retired);
	cave_wait_keeper(cave);
	assert_int_equal(cave_figures(cave).calls[STUB_REGISTER], 1);
	assert_int_equal(cave_figures(cave).region_bytes, CAVE_NAMES * CAVE_BYTES);
}

/* Unlike a setup it has the caller's memory in its hands. */
static void a_close_leaves_no_registration_that_hangs_behind(void **state)
{
	struct cave *const      cave = *state;
	const struct kvs_memory memory = { cave->spans, CAVE_NAMES, -1 };
	bool                    retired;

	make_away(cave);
	assert_int_equal(cave->way->ops->register_memory(cave->way, &memory), 0);
	cave_listen(cave);
	let_it_try(cave);
	cave->stub->plan(STUB_REGISTER, &holds);
	(void)cave_call(cave, 0, MOONCAKE_EXISTS, 1, &retired);
	cave->stub->wait_held(1);
	cave_library(cave)->settings.timeout_ns = 1000000;
	assert_int_equal(cave->way->ops->close(cave->way), KVS_E_QUARANTINE);
	cave->stub->release();
	cave_wait_keeper(cave);
	cave_library(cave)->settings.timeout_ns = CAVE_FOREVER_NS;
}

static void the_pause_between_tries_grows_to_ten_seconds(void **state)
{
	struct cave *const    cave = *state;
	struct library *const library = (make_away(cave), cave_library(cave));
	uint64_t              pause_ns = 200000000;
	bool                  retired;
	uint32_t              i;

	for (i = 0; i < 10; i++) {
		assert_int_equal(library->pause_ns, pause_ns);
		assert_true(library->retry_ns > os_now_ns() || i == 0);
		/* Not before its time. */
		library->retry_ns = UINT64_MAX;
		(void)cave_call(cave, 0, MOONCAKE_EXISTS, 1, &retired);
		assert_int_equal(library->keeper.state, HAND_HOME);
		let_it_try(cave);
		(void)cave_call(cave, 0, MOONCAKE_EXISTS, 1, &retired);
		cave_wait_keeper(cave);
		pause_ns = pause_ns * 2 < 10000000000 ? pause_ns * 2 : 10000000000;
	}
	assert_int_equal(library->pause_ns, 10000000000);
	assert_int_equal(cave_figures(cave).calls[STUB_CREATE], 0);
}

static void callers_are_answered_while_a_setup_hangs(void **state)
{
	struct cave *const cave = *state;
	bool               retired;

	make_away(cave);
	cave_listen(cave);
	let_it_try(cave);
	cave->stub->plan(STUB_SETUP, &holds);
	(void)cave_call(cave, 0, MOONCAKE_EXISTS, 1, &retired);
	cave->stub->wait_held(1);
	assert_int_equal(cave_call(cave, 1, MOONCAKE_GET, 1, &retired), -ENOTCONN);
	assert_int_equal(cave_figures(cave).calls[STUB_SETUP], 1);
	cave->stub->release();
	cave_wait_keeper(cave);
	assert_int_equal(cave_call(cave, 1, MOONCAKE_GET, 1, &retired), 0);
}

static void a_close_leaves_a_setup_that_hangs_behind(void **state)
{
	struct cave *const      cave = *state;
	const struct kvs_memory memory = { cave->spans, CAVE_NAMES, -1 };

	cave->settings.required = false;
	cave->settings.timeout_ns = 1000000;
	cave->settings.connect_timeout_ns = 20000000;
	cave->stub->plan(STUB_SETUP, &holds);
	cave_open(cave);
	cave->stub->wait_held(1);
	assert_string_equal(cave_describe(cave).note, "setup() has not returned yet");
	assert_int_equal(cave->way->ops->register_memory(cave->way, &memory), 0);
	assert_int_equal(cave->way->ops->close(cave->way), 0);
	cave->way = NULL;
	cave->stub->release();
	cave->stub->wait_clients(0);
	/* Memory that may be gone by now was not told. */
	assert_int_equal(cave_figures(cave).calls[STUB_REGISTER], 0);
}

static void two_ways_have_a_client_each(void **state)
{
	struct cave *const   cave = *state;
	struct mooncake_way *other;
	bool                 retired;

	cave_open(cave);
	assert_int_equal(mooncake_library_open(&cave->settings, &other, NULL), 0);
	assert_int_equal(cave_figures(cave).clients, 2);
	assert_int_equal(other->ops->close(other), 0);
	assert_int_equal(cave_call(cave, 1, MOONCAKE_PUT, 1, &retired), 0);
}

int main(void)
{
#define CAVE_TEST(name) cmocka_unit_test_setup_teardown(name, make_cave, close_cave)
	const struct CMUnitTest tests[] = {
		CAVE_TEST(no_library_is_an_error_that_names_it),
		CAVE_TEST(a_library_without_a_name_is_looked_for_by_the_sdks),
		CAVE_TEST(what_a_library_lacks_is_named_in_full),
		CAVE_TEST(a_library_of_something_else_is_told_so),
		CAVE_TEST(the_settings_reach_the_sdk),
		CAVE_TEST(the_master_is_asked_for_a_sentinel),
		CAVE_TEST(a_master_where_nobody_listens_is_told_at_once),
		CAVE_TEST(a_master_in_brackets_is_an_address_without_them),
		CAVE_TEST(no_client_is_an_error),
		CAVE_TEST(a_setup_that_fails_is_told_with_its_code),
		CAVE_TEST(a_sentinel_without_an_answer_is_no_master),
		CAVE_TEST(a_setup_that_hangs_is_left_behind),
		CAVE_TEST(a_sentinel_that_hangs_is_left_behind),
		CAVE_TEST(without_required_an_open_is_no_wait_for_a_master),
		CAVE_TEST(a_client_whose_setup_failed_is_not_used_again),
		CAVE_TEST(a_lane_that_is_asked_connects_when_the_master_has_come),
		CAVE_TEST(memory_that_was_told_before_is_registered_then),
		CAVE_TEST(a_close_leaves_no_registration_that_hangs_behind),
		CAVE_TEST(the_pause_between_tries_grows_to_ten_seconds),
		CAVE_TEST(callers_are_answered_while_a_setup_hangs),
		CAVE_TEST(a_close_leaves_a_setup_that_hangs_behind),
		CAVE_TEST(two_ways_have_a_client_each),
	};

	return cmocka_run_group_tests_name("mooncake_library_open", tests, NULL, NULL);
}
