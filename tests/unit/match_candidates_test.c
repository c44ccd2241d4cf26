/* SPDX-License-Identifier: Apache-2.0 */
/* The tails that a prompt is worth asking for: which hints it confirms, and in which order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "match/tail.h"

#define PAGE 8u
#define TOKENS 45u
#define FULL_PAGES (TOKENS / PAGE)

#define SEARCH(...) ((struct tail_search){ __VA_ARGS__ })

static const struct kvs_namespace here = { "here" }, elsewhere = { "elsewhere" };

/* Tokens 1, 2, 3 ... and their chain. */
struct text {
	int32_t            tokens[TOKENS];
	struct prompt      prompt;
	struct prefix_hash hashes[FULL_PAGES];
};

static struct tails open_tails(uint32_t hint_max)
{
	struct tails tails;

	assert_int_equal(tails_open(&tails, hint_max, PAGE, NULL), 0);
	return tails;
}

static void make_text(struct text *text, const struct prompt_extras *extras)
{
	uint32_t i;

	for (i = 0; i < TOKENS; i++)
		text->tokens[i] = (int32_t)i + 1;
	text->prompt = (struct prompt){ text->tokens, TOKENS, PAGE, extras };
	prefix_hash_chain(&text->prompt, 0, FULL_PAGES, NULL, text->hashes);
}

static const struct prefix_hash *prior_of(const struct text *text, uint32_t pages)
{
	return pages ? &text->hashes[pages - 1] : NULL;
}

/* Record the tail that ends at `tokens` of a text. */
static void record(struct tails *tails, const struct text *text, uint32_t tokens)
{
	const uint32_t     pages = tokens / PAGE;
	struct prefix_hash hash;

	prefix_hash_tail(&text->prompt, pages, tokens % PAGE, prior_of(text, pages), &hash);
	tails_record(tails, &here, prior_of(text, pages), tokens % PAGE, &hash);
	tails_audit(tails);
}

/* Tokens of each candidate of a text, as text: "45 19 3". */
static const char *find(const struct tails *tails, const struct text *text,
			struct tail_search search)
{
	static char said[128];
	struct tail found[16];
	uint32_t    i, count;
	int         length = 0;

	search.space = search.space ? search.space : &here;
	search.prompt = &text->prompt;
	search.hashes = text->hashes;
	count = tails_find(tails, &search, found, 16);
	said[0] = '\0';
	for (i = 0; i < count; i++) {
		length += snprintf(said + length, sizeof(said) - (size_t)length, "%s%u",
				   i ? " " : "", found[i].tokens);
	}
	return said;
}

static void A3_2_candidates_are_the_bound_and_confirmed_hints_longest_first(void **state)
{
	struct tails tails = open_tails(16);
	struct text  text;

	(void)state;
	make_text(&text, NULL);
	record(&tails, &text, 19);
	record(&tails, &text, 3);
	record(&tails, &text, 21);
	record(&tails, &text, 35);
	assert_string_equal(find(&tails, &text, SEARCH(.bound = 44, .reach = 44, .page_max = 9)),
			    "44 35 21 19 3");
	/* A bound that is a page boundary is no tail. */
	assert_string_equal(find(&tails, &text, SEARCH(.bound = 40, .reach = 40, .page_max = 9)),
			    "35 21 19 3");
	/* Each boundary once: the bound and the hint of the same place. */
	assert_string_equal(find(&tails, &text, SEARCH(.bound = 21, .reach = 21, .page_max = 9)),
			    "21 19 3");
	tails_close(&tails);
}

static void A3_2_nothing_lies_behind_the_bound_or_at_what_is_had(void **state)
{
	struct tails tails = open_tails(16);
	struct text  text;

	(void)state;
	make_text(&text, NULL);
	record(&tails, &text, 19);
	record(&tails, &text, 20);
	record(&tails, &text, 11);
	assert_string_equal(
		find(&tails, &text, SEARCH(.bound = 19, .reach = 99, .above = 11, .page_max = 9)),
		"19");
	assert_string_equal(
		find(&tails, &text, SEARCH(.bound = 44, .reach = 20, .above = 10, .page_max = 9)),
		"20 19 11");
	assert_string_equal(
		find(&tails, &text, SEARCH(.bound = 19, .reach = 19, .above = 19, .page_max = 9)),
		"");
	assert_string_equal(find(&tails, &text, (struct tail_search){ .page_max = 9 }), "");
	tails_close(&tails);
}

static void A3_15_the_walk_back_is_bounded(void **state)
{
	struct tails tails = open_tails(16);
	struct text  text;
	struct tail  one;

	(void)state;
	make_text(&text, NULL);
	record(&tails, &text, 35);
	record(&tails, &text, 19);
	assert_string_equal(find(&tails, &text, SEARCH(.bound = 40, .reach = 40, .page_max = 1)),
			    "");
	assert_string_equal(find(&tails, &text, SEARCH(.bound = 40, .reach = 40, .page_max = 2)),
			    "35");
	assert_string_equal(find(&tails, &text, SEARCH(.bound = 40, .reach = 40, .page_max = 4)),
			    "35 19");
	assert_string_equal(find(&tails, &text, SEARCH(.bound = 44, .reach = 44, .page_max = 0)),
			    "44");
	assert_int_equal(tails_find(&tails,
				    &(struct tail_search){ .space = &here,
							   .prompt = &text.prompt,
							   .hashes = text.hashes,
							   .bound = 44,
							   .reach = 44,
							   .page_max = 9 },
				    &one, 1),
			 1);
	assert_int_equal(one.tokens, 44);
	tails_close(&tails);
}

/* Same page before it, same count; other tokens, other image, other namespace: no candidate. */
static void A3_10_a_hint_that_the_prompt_does_not_confirm_is_none(void **state)
{
	const struct prompt_item   cat = { { "cat", 3 }, 17, 20 }, dog = { { "dog", 3 }, 17, 20 };
	const struct prompt_extras with_cat = { .items = &cat, .item_count = 1 };
	const struct prompt_extras with_dog = { .items = &dog, .item_count = 1 };
	const struct tail_search   search = { .bound = 40, .reach = 40, .page_max = 9 };
	struct tail_search         other_space = search;
	struct tails               tails = open_tails(16);
	struct text                text, changed, of_cat, of_dog;

	(void)state;
	make_text(&text, NULL);
	make_text(&changed, NULL);
	changed.tokens[18] = 77;
	make_text(&of_cat, &with_cat);
	make_text(&of_dog, &with_dog);
	record(&tails, &of_cat, 19);
	assert_int_equal(memcmp(&of_cat.hashes[1], &text.hashes[1], sizeof(text.hashes[1])), 0);
	assert_string_equal(find(&tails, &text, search), "");
	assert_string_equal(find(&tails, &of_dog, search), "");
	assert_string_equal(find(&tails, &of_cat, search), "19");
	record(&tails, &text, 19);
	assert_string_equal(find(&tails, &text, search), "19");
	assert_string_equal(find(&tails, &changed, search), "");
	other_space.space = &elsewhere;
	assert_string_equal(find(&tails, &text, other_space), "");
	tails_close(&tails);
}

static void A3_15_a_candidate_carries_its_exact_count_and_hash(void **state)
{
	struct tails       tails = open_tails(16);
	struct text        text;
	struct tail        found[2];
	struct prefix_hash hash;

	(void)state;
	make_text(&text, NULL);
	record(&tails, &text, 21);
	assert_int_equal(tails_find(&tails,
				    &(struct tail_search){ .space = &here,
							   .prompt = &text.prompt,
							   .hashes = text.hashes,
							   .bound = 40,
							   .reach = 40,
							   .page_max = 9 },
				    found, 2),
			 1);
	prefix_hash_page(&text.hashes[1], text.tokens + 16, 5, NULL, 0, &hash);
	assert_int_equal(found[0].tokens, 21);
	assert_memory_equal(&found[0].hash, &hash, sizeof(hash));
	tails_close(&tails);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(A3_2_candidates_are_the_bound_and_confirmed_hints_longest_first),
		cmocka_unit_test(A3_2_nothing_lies_behind_the_bound_or_at_what_is_had),
		cmocka_unit_test(A3_15_the_walk_back_is_bounded),
		cmocka_unit_test(A3_10_a_hint_that_the_prompt_does_not_confirm_is_none),
		cmocka_unit_test(A3_15_a_candidate_carries_its_exact_count_and_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
