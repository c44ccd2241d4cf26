/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside a run: prefetch_run.c is its life, prefetch_acts.c what it does at each edge,
 * prefetch_plan.c what it loads, prefetch_tools.c how it gives back.
 */
#ifndef CTRL_PREFETCH_PARTS_H
#define CTRL_PREFETCH_PARTS_H

#include "ctrl/prefetch_run.h"

/* Which keys: asked of one after another. */
typedef bool run_pick(const struct prefetch_run *run, uint32_t key, uint32_t adapter);

/* Those that `pick` wants, to tools->keys and their places to tools->index; how many. */
uint32_t run_gather(const struct prefetch_run *run, struct prefetch_tools *tools, run_pick *pick,
		    uint32_t adapter);

/* Locks at an adapter of those that `pick` wants: given back. */
void run_unlock_store(struct prefetch_run *run, struct prefetch_tools *tools, run_pick *pick,
		      uint32_t adapter);
/* Reservations of those that `pick` wants: given back. */
void run_discard(struct prefetch_run *run, struct prefetch_tools *tools, run_pick *pick,
		 uint32_t adapter);
/* No reservation of this run any more. */
void run_unstage(struct prefetch_run *run, uint32_t key);

run_pick run_pick_found;   /* the adapter holds it locked */
run_pick run_pick_loading; /* staged, to be loaded from the adapter */

/*
 * The boundary over what `have` and, where given, `more` say, within the first chunk_limit chunks.
 */
uint32_t run_match(const struct prefetch_run *run, struct prefetch_tools *tools,
		   const uint64_t *more, uint32_t chunk_limit);

/* An edge's action; why: what gave it up, or END_FAILED where all loads have ended. */
typedef void run_act(struct prefetch_run *run, struct prefetch_tools *tools, enum prefetch_end why);

run_act run_act_ask;
run_act run_act_load;
run_act run_act_end;
run_act run_act_end_early;

/* What was found is known: choose, aim, stage, and give back the locks of what is not loaded. */
void run_plan(struct prefetch_run *run, struct prefetch_tools *tools);

#endif
