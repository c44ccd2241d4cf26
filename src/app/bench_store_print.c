/* SPDX-License-Identifier: Apache-2.0 */
/* The report of `kvstrata bench store`: a figure that was not measured is "-" or null. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "app/bench_store.h"
#include "base/units.h"

static const char *const names[BENCH_STORE_FIGURES] = {
	[FIGURE_GET_RATIO] = "get_ratio",
	[FIGURE_PUT_RATIO] = "put_ratio",
	[FIGURE_GET_CPU_RATIO] = "get_cpu_ratio",
	[FIGURE_PUT_CPU_RATIO] = "put_cpu_ratio",
	[FIGURE_GET_GB_S] = "get_gb_s",
	[FIGURE_PUT_GB_S] = "put_gb_s",
	[FIGURE_GET_P50] = "get_p50_us",
	[FIGURE_PUT_P50] = "put_p50_us",
	[FIGURE_GET_P99] = "get_p99_us",
	[FIGURE_PUT_P99] = "put_p99_us",
	[FIGURE_GET_CPU] = "get_cpu_ms_per_gb",
	[FIGURE_PUT_CPU] = "put_cpu_ms_per_gb",
	[FIGURE_FIO_GET_GB_S] = "fio_get_gb_s",
	[FIGURE_FIO_PUT_GB_S] = "fio_put_gb_s",
	[FIGURE_FIO_GET_P50] = "fio_get_p50_us",
	[FIGURE_FIO_PUT_P50] = "fio_put_p50_us",
	[FIGURE_FIO_GET_P99] = "fio_get_p99_us",
	[FIGURE_FIO_PUT_P99] = "fio_put_p99_us",
	[FIGURE_FIO_GET_CPU] = "fio_get_cpu_ms_per_gb",
	[FIGURE_FIO_PUT_CPU] = "fio_put_cpu_ms_per_gb",
	[FIGURE_XXH3_GB_S] = "xxh3_gb_s",
	[FIGURE_XXH3_CPU] = "xxh3_cpu_ms_per_gb",
	[FIGURE_PUT_SYNCED_GB_S] = "put_synced_gb_s",
	[FIGURE_PUT_STEADY_GB_S] = "put_steady_gb_s",
	[FIGURE_STEADY_REFUSED] = "put_steady_refused",
};

double bench_store_cpu_ratio(const struct bench_store_row *row)
{
	const double get = row->figures[FIGURE_GET_CPU_RATIO];
	const double put = row->figures[FIGURE_PUT_CPU_RATIO];

	return isnan(get) || isnan(put) ? NAN : fmax(get, put);
}

/* --- for people ------------------------------------------------------------------------------- */

static void cell(double figure, int width, int digits)
{
	if (isnan(figure))
		printf("  %*s", width, "-");
	else
		printf("  %*.*f", width, digits, figure);
}

static void print_speed(const struct bench_store_row *rows, uint32_t count)
{
	uint32_t i;

	printf("  %-8s  %8s  %6s  %6s  %8s  %6s  %6s  %6s  %6s\n", "bytes", "get GB/s", "fio",
	       "ratio", "put GB/s", "fio", "ratio", "synced", "steady");
	for (i = 0; i < count; i++) {
		const double *f = rows[i].figures;
		char          size[UNITS_TEXT_BYTES];

		printf("  %-8s", units_format_size(rows[i].bytes, size));
		cell(f[FIGURE_GET_GB_S], 8, 2);
		cell(f[FIGURE_FIO_GET_GB_S], 6, 2);
		cell(f[FIGURE_GET_RATIO], 6, 2);
		cell(f[FIGURE_PUT_GB_S], 8, 2);
		cell(f[FIGURE_FIO_PUT_GB_S], 6, 2);
		cell(f[FIGURE_PUT_RATIO], 6, 2);
		cell(f[FIGURE_PUT_SYNCED_GB_S], 6, 2);
		cell(f[FIGURE_PUT_STEADY_GB_S], 6, 2);
		putchar('\n');
	}
}

static void print_cpu(const struct bench_store_row *rows, uint32_t count)
{
	uint32_t i;

	printf("\n  CPU, ms/GB\n  %-8s  %8s  %6s  %6s  %8s  %6s  %6s  %6s\n", "bytes", "get", "fio",
	       "ratio", "put", "fio", "ratio", "XXH3");
	for (i = 0; i < count; i++) {
		const double *f = rows[i].figures;
		char          size[UNITS_TEXT_BYTES];

		printf("  %-8s", units_format_size(rows[i].bytes, size));
		cell(f[FIGURE_GET_CPU], 8, 1);
		cell(f[FIGURE_FIO_GET_CPU], 6, 1);
		cell(f[FIGURE_GET_CPU_RATIO], 6, 2);
		cell(f[FIGURE_PUT_CPU], 8, 1);
		cell(f[FIGURE_FIO_PUT_CPU], 6, 1);
		cell(f[FIGURE_PUT_CPU_RATIO], 6, 2);
		cell(f[FIGURE_XXH3_CPU], 6, 1);
		putchar('\n');
	}
}

static void print_latency(const struct bench_store_row *rows, uint32_t count)
{
	uint32_t i;
	int      side;

	printf("\n  latency, us\n  %-8s  %8s  %8s  %8s  %8s  %8s  %8s  %8s  %8s\n", "bytes",
	       "get p50", "p99", "fio p50", "p99", "put p50", "p99", "fio p50", "p99");
	for (i = 0; i < count; i++) {
		const double *f = rows[i].figures;
		char          size[UNITS_TEXT_BYTES];

		printf("  %-8s", units_format_size(rows[i].bytes, size));
		for (side = 0; side <= 1; side++) {
			cell(f[FIGURE_GET_P50 + side], 8, 0);
			cell(f[FIGURE_GET_P99 + side], 8, 0);
			cell(f[FIGURE_FIO_GET_P50 + side], 8, 0);
			cell(f[FIGURE_FIO_GET_P99 + side], 8, 0);
		}
		putchar('\n');
	}
}

static void print_depths(const struct bench_store_row *rows, uint32_t count)
{
	uint32_t i;

	putchar('\n');
	for (i = 0; i < count; i++) {
		const struct bench_store_row *row = &rows[i];
		char size[UNITS_TEXT_BYTES], moved[UNITS_TEXT_BYTES];

		printf("  %s: %s a pass, at most %u rows under way",
		       units_format_size(row->bytes, size),
		       units_format_size(row->objects * row->bytes, moved), row->depth);
		if (row->fio_depth[0]) {
			printf("; fio's best: get %u x %u, put %u x %u (depth x jobs)",
			       row->fio_depth[0], row->fio_jobs[0], row->fio_depth[1],
			       row->fio_jobs[1]);
		}
		putchar('\n');
	}
}

void bench_store_print(const struct bench_store *bench, const struct bench_store_row *rows,
		       uint32_t count)
{
	printf("strata file below %s, runs: %" PRIu64 "; medians, every get verified\n",
	       bench->set->path, bench->set->runs);
	if (bench->has_fio)
		printf("beside %s\n\n", bench->fio_version);
	else
		printf("fio is not installed: there is nothing to compare with (Debian: fio)\n\n");
	print_speed(rows, count);
	print_cpu(rows, count);
	print_latency(rows, count);
	print_depths(rows, count);
	printf("\n  aims: get at least 1.0, put at least 0.95 (64 KiB: 0.90) of fio;\n"
	       "        CPU at most 1.25 (64 KiB: 1.4) times fio and XXH3 together\n");
}

/* --- for machines ----------------------------------------------------------------------------- */

/* 0 stands for what is not known. */
static json_t *count_or_null(uint64_t count)
{
	return count ? json_integer((json_int_t)count) : json_null();
}

static json_t *figure_or_null(double figure)
{
	return isnan(figure) ? json_null() : json_real(figure);
}

static json_t *row_json(const struct bench_store *bench, const struct bench_store_row *row)
{
	json_t *const object = json_object();
	int           f;

	json_object_set_new(object, "bytes", json_integer((json_int_t)row->bytes));
	json_object_set_new(object, "moved_bytes",
			    json_integer((json_int_t)(row->objects * row->bytes)));
	json_object_set_new(object, "runs", json_integer((json_int_t)bench->set->runs));
	json_object_set_new(object, "depth", json_integer((json_int_t)row->depth));
	json_object_set_new(object, "fio",
			    bench->has_fio ? json_string(bench->fio_version) : json_null());
	json_object_set_new(object, "fio_get_depth", count_or_null(row->fio_depth[0]));
	json_object_set_new(object, "fio_get_jobs", count_or_null(row->fio_jobs[0]));
	json_object_set_new(object, "fio_put_depth", count_or_null(row->fio_depth[1]));
	json_object_set_new(object, "fio_put_jobs", count_or_null(row->fio_jobs[1]));
	json_object_set_new(object, "cpu_ratio", figure_or_null(bench_store_cpu_ratio(row)));
	for (f = 0; f < BENCH_STORE_FIGURES; f++)
		json_object_set_new(object, names[f], figure_or_null(row->figures[f]));
	return object;
}

int bench_store_print_json(const struct bench_store *bench, const struct bench_store_row *rows,
			   uint32_t count, struct kvs_error *err)
{
	json_t *const array = json_array();
	uint32_t      i;

	for (i = 0; i < count; i++)
		json_array_append_new(array, row_json(bench, &rows[i]));
	return bench_print_json(array, err);
}
