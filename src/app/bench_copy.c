/* SPDX-License-Identifier: Apache-2.0 */
/* `kvstrata bench copy`: the copy engine of a machine without accelerator beside memcpy. */
#include "app/bench_copy.h"

#include <assert.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "app/bench.h"
#include "base/units.h"
#include "device/copier.h"

/* Of the smallest blocks as many as the engine has rows for at most. */
#define SET_BYTES_MAX (INT64_C(1) << 40)
static_assert(SET_BYTES_MAX / 4096 <= COPIER_ROWS_MAX, "every set has a row for each block");

static const char *const names[BENCH_COPY_FIGURES] = {
	[H2D_RATIO] = "h2d_ratio",          [D2H_RATIO] = "d2h_ratio",
	[H2D] = "h2d_gb_s",                 [D2H] = "d2h_gb_s",
	[H2D_MEMCPY] = "memcpy_h2d_gb_s",   [D2H_MEMCPY] = "memcpy_d2h_gb_s",
	[H2D_WHOLE] = "whole_h2d_gb_s",     [D2H_WHOLE] = "whole_d2h_gb_s",
};

/* --- the report ------------------------------------------------------------------------------- */

/* What is used of the set: whole blocks only. */
static uint64_t used_bytes(const struct bench_copy_row *row)
{
	return row->blocks * row->bytes;
}

static void print(const struct bench_copy *set, const struct bench_copy_row *rows, uint32_t count)
{
	char     size[UNITS_TEXT_BYTES], used[UNITS_TEXT_BYTES];
	uint32_t i;

	printf("copies by the CPU engine, runs: %" PRIu64 "; medians, all blocks verified\n\n"
	       "  %-8s  %-11s  %-7s  %9s  %7s  %6s  %6s  %9s  %7s  %6s  %6s\n",
	       set->runs, "bytes", "a side", "layout", "H2D GB/s", "memcpy", "ratio", "whole",
	       "D2H GB/s", "memcpy", "ratio", "whole");
	for (i = 0; i < count; i++) {
		const double *f = rows[i].figures;

		printf("  %-8s  %-11s  %-7s  %9.2f  %7.2f  %6.2f  %6.2f  %9.2f  %7.2f  %6.2f  %6.2f\n",
		       units_format_size(rows[i].bytes, size),
		       units_format_size(used_bytes(&rows[i]), used),
		       rows[i].gather ? "gather" : "direct", f[H2D], f[H2D_MEMCPY], f[H2D_RATIO],
		       f[H2D_WHOLE], f[D2H], f[D2H_MEMCPY], f[D2H_RATIO], f[D2H_WHOLE]);
	}
	printf("\n  aim: ratios of at least 0.9\n");
}

static int print_json(const struct bench_copy *set, const struct bench_copy_row *rows, uint32_t count,
		      struct kvs_error *err)
{
	json_t *const array = json_array();
	uint32_t      i;
	int           f;

	for (i = 0; i < count; i++) {
		json_t *const object = json_object();

		json_object_set_new(object, "bytes", json_integer((json_int_t)rows[i].bytes));
		json_object_set_new(object, "layout",
				    json_string(rows[i].gather ? "gather" : "direct"));
		json_object_set_new(object, "set_bytes", json_integer((json_int_t)used_bytes(&rows[i])));
		json_object_set_new(object, "runs", json_integer((json_int_t)set->runs));
		for (f = 0; f < BENCH_COPY_FIGURES; f++)
			json_object_set_new(object, names[f], json_real(rows[i].figures[f]));
		json_array_append_new(array, object);
	}
	return bench_print_json(array, err);
}

static int measure_all(const struct bench_copy *set, struct bench_copy_row *rows, uint32_t count,
		       struct kvs_error *err)
{
	uint32_t i;
	int      rc = 0;

	for (i = 0; rc == 0 && i < count; i++)
		rc = bench_copy_measure(set, &rows[i], err);
	if (rc < 0)
		return rc;
	if (set->json)
		return print_json(set, rows, count, err);
	print(set, rows, count);
	return 0;
}

/* --- the command ------------------------------------------------------------------------------ */

static int check_set(const struct bench_copy *set, const struct bench_copy_row *row,
		     struct kvs_error *err)
{
	char size[UNITS_TEXT_BYTES], value[UNITS_TEXT_BYTES];

	if (row->blocks < 2) {
		return err_set(err, KVS_E_INVALID,
			       "--set: \"%s\" is less than two blocks of %s; use more, or smaller --bytes",
			       units_exact_size(set->set, value), units_exact_size(row->bytes, size));
	}
	return bench_check_memory("--set", units_exact_size(set->set, value),
				  bench_copy_memory_bytes(row), err);
}

/* Two rows a size. */
static int read_rows(const struct bench_copy *set, struct bench_copy_row *ret_rows, uint32_t *ret_count,
		     struct kvs_error *err)
{
	uint64_t sizes[BENCH_SIZES_MAX];
	uint32_t count, i;
	int      rc = bench_read_sizes(set->bytes, sizes, &count, err);

	for (i = 0; rc == 0 && i < count; i++) {
		struct bench_copy_row row = { .bytes = sizes[i],
					      .blocks = (uint32_t)(set->set / sizes[i]) };

		rc = check_set(set, &row, err);
		ret_rows[2 * i] = row;
		row.gather = true;
		ret_rows[2 * i + 1] = row;
	}
	if (rc == 0)
		*ret_count = 2 * count;
	return rc;
}

static const struct conf_option options[] = {
	{ OPTION(bench_copy, bytes), .type = CONF_TEXT, .list = true, .metavar = "LIST",
	  .fallback = "64KiB,1MiB,4MiB", .help = "sizes of blocks, commas between" },
	{ OPTION(bench_copy, set), .type = CONF_SIZE, .metavar = "SIZE", .fallback = "512MiB",
	  .min = 8192, .max = SET_BYTES_MAX,
	  .help = "whole blocks on either side; more than the last-level cache holds" },
	{ OPTION(bench_copy, runs), .type = CONF_COUNT, .metavar = "N", .fallback = "5", .min = 1,
	  .max = BENCH_RUNS_MAX, .help = "how often to measure; the medians are printed" },
	{ OPTION(bench_copy, json), .type = CONF_BOOL,
	  .help = "print a JSON array, one object for each size and layout" },
};

static int run(int argc, char **argv)
{
	struct bench_copy     set = { 0 };
	struct bench_copy_row rows[2 * BENCH_SIZES_MAX];
	struct kvs_error      err;
	struct conf          *conf;
	uint32_t              count = 0;
	int                   rc, status = app_configure(&bench_copy_command, argc, argv, &set, &conf);

	if (status != APP_DONE)
		return status;
	rc = read_rows(&set, rows, &count, &err);
	if (rc == 0)
		rc = measure_all(&set, rows, count, &err);
	if (rc < 0)
		status = app_fail(bench_copy_command.name, &err);
	conf_close(conf);
	return status;
}

const struct app_command bench_copy_command = {
	.name = "bench copy",
	.summary = "copies between Device and Host memory, beside memcpy",
	.usage = "[FLAGS]",
	.text = "Measures the copy engine of a machine without accelerator and memcpy on the same blocks,\n"
		"in turns.\n"
		"\n"
		"H2D loads every Host block into its Device block, D2H saves it back; the order on the Host\n"
		"is shuffled.  In the direct layout a block is one piece on either side; in the gather layout\n"
		"it is one piece on the Host and 64 on the Device, the keys and values of 32 layers.\n"
		"\n"
		"The engine copies on a thread of its own, batches of 16 MiB, from the first submission to\n"
		"the last fence.  memcpy is called once a piece.  \"whole\" is memcpy of unbroken blocks of\n"
		"that size, beside which pieces of 1 KiB look poor whoever copies them.  A ratio is the\n"
		"median of each run's own.\n",
	.examples = "  kvstrata bench copy\n"
		    "  kvstrata bench copy --bytes 256KiB --set 1GiB --runs 11\n"
		    "  kvstrata bench copy --json\n",
	.options = options,
	.option_count = ARRAY_COUNT(options),
	.settings_bytes = sizeof(struct bench_copy),
	.run = run,
};
