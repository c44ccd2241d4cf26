/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics: a registry of counters, gauges and histograms, and their Prometheus text.
 *
 * Names    kvstrata_*; one fixed label a metric at most besides the registry's own (model, role,
 *          dp_rank, tp_rank).  No request ids, no keys.  Metrics never decide anything.
 * Limits   METRICS_MAX metrics a registry, fixed at open; registering past it is refused.
 * Threads  Updates are relaxed atomics from any thread; registration and close are one thread's.  A
 *          text snapshot may run beside updates and sees each value whole.
 */
#ifndef METRICS_METRICS_H
#define METRICS_METRICS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define METRICS_MAX 256

/* A metric's own label, with its terminator. */
#define METRICS_LABEL_BYTES 96

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

/*
 * Log-linear histogram of non-negative integers: 64 steps an octave, so a percentile is at most
 * 1.6 % off.  Single-writer; the writer may read percentiles any time.
 */
#define HISTOGRAM_STEPS 64
#define HISTOGRAM_BUCKETS (HISTOGRAM_STEPS * 59)

struct histogram {
	_Atomic uint64_t bucket[HISTOGRAM_BUCKETS];
	_Atomic uint64_t count;
	_Atomic uint64_t sum;
	_Atomic uint64_t max;
};

void     histogram_add(struct histogram *histogram, uint64_t value);
/*
 * Nearest rank: the value at index ceil(percent * n / 100) - 1, at its bucket's upper edge but
 * never above max; 0 when empty.
 */
uint64_t histogram_percentile(const struct histogram *histogram, double percent);
double   histogram_mean(const struct histogram *histogram);

struct metrics;

/*
 * labels is a ready list without braces, e.g. `model="m",role="fused"`; "" for none.  Copied.
 *
 * Errors  KVS_E_INVALID no such list, -ENOMEM.
 */
int  metrics_open(const char *labels, struct metrics **ret_metrics, struct kvs_error *err);
void metrics_close(struct metrics *metrics);

/**
 * Register a metric and get its cell.
 *
 * name begins with kvstrata_, help is one line; both are held, not copied.  label, one more
 * `key="value"` or NULL, is copied; metrics of one name differ in it, and share kind and help.
 * unit_scale turns stored integers into the exposed unit (1e-9 for nanoseconds shown as seconds); 1
 * for as they are.
 *
 * Errors  KVS_E_INVALID bad or duplicate name, bad label, help or scale; KVS_E_FULL.
 */
int metrics_value(struct metrics *metrics, enum metric_kind kind, const char *name,
		  const char *label, const char *help, double unit_scale,
		  _Atomic uint64_t **ret_value, struct kvs_error *err);
/* The same for the caller's histogram; shown as quantiles 0.5, 0.9, 0.99 with _sum and _count. */
int metrics_histogram(struct metrics *metrics, const char *name, const char *label,
		      const char *help, double unit_scale, const struct histogram *histogram,
		      struct kvs_error *err);

/**
 * Write the Prometheus text (version 0.0.4) of all metrics, HELP and TYPE once a name, in order of
 * registration.
 *
 * Returns the length without the terminator that a large enough buffer needs, as snprintf does.
 */
size_t metrics_text(const struct metrics *metrics, char *buffer, size_t buffer_bytes);

#endif
