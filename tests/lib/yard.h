/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache of several groups over real memory: Device and Host blocks, the copy engine that moves them,
 * the mover that says what is moved, and the reference engine that knows what each row must be.
 *
 * Groups share the Device's bytes as they do on an accelerator: a parent that changes its group keeps
 * what the last one left there.  Every group is a field a layer, in one buffer.
 *
 * Late     Copies run when a test says so, in the order of their stream; a save runs behind the loads
 *          that fill what it copies, and before or after any other.  What was copied is acknowledged
 *          later still, in any order.
 * Zeros    An admission's fresh blocks are zeroed in its batch of the LOAD stream, or in one of their own.  A
 *          forward is behind that batch, and so behind every load before it.  Without zeros it is behind
 *          what the mover's fences say, and nothing else.
 */
#ifndef LIB_YARD_H
#define LIB_YARD_H

#include "device/cpu.h"
#include "engine/groups.h"
#include "match/tail.h"
#include "tier/snapshot.h"

#define YARD_GROUPS 4u
#define YARD_LAYERS 4u /* of a group */
#define YARD_PARENT_BYTES 192u
#define YARD_PARENTS 64u
#define YARD_TICKETS 32u
#define YARD_ROWS 512u
#define YARD_DONE 256u

struct yard_spec {
	const struct group_spec *groups; /* packing divides YARD_PARENT_BYTES */
	const uint32_t          *layers; /* of each; 8 * q * layers * packing (STATE: 8 * layers * packing)
					    is at most YARD_PARENT_BYTES */
	uint32_t                 group_count;
	uint32_t                 page_tokens;
	uint32_t                 device_parents;
	uint32_t                 host_parents;
	uint32_t                 prompt_pages;
	bool                     unzeroed;     /* fresh blocks stay as they are */
};

/* What really happened, so that a test can say that it did. */
struct yard_counts {
	uint64_t rows_checked, checkpoints_checked; /* right ones */
	uint64_t chunks, body_tails, decodes;       /* forwards */
	uint64_t device_hits, host_hits, tail_hits; /* admissions */
	uint64_t loads, tail_loads, copies, saves;  /* blocks */
	uint64_t tails, promotions;                 /* published */
	uint64_t device_evictions, host_evictions;  /* blocks */
	uint64_t finishes, aborts, aborts_loading;
	uint64_t retractions, restored, recomputed;
	uint64_t refused, waited;                   /* admissions; those that fitted behind saves */
	uint64_t foreign_fences;                    /* waits for a load of another request */
	uint64_t late_acks;                         /* not the oldest first */
	uint64_t clears;
};

/* One stream's batches that were submitted and have not run, oldest first. */
struct yard_stream {
	uint64_t submitted, executed;
	uint64_t ticket[YARD_TICKETS]; /* 0: zeros only */
	uint64_t after[YARD_TICKETS];  /* SAVE: the load of this id runs before it; 0: none */
};

struct yard {
	struct yard_spec     spec;
	struct candidates    candidates;
	struct cache        *cache;
	struct mover         mover;
	struct snapshots     snapshots;
	struct tails         tails;
	struct kvs_namespace space;
	struct layout        layout;
	char                 ids[YARD_GROUPS * YARD_LAYERS][32];
	struct engine_plane  planes[YARD_GROUPS][YARD_LAYERS];
	struct group_engine  engine;
	struct arena_part    host;
	struct copier       *copier;
	struct yard_stream   stream[COPIER_STREAMS];
	uint64_t             loaded_ticket;   /* the last LOAD ticket that ran */
	uint64_t             done[YARD_DONE]; /* ran, not acknowledged */
	uint32_t             done_count;
	bool                 clearing;
	uint32_t             host_cells;
	struct yard_counts  *counts;
	_Alignas(64) uint8_t device_memory[(YARD_PARENTS + 1) * YARD_PARENT_BYTES];
	_Alignas(64) uint8_t host_memory[YARD_PARENTS * YARD_PARENT_BYTES];
};

struct yard *yard_open(const struct yard_spec *spec, struct yard_counts *counts);
/* All requests must be gone: settles, clears, and asserts that every block came back. */
void         yard_close(struct yard *yard);

/* Submit a load ticket's rows behind the zeros of an admission's fresh blocks; 0 and NULL: none of them. */
void yard_load(struct yard *yard, uint64_t id, const struct cache_admitted *admitted);
/* Submit a save or a stash; 0 is none. */
void yard_save(struct yard *yard, uint64_t id);
/* A drain of the candidates. */
void yard_drain(struct yard *yard);

/* Run a stream's oldest batch; false when there is none. */
bool yard_step(struct yard *yard, enum copier_stream stream);
/* Run loads up to the one of this id; up to so many batches. */
void yard_run_ticket(struct yard *yard, uint64_t id);
void yard_run_batches(struct yard *yard, uint64_t batches);
/* Acknowledge one of what ran; false when there is none. */
bool yard_acknowledge(struct yard *yard, uint32_t pick);
/* Run and acknowledge all; only saves and stashes. */
void yard_settle(struct yard *yard);
void yard_settle_saves(struct yard *yard);

/* Drop all cells, tails and candidates, unless a copy is under way, or an image or a cell held. */
bool yard_clear(struct yard *yard);

/* After every operation. */
void yard_audit(struct yard *yard);

#endif
