/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows an owner holds, where, and under which key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agree/owner.h"
#include "council.h"

/* A sharded history of K = 4 beside a state that every owner has. */
static struct groups groups_of(uint32_t packing)
{
	const struct group_spec specs[] = {
		{ .name = "history", .kind = GROUP_FULL, .block_tokens = 16, .packing = packing },
		{ .name = "state", .kind = GROUP_STATE, .block_tokens = 16, .packing = 1 },
	};
	struct groups groups;

	assert_int_equal(groups_make(specs, 2, 16, &groups, NULL), 0);
	return groups;
}

static struct owner owner_of(uint32_t rank, uint32_t count, uint32_t cycle)
{
	const struct owner_group own[] = { { cycle, false }, { 1, true } };
	const struct groups      groups = groups_of(4);
	struct owner             owner;

	assert_int_equal(owner_make(&groups, own, rank, count, &owner, NULL), 0);
	return owner;
}

static void A7_6_blocks_are_dealt_out_in_turn(void **state)
{
	uint32_t rank, block;

	(void)state;
	for (rank = 0; rank < 4; rank++) {
		const struct owner owner = owner_of(rank, 4, 2);
		uint32_t           held = 0;

		for (block = 1; block <= 12; block++) {
			assert_int_equal(owner_holds(&owner, 0, block), block % 2 != rank % 2);
			if (owner_holds(&owner, 0, block))
				assert_int_equal(owner_local(&owner, 0, block), ++held);
			assert_true(owner_holds(&owner, 1, block));
			assert_int_equal(owner_local(&owner, 1, block), block);
		}
		assert_int_equal(held, 6);
	}
}

/* Ranks 0 and 1 share the blocks of replica 0: whoever a new block falls to finds the other's object. */
static void A7_6_a_key_names_the_payload_and_not_its_place(void **state)
{
	uint32_t rank;

	(void)state;
	for (rank = 0; rank < 4; rank++) {
		const struct owner two = owner_of(rank, 4, 2), four = owner_of(rank, 4, 4);

		assert_int_equal(owner_replica(&two, 0), rank / 2);
		assert_int_equal(owner_replica(&four, 0), 0);
		assert_int_equal(owner_replica(&two, 1), rank);
	}
}

/* Of rows 0 to 3 each of two owners has two; the others cost it no word and no byte. */
static void A7_6_rows_of_another_owner_are_neither_failures_nor_evidence(void **state)
{
	struct council council;
	struct fact   *fact;

	(void)state;
	council_open(&council, 2, 2, 0);
	council_expect(&council, 1, OP_GET, 4);
	fact = council_fact(&council, 0, 1, OP_GET, 4);
	fact->read_here.words[0] = 0x5;
	fact->moved_bytes = 2048;
	fact = council_fact(&council, 1, 1, OP_GET, 4);
	fact->read_here.words[0] = 0xa;
	fact->ok.words[0] = 0x7;
	fact->object_fault.words[0] = 0x8;
	assert_int_equal(council_round(&council)->fact_count, 1);
	assert_int_equal(council.tick.facts[0].ok.words[0], 0x7);
	assert_int_equal(council.tick.facts[0].object_fault.words[0], 0x8);
	assert_int_equal(council.tick.facts[0].read_here.words[0], 0xf);
	assert_true(council.tick.facts[0].retired);
	council_close(&council);
}

static void an_owner_alone_holds_everything(void **state)
{
	const struct owner owner = owner_alone();
	uint32_t           g;

	(void)state;
	assert_int_equal(owner.count, 1);
	for (g = 0; g < GROUPS_MAX; g++) {
		assert_true(owner_holds(&owner, g, 1));
		assert_true(owner_holds(&owner, g, 2));
		assert_int_equal(owner_local(&owner, g, 7), 7);
		assert_int_equal(owner_replica(&owner, g), 0);
	}
}

static void A7_6_what_cannot_be_dealt_out_is_refused(void **state)
{
	static const struct {
		uint32_t    packing, cycle, rank, count;
		bool        head_partitioned;
		const char *sentence;
	} cases[] = {
		{ 4, 1, 0, 0, false, "count: 0 owners, must be 1 to 64" },
		{ 4, 1, 0, 65, false, "count: 65 owners, must be 1 to 64" },
		{ 4, 1, 2, 2, false, "rank: 2, must be below 2" },
		{ 4, 0, 0, 4, false, "group 0 \"history\": cycle: 0, must divide the 4 owners" },
		{ 4, 3, 0, 4, false, "group 0 \"history\": cycle: 3, must divide the 4 owners" },
		{ 4, 8, 0, 4, false, "group 0 \"history\": cycle: 8, must divide the 4 owners" },
		{ 3, 2, 0, 4, false,
		  "group 0 \"history\": cycle: 2, must divide the 3 blocks of a parent" },
		{ 4, 2, 0, 4, true,
		  "group 0 \"history\": head_partitioned: blocks dealt out over 2 owners must be the same "
		  "bytes on each" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		const struct owner_group own[] = { { cases[i].cycle, cases[i].head_partitioned },
						   { 1, true } };
		const struct groups      groups = groups_of(cases[i].packing);
		struct owner             owner = { .rank = 77 };
		struct kvs_error         err;

		assert_int_equal(owner_make(&groups, own, cases[i].rank, cases[i].count, &owner, &err),
				 KVS_E_INVALID);
		assert_string_equal(err.message, cases[i].sentence);
		assert_int_equal(owner.rank, 77);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A7_6_blocks_are_dealt_out_in_turn),
		cmocka_unit_test(A7_6_a_key_names_the_payload_and_not_its_place),
		cmocka_unit_test(A7_6_rows_of_another_owner_are_neither_failures_nor_evidence),
		cmocka_unit_test(an_owner_alone_holds_everything),
		cmocka_unit_test(A7_6_what_cannot_be_dealt_out_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
