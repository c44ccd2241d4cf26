/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler: which request computes what in the next forward, in which blocks, and what has to
 * be moved for it between Device, Host and Store.
 *
 * Pure: requests, events and agreed ticks in, plans out; no thread, no clock, no allocation after
 * open.  Every rank runs one and feeds it the same, so every rank makes the same plan.
 *
 *   sched_submit()   requests come
 *   sched_feed()     what the engine did: tokens, ends, aborts; applied at once, in order
 *   sched_next()     the loop head: applies the agreed tick (the gate, deadlines, facts, notices,
 *                    copies that passed their fence), then plans.  Also in frozen and idle rounds
 *   the caller       submits plan.ops to the executor, in order, and the copies to the Device's
 *                    engine, and runs the forward.  Storage never waits for a copy or a forward,
 *                    nor they for it: all three know each other by tickets alone
 *
 * States    request.h: the table of edges.  Storage is considered once a request, before its
 *           admission, in PREFETCHING, which owns no block of Device and no place in the batch.
 * Roles     FUSED computes prompts and decodes.  PREFILL computes prompts and hands them over;
 *           DECODE takes them, computed elsewhere.  Only FUSED and PREFILL consider storage; a
 *           DECODE rank matches Device alone but for requests that it retracted.
 * Order     docs/design/scheduler.md: by rank of state, then by id as text.  Nothing depends on the
 *           order of a hash or on a pointer.
 * Limits    struct sched_options; a refused call changes nothing.
 * Threads   The cache thread only.
 */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "key/prompt.h"
#include "sched/batch.h"
#include "sched/explain.h"
#include "tier/mover.h"
#include "tier/snapshot.h"
#include "transfer/transfer.h"

/* Of a request, its end included. */
#define SCHED_ID_BYTES 64u
/* Far more than any engine has. */
#define SCHED_REQUESTS_MAX (1u << 20)

enum sched_role { SCHED_FUSED, SCHED_PREFILL, SCHED_DECODE };

struct sched_options {
	enum sched_role          role;
	struct kvs_namespace     space;
	/* The cache. */
	const struct group_spec *groups; /* names are held until close */
	uint32_t                 group_count;
	uint32_t                 page_tokens;    /* P */
	uint32_t                 device_parents;
	uint32_t                 host_parents;   /* 0: no Host */
	bool                     prefix_cache;   /* false: nothing is matched but what was retracted */
	/* Requests. */
	uint32_t                 request_max;        /* that live together */
	uint32_t                 request_tokens_max; /* prompt and output of one; at most TOKENS_MAX */
	uint32_t                 replay_tokens;      /* computed anew at a prompt's end; 0 is as 1 */
	/* Forwards. */
	uint32_t                 batch_max;      /* rows, and places of the batch */
	uint32_t                 chunk_tokens;   /* C: tokens of a forward, but for a DECODE rank's decodes */
	uint32_t                 decode_tokens;  /* D: of a decode step; 1 without speculation */
	uint32_t                 overlap_depth;  /* 1: a forward is planned while one runs; needs D > 0 */
	bool                     mixed;          /* prefills and decodes may share a forward */
	/* Copies between Device and Host. */
	uint32_t                 save_ticket_max, save_row_max, load_ticket_max;
	uint32_t                 candidate_max;  /* published blocks that wait for their save */
	uint32_t                 snapshot_max;   /* images of retracted requests; 0: none */
	uint32_t                 snapshot_block_max;
	/* Storage. */
	bool                     with_store;
	struct transfer_limits   transfer;
	const struct owner      *owner;   /* NULL: alone */
	const struct arena_part *part;    /* Host; may be NULL without a store */
	const struct hostmap    *hostmap;
};

struct sched;

/**
 * Errors  KVS_E_INVALID  an option out of range, or two that do not go together: the sentence names
 *                        the group and the field.  Checked before anything is built.  -ENOMEM.
 */
int    sched_open(const struct sched_options *options, struct sched **ret_sched,
		  struct kvs_error *err);
/* Drops everything; what late I/O may touch is the arena's, not the scheduler's.  NULL is fine. */
void   sched_close(struct sched *sched);
size_t sched_bytes(const struct sched *sched);

/* --- requests --------------------------------------------------------------------------------- */

struct sched_request {
	const char                 *id;     /* 1 to SCHED_ID_BYTES - 1 bytes, of no other; copied */
	const int32_t              *tokens; /* copied */
	uint32_t                    token_count;
	uint32_t                    max_new_tokens;
	const struct prompt_extras *extras; /* NULL: none; borrowed until the request has ended */
	uint64_t                    logits_from; /* first position whose logits are wanted; LOGITS_NONE */
};

/**
 * All of them or none.
 *
 * Errors  KVS_E_INVALID  no tokens, an id that is too long, or one twice; tokens and new tokens
 *                        past sched_request_limit(), or past request_tokens_max; a bad extra;
 *         KVS_E_EXISTS   a live request has the id;
 *         KVS_E_FULL     request_max requests live.
 */
int sched_submit(struct sched *sched, const struct sched_request *requests, uint32_t count,
		 struct kvs_error *err);

/* The longest request, in tokens, that this Device can hold when it is alone. */
uint32_t sched_request_limit(const struct sched *sched);

enum sched_event_kind {
	SCHED_EXTEND,       /* a forward gave tokens[]: one a step, or as many as were accepted */
	SCHED_FINISH,       /* the request is complete; what it computed is published */
	SCHED_ABORT,        /* publishes nothing; blocks go at once, so no peer may write to them any more */
	SCHED_RESERVE,      /* the next decode step needs room for `reserve` tokens */
	SCHED_BOOTSTRAPPED, /* PREFILL, DECODE: the peer is there */
	SCHED_PREFILLED,    /* DECODE: the peer's prefill has landed; tokens[0] is its first token */
	SCHED_HANDED_OVER,  /* PREFILL: the peer has what it needs */
	SCHED_PEER_FAILED,  /* PREFILL, DECODE: as an abort */
	SCHED_EVENT_KINDS
};

struct sched_event {
	enum sched_event_kind kind;
	const char           *id; /* unknown ones are ignored: they may have ended by themselves */
	const int32_t        *tokens;
	uint32_t              token_count;
	uint32_t              reserve;
};

/**
 * Apply events in order.  *ret_applied of them were, also after an error.
 *
 * Errors  KVS_E_INVALID  the first that does not fit the state of its request (the sentence names
 *                        event, id and state), a negative token, more tokens than a request holds:
 *                        it and what follows it changed nothing.
 */
int sched_feed(struct sched *sched, const struct sched_event *events, uint32_t count,
	       uint32_t *ret_applied, struct kvs_error *err);

/* --- plans ------------------------------------------------------------------------------------ */

/* What became of a request. */
enum sched_end { SCHED_FINISHED, SCHED_ABORTED, SCHED_FAILED };

struct sched_result {
	char               id[SCHED_ID_BYTES];
	enum sched_end     end;
	uint32_t           token_count; /* prompt and output */
	uint32_t           retractions;
	bool               admitted;    /* ever: the explanation is that of its first admission */
	struct explanation explanation;
};

/* Good until the next sched_feed() or sched_next(). */
struct sched_plan {
	struct batch               forward;
	/* Tickets of the mover, in order; mover_find() has their rows. */
	const uint64_t            *copies;
	uint32_t                   copy_count;
	/* For the executor, in order. */
	const struct op           *ops;
	uint32_t                   op_count;
	/* Requests that ended since the last plan; their ids are free again. */
	const struct sched_result *ended;
	uint32_t                   ended_count;
};

/* The tick has been through agree_round(). */
void sched_next(struct sched *sched, const struct tick *tick, const struct sched_plan **ret_plan);

/* --- maintenance ------------------------------------------------------------------------------ */

/* Wanted: nothing new is prepared or backed up until it is taken back. */
void sched_set_intent(struct sched *sched, bool intent);

/*
 * What stands in the way of a full clear; NULL when nothing does: live requests, copies, images,
 * storage operations, Ready holds, quarantine.
 */
const char *sched_in_the_way(const struct sched *sched);

/*
 * Forget both strata, tails, negatives, backups and images, for the namespace `space` from now on:
 * the same one for a clear, another one for new weights.  Never waits.
 *
 * Errors  KVS_E_BUSY  sched_in_the_way() says why; nothing has changed.
 */
int sched_clear(struct sched *sched, const struct kvs_namespace *space, struct kvs_error *err);
/* Device alone; may go on beside storage.  KVS_E_BUSY while a request holds a block. */
int sched_clear_device(struct sched *sched, struct kvs_error *err);

/* --- looking ---------------------------------------------------------------------------------- */

struct sched_load {
	uint32_t             bootstrapping, submitted, prefetching, prefilling, prefill_done,
		decoding, retracted;
	uint32_t             waiting; /* submitted and retracted, as engines count them; not prefetching */
	uint32_t             saving, loading; /* tickets of copies */
	uint32_t             candidates;
	struct transfer_load transfer;
};

struct sched_load             sched_load(const struct sched *sched);
const struct cache           *sched_cache(const struct sched *sched);
const struct mover           *sched_mover(const struct sched *sched);
const struct transfer        *sched_transfer(const struct sched *sched); /* NULL without a store */
const struct explain_counts  *sched_explain_counts(const struct sched *sched);

/*
 * Why the hit of a live request, or of one that ended in the last plan, is what it is; KVS_E_STALE.
 */
int sched_explain(const struct sched *sched, const char *id, struct explanation *ret_explanation);

/* The earliest time at which a round has something to do without any event; UINT64_MAX. */
uint64_t sched_wake_ns(const struct sched *sched);

/* Parents of Device that are unbound or evictable. */
uint32_t sched_available(const struct sched *sched);

/* O(n) */
void sched_audit(const struct sched *sched);

#endif
