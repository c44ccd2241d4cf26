/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler driven by hand: time is a variable, facts and fences come when a test says so.
 *
 * No store, no device, no thread: blocks have addresses, and nothing ever writes to them.  After each
 * round the scheduler audits itself.
 */
#ifndef LIB_ROUNDS_H
#define LIB_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prng.h"
#include "sched/sched.h"

#define ROUNDS_PAGE 4u    /* tokens */
#define ROUNDS_PAGES 8u   /* of the longest prompt */
#define ROUNDS_SHARED 2u  /* pages that prompts 10 .. 19 have in common, and 20 .. 29, and so on */
#define ROUNDS_IDS 16u    /* request ids are below */
#define ROUNDS_DEADLINE 100u
#define ROUNDS_HOLD 1000u
#define ROUNDS_CREDITS 8u

struct rounds {
	struct sched_options     options;
	struct arena            *arena;
	struct arena_part        host;
	struct sched            *sched;
	const struct sched_plan *plan; /* of the last round */
	uint64_t                 now_ns;
	uint64_t                 finished[ROUNDS_IDS]; /* times */
	struct sched_result      results[ROUNDS_IDS];  /* of the last time */
	struct op                pending[ROUNDS_CREDITS]; /* of rounds_traffic: without a fact yet */
	uint32_t                 pending_count;
};

/* Four requests of at most ROUNDS_PAGES pages, or of the Device's if that is less; policies lru. */
struct sched_options rounds_options(uint32_t device_blocks, uint32_t host_blocks, bool with_store);

void rounds_open(struct rounds *rounds, const struct sched_options *options);
void rounds_close(struct rounds *rounds);

/* The keys of a prompt's first pages. */
void rounds_keys(const struct rounds *rounds, uint32_t prompt, uint32_t count, struct kvs_key *ret_keys);

/* How many of a prompt's first pages each stratum holds, both ends counted from the first page. */
struct coord_probe rounds_held(const struct rounds *rounds, uint32_t prompt);

/* The request's slot. */
uint32_t rounds_submit(struct rounds *rounds, uint64_t id, uint32_t prompt, uint32_t token_count);

/* One round; its copies fenced; its rows computed, their results checked to add up; all three. */
void rounds_next(struct rounds *rounds);
void rounds_fence(struct rounds *rounds);
void rounds_finish(struct rounds *rounds);
void rounds_step(struct rounds *rounds);

/* Steps until no request and no copy is left; for schedulers that wait for no fact. */
void rounds_run_out(struct rounds *rounds);

/* The plan's only op of a kind; NULL when it has none. */
const struct op *rounds_op(const struct rounds *rounds, enum op_kind kind);

/* A retired fact: bit i of ok is row i. */
void rounds_answer(struct rounds *rounds, const struct op *op, uint64_t ok);

/* Answer the plan's puts: all kept. */
void rounds_keep_puts(struct rounds *rounds);

/* No request, op or copy is left, and every block could be handed out. */
bool rounds_at_rest(const struct rounds *rounds);

/*
 * One random round: perhaps a new request, perhaps its abort, some of the open ops answered in random
 * order and in random parts, time passing, everything else at once.
 */
void rounds_traffic(struct rounds *rounds, struct prng *prng);

#endif
