/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A roll: names of blocks, first in, first out.
 *
 * Names are kept by page, a bit a column, so that what a roll has of a prompt costs a look-up a
 * page.  A name that is on the roll already keeps its place.
 *
 * Limits   name_max names, fixed at open; when it is full the oldest goes.  0: it takes none.
 * Threads  None of its own.  Nothing allocates after open.
 */
#ifndef TRANSFER_ROLL_H
#define TRANSFER_ROLL_H

#include "base/list.h"
#include "base/map.h"
#include "base/slots.h"
#include "match/pages.h"

struct roll_page {
	struct page_name name;
	uint64_t         columns;
	struct list      names;
};

struct roll_name {
	uint32_t page;
	uint32_t column;
};

struct roll {
	uint32_t          name_max;
	struct roll_page *pages;
	struct slots      page_slots;
	struct map        map;
	struct roll_name *names;
	struct slots      slots;
	struct link      *of_page;
	struct link      *of_age;
	struct list       age; /* oldest first */
};

/* 0, or -ENOMEM. */
int    roll_open(struct roll *roll, uint32_t name_max);
void   roll_close(struct roll *roll); /* a zeroed one is fine */
size_t roll_bytes(const struct roll *roll);

/* False when the oldest had to go. */
bool roll_add(struct roll *roll, const struct kvs_namespace *space, const struct prefix_hash *hash,
	      uint32_t column);
void roll_erase(struct roll *roll, const struct kvs_namespace *space,
		const struct prefix_hash *hash, uint32_t column);
/* Which columns of a page are on the roll. */
uint64_t roll_columns(const struct roll *roll, const struct kvs_namespace *space,
		      const struct prefix_hash *hash);
void     roll_clear(struct roll *roll);

void roll_audit(const struct roll *roll);

#endif
