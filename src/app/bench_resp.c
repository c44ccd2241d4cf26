/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `kvstrata bench resp`: the resp store beside redis-benchmark, against one server in one
 * invocation.
 *
 * Both move values of the same size over as many connections with the same pipeline, among as many
 * keys, in turns; a ratio is the median of the runs' own ratios.  We verify what we read;
 * redis-benchmark does not look at it.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/bench.h"
#include "app/bench_redis.h"
#include "base/units.h"
#include "store/store.h"

/* Of a batch: as many as an executor would hand over, and no more than so many bytes. */
#define ROWS_MAX 64u
#define BATCH_BYTES (UINT64_C(8) << 20)

/* Distinct objects, and what is moved in one measurement: enough to be out of the caches. */
#define OBJECTS_BYTES (UINT64_C(64) << 20)
#define MOVED_BYTES (UINT64_C(256) << 20)
#define ROUNDS (MOVED_BYTES / OBJECTS_BYTES)
_Static_assert(BENCH_BYTES_MAX <= OBJECTS_BYTES, "there is an object of every size");

/* Room for a trailer, as in the Host arena, and for alignment. */
#define TRAILER_BYTES 4096u

struct settings {
	const char *server;
	const char *bytes;
	uint64_t    connections;
	uint64_t    pipeline;
	uint64_t    runs;
	bool        json;
};

enum figure { PUT_RATIO, GET_RATIO, PUT_GB_S, GET_GB_S, SET_CEILING, GET_CEILING, FIGURE_COUNT };

static const char *const names[FIGURE_COUNT] = {
	[PUT_RATIO] = "put_ratio", [GET_RATIO] = "get_ratio",
	[PUT_GB_S] = "put_gb_s", [GET_GB_S] = "get_gb_s",
	[SET_CEILING] = "redis_benchmark_set_gb_s", [GET_CEILING] = "redis_benchmark_get_gb_s",
};

struct row {
	uint64_t bytes;
	double   figures[FIGURE_COUNT];
};

struct bench {
	const struct settings *set;
	struct bench_redis     redis;
	struct kvs_store      *store;
	uint8_t               *memory;
	size_t                 memory_bytes;
	uint64_t               bytes, objects; /* of the present row */
	uint32_t               rows; /* of a batch */
};

/* --- ours ------------------------------------------------------------------------------------- */

static uint32_t rows_from(const struct bench *bench, uint64_t first, struct kvs_key *keys,
			  struct kvs_span *spans)
{
	const uint64_t left = bench->objects - first;
	const uint32_t count = left < bench->rows ? (uint32_t)left : bench->rows;
	uint32_t       i;

	for (i = 0; i < count; i++) {
		keys[i] = (struct kvs_key){ .offset = (uint32_t)(first + i) };
		spans[i] = (struct kvs_span){ bench->memory + i * (bench->bytes + TRAILER_BYTES),
					      bench->bytes, bench->bytes + TRAILER_BYTES };
	}
	return count;
}

static int check(int rc, const enum kvs_result *result, uint32_t count, const char *call,
		 struct kvs_error *err)
{
	uint32_t i;

	if (rc < 0)
		return err_set(err, rc, "%s: %s", call, kvs_strerror(rc));
	for (i = 0; i < count; i++) {
		if (result[i] != KVS_RESULT_DONE)
			return err_set(err, -EIO, "%s: an object came out as %d", call, result[i]);
	}
	return 0;
}

/* One batch; what makes room for new objects is not timed. */
static int move_batch(struct bench *bench, uint64_t first, bool is_put, uint64_t *spent_ns,
		      struct kvs_error *err)
{
	const struct kvs_store_ops *ops = bench->store->ops;
	struct kvs_key              keys[ROWS_MAX];
	struct kvs_span             spans[ROWS_MAX];
	enum kvs_result             results[ROWS_MAX];
	const uint32_t              count = rows_from(bench, first, keys, spans);
	uint64_t                    begin_ns;
	bool                        retired;
	int                         rc;

	if (is_put)
		(void)ops->remove(bench->store, keys, count, results);
	begin_ns = os_now_ns();
	rc = is_put ? ops->put(bench->store, keys, spans, count, results, &retired)
		    : ops->get(bench->store, keys, spans, count, results, &retired);
	*spent_ns += os_now_ns() - begin_ns;
	return check(rc, results, count, is_put ? "put" : "get", err);
}

/* GB/s of ROUNDS times all objects. */
static int measure_ours(struct bench *bench, bool is_put, double *ret_gb_s, struct kvs_error *err)
{
	uint64_t spent_ns = 0, round, first;

	for (round = 0; round < ROUNDS; round++) {
		for (first = 0; first < bench->objects; first += bench->rows) {
			const int rc = move_batch(bench, first, is_put, &spent_ns, err);

			if (rc < 0)
				return rc;
		}
	}
	*ret_gb_s = (double)(ROUNDS * bench->objects * bench->bytes) / (double)spent_ns;
	return 0;
}

/* --- a row ------------------------------------------------------------------------------------ */

static int measure_ceiling(struct bench *bench, bool is_put, double *ret_gb_s,
			   struct kvs_error *err)
{
	const struct bench_load load = { .bytes = bench->bytes,
					 .connections = bench->set->connections,
					 .pipeline = bench->set->pipeline,
					 .keys = bench->objects,
					 .requests = ROUNDS * bench->objects };
	double                  rate;
	const int rc = bench_redis_measure(&bench->redis, &load, is_put, &rate, err);

	if (rc == 0)
		*ret_gb_s = rate * (double)bench->bytes / 1e9;
	return rc;
}

/* Puts first on either side: they leave what the gets read. */
static int measure(struct bench *bench, double *ret_figures, struct kvs_error *err)
{
	int rc = measure_ceiling(bench, true, &ret_figures[SET_CEILING], err);

	if (rc == 0)
		rc = measure_ours(bench, true, &ret_figures[PUT_GB_S], err);
	if (rc == 0)
		rc = measure_ceiling(bench, false, &ret_figures[GET_CEILING], err);
	if (rc == 0)
		rc = measure_ours(bench, false, &ret_figures[GET_GB_S], err);
	if (rc == 0) {
		ret_figures[PUT_RATIO] = ret_figures[PUT_GB_S] / ret_figures[SET_CEILING];
		ret_figures[GET_RATIO] = ret_figures[GET_GB_S] / ret_figures[GET_CEILING];
	}
	return rc;
}

static int open_row(struct bench *bench, struct kvs_error *err)
{
	const struct settings *set = bench->set;
	void                  *memory;
	char                   spec[512];
	int                    rc;

	bench->objects = OBJECTS_BYTES / bench->bytes;
	bench->rows = ROWS_MAX;
	while (bench->rows > 1 && bench->rows * bench->bytes > BATCH_BYTES)
		bench->rows /= 2;
	bench->memory_bytes = bench->rows * (bench->bytes + TRAILER_BYTES);
	rc = os_pages_map(bench->memory_bytes, &memory);
	if (rc < 0)
		return err_set(err, rc, "memory: %s", kvs_strerror(rc));
	bench->memory = memory;
	(void)os_pages_advise_huge(memory, bench->memory_bytes);
	memset(memory, 'x', bench->memory_bytes);
	snprintf(spec, sizeof(spec), "resp:%s:%s?connections=%" PRIu64 "&pipeline=%" PRIu64,
		 bench->redis.host, bench->redis.port, set->connections, set->pipeline);
	return store_open(spec, bench->bytes, "lru", &bench->store, err);
}

static void close_row(struct bench *bench)
{
	if (bench->store) {
		uint64_t count;

		(void)bench->store->ops->purge(bench->store, NULL, &count);
		(void)bench->store->ops->close(bench->store);
	}
	if (bench->memory)
		os_pages_unmap(bench->memory, bench->memory_bytes);
	bench->store = NULL;
	bench->memory = NULL;
}

static int measure_row(struct bench *bench, struct row *ret_row, struct kvs_error *err)
{
	static double all[FIGURE_COUNT][BENCH_RUNS_MAX];
	double        figures[FIGURE_COUNT];
	uint64_t      run;
	int           rc, f;

	bench->bytes = ret_row->bytes;
	rc = open_row(bench, err);
	/* The first time the server gets its memory from the kernel: that is not counted. */
	if (rc == 0)
		rc = measure(bench, figures, err);
	for (run = 0; rc == 0 && run < bench->set->runs; run++) {
		rc = measure(bench, figures, err);
		for (f = 0; rc == 0 && f < FIGURE_COUNT; f++)
			all[f][run] = figures[f];
	}
	close_row(bench);
	for (f = 0; rc == 0 && f < FIGURE_COUNT; f++)
		ret_row->figures[f] = bench_median(all[f], (uint32_t)bench->set->runs);
	return rc;
}

/* --- the report ------------------------------------------------------------------------------- */

static void print(const struct settings *set, const struct row *rows, uint32_t count)
{
	uint32_t i;

	printf("resp, connections: %" PRIu64 ", pipeline: %" PRIu64 ", runs: %" PRIu64
	       "; medians, every get verified\n\n"
	       "  %-8s  %10s  %15s  %9s  %10s  %15s  %9s\n",
	       set->connections, set->pipeline, set->runs, "bytes", "get GB/s", "redis-benchmark",
	       "ratio", "put GB/s", "redis-benchmark", "ratio");
	for (i = 0; i < count; i++) {
		const double *f = rows[i].figures;
		char          size[32];

		printf("  %-8s  %10.2f  %15.2f  %9.2f  %10.2f  %15.2f  %9.2f\n",
		       units_format_size(rows[i].bytes, size), f[GET_GB_S], f[GET_CEILING],
		       f[GET_RATIO], f[PUT_GB_S], f[SET_CEILING], f[PUT_RATIO]);
	}
	printf("\n  aims: get at least 1.1, put at least 1.0\n");
}

static int print_json(const struct settings *set, const struct row *rows, uint32_t count,
		      struct kvs_error *err)
{
	json_t *const array = json_array();
	uint32_t      i;
	int           f;

	for (i = 0; i < count; i++) {
		json_t *const object = json_object();

		json_object_set_new(object, "bytes", json_integer((json_int_t)rows[i].bytes));
		json_object_set_new(object, "connections",
				    json_integer((json_int_t)set->connections));
		json_object_set_new(object, "pipeline", json_integer((json_int_t)set->pipeline));
		json_object_set_new(object, "runs", json_integer((json_int_t)set->runs));
		for (f = 0; f < FIGURE_COUNT; f++)
			json_object_set_new(object, names[f], json_real(rows[i].figures[f]));
		json_array_append_new(array, object);
	}
	return bench_print_json(array, err);
}

static int bench_resp(const struct settings *set, struct row *rows, uint32_t count,
		      struct kvs_error *err)
{
	struct bench bench = { .set = set };
	uint32_t     i;
	int          rc = bench_redis_open(&bench.redis, set->server, err);

	for (i = 0; rc == 0 && i < count; i++)
		rc = measure_row(&bench, &rows[i], err);
	bench_redis_close(&bench.redis);
	if (rc < 0)
		return rc;
	if (set->json)
		return print_json(set, rows, count, err);
	print(set, rows, count);
	return 0;
}

/* --- the command ------------------------------------------------------------------------------ */

static const struct conf_option options[] = {
	{ OPTION(settings, server), .type = CONF_TEXT, .metavar = "HOST:PORT",
	  .help = "a server that runs; keys of ours and of redis-benchmark are written there" },
	{ OPTION(settings, bytes), .type = CONF_TEXT, .list = true, .metavar = "LIST",
	  .fallback = "64KiB,1MiB", .help = "sizes of objects, commas between" },
	{ OPTION(settings, connections), .type = CONF_COUNT, .metavar = "N", .fallback = "2",
	  .min = 1, .max = 16, .help = "connections of either side" },
	{ OPTION(settings, pipeline), .type = CONF_COUNT, .metavar = "N", .fallback = "8", .min = 1,
	  .max = 64, .help = "commands without a reply on one connection" },
	{ OPTION(settings, runs), .type = CONF_COUNT, .metavar = "N", .fallback = "5", .min = 1,
	  .max = BENCH_RUNS_MAX, .help = "how often to measure; the medians are printed" },
	{ OPTION(settings, json), .type = CONF_BOOL,
	  .help = "print a JSON array, one object for each size" },
};

static int run(int argc, char **argv)
{
	struct settings  set = { 0 };
	uint64_t         sizes[BENCH_SIZES_MAX];
	struct row       rows[BENCH_SIZES_MAX];
	struct kvs_error err;
	struct conf     *conf;
	uint32_t         count = 0, i;
	int              rc, status = app_configure(&bench_resp_command, argc, argv, &set, &conf);

	if (status != APP_DONE)
		return status;
	rc = bench_read_sizes(set.bytes, sizes, &count, &err);
	for (i = 0; i < count; i++)
		rows[i] = (struct row){ .bytes = sizes[i] };
	if (rc == 0)
		rc = bench_resp(&set, rows, count, &err);
	if (rc < 0)
		status = app_fail(bench_resp_command.name, &err);
	conf_close(conf);
	return status;
}

const struct app_command bench_resp_command = {
	.name = "bench resp",
	.summary = "objects in a Redis server, beside redis-benchmark",
	.usage = "[FLAGS]",
	.text = "Measures the resp store and redis-benchmark against one server, in turns.\n"
		"\n"
		"Both use values of the same size, as many connections, the same pipeline, and keys\n"
		"chosen from as many.  Every get of ours is verified: key, length and checksum;\n"
		"redis-benchmark drops what it reads.  A put creates, so that ours removes a batch, untimed,\n"
		"before it puts it again; redis-benchmark overwrites: either way the server's memory is\n"
		"recycled, as in a cache that is full.  A ratio is the median of each run's own.\n"
		"\n"
		"Without --server it starts a redis-server on the loopback, without persistence, and\n"
		"ends it.  Needs redis-server and redis-benchmark (Debian: redis-server, redis-tools).\n",
	.examples = "  kvstrata bench resp\n"
		    "  kvstrata bench resp --bytes 64KiB --connections 4 --pipeline 8\n"
		    "  kvstrata bench resp --server 127.0.0.1:6379 --json\n",
	.options = options,
	.option_count = ARRAY_COUNT(options),
	.settings_bytes = sizeof(struct settings),
	.run = run,
};
