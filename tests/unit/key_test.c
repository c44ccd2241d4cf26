/* SPDX-License-Identifier: Apache-2.0 */
/* Names of pages and blocks: golden hashes, framing, namespaces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "key/key.h"

#define TOKENS(...) \
	(const int32_t[]){ __VA_ARGS__ }, sizeof((const int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t)

static const struct extra_key lora = { "lora-A", 6 };

static void check_hash(const struct prefix_hash *hash, const char *hex)
{
	char text[2 * SHA256_BYTES + 1];

	hex_encode(hash->byte, SHA256_BYTES, text);
	assert_string_equal(text, hex);
}

static bool same(const struct prefix_hash *a, const struct prefix_hash *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static void check_all_differ(const struct prefix_hash *hashes, size_t count)
{
	size_t i, j;

	for (i = 0; i < count; i++) {
		for (j = 0; j < i; j++)
			assert_false(same(&hashes[i], &hashes[j]));
	}
}

static void golden_values(void **state)
{
	struct prefix_hash hash, prior;

	(void)state;
	prefix_hash_page(NULL, NULL, 0, NULL, 0, &hash);
	check_hash(&hash, "af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc");
	prefix_hash_page(NULL, TOKENS(1, 2), NULL, 0, &prior);
	check_hash(&prior, "956c0e14a21bc447ef3828556bf527a079774c340e0bcd79d625ac36d2d8ec0e");
	prefix_hash_page(&prior, TOKENS(3, 4), NULL, 0, &hash);
	check_hash(&hash, "c85302c76b67619ca670ce1e78e2092d589dad96e10abec1fb3e5fb5e360ce02");
	prefix_hash_page(NULL, TOKENS(1, 2), &lora, 1, &hash);
	check_hash(&hash, "8bd85ec7f306ae224d05c24c96612e91d41d5de9a84211f0320cb43bab77f4d5");
	prefix_hash_page(NULL, TOKENS(-1, 2147483647), NULL, 0, &hash);
	check_hash(&hash, "64639a307b3e197b3ec1577938ee69822211a24e1a4c13aad2062ffd47cae220");
	prefix_hash_page(NULL, TOKENS(1, 2, 3, 4), NULL, 0, &prior);
	check_hash(&prior, "65a73aeec7de373d87d0bb665fb1b7e9c490f83287b644f3ea58f3eea1ee271f");
	prefix_hash_page(&prior, TOKENS(5, 6, 7, 8), NULL, 0, &hash);
	check_hash(&hash, "9f99734c64c898db6698530d61968eeba422fe1f4f044203644087f9ec65e01c");
}

/* The stream written out byte by byte, hashed in one call: every path of prefix_hash_page() must agree. */
static void hash_plainly(const struct prefix_hash *prior, const int32_t *tokens, uint32_t count,
			 const struct extra_key *extra, struct prefix_hash *ret_hash)
{
	static uint8_t stream[16384];
	size_t         used = 0;
	uint32_t       i, b;

	for (b = 0; b < 4; b++)
		stream[used++] = b == 0 && prior ? SHA256_BYTES : 0;
	if (prior) {
		memcpy(stream + used, prior->byte, SHA256_BYTES);
		used += SHA256_BYTES;
	}
	for (b = 0; b < 4; b++)
		stream[used++] = (uint8_t)(count >> (8 * b));
	for (i = 0; i < count; i++) {
		for (b = 0; b < 4; b++)
			stream[used++] = (uint8_t)((uint32_t)tokens[i] >> (8 * b));
	}
	if (extra) {
		for (b = 0; b < 4; b++)
			stream[used++] = b == 0;
		for (b = 0; b < 4; b++)
			stream[used++] = (uint8_t)(extra->byte_count >> (8 * b));
		memcpy(stream + used, extra->bytes, extra->byte_count);
		used += extra->byte_count;
	}
	sha256(stream, used, ret_hash->byte);
}

static void fill_tokens(int32_t *tokens, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		tokens[i] = (int32_t)(i * 2654435761u);
}

/* 512 tokens end one piece exactly, 513 begin another, 1,537 need four. */
static void every_page_size_hashes_its_plain_stream(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 128, 511, 512, 513, 1024, 1025, 1537 };
	static int32_t        tokens[1537];
	struct prefix_hash    prior, got, want;
	size_t                i;

	(void)state;
	fill_tokens(tokens, ARRAY_COUNT(tokens));
	prefix_hash_page(NULL, tokens, 7, NULL, 0, &prior);
	for (i = 0; i < ARRAY_COUNT(sizes); i++) {
		hash_plainly(&prior, tokens, sizes[i], NULL, &want);
		prefix_hash_page(&prior, tokens, sizes[i], NULL, 0, &got);
		assert_true(same(&got, &want));
		hash_plainly(NULL, tokens, sizes[i], &lora, &want);
		prefix_hash_page(NULL, tokens, sizes[i], &lora, 1, &got);
		assert_true(same(&got, &want));
	}
}

/* Pairs of inputs whose fields join to the same bytes where a stream has no lengths. */
static void no_two_inputs_share_a_stream(void **state)
{
	static const struct extra_key split[] = { { "lora", 4 }, { "-A", 2 } };
	static const struct extra_key reordered[] = { { "-A", 2 }, { "lora", 4 } };
	static const struct extra_key empty = { "", 0 };
	/* An extra list's own bytes, offered as tokens: count 1, length 4, "lora". */
	static const int32_t disguised[] = { 1, 2, 1, 4, 0x61726f6c };
	struct prefix_hash   hash[10], prior;
	int32_t              prior_as_tokens[2 + SHA256_BYTES / 4];

	(void)state;
	prefix_hash_page(NULL, TOKENS(9), NULL, 0, &prior);
	memcpy(prior_as_tokens, prior.byte, SHA256_BYTES);
	prior_as_tokens[8] = 1;
	prior_as_tokens[9] = 2;
	prefix_hash_page(NULL, disguised, 2, NULL, 0, &hash[0]);
	prefix_hash_page(&prior, disguised, 2, NULL, 0, &hash[1]);
	prefix_hash_page(NULL, prior_as_tokens, 10, NULL, 0, &hash[2]);
	prefix_hash_page(NULL, disguised, 2, &lora, 1, &hash[3]);
	prefix_hash_page(NULL, disguised, 2, split, 2, &hash[4]);
	prefix_hash_page(NULL, disguised, 2, reordered, 2, &hash[5]);
	prefix_hash_page(NULL, disguised, 2, &empty, 1, &hash[6]);
	prefix_hash_page(NULL, disguised, 2, split, 1, &hash[7]);
	prefix_hash_page(NULL, disguised, 5, NULL, 0, &hash[8]);
	prefix_hash_page(NULL, disguised, 3, NULL, 0, &hash[9]);
	check_all_differ(hash, ARRAY_COUNT(hash));
}

static void a_page_depends_on_each_token_on_their_order_and_on_its_prior(void **state)
{
	struct prefix_hash hash[4], again, prior;

	(void)state;
	prefix_hash_page(NULL, TOKENS(9), NULL, 0, &prior);
	prefix_hash_page(NULL, TOKENS(1, 2, 3), NULL, 0, &hash[0]);
	prefix_hash_page(NULL, TOKENS(1, 2, 4), NULL, 0, &hash[1]);
	prefix_hash_page(NULL, TOKENS(2, 1, 3), NULL, 0, &hash[2]);
	prefix_hash_page(&prior, TOKENS(1, 2, 3), NULL, 0, &hash[3]);
	prefix_hash_page(NULL, TOKENS(1, 2, 3), NULL, 0, &again);
	check_all_differ(hash, ARRAY_COUNT(hash));
	assert_true(same(&hash[0], &again));
}

/* Cuts of the same bytes into keys, and an extra list's own bytes offered as tokens. */
static void extra_keys_are_framed(void **state)
{
	static const struct extra_key ab_c[] = { { "ab", 2 }, { "c", 1 } };
	static const struct extra_key a_bc[] = { { "a", 1 }, { "bc", 2 } };
	static const struct extra_key abc = { "abc", 3 }, wxyz = { "wxyz", 4 };
	struct prefix_hash            hash[5];

	(void)state;
	prefix_hash_page(NULL, TOKENS(9, 8), ab_c, 2, &hash[0]);
	prefix_hash_page(NULL, TOKENS(9, 8), a_bc, 2, &hash[1]);
	prefix_hash_page(NULL, TOKENS(9, 8), &abc, 1, &hash[2]);
	prefix_hash_page(NULL, TOKENS(9, 8), &wxyz, 1, &hash[3]);
	prefix_hash_page(NULL, TOKENS(9, 8, 1, 4, 0x7a797877), NULL, 0, &hash[4]);
	check_all_differ(hash, ARRAY_COUNT(hash));
}

static void A8_1_namespaces_and_keys_are_distinct(void **state)
{
	struct kvs_namespace a, b, again;
	struct prefix_hash   hash;
	struct kvs_key       key, other;

	(void)state;
	key_namespace("model-a", &a);
	key_namespace("model-b", &b);
	key_namespace("model-a", &again);
	assert_memory_equal(&a, &again, sizeof(a));
	assert_memory_not_equal(&a, &b, sizeof(a));

	prefix_hash_page(NULL, TOKENS(1), NULL, 0, &hash);
	memset(&key, 0xff, sizeof(key));
	key_make(&a, &hash, 2, 5, 3, &key);
	assert_memory_equal(&key.space, &a, sizeof(a));
	assert_memory_equal(key.hash, hash.byte, SHA256_BYTES);
	assert_int_equal(key.group, 2);
	assert_int_equal(key.replica, 5);
	assert_int_equal(key.offset, 3);
	key_make(&a, &hash, 3, 5, 2, &other);
	assert_true(key_hash(&key) != key_hash(&other));
	key_make(&a, &hash, 2, 4, 3, &other);
	assert_true(key_hash(&key) != key_hash(&other));
	key_make(&a, &hash, 2, 5, 3, &other);
	assert_true(key_hash(&key) == key_hash(&other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden_values),
		cmocka_unit_test(every_page_size_hashes_its_plain_stream),
		cmocka_unit_test(no_two_inputs_share_a_stream),
		cmocka_unit_test(a_page_depends_on_each_token_on_their_order_and_on_its_prior),
		cmocka_unit_test(extra_keys_are_framed),
		cmocka_unit_test(A8_1_namespaces_and_keys_are_distinct),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
