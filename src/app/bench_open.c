/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `kvstrata bench open`: what it costs to open a strata file that holds many objects, and what each
 * of them costs in memory from then on.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "app/bench.h"
#include "app/bench_pass.h"
#include "app/bench_place.h"
#include "base/units.h"
#include "os/os.h"
#include "store/store.h"

/*
 * A store that is just full of them, as one that is in use would be: beside an object its header and
 * its share of a summary, beside them all a few segments that are open or kept free.
 */
#define ROOM_BESIDE_OBJECT UINT64_C(192)
#define SEGMENTS_BESIDE 2u
#define SEGMENT_BYTES (UINT64_C(32) << 20)
#define SEGMENT_OBJECTS 33u

/* Rows under way while the file is filled, and their bytes at most. */
#define DEPTH 256u
#define WINDOW_BYTES (UINT64_C(256) << 20)

#define OBJECTS_MAX (1u << 26)

struct settings {
	const char *path;
	uint64_t    objects;
	uint64_t    payload;
	uint64_t    runs;
	bool        json;
};

struct bench {
	const struct settings *set;
	struct bench_place     place;
	struct bench_watch     watch;
	struct bench_window    window;
	uint64_t               capacity;
	char                   spec[2400];
	double                 cpu_s[BENCH_RUNS_MAX], wall_s[BENCH_RUNS_MAX];
	double                 memory_bytes; /* an object */
	uint64_t               file_bytes;
};

static int fill(struct bench *bench, struct kvs_error *err)
{
	const uint64_t            fits = WINDOW_BYTES / bench->set->payload;
	struct bench_pass         pass = { .window = &bench->window, .watch = &bench->watch,
					   .objects = bench->set->objects, .is_put = true };
	struct bench_pass_figures figures;
	int rc = bench_window_open(&bench->window, bench->set->payload,
				   fits < DEPTH ? (uint32_t)fits : DEPTH, err);

	if (rc == 0)
		rc = bench_store_open(bench->spec, &bench->window, &pass.store, err);
	if (rc == 0)
		rc = bench_pass(&pass, &figures, err);
	bench_store_close(pass.store, &bench->window);
	return rc;
}

static int measure(struct bench *bench, uint64_t run, struct kvs_error *err)
{
	const uint64_t        begin_ns = os_now_ns(), begin_cpu_ns = os_process_cpu_ns();
	struct kvs_store_info info = { 0 };
	struct kvs_store     *store;
	const int rc = store_open(bench->spec, bench->set->payload, "lru", &store, err);

	bench->cpu_s[run] = (double)(os_process_cpu_ns() - begin_cpu_ns) / 1e9;
	bench->wall_s[run] = (double)(os_now_ns() - begin_ns) / 1e9;
	if (rc < 0)
		return rc;
	store->ops->describe(store, &info);
	(void)store->ops->close(store);
	if (info.object_count != bench->set->objects) {
		return err_set(err, -EIO,
			       "store: %" PRIu64 " objects were put, and %" PRIu64
			       " are there after an open",
			       bench->set->objects, info.object_count);
	}
	bench->memory_bytes = (double)info.memory_bytes / (double)info.object_count;
	return bench_watch_tick(&bench->watch, 0, err);
}

static int measure_all(struct bench *bench, struct kvs_error *err)
{
	uint64_t run;
	int      fd, rc = fill(bench, err);

	for (run = 0; rc == 0 && run < bench->set->runs; run++)
		rc = measure(bench, run, err);
	fd = rc < 0 ? rc : os_file_open(bench->place.store, 0);
	if (rc == 0)
		rc = fd < 0 ? fd : os_file_size(fd, &bench->file_bytes);
	if (fd >= 0)
		os_close(fd);
	return rc;
}

/* --- the report ------------------------------------------------------------------------------- */

static void print(const struct bench *bench, double cpu_s, double wall_s)
{
	char objects[UNITS_TEXT_BYTES], payload[UNITS_TEXT_BYTES], file[UNITS_TEXT_BYTES];

	printf("open of a strata file with %s objects of %s, file: %s; medians of %" PRIu64
	       " runs\n\n",
	       units_format_count(bench->set->objects, objects),
	       units_format_size(bench->set->payload, payload),
	       units_format_size(bench->file_bytes, file), bench->set->runs);
	printf("  %-24s %10.3f   aim: below 0.3 for 1,000,000\n", "CPU, s", cpu_s);
	printf("  %-24s %10.3f\n", "time, s", wall_s);
	printf("  %-24s %10.1f   aim: at most 64 for 1,000,000\n", "memory, bytes an object",
	       bench->memory_bytes);
}

static int print_json(const struct bench *bench, double cpu_s, double wall_s,
		      struct kvs_error *err)
{
	json_t *const object = json_pack("{s:I, s:I, s:I, s:f, s:f, s:f, s:I}",
					 "objects", (json_int_t)bench->set->objects,
					 "payload_bytes", (json_int_t)bench->set->payload,
					 "runs", (json_int_t)bench->set->runs,
					 "open_cpu_s", cpu_s,
					 "open_wall_s", wall_s,
					 "memory_bytes_per_object", bench->memory_bytes,
					 "file_bytes", (json_int_t)bench->file_bytes);

	return bench_print_json(object, err);
}

static int report(struct bench *bench, struct kvs_error *err)
{
	const uint32_t runs = (uint32_t)bench->set->runs;
	const double   cpu_s = bench_median(bench->cpu_s, runs);
	const double   wall_s = bench_median(bench->wall_s, runs);

	if (bench->set->json)
		return print_json(bench, cpu_s, wall_s, err);
	print(bench, cpu_s, wall_s);
	return app_flush(err);
}

/* The last object that does not fit costs a segment a share of its bytes. */
static uint64_t capacity_of(uint64_t objects, uint64_t object_bytes)
{
	const uint64_t large = SEGMENT_OBJECTS * object_bytes;
	const uint64_t segment = large > SEGMENT_BYTES ? large : SEGMENT_BYTES;

	return objects * object_bytes + objects * object_bytes / segment * object_bytes +
	       SEGMENTS_BESIDE * segment;
}

static int bench_open(struct bench *bench, struct kvs_error *err)
{
	const struct settings *const set = bench->set;
	int                          rc;

	bench->capacity = capacity_of(set->objects, set->payload + ROOM_BESIDE_OBJECT);
	rc = bench_place_open(&bench->place, set->path, bench->capacity, "--objects", err);
	if (rc < 0)
		return rc;
	snprintf(bench->spec, sizeof(bench->spec), "strata:%s?capacity=%" PRIu64,
		 bench->place.store, bench->capacity);
	bench_watch_start(&bench->watch, "filling", set->objects * set->payload);
	rc = measure_all(bench, err);
	bench_watch_end(&bench->watch);
	bench_window_close(&bench->window);
	bench_place_close(&bench->place);
	return rc < 0 ? rc : report(bench, err);
}

/* --- the command ------------------------------------------------------------------------------ */

static const struct conf_option options[] = {
	{ OPTION(settings, path), .type = CONF_TEXT, .metavar = "DIR", .fallback = "/var/tmp",
	  .help = "where to make the file; it is removed at the end" },
	{ OPTION(settings, objects), .type = CONF_COUNT, .metavar = "N", .fallback = "1000000",
	  .min = 1, .max = OBJECTS_MAX, .help = "objects in the file" },
	{ OPTION(settings, payload), .type = CONF_SIZE, .metavar = "SIZE", .fallback = "4KiB",
	  .min = 4096, .max = 64 << 20, .multiple = 4096, .help = "bytes of each" },
	{ OPTION(settings, runs), .type = CONF_COUNT, .metavar = "N", .fallback = "5", .min = 1,
	  .max = BENCH_RUNS_MAX, .help = "how often to open it; the medians are printed" },
	{ OPTION(settings, json), .type = CONF_BOOL, .help = "print one JSON object" },
};

static int run(int argc, char **argv)
{
	/* What is in doubt at the end stays reachable for the life of the process. */
	static struct bench bench;
	struct settings     set = { 0 };
	struct kvs_error    err;
	struct conf        *conf;
	int                 status = app_configure(&bench_open_command, argc, argv, &set, &conf);

	if (status != APP_DONE)
		return status;
	bench.set = &set;
	if (bench_open(&bench, &err) < 0)
		status = app_fail(bench_open_command.name, &err);
	conf_close(conf);
	return status;
}

const struct app_command bench_open_command = {
	.name = "bench open",
	.summary = "a strata file with many objects: time to open it, memory for each",
	.usage = "[FLAGS]",
	.text = "Fills a strata file, closes it, and opens it several times.\n"
		"\n"
		"CPU and time are those of the open alone: the whole process's, on all its threads.\n"
		"The file was just written, so that what an open reads through the page cache may come\n"
		"from there.  Memory is what the store says of itself, by the objects it found.\n"
		"\n"
		"A million objects of 4 KiB take 13 GB of disk, and a minute to put.\n",
	.examples = "  kvstrata bench open\n"
		    "  kvstrata bench open --objects 100000 --payload 64KiB\n"
		    "  kvstrata bench open --json\n",
	.options = options,
	.option_count = ARRAY_COUNT(options),
	.settings_bytes = sizeof(struct settings),
	.run = run,
};
