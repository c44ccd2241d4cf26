/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A prisoner: this very program again, started through os/jail.h, that plays a part and tells of it.
 *
 * In it CELL_LINE is a stream to the test, and CELL_FD what the plan gave along.  A part ends with
 * the process, whose exit handlers do not run: a sanitizer's would start processes.
 */
#ifndef CELL_H
#define CELL_H

#include <stdbool.h>
#include <stddef.h>

#include "os/jail.h"

#define CELL_LINE 3
#define CELL_FD   4

struct cell_part {
	const char *name;
	void      (*play)(void);
};

/* First of all in main(): where this is a prisoner its part is played, and this does not return. */
void cell_play(int argc, char **argv, const struct cell_part *parts, size_t count);
void cell_tell(const void *bytes, size_t count);

struct cell {
	struct os_jail jail;
	int            line; /* a blocking stream from the prisoner */
};

/* fd: -1, or given along. */
int cell_start(const char *part, bool confine, int fd, struct cell *ret_cell);
/* What it tells until the line closes or room is full; how much. */
size_t cell_hear(const struct cell *cell, void *bytes, size_t room);
/* Wait for its end, and close the line. */
void cell_end(struct cell *cell);
void cell_kill(struct cell *cell); /* and end */

#endif
