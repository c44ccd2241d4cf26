/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to ask a store for: of one prompt, the blocks that Device and Host lack and a longer prefix
 * needs.
 *
 * A *boundary* is where a restored prefix may end: a page boundary or a tail (match/tail.h).  It
 * lies behind the complete local hit, by extension_min at least, and not behind the reusable bound
 * or the lookahead.  What it misses is what match_needed() names and the view does not hold: all
 * history, the windows, each state checkpoint at the boundary.  Device and Host count as they are,
 * block by block, so that history which Device holds behind its last checkpoint is not asked for
 * again.
 *
 *   first      the longest boundary of which all that it misses fits into the budget
 *   fallbacks  shorter ones, longest first: each adds what it misses and nobody asked for yet, when
 *              all of that still fits
 *
 * A boundary that misses a block of which it is known that no store has it is passed over.
 *
 * So the checkpoints of the prompt's end are asked for before any older one, and a boundary is
 * never asked for in part.  A key is one block and costs one credit, whatever parent it may share
 * and however its bytes are spread over owners.  Planning assumes nothing but existence: it pins
 * and reserves nothing, and what it finds is a question, never a hit.
 *
 * Limits   struct query_limits, fixed at open; nothing allocates after.
 * Cost     A pass over the pages and a step for each boundary and group.
 * Threads  The cache thread only.  Pure.
 */
#ifndef PLAN_QUERY_H
#define PLAN_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "match/origin.h"

struct query_limits {
	uint32_t page_max;         /* pages of the longest prompt */
	uint32_t tail_max;         /* tails of one prompt */
	uint32_t key_max;          /* keys of one query */
	uint32_t extension_min;    /* tokens beyond the local hit that are worth a query; 0 is as 1 */
	uint32_t lookahead_tokens; /* no boundary lies further behind the local hit */
};

/* Borrowed for the call. */
struct query_ask {
	const struct view          *view;         /* Device and Host as they are, to the bound */
	const struct kvs_namespace *space;
	const struct prefix_hash   *hashes;       /* of its pages */
	const struct tail          *tails;        /* as tails_find() gives them */
	uint32_t                    tail_count;
	uint32_t                    local_tokens; /* the complete local hit */
	uint32_t                    bound_tokens; /* the exact reusable bound */
	uint32_t                    credits;      /* blocks that a read may still hold */
	/* What no store has; NULL: nothing. */
	const uint64_t             *page_absent;  /* bit page * columns + column */
	const uint64_t             *tail_absent;  /* a word a tail, bit column */
};

enum query_bypass {
	QUERY_ASKED,       /* there are keys to ask for */
	QUERY_COVERED,     /* the local hit is all that may be restored */
	QUERY_SHORT,       /* an extension would be below the minimum */
	QUERY_NO_BOUNDARY, /* there is none in reach behind the local hit */
	QUERY_CREDITS,     /* no boundary fits into the budget of keys and credits */
	QUERY_ABSENT,      /* every boundary misses a block that is known to be in no store */
	QUERY_BYPASS_COUNT
};

/* Why a boundary was passed over. */
enum query_cut { QUERY_CUT_NONE, QUERY_CUT_CREDITS, QUERY_CUT_KEYS, QUERY_CUT_ABSENT };

/* One block: of a page of the prompt, or of a tail. */
struct query_key {
	uint32_t page;   /* the tail's: its last, partial one */
	uint32_t tail;   /* number in ask->tails; TAIL_NONE: the page's own */
	uint32_t column;
};

/* A boundary of the plan: it misses nothing but some of keys [0, key_end). */
struct query_boundary {
	struct boundary at;
	uint32_t        key_end; /* its additions end here, where the next one's begin */
};

/* Counters grow from open on: each says how often its limit decided something. */
struct query_counts {
	uint64_t plans[QUERY_BYPASS_COUNT];
	uint64_t cut_lookahead; /* plans that a longer lookahead could have extended */
	uint64_t cut_credits;   /* boundaries passed over for want of credits, */
	uint64_t cut_keys;      /* for want of keys of the query alone, */
	uint64_t cut_absent;    /* because of a block that no store has */
};

struct query {
	struct groups          groups;
	struct query_limits    limits;
	struct query_counts    counts;
	/* The last plan; good until the next. */
	enum query_bypass      bypass;
	struct query_key      *keys;       /* those of a boundary by group and position */
	uint32_t               key_count;
	struct query_boundary *boundaries; /* longest first */
	uint32_t               boundary_count;
	enum query_cut         cut;        /* of the longest boundary in reach; NONE: it was taken */
	struct query_key       barrier;    /* the first absent block of the longest boundary that has one, */
	bool                   has_barrier; /* if there was such a boundary */
	/* Scratch. */
	struct origins         origins;
	uint32_t               asked_from[GROUPS_MAX];   /* position; UINT32_MAX: none is asked */
	uint32_t               asked_before[GROUPS_MAX]; /* positions missing before it */
	uint32_t               absent_from[GROUPS_MAX];  /* the first absent position looked at, */
	uint32_t               absent_seen[GROUPS_MAX];  /* and where looking began */
	uint64_t              *seen; /* of the audit: a bit a cell */
};

/**
 * Open a planner.
 *
 * Errors  KVS_E_INVALID  a limit of 0 pages or keys, or too many cells: the sentence names the
 *                        field; -ENOMEM.
 */
int    query_open(struct query *query, const struct groups *groups,
		  const struct query_limits *limits, struct kvs_error *err);
void   query_close(struct query *query);
size_t query_bytes(const struct query *query); /* memory in use */

/*
 * Where a key of a plan lies: its group, and the block of the group from the start of the prompt.
 */
uint32_t query_key_group(const struct query *query, const struct query_key *key);
uint32_t query_key_position(const struct query *query, const struct query_key *key);

/* The last token that a boundary may have: the bound, or as far as the lookahead goes. */
uint32_t query_reach(const struct query_limits *limits, uint32_t local_tokens,
		     uint32_t bound_tokens);

/*
 * Plan the keys of a prompt.  Anything but QUERY_ASKED has none and says why.  Pages and tails are
 * within the limits, and tails longest first (asserted).
 */
enum query_bypass query_plan(struct query *query, const struct query_ask *ask);

/*
 * O(keys + boundaries): the last plan, of this ask and with nothing changed since, is within its
 * budget, in order, and has only missing keys, each once.
 */
void query_audit(const struct query *query, const struct query_ask *ask);

#endif
