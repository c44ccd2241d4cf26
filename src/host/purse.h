/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places of one size that a call took ahead, so that a batch asks the space a few times only; what
 * it does not need goes back at its end.
 *
 * Threads  One call's own.
 */
#ifndef HOST_PURSE_H
#define HOST_PURSE_H

#include "host/visit.h"

#define PURSE_MAX 64u

struct purse {
	uint32_t pages;
	uint32_t count;
	uint32_t places[PURSE_MAX];
};

/* A place; ahead: so many of this size may be wanted.  SPACE_NONE: there is none. */
uint32_t purse_take(struct purse *purse, struct host *host, uint32_t pages, uint32_t ahead);
/*
 * A place that became free is kept when there is room among its like; else the space has it at the
 * visit's end.
 */
void purse_put(struct purse *purse, struct visit *visit, struct freed freed);
void purse_empty(struct purse *purse, struct host *host);

#endif
