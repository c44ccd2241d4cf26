/* SPDX-License-Identifier: Apache-2.0 */
/* The registry's own shape, shared by its two files.  Private to the room. */
#ifndef METRICS_REGISTRY_H
#define METRICS_REGISTRY_H

#include <locale.h>

#include "metrics/metrics.h"

struct metric {
	const char             *name;
	const char             *help;
	char                    label[METRICS_LABEL_BYTES]; /* "" for none */
	double                  unit_scale;
	enum metric_kind        kind;
	_Atomic uint64_t        value;     /* counter, gauge */
	const struct histogram *histogram; /* the caller's; NULL otherwise */
};

struct metrics {
	char         *labels;
	locale_t      numbers; /* the host may have chosen a decimal comma */
	uint32_t      count;
	struct metric metric[METRICS_MAX];
};

#endif
