/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics: what the text says is what was counted, by reading it back; percentiles keep their promise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "metrics/metrics.h"

#define TEXT_BYTES 8192

struct sample {
	char   name[160]; /* with labels, as written */
	double value;
};

struct page {
	char          text[TEXT_BYTES];
	struct sample samples[64];
	size_t        count;
};

/* Every line is HELP, TYPE or `series value`; nothing else may occur. */
static void parse(struct page *page)
{
	char *rest = page->text;
	char *line;

	page->count = 0;
	while ((line = strsep(&rest, "\n")) && *line) {
		struct sample *const sample = &page->samples[page->count];
		char *const          space = strrchr(line, ' ');
		char                *end;

		if (strncmp(line, "# HELP kvstrata_", 16) == 0 ||
		    strncmp(line, "# TYPE kvstrata_", 16) == 0)
			continue;
		assert_int_equal(strncmp(line, "kvstrata_", 9), 0);
		assert_non_null(space);
		sample->value = strtod(space + 1, &end);
		assert_true(end > space + 1 && *end == '\0');
		snprintf(sample->name, sizeof(sample->name), "%.*s", (int)(space - line), line);
		assert_true(++page->count < ARRAY_COUNT(page->samples));
	}
	/* The text ends with a line end. */
	assert_true(line && rest == NULL);
}

static void read_back(const struct metrics *metrics, struct page *ret_page)
{
	const size_t length = metrics_text(metrics, ret_page->text, TEXT_BYTES);

	assert_true(length < TEXT_BYTES);
	assert_int_equal(strlen(ret_page->text), length);
	parse(ret_page);
}

static double value_of(const struct page *page, const char *name)
{
	size_t i;

	for (i = 0; i < page->count; i++) {
		if (strcmp(page->samples[i].name, name) == 0)
			return page->samples[i].value;
	}
	fail_msg("no sample %s", name);
	return 0;
}

static struct metrics *open_with(const char *labels)
{
	struct metrics  *metrics;
	struct kvs_error err;

	assert_int_equal(metrics_open(labels, &metrics, &err), 0);
	return metrics;
}

static _Atomic uint64_t *counter(struct metrics *metrics, const char *name, const char *label,
				 double scale)
{
	_Atomic uint64_t *cell;
	struct kvs_error  err;

	assert_int_equal(
		metrics_value(metrics, METRIC_COUNTER, name, label, "h", scale, &cell, &err), 0);
	return cell;
}

static void refuse(struct metrics *metrics, enum metric_kind kind, const char *name,
		   const char *label, const char *help, double scale)
{
	_Atomic uint64_t *cell = NULL;
	struct kvs_error  err = { 0 };
	const int         rc = metrics_value(metrics, kind, name, label, help, scale, &cell, &err);

	assert_int_equal(rc, KVS_E_INVALID);
	assert_int_equal(err.code, rc);
	assert_null(cell);
}

static void the_text_reads_back(void **state)
{
#define LABELS "model=\"m \\\"x\\\"\",tp_rank=\"0\""
	struct metrics *const   metrics = open_with(LABELS);
	_Atomic uint64_t *const big = counter(metrics, "kvstrata_big_total", NULL, 1);
	_Atomic uint64_t *const busy = counter(metrics, "kvstrata_busy_seconds_total", "door=\"a\"",
					       1e-9);
	struct page             page;

	(void)state;
	*big = UINT64_C(9007199254740992);
	*busy = 1500000000;
	read_back(metrics, &page);
	assert_int_equal(page.count, 2);
	assert_true(value_of(&page, "kvstrata_big_total{" LABELS "}") == 9007199254740992.);
	assert_true(value_of(&page, "kvstrata_busy_seconds_total{" LABELS ",door=\"a\"}") == 1.5);
#undef LABELS
	*busy += 1;
	read_back(metrics, &page);
	assert_true(fabs(page.samples[1].value - 1.500000001) < 1e-12);
	metrics_close(metrics);
}

/* One family in one piece, though another metric was registered in between. */
static void a_family_is_written_once(void **state)
{
	struct metrics *const metrics = open_with("");
	struct kvs_error      err;
	_Atomic uint64_t     *gauge;
	char                  text[512];

	(void)state;
	*counter(metrics, "kvstrata_drops_total", "reason=\"full\"", 1) = 1;
	assert_int_equal(metrics_value(metrics, METRIC_GAUGE, "kvstrata_depth", NULL, "of a queue",
				       1, &gauge, &err),
			 0);
	*gauge = 7;
	*counter(metrics, "kvstrata_drops_total", "reason=\"late\"", 1) = 2;
	metrics_text(metrics, text, sizeof(text));
	assert_string_equal(text, "# HELP kvstrata_drops_total h\n"
				  "# TYPE kvstrata_drops_total counter\n"
				  "kvstrata_drops_total{reason=\"full\"} 1\n"
				  "kvstrata_drops_total{reason=\"late\"} 2\n"
				  "# HELP kvstrata_depth of a queue\n"
				  "# TYPE kvstrata_depth gauge\n"
				  "kvstrata_depth 7\n");
	metrics_close(metrics);
}

static void a_histogram_is_a_summary(void **state)
{
	static struct histogram histogram;
	struct metrics *const   metrics = open_with("role=\"fused\"");
	struct kvs_error        err;
	struct page             page;
	uint64_t                i;

	(void)state;
	assert_int_equal(
		metrics_histogram(metrics, "kvstrata_wait_seconds", NULL, "h", 1e-3, &histogram, &err),
		0);
	read_back(metrics, &page);
	assert_true(
		isnan(value_of(&page, "kvstrata_wait_seconds{role=\"fused\",quantile=\"0.5\"}")));
	for (i = 1; i <= 10; i++)
		histogram_add(&histogram, i);
	read_back(metrics, &page);
	assert_true(value_of(&page, "kvstrata_wait_seconds{role=\"fused\",quantile=\"0.5\"}") ==
		    0.005);
	assert_true(value_of(&page, "kvstrata_wait_seconds{role=\"fused\",quantile=\"0.9\"}") ==
		    0.009);
	assert_true(value_of(&page, "kvstrata_wait_seconds{role=\"fused\",quantile=\"0.99\"}") ==
		    0.01);
	assert_true(value_of(&page, "kvstrata_wait_seconds_sum{role=\"fused\"}") == 0.055);
	assert_true(value_of(&page, "kvstrata_wait_seconds_count{role=\"fused\"}") == 10);
	/* Another of the name has a label of its own, and a bad one is refused. */
	assert_int_equal(metrics_histogram(metrics, "kvstrata_wait_seconds", "lane=\"1\"", "h", 1e-3,
					   &histogram, &err),
			 0);
	assert_int_equal(metrics_histogram(metrics, "kvstrata_wait_seconds", "lane", "h", 1e-3, &histogram,
					   &err),
			 KVS_E_INVALID);
	read_back(metrics, &page);
	assert_true(value_of(&page, "kvstrata_wait_seconds_count{role=\"fused\",lane=\"1\"}") == 10);
	metrics_close(metrics);
}

/* As snprintf: any buffer gets the front of the text, terminated, and the length is the whole. */
static void a_short_buffer_gets_the_front(void **state)
{
	struct metrics *const metrics = open_with("a=\"b\"");
	char                  whole[512], part[512];
	size_t                length, bytes;

	(void)state;
	counter(metrics, "kvstrata_x_total", NULL, 1);
	length = metrics_text(metrics, whole, sizeof(whole));
	assert_int_equal(metrics_text(metrics, NULL, 0), length);
	for (bytes = 1; bytes <= length + 1; bytes++) {
		memset(part, 'z', sizeof(part));
		assert_int_equal(metrics_text(metrics, part, bytes), length);
		assert_int_equal(strlen(part), bytes - 1);
		assert_memory_equal(part, whole, bytes - 1);
		assert_int_equal(part[bytes], 'z');
	}
	metrics_close(metrics);
}

static void an_empty_registry_is_an_empty_text(void **state)
{
	struct metrics *const metrics = open_with("");
	char                  text[4] = "zzz";

	(void)state;
	assert_int_equal(metrics_text(metrics, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	metrics_close(metrics);
	metrics_close(NULL);
}

static void bad_labels_are_refused(void **state)
{
	static const char *const bad[] = { "a",		"a=",	      "a=b",	  "a=\"",
					   "a=\"b",	"a=\"b\",",   "a=\"b\"c", "1a=\"b\"",
					   "=\"b\"",	"a=\"b\nc\"", "a=\"\\\"", "a=\"\\",
					   "a=\"\\x\"", "a=\"b\" " };
	struct metrics   *metrics = NULL;
	_Atomic uint64_t *cell = NULL;
	struct kvs_error  err;
	char              wide[METRICS_LABEL_BYTES + 1];
	size_t            i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(bad); i++)
		assert_int_equal(metrics_open(bad[i], &metrics, &err), KVS_E_INVALID);
	assert_null(metrics);
	metrics = open_with("");
	for (i = 0; i < ARRAY_COUNT(bad); i++)
		refuse(metrics, METRIC_GAUGE, "kvstrata_x", bad[i], "h", 1);
	refuse(metrics, METRIC_GAUGE, "kvstrata_x", "a=\"b\",c=\"d\"", "h", 1);
	memset(wide, 'w', sizeof(wide));
	memcpy(wide, "k=\"", 3);
	memcpy(wide + sizeof(wide) - 2, "\"", 2);
	refuse(metrics, METRIC_GAUGE, "kvstrata_x", wide, "h", 1);
	memcpy(wide + sizeof(wide) - 3, "\"", 2);
	assert_int_equal(
		metrics_value(metrics, METRIC_GAUGE, "kvstrata_x", wide, "h", 1, &cell, &err), 0);
	metrics_close(metrics);
}

static void bad_metrics_are_refused(void **state)
{
	static const char *const bad[] = { "",             "kvstrata_", "kvstrata_a b",
					   "kvstrata_a\n", "other_x",   "kvstrata_\xc3" };
	struct metrics *const    metrics = open_with("");
	size_t                   i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(bad); i++)
		refuse(metrics, METRIC_GAUGE, bad[i], NULL, "h", 1);
	refuse(metrics, METRIC_GAUGE, "kvstrata_x", NULL, "a\nb", 1);
	refuse(metrics, METRIC_GAUGE, "kvstrata_x", NULL, "h", 0);
	refuse(metrics, METRIC_GAUGE, "kvstrata_x", NULL, "h", NAN);
	counter(metrics, "kvstrata_x_total", "a=\"1\"", 1);
	refuse(metrics, METRIC_COUNTER, "kvstrata_x_total", "a=\"1\"", "h", 1);
	refuse(metrics, METRIC_GAUGE, "kvstrata_x_total", "a=\"2\"", "h", 1);
	refuse(metrics, METRIC_COUNTER, "kvstrata_x_total", "a=\"2\"", "g", 1);
	metrics_close(metrics);
}

static void a_full_registry_refuses(void **state)
{
	struct metrics *const metrics = open_with("");
	_Atomic uint64_t     *cell;
	struct kvs_error      err;
	char                  label[32];
	int                   i;

	(void)state;
	for (i = 0; i < METRICS_MAX; i++) {
		snprintf(label, sizeof(label), "i=\"%d\"", i);
		counter(metrics, "kvstrata_x_total", label, 1);
	}
	assert_int_equal(
		metrics_value(metrics, METRIC_GAUGE, "kvstrata_y", NULL, "h", 1, &cell, &err),
		KVS_E_FULL);
	metrics_close(metrics);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t left = *(const uint64_t *)a;
	const uint64_t right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

/* Against the sorted list: never below the true value, at most 1/64 above it. */
static void percentiles_are_close(void **state)
{
	static const double     percents[] = { 0, 1, 50, 90, 99, 99.9, 100, 200 };
	static struct histogram histogram;
	static uint64_t         values[5000];
	struct prng             prng;
	size_t                  i;

	(void)state;
	prng_seed(&prng, 1);
	for (i = 0; i < ARRAY_COUNT(values); i++) {
		values[i] = prng_u64(&prng) >> prng_below(&prng, 64);
		histogram_add(&histogram, values[i]);
	}
	qsort(values, ARRAY_COUNT(values), sizeof(values[0]), by_value);
	for (i = 0; i < ARRAY_COUNT(percents); i++) {
		const double   rank = ceil(percents[i] * (double)ARRAY_COUNT(values) / 100);
		const size_t   index = rank < 1 ? 0 : rank > 5000 ? 4999 : (size_t)rank - 1;
		const uint64_t got = histogram_percentile(&histogram, percents[i]);

		assert_true(got >= values[index]);
		assert_true(got - values[index] <= values[index] / HISTOGRAM_STEPS);
	}
}

static void a_histogram_takes_all_integers(void **state)
{
	static struct histogram empty, histogram;

	(void)state;
	assert_int_equal(histogram_percentile(&empty, 50), 0);
	assert_true(histogram_mean(&empty) == 0);
	histogram_add(&histogram, 0);
	assert_int_equal(histogram_percentile(&histogram, 100), 0);
	histogram_add(&histogram, UINT64_MAX);
	assert_true(histogram_percentile(&histogram, 100) == UINT64_MAX);
	assert_int_equal(histogram_percentile(&histogram, 50), 0);
	histogram_add(&empty, 1000);
	histogram_add(&empty, 2000);
	assert_true(histogram_mean(&empty) == 1500);
	assert_int_equal(histogram_percentile(&empty, 99), 2000);
	histogram_add(&empty, UINT64_MAX);
	histogram_add(&empty, UINT64_MAX);
	/* The sum stays at its end instead of wrapping. */
	assert_true(histogram_mean(&empty) > 1e18);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_text_reads_back),
		cmocka_unit_test(a_family_is_written_once),
		cmocka_unit_test(a_histogram_is_a_summary),
		cmocka_unit_test(a_short_buffer_gets_the_front),
		cmocka_unit_test(an_empty_registry_is_an_empty_text),
		cmocka_unit_test(bad_labels_are_refused),
		cmocka_unit_test(bad_metrics_are_refused),
		cmocka_unit_test(a_full_registry_refuses),
		cmocka_unit_test(percentiles_are_close),
		cmocka_unit_test(a_histogram_takes_all_integers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
