/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One simulated cache: by hand, and against the rules written down as plain arrays.  On an hour of
 * real traffic whose hit counts are known it is tried by tests/e2e/trace_test.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "app/simulate.h"
#include "base/prng.h"

#define PAGES 40u

/* Feed a prompt whose pages are the letters of text, the last one holding last_tokens. */
static void feed(struct simulate *sim, const char *text, uint32_t last_tokens)
{
	uint64_t              ids[PAGES], hashes[PAGES];
	const uint32_t        count = (uint32_t)strlen(text);
	struct source_request request = { .page_count = count, .page_ids = ids };
	uint32_t              i;

	for (i = 0; i < count; i++)
		ids[i] = (uint64_t)text[i];
	request.input_tokens = (count - 1) * SOURCE_PAGE_TOKENS + last_tokens;
	simulate_hash(&request, hashes);
	assert_int_equal(simulate_request(sim, &request, hashes, NULL), 0);
	simulate_audit(sim);
}

static struct simulate *open_cache(const char *policy, uint64_t capacity)
{
	struct simulate *sim = NULL;

	assert_int_equal(simulate_open(policy, capacity, &sim, NULL), 0);
	return sim;
}

/* The hits of prompts fed one after another, one digit each. */
static void expect(const char *policy, uint64_t capacity, const char *const *prompts,
		   const char *hits)
{
	struct simulate *sim = open_cache(policy, capacity);
	uint64_t         before = 0;

	for (; *hits; hits++, prompts++) {
		feed(sim, *prompts, SOURCE_PAGE_TOKENS);
		if (simulate_counts(sim).hit_blocks - before != (uint64_t)(*hits - '0')) {
			fail_msg("%s of %llu: %s hits %llu, not %c", policy,
				 (unsigned long long)capacity, *prompts,
				 (unsigned long long)(simulate_counts(sim).hit_blocks - before),
				 *hits);
		}
		before = simulate_counts(sim).hit_blocks;
	}
	simulate_close(sim);
}

static void hits_stop_at_the_first_miss(void **state)
{
	const char *const prompts[] = { "abc", "abxc", "ab", "xc", "yabc" };

	(void)state;
	expect("lru", 10, prompts, "02220");
	expect("lru", 0, prompts, "02220");
}

static void policies_differ_where_they_should(void **state)
{
	/* Room for three: when d comes, lru has just used a, fifo has not noticed. */
	const char *const used[] = { "a", "b", "c", "a", "d", "a" };
	/* x costs lru the whole chain, from its beginning; leaf order gives up the end. */
	const char *const chain[] = { "abc", "x", "abc" };

	(void)state;
	expect("lru", 3, used, "000101");
	expect("fifo", 3, used, "000100");
	expect("lru", 3, chain, "000");
	expect("lru-leaf", 3, chain, "002");
}

static void a_prompt_longer_than_the_cache_evicts_itself(void **state)
{
	const char *const prompts[] = { "abcde", "abcde", "cde" };

	(void)state;
	/* What is left is the end of the chain, and ids are all that counts. */
	expect("lru", 3, prompts, "003");
	expect("lru-leaf", 3, prompts, "003");
	expect("lru", 1, prompts, "000");
	expect("s3fifo", 1, prompts, "000");
}

static void tokens_of_a_partial_page(void **state)
{
	struct simulate       *sim = open_cache("lru", 10);
	struct simulate_counts counts;

	(void)state;
	feed(sim, "ab", 100);
	feed(sim, "ab", 100);
	feed(sim, "ac", 1);
	counts = simulate_counts(sim);
	assert_int_equal(counts.requests, 3);
	assert_int_equal(counts.blocks, 6);
	assert_int_equal(counts.hit_blocks, 3);
	assert_int_equal(counts.tokens, 3 * 512 + 100 + 100 + 1);
	assert_int_equal(counts.hit_tokens, 612 + 512);
	simulate_close(sim);
}

static void open_refuses(void **state)
{
	struct simulate *sim = NULL;
	struct kvs_error err;

	(void)state;
	assert_int_equal(simulate_open("lru", SIMULATE_CAPACITY_MAX + 1ull, &sim, &err),
			 KVS_E_INVALID);
	assert_string_equal(err.message, "capacity: 2147483649 blocks; use at most 2147483648");
	assert_int_equal(simulate_open("mru", 10, &sim, &err), KVS_E_INVALID);
	assert_int_equal(simulate_open("none", 10, &sim, &err), KVS_E_INVALID);
	assert_non_null(strstr(err.message, "policy: \"none\" never makes room; use one of: lru "));
	assert_null(sim);
	simulate_close(NULL);
}

/* --- the rules as plain arrays ---------------------------------------------------------------- */

struct naive {
	uint64_t ids[256]; /* who goes first stands first */
	uint32_t count, capacity;
	bool     moves, leaf;
};

static bool cached(const struct naive *naive, uint64_t id, uint32_t *ret_at)
{
	for (*ret_at = 0; *ret_at < naive->count; ++*ret_at) {
		if (naive->ids[*ret_at] == id)
			return true;
	}
	return false;
}

static void delete_at(struct naive *naive, uint32_t at)
{
	memmove(&naive->ids[at], &naive->ids[at + 1], (naive->count - at - 1) * sizeof(uint64_t));
	naive->count--;
}

static bool use(struct naive *naive, uint64_t id)
{
	uint32_t at;

	if (!cached(naive, id, &at))
		return false;
	if (naive->moves) {
		delete_at(naive, at);
		naive->ids[naive->count++] = id;
	}
	return true;
}

static uint32_t naive_request(struct naive *naive, const uint64_t *ids, uint32_t count)
{
	uint32_t hits = 0;
	uint32_t i;

	while (hits < count && use(naive, ids[hits]))
		hits++;
	for (i = hits; i < count; i++) {
		if (use(naive, ids[i]))
			continue;
		naive->ids[naive->count++] = ids[i];
		if (naive->count > naive->capacity)
			delete_at(naive, 0);
	}
	for (i = count; naive->leaf && i > 0; i--)
		use(naive, ids[i - 1]);
	return hits;
}

/*
 * Few ids, so that prompts share, repeat and even contradict themselves: an id twice in one prompt.
 */
static void compare(const char *policy, uint32_t capacity, uint64_t seed)
{
	struct simulate *sim = open_cache(policy, capacity);
	struct naive     naive = { .capacity = capacity, .moves = strcmp(policy, "fifo") != 0,
				   .leaf = strcmp(policy, "lru-leaf") == 0 };
	uint64_t         hits = 0;
	struct prng      prng;
	uint32_t         r, i;

	prng_seed(&prng, seed);
	for (r = 0; r < 300; r++) {
		uint64_t              ids[PAGES], hashes[PAGES];
		struct source_request request = { .page_ids = ids };

		request.page_count = 1 + (uint32_t)prng_below(&prng, PAGES);
		request.input_tokens = request.page_count * SOURCE_PAGE_TOKENS;
		for (i = 0; i < request.page_count; i++)
			ids[i] = prng_chance(&prng, 3, 4) ? i : prng_below(&prng, 100);
		simulate_hash(&request, hashes);
		assert_int_equal(simulate_request(sim, &request, hashes, NULL), 0);
		hits += naive_request(&naive, ids, request.page_count);
		if (simulate_counts(sim).hit_blocks != hits) {
			fail_msg("%s of %u, seed %llu, request %u", policy, capacity,
				 (unsigned long long)seed, r);
		}
		simulate_audit(sim);
	}
	simulate_close(sim);
}

static void simulation_equals_the_rules(void **state)
{
	static const char *const policies[] = { "lru", "fifo", "lru-leaf" };
	static const uint32_t    capacities[] = { 1, 2, 7, 30, 64, 200 };
	size_t                   p, c;

	(void)state;
	for (p = 0; p < ARRAY_COUNT(policies); p++) {
		for (c = 0; c < ARRAY_COUNT(capacities); c++)
			compare(policies[p], capacities[c], 1 + c);
	}
}

static void tables_grow_to_the_capacity(void **state)
{
	static const uint64_t capacities[] = { 0, 1500, 4096, 5000 };
	size_t                c;
	uint64_t              i;

	(void)state;
	for (c = 0; c < ARRAY_COUNT(capacities); c++) {
		struct simulate *sim = open_cache("lru", capacities[c]);

		for (i = 0; i < 10000; i++) {
			const uint64_t        id = i % 5000;
			struct source_request request = { .page_count = 1,
							  .page_ids = &id,
							  .input_tokens = 512 };
			uint64_t              hash;

			simulate_hash(&request, &hash);
			assert_int_equal(simulate_request(sim, &request, &hash, NULL), 0);
		}
		simulate_audit(sim);
		/* Round and round: an lru one page too small never hits. */
		assert_int_equal(simulate_counts(sim).hit_blocks,
				 capacities[c] == 0 || capacities[c] == 5000 ? 5000 : 0);
		simulate_close(sim);
	}
}

/* The generator's default must show reuse, and a cache small enough to lose some of it. */
static void generated_requests_hit_and_miss(void **state)
{
	struct simulate      *ample = open_cache("lru", 0), *small = open_cache("lru", 200);
	struct source        *source = NULL;
	struct source_request request;
	uint64_t              hashes[128];

	(void)state;
	assert_int_equal(source_open_generated(1, 600, &source, NULL), 0);
	while (source_next(source, &request, NULL) == 1) {
		simulate_hash(&request, hashes);
		assert_int_equal(simulate_request(ample, &request, hashes, NULL), 0);
		assert_int_equal(simulate_request(small, &request, hashes, NULL), 0);
	}
	assert_in_range(simulate_counts(ample).hit_tokens * 100 / simulate_counts(ample).tokens, 60,
			90);
	assert_in_range(simulate_counts(small).hit_tokens * 100 / simulate_counts(small).tokens, 20,
			70);
	source_close(source);
	simulate_close(ample);
	simulate_close(small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hits_stop_at_the_first_miss),
		cmocka_unit_test(policies_differ_where_they_should),
		cmocka_unit_test(a_prompt_longer_than_the_cache_evicts_itself),
		cmocka_unit_test(tokens_of_a_partial_page),
		cmocka_unit_test(open_refuses),
		cmocka_unit_test(simulation_equals_the_rules),
		cmocka_unit_test(tables_grow_to_the_capacity),
		cmocka_unit_test(generated_requests_hit_and_miss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
