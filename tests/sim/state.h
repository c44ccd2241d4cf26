/* SPDX-License-Identifier: Apache-2.0 */
/* All that a simulated replica consists of; sim.h says who does what with it. */
#ifndef SIM_STATE_H
#define SIM_STATE_H

#include <inttypes.h>

#include "exec/core.h"
#include "faults.h"
#include "sched/sched.h"
#include "shape.h"
#include "world.h"

#define SIM_STEPS 2000u /* events before the faults stop */
/* Events after that until everything has ended. */
#define SIM_REST_STEPS 6000u

#define REQUESTS_MAX 6u
#define OPS_MAX      96u
#define KEYS_MAX     24u
#define WORKERS_MAX  2u /* a class */
#define BATCH_MAX    4u
#define SLOTS_MAX    64u /* of a line of a block table */
#define WORKS_MAX    64u
#define TICKETS_MAX  64u /* copies under way */
#define EVENTS_MAX   32u
#define PATHS        8u
#define RESTARTS_MAX 3u

/* What happened, to show that runs reach the places where bugs live. */
#define COVERS(X) \
	X(requests) X(refused_requests) X(aborts) X(finished) X(landed) X(peer_failures) \
	X(retractions) X(forwards) X(overlaps) \
	X(restored_device) X(restored_host) X(restored_store) X(recomputed) X(cyclic_gets) \
	X(tail_gets) X(state_gets) X(window_gets) X(ready) X(deadlines) X(detached_gets) \
	X(refused_ops) X(lost_owner) X(split_facts) X(bad_reports) X(bad_events) \
	X(gate_closures) X(queries) X(puts) X(gets) X(saves) X(loads) X(stashes) \
	X(clones) X(evictions) X(late_writes) X(late_reads) X(notices) \
	X(standing_quarantines) X(frozen_forwards) X(frozen_storage) X(clears) X(device_clears) \
	X(refused_clears) X(new_weights) X(drained_restarts) X(dropped_restarts) X(orphans) \
	X(outages) X(cooldown_refusals) X(probes) X(stale_successes) X(recoveries) X(locks) \
	X(lock_refusals) X(lock_cancels) X(unlocks) X(unlocks_when_full) X(unlocks_told)

struct covers {
#define COVER(name) uint64_t name;
	COVERS(COVER)
#undef COVER
};

/* --- the ledger ------------------------------------------------------------------------------- */

struct sim_row {
	struct prefix prefix;
	uint32_t      version;
	uint32_t      group;
	uint32_t      offset;
	uint32_t      block; /* of Host; GET and PUT */
};

/* One owner's part in an op. */
struct sim_part {
	struct op       op;
	struct kvs_key  keys[KEYS_MAX];
	struct kvs_span spans[KEYS_MAX];
	struct fact     fact;
	bool            answered; /* its one fact is with the shell */
	bool            reported; /* and was in a round */
	bool            running;  /* a worker has it */
	uint32_t        late;     /* touches of its spans still to come after its fact */
	bool            in_doubt; /* its fact said unretired, and no notice came yet */
	bool            noticed;  /* a notice of it was in a round */
	bool            silent;   /* none will come while faults last */
};

/* An op from dispatch until its bytes are surely settled on every owner. */
struct sim_op {
	uint64_t        op_id;  /* 0: free */
	enum op_kind    kind;
	uint32_t        row_count;
	struct sim_row  rows[KEYS_MAX];
	uint64_t        deadline_ns; /* of who waits for it */
	bool            agreed;      /* its fact was in a tick */
	bool            doubted;     /* which said unretired, and no notice was in one since */
	bool            detached;    /* nobody waits: it must not publish */
	bool            dropped;     /* its scheduler is gone */
	uint32_t        round;       /* in which its first fact was reported */
	struct sim_part parts[RANKS_MAX];
};

/* A ticket of copies, and who has passed it. */
struct sim_ticket {
	uint64_t id; /* 0: free */
	uint32_t passed; /* a bit a rank: reported in a round */
};

/* --- requests --------------------------------------------------------------------------------- */

struct sim_request {
	bool     live;
	bool     aborting;  /* its end was asked for */
	bool     finishing;
	bool     failing;      /* its peer has failed */
	bool     bootstrapped;
	bool     awaited;      /* a peer's rows may land in these blocks, from token `landing` on */
	uint32_t landing;
	uint32_t slots[GROUPS][SLOTS_MAX];
	uint64_t serial;
	char     id[16];
	uint32_t pages[DEPTH];
	int32_t  tokens[PATH_TOKENS]; /* of the whole path */
	uint32_t prompt;
	uint32_t most;  /* prompt and output */
	uint32_t known; /* prompt and output so far */
};

/* --- a rank ----------------------------------------------------------------------------------- */

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
	bool               busy;
	bool               orphan; /* the executor that it works for is gone */
	uint64_t           taken_step;
	uint32_t           job;
	struct sim_op     *of;
	struct op          op;
	struct fact        fact;
	struct exec_report report;
};

/* One stream of copies: first in, first out. */
struct sim_stream {
	uint64_t tickets[TICKETS_MAX];
	uint64_t after[TICKETS_MAX]; /* the load that must have been done before */
	uint32_t head, count;
	bool     busy;  /* the head's fence is an event to come */
	bool     moved; /* its bytes are there already */
};

struct sim_rank {
	struct owner             owner;
	struct arena_part        part;
	struct hostmap           hostmap;
	struct exec_core         exec;
	struct agree            *agree;
	struct sched            *sched;
	const struct sched_plan *plan;
	struct tick              tick;
	struct sim_health        health;
	struct sim_worker        workers[EXEC_CLASS_COUNT * WORKERS_MAX];
	struct sim_stream        streams[2]; /* saves, loads */
	uint64_t                 loaded;     /* the last load whose bytes are there */
	uint64_t                 skew;       /* its clock is ahead of the world's */
	uint64_t                 slowness;   /* of its workers and copies: a factor */
	uint64_t                 stalled_until;  /* no worker does anything */
	uint64_t                 refusing_until; /* no op is taken */
	/* Of the next report. */
	struct fact              facts[OPS_MAX];
	struct retirement_notice notices[OPS_MAX];
	uint64_t                 copies[TICKETS_MAX];
	uint32_t                 fact_count, notice_count, copy_count;
	uint32_t                 doubts;     /* its ops in doubt */
};

/* --- the engine ------------------------------------------------------------------------------- */

struct sim_forward_row {
	uint32_t        request; /* slot */
	uint64_t        serial;
	enum batch_kind kind;
	uint32_t        begin, end;
	bool            ends_prompt;
	/* Its own: a forward that was planned runs, though its request may be gone and its slot another's. */
	int32_t         tokens[PATH_TOKENS]; /* as the engine has them */
};

enum sim_work_state { WORK_QUEUED, WORK_LOADING, WORK_RUNNING };

/* What one plan has for the Device. */
struct sim_work {
	enum sim_work_state    state;
	uint64_t               copies[TICKETS_MAX];
	uint32_t               copy_count;
	struct cache_block     zeros[DEVICE_PARENTS * PACKING_MAX];
	uint32_t               zero_count;
	struct sim_forward_row rows[BATCH_MAX];
	uint32_t               row_count;
	uint64_t               fence;
	uint32_t               width[GROUPS];
	uint32_t               slots[GROUPS][BATCH_MAX][SLOTS_MAX];
};

/* --- the locker ------------------------------------------------------------------------------- */

#define OBJECTS_MAX  48u /* that the locker knows of */
#define LOCK_OPS     4u
#define LOCK_KEYS    4u
#define LOCK_WORKERS 2u

/* An object that was put, and who holds it. */
struct sim_object {
	struct kvs_key key;
	bool           used;
	uint32_t       promised; /* locks, by a fact that was not polled yet */
	uint32_t       held;     /* granted by a fact, not given back */
	uint32_t       kept;     /* locks of the store */
};

struct sim_lock_op {
	uint64_t       op_id; /* 0: free */
	uint32_t       key_count;
	uint32_t       objects[LOCK_KEYS];
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

struct sim_locker {
	struct exec_core       exec;
	struct sim_health      health;
	struct sim_object      objects[OBJECTS_MAX];
	uint32_t               next_object;
	struct sim_lock_op     ops[LOCK_OPS];
	struct sim_lock_worker workers[LOCK_WORKERS];
	uint64_t               next_op;
	uint64_t               act_every;
};

/* --- the whole -------------------------------------------------------------------------------- */

enum sim_errand { ERRAND_NONE, ERRAND_CLEAR, ERRAND_WEIGHTS, ERRAND_DRAIN };

struct sim {
	struct world         world;
	struct faults        faults;
	struct covers       *covers;
	struct shape         shape;
	struct sched_options options; /* but for what is a rank's own */
	struct exec_limits   limits;
	struct faulty_store  store;
	struct sim_rank      ranks[RANKS_MAX];
	struct group_engine  engine;
	struct engine_plane  planes[GROUPS_MAX][LAYERS];
	struct sim_locker    locker;
	uint32_t             workers_each;
	uint32_t             incarnation; /* restarts so far */
	uint32_t             version;     /* of the weights */
	/* The ledger. */
	struct sim_op        ops[OPS_MAX];
	uint64_t             last_op;
	struct sim_ticket    tickets[TICKETS_MAX];
	uint32_t             round;
	struct tick          tick; /* the last one agreed */
	/* Clients. */
	struct sim_request   requests[REQUESTS_MAX];
	uint64_t             next_request;
	uint32_t             request_limit;
	uint32_t             paths[PATHS]; /* the last page of those taken lately */
	uint32_t             spread; /* of 12: how often a path turns */
	struct sched_event   events[EVENTS_MAX]; /* for the next round */
	uint32_t             event_count;
	/* The Device. */
	struct sim_work      works[WORKS_MAX];
	uint32_t             work_head, work_count;
	uint32_t             forwards; /* of them */
	/* Upkeep. */
	enum sim_errand      errand;
	uint64_t             errand_until;
	uint64_t             no_forward_until, no_storage_until;
	size_t               heap; /* bytes in use since the last open */
	/* Times, in ticks, at most. */
	uint64_t             round_every;
	uint64_t             submit_every;
	uint64_t             work_ticks; /* of a job or a copy */
	uint64_t             forward_ticks;
	uint64_t             upkeep_every;
	/* Device memory, with room for the null block's parent. */
	_Alignas(64) uint8_t device[RANKS_MAX][(DEVICE_PARENTS + 1) * PARENT_BYTES];
	_Alignas(64) uint8_t cyclic[GROUPS][RANKS_MAX][(DEVICE_PARENTS + 1) * PARENT_BYTES];
	/* Host memory of each incarnation: late I/O of one that is gone goes on. */
	_Alignas(64) uint8_t host[RESTARTS_MAX + 1][RANKS_MAX][HOST_PARENTS * PARENT_BYTES];
};

#endif
