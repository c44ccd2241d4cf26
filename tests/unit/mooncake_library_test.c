/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the library: what goes to the SDK, and what each answer of it says. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "cave.h"

static int open_cave(void **state)
{
	*state = cave_make_open();
	return 0;
}

static int close_cave(void **state)
{
	cave_forget_doubts(*state);
	cave_close(*state);
	return 0;
}

static void put_all(struct cave *cave)
{
	bool retired = false;

	assert_int_equal(cave_call(cave, 1, MOONCAKE_PUT, CAVE_NAMES, &retired), 0);
	assert_true(retired);
}

static void bytes_come_back_to_their_own_rows(void **state)
{
	struct cave *const cave = *state;
	uint8_t            before[CAVE_NAMES][CAVE_BYTES];
	bool               retired = false;
	uint32_t           i;

	put_all(cave);
	memcpy(before, cave->bytes, sizeof(before));
	memset(cave->bytes, 0, sizeof(cave->bytes));
	assert_int_equal(cave_call(cave, 2, MOONCAKE_GET, CAVE_NAMES, &retired), 0);
	assert_true(retired);
	assert_memory_equal(cave->bytes, before, sizeof(before));
	for (i = 0; i < CAVE_NAMES; i++)
		assert_int_equal(cave->codes[i], CAVE_BYTES);
}

static void rows_are_told_one_by_one(void **state)
{
	struct cave *const cave = *state;
	bool               retired;

	assert_int_equal(cave_call(cave, 1, MOONCAKE_PUT, 2, &retired), 0);
	assert_int_equal(cave_call(cave, 0, MOONCAKE_EXISTS, 3, &retired), 0);
	assert_int_equal(cave->codes[1], 1);
	assert_int_equal(cave->codes[2], 0);
	assert_int_equal(cave_call(cave, 1, MOONCAKE_GET, 3, &retired), 0);
	assert_int_equal(cave->codes[1], CAVE_BYTES);
	assert_int_equal(cave->codes[2], -704);
	assert_true(retired);
	assert_int_equal(cave_call(cave, 0, MOONCAKE_REMOVE, 3, &retired), 0);
	assert_int_equal(cave->codes[1], 0);
	assert_int_equal(cave->codes[2], -704);
	assert_true(cave_figures(cave).forced);
	assert_int_equal(cave_figures(cave).objects, 0);
}

static void a_purge_is_one_expression_and_says_how_many(void **state)
{
	struct cave *const cave = *state;
	bool               retired = false;

	put_all(cave);
	assert_int_equal(cave_call(cave, 0, MOONCAKE_PURGE, 1, &retired), 0);
	assert_true(retired);
	assert_int_equal(cave->codes[0], CAVE_NAMES);
	assert_true(cave_figures(cave).forced);
	assert_int_equal(cave_figures(cave).objects, 0);
}

static void a_put_asks_for_the_copies_of_the_settings(void **state)
{
	struct cave *const cave = cave_make();

	(void)state;
	cave->settings.replica_count = 3;
	cave_open(cave);
	put_all(cave);
	assert_int_equal(cave_figures(cave).replicas, 3);
	cave_close(cave);
}

static const int64_t codes[] = { 0,    1,    2,    CAVE_BYTES, CAVE_BYTES - 1, CAVE_BYTES + 1, -10,
				 -200, -400, -600, -702,       -703,	       -704,	       -705,
				 -706, -707, -708, -800,       -801,	       -900,	       -901,
				 -1,   -999, INT32_MAX };

/* The code is handed on as it is, and the bytes are at rest only where it proves that. */
static void check_codes(struct cave *cave, enum mooncake_verb verb, enum stub_call call,
			const int64_t *proofs, size_t proof_count)
{
	size_t i, j;

	for (i = 0; i < ARRAY_COUNT(codes); i++) {
		bool proven = proof_count == 0 || (verb == MOONCAKE_GET && codes[i] >= 0);
		bool retired = !proven;

		/* Of a removal, 0 is what a stub does by itself. */
		if (proof_count == 0 && codes[i] == 0)
			continue;
		for (j = 0; j < proof_count; j++)
			proven |= codes[i] == proofs[j];
		cave_answer(cave, call, codes[i]);
		assert_int_equal(cave_call(cave, 1, verb, 1, &retired), 0);
		assert_int_equal(cave->codes[0], codes[i]);
		assert_int_equal(retired, proven);
		assert_int_equal(cave->way->ops->settled(cave->way), proven);
		cave_forget_doubts(cave);
	}
}

static void A10_1_every_code_of_a_get(void **state)
{
	static const int64_t proofs[] = { -704, -703, -702, -707, -801 };

	check_codes(*state, MOONCAKE_GET, STUB_GET, proofs, ARRAY_COUNT(proofs));
}

static void A10_1_every_code_of_a_put(void **state)
{
	static const int64_t proofs[] = { 0, -705, -200 };

	check_codes(*state, MOONCAKE_PUT, STUB_PUT, proofs, ARRAY_COUNT(proofs));
}

static void A10_1_every_code_of_what_moves_nothing(void **state)
{
	check_codes(*state, MOONCAKE_EXISTS, STUB_EXISTS, NULL, 0);
	check_codes(*state, MOONCAKE_REMOVE, STUB_REMOVE, NULL, 0);
}

static void A10_1_one_row_in_doubt_is_the_whole_call_in_doubt(void **state)
{
	struct cave *const     cave = *state;
	const struct stub_plan plan = { .calls = 1, .code_count = 3,
					.codes = { STUB_HONEST, STUB_HONEST, -800 } };
	bool                   retired = true;

	put_all(cave);
	cave->stub->plan(STUB_GET, &plan);
	assert_int_equal(cave_call(cave, 1, MOONCAKE_GET, CAVE_NAMES, &retired), 0);
	assert_false(retired);
	assert_int_equal(cave->codes[1], CAVE_BYTES);
	assert_int_equal(cave->codes[2], -800);
	/* And stays so, however well the next call goes. */
	assert_int_equal(cave_call(cave, 1, MOONCAKE_GET, CAVE_NAMES, &retired), 0);
	assert_true(retired);
	assert_false(cave->way->ops->settled(cave->way));
	assert_int_equal(cave->way->ops->close(cave->way), KVS_E_QUARANTINE);
}

static void check_no_answer(struct cave *cave, const struct stub_plan *plan, int expected)
{
	static const struct {
		enum mooncake_verb verb;
		enum stub_call     call;
	} batches[] = { { MOONCAKE_EXISTS, STUB_EXISTS },
			{ MOONCAKE_GET, STUB_GET },
			{ MOONCAKE_PUT, STUB_PUT } };
	size_t i;

	for (i = 0; i < ARRAY_COUNT(batches); i++) {
		const bool moves = batches[i].verb != MOONCAKE_EXISTS;
		bool       retired = moves;

		cave->stub->plan(batches[i].call, plan);
		assert_int_equal(cave_call(cave, 1, batches[i].verb, 2, &retired), expected);
		assert_int_equal(retired, !moves);
		assert_int_equal(cave->way->ops->settled(cave->way), !moves);
		cave_forget_doubts(cave);
		/* The lane is not to blame. */
		assert_int_equal(cave_call(cave, 1, batches[i].verb, 2, &retired), 0);
		assert_true(retired);
	}
}

static void A10_1_an_exception_proves_nothing(void **state)
{
	check_no_answer(*state, &(struct stub_plan){ .calls = 1, .rc = -1 }, -EIO);
	check_no_answer(*state, &(struct stub_plan){ .calls = 1, .rc = -600 }, -EIO);
	check_no_answer(*state, &(struct stub_plan){ .calls = 1, .rc = -1, .writes = true }, -EIO);
}

static void A10_1_an_answer_that_is_none_proves_nothing(void **state)
{
	check_no_answer(*state, &(struct stub_plan){ .calls = 1, .rc = 1 }, KVS_E_PROTO);
	check_no_answer(*state, &(struct stub_plan){ .calls = 1, .rc = 1, .writes = true },
			KVS_E_PROTO);
	check_no_answer(*state, &(struct stub_plan){ .calls = 1, .cuts = true, .rows = 0 },
			KVS_E_PROTO);
	check_no_answer(*state, &(struct stub_plan){ .calls = 1, .cuts = true, .rows = 1 },
			KVS_E_PROTO);
}

static void the_longest_names_and_the_largest_batch_pass(void **state)
{
	static char                text[MOONCAKE_NAMES_MAX][2 * LABEL_TEXT_MAX];
	static const char         *names[MOONCAKE_NAMES_MAX];
	static int64_t             answers[MOONCAKE_NAMES_MAX];
	struct cave *const         cave = *state;
	const struct mooncake_call call = { .verb = MOONCAKE_REMOVE, .count = MOONCAKE_NAMES_MAX,
					    .names = names, .codes = answers };
	struct mooncake_call       look = call;
	bool                       retired;
	uint32_t                   i;

	for (i = 0; i < MOONCAKE_NAMES_MAX; i++) {
		memset(text[i], 'a' + (int)(i % 26), sizeof(text[i]) - 1);
		text[i][0] = (char)('a' + i / 26);
		names[i] = text[i];
	}
	look.verb = MOONCAKE_EXISTS;
	assert_int_equal(cave->way->ops->call(cave->way, 0, &look, &retired), 0);
	assert_int_equal(answers[MOONCAKE_NAMES_MAX - 1], 0);
	assert_int_equal(cave->way->ops->call(cave->way, 0, &call, &retired), 0);
	assert_int_equal(answers[MOONCAKE_NAMES_MAX - 1], -704);
}

static void no_call_of_the_sdk_is_made_by_its_caller(void **state)
{
	struct cave *const     cave = cave_make();
	struct kvs_memory      memory = { cave->spans, CAVE_NAMES, -1 };
	const struct stub_hooks *const stub = cave->stub;
	enum mooncake_verb     verb;
	bool                   retired;

	(void)state;
	cave_open(cave);
	assert_int_equal(cave->way->ops->register_memory(cave->way, &memory), 0);
	for (verb = 0; verb < MOONCAKE_VERB_COUNT; verb++)
		assert_int_equal(cave_call(cave, 1, verb, 1, &retired), 0);
	assert_int_equal(cave->way->ops->close(cave->way), 0);
	cave->way = NULL;
	assert_int_equal(cave_figures(cave).calls[STUB_DESTROY], 1);
	assert_false(stub->has_run_on(pthread_self()));
	cave_close(cave);
}

static void the_callers_signals_stay_as_they_were(void **state)
{
	struct cave *const cave = cave_make();
	sigset_t           before, after;
	int                number;

	(void)state;
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	cave_open(cave);
	put_all(cave);
	cave_close(cave);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (number = 1; number < 32; number++)
		assert_int_equal(sigismember(&before, number), sigismember(&after, number));
	assert_int_equal(sigismember(&after, SIGTERM), 0);
}

static void memory_is_registered_once_where_it_touches(void **state)
{
	struct cave *const      cave = *state;
	const struct kvs_memory memory = { cave->spans, CAVE_NAMES, -1 };
	struct stub_figures     figures;

	assert_int_equal(cave->way->ops->register_memory(cave->way, &memory), 0);
	put_all(cave);
	figures = cave_figures(cave);
	assert_int_equal(figures.calls[STUB_REGISTER], 1);
	assert_ptr_equal(figures.region_ptr, cave->bytes);
	assert_int_equal(figures.region_bytes, CAVE_NAMES * CAVE_BYTES);
	assert_string_equal(cave_describe(cave).note, "");
}

static void memory_with_a_gap_is_two_regions(void **state)
{
	struct cave *const      cave = *state;
	const struct kvs_span   slices[] = { cave->spans[0], cave->spans[2], cave->spans[3] };
	const struct kvs_memory memory = { slices, ARRAY_COUNT(slices), -1 };

	assert_int_equal(cave->way->ops->register_memory(cave->way, &memory), 0);
	assert_int_equal(cave_figures(cave).regions, 2);
	assert_ptr_equal(cave_figures(cave).region_ptr, cave->bytes[2]);
	assert_int_equal(cave_figures(cave).region_bytes, 2 * CAVE_BYTES);
}

static void memory_that_is_refused_is_noted_and_no_more(void **state)
{
	struct cave *const      cave = *state;
	const struct kvs_span   slices[] = { cave->spans[0], cave->spans[2] };
	const struct kvs_memory memory = { slices, ARRAY_COUNT(slices), -1 };

	/* The first of two; the second would have been taken. */
	cave_answer(cave, STUB_REGISTER, -600);
	assert_int_equal(cave->way->ops->register_memory(cave->way, &memory), -EIO);
	assert_string_equal(cave_describe(cave).note,
			    "memory is not registered: register_buffer() gave -600, INVALID_PARAMS");
	put_all(cave);
}

int main(void)
{
#define CAVE_TEST(name) cmocka_unit_test_setup_teardown(name, open_cave, close_cave)
	const struct CMUnitTest tests[] = {
		CAVE_TEST(bytes_come_back_to_their_own_rows),
		CAVE_TEST(rows_are_told_one_by_one),
		CAVE_TEST(a_purge_is_one_expression_and_says_how_many),
		cmocka_unit_test(a_put_asks_for_the_copies_of_the_settings),
		CAVE_TEST(A10_1_every_code_of_a_get),
		CAVE_TEST(A10_1_every_code_of_a_put),
		CAVE_TEST(A10_1_every_code_of_what_moves_nothing),
		CAVE_TEST(A10_1_one_row_in_doubt_is_the_whole_call_in_doubt),
		CAVE_TEST(A10_1_an_exception_proves_nothing),
		CAVE_TEST(A10_1_an_answer_that_is_none_proves_nothing),
		CAVE_TEST(the_longest_names_and_the_largest_batch_pass),
		cmocka_unit_test(no_call_of_the_sdk_is_made_by_its_caller),
		cmocka_unit_test(the_callers_signals_stay_as_they_were),
		CAVE_TEST(memory_is_registered_once_where_it_touches),
		CAVE_TEST(memory_with_a_gap_is_two_regions),
		CAVE_TEST(memory_that_is_refused_is_noted_and_no_more),
	};

	return cmocka_run_group_tests_name("mooncake_library", tests, NULL, NULL);
}
