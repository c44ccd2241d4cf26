/* SPDX-License-Identifier: Apache-2.0 */
/* `kvstrata bench store`: a strata file beside fio, on one file system in one invocation. */
#include "app/bench_store.h"

#include <stdio.h>

#include "app/bench_pass.h"
#include "base/prng.h"
#include "base/units.h"
#include "os/os.h"

/* Larger than the caches of most machines. */
#define COLD_BYTES (UINT64_C(256) << 20)

/* --- what is asked for ------------------------------------------------------------------------ */

/* Two transfers a pass are the least that two jobs of fio can share. */
static int check_moved(const struct bench_store_settings *set, const struct bench_store_row *row,
		       struct kvs_error *err)
{
	char moved[UNITS_TEXT_BYTES], size[UNITS_TEXT_BYTES];

	if (set->moved == 0 || set->moved >= 2 * row->bytes)
		return 0;
	return err_set(err, KVS_E_INVALID,
		       "--moved: \"%s\" is less than two objects of %s; use more, or smaller --bytes",
		       units_exact_size(set->moved, moved), units_exact_size(row->bytes, size));
}

/* The window through which rows move, and what the bare checksum reads. */
static int check_depth(const struct bench_store_row *row, struct kvs_error *err)
{
	char depth[UNITS_TEXT_BYTES];

	snprintf(depth, sizeof(depth), "%u", row->depth);
	return bench_check_memory("--depth", depth,
				  arena_part_bytes(row->bytes, 2 * row->depth) + COLD_BYTES, err);
}

static int plan(struct bench_store *bench, struct bench_store_row *rows, uint32_t count,
		uint64_t *ret_disk_bytes, uint64_t *ret_moved_bytes, struct kvs_error *err)
{
	uint32_t i;

	*ret_disk_bytes = *ret_moved_bytes = 0;
	for (i = 0; i < count; i++) {
		uint64_t disk_bytes;
		int      rc = check_moved(bench->set, &rows[i], err);

		if (rc < 0)
			return rc;
		bench_store_plan(bench, &rows[i]);
		rc = check_depth(&rows[i], err);
		if (rc < 0)
			return rc;
		disk_bytes = rows[i].capacity + 2 * rows[i].objects * rows[i].bytes;
		*ret_disk_bytes = disk_bytes > *ret_disk_bytes ? disk_bytes : *ret_disk_bytes;
		*ret_moved_bytes += bench_store_row_bytes(bench, &rows[i]);
	}
	return 0;
}

/* --- the bench -------------------------------------------------------------------------------- */

static int open_cold(struct bench_store *bench, struct kvs_error *err)
{
	void    *memory;
	uint64_t i;
	int      rc = os_pages_map(COLD_BYTES, &memory);

	if (rc < 0)
		return err_set(err, rc, "memory: %s", kvs_strerror(rc));
	(void)os_pages_advise_huge(memory, COLD_BYTES);
	for (i = 0; i < COLD_BYTES / sizeof(uint64_t); i++)
		((uint64_t *)memory)[i] = mix64(i);
	bench->cold = memory;
	bench->cold_bytes = COLD_BYTES;
	return 0;
}

static int bench_store(struct bench_store *bench, struct bench_store_row *rows, uint32_t count,
		       struct kvs_error *err)
{
	uint64_t disk_bytes, moved_bytes;
	uint32_t i;
	int      rc;

	bench->has_fio = bench_fio_find(bench->fio_version, sizeof(bench->fio_version));
	rc = plan(bench, rows, count, &disk_bytes, &moved_bytes, err);
	if (rc == 0)
		rc = bench_place_open(&bench->place, bench->set->path, disk_bytes, "--moved", err);
	if (rc < 0)
		return rc;
	bench_watch_start(&bench->watch, "measuring", moved_bytes);
	rc = open_cold(bench, err);
	for (i = 0; rc == 0 && i < count; i++)
		rc = bench_store_measure(bench, &rows[i], err);
	bench_watch_end(&bench->watch);
	bench_place_close(&bench->place);
	if (bench->cold)
		os_pages_unmap(bench->cold, bench->cold_bytes);
	if (rc < 0)
		return rc;
	if (bench->set->json)
		return bench_store_print_json(bench, rows, count, err);
	bench_store_print(bench, rows, count);
	return app_flush(err);
}

/* --- the command ------------------------------------------------------------------------------ */

static const struct conf_option options[] = {
	{ OPTION(bench_store_settings, path), .type = CONF_TEXT, .metavar = "DIR",
	  .fallback = "/var/tmp", .help = "where to make the files; they are removed at the end" },
	{ OPTION(bench_store_settings, bytes), .type = CONF_TEXT, .list = true, .metavar = "LIST",
	  .fallback = "64KiB,1MiB,4MiB", .help = "sizes of objects, commas between" },
	{ OPTION(bench_store_settings, moved), .type = CONF_SIZE, .metavar = "SIZE",
	  .fallback = "auto", .word = "auto", .word_value = 0, .min = 8192, .max = 1e12,
	  .help = "what a pass puts or gets; auto: 1 GiB, and no fewer than 1,024 objects" },
	{ OPTION(bench_store_settings, runs), .type = CONF_COUNT, .metavar = "N", .fallback = "5",
	  .min = 1, .max = BENCH_RUNS_MAX,
	  .help = "how often to measure; the medians are printed" },
	{ OPTION(bench_store_settings, depth), .type = CONF_COUNT, .metavar = "ROWS",
	  .fallback = "auto", .word = "auto", .word_value = 0, .min = 1, .max = BENCH_DEPTH_MAX,
	  .help = "rows offered to the store at once; auto: 256, or 512 MiB of them" },
	{ OPTION(bench_store_settings, evict), .type = CONF_BOOL,
	  .help = "measure puts into a full store, too" },
	{ OPTION(bench_store_settings, json), .type = CONF_BOOL,
	  .help = "print a JSON array, one object for each size" },
};

static int run(int argc, char **argv)
{
	struct bench_store_settings set = { 0 };
	/* What is in doubt at the end stays reachable for the life of the process. */
	static struct bench_store bench;
	uint64_t                  sizes[BENCH_SIZES_MAX];
	struct bench_store_row    rows[BENCH_SIZES_MAX];
	struct kvs_error          err;
	struct conf              *conf;
	uint32_t                  count = 0, i;
	int rc, status = app_configure(&bench_store_command, argc, argv, &set, &conf);

	if (status != APP_DONE)
		return status;
	bench.set = &set;
	rc = bench_read_sizes(set.bytes, sizes, &count, &err);
	for (i = 0; i < count; i++)
		rows[i] = (struct bench_store_row){ .bytes = sizes[i] };
	if (rc == 0)
		rc = bench_store(&bench, rows, count, &err);
	if (rc < 0)
		status = app_fail(bench_store_command.name, &err);
	conf_close(conf);
	return status;
}

const struct app_command bench_store_command = {
	.name = "bench store",
	.summary = "objects in a strata file, beside fio",
	.usage = "[FLAGS]",
	.text = "Measures puts and gets of a strata file and fio on one file system, in turns.\n"
		"\n"
		"One thread keeps the store full of rows; every get is verified.  Objects are put in\n"
		"order and read back in that order.  fio reads the store's own file and writes one of\n"
		"the same length, with io_uring, registered buffers and files, O_DIRECT, and transfers\n"
		"of the same size; of queues of 32 and 128 and one and two jobs it gets what is fastest\n"
		"in a first round.\n"
		"Either side goes first in turns, and a ratio is the median of the runs' own.\n"
		"\n"
		"Both files were written from end to end before anything counts: fio's once, ours by\n"
		"puts of as much as it holds, which is twice what a pass moves.  A put creates, so the\n"
		"store is purged, untimed, before each pass of puts: its file stays as it is.\n"
		"\n"
		"CPU is that of the whole process, against fio's jobs and a bare XXH3-64 of as many\n"
		"bytes, from memory larger than the caches, together.  Latencies are from the hand-over\n"
		"of a row until its answer; fio's, from submission to completion.  \"synced\" are puts\n"
		"that survive power loss when they are answered, where the store has such puts.\n"
		"\n"
		"Takes a minute or two.  Without fio (Debian: fio) it prints our figures only.\n",
	.examples = "  kvstrata bench store\n"
		    "  kvstrata bench store --path /mnt/nvme --bytes 1MiB --moved 8GiB\n"
		    "  kvstrata bench store --evict --json\n",
	.options = options,
	.option_count = ARRAY_COUNT(options),
	.settings_bytes = sizeof(struct bench_store_settings),
	.run = run,
};
