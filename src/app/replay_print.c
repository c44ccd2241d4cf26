/* SPDX-License-Identifier: Apache-2.0 */
/* The replay's report as one page for people. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/figures.h"
#include "base/units.h"

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static void print_head(const struct replay *replay, const struct figures *figures)
{
	const struct replay_totals *const totals = &replay->totals;
	char requests[UNITS_TEXT_BYTES], blocks[UNITS_TEXT_BYTES], tokens[UNITS_TEXT_BYTES];
	char block[UNITS_TEXT_BYTES];

	printf("%s%s requests, %s blocks of %s, %s tokens in %.1f s",
	       totals->interrupted ? "interrupted after " : "",
	       units_format_count(totals->requests, requests),
	       units_format_count(totals->blocks, blocks),
	       units_format_size(replay->set->block_bytes, block),
	       units_format_count(totals->tokens, tokens), figures->seconds);
	if (!replay->set->trace)
		printf(" (seed %" PRIu64 ")", replay->set->seed);
	printf("\n");
}

static void print_origins(const struct replay_totals *totals)
{
	char blocks[UNITS_TEXT_BYTES], tokens[UNITS_TEXT_BYTES];
	int  origin;

	printf("\norigin              blocks               tokens\n");
	for (origin = 0; origin < ORIGIN_COUNT; origin++) {
		printf("  %-10s  %10s  %5.1f %%  %14s  %5.1f %%\n", replay_origin_names[origin],
		       units_format_count(totals->origin_blocks[origin], blocks),
		       percent(totals->origin_blocks[origin], totals->blocks),
		       units_format_count(totals->origin_tokens[origin], tokens),
		       percent(totals->origin_tokens[origin], totals->tokens));
	}
	printf("  of          %10s           %14s\n", units_format_count(totals->blocks, blocks),
	       units_format_count(totals->tokens, tokens));
}

/* A way that nothing took has no rate. */
static void print_way(const char *way, uint64_t bytes, double gb_s)
{
	char size[UNITS_TEXT_BYTES];

	if (bytes == 0)
		printf("  %-16s  %12s\n", way, "-");
	else
		printf("  %-16s  %12s  %7.2f GB/s\n", way, units_format_size(bytes, size), gb_s);
}

/* What the drive bears; a store that does not know, or has no drive, has no such line. */
static void print_wear(const struct kvs_store_info *store)
{
	char written[UNITS_TEXT_BYTES], moved[UNITS_TEXT_BYTES];

	if (store->written_bytes == 0)
		return;
	printf("  store wrote %s in its life; moved %s objects in this run to make room\n",
	       units_format_size(store->written_bytes, written),
	       units_format_count(store->moved_objects, moved));
}

static void print_moves(const struct replay *replay, const struct figures *figures)
{
	const struct exec_moved *const moved = &figures->exec.moved;
	char puts[UNITS_TEXT_BYTES], fresh[UNITS_TEXT_BYTES], gets[UNITS_TEXT_BYTES];
	char used[UNITS_TEXT_BYTES], capacity[UNITS_TEXT_BYTES];

	printf("\nmoved\n");
	print_way("device to host", figures->d2h_bytes, figures->d2h_gb_s);
	print_way("host to device", figures->h2d_bytes, figures->h2d_gb_s);
	if (!replay->store)
		return;
	print_way("host to store", moved->put_bytes, figures->put_gb_s);
	print_way("store to host", moved->get_bytes, figures->get_gb_s);
	printf("  puts %s (%s new), gets %s, corrupt %" PRIu64,
	       units_format_count(moved->put_keys, puts),
	       units_format_count(moved->put_new_keys, fresh),
	       units_format_count(moved->get_keys, gets), moved->corrupt_keys);
	if (figures->store.capacity_bytes > 0) {
		printf("; store holds %s of %s",
		       units_format_size(figures->store.used_bytes, used),
		       units_format_size(figures->store.capacity_bytes, capacity));
	}
	printf("\n");
	print_wear(&figures->store);
}

static void print_ttft(const char *name, const struct histogram *ns)
{
	printf("  %-22s  %10.1f  %10.1f  %10.1f\n", name, histogram_mean(ns) / 1e6,
	       ms(histogram_percentile(ns, 50)), ms(histogram_percentile(ns, 99)));
}

static void print_times(const struct replay *replay)
{
	const struct replay_totals *const totals = &replay->totals;

	if (totals->restore_ns.count > 0) {
		printf("\nrestore from the store, ms   p50 %.2f   p90 %.2f   p99 %.2f\n",
		       ms(histogram_percentile(&totals->restore_ns, 50)),
		       ms(histogram_percentile(&totals->restore_ns, 90)),
		       ms(histogram_percentile(&totals->restore_ns, 99)));
	}
	printf("\ntime to first token, modelled at %.0f tokens/s, ms\n",
	       replay->set->prefill_tokens_per_s);
	printf("  %-22s  %10s  %10s  %10s\n", "", "mean", "p50", "p99");
	if (replay->store)
		print_ttft("with the store", &totals->ttft_store_ns);
	print_ttft("device and host only", &totals->ttft_local_ns);
	print_ttft("recompute everything", &totals->ttft_none_ns);
}

/* --- reasons ---------------------------------------------------------------------------------- */

#define LINE_COLUMNS 100

/* "title name count, ...", on as many lines as it takes. */
static void print_reasons(const char *title, const struct reasons *reasons)
{
	int      column = printf("%s", title);
	bool     any = false;
	uint32_t i;

	for (i = 0; i < reasons->count; i++) {
		const struct figure *const figure = &reasons->figure[i];
		char                       text[UNITS_TEXT_BYTES];
		int                        width;

		if (figure->count == 0)
			continue;
		width = snprintf(NULL, 0, ", %s %s", figure->name,
				 units_format_count(figure->count, text));
		if (any)
			column += printf(",");
		if (any && column + width > LINE_COLUMNS)
			column = printf("\n%*s", (int)strlen(title), "") - 1;
		column += printf(" %s %s", figure->name, text);
		any = true;
	}
	printf("%s\n", any ? "" : " none");
}

/* That the reasons sum up is for the reader to see. */
static void print_misses(const struct replay_totals *totals, const struct figures *figures)
{
	char requests[UNITS_TEXT_BYTES], full[UNITS_TEXT_BYTES], misses[UNITS_TEXT_BYTES];

	printf("%s requests - %s full hits = %s missed, by reason, each once:\n",
	       units_format_count(totals->requests, requests),
	       units_format_count(totals->full_hits, full),
	       units_format_count(replay_totals_misses(totals), misses));
	print_reasons("                            ", &figures->misses);
}

static void print_waits(const struct replay_totals *totals)
{
	char waited[UNITS_TEXT_BYTES], in_vain[UNITS_TEXT_BYTES];

	printf("waited for the store:        %s, of them in vain %s (%.1f %%)\n",
	       units_format_count(totals->waited, waited),
	       units_format_count(totals->in_vain, in_vain),
	       percent(totals->in_vain, totals->waited));
}

/* What is not told elsewhere on the page. */
static void print_events(const struct figures *figures)
{
	static const enum transfer_counter told[] = { TRANSFER_SOFT_TIMEOUTS,
						      TRANSFER_EXPIRED_HOLDS,
						      TRANSFER_GATE_CLOSURES,
						      TRANSFER_PRESSURE_BYPASSES,
						      TRANSFER_QUARANTINES };
	struct reasons                     events = { .count = ARRAY_COUNT(told) };
	size_t                             i;

	for (i = 0; i < ARRAY_COUNT(told); i++)
		events.figure[i] = figures->events.figure[told[i]];
	print_reasons("storage events:             ", &events);
}

static void print_all_reasons(const struct replay *replay, const struct figures *figures)
{
	print_misses(&replay->totals, figures);
	if (replay->store) {
		print_waits(&replay->totals);
		print_reasons("store not used, by reason:  ", &figures->fallbacks);
	}
	print_reasons("blocks not kept, by reason: ", &figures->drops);
	if (replay->store) {
		print_reasons("puts refused, by reason:    ", &figures->refusals);
		print_events(figures);
	}
}

/* What the Host memory could not have, a line for each, so that none is too long. */
static void print_memory(const struct replay *replay, const struct figures *figures)
{
	const char *note = arena_report(replay->arena)->note;
	char        rss[UNITS_TEXT_BYTES];

	if (replay->store && figures->store.note[0])
		printf("store: %s\n", figures->store.note);
	printf("peak memory: %s\n", units_format_size(figures->peak_rss_bytes, rss));
	while (*note) {
		const size_t length = strcspn(note, ";");

		printf("host memory: %.*s\n", (int)length, note);
		note += length;
		note += strspn(note, "; ");
	}
}

static void print_checks(const struct group_engine *engine)
{
	char rows[UNITS_TEXT_BYTES], checkpoints[UNITS_TEXT_BYTES];

	printf("rows checked: %s, ", units_format_count(engine->rows_checked, rows));
	if (engine->checkpoints_checked > 0) {
		printf("checkpoints: %s, ",
		       units_format_count(engine->checkpoints_checked, checkpoints));
	}
	printf("wrong bytes: %" PRIu64 "\n", engine->wrong_bytes);
}

void replay_print(const struct replay *replay)
{
	struct figures figures;

	figures_gather(replay, &figures);
	print_head(replay, &figures);
	print_origins(&replay->totals);
	print_moves(replay, &figures);
	print_times(replay);
	printf("\n");
	print_all_reasons(replay, &figures);
	print_checks(&replay->engine);
	print_memory(replay, &figures);
	if (replay->totals.explained[0]) {
		printf("\nrequest %" PRIu64 ": %s\n", replay->set->explain,
		       replay->totals.explained);
	}
}
