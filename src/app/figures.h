/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a replay, gathered once for page, JSON and metrics: they cannot disagree. */
#ifndef APP_FIGURES_H
#define APP_FIGURES_H

#include "app/replay.h"

/* Why requests went without the store, how blocks were dropped, and why the store took none. */
#define FIGURES_REASONS_MAX 16

struct figure {
	const char *name;
	uint64_t    count;
};

struct figures {
	struct figure           fallbacks[FIGURES_REASONS_MAX];
	uint32_t                fallback_count;
	struct figure           drops[FIGURES_REASONS_MAX];
	uint32_t                drop_count;
	struct figure           refusals[FIGURES_REASONS_MAX];
	uint32_t                refusal_count;
	struct exec_stats       exec;
	struct kvs_store_info   store;
	double                  put_gb_s; /* 10^9 bytes a second while a put was running; 0 when none was */
	double                  get_gb_s;
	double                  h2d_gb_s;
	double                  d2h_gb_s;
	double                  seconds;
	uint64_t                peak_rss_bytes;
};

extern const char *const origin_names[MONO_ORIGIN_COUNT];

void figures_gather(const struct replay *replay, struct figures *ret_figures);

#endif
