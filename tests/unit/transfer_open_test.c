/* SPDX-License-Identifier: Apache-2.0 */
/* What limits are refused, with which sentence; and names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hoist.h"

static struct hoist hoist;

static void expect_refused(const struct transfer_limits *limits, uint32_t page_max, const char *sentence)
{
	const struct transfer_options options = { .limits = *limits,
						  .cache = hoist.box.cache,
						  .part = &hoist.part,
						  .owner = &hoist.owner,
						  .hostmap = &hoist.hostmap,
						  .page_max = page_max };
	struct transfer              *transfer = (struct transfer *)(uintptr_t)1;
	struct kvs_error              err;

	assert_int_equal(transfer_open(&options, &transfer, &err), KVS_E_INVALID);
	assert_ptr_equal(transfer, (struct transfer *)(uintptr_t)1);
	assert_string_equal(err.message, sentence);
}

#define REFUSED(field, value, sentence) \
	do { \
		struct transfer_limits limits = hoist_limits; \
		limits.field = (value); \
		expect_refused(&limits, BOX_PAGES, sentence); \
	} while (0)

static void limits_that_admit_nothing_are_refused(void **state)
{
	(void)state;
	hoist_open_plain(&hoist, hoist_full_state, &hoist_limits);
	REFUSED(op_credits, 0, "op_credits: 0 admits nothing; use at least 1");
	REFUSED(host_credits, 0, "host_credits: 0 admits nothing; use at least 1");
	REFUSED(backup_max, 0, "backup_max: 0 admits nothing; use at least 1");
	REFUSED(tail_hint_max, 0, "tail_hint_max: 0 admits nothing; use at least 1");
	REFUSED(tails_max, 0, "tails_max: 0 admits nothing; use at least 1");
	REFUSED(keys_max, 0, "keys_max: 0 is out of range; use 1 to 1024");
	REFUSED(keys_max, 1025, "keys_max: 1025 is out of range; use 1 to 1024");
	REFUSED(put_keys_max, 0, "put_keys_max: 0 is out of range; use 1 to 16");
	REFUSED(put_keys_max, 17, "put_keys_max: 17 is out of range; use 1 to 16");
	REFUSED(marks.jobs_low, 1, "marks of jobs: low 1 is not below high 0; both 0 turn them off");
	REFUSED(marks.bytes_low, 1, "marks of bytes: low 1 is not below high 0; both 0 turn them off");
	REFUSED(marks.age_low_ns, 1, "marks of age: low 1 is not below high 0; both 0 turn them off");
	expect_refused(&hoist_limits, 0, "page_max: 0 admits nothing; use at least 1");
	expect_refused(&hoist_limits, BOX_PAGES + 1,
		       "page_max: 33 is out of range; the cache takes prompts of up to 32 pages");
	REFUSED(op_credits, AGREE_OPS_MAX + 1, "op_credits: 1048577 is out of range; use 1 to 1048576");
	REFUSED(negative_max, UINT32_MAX, "negative_max: 4294967295 is out of range; use at most 16777216");
	REFUSED(history_max, TRANSFER_NAMES_MAX + 1,
		"history_max: 16777217 is out of range; use at most 16777216");
	REFUSED(backup_max, TRANSFER_NAMES_MAX + 1,
		"backup_max: 16777217 is out of range; use at most 16777216");
	REFUSED(tail_hint_max, TRANSFER_NAMES_MAX + 1,
		"tail_hint_max: 16777217 is out of range; use at most 16777216");
	hoist_close(&hoist);
}

static void no_negatives_and_no_history_are_fine(void **state)
{
	struct transfer_limits limits = hoist_limits;
	struct op              op;

	(void)state;
	limits.negative_max = 0;
	limits.history_max = 0;
	hoist_open_plain(&hoist, hoist_full_state, &limits);
	hoist_store(&hoist, 0, HOIST_FULL, 0, 4);
	hoist_store(&hoist, 0, HOIST_STATE, 0, 4);
	op = hoist_get(&hoist, 0, 16);
	hoist_unstore(&hoist, 0, HOIST_FULL, 0, 4);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &op));
	assert_int_equal(transfer_load(hoist.transfer).negatives, 0);
	assert_int_equal(hoist_counter(&hoist, TRANSFER_NEGATIVE_FULL), 0);
	assert_true(transfer_bytes(hoist.transfer) > 0);
	hoist_close(&hoist);
}

static void everything_has_a_name_of_its_own(void **state)
{
	uint32_t i, j;

	(void)state;
	for (i = 0; i < READ_OUTCOME_COUNT; i++) {
		for (j = 0; j < i; j++)
			assert_string_not_equal(read_outcome_name(i), read_outcome_name(j));
	}
	for (i = 0; i < BACKUP_DROP_COUNT; i++)
		assert_true(strlen(backup_drop_name(i)) > 0);
	for (i = 0; i < TRANSFER_COUNTER_COUNT; i++)
		assert_true(strlen(transfer_counter_name(i)) > 0);
	assert_string_equal(read_outcome_name(READ_HOST_ROOM), "host_room");
}

static void a_manager_that_never_was_closes(void **state)
{
	(void)state;
	transfer_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_that_admit_nothing_are_refused),
		cmocka_unit_test(no_negatives_and_no_history_are_fine),
		cmocka_unit_test(everything_has_a_name_of_its_own),
		cmocka_unit_test(a_manager_that_never_was_closes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
