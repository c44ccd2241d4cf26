/* SPDX-License-Identifier: Apache-2.0 */
/* Gathering what `kvstrata store inspect` shows. */
#include "app/cmd_store_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- use by namespace ------------------------------------------------------------------------- */

/* Where it is, or belongs. */
static uint32_t find_use(const struct store_view *view, const struct kvs_namespace *space)
{
	uint32_t low = 0, high = view->use_count;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (memcmp(&view->uses[middle].space, space, sizeof(*space)) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool grow(struct store_view *view)
{
	const uint32_t    use_max = view->use_max ? 2 * view->use_max : 16;
	struct store_use *uses;

	if (view->use_count < view->use_max)
		return true;
	uses = realloc(view->uses, use_max * sizeof(*uses));
	if (!uses)
		return false;
	view->uses = uses;
	view->use_max = use_max;
	return true;
}

static struct store_use *use_of(struct store_view *view, const struct kvs_namespace *space)
{
	const uint32_t    at = find_use(view, space);
	struct store_use *use;

	if (at < view->use_count && memcmp(&view->uses[at].space, space, sizeof(*space)) == 0)
		return &view->uses[at];
	if (!grow(view))
		return NULL;
	use = &view->uses[at];
	memmove(use + 1, use, (view->use_count - at) * sizeof(*use));
	*use = (struct store_use){ .space = *space };
	view->use_count++;
	return use;
}

struct counting {
	struct store_view *view;
	bool               short_of_memory;
};

static bool count(void *ctx, const struct strata_finding *finding)
{
	struct counting *const counting = ctx;
	struct store_use      *use;

	if (!finding->key) {
		counting->view->nameless++;
		return true;
	}
	use = use_of(counting->view, &finding->key->space);
	counting->short_of_memory = !use;
	if (use) {
		use->objects++;
		use->bytes += finding->bytes;
	}
	return use != NULL;
}

static int gather_uses(struct store_view *view, struct kvs_store *store)
{
	struct counting counting = { .view = view };
	const int       rc = strata_walk(store, false, count, &counting);

	return counting.short_of_memory ? -ENOMEM : rc;
}

/* --- segments --------------------------------------------------------------------------------- */

struct aged {
	uint64_t sequence;
	uint32_t number;
};

static int by_sequence(const void *a, const void *b)
{
	const struct aged *const left = a, *const right = b;

	return (left->sequence > right->sequence) - (left->sequence < right->sequence);
}

static bool is_used(const struct strata_segment_report *segment)
{
	return strcmp(segment->state, "free") != 0;
}

static int sort_segments(struct store_view *view)
{
	const uint32_t total = view->report.segment_count;
	struct aged   *aged = malloc(total * sizeof(*aged));
	uint32_t       i;

	if (!aged)
		return -ENOMEM;
	for (i = 0; i < total; i++) {
		if (is_used(&view->segments[i]))
			aged[view->used_count++] = (struct aged){ view->segments[i].sequence, i };
	}
	qsort(aged, view->used_count, sizeof(*aged), by_sequence);
	for (i = 0; i < view->used_count; i++)
		view->by_age[i] = aged[i].number;
	free(aged);
	return 0;
}

static int gather_segments(struct store_view *view, struct kvs_store *store)
{
	const uint32_t total = view->report.segment_count;
	uint32_t       i;

	view->segments = calloc(total, sizeof(*view->segments));
	view->by_age = calloc(total, sizeof(*view->by_age));
	if (!view->segments || !view->by_age)
		return -ENOMEM;
	for (i = 0; i < total; i++)
		(void)strata_inspect_segment(store, i, &view->segments[i]);
	return sort_segments(view);
}

/* --- the whole -------------------------------------------------------------------------------- */

int store_view_open(struct store_view *view, const char *path, struct kvs_error *err)
{
	struct kvs_store *store;
	int               rc;

	*view = (struct store_view){ 0 };
	view->in_use = cmd_store_in_use(path, &view->holder);
	rc = cmd_store_look(path, &store, err);
	if (rc < 0)
		return rc;
	strata_inspect(store, &view->report);
	view->free_bytes = view->report.segments_free * view->report.segment_bytes;
	view->today_bytes = view->report.day == os_wall_day() ? view->report.day_bytes : 0;
	rc = gather_segments(view, store);
	if (rc == 0)
		rc = gather_uses(view, store);
	(void)strata_close(store);
	if (rc == 0)
		return 0;
	store_view_close(view);
	return err_set(err, rc, "%s", kvs_strerror(rc));
}

void store_view_close(struct store_view *view)
{
	free(view->segments);
	free(view->by_age);
	free(view->uses);
	*view = (struct store_view){ 0 };
}

double store_view_amplification(const struct store_view *view)
{
	const struct strata_report *const report = &view->report;

	return report->put_bytes ? (double)report->written_bytes / (double)report->put_bytes : 0;
}
