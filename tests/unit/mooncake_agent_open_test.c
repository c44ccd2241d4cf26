/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps agents from starting, each with its sentence; and what is waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>

#include "base/err.h"
#include "mooncake/agent_parts.h"
#include "os/os.h"
#include "troupe.h"

#define MS UINT64_C(1000000)

static int init(void **state)
{
	static struct troupe troupe;

	troupe_init(&troupe, 1);
	*state = &troupe;
	return 0;
}

static int fini(void **state)
{
	troupe_fini(*state);
	return 0;
}

/* Opening must fail with that code, and a sentence that holds `words`. */
static void check_refused(struct troupe *troupe, int code, const char *words)
{
	struct kvs_error err = { 0 };

	assert_int_equal(mooncake_agent_open(&troupe->settings, &troupe->way, &err), code);
	assert_int_equal(err.code, code);
	if (!strstr(err.message, words))
		fail_msg("\"%s\" is not in \"%s\"", words, err.message);
	assert_null(troupe->way);
}

static void set(char *field, const char *text)
{
	snprintf(field, MOONCAKE_TEXT_MAX, "%s", text);
}

static void an_interpreter_that_is_not_there_is_an_error(void **state)
{
	struct troupe *troupe = *state;

	set(troupe->settings.python, "no-such-interpreter");
	check_refused(troupe, KVS_E_INVALID,
		      "store.python: \"no-such-interpreter\" cannot be run: No such file");
}

static void what_is_no_interpreter_is_an_error(void **state)
{
	struct troupe *troupe = *state;

	set(troupe->settings.python, "true");
	check_refused(troupe, -ECONNRESET, "ended without a word");
}

static void a_script_that_is_not_there_is_an_error(void **state)
{
	struct troupe *troupe = *state;

	set(troupe->settings.agent, "no/such/script");
	check_refused(troupe, KVS_E_INVALID, "store.agent: \"no/such/script\" cannot be read");
	troupe->settings.agent[0] = '\0';
	setenv("KVSTRATA_MOONCAKE_AGENT", "no/such/other", 1);
	check_refused(troupe, KVS_E_INVALID, "store.agent: \"no/such/other\" cannot be read");
	unsetenv("KVSTRATA_MOONCAKE_AGENT");
}

static void a_script_is_found_beside_the_program_or_on_the_path(void **state)
{
	struct troupe *troupe = *state;
	char          *path = strdup(getenv("PATH"));
	char           longer[8192];

	troupe->settings.agent[0] = '\0';
	check_refused(troupe, KVS_E_INVALID, "is neither beside this program nor on the PATH");
	snprintf(longer, sizeof(longer), "%s:" SOURCE_ROOT "/src/mooncake", path);
	setenv("PATH", longer, 1);
	troupe_open(troupe);
	setenv("PATH", path, 1);
	free(path);
}

static void an_interpreter_without_the_wheel_is_an_error(void **state)
{
	struct troupe *troupe = *state;
	/* A module of that name that is none, whatever this machine has installed. */
	setenv("PYTHONPATH", SOURCE_ROOT "/tests/sdk/absent", 1);
	check_refused(troupe, KVS_E_INVALID, "\"python3\" has no mooncake module; pip install");
	setenv("PYTHONPATH", SOURCE_ROOT "/tests/sdk", 1);
}

static void settings_that_the_sdk_refuses_are_an_error(void **state)
{
	struct troupe *troupe = *state;

	setenv("FAKE_SDK_SETUP", "-600", 1);
	check_refused(troupe, KVS_E_INVALID, "setup() gave -600 (INVALID_PARAMS)");
	/* They do not heal: so whoever waits for a master hears of it, too. */
	troupe->settings.required = false;
	check_refused(troupe, KVS_E_INVALID, "setup() gave -600 (INVALID_PARAMS)");
}

static void what_may_heal_is_an_error_where_it_is_required(void **state)
{
	struct troupe *troupe = *state;

	setenv("FAKE_SDK_SETUP", "-900", 1);
	check_refused(troupe, -EIO, "setup() gave -900 (RPC_FAIL)");
	setenv("FAKE_SDK_SETUP", "raise", 1);
	check_refused(troupe, -EIO, "RuntimeError: no cluster today");
	setenv("FAKE_SDK_SETUP", "exit", 1);
	check_refused(troupe, -ECONNRESET, "ended without a word");
}

static void a_master_that_is_away_is_an_error_where_it_is_required(void **state)
{
	struct troupe *troupe = *state;

	close(troupe->master);
	check_refused(troupe, -EIO, "cannot be reached: ");
	troupe->master = -1;
}

static void a_setup_that_hangs_is_given_up(void **state)
{
	struct troupe *troupe = *state;

	setenv("FAKE_SDK_SETUP", "hang", 1);
	troupe->settings.connect_timeout_ns = 500 * MS;
	check_refused(troupe, -ETIMEDOUT, "");
}

static void a_master_that_comes_later_is_met_where_it_is_not_required(void **state)
{
	struct troupe           *troupe = *state;
	struct mooncake_way_info info;
	int64_t                  code;
	bool                     retired = false;

	setenv("FAKE_SDK_SETUP", "-900", 1);
	troupe->settings.required = false;
	/* Where nothing is up, memory waits. */
	troupe_open(troupe);
	info = troupe_describe(troupe);
	assert_false(info.reached);
	assert_int_equal(info.lanes_up, 0);
	assert_string_equal(info.note, "setup() gave -900 (RPC_FAIL)");
	assert_int_equal(troupe_call(troupe, 1, MOONCAKE_GET, "one", 0, 4096, &code, &retired), -ENOTCONN);
	assert_true(retired);
	setenv("FAKE_SDK_SETUP", "0", 1);
	troupe_await_lanes(troupe, 2);
	info = troupe_describe(troupe);
	assert_true(info.reached);
	assert_string_equal(info.note, "");
	assert_int_equal(troupe_call(troupe, 1, MOONCAKE_GET, "one", 0, 4096, &code, &retired), 0);
	assert_int_equal(code, -704);
}

/* Where no caller waits for it the keeper alone gives it up, and tries again. */
static void a_setup_that_hangs_is_tried_again(void **state)
{
	struct troupe    *troupe = *state;
	struct agent_way *way;
	struct kvs_error  err = { 0 };
	char              python[MOONCAKE_PATH_MAX];

	/* Asked while there is time for an answer. */
	assert_int_equal(interpreter_find(&troupe->settings, python, &err), 0);
	memcpy(troupe->settings.python, python, sizeof(python));
	troupe->settings.required = false;
	troupe->settings.connect_timeout_ns = 50 * MS;
	setenv("FAKE_SDK_SETUP", "hang", 1);
	assert_int_equal(mooncake_agent_open(&troupe->settings, &troupe->way, &err), 0);
	setenv("FAKE_SDK_SETUP", "0", 1);
	/* Those that start from here on have time. */
	way = (struct agent_way *)troupe->way;
	os_mutex_lock(&way->lock);
	way->settings.connect_timeout_ns = troupe->settings.timeout_ns;
	os_mutex_unlock(&way->lock);
	troupe_await_lanes(troupe, 2);
}

static void what_agents_say_is_kept(void **state)
{
	struct troupe *troupe = *state;
	char           text[4096];
	size_t         bytes;
	FILE          *log;

	snprintf(troupe->settings.log, sizeof(troupe->settings.log), "%s/log", troupe->folder);
	log = fopen(troupe->settings.log, "w");
	fputs("kept\n", log);
	fclose(log);
	setenv("FAKE_SDK_SETUP", "print", 1);
	troupe_open(troupe);
	assert_int_equal(troupe_close(troupe), 0);
	log = fopen(troupe->settings.log, "r");
	bytes = fread(text, 1, sizeof(text) - 1, log);
	text[bytes] = '\0';
	fclose(log);
	assert_string_equal(text, "kept\nhere I am\nhere I am\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_interpreter_that_is_not_there_is_an_error, init, fini),
		cmocka_unit_test_setup_teardown(what_is_no_interpreter_is_an_error, init, fini),
		cmocka_unit_test_setup_teardown(a_script_that_is_not_there_is_an_error, init, fini),
		cmocka_unit_test_setup_teardown(a_script_is_found_beside_the_program_or_on_the_path,
						init, fini),
		cmocka_unit_test_setup_teardown(an_interpreter_without_the_wheel_is_an_error, init, fini),
		cmocka_unit_test_setup_teardown(settings_that_the_sdk_refuses_are_an_error, init, fini),
		cmocka_unit_test_setup_teardown(what_may_heal_is_an_error_where_it_is_required, init, fini),
		cmocka_unit_test_setup_teardown(a_master_that_is_away_is_an_error_where_it_is_required,
						init, fini),
		cmocka_unit_test_setup_teardown(a_setup_that_hangs_is_given_up, init, fini),
		cmocka_unit_test_setup_teardown(
			a_master_that_comes_later_is_met_where_it_is_not_required, init, fini),
		cmocka_unit_test_setup_teardown(a_setup_that_hangs_is_tried_again, init, fini),
		cmocka_unit_test_setup_teardown(what_agents_say_is_kept, init, fini),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
