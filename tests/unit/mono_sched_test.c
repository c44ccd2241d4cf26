/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler without a store: admission, fences, publication, where a prompt's pages came from.
 * mono_sched_read_test.c has the store's part.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rounds.h"

static void assert_pages(const struct mono_sched_result *result, uint32_t device, uint32_t host,
			 uint32_t computed)
{
	assert_int_equal(result->pages[MONO_ORIGIN_DEVICE], device);
	assert_int_equal(result->pages[MONO_ORIGIN_HOST], host);
	assert_int_equal(result->pages[MONO_ORIGIN_STORE], 0);
	assert_int_equal(result->pages[MONO_ORIGIN_RECOMPUTED], computed);
}

static void A1_8_without_a_store_no_op_is_emitted_and_nothing_prepared(void **state)
{
	const struct retirement_notice notice = { .op_id = 1 };
	struct rounds                  rounds;
	uint32_t                       i;

	(void)state;
	rounds_start(&rounds, 5, 8, false);
	for (i = 0; i < 20; i++) {
		rounds_submit(&rounds, i % ROUNDS_IDS, 10 + i % 3, 13 + i % 4);
		rounds_step(&rounds);
		assert_int_equal(rounds.plan->op_count, 0);
		assert_int_equal(mono_sched_wake_ns(rounds.sched), UINT64_MAX);
		assert_int_equal(mono_sched_load(rounds.sched).transfers, 0);
		assert_int_equal(mono_sched_load(rounds.sched).backups, 0);
		rounds_drain(&rounds);
		assert_false(rounds.results[i % ROUNDS_IDS].considered);
	}
	assert_null(mono_sched_transfer(rounds.sched));
	assert_false(mono_sched_quarantined(rounds.sched));
	assert_int_equal(mono_sched_notice(rounds.sched, &notice), KVS_E_STALE);
	mono_sched_discard_backups(rounds.sched);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

/* The sums are checked at the end of each request, in rounds_finish(). */
static void X6_each_page_and_token_of_every_length_has_one_origin(void **state)
{
	uint64_t      pages[MONO_ORIGIN_COUNT] = { 0 };
	struct rounds rounds;
	uint32_t      length, i;

	(void)state;
	rounds_start(&rounds, 6, 10, false);
	for (i = 0; i < 3; i++) {
		for (length = 1; length <= 6 * ROUNDS_PAGE; length++) {
			rounds_compute(&rounds, 10 + length % 3, length);
			pages[MONO_ORIGIN_DEVICE] += rounds.results[0].pages[MONO_ORIGIN_DEVICE];
			pages[MONO_ORIGIN_HOST] += rounds.results[0].pages[MONO_ORIGIN_HOST];
			pages[MONO_ORIGIN_RECOMPUTED] += rounds.results[0].pages[MONO_ORIGIN_RECOMPUTED];
		}
	}
	assert_true(pages[MONO_ORIGIN_DEVICE] > 0);
	assert_true(pages[MONO_ORIGIN_HOST] > 0);
	assert_true(pages[MONO_ORIGIN_RECOMPUTED] > 0);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

static void one_token_takes_a_block_and_leaves_nothing(void **state)
{
	struct rounds rounds;

	(void)state;
	rounds_start(&rounds, 2, 2, false);
	rounds_submit(&rounds, 3, 10, 1);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->pass_count, 1);
	assert_int_equal(rounds.plan->passes[0].page_count, 1);
	assert_int_equal(rounds.plan->passes[0].hit_pages, 0);
	rounds_finish(&rounds);
	assert_pages(&rounds.results[3], 0, 0, 1);
	assert_int_equal(rounds.results[3].tokens[MONO_ORIGIN_RECOMPUTED], 1);
	assert_int_equal(mono_sched_load(rounds.sched).copies, 0);
	assert_int_equal(mono_sched_coord(rounds.sched)->index.slots.busy_count, 0);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

/* A page alone has a name but is never restored: its last token must be computed. */
static void exactly_one_page_is_published_and_computed_again(void **state)
{
	struct rounds rounds;

	(void)state;
	rounds_start(&rounds, 4, 4, false);
	rounds_compute(&rounds, 10, ROUNDS_PAGE);
	assert_int_equal(rounds_held(&rounds, 10).device_end, 1);
	assert_int_equal(rounds_held(&rounds, 10).host_end, 1);
	rounds_compute(&rounds, 10, ROUNDS_PAGE);
	assert_pages(&rounds.results[0], 0, 0, 1);
	rounds_compute(&rounds, 10, ROUNDS_PAGE + 1);
	assert_pages(&rounds.results[0], 1, 0, 1);
	assert_int_equal(mono_sched_coord(rounds.sched)->device.idle_count, 1);
	assert_int_equal(mono_sched_coord(rounds.sched)->host.idle_count, 1);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

static void the_last_of_several_full_pages_is_computed_again(void **state)
{
	struct rounds rounds;

	(void)state;
	rounds_start(&rounds, 8, 8, false);
	rounds_compute(&rounds, 10, 3 * ROUNDS_PAGE);
	rounds_compute(&rounds, 10, 3 * ROUNDS_PAGE);
	assert_pages(&rounds.results[0], 2, 0, 1);
	assert_int_equal(rounds.results[0].tokens[MONO_ORIGIN_DEVICE], 2 * ROUNDS_PAGE);
	assert_int_equal(rounds_held(&rounds, 10).device_end, 3);
	rounds_compute(&rounds, 10, 3 * ROUNDS_PAGE + 1);
	assert_pages(&rounds.results[0], 3, 0, 1);
	assert_int_equal(rounds.results[0].tokens[MONO_ORIGIN_RECOMPUTED], 1);
	rounds_close(&rounds);
}

static void restored_pages_are_read_behind_their_fence_only(void **state)
{
	const struct tier_ticket     *copy;
	const struct mono_sched_pass *pass;
	struct rounds                 rounds;
	uint32_t                      slot;

	(void)state;
	rounds_start(&rounds, 4, 8, false);
	rounds_compute(&rounds, 10, 13);
	rounds_compute(&rounds, 20, 13);
	assert_int_equal(rounds_held(&rounds, 10).device_end, 0);
	slot = rounds_submit(&rounds, 1, 10, 13);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->pass_count, 0);
	assert_int_equal(rounds.plan->copy_count, 1);
	copy = mono_sched_copy(rounds.sched, rounds.plan->copies[0]);
	assert_int_equal(copy->kind, TIER_LOAD);
	assert_int_equal(copy->pair_count, 3);
	assert_int_equal(rounds_host_room(&rounds), 8 - 3);
	assert_false(mono_sched_abort(rounds.sched, slot));

	rounds_next(&rounds);
	assert_int_equal(rounds.plan->pass_count + rounds.plan->copy_count, 0);
	mono_sched_copied(rounds.sched, 0);
	assert_int_equal(rounds_host_room(&rounds), 8);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->pass_count, 1);
	pass = &rounds.plan->passes[0];
	assert_int_equal(pass->device_pages, 0);
	assert_int_equal(pass->hit_pages, 3);
	assert_int_equal(pass->page_count, 4);
	assert_int_equal(pass->table[0], copy->pairs[0].device_block);
	assert_int_equal(pass->table[2], copy->pairs[2].device_block);
	/* Nobody else may find what the row may still be wrong about. */
	assert_int_equal(rounds_held(&rounds, 10).device_end, 0);
	rounds_finish(&rounds);
	assert_pages(&rounds.results[1], 0, 3, 1);
	assert_int_equal(rounds_held(&rounds, 10).device_end, 3);
	rounds_drain(&rounds);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

static void the_host_publishes_behind_the_fence_only(void **state)
{
	struct rounds rounds;

	(void)state;
	rounds_start(&rounds, 4, 4, false);
	rounds_submit(&rounds, 0, 10, 9);
	rounds_next(&rounds);
	rounds_finish(&rounds);
	assert_int_equal(rounds_held(&rounds, 10).device_end, 2);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->copy_count, 1);
	assert_int_equal(mono_sched_copy(rounds.sched, rounds.plan->copies[0])->kind, TIER_SAVE);
	assert_int_equal(rounds_held(&rounds, 10).host_end, 0);
	/* The source stays while the copy reads it. */
	assert_int_equal(rounds_device_room(&rounds), 2);
	rounds_fence(&rounds);
	assert_int_equal(rounds_held(&rounds, 10).host_end, 2);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

/* Two computed the same prompt side by side: each had its own blocks, one of each page stays. */
static void duplicates_in_flight_end_as_one(void **state)
{
	struct rounds rounds;

	(void)state;
	rounds_start(&rounds, 8, 8, false);
	rounds_submit(&rounds, 1, 10, 13);
	rounds_submit(&rounds, 2, 10, 13);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->pass_count, 2);
	assert_int_equal(rounds_device_room(&rounds), 0);
	rounds_finish(&rounds);
	assert_int_equal(rounds_held(&rounds, 10).device_end, 3);
	rounds_drain(&rounds);
	assert_pages(&rounds.results[1], 0, 0, 4);
	assert_pages(&rounds.results[2], 0, 0, 4);
	assert_int_equal(mono_sched_coord(rounds.sched)->device.idle_count, 3);
	assert_int_equal(mono_sched_coord(rounds.sched)->host.idle_count, 3);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

/* The second does not fit; the third would, and waits all the same. */
static void a_small_device_serves_in_order_of_arrival(void **state)
{
	struct rounds rounds;

	(void)state;
	rounds_start(&rounds, 4, 8, false);
	rounds_submit(&rounds, 1, 10, 12);
	rounds_submit(&rounds, 2, 20, 12);
	rounds_submit(&rounds, 3, 30, 1);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->pass_count, 1);
	assert_int_equal(rounds.plan->passes[0].id, 1);
	rounds_finish(&rounds);
	/* Its pages are on their way to the Host: no room before the fence. */
	rounds_step(&rounds);
	assert_int_equal(rounds.plan->pass_count, 0);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->pass_count, 2);
	assert_int_equal(rounds.plan->passes[0].id, 2);
	assert_int_equal(rounds.plan->passes[1].id, 3);
	rounds_finish(&rounds);
	rounds_drain(&rounds);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

static void an_abort_takes_effect_at_the_next_round_unless_blocks_are_held(void **state)
{
	struct rounds rounds;
	uint32_t      first, second;

	(void)state;
	rounds_start(&rounds, 4, 8, false);
	first = rounds_submit(&rounds, 1, 10, 16);
	second = rounds_submit(&rounds, 2, 20, 16);
	rounds_next(&rounds);
	assert_false(mono_sched_abort(rounds.sched, first));
	assert_true(mono_sched_abort(rounds.sched, second));
	assert_int_equal(mono_sched_load(rounds.sched).requests, 2);
	rounds_finish(&rounds);
	rounds_drain(&rounds);
	assert_int_equal(rounds.finished[1], 1);
	assert_int_equal(rounds.finished[2], 0);
	/* The slot serves again. */
	assert_int_equal(rounds_submit(&rounds, 3, 20, 16), 0);
	assert_int_equal(rounds_submit(&rounds, 4, 20, 16), 1);
	rounds_drain(&rounds);
	assert_int_equal(rounds.finished[4], 1);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

static void with_all_copy_tickets_busy_admission_waits_for_a_fence(void **state)
{
	struct mono_sched_options options = rounds_options(8, 8, false);
	struct rounds             rounds;
	uint32_t                  copies[3];
	uint32_t                  i;

	(void)state;
	options.request_max = 1;
	rounds_open(&rounds, &options);
	for (i = 0; i < 3; i++) {
		rounds_submit(&rounds, i, 10 * (i + 1), 5);
		rounds_next(&rounds);
		assert_int_equal(rounds.plan->pass_count, 1);
		rounds_finish(&rounds);
		rounds_next(&rounds);
		assert_int_equal(rounds.plan->copy_count, 1);
		copies[i] = rounds.plan->copies[0];
	}
	rounds_submit(&rounds, 3, 40, 5);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->pass_count, 0);
	mono_sched_copied(rounds.sched, copies[1]);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->pass_count, 1);
	rounds_finish(&rounds);
	assert_int_equal(mono_sched_unsaved(rounds.sched), 0);
	mono_sched_copied(rounds.sched, copies[0]);
	mono_sched_copied(rounds.sched, copies[2]);
	rounds_drain(&rounds);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

/* Two rows, one ticket: the second's page stays on the Device alone. */
static void a_finished_request_without_a_copy_ticket_is_counted(void **state)
{
	struct mono_sched_options options = rounds_options(8, 8, false);
	struct rounds             rounds;
	uint32_t                  i;

	(void)state;
	options.request_max = 2;
	rounds_open(&rounds, &options);
	for (i = 0; i < 5; i++) {
		rounds_submit(&rounds, i, 10 * (i + 1), 4);
		rounds_next(&rounds);
		rounds_finish(&rounds);
		rounds_next(&rounds);
	}
	rounds_submit(&rounds, 6, 60, 4);
	rounds_submit(&rounds, 7, 70, 4);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->pass_count, 2);
	rounds_finish(&rounds);
	assert_int_equal(mono_sched_unsaved(rounds.sched), 1);
	assert_int_equal(mono_sched_load(rounds.sched).copies, 6);
	assert_int_equal(rounds_held(&rounds, 70).device_end, 1);
	for (i = 0; i < 6; i++)
		mono_sched_copied(rounds.sched, i);
	assert_int_equal(rounds_held(&rounds, 70).host_end, 0);
	rounds_close(&rounds);
}

static void a_full_host_takes_the_front_of_a_prompt(void **state)
{
	struct rounds rounds;

	(void)state;
	rounds_start(&rounds, 8, 2, false);
	rounds_compute(&rounds, 10, 17);
	assert_int_equal(rounds.finished[0], 1);
	assert_int_equal(mono_sched_unsaved(rounds.sched), 2);
	assert_int_equal(rounds_held(&rounds, 10).device_end, 4);
	assert_int_equal(rounds_held(&rounds, 10).host_end, 2);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

/* lru-leaf's promise, for pages that came down from the Device: a prefix outlives its suffix. */
static void a_chain_copied_to_the_host_leaves_it_from_its_end(void **state)
{
	struct mono_sched_options options = rounds_options(8, 4, false);
	struct rounds             rounds;

	(void)state;
	options.coord.host_policy = "lru-leaf";
	rounds_open(&rounds, &options);
	rounds_compute(&rounds, 10, 9);
	rounds_compute(&rounds, 10, 17);
	assert_int_equal(rounds_held(&rounds, 10).host_end, 4);
	rounds_compute(&rounds, 20, 5);
	assert_int_equal(rounds_held(&rounds, 10).host_end, 3);
	rounds_close(&rounds);
}

/* The second time there is nothing to copy: the use alone must not leave the prefix the oldest. */
static void a_chain_used_again_leaves_from_its_end(void **state)
{
	struct mono_sched_options options = rounds_options(8, 4, false);
	struct rounds             rounds;

	(void)state;
	options.coord.host_policy = "lru-leaf";
	rounds_open(&rounds, &options);
	rounds_compute(&rounds, 10, 17);
	rounds_compute(&rounds, 10, 17);
	assert_pages(&rounds.results[0], 4, 0, 1);
	rounds_compute(&rounds, 20, 5);
	assert_int_equal(rounds_held(&rounds, 10).host_end, 3);
	rounds_close(&rounds);
}

static void submit_refuses_in_a_sentence(void **state)
{
	const int32_t    tokens[3 * ROUNDS_PAGE] = { 0 };
	struct rounds    rounds;
	struct kvs_error err;
	uint32_t         slot = 77;
	uint32_t         i;

	(void)state;
	rounds_start(&rounds, 2, 2, false);
	assert_int_equal(mono_sched_submit(rounds.sched, 1, tokens, 0, &slot, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "tokens: a request needs at least one");
	assert_int_equal(mono_sched_submit(rounds.sched, 1, tokens, 9, &slot, &err), KVS_E_INVALID);
	assert_string_equal(err.message,
			    "tokens: 9 are too many for one request, which holds 8 in 2 blocks");
	assert_int_equal(slot, 77);
	assert_int_equal(mono_sched_load(rounds.sched).requests, 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(mono_sched_submit(rounds.sched, i, tokens, 8, &slot, &err), 0);
	assert_int_equal(mono_sched_submit(rounds.sched, 4, tokens, 8, &slot, &err), KVS_E_FULL);
	assert_string_equal(err.message, "requests: 4 are in already");
	rounds_drain(&rounds);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

static void assert_refused(struct mono_sched_options options, const char *message)
{
	struct mono_sched *sched = NULL;
	struct kvs_error   err;

	assert_int_equal(mono_sched_open(&options, NULL, &sched, &err), KVS_E_INVALID);
	assert_string_equal(err.message, message);
	assert_null(sched);
}

static void open_refuses_options_out_of_range(void **state)
{
	struct mono_sched_options options = rounds_options(2, 2, false);

	(void)state;
	options.page_tokens = 0;
	assert_refused(options, "page_tokens: 0 is no page; use at least 1");
	options = rounds_options(2, 2, false);
	options.request_max = 0;
	assert_refused(options, "request_max: 0 is out of range; use 1 to 1048576");
	options.request_max = UINT32_MAX;
	assert_refused(options, "request_max: 4294967295 is out of range; use 1 to 1048576");
	options = rounds_options(2, 2, false);
	options.page_max = 0;
	assert_refused(options,
		       "page_max: 0 is out of range; use 1 to the 2 blocks of the Device");
	options.page_max = 3;
	assert_refused(options,
		       "page_max: 3 is out of range; use 1 to the 2 blocks of the Device");
}

static void open_refuses_what_its_rooms_refuse(void **state)
{
	struct mono_sched_options options = rounds_options(2, 2, true);
	struct mono_sched        *sched = NULL;
	struct kvs_error          err;

	(void)state;
	options.coord.host_policy = "mru";
	assert_int_equal(mono_sched_open(&options, NULL, &sched, &err), KVS_E_INVALID);
	assert_non_null(strstr(err.message, "\"mru\" is not known"));
	options = rounds_options(2, 2, true);
	options.transfer.op_credits = 0;
	assert_int_equal(mono_sched_open(&options, NULL, &sched, &err), KVS_E_INVALID);
	assert_non_null(strstr(err.message, "op_credits"));
	assert_null(sched);
	mono_sched_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A1_8_without_a_store_no_op_is_emitted_and_nothing_prepared),
		cmocka_unit_test(X6_each_page_and_token_of_every_length_has_one_origin),
		cmocka_unit_test(one_token_takes_a_block_and_leaves_nothing),
		cmocka_unit_test(exactly_one_page_is_published_and_computed_again),
		cmocka_unit_test(the_last_of_several_full_pages_is_computed_again),
		cmocka_unit_test(restored_pages_are_read_behind_their_fence_only),
		cmocka_unit_test(the_host_publishes_behind_the_fence_only),
		cmocka_unit_test(duplicates_in_flight_end_as_one),
		cmocka_unit_test(a_small_device_serves_in_order_of_arrival),
		cmocka_unit_test(an_abort_takes_effect_at_the_next_round_unless_blocks_are_held),
		cmocka_unit_test(with_all_copy_tickets_busy_admission_waits_for_a_fence),
		cmocka_unit_test(a_finished_request_without_a_copy_ticket_is_counted),
		cmocka_unit_test(a_full_host_takes_the_front_of_a_prompt),
		cmocka_unit_test(a_chain_copied_to_the_host_leaves_it_from_its_end),
		cmocka_unit_test(a_chain_used_again_leaves_from_its_end),
		cmocka_unit_test(submit_refuses_in_a_sentence),
		cmocka_unit_test(open_refuses_options_out_of_range),
		cmocka_unit_test(open_refuses_what_its_rooms_refuse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
