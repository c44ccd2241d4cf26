/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One simulated system: the real pure rooms, and actors in place of threads, devices and clients.
 *
 *   engine.c   clients that submit and abort, the round of the scheduler, forward passes
 *   actors.c   executor workers, copy fences, a store's late writes and retirement notices
 *   locker.c   a second user of the store, with an executor of its own: it locks and unlocks
 *   faults.c   the store, as bad as the swarm wants it
 *   check.c    the invariants, after every step; check_exec.c those of executors
 *
 * sched, transfer, coord, match, tier, exec/core, exec/run, arena and the mem store are the
 * product's own, unchanged.  Here an act ends before the next begins; what would be a thread or a
 * device is a pair of events.
 *
 * Next to them stands a ledger: what the world knows of each op and request, apart from what the
 * rooms believe.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <inttypes.h>

#include "arena/arena.h"
#include "exec/core.h"
#include "faults.h"
#include "oracle.h"
#include "mono_sched/sched.h"
#include "world.h"

#define SIM_STEPS 2000u /* events before the faults stop */
/* Events after that until everything has ended: five times what any of 3,000 seeds needed. */
#define SIM_REST_STEPS 2000u

#define REQUESTS_MAX 6u
#define COPIES_MAX (MONO_SCHED_COPIES_A_REQUEST * REQUESTS_MAX)
#define OPS_MAX      64u
#define WORKERS_MAX  3u /* a class */

/* What happened, to show that runs reach the places where bugs live. */
#define COVERS(X) \
	X(requests) X(refused_requests) X(aborts) X(restored_device) X(restored_host) \
	X(restored_store) X(recomputed) X(ready) X(deadlines) X(detached_gets) X(refused_ops) \
	X(puts) X(gets) X(evictions) X(late_writes) X(late_reads) X(notices) \
	X(standing_quarantines) X(outages) X(cooldown_refusals) X(probes) X(stale_successes) \
	X(recoveries) X(locks) X(lock_refusals) X(lock_cancels) X(unlocks) X(unlocks_when_full) \
	X(unlocks_told)

struct covers {
#define COVER(name) uint64_t name;
	COVERS(COVER)
#undef COVER
};

/* An op from dispatch until its bytes are surely settled. */
struct sim_op {
	uint64_t        op_id; /* 0: free */
	enum op_kind    kind;
	uint32_t        page_count;
	uint32_t        pages[PAGES_MAX];
	uint32_t        blocks[PAGES_MAX]; /* GET and PUT */
	struct kvs_span spans[PAGES_MAX];
	bool            answered; /* its one fact was delivered, or it was refused */
	bool            detached; /* nobody waits: it must not publish */
	uint32_t        late;     /* touches of its spans still to come after its fact */
	bool            in_doubt; /* its fact said unretired, and no notice came yet */
	bool            silent;   /* none will come while faults last */
};

struct sim_request {
	bool     live;
	bool     aborting;
	bool     running;
	uint64_t id;
	uint32_t pages[PAGES_MAX];
	uint32_t page_count;
	uint64_t token_count;
	uint64_t asked; /* tick of its QUERY */
	uint32_t table[PAGES_MAX];
};

/*
 * What the world knows of a store's health, from one executor's jobs: whether somebody has asked it,
 * with success, since it last failed.
 */
struct sim_health {
	uint64_t epoch;     /* outages seen */
	uint64_t fell_step; /* of the last one */
	uint64_t fell_tick;
	bool     proven;    /* a job begun after it came back well */
	uint64_t probe;     /* the op that was taken while the store was held for down */
};

struct sim_worker {
	enum exec_class    class;
	uint64_t           taken_step;
	bool               busy;
	uint32_t           job;
	struct op          op;
	struct fact        fact;
	struct exec_report report;
};

#define LOCK_OPS   4u
#define LOCK_KEYS  4u
#define LOCK_WORKERS 2u

struct sim_lock_op {
	uint64_t       op_id; /* 0: free */
	uint32_t       key_count;
	uint32_t       pages[LOCK_KEYS];
	struct kvs_key keys[LOCK_KEYS];
};

struct sim_lock_worker {
	bool               busy;
	uint32_t           job;
	uint64_t           taken_step;
	struct fact        fact;
	struct exec_report report;
	struct kvs_key     told[LOCK_KEYS]; /* on their way to the store */
	uint32_t           told_count;
};

/* Who locks pages of the store and unlocks them, and what is known of it apart from the rooms. */
struct sim_locker {
	struct exec_core       exec;
	struct sim_health      health;
	struct sim_lock_op     ops[LOCK_OPS];
	struct sim_lock_worker workers[LOCK_WORKERS];
	uint64_t               next_op;
	uint64_t               act_every;
	uint32_t               promised[PAGE_END]; /* by a fact that was not polled yet */
	uint32_t               held[PAGE_END];     /* granted by a fact, not given back */
	uint32_t               kept[PAGE_END];     /* locks of the store */
};

struct sim {
	struct world              world;
	struct faults             faults;
	struct oracle             oracle;
	struct covers            *covers;
	struct mono_sched_options options;
	struct arena             *arena;
	struct arena_part         host;
	uint8_t                  *device; /* Device blocks in a row */
	struct faulty_store       store;
	struct exec_core          exec;
	struct sim_health         health;
	struct sim_locker         locker;
	struct mono_sched        *sched;
	struct sim_worker         workers[EXEC_CLASS_COUNT * WORKERS_MAX];
	uint32_t                  workers_each;
	struct sim_op             ops[OPS_MAX];
	struct sim_request        requests[REQUESTS_MAX];
	uint64_t                  next_request;
	uint32_t                  doubts;                    /* ops in_doubt */
	bool                      copying[COPIES_MAX];       /* tier tickets between submission and fence */
	uint32_t                  copy_count;
	uint64_t                  round_every;               /* ticks between rounds, at most */
	uint64_t                  submit_every;
	uint64_t                  work_ticks;                /* of a job, at most, without faults */
};

/* --- open.c ----------------------------------------------------------------------------------- */

/* Draw a system and its faults from the seed; plan the first events. */
void sim_open(struct sim *sim, uint64_t seed, uint64_t steps, bool loud, struct covers *covers);
void sim_close(struct sim *sim);

/* A whole run of a seed; its history's hash.  Ends the process where an invariant breaks. */
uint64_t sim_run(uint64_t seed, uint64_t steps, bool loud, struct covers *covers);

/* --- actors ----------------------------------------------------------------------------------- */

void engine_round(void *context, uint64_t unused);
void engine_submit(void *context, uint64_t unused);

/* Some worker of the class should look for a job. */
void actors_wake(struct sim *sim, enum exec_class class);
void actors_copy(struct sim *sim, uint32_t tier_ticket);
/* Faults have stopped: who kept silent about retirement may speak now. */
void actors_speak(struct sim *sim);

/* The locker's own sizes and first event; its system is gone. */
void locker_open(struct sim *sim);
void locker_close(struct sim *sim);
bool locker_at_rest(const struct sim *sim);

/* A short time, or with FAULT_DELAY a long one. */
uint64_t sim_delay(struct sim *sim, uint64_t most);

#define NOTE(...)            world_note(&sim->world, __VA_ARGS__)
#define FAIL(invariant, ...) world_fail(&sim->world, invariant, __VA_ARGS__)

static inline void *sim_device_block(const struct sim *sim, uint32_t block)
{
	return sim->device + (size_t)block * BLOCK_BYTES;
}

/* --- the ledger and the checks ---------------------------------------------------------------- */

/* The op of an id; NULL when its bytes are settled. */
struct sim_op *ledger_find(struct sim *sim, uint64_t op_id);
/* The op is dispatched now. */
struct sim_op *ledger_add(struct sim *sim, const struct op *op);
/* The transfer room's ticket of an op in flight. */
const struct mono_ticket *sim_ticket(const struct sim *sim, uint64_t op_id);

/* An executor took an op: was_up says what it held the store for, before. */
void watch_taken(struct sim *sim, struct sim_health *health, const struct exec_core *exec,
		 uint64_t op_id, bool was_up);
/* An executor has heard what a job, begun at a step, says of the store. */
void watch_evidence(struct sim *sim, struct sim_health *health, const struct exec_core *exec,
		    uint64_t taken_step, enum exec_evidence evidence);
void check_health(struct sim *sim, const struct sim_health *health, const struct exec_core *exec);
void check_locks(struct sim *sim);
/* The locker has ended: nothing is locked, and nobody waits to be told. */
void check_locks_rest(struct sim *sim);

/* A fact is delivered. */
void check_fact(struct sim *sim, const struct fact *fact);
/* A round was planned; facts of it are settled.  Before its ops are dispatched. */
void check_round(struct sim *sim, const struct mono_sched_plan *plan);
/* Rows of the block must be the page's. */
void check_block(struct sim *sim, const char *where, const void *block, uint32_t page);
void check_step(struct sim *sim);
/* Everything has ended. */
void check_rest(struct sim *sim);
bool sim_at_rest(const struct sim *sim);

#endif
