/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Mooncake store on a byway, with spans to move and a master's HTTP interface that says what it
 * is told.  The object of a number has key and payload of named_block.h.
 */
#ifndef LIB_WHARF_H
#define LIB_WHARF_H

#include "byway.h"
#include "store/mooncake.h"

#define WHARF_BLOCK 8192u
#define WHARF_TRAILER 4096u
#define WHARF_SPANS 64u

struct wharf {
	struct byway_cluster     cluster;
	struct byway             byway;
	struct mooncake_settings settings; /* before wharf_open() */
	struct kvs_store        *store;
	uint8_t                 *memory;
	const char              *segments; /* what the interface answers; NULL: nothing */
	uint32_t                 fetches;
	char                     url[128]; /* of the last one */
	bool                     retired;  /* of the last move */
};

/* cmocka's: *state is a wharf, open between. */
int wharf_setup(void **state);
int wharf_teardown(void **state);

void wharf_open(struct wharf *wharf);
void wharf_close(struct wharf *wharf); /* the store */

/* The place of a number, WHARF_SPANS of them. */
struct kvs_span wharf_span(struct wharf *wharf, uint32_t number, uint32_t bytes);

/* One row. */
enum kvs_result wharf_put(struct wharf *wharf, uint32_t number, uint32_t bytes);
/* Into a place that is painted first: a DONE has the right bytes. */
enum kvs_result wharf_get(struct wharf *wharf, uint32_t number, uint32_t bytes);
enum kvs_result wharf_exists(struct wharf *wharf, uint32_t number);
enum kvs_result wharf_remove(struct wharf *wharf, uint32_t number);

struct kvs_store_info wharf_info(struct wharf *wharf);

#endif
