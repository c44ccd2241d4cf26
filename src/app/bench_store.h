/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `kvstrata bench store`: what its files share.  bench_store.c is the command, bench_store_row.c
 * measures one size of object, bench_store_print.c reports.
 */
#ifndef APP_BENCH_STORE_H
#define APP_BENCH_STORE_H

#include "app/bench.h"
#include "app/bench_fio.h"
#include "app/bench_place.h"
#include "app/bench_watch.h"

/* Objects of one size are at most so many bytes under way unless --depth says how many. */
#define BENCH_STORE_WINDOW_BYTES (UINT64_C(512) << 20)
#define BENCH_STORE_DEPTH 256u

struct bench_store_settings {
	const char *path;
	const char *bytes;
	uint64_t    moved;
	uint64_t    runs;
	uint64_t    depth; /* 0: as many as fit */
	bool        evict;
	bool        json;
};

/* Those of gets and puts stand in pairs: FIGURE_GET_GB_S + 1 is FIGURE_PUT_GB_S. */
enum bench_store_figure {
	FIGURE_GET_RATIO,
	FIGURE_PUT_RATIO,
	FIGURE_GET_CPU_RATIO,
	FIGURE_PUT_CPU_RATIO,
	FIGURE_GET_GB_S,
	FIGURE_PUT_GB_S,
	FIGURE_GET_P50,
	FIGURE_PUT_P50,
	FIGURE_GET_P99,
	FIGURE_PUT_P99,
	FIGURE_GET_CPU,
	FIGURE_PUT_CPU,
	FIGURE_FIO_GET_GB_S,
	FIGURE_FIO_PUT_GB_S,
	FIGURE_FIO_GET_P50,
	FIGURE_FIO_PUT_P50,
	FIGURE_FIO_GET_P99,
	FIGURE_FIO_PUT_P99,
	FIGURE_FIO_GET_CPU,
	FIGURE_FIO_PUT_CPU,
	FIGURE_XXH3_GB_S,
	FIGURE_XXH3_CPU,
	FIGURE_PUT_SYNCED_GB_S,
	FIGURE_PUT_STEADY_GB_S,
	FIGURE_STEADY_REFUSED, /* of all puts offered, the part that found no space */
	BENCH_STORE_FIGURES
};

struct bench_store_row {
	uint64_t bytes;
	uint64_t objects;  /* of a pass; even, so that two jobs of fio share them */
	uint64_t capacity; /* of the store's file */
	uint32_t depth;
	uint32_t fio_depth[2], fio_jobs[2]; /* of gets, of puts; 0 without fio */
	double   figures[BENCH_STORE_FIGURES]; /* medians; NAN: not measured */
};

struct bench_store {
	const struct bench_store_settings *set;
	struct bench_place                 place;
	struct bench_watch                 watch;
	bool                               has_fio;
	char                               fio_version[32];
	uint8_t                           *cold; /* more than the caches hold, for the bare checksum */
	size_t                             cold_bytes;
};

/* Sizes of the row from its bytes and the settings; what a whole row moves, both sides together. */
void     bench_store_plan(const struct bench_store *bench, struct bench_store_row *row);
uint64_t bench_store_row_bytes(const struct bench_store *bench, const struct bench_store_row *row);

int bench_store_measure(struct bench_store *bench, struct bench_store_row *row,
			struct kvs_error *err);

/* The larger of gets' and puts' CPU ratio; NAN when it is not known. */
double bench_store_cpu_ratio(const struct bench_store_row *row);

void bench_store_print(const struct bench_store *bench, const struct bench_store_row *rows,
		       uint32_t count);
int  bench_store_print_json(const struct bench_store *bench, const struct bench_store_row *rows,
			    uint32_t count, struct kvs_error *err);

#endif
