/* SPDX-License-Identifier: Apache-2.0 */
/* `kvstrata bench manager`: the command and its report. */
#include "app/bench_manager.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "os/os.h"

#define FETCH_AIM "at least 0.9"

struct report {
	struct bench_manager_rate  rates[BENCH_MANAGER_CALLS];
	struct bench_manager_fetch fetches[BENCH_SIZES_MAX * BENCH_MANAGER_STORES];
	uint32_t                   fetch_count;
};

static const struct {
	const char *name, *label, *aim;
} calls[BENCH_MANAGER_CALLS] = {
	[BENCH_FILL] = { "fill", "reserve and finish, filling", "above 12000000" },
	[BENCH_REPLACE] = { "replace", "reserve and finish, with eviction", "above 6000000" },
	[BENCH_LOCK] = { "lock", "lock and unlock", "" },
	[BENCH_HIT] = { "hit", "prefetch of what Host has", "" },
};

static const char *const store_names[BENCH_MANAGER_STORES] = { "nil", "mem", "strata" };

/* --- doors ------------------------------------------------------------------------------------ */

int bench_door_open(struct bench_door *door, const struct kvs_options *options, struct kvs_error *err)
{
	int rc = kvs_open(options, &door->kvs, err);

	if (rc < 0) {
		door->kvs = NULL;
		return rc;
	}
	rc = kvs_client_open(door->kvs, &door->me, err);
	if (rc < 0)
		(void)bench_door_close(door, NULL);
	return rc;
}

int bench_door_close(struct bench_door *door, struct kvs_error *err)
{
	const int rc = kvs_close(door->kvs);

	door->kvs = NULL;
	return rc < 0 ? err_set(err, rc, "close: %s", kvs_strerror(rc)) : 0;
}

/* --- for people ------------------------------------------------------------------------------- */

static void print_calls(const struct bench_manager_settings *set, const struct report *report)
{
	int call;

	printf("door B, one thread, batches of %" PRIu64 ", %" PRIu64 " objects in Host; medians of %" PRIu64
	       " runs\n\n  %-34s %14s %14s\n", set->batch, set->objects, set->runs,
	       "keys a second of CPU time", "its own", "all threads'");
	for (call = 0; call < BENCH_MANAGER_CALLS; call++) {
		char own[UNITS_TEXT_BYTES], all[UNITS_TEXT_BYTES];

		printf("  %-34s %14s %14s", calls[call].label,
		       units_format_count((uint64_t)report->rates[call].thread, own),
		       units_format_count((uint64_t)report->rates[call].process, all));
		printf(calls[call].aim[0] ? "   aim: %s\n" : "%s\n", calls[call].aim);
	}
}

static void print_fetches(const struct report *report)
{
	uint32_t i;

	printf("\n  %-22s %9s %12s %12s %12s %8s\n", "prefetches", "GB/s", "keys a second", "CPU us a key",
	       "bench store", "ratio");
	for (i = 0; i < report->fetch_count; i++) {
		const struct bench_manager_fetch *const row = &report->fetches[i];
		char                                    size[UNITS_TEXT_BYTES], keys[UNITS_TEXT_BYTES];

		printf("  %-8s %13s %9.2f %13s %12.2f", store_names[row->store],
		       units_format_size(row->bytes, size), row->gb_s,
		       units_format_count((uint64_t)row->keys_s, keys), row->cpu_us);
		if (row->store == BENCH_STRATA)
			printf(" %7.2f GB/s %8.2f   aim: " FETCH_AIM, row->pass_gb_s, row->pass_ratio);
		putchar('\n');
	}
}

/* --- for machines ----------------------------------------------------------------------------- */

static int print_json(const struct bench_manager_settings *set, const struct report *report,
		      struct kvs_error *err)
{
	json_t *const array = json_array();
	uint32_t      i;

	for (i = 0; i < BENCH_MANAGER_CALLS; i++) {
		json_array_append_new(array, json_pack("{s:s, s:I, s:f, s:f}", "call", calls[i].name, "batch",
						       (json_int_t)set->batch, "keys_per_s_core",
						       report->rates[i].thread, "keys_per_s_core_all",
						       report->rates[i].process));
	}
	for (i = 0; i < report->fetch_count; i++) {
		const struct bench_manager_fetch *const row = &report->fetches[i];
		json_t *const object = json_pack("{s:s, s:s, s:I, s:I, s:f, s:f, s:f}", "call", "prefetch",
						 "store", store_names[row->store], "bytes",
						 (json_int_t)row->bytes, "objects", (json_int_t)row->objects,
						 "gb_s", row->gb_s, "keys_per_s", row->keys_s, "cpu_us_key",
						 row->cpu_us);

		if (row->store == BENCH_STRATA) {
			json_object_set_new(object, "bench_store_gb_s", json_real(row->pass_gb_s));
			json_object_set_new(object, "ratio", json_real(row->pass_ratio));
		}
		json_array_append_new(array, object);
	}
	return bench_print_json(array, err);
}

/* --- the bench -------------------------------------------------------------------------------- */

static int measure(const struct bench_manager_settings *set, const uint64_t *sizes, uint32_t count,
		   struct report *report, struct kvs_error *err)
{
	struct bench_place place;
	struct bench_watch watch;
	uint64_t           moved = 0, largest = 0;
	uint32_t           i;
	int                rc;

	for (i = 0; i < count; i++) {
		const uint64_t disk = 3 * bench_manager_objects(set, sizes[i]) * sizes[i];

		moved += bench_manager_moved(set, sizes[i]);
		largest = disk > largest ? disk : largest;
	}
	rc = bench_place_open(&place, set->path, largest + (UINT64_C(128) << 20), "--moved", err);
	if (rc < 0)
		return rc;
	bench_watch_start(&watch, "measuring", moved);
	rc = bench_manager_host(set, &watch, report->rates, err);
	for (i = 0; rc == 0 && i < count; i++) {
		rc = bench_manager_fetch(set, &watch, &place, sizes[i], &report->fetches[report->fetch_count],
					 err);
		report->fetch_count += BENCH_MANAGER_STORES;
		/* The next size has a file of its own geometry. */
		(void)os_file_remove(place.store);
	}
	bench_watch_end(&watch);
	bench_place_close(&place);
	return rc;
}

static int bench_manager(struct bench_manager_settings *set, struct kvs_error *err)
{
	static struct report report;
	uint64_t             sizes[BENCH_SIZES_MAX];
	uint32_t             count;
	int                  rc = bench_read_sizes(set->bytes, sizes, &count, err);

	if (rc < 0)
		return rc;
	/* Whole batches. */
	set->objects -= set->objects % set->batch;
	rc = measure(set, sizes, count, &report, err);
	if (rc < 0)
		return rc;
	if (set->json)
		return print_json(set, &report, err);
	print_calls(set, &report);
	print_fetches(&report);
	return app_flush(err);
}

/* --- the command ------------------------------------------------------------------------------ */

static const struct conf_option options[] = {
	{ OPTION(bench_manager_settings, path), .type = CONF_TEXT, .metavar = "DIR", .fallback = "/var/tmp",
	  .help = "where to make the strata file; it is removed at the end" },
	{ OPTION(bench_manager_settings, bytes), .type = CONF_TEXT, .list = true, .metavar = "LIST",
	  .fallback = "64KiB,1MiB", .help = "sizes of objects to prefetch, commas between" },
	{ OPTION(bench_manager_settings, objects), .type = CONF_COUNT, .metavar = "N", .fallback = "32768",
	  .min = 4096, .max = 1 << 22, .help = "in Host, 8 KiB each, for the calls without a store" },
	{ OPTION(bench_manager_settings, moved), .type = CONF_SIZE, .metavar = "SIZE", .fallback = "auto",
	  .word = "auto", .word_value = 0, .min = 8192, .max = 1e12,
	  .help = "what a pass prefetches; auto: 256 MiB, and no fewer than 128 objects" },
	{ OPTION(bench_manager_settings, batch), .type = CONF_COUNT, .metavar = "KEYS", .fallback = "64",
	  .min = 1, .max = KVS_BATCH_MAX, .help = "keys of a call; of large objects a prefetch has fewer" },
	{ OPTION(bench_manager_settings, runs), .type = CONF_COUNT, .metavar = "N", .fallback = "5", .min = 1,
	  .max = BENCH_RUNS_MAX, .help = "how often to measure; the medians are printed" },
	{ OPTION(bench_manager_settings, json), .type = CONF_BOOL,
	  .help = "print a JSON array, one object for each line" },
};

static int run(int argc, char **argv)
{
	struct bench_manager_settings set = { 0 };
	struct kvs_error              err;
	struct conf                  *conf;
	int status = app_configure(&bench_manager_command, argc, argv, &set, &conf);

	if (status != APP_DONE)
		return status;
	if (bench_manager(&set, &err) < 0)
		status = app_fail(bench_manager_command.name, &err);
	conf_close(conf);
	return status;
}

const struct app_command bench_manager_command = {
	.name = "bench manager",
	.usage = "[FLAGS]",
	.summary = "objects by key: reserve, finish, lock and prefetch through the public door",
	.text = "Measures door B as a program of yours calls it, from one thread, in batches.\n"
		"\n"
		"Reserve and finish: first into an empty Host, then into a full one, where each object\n"
		"evicts another.  No payload is written, and no store is attached.  \"Its own\" divides by\n"
		"the CPU time of the thread that calls; \"all threads'\" by that of the process, the store\n"
		"controller among them.\n"
		"\n"
		"Prefetches: what a store has and Host lacks, eight under way, each read and released.\n"
		"nil does nothing: it shows what controllers, executor and Host cost.  Of the strata file\n"
		"the ratio is to what `bench store` gets from the same objects of the same file with one\n"
		"worker too; both take turns, and the ratio is the median of the runs' own.\n",
	.examples = "  kvstrata bench manager\n"
		    "  kvstrata bench manager --batch 1 --runs 11\n"
		    "  kvstrata bench manager --path /mnt/nvme --bytes 1MiB --json\n",
	.options = options,
	.option_count = ARRAY_COUNT(options),
	.settings_bytes = sizeof(struct bench_manager_settings),
	.run = run,
};
