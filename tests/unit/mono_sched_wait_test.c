/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every way in which a wait for the store ends early: soft deadline, expired hold, abort,
 * quarantine.  What was under way keeps its blocks until it retired, and never publishes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "rounds.h"

/* 13 tokens are three full pages and a token: three may be restored. */
#define TOKENS 13u

static void A3_12_a_late_query_answer_starts_nothing(void **state)
{
	struct rounds rounds;
	struct op     query;

	(void)state;
	rounds_start(&rounds, 8, 8, true);
	rounds.now_ns = 1000;
	rounds_submit(&rounds, 1, 10, TOKENS);
	rounds_next(&rounds);
	query = *rounds_op(&rounds, OP_QUERY);
	assert_int_equal(mono_sched_wake_ns(rounds.sched), 1000 + ROUNDS_DEADLINE);
	rounds.now_ns = 1000 + ROUNDS_DEADLINE - 1;
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->op_count + rounds.plan->pass_count, 0);
	/* The answer comes with the tick of the deadline: the deadline is first. */
	rounds.now_ns++;
	rounds_answer(&rounds, &query, UINT64_MAX);
	rounds_next(&rounds);
	assert_null(rounds_op(&rounds, OP_GET));
	assert_int_equal(rounds_op(&rounds, OP_CANCEL)->op_id, query.op_id);
	assert_int_equal(rounds.plan->pass_count, 1);
	assert_int_equal(mono_sched_wake_ns(rounds.sched), UINT64_MAX);
	rounds_finish(&rounds);
	assert_int_equal(rounds_outcome(&rounds, 1), MONO_TRANSFER_DEADLINE);
	assert_int_equal(rounds.results[1].wait_ns, ROUNDS_DEADLINE);
	rounds_drain(&rounds);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

/* It must not wrap into the past: the caller would never sleep. */
static void a_deadline_past_the_end_of_the_clock_never_comes(void **state)
{
	struct mono_sched_options options = rounds_options(8, 8, true);
	struct rounds             rounds;

	(void)state;
	options.transfer.deadline_ns = UINT64_MAX - 1;
	rounds_open(&rounds, &options);
	rounds.now_ns = 1000;
	rounds_submit(&rounds, 1, 10, TOKENS);
	rounds_next(&rounds);
	assert_non_null(rounds_op(&rounds, OP_QUERY));
	assert_int_equal(mono_sched_wake_ns(rounds.sched), UINT64_MAX);
	rounds_answer(&rounds, rounds_op(&rounds, OP_QUERY), 0);
	rounds_drain(&rounds);
	rounds_close(&rounds);
}

/* The deadline covers QUERY and GET together, frees nothing, and what comes after it is never published. */
static void A3_12_a_late_get_never_publishes_and_keeps_its_blocks(void **state)
{
	struct rounds rounds;
	struct op     get;

	(void)state;
	rounds_start(&rounds, 8, 8, true);
	rounds_submit(&rounds, 1, 10, TOKENS);
	rounds_next(&rounds);
	rounds.now_ns = ROUNDS_DEADLINE - 1;
	rounds_answer(&rounds, rounds_op(&rounds, OP_QUERY), UINT64_MAX);
	rounds_next(&rounds);
	get = *rounds_op(&rounds, OP_GET);
	rounds.now_ns++;
	rounds_next(&rounds);
	assert_int_equal(rounds_op(&rounds, OP_CANCEL)->op_id, get.op_id);
	assert_int_equal(rounds.plan->pass_count, 1);
	assert_int_equal(rounds.plan->passes[0].hit_pages, 0);
	assert_int_equal(rounds_host_room(&rounds), 5);
	assert_int_equal(mono_sched_transfer(rounds.sched)->host_refs, 3);

	rounds.now_ns += 1000000;
	rounds_next(&rounds);
	assert_int_equal(rounds_host_room(&rounds), 5);
	rounds_answer(&rounds, &get, UINT64_MAX);
	rounds_next(&rounds);
	assert_int_equal(rounds_host_room(&rounds), 8);
	assert_int_equal(rounds_held(&rounds, 10).host_end, 0);
	assert_int_equal(pool_unbound(mono_sched_coord(rounds.sched)->host.pool), 8);
	rounds_close(&rounds);
}

static void A3_12_a_get_that_ends_on_the_tick_of_its_deadline_is_late(void **state)
{
	struct rounds rounds;

	(void)state;
	rounds_start(&rounds, 8, 8, true);
	rounds_answer(&rounds, rounds_get(&rounds, 1, 10, TOKENS, 7), UINT64_MAX);
	rounds.now_ns = ROUNDS_DEADLINE;
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->pass_count, 1);
	assert_int_equal(rounds_held(&rounds, 10).host_end, 0);
	assert_int_equal(rounds_host_room(&rounds), 8);
	rounds_finish(&rounds);
	assert_int_equal(rounds_outcome(&rounds, 1), MONO_TRANSFER_DEADLINE);
	rounds_close(&rounds);
}

static void without_a_deadline_a_request_waits_for_its_fact(void **state)
{
	struct mono_sched_options options = rounds_options(8, 8, true);
	struct rounds             rounds;

	(void)state;
	options.transfer.deadline_ns = UINT64_MAX;
	rounds_open(&rounds, &options);
	rounds_get(&rounds, 1, 10, TOKENS, 7);
	rounds_answer(&rounds, rounds_op(&rounds, OP_GET), UINT64_MAX);
	assert_int_equal(mono_sched_wake_ns(rounds.sched), UINT64_MAX);
	rounds.now_ns = UINT64_MAX / 2;
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->copy_count, 1);
	rounds_close(&rounds);
}

/* The Device is busy until the hold expires: the request goes on with what the Host still has. */
static void the_store_is_considered_once_even_when_a_hold_expires(void **state)
{
	struct mono_sched_pass busy;
	struct rounds          rounds;

	(void)state;
	rounds_start(&rounds, 4, 8, true);
	rounds_submit(&rounds, 2, 20, 16);
	rounds_next(&rounds);
	rounds_answer(&rounds, rounds_op(&rounds, OP_QUERY), 0);
	rounds_next(&rounds);
	busy = rounds.plan->passes[0];
	rounds_answer(&rounds, rounds_get(&rounds, 1, 10, TOKENS, 7), UINT64_MAX);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->copy_count, 0);
	assert_int_equal(rounds_host_room(&rounds), 5);
	rounds.now_ns = ROUNDS_HOLD - 1;
	rounds_next(&rounds);
	assert_int_equal(rounds_host_room(&rounds), 5);
	rounds.now_ns = ROUNDS_HOLD;
	rounds_next(&rounds);
	assert_int_equal(rounds_host_room(&rounds), 8);
	assert_int_equal(mono_sched_transfer(rounds.sched)->expired_holds, 1);
	assert_int_equal(rounds.plan->op_count, 0);

	mono_sched_finished(rounds.sched, busy.request, &rounds.results[2]);
	rounds_step(&rounds);
	rounds_step(&rounds);
	assert_null(rounds_op(&rounds, OP_QUERY));
	assert_int_equal(rounds.plan->copy_count, 1);
	rounds_keep_puts(&rounds);
	rounds_drain(&rounds);
	assert_int_equal(rounds.finished[1], 1);
	assert_int_equal(rounds.results[1].pages[MONO_ORIGIN_HOST], 3);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

static void an_abort_while_prefetching_cancels_and_waits_for_the_fact(void **state)
{
	struct rounds rounds;
	struct op     get;
	uint32_t      slot;

	(void)state;
	rounds_start(&rounds, 8, 8, true);
	slot = rounds_submit(&rounds, 1, 10, TOKENS);
	rounds_next(&rounds);
	rounds_answer(&rounds, rounds_op(&rounds, OP_QUERY), 7);
	rounds_next(&rounds);
	get = *rounds_op(&rounds, OP_GET);
	assert_true(mono_sched_abort(rounds.sched, slot));
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->op_count, 1);
	assert_int_equal(rounds_op(&rounds, OP_CANCEL)->op_id, get.op_id);
	assert_int_equal(mono_sched_load(rounds.sched).requests, 0);
	assert_int_equal(mono_sched_load(rounds.sched).transfers, 1);
	assert_int_equal(rounds_host_room(&rounds), 5);
	/* A new request has the slot; the old one's fact is no news to it. */
	assert_int_equal(rounds_submit(&rounds, 2, 20, TOKENS), slot);
	rounds_next(&rounds);
	assert_non_null(rounds_op(&rounds, OP_QUERY));
	rounds_answer(&rounds, rounds_op(&rounds, OP_QUERY), 0);
	rounds_answer(&rounds, &get, UINT64_MAX);
	rounds_drain(&rounds);
	assert_int_equal(rounds.finished[1], 0);
	assert_int_equal(rounds.finished[2], 1);
	assert_int_equal(rounds_held(&rounds, 10).host_end, 0);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

/* Abort and fact meet in one round: the cancellation is first, so nothing is published. */
static void an_abort_beats_the_fact_of_the_same_round(void **state)
{
	struct rounds rounds;

	(void)state;
	rounds_start(&rounds, 8, 8, true);
	rounds_answer(&rounds, rounds_get(&rounds, 1, 10, TOKENS, 7), UINT64_MAX);
	assert_true(mono_sched_abort(rounds.sched, 0));
	rounds_next(&rounds);
	assert_int_equal(rounds_held(&rounds, 10).host_end, 0);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

/* SUBMITTED for the second time, with a hold, while the Device is full. */
static void an_abort_while_submitted_drops_the_hold(void **state)
{
	struct mono_sched_pass busy;
	struct rounds          rounds;

	(void)state;
	rounds_start(&rounds, 4, 8, true);
	rounds_submit(&rounds, 2, 20, 4);
	rounds_next(&rounds);
	busy = rounds.plan->passes[0];
	rounds_answer(&rounds, rounds_get(&rounds, 1, 10, TOKENS, 7), UINT64_MAX);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->copy_count, 0);
	assert_int_equal(rounds_host_room(&rounds), 5);
	assert_true(mono_sched_abort(rounds.sched, 1));
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->op_count, 0);
	assert_int_equal(rounds_host_room(&rounds), 8);
	assert_int_equal(rounds_held(&rounds, 10).host_end, 3);
	mono_sched_finished(rounds.sched, busy.request, &rounds.results[2]);
	rounds_drain(&rounds);
	assert_int_equal(rounds.finished[1], 0);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

static void an_unretired_get_keeps_its_blocks_until_a_notice(void **state)
{
	struct retirement_notice notice;
	struct rounds            rounds;
	struct fact              fact;

	(void)state;
	rounds_start(&rounds, 8, 8, true);
	fact_init(&fact, rounds_get(&rounds, 1, 10, TOKENS, 7));
	notice.op_id = fact.op_id;
	bits_fill(fact.ok.words, 3);
	mono_sched_fact(rounds.sched, &fact);
	rounds_step(&rounds);
	assert_int_equal(rounds_outcome(&rounds, 1), MONO_TRANSFER_QUARANTINE);
	assert_int_equal(rounds.results[1].pages[MONO_ORIGIN_RECOMPUTED], 4);
	assert_true(mono_sched_quarantined(rounds.sched));
	rounds_drain(&rounds);
	assert_int_equal(rounds_host_room(&rounds), 5);
	rounds_submit(&rounds, 2, 20, TOKENS);
	rounds_step(&rounds);
	assert_int_equal(rounds.plan->op_count, 0);
	assert_int_equal(rounds_outcome(&rounds, 2), MONO_TRANSFER_QUARANTINE);
	assert_int_equal(mono_sched_notice(rounds.sched, &notice), 0);
	assert_int_equal(mono_sched_notice(rounds.sched, &notice), KVS_E_STALE);
	assert_false(mono_sched_quarantined(rounds.sched));
	rounds_drain(&rounds);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A3_12_a_late_query_answer_starts_nothing),
		cmocka_unit_test(a_deadline_past_the_end_of_the_clock_never_comes),
		cmocka_unit_test(A3_12_a_late_get_never_publishes_and_keeps_its_blocks),
		cmocka_unit_test(A3_12_a_get_that_ends_on_the_tick_of_its_deadline_is_late),
		cmocka_unit_test(without_a_deadline_a_request_waits_for_its_fact),
		cmocka_unit_test(the_store_is_considered_once_even_when_a_hold_expires),
		cmocka_unit_test(an_abort_while_prefetching_cancels_and_waits_for_the_fact),
		cmocka_unit_test(an_abort_beats_the_fact_of_the_same_round),
		cmocka_unit_test(an_abort_while_submitted_drops_the_hold),
		cmocka_unit_test(an_unretired_get_keeps_its_blocks_until_a_notice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
