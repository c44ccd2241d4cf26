/* SPDX-License-Identifier: Apache-2.0 */
/* What `kvstrata store inspect` shows: gathered once, for page and JSON alike. */
#ifndef APP_CMD_STORE_VIEW_H
#define APP_CMD_STORE_VIEW_H

#include "app/cmd_store.h"

/* What one namespace has. */
struct store_use {
	struct kvs_namespace space;
	uint64_t             objects;
	uint64_t             bytes; /* of payload */
};

struct store_view {
	struct strata_report          report;
	struct strata_segment_report *segments; /* by number */
	uint32_t                     *by_age;   /* numbers of those in use, the oldest first */
	uint32_t                      used_count;
	struct store_use             *uses;     /* by namespace */
	uint32_t                      use_count, use_max;
	uint32_t                      nameless; /* segments whose keys cannot be read */
	uint64_t                      free_bytes;
	uint64_t                      today_bytes;
	bool                          in_use;
	struct os_lock_holder         holder;
};

int  store_view_open(struct store_view *view, const char *path, struct kvs_error *err);
void store_view_close(struct store_view *view);

/* What was written for a byte that was put; 0 before the first. */
double store_view_amplification(const struct store_view *view);

void store_view_print(const struct store_view *view, const char *path);
int  store_view_print_json(const struct store_view *view, struct kvs_error *err);

#endif
