/* SPDX-License-Identifier: Apache-2.0 */
/* The report, for people and for machines. */
#include <inttypes.h>
#include <stdio.h>

#include "app/bench_mooncake.h"
#include "base/units.h"

static const char *const way_names[BENCH_WAY_COUNT] = { [BENCH_GET] = "get", [BENCH_PUT] = "put" };

static const char *const figure_names[MOONCAKE_FIGURE_COUNT] = {
	[MOONCAKE_RATIO] = "ratio", [MOONCAKE_RAW_RATIO] = "raw_ratio",
	[MOONCAKE_GB_S] = "gb_s", [MOONCAKE_RAW_GB_S] = "raw_gb_s",
	[MOONCAKE_SDK_GB_S] = "sdk_gb_s", [MOONCAKE_CALL_US] = "call_us",
	[MOONCAKE_RAW_CALL_US] = "raw_call_us", [MOONCAKE_SDK_CALL_US] = "sdk_call_us",
	[MOONCAKE_AGENT_US] = "agent_us",
};

static const char *const master_names[BENCH_MASTER_COUNT] = {
	[BENCH_MASTER_UP] = "up", [BENCH_MASTER_PAUSED] = "paused", [BENCH_MASTER_DOWN] = "down",
};

/* --- for people ------------------------------------------------------------------------------- */

static void print_rows(const struct bench_mooncake_report *report)
{
	uint32_t i;
	int      way;

	printf("  %-8s  %5s      %6s  %6s  %6s  %6s  %9s\n", "bytes", "batch", "GB/s", "raw", "SDK",
	       "ratio", "raw ratio");
	for (i = 0; i < report->row_count; i++) {
		for (way = 0; way < BENCH_WAY_COUNT; way++) {
			const double *f = report->rows[i].figures[way];
			char          size[UNITS_TEXT_BYTES];

			printf("  %-8s  %5u  %s %6.2f  %6.2f  %6.2f  %6.2f  %9.2f\n",
			       units_format_size(report->rows[i].bytes, size), report->rows[i].batch,
			       way_names[way], f[MOONCAKE_GB_S], f[MOONCAKE_RAW_GB_S],
			       f[MOONCAKE_SDK_GB_S], f[MOONCAKE_RATIO], f[MOONCAKE_RAW_RATIO]);
		}
	}
	printf("\n  aims: ratios of at least 0.97\n");
}

static void print_small(const struct bench_mooncake_report *report)
{
	uint32_t i;
	int      way;

	printf("\n  a batch of 4 KiB objects, one thread, us\n"
	       "  %5s      %8s  %8s  %8s  %9s\n", "batch", "ours", "raw", "SDK", "agent");
	for (i = 0; i < report->small_count; i++) {
		for (way = 0; way < BENCH_WAY_COUNT; way++) {
			const double *f = report->small[i].figures[way];

			printf("  %5u  %s %8.0f  %8.0f  %8.0f  %+9.0f\n", report->small[i].batch,
			       way_names[way], f[MOONCAKE_CALL_US], f[MOONCAKE_RAW_CALL_US],
			       f[MOONCAKE_SDK_CALL_US], f[MOONCAKE_AGENT_US]);
		}
	}
}

static void print_calls(const struct bench_mooncake_report *report)
{
	int i;

	printf("\n  executor, ns      submit            poll\n"
	       "  master      median      p99  median      p99    taken  refused     done   failed\n");
	for (i = 0; i < BENCH_MASTER_COUNT; i++) {
		const struct bench_calls *calls = &report->calls[i];

		printf("  %-10s  %6" PRIu64 "  %7" PRIu64 "  %6" PRIu64 "  %7" PRIu64 "  %7" PRIu64
		       "  %7" PRIu64 "  %7" PRIu64 "  %7" PRIu64 "\n", master_names[i],
		       calls->submit_median_ns, calls->submit_p99_ns, calls->poll_median_ns,
		       calls->poll_p99_ns, calls->taken, calls->refused, calls->done, calls->failed);
	}
}

static void print(const struct bench_mooncake_report *report)
{
	const struct bench_mooncake_settings *set = report->set;

	printf("mooncake, threads: %" PRIu64 ", runs: %" PRIu64 "; medians\n"
	       "%s; this says nothing about RDMA\n", set->threads, set->runs,
	       set->master ? "TCP" : "TCP on the loopback, all on this machine's cores");
	if (report->note[0])
		printf("note: %s\n", report->note);
	printf("\n");
	print_rows(report);
	print_small(report);
	if (report->has_calls)
		print_calls(report);
}

/* --- for machines ----------------------------------------------------------------------------- */

static json_t *row_json(const struct bench_mooncake_row *row)
{
	json_t *const object = json_object();
	int           way, f;

	json_object_set_new(object, "bytes", json_integer((json_int_t)row->bytes));
	json_object_set_new(object, "batch", json_integer(row->batch));
	json_object_set_new(object, "threads", json_integer(row->threads));
	for (way = 0; way < BENCH_WAY_COUNT; way++) {
		json_t *const figures = json_object();

		for (f = 0; f < MOONCAKE_FIGURE_COUNT; f++) {
			json_object_set_new(figures, figure_names[f],
					    json_real(row->figures[way][f]));
		}
		json_object_set_new(object, way_names[way], figures);
	}
	return object;
}

static json_t *rows_json(const struct bench_mooncake_row *rows, uint32_t count)
{
	json_t *const array = json_array();
	uint32_t      i;

	for (i = 0; i < count; i++)
		json_array_append_new(array, row_json(&rows[i]));
	return array;
}

static json_t *calls_json(const struct bench_calls *calls, const char *master)
{
	const struct {
		const char *name;
		uint64_t    value;
	} figures[] = {
		{ "submit_median_ns", calls->submit_median_ns },
		{ "submit_p99_ns", calls->submit_p99_ns },
		{ "poll_median_ns", calls->poll_median_ns }, { "poll_p99_ns", calls->poll_p99_ns },
		{ "taken", calls->taken }, { "refused", calls->refused },
		{ "done", calls->done }, { "failed", calls->failed },
	};
	json_t *const object = json_object();
	uint32_t      i;

	json_object_set_new(object, "master", json_string(master));
	for (i = 0; i < ARRAY_COUNT(figures); i++) {
		json_object_set_new(object, figures[i].name,
				    json_integer((json_int_t)figures[i].value));
	}
	return object;
}

static int print_json(const struct bench_mooncake_report *report, struct kvs_error *err)
{
	json_t *const object = json_object();
	json_t       *calls;
	int           i;

	json_object_set_new(object, "threads", json_integer((json_int_t)report->set->threads));
	json_object_set_new(object, "runs", json_integer((json_int_t)report->set->runs));
	json_object_set_new(object, "note", json_string(report->note));
	json_object_set_new(object, "rows", rows_json(report->rows, report->row_count));
	json_object_set_new(object, "small", rows_json(report->small, report->small_count));
	calls = json_array();
	for (i = 0; report->has_calls && i < BENCH_MASTER_COUNT; i++)
		json_array_append_new(calls, calls_json(&report->calls[i], master_names[i]));
	json_object_set_new(object, "executor", calls);
	return bench_print_json(object, err);
}

int bench_mooncake_print(const struct bench_mooncake_report *report, struct kvs_error *err)
{
	if (report->set->json)
		return print_json(report, err);
	print(report);
	return 0;
}
