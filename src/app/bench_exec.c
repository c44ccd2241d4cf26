/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `kvstrata bench exec`: what the executor costs, over a store that does nothing.
 *
 * The store is nil behind a table of our own that notes when each get came back.  From then on
 * everything is the executor's: rows, fact, lock, announcement, and the reader's poll.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/bench.h"
#include "base/units.h"
#include "exec/exec.h"
#include "metrics/metrics.h"
#include "os/os.h"
#include "store/store.h"

#define OUTSTANDING_MAX 64u
#define BLOCK_BYTES 4096u

/* Enough for a percentile of 1 % that is not one sample, few enough for a second a run. */
#define BULK_OPS 20000u
#define BUSY_OPS 20000u
#define IDLE_OPS 1000u

/* Ops under way while busy: the worker always has a next one. */
#define BUSY_DEPTH 4u

/* A store call of the idle measurement lasts long enough that the reader is asleep. */
#define IDLE_CALL_NS UINT64_C(300000)

struct settings {
	uint64_t batch;
	uint64_t runs;
	bool     json;
};

/* nil, with a clock; key offsets are the number of the op among those under way. */
struct timed_store {
	struct kvs_store  store;
	struct kvs_store *inner;
	_Atomic uint64_t  call_ns; /* how long a get lasts */
	_Atomic uint64_t  returned_ns[OUTSTANDING_MAX];
	struct os_mutex   lock;
	struct os_cond    never;
};

struct bench {
	const struct settings *set;
	struct timed_store     timed;
	struct exec           *exec;
	struct kvs_key        *keys;  /* OUTSTANDING_MAX rows of batch */
	struct kvs_span       *spans;
	uint8_t               *block;
	uint64_t               op_id;
	uint64_t               slot_of[OUTSTANDING_MAX]; /* by op id */
	struct histogram       delivery_ns;
};

enum figure {
	SUBMISSIONS_CORE, /* a second of CPU time, of all threads */
	KEYS_CORE,
	KEYS_WALL,
	BUSY_MEDIAN,
	BUSY_P99,
	IDLE_MEDIAN,
	IDLE_P99,
	FIGURE_COUNT
};

static const struct {
	const char *name, *label, *aim;
} figures[FIGURE_COUNT] = {
	[SUBMISSIONS_CORE] = { "submissions_per_s_core", "submissions a second a core", "" },
	[KEYS_CORE] = { "keys_per_s_core", "keys a second a core", "above 1000000" },
	[KEYS_WALL] = { "keys_per_s", "keys a second", "" },
	[BUSY_MEDIAN] = { "busy_median_us", "completion to delivery, busy: median, us", "below 1" },
	[BUSY_P99] = { "busy_p99_us", "completion to delivery, busy: p99, us", "" },
	[IDLE_MEDIAN] = { "idle_median_us", "completion to delivery, idle: median, us", "" },
	[IDLE_P99] = { "idle_p99_us", "completion to delivery, idle: p99, us", "below 150" },
};

/* --- the store -------------------------------------------------------------------------------- */

/* Sleeping, not spinning: the reader shall find a machine at rest. */
static void last(struct timed_store *timed, uint64_t call_ns)
{
	const uint64_t begin_ns = os_now_ns();
	uint64_t       gone_ns;

	os_mutex_lock(&timed->lock);
	while ((gone_ns = os_now_ns() - begin_ns) < call_ns)
		os_cond_wait(&timed->never, &timed->lock, call_ns - gone_ns);
	os_mutex_unlock(&timed->lock);
}

static int timed_get(struct kvs_store *store, const struct kvs_key *key,
		     const struct kvs_span *span, uint32_t count, enum kvs_result *result,
		     bool *ret_retired)
{
	struct timed_store *const timed = (struct timed_store *)store;
	const uint64_t            call_ns = timed->call_ns;
	const int rc = timed->inner->ops->get(timed->inner, key, span, count, result, ret_retired);

	if (call_ns > 0)
		last(timed, call_ns);
	timed->returned_ns[key->group] = os_now_ns();
	return rc;
}

static void timed_describe(struct kvs_store *store, struct kvs_store_info *ret_info)
{
	struct kvs_store *const inner = ((struct timed_store *)store)->inner;

	inner->ops->describe(inner, ret_info);
}

static int timed_close(struct kvs_store *store)
{
	struct kvs_store *const inner = ((struct timed_store *)store)->inner;

	return inner->ops->close(inner);
}

static const struct kvs_store_ops timed_ops = { .abi = KVS_STORE_ABI, .name = "timed",
						.describe = timed_describe, .close = timed_close,
						.get = timed_get };

/* --- measuring -------------------------------------------------------------------------------- */

/* In the place of an op that is over, or in a new one. */
static void submit(struct bench *bench, uint64_t slot)
{
	const uint64_t batch = bench->set->batch;
	struct op      op = { .op_id = ++bench->op_id, .kind = OP_GET, .key_count = (uint32_t)batch,
			      .keys = bench->keys + slot * batch,
			      .spans = bench->spans + slot * batch };

	op_own_all(&op);
	bench->slot_of[op.op_id % OUTSTANDING_MAX] = slot;
	/* nil is never down, and at most OUTSTANDING_MAX are under way. */
	KVS_ASSERT(exec_submit(bench->exec, &op) == 0);
}

/* Keep `depth` ops under way until `count` have come back. */
static void pump(struct bench *bench, uint32_t depth, uint32_t count)
{
	struct pressure pressure;
	struct fact          facts[OUTSTANDING_MAX];
	uint32_t             submitted, delivered = 0;

	for (submitted = 0; submitted < depth && submitted < count; submitted++)
		submit(bench, submitted);
	while (delivered < count) {
		uint32_t got, i;
		uint64_t now_ns;

		exec_wait(bench->exec, UINT64_MAX);
		got = exec_poll(bench->exec, facts, OUTSTANDING_MAX, &pressure);
		now_ns = os_now_ns();
		for (i = 0; i < got; i++) {
			const uint64_t slot = bench->slot_of[facts[i].op_id % OUTSTANDING_MAX];

			histogram_add(&bench->delivery_ns,
				      now_ns - bench->timed.returned_ns[slot]);
			if (submitted++ < count)
				submit(bench, slot);
		}
		delivered += got;
	}
}

static void measure_bulk(struct bench *bench, double *ret_figures)
{
	const uint64_t begin_ns = os_now_ns();
	const uint64_t begin_cpu_ns = os_process_cpu_ns();
	double         cpu_s, wall_s;

	pump(bench, OUTSTANDING_MAX, BULK_OPS);
	cpu_s = (double)(os_process_cpu_ns() - begin_cpu_ns) / 1e9;
	wall_s = (double)(os_now_ns() - begin_ns) / 1e9;
	ret_figures[SUBMISSIONS_CORE] = BULK_OPS / cpu_s;
	ret_figures[KEYS_CORE] = BULK_OPS * (double)bench->set->batch / cpu_s;
	ret_figures[KEYS_WALL] = BULK_OPS * (double)bench->set->batch / wall_s;
}

static void measure_delivery(struct bench *bench, uint32_t depth, uint32_t count,
			     double *ret_median, double *ret_p99)
{
	bench->delivery_ns = (struct histogram){ 0 };
	pump(bench, depth, count);
	*ret_median = (double)histogram_percentile(&bench->delivery_ns, 50) / 1e3;
	*ret_p99 = (double)histogram_percentile(&bench->delivery_ns, 99) / 1e3;
}

static void measure(struct bench *bench, double *ret_figures)
{
	measure_bulk(bench, ret_figures);
	measure_delivery(bench, BUSY_DEPTH, BUSY_OPS, &ret_figures[BUSY_MEDIAN],
			 &ret_figures[BUSY_P99]);
	bench->timed.call_ns = IDLE_CALL_NS;
	measure_delivery(bench, 1, IDLE_OPS, &ret_figures[IDLE_MEDIAN], &ret_figures[IDLE_P99]);
	bench->timed.call_ns = 0;
}

/* --- the report ------------------------------------------------------------------------------- */

static void print(const struct settings *set, const double *medians)
{
	int i;

	printf("executor over nil, batches of %" PRIu64 " keys, one worker; medians of %" PRIu64
	       " runs\n\n",
	       set->batch, set->runs);
	for (i = 0; i < FIGURE_COUNT; i++) {
		char text[32];

		if (i >= BUSY_MEDIAN)
			snprintf(text, sizeof(text), "%.2f", medians[i]);
		else
			units_format_count((uint64_t)medians[i], text);
		printf("  %-42s %14s", figures[i].label, text);
		printf(figures[i].aim[0] ? "   aim: %s\n" : "%s\n", figures[i].aim);
	}
}

static int print_json(const struct settings *set, const double *medians, struct kvs_error *err)
{
	json_t *const object = json_object();
	int           i;

	json_object_set_new(object, "batch", json_integer((json_int_t)set->batch));
	json_object_set_new(object, "runs", json_integer((json_int_t)set->runs));
	for (i = 0; i < FIGURE_COUNT; i++)
		json_object_set_new(object, figures[i].name, json_real(medians[i]));
	return bench_print_json(object, err);
}

/* --- open and close --------------------------------------------------------------------------- */

static int open_buffers(struct bench *bench, struct kvs_error *err)
{
	const uint64_t batch = bench->set->batch;
	const uint64_t rows = OUTSTANDING_MAX * batch;
	uint64_t       i;

	bench->keys = calloc(rows, sizeof(*bench->keys));
	bench->spans = calloc(rows, sizeof(*bench->spans));
	bench->block = calloc(1, BLOCK_BYTES);
	if (!bench->keys || !bench->spans || !bench->block)
		return err_set(err, -ENOMEM, "no memory for %" PRIu64 " keys", rows);
	for (i = 0; i < rows; i++) {
		/* The op's place, and the key's in it. */
		bench->keys[i].group = (uint16_t)(i / batch);
		bench->keys[i].offset = (uint32_t)(i % batch);
		bench->spans[i] = (struct kvs_span){ bench->block, BLOCK_BYTES, BLOCK_BYTES };
	}
	return 0;
}

static int open_exec(struct bench *bench, struct kvs_error *err)
{
	const struct exec_options options = { .limits = { .outstanding_max = OUTSTANDING_MAX,
							  .queue_max = OUTSTANDING_MAX },
					      .workers = { 1, 1, 1 } };
	struct timed_store *const timed = &bench->timed;
	int                       rc = store_open("nil", BLOCK_BYTES, "lru", &timed->inner, err);

	if (rc < 0)
		return rc;
	timed->store.ops = &timed_ops;
	rc = exec_open(&timed->store, &options, &bench->exec, err);
	if (rc < 0)
		timed_close(&timed->store);
	return rc;
}

static void close_all(struct bench *bench)
{
	/* nil always comes back. */
	KVS_ASSERT(exec_close(bench->exec, UINT64_MAX) == 0);
	os_cond_fini(&bench->timed.never);
	os_mutex_fini(&bench->timed.lock);
	free(bench->keys);
	free(bench->spans);
	free(bench->block);
	free(bench);
}

static int bench_exec(const struct settings *set, struct kvs_error *err)
{
	static double       all[FIGURE_COUNT][BENCH_RUNS_MAX];
	double              medians[FIGURE_COUNT];
	struct bench *const bench = calloc(1, sizeof(*bench));
	uint32_t            run;
	int                 rc, i;

	if (!bench)
		return err_set(err, -ENOMEM, "no memory for the bench");
	bench->set = set;
	os_mutex_init(&bench->timed.lock);
	os_cond_init(&bench->timed.never);
	rc = open_buffers(bench, err);
	if (rc == 0)
		rc = open_exec(bench, err);
	for (run = 0; rc == 0 && run < set->runs; run++) {
		double run_figures[FIGURE_COUNT];

		measure(bench, run_figures);
		for (i = 0; i < FIGURE_COUNT; i++)
			all[i][run] = run_figures[i];
	}
	close_all(bench);
	if (rc < 0)
		return rc;
	for (i = 0; i < FIGURE_COUNT; i++)
		medians[i] = bench_median(all[i], (uint32_t)set->runs);
	if (set->json)
		return print_json(set, medians, err);
	print(set, medians);
	return 0;
}

/* --- the command ------------------------------------------------------------------------------ */

static const struct conf_option options[] = {
	{ OPTION(settings, batch), .type = CONF_COUNT, .metavar = "KEYS", .fallback = "64",
	  .min = 1, .max = OP_KEYS_MAX, .help = "keys of one op" },
	{ OPTION(settings, runs), .type = CONF_COUNT, .metavar = "N", .fallback = "5", .min = 1,
	  .max = BENCH_RUNS_MAX, .help = "how often to measure; the medians are printed" },
	{ OPTION(settings, json), .type = CONF_BOOL, .help = "print one JSON object" },
};

static int run(int argc, char **argv)
{
	struct settings  set = { 0 };
	struct kvs_error err;
	struct conf     *conf;
	int              status = app_configure(&bench_exec_command, argc, argv, &set, &conf);

	if (status != APP_DONE)
		return status;
	if (bench_exec(&set, &err) < 0)
		status = app_fail(bench_exec_command.name, &err);
	conf_close(conf);
	return status;
}

const struct app_command bench_exec_command = {
	.name = "bench exec",
	.usage = "[FLAGS]",
	.summary = "the executor alone: submissions, and the way of a completion to its reader",
	.text = "Measures the executor over a store that does nothing.\n"
		"\n"
		"Submissions: one thread submits GETs and polls, one worker runs them, as many under way\n"
		"as fit.  \"A core\" divides by the CPU time of all threads together.\n"
		"\n"
		"Completion to delivery: from the return of the store's call until the reader has the\n"
		"fact.  Busy, there is always a next op, and the reader spins; idle, each call lasts 0.3\n"
		"ms, and the reader has gone to sleep.\n",
	.examples = "  kvstrata bench exec\n"
		    "  kvstrata bench exec --batch 1 --runs 11\n"
		    "  kvstrata bench exec --json\n",
	.options = options,
	.option_count = ARRAY_COUNT(options),
	.settings_bytes = sizeof(struct settings),
	.run = run,
};
