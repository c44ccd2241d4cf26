/* SPDX-License-Identifier: Apache-2.0 */
/* `kvstrata simulate`: hit-ratio curves without moving a byte, for sizing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/app.h"
#include "app/plot.h"
#include "app/progress.h"
#include "app/source.h"
#include "app/sweep.h"
#include "base/text.h"
#include "base/units.h"
#include "evict/evict.h"
#include "os/os.h"

struct settings {
	const char *trace;
	const char *capacity;
	const char *policy;
	const char *plot;
	uint64_t    requests;
	uint64_t    seed;
	bool        json;
};

static const struct conf_option options[] = {
	{ OPTION(settings, trace), .type = CONF_TEXT, .metavar = "FILE",
	  .help = "requests to feed, one JSON object a line; without it, generated conversations" },
	{ OPTION(settings, capacity), .type = CONF_TEXT, .list = true, .metavar = "LIST",
	  .fallback = "100,300,1000,3000,10000,unlimited",
	  .help = "cache sizes in blocks of 512 tokens, commas between; or unlimited" },
	{ OPTION(settings, policy), .type = CONF_TEXT, .list = true, .metavar = "LIST",
	  .fallback = "lru,fifo,lru-leaf,s3fifo,arc", .choices = evict_giving_names,
	  .help = "who leaves a full cache, commas between" },
	{ OPTION(settings, plot), .type = CONF_TEXT, .metavar = "FILE",
	  .help = "draw the curves as an SVG picture" },
	{ OPTION(settings, json), .type = CONF_BOOL,
	  .help = "print a JSON array, one object for each policy and capacity" },
	{ OPTION(settings, requests), .type = CONF_COUNT, .metavar = "N", .fallback = "10000",
	  .min = 1, .max = 1e9, .help = "how many requests to generate, without --trace" },
	{ OPTION(settings, seed), .type = CONF_COUNT, .metavar = "N", .fallback = "1",
	  .help = "of the generated requests, without --trace" },
};

static double ratio(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static void print_json(const struct sweep *sweep)
{
	const struct sweep_row *row;
	size_t                  i;

	printf("[");
	for (i = 0; (row = sweep_row(sweep, i)); i++) {
		printf("%s\n  {\"policy\": \"%s\", \"capacity_blocks\": ", i ? "," : "",
		       row->policy);
		if (row->capacity_blocks)
			printf("%" PRIu64, row->capacity_blocks);
		else
			printf("null");
		printf(", \"requests\": %" PRIu64 ", \"blocks\": %" PRIu64
		       ", \"hit_blocks\": %" PRIu64 ", \"tokens\": %" PRIu64
		       ", \"hit_tokens\": %" PRIu64 ", \"seconds\": %.6f}",
		       row->counts.requests, row->counts.blocks, row->counts.hit_blocks,
		       row->counts.tokens, row->counts.hit_tokens, (double)row->spent_ns / 1e9);
	}
	printf("\n]\n");
}

static void print_row(const struct sweep_row *row)
{
	char capacity[UNITS_TEXT_BYTES] = "unlimited";
	char blocks[UNITS_TEXT_BYTES], tokens[UNITS_TEXT_BYTES];

	if (row->capacity_blocks)
		units_format_count(row->capacity_blocks, capacity);
	printf("%-10s  %13s  %12s  %11.6f  %16s  %11.6f  %7.3f\n", row->policy, capacity,
	       units_format_count(row->counts.hit_blocks, blocks),
	       ratio(row->counts.hit_blocks, row->counts.blocks),
	       units_format_count(row->counts.hit_tokens, tokens),
	       ratio(row->counts.hit_tokens, row->counts.tokens), (double)row->spent_ns / 1e9);
}

/* "conversation_trace.jsonl: 12,031 requests, 288,500 blocks, 144,793,823 tokens" */
static void describe(const struct settings *set, const struct sweep *sweep, char *ret_text,
		     size_t bytes)
{
	const struct simulate_counts *counts = &sweep_row(sweep, 0)->counts;
	const char                   *slash = set->trace ? strrchr(set->trace, '/') : NULL;
	char requests[UNITS_TEXT_BYTES], blocks[UNITS_TEXT_BYTES], tokens[UNITS_TEXT_BYTES];
	char name[256]; /* the longest name a file can have */

	if (set->trace) {
		snprintf(name, sizeof(name), "%s", slash && slash[1] ? slash + 1 : set->trace);
		text_printable(name);
	}
	if (!set->trace)
		snprintf(name, sizeof(name), "generated with seed %" PRIu64, set->seed);
	snprintf(ret_text, bytes, "%s: %s requests, %s blocks, %s tokens", name,
		 units_format_count(counts->requests, requests),
		 units_format_count(counts->blocks, blocks),
		 units_format_count(counts->tokens, tokens));
}

static void print_table(const struct settings *set, const struct sweep *sweep)
{
	const struct sweep_row *row;
	char                    text[400];
	size_t                  i;

	describe(set, sweep, text, sizeof(text));
	printf("%s\n\n%-10s  %13s  %12s  %11s  %16s  %11s  %7s\n", text, "policy", "capacity",
	       "hit blocks", "block ratio", "hit tokens", "token ratio", "seconds");
	for (i = 0; (row = sweep_row(sweep, i)); i++)
		print_row(row);
}

/* Limited capacities in rising order however they were asked; the unlimited one is the ceiling. */
static size_t collect_points(const struct sweep *sweep, size_t first, size_t count,
			     struct plot_point *points, double *ret_ceiling)
{
	size_t point_count = 0;
	size_t i, at;

	for (i = first; i < first + count; i++) {
		const struct sweep_row *row = sweep_row(sweep, i);
		const double            hit = ratio(row->counts.hit_tokens, row->counts.tokens);

		if (row->capacity_blocks == 0) {
			*ret_ceiling = hit;
			continue;
		}
		for (at = point_count++;
		     at > 0 && points[at - 1].capacity_blocks > row->capacity_blocks; at--)
			points[at] = points[at - 1];
		points[at] = (struct plot_point){ row->capacity_blocks, hit };
	}
	return point_count;
}

static int draw(const struct settings *set, const struct sweep_axes *axes,
		const struct sweep *sweep, struct kvs_error *err)
{
	struct plot_point points[SWEEP_POLICIES_MAX][SWEEP_CAPACITIES_MAX];
	struct plot_line  lines[SWEEP_POLICIES_MAX];
	char              subtitle[400];
	struct plot plot = { .title = "Hit ratio by cache capacity",
			     .subtitle = subtitle,
			     .lines = lines,
			     .line_count = axes->policy_count,
			     .ceiling = -1 };
	size_t            l;

	describe(set, sweep, subtitle, sizeof(subtitle));
	for (l = 0; l < axes->policy_count; l++) {
		lines[l].name = axes->policies[l];
		lines[l].points = points[l];
		lines[l].point_count = collect_points(sweep, l * axes->capacity_count,
						      axes->capacity_count, points[l],
						      &plot.ceiling);
	}
	return plot_write(set->plot, &plot, err);
}

static int feed(struct sweep *sweep, struct source *source, bool show, struct kvs_error *err)
{
	struct source_request request;
	struct progress       progress;
	int                   rc;

	progress_start(&progress, "simulating", "req", show, os_now_ns());
	while ((rc = source_next(source, &request, err)) == 1) {
		rc = sweep_request(sweep, &request, err);
		if (rc < 0)
			break;
		progress_update(&progress, source_progress(source), request.index + 1, os_now_ns());
	}
	progress_finish(&progress);
	return rc;
}

/* The picture comes last: a file that cannot be written must not cost the numbers. */
static int report(const struct settings *set, const struct sweep_axes *axes,
		  const struct sweep *sweep, struct kvs_error *err)
{
	int rc;

	if (set->json)
		print_json(sweep);
	else
		print_table(set, sweep);
	rc = app_flush(err);
	if (rc < 0)
		return rc;
	return set->plot ? draw(set, axes, sweep, err) : 0;
}

static int simulate(const struct settings *set, const struct sweep_axes *axes)
{
	struct source   *source = NULL;
	struct sweep    *sweep = NULL;
	struct kvs_error err;
	int              rc = source_open(set->trace, set->seed, set->requests, &source, &err);

	if (rc == 0)
		rc = sweep_open(axes, &sweep, &err);
	if (rc == 0)
		rc = feed(sweep, source, !set->json, &err);
	if (rc == 0)
		rc = report(set, axes, sweep, &err);
	sweep_close(sweep);
	source_close(source);
	return rc == 0 ? APP_DONE : app_fail(simulate_command.name, &err);
}

static int run(int argc, char **argv)
{
	struct settings   set = { 0 };
	struct sweep_axes axes;
	struct kvs_error  err;
	struct conf      *conf;
	int               status = app_configure(&simulate_command, argc, argv, &set, &conf);

	if (status != APP_DONE)
		return status;
	if (sweep_axes_read(set.capacity, set.policy, &axes, &err) < 0 ||
	    app_check_trace(&simulate_command, conf, set.trace, &err) < 0 ||
	    app_check_output("plot", set.plot, set.trace, &err) < 0)
		status = app_fail(simulate_command.name, &err);
	else
		status = simulate(&set, &axes);
	conf_close(conf);
	return status;
}

const struct app_command simulate_command = {
	.name = "simulate",
	.usage = "[FLAGS]",
	.summary = "prints how often a cache of each size would hit, for sizing",
	.example =
		"kvstrata simulate --trace trace.jsonl --capacity 1000,10000,unlimited --plot curves.svg",
	.text = "Feeds requests to one simulated cache for each policy and capacity, all in one pass, and\n"
		"prints how many blocks and tokens of the prompts each would have found.  A hit counts\n"
		"only while everything before it in the prompt is a hit too.  No bytes are moved, and\n"
		"memory grows with the capacities, not with the trace.\n"
		"\n"
		"A trace has one JSON object a line: timestamp (milliseconds, rising), input_length and\n"
		"output_length (tokens), hash_ids (one id for each 512 tokens begun; equal ids mean equal\n"
		"prompts up to there).\n",
	.examples =
		"  kvstrata simulate\n"
		"  kvstrata simulate --trace trace.jsonl --policy lru,s3fifo --plot curves.svg\n"
		"  kvstrata simulate --trace trace.jsonl --capacity 1000,10000,unlimited --json\n",
	.options = options,
	.option_count = ARRAY_COUNT(options),
	.settings_bytes = sizeof(struct settings),
	.run = run,
};
