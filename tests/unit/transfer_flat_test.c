/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariant flat: after open, rounds of the manager do not allocate, and what it says of its memory is
 * what it took.
 *
 * The linker is told to --wrap the allocation functions (tests/unit/meson.build).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "allocs.h"
#include "hoist.h"

/* Answer what the last round sent; now and then badly. */
static void answer(struct hoist *hoist, struct prng *prng)
{
	const struct transfer_outputs *const out = transfer_out(hoist->transfer);
	uint32_t                             i;

	for (i = 0; i < out->op_count; i++) {
		struct fact fact;

		if (out->ops[i].kind == OP_CANCEL)
			continue;
		fact = hoist_answer(hoist, &out->ops[i]);
		if (prng_chance(prng, 1, 8))
			fact_refused(&fact, &out->ops[i], OP_REASON_MISS);
		hoist_fact(hoist, &fact);
	}
}

static void round_of(struct hoist *hoist, struct prng *prng)
{
	const uint32_t prompt = (uint32_t)prng_below(prng, HOIST_PROMPTS);
	const uint32_t page = (uint32_t)prng_below(prng, 8);

	answer(hoist, prng);
	hoist->tick.now_ns += prng_below(prng, 200);
	hoist_tick(hoist);
	if (hoist_find(hoist, prompt, HOIST_FULL, page) == BLOCK_NULL)
		hoist_publish(hoist, prompt, HOIST_FULL, page);
	hoist_offer(hoist, prompt, HOIST_FULL, page);
	hoist_read(hoist, prompt, 8 + (uint32_t)prng_below(prng, 40));
	if (prng_chance(prng, 1, 3))
		transfer_drop_lease(hoist->transfer, hoist->lease);
}

static void rounds_do_not_allocate(void **state)
{
	static struct hoist hoist;
	uint64_t            at_open;
	struct prng         prng;
	uint32_t            i, p;

	(void)state;
	prng_seed(&prng, 7);
	hoist_open_plain(&hoist, hoist_full_state, &hoist_limits);
	for (p = 0; p < HOIST_PROMPTS; p++) {
		hoist_store(&hoist, p, HOIST_FULL, 0, 8);
		hoist_store(&hoist, p, HOIST_STATE, 2, 8);
	}
	at_open = allocs_count;
	for (i = 0; i < 3000; i++)
		round_of(&hoist, &prng);
	assert_int_equal(allocs_count, at_open);
	/* And it was a run that came by the places that matter. */
	assert_true(hoist_counter(&hoist, TRANSFER_PUBLISHED) > 300);
	assert_true(hoist_counter(&hoist, TRANSFER_PUTS) > 300);
	assert_true(hoist_counter(&hoist, TRANSFER_CANCELS) > 100);
	assert_true(hoist_counter(&hoist, TRANSFER_EXPIRED_HOLDS) > 10);
	hoist_close(&hoist);
}

static void it_knows_its_memory(void **state)
{
	static struct hoist           hoist;
	const struct transfer_options options = { .limits = hoist_limits,
						  .part = &hoist.part,
						  .owner = &hoist.owner,
						  .hostmap = &hoist.hostmap,
						  .page_max = BOX_PAGES };
	struct transfer_options       again = options;
	struct transfer              *transfer;
	uint64_t                      before;
	struct kvs_error              err;

	(void)state;
	hoist_open_plain(&hoist, hoist_full_state, &hoist_limits);
	again.cache = hoist.box.cache;
	before = allocs_bytes;
	assert_int_equal(transfer_open(&again, &transfer, &err), 0);
	assert_int_equal(transfer_bytes(transfer), allocs_bytes - before);
	transfer_close(transfer);
	hoist_close(&hoist);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounds_do_not_allocate),
		cmocka_unit_test(it_knows_its_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
