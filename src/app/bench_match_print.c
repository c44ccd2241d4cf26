/* SPDX-License-Identifier: Apache-2.0 */
/* `kvstrata bench match`: the command and its report. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "app/bench_match.h"
#include "base/units.h"

#define SHA_AIM "at most 1.2"

struct settings {
	uint64_t tokens;
	uint64_t runs;
	bool     json;
};

struct report {
	struct bench_match_row rows[BENCH_MATCH_CASES];
	double                 page_us[BENCH_MATCH_PAGE_CASES];
	struct bench_index_row index[BENCH_INDEX_SIZES];
};

/* --- for people ------------------------------------------------------------------------------- */

static void print(const struct settings *set, const struct report *report)
{
	const struct bench_index_row *const first = &report->index[0];
	const struct bench_index_row *const last = &report->index[BENCH_INDEX_SIZES - 1];
	char                                text[UNITS_TEXT_BYTES];
	uint32_t                            i;

	printf("a prompt of %" PRIu64 " tokens, pages of %u; full, window %u and state; medians of %" PRIu64
	       " runs, us\n\n  %-12s %10s %10s %10s %10s %10s\n",
	       set->tokens, BENCH_MATCH_PAGE, BENCH_MATCH_WINDOW, set->runs, "", "SHA-256", "hash",
	       "match", "plan", "ratio");
	for (i = 0; i < BENCH_MATCH_CASES; i++) {
		const struct bench_match_row *const row = &report->rows[i];

		printf("  %-12s %10.1f %10.1f %10.1f %10.1f %10.2f   aim: " SHA_AIM "\n", row->name,
		       row->us[BENCH_MATCH_BARE], row->us[BENCH_MATCH_HASH],
		       row->us[BENCH_MATCH_MATCH], row->us[BENCH_MATCH_PLAN], row->sha_ratio);
	}
	printf("\none page more of a request that decodes, hashed and published, us\n\n");
	for (i = 0; i < BENCH_MATCH_PAGE_CASES; i++) {
		printf("  q%-11u %10.2f   aim: below 5\n", bench_match_page_block_tokens[i],
		       report->page_us[i]);
	}
	printf("\nthe index: a page of a prompt, looked up and matched\n\n"
	       "  %-12s %10s %10s %15s\n", "entries", "ns", "scattered", "bytes an entry");
	for (i = 0; i < BENCH_INDEX_SIZES; i++) {
		const struct bench_index_row *const row = &report->index[i];

		printf("  %-12s %10.1f %10.1f %15.1f\n", units_format_count(row->entries, text),
		       row->page_ns, row->scattered_ns, row->entry_bytes);
	}
	printf("  %-12s %10.2f %10.2f   aim of the first figure: at most 1.5\n", "last : first",
	       last->page_ns / first->page_ns, last->scattered_ns / first->scattered_ns);
}

/* --- for machines ----------------------------------------------------------------------------- */

static void add_cases(json_t *array, const struct report *report)
{
	uint32_t i;

	for (i = 0; i < BENCH_MATCH_CASES; i++) {
		const struct bench_match_row *const row = &report->rows[i];

		json_array_append_new(
			array, json_pack("{s:s, s:f, s:f, s:f, s:f, s:f}", "case", row->name,
					 "sha_ratio", row->sha_ratio, "sha_us",
					 row->us[BENCH_MATCH_BARE], "hash_us",
					 row->us[BENCH_MATCH_HASH], "match_us",
					 row->us[BENCH_MATCH_MATCH], "plan_us",
					 row->us[BENCH_MATCH_PLAN]));
	}
}

static void add_rest(json_t *array, const struct report *report)
{
	uint32_t i;

	for (i = 0; i < BENCH_MATCH_PAGE_CASES; i++) {
		char name[32];

		snprintf(name, sizeof(name), "q%u page", bench_match_page_block_tokens[i]);
		json_array_append_new(array, json_pack("{s:s, s:f}", "case", name, "page_us",
						       report->page_us[i]));
	}
	for (i = 0; i < BENCH_INDEX_SIZES; i++) {
		const struct bench_index_row *const row = &report->index[i];

		json_array_append_new(array, json_pack("{s:s, s:I, s:f, s:f, s:f}", "case", "index",
						       "entries", (json_int_t)row->entries,
						       "page_ns", row->page_ns, "scattered_ns",
						       row->scattered_ns, "entry_bytes",
						       row->entry_bytes));
	}
}

static int print_json(const struct report *report, struct kvs_error *err)
{
	json_t *const array = json_array();

	add_cases(array, report);
	add_rest(array, report);
	return bench_print_json(array, err);
}

/* --- the command ------------------------------------------------------------------------------ */

static const struct conf_option options[] = {
	{ OPTION(settings, tokens), .type = CONF_COUNT, .metavar = "N", .fallback = "131072",
	  .min = 2 * BENCH_MATCH_PAGE, .max = 1 << 24, .help = "length of the prompt" },
	{ OPTION(settings, runs), .type = CONF_COUNT, .metavar = "N", .fallback = "21", .min = 1,
	  .max = BENCH_RUNS_MAX, .help = "how often to measure; the medians are printed" },
	{ OPTION(settings, json), .type = CONF_BOOL, .help = "print a JSON array" },
};

static int run(int argc, char **argv)
{
	struct settings  set = { 0 };
	struct report    report;
	struct kvs_error err;
	struct conf     *conf;
	int              rc, status = app_configure(&bench_match_command, argc, argv, &set, &conf);

	if (status != APP_DONE)
		return status;
	rc = bench_match_measure((uint32_t)set.tokens, (uint32_t)set.runs, report.rows,
				 report.page_us, &err);
	if (rc == 0)
		rc = bench_index_measure((uint32_t)set.runs, report.index, &err);
	if (rc == 0 && set.json)
		rc = print_json(&report, &err);
	else if (rc == 0)
		print(&set, &report);
	if (rc < 0)
		status = app_fail(bench_match_command.name, &err);
	conf_close(conf);
	return status;
}

const struct app_command bench_match_command = {
	.name = "bench match",
	.usage = "[FLAGS]",
	.summary = "a long prompt before it is computed: hash, match and plan beside bare SHA-256",
	.text = "Measures what the cache thread does with a prompt: hash its pages, match them in the\n"
		"index, plan its admission.  The ceiling is the chain of SHA-256 over the same tokens,\n"
		"page by page, with nothing else done.  Both take turns; the ratio is all three over\n"
		"the chain.  A page has 128 tokens.  A machine with other work needs many runs.\n"
		"\n"
		"Cold, nothing is there; \"device\" and \"host\" hold all that may be restored.  q is the\n"
		"tokens of a block.  A request that decodes fills its pages one by one: the second\n"
		"table is what each costs.  The index is measured by itself, with prompts whose pages lie\n"
		"anywhere in it: pages published together, as a prompt's are, or scattered.\n",
	.examples = "  kvstrata bench match\n"
		    "  kvstrata bench match --tokens 32768\n"
		    "  kvstrata bench match --json\n",
	.options = options,
	.option_count = ARRAY_COUNT(options),
	.settings_bytes = sizeof(struct settings),
	.run = run,
};
