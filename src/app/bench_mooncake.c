/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `kvstrata bench mooncake`: the mooncake store beside the SDK's own Python client, against one master
 * and one provider in one invocation.
 *
 * Both move the same sizes in the same batches from as many threads, in turns; a ratio is the median of
 * the runs' own ratios.  Ours is measured twice, with and without its seals: the SDK's client does not
 * look at what it read.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench_mooncake.h"
#include "base/units.h"
#include "conf/items.h"

#define SMALL_BYTES 4096u

/* Beside the objects of three sides: what the pool may not use, and what no side uses. */
#define POOL_SPARE_BYTES (UINT64_C(256) << 20)
#define POOL_SHARES 4u

#define SPEC_BYTES 2048

struct batches {
	uint32_t counts[BENCH_BATCHES_MAX];
	uint32_t count;
};

struct bench {
	const struct bench_mooncake_settings *set;
	struct bench_mooncake_report         *report;
	struct bench_sdk_home                 home;
	struct bench_cluster                  cluster;
	struct bench_sdk                      sdk;
};

/* --- what to measure -------------------------------------------------------------------------- */

static int add_batch(void *ctx, const char *item, struct kvs_error *err)
{
	struct batches *const batches = ctx;
	uint64_t              count;

	if (units_count(item, &count) < 0 || count < 1 || count > BENCH_BATCH_MAX) {
		return err_set(err, KVS_E_INVALID, "--batch: \"%.64s\" is out of range; use 1 to %u",
			       item, BENCH_BATCH_MAX);
	}
	if (batches->count == BENCH_BATCHES_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "--batch: \"%.64s\" is one too many; use at most %u", item,
			       BENCH_BATCHES_MAX);
	}
	batches->counts[batches->count++] = (uint32_t)count;
	return 0;
}

/* The rows, by size and then by batch. */
static int plan(const struct bench_mooncake_settings *set, struct bench_mooncake_report *report,
		struct kvs_error *err)
{
	struct batches batches = { .count = 0 };
	uint64_t       sizes[BENCH_SIZES_MAX];
	uint32_t       size_count = 0, i, k;
	int            rc = bench_read_sizes(set->bytes, sizes, &size_count, err);

	if (rc == 0)
		rc = items_each("--batch", set->batch, add_batch, &batches, err);
	if (rc < 0)
		return rc;
	for (k = 0; k < batches.count; k++) {
		for (i = 0; i < size_count; i++) {
			report->rows[i * batches.count + k] =
				(struct bench_mooncake_row){ sizes[i], batches.counts[k],
							     (uint32_t)set->threads, { { 0 } } };
		}
		report->small[k] = (struct bench_mooncake_row){ SMALL_BYTES, batches.counts[k], 1,
								{ { 0 } } };
	}
	report->row_count = size_count * batches.count;
	report->small_count = batches.count;
	return 0;
}

/* What all threads move at a time, and all objects, of the largest row. */
static void largest(const struct bench_mooncake_report *report, uint64_t *ret_window_bytes,
		    uint64_t *ret_set_bytes)
{
	uint32_t i;

	*ret_window_bytes = (uint64_t)SMALL_BYTES * BENCH_BATCH_MAX;
	*ret_set_bytes = 0;
	for (i = 0; i < report->row_count; i++) {
		const struct bench_mooncake_row *row = &report->rows[i];
		const uint64_t window = row->bytes * row->batch * row->threads;
		const uint64_t set = row->bytes * bench_row_objects(row);

		*ret_window_bytes = window > *ret_window_bytes ? window : *ret_window_bytes;
		*ret_set_bytes = set > *ret_set_bytes ? set : *ret_set_bytes;
	}
}

/* --- the measurement -------------------------------------------------------------------------- */

static void write_spec(const struct bench *bench, uint32_t threads, bool raw, char ret_spec[SPEC_BYTES])
{
	const struct bench_mooncake_settings *set = bench->set;

	snprintf(ret_spec, SPEC_BYTES, "mooncake:%s?lanes=%u&python=%s&prefix=%s%s%s%s%s",
		 bench->cluster.address, threads, set->python,
		 raw ? "kvstrata-bench-raw&format=raw" : "kvstrata-bench",
		 bench->cluster.http[0] ? "&metrics=" : "", bench->cluster.http,
		 set->agent ? "&agent=" : "", set->agent ? set->agent : "");
}

static int open_ours(const struct bench *bench, const struct bench_mooncake_row *row,
		     uint32_t blocks, bool raw, struct bench_ours *ours, struct kvs_error *err)
{
	char spec[SPEC_BYTES];

	write_spec(bench, row->threads, raw, spec);
	return bench_ours_open(ours, spec, row->bytes, blocks, err);
}

/* Rows of one size and of as many threads: the stores stay open. */
static int measure_rows(struct bench *bench, struct bench_mooncake_row *rows, uint32_t count,
			struct kvs_error *err)
{
	struct bench_sides sides = { .cluster = &bench->cluster, .sdk = &bench->sdk };
	uint32_t           blocks = 0, i;
	int                rc;

	for (i = 0; i < count; i++)
		blocks = rows[i].batch > blocks ? rows[i].batch : blocks;
	blocks *= rows->threads;
	rc = open_ours(bench, rows, blocks, false, &sides.verified, err);
	if (rc == 0)
		rc = open_ours(bench, rows, blocks, true, &sides.raw, err);
	if (rc == 0) {
		struct kvs_store_info info;

		sides.verified.store->ops->describe(sides.verified.store, &info);
		snprintf(bench->report->note, sizeof(bench->report->note), "%s", info.note);
	}
	for (i = 0; rc == 0 && i < count; i++)
		rc = bench_mooncake_measure(&sides, bench->set->runs, &rows[i], err);
	bench_ours_close(&sides.raw);
	bench_ours_close(&sides.verified);
	return rc;
}

static int measure_calls(struct bench *bench, struct kvs_error *err)
{
	char spec[SPEC_BYTES];
	int  rc;

	if (!bench->cluster.ours)
		return 0;
	/* Its threads would wait for a master that is paused. */
	bench_sdk_close(&bench->sdk);
	write_spec(bench, (uint32_t)bench->set->threads, false, spec);
	rc = bench_mooncake_exec(&bench->cluster, spec, (uint32_t)bench->set->threads,
				 bench->report->calls, err);
	bench->report->has_calls = rc == 0;
	return rc;
}

static int measure(struct bench *bench, struct kvs_error *err)
{
	struct bench_mooncake_report *const report = bench->report;
	const uint32_t                      batches = report->small_count;
	uint32_t                            i;
	int                                 rc = 0;

	for (i = 0; rc == 0 && i < report->row_count; i += batches)
		rc = measure_rows(bench, &report->rows[i], batches, err);
	if (rc == 0)
		rc = measure_rows(bench, report->small, report->small_count, err);
	return rc == 0 ? measure_calls(bench, err) : rc;
}

static int open_bench(struct bench *bench, struct kvs_error *err)
{
	const struct bench_mooncake_settings *const set = bench->set;
	uint64_t window_bytes, set_bytes, pool_bytes;
	int      rc;

	largest(bench->report, &window_bytes, &set_bytes);
	pool_bytes = set->master ? 0 : POOL_SHARES * set_bytes + POOL_SPARE_BYTES;
	rc = bench_check_memory("--batch", set->batch, pool_bytes + 3 * window_bytes, err);
	if (rc == 0)
		rc = bench_sdk_home_find(&bench->home, set->python, err);
	if (rc == 0)
		rc = bench_cluster_open(&bench->cluster, &bench->home, set->master, pool_bytes, err);
	return rc < 0 ? rc : bench_sdk_open(&bench->sdk, &bench->home, bench->cluster.address,
					    set->share ? 1 : set->threads, window_bytes, err);
}

static int bench_mooncake(const struct bench_mooncake_settings *set,
			  struct bench_mooncake_report *report, struct kvs_error *err)
{
	struct bench bench = { .set = set, .report = report };
	int          rc = plan(set, report, err);

	report->set = set;
	if (rc < 0)
		return rc;
	rc = open_bench(&bench, err);
	if (rc == 0)
		rc = measure(&bench, err);
	bench_sdk_close(&bench.sdk);
	bench_cluster_close(&bench.cluster);
	return rc == 0 ? bench_mooncake_print(report, err) : rc;
}

/* --- the command ------------------------------------------------------------------------------ */

static const struct conf_option options[] = {
	{ OPTION(bench_mooncake_settings, master), .type = CONF_TEXT, .metavar = "HOST:PORT",
	  .help = "a master that runs, with room in its pool; objects of ours are written there" },
	{ OPTION(bench_mooncake_settings, python), .type = CONF_TEXT, .metavar = "PATH",
	  .fallback = "python3", .help = "an interpreter that has the SDK's wheel" },
	{ OPTION(bench_mooncake_settings, agent), .type = CONF_TEXT, .metavar = "PATH",
	  .help = "the store's agent, kvstrata-mooncake-agent where it is not beside this program" },
	{ OPTION(bench_mooncake_settings, bytes), .type = CONF_TEXT, .list = true, .metavar = "LIST",
	  .fallback = "64KiB,1MiB", .help = "sizes of objects, commas between" },
	{ OPTION(bench_mooncake_settings, batch), .type = CONF_TEXT, .list = true, .metavar = "LIST",
	  .fallback = "16,64", .help = "objects a call, commas between" },
	{ OPTION(bench_mooncake_settings, threads), .type = CONF_COUNT, .metavar = "N",
	  .fallback = "2", .min = 1, .max = BENCH_LANES_MAX,
	  .help = "that call at once: of ours as many lanes, of the SDK as many clients" },
	{ OPTION(bench_mooncake_settings, share), .type = CONF_BOOL,
	  .help = "the SDK's threads share one client, as its users' do; else each has its own" },
	{ OPTION(bench_mooncake_settings, runs), .type = CONF_COUNT, .metavar = "N", .fallback = "11",
	  .min = 1, .max = BENCH_RUNS_MAX, .help = "how often to measure; the medians are printed" },
	{ OPTION(bench_mooncake_settings, json), .type = CONF_BOOL, .help = "print one JSON object" },
};

static int run(int argc, char **argv)
{
	static struct bench_mooncake_report report;
	struct bench_mooncake_settings      set = { 0 };
	struct kvs_error                    err;
	struct conf                        *conf;
	int status = app_configure(&bench_mooncake_command, argc, argv, &set, &conf);

	if (status != APP_DONE)
		return status;
	if (bench_mooncake(&set, &report, &err) < 0)
		status = app_fail(bench_mooncake_command.name, &err);
	conf_close(conf);
	return status;
}

const struct app_command bench_mooncake_command = {
	.name = "bench mooncake",
	.summary = "objects in a Mooncake cluster, beside the SDK's own client",
	.usage = "[FLAGS]",
	.text = "Measures the mooncake store and the SDK's Python client against one master and one\n"
		"provider, in turns.\n"
		"\n"
		"Both move objects of the same size in the same batches, from as many threads, out of and\n"
		"into registered memory.  A put creates: what is there is removed before, untimed, on either\n"
		"side.  \"raw\" is ours without seals, format=raw; otherwise each put computes a checksum and\n"
		"each get verifies key, length and checksum, which the SDK's client does not.  A ratio is\n"
		"the median of each run's own.\n"
		"\n"
		"Small objects show what a call costs by itself: \"agent\" is how much longer a batch takes\n"
		"through the store and its agent, a process of its own, than in the SDK's client.\n"
		"\n"
		"Then an executor is asked for more than it can do while the master is up, is paused, and is\n"
		"down: submit and poll never wait for it.  With --master this part is left out.\n"
		"\n"
		"Without --master it starts a master and a provider on the loopback and ends them; the\n"
		"provider is a process of its own, and connections are kept and used again.  All of it\n"
		"shares this machine's processors and goes through TCP: this says nothing about RDMA.\n"
		"Needs the wheel mooncake-transfer-engine-non-cuda where --python finds it.\n",
	.examples = "  kvstrata bench mooncake --python ~/mooncake/bin/python\n"
		    "  kvstrata bench mooncake --bytes 256KiB --batch 1,16 --threads 2\n"
		    "  kvstrata bench mooncake --master 10.0.0.5:50051 --json\n",
	.options = options,
	.option_count = ARRAY_COUNT(options),
	.settings_bytes = sizeof(struct bench_mooncake_settings),
	.run = run,
};
