/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariant flat: after open, rounds of the scheduler do not allocate.
 *
 * The linker is told to --wrap the allocation functions (tests/unit/meson.build).  Calls inside
 * shared libraries do not count; of those the rounds use libcrypto's SHA-256, whose state lies on our
 * stack.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/prng.h"
#include "allocs.h"
#include "sched_rig.h"

#define PARENT_BYTES 64u
#define HOST_PARENTS 12u
#define LIVE 4u
#define FACTS 16u

/* A scheduler whose copies and storage are over when the next round comes; a store that keeps all. */
struct shop {
	struct sched      *sched;
	struct arena_part  part;
	struct hostmap     hostmap;
	struct tick        tick;
	uint64_t           copies[64];
	struct fact        facts[FACTS];
	struct sched_event events[2 * LIVE];
	uint64_t           finished, loads, gets;
	_Alignas(64) uint8_t memory[HOST_PARENTS * PARENT_BYTES];
};

static void shop_open(struct shop *shop, bool with_store)
{
	const struct hostmap_group block = { 2, PARENT_BYTES / 2 }; /* as the first of the options */
	struct sched_options       options = srig_options();

	shop->part = (struct arena_part){ .base = shop->memory, .block_bytes = PARENT_BYTES,
					  .stride = PARENT_BYTES, .block_count = HOST_PARENTS,
					  .blocks_per_slice = HOST_PARENTS };
	options.group_count = 1;
	options.device_parents = 16;
	options.host_parents = HOST_PARENTS;
	options.request_max = LIVE;
	options.with_store = with_store;
	options.part = &shop->part;
	options.hostmap = &shop->hostmap;
	options.transfer = (struct transfer_limits){ .op_credits = 8, .host_credits = 16, .keys_max = 16,
						     .put_keys_max = 4, .backup_max = 16,
						     .negative_max = 8, .history_max = 64,
						     .tail_hint_max = 16, .tails_max = 4,
						     .lookahead_tokens = 256,
						     .deadline_ns = UINT64_MAX, .hold_ns = 5 };
	assert_int_equal(hostmap_make(&block, 1, HOST_PARENTS, &shop->hostmap, NULL), 0);
	assert_int_equal(sched_open(&options, &shop->sched, NULL), 0);
	shop->tick.permits = (struct agree_permits){ true, true };
	shop->tick.copies = shop->copies;
	shop->tick.facts = shop->facts;
}

/* Conversations of few kinds, so that they meet again. */
static void shop_submit(struct shop *shop, struct prng *prng, uint32_t number)
{
	int32_t              tokens[20];
	char                 id[SCHED_ID_BYTES];
	const uint32_t       kind = (uint32_t)prng_below(prng, 6);
	struct sched_request request = { .id = id, .tokens = tokens, .max_new_tokens = 1,
					 .logits_from = LOGITS_NONE };
	uint32_t             i;

	request.token_count = 4 + (uint32_t)prng_below(prng, 16);
	for (i = 0; i < request.token_count; i++)
		tokens[i] = (int32_t)(kind * 100 + i);
	snprintf(id, sizeof(id), "%08u", number);
	(void)sched_submit(shop->sched, &request, 1, NULL);
}

static void shop_answer(struct shop *shop, const struct sched_plan *plan)
{
	uint32_t i, row;

	memcpy(shop->copies, plan->copies, plan->copy_count * sizeof(*plan->copies));
	shop->tick.copy_count = plan->copy_count;
	shop->tick.fact_count = 0;
	for (i = 0; i < plan->op_count; i++) {
		struct fact *const fact = &shop->facts[shop->tick.fact_count];

		if (plan->ops[i].kind == OP_CANCEL)
			continue;
		fact_init(fact, &plan->ops[i]);
		fact->retired = true;
		for (row = 0; row < fact->key_count; row++)
			bits_set(fact->ok.words, row);
		shop->gets += plan->ops[i].kind == OP_GET;
		shop->tick.fact_count++;
	}
}

static void shop_round(struct shop *shop)
{
	static const int32_t     token = 7;
	const struct sched_plan *plan;
	uint32_t                 i, applied;
	uint32_t                 count = 0;

	shop->tick.now_ns++;
	sched_next(shop->sched, &shop->tick, &plan);
	shop_answer(shop, plan);
	shop->finished += plan->ended_count;
	shop->loads += sched_load(shop->sched).loading;
	for (i = 0; i < plan->forward.row_count; i++) {
		const struct batch_row *const row = &plan->forward.rows[i];

		if (!row->ends_prompt)
			continue;
		shop->events[count++] = (struct sched_event){ .kind = SCHED_EXTEND, .id = row->id,
							      .tokens = &token, .token_count = 1 };
		shop->events[count++] =
			(struct sched_event){ .kind = SCHED_FINISH, .id = row->id };
	}
	assert_int_equal(sched_feed(shop->sched, shop->events, count, &applied, NULL), 0);
}

static void run_flat(bool with_store)
{
	static struct shop shop;
	struct prng        prng;
	uint64_t           at_open;
	uint32_t           i;

	shop = (struct shop){ 0 };
	prng_seed(&prng, 3);
	allocs_count = 0;
	shop_open(&shop, with_store);
	assert_true(allocs_count > 0);
	at_open = allocs_count;
	for (i = 0; i < 5000; i++) {
		shop_submit(&shop, &prng, i);
		shop_round(&shop);
	}
	assert_int_equal(allocs_count, at_open);
	/* And it was a run that came by the places that matter. */
	assert_true(shop.finished > 1000);
	assert_true(shop.loads > 100);
	assert_true(with_store ? shop.gets > 100 : shop.gets == 0);
	sched_close(shop.sched);
}

static void no_allocation_after_open_without_a_store(void **state)
{
	(void)state;
	run_flat(false);
}

static void no_allocation_after_open_with_a_store(void **state)
{
	(void)state;
	run_flat(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_allocation_after_open_without_a_store),
		cmocka_unit_test(no_allocation_after_open_with_a_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
