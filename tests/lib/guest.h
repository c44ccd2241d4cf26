/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request of a yard, led as a scheduler leads it: chunked prefill, decode, finish, abort, retraction.
 *
 *   guest_admit()     the next chunk or decode step gets its blocks; a first one its hit
 *   guest_forward()   computes what was admitted, behind its loads; samples a token at the end of the
 *                     prompt and at each decode step
 *   guest_finish(), guest_abort(), guest_retract()
 *
 * Chunks     Cut at the promotion boundary; else, with a STATE group, aligned to pages, so that each ends
 *            at a checkpoint worth publishing.  A prompt that ends inside a page is body and tail: the
 *            tail's blocks are reserved with the body's, and it is computed in one later chunk.
 *            An unaligned request does none of this, as one whose scheduler knows of no checkpoints: a
 *            chunk ends where the budget does, and the tail that it leaves is one token shorter than it
 *            could be.
 * STATE      Sparse in prefill: only the slot of the chunk's end.  Dense in decode.
 */
#ifndef LIB_GUEST_H
#define LIB_GUEST_H

#include "yard.h"

#define GUEST_TOKENS 96u
#define GUEST_PAGES GUEST_TOKENS /* of one token each */
#define GUEST_TAILS 4u

enum guest_phase { GUEST_NONE, GUEST_WAITING, GUEST_PREFILL, GUEST_DECODE };

struct guest {
	enum guest_phase   phase;
	uint64_t           id;
	int32_t            tokens[GUEST_TOKENS];
	uint32_t           token_count; /* the last sampled one has no row */
	uint32_t           prefill;     /* tokens that were there when it came, or came back */
	uint32_t           computed;
	uint32_t           end;         /* of the forward that is admitted; 0: none */
	uint32_t           replay;      /* tokens at the prompt's end that are computed anew; 1 */
	bool               unaligned;   /* chunks and tails end anywhere */
	uint32_t           tail;        /* tokens of the prompt's tail, reserved */
	uint32_t           promotion;   /* boundary to publish; 0: none */
	uint32_t           hit;         /* of the last first chunk */
	uint32_t           published;   /* pages */
	uint32_t           hashed;      /* pages */
	struct prefix_hash hashes[GUEST_PAGES];
	struct table       tables[YARD_GROUPS];
	uint32_t           slots[YARD_GROUPS][GUEST_TOKENS];
	uint64_t           epoch;
	uint32_t           snapshot;    /* SLOT_NONE */
	uint64_t           batches;     /* of the LOAD stream that a forward waits for */
};

void guest_open(struct yard *yard, struct guest *guest, uint64_t id, const int32_t *tokens,
		uint32_t token_count);

/*
 * Up to `budget` tokens.  0; KVS_E_FULL: no room, nothing changed; KVS_E_BUSY: to be tried later, for want
 * of a load ticket, of a larger budget, or of an image whose copies are under way.
 */
int guest_admit(struct yard *yard, struct guest *guest, uint32_t budget);
/* Asserts that every row that is seen is right.  True: a token was sampled. */
bool guest_forward(struct yard *yard, struct guest *guest);

/* Loads of this request that were not acknowledged. */
uint32_t guest_loading(const struct yard *yard, const struct guest *guest);

void guest_finish(struct yard *yard, struct guest *guest);
void guest_abort(struct yard *yard, struct guest *guest);
/* Asserts that it decodes, and that forward and loads are over. */
void guest_retract(struct yard *yard, struct guest *guest);

/* Hash the full pages that were not yet. */
void guest_hash(const struct yard *yard, struct guest *guest);
/* The hash of the tail of a prefix of so many tokens. */
struct prefix_hash guest_tail_hash(const struct yard *yard, struct guest *guest, uint32_t tokens);

#endif
