/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler driven by hand: time is a variable, facts and fences come when a test says so.
 *
 * No store, no device, no thread: blocks have addresses, and nothing ever writes to them.  After
 * each round the scheduler audits itself.
 */
#ifndef LIB_ROUNDS_H
#define LIB_ROUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/prng.h"
#include "mono_sched/sched.h"

#define ROUNDS_PAGE 4u    /* tokens */
#define ROUNDS_PAGES 8u   /* of the longest prompt */
#define ROUNDS_SHARED 2u  /* pages that prompts 10 .. 19 have in common, and 20 .. 29, and so on */
#define ROUNDS_IDS 16u    /* request ids are below */
#define ROUNDS_DEADLINE 100u
#define ROUNDS_HOLD 1000u
#define ROUNDS_CREDITS 8u
#define ROUNDS_REQUESTS 4u
#define ROUNDS_COPIES (MONO_SCHED_COPIES_A_REQUEST * ROUNDS_REQUESTS)

struct rounds {
	struct mono_sched_options     options;
	struct arena                 *arena;
	struct arena_part             host;
	struct mono_sched            *sched;
	const struct mono_sched_plan *plan; /* of the last round */
	uint64_t                      now_ns;
	uint64_t                      finished[ROUNDS_IDS]; /* times */
	struct mono_sched_result      results[ROUNDS_IDS];  /* of the last time */
	struct op                     pending[ROUNDS_CREDITS]; /* rounds_traffic: without a fact yet */
	uint32_t                      pending_count;
	uint32_t                      copies[ROUNDS_COPIES]; /* rounds_traffic: not fenced yet */
	uint32_t                      copy_count;
};

/*
 * ROUNDS_REQUESTS of at most ROUNDS_PAGES pages, or of the Device's if that is less; policies lru.
 */
struct mono_sched_options rounds_options(uint32_t device_blocks, uint32_t host_blocks,
					 bool with_store);

void rounds_open(struct rounds *rounds, const struct mono_sched_options *options);
/* The same with rounds_options() as they come. */
void rounds_start(struct rounds *rounds, uint32_t device_blocks, uint32_t host_blocks,
		  bool with_store);
void rounds_close(struct rounds *rounds);

/* The outcome of a request for which the store was considered; MONO_TRANSFER_OUTCOME_COUNT for another. */
enum mono_transfer_outcome rounds_outcome(const struct rounds *rounds, uint64_t id);

/* The keys of a prompt's first pages. */
void rounds_keys(const struct rounds *rounds, uint32_t prompt, uint32_t count,
		 struct kvs_key *ret_keys);

/* How many of a prompt's first pages each stratum holds, both ends counted from the first page. */
struct coord_probe rounds_held(const struct rounds *rounds, uint32_t prompt);

/* The request's slot. */
uint32_t rounds_submit(struct rounds *rounds, uint64_t id, uint32_t prompt, uint32_t token_count);

/* One round; its copies fenced; its passes done, their results checked to add up; all three. */
void rounds_next(struct rounds *rounds);
void rounds_fence(struct rounds *rounds);
void rounds_finish(struct rounds *rounds);
void rounds_step(struct rounds *rounds);

/*
 * Thirty steps: enough for all but what waits for the test.  Queries find nothing, puts are kept.
 */
void rounds_drain(struct rounds *rounds);

/* Submit as id 0 and drain. */
void rounds_compute(struct rounds *rounds, uint32_t prompt, uint32_t token_count);

/* Submit, let the QUERY find what `found` has bits for, and return the GET. */
const struct op *rounds_get(struct rounds *rounds, uint64_t id, uint32_t prompt,
			    uint32_t token_count, uint64_t found);

/* Blocks that could be handed out now. */
uint32_t rounds_device_room(const struct rounds *rounds);
uint32_t rounds_host_room(const struct rounds *rounds);

/* The plan's only op of a kind; NULL when it has none. */
const struct op *rounds_op(const struct rounds *rounds, enum op_kind kind);

/* A retired fact: bit i of ok is row i. */
void rounds_answer(struct rounds *rounds, const struct op *op, uint64_t ok);

/* Answer the plan's puts: all kept. */
void rounds_keep_puts(struct rounds *rounds);

/* No request, op or copy is left, and every block could be handed out. */
bool rounds_at_rest(const struct rounds *rounds);

/*
 * One random round: perhaps a new request, perhaps its abort, some of the open ops answered and
 * some of the open copies fenced in random order, answers in random parts, time passing, passes
 * done at once.
 */
void rounds_traffic(struct rounds *rounds, struct prng *prng);

/* Answer and fence what is open, and drain. */
void rounds_end_traffic(struct rounds *rounds);

#endif
