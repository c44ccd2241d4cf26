/* SPDX-License-Identifier: Apache-2.0 */
/* `kvstrata bench NAME`: the table of benches, and what they share. */
#include "app/bench.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "conf/items.h"
#include "os/os.h"

static const struct app_command *const benches[] = {
	&bench_copy_command,
	&bench_exec_command,
	&bench_manager_command,
	&bench_match_command,
	&bench_mooncake_command,
	&bench_open_command,
	&bench_resp_command,
	&bench_store_command,
	&bench_tick_command,
	NULL,
};

int bench_print_json(json_t *report, struct kvs_error *err)
{
	const int failed = !report || json_dumpf(report, stdout,
						 JSON_INDENT(2) | JSON_REAL_PRECISION(6)) < 0;

	json_decref(report);
	putchar('\n');
	if (failed || fflush(stdout) != 0)
		return err_set(err, -EIO, "standard output: cannot write the report");
	return 0;
}

int bench_check_memory(const char *flag, const char *value, uint64_t need_bytes,
		       struct kvs_error *err)
{
	const uint64_t had_bytes = os_memory_available_bytes();
	char           need[UNITS_TEXT_BYTES], had[UNITS_TEXT_BYTES];

	if (need_bytes <= had_bytes)
		return 0;
	return err_set(err, KVS_E_INVALID,
		       "%s: \"%s\" takes %s of memory, and %s are available; use less", flag, value,
		       units_format_size(need_bytes, need), units_format_size(had_bytes, had));
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double bench_median(double *figures, uint32_t count)
{
	KVS_ASSERT_CMP(count, >, 0);
	qsort(figures, count, sizeof(*figures), compare);
	return count % 2 ? figures[count / 2]
			 : (figures[count / 2 - 1] + figures[count / 2]) / 2;
}

struct sizes {
	uint64_t bytes[BENCH_SIZES_MAX];
	uint32_t count;
};

static int add_size(void *ctx, const char *item, struct kvs_error *err)
{
	struct sizes *const sizes = ctx;
	uint64_t            bytes;
	uint32_t            i;

	if (units_size(item, &bytes) < 0)
		return err_set(err, KVS_E_INVALID, "--bytes: \"%.64s\" " UNITS_SIZE_RULE, item);
	if (bytes < 4096 || bytes > BENCH_BYTES_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "--bytes: \"%.64s\" is out of range; use 4KiB to 64MiB", item);
	}
	if (bytes % 4096 != 0) {
		return err_set(err, KVS_E_INVALID, "--bytes: \"%.64s\" is not a multiple of 4KiB",
			       item);
	}
	for (i = 0; i < sizes->count; i++) {
		if (sizes->bytes[i] == bytes)
			return err_set(err, KVS_E_INVALID, "--bytes: \"%.64s\" is given twice", item);
	}
	if (sizes->count == BENCH_SIZES_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "--bytes: \"%.64s\" is one too many; use at most %u sizes", item,
			       BENCH_SIZES_MAX);
	}
	sizes->bytes[sizes->count++] = bytes;
	return 0;
}

int bench_read_sizes(const char *list, uint64_t *ret_sizes, uint32_t *ret_count,
		     struct kvs_error *err)
{
	struct sizes sizes = { .count = 0 };
	const int    rc = items_each("--bytes", list, add_size, &sizes, err);

	if (rc < 0)
		return rc;
	memcpy(ret_sizes, sizes.bytes, sizes.count * sizeof(*ret_sizes));
	*ret_count = sizes.count;
	return 0;
}

static int run(int argc, char **argv)
{
	return app_refuse_part(&bench_command, "bench", argc, argv);
}

const struct app_command bench_command = {
	.name = "bench",
	.usage = "NAME [FLAGS]",
	.summary = "measures a part of the system on this machine",
	.example = "kvstrata bench exec",
	.text = "Measures one part of the system, several times, and prints medians.\n"
		"`kvstrata bench NAME --help` explains each.\n",
	.examples = "  kvstrata bench exec\n"
		    "  kvstrata bench exec --json\n"
		    "  kvstrata bench copy --runs 11\n"
		    "  kvstrata bench resp --bytes 64KiB\n"
		    "  kvstrata bench store --path /mnt/nvme\n",
	.parts = benches,
	.run = run,
};
