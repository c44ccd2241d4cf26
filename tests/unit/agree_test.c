/* SPDX-License-Identifier: Apache-2.0 */
/* What the owners' reports come to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "council.h"

#define OPS_MAX 8u

static int open_three(void **state)
{
	static struct council council;

	council_open(&council, 3, OPS_MAX, 4);
	*state = &council;
	return 0;
}

static int open_alone(void **state)
{
	static struct council council;

	council_open(&council, 1, OPS_MAX, 4);
	*state = &council;
	return 0;
}

static int shut(void **state)
{
	council_close(*state);
	return 0;
}

static uint32_t open_count(const struct council *council)
{
	return agree_open_count(council->agree[0]);
}

/* Everybody says the same, in this round. */
static void all_say(struct council *council, uint64_t op_id, enum op_kind kind, uint32_t keys)
{
	uint32_t rank;

	for (rank = 0; rank < council->owners; rank++)
		(void)council_fact(council, rank, op_id, kind, keys);
}

/* --- who has reported ------------------------------------------------------------------------- */

static void A7_1_an_op_ends_with_the_last_report(void **state)
{
	struct council *const council = *state;

	council_expect(council, 5, OP_GET, 3);
	(void)council_fact(council, 2, 5, OP_GET, 3);
	assert_int_equal(council_round(council)->fact_count, 0);
	assert_int_equal(council_round(council)->fact_count, 0);
	(void)council_fact(council, 0, 5, OP_GET, 3);
	assert_int_equal(council_round(council)->fact_count, 0);
	assert_int_equal(open_count(council), 1);
	(void)council_fact(council, 1, 5, OP_GET, 3);
	assert_int_equal(council_round(council)->fact_count, 1);
	assert_int_equal(council->tick.facts[0].op_id, 5);
	assert_int_equal(council->tick.facts[0].key_count, 3);
	assert_true(council->tick.facts[0].retired);
	assert_int_equal(open_count(council), 0);
	assert_int_equal(council_round(council)->fact_count, 0);
}

static void A7_1_a_slow_op_holds_up_none_behind_it(void **state)
{
	struct council *const council = *state;
	uint64_t              id;

	for (id = 1; id <= 4; id++)
		council_expect(council, id, OP_PUT, 1);
	(void)council_fact(council, 0, 1, OP_PUT, 1);
	all_say(council, 4, OP_PUT, 1);
	all_say(council, 2, OP_PUT, 1);
	assert_int_equal(council_round(council)->fact_count, 2);
	assert_int_equal(council->tick.facts[0].op_id, 2);
	assert_int_equal(council->tick.facts[1].op_id, 4);
	(void)council_fact(council, 1, 1, OP_PUT, 1);
	(void)council_fact(council, 2, 1, OP_PUT, 1);
	all_say(council, 3, OP_PUT, 1);
	assert_int_equal(council_round(council)->fact_count, 2);
	assert_int_equal(council->tick.facts[0].op_id, 1);
	assert_int_equal(council->tick.facts[1].op_id, 3);
}

static void A7_1_copies_pass_with_the_last_owner_by_ticket(void **state)
{
	struct council *const council = *state;

	council_expect_copies(council, 10);
	council_expect_copies(council, 11);
	council_copy(council, 0, 11);
	council_copy(council, 0, 10);
	council_copy(council, 1, 10);
	council_copy(council, 2, 11);
	assert_int_equal(council_round(council)->copy_count, 0);
	council_copy(council, 1, 11);
	council_copy(council, 2, 10);
	assert_int_equal(council_round(council)->copy_count, 2);
	assert_int_equal(council->tick.copies[0], 10);
	assert_int_equal(council->tick.copies[1], 11);
	assert_int_equal(open_count(council), 0);
}

/* --- what they say together ------------------------------------------------------------------- */

/* Rows: 0 good, 1 missing on one, 2 failed on one, 3 not of the reader, 4 nobody read it. */
static void A7_2_rows_are_reduced_each_by_itself(void **state)
{
	struct council *const council = *state;
	struct fact          *fact;
	const struct fact    *agreed;

	council_expect(council, 1, OP_GET, 5);
	fact = council_fact(council, 0, 1, OP_GET, 5);
	fact->ok.words[0] = 0x0d;
	fact->object_fault.words[0] = 0x02;
	fact->read_here.words[0] = 0x07;
	fact->moved_bytes = 4096;
	fact = council_fact(council, 1, 1, OP_GET, 5);
	fact->ok.words[0] = 0x0b;
	fact->read_here.words[0] = 0x0f;
	fact = council_fact(council, 2, 1, OP_GET, 5);
	fact->ok.words[0] = 0x0f;
	fact->read_here.words[0] = 0;
	assert_int_equal(council_round(council)->fact_count, 1);
	agreed = &council->tick.facts[0];
	assert_int_equal(agreed->ok.words[0], 0x09);
	assert_int_equal(agreed->object_fault.words[0], 0x02);
	assert_int_equal(agreed->read_here.words[0], 0x0f);
	assert_true(agreed->retired);
	assert_int_equal(agreed->moved_bytes, 0);
}

static void A7_2_who_did_not_read_gives_no_evidence(void **state)
{
	struct council *const council = *state;
	struct fact          *fact;

	council_expect(council, 1, OP_GET, 2);
	fact = council_fact(council, 1, 1, OP_GET, 2);
	fact->ok.words[0] = 0;
	fact->object_fault.words[0] = 3;
	fact->read_here.words[0] = 2;
	(void)council_fact(council, 0, 1, OP_GET, 2);
	(void)council_fact(council, 2, 1, OP_GET, 2);
	(void)council_round(council);
	assert_int_equal(council->tick.facts[0].ok.words[0], 0);
	assert_int_equal(council->tick.facts[0].object_fault.words[0], 2);
}

static void A7_2_masks_of_many_words_are_reduced_whole(void **state)
{
	struct council *const council = *state;
	struct fact          *fact;
	uint32_t              rank;

	council_expect(council, 1, OP_GET, OP_KEYS_MAX);
	for (rank = 0; rank < 3; rank++) {
		fact = council_fact(council, rank, 1, OP_GET, OP_KEYS_MAX);
		bits_clear(fact->ok.words, 63 + 480 * rank);
		bits_set(fact->object_fault.words, 63 + 480 * rank);
	}
	(void)council_round(council);
	assert_int_equal(bits_count(council->tick.facts[0].ok.words, OP_KEYS_MAX), OP_KEYS_MAX - 3);
	for (rank = 0; rank < 3; rank++) {
		assert_false(bits_test(council->tick.facts[0].ok.words, 63 + 480 * rank));
		assert_true(bits_test(council->tick.facts[0].object_fault.words, 63 + 480 * rank));
	}
	assert_int_equal(bits_count(council->tick.facts[0].object_fault.words, OP_KEYS_MAX), 3);
}

static void A7_2_the_clock_is_the_leaders_and_pressure_the_greatest(void **state)
{
	struct council *const council = *state;

	council->report[0].now_ns = 100;
	council->report[1].now_ns = 900;
	council->report[0].pressure = (struct pressure){ 1, 5000, 30 };
	council->report[1].pressure = (struct pressure){ 3, 0, 20 };
	council->report[2].pressure = (struct pressure){ 2, 4096, 70 };
	assert_int_equal(council_round(council)->now_ns, 100);
	assert_int_equal(council->tick.pressure.queued_jobs, 3);
	assert_int_equal(council->tick.pressure.queued_bytes, 5000);
	assert_int_equal(council->tick.pressure.oldest_ns, 70);
	council->report[0].now_ns = 90; /* never back */
	assert_int_equal(council_round(council)->now_ns, 100);
	council->report[0].now_ns = 101;
	assert_int_equal(council_round(council)->now_ns, 101);
}

/* Which round a reason came in is of no matter. */
static void the_reason_is_of_the_lowest_rank_that_has_one(void **state)
{
	struct council *const council = *state;

	council_expect(council, 1, OP_PUT, 1);
	council_fact(council, 2, 1, OP_PUT, 1)->reason = OP_REASON_BACKEND;
	(void)council_round(council);
	council_fact(council, 1, 1, OP_PUT, 1)->reason = OP_REASON_NO_SPACE;
	(void)council_fact(council, 0, 1, OP_PUT, 1);
	(void)council_round(council);
	assert_int_equal(council->tick.facts[0].reason, OP_REASON_NO_SPACE);

	council_expect(council, 2, OP_PUT, 1);
	council_fact(council, 1, 2, OP_PUT, 1)->reason = OP_REASON_NO_SPACE;
	(void)council_round(council);
	council_fact(council, 2, 2, OP_PUT, 1)->reason = OP_REASON_BACKEND;
	(void)council_fact(council, 0, 2, OP_PUT, 1);
	(void)council_round(council);
	assert_int_equal(council->tick.facts[0].reason, OP_REASON_NO_SPACE);

	council_expect(council, 3, OP_PUT, 1);
	all_say(council, 3, OP_PUT, 1);
	(void)council_round(council);
	assert_int_equal(council->tick.facts[0].reason, OP_REASON_NONE);
}

/* --- retirement ------------------------------------------------------------------------------- */

static void A7_2_one_doubt_is_the_doubt_of_all_until_it_is_taken_back(void **state)
{
	struct council *const council = *state;

	council_expect(council, 1, OP_GET, 2);
	(void)council_fact(council, 0, 1, OP_GET, 2);
	council_fact(council, 1, 1, OP_GET, 2)->retired = false;
	council_fact(council, 2, 1, OP_GET, 2)->retired = false;
	(void)council_round(council);
	assert_false(council->tick.facts[0].retired);
	assert_int_equal(open_count(council), 1);
	council_notice(council, 2, 1);
	assert_int_equal(council_round(council)->notice_count, 0);
	council_notice(council, 1, 1);
	assert_int_equal(council_round(council)->notice_count, 1);
	assert_int_equal(council->tick.notices[0].op_id, 1);
	assert_int_equal(council->tick.fact_count, 0);
	assert_int_equal(open_count(council), 0);
}

/* Its rows were looked at while something could still write to them: it stays unretired. */
static void a_doubt_that_ends_before_the_op_is_told_all_the_same(void **state)
{
	struct council *const council = *state;

	council_expect(council, 1, OP_GET, 2);
	council_fact(council, 1, 1, OP_GET, 2)->retired = false;
	council_notice(council, 1, 1);
	assert_int_equal(council_round(council)->notice_count, 0);
	(void)council_fact(council, 0, 1, OP_GET, 2);
	(void)council_fact(council, 2, 1, OP_GET, 2);
	assert_int_equal(council_round(council)->fact_count, 1);
	assert_false(council->tick.facts[0].retired);
	assert_int_equal(council->tick.notice_count, 1);
	assert_int_equal(council->tick.notices[0].op_id, 1);
	assert_int_equal(open_count(council), 0);
}

static void a_query_leaves_nothing_in_doubt(void **state)
{
	struct council *const council = *state;

	council_expect(council, 1, OP_QUERY, 2);
	council_fact(council, 0, 1, OP_QUERY, 2)->retired = false;
	(void)council_fact(council, 1, 1, OP_QUERY, 2);
	(void)council_fact(council, 2, 1, OP_QUERY, 2);
	assert_int_equal(council_round(council)->fact_count, 1);
	assert_false(council->tick.facts[0].retired);
	assert_int_equal(council->tick.notice_count, 0);
	assert_int_equal(open_count(council), 0);
}

/* --- every round ------------------------------------------------------------------------------ */

static void A7_3_idle_rounds_have_their_tick(void **state)
{
	struct council *const council = *state;
	uint64_t              now;

	for (now = 1; now < 4; now++) {
		council->report[0].now_ns = now;
		assert_int_equal(council_round(council)->now_ns, now);
		assert_int_equal(council->tick.fact_count, 0);
		assert_int_equal(council->tick.notice_count, 0);
		assert_int_equal(council->tick.copy_count, 0);
	}
}

static void A7_7_permits_are_part_of_the_tick_and_stop_no_completion(void **state)
{
	struct council *const council = *state;

	assert_true(council_round(council)->permits.forward);
	assert_true(council->tick.permits.storage);
	council_expect(council, 1, OP_PUT, 1);
	council->permits = (struct agree_permits){ false, false };
	all_say(council, 1, OP_PUT, 1);
	assert_int_equal(council_round(council)->fact_count, 1);
	assert_false(council->tick.permits.forward);
	assert_false(council->tick.permits.storage);
	council->permits = (struct agree_permits){ true, false };
	assert_true(council_round(council)->permits.forward);
	assert_false(council->tick.permits.storage);
}

/* As many as there are credits end in one round, in any order. */
static void A7_8_the_window_is_every_op_that_credits_allow(void **state)
{
	struct council *const council = *state;
	uint64_t              id;
	uint32_t              i;

	assert_int_equal(agree_facts_max(council->agree[0]), OPS_MAX);
	for (id = 1; id <= OPS_MAX; id++)
		council_expect(council, id, OP_GET, 1);
	for (i = 0; i < OPS_MAX; i++) {
		(void)council_fact(council, 0, 1 + i, OP_GET, 1);
		(void)council_fact(council, 1, OPS_MAX - i, OP_GET, 1);
		(void)council_fact(council, 2, 1 + (3 * i + 5) % OPS_MAX, OP_GET, 1);
	}
	assert_int_equal(council_round(council)->fact_count, OPS_MAX);
	for (i = 0; i < OPS_MAX; i++)
		assert_int_equal(council->tick.facts[i].op_id, 1 + i);
	assert_int_equal(open_count(council), 0);
}

/* An executor's refusal is one fact at dispatch; the op ends when the others have reported. */
static void A7_10_no_op_waits_for_an_owner_that_never_took_it(void **state)
{
	struct council *const council = *state;
	const struct op       op = { .op_id = 1, .kind = OP_GET, .key_count = 2 };

	council_expect(council, 1, OP_GET, 2);
	fact_refused(council_fact(council, 1, 1, OP_GET, 2), &op, OP_REASON_HEALTH);
	assert_int_equal(council_round(council)->fact_count, 0);
	(void)council_fact(council, 0, 1, OP_GET, 2);
	(void)council_fact(council, 2, 1, OP_GET, 2);
	assert_int_equal(council_round(council)->fact_count, 1);
	assert_int_equal(council->tick.facts[0].ok.words[0], 0);
	assert_int_equal(council->tick.facts[0].object_fault.words[0], 0);
	assert_true(council->tick.facts[0].retired);
	assert_int_equal(council->tick.facts[0].reason, OP_REASON_HEALTH);
	assert_int_equal(open_count(council), 0);
}

/* --- alone ------------------------------------------------------------------------------------ */

static void one_owners_report_is_the_tick(void **state)
{
	struct council *const council = *state;
	const struct fact    *facts = council->draft[0].facts;

	council_expect(council, 1, OP_GET, 2);
	council_expect(council, 2, OP_PUT, 1);
	council_expect_copies(council, 7);
	council_copy(council, 0, 7);
	council_fact(council, 0, 2, OP_PUT, 1)->moved_bytes = 4096;
	council_fact(council, 0, 1, OP_GET, 2)->retired = false;
	assert_ptr_equal(council_round(council)->facts, facts);
	assert_int_equal(council->tick.fact_count, 2);
	assert_int_equal(council->tick.facts[0].op_id, 2);
	assert_int_equal(council->tick.facts[0].moved_bytes, 4096);
	assert_int_equal(council->tick.copies[0], 7);
	assert_int_equal(open_count(council), 1);
	council_notice(council, 0, 1);
	assert_int_equal(council_round(council)->notice_count, 1);
	assert_int_equal(open_count(council), 0);
}

static void one_owner_needs_no_records_of_who_has_reported(void **state)
{
	struct agree_options options = { 1, 1000, 10 };
	struct agree        *alone, *two;

	(void)state;
	assert_int_equal(agree_open(&options, &alone, NULL), 0);
	options.owners = 2;
	assert_int_equal(agree_open(&options, &two, NULL), 0);
	assert_true(agree_bytes(two) - agree_bytes(alone) >= 1000 * 2 * 3 * sizeof(struct op_mask));
	agree_close(alone);
	agree_close(two);
	agree_close(NULL);
}

#define THREE(test) cmocka_unit_test_setup_teardown(test, open_three, shut)

int main(void)
{
	const struct CMUnitTest tests[] = {
		THREE(A7_1_an_op_ends_with_the_last_report),
		THREE(A7_1_a_slow_op_holds_up_none_behind_it),
		THREE(A7_1_copies_pass_with_the_last_owner_by_ticket),
		THREE(A7_2_rows_are_reduced_each_by_itself),
		THREE(A7_2_who_did_not_read_gives_no_evidence),
		THREE(A7_2_masks_of_many_words_are_reduced_whole),
		THREE(A7_2_the_clock_is_the_leaders_and_pressure_the_greatest),
		THREE(the_reason_is_of_the_lowest_rank_that_has_one),
		THREE(A7_2_one_doubt_is_the_doubt_of_all_until_it_is_taken_back),
		THREE(a_doubt_that_ends_before_the_op_is_told_all_the_same),
		THREE(a_query_leaves_nothing_in_doubt),
		THREE(A7_3_idle_rounds_have_their_tick),
		THREE(A7_7_permits_are_part_of_the_tick_and_stop_no_completion),
		THREE(A7_8_the_window_is_every_op_that_credits_allow),
		THREE(A7_10_no_op_waits_for_an_owner_that_never_took_it),
		cmocka_unit_test_setup_teardown(one_owners_report_is_the_tick, open_alone, shut),
		cmocka_unit_test(one_owner_needs_no_records_of_who_has_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
