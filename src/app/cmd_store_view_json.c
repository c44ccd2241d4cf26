/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of `kvstrata store inspect`.  Its keys are listed in docs/stores.md. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include "app/cmd_store_view.h"
#include "app/key_text.h"
#include "base/digest.h"

/* json_*_set_new() owns its value and fails on NULL, so a failed allocation shows at the end. */
static void set_integer(json_t *object, const char *name, uint64_t value)
{
	json_object_set_new(object, name, json_integer((json_int_t)value));
}

static json_t *holder(const struct store_view *view)
{
	if (!view->in_use)
		return json_null();
	return json_pack("{s:I, s:s}", "pid", (json_int_t)view->holder.pid, "name",
			 view->holder.name);
}

static json_t *namespaces(const struct store_view *view)
{
	json_t *const array = json_array();
	char          space[KEY_TEXT_SPACE_BYTES];
	uint32_t      i;

	for (i = 0; i < view->use_count; i++) {
		const struct store_use *const use = &view->uses[i];

		key_text_space(&use->space, space);
		json_array_append_new(array, json_pack("{s:s, s:I, s:I}", "namespace", space,
						       "objects", (json_int_t)use->objects,
						       "payload_bytes", (json_int_t)use->bytes));
	}
	return array;
}

static json_t *segment(const struct store_view *view, uint32_t rank)
{
	const struct strata_segment_report *const found = &view->segments[view->by_age[rank]];

	return json_pack("{s:I, s:I, s:s, s:I, s:I, s:I, s:I}", "age", (json_int_t)rank + 1,
			 "segment", (json_int_t)view->by_age[rank], "state", found->state,
			 "sequence", (json_int_t)found->sequence, "records",
			 (json_int_t)found->record_count, "objects", (json_int_t)found->live_count,
			 "live_bytes", (json_int_t)found->live_bytes);
}

static json_t *segments(const struct store_view *view)
{
	json_t *const array = json_array();
	uint32_t      i;

	for (i = 0; i < view->used_count; i++)
		json_array_append_new(array, segment(view, i));
	return array;
}

static json_t *recovery(const struct store_view *view)
{
	const struct strata_report *const report = &view->report;

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "unsealed_segments",
			 (json_int_t)report->segments_unsealed, "torn_records",
			 (json_int_t)report->torn_records, "stale_records",
			 (json_int_t)report->stale_records, "foreign_records",
			 (json_int_t)report->foreign_records, "damaged_structures",
			 (json_int_t)report->damaged_structures, "nameless_segments",
			 (json_int_t)view->nameless);
}

static json_t *whole(const struct store_view *view)
{
	const struct strata_report *const report = &view->report;
	json_t *const                     object = json_object();
	char                              id[2 * sizeof(report->id) + 1];

	hex_encode(report->id, sizeof(report->id), id);
	set_integer(object, "version", report->version);
	json_object_set_new(object, "id", json_string(id));
	json_object_set_new(object, "in_use_by", holder(view));
	set_integer(object, "opens", report->epoch);
	set_integer(object, "capacity_bytes", report->capacity_bytes);
	set_integer(object, "segment_bytes", report->segment_bytes);
	set_integer(object, "segment_count", report->segment_count);
	set_integer(object, "segments_free", report->segments_free);
	set_integer(object, "objects", report->object_count);
	set_integer(object, "live_bytes", report->live_bytes);
	set_integer(object, "dead_bytes", report->dead_bytes);
	set_integer(object, "free_bytes", view->free_bytes);
	set_integer(object, "put_bytes", report->put_bytes);
	set_integer(object, "written_bytes", report->written_bytes);
	json_object_set_new(object, "write_amplification",
			    json_real(store_view_amplification(view)));
	set_integer(object, "written_today_bytes", view->today_bytes);
	json_object_set_new(object, "recovery", recovery(view));
	json_object_set_new(object, "namespaces", namespaces(view));
	json_object_set_new(object, "segments", segments(view));
	return object;
}

int store_view_print_json(const struct store_view *view, struct kvs_error *err)
{
	json_t *const object = whole(view);
	const int     failed = !object || json_dumpf(object, stdout,
						     JSON_INDENT(2) | JSON_REAL_PRECISION(6)) < 0;

	json_decref(object);
	putchar('\n');
	/* What could not be written is found when standard output is flushed. */
	return failed && !ferror(stdout) ? err_set(err, -ENOMEM, "no memory for the report") : 0;
}
