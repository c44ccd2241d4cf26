/* SPDX-License-Identifier: Apache-2.0 */
/* The replay's report as one JSON object.  Its keys are listed in docs/replay.md. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "app/figures.h"

/* json_*_set_new() owns its value and fails on NULL, so a failed allocation shows at the end. */
static json_t *integer(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *percentiles(const struct histogram *ns)
{
	return json_pack("{s:f, s:f, s:f}", "p50", (double)histogram_percentile(ns, 50) / 1e6,
			 "p90", (double)histogram_percentile(ns, 90) / 1e6, "p99",
			 (double)histogram_percentile(ns, 99) / 1e6);
}

static json_t *ttft(const struct histogram *ns)
{
	return json_pack("{s:f, s:f, s:f}", "mean", histogram_mean(ns) / 1e6, "p50",
			 (double)histogram_percentile(ns, 50) / 1e6, "p99",
			 (double)histogram_percentile(ns, 99) / 1e6);
}

static json_t *origins(const struct replay_totals *totals)
{
	json_t *const object = json_object();
	int           origin;

	for (origin = 0; origin < ORIGIN_COUNT; origin++) {
		json_object_set_new(object, replay_origin_names[origin],
				    json_pack("{s:I, s:I}", "blocks",
					      (json_int_t)totals->origin_blocks[origin], "tokens",
					      (json_int_t)totals->origin_tokens[origin]));
	}
	return object;
}

static json_t *named(const struct reasons *reasons)
{
	json_t *const object = json_object();
	uint32_t      i;

	for (i = 0; i < reasons->count; i++) {
		json_object_set_new(object, reasons->figure[i].name,
				    integer(reasons->figure[i].count));
	}
	return object;
}

static json_t *explained(const struct replay *replay)
{
	if (replay->set->explain == EXPLAIN_NONE)
		return json_null();
	return json_pack("{s:I, s:s}", "request", (json_int_t)replay->set->explain, "sentence",
			 replay->totals.explained);
}

/* What the executor saw of the store. */
static void set_moved(json_t *object, const struct figures *figures)
{
	const struct exec_moved *const moved = &figures->exec.moved;

	json_object_set_new(object, "puts", integer(moved->put_keys));
	json_object_set_new(object, "puts_new", integer(moved->put_new_keys));
	json_object_set_new(object, "gets", integer(moved->get_keys));
	json_object_set_new(object, "put_bytes", integer(moved->put_bytes));
	json_object_set_new(object, "get_bytes", integer(moved->get_bytes));
	json_object_set_new(object, "put_gb_s", json_real(figures->put_gb_s));
	json_object_set_new(object, "get_gb_s", json_real(figures->get_gb_s));
	json_object_set_new(object, "corrupt", integer(moved->corrupt_keys));
}

/* What the store says of itself. */
static void set_described(json_t *object, const struct kvs_store_info *info)
{
	json_object_set_new(object, "capacity_bytes", integer(info->capacity_bytes));
	json_object_set_new(object, "used_bytes", integer(info->used_bytes));
	json_object_set_new(object, "written_bytes", integer(info->written_bytes));
	json_object_set_new(object, "moved_objects", integer(info->moved_objects));
	json_object_set_new(object, "refused_budget", integer(info->refused_budget));
	json_object_set_new(object, "refused_admission", integer(info->refused_admission));
	json_object_set_new(object, "refused_full", integer(info->refused_full));
	json_object_set_new(object, "note", json_string(info->note));
}

static json_t *store(const struct figures *figures)
{
	json_t *const object = json_object();

	set_moved(object, figures);
	set_described(object, &figures->store);
	return object;
}

static void set_hits(json_t *object, const struct replay_totals *totals,
		     const struct figures *figures)
{
	json_object_set_new(object, "full_hits", integer(totals->full_hits));
	json_object_set_new(object, "misses", named(&figures->misses));
	json_object_set_new(object, "waited", integer(totals->waited));
	json_object_set_new(object, "waited_in_vain", integer(totals->in_vain));
}

static void set_checks(json_t *object, const struct group_engine *engine)
{
	json_object_set_new(object, "rows_checked", integer(engine->rows_checked));
	json_object_set_new(object, "checkpoints_checked", integer(engine->checkpoints_checked));
	json_object_set_new(object, "wrong_bytes", integer(engine->wrong_bytes));
}

static void set_times(json_t *object, const struct replay_totals *totals)
{
	json_object_set_new(object, "restore_ms", percentiles(&totals->restore_ns));
	json_object_set_new(object, "ttft_model_ms",
			    json_pack("{s:o, s:o, s:o}", "with_store", ttft(&totals->ttft_store_ns),
				      "without_store", ttft(&totals->ttft_local_ns), "recompute",
				      ttft(&totals->ttft_none_ns)));
}

static json_t *whole(const struct replay *replay, const struct figures *figures)
{
	const struct replay_totals *const totals = &replay->totals;
	json_t *const                     object = json_object();

	json_object_set_new(object, "requests", integer(totals->requests));
	json_object_set_new(object, "blocks", integer(totals->blocks));
	json_object_set_new(object, "tokens", integer(totals->tokens));
	json_object_set_new(object, "origin", origins(totals));
	set_hits(object, totals, figures);
	json_object_set_new(object, "explained", explained(replay));
	set_checks(object, &replay->engine);
	json_object_set_new(object, "store", store(figures));
	set_times(object, totals);
	json_object_set_new(object, "fallbacks", named(&figures->fallbacks));
	json_object_set_new(object, "drops", named(&figures->drops));
	json_object_set_new(object, "storage_events", named(&figures->events));
	json_object_set_new(object, "seconds", json_real(figures->seconds));
	json_object_set_new(object, "seed", integer(replay->set->seed));
	json_object_set_new(object, "interrupted", json_boolean(totals->interrupted));
	json_object_set_new(object, "peak_rss_bytes", integer(figures->peak_rss_bytes));
	return object;
}

int replay_print_json(const struct replay *replay, struct kvs_error *err)
{
	struct figures figures;
	json_t        *object;
	int            failed;

	figures_gather(replay, &figures);
	object = whole(replay, &figures);
	failed = !object || json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) < 0;
	json_decref(object);
	putchar('\n');
	/* What could not be written is found when standard output is flushed. */
	return failed && !ferror(stdout) ? err_set(err, -ENOMEM, "no memory for the report") : 0;
}
