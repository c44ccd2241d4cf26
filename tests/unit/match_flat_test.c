/* SPDX-License-Identifier: Apache-2.0 */
/* Trimming lists of keys of which a bitmap says what was found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bits.h"
#include "base/prng.h"
#include "death.h"
#include "match/flat.h"

static struct flat make(const uint32_t *windows, uint32_t group_count, uint32_t copies)
{
	struct flat     flat;
	struct kvs_error err = { 0 };

	assert_int_equal(flat_make(windows, group_count, copies, &flat, &err), 0);
	return flat;
}

static struct flat make_one(uint32_t window)
{
	return make(&window, 1, 1);
}

static uint64_t kept(const struct flat *flat, uint32_t boundary, uint32_t chunk_count)
{
	uint64_t keep = UINT64_MAX;

	flat_keep(flat, boundary, chunk_count, &keep);
	return keep;
}

static void one_group_is_the_contiguous_prefix(void **state)
{
	const struct flat flat = make_one(FLAT_ALL);
	static const struct {
		uint64_t found;
		uint32_t count, prefix;
	} rows[] = { { 0x1f, 5, 5 }, { 0x1b, 5, 2 }, { 0x1e, 5, 0 }, { 0, 5, 0 },
		     { 0x1f, 3, 3 }, { 0, 0, 0 },    { UINT64_MAX, 64, 64 } };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		assert_int_equal(flat_match(&flat, &rows[i].found, rows[i].count), rows[i].prefix);
		assert_int_equal(bits_prefix(&rows[i].found, rows[i].count), rows[i].prefix);
	}
	assert_true(kept(&flat, 2, 5) == 0x3);
	assert_true(kept(&flat, 0, 5) == 0);
}

static void a_window_takes_the_last_run_of_its_length(void **state)
{
	const struct flat two = make_one(2), one = make_one(1), many = make_one(1000000);
	const uint64_t    gap = 0x1b /* 0 1 3 4 */, late = 0x1a /* 1 3 4 */, single = 0x15;

	(void)state;
	assert_int_equal(flat_match(&two, &gap, 5), 5);
	assert_true(kept(&two, 5, 5) == 0x18);
	assert_int_equal(flat_match(&two, &late, 4), 0);
	assert_int_equal(flat_match(&two, &single, 5), 1);
	assert_int_equal(flat_match(&one, &single, 5), 5);
	assert_int_equal(flat_match(&one, &single, 4), 3);
	/* Fewer near the start. */
	assert_int_equal(flat_match(&many, &gap, 5), 2);
	assert_true(kept(&many, 2, 5) == 0x3);
}

/* Four chunks, full keys at even bits, a window of two at odd ones. */
static void groups_interleaved_are_trimmed_each_by_its_rule(void **state)
{
	const uint32_t    windows[] = { FLAT_ALL, 2 };
	const struct flat flat = make(windows, 2, 1);
	const uint64_t    all = 0xff, no_full_1 = 0xfb, no_window_2 = 0xdf;

	(void)state;
	assert_int_equal(flat_match(&flat, &all, 4), 4);
	assert_true(kept(&flat, 4, 4) == 0xf5);
	assert_int_equal(flat_match(&flat, &no_full_1, 4), 1);
	assert_true(kept(&flat, 1, 4) == 0x3);
	assert_int_equal(flat_match(&flat, &no_window_2, 4), 2);
	assert_true(kept(&flat, 2, 4) == 0xf);
}

/* A chunk is there when every rank's copy of it is. */
static void copies_of_a_chunk_count_together(void **state)
{
	const uint32_t    windows[] = { FLAT_ALL, 1 };
	const struct flat flat = make(windows, 2, 2);
	const uint64_t    all = 0xfff, no_copy_of_full_1 = 0xfdf, no_copy_of_window_2 = 0xbff;

	(void)state;
	assert_int_equal(flat_keys(&flat), 4);
	assert_int_equal(flat_match(&flat, &all, 3), 3);
	assert_true(kept(&flat, 3, 3) == 0xf33);
	assert_int_equal(flat_match(&flat, &no_copy_of_full_1, 3), 1);
	assert_int_equal(flat_match(&flat, &no_copy_of_window_2, 3), 2);
	assert_true(kept(&flat, 2, 3) == 0xf3);
}

/* --- keys with the numbers of their groups ---------------------------------------------------- */

static void keys_in_any_order_find_their_bits(void **state)
{
	const uint32_t    windows[] = { FLAT_ALL, 2 };
	const struct flat flat = make(windows, 2, 1), ranks = make(windows, 2, 2);
	const uint32_t    rows[] = { 0, 0, 0, 0, 1, 1, 1, 1 };
	const uint32_t    mixed[] = { 1, 0, 0, 1, 0, 1, 1, 0 };
	const uint32_t    rows_bits[] = { 0, 2, 4, 6, 1, 3, 5, 7 };
	const uint32_t    mixed_bits[] = { 1, 0, 2, 3, 4, 5, 7, 6 };
	const uint32_t    ranks_bits[] = { 0, 1, 4, 5, 2, 3, 6, 7 };
	uint32_t          bits[8], chunks = 0;

	(void)state;
	assert_int_equal(flat_positions(&flat, rows, 8, bits, &chunks, NULL), 0);
	assert_int_equal(chunks, 4);
	assert_memory_equal(bits, rows_bits, sizeof(bits));
	assert_int_equal(flat_positions(&flat, mixed, 8, bits, &chunks, NULL), 0);
	assert_int_equal(chunks, 4);
	assert_memory_equal(bits, mixed_bits, sizeof(bits));
	assert_int_equal(flat_positions(&ranks, rows, 8, bits, &chunks, NULL), 0);
	assert_int_equal(chunks, 2);
	assert_memory_equal(bits, ranks_bits, sizeof(bits));
	assert_int_equal(flat_positions(&flat, rows, 0, bits, &chunks, NULL), 0);
	assert_int_equal(chunks, 0);
}

static void refuse_keys(const struct flat *flat, const uint32_t *group_of, uint32_t count,
			const char *sentence)
{
	uint32_t         bits[8], chunks = 77;
	struct kvs_error err;

	assert_int_equal(flat_positions(flat, group_of, count, bits, &chunks, &err), KVS_E_INVALID);
	assert_string_equal(err.message, sentence);
	assert_int_equal(chunks, 77);
}

static void groups_of_unequal_length_are_refused(void **state)
{
	const uint32_t    windows[] = { FLAT_ALL, 2 };
	const struct flat flat = make(windows, 2, 1), ranks = make(windows, 2, 2);
	const uint32_t    odd[] = { 0, 1, 0 }, more[] = { 0, 1, 0, 0 }, none[] = { 0, 2 };
	const uint32_t    half[] = { 0, 0, 0, 1, 1, 1 };

	(void)state;
	refuse_keys(&flat, odd, 3, "keys: 3 is not a multiple of the 2 of a chunk");
	refuse_keys(&flat, more, 4, "key 3: group: 0 has more keys than others");
	refuse_keys(&flat, none, 2, "key 1: group: 2 is not below the number of groups, 2");
	refuse_keys(&ranks, half, 6, "keys: 6 is not a multiple of the 4 of a chunk");
}

static void refuse_make(uint32_t group_count, uint32_t copies, const char *sentence)
{
	uint32_t         windows[GROUPS_MAX + 1] = { 0 };
	struct flat      flat;
	struct kvs_error err;

	assert_int_equal(flat_make(windows, group_count, copies, &flat, &err), KVS_E_INVALID);
	assert_string_equal(err.message, sentence);
}

static void a_list_has_groups_and_few_keys_a_chunk(void **state)
{
	const uint32_t    windows[GROUPS_MAX] = { 0 };
	const struct flat most = make(windows, GROUPS_MAX, COLUMNS_MAX / GROUPS_MAX);

	(void)state;
	assert_int_equal(flat_keys(&most), COLUMNS_MAX);
	refuse_make(0, 1, "groups: 0 is out of range; use 1 to 16");
	refuse_make(GROUPS_MAX + 1, 1, "groups: 17 is out of range; use 1 to 16");
	refuse_make(2, 0, "copies: 0 is out of range; with 2 groups use 1 to 32");
	refuse_make(3, 22, "copies: 22 is out of range; with 3 groups use 1 to 21");
}

/* --- against brute force ---------------------------------------------------------------------- */

#define CHUNKS 30u
#define GROUPS 3u
#define COPIES 2u

static bool naive_supports(const uint64_t *found, const uint32_t *windows, uint32_t boundary)
{
	uint32_t g, chunk, copy;

	for (g = 0; g < GROUPS; g++) {
		for (chunk = 0; chunk < boundary; chunk++) {
			for (copy = 0; copy < COPIES; copy++) {
				if ((windows[g] == FLAT_ALL || boundary - chunk <= windows[g]) &&
				    !bits_test(found, (chunk * GROUPS + g) * COPIES + copy))
					return false;
			}
		}
	}
	return true;
}

static void the_boundary_is_the_greatest_and_what_is_kept_supports_it(void **state)
{
	uint64_t    found[4], keep[4];
	uint32_t    round, i, deep = 0;
	struct prng prng;

	(void)state;
	prng_seed(&prng, 11);
	for (round = 0; round < 2000; round++) {
		const uint32_t windows[GROUPS] = { prng_chance(&prng, 1, 2) ? FLAT_ALL : 4,
						   (uint32_t)prng_below(&prng, 6),
						   (uint32_t)prng_below(&prng, 40) };
		const uint32_t    holes = (uint32_t)prng_below(&prng, 20);
		const struct flat flat = make(windows, GROUPS, COPIES);
		uint32_t          expected = CHUNKS, boundary;

		memset(found, 0xff, sizeof(found));
		for (i = 0; i < holes; i++)
			bits_clear(found, prng_below(&prng, CHUNKS * GROUPS * COPIES));
		while (!naive_supports(found, windows, expected))
			expected--;
		boundary = flat_match(&flat, found, CHUNKS);
		assert_int_equal(boundary, expected);
		deep += boundary > 3;
		flat_keep(&flat, boundary, CHUNKS, keep);
		assert_true(naive_supports(keep, windows, boundary));
		for (i = 0; i < CHUNKS * GROUPS * COPIES; i++) {
			if (!bits_test(keep, i))
				continue;
			bits_clear(keep, i);
			assert_false(naive_supports(keep, windows, boundary));
			bits_set(keep, i);
		}
	}
	assert_true(deep > 500);
}

static void keep_past_the_list(void *flat)
{
	kept(flat, 3, 2);
}

static void match_past_the_limit(void *flat)
{
	const uint64_t found = 0;

	flat_match(flat, &found, UINT32_C(1) << 31);
}

static void mistakes_are_panics(void **state)
{
	struct flat flat = make_one(FLAT_ALL);

	(void)state;
	assert_true(death_panics(keep_past_the_list, &flat, NULL, 0));
	assert_true(death_panics(match_past_the_limit, &flat, NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_group_is_the_contiguous_prefix),
		cmocka_unit_test(a_window_takes_the_last_run_of_its_length),
		cmocka_unit_test(groups_interleaved_are_trimmed_each_by_its_rule),
		cmocka_unit_test(copies_of_a_chunk_count_together),
		cmocka_unit_test(keys_in_any_order_find_their_bits),
		cmocka_unit_test(groups_of_unequal_length_are_refused),
		cmocka_unit_test(a_list_has_groups_and_few_keys_a_chunk),
		cmocka_unit_test(the_boundary_is_the_greatest_and_what_is_kept_supports_it),
		cmocka_unit_test(mistakes_are_panics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
