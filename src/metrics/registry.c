/* SPDX-License-Identifier: Apache-2.0 */
/* Registration: everything that could spoil the text is refused here, so that writing it cannot fail. */
#include "metrics/registry.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "kvstrata_"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define DIGITS "0123456789"

/* The place behind one key="value"; NULL when there is none. */
static const char *label_end(const char *text)
{
	const size_t key = strspn(text, LETTERS DIGITS);

	if (key == 0 || strchr(DIGITS, text[0]) || text[key] != '=' || text[key + 1] != '"')
		return NULL;
	for (text += key + 2; *text && *text != '"'; text++) {
		if (*text == '\n')
			return NULL;
		if (*text == '\\' && !(*++text && strchr("\\\"n", *text)))
			return NULL;
	}
	return *text == '"' ? text + 1 : NULL;
}

static bool labels_valid(const char *labels)
{
	const char *at = label_end(labels);

	while (at && *at == ',')
		at = label_end(at + 1);
	return at && *at == '\0';
}

int metrics_open(const char *labels, struct metrics **ret_metrics, struct kvs_error *err)
{
	struct metrics *metrics;

	if (labels[0] && !labels_valid(labels)) {
		return err_set(err, KVS_E_INVALID, "labels: '%s' is not a list of key=\"value\"",
			       labels);
	}
	metrics = calloc(1, sizeof(*metrics));
	if (!metrics)
		goto fail;
	metrics->labels = strdup(labels);
	metrics->numbers = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	if (!metrics->labels || !metrics->numbers)
		goto fail;
	*ret_metrics = metrics;
	return 0;

fail:
	metrics_close(metrics);
	return err_set(err, -ENOMEM, "metrics: no memory for the registry");
}

void metrics_close(struct metrics *metrics)
{
	if (!metrics)
		return;
	if (metrics->numbers)
		freelocale(metrics->numbers);
	free(metrics->labels);
	free(metrics);
}

static bool name_valid(const char *name)
{
	return strncmp(name, PREFIX, strlen(PREFIX)) == 0 && name[strlen(PREFIX)] &&
	       name[strspn(name, LETTERS DIGITS)] == '\0';
}

/* Metrics of one name are one family: the same kind and help, each label once. */
static int check_family(const struct metrics *metrics, const struct metric *wanted,
			struct kvs_error *err)
{
	uint32_t i;

	for (i = 0; i < metrics->count; i++) {
		const struct metric *const other = &metrics->metric[i];

		if (strcmp(other->name, wanted->name) != 0)
			continue;
		if (strcmp(other->label, wanted->label) == 0) {
			return err_set(err, KVS_E_INVALID, "name: %s {%s} is already registered",
				       wanted->name, wanted->label);
		}
		if (other->kind != wanted->kind || strcmp(other->help, wanted->help) != 0) {
			return err_set(err, KVS_E_INVALID,
				       "name: %s has another kind or help already", wanted->name);
		}
	}
	return 0;
}

static int check(const struct metrics *metrics, const struct metric *wanted, struct kvs_error *err)
{
	if (!name_valid(wanted->name)) {
		return err_set(err, KVS_E_INVALID,
			       "name: '%s' is not " PREFIX "* of letters, digits and _",
			       wanted->name);
	}
	if (wanted->help[strcspn(wanted->help, "\n\\")]) {
		return err_set(err, KVS_E_INVALID, "help: of %s holds a line end or a backslash",
			       wanted->name);
	}
	if (!(wanted->unit_scale > 0) || !isfinite(wanted->unit_scale)) {
		return err_set(err, KVS_E_INVALID, "unit_scale: of %s is not a positive number",
			       wanted->name);
	}
	if (metrics->count == METRICS_MAX) {
		return err_set(err, KVS_E_FULL, "metrics: %s is one more than the %d of a registry",
			       wanted->name, METRICS_MAX);
	}
	return check_family(metrics, wanted, err);
}

static int add(struct metrics *metrics, const struct metric *wanted, struct kvs_error *err)
{
	const int rc = check(metrics, wanted, err);

	if (rc == 0)
		metrics->metric[metrics->count++] = *wanted;
	return rc;
}

/* label may be NULL: none. */
static int set_label(struct metric *metric, const char *label, struct kvs_error *err)
{
	const char *const end = label ? label_end(label) : NULL;

	if (!label)
		return 0;
	if (!end || *end)
		return err_set(err, KVS_E_INVALID, "label: '%s' is not one key=\"value\"", label);
	if (strlen(label) >= sizeof(metric->label)) {
		return err_set(err, KVS_E_INVALID, "label: '%s' is longer than %zu bytes", label,
			       sizeof(metric->label) - 1);
	}
	memcpy(metric->label, label, strlen(label));
	return 0;
}

int metrics_value(struct metrics *metrics, enum metric_kind kind, const char *name,
		  const char *label, const char *help, double unit_scale,
		  _Atomic uint64_t **ret_value, struct kvs_error *err)
{
	struct metric wanted = {
		.name = name, .help = help, .unit_scale = unit_scale, .kind = kind
	};
	int           rc;

	KVS_ASSERT(kind != METRIC_HISTOGRAM);
	rc = set_label(&wanted, label, err);
	if (rc == 0)
		rc = add(metrics, &wanted, err);
	if (rc == 0)
		*ret_value = &metrics->metric[metrics->count - 1].value;
	return rc;
}

int metrics_histogram(struct metrics *metrics, const char *name, const char *label,
		      const char *help, double unit_scale, const struct histogram *histogram,
		      struct kvs_error *err)
{
	struct metric wanted = { .name = name, .help = help, .unit_scale = unit_scale,
				 .kind = METRIC_HISTOGRAM, .histogram = histogram };
	const int     rc = set_label(&wanted, label, err);

	return rc < 0 ? rc : add(metrics, &wanted, err);
}
