/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that share the work: one computes prompts and hands them over, another takes them and decodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sched_rig.h"

static const struct group_spec full[] = { { "full", GROUP_FULL, 2, 0, 1 } };
static const struct group_spec full_state[] = { { "full", GROUP_FULL, 2, 0, 1 },
						{ "state", GROUP_STATE, 2, 0, 1 } };
static const struct group_spec full_window[] = { { "full", GROUP_FULL, 2, 0, 1 },
						 { "window", GROUP_WINDOW, 2, 4, 1 } };
static struct srig rig;

static void open_as(enum sched_role role, const struct group_spec *groups, uint32_t group_count,
		    uint32_t parents)
{
	struct sched_options options = srig_options();

	options.role = role;
	options.groups = groups;
	options.group_count = group_count;
	options.device_parents = parents;
	srig_open(&rig, &options);
}

static void bootstrap(const char *id)
{
	assert_int_equal(srig_event(&rig, SCHED_BOOTSTRAPPED, id), 0);
}

/* --- PREFILL ---------------------------------------------------------------------------------- */

static void a_prefill_rank_hands_its_prompt_over(void **state)
{
	(void)state;
	open_as(SCHED_PREFILL, full_window, 2, 31);
	srig_submit_new(&rig, "a", 9, 1);
	srig_next(&rig);
	assert_int_equal(sched_load(rig.sched).bootstrapping, 1);
	assert_int_equal(rig.plan->forward.row_count, 0);
	bootstrap("a");
	assert_int_equal(srig_event(&rig, SCHED_HANDED_OVER, "a"), KVS_E_INVALID);
	srig_next(&rig);
	assert_int_equal(srig_row(&rig, "a")->token_count, 9);
	/* Nothing is kept free for decodes. */
	assert_int_equal(srig_slots(&rig, "a", 0), 5);
	srig_extend(&rig, "a");
	srig_next(&rig);
	assert_int_equal(rig.plan->forward.row_count, 0);
	assert_int_equal(srig_event(&rig, SCHED_HANDED_OVER, "a"), 0);
	srig_next(&rig);
	assert_int_equal(srig_ended(&rig, "a")->end, SCHED_FINISHED);
	srig_submit_new(&rig, "b", 9, 1);
	bootstrap("b");
	srig_next(&rig);
	assert_int_equal(srig_row(&rig, "b")->begin, 8);
	srig_close(&rig);
}

static void a_peer_that_fails_ends_a_request_and_publishes_nothing(void **state)
{
	(void)state;
	open_as(SCHED_PREFILL, full, 1, 31);
	srig_submit_new(&rig, "a", 8, 1);
	bootstrap("a");
	srig_next(&rig);
	assert_int_equal(srig_event(&rig, SCHED_PEER_FAILED, "a"), 0);
	srig_next(&rig);
	assert_int_equal(srig_ended(&rig, "a")->end, SCHED_FAILED);
	srig_submit_new(&rig, "b", 8, 1);
	bootstrap("b");
	srig_next(&rig);
	assert_int_equal(srig_row(&rig, "b")->begin, 0);
	srig_close(&rig);
}

/* A2_3: the wait for storage and the wait for the peer overlap. */
static void A2_3_a_peer_may_come_while_storage_is_asked(void **state)
{
	struct sched_options options = srig_store_options();
	int32_t              tokens[16];
	int                  early;

	(void)state;
	options.role = SCHED_PREFILL;
	srig_tokens(tokens, 16, 100, 1);
	for (early = 0; early < 2; early++) {
		srig_open(&rig, &options);
		rig.store_held = true;
		srig_submit(&rig, "a", tokens, 12, 1);
		srig_next(&rig);
		assert_int_equal(sched_load(rig.sched).prefetching, 1);
		if (early)
			bootstrap("a");
		assert_int_equal(sched_load(rig.sched).prefetching, 1);
		srig_let_store(&rig);
		srig_next(&rig);
		assert_int_equal(sched_load(rig.sched).bootstrapping, !early);
		assert_int_equal(rig.plan->forward.row_count, early);
		if (!early)
			bootstrap("a");
		srig_next(&rig);
		assert_int_equal(sched_load(rig.sched).prefill_done, 1);
		srig_close(&rig);
	}
}

/* --- DECODE ----------------------------------------------------------------------------------- */

static void a_decode_rank_takes_a_whole_prompt_and_goes_on(void **state)
{
	(void)state;
	open_as(SCHED_DECODE, full, 1, 8);
	srig_submit_new(&rig, "a", 4, 1);
	assert_int_equal(srig_event(&rig, SCHED_PREFILLED, "a"), KVS_E_INVALID);
	bootstrap("a");
	srig_next(&rig);
	assert_int_equal(srig_row(&rig, "a")->kind, BATCH_REMOTE);
	assert_int_equal(srig_row(&rig, "a")->token_count, 4);
	assert_int_equal(srig_slots(&rig, "a", 0), 3);
	srig_next(&rig);
	assert_int_equal(rig.plan->forward.row_count, 0);
	srig_prefilled(&rig, "a");
	srig_step(&rig);
	assert_int_equal(srig_row(&rig, "a")->kind, BATCH_DECODE);
	assert_int_equal(srig_row(&rig, "a")->begin, 4);
	srig_step(&rig);
	srig_finish(&rig, "a");
	srig_close(&rig);
}

static void a_state_lands_in_its_last_block_and_a_window_in_its_own(void **state)
{
	(void)state;
	open_as(SCHED_DECODE, full_state, 2, 16);
	srig_submit_new(&rig, "a", 8, 1);
	bootstrap("a");
	srig_next(&rig);
	assert_int_equal(srig_slots(&rig, "a", 0), 5);
	assert_int_equal(srig_slots(&rig, "a", 1), 4);
	assert_int_equal(srig_holes(&rig, "a", 1), 3);
	srig_prefilled(&rig, "a");
	srig_step(&rig);
	srig_step(&rig);
	srig_close(&rig);

	open_as(SCHED_DECODE, full_window, 2, 24);
	srig_submit_new(&rig, "a", 12, 1);
	bootstrap("a");
	srig_next(&rig);
	assert_int_equal(srig_holes(&rig, "a", 1), 4);
	srig_prefilled(&rig, "a");
	srig_step(&rig);
	srig_step(&rig);
	srig_close(&rig);
}

static void what_Device_has_is_not_sent_again(void **state)
{
	(void)state;
	open_as(SCHED_DECODE, full_state, 2, 16);
	srig_submit_new(&rig, "a", 8, 1);
	bootstrap("a");
	srig_next(&rig);
	srig_prefilled(&rig, "a");
	srig_step(&rig);
	srig_finish(&rig, "a");
	srig_submit_new(&rig, "b", 10, 1);
	bootstrap("b");
	srig_next(&rig);
	assert_int_equal(srig_row(&rig, "b")->begin, 8);
	srig_prefilled(&rig, "b");
	srig_step(&rig);
	srig_close(&rig);
}

/* One for whom there is no room is let in before the one that made it comes back. */
static void a_retraction_lets_the_blocked_one_in_first(void **state)
{
	uint32_t rounds = 0;

	(void)state;
	open_as(SCHED_DECODE, full, 1, 9);
	srig_submit_new(&rig, "a", 6, 1);
	srig_submit_new(&rig, "c", 6, 3);
	bootstrap("a");
	bootstrap("c");
	srig_next(&rig);
	assert_null(srig_row(&rig, "c"));
	srig_next(&rig);
	srig_prefilled(&rig, "a");
	srig_prefilled(&rig, "c");
	srig_submit_new(&rig, "b", 6, 2);
	bootstrap("b");
	do {
		srig_step(&rig);
		assert_true(rounds++ < 8);
	} while (rig.plan->forward.row_count > 0);
	assert_int_equal(sched_load(rig.sched).retracted, 1);
	srig_next(&rig);
	assert_int_equal(srig_row(&rig, "b")->kind, BATCH_REMOTE);
	srig_prefilled(&rig, "b");
	srig_step(&rig);
	srig_finish(&rig, "b");
	srig_finish(&rig, "c");
	rounds = 0;
	do {
		srig_step(&rig);
		assert_true(rounds++ < 8);
	} while (!srig_row(&rig, "a"));
	/* Nobody sends it again: it is computed here. */
	assert_int_equal(srig_row(&rig, "a")->kind, BATCH_PREFILL);
	srig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prefill_rank_hands_its_prompt_over),
		cmocka_unit_test(a_peer_that_fails_ends_a_request_and_publishes_nothing),
		cmocka_unit_test(A2_3_a_peer_may_come_while_storage_is_asked),
		cmocka_unit_test(a_decode_rank_takes_a_whole_prompt_and_goes_on),
		cmocka_unit_test(a_state_lands_in_its_last_block_and_a_window_in_its_own),
		cmocka_unit_test(what_Device_has_is_not_sent_again),
		cmocka_unit_test(a_retraction_lets_the_blocked_one_in_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
