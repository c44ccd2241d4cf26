/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mapping under an arena, and the honest report of what the kernel gave.  Private to the room.
 */
#ifndef ARENA_REGION_H
#define ARENA_REGION_H

#include "arena/arena.h"

struct region {
	uint8_t            *base;
	int                 fd;
	struct arena_report report;
};

/* bytes is at least 1; the flags are enum arena_flag.  0 or -errno. */
int  region_init(struct region *region, size_t bytes, unsigned flags);
void region_fini(struct region *region, bool keep_mapping);

#endif
