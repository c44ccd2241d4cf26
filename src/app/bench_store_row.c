/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of one size, measured.
 *
 * Both files are allocated and have been written once from end to end before anything counts: ours
 * by as many passes of puts as its capacity holds, each emptied again without touching the file's
 * length; fio's by one.  Capacity is twice what a pass moves, so that a store that only appends
 * never evicts.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "app/bench_pass.h"
#include "app/bench_store.h"
#include "base/digest.h"
#include "os/os.h"

/* Beside an object, for headers of its own and alignment; and beside them all. */
#define ROOM_BESIDE_OBJECT UINT64_C(8192)
#define ROOM_BESIDE_OBJECTS (UINT64_C(64) << 20)

/* A store that has not evicted after so many times its capacity does not evict. */
#define FILLS_MAX 3u

struct bench_row {
	struct bench_store     *bench;
	struct bench_store_row *row;
	struct bench_window     window;
	struct kvs_store       *store;
	struct bench_fio_load   fio[2]; /* get, put */
	uint64_t                file_bytes; /* of the store, once it was filled */
	uint64_t                generation;
	uint64_t                run;    /* the present one; its figures are all[...][run] */
	double                  all[BENCH_STORE_FIGURES][BENCH_RUNS_MAX];
};

/* fio's file is as long as the store's. */
#define FIO_FILE_PASSES 2u

static uint64_t moved(const struct bench_store_row *row)
{
	return row->objects * row->bytes;
}

static uint64_t passes_to_fill(const struct bench_store_row *row)
{
	return (row->capacity + moved(row) - 1) / moved(row);
}

static void note(struct bench_row *r, int figure, double value)
{
	r->all[figure][r->run] = value;
}

/* --- ours ------------------------------------------------------------------------------------- */

static int pass(struct bench_row *r, bool is_put, bool may_refuse,
		struct bench_pass_figures *ret_figures, struct kvs_error *err)
{
	const struct bench_pass pass = { .store = r->store, .window = &r->window,
					 .watch = &r->bench->watch, .objects = r->row->objects,
					 .generation = r->generation, .is_put = is_put,
					 .may_refuse = may_refuse };

	return bench_pass(&pass, ret_figures, err);
}

static int empty(struct bench_row *r, struct kvs_error *err)
{
	uint64_t  count;
	const int rc = r->store->ops->purge(r->store, NULL, &count);

	return rc < 0 ? err_set(err, rc, "store: purge: %s", kvs_strerror(rc)) : 0;
}

static double gb_s(const struct bench_pass_figures *figures)
{
	return (double)figures->moved_bytes / 1e9 / figures->seconds;
}

/* Index 0 is gets, 1 puts, as in the figures. */
static int measure_ours(struct bench_row *r, int is_put, struct kvs_error *err)
{
	struct bench_pass_figures figures;
	int                       rc = is_put ? empty(r, err) : 0;

	if (rc == 0)
		rc = pass(r, is_put, false, &figures, err);
	if (rc < 0)
		return rc;
	note(r, FIGURE_GET_GB_S + is_put, gb_s(&figures));
	note(r, FIGURE_GET_P50 + is_put, figures.p50_us);
	note(r, FIGURE_GET_P99 + is_put, figures.p99_us);
	note(r, FIGURE_GET_CPU + is_put, figures.cpu_s * 1e12 / (double)figures.moved_bytes);
	return 0;
}

static int open_store(struct bench_row *r, const char *option, struct kvs_error *err)
{
	char spec[2400];

	snprintf(spec, sizeof(spec), "strata:%s?capacity=%" PRIu64 "%s", r->bench->place.store,
		 r->row->capacity, option);
	return bench_store_open(spec, &r->window, &r->store, err);
}

static void close_store(struct bench_row *r)
{
	bench_store_close(r->store, &r->window);
	r->store = NULL;
}

/* --- beside it -------------------------------------------------------------------------------- */

/*
 * Files of one disk are not of one speed.  So fio gets from the store's own file, and puts into one of
 * the same length, either half of them in turns, as the store does.
 */
static uint64_t fio_offset(const struct bench_row *r)
{
	return r->run % 2 ? (r->file_bytes - moved(r->row)) / 4096 * 4096 : 0;
}

static int measure_fio(struct bench_row *r, int is_put, struct kvs_error *err)
{
	struct bench_fio_load *const load = &r->fio[is_put];
	struct bench_fio_figures           figures;
	int                                rc;

	if (!r->bench->has_fio)
		return 0;
	load->offset = is_put ? r->run % 2 * load->moved : fio_offset(r);
	rc = bench_fio_measure(load, &r->bench->watch, &figures, err);
	if (rc < 0)
		return rc;
	note(r, FIGURE_FIO_GET_GB_S + is_put, (double)load->moved / 1e9 / figures.seconds);
	note(r, FIGURE_FIO_GET_P50 + is_put, figures.p50_us);
	note(r, FIGURE_FIO_GET_P99 + is_put, figures.p99_us);
	note(r, FIGURE_FIO_GET_CPU + is_put, figures.cpu_s * 1e12 / (double)load->moved);
	return 0;
}

static void measure_xxh3(struct bench_row *r)
{
	const uint64_t    bytes = r->row->bytes;
	const uint64_t    places = r->bench->cold_bytes / bytes;
	volatile uint64_t sum = 0;
	const uint64_t    begin_ns = os_now_ns(), begin_cpu_ns = os_thread_cpu_ns();
	uint64_t          i;

	for (i = 0; i < r->row->objects; i++)
		sum += xxh3_64(r->bench->cold + i % places * bytes, bytes);
	(void)sum;
	note(r, FIGURE_XXH3_CPU,
	     (double)(os_thread_cpu_ns() - begin_cpu_ns) * 1e3 / (double)moved(r->row));
	note(r, FIGURE_XXH3_GB_S, (double)moved(r->row) / (double)(os_now_ns() - begin_ns));
}

/* A file too short for it would be written by fio, and the store with it. */
static int look_at_file(struct bench_row *r, struct kvs_error *err)
{
	const int fd = os_file_open(r->bench->place.store, 0);
	int       rc = fd < 0 ? fd : os_file_size(fd, &r->file_bytes);

	os_close(fd);
	if (rc == 0 && r->file_bytes < moved(r->row))
		rc = -EIO;
	return rc < 0 ? err_set(err, rc, "the store's file: %s", kvs_strerror(rc)) : 0;
}

static int choose_fio(struct bench_row *r, int is_put, struct kvs_error *err)
{
	int rc;

	if (!r->bench->has_fio)
		return 0;
	r->fio[is_put] = (struct bench_fio_load){ .path = is_put ? r->bench->place.other
								 : r->bench->place.store,
						  .bytes = r->row->bytes,
						  .moved = moved(r->row),
						  .is_put = is_put };
	rc = bench_fio_choose(&r->fio[is_put], &r->bench->watch, err);
	r->row->fio_depth[is_put] = r->fio[is_put].depth;
	r->row->fio_jobs[is_put] = r->fio[is_put].jobs;
	return rc;
}

static int prepare_fio(struct bench_row *r, struct kvs_error *err)
{
	const struct bench_fio_load whole = { .path = r->bench->place.other,
					      .bytes = r->row->bytes,
					      .moved = FIO_FILE_PASSES * moved(r->row),
					      .is_put = true };

	return r->bench->has_fio ? bench_fio_prepare(&whole, &r->bench->watch, err) : 0;
}

/* --- a run ------------------------------------------------------------------------------------ */

/* Of figures of this run only: what one run had to bear, both sides had. */
static void note_ratios(struct bench_row *r)
{
	const uint64_t run = r->run;
	int            side;

	for (side = 0; r->bench->has_fio && side <= 1; side++) {
		note(r, FIGURE_GET_RATIO + side,
		     r->all[FIGURE_GET_GB_S + side][run] / r->all[FIGURE_FIO_GET_GB_S + side][run]);
		note(r, FIGURE_GET_CPU_RATIO + side,
		     r->all[FIGURE_GET_CPU + side][run] /
			     (r->all[FIGURE_FIO_GET_CPU + side][run] +
			      r->all[FIGURE_XXH3_CPU][run]));
	}
}

/* Puts first: they leave what the gets read.  Who goes first alternates. */
static int measure_run(struct bench_row *r, struct kvs_error *err)
{
	const bool ours_first = r->run % 2 == 0;
	int        side, rc = 0;

	for (side = 1; rc == 0 && side >= 0; side--) {
		rc = ours_first ? measure_ours(r, side, err) : measure_fio(r, side, err);
		if (rc == 0)
			rc = ours_first ? measure_fio(r, side, err) : measure_ours(r, side, err);
	}
	measure_xxh3(r);
	note_ratios(r);
	return rc;
}

/* Every extent of the file has been written when this is over. */
static int fill(struct bench_row *r, struct kvs_error *err)
{
	struct bench_pass_figures figures;
	uint64_t                  i;
	int                       rc = 0;

	for (i = 0; rc == 0 && i < passes_to_fill(r->row); i++) {
		rc = pass(r, true, false, &figures, err);
		if (rc == 0)
			rc = empty(r, err);
	}
	return rc;
}

static uint64_t evicted(struct bench_row *r)
{
	struct kvs_store_info info = { 0 };

	r->store->ops->describe(r->store, &info);
	return info.evicted_objects;
}

/* New keys until each put makes room, and from then on what counts. */
static int measure_steady(struct bench_row *r, struct kvs_error *err)
{
	struct bench_pass_figures figures;
	const uint64_t            before = evicted(r);
	uint64_t                  i;
	int                       rc = 0;

	for (i = 0; evicted(r) == before && i < FILLS_MAX * passes_to_fill(r->row); i++) {
		r->generation++;
		rc = pass(r, true, true, &figures, err);
		if (rc < 0)
			return rc;
	}
	for (r->run = 0; rc == 0 && r->run < r->bench->set->runs; r->run++) {
		r->generation++;
		rc = pass(r, true, true, &figures, err);
		if (rc < 0)
			return rc;
		note(r, FIGURE_PUT_STEADY_GB_S, gb_s(&figures));
		note(r, FIGURE_STEADY_REFUSED, (double)figures.refused / (double)r->row->objects);
	}
	return 0;
}

/* The same file again, whose puts are on the disk when they are answered. */
static int measure_synced(struct bench_row *r, struct kvs_error *err)
{
	struct bench_pass_figures figures;
	int                       rc = open_store(r, "&durability=put", err);

	/* A store without the option says so in this way, and has no such figure. */
	if (rc == KVS_E_INVALID)
		return 0;
	for (r->run = 0; rc == 0 && r->run < r->bench->set->runs; r->run++) {
		rc = empty(r, err);
		if (rc == 0)
			rc = pass(r, true, false, &figures, err);
		if (rc == 0)
			note(r, FIGURE_PUT_SYNCED_GB_S, gb_s(&figures));
	}
	return rc;
}

static int measure(struct bench_row *r, struct kvs_error *err)
{
	int rc = bench_window_open(&r->window, r->row->bytes, r->row->depth, err);

	if (rc == 0)
		rc = prepare_fio(r, err);
	if (rc == 0)
		rc = open_store(r, "", err);
	if (rc == 0)
		rc = fill(r, err);
	if (rc == 0)
		rc = look_at_file(r, err);
	if (rc == 0)
		rc = choose_fio(r, 1, err);
	if (rc == 0)
		rc = choose_fio(r, 0, err);
	for (r->run = 0; rc == 0 && r->run < r->bench->set->runs; r->run++)
		rc = measure_run(r, err);
	if (rc == 0 && r->bench->set->evict)
		rc = measure_steady(r, err);
	close_store(r);
	if (rc == 0)
		rc = measure_synced(r, err);
	close_store(r);
	return rc;
}

int bench_store_measure(struct bench_store *bench, struct bench_store_row *row,
			struct kvs_error *err)
{
	/* What is in doubt at the end stays reachable for the life of the process. */
	static struct bench_row r;
	uint64_t                run;
	int                     f, rc;

	r = (struct bench_row){ .bench = bench, .row = row };
	for (f = 0; f < BENCH_STORE_FIGURES; f++) {
		for (run = 0; run < BENCH_RUNS_MAX; run++)
			r.all[f][run] = NAN;
	}
	rc = measure(&r, err);
	bench_window_close(&r.window);
	(void)os_file_remove(bench->place.store);
	(void)os_file_remove(bench->place.other);
	for (f = 0; f < BENCH_STORE_FIGURES; f++) {
		row->figures[f] = isnan(r.all[f][0])
					  ? NAN
					  : bench_median(r.all[f], (uint32_t)bench->set->runs);
	}
	return rc;
}

/* --- sizes ------------------------------------------------------------------------------------ */

/*
 * Four times what the deepest queue of two jobs has under way: of a pass that is shorter, what counts is
 * how much the disk swallows at once.
 */
#define OBJECTS_MIN UINT64_C(1024)
#define MOVED_USUAL (UINT64_C(1) << 30)

static uint64_t moved_by_default(uint64_t bytes)
{
	return OBJECTS_MIN * bytes > MOVED_USUAL ? OBJECTS_MIN * bytes : MOVED_USUAL;
}

void bench_store_plan(const struct bench_store *bench, struct bench_store_row *row)
{
	const uint64_t fits = BENCH_STORE_WINDOW_BYTES / row->bytes;

	row->objects = (bench->set->moved ? bench->set->moved : moved_by_default(row->bytes)) /
		       row->bytes / 2 * 2;
	row->capacity = 2 * row->objects * (row->bytes + ROOM_BESIDE_OBJECT) + ROOM_BESIDE_OBJECTS;
	row->depth = (uint32_t)bench->set->depth;
	if (row->depth == 0)
		row->depth = fits < BENCH_STORE_DEPTH ? (uint32_t)fits : BENCH_STORE_DEPTH;
}

uint64_t bench_store_row_bytes(const struct bench_store *bench, const struct bench_store_row *row)
{
	const uint64_t runs = bench->set->runs;
	uint64_t       passes = passes_to_fill(row) + 2 * runs;

	if (bench->has_fio)
		passes += FIO_FILE_PASSES + 2 * BENCH_FIO_CHOICES + 2 * runs;
	if (bench->set->evict)
		passes += passes_to_fill(row) + runs;
	return passes * moved(row);
}
