/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The prefix index alone, for `kvstrata bench match`: what a page of a long prompt costs to find among
 * few entries and among many.
 */
#include <errno.h>
#include <string.h>

#include "app/bench_match.h"
#include "base/prng.h"
#include "os/os.h"

/* A prompt of 128 thousand tokens. */
#define PROMPT_PAGES 1024u
/* Prompts a measurement, each somewhere else in the index. */
#define PROMPTS 200u

static const uint32_t sizes[BENCH_INDEX_SIZES] = { 10000, 100000, 1000000 };

/* The hash of the page with a number: what SHA-256 makes is as good as random. */
static struct prefix_hash hash_of(uint32_t number)
{
	uint64_t           words[SHA256_BYTES / 8];
	struct prefix_hash hash;
	uint32_t           i;

	for (i = 0; i < ARRAY_COUNT(words); i++)
		words[i] = mix64(ARRAY_COUNT(words) * (uint64_t)number + i);
	memcpy(hash.byte, words, sizeof(hash.byte));
	return hash;
}

static void fill(struct pages *pages, const struct kvs_namespace *space, uint32_t entries)
{
	uint32_t i, g;

	for (i = 0; i < entries; i++) {
		const struct prefix_hash hash = hash_of(i);

		for (g = 0; g < pages->groups.count; g++) {
			(void)pages_add(pages, space, &hash, pages->groups.group[g].first_column,
					STRATUM_DEVICE, i + 1);
		}
	}
}

/*
 * Nanoseconds a page to look prompts up and match them, all their pages being there: published one
 * behind the other, as those of a prompt are, or each at another time.
 */
static double measure(const struct pages *pages, const struct kvs_namespace *space, uint32_t entries,
		      bool scattered, struct prng *prng)
{
	static struct prefix_hash hashes[PROMPT_PAGES];
	static uint32_t           found[PROMPT_PAGES];
	uint64_t                  ns = 0;
	uint32_t                  prompt, page;

	for (prompt = 0; prompt < PROMPTS; prompt++) {
		const struct view view = { .pages = pages, .entries = found,
					   .page_count = PROMPT_PAGES, .held_in = HELD_DEVICE };
		const uint32_t    first = (uint32_t)prng_below(prng, entries - PROMPT_PAGES);
		uint64_t          begin_ns;

		for (page = 0; page < PROMPT_PAGES; page++) {
			hashes[page] = hash_of(scattered ? (uint32_t)prng_below(prng, entries)
							 : first + page);
		}
		begin_ns = os_now_ns();
		pages_find_all(pages, space, hashes, PROMPT_PAGES, found);
		KVS_ASSERT_CMP(match_joint(&view, PROMPT_PAGES).pages, ==, PROMPT_PAGES);
		ns += os_now_ns() - begin_ns;
	}
	return (double)ns / ((double)PROMPTS * PROMPT_PAGES);
}

static int measure_size(uint32_t entries, uint32_t runs, struct bench_index_row *ret_row,
			struct kvs_error *err)
{
	static const struct group_spec specs[] = {
		{ "full", GROUP_FULL, BENCH_MATCH_PAGE, 0, 1 },
		{ "window", GROUP_WINDOW, BENCH_MATCH_PAGE, BENCH_MATCH_WINDOW, 1 },
		{ "state", GROUP_STATE, BENCH_MATCH_PAGE, 0, 1 },
	};
	double               ns[BENCH_RUNS_MAX], scattered_ns[BENCH_RUNS_MAX];
	struct kvs_namespace space;
	struct groups        groups;
	struct pages         pages;
	struct prng          prng;
	uint32_t             run;

	KVS_ASSERT(groups_make(specs, ARRAY_COUNT(specs), BENCH_MATCH_PAGE, &groups, err) == 0);
	if (pages_open(&pages, &groups, entries) < 0)
		return err_set(err, -ENOMEM, "no memory for an index of %u entries", entries);
	key_namespace("bench index", &space);
	fill(&pages, &space, entries);
	prng_seed(&prng, entries);
	for (run = 0; run < runs; run++) {
		ns[run] = measure(&pages, &space, entries, false, &prng);
		scattered_ns[run] = measure(&pages, &space, entries, true, &prng);
	}
	*ret_row = (struct bench_index_row){ .entries = entries,
					     .page_ns = bench_median(ns, runs),
					     .scattered_ns = bench_median(scattered_ns, runs),
					     .entry_bytes = (double)pages_bytes(&pages) / entries };
	pages_close(&pages);
	return 0;
}

int bench_index_measure(uint32_t runs, struct bench_index_row *ret_rows, struct kvs_error *err)
{
	uint32_t i;
	int      rc = 0;

	for (i = 0; rc == 0 && i < BENCH_INDEX_SIZES; i++)
		rc = measure_size(sizes[i], runs, &ret_rows[i], err);
	return rc;
}
