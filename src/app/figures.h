/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a replay, gathered once for page, JSON and metrics: they cannot disagree. */
#ifndef APP_FIGURES_H
#define APP_FIGURES_H

#include "app/replay.h"

#define FIGURES_REASONS_MAX 40

struct figure {
	const char *name;
	uint64_t    count;
};

struct reasons {
	struct figure figure[FIGURES_REASONS_MAX];
	uint32_t      count;
};

struct figures {
	struct reasons          misses;    /* requests without a full hit, each once */
	struct reasons          fallbacks; /* reads that brought nothing */
	struct reasons          drops;     /* blocks that did not reach the store */
	struct reasons          refusals;  /* why the store took none */
	struct reasons          events;    /* of storage work */
	struct exec_stats       exec;
	struct kvs_store_info   store;
	double                  put_gb_s; /* 10^9 bytes a second while a put was running; 0 when none was */
	double                  get_gb_s;
	uint64_t                h2d_bytes;
	uint64_t                d2h_bytes;
	double                  h2d_gb_s;
	double                  d2h_gb_s;
	double                  seconds;
	uint64_t                peak_rss_bytes;
};

void figures_gather(const struct replay *replay, struct figures *ret_figures);

#endif
