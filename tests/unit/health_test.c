/* SPDX-License-Identifier: Apache-2.0 */
/* The executor's opinion of its store: what ends an outage, what begins one, who may ask. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "death.h"
#include "exec/health.h"

#define MIN_NS 10u
#define MAX_NS 35u

static struct health opened(void)
{
	struct health health;

	health_init(&health, MIN_NS, MAX_NS);
	return health;
}

/* In cooldown since `now_ns`; the epoch is 1. */
static struct health fallen(uint64_t now_ns)
{
	struct health health = opened();

	health_failure(&health, 0, now_ns);
	return health;
}

static void a_store_is_up_until_there_is_evidence(void **state)
{
	struct health health = opened();

	(void)state;
	assert_int_equal(health.state, HEALTH_UP);
	assert_true(health_admit(&health, 0));
	assert_true(health_admit(&health, 0));
	health_success(&health, 0);
	assert_int_equal(health.state, HEALTH_UP);
	assert_int_equal(health.outages, 0);
}

static void A5_4_a_cooldown_refuses_until_it_is_over(void **state)
{
	struct health health = fallen(100);

	(void)state;
	assert_int_equal(health.state, HEALTH_DOWN);
	assert_int_equal(health.epoch, 1);
	assert_int_equal(health.outages, 1);
	assert_false(health_admit(&health, 100));
	assert_false(health_admit(&health, 100 + MIN_NS - 1));
	assert_true(health_admit(&health, 100 + MIN_NS));
}

static void A5_4_there_is_one_probe_at_a_time(void **state)
{
	struct health health = fallen(0);

	(void)state;
	assert_true(health_admit(&health, MIN_NS));
	assert_int_equal(health.state, HEALTH_PROBING);
	assert_false(health_admit(&health, MIN_NS));
	assert_false(health_admit(&health, UINT64_MAX));
	health_success(&health, 1);
	assert_int_equal(health.state, HEALTH_UP);
	assert_true(health_admit(&health, MIN_NS));
	assert_true(health_admit(&health, MIN_NS));
}

static void A5_4_a_success_begun_before_the_outage_never_clears_it(void **state)
{
	struct health health = fallen(0);

	(void)state;
	health_success(&health, 0);
	assert_int_equal(health.state, HEALTH_DOWN);
	assert_true(health_admit(&health, MIN_NS));
	health_success(&health, 0);
	assert_int_equal(health.state, HEALTH_PROBING);

	/* Nor one of the first outage the second. */
	health_failure(&health, 1, 100);
	assert_int_equal(health.epoch, 2);
	assert_true(health_admit(&health, 200));
	health_success(&health, 1);
	assert_int_equal(health.state, HEALTH_PROBING);
	health_success(&health, 2);
	assert_int_equal(health.state, HEALTH_UP);
}

/* Only a probe, which nobody sent before the cooldown was over, may say so. */
static void A5_4_a_success_within_the_cooldown_does_not_end_it(void **state)
{
	struct health health = fallen(0);

	(void)state;
	health_success(&health, 1);
	assert_int_equal(health.state, HEALTH_DOWN);
	assert_false(health_admit(&health, MIN_NS - 1));
}

static void one_outage_has_one_cooldown_however_much_evidence_comes(void **state)
{
	struct health health = fallen(0);

	(void)state;
	health_failure(&health, 0, 5);
	health_failure(&health, 1, 6);
	assert_int_equal(health.outages, 1);
	assert_int_equal(health.epoch, 1);
	assert_true(health_admit(&health, MIN_NS));
	health_failure(&health, 0, MIN_NS);
	assert_int_equal(health.state, HEALTH_PROBING);
}

static void evidence_after_recovery_is_a_new_outage_with_the_first_cooldown(void **state)
{
	struct health health = fallen(0);

	(void)state;
	assert_true(health_admit(&health, 10));
	health_failure(&health, 1, 10);
	assert_true(health_admit(&health, 30));
	health_success(&health, 2);
	health_failure(&health, 1, 40);
	assert_int_equal(health.state, HEALTH_UP);
	health_failure(&health, 2, 40);
	assert_int_equal(health.epoch, 3);
	assert_int_equal(health.retry_ns, 40 + MIN_NS);
}

static void the_cooldown_doubles_with_every_failed_probe_up_to_its_limit(void **state)
{
	static const uint64_t cooldowns[] = { 10, 20, 35, 35, 35 };
	struct health         health = opened();
	uint64_t              now_ns = 7;
	uint64_t              i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cooldowns); i++) {
		assert_true(health_admit(&health, now_ns));
		health_failure(&health, i, now_ns);
		assert_int_equal(health.retry_ns, now_ns + cooldowns[i]);
		assert_false(health_admit(&health, health.retry_ns - 1));
		now_ns = health.retry_ns;
	}
	assert_int_equal(health.outages, ARRAY_COUNT(cooldowns));
}

static void no_cooldown_runs_over_the_end_of_time(void **state)
{
	struct health health;

	(void)state;
	health_init(&health, UINT64_MAX - 1, UINT64_MAX);
	health_failure(&health, 0, 100);
	assert_int_equal(health.retry_ns, UINT64_MAX);
	assert_true(health_admit(&health, UINT64_MAX));
	health_failure(&health, 1, 200);
	assert_int_equal(health.retry_ns, UINT64_MAX);
	assert_int_equal(health.cooldown_ns, UINT64_MAX);
}

static void A5_4_a_probe_that_asked_nobody_makes_room_for_the_next(void **state)
{
	struct health health = fallen(0);

	(void)state;
	assert_true(health_admit(&health, 20));
	health_unprobe(&health, 25);
	assert_int_equal(health.state, HEALTH_DOWN);
	assert_int_equal(health.epoch, 1);
	assert_int_equal(health.cooldown_ns, MIN_NS);
	assert_true(health_admit(&health, 25));
	health_success(&health, 1);
	health_unprobe(&health, 30);
	assert_int_equal(health.state, HEALTH_UP);
}

static void a_store_that_was_away_at_open_is_probed_at_once(void **state)
{
	struct health health = opened();

	(void)state;
	health_start_down(&health, 50);
	assert_int_equal(health.state, HEALTH_DOWN);
	assert_int_equal(health.outages, 1);
	assert_true(health_admit(&health, 50));
	assert_false(health_admit(&health, 50));
	health_failure(&health, health.epoch, 60);
	assert_int_equal(health.retry_ns, 60 + 2 * MIN_NS);
}

static void states_have_names(void **state)
{
	(void)state;
	assert_string_equal(health_state_name(HEALTH_UP), "up");
	assert_string_equal(health_state_name(HEALTH_DOWN), "down");
	assert_string_equal(health_state_name(HEALTH_PROBING), "probing");
}

static void init_without_a_cooldown(void *arg)
{
	health_init(arg, 0, 1);
}

static void init_upside_down(void *arg)
{
	health_init(arg, 2, 1);
}

static void succeed_in_the_future(void *arg)
{
	health_success(arg, 1);
}

static void fail_in_the_future(void *arg)
{
	health_failure(arg, 1, 0);
}

static void mistakes_of_our_own_panic(void **state)
{
	static void (*const acts[])(void *) = { init_without_a_cooldown, init_upside_down,
						succeed_in_the_future, fail_in_the_future };
	struct health       health = opened();
	size_t              i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(acts); i++)
		assert_true(death_panics(acts[i], &health, NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_store_is_up_until_there_is_evidence),
		cmocka_unit_test(A5_4_a_cooldown_refuses_until_it_is_over),
		cmocka_unit_test(A5_4_there_is_one_probe_at_a_time),
		cmocka_unit_test(A5_4_a_success_begun_before_the_outage_never_clears_it),
		cmocka_unit_test(A5_4_a_success_within_the_cooldown_does_not_end_it),
		cmocka_unit_test(one_outage_has_one_cooldown_however_much_evidence_comes),
		cmocka_unit_test(evidence_after_recovery_is_a_new_outage_with_the_first_cooldown),
		cmocka_unit_test(the_cooldown_doubles_with_every_failed_probe_up_to_its_limit),
		cmocka_unit_test(no_cooldown_runs_over_the_end_of_time),
		cmocka_unit_test(A5_4_a_probe_that_asked_nobody_makes_room_for_the_next),
		cmocka_unit_test(a_store_that_was_away_at_open_is_probed_at_once),
		cmocka_unit_test(states_have_names),
		cmocka_unit_test(mistakes_of_our_own_panic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
