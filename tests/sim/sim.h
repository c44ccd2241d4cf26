/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One simulated replica: 1 to 4 ranks with the real pure rooms, and actors in place of threads, devices
 * and clients.
 *
 *   open.c      draws a system; restart.c ends one and begins the next on the same store
 *   stock.c     what an earlier replica left in the store
 *   clients.c   requests: submitted, given up, ended
 *   round.c     the loop of all ranks: reports, the agreed tick, events, plans, dispatch
 *   engine.c    what the Device does: blank blocks, copies, forwards, in the order of the plans
 *   copies.c    the two streams of copies of each rank
 *   workers.c   executor workers, a store's late touches, retirement notices
 *   upkeep.c    freezes, clears, other weights, restarts
 *   locker.c    a second user of the store, which locks and unlocks
 *   faults.c    the store, as bad as the swarm wants it
 *   ledger.c    what the world knows of each op, apart from what the rooms believe
 *   check*.c    the invariants; state.h: all that there is
 *
 * sched, transfer, agree, coord, match, tier, exec/core, exec/run and the mem store are the product's
 * own, unchanged.  Here an act ends before the next begins; what would be a thread or a device is a
 * pair of events.
 */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include <stdio.h>

#include "state.h"

#define NOTE(...)            world_note(&sim->world, __VA_ARGS__)
/* A line of --trace alone. */
#define DETAIL(...) \
	do { \
		if (sim->world.loud) \
			printf("          " __VA_ARGS__); \
	} while (0)
#define FAIL(invariant, ...) world_fail(&sim->world, invariant, __VA_ARGS__)

/* --- open.c, restart.c ------------------------------------------------------------------------ */

/* Draw a system and its faults from the seed; plan the first events. */
void sim_open(struct sim *sim, uint64_t seed, uint64_t steps, bool loud, struct covers *covers);
void sim_close(struct sim *sim);
/* A whole run of a seed; its history's hash.  Ends the process where an invariant breaks. */
uint64_t sim_run(uint64_t seed, uint64_t steps, bool loud, struct covers *covers);

/* The rooms of all ranks, on fresh Host memory; the Device holds what nobody wrote. */
void replica_open(struct sim *sim);
void replica_close(struct sim *sim);
/* Everything of the process is lost but the store, and what late I/O may touch. */
void replica_restart(struct sim *sim);

/* After open the data path does not allocate. */
void heap_mark(struct sim *sim);
void heap_check(struct sim *sim);

/* least .. most, evenly. */
uint32_t sim_draw(struct sim *sim, uint32_t least, uint32_t most);
/* A short time, or with FAULT_DELAY a long one. */
uint64_t sim_delay(struct sim *sim, uint64_t most);
bool     sim_at_rest(struct sim *sim);

/* --- stock.c */
void stock_fill(struct sim *sim);

/* --- actors ----------------------------------------------------------------------------------- */

void round_run(void *context, uint64_t unused);

void clients_submit(void *context, uint64_t unused);
void clients_abort_some(struct sim *sim);
void clients_abort_all(struct sim *sim);
void clients_peers(struct sim *sim);
/* A forward gave so many tokens of the row's path. */
void clients_sampled(struct sim *sim, const struct sim_forward_row *row);
void clients_ended(struct sim *sim, const struct sched_plan *plan);
struct sim_request *clients_find(struct sim *sim, const char *id);

void engine_open(struct sim *sim);
/* Take what the plans, alike on all ranks, have for the Device. */
void engine_take(struct sim *sim);
/* Something may have become possible. */
void engine_poke(struct sim *sim);
/* A forward may be planned. */
bool engine_may_plan(const struct sim *sim);

void copies_submit(struct sim *sim, uint32_t rank, uint64_t ticket);

/* Some worker of the class should look for a job. */
void workers_wake(struct sim *sim, uint32_t rank, enum exec_class class);
/* Faults have stopped: who kept silent about retirement may speak now. */
void workers_speak(struct sim *sim);
/* The executors are gone: what runs, runs on. */
void workers_orphan(struct sim *sim);

void upkeep_act(void *context, uint64_t unused);
void upkeep_round(struct sim *sim); /* once a round: is an errand possible now? */

/* The locker's own sizes and first event; its system is gone. */
void locker_open(struct sim *sim);
void locker_close(struct sim *sim);
bool locker_at_rest(const struct sim *sim);
/* The store has taken this object. */
void locker_learn(struct sim *sim, const struct kvs_key *key);
struct sim_object *locker_object(struct sim *sim, const struct kvs_key *key);

/* --- memory ----------------------------------------------------------------------------------- */

uint8_t *device_block(struct sim *sim, uint32_t rank, uint32_t group, uint32_t block);
/* NULL where the rank does not hold it. */
uint8_t *host_block(struct sim *sim, uint32_t rank, uint32_t group, uint32_t block);

static inline uint64_t rank_now(const struct sim *sim, uint32_t rank)
{
	return sim->world.now + sim->ranks[rank].skew;
}

static inline bool is_cyclic(const struct sim *sim, uint32_t group)
{
	return sim->shape.owners[group].cycle > 1;
}

/* --- the ledger and the checks ---------------------------------------------------------------- */

/* The op of an id, of this incarnation; NULL when its bytes are settled. */
struct sim_op *ledger_find(struct sim *sim, uint64_t op_id);
/* The same op of all ranks' plans is dispatched now. */
struct sim_op *ledger_add(struct sim *sim, uint32_t index);
/* A rank's fact is with its shell. */
void ledger_answer(struct sim *sim, uint32_t rank, const struct fact *fact);
/* Nothing of an op that was dropped goes on: forget it. */
void ledger_forget(struct sim_op *op);
/* Ops in doubt, of this incarnation. */
uint32_t ledger_doubts(const struct sim *sim);

void tickets_add(struct sim *sim, uint64_t id);

/* Whether a call that was refused left everything as it was. */
bool is_same_load(const struct sched_load *before, const struct sched *sched);

/* Every report has been agreed on: what the world says that the tick must be. */
void check_tick(struct sim *sim);
/* Plans of all ranks are one. */
void check_plans(struct sim *sim);
/* What the round did, before its ops are dispatched. */
void check_round(struct sim *sim);
/* Rows of a key's block must be right as far as its prefix goes. */
void check_key(struct sim *sim, const char *invariant, const struct kvs_key *key,
	       const void *bytes);
void check_step(struct sim *sim);
void check_audits(struct sim *sim);
/* Everything has ended. */
void check_rest(struct sim *sim);

/* Of the ledger: ops that hold a ticket, and the Host blocks that they hold. */
struct holds {
	uint32_t tickets, put_tickets;
	uint32_t blocks, put_blocks;
};
struct holds count_holds(const struct sim *sim);
/* References beyond the index's own, of all blocks of a stratum. */
uint64_t count_pins(const struct sim *sim, uint32_t rank, enum stratum_id stratum);
/* Until an op has surely retired on every owner, its blocks are its own. */
void check_open_ops(struct sim *sim, uint32_t rank);
void check_credits(struct sim *sim, uint32_t rank);
void check_pins(struct sim *sim, uint32_t rank);

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

#endif
