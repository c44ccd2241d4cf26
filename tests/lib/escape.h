/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways to have bytes moved that outlive a process, or to give its memory away; tried one by one.
 *
 * CELL_FD is a memfd of a page.  What works leaves open descriptors behind, and dead children.
 */
#ifndef ESCAPE_H
#define ESCAPE_H

#include <stdbool.h>

#define ESCAPES 34

struct escape {
	const char *name;
	long      (*make)(void);   /* < 0 with errno */
	int         code;          /* of errno, in a jail */
	bool        works_outside; /* on every kernel that we know */
};

extern const struct escape escapes[ESCAPES];

/* What each came to: 0, or errno. */
void escape_try_all(int ret_codes[ESCAPES]);

#endif
