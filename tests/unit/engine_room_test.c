/* SPDX-License-Identifier: Apache-2.0 */
/* Requests over real blocks, scenario by scenario: who has to wait, aborts, retractions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "stay.h"

/* --- room ------------------------------------------------------------------------------------- */

static void an_abort_at_any_time_gives_all_back(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(4) };
	struct yard *const             yard = stay_open(groups, 2, 2, 31, 0);
	struct guest                   r1;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 12);
	stay_step(yard, &r1, 4);
	guest_abort(yard, &r1);
	assert_int_equal(stay_available(yard), 31);
	stay_prompt(yard, &r1, 2, 1, 12);
	stay_prefill(yard, &r1, 4);
	stay_step(yard, &r1, 1);
	guest_abort(yard, &r1);
	stay_close(yard);
}

static void a_second_request_waits_for_the_first(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(4) };
	struct yard *const             yard = stay_open(groups, 2, 2, 10, 0);
	struct guest                   r1, r2;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 8);
	stay_prompt(yard, &r2, 2, 101, 8);
	stay_prefill(yard, &r1, 64);
	assert_int_equal(stay_available(yard), 0);
	assert_int_equal(guest_admit(yard, &r2, 64), KVS_E_FULL);
	stay_step(yard, &r1, 1);
	assert_int_equal(stay_available(yard), 2);
	assert_int_equal(guest_admit(yard, &r2, 64), KVS_E_FULL);
	guest_finish(yard, &r1);
	stay_prefill(yard, &r2, 64);
	guest_finish(yard, &r2);
	stay_close(yard);
}

/* a takes 6 and 2 in reserve: b, that needs 4, finds 2; without a all 10 are b's. */
static void room_in_reserve_is_nobody_elses(void **state)
{
	static const struct group_spec groups[] = { FULL_2, WINDOW_2(32) };
	struct yard *const             yard = stay_open(groups, 2, 2, 10, 0);
	struct guest                   a, b;

	(void)state;
	stay_prompt(yard, &a, 1, 1, 6);
	stay_prefill(yard, &a, 64);
	assert_int_equal(stay_available(yard), 2);
	stay_prompt(yard, &b, 2, 101, 2);
	assert_int_equal(guest_admit(yard, &b, 64), KVS_E_FULL);
	guest_abort(yard, &a);
	stay_prompt(yard, &b, 3, 101, 8);
	stay_prefill(yard, &b, 64);
	assert_int_equal(stay_available(yard), 0);
	guest_finish(yard, &b);
	stay_close(yard);
}

static void a_retracted_request_with_a_state_comes_back_where_it_stood(void **state)
{
	static const struct group_spec groups[] = { FULL_2, { "state", GROUP_STATE, 2, 0, 1 } };
	struct yard *const             yard = stay_open(groups, 2, 2, 31, 31);
	struct guest                   r1;

	(void)state;
	stay_prompt(yard, &r1, 1, 1, 7);
	stay_prefill(yard, &r1, 64);
	stay_step(yard, &r1, 1);
	stay_step(yard, &r1, 1);
	yard_settle(yard);
	guest_retract(yard, &r1);
	yard_settle(yard);
	assert_int_equal(stay_available(yard), 31);
	assert_true(cache_clear_device(yard->cache));
	/* Nine tokens have their rows: eight under names, the ninth's in the image. */
	assert_int_equal(stay_step(yard, &r1, 64), 1);
	assert_int_equal(r1.hit, 8);
	assert_int_equal(r1.computed, 10);
	guest_finish(yard, &r1);
	yard_settle(yard);
	stay_close(yard);
}

static uint32_t releasable(struct yard *yard, struct guest *guest)
{
	struct table *const tables = guest->tables;

	return cache_releasable(yard->cache, &tables, 1);
}

/*
 * One request waits for its loads, one for its forward, and a third is retracted to make room for a
 * fourth: it gets that one's blocks and no others.  A block that is being loaded is not to be had even
 * with its own request's consent.
 */
static void a_retraction_takes_nothing_from_a_load_or_a_forward(void **state)
{
	static const struct group_spec groups[] = { FULL_2 };
	struct yard *const             yard = stay_open(groups, 1, 2, 12, 12);
	struct guest                   loads, forward, decodes, waits;
	uint32_t                       slots[2][GUEST_TOKENS];

	(void)state;
	stay_prompt(yard, &loads, 1, 1, 8);
	stay_prefill(yard, &loads, 64);
	guest_finish(yard, &loads);
	yard_drain(yard);
	yard_settle(yard);
	assert_true(cache_clear_device(yard->cache));

	stay_prompt(yard, &decodes, 2, 201, 6);
	stay_prefill(yard, &decodes, 64);
	yard_settle(yard);
	stay_prompt(yard, &loads, 3, 1, 8);
	assert_int_equal(guest_admit(yard, &loads, 64), 0);
	assert_int_equal(guest_loading(yard, &loads), 1);
	assert_int_equal(loads.tables[0].count, 5);
	assert_int_equal(releasable(yard, &loads), 2); /* not the three that are being loaded */
	stay_prompt(yard, &forward, 4, 101, 2);
	assert_int_equal(guest_admit(yard, &forward, 64), 0);
	stay_prompt(yard, &waits, 5, 301, 5);
	assert_int_equal(guest_admit(yard, &waits, 64), KVS_E_FULL);
	memcpy(slots[0], loads.slots[0], sizeof(slots[0]));
	memcpy(slots[1], forward.slots[0], sizeof(slots[1]));

	guest_retract(yard, &decodes);
	yard_settle_saves(yard);
	assert_int_equal(guest_admit(yard, &waits, 64), 0);
	assert_memory_equal(loads.slots[0], slots[0], sizeof(slots[0]));
	assert_memory_equal(forward.slots[0], slots[1], sizeof(slots[1]));
	assert_int_equal(guest_loading(yard, &loads), 1);
	guest_forward(yard, &waits); /* writes its rows: whoever shared a block would read them */
	guest_forward(yard, &loads);
	guest_forward(yard, &forward);
	yard_settle(yard);
	assert_int_equal(releasable(yard, &loads), 5);
	guest_finish(yard, &loads);
	guest_finish(yard, &forward);
	guest_finish(yard, &waits);
	guest_abort(yard, &decodes);
	yard_settle(yard);
	stay_close(yard);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_abort_at_any_time_gives_all_back),
		cmocka_unit_test(a_second_request_waits_for_the_first),
		cmocka_unit_test(room_in_reserve_is_nobody_elses),
		cmocka_unit_test(a_retracted_request_with_a_state_comes_back_where_it_stood),
		cmocka_unit_test(a_retraction_takes_nothing_from_a_load_or_a_forward),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
