/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a segment whole, page by page, for what headers and payloads say by themselves: of a segment
 * that a crash left unsealed, and of one whose summary is gone.
 */
#ifndef STRATA_SCAN_H
#define STRATA_SCAN_H

#include "strata/core.h"

/* What a scan passed over: see docs/design/strata-format.md, "Recovery". */
struct scan_counts {
	uint64_t torn, stale, foreign, damaged;
};

struct scan {
	const struct strata  *s;
	struct summary_entry *entries; /* what was found, by ordinal, with room for a summary's foot */
	uint32_t              count;
	struct scan_counts    counts;  /* of all scans since it was opened */
	uint8_t              *piece;
	uint8_t              *payload; /* the largest that a segment can hold */
	uint64_t             *claimed; /* pages that a record has, a bit each */
};

/* It allocates; -ENOMEM.  Its memory is touched by scans only. */
int  scan_open(struct scan *scan, const struct strata *s);
void scan_close(struct scan *scan); /* zeroed, or half open, is fine */

/* -errno where the device fails otherwise than by a bad sector, which costs what lies there. */
int scan_segment(struct scan *scan, uint32_t segment, uint64_t sequence);

/*
 * What was never written reads as nothing.  Where a file grows with its writes, because the file system
 * cannot allocate, it ends in the midst of a segment: what lies before its end counts.
 */
int read_or_zero(const struct strata *s, void *buffer, uint64_t bytes, uint64_t offset);

#endif
