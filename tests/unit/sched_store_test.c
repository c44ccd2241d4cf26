/* SPDX-License-Identifier: Apache-2.0 */
/* Storage before an admission: once a request, in a state of its own, and never in anybody's way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sched/parts.h"
#include "sched_rig.h"

static struct srig rig;
static int32_t     tokens[64];

/* The store has a prompt of so many tokens, Device and Host have nothing. */
static void open_with_stored(const struct sched_options *options, uint32_t count)
{
	srig_open(&rig, options);
	srig_tokens(tokens, 64, 100, 1);
	srig_submit(&rig, "seed", tokens, count, 1);
	srig_settle(&rig, 16);
	srig_extend(&rig, "seed");
	srig_finish(&rig, "seed");
	srig_settle(&rig, 16);
	assert_true(rig.puts > 0);
	assert_int_equal(sched_clear(rig.sched, &rig.options.space, NULL), 0);
	rig.queries = rig.gets = rig.puts = 0;
}

static void what_the_store_has_is_read_once_and_restored(void **state)
{
	const struct sched_options options = srig_store_options();
	struct explanation         why;

	(void)state;
	open_with_stored(&options, 12);
	srig_submit(&rig, "a", tokens, 14, 1);
	srig_next(&rig);
	assert_int_equal(sched_load(rig.sched).prefetching, 1);
	assert_int_equal(rig.plan->op_count, 1);
	assert_int_equal(rig.plan->ops[0].kind, OP_QUERY);
	assert_int_equal(rig.plan->forward.row_count, 0);
	srig_next(&rig);
	assert_int_equal(rig.plan->ops[0].kind, OP_GET);
	srig_next(&rig);
	assert_int_equal(srig_row(&rig, "a")->begin, 12);
	assert_true(srig_row(&rig, "a")->fence > 0);
	assert_int_equal(sched_load(rig.sched).transfer.ready, 0);
	assert_int_equal(sched_explain(rig.sched, "a", &why), 0);
	assert_int_equal(why.reason, MISS_NONE);
	assert_int_equal(why.read, READ_READY);
	assert_int_equal(why.store_tokens, 12);
	assert_int_equal(why.wait_ns, 2);
	assert_int_equal(rig.queries, 1);
	srig_close(&rig);
}

static void A2_2_a_miss_goes_on_at_once_and_is_not_asked_again(void **state)
{
	const struct sched_options options = srig_store_options();
	struct explanation         why;

	(void)state;
	srig_open(&rig, &options);
	srig_submit_new(&rig, "a", 12, 1);
	srig_next(&rig);
	srig_next(&rig);
	assert_int_equal(srig_row(&rig, "a")->begin, 0);
	assert_int_equal(sched_explain(rig.sched, "a", &why), 0);
	assert_int_equal(why.reason, MISS_STORAGE);
	assert_int_equal(why.read, READ_NEVER_STORED);
	srig_extend_all(&rig);
	srig_next(&rig);
	assert_int_equal(rig.queries, 1);
	srig_close(&rig);
}

/* X4: what it brought is not why it ended there. */
static void X4_a_read_that_ends_early_says_why(void **state)
{
	const struct sched_options options = srig_store_options();
	struct explanation         why;

	(void)state;
	open_with_stored(&options, 12);
	srig_submit(&rig, "a", tokens, 20, 1);
	srig_next(&rig);
	srig_next(&rig);
	srig_next(&rig);
	assert_int_equal(srig_row(&rig, "a")->begin, 12);
	assert_int_equal(sched_explain(rig.sched, "a", &why), 0);
	assert_int_equal(why.reason, MISS_STORAGE);
	assert_int_equal(why.read, READ_READY);
	assert_string_equal(explanation_word(&why), "never_stored");
	assert_int_equal(why.shortfall.group, 0);
	assert_int_equal(why.shortfall.position, 6);
	srig_close(&rig);
}

static void a_deadline_ends_the_wait(void **state)
{
	const struct sched_options options = srig_store_options();

	(void)state;
	open_with_stored(&options, 12);
	rig.store_held = true;
	srig_submit(&rig, "a", tokens, 14, 1);
	srig_next(&rig);
	assert_int_equal(sched_load(rig.sched).prefetching, 1);
	assert_int_equal(sched_wake_ns(rig.sched), rig.tick.now_ns + 1000);
	rig.tick.now_ns += 2000;
	srig_next(&rig);
	assert_int_equal(srig_row(&rig, "a")->begin, 0);
	srig_close(&rig);
}

/* A2_4: whoever leaves gives back what a read holds. */
static void A2_4_an_abort_drops_the_lease_wherever_it_comes(void **state)
{
	const struct sched_options options = srig_store_options();
	uint32_t                   rounds, i;

	(void)state;
	for (rounds = 0; rounds < 4; rounds++) {
		open_with_stored(&options, 12);
		srig_submit(&rig, "a", tokens, 14, 1);
		rig.tick.permits.forward = false;
		for (i = 0; i < rounds; i++)
			srig_next(&rig);
		assert_int_equal(sched_load(rig.sched).transfer.ready, rounds == 3);
		srig_abort(&rig, "a");
		srig_next(&rig);
		assert_int_equal(sched_load(rig.sched).prefetching, 0);
		srig_next(&rig);
		assert_int_equal(sched_load(rig.sched).transfer.tickets, 0);
		srig_close(&rig);
	}
}

static void A2_5_a_hold_that_ran_out_does_not_stop_the_request(void **state)
{
	const struct sched_options options = srig_store_options();
	uint32_t                   i;

	(void)state;
	open_with_stored(&options, 12);
	srig_submit(&rig, "a", tokens, 14, 1);
	rig.tick.permits.forward = false;
	for (i = 0; i < 3; i++)
		srig_next(&rig);
	assert_int_equal(sched_load(rig.sched).transfer.ready, 1);
	assert_int_equal(sched_load(rig.sched).submitted, 1);
	rig.tick.now_ns += 600;
	rig.tick.permits.forward = true;
	srig_next(&rig);
	assert_int_equal(sched_load(rig.sched).transfer.ready, 0);
	assert_int_equal(srig_row(&rig, "a")->begin, 12);
	srig_close(&rig);
}

static void without_the_permit_the_one_time_is_not_used_up(void **state)
{
	const struct sched_options options = srig_store_options();

	(void)state;
	open_with_stored(&options, 12);
	srig_submit(&rig, "a", tokens, 14, 1);
	rig.tick.permits = (struct agree_permits){ false, false };
	srig_next(&rig);
	assert_int_equal(rig.plan->op_count, 0);
	rig.tick.permits = (struct agree_permits){ true, true };
	srig_next(&rig);
	assert_int_equal(sched_load(rig.sched).prefetching, 1);
	srig_close(&rig);
}

static void X4_who_is_admitted_without_the_permit_is_told_so(void **state)
{
	const struct sched_options options = srig_store_options();
	struct explanation         why;

	(void)state;
	open_with_stored(&options, 12);
	rig.tick.permits.storage = false;
	srig_submit(&rig, "a", tokens, 14, 1);
	srig_next(&rig);
	assert_int_equal(srig_row(&rig, "a")->begin, 0);
	assert_int_equal(sched_explain(rig.sched, "a", &why), 0);
	assert_int_equal(why.reason, MISS_STORAGE);
	assert_string_equal(explanation_word(&why), "frozen");
	srig_close(&rig);
}

static void an_intent_lets_requests_pass_the_store(void **state)
{
	const struct sched_options options = srig_store_options();
	struct explanation         why;

	(void)state;
	open_with_stored(&options, 12);
	sched_set_intent(rig.sched, true);
	srig_submit(&rig, "a", tokens, 14, 1);
	srig_next(&rig);
	assert_int_equal(srig_row(&rig, "a")->begin, 0);
	assert_int_equal(sched_explain(rig.sched, "a", &why), 0);
	assert_int_equal(why.read, READ_MAINTENANCE);
	assert_string_equal(sched_in_the_way(rig.sched), "live requests");
	srig_close(&rig);
}

/* A2_1: it holds no block of Device, and nobody counts it among those that want one. */
static void A2_1_others_compute_while_one_waits(void **state)
{
	const struct sched_options options = srig_store_options();

	(void)state;
	open_with_stored(&options, 12);
	rig.store_held = true;
	srig_submit(&rig, "a", tokens, 14, 1);
	srig_next(&rig);
	assert_int_equal(sched_load(rig.sched).prefetching, 1);
	assert_int_equal(sched_available(rig.sched), 31);
	/* Too short to be worth a question. */
	srig_submit_new(&rig, "b", 1, 7);
	srig_next(&rig);
	assert_non_null(srig_row(&rig, "b"));
	assert_int_equal(sched_load(rig.sched).waiting, 0);
	srig_close(&rig);
}

/* A1_5: of what a plan asks for, ops go in its order, and copies are known by their tickets alone. */
static void A1_5_the_store_answers_before_a_copy_of_the_plan_before_has_run(void **state)
{
	const struct sched_options options = srig_store_options();

	(void)state;
	open_with_stored(&options, 12);
	rig.held = true;
	srig_submit(&rig, "a", tokens, 14, 1);
	srig_next(&rig);
	srig_next(&rig);
	srig_submit_new(&rig, "b", 13, 3);
	srig_submit_new(&rig, "c", 7, 4);
	srig_next(&rig);
	assert_int_equal(rig.plan->copy_count, 1);
	assert_int_equal(rig.plan->copies[0], srig_row(&rig, "a")->fence);
	assert_int_equal(rig.plan->op_count, 2);
	assert_true(rig.plan->ops[0].op_id < rig.plan->ops[1].op_id);
	assert_true(rig.plan->ops[0].key_count > rig.plan->ops[1].key_count);
	srig_next(&rig);
	assert_int_equal(sched_load(rig.sched).prefetching, 0);
	assert_int_equal(sched_load(rig.sched).loading, 1);
	srig_close(&rig);
}

/* A1_6: what has ended enters in the next round, be it frozen, be there nothing to plan. */
static void A1_6_completions_enter_in_frozen_and_idle_rounds_too(void **state)
{
	const struct sched_options options = srig_store_options();

	(void)state;
	open_with_stored(&options, 12);
	rig.store_held = true;
	srig_submit_new(&rig, "a", 9, 3);
	srig_next(&rig);
	assert_int_equal(sched_load(rig.sched).transfer.tickets, 1);
	rig.tick.permits = (struct agree_permits){ false, false };
	srig_let_store(&rig);
	srig_next(&rig);
	assert_int_equal(sched_load(rig.sched).transfer.tickets, 0);
	assert_int_equal(rig.plan->op_count + rig.plan->forward.row_count, 0);
	rig.tick.permits = (struct agree_permits){ true, true };
	rig.held = true;
	srig_step(&rig);
	srig_finish(&rig, "a");
	srig_next(&rig);
	assert_int_equal(sched_load(rig.sched).saving, 1);
	srig_let_copies(&rig);
	srig_next(&rig);
	assert_int_equal(sched_load(rig.sched).saving, 0);
	assert_int_equal(rig.plan->forward.row_count, 0);
	srig_close(&rig);
}

/* A round walks candidates; 10,000 that wait for storage are none. */
static void ten_thousand_that_wait_cost_a_round_nothing(void **state)
{
	struct sched_options     options = srig_store_options();
	const struct sched_plan *plan;
	uint32_t                 i;

	(void)state;
	options.request_max = 10001;
	options.request_tokens_max = 16;
	options.transfer.op_credits = 10000;
	srig_open(&rig, &options);
	srig_tokens(tokens, 8, 100, 1);
	for (i = 0; i < 10000; i++) {
		char                       id[16];
		const struct sched_request ask = { .id = id, .tokens = tokens, .token_count = 8,
						   .logits_from = LOGITS_NONE };

		snprintf(id, sizeof(id), "%u", i);
		assert_int_equal(sched_submit(rig.sched, &ask, 1, NULL), 0);
	}
	rig.tick.now_ns = 1;
	sched_next(rig.sched, &rig.tick, &plan);
	assert_int_equal(plan->op_count, 10000);
	assert_int_equal(sched_load(rig.sched).prefetching, 10000);
	sched_next(rig.sched, &rig.tick, &plan);
	assert_int_equal(plan->op_count, 0);
	srig_submit_new(&rig, "x", 1, 7);
	sched_next(rig.sched, &rig.tick, &plan);
	assert_int_equal(plan->forward.row_count, 1);
	assert_int_equal(rig.sched->heap_count, 0);
	assert_int_equal(rig.sched->lists[REQUEST_SUBMITTED].count, 0);
	/* Nobody is told: the store answers never, and the scheduler is closed over it. */
	sched_close(rig.sched);
	srig_free(&rig);
}

/* A GET, a hold, a load and a save are under way; late I/O is the arena's matter. */
static void a_scheduler_can_be_closed_over_all_that_is_under_way(void **state)
{
	const struct sched_options options = srig_store_options();
	uint32_t                   i;

	(void)state;
	open_with_stored(&options, 12);
	assert_true(sched_bytes(rig.sched) > sizeof(struct sched));
	srig_submit(&rig, "a", tokens, 14, 1);
	for (i = 0; i < 2; i++)
		srig_next(&rig);
	rig.held = true;
	srig_next(&rig);
	assert_int_equal(sched_load(rig.sched).loading, 1);
	srig_submit_new(&rig, "b", 9, 3);
	rig.tick.permits.storage = false;
	srig_step(&rig);
	srig_event(&rig, SCHED_FINISH, "b");
	rig.tick.permits = (struct agree_permits){ false, true };
	srig_tokens(tokens, 4, 900, 1);
	srig_submit(&rig, "c", tokens, 14, 1);
	rig.store_held = true;
	srig_next(&rig);
	assert_true(sched_load(rig.sched).saving > 0);
	assert_int_equal(sched_load(rig.sched).prefetching, 1);
	sched_close(rig.sched);
	srig_free(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_store_has_is_read_once_and_restored),
		cmocka_unit_test(A2_2_a_miss_goes_on_at_once_and_is_not_asked_again),
		cmocka_unit_test(X4_a_read_that_ends_early_says_why),
		cmocka_unit_test(a_deadline_ends_the_wait),
		cmocka_unit_test(A2_4_an_abort_drops_the_lease_wherever_it_comes),
		cmocka_unit_test(A2_5_a_hold_that_ran_out_does_not_stop_the_request),
		cmocka_unit_test(without_the_permit_the_one_time_is_not_used_up),
		cmocka_unit_test(X4_who_is_admitted_without_the_permit_is_told_so),
		cmocka_unit_test(an_intent_lets_requests_pass_the_store),
		cmocka_unit_test(A2_1_others_compute_while_one_waits),
		cmocka_unit_test(A1_5_the_store_answers_before_a_copy_of_the_plan_before_has_run),
		cmocka_unit_test(A1_6_completions_enter_in_frozen_and_idle_rounds_too),
		cmocka_unit_test(ten_thousand_that_wait_cost_a_round_nothing),
		cmocka_unit_test(a_scheduler_can_be_closed_over_all_that_is_under_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
