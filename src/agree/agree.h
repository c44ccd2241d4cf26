/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Agreement: from the reports of all owners to the one tick that each of them applies.
 *
 * Every round each owner's report rides one all-gather, so every owner has all reports, in order of
 * rank, and makes the same tick of them.  Pure, and the same on every owner:
 *
 *   now          the leader's clock (rank 0), never less than the tick before
 *   pressure     the greatest of each observation
 *   permits      what the control state says, which all owners hold alike
 *   facts        those of ops of which the last owner has reported now.  Per key ok is what all
 *                say, an object fault what any owner says that read the row; retired is what all
 *                say; the reason is that of the lowest rank that gives one.  Bytes moved stay with
 *                the owner that moved them
 *   notices      ops whose fact came unretired, and every owner that said so has taken it back by
 *                now; perhaps in the tick of the fact, which stays unretired: facts are applied
 *                first
 *   copies       tickets of Device copies that the last owner has passed now
 *
 * An owner reports each completion once; a record of who has reported is kept until all did, so a
 * slow op never holds up a later one.  The order of a tick's lists depends on the reports alone: by
 * id.
 *
 * Only a GET or a PUT is ever in doubt.  Whatever moves no payload ends with its facts, even
 * unretired ones; its owners report no notice of it.
 *
 * With one owner the tick's lists are those of its report, in its order, and nothing is copied;
 * only the list of ops under way is kept, which is what a report is checked against.
 *
 * Errors   A report is input.  An owner whose own poll was invalid reports an error instead; any
 *          bad report is a protocol error of the round on every owner: the sentence names rank,
 *          field and op, and nothing has changed.
 * Limits   ops_max ops under way, copies_max tickets under way, fixed at open; nothing allocates
 *          after.  No report is larger than agree_facts_max() says, whatever the traffic.
 * Threads  The cache thread only.  Pure.
 * Cost     Follows the completions of the round, not what is under way.
 */
#ifndef AGREE_AGREE_H
#define AGREE_AGREE_H

#include "agree/owner.h"
#include "op/op.h"

/* Far more than an executor takes: so much that a table of so many is still to be had. */
#define AGREE_OPS_MAX (1u << 20)

struct agree;

struct agree_options {
	uint32_t owners;     /* 1 to OWNERS_MAX */
	uint32_t ops_max;    /* op credits: 1 to AGREE_OPS_MAX */
	uint32_t copies_max; /* tickets of Device copies: 0 to AGREE_OPS_MAX */
};

/*
 * What one owner says in a round.  Lists are in any order; each op, notice and copy comes once
 * ever.
 */
struct agree_report {
	uint64_t                        now_ns; /* of its own monotonic clock */
	struct pressure                 pressure;
	const struct fact              *facts;
	uint32_t                        fact_count;
	const struct retirement_notice *notices;
	uint32_t                        notice_count;
	const uint64_t                 *copies;
	uint32_t                        copy_count;
	int                             error; /* 0; else its poll was invalid, and nothing else counts */
};

struct agree_permits {
	bool forward; /* false: a frozen or idle round */
	bool storage; /* false: no QUERY, GET or PUT may be submitted */
};

/* Good until the next round, and with one owner as long as its report. */
struct tick {
	uint64_t                        now_ns;
	struct pressure                 pressure;
	struct agree_permits            permits;
	const struct fact              *facts;
	uint32_t                        fact_count;
	const struct retirement_notice *notices;
	uint32_t                        notice_count;
	const uint64_t                 *copies;
	uint32_t                        copy_count;
};

/* Errors: KVS_E_INVALID (field, rule), -ENOMEM. */
int    agree_open(const struct agree_options *options, struct agree **ret_agree,
		  struct kvs_error *err);
void   agree_close(struct agree *agree); /* NULL is fine */
size_t agree_bytes(const struct agree *agree);

/*
 * An op is dispatched, a batch of copies is submitted: from now on owners may report it.  Asserts
 * that there is room, which the credits see to, and that ids grow.  A CANCEL is none.
 */
void agree_expect(struct agree *agree, const struct op *op);
void agree_expect_copies(struct agree *agree, uint64_t ticket);

/**
 * The tick of a round.
 *
 * reports   owners of them, by rank; borrowed until the tick is done with.
 * Errors    KVS_E_PROTO  an owner's error; more of anything than can be under way; an id that is
 *                        unknown, was reported by this owner before, or comes twice; masks that
 *                        fact_check() refuses; a notice of an op of which this owner has no
 *                        unretired fact; anything after the last op ended.
 *           No state has changed, on any owner, and *ret_tick is untouched.
 */
int agree_round(struct agree *agree, const struct agree_report *reports,
		struct agree_permits permits, struct tick *ret_tick, struct kvs_error *err);

/* The most facts, and the most notices, one report can carry. */
uint32_t agree_facts_max(const struct agree *agree);

/* Ops and copies of which some owner has not reported, or whose retirement is in doubt. */
uint32_t agree_open_count(const struct agree *agree);

void agree_audit(const struct agree *agree);

#endif
