/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A segment that is being cleaned, for clean.c, which chooses what stays, and move.c, which writes that
 * elsewhere.  With roll held, so that there is one at a time.
 */
#ifndef STRATA_CLEAN_H
#define STRATA_CLEAN_H

#include "strata/core.h"

#define RECORD_WORDS ((STRATA_RECORDS_MAX + 63) / 64)

/* What is read and placed, but not yet written. */
struct moving {
	struct group  group;
	struct record records[HEADER_RECORDS];
	uint32_t      from[HEADER_RECORDS]; /* entries of the summary */
	uint64_t      bytes;
};

struct cleaning {
	uint32_t              segment;
	uint64_t              failed_before; /* syncs */
	uint32_t              count;    /* of its summary, which lies in s->summary */
	struct summary_entry *entries;
	uint64_t              kept[RECORD_WORDS];
	uint32_t              kept_pages;
	uint64_t              moved[RECORD_WORDS]; /* written elsewhere, perhaps not synced */
	uint32_t              moved_count;
	struct moving         moving;
};

/* With the lock.  The entry that names this very record; SLOT_NONE when it is dead. */
uint32_t cleaning_entry(const struct strata *s, const struct cleaning *cleaning, uint32_t i);

/*
 * Write what was kept elsewhere.  What cannot be moved is lost.  -EAGAIN, KVS_E_FULL: room is lacking
 * for something that is locked; the rest of it stays where it is.
 */
int cleaning_move(struct strata *s, struct cleaning *cleaning);

#endif
