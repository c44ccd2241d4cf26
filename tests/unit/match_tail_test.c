/* SPDX-License-Identifier: Apache-2.0 */
/* Hints of tails: what is remembered and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "death.h"
#include "match/tail.h"

#define PAGE 8u

static const struct kvs_namespace here = { "here" };

static struct tails open_tails(uint32_t hint_max)
{
	struct tails tails;

	assert_int_equal(tails_open(&tails, hint_max, PAGE, NULL), 0);
	return tails;
}

static void record_number(struct tails *tails, uint8_t page, uint32_t token_count)
{
	const struct prefix_hash prior = { { page } }, hash = { { page, (uint8_t)token_count } };

	tails_record(tails, &here, &prior, token_count, &hash);
	tails_audit(tails);
}

static uint32_t count_behind(const struct tails *tails, uint8_t page)
{
	const struct prefix_hash prior = { { page } };
	struct tail_hint         hints[TAILS_PER_PAGE];

	return tails_behind(tails, &here, &prior, hints);
}

static void A3_10_a_full_table_drops_its_oldest_and_counts_it(void **state)
{
	struct tails tails = open_tails(3);

	(void)state;
	record_number(&tails, 1, 1);
	record_number(&tails, 2, 1);
	record_number(&tails, 3, 1);
	assert_int_equal(tails.dropped_full, 0);
	record_number(&tails, 4, 1);
	assert_int_equal(tails.dropped_full, 1);
	assert_int_equal(count_behind(&tails, 1), 0);
	assert_int_equal(count_behind(&tails, 2), 1);
	assert_int_equal(count_behind(&tails, 4), 1);
	tails_close(&tails);
}

static void recording_a_tail_again_makes_it_the_newest(void **state)
{
	struct tails tails = open_tails(2);

	(void)state;
	record_number(&tails, 1, 1);
	record_number(&tails, 2, 1);
	record_number(&tails, 1, 1);
	assert_int_equal(tails.slots.busy_count, 2);
	assert_int_equal(tails.dropped_full, 0);
	record_number(&tails, 3, 1);
	assert_int_equal(count_behind(&tails, 1), 1);
	assert_int_equal(count_behind(&tails, 2), 0);
	tails_close(&tails);
}

static void A3_15_behind_one_page_the_newest_few_are_kept(void **state)
{
	struct tails     tails;
	struct tail_hint hints[TAILS_PER_PAGE];
	uint32_t         i, count;

	(void)state;
	assert_int_equal(tails_open(&tails, 64, 64, NULL), 0);
	record_number(&tails, 2, 1);
	for (i = 1; i <= TAILS_PER_PAGE + 2; i++)
		record_number(&tails, 1, i);
	count = tails_behind(&tails, &here, &(struct prefix_hash){ { 1 } }, hints);
	assert_int_equal(count, TAILS_PER_PAGE);
	for (i = 0; i < count; i++)
		assert_int_equal(hints[i].token_count, TAILS_PER_PAGE + 2 - i);
	assert_int_equal(tails.dropped_crowded, 2);
	assert_int_equal(tails.dropped_full, 0);
	assert_int_equal(count_behind(&tails, 2), 1);
	tails_close(&tails);
}

/* The page's only hint makes room for its successor behind the same page. */
static void a_table_of_one_hint_holds_the_last(void **state)
{
	struct tails tails = open_tails(1);

	(void)state;
	record_number(&tails, 1, 1);
	record_number(&tails, 1, 2);
	assert_int_equal(count_behind(&tails, 1), 1);
	assert_int_equal(tails.dropped_full, 1);
	tails_close(&tails);
}

static void limits_are_checked_at_open(void **state)
{
	static const struct {
		uint32_t    hint_max, page_tokens;
		const char *says;
	} cases[] = {
		{ 0, 8, "hint_max: 0 is out of range; use 1 to 2147483647" },
		{ UINT32_C(1) << 31, 8, "hint_max: 2147483648 is out of range; use 1 to 2147483647" },
		{ 8, 0, "page_tokens: 0 is out of range; use 1 to 2147483647" },
		{ 8, UINT32_MAX, "page_tokens: 4294967295 is out of range; use 1 to 2147483647" },
	};
	struct kvs_error err;
	struct tails     tails;
	size_t           i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		assert_int_equal(tails_open(&tails, cases[i].hint_max, cases[i].page_tokens, &err),
				 KVS_E_INVALID);
		assert_string_equal(err.message, cases[i].says);
		tails_close(&tails); /* there is nothing to close */
	}
}

static void clearing_forgets_all(void **state)
{
	struct tails tails = open_tails(4);

	(void)state;
	record_number(&tails, 1, 1);
	record_number(&tails, 1, 2);
	record_number(&tails, 2, 1);
	tails_clear(&tails);
	tails_audit(&tails);
	assert_int_equal(count_behind(&tails, 1) + count_behind(&tails, 2), 0);
	assert_int_equal(tails.slots.busy_count, 0);
	record_number(&tails, 1, 1);
	assert_int_equal(count_behind(&tails, 1), 1);
	assert_true(tails_bytes(&tails) > 4 * sizeof(struct tail_hint));
	tails_close(&tails);
}

static void record_no_tokens(void *tails)
{
	record_number(tails, 1, 0);
}

static void record_a_whole_page(void *tails)
{
	record_number(tails, 1, PAGE);
}

static void mistakes_are_panics(void **state)
{
	struct tails tails = open_tails(2);

	(void)state;
	assert_true(death_panics(record_no_tokens, &tails, NULL, 0));
	assert_true(death_panics(record_a_whole_page, &tails, NULL, 0));
	tails_close(&tails);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A3_10_a_full_table_drops_its_oldest_and_counts_it),
		cmocka_unit_test(recording_a_tail_again_makes_it_the_newest),
		cmocka_unit_test(A3_15_behind_one_page_the_newest_few_are_kept),
		cmocka_unit_test(a_table_of_one_hint_holds_the_last),
		cmocka_unit_test(limits_are_checked_at_open),
		cmocka_unit_test(clearing_forgets_all),
		cmocka_unit_test(mistakes_are_panics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
