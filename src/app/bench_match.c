/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `kvstrata bench match`: what the cache thread pays for a long prompt before anything is computed.
 *
 * Hash, match and plan of one prompt, beside the bare chain of SHA-256 over the same tokens: nobody
 * can name pages for less.  Three groups, full, a window and a state, with blocks of a page or of an
 * eighth of one.  Cold, nothing is there; warm, all that may be restored is on Device, or on Host.
 */
#include "app/bench_match.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "key/prompt.h"
#include "os/os.h"

/* What is left to compute is planned as a chunk of at most so many tokens. */
#define CHUNK_TOKENS 8192u

enum { FULL, WINDOW, STATE, GROUPS };

enum bench_match_where { BENCH_COLD, BENCH_ON_DEVICE, BENCH_ON_HOST };

struct bench_match_case {
	const char            *name;
	uint32_t               block_tokens;
	enum bench_match_where where;
};

static const struct bench_match_case cases[BENCH_MATCH_CASES] = {
	{ "q128 cold", 128, BENCH_COLD },
	{ "q128 device", 128, BENCH_ON_DEVICE },
	{ "q128 host", 128, BENCH_ON_HOST },
	{ "q16 cold", 16, BENCH_COLD },
	{ "q16 device", 16, BENCH_ON_DEVICE },
	{ "q16 host", 16, BENCH_ON_HOST },
};

const uint32_t bench_match_page_block_tokens[BENCH_MATCH_PAGE_CASES] = { 128, 16 };

struct bench_prompt {
	struct kvs_namespace space;
	struct prompt        hashed;      /* what its pages are hashed from */
	uint32_t             token_count;
	uint32_t             pages;       /* that may be restored: all but what the last token lies in */
	int32_t             *tokens;
	struct prefix_hash  *hashes;
	uint8_t             *bare;        /* of each page: room for the prior digest, the tokens */
};

struct stand {
	const struct bench_prompt *prompt;
	struct cache              *cache;
	uint32_t                   block_tokens;
	struct table               tables[GROUPS];
	uint32_t                  *slots[GROUPS];
};

/* --- the prompt ------------------------------------------------------------------------------- */

#define BARE_BYTES (SHA256_BYTES + 4 * BENCH_MATCH_PAGE)

static void prompt_close(struct bench_prompt *prompt)
{
	free(prompt->tokens);
	free(prompt->hashes);
	free(prompt->bare);
}

static int prompt_open(struct bench_prompt *prompt, uint32_t token_count, struct kvs_error *err)
{
	struct prng prng;
	uint32_t    i;

	*prompt = (struct bench_prompt){ .token_count = token_count,
					 .pages = (token_count - 1) / BENCH_MATCH_PAGE };
	prompt->tokens = calloc(token_count, sizeof(*prompt->tokens));
	prompt->hashes = calloc(prompt->pages, sizeof(*prompt->hashes));
	prompt->bare = calloc(prompt->pages, BARE_BYTES);
	if (!prompt->tokens || !prompt->hashes || !prompt->bare)
		return err_set(err, -ENOMEM, "no memory for %u tokens", token_count);
	prng_seed(&prng, 1);
	for (i = 0; i < token_count; i++)
		prompt->tokens[i] = (int32_t)prng_below(&prng, 128000);
	for (i = 0; i < prompt->pages; i++) {
		memcpy(prompt->bare + (size_t)i * BARE_BYTES + SHA256_BYTES,
		       prompt->tokens + (size_t)i * BENCH_MATCH_PAGE, 4 * BENCH_MATCH_PAGE);
	}
	key_namespace("bench match", &prompt->space);
	prompt->hashed = (struct prompt){ .tokens = prompt->tokens, .token_count = token_count,
					  .page_tokens = BENCH_MATCH_PAGE };
	return 0;
}

/* The prior digest goes before the tokens of the next page; nothing else is done. */
static void bare_chain(struct bench_prompt *prompt)
{
	uint8_t  last[SHA256_BYTES];
	uint8_t *page = prompt->bare;
	uint32_t i;

	for (i = 0; i < prompt->pages; i++, page += BARE_BYTES)
		sha256(page, BARE_BYTES, i + 1 < prompt->pages ? page + BARE_BYTES : last);
}

/* --- the stand -------------------------------------------------------------------------------- */

static void stand_close(struct stand *stand)
{
	int g;

	if (stand->cache)
		cache_close(stand->cache);
	for (g = 0; g < GROUPS; g++)
		free(stand->slots[g]);
}

static int stand_open(struct stand *stand, const struct bench_prompt *prompt, uint32_t block_tokens,
		      struct kvs_error *err)
{
	const uint32_t             page_blocks = BENCH_MATCH_PAGE / block_tokens;
	const struct group_spec    specs[GROUPS] = {
		{ "full", GROUP_FULL, block_tokens, 0, page_blocks },
		{ "window", GROUP_WINDOW, block_tokens, BENCH_MATCH_WINDOW, page_blocks },
		{ "state", GROUP_STATE, block_tokens, 0, 1 },
	};
	const struct cache_options options = { .groups = specs,
					       .group_count = GROUPS,
					       .page_tokens = BENCH_MATCH_PAGE,
					       .device_parents = 4 * prompt->pages + 64,
					       .host_parents = 4 * prompt->pages + 64,
					       .prompt_pages = prompt->pages };
	const uint32_t             slot_max = prompt->token_count / block_tokens + 1;
	int                        g;

	*stand = (struct stand){ .prompt = prompt, .block_tokens = block_tokens };
	for (g = 0; g < GROUPS; g++) {
		stand->slots[g] = calloc(slot_max, sizeof(*stand->slots[g]));
		if (!stand->slots[g])
			return err_set(err, -ENOMEM, "no memory for tables of %u blocks", slot_max);
		table_init(&stand->tables[g], stand->slots[g], slot_max);
	}
	return cache_open(&options, &stand->cache, err);
}

/* What a request has completed when the first so many pages are computed, `fresh` of them just now. */
static struct cache_completed completed_pages(const struct stand *stand, uint32_t pages,
					      uint32_t fresh)
{
	return (struct cache_completed){ .space = &stand->prompt->space,
					 .hashes = stand->prompt->hashes,
					 .page_count = pages,
					 .new_begin = pages - fresh,
					 .kind = CELL_ENDPOINT,
					 .computed = (uint64_t)pages * BENCH_MATCH_PAGE };
}

/* Take blocks for all pages that may be restored, but of the state only the last one. */
static int take_tables(struct stand *stand, uint64_t *ret_epoch, struct kvs_error *err)
{
	const uint32_t         end = stand->prompt->pages * BENCH_MATCH_PAGE;
	const struct demand    demands[GROUPS] = {
		[FULL] = demand_dense(end, 0),
		[WINDOW] = demand_dense(end, 0),
		[STATE] = demand_sparse(end, 0, (end - 1) / stand->block_tokens),
	};
	struct cache_admission admission = { .tables = stand->tables,
					     .demands = demands,
					     .completed = { .computed = COMPUTED_NONE } };
	struct cache_admitted  admitted;
	const int              rc = cache_admit(stand->cache, &admission, &admitted, err);

	*ret_epoch = rc < 0 ? 0 : admitted.epoch;
	return rc;
}

static void move_to_host(struct stand *stand)
{
	const struct groups *const groups = cache_groups(stand->cache);
	uint32_t                   page, g, offset;

	for (page = 0; page < stand->prompt->pages; page++) {
		for (g = 0; g < GROUPS; g++) {
			for (offset = 0; offset < groups->group[g].page_blocks; offset++) {
				const struct cell_name name = { &stand->prompt->space,
								&stand->prompt->hashes[page], g,
								offset };
				uint32_t               block;

				if (cache_find(stand->cache, STRATUM_DEVICE, &name) == BLOCK_NULL)
					continue;
				block = cache_host_acquire(stand->cache, g);
				KVS_ASSERT_CMP(block, !=, BLOCK_NULL);
				(void)cache_host_publish(stand->cache, &name, block, CELL_ENDPOINT);
			}
		}
	}
	KVS_ASSERT(cache_clear_device(stand->cache));
}

static int fill(struct stand *stand, enum bench_match_where where, struct kvs_error *err)
{
	const uint32_t               pages = stand->prompt->pages;
	const struct cache_completed completed = completed_pages(stand, pages, pages);
	uint64_t                     epoch;
	int                          rc;

	if (where == BENCH_COLD)
		return 0;
	rc = take_tables(stand, &epoch, err);
	if (rc == 0)
		rc = cache_advance(stand->cache, stand->tables, &completed, epoch, err);
	cache_free(stand->cache, stand->tables);
	if (rc == 0 && where == BENCH_ON_HOST)
		move_to_host(stand);
	return rc;
}

/* --- hash, match, plan ------------------------------------------------------------------------ */

static double since_us(uint64_t begin_ns)
{
	return (double)(os_now_ns() - begin_ns) / 1e3;
}

/* What the next chunk of a request with this hit would ask for. */
static bool plan(struct stand *stand, const struct cache_probe *probe)
{
	const uint32_t               hit = (uint32_t)probe->host_tokens;
	const uint32_t               left = stand->prompt->token_count - hit;
	const uint32_t               chunk = left < CHUNK_TOKENS ? left : CHUNK_TOKENS;
	const struct demand          demands[GROUPS] = {
		[FULL] = demand_dense(chunk, 0),
		[WINDOW] = demand_dense(chunk, 0),
		[STATE] = demand_sparse(hit + chunk, 0, (hit + chunk - 1) / stand->block_tokens),
	};
	const struct cache_admission admission = { .tables = stand->tables,
						   .demands = demands,
						   .probe = probe,
						   .completed = { .computed = COMPUTED_NONE } };

	return cache_can_admit(stand->cache, &admission, NULL, 0);
}

/* One way through, in microseconds. */
static void measure(struct stand *stand, struct bench_prompt *prompt, uint64_t hit_tokens, double *us)
{
	const struct cache_prompt asked = { .space = &prompt->space,
					    .hashes = prompt->hashes,
					    .page_count = prompt->pages };
	struct cache_probe        probe;
	uint64_t                  begin_ns = os_now_ns();

	bare_chain(prompt);
	us[BENCH_MATCH_BARE] = since_us(begin_ns);
	begin_ns = os_now_ns();
	prefix_hash_chain(&prompt->hashed, 0, prompt->pages, NULL, prompt->hashes);
	us[BENCH_MATCH_HASH] = since_us(begin_ns);
	begin_ns = os_now_ns();
	KVS_ASSERT(cache_probe(stand->cache, &asked, PROBE_ALL, &probe, NULL) == 0);
	us[BENCH_MATCH_MATCH] = since_us(begin_ns);
	begin_ns = os_now_ns();
	KVS_ASSERT(plan(stand, &probe));
	us[BENCH_MATCH_PLAN] = since_us(begin_ns);
	KVS_ASSERT_CMP(probe.host_tokens, ==, hit_tokens);
}

static double ratio_of(const double *us)
{
	return (us[BENCH_MATCH_HASH] + us[BENCH_MATCH_MATCH] + us[BENCH_MATCH_PLAN]) /
	       us[BENCH_MATCH_BARE];
}

static int run_case(struct bench_prompt *prompt, const struct bench_match_case *c, uint32_t runs,
		    struct bench_match_row *ret_row, struct kvs_error *err)
{
	/* Static: kilobytes that need not be on the stack. */
	static double  us[BENCH_MATCH_FIGURES][BENCH_RUNS_MAX], ratios[BENCH_RUNS_MAX];
	const uint64_t hit = c->where == BENCH_COLD ? 0 : (uint64_t)prompt->pages * BENCH_MATCH_PAGE;
	struct stand   stand;
	uint32_t       run, i;
	int            rc = stand_open(&stand, prompt, c->block_tokens, err);

	prefix_hash_chain(&prompt->hashed, 0, prompt->pages, NULL, prompt->hashes);
	if (rc == 0)
		rc = fill(&stand, c->where, err);
	for (run = 0; rc == 0 && run < runs; run++) {
		double one[BENCH_MATCH_FIGURES];

		measure(&stand, prompt, hit, one);
		for (i = 0; i < BENCH_MATCH_FIGURES; i++)
			us[i][run] = one[i];
		ratios[run] = ratio_of(one);
	}
	stand_close(&stand);
	if (rc < 0)
		return rc;
	ret_row->name = c->name;
	for (i = 0; i < BENCH_MATCH_FIGURES; i++)
		ret_row->us[i] = bench_median(us[i], runs);
	ret_row->sha_ratio = bench_median(ratios, runs);
	return 0;
}

/* --- one page more ---------------------------------------------------------------------------- */

/* A request that decodes: each page that it completes is hashed and published, and what expired goes. */
static double page_us(struct stand *stand, struct bench_prompt *prompt, uint64_t epoch)
{
	const uint64_t begin_ns = os_now_ns();
	uint32_t       page;

	for (page = 0; page < prompt->pages; page++) {
		const struct cache_completed completed = completed_pages(stand, page + 1, 1);

		prefix_hash_chain(&prompt->hashed, page, page + 1,
				  page > 0 ? &prompt->hashes[page - 1] : NULL, &prompt->hashes[page]);
		KVS_ASSERT(cache_advance(stand->cache, stand->tables, &completed, epoch, NULL) ==
			   0);
	}
	return since_us(begin_ns) / prompt->pages;
}

static int run_page(struct bench_prompt *prompt, uint32_t block_tokens, uint32_t runs, double *ret_us,
		    struct kvs_error *err)
{
	double   us[BENCH_RUNS_MAX];
	uint32_t run;
	int      rc = 0;

	for (run = 0; rc == 0 && run < runs; run++) {
		struct stand stand;
		uint64_t     epoch;

		rc = stand_open(&stand, prompt, block_tokens, err);
		if (rc == 0)
			rc = take_tables(&stand, &epoch, err);
		if (rc == 0) {
			us[run] = page_us(&stand, prompt, epoch);
			cache_free(stand.cache, stand.tables);
		}
		stand_close(&stand);
	}
	if (rc == 0)
		*ret_us = bench_median(us, runs);
	return rc;
}

/* --- all -------------------------------------------------------------------------------------- */

int bench_match_measure(uint32_t tokens, uint32_t runs, struct bench_match_row *ret_rows,
			double *ret_page_us, struct kvs_error *err)
{
	struct bench_prompt prompt;
	int                 rc = prompt_open(&prompt, tokens, err);
	uint32_t            i;

	for (i = 0; rc == 0 && i < BENCH_MATCH_CASES; i++)
		rc = run_case(&prompt, &cases[i], runs, &ret_rows[i], err);
	for (i = 0; rc == 0 && i < BENCH_MATCH_PAGE_CASES; i++)
		rc = run_page(&prompt, bench_match_page_block_tokens[i], runs, &ret_page_us[i], err);
	prompt_close(&prompt);
	return rc;
}
