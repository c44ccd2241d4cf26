/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler with a store: the read transaction from QUERY to H2D copy, what it asks for and
 * what it counts, and the PUT behind a computed page.  Facts are made by hand.
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

static void assert_op(const struct op *op, enum op_kind kind, const struct kvs_key *keys,
		      uint32_t key_count)
{
	assert_int_equal(op->kind, kind);
	assert_int_equal(op->key_count, key_count);
	assert_memory_equal(op->keys, keys, key_count * sizeof(*keys));
	assert_int_equal(bits_count(op->owned.words, OP_KEYS_MAX), key_count);
}

static void a_miss_ends_in_ordinary_admission(void **state)
{
	struct rounds rounds;

	(void)state;
	rounds_start(&rounds, 8, 8, true);
	rounds_submit(&rounds, 1, 10, TOKENS);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->pass_count, 0);
	rounds.now_ns = 30;
	rounds_answer(&rounds, rounds_op(&rounds, OP_QUERY), 0);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->op_count, 0);
	assert_int_equal(rounds.plan->pass_count, 1);
	assert_int_equal(rounds.plan->passes[0].hit_pages, 0);
	rounds_finish(&rounds);
	assert_int_equal(rounds_outcome(&rounds, 1), MONO_TRANSFER_MISS);
	assert_int_equal(rounds.results[1].wait_ns, 30);
	assert_int_equal(rounds.results[1].pages[MONO_ORIGIN_RECOMPUTED], 4);
	rounds_drain(&rounds);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

static void A3_5_a_query_reserves_no_blocks(void **state)
{
	struct kvs_key keys[3];
	struct rounds  rounds;

	(void)state;
	rounds_start(&rounds, 8, 8, true);
	rounds_keys(&rounds, 10, 3, keys);
	rounds_submit(&rounds, 1, 10, TOKENS);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->op_count, 1);
	assert_op(&rounds.plan->ops[0], OP_QUERY, keys, 3);
	assert_null(rounds.plan->ops[0].spans);
	assert_int_equal(rounds_device_room(&rounds), 8);
	assert_int_equal(rounds_host_room(&rounds), 8);
	assert_int_equal(pool_unbound(mono_sched_coord(rounds.sched)->host.pool), 8);
	assert_int_equal(mono_sched_transfer(rounds.sched)->host_refs, 0);
	rounds_close(&rounds);
}

/* The whole way: two of three pages are in the store, the third is computed and kept. */
static void a_full_read_goes_through_every_stage(void **state)
{
	const struct tier_ticket *copy;
	struct kvs_key            keys[3];
	struct rounds             rounds;

	(void)state;
	rounds_start(&rounds, 8, 8, true);
	rounds_keys(&rounds, 10, 3, keys);
	assert_op(rounds_get(&rounds, 1, 10, TOKENS, 3), OP_GET, keys, 2);
	assert_int_equal(rounds_host_room(&rounds), 6);
	assert_int_equal(rounds_device_room(&rounds), 8);
	assert_int_equal(rounds.plan->pass_count, 0);
	assert_int_equal(rounds_held(&rounds, 10).host_end, 0);

	rounds.now_ns = 60;
	rounds_answer(&rounds, rounds_op(&rounds, OP_GET), UINT64_MAX);
	rounds_next(&rounds);
	assert_int_equal(rounds_held(&rounds, 10).host_end, 2);
	assert_int_equal(rounds.plan->pass_count, 0);
	assert_int_equal(rounds.plan->copy_count, 1);
	copy = mono_sched_copy(rounds.sched, rounds.plan->copies[0]);
	assert_int_equal(copy->kind, TIER_LOAD);
	assert_int_equal(copy->pair_count, 2);
	/* The hold ended at admission: only the copy keeps the sources now. */
	assert_int_equal(mono_sched_transfer(rounds.sched)->host_refs, 0);
	assert_int_equal(rounds_host_room(&rounds), 6);
	rounds_fence(&rounds);
	assert_int_equal(rounds_host_room(&rounds), 8);

	rounds_next(&rounds);
	assert_int_equal(rounds.plan->pass_count, 1);
	assert_int_equal(rounds.plan->passes[0].hit_pages, 2);
	rounds_finish(&rounds);
	assert_int_equal(rounds_outcome(&rounds, 1), MONO_TRANSFER_READY);
	assert_int_equal(rounds.results[1].pages[MONO_ORIGIN_STORE], 2);
	assert_int_equal(rounds.results[1].tokens[MONO_ORIGIN_STORE], 2 * ROUNDS_PAGE);
	assert_int_equal(rounds.results[1].pages[MONO_ORIGIN_RECOMPUTED], 2);
	assert_int_equal(rounds.results[1].tokens[MONO_ORIGIN_RECOMPUTED],
			 TOKENS - 2 * ROUNDS_PAGE);
	assert_int_equal(rounds.results[1].wait_ns, 60);

	rounds_next(&rounds);
	copy = mono_sched_copy(rounds.sched, rounds.plan->copies[0]);
	assert_int_equal(copy->kind, TIER_SAVE);
	assert_int_equal(copy->pair_count, 1);
	rounds_fence(&rounds);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->op_count, 1);
	assert_op(&rounds.plan->ops[0], OP_PUT, keys + 2, 1);
	assert_int_equal(rounds_host_room(&rounds), 7);
	rounds_keep_puts(&rounds);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->op_count, 0);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

/* From dispatch to fact, whatever the rounds between do: another thread reads keys and spans. */
static void A3_7_keys_and_spans_of_a_get_stay_fixed(void **state)
{
	struct kvs_span spans[3];
	struct kvs_key  keys[3];
	struct rounds   rounds;
	struct op       get;
	uint32_t        i, j;

	(void)state;
	rounds_start(&rounds, 16, 12, true);
	get = *rounds_get(&rounds, 1, 10, TOKENS, 7);
	rounds_keys(&rounds, 10, 3, keys);
	assert_op(&get, OP_GET, keys, 3);
	memcpy(spans, get.spans, sizeof(spans));
	for (i = 0; i < 3; i++) {
		assert_int_equal(spans[i].bytes, rounds.host.block_bytes);
		for (j = 0; j < i; j++)
			assert_ptr_not_equal(spans[i].ptr, spans[j].ptr);
	}
	/* Others read, compute and put; then the deadline cuts the request off. */
	rounds_compute(&rounds, 20, TOKENS);
	rounds.now_ns = ROUNDS_DEADLINE;
	rounds_compute(&rounds, 30, TOKENS);
	assert_int_equal(rounds.results[1].outcome, MONO_TRANSFER_DEADLINE);
	assert_memory_equal(get.keys, keys, sizeof(keys));
	assert_memory_equal(get.spans, spans, sizeof(spans));
	rounds_answer(&rounds, &get, UINT64_MAX);
	rounds_drain(&rounds);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

static void a_hit_at_the_reusable_end_or_a_small_extension_asks_nothing(void **state)
{
	struct mono_sched_options options = rounds_options(8, 8, true);
	struct rounds             rounds;

	(void)state;
	options.extension_min = 2;
	rounds_open(&rounds, &options);
	rounds_compute(&rounds, 10, 9);
	/* Everything that may be restored is here. */
	rounds_submit(&rounds, 1, 10, 9);
	rounds_step(&rounds);
	assert_int_equal(rounds.plan->op_count, 0);
	assert_false(rounds.results[1].considered);
	/* One page more is less than the least extension. */
	rounds_submit(&rounds, 1, 10, 13);
	rounds_step(&rounds);
	assert_null(rounds_op(&rounds, OP_QUERY));
	assert_false(rounds.results[1].considered);
	rounds_drain(&rounds);
	rounds_submit(&rounds, 1, 10, 21);
	rounds_step(&rounds);
	assert_int_equal(rounds_op(&rounds, OP_QUERY)->key_count, 2);
	rounds_close(&rounds);
}

/* A prompt of one page has nothing that may be restored. */
static void a_single_page_asks_nothing(void **state)
{
	struct rounds rounds;

	(void)state;
	rounds_start(&rounds, 8, 8, true);
	rounds_submit(&rounds, 1, 10, ROUNDS_PAGE);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->op_count, 0);
	assert_int_equal(rounds.plan->pass_count, 1);
	rounds_finish(&rounds);
	assert_false(rounds.results[1].considered);
	rounds_close(&rounds);
}

static void with_all_tickets_busy_a_request_computes_at_once(void **state)
{
	struct mono_sched_options options = rounds_options(8, 8, true);
	struct rounds             rounds;

	(void)state;
	options.transfer.op_credits = 1;
	rounds_open(&rounds, &options);
	rounds_submit(&rounds, 1, 10, TOKENS);
	rounds_submit(&rounds, 2, 20, TOKENS);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->op_count, 1);
	assert_int_equal(rounds.plan->pass_count, 1);
	assert_int_equal(rounds.plan->passes[0].id, 2);
	rounds_answer(&rounds, &rounds.plan->ops[0], 0);
	rounds_finish(&rounds);
	assert_int_equal(rounds_outcome(&rounds, 2), MONO_TRANSFER_CREDITS);
	assert_int_equal(rounds.results[2].wait_ns, 0);
	/* Half of one credit is none: nothing is ever put. */
	rounds_drain(&rounds);
	assert_int_equal(rounds.finished[1], 1);
	assert_int_equal(mono_sched_transfer(rounds.sched)->drops[MONO_TRANSFER_DROP_DISABLED], 6);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

/* Both Host blocks are the destinations of a copy that is not fenced yet. */
static void without_host_room_a_found_prefix_is_computed(void **state)
{
	struct rounds rounds;
	uint32_t      copy;

	(void)state;
	rounds_start(&rounds, 8, 2, true);
	rounds_submit(&rounds, 2, 20, 9);
	rounds_next(&rounds);
	rounds_answer(&rounds, rounds_op(&rounds, OP_QUERY), 0);
	rounds_next(&rounds);
	rounds_finish(&rounds);
	rounds_submit(&rounds, 1, 10, TOKENS);
	rounds_next(&rounds);
	copy = rounds.plan->copies[0];
	assert_int_equal(rounds_host_room(&rounds), 0);
	rounds_answer(&rounds, rounds_op(&rounds, OP_QUERY), 7);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->op_count, 0);
	assert_int_equal(rounds.plan->pass_count, 1);
	rounds_finish(&rounds);
	assert_int_equal(rounds_outcome(&rounds, 1), MONO_TRANSFER_HOST_ROOM);
	assert_int_equal(mono_sched_unsaved(rounds.sched), 3);
	mono_sched_copied(rounds.sched, copy);
	rounds_drain(&rounds);
	assert_int_equal(rounds_held(&rounds, 20).host_end, 2);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

static void a_partial_get_restores_the_prefix_and_keeps_the_rest(void **state)
{
	struct rounds rounds;

	(void)state;
	rounds_start(&rounds, 8, 8, true);
	rounds_answer(&rounds, rounds_get(&rounds, 1, 10, TOKENS, 7), 5);
	rounds_next(&rounds);
	assert_int_equal(mono_sched_copy(rounds.sched, rounds.plan->copies[0])->pair_count, 1);
	assert_int_equal(mono_sched_coord(rounds.sched)->index.slots.busy_count, 2);
	assert_int_equal(pool_unbound(mono_sched_coord(rounds.sched)->host.pool), 6);
	rounds_fence(&rounds);
	rounds_step(&rounds);
	assert_int_equal(rounds_outcome(&rounds, 1), MONO_TRANSFER_READY);
	assert_int_equal(rounds.results[1].pages[MONO_ORIGIN_STORE], 1);
	assert_int_equal(rounds.results[1].pages[MONO_ORIGIN_RECOMPUTED], 3);
	rounds_drain(&rounds);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

/*
 * Device keeps the third page of a prompt behind a gap, Host its first two.  The Device's copy is
 * of no use to a request that comes to it from the Host, so that page is asked for.
 */
static void a_page_behind_a_gap_on_the_device_is_asked_for(void **state)
{
	struct kvs_key keys[3];
	struct rounds  rounds;

	(void)state;
	rounds_start(&rounds, 4, 2, true);
	rounds_compute(&rounds, 10, TOKENS);
	/* Two at once, of a token each: the second takes the Device's oldest block. */
	rounds_submit(&rounds, 1, 20, 1);
	rounds_submit(&rounds, 2, 20, 1);
	rounds_step(&rounds);
	assert_int_equal(rounds_held(&rounds, 10).device_end, 0);
	assert_int_equal(rounds_held(&rounds, 10).host_end, 2);
	rounds_keys(&rounds, 10, 3, keys);
	assert_int_not_equal(stratum_find(&mono_sched_coord(rounds.sched)->device, &keys[2]),
			     SLOT_NONE);

	rounds_submit(&rounds, 3, 10, TOKENS);
	rounds_next(&rounds);
	assert_op(rounds_op(&rounds, OP_QUERY), OP_QUERY, keys + 2, 1);
	rounds_answer(&rounds, rounds_op(&rounds, OP_QUERY), 0);
	rounds_drain(&rounds);
	assert_int_equal(rounds.results[3].pages[MONO_ORIGIN_HOST], 2);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

/* Both read the same pages at once; the second's come first.  Each counts what its own read brought. */
static void two_reads_of_a_prompt_are_counted_once_each(void **state)
{
	struct rounds rounds;
	struct op     gets[2];
	uint32_t      i;

	(void)state;
	rounds_start(&rounds, 8, 8, true);
	rounds_submit(&rounds, 1, 10, TOKENS);
	rounds_submit(&rounds, 2, 10, TOKENS);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->op_count, 2);
	for (i = 0; i < 2; i++)
		rounds_answer(&rounds, &rounds.plan->ops[i], 7);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->op_count, 2);
	for (i = 0; i < 2; i++)
		gets[i] = rounds.plan->ops[i];
	rounds_answer(&rounds, &gets[1], 7);
	rounds_answer(&rounds, &gets[0], 7);
	rounds_next(&rounds);
	assert_int_equal(rounds.plan->copy_count, 2);
	assert_int_equal(pool_unbound(mono_sched_coord(rounds.sched)->host.pool), 5);
	rounds_fence(&rounds);
	rounds_step(&rounds);
	assert_int_equal(rounds.results[1].pages[MONO_ORIGIN_HOST], 3);
	assert_int_equal(rounds.results[2].pages[MONO_ORIGIN_STORE], 3);
	rounds_drain(&rounds);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

/* Room for the extension comes from others, though the local prefix was the oldest in the Host. */
static void reading_an_extension_does_not_evict_its_prefix(void **state)
{
	struct rounds rounds;

	(void)state;
	rounds_start(&rounds, 8, 4, true);
	rounds_compute(&rounds, 10, 9);
	rounds_compute(&rounds, 20, 9);
	rounds_get(&rounds, 1, 10, TOKENS, 1);
	assert_int_equal(rounds_host_room(&rounds), 3);
	assert_int_equal(rounds_held(&rounds, 10).host_end, 2);
	assert_int_equal(rounds_held(&rounds, 20).host_end, 0);
	rounds_close(&rounds);
}

/* With nobody else to make room, the end of the prefix goes and not its beginning. */
static void a_chain_waiting_for_its_extension_leaves_from_its_end(void **state)
{
	struct mono_sched_options options = rounds_options(8, 2, true);
	struct rounds             rounds;

	(void)state;
	options.coord.host_policy = "lru-leaf";
	rounds_open(&rounds, &options);
	rounds_compute(&rounds, 10, 9);
	rounds_get(&rounds, 1, 10, TOKENS, 1);
	assert_int_equal(rounds_held(&rounds, 10).host_end, 1);
	rounds_close(&rounds);
}

/* Another's publication in time is as good as one's own read. */
static void pages_published_meanwhile_are_not_fetched_again(void **state)
{
	struct kvs_key keys[3];
	struct rounds  rounds;
	struct op      query;

	(void)state;
	rounds_start(&rounds, 12, 8, true);
	rounds_submit(&rounds, 1, 10, TOKENS);
	rounds_next(&rounds);
	query = *rounds_op(&rounds, OP_QUERY);
	/* Shares two pages, which reach the Host while the first still waits. */
	rounds_compute(&rounds, 11, 9);
	assert_int_equal(rounds_held(&rounds, 10).host_end, 2);
	rounds_answer(&rounds, &query, 7);
	rounds_next(&rounds);
	rounds_keys(&rounds, 10, 3, keys);
	assert_op(rounds_op(&rounds, OP_GET), OP_GET, keys + 2, 1);
	rounds_answer(&rounds, rounds_op(&rounds, OP_GET), 1);
	rounds_drain(&rounds);
	assert_int_equal(rounds.results[1].pages[MONO_ORIGIN_DEVICE], 2);
	assert_int_equal(rounds.results[1].pages[MONO_ORIGIN_STORE], 1);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

static void X6_origins_add_up_under_random_traffic(void **state)
{
	uint64_t      pages[MONO_ORIGIN_COUNT] = { 0 };
	struct rounds rounds;
	struct prng   prng;
	uint32_t      round, id;
	int           origin;

	(void)state;
	prng_seed(&prng, 7);
	rounds_start(&rounds, 9, 12, true);
	for (round = 0; round < 3000; round++) {
		rounds_traffic(&rounds, &prng);
		for (id = 0; id < ROUNDS_IDS; id++) {
			for (origin = 0; origin < MONO_ORIGIN_COUNT; origin++)
				pages[origin] += rounds.results[id].pages[origin];
		}
	}
	for (origin = 0; origin < MONO_ORIGIN_COUNT; origin++)
		assert_true(pages[origin] > 0);
	rounds_end_traffic(&rounds);
	assert_true(rounds_at_rest(&rounds));
	rounds_close(&rounds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_miss_ends_in_ordinary_admission),
		cmocka_unit_test(A3_5_a_query_reserves_no_blocks),
		cmocka_unit_test(a_full_read_goes_through_every_stage),
		cmocka_unit_test(A3_7_keys_and_spans_of_a_get_stay_fixed),
		cmocka_unit_test(a_hit_at_the_reusable_end_or_a_small_extension_asks_nothing),
		cmocka_unit_test(a_single_page_asks_nothing),
		cmocka_unit_test(with_all_tickets_busy_a_request_computes_at_once),
		cmocka_unit_test(without_host_room_a_found_prefix_is_computed),
		cmocka_unit_test(a_partial_get_restores_the_prefix_and_keeps_the_rest),
		cmocka_unit_test(a_page_behind_a_gap_on_the_device_is_asked_for),
		cmocka_unit_test(two_reads_of_a_prompt_are_counted_once_each),
		cmocka_unit_test(reading_an_extension_does_not_evict_its_prefix),
		cmocka_unit_test(a_chain_waiting_for_its_extension_leaves_from_its_end),
		cmocka_unit_test(pages_published_meanwhile_are_not_fetched_again),
		cmocka_unit_test(X6_origins_add_up_under_random_traffic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
