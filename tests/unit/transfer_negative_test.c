/* SPDX-License-Identifier: Apache-2.0 */
/* What is known to be missing, what was put from here, and what says neither. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bits.h"
#include "hoist.h"

static struct hoist hoist;

static int setup(void **state)
{
	(void)state;
	hoist_open_stored(&hoist, &hoist_limits);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	hoist_close(&hoist);
	return 0;
}

static void publish_and_put(uint32_t group, uint32_t page)
{
	hoist_publish(&hoist, 0, group, page);
	hoist_offer(&hoist, 0, group, page);
	hoist_tick(&hoist);
	hoist_serve(&hoist);
}

/* A GET that finds nothing of a page of history that the QUERY had seen. */
static void lose(uint32_t page)
{
	const struct op op = hoist_get(&hoist, 0, 16);

	hoist_unstore(&hoist, 0, HOIST_FULL, page, page + 1);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &op));
	transfer_drop_lease(hoist.transfer, hoist.lease);
	/* Host forgets what did come. */
	hoist_pin_all(&hoist, HOIST_FULL);
	hoist_unpin_all(&hoist);
}

static void A5_8_a_confirmed_fault_keeps_boundaries_from_being_asked_for(void **state)
{
	struct op op;

	(void)state;
	lose(2);
	assert_int_equal(transfer_load(hoist.transfer).negatives, 1);
	hoist_ask(&hoist, 0, 16);
	op = hoist_last_op(&hoist);
	/* Two pages and their checkpoints are left. */
	assert_int_equal(op.key_count, 4);
	assert_true(transfer_counts(hoist.transfer).plans->cut_absent > 0);
}

static void A3_16_when_every_boundary_needs_one_the_read_is_refused(void **state)
{
	(void)state;
	lose(0);
	assert_int_equal(hoist_read(&hoist, 0, 16), READ_NEGATIVE);
	assert_int_equal(hoist_op_count(&hoist), 0);
	assert_int_equal(hoist.shortfall.group, HOIST_FULL);
	assert_int_equal(hoist.shortfall.position, 0);
	hoist_expect_home(&hoist);
}

static void a_put_of_the_name_ends_it(void **state)
{
	(void)state;
	lose(0);
	publish_and_put(HOIST_FULL, 0);
	assert_int_equal(transfer_load(hoist.transfer).negatives, 0);
	hoist_pin_all(&hoist, HOIST_FULL);
	hoist_unpin_all(&hoist);
	assert_int_equal(hoist_read(&hoist, 0, 16), READ_ASKED);
}

static void what_host_has_of_a_negative_is_no_hindrance(void **state)
{
	(void)state;
	lose(0);
	hoist_publish(&hoist, 0, HOIST_FULL, 0);
	assert_int_equal(hoist_read(&hoist, 0, 16), READ_ASKED);
}

static void A5_8_refusals_misses_of_queries_and_failures_are_no_evidence(void **state)
{
	static const enum op_reason reasons[] = { OP_REASON_HEALTH,    OP_REASON_QUEUE,
						  OP_REASON_CANCELLED, OP_REASON_BACKEND,
						  OP_REASON_CLOSED };
	struct fact fact;
	struct op   op;
	size_t      i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(reasons); i++) {
		op = hoist_get(&hoist, 0, 16);
		fact_refused(&fact, &op, reasons[i]);
		hoist_tick_of(&hoist, fact);
		hoist_expect_home(&hoist);
	}
	hoist_ask(&hoist, 2, 32);
	hoist_serve(&hoist);
	assert_int_equal(transfer_load(hoist.transfer).negatives, 0);
	assert_int_equal(hoist_read(&hoist, 0, 16), READ_ASKED);
}

static void a_detached_get_is_evidence_too(void **state)
{
	const struct op op = hoist_get(&hoist, 0, 16);

	(void)state;
	hoist_unstore(&hoist, 0, HOIST_FULL, 1, 2);
	transfer_drop_lease(hoist.transfer, hoist.lease);
	hoist_tick_of(&hoist, hoist_answer(&hoist, &op));
	assert_int_equal(transfer_load(hoist.transfer).negatives, 1);
	hoist_expect_home(&hoist);
}

static void A3_16_the_oldest_negative_goes_for_a_new_one(void **state)
{
	struct transfer_limits limits = hoist_limits;

	(void)state;
	limits.negative_max = 1;
	hoist_close(&hoist);
	hoist_open_plain(&hoist, hoist_full_state, &limits);
	hoist_store(&hoist, 0, HOIST_FULL, 0, 4);
	hoist_store(&hoist, 0, HOIST_STATE, 0, 4);
	lose(3);
	lose(2);
	assert_int_equal(transfer_load(hoist.transfer).negatives, 1);
	assert_int_equal(hoist_counter(&hoist, TRANSFER_NEGATIVE_FULL), 1);
}

static void a_clear_forgets_negatives_and_history(void **state)
{
	(void)state;
	lose(0);
	publish_and_put(HOIST_FULL, 1);
	assert_true(transfer_clear(hoist.transfer));
	assert_int_equal(transfer_load(hoist.transfer).negatives, 0);
	/* The first page that is missing is the one that was put. */
	hoist_unstore(&hoist, 0, HOIST_FULL, 1, 4);
	hoist_store(&hoist, 0, HOIST_FULL, 0, 1);
	hoist_unstore(&hoist, 0, HOIST_STATE, 0, 4);
	hoist_pin_all(&hoist, HOIST_FULL);
	hoist_unpin_all(&hoist);
	hoist_ask(&hoist, 0, 16);
	hoist_serve(&hoist);
	hoist_expect_wake(&hoist, hoist.lease, READ_NEVER_STORED);
	assert_int_equal(hoist_wake(&hoist).shortfall.position, 1);
}

static void what_is_put_while_the_store_is_asked_is_no_loss(void **state)
{
	struct lease lease;
	struct fact  fact;
	struct op    op;

	(void)state;
	hoist_unstore(&hoist, 0, HOIST_FULL, 0, 1);
	lease = hoist_ask(&hoist, 0, 16);
	op = hoist_last_op(&hoist);
	fact = hoist_answer(&hoist, &op);
	publish_and_put(HOIST_FULL, 0);
	hoist_pin_all(&hoist, HOIST_FULL);
	hoist_unpin_all(&hoist);
	hoist_tick_of(&hoist, fact);
	hoist_expect_wake(&hoist, lease, READ_NEVER_STORED);
}

static void what_was_put_from_here_and_is_gone_was_evicted(void **state)
{
	struct lease lease;

	(void)state;
	publish_and_put(HOIST_FULL, 0);
	hoist_pin_all(&hoist, HOIST_FULL);
	hoist_unpin_all(&hoist);
	hoist_unstore(&hoist, 0, HOIST_FULL, 0, 1);
	lease = hoist_ask(&hoist, 0, 16);
	hoist_serve(&hoist);
	hoist_expect_wake(&hoist, lease, READ_EVICTED);
	assert_int_equal(hoist_wake(&hoist).shortfall.position, 0);
	hoist_unstore(&hoist, 1, HOIST_FULL, 0, 4);
	lease = hoist_ask(&hoist, 3, 16);
	hoist_serve(&hoist);
	hoist_expect_wake(&hoist, lease, READ_EVICTED);
	/* Its first page is that of prompt 0; nobody here ever put this one. */
	hoist_store(&hoist, 3, HOIST_FULL, 0, 1);
	lease = hoist_ask(&hoist, 3, 16);
	hoist_unstore(&hoist, 3, HOIST_STATE, 0, 4);
	hoist_serve(&hoist);
	hoist_expect_wake(&hoist, lease, READ_NEVER_STORED);
}

/* What kept the longer boundaries away is not why this one was not had. */
static void a_deadline_blames_no_block(void **state)
{
	(void)state;
	lose(2);
	hoist_unstore(&hoist, 0, HOIST_STATE, 0, 4);
	hoist_ask(&hoist, 0, 16);
	assert_int_equal(hoist.shortfall.cause, READ_NEGATIVE);
	assert_int_equal(hoist.shortfall.position, 2);
	hoist.tick.now_ns += 1000;
	hoist_tick(&hoist);
	hoist_expect_wake(&hoist, hoist.lease, READ_DEADLINE);
	assert_int_equal(hoist_wake(&hoist).shortfall.cause, READ_DEADLINE);
	assert_int_equal(hoist_wake(&hoist).shortfall.group, SHORTFALL_NONE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(A5_8_a_confirmed_fault_keeps_boundaries_from_being_asked_for),
		TEST(A3_16_when_every_boundary_needs_one_the_read_is_refused),
		TEST(a_put_of_the_name_ends_it),
		TEST(what_host_has_of_a_negative_is_no_hindrance),
		TEST(A5_8_refusals_misses_of_queries_and_failures_are_no_evidence),
		TEST(a_detached_get_is_evidence_too),
		TEST(A3_16_the_oldest_negative_goes_for_a_new_one),
		TEST(a_clear_forgets_negatives_and_history),
		TEST(what_is_put_while_the_store_is_asked_is_no_loss),
		TEST(what_was_put_from_here_and_is_gone_was_evicted),
		TEST(a_deadline_blames_no_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
