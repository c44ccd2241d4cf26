/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A progress bar on stderr: shown on a terminal only, redrawn at most ten times a second.
 *
 *   replaying 6,144 req  [##########----------]  51 %  1,402 req/s  4.2 s left
 */
#ifndef APP_PROGRESS_H
#define APP_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *title;    /* "replaying" */
	const char *unit;     /* "req" */
	uint64_t    start_ns;
	uint64_t    drawn_ns; /* 0 before the first drawing */
	bool        shown;    /* stderr is a terminal and the caller wants it */
};

void progress_start(struct progress *progress, const char *title, const char *unit, bool wanted,
		    uint64_t now_ns);
/* fraction of the work done, 0 to 1; done units so far. */
void progress_update(struct progress *progress, double fraction, uint64_t done, uint64_t now_ns);
#define PROGRESS_LINE_BYTES 256u
/* What would be drawn, without control characters, into PROGRESS_LINE_BYTES; returns it. */
char *progress_line(const struct progress *progress, double fraction, uint64_t done,
		    uint64_t now_ns, char *line);
/* Erase the line, so that something can be printed; the next update draws it again. */
void progress_clear(struct progress *progress);
/* Erase it for good, so that a report can follow. */
void progress_finish(struct progress *progress);

#endif
