/* SPDX-License-Identifier: Apache-2.0 */
/* Keys to blocks in two strata, and how far a prefix is held. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "death.h"
#include "match/full.h"
#include "named_block.h"

#define KEYS 6u

static struct kvs_key keys[KEYS];

static void open_index(struct prefix_index *index, uint32_t entry_max)
{
	uint32_t i;

	assert_int_equal(index_open(index, entry_max), 0);
	for (i = 0; i < KEYS; i++)
		keys[i] = key_of(i);
}

static void one_entry_serves_both_strata(void **state)
{
	struct prefix_index index;
	uint32_t            entry;

	(void)state;
	open_index(&index, 4);
	assert_int_equal(index_find(&index, &keys[0]), SLOT_NONE);
	assert_int_equal(index_block(&index, STRATUM_HOST, &keys[0]), SLOT_NONE);
	entry = index_add(&index, STRATUM_DEVICE, &keys[0], 7);
	assert_int_equal(index_block(&index, STRATUM_HOST, &keys[0]), SLOT_NONE);
	assert_int_equal(index_add(&index, STRATUM_HOST, &keys[0], 9), entry);
	assert_int_equal(index_find(&index, &keys[0]), entry);
	assert_int_equal(index_block(&index, STRATUM_DEVICE, &keys[0]), 7);
	assert_int_equal(index_block(&index, STRATUM_HOST, &keys[0]), 9);
	assert_int_equal(index.slots.busy_count, 1);
	index_audit(&index);
	index_close(&index);
}

static void an_entry_goes_with_its_last_block(void **state)
{
	struct prefix_index index;
	uint32_t            entry;

	(void)state;
	open_index(&index, 4);
	entry = index_add(&index, STRATUM_DEVICE, &keys[0], 7);
	index_add(&index, STRATUM_HOST, &keys[0], 9);
	index_drop(&index, STRATUM_DEVICE, entry);
	index_audit(&index);
	assert_int_equal(index_block(&index, STRATUM_DEVICE, &keys[0]), SLOT_NONE);
	assert_int_equal(index_block(&index, STRATUM_HOST, &keys[0]), 9);
	index_drop(&index, STRATUM_HOST, entry);
	index_audit(&index);
	assert_int_equal(index_find(&index, &keys[0]), SLOT_NONE);
	assert_int_equal(index.slots.busy_count, 0);
	index_close(&index);
}

/* Both strata full of different keys is the most that can be: then every block has an entry of its own. */
static void the_sum_of_both_strata_fits(void **state)
{
	struct prefix_index index;
	uint32_t            i;

	(void)state;
	open_index(&index, KEYS);
	for (i = 0; i < KEYS; i++)
		index_add(&index, i % STRATUM_COUNT, &keys[i], i);
	index_audit(&index);
	for (i = 0; i < KEYS; i++)
		assert_int_equal(index_block(&index, i % STRATUM_COUNT, &keys[i]), i);
	index_close(&index);
}

static void keys_that_differ_in_one_field_are_different(void **state)
{
	struct prefix_index index;
	struct kvs_key      other = key_of(0);

	(void)state;
	open_index(&index, 4);
	index_add(&index, STRATUM_HOST, &keys[0], 1);
	other.group = 1;
	assert_int_equal(index_find(&index, &other), SLOT_NONE);
	other = keys[0];
	other.space.byte[15] = 1;
	assert_int_equal(index_find(&index, &other), SLOT_NONE);
	other = keys[0];
	other.hash[31] ^= 1;
	assert_int_equal(index_find(&index, &other), SLOT_NONE);
	index_close(&index);
}

static void add_twice(void *index)
{
	index_add(index, STRATUM_HOST, &keys[0], 2);
}

static void drop_what_is_not_held(void *index)
{
	index_drop(index, STRATUM_DEVICE, index_find(index, &keys[0]));
}

static void drop_a_free_entry(void *index)
{
	index_drop(index, STRATUM_HOST, 3);
}

static void add_past_the_limit(void *index)
{
	uint32_t i;

	for (i = 1; i < KEYS; i++)
		index_add(index, STRATUM_HOST, &keys[i], i);
}

static void mistakes_are_panics(void **state)
{
	void (*const mistakes[])(void *) = { add_twice, drop_what_is_not_held, drop_a_free_entry,
					     add_past_the_limit };
	struct prefix_index index;
	size_t              i;

	(void)state;
	open_index(&index, 4);
	index_add(&index, STRATUM_HOST, &keys[0], 1);
	for (i = 0; i < ARRAY_COUNT(mistakes); i++)
		assert_true(death_panics(mistakes[i], &index, NULL, 0));
	index_close(&index);
}

/* Device holds 0 and 1 and, behind a gap, 4; Host holds 1, 2 and 3. */
static void open_two_strata(struct prefix_index *index)
{
	const uint32_t device[] = { 0, 1, 4 }, host[] = { 1, 2, 3 };
	uint32_t       i;

	open_index(index, 2 * KEYS);
	for (i = 0; i < 3; i++) {
		index_add(index, STRATUM_DEVICE, &keys[device[i]], i);
		index_add(index, STRATUM_HOST, &keys[host[i]], i);
	}
}

static void a_run_ends_at_the_first_key_that_is_not_held(void **state)
{
	struct prefix_index index;

	(void)state;
	open_two_strata(&index);
	assert_int_equal(match_full(&index, STRATUM_DEVICE, keys, 0, KEYS, NULL), 2);
	assert_int_equal(match_full(&index, STRATUM_HOST, keys, 0, KEYS, NULL), 0);
	assert_int_equal(match_full(&index, STRATUM_HOST, keys, 2, KEYS, NULL), 4);
	assert_int_equal(match_full(&index, STRATUM_HOST, keys, 2, 3, NULL), 3);
	assert_int_equal(match_full(&index, STRATUM_DEVICE, keys, 2, 2, NULL), 2);
	assert_int_equal(match_full(&index, STRATUM_DEVICE, keys, 0, 0, NULL), 0);
	index_close(&index);
}

/* Bit 0 of the hints is the key at begin. */
static void hints_bridge_gaps_for_a_plan_and_establish_nothing(void **state)
{
	const uint64_t      hints[] = { 0x4 };
	struct prefix_index index;

	(void)state;
	open_two_strata(&index);
	assert_int_equal(match_full(&index, STRATUM_HOST, keys, 2, KEYS, hints), 5);
	assert_int_equal(match_full(&index, STRATUM_HOST, keys, 1, KEYS, hints), 4);
	assert_int_equal(match_full(&index, STRATUM_HOST, keys, 2, KEYS, NULL), 4);
	assert_int_equal(index_block(&index, STRATUM_HOST, &keys[4]), SLOT_NONE);
	index_audit(&index);
	index_close(&index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_entry_serves_both_strata),
		cmocka_unit_test(an_entry_goes_with_its_last_block),
		cmocka_unit_test(the_sum_of_both_strata_fits),
		cmocka_unit_test(keys_that_differ_in_one_field_are_different),
		cmocka_unit_test(mistakes_are_panics),
		cmocka_unit_test(a_run_ends_at_the_first_key_that_is_not_held),
		cmocka_unit_test(hints_bridge_gaps_for_a_plan_and_establish_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
