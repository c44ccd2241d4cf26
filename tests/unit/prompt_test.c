/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain of a prompt: in one call or in several, what extra keys change, and how much may be
 * restored.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "death.h"
#include "key/prompt.h"

#define PAGE 4u
#define PAGES 5u
#define TOKENS (PAGE * PAGES + 2)

static const struct extra_key cat = { "cat", 3 }, dog = { "dog", 3 };

struct chain {
	struct prefix_hash hash[PAGES];
	struct prefix_hash tail; /* the two tokens behind them */
};

/* All tokens are equal, as the placeholders of an image are. */
static struct chain hash_placeholders(const struct prompt_extras *extras)
{
	static const int32_t tokens[TOKENS];
	const struct prompt  prompt = { tokens, TOKENS, PAGE, extras };
	struct chain         chain;

	assert_int_equal(prompt_check(&prompt, NULL), 0);
	prefix_hash_chain(&prompt, 0, PAGES, NULL, chain.hash);
	prefix_hash_tail(&prompt, PAGES, 2, &chain.hash[PAGES - 1], &chain.tail);
	return chain;
}

static struct chain hash_items(const struct prompt_item *items, uint32_t count)
{
	const struct prompt_extras extras = { .items = items, .item_count = count };

	return hash_placeholders(&extras);
}

/* The first page that differs; PAGES when only the tail does, PAGES + 1 when nothing does. */
static uint32_t first_difference(const struct chain *a, const struct chain *b)
{
	uint32_t page = 0;

	while (page < PAGES && memcmp(&a->hash[page], &b->hash[page], sizeof(a->hash[page])) == 0)
		page++;
	if (page < PAGES)
		assert_memory_not_equal(&a->tail, &b->tail, sizeof(a->tail));
	return page == PAGES && memcmp(&a->tail, &b->tail, sizeof(a->tail)) == 0 ? page + 1 : page;
}

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

/* --- extra keys ------------------------------------------------------------------------------- */

static void a_prompt_without_extra_keys_keeps_its_bytes(void **state)
{
	const struct prompt_extras empty = { .adapter = { "", 0 } };
	const struct chain         none = hash_placeholders(NULL), same = hash_placeholders(&empty);
	const int32_t              tokens[] = { 1, 2, 3, 4 };
	const struct prompt        golden = { tokens, 4, 2, NULL };
	struct prefix_hash         hash[2];
	char                       hex[2 * SHA256_BYTES + 1];

	(void)state;
	assert_int_equal(first_difference(&none, &same), PAGES + 1);
	prefix_hash_chain(&golden, 0, 2, NULL, hash);
	hex_encode(hash[1].byte, SHA256_BYTES, hex);
	assert_string_equal(hex, "c85302c76b67619ca670ce1e78e2092d589dad96e10abec1fb3e5fb5e360ce02");
}

static void an_adapter_and_a_salt_change_every_page_and_are_no_substitutes(void **state)
{
	const struct prompt_extras extras[] = { { .adapter = { "a", 1 } },
						{ .salt = { "a", 1 } },
						{ .adapter = { "a", 1 }, .salt = { "a", 1 } },
						{ .adapter = { "aa", 2 } } };
	struct chain               chain[5] = { hash_placeholders(NULL) };
	size_t                     i, j;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(extras); i++)
		chain[1 + i] = hash_placeholders(&extras[i]);
	for (i = 0; i < ARRAY_COUNT(chain); i++) {
		for (j = 0; j < i; j++)
			assert_int_equal(first_difference(&chain[i], &chain[j]), 0);
	}
}

/* The stream of a page with an adapter and the middle of an image, written out. */
static void the_stream_is_the_documented_one(void **state)
{
	const struct prompt_item   item = { cat, 3, 9 };
	const struct prompt_extras extras = { .adapter = { "lora", 4 },
					      .items = &item,
					      .item_count = 1 };
	const struct extra_key     keys[] = { { "lora", 4 },
					      { "", 0 },
					      { "\0\0\0\0\4\0\0\0\1\0\0\0\0\0\0\0", 16 },
					      { "cat", 3 } };
	const struct chain         chain = hash_placeholders(&extras);
	const int32_t              tokens[PAGE] = { 0 };
	struct prefix_hash         want;

	(void)state;
	prefix_hash_page(&chain.hash[0], tokens, PAGE, keys, 4, &want);
	assert_memory_equal(&chain.hash[1], &want, sizeof(want));
	/* An item of an earlier page is in this one by its prior alone. */
	prefix_hash_page(&chain.hash[2], tokens, PAGE, keys, 2, &want);
	assert_memory_equal(&chain.hash[3], &want, sizeof(want));
}

static void equal_placeholders_of_other_images_differ_where_they_begin(void **state)
{
	uint32_t first, end;

	(void)state;
	for (first = 0; first < TOKENS; first++) {
		for (end = first + 1; end <= TOKENS; end++) {
			const struct prompt_item one = { cat, first, end };
			const struct prompt_item other = { dog, first, end };
			const struct chain       a = hash_items(&one, 1), b = hash_items(&other, 1);
			const struct chain       text = hash_placeholders(NULL);

			assert_int_equal(first_difference(&a, &b), first / PAGE);
			assert_int_equal(first_difference(&a, &text), first / PAGE);
		}
	}
}

/* Equal digests, pages and placeholders: only where an image begins and ends is not the same. */
static void the_place_of_an_image_counts(void **state)
{
	const struct prompt_item once[] = { { cat, 0, 8 } };
	const struct prompt_item twice[] = { { cat, 0, 4 }, { cat, 4, 8 } };
	const struct prompt_item long_short[] = { { cat, 0, 3 }, { dog, 3, 4 } };
	const struct prompt_item short_long[] = { { cat, 0, 1 }, { dog, 1, 4 } };
	const struct chain       a = hash_items(once, 1), b = hash_items(twice, 2);
	const struct chain       c = hash_items(long_short, 2), d = hash_items(short_long, 2);

	(void)state;
	assert_int_equal(first_difference(&a, &b), 1);
	assert_int_equal(first_difference(&c, &d), 0);
}

/* An image that ends with its page says nothing of the next one, nor one that begins behind it. */
static void an_image_is_in_the_pages_that_it_overlaps_alone(void **state)
{
	const struct prompt_item items[] = { { cat, 3, 8 }, { dog, 12, 13 } };
	const struct chain       chain = hash_items(items, 2);
	const int32_t            tokens[PAGE] = { 0 };
	struct prefix_hash       plain;

	(void)state;
	prefix_hash_page(&chain.hash[1], tokens, PAGE, NULL, 0, &plain);
	assert_memory_equal(&chain.hash[2], &plain, sizeof(plain));
	prefix_hash_page(&chain.hash[3], tokens, PAGE, NULL, 0, &plain);
	assert_memory_equal(&chain.hash[4], &plain, sizeof(plain));
	prefix_hash_page(&chain.hash[4], tokens, 2, NULL, 0, &plain);
	assert_memory_equal(&chain.tail, &plain, sizeof(plain));
}

/*
 * What lies behind a page's last token is none of its business: a longer image shares its
 * beginning.
 */
static void a_hash_depends_on_its_prefix_alone(void **state)
{
	const struct prompt_item   six = { cat, 2, 8 }, nine = { cat, 2, 11 }, all = { cat, 2, 22 };
	const struct prompt_extras whole = { .items = &all, .item_count = 1 };
	const struct prompt_item   cut = { cat, 2, 10 };
	const struct prompt_extras part = { .items = &cut, .item_count = 1 };
	const struct chain         a = hash_items(&six, 1), b = hash_items(&nine, 1);
	const int32_t              tokens[TOKENS] = { 0 };
	const struct prompt        long_one = { tokens, TOKENS, PAGE, &whole };
	const struct prompt        short_one = { tokens, 10, PAGE, &part };
	struct prefix_hash         of_long, of_short;

	(void)state;
	assert_int_equal(first_difference(&a, &b), 2);
	prefix_hash_tail(&long_one, 2, 2, &a.hash[1], &of_long);
	prefix_hash_tail(&short_one, 2, 2, &a.hash[1], &of_short);
	assert_memory_equal(&of_long, &of_short, sizeof(of_long));
}

static void a_chain_with_extra_keys_continues_at_any_page(void **state)
{
	const struct prompt_item   items[] = { { cat, 1, 2 },
					       { dog, 2, 3 },
					       { cat, 3, 13 },
					       { dog, 21, 22 } };
	const struct prompt_extras extras = { .salt = { "tenant", 6 },
					      .items = items,
					      .item_count = 4 };
	const struct chain         whole = hash_placeholders(&extras);
	const int32_t              tokens[TOKENS] = { 0 };
	const struct prompt        prompt = { tokens, TOKENS, PAGE, &extras };
	struct prefix_hash         rest[PAGES];
	uint32_t                   first;

	(void)state;
	for (first = 1; first <= PAGES; first++) {
		prefix_hash_chain(&prompt, first, PAGES, &whole.hash[first - 1], rest);
		assert_memory_equal(rest, whole.hash + first, (PAGES - first) * sizeof(rest[0]));
	}
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
		cmocka_unit_test(a_prompt_without_extra_keys_keeps_its_bytes),
		cmocka_unit_test(an_adapter_and_a_salt_change_every_page_and_are_no_substitutes),
		cmocka_unit_test(the_stream_is_the_documented_one),
		cmocka_unit_test(equal_placeholders_of_other_images_differ_where_they_begin),
		cmocka_unit_test(the_place_of_an_image_counts),
		cmocka_unit_test(an_image_is_in_the_pages_that_it_overlaps_alone),
		cmocka_unit_test(a_hash_depends_on_its_prefix_alone),
		cmocka_unit_test(a_chain_with_extra_keys_continues_at_any_page),
		cmocka_unit_test(a_prompt_that_is_wrong_is_refused_by_field_value_and_rule),
		cmocka_unit_test(extras_that_are_wrong_are_refused_by_field_value_and_rule),
		cmocka_unit_test(at_least_the_last_token_is_recomputed),
		cmocka_unit_test(A3_2_the_exact_bound_obeys_replay_and_the_wanted_logits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
