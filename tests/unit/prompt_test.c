/* SPDX-License-Identifier: Apache-2.0 */
/* The chain of a prompt, in one call or in several; what is refused; how much may be restored. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "death.h"
#include "key/prompt.h"

/* --- the chain -------------------------------------------------------------------------------- */

static void incremental_equals_one_shot(void **state)
{
	const int32_t       tokens[] = { 100, 101, 102, 103, 104, 105,
					 106, 107, 108, 109, 110, 111 };
	const struct prompt prompt = { tokens, 12, 2, NULL };
	struct prefix_hash  whole[6], parts[6], page;
	uint32_t            split, i;

	(void)state;
	prefix_hash_chain(&prompt, 0, 6, NULL, whole);
	for (split = 0; split <= 6; split++) {
		memset(parts, 0, sizeof(parts));
		prefix_hash_chain(&prompt, 0, split, NULL, parts);
		prefix_hash_chain(&prompt, split, 6, split ? &parts[split - 1] : NULL,
				  parts + split);
		assert_memory_equal(parts, whole, sizeof(whole));
	}
	for (i = 0; i < 6; i++) {
		prefix_hash_page(i ? &page : NULL, tokens + i * 2, 2, NULL, 0, &page);
		assert_memory_equal(&page, &whole[i], sizeof(page));
	}
}

static void a_continuation_returns_only_new_pages(void **state)
{
	const int32_t       tokens[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	const struct prompt prompt = { tokens, 10, 2, NULL };
	struct prefix_hash  whole[5], parts[5] = { 0 };
	const uint8_t       untouched[sizeof(whole[0])] = { 0 };

	(void)state;
	prefix_hash_chain(&prompt, 0, 5, NULL, whole);
	prefix_hash_chain(&prompt, 0, 2, NULL, parts);
	assert_memory_equal(&parts[2], untouched, sizeof(untouched));
	assert_memory_equal(parts, whole, 2 * sizeof(whole[0]));
	prefix_hash_chain(&prompt, 2, 5, &whole[1], parts);
	assert_memory_equal(parts, whole + 2, 3 * sizeof(whole[0]));
}

static void the_same_page_behind_another_prefix_differs(void **state)
{
	const int32_t       left[] = { 1, 2, 3, 4 }, right[] = { 7, 2, 3, 4 };
	const struct prompt a = { left, 4, 2, NULL }, b = { right, 4, 2, NULL };
	struct prefix_hash  of_a[2], of_b[2];

	(void)state;
	prefix_hash_chain(&a, 0, 2, NULL, of_a);
	prefix_hash_chain(&b, 0, 2, NULL, of_b);
	assert_memory_not_equal(&of_a[0], &of_b[0], sizeof(of_a[0]));
	assert_memory_not_equal(&of_a[1], &of_b[1], sizeof(of_a[1]));
}

static void a_tail_is_a_page_with_fewer_tokens(void **state)
{
	const int32_t       tokens[] = { 1, 2, 3, 4, 5, 6 };
	const struct prompt prompt = { tokens, 6, 4, NULL };
	struct prefix_hash  first, got, want;

	(void)state;
	prefix_hash_chain(&prompt, 0, 1, NULL, &first);
	prefix_hash_tail(&prompt, 1, 1, &first, &got);
	prefix_hash_page(&first, tokens + 4, 1, NULL, 0, &want);
	assert_memory_equal(&got, &want, sizeof(got));
	prefix_hash_tail(&prompt, 0, 3, NULL, &got);
	prefix_hash_page(NULL, tokens, 3, NULL, 0, &want);
	assert_memory_equal(&got, &want, sizeof(got));
}

static void past_the_prompt(void *prompt)
{
	struct prefix_hash hashes[4];

	prefix_hash_chain(prompt, 0, 2, NULL, hashes);
}

static void without_its_prior(void *prompt)
{
	struct prefix_hash hash;

	prefix_hash_tail(prompt, 1, 2, NULL, &hash);
}

static void a_whole_page_as_a_tail(void *prompt)
{
	struct prefix_hash hash;

	prefix_hash_tail(prompt, 0, 4, NULL, &hash);
}

static void mistakes_are_panics(void **state)
{
	void (*const mistakes[])(void *) = { past_the_prompt, without_its_prior,
					     a_whole_page_as_a_tail };
	const int32_t tokens[6] = { 0 };
	struct prompt prompt = { tokens, 6, 4, NULL };
	size_t        i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(mistakes); i++)
		assert_true(death_panics(mistakes[i], &prompt, NULL, 0));
}

/* --- checks ----------------------------------------------------------------------------------- */

static void check_refused(const struct prompt *prompt, const char *sentence)
{
	struct kvs_error err = { 0 };

	assert_int_equal(prompt_check(prompt, &err), KVS_E_INVALID);
	assert_string_equal(err.message, sentence);
}

static void a_prompt_that_is_wrong_is_refused_by_field_value_and_rule(void **state)
{
	const int32_t tokens[2] = { 0 };

	(void)state;
	assert_int_equal(prompt_check(&(struct prompt){ NULL, 0, 1, NULL }, NULL), 0);
	check_refused(&(struct prompt){ tokens, 2, 0, NULL }, "page_tokens: 0, at least 1");
	check_refused(&(struct prompt){ tokens, UINT64_C(1) << 31, 1, NULL },
		      "token_count: 2147483648, at most 2147483647");
	check_refused(&(struct prompt){ NULL, 2, 1, NULL }, "tokens: NULL, 2 are expected");
}

static void extras_that_are_wrong_are_refused_by_field_value_and_rule(void **state)
{
	static const char              big[PROMPT_EXTRA_BYTES_MAX + 1];
	static const struct prompt_item many[PROMPT_ITEMS_MAX + 1];
	static const struct {
		struct prompt_item item[2];
		const char        *sentence;
	} rows[] = {
		{ { { { "", 0 }, 0, 1 } }, "extras.items[0]: digest.byte_count: 0, at least 1" },
		{ { { { NULL, 7 }, 0, 1 } },
		  "extras.items[0]: digest.bytes: NULL, 7 bytes are expected" },
		{ { { { big, 257 }, 0, 1 } },
		  "extras.items[0]: digest.byte_count: 257, at most 256" },
		{ { { { "c", 1 }, 0, 3 }, { { "d", 1 }, 2, 4 } },
		  "extras.items[1]: first_token: 2, at least 3, where the item before ends" },
		{ { { { "c", 1 }, 2, 2 } },
		  "extras.items[0]: end_token: 2, more than first_token, 2, and at most token_count, 4" },
		{ { { { "c", 1 }, 2, 5 } },
		  "extras.items[0]: end_token: 5, more than first_token, 2, and at most token_count, 4" },
	};
	const int32_t        tokens[4] = { 0 };
	struct prompt_extras extras = { .adapter = { big, 257 } };
	const struct prompt  prompt = { tokens, 4, 2, &extras };
	size_t               i;

	(void)state;
	check_refused(&prompt, "extras.adapter.byte_count: 257, at most 256");
	extras = (struct prompt_extras){ .salt = { NULL, 1 } };
	check_refused(&prompt, "extras.salt.bytes: NULL, 1 bytes are expected");
	extras = (struct prompt_extras){ .items = many, .item_count = PROMPT_ITEMS_MAX + 1 };
	check_refused(&prompt, "extras.item_count: 4097, at most 4096");
	extras = (struct prompt_extras){ .item_count = 2 };
	check_refused(&prompt, "extras.items: NULL, 2 items are expected");
	for (i = 0; i < ARRAY_COUNT(rows); i++) {
		extras = (struct prompt_extras){ .items = rows[i].item,
						 .item_count = rows[i].item[1].end_token ? 2 : 1 };
		check_refused(&prompt, rows[i].sentence);
	}
}

/* --- how much may be restored ----------------------------------------------------------------- */

static void at_least_the_last_token_is_recomputed(void **state)
{
	(void)state;
	assert_int_equal(prefix_reusable_pages(0, 128, 0), 0);
	assert_int_equal(prefix_reusable_pages(128, 128, 0), 0);
	assert_int_equal(prefix_reusable_pages(129, 128, 0), 1);
	assert_int_equal(prefix_reusable_pages(129, 128, 1), 1);
	assert_int_equal(prefix_reusable_pages(256, 128, 128), 1);
	assert_int_equal(prefix_reusable_pages(255, 128, 128), 0);
	assert_int_equal(prefix_reusable_pages(100, 128, 4000), 0);
	/* More pages than can be numbered are not few. */
	assert_int_equal(prefix_reusable_pages((UINT64_C(1) << 32) + 6, 1, 0), UINT32_MAX);
	assert_int_equal(prefix_reusable_pages(UINT64_MAX, 2, 0), UINT32_MAX);
	assert_int_equal(prefix_reusable_pages((UINT64_C(1) << 32) + 6, 2, 0), (1u << 31) + 2);
}

static void A3_2_the_exact_bound_obeys_replay_and_the_wanted_logits(void **state)
{
	(void)state;
	assert_int_equal(prefix_reusable_tokens(0, 0, LOGITS_NONE), 0);
	assert_int_equal(prefix_reusable_tokens(1, 0, LOGITS_NONE), 0);
	assert_int_equal(prefix_reusable_tokens(100, 0, LOGITS_NONE), 99);
	assert_int_equal(prefix_reusable_tokens(100, 1, LOGITS_NONE), 99);
	assert_int_equal(prefix_reusable_tokens(100, 30, LOGITS_NONE), 70);
	assert_int_equal(prefix_reusable_tokens(100, 100, LOGITS_NONE), 0);
	assert_int_equal(prefix_reusable_tokens(100, 30, 71), 70);
	assert_int_equal(prefix_reusable_tokens(100, 30, 69), 69);
	assert_int_equal(prefix_reusable_tokens(100, 30, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(incremental_equals_one_shot),
		cmocka_unit_test(a_continuation_returns_only_new_pages),
		cmocka_unit_test(the_same_page_behind_another_prefix_differs),
		cmocka_unit_test(a_tail_is_a_page_with_fewer_tokens),
		cmocka_unit_test(mistakes_are_panics),
		cmocka_unit_test(a_prompt_that_is_wrong_is_refused_by_field_value_and_rule),
		cmocka_unit_test(extras_that_are_wrong_are_refused_by_field_value_and_rule),
		cmocka_unit_test(at_least_the_last_token_is_recomputed),
		cmocka_unit_test(A3_2_the_exact_bound_obeys_replay_and_the_wanted_logits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
