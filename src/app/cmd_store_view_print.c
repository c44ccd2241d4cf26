/* SPDX-License-Identifier: Apache-2.0 */
/* The page of `kvstrata store inspect`. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/cmd_store_view.h"
#include "app/key_text.h"
#include "base/digest.h"
#include "base/units.h"

/* More segments than this are shown in groups of one age. */
#define ROWS_MAX 32u
#define GROUPS 10u
#define BAR_CELLS 20u

static void print_size(const char *name, uint64_t bytes, const char *what)
{
	char size[UNITS_TEXT_BYTES];

	printf("  %-12s  %12s  %s\n", name, units_format_size(bytes, size), what);
}

static void print_head(const struct store_view *view, const char *path)
{
	const struct strata_report *const report = &view->report;
	char id[2 * sizeof(report->id) + 1], shown[CMD_STORE_PATH_BYTES];
	char holder[CMD_STORE_HOLDER_BYTES];

	hex_encode(report->id, sizeof(report->id), id);
	printf("%s: strata store, version %" PRIu32 ", id %s\n", cmd_store_path(path, shown),
	       report->version, id);
	if (view->in_use) {
		printf("in use by %s: what is written meanwhile may be missing here\n",
		       cmd_store_holder(&view->holder, holder));
	}
}

static void print_use(const struct store_view *view)
{
	const struct strata_report *const report = &view->report;
	const uint64_t used = report->live_bytes + report->dead_bytes + view->free_bytes;
	char           objects[UNITS_TEXT_BYTES], segment[UNITS_TEXT_BYTES], text[96];

	printf("\nuse\n");
	snprintf(text, sizeof(text), "%" PRIu32 " segments of %s", report->segment_count,
		 units_format_size(report->segment_bytes, segment));
	print_size("capacity", report->capacity_bytes, text);
	snprintf(text, sizeof(text), "payload of %s objects",
		 units_format_count(report->object_count, objects));
	print_size("live", report->live_bytes, text);
	print_size("dead", report->dead_bytes, "removed, evicted, moved, and headers: until cleaned");
	snprintf(text, sizeof(text), "%" PRIu32 " segments", report->segments_free);
	print_size("free", view->free_bytes, text);
	print_size("other", report->capacity_bytes > used ? report->capacity_bytes - used : 0,
		   "metadata, and what segments in use have left");
}

static void print_writes(const struct store_view *view)
{
	const struct strata_report *const report = &view->report;
	char                              text[64] = "";

	if (report->put_bytes) {
		snprintf(text, sizeof(text), "write amplification %.2f",
			 store_view_amplification(view));
	}
	printf("\nwrites since the store was made%s\n",
	       view->in_use ? ", as last noted in the file" : "");
	print_size("puts", report->put_bytes, "payload");
	print_size("drive", report->written_bytes, text);
	print_size("today", view->today_bytes, "of the drive's; days are UTC");
}

static void print_count(const char *name, uint64_t count, const char *what)
{
	char text[UNITS_TEXT_BYTES];

	if (count > 0)
		printf("  %-12s  %12s  %s\n", name, units_format_count(count, text), what);
}

static void print_recovery(const struct store_view *view)
{
	const struct strata_report *const report = &view->report;
	const uint64_t met = report->segments_unsealed + report->torn_records +
			     report->stale_records + report->foreign_records +
			     report->damaged_structures + view->nameless;

	if (met == 0) {
		printf("\nfound in order: nothing torn, nothing damaged\n");
		return;
	}
	printf("\nfound\n");
	print_count("unsealed", report->segments_unsealed,
		    view->in_use ? "segments without a summary: being written"
				 : "segments without a summary: read whole, as after a crash");
	print_count("torn", report->torn_records, "records whose write did not end: skipped");
	print_count("stale", report->stale_records,
		    "records of an earlier use of a segment: skipped");
	print_count("foreign", report->foreign_records, "records of another store: skipped");
	print_count("damaged", report->damaged_structures,
		    "heads, tallies, summaries; kvstrata store verify says where");
	print_count("nameless", view->nameless, "segments whose keys cannot be read");
}

static void print_namespaces(const struct store_view *view)
{
	char     space[KEY_TEXT_SPACE_BYTES], objects[UNITS_TEXT_BYTES], size[UNITS_TEXT_BYTES];
	uint32_t i;

	if (view->use_count == 0)
		return;
	printf("\n%-32s  %12s  %12s\n", "namespace", "objects", "payload");
	for (i = 0; i < view->use_count; i++) {
		const struct store_use *const use = &view->uses[i];

		printf("%-32s  %12s  %12s\n", key_text_space(&use->space, space),
		       units_format_count(use->objects, objects),
		       units_format_size(use->bytes, size));
	}
}

/* --- segments --------------------------------------------------------------------------------- */

static void print_share(const struct store_view *view, uint64_t live_bytes, uint32_t segments)
{
	const double share = (double)live_bytes /
			     ((double)view->report.segment_bytes * (double)segments);
	char         bar[BAR_CELLS + 1];

	memset(bar, '-', BAR_CELLS);
	memset(bar, '#', (size_t)(share * BAR_CELLS + 0.5));
	bar[BAR_CELLS] = '\0';
	printf("  [%s] %3.0f %%\n", bar, share * 100);
}

static void print_rows(const struct store_view *view)
{
	uint32_t i;

	printf("\n%6s  %8s  %-8s  %10s  %10s  %s\n", "age", "segment", "state", "records",
	       "objects", "live");
	for (i = 0; i < view->used_count; i++) {
		const uint32_t                            number = view->by_age[i];
		const struct strata_segment_report *const segment = &view->segments[number];

		printf("%6" PRIu32 "  %8" PRIu32 "  %-8s  %10" PRIu32 "  %10" PRIu32, i + 1, number,
		       segment->state, segment->record_count, segment->live_count);
		print_share(view, segment->live_bytes, 1);
	}
}

static void print_group(const struct store_view *view, uint32_t first, uint32_t end)
{
	uint64_t objects = 0, live_bytes = 0;
	uint32_t i;
	char     text[UNITS_TEXT_BYTES];

	for (i = first; i < end; i++) {
		objects += view->segments[view->by_age[i]].live_count;
		live_bytes += view->segments[view->by_age[i]].live_bytes;
	}
	printf("%6" PRIu32 " to %6" PRIu32 "  %8" PRIu32 "  %12s", first + 1, end, end - first,
	       units_format_count(objects, text));
	print_share(view, live_bytes, end - first);
}

static void print_groups(const struct store_view *view)
{
	uint32_t i;

	printf("\n%16s  %8s  %12s  %s\n", "age", "segments", "objects", "live");
	for (i = 0; i < GROUPS; i++) {
		print_group(view, (uint32_t)((uint64_t)view->used_count * i / GROUPS),
			    (uint32_t)((uint64_t)view->used_count * (i + 1) / GROUPS));
	}
}

static void print_segments(const struct store_view *view)
{
	if (view->used_count == 0)
		return;
	if (view->used_count <= ROWS_MAX)
		print_rows(view);
	else
		print_groups(view);
	printf("age 1 is the segment that was begun first;\n"
	       "live: of a segment's bytes, the part that objects take\n");
}

void store_view_print(const struct store_view *view, const char *path)
{
	print_head(view, path);
	print_use(view);
	print_writes(view);
	print_recovery(view);
	print_namespaces(view);
	print_segments(view);
}
