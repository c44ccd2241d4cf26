/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad reports: a protocol error on every owner, one sentence, and nothing has changed.
 *
 * Each test makes one report bad, sees it refused by all, and goes on with the good one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "council.h"

#define KEYS 5u
#define OWNERS 3u

/* Op 1 is a GET, op 2 a PUT, op 3 a QUERY; copies 10 and 11. */
static int open_three(void **state)
{
	static struct council council;

	council_open(&council, OWNERS, 4, 2);
	council_expect(&council, 1, OP_GET, KEYS);
	council_expect(&council, 2, OP_PUT, KEYS);
	council_expect(&council, 3, OP_QUERY, KEYS);
	council_expect_copies(&council, 10);
	council_expect_copies(&council, 11);
	*state = &council;
	return 0;
}

static int shut(void **state)
{
	council_close(*state);
	return 0;
}

/* What owners from first on have to say. */
static void draft_all(struct council *council, uint32_t first)
{
	uint32_t rank;

	for (rank = first; rank < OWNERS; rank++) {
		(void)council_fact(council, rank, 1, OP_GET, KEYS);
		(void)council_fact(council, rank, 2, OP_PUT, KEYS);
		(void)council_fact(council, rank, 3, OP_QUERY, KEYS);
		council_copy(council, rank, 10);
		council_copy(council, rank, 11);
	}
}

/* What ends when everybody gives the good reports. */
static void goes_on(struct council *council, uint32_t first)
{
	const struct tick *tick;
	uint64_t           id;

	draft_all(council, first);
	tick = council_round(council);
	assert_int_equal(tick->fact_count, 3);
	for (id = 1; id <= 3; id++) {
		assert_int_equal(tick->facts[id - 1].op_id, id);
		assert_int_equal(bits_count(tick->facts[id - 1].ok.words, OP_KEYS_MAX), KEYS);
		assert_true(tick->facts[id - 1].retired);
	}
	assert_int_equal(tick->copy_count, 2);
	assert_int_equal(agree_open_count(council->agree[0]), 0);
}

/* --- facts ------------------------------------------------------------------------------------ */

typedef void spoil(struct fact *fact);

static void longer(struct fact *fact)
{
	fact->key_count = KEYS + 1;
}

static void shorter(struct fact *fact)
{
	fact->key_count = KEYS - 1;
}

static void past_the_end(struct fact *fact)
{
	bits_set(fact->ok.words, KEYS);
}

static void fault_past_the_end(struct fact *fact)
{
	bits_set(fact->object_fault.words, OP_KEYS_MAX - 1);
}

static void ok_and_at_fault(struct fact *fact)
{
	bits_set(fact->object_fault.words, 2);
}

static void reads(struct fact *fact)
{
	bits_set(fact->read_here.words, 0);
}

static void at_fault(struct fact *fact)
{
	bits_clear(fact->ok.words, 1);
	bits_set(fact->object_fault.words, 1);
}

static void no_reason(struct fact *fact)
{
	fact->reason = OP_REASON_COUNT;
}

static void unknown(struct fact *fact)
{
	fact->op_id = 4;
}

static void nobody(struct fact *fact)
{
	fact->op_id = 0;
}

/* The bad fact is the second owner's last; the others', which come first and after, are good. */
static void A7_4_facts_that_cannot_be_are_refused_by_all(void **state)
{
	static const struct {
		spoil      *spoil;
		uint32_t    at; /* of GET, PUT, QUERY */
		const char *sentence;
	} cases[] = {
		{ longer, 0, "rank 1: op 1: fact.key_count: 6 is not the op's 5" },
		{ shorter, 1, "rank 1: op 2: fact.key_count: 4 is not the op's 5" },
		{ past_the_end, 0, "rank 1: op 1: fact.ok: bit 5 is set; the op has 5 keys" },
		{ fault_past_the_end, 0,
		  "rank 1: op 1: fact.object_fault: bit 1023 is set; the op has 5 keys" },
		{ ok_and_at_fault, 0, "rank 1: op 1: fact.object_fault: a row is both ok and at fault" },
		{ reads, 1,
		  "rank 1: op 2: fact.object_fault: a put reports what it read; only a get reads" },
		{ reads, 2,
		  "rank 1: op 3: fact.object_fault: a query reports what it read; only a get reads" },
		{ at_fault, 2,
		  "rank 1: op 3: fact.object_fault: a query reports what it read; only a get reads" },
		{ no_reason, 0, "rank 1: op 1: fact.reason: 10 is no reason" },
		{ unknown, 2, "rank 1: op 4: id: nothing under way has it" },
		{ nobody, 2, "rank 1: op 0: id: nothing under way has it" },
	};
	struct council *const council = *state;
	size_t                i;

	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		draft_all(council, 0);
		cases[i].spoil(&council->draft[1].facts[cases[i].at]);
		council_refuses(council, cases[i].sentence);
	}
	goes_on(council, 0);
}

static void A7_1_what_was_reported_before_is_refused_by_all(void **state)
{
	struct council *const council = *state;

	(void)council_fact(council, 0, 1, OP_GET, KEYS);
	(void)council_fact(council, 0, 1, OP_GET, KEYS);
	council_refuses(council, "rank 0: op 1: id: this owner has reported it before");
	council_copy(council, 2, 11);
	council_copy(council, 2, 11);
	council_refuses(council, "rank 2: copy 11: id: this owner has reported it before");

	draft_all(council, 1);
	assert_int_equal(council_round(council)->fact_count, 0);
	draft_all(council, 0);
	council_refuses(council, "rank 1: op 1: id: this owner has reported it before");
	(void)council_fact(council, 0, 1, OP_GET, KEYS);
	council_copy(council, 1, 10);
	council_refuses(council, "rank 1: copy 10: id: this owner has reported it before");
	draft_all(council, 0);
	council->report[1].fact_count = council->report[2].fact_count = 0;
	council->report[1].copy_count = council->report[2].copy_count = 0;
	assert_int_equal(council_round(council)->fact_count, 3);
	assert_int_equal(council->tick.copy_count, 2);
}

static void A7_4_nothing_comes_after_the_end(void **state)
{
	struct council *const council = *state;

	goes_on(council, 0);
	(void)council_fact(council, 2, 1, OP_GET, KEYS);
	council_refuses(council, "rank 2: op 1: id: nothing under way has it");
	council_notice(council, 2, 1);
	council_refuses(council, "rank 2: op 1: notice: nothing under way has this id");
	council_copy(council, 0, 10);
	council_refuses(council, "rank 0: copy 10: id: nothing under way has it");
	assert_int_equal(council_round(council)->fact_count, 0);
}

/* --- reports ---------------------------------------------------------------------------------- */

static void A7_4_an_owners_error_is_the_error_of_all(void **state)
{
	struct council *const council = *state;

	draft_all(council, 0);
	council->report[2].error = KVS_E_PROTO;
	council_refuses(council, "rank 2: error: -2005, its own poll was invalid");
	draft_all(council, 0);
	council->report[1].error = -5;
	council->report[2].error = KVS_E_PROTO;
	council_refuses(council, "rank 1: error: -5, its own poll was invalid");
	goes_on(council, 0);
}

static void A7_4_a_clock_at_its_end_is_no_time(void **state)
{
	struct council *const council = *state;

	draft_all(council, 0);
	council->report[0].now_ns = UINT64_MAX;
	council_refuses(council, "rank 0: now_ns: the highest number is no time");
	council->report[0].now_ns = 1;
	goes_on(council, 0);
}

static void A7_8_more_than_credits_allow_is_refused(void **state)
{
	struct council *const council = *state;

	council->report[1].fact_count = 5;
	council_refuses(council, "rank 1: fact_count: 5, at most 4 can be under way");
	council->report[0].notice_count = UINT32_MAX;
	council_refuses(council, "rank 0: notice_count: 4294967295, at most 4 can be under way");
	council->report[2].copy_count = 3;
	council_refuses(council, "rank 2: copy_count: 3, at most 2 can be under way");
	goes_on(council, 0);
}

/* A refused round moves no clock. */
static void A7_4_a_refused_round_has_no_time(void **state)
{
	struct council *const council = *state;

	council->report[0].now_ns = 50;
	assert_int_equal(council_round(council)->now_ns, 50);
	council->report[0].now_ns = 90;
	council->report[1].error = -5;
	council_refuses(council, NULL);
	council->report[0].now_ns = 60;
	assert_int_equal(council_round(council)->now_ns, 60);
}

/* --- notices ---------------------------------------------------------------------------------- */

static void notices_without_a_doubt_are_refused(void **state)
{
	static const char *const no_doubt = "rank 1: op 1: notice: this owner has no unretired fact of it";
	struct council *const    council = *state;

	council_notice(council, 1, 1);
	council_refuses(council, no_doubt);
	(void)council_fact(council, 1, 1, OP_GET, KEYS);
	council_notice(council, 1, 1);
	council_refuses(council, no_doubt);
	council_fact(council, 0, 1, OP_GET, KEYS)->retired = false;
	council_notice(council, 1, 1);
	council_refuses(council, no_doubt);
	council_fact(council, 2, 3, OP_QUERY, KEYS)->retired = false;
	council_notice(council, 2, 3);
	council_refuses(council, "rank 2: op 3: notice: this owner has no unretired fact of it");
	goes_on(council, 0);
}

static void a_notice_comes_once(void **state)
{
	struct council *const council = *state;

	council_fact(council, 1, 1, OP_GET, KEYS)->retired = false;
	council_notice(council, 1, 1);
	council_notice(council, 1, 1);
	council_refuses(council, "rank 1: op 1: notice: this owner has no unretired fact of it");
	council_fact(council, 1, 1, OP_GET, KEYS)->retired = false;
	council_notice(council, 1, 1);
	(void)council_round(council);
	council_notice(council, 1, 1);
	council_refuses(council, "rank 1: op 1: notice: this owner has no unretired fact of it");
	(void)council_fact(council, 0, 1, OP_GET, KEYS);
	(void)council_fact(council, 2, 1, OP_GET, KEYS);
	assert_int_equal(council_round(council)->notice_count, 1);
}

/* Alone, a report is checked in the same way. */
static void A7_4_one_owner_is_checked_too(void **state)
{
	struct council council;

	(void)state;
	council_open(&council, 1, 2, 1);
	council_expect(&council, 1, OP_GET, KEYS);
	council_fact(&council, 0, 1, OP_GET, KEYS)->key_count = 0;
	council_refuses(&council, "rank 0: op 1: fact.key_count: 0 is not the op's 5");
	(void)council_fact(&council, 0, 1, OP_GET, KEYS);
	assert_int_equal(council_round(&council)->fact_count, 1);
	(void)council_fact(&council, 0, 1, OP_GET, KEYS);
	council_refuses(&council, "rank 0: op 1: id: nothing under way has it");
	council_close(&council);
}

/* --- open ------------------------------------------------------------------------------------- */

static void options_that_cannot_be_are_refused(void **state)
{
	static const struct {
		struct agree_options options;
		const char          *sentence;
	} cases[] = {
		{ { 0, 1, 1 }, "owners: 0, must be 1 to 64" },
		{ { 65, 1, 1 }, "owners: 65, must be 1 to 64" },
		{ { 1, 0, 1 }, "ops_max: 0, must be 1 to 1048576" },
		{ { 1, 1048577, 1 }, "ops_max: 1048577, must be 1 to 1048576" },
		{ { 1, 1, 1048577 }, "copies_max: 1048577, must be at most 1048576" },
	};
	const struct agree_options no_copies = { 64, 1, 0 };
	struct agree              *agree = NULL;
	struct kvs_error           err;
	size_t                     i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(cases); i++) {
		assert_int_equal(agree_open(&cases[i].options, &agree, &err), KVS_E_INVALID);
		assert_string_equal(err.message, cases[i].sentence);
		assert_null(agree);
	}
	assert_int_equal(agree_open(&no_copies, &agree, &err), 0);
	agree_audit(agree);
	agree_close(agree);
}

#define THREE(test) cmocka_unit_test_setup_teardown(test, open_three, shut)

int main(void)
{
	const struct CMUnitTest tests[] = {
		THREE(A7_4_facts_that_cannot_be_are_refused_by_all),
		THREE(A7_1_what_was_reported_before_is_refused_by_all),
		THREE(A7_4_nothing_comes_after_the_end),
		THREE(A7_4_an_owners_error_is_the_error_of_all),
		THREE(A7_4_a_clock_at_its_end_is_no_time),
		THREE(A7_8_more_than_credits_allow_is_refused),
		THREE(A7_4_a_refused_round_has_no_time),
		THREE(notices_without_a_doubt_are_refused),
		THREE(a_notice_comes_once),
		cmocka_unit_test(A7_4_one_owner_is_checked_too),
		cmocka_unit_test(options_that_cannot_be_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
