/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of a prompt a forward computes, what blocks that takes, and how long a request may be.
 *
 * A chunk that ends at a page boundary leaves a checkpoint that others can restore; one that ends
 * elsewhere leaves none for any group with a state.  So with a state group chunks are cut at
 * boundaries, at the promotion boundary first: the one place where the other groups could already
 * go further.
 *
 * Pure arithmetic; all in tokens unless a name says otherwise.
 */
#ifndef SCHED_CHUNK_H
#define SCHED_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include "coord/table.h"
#include "match/groups.h"

struct chunk_ask {
	uint32_t first;       /* tokens that are computed or restored */
	uint32_t unscheduled; /* that the prompt still needs */
	uint32_t budget;      /* that this forward may still take */
	uint32_t page_tokens; /* P */
	uint32_t promotion;   /* boundary to publish once; 0: none */
};

/*
 * The size of the next aligned chunk; 0: not now, a larger budget will do.  Cut at the promotion
 * boundary; all that is left, when it fits; up to the next page boundary, from within a page; else
 * whole pages.
 */
uint32_t chunk_align(const struct chunk_ask *ask);

/*
 * Of a chunk that takes all that is left and passes a page boundary: the tokens behind its last
 * boundary.  They are computed in a forward of their own, so that the body ends at a checkpoint,
 * and their room is reserved with the body's: that forward takes it with table_consume() and
 * demands nothing. 0: nothing to split.
 */
uint32_t chunk_final_tail(const struct chunk_ask *ask, uint32_t size);

struct chunk_shape {
	bool     local;       /* computed here; else a peer's prompt that lands as a whole */
	bool     decode;      /* a decode step, or the step behind a prompt */
	uint32_t begin;       /* tokens that have their blocks' contents */
	uint32_t tokens;      /* of the chunk or step */
	uint32_t reserve;     /* room behind it: the decode reserve, or tail and decode reserve */
	uint32_t tail;        /* tokens of a tail that is reserved with the body; 0 */
	uint32_t hit;         /* of a first chunk: tokens restored; else begin */
	uint32_t prompt;      /* tokens of the whole prompt */
	bool     completes;   /* the prompt, by this chunk */
};

/*
 * The demand of each group.  FULL and WINDOW take dense room; behind a chunk that neither completes
 * the prompt nor has a tail they reserve nothing.  A STATE of a local prompt is sparse: the block
 * of the chunk's end, and room for a tail, but none for the decode step, which takes its own.  Of a
 * peer's prompt a STATE has its last block only, and a WINDOW the blocks that the window of its end
 * covers.
 */
void chunk_demands(const struct groups *groups, const struct chunk_shape *shape,
		   struct demand *ret_demands);

struct chunk_limits {
	const struct groups *groups;
	bool     decode_role;
	bool     prefill_role;
	bool     prefix_cache;
	uint32_t chunk_tokens;  /* C */
	uint32_t decode_tokens; /* D */
	uint32_t overlap_depth;
	uint32_t parents;       /* usable ones of Device */
};

/*
 * Parents that a request of so many tokens, prompt and output, needs at its worst, alone, in chunks
 * whose budget is C or less.  A longer one never needs fewer.  A hit that ends within a page may
 * need more: who has no room for one does without it.
 */
uint64_t chunk_parents(const struct chunk_limits *limits, uint32_t tokens);
/* The largest request that fits; 0 where none does. */
uint32_t chunk_request_limit(const struct chunk_limits *limits);

#endif
