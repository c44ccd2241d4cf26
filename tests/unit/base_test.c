/* SPDX-License-Identifier: Apache-2.0 */
/* Errors, panics, the generator and digests: sentences and known values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/err.h"
#include "base/prng.h"
#include "death.h"

static void error_names_field_value_rule(void **state)
{
	struct kvs_error err;

	(void)state;
	assert_int_equal(err_set(&err, KVS_E_INVALID, "x: \"%s\" is wrong", "v"), KVS_E_INVALID);
	assert_int_equal(err.code, KVS_E_INVALID);
	assert_string_equal(err.message, "x: \"v\" is wrong");
	assert_int_equal(err_set(NULL, -5, "nobody asks"), -5);
}

static void a_long_sentence_is_cut(void **state)
{
	struct kvs_error err;
	char             sentence[400];

	(void)state;
	memset(sentence, 's', sizeof(sentence) - 1);
	sentence[sizeof(sentence) - 1] = '\0';
	err_set(&err, KVS_E_FULL, "%s", sentence);
	assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
	err_prefix(&err, "%s", "store");
	assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
	assert_int_equal(strncmp(err.message, "store: sss", 10), 0);
	err_prefix(&err, "%s", sentence);
	assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
	assert_string_equal(err.message + sizeof(err.message) - 5, "ss: ");
	assert_int_equal(err.code, KVS_E_FULL);
}

static void a_prefix_goes_before(void **state)
{
	struct kvs_error err;

	(void)state;
	err_set(&err, KVS_E_INVALID, "size: 0 is too small");
	err_prefix(&err, "line %d", 12);
	assert_string_equal(err.message, "line 12: size: 0 is too small");
	assert_int_equal(err.code, KVS_E_INVALID);
	err_prefix(NULL, "nobody asks");
}

static void assert_false_claim(void *arg)
{
	KVS_ASSERT(arg == NULL && "a claim");
}

static void compare_wrongly(void *arg)
{
	const uint32_t used = 3, limit = 2;

	(void)arg;
	KVS_ASSERT_CMP(used, <=, limit);
}

static void say(const char *message)
{
	fprintf(stderr, "[hook: %s]", message);
}

static void say_and_panic(const char *message)
{
	say(message);
	KVS_PANIC("again");
}

static void panic_hooked(void *arg)
{
	panic_hook_set(arg ? say_and_panic : say);
	KVS_PANIC("ticket %d", 7);
}

static void a_panic_says_what_and_where(void **state)
{
	char said[256];

	(void)state;
	assert_true(death_panics(assert_false_claim, said, said, sizeof(said)));
	assert_non_null(strstr(said, "base_test.c:"));
	assert_non_null(strstr(said, "assertion failed: arg == NULL && \"a claim\"\n"));
	assert_false(death_panics(assert_false_claim, NULL, NULL, 0));
	assert_true(death_panics(compare_wrongly, NULL, said, sizeof(said)));
	assert_non_null(strstr(said, "assertion failed: used <= limit (3, 2)\n"));
}

static void the_hook_runs_once(void **state)
{
	char        said[256];
	const char *hooked;

	(void)state;
	assert_true(death_panics(panic_hooked, NULL, said, sizeof(said)));
	assert_non_null(strstr(said, "[hook: ticket 7]"));
	assert_true(death_panics(panic_hooked, said, said, sizeof(said)));
	hooked = strstr(said, "[hook: ");
	assert_non_null(hooked);
	assert_non_null(strstr(said, "again\n"));
	assert_null(strstr(hooked + 1, "[hook: "));
}

/* Values of the published generators. */
static void the_generator_is_the_published_one(void **state)
{
	static const uint64_t seeded_0[] = { UINT64_C(0x99ec5f36cb75f2b4),
					     UINT64_C(0xbf6e1f784956452a),
					     UINT64_C(0x1a5f849d4933e6e0) };
	static const uint64_t state_1234[] = { 11520, 0, 1509978240,
					       UINT64_C(1215971899390074240) };
	struct prng           prng;
	size_t                i;

	(void)state;
	assert_true(mix64(0) == UINT64_C(0xe220a8397b1dcdaf));
	prng_seed(&prng, 0);
	for (i = 0; i < ARRAY_COUNT(seeded_0); i++)
		assert_true(prng_u64(&prng) == seeded_0[i]);
	prng = (struct prng){ .state = { 1, 2, 3, 4 } };
	for (i = 0; i < ARRAY_COUNT(state_1234); i++)
		assert_true(prng_u64(&prng) == state_1234[i]);
}

static void a_seed_is_a_sequence(void **state)
{
	struct prng a, b, other;
	int         i, equal = 0;

	(void)state;
	prng_seed(&a, 42);
	prng_seed(&b, 42);
	prng_seed(&other, 43);
	for (i = 0; i < 100; i++) {
		const uint64_t value = prng_u64(&a);

		assert_true(value == prng_u64(&b));
		equal += value == prng_u64(&other);
	}
	assert_int_equal(equal, 0);
}

static void below_is_uniform(void **state)
{
	const uint64_t large = (UINT64_C(3) << 62) + 1;
	struct prng    prng;
	uint32_t       seen[7] = { 0 };
	uint32_t       i, low = 0;

	(void)state;
	prng_seed(&prng, 1);
	for (i = 0; i < 70000; i++)
		seen[prng_below(&prng, 7)]++;
	for (i = 0; i < 7; i++)
		assert_in_range(seen[i], 9500, 10500);
	/* Plain remainders would put half of these into the lowest third. */
	for (i = 0; i < 30000; i++)
		low += prng_below(&prng, large) < large / 3;
	assert_in_range(low, 9500, 10500);
	for (i = 0; i < 100; i++) {
		assert_true(prng_below(&prng, 1) == 0);
		assert_true(prng_below(&prng, UINT64_MAX) < UINT64_MAX);
	}
}

static void chances_and_exponentials(void **state)
{
	struct prng prng;
	uint32_t    i, hits = 0, saturated = 0;
	uint64_t    sum = 0;

	(void)state;
	prng_seed(&prng, 2);
	for (i = 0; i < 30000; i++) {
		hits += prng_chance(&prng, 1, 3);
		sum += prng_exponential(&prng, 1000);
		saturated += prng_exponential(&prng, UINT64_MAX) == UINT64_MAX;
		assert_true(prng_chance(&prng, 5, 5));
		assert_false(prng_chance(&prng, 0, 5));
		assert_true(prng_exponential(&prng, 0) == 0);
	}
	assert_in_range(hits, 9500, 10500);
	assert_in_range(sum / 30000, 970, 1030);
	/* One in e lies above its mean, and here does not fit. */
	assert_in_range(saturated, 10500, 11500);
}

static void draw_below_nothing(void *arg)
{
	struct prng prng;

	(void)arg;
	prng_seed(&prng, 1);
	prng_below(&prng, 0);
}

static void nothing_is_below_zero(void **state)
{
	char said[256];

	(void)state;
	assert_true(death_panics(draw_below_nothing, NULL, said, sizeof(said)));
	assert_non_null(strstr(said, "bound >= 1"));
}

static void assert_sha256(const char *message, const char *expected)
{
	uint8_t digest[SHA256_BYTES];
	char    text[2 * SHA256_BYTES + 1];

	sha256(message, strlen(message), digest);
	hex_encode(digest, sizeof(digest), text);
	assert_string_equal(text, expected);
}

/* FIPS 180-2, appendix B, and the digests of nothing. */
static void digests_have_their_known_values(void **state)
{
	(void)state;
	assert_sha256("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_sha256("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	assert_true(xxh3_64("", 0) == UINT64_C(0x2d06800538d394c2));
	assert_true(xxh3_64("abc", 3) == xxh3_64_seeded("abc", 3, 0));
	assert_true(xxh3_64("abc", 3) != xxh3_64_seeded("abc", 3, 1));
}

static void hex_is_two_digits_a_byte(void **state)
{
	static const uint8_t bytes[] = { 0x00, 0x0f, 0xa0, 0xff };
	char                 text[9];

	(void)state;
	hex_encode(bytes, 4, text);
	assert_string_equal(text, "000fa0ff");
	hex_encode(bytes, 0, text);
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(error_names_field_value_rule),
		cmocka_unit_test(a_long_sentence_is_cut),
		cmocka_unit_test(a_prefix_goes_before),
		cmocka_unit_test(a_panic_says_what_and_where),
		cmocka_unit_test(the_hook_runs_once),
		cmocka_unit_test(the_generator_is_the_published_one),
		cmocka_unit_test(a_seed_is_a_sequence),
		cmocka_unit_test(below_is_uniform),
		cmocka_unit_test(chances_and_exponentials),
		cmocka_unit_test(nothing_is_below_zero),
		cmocka_unit_test(digests_have_their_known_values),
		cmocka_unit_test(hex_is_two_digits_a_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
