/* SPDX-License-Identifier: Apache-2.0 */
/* The prefetch controller's tables: all that it will ever need, at its open. */
#include <errno.h>
#include <stdlib.h>

#include "base/bits.h"
#include "ctrl/prefetch_desk.h"

/*
 * All requests' keys that tables have room for: 4 GiB, of which what is never asked for stays
 * untouched.
 */
#define TABLE_KEYS_MAX (1U << 26)

static int check(const struct ctrl_limits *limits, struct kvs_error *err)
{
	const int rc = ctrl_limits_check(limits, "prefetch", err);

	if (rc < 0)
		return rc;
	if (limits->request_keys == 0 || limits->request_keys > CTRL_KEYS_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "prefetch request keys: %u is out of range; use 1 to %u",
			       limits->request_keys, CTRL_KEYS_MAX);
	}
	if (limits->queue_max > TABLE_KEYS_MAX / limits->request_keys) {
		return err_set(err, KVS_E_INVALID,
			       "prefetch queue: %u requests of %u keys are too many; use at most %u "
			       "keys in all",
			       limits->queue_max, limits->request_keys, TABLE_KEYS_MAX);
	}
	return 0;
}

static int open_asks(struct prefetch_ctrl *ctrl)
{
	const uint32_t keys = ctrl->limits.request_keys, count = ctrl->limits.queue_max;
	const size_t   words = bits_words(keys);
	uint32_t       i;

	ctrl->asks = calloc(count, sizeof(*ctrl->asks));
	ctrl->links = calloc(count, sizeof(*ctrl->links));
	ctrl->all_keys = calloc((size_t)count * keys, sizeof(*ctrl->all_keys));
	ctrl->all_bytes = calloc((size_t)count * keys, sizeof(*ctrl->all_bytes));
	ctrl->all_held = calloc(count * words, sizeof(*ctrl->all_held));
	ctrl->all_locked = calloc(count * words, sizeof(*ctrl->all_locked));
	if (!ctrl->asks || !ctrl->links || !ctrl->all_keys || !ctrl->all_bytes || !ctrl->all_held ||
	    !ctrl->all_locked || slots_open(&ctrl->slots, count) < 0)
		return -ENOMEM;
	list_links_init(ctrl->links, count);
	list_init(&ctrl->queue);
	list_init(&ctrl->dropped);
	for (i = 0; i < count; i++) {
		ctrl->asks[i].ask.keys = ctrl->all_keys + (size_t)i * keys;
		ctrl->asks[i].ask.bytes = ctrl->all_bytes + (size_t)i * keys;
		ctrl->asks[i].ask.held = ctrl->all_held + i * words;
		ctrl->asks[i].locked = ctrl->all_locked + i * words;
	}
	return 0;
}

static int open_runs(struct prefetch_ctrl *ctrl)
{
	const uint32_t count = ctrl->limits.in_flight_max + 1;
	uint32_t       i;

	ctrl->runs = calloc(count, sizeof(*ctrl->runs));
	ctrl->answer = calloc(bits_words(ctrl->limits.request_keys), sizeof(*ctrl->answer));
	ctrl->spans = calloc(HOST_KEYS_MAX, sizeof(*ctrl->spans));
	ctrl->rc = calloc(HOST_KEYS_MAX, sizeof(*ctrl->rc));
	if (!ctrl->runs || !ctrl->answer || !ctrl->spans || !ctrl->rc ||
	    slots_open(&ctrl->busy, count) < 0 ||
	    prefetch_tools_open(&ctrl->tools, ctrl->limits.request_keys) < 0)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		if (prefetch_run_open(&ctrl->runs[i], ctrl->limits.request_keys) < 0)
			return -ENOMEM;
	}
	return 0;
}

void prefetch_tables_close(struct prefetch_ctrl *ctrl)
{
	uint32_t i;

	for (i = 0; ctrl->runs && i < ctrl->limits.in_flight_max + 1; i++)
		prefetch_run_close(&ctrl->runs[i]);
	prefetch_tools_close(&ctrl->tools);
	slots_close(&ctrl->busy);
	free(ctrl->rc);
	free(ctrl->spans);
	free(ctrl->answer);
	free(ctrl->runs);
	slots_close(&ctrl->slots);
	free(ctrl->all_locked);
	free(ctrl->all_held);
	free(ctrl->all_bytes);
	free(ctrl->all_keys);
	free(ctrl->links);
	free(ctrl->asks);
	free(ctrl);
}

int prefetch_tables_open(const struct ctrl_limits *limits, struct prefetch_ctrl **ret_ctrl,
			 struct kvs_error *err)
{
	struct prefetch_ctrl *ctrl;
	int                   rc = check(limits, err);

	if (rc < 0)
		return rc;
	ctrl = calloc(1, sizeof(*ctrl));
	if (!ctrl)
		return err_set(err, -ENOMEM, "prefetch controller: no memory");
	ctrl->limits = *limits;
	if (open_asks(ctrl) < 0 || open_runs(ctrl) < 0) {
		prefetch_tables_close(ctrl);
		return err_set(err, -ENOMEM,
			       "prefetch controller: no memory for %u requests of %u keys",
			       limits->queue_max, limits->request_keys);
	}
	*ret_ctrl = ctrl;
	return 0;
}
