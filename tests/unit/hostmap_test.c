/* SPDX-License-Identifier: Apache-2.0 */
/* The geometry of Host blocks: where each lies, and what is refused and how. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "arena/hostmap.h"

static struct hostmap hostmap_of(uint32_t parents, uint32_t count,
				 const struct hostmap_group *groups)
{
	struct hostmap hostmap;

	assert_int_equal(hostmap_make(groups, count, parents, &hostmap, NULL), 0);
	return hostmap;
}

static uint64_t offset_of(const struct hostmap *hostmap, uint32_t group, uint32_t block)
{
	uint64_t offset;

	assert_int_equal(hostmap_find(hostmap, group, block, &offset, NULL), 0);
	return offset;
}

/* Full attention K = 4 of 32 bytes beside a state K = 1 of 80: S = 128. */
static void block_offsets_follow_group_packing_without_overlap(void **state)
{
	const struct hostmap_group groups[] = { { 4, 32 }, { 1, 80 } };
	const struct hostmap       hostmap = hostmap_of(2, 2, groups);

	(void)state;
	assert_int_equal(hostmap.parent_bytes, 128);
	assert_int_equal(offset_of(&hostmap, 0, 1), 0);
	assert_int_equal(offset_of(&hostmap, 0, 4), 3 * 32);
	assert_int_equal(offset_of(&hostmap, 0, 5), 128);
	assert_int_equal(offset_of(&hostmap, 0, 8), 128 + 3 * 32);
	assert_int_equal(offset_of(&hostmap, 1, 1), 0);
	assert_int_equal(offset_of(&hostmap, 1, 2), 128);
}

static void a_parent_has_room_for_the_greediest_group(void **state)
{
	const struct hostmap_group groups[] = { { 1, 80 }, { 4, 32 }, { 2, 50 } };

	(void)state;
	assert_int_equal(hostmap_of(2, 3, groups).parent_bytes, 128);
}

static void null_and_out_of_range_blocks_are_rejected(void **state)
{
	const struct hostmap_group groups[] = { { 4, 32 }, { 1, 80 } };
	const struct hostmap       hostmap = hostmap_of(2, 2, groups);
	uint64_t                   offset = 77;
	struct kvs_error           err;

	(void)state;
	assert_int_equal(hostmap_find(&hostmap, 0, 0, &offset, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "group 0: block: 0, must be 1 to 8");
	assert_int_equal(hostmap_find(&hostmap, 0, 9, &offset, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "group 0: block: 9, must be 1 to 8");
	assert_int_equal(hostmap_find(&hostmap, 1, 3, &offset, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "group 1: block: 3, must be 1 to 2");
	assert_int_equal(hostmap_find(&hostmap, 2, 1, &offset, &err), KVS_E_INVALID);
	assert_string_equal(err.message, "group: 2, must be below 2");
	assert_int_equal(offset, 77);
}

/* Numbers only: what is shared with storage knows of no Device buffer and holds no pointer. */
static void A1_3_the_geometry_of_the_host_is_numbers_alone(void **state)
{
	const struct hostmap_group groups[] = { { 4, 32 }, { 1, 80 } };
	const struct hostmap       hostmap = hostmap_of(2, 2, groups);
	const struct hostmap       copy = hostmap;

	(void)state;
	assert_int_equal(sizeof(copy), 2 * sizeof(uint32_t) + 2 * sizeof(uint64_t) +
					       HOSTMAP_GROUPS_MAX * sizeof(struct hostmap_group));
	assert_int_equal(sizeof(struct hostmap_group), 2 * sizeof(uint64_t));
	assert_int_equal(offset_of(&copy, 0, 6), offset_of(&hostmap, 0, 6));
}

static void a_host_that_cannot_be_is_refused(void **state)
{
	static const struct {
		struct hostmap_group group;
		uint32_t             group_count, parents;
		const char          *sentence;
	} cases[] = {
		{ { 1, 1 }, 0, 1, "group_count: 0, must be 1 to 16" },
		{ { 1, 1 }, 17, 1, "group_count: 17, must be 1 to 16" },
		{ { 1, 1 }, 1, 0, "parent_count: 0, must be 1 to 2147483647" },
		{ { 1, 1 }, 1, 1u << 31, "parent_count: 2147483648, must be 1 to 2147483647" },
		{ { 0, 1 }, 1, 1, "group 0: packing: 0, must be at least 1" },
		{ { 1, 0 }, 1, 1, "group 0: block_bytes: 0, must be at least 1" },
		{ { 3, 1 }, 1, 1u << 30,
		  "group 0: packing: 3, in 1073741824 parents block numbers would pass 2147483647" },
		{ { 2, UINT64_C(1) << 62 }, 1, 1,
		  "group 0: block_bytes: 4611686018427387904, 2 in each of 1 parents overflow 63 bits" },
		{ { 4, UINT64_C(1) << 62 }, 1, 1,
		  "group 0: block_bytes: 4611686018427387904, 4 in each of 1 parents overflow 63 bits" },
		{ { 1, UINT64_C(1) << 40 }, 1, 1u << 23,
		  "group 0: block_bytes: 1099511627776, 1 in each of 8388608 parents overflow 63 bits" },
	};
	struct hostmap   hostmap;
	struct kvs_error err;
	size_t           i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		assert_int_equal(hostmap_make(&cases[i].group, cases[i].group_count,
					      cases[i].parents, &hostmap, &err),
				 KVS_E_INVALID);
		assert_string_equal(err.message, cases[i].sentence);
	}
}

/*
 * Parents of 8 KiB that hold 4 and 2 blocks, in a part that other blocks come before: each parent is a
 * block of the part, and the blocks of a group fill it from its front, one behind the other.
 */
static void a_block_of_a_part_is_a_span_of_its_parent(void **state)
{
	const struct hostmap_group groups[] = { { 4, 2048 }, { 2, 3000 } };
	const struct hostmap       hostmap = hostmap_of(3, 2, groups);
	struct arena              *arena;
	struct arena_part          other, part;
	uint32_t                   g, block;

	(void)state;
	assert_int_equal(arena_open((size_t)1 << 20, ARENA_LAZY, &arena, NULL), 0);
	assert_int_equal(arena_carve(arena, 4096, 1, &other, NULL), 0);
	assert_int_equal(arena_carve(arena, 8192, 3, &part, NULL), 0);
	for (g = 0; g < 2; g++) {
		for (block = 1; block <= hostmap_last(&hostmap, g); block++) {
			const struct kvs_span span = hostmap_span(&hostmap, &part, g, block);
			const struct kvs_span parent =
				arena_block(&part, (block - 1) / groups[g].packing);

			assert_ptr_equal(span.ptr,
					 (uint8_t *)parent.ptr + (block - 1) % groups[g].packing *
									 groups[g].block_bytes);
			assert_int_equal(span.bytes, groups[g].block_bytes);
			/* The last of a parent has the trailer behind it, the others a neighbour. */
			assert_int_equal(span.room, block % groups[g].packing == 0
							    ? (size_t)((uint8_t *)parent.ptr + part.stride -
								       (uint8_t *)span.ptr)
							    : groups[g].block_bytes);
		}
	}
	assert_ptr_equal((uint8_t *)hostmap_span(&hostmap, &part, 0, 6).ptr,
			 (uint8_t *)arena_block(&part, 1).ptr + 2048);
	arena_close(arena);
}

/* Where a part's blocks have room for it, each block has a trailer's, on pages as its payload is. */
static void every_block_of_a_roomy_part_has_a_trailer(void **state)
{
	const struct hostmap_group groups[] = { { 4, 8192 }, { 2, 5000 }, { 1, 40000 } };
	const struct hostmap       hostmap = hostmap_of(3, 3, groups);
	struct arena              *arena;
	struct arena_part          part;
	uint32_t                   g, block;

	(void)state;
	assert_int_equal(hostmap.part_bytes, 45056);
	assert_int_equal(arena_open((size_t)1 << 20, ARENA_LAZY, &arena, NULL), 0);
	assert_int_equal(arena_carve(arena, hostmap.part_bytes, 3, &part, NULL), 0);
	for (g = 0; g < 3; g++) {
		const uint8_t *end = part.base;

		for (block = 1; block <= hostmap_last(&hostmap, g); block++) {
			const struct kvs_span span = hostmap_span(&hostmap, &part, g, block);

			assert_true((const uint8_t *)span.ptr >= end);
			assert_int_equal((uintptr_t)span.ptr % ARENA_ALIGN, 0);
			assert_true(span.room >= span.bytes + ARENA_TRAILER_BYTES);
			end = (const uint8_t *)span.ptr + span.room;
		}
		assert_true(end <= (const uint8_t *)part.base + 3 * part.stride);
	}
	arena_close(arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(block_offsets_follow_group_packing_without_overlap),
		cmocka_unit_test(a_parent_has_room_for_the_greediest_group),
		cmocka_unit_test(null_and_out_of_range_blocks_are_rejected),
		cmocka_unit_test(A1_3_the_geometry_of_the_host_is_numbers_alone),
		cmocka_unit_test(a_host_that_cannot_be_is_refused),
		cmocka_unit_test(a_block_of_a_part_is_a_span_of_its_parent),
		cmocka_unit_test(every_block_of_a_roomy_part_has_a_trailer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
