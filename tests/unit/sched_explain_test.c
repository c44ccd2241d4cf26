/* SPDX-License-Identifier: Apache-2.0 */
/* Why a hit ended: exactly one word a request, and a sentence for people. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/err.h"
#include "sched/explain.h"

#define SENTENCE_BYTES 256u

static struct groups groups;

static int make_groups(void **state)
{
	static const struct group_spec specs[] = {
		{ .name = "full", .kind = GROUP_FULL, .block_tokens = 128, .packing = 1 },
		{ .name = "state", .kind = GROUP_STATE, .block_tokens = 128, .packing = 1 },
	};

	(void)state;
	return groups_make(specs, ARRAY_COUNT(specs), 128, &groups, NULL);
}

/* 4,736 of 7,808 tokens, ended by block 37 of group 0. */
static struct explanation ended(enum miss_reason reason, enum read_outcome read)
{
	return (struct explanation){ .reason = reason,
				     .read = read,
				     .shortfall = { .cause = read, .group = 0, .position = 37 },
				     .prompt_tokens = 7840,
				     .bound_tokens = 7808,
				     .tokens = { 1024, 3712 } };
}

static void expect_sentence(const struct explanation *explanation, const char *expected)
{
	char buffer[SENTENCE_BYTES];

	assert_string_equal(explanation_print(explanation, &groups, buffer, sizeof(buffer)), expected);
}

static void a_block_is_named_where_one_ended_the_hit(void **state)
{
	struct explanation explanation = ended(MISS_STORAGE, READ_EVICTED);

	(void)state;
	expect_sentence(&explanation, "hit 4,736 of 7,808 tokens, ended by evicted: block 37 of group 0 "
				      "\"full\" is no longer in the store");
	explanation.shortfall.group = 1;
	explanation.reason = MISS_DISPLACED;
	expect_sentence(&explanation, "hit 4,736 of 7,808 tokens, ended by displaced: block 37 of group 1 "
				      "\"state\" was evicted before it was admitted");
}

static void a_limit_is_named_where_no_block_did(void **state)
{
	struct explanation explanation = ended(MISS_STORAGE, READ_DEADLINE);

	(void)state;
	/* Even where a block is known: it was not the block that ended the hit. */
	expect_sentence(&explanation, "hit 4,736 of 7,808 tokens, ended by deadline: storage had not "
				      "answered in time");
	explanation.read = READ_NEGATIVE;
	explanation.shortfall.group = SHORTFALL_NONE;
	expect_sentence(&explanation, "hit 4,736 of 7,808 tokens, ended by negative: an object is known to "
				      "be missing or invalid in the store");
}

static void a_full_hit_needs_no_reason(void **state)
{
	struct explanation explanation = ended(MISS_NONE, READ_READY);

	(void)state;
	explanation.tokens[STRATUM_HOST] = 6784;
	expect_sentence(&explanation, "hit 7,808 of 7,808 tokens, all that may be restored");
	assert_string_equal(explanation_word(&explanation), "full");
}

static void a_sentence_is_cut_at_the_buffers_end(void **state)
{
	const struct explanation explanation = ended(MISS_STORAGE, READ_EVICTED);
	char                     buffer[] = "##########";

	(void)state;
	explanation_print(&explanation, &groups, buffer, 8);
	assert_memory_equal(buffer, "hit 4,7\0##", sizeof(buffer) - 1);
}

/* One word and one sentence each, with a block and without; no two reasons share a word. */
static void expect_words(const enum miss_reason *reasons, const enum read_outcome *reads, uint32_t count)
{
	const char *words[MISS_REASON_COUNT + READ_OUTCOME_COUNT];
	uint32_t    i, j;

	for (i = 0; i < count; i++) {
		struct explanation explanation = ended(reasons[i], reads[i]);
		char               buffer[SENTENCE_BYTES];

		words[i] = explanation_word(&explanation);
		for (j = 0; j < i; j++)
			assert_string_not_equal(words[i], words[j]);
		explanation_print(&explanation, &groups, buffer, sizeof(buffer));
		assert_null(strstr(buffer, "(null)"));
		explanation.shortfall.group = SHORTFALL_NONE;
		explanation_print(&explanation, &groups, buffer, sizeof(buffer));
		assert_null(strstr(buffer, "(null)"));
		assert_true(strlen(buffer) < SENTENCE_BYTES - 1);
	}
}

static void every_reason_has_its_own_word_and_sentence(void **state)
{
	enum miss_reason  reasons[MISS_REASON_COUNT + READ_OUTCOME_COUNT];
	enum read_outcome reads[MISS_REASON_COUNT + READ_OUTCOME_COUNT];
	uint32_t          count = 0;
	uint32_t          i;

	(void)state;
	for (i = 0; i < MISS_REASON_COUNT; i++) {
		reasons[count] = (enum miss_reason)i;
		reads[count++] = READ_ASKED;
	}
	/* MISS_STORAGE itself speaks with the word of its read. */
	for (i = READ_ASKED + 1; i < READ_OUTCOME_COUNT; i++) {
		reasons[count] = MISS_STORAGE;
		reads[count++] = (enum read_outcome)i;
	}
	expect_words(reasons, reads, count);
	assert_string_equal(miss_reason_name(MISS_STORAGE), "storage");
	assert_string_equal(miss_reason_name(MISS_HOLD_EXPIRED), "hold_expired");
}

static void X4_reasons_add_up_to_the_admitted_less_the_full(void **state)
{
	struct explain_counts counts = { 0 };
	uint64_t              reasons = 0;
	uint64_t              reads = 0;
	uint32_t              i;

	(void)state;
	for (i = 0; i < 100; i++) {
		const struct explanation explanation = ended((enum miss_reason)(i % MISS_REASON_COUNT),
							     (enum read_outcome)(i % READ_OUTCOME_COUNT));

		explain_count(&counts, &explanation);
	}
	for (i = 0; i < MISS_REASON_COUNT; i++)
		reasons += counts.reasons[i];
	for (i = 0; i < READ_OUTCOME_COUNT; i++)
		reads += counts.reads[i];
	assert_int_equal(counts.admitted, 100);
	assert_int_equal(counts.full, (100 + MISS_REASON_COUNT - 1) / MISS_REASON_COUNT);
	assert_int_equal(counts.reasons[MISS_NONE], 0);
	assert_int_equal(reasons, counts.admitted - counts.full);
	assert_int_equal(reads, counts.reasons[MISS_STORAGE]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_block_is_named_where_one_ended_the_hit),
		cmocka_unit_test(a_limit_is_named_where_no_block_did),
		cmocka_unit_test(a_full_hit_needs_no_reason),
		cmocka_unit_test(a_sentence_is_cut_at_the_buffers_end),
		cmocka_unit_test(every_reason_has_its_own_word_and_sentence),
		cmocka_unit_test(X4_reasons_add_up_to_the_admitted_less_the_full),
	};

	return cmocka_run_group_tests(tests, make_groups, NULL);
}
