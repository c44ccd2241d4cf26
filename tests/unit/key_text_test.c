/* SPDX-License-Identifier: Apache-2.0 */
/* Keys as users write them: there and back, and what is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "app/key_text.h"
#include "base/err.h"

#define SPACE "000102030405060708090a0b0c0d0e0f"
#define HASH "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff000102030405060708090a0b0c0d0e0f"

static struct kvs_key made_key(void)
{
	struct kvs_key key = { .group = 7, .offset = UINT32_MAX };
	size_t         i;

	for (i = 0; i < sizeof(key.space.byte); i++)
		key.space.byte[i] = (uint8_t)i;
	for (i = 0; i < sizeof(key.hash); i++)
		key.hash[i] = (uint8_t)(0xf0 + i);
	return key;
}

static void a_key_comes_back_as_it_was(void **state)
{
	const struct kvs_key key = made_key();
	struct kvs_key       again;
	char                 text[KEY_TEXT_BYTES];

	(void)state;
	assert_string_equal(key_text(&key, text), SPACE ":7:4294967295:" HASH);
	assert_true(key_text_parse(text, &again));
	assert_memory_equal(&again, &key, sizeof(key));
}

static void a_replica_stands_behind_its_group(void **state)
{
	struct kvs_key key = made_key(), again;
	char           text[KEY_TEXT_BYTES];

	(void)state;
	key.group = 65535;
	key.replica = 65535;
	assert_string_equal(key_text(&key, text), SPACE ":65535.65535:4294967295:" HASH);
	assert_true(key_text_parse(text, &again));
	assert_memory_equal(&again, &key, sizeof(key));
}

static void large_digits_will_do(void **state)
{
	struct kvs_namespace space;
	char                 text[KEY_TEXT_SPACE_BYTES];

	(void)state;
	assert_true(key_text_parse_space("000102030405060708090A0B0C0D0E0F", &space));
	assert_string_equal(key_text_space(&space, text), SPACE);
}

static void what_is_no_key_is_refused_and_writes_nothing(void **state)
{
	static const char *const texts[] = {
		"",
		":::",
		SPACE,
		SPACE ":7:0",
		SPACE ":7:0:",
		SPACE ":7:0:" HASH ":",
		SPACE ":7:0:" HASH "0",
		SPACE ":7:0:" HASH " ",
		SPACE "0:7:0:" HASH,
		SPACE ":-7:0:" HASH,
		SPACE ":7:4294967296:" HASH,
		SPACE ":65536:0:" HASH,
		SPACE ":7.65536:0:" HASH,
		SPACE ":7.:0:" HASH,
		SPACE ":.7:0:" HASH,
		SPACE ":7.1.1:0:" HASH,
		SPACE ":7:00000000000000000:" HASH,
		SPACE "::0:" HASH,
		"g00102030405060708090a0b0c0d0e0f:7:0:" HASH,
		" " SPACE ":7:0:" HASH,
	};
	struct kvs_key key, untouched;
	size_t         i;

	(void)state;
	memset(&key, 0x5a, sizeof(key));
	memset(&untouched, 0x5a, sizeof(untouched));
	for (i = 0; i < ARRAY_COUNT(texts); i++) {
		if (key_text_parse(texts[i], &key))
			fail_msg("taken for a key: \"%s\"", texts[i]);
	}
	assert_false(key_text_parse_space(SPACE "0", &key.space));
	assert_false(key_text_parse_space("0", &key.space));
	assert_memory_equal(&key, &untouched, sizeof(key));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_comes_back_as_it_was),
		cmocka_unit_test(a_replica_stands_behind_its_group),
		cmocka_unit_test(large_digits_will_do),
		cmocka_unit_test(what_is_no_key_is_refused_and_writes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
