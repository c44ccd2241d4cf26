/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scheduler without a store, over the rig, for tests of what it plans: prompts and outputs count
 * up, plans and block tables are drawn as text.
 *
 *   plan    "b p0+4, a d7+1": b computes 4 tokens of its prompt from token 0 on, a one behind 7
 *           that have their cache; r: a peer computes it.  "" where nothing is computed
 *   line    "..xx-": holes, blocks, and what lies behind the line's end
 *
 * Tokens of a request are first, first + 1, first + 2, ...: what begins alike goes on alike.
 * Copies run when a row's fence asks for them, and are acknowledged when loom_done() says so.
 */
#ifndef LIB_LOOM_H
#define LIB_LOOM_H

#include <stdbool.h>
#include <stdint.h>

#include "sched_rig.h"

#define LOOM_TEXT_BYTES 256u

struct loom {
	struct sched_options     options; /* change them before loom_open() */
	struct group_spec        groups[4];
	struct srig              rig;
	struct sched            *sched; /* the rig's */
	const struct sched_plan *plan;  /* the last one */
	struct kvs_error         err;   /* of the last call that failed */
	char                     text[4][LOOM_TEXT_BYTES];
	uint32_t                 texts;
};

/* A FUSED rank of so many parents, C = 64, D = 1, 8 places, no Host, no groups yet. */
void loom_init(struct loom *loom, uint32_t page_tokens, uint32_t parents);
void loom_full(struct loom *loom, uint32_t block_tokens, uint32_t packing);
void loom_window(struct loom *loom, uint32_t block_tokens, uint32_t packing,
		 uint32_t window_tokens);
void loom_state(struct loom *loom, uint32_t block_tokens, uint32_t packing);
/* Pages of 2, blocks of 2: a full group, and a window of so many tokens. */
void loom_usual(struct loom *loom, uint32_t parents, uint32_t window_tokens);

void loom_open(struct loom *loom);
/* Aborts what lives, ends all copies; all parents must be available then. */
void loom_close(struct loom *loom);

/* The code of sched_submit(); those that give none assert success. */
int  loom_try_submit(struct loom *loom, const char *id, int32_t first, uint32_t count,
		     uint32_t new_tokens);
void loom_submit(struct loom *loom, const char *id, int32_t first, uint32_t count,
		 uint32_t new_tokens);
/* A prompt that does not count up. */
void loom_submit_tokens(struct loom *loom, const char *id, const int32_t *tokens, uint32_t count,
			uint32_t new_tokens);

/* One event; the code of sched_feed(). */
int  loom_feed(struct loom *loom, enum sched_event_kind kind, const char *id, uint32_t reserve);
/* A token that was not computed; the code of sched_feed(). */
int  loom_try_extend(struct loom *loom, const char *id);
/* The next token of what was computed: of one request, of every row of the plan that gives one. */
void loom_extend(struct loom *loom, const char *id);
void loom_extend_all(struct loom *loom);
void loom_finish(struct loom *loom, const char *id);
void loom_abort(struct loom *loom, const char *id);
/* The peer is there; what it computed has landed. */
void loom_bootstrapped(struct loom *loom, const char *id);
void loom_prefilled(struct loom *loom, const char *id);
void loom_reserve(struct loom *loom, const char *id, uint32_t reserve);

/* The next tick tells that all copies are done. */
void loom_done(struct loom *loom);
/* A round that tells of a copy that was told already, or never was. */
void loom_tell(struct loom *loom, uint64_t ticket);

/* One round; the plan as text. */
const char *loom_next(struct loom *loom);
/* So many rounds, each with a token for every row that gives one. */
void loom_rounds(struct loom *loom, uint32_t count);

/* Of the last plan. */
const char             *loom_rows(struct loom *loom);
const struct batch_row *loom_row(const struct loom *loom, const char *id); /* NULL: none */
const char             *loom_line(struct loom *loom, const char *id, uint32_t group);
int32_t                 loom_slot(const struct loom *loom, const char *id, uint32_t group,
				  uint32_t slot);
uint32_t                loom_fresh(const struct loom *loom, uint32_t group);
/* The mover's rows of a ticket as "group.position ...", in order. */
const char             *loom_moves(struct loom *loom, uint64_t ticket);
uint32_t                loom_move_count(const struct loom *loom, uint64_t ticket);

uint32_t loom_free(const struct loom *loom);        /* parents of Device, unbound or idle */
uint32_t loom_host_cached(const struct loom *loom); /* cells on Host */

#endif
