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
		    const struct reasons *reasons, struct kvs_error *err)
{
	char     pair[64];
	uint32_t i;
	int      rc = 0;

	for (i = 0; rc == 0 && i < reasons->count; i++) {
		snprintf(pair, sizeof(pair), "%s=\"%s\"", label, reasons->figure[i].name);
		rc = counter(metrics, name, pair, help, reasons->figure[i].count, err);
	}
	return rc;
}

struct row {
	const char *name, *help;
	uint64_t    value;
};

static int counters(struct metrics *metrics, const struct row *rows, size_t count,
		    struct kvs_error *err)
{
	size_t i;
	int    rc = 0;

	for (i = 0; rc == 0 && i < count; i++)
		rc = counter(metrics, rows[i].name, NULL, rows[i].help, rows[i].value, err);
	return rc;
}

/* --- each concept's own ----------------------------------------------------------------------- */

static int fill_moved(struct metrics *metrics, const struct exec_moved *moved,
		      struct kvs_error *err)
{
	const struct row rows[] = {
		{ "kvstrata_put_keys_total", "Keys stored or found there already by a put.",
		  moved->put_keys },
		{ "kvstrata_put_new_keys_total", "Keys newly written.", moved->put_new_keys },
		{ "kvstrata_put_bytes_total", "Payload of the newly written keys.",
		  moved->put_bytes },
		{ "kvstrata_get_keys_total", "Keys read whole and verified.", moved->get_keys },
		{ "kvstrata_get_bytes_total", "Payload of those.", moved->get_bytes },
		{ "kvstrata_corrupt_keys_total", "Keys whose stored bytes failed verification.",
		  moved->corrupt_keys },
	};

	return counters(metrics, rows, ARRAY_COUNT(rows), err);
}

static int fill_store(struct metrics *metrics, const struct figures *figures,
		      struct kvs_error *err)
{
	const struct row rows[] = {
		{ "kvstrata_store_written_bytes_total",
		  "Bytes the store wrote to its medium in its life; 0 when it does not know.",
		  figures->store.written_bytes },
		{ "kvstrata_store_moved_objects_total",
		  "Objects the store wrote again to make room.", figures->store.moved_objects },
	};
	const int rc = counters(metrics, rows, ARRAY_COUNT(rows), err);

	return rc < 0 ? rc
		      : labelled(metrics, "kvstrata_store_refused_puts_total", "reason",
				 "Puts the store refused.", &figures->refusals, err);
}

static int fill_engine(struct metrics *metrics, const struct replay *replay, struct kvs_error *err)
{
	const struct row rows[] = {
		{ "kvstrata_rows_checked_total", "KV rows the reference engine checked.",
		  replay->engine.rows_checked },
		{ "kvstrata_checkpoints_checked_total",
		  "State checkpoints the reference engine checked.",
		  replay->engine.checkpoints_checked },
		{ "kvstrata_wrong_bytes_total", "Bytes of them that were wrong.",
		  replay->engine.wrong_bytes },
	};

	return counters(metrics, rows, ARRAY_COUNT(rows), err);
}

static int fill_prompts(struct metrics *metrics, const struct replay_totals *totals,
			struct kvs_error *err)
{
	const struct row rows[] = {
		{ "kvstrata_requests_total", "Requests served.", totals->requests },
		{ "kvstrata_full_hits_total", "Requests that restored all that may be restored.",
		  totals->full_hits },
		{ "kvstrata_storage_waits_total", "Requests that waited for the store.",
		  totals->waited },
		{ "kvstrata_storage_waits_in_vain_total",
		  "Requests that waited for the store and got nothing from it.", totals->in_vain },
	};
	struct reasons   origins = { .count = ORIGIN_COUNT };
	int              i;
	int              rc = counters(metrics, rows, ARRAY_COUNT(rows), err);

	for (i = 0; i < ORIGIN_COUNT; i++) {
		origins.figure[i] =
			(struct figure){ replay_origin_names[i], totals->origin_blocks[i] };
	}
	if (rc == 0) {
		rc = labelled(metrics, "kvstrata_prompt_blocks_total", "origin",
			      "Blocks of prompts by where they came from.", &origins, err);
	}
	return rc;
}

static int fill_reasons(struct metrics *metrics, const struct figures *figures,
			struct kvs_error *err)
{
	const struct {
		const char           *name, *label, *help;
		const struct reasons *reasons;
	} families[] = {
		{ "kvstrata_missed_requests_total", "reason",
		  "Requests without a full hit, each by its one reason.", &figures->misses },
		{ "kvstrata_fallbacks_total", "reason", "Reads that ended without the store.",
		  &figures->fallbacks },
		{ "kvstrata_dropped_backup_keys_total", "reason",
		  "Computed blocks that did not reach the store, by occurrence.", &figures->drops },
		{ "kvstrata_storage_events_total", "event",
		  "What happened to reads, backups and the pressure gate.", &figures->events },
	};
	size_t i;
	int    rc = 0;

	for (i = 0; rc == 0 && i < ARRAY_COUNT(families); i++) {
		rc = labelled(metrics, families[i].name, families[i].label, families[i].help,
			      families[i].reasons, err);
	}
	return rc;
}

static int fill(struct metrics *metrics, const struct replay *replay, const struct figures *figures,
		struct kvs_error *err)
{
	int rc = fill_prompts(metrics, &replay->totals, err);

	if (rc == 0)
		rc = fill_moved(metrics, &figures->exec.moved, err);
	if (rc == 0)
		rc = fill_store(metrics, figures, err);
	if (rc == 0)
		rc = fill_engine(metrics, replay, err);
	if (rc == 0)
		rc = fill_reasons(metrics, figures, err);
	if (rc == 0) {
		rc = metrics_histogram(metrics, "kvstrata_restore_seconds", NULL,
				       "Query to ready, of reads that brought something.", 1e-9,
				       &replay->totals.restore_ns, err);
	}
	return rc;
}

/* --- the file --------------------------------------------------------------------------------- */

static int write_text(const char *path, const char *text, size_t length, struct kvs_error *err)
{
	FILE *file;
	int   failed;
	int   rc = app_open_file("metrics", path, &file, err);

	if (rc < 0)
		return rc;
	failed = fwrite(text, 1, length, file) < length ? errno : 0;
	rc = app_close_file(file, "metrics", path, err);
	/*
	 * More than a buffer is written before the close, which then knows no longer why it failed.
	 */
	if (failed) {
		rc = err_set(err, -failed, "metrics: cannot write %.120s: %s", path,
			     strerror(failed));
	}
	return rc;
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
