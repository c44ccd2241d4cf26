/* SPDX-License-Identifier: Apache-2.0 */
/* What an SDK does wrong: the agent is killed, and its end is the proof. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "base/err.h"
#include "troupe.h"

#define BLOCK ((size_t)65536)
#define LOOKS 100
#define MS UINT64_C(1000000)

static int init(void **state)
{
	static struct troupe troupe;

	troupe_init(&troupe, 1);
	troupe_open(&troupe);
	*state = &troupe;
	return 0;
}

static int fini(void **state)
{
	troupe_fini(*state);
	return 0;
}

/* Nobody writes any more: what was scribbled over all the time holds what we put there. */
static void check_at_rest(struct troupe *troupe)
{
	static uint8_t wanted[BLOCK];
	int            i;

	memset(wanted, 0xa5, BLOCK);
	memset(troupe->memory, 0xa5, BLOCK);
	for (i = 0; i < LOOKS; i++)
		assert_memory_equal(troupe->memory, wanted, BLOCK);
}

/* The call's code; *ret_code stays 77 when there was no answer. */
static int fail_at(struct troupe *troupe, const char *name, int64_t *ret_code)
{
	const uint64_t kills = troupe_describe(troupe).kills;
	bool           retired = false;
	int            rc;

	/* A call that goes well, so that the pause before the next start is short again. */
	troupe_await_lanes(troupe, 2);
	rc = troupe_call(troupe, 1, MOONCAKE_GET, "one", 0, BLOCK, ret_code, &retired);
	assert_int_equal(rc, 0);
	assert_int_equal(*ret_code, -704);
	*ret_code = 77;
	retired = false;
	rc = troupe_call(troupe, 1, MOONCAKE_GET, name, 0, BLOCK, ret_code, &retired);
	assert_true(retired);
	assert_true(troupe->way->ops->settled(troupe->way));
	assert_int_equal(troupe_describe(troupe).kills, kills + 1);
	return rc;
}

static void X2_a_code_that_proves_nothing_has_its_agent_killed(void **state)
{
	struct troupe *troupe = *state;
	int64_t        code;

	assert_int_equal(fail_at(troupe, "one!late", &code), 0);
	assert_int_equal(code, -800);
	check_at_rest(troupe);
	/* The lane is down at once, and comes back by itself. */
	assert_int_equal(fail_at(troupe, "one!code=-1", &code), 0);
	assert_int_equal(code, -1);
	troupe_await_lanes(troupe, 2);
	assert_int_equal(troupe_describe(troupe).restarts, 2);
}

static void X2_what_is_no_answer_has_its_agent_killed(void **state)
{
	static const struct {
		const char *name;
		int         code;
	} cases[] = { { "one!raises", KVS_E_HEALTH }, { "one!short", KVS_E_HEALTH },
		      { "one!odd", KVS_E_HEALTH }, { "one!garbage", KVS_E_PROTO },
		      { "one!stale", KVS_E_PROTO },
		      { "one!mute", -ECONNRESET }, { "one!exit", -ECONNRESET } };
	struct troupe *troupe = *state;
	int64_t        code;
	size_t         i;

	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		assert_int_equal(fail_at(troupe, cases[i].name, &code), cases[i].code);
		assert_int_equal(code, 77);
	}
}

/* Lookups have no memory: an answer that says nothing is no reason to kill. */
static void a_lookup_that_fails_kills_nobody(void **state)
{
	struct troupe *troupe = *state;
	const uint64_t kills = troupe_describe(troupe).kills;
	int64_t        code = 77;
	bool           retired = false;

	assert_int_equal(troupe_call(troupe, 0, MOONCAKE_EXISTS, "one!raises", 0, 0, &code, &retired),
			 KVS_E_HEALTH);
	assert_true(retired);
	assert_int_equal(troupe_call(troupe, 0, MOONCAKE_EXISTS, "one!code=-900", 0, 0, &code, &retired),
			 0);
	assert_int_equal(code, -900);
	assert_true(retired);
	assert_int_equal(troupe_describe(troupe).kills, kills);
}

/* A lane that is down says so, why, and when it is back. */
static void a_lane_that_is_down_is_told(void **state)
{
	struct troupe           *troupe = *state;
	struct mooncake_way_info info;
	int64_t                  code;
	bool                     retired = false;

	assert_int_equal(fail_at(troupe, "one!raises", &code), KVS_E_HEALTH);
	/* It may be back sooner than we ask. */
	info = troupe_describe(troupe);
	if (info.lanes_up == 1) {
		assert_string_equal(info.note, "RuntimeError: the SDK is unwell?[31m");
		(void)troupe_call(troupe, 1, MOONCAKE_GET, "one", 0, BLOCK, &code, &retired);
		assert_true(retired);
	}
	troupe_await_lanes(troupe, 2);
	assert_string_equal(troupe_describe(troupe).note, "");
}

static void X2_a_confined_agent_has_no_ring(void **state)
{
	struct troupe *troupe = *state;
	int64_t        code;
	bool           retired = false;

	troupe_await_lanes(troupe, 2);
	assert_int_equal(troupe_call(troupe, 1, MOONCAKE_GET, "one!uring", 0, BLOCK, &code, &retired), 0);
	assert_int_equal(code, -704);
	assert_true(retired);
}

/* Whoever has a dead provider's port has its addresses read and written, in his own memory. */
static void X2_an_agent_takes_no_port_that_a_provider_may_have_had(void **state)
{
	struct troupe *troupe = *state;
	int64_t        code;
	bool           retired = false;

	troupe_await_lanes(troupe, 2);
	assert_int_equal(troupe_call(troupe, 1, MOONCAKE_GET, "one!ports", 0, BLOCK, &code, &retired), 0);
	assert_int_equal(code, -704);
	assert_true(retired);
}

static void X2_a_hang_past_the_limit_is_killed_and_retired(void **state)
{
	struct troupe troupe;
	int64_t       code = 77;
	bool          retired = false;

	(void)state;
	troupe_init(&troupe, 1);
	/* Long enough for the thread that writes to begin, most times; the end is the same. */
	troupe.settings.timeout_ns = 100 * MS;
	troupe_open(&troupe);
	assert_int_equal(troupe_call(&troupe, 1, MOONCAKE_PUT, "one!scribble", 0, BLOCK, &code, &retired),
			 -ETIMEDOUT);
	assert_int_equal(code, 77);
	assert_true(retired);
	assert_true(troupe.way->ops->settled(troupe.way));
	assert_int_equal(troupe_describe(&troupe).kills, 1);
	check_at_rest(&troupe);
	troupe_fini(&troupe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(X2_a_code_that_proves_nothing_has_its_agent_killed),
		cmocka_unit_test(a_lookup_that_fails_kills_nobody),
		cmocka_unit_test(X2_a_confined_agent_has_no_ring),
		cmocka_unit_test(X2_an_agent_takes_no_port_that_a_provider_may_have_had),
		cmocka_unit_test(X2_what_is_no_answer_has_its_agent_killed),
		cmocka_unit_test(a_lane_that_is_down_is_told),
		cmocka_unit_test(X2_a_hang_past_the_limit_is_killed_and_retired),
	};

	return cmocka_run_group_tests(tests, init, fini);
}
