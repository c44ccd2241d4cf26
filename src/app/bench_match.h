/* SPDX-License-Identifier: Apache-2.0 */
/* `kvstrata bench match`: the prompt's way (bench_match.c), the index alone (bench_index.c), the report. */
#ifndef APP_BENCH_MATCH_H
#define APP_BENCH_MATCH_H

#include "app/bench.h"
#include "coord/cache.h"
#include "match/joint.h"

#define BENCH_MATCH_PAGE 128u
#define BENCH_MATCH_WINDOW 4096u
#define BENCH_MATCH_CASES 6u
#define BENCH_MATCH_PAGE_CASES 2u

/* Of each of the BENCH_MATCH_PAGE_CASES: a page, and an eighth of one. */
extern const uint32_t bench_match_page_block_tokens[];

enum {
	BENCH_MATCH_BARE,
	BENCH_MATCH_HASH,
	BENCH_MATCH_MATCH,
	BENCH_MATCH_PLAN,
	BENCH_MATCH_FIGURES
};

/* Medians; the ratio is that of each run's hash, match and plan to its bare chain. */
struct bench_match_row {
	const char *name;
	double      us[BENCH_MATCH_FIGURES];
	double      sha_ratio;
};

/* BENCH_MATCH_CASES rows, and what a page more costs in each of the BENCH_MATCH_PAGE_CASES. */
int bench_match_measure(uint32_t tokens, uint32_t runs, struct bench_match_row *ret_rows,
			double *ret_page_us, struct kvs_error *err);

/* An index of so many entries: nanoseconds a page of a prompt, and bytes an entry. */
struct bench_index_row {
	uint32_t entries;
	double   page_ns;      /* published together */
	double   scattered_ns; /* each at another time */
	double   entry_bytes;
};

#define BENCH_INDEX_SIZES 3u

/* From 10 thousand to 1 million entries. */
int bench_index_measure(uint32_t runs, struct bench_index_row *ret_rows, struct kvs_error *err);

#endif
