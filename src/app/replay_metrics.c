/* SPDX-License-Identifier: Apache-2.0 */
/* The replay's figures as Prometheus text. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/app.h"
#include "app/figures.h"

/* One counter; err keeps the first failure. */
static int counter(struct metrics *metrics, const char *name, const char *label, const char *help,
		   uint64_t value, struct kvs_error *err)
{
	_Atomic uint64_t *cell;
	const int rc = metrics_value(metrics, METRIC_COUNTER, name, label, help, 1, &cell, err);

	if (rc == 0)
		atomic_store(cell, value);
	return rc;
}

static int labelled(struct metrics *metrics, const char *name, const char *label, const char *help,
		    const struct figure *figures, uint32_t count, struct kvs_error *err)
{
	char     pair[64];
	uint32_t i;
	int      rc = 0;

	for (i = 0; rc == 0 && i < count; i++) {
		snprintf(pair, sizeof(pair), "%s=\"%s\"", label, figures[i].name);
		rc = counter(metrics, name, pair, help, figures[i].count, err);
	}
	return rc;
}

static int fill(struct metrics *metrics, const struct replay *replay, const struct figures *figures,
		struct kvs_error *err)
{
	const struct replay_totals *const totals = &replay->totals;
	const struct exec_moved *const    moved = &figures->exec.moved;
	struct figure                     origins[ORIGIN_COUNT];
	const struct {
		const char *name, *help;
		uint64_t    value;
	} counters[] = {
		{ "kvstrata_requests_total", "Requests served.", totals->requests },
		{ "kvstrata_put_keys_total", "Keys stored or found there already by a put.",
		  moved->put_keys },
		{ "kvstrata_put_new_keys_total", "Keys newly written.", moved->put_new_keys },
		{ "kvstrata_put_bytes_total", "Payload of the newly written keys.",
		  moved->put_bytes },
		{ "kvstrata_get_keys_total", "Keys read whole and verified.", moved->get_keys },
		{ "kvstrata_get_bytes_total", "Payload of those.", moved->get_bytes },
		{ "kvstrata_corrupt_keys_total", "Keys whose stored bytes failed verification.",
		  moved->corrupt_keys },
		{ "kvstrata_rows_checked_total", "KV rows the reference engine checked.",
		  replay->engine.rows_checked },
		{ "kvstrata_wrong_bytes_total", "Bytes of them that were wrong.",
		  replay->engine.wrong_bytes },
	};
	int    rc = 0;
	size_t i;

	for (i = 0; rc == 0 && i < ARRAY_COUNT(counters); i++) {
		rc = counter(metrics, counters[i].name, NULL, counters[i].help, counters[i].value,
			     err);
	}
	for (i = 0; i < ORIGIN_COUNT; i++)
		origins[i] = (struct figure){ origin_names[i], totals->origin_blocks[i] };
	if (rc == 0) {
		rc = labelled(metrics, "kvstrata_prompt_blocks_total", "origin",
			      "Blocks of prompts by where they came from.", origins, ORIGIN_COUNT,
			      err);
	}
	if (rc == 0) {
		rc = labelled(metrics, "kvstrata_fallbacks_total", "reason",
			      "Requests that went on without the store.", figures->fallbacks,
			      figures->fallback_count, err);
	}
	if (rc == 0) {
		rc = labelled(metrics, "kvstrata_dropped_backup_keys_total", "reason",
			      "Computed blocks that did not reach the store, by occurrence.",
			      figures->drops, figures->drop_count, err);
	}
	if (rc == 0) {
		rc = metrics_histogram(metrics, "kvstrata_restore_seconds",
				       "Query to ready, of reads that brought something.", 1e-9,
				       &totals->restore_ns, err);
	}
	return rc;
}

static int write_text(const char *path, const char *text, size_t length, struct kvs_error *err)
{
	FILE *file;
	int   rc = app_open_file("metrics", path, &file, err);

	if (rc < 0)
		return rc;
	fwrite(text, 1, length, file);
	return app_close_file(file, "metrics", path, err);
}

int replay_write_metrics(const struct replay *replay, const char *path, struct kvs_error *err)
{
	struct metrics *metrics;
	struct figures  figures;
	char           *text = NULL;
	size_t          length;
	int             rc = metrics_open("", &metrics, err);

	if (rc < 0)
		return rc;
	figures_gather(replay, &figures);
	rc = fill(metrics, replay, &figures, err);
	if (rc == 0) {
		length = metrics_text(metrics, NULL, 0);
		text = malloc(length + 1);
		rc = text ? 0 : err_set(err, -ENOMEM, "metrics: no memory for the text");
	}
	if (rc == 0) {
		metrics_text(metrics, text, length + 1);
		rc = write_text(path, text, length, err);
	}
	free(text);
	metrics_close(metrics);
	return rc;
}
