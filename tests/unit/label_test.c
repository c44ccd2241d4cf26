/* SPDX-License-Identifier: Apache-2.0 */
/* How objects are named and sealed in stores that know text and values only. */
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "key/label.h"
#include "named_block.h"

static void a_key_is_text_that_people_can_read(void **state)
{
	struct kvs_key key = { .group = 65535, .offset = 7 };
	char           text[LABEL_TEXT_MAX];
	size_t         bytes;

	(void)state;
	key.space.byte[0] = 0xab;
	key.hash[31] = 0x01;
	bytes = label_text("kvs", &key, text);
	assert_int_equal(bytes, strlen(text));
	assert_string_equal(text, "kvs:ab000000000000000000000000000000:65535:7:"
				  "0000000000000000000000000000000000000000000000000000000000000001");
	key.replica = 65535;
	key.offset = 4294967295;
	assert_int_equal(label_text("kvs", &key, text), bytes + 15);
	assert_string_equal(text, "kvs:ab000000000000000000000000000000:65535.65535:4294967295:"
				  "0000000000000000000000000000000000000000000000000000000000000001");
}

static void a_key_is_read_back_only_as_it_is_written(void **state)
{
	struct kvs_key key = key_of(77), found;
	char           text[LABEL_TEXT_MAX];
	size_t         bytes, i;

	(void)state;
	key.group = 65535;
	key.replica = 10;
	bytes = label_text("kvs", &key, text);
	assert_true(label_parse("kvs", text, bytes, &found));
	assert_memory_equal(&found, &key, sizeof(key));
	assert_false(label_parse("other", text, bytes, &found));
	for (i = 0; i < bytes; i++)
		assert_false(label_parse("kvs", text, i, &found));
	for (i = 0; i < bytes; i++) {
		const char was = text[i];

		/* No upper-case hex, no other digit that would mean the same. */
		text[i] = was == ':' ? '0' : 'G';
		assert_false(label_parse("kvs", text, bytes, &found));
		text[i] = was;
	}
	assert_false(label_parse("kvs", "kvs:0:0:0:0", 11, &found));
	bytes = (size_t)snprintf(text, sizeof(text), "kvs:%032d:65536:0:%064d", 0, 0);
	assert_false(label_parse("kvs", text, bytes, &found));
	bytes = (size_t)snprintf(text, sizeof(text), "kvs:%032d:7.0:0:%064d", 0, 0);
	assert_false(label_parse("kvs", text, bytes, &found));
}

static void a_pattern_covers_a_namespace(void **state)
{
	const struct kvs_namespace space = { .byte = { 1, 2 } };
	char                       pattern[LABEL_TEXT_MAX];

	(void)state;
	label_pattern("kvs", &space, pattern);
	assert_string_equal(pattern, "kvs:01020000000000000000000000000000:*");
	label_pattern("kvs", NULL, pattern);
	assert_string_equal(pattern, "kvs:*:*");
}

static void a_trailer_holds_for_its_key_length_and_bytes_only(void **state)
{
	static uint64_t      words[512];
	const struct kvs_key key = key_of(5), other = key_of(6);
	struct kvs_span      span = { words, sizeof(words), sizeof(words) };
	struct label_seal    trailer;
	size_t               i;

	(void)state;
	fill(words, 5, sizeof(words));
	label_seal(&key, &span, &trailer);
	assert_true(label_seal_holds(&trailer, &key, &span));
	assert_false(label_seal_holds(&trailer, &other, &span));
	for (i = 0; i < sizeof(trailer); i++) {
		((uint8_t *)&trailer)[i] ^= 0x10;
		assert_false(label_seal_holds(&trailer, &key, &span));
		((uint8_t *)&trailer)[i] ^= 0x10;
	}
	words[511] ^= 1;
	assert_false(label_seal_holds(&trailer, &key, &span));
	words[511] ^= 1;
	span.bytes -= 8;
	assert_false(label_seal_holds(&trailer, &key, &span));
}

#define EXPRESSION_BYTES (LABEL_TEXT_MAX + LABEL_PREFIX_MAX)

static bool matches(const char *expression, const char *text)
{
	regex_t compiled;
	int     rc;

	assert_int_equal(regcomp(&compiled, expression, REG_EXTENDED | REG_NOSUB), 0);
	rc = regexec(&compiled, text, 0, NULL, 0);
	regfree(&compiled);
	return rc == 0;
}

/* The name of one block, with a prefix, in a namespace of one byte. */
static const char *name_of(const char *prefix, uint8_t space)
{
	static char    text[LABEL_TEXT_MAX];
	struct kvs_key key = key_of(3);

	memset(&key.space, 0, sizeof(key.space));
	key.space.byte[15] = space;
	label_text(prefix, &key, text);
	return text;
}

static void an_expression_covers_a_namespace_and_no_other(void **state)
{
	const struct kvs_namespace space = { .byte = { [15] = 7 } };
	char                       expression[EXPRESSION_BYTES], text[LABEL_TEXT_MAX + 8];

	(void)state;
	label_expression("kvs", &space, expression);
	assert_string_equal(expression, "^kvs:00000000000000000000000000000007:.*");
	assert_true(matches(expression, name_of("kvs", 7)));
	assert_false(matches(expression, name_of("kvs", 8)));
	assert_false(matches(expression, name_of("kvs2", 7)));
	assert_false(matches(expression, name_of("kv", 7)));
	assert_false(matches(expression, name_of("KVS", 7)));
	/* Nor somebody's whose names end like ours. */
	snprintf(text, sizeof(text), "x%s", name_of("kvs", 7));
	assert_false(matches(expression, text));
	snprintf(text, sizeof(text), "a:%s", name_of("kvs", 7));
	assert_false(matches(expression, text));
	assert_false(matches(expression, "kvs:00000000000000000000000000000007"));
	assert_false(matches(expression, ""));
}

static void an_expression_without_a_namespace_covers_all_of_a_prefix(void **state)
{
	char expression[EXPRESSION_BYTES];

	(void)state;
	label_expression("kvs", NULL, expression);
	assert_true(matches(expression, name_of("kvs", 0)));
	assert_true(matches(expression, name_of("kvs", 255)));
	assert_false(matches(expression, name_of("kvs2", 7)));
	assert_false(matches(expression, name_of("2kvs", 7)));
	assert_false(matches(expression, "kvs:model/layer:1"));
	assert_false(matches(expression, "kvs::1"));
}

static void dots_of_a_prefix_are_themselves(void **state)
{
	const struct kvs_namespace space = { .byte = { [15] = 7 } };
	char                       expression[EXPRESSION_BYTES], dots[LABEL_PREFIX_MAX + 1];

	(void)state;
	label_expression("a.b", &space, expression);
	assert_true(matches(expression, name_of("a.b", 7)));
	assert_false(matches(expression, name_of("axb", 7)));
	assert_false(matches(expression, name_of("ab", 7)));
	label_expression("a.b", NULL, expression);
	assert_true(matches(expression, name_of("a.b", 7)));
	assert_false(matches(expression, name_of("a-b", 7)));
	/* The longest there is. */
	memset(dots, '.', LABEL_PREFIX_MAX);
	dots[LABEL_PREFIX_MAX] = '\0';
	label_expression(dots, &space, expression);
	assert_true(matches(expression, name_of(dots, 7)));
	assert_false(matches(expression, name_of(dots, 8)));
	assert_false(matches(expression, name_of("abcdefghijklmnopabcdefghijklmnop", 7)));
}

/* Each letter that a prefix may have, by itself: none means more to an expression. */
static void each_letter_of_a_prefix_is_itself(void **state)
{
	const char *const letters = LABEL_PREFIX_LETTERS;
	char              expression[EXPRESSION_BYTES];
	size_t            i, other;

	(void)state;
	for (i = 0; letters[i]; i++) {
		label_expression((char[]){ letters[i], '\0' }, NULL, expression);
		for (other = 0; letters[other]; other++) {
			const char *const name = name_of((char[]){ letters[other], '\0' }, 7);

			assert_int_equal(matches(expression, name), i == other);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_is_text_that_people_can_read),
		cmocka_unit_test(a_key_is_read_back_only_as_it_is_written),
		cmocka_unit_test(a_pattern_covers_a_namespace),
		cmocka_unit_test(a_trailer_holds_for_its_key_length_and_bytes_only),
		cmocka_unit_test(an_expression_covers_a_namespace_and_no_other),
		cmocka_unit_test(an_expression_without_a_namespace_covers_all_of_a_prefix),
		cmocka_unit_test(dots_of_a_prefix_are_themselves),
		cmocka_unit_test(each_letter_of_a_prefix_is_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
