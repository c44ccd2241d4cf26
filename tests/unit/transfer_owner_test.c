/* SPDX-License-Identifier: Apache-2.0 */
/* Page-cyclic groups: an owner's ops carry the spans of its own blocks and all keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "hoist.h"

static const struct group_spec packed[BOX_GROUPS] = { BOX_FULL(HOIST_PAGE, 4),
						      BOX_STATE(HOIST_PAGE, 1) };

static struct hoist hoists[2];

static int setup(void **state)
{
	struct hoist_options options = { .specs = packed, .limits = &hoist_limits, .host_parents = 12,
					 .owners = 2 };

	(void)state;
	for (options.rank = 0; options.rank < 2; options.rank++) {
		struct hoist *const hoist = &hoists[options.rank];

		hoist_open(hoist, &options);
		hoist_store(hoist, 0, HOIST_FULL, 0, 4);
		hoist_store(hoist, 0, HOIST_STATE, 3, 4);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	hoist_close(&hoists[0]);
	hoist_close(&hoists[1]);
	return 0;
}

/* Each row of a group that is dealt out lies with one of them, and its span is that of the local block. */
static void check_rows(const struct op *ops)
{
	uint32_t i, rank, group, block;

	assert_int_equal(ops[0].key_count, ops[1].key_count);
	assert_int_equal(ops[0].op_id, ops[1].op_id);
	for (i = 0; i < ops[0].key_count; i++) {
		for (rank = 0; rank < 2; rank++) {
			struct hoist *const hoist = &hoists[rank];
			struct kvs_span     span = { 0 };
			bool                held;

			ticket_block(transfer_find(hoist->transfer, ops[rank].op_id), i, &group, &block);
			held = group == HOIST_STATE || (block - 1) % 2 == rank;
			if (held) {
				span = hostmap_span(&hoist->hostmap, &hoist->part, group,
						    group == HOIST_STATE ? block : (block - 1) / 2 + 1);
			}
			assert_int_equal(bits_test(ops[rank].owned.words, i), held);
			assert_memory_equal(&ops[rank].spans[i], &span, sizeof(span));
		}
	}
}

static void A7_6_a_get_moves_the_rows_that_its_owner_holds(void **state)
{
	struct op ops[2];
	uint32_t  rank;

	(void)state;
	for (rank = 0; rank < 2; rank++) {
		hoist_ask(&hoists[rank], 0, 16);
		ops[rank] = hoist_last_op(&hoists[rank]);
		/* Every owner asks for everything. */
		assert_int_equal(bits_prefix(ops[rank].owned.words, OP_KEYS_MAX), ops[rank].key_count);
		hoist_serve(&hoists[rank]);
		ops[rank] = hoist_last_op(&hoists[rank]);
		/* Sharding changes no charge. */
		assert_int_equal(transfer_load(hoists[rank].transfer).host_refs, 5);
	}
	check_rows(ops);
	assert_int_equal(bits_count(ops[0].owned.words, 5) + bits_count(ops[1].owned.words, 5), 6);
}

static void A7_6_so_does_a_put(void **state)
{
	struct op ops[2];
	uint32_t  rank, page;

	(void)state;
	for (rank = 0; rank < 2; rank++) {
		for (page = 0; page < 3; page++) {
			hoist_publish(&hoists[rank], 0, HOIST_FULL, page);
			hoist_offer(&hoists[rank], 0, HOIST_FULL, page);
		}
		hoist_publish(&hoists[rank], 0, HOIST_STATE, 2);
		hoist_offer(&hoists[rank], 0, HOIST_STATE, 2);
		hoist_tick(&hoists[rank]);
		ops[rank] = hoist_last_op(&hoists[rank]);
		assert_int_equal(ops[rank].kind, OP_PUT);
		assert_int_equal(ops[rank].key_count, 4);
	}
	check_rows(ops);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(A7_6_a_get_moves_the_rows_that_its_owner_holds),
		TEST(A7_6_so_does_a_put),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
