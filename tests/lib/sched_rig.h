/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scheduler over real rows: Device and Host as memory, the reference engine, and copies that run
 * late.
 *
 *   srig_open(&rig, &options)         options as srig_options() gives them, changed to taste
 *   srig_submit(&rig, "a", tokens, count, max_new)
 *   srig_next(&rig)                   a round: ticks, plans, and does what the plan says
 *   srig_row(&rig, "a")               the row of a request in the last plan
 *   srig_extend(&rig, "a")            feeds what its oldest unanswered forward sampled
 *   srig_finish(), srig_abort()       and srig_event() for everything else
 *   srig_close(&rig)                  aborts all, acknowledges all, asserts that every block is back
 *
 * Forward  Fresh blocks are made blank, the loads up to a row's fence run, then the row: the engine
 *          checks all that the row's line of each table lets it see and writes what is new.  A
 *          wrong row is a panic.  A row that ends a prompt, and each decode step, samples: equal
 *          prefixes go on equally.  A remote row writes nothing until srig_prefilled().
 * Copies   Run behind the forward of their plan and are acknowledged in the next tick; with `held`
 *          they only run when a fence asks for it, and are acknowledged when srig_let_copies() says
 *          so.
 * Store    With options.with_store, a list of objects; part and hostmap are the rig's.  A plan's
 *          ops are answered in the next tick; with `store_held`, when srig_let_store() says so.  A
 *          cancelled op that waits is answered as one that never ran.
 * Tick     rig.tick is what the next round gets, but for its copies: set permits, facts, clock.
 * Audit    After every call.
 */
#ifndef LIB_SCHED_RIG_H
#define LIB_SCHED_RIG_H

#include "arena/arena.h"
#include "arena/hostmap.h"
#include "engine/groups.h"
#include "sched/sched.h"

#define SRIG_TOKENS 512u
#define SRIG_REQUESTS 24u
#define SRIG_COPIES 128u
#define SRIG_OPS 64u
#define SRIG_GIVEN 4u /* forwards of a request under way */
#define SRIG_OBJECTS 1024u
#define SRIG_OBJECT_BYTES 512u

struct srig_object {
	struct kvs_key key;
	uint8_t        bytes[SRIG_OBJECT_BYTES];
};

/* What the engine knows of a request. */
struct srig_request {
	char     id[SCHED_ID_BYTES]; /* "": free */
	int32_t  tokens[SRIG_TOKENS];
	uint32_t count;   /* with all samples */
	uint32_t told;    /* of them, those that the scheduler knows */
	uint32_t given[SRIG_GIVEN]; /* by each forward that was not answered, oldest first */
	uint32_t given_count;
	uint32_t prompt;
	bool     counting; /* samples go on by one: what was submitted counting up does so */
	uint32_t landing[GROUPS_MAX][SRIG_TOKENS]; /* where a peer writes its rows: slots of each group */
	uint32_t landing_begin;
	bool     awaited; /* a peer is to write them */
};

struct srig {
	struct sched_options     options;
	struct sched            *sched;
	const struct sched_plan *plan; /* of the last round */
	struct tick              tick;
	bool                     held;   /* copies wait for srig_let_copies() */
	bool                     blind;  /* no engine: rows are not checked, tokens are made up */
	uint32_t                 accept; /* tokens that a decode step gives; 1 */
	struct srig_request      requests[SRIG_REQUESTS];
	/* Copies, oldest first. */
	uint64_t                 copies[SRIG_COPIES];
	uint32_t                 copy_count, copies_run, copies_let;
	struct engine_plane      planes[GROUPS_MAX];
	struct group_engine      engine;
	uint64_t                 parent_bytes;
	uint8_t                 *device;  /* a parent in front of the first */
	uint8_t                 *host;
	struct arena_part        part;
	struct hostmap           hostmap;
	/* The store. */
	bool                     store_held; /* ops wait for srig_let_store() */
	struct srig_object      *objects;
	uint32_t                 object_count;
	struct op                ops[SRIG_OPS]; /* not answered, in order */
	bool                     cancelled[SRIG_OPS];
	uint32_t                 op_count;
	struct fact              facts[SRIG_OPS]; /* of the next tick */
	uint32_t                 fact_count;
	/* Sums over all plans. */
	uint64_t                 rows, loads, saves, fresh, queries, gets, puts;
};

/*
 * P = 2; 31 parents of Device, no Host; FULL with q 2, WINDOW of 4 with q 2; C 64, D 1, prefix
 * cache on.
 */
struct sched_options srig_options(void);
/* The same with a Host of 32 parents and a store: ample limits, no marks. */
struct sched_options srig_store_options(void);

void srig_open(struct srig *rig, const struct sched_options *options);
void srig_close(struct srig *rig);
/* Its memory alone, where the test has closed the scheduler. */
void srig_free(struct srig *rig);

/* first, first + step, ...: tokens of a prompt. */
void srig_tokens(int32_t *tokens, uint32_t count, int32_t first, int32_t step);

void srig_submit(struct srig *rig, const char *id, const int32_t *tokens, uint32_t count,
		 uint32_t max_new);
/* A prompt 0, 1, 2, ... of its own: each token is seed * 1000 + position. */
void srig_submit_new(struct srig *rig, const char *id, uint32_t count, int32_t seed);

const struct sched_plan *srig_next(struct srig *rig);
/* Until a plan has no row, no copy and no end, and nothing is under way; at most so many rounds. */
void                     srig_settle(struct srig *rig, uint32_t round_max);

/* NULL when it has no row in the last plan. */
const struct batch_row *srig_row(const struct srig *rig, const char *id);
/* Its line of a group's table, of rig->plan->forward.tables[group].width slots. */
const int32_t          *srig_line(const struct srig *rig, const char *id, uint32_t group);
/* Of its line: slots that are not behind the end; holes among them. */
uint32_t                srig_slots(const struct srig *rig, const char *id, uint32_t group);
uint32_t                srig_holes(const struct srig *rig, const char *id, uint32_t group);

/* Feed one event; the code of sched_feed(). */
int  srig_event(struct srig *rig, enum sched_event_kind kind, const char *id);
void srig_extend(struct srig *rig, const char *id);
/* Of every row in the last plan that samples. */
void srig_extend_all(struct srig *rig);
void srig_finish(struct srig *rig, const char *id);
void srig_abort(struct srig *rig, const char *id);
/* A round, and all that it sampled is fed. */
const struct sched_plan *srig_step(struct srig *rig);

/*
 * A peer has written the prompt's rows into the blocks of the remote row's line; feeds PREFILLED.
 */
void srig_prefilled(struct srig *rig, const char *id);

/* All copies run, and are acknowledged in the next tick. */
void     srig_let_copies(struct srig *rig);
/* Rows of the copies of the last plan, loads or saves. */
uint32_t srig_copy_rows(const struct srig *rig, bool loads);

/* All ops that wait are answered in the next tick. */
void     srig_let_store(struct srig *rig);

/* The result of a request that ended in the last plan; NULL. */
const struct sched_result *srig_ended(const struct srig *rig, const char *id);

struct srig_request *srig_request(struct srig *rig, const char *id);

#endif
