/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler: from a prompt's tokens to a plan of copies, forward passes and storage ops.
 *
 * Pure: time, facts and fences in, one plan a round out; it never waits.  Life of a request:
 *
 *   SUBMITTED --the store may hold more--> PREFETCHING --wake--> SUBMITTED (prepared)
 *   SUBMITTED --room on the Device--> LOADING --H2D fence--> RUNNING --forward done--> finished
 *
 * PREFETCHING owns a lease and nothing else: no Device blocks, no place among the passes.  The store
 * is considered once a request, whatever came of it.  A restored block takes the path of every Host
 * hit: H2D, fence, forward.
 *
 * Owner    Request tables and tickets live here; the engine borrows what a plan points to until the
 *          next round.
 * Limits   request_max requests of page_max pages; a longer prompt is refused.
 * Threads  One, the cache thread.  Nothing allocates after open.
 */
#ifndef MONO_SCHED_SCHED_H
#define MONO_SCHED_SCHED_H

#include "coord/coord.h"
#include "tier/tier.h"
#include "mono_transfer/transfer.h"

/* A request has one LOAD and then one SAVE, which may last until its successor's SAVE has begun. */
#define MONO_SCHED_COPIES_A_REQUEST 3u

struct mono_sched_options {
	struct coord_options        coord;
	struct mono_transfer_limits transfer;      /* with_store only */
	bool                        with_store;
	struct kvs_namespace        space;
	uint32_t                    page_tokens;   /* prefix granularity; one block a page */
	uint32_t                    request_max;
	uint32_t                    page_max;      /* pages of one prompt; at most the Device blocks */
	uint32_t                    replay_tokens; /* computed anew at a prompt's end, at least 1 */
	uint32_t                    extension_min; /* pages the store must be able to add; at least 1 */
};

/* What the engine computes for one request: pages [hit_pages, page_count) of its table. */
struct mono_sched_pass {
	uint32_t        request;      /* slot, the engine's handle until mono_sched_finished() */
	uint64_t        id;           /* the caller's */
	const uint32_t *table;        /* Device block of each page */
	uint32_t        page_count;
	uint32_t        device_pages; /* hits already on the Device: [0, device_pages) */
	uint32_t        hit_pages;    /* restored through the Host: [device_pages, hit_pages) */
	uint64_t        token_count;
};

struct mono_sched_plan {
	const struct op              *ops;    /* storage, in order of submission */
	uint32_t                      op_count;
	const uint32_t               *copies; /* tier tickets to submit to the device */
	uint32_t                      copy_count;
	const struct mono_sched_pass *passes;
	uint32_t                      pass_count;
};

enum mono_sched_origin {
	MONO_ORIGIN_DEVICE,
	MONO_ORIGIN_HOST,
	MONO_ORIGIN_STORE,
	MONO_ORIGIN_RECOMPUTED,
	MONO_ORIGIN_COUNT
};

struct mono_sched_result {
	uint64_t                   id;
	uint64_t                   token_count;
	uint32_t                   pages[MONO_ORIGIN_COUNT]; /* sum: the prompt's, a partial last one too */
	uint64_t                   tokens[MONO_ORIGIN_COUNT];
	bool                       considered; /* the store was asked or would have been: see outcome */
	enum mono_transfer_outcome outcome;
	uint64_t                   wait_ns;    /* spent PREFETCHING */
};

struct mono_sched;

/* Errors: KVS_E_INVALID (option, rule), -ENOMEM.  host has the Host blocks and outlives the scheduler. */
int  mono_sched_open(const struct mono_sched_options *options, const struct arena_part *host,
		     struct mono_sched **ret_sched, struct kvs_error *err);
void mono_sched_close(struct mono_sched *sched);

/**
 * Take a prompt in.  tokens are read during the call only.
 *
 * Errors  KVS_E_INVALID  no tokens, or more than page_max pages (the sentence has both);
 *         KVS_E_FULL     request_max requests are in.
 */
int mono_sched_submit(struct mono_sched *sched, uint64_t id, const int32_t *tokens,
		      uint64_t token_count, uint32_t *ret_request, struct kvs_error *err);

/*
 * Leave at the next round's head, if no forward resources are held by then.  True when it will;
 * then no result follows.
 */
bool mono_sched_abort(struct mono_sched *sched, uint32_t request);

/* One round.  The plan is the scheduler's, valid until the next call. */
void mono_sched_next(struct mono_sched *sched, uint64_t now_ns,
		     const struct mono_sched_plan **ret_plan);

/* What happened since: at most one fact an op, each checked by fact_check() at the edge where it came in. */
void mono_sched_fact(struct mono_sched *sched, const struct fact *fact);
void mono_sched_copied(struct mono_sched *sched, uint32_t tier_ticket);
void mono_sched_finished(struct mono_sched *sched, uint32_t request,
			 struct mono_sched_result *ret_result);
int  mono_sched_notice(struct mono_sched *sched, const struct retirement_notice *notice);

/* The copies of a ticket named by a plan. */
const struct tier_ticket *mono_sched_copy(const struct mono_sched *sched, uint32_t tier_ticket);

/* Requests in, storage transactions and copies in flight, blocks that wait for a put and blocks being put. */
struct mono_sched_load {
	uint32_t requests;
	uint32_t transfers;
	uint32_t copies;
	uint32_t backups;
	uint32_t putting;
};
struct mono_sched_load mono_sched_load(const struct mono_sched *sched);

/* When the earliest soft deadline ends: how long the caller may sleep.  UINT64_MAX when none waits. */
uint64_t mono_sched_wake_ns(const struct mono_sched *sched);

/* Facts that mono_sched_fact() takes before the next round; whether bytes are in doubt. */
uint32_t mono_sched_fact_room(const struct mono_sched *sched);
bool     mono_sched_quarantined(const struct mono_sched *sched);

/*
 * Forget the candidates that wait for a put, counted as cleanup: before a stop that shall not last.
 */
void mono_sched_discard_backups(struct mono_sched *sched);

/* For reports; without a store the manager is NULL. */
const struct mono_transfer *mono_sched_transfer(const struct mono_sched *sched);
const struct coord         *mono_sched_coord(const struct mono_sched *sched);
uint64_t                    mono_sched_unsaved(const struct mono_sched *sched);

void mono_sched_audit(struct mono_sched *sched);

#endif
