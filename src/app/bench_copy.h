/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `kvstrata bench copy`, its halves: what is measured (bench_copy_row.c), and what is asked and said
 * (bench_copy.c).
 */
#ifndef APP_BENCH_COPY_H
#define APP_BENCH_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Of a gathered block: the keys and values of 32 layers, each in a plane of its own. */
#define BENCH_COPY_FIELDS 64u

struct bench_copy {
	const char *bytes;
	uint64_t    set; /* at most so many bytes of blocks on either side */
	uint64_t    runs;
	bool        json;
};

enum bench_copy_figure {
	H2D_RATIO,
	D2H_RATIO,
	H2D, /* GB/s, and all that follow */
	D2H,
	H2D_MEMCPY,
	D2H_MEMCPY,
	H2D_WHOLE,
	D2H_WHOLE,
	BENCH_COPY_FIGURES
};

struct bench_copy_row {
	uint64_t bytes;
	uint32_t blocks; /* on either side: as many as fit into the set */
	bool     gather;
	double   figures[BENCH_COPY_FIGURES];
};

/* What measuring a row takes, of memory. */
uint64_t bench_copy_memory_bytes(const struct bench_copy_row *row);

/* The figures of a row whose bytes, blocks and layout are given: medians over all runs. */
int bench_copy_measure(const struct bench_copy *set, struct bench_copy_row *row,
		       struct kvs_error *err);

#endif
