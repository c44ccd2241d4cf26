/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated world: the only clock, the only source of chance, and the record of what happened.
 *
 * Everything that will happen is an event in one heap, keyed by its tick, then by a number drawn
 * when it was planned, then by its sequence: of all that may happen at one tick, the seed decides
 * what comes first.  Nothing else runs, so one seed is one history.  Each line of the history goes
 * into a hash, and the last ones are kept for a report.
 *
 * Limits   EVENT_MAX planned events; asserted.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "base/err.h"
#include "base/prng.h"

#define EVENT_MAX       1024u
#define HISTORY_LINES   40u
#define HISTORY_COLUMNS 120u

typedef void world_act(void *context, uint64_t argument);

struct event {
	uint64_t   tick;
	uint64_t   tie;
	uint64_t   sequence;
	world_act *act;
	uint64_t   argument;
};

struct world {
	uint64_t     seed;
	uint64_t     steps_asked; /* before the faults stop: part of how to run it again */
	uint64_t     now;         /* in ticks; rooms take a tick for a nanosecond */
	uint64_t     step;
	struct prng  prng;
	void        *context; /* what acts get */
	struct event heap[EVENT_MAX];
	uint32_t     event_count;
	uint64_t     sequence;
	bool         loud; /* print the history as it happens */
	uint64_t     hash; /* of the history */
	uint64_t     line_count;
	char         lines[HISTORY_LINES][HISTORY_COLUMNS];
	const char  *invariant; /* what is being checked: a panic of a room breaks it */
};

/* From here on a panic, or a sanitizer's report, ends in world_fail() of this world. */
void world_open(struct world *world, uint64_t seed, void *context);
void world_close(struct world *world);

/* Plan an act for `delay` ticks from now. */
void world_after(struct world *world, uint64_t delay, world_act *act, uint64_t argument);
/* The next event happens.  False when none is planned. */
bool world_step(struct world *world);

/* 1 .. most, evenly. */
uint64_t world_draw(struct world *world, uint64_t most);

/* One line of history. */
void world_note(struct world *world, const char *format, ...) PRINTF_LIKE(2, 3);

/* Report what broke, the history and the command that repeats it; end the process with status 1. */
_Noreturn void world_fail(struct world *world, const char *invariant, const char *format, ...)
	PRINTF_LIKE(3, 4);

#endif
