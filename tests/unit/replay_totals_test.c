/* SPDX-License-Identifier: Apache-2.0 */
/* What a replay counts of a request: pages and tokens by origin, one reason, and three times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "app/replay_totals.h"

#define SPEED 1000.0
#define MS UINT64_C(1000000)

static struct sched_result result_of(uint32_t device, uint32_t host, uint32_t of_store)
{
	struct sched_result result = { .admitted = true };

	result.explanation.tokens[STRATUM_DEVICE] = device;
	result.explanation.tokens[STRATUM_HOST] = host;
	result.explanation.store_tokens = of_store;
	return result;
}

static void a_page_has_the_origin_of_its_last_restored_token(void **state)
{
	static struct replay_totals totals;
	/* 700 of Device, 400 of Host itself, 500 of the store; a prompt of four pages, the last one short. */
	const struct sched_result   result = result_of(700, 900, 500);

	(void)state;
	replay_totals_add(&totals, &result, 1800, SPEED);
	assert_int_equal(totals.blocks, 4);
	assert_int_equal(totals.tokens, 1800);
	assert_int_equal(totals.origin_tokens[ORIGIN_DEVICE], 700);
	assert_int_equal(totals.origin_tokens[ORIGIN_HOST], 400);
	assert_int_equal(totals.origin_tokens[ORIGIN_STORE], 500);
	assert_int_equal(totals.origin_tokens[ORIGIN_RECOMPUTED], 200);
	assert_int_equal(totals.origin_blocks[ORIGIN_DEVICE], 1);
	assert_int_equal(totals.origin_blocks[ORIGIN_HOST], 1);
	assert_int_equal(totals.origin_blocks[ORIGIN_STORE], 1);
	assert_int_equal(totals.origin_blocks[ORIGIN_RECOMPUTED], 1);
}

static void every_request_is_full_or_has_one_reason(void **state)
{
	static struct replay_totals totals;
	struct sched_result         result = result_of(0, 0, 0);
	uint64_t                    sum;
	int                         i;

	(void)state;
	for (i = 0; i < MISS_REASON_COUNT; i++) {
		result.explanation.reason = (enum miss_reason)i;
		result.explanation.read = READ_EVICTED;
		replay_totals_add(&totals, &result, 10, SPEED);
	}
	replay_totals_add_too_long(&totals, 1000, SPEED);
	result.admitted = false;
	replay_totals_add(&totals, &result, 10, SPEED);
	assert_int_equal(totals.full_hits, 1);
	assert_int_equal(totals.reads[READ_EVICTED], 1);
	sum = totals.too_long + totals.failed;
	for (i = 0; i < MISS_REASON_COUNT; i++)
		sum += totals.reasons[i];
	for (i = 0; i < READ_OUTCOME_COUNT; i++)
		sum += totals.reads[i];
	assert_int_equal(sum, totals.requests - totals.full_hits);
	assert_int_equal(replay_totals_misses(&totals), MISS_REASON_COUNT + 1);
}

static void times_are_those_of_three_machines(void **state)
{
	static struct replay_totals totals;
	struct sched_result         result = result_of(512, 512, 512);

	(void)state;
	result.explanation.read = READ_READY;
	result.explanation.wait_ns = 20 * MS;
	replay_totals_add(&totals, &result, 2048, SPEED);
	assert_int_equal(histogram_mean(&totals.ttft_store_ns) / 1e6, 1024 + 20);
	assert_int_equal(histogram_mean(&totals.ttft_local_ns) / 1e6, 1536);
	assert_int_equal(histogram_mean(&totals.ttft_none_ns) / 1e6, 2048);
	assert_int_equal(totals.restore_ns.count, 1);
	assert_int_equal(totals.waited, 1);
	assert_int_equal(totals.in_vain, 0);
}

static void a_wait_that_brings_nothing_is_in_vain(void **state)
{
	static struct replay_totals totals;
	struct sched_result         result = result_of(512, 0, 0);

	(void)state;
	result.explanation.read = READ_DEADLINE;
	result.explanation.wait_ns = 20 * MS;
	replay_totals_add(&totals, &result, 2048, SPEED);
	result.explanation.wait_ns = 0;
	replay_totals_add(&totals, &result, 2048, SPEED);
	assert_int_equal(totals.waited, 1);
	assert_int_equal(totals.in_vain, 1);
	assert_int_equal(totals.restore_ns.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_has_the_origin_of_its_last_restored_token),
		cmocka_unit_test(every_request_is_full_or_has_one_reason),
		cmocka_unit_test(times_are_those_of_three_machines),
		cmocka_unit_test(a_wait_that_brings_nothing_is_in_vain),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
