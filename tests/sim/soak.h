/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A long run of seeds that can be interrupted: a file says how far it came, and what it reached.
 *
 * The file belongs to one program, whose bytes it knows a hash of: where that is another one now the run
 * begins anew, for seeds that another program passed prove nothing.  It is replaced as a whole, so that an
 * interruption at any time leaves the last one.
 */
#ifndef SIM_SOAK_H
#define SIM_SOAK_H

#include "sim.h"

struct soak {
	const char   *path;    /* NULL: nothing is kept */
	uint64_t      first;
	uint64_t      steps;
	uint64_t      program; /* a hash of its bytes */
	uint64_t      done;    /* seeds from the first one on */
	uint64_t      hash;    /* of all their histories */
	uint64_t      started; /* when, in seconds of the epoch */
	uint64_t      seconds; /* spent so far, over all runs */
	struct covers covers;
};

/*
 * What the file says, where it is of this program and of these seeds; else a new beginning.  fresh: do not
 * look.  Prints which it is.
 */
void soak_open(struct soak *soak, bool fresh);

/* So many seeds are done: keep that now and then, and tell of it. */
void soak_note(struct soak *soak, uint64_t count);
void soak_close(struct soak *soak, uint64_t count);

#endif
