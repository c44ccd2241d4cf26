/* SPDX-License-Identifier: Apache-2.0 */
/* What extra keys change of a chain: adapters, salts, and images where they lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prompt_without_extra_keys_keeps_its_bytes),
		cmocka_unit_test(an_adapter_and_a_salt_change_every_page_and_are_no_substitutes),
		cmocka_unit_test(the_stream_is_the_documented_one),
		cmocka_unit_test(equal_placeholders_of_other_images_differ_where_they_begin),
		cmocka_unit_test(the_place_of_an_image_counts),
		cmocka_unit_test(an_image_is_in_the_pages_that_it_overlaps_alone),
		cmocka_unit_test(a_hash_depends_on_its_prefix_alone),
		cmocka_unit_test(a_chain_with_extra_keys_continues_at_any_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
