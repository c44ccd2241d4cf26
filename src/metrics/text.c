/* SPDX-License-Identifier: Apache-2.0 */
/* The Prometheus text, version 0.0.4: families in order of their first registration, each in one piece. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "metrics/registry.h"

/* The text so far; what does not fit is counted and not written. */
struct out {
	char  *buffer;
	size_t bytes;
	size_t length;
};

static void PRINTF_LIKE(2, 3) emit(struct out *out, const char *format, ...)
{
	const size_t room = out->length < out->bytes ? out->bytes - out->length : 0;
	va_list      args;
	int          length;

	va_start(args, format);
	length = vsnprintf(room ? out->buffer + out->length : NULL, room, format, args);
	va_end(args);
	KVS_ASSERT(length >= 0);
	out->length += (size_t)length;
}

/* name, suffix and all labels: the registry's, the metric's own and one more. */
static void emit_name(struct out *out, const struct metrics *metrics, const struct metric *metric,
		      const char *suffix, const char *more)
{
	const char *const lists[] = { metrics->labels, metric->label, more };
	const char       *before = "{";
	size_t            i;

	emit(out, "%s%s", metric->name, suffix);
	for (i = 0; i < ARRAY_COUNT(lists); i++) {
		if (lists[i][0] == '\0')
			continue;
		emit(out, "%s%s", before, lists[i]);
		before = ",";
	}
	emit(out, "%s ", before[0] == ',' ? "}" : "");
}

/* A count that needs no scaling keeps all its digits. */
static void emit_scaled(struct out *out, const struct metric *metric, uint64_t value)
{
	if (metric->unit_scale == 1)
		emit(out, "%" PRIu64 "\n", value);
	else
		emit(out, "%.15g\n", (double)value * metric->unit_scale);
}

static void emit_summary(struct out *out, const struct metrics *metrics,
			 const struct metric *metric)
{
	static const struct {
		double      percent;
		const char *label;
	} quantiles[] = { { 50, "quantile=\"0.5\"" },
			  { 90, "quantile=\"0.9\"" },
			  { 99, "quantile=\"0.99\"" } };
	const struct histogram *const histogram = metric->histogram;
	/* Relaxed: each value stands alone. */
	const uint64_t count = atomic_load_explicit(&histogram->count, memory_order_relaxed);
	const uint64_t sum = atomic_load_explicit(&histogram->sum, memory_order_relaxed);
	size_t         i;

	for (i = 0; i < ARRAY_COUNT(quantiles); i++) {
		emit_name(out, metrics, metric, "", quantiles[i].label);
		/* The format's word for a quantile of nothing. */
		if (count == 0) {
			emit(out, "NaN\n");
		} else {
			emit_scaled(out, metric,
				    histogram_percentile(histogram, quantiles[i].percent));
		}
	}
	emit_name(out, metrics, metric, "_sum", "");
	emit_scaled(out, metric, sum);
	emit_name(out, metrics, metric, "_count", "");
	emit(out, "%" PRIu64 "\n", count);
}

static void emit_metric(struct out *out, const struct metrics *metrics, const struct metric *metric)
{
	if (metric->kind == METRIC_HISTOGRAM) {
		emit_summary(out, metrics, metric);
		return;
	}
	emit_name(out, metrics, metric, "", "");
	emit_scaled(out, metric, atomic_load_explicit(&metric->value, memory_order_relaxed));
}

static bool names_family_before(const struct metrics *metrics, uint32_t index)
{
	uint32_t i;

	for (i = 0; i < index; i++) {
		if (strcmp(metrics->metric[i].name, metrics->metric[index].name) == 0)
			return true;
	}
	return false;
}

static void emit_family(struct out *out, const struct metrics *metrics, uint32_t first)
{
	static const char *const   types[] = { [METRIC_COUNTER] = "counter",
					       [METRIC_GAUGE] = "gauge",
					       [METRIC_HISTOGRAM] = "summary" };
	const struct metric *const metric = &metrics->metric[first];
	uint32_t                   i;

	emit(out, "# HELP %s %s\n", metric->name, metric->help);
	emit(out, "# TYPE %s %s\n", metric->name, types[metric->kind]);
	for (i = first; i < metrics->count; i++) {
		if (strcmp(metrics->metric[i].name, metric->name) == 0)
			emit_metric(out, metrics, &metrics->metric[i]);
	}
}

size_t metrics_text(const struct metrics *metrics, char *buffer, size_t buffer_bytes)
{
	const locale_t before = uselocale(metrics->numbers);
	struct out     out = { .buffer = buffer, .bytes = buffer_bytes };
	uint32_t       i;

	/* A registry without metrics has a text too: the terminator. */
	emit(&out, "%s", "");
	for (i = 0; i < metrics->count; i++) {
		if (!names_family_before(metrics, i))
			emit_family(&out, metrics, i);
	}
	uselocale(before);
	return out.length;
}
