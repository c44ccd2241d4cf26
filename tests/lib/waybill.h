/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ledger beside a transfer manager: which ops are out and which blocks each has, who waits since
 * when, who holds what until when, what is known to be missing.  It is so naive that it is plainly
 * right.
 *
 * waybill_tick() and waybill_check() compare: every credit and every reference on every Host block
 * is accounted for; blocks under I/O belong to one op and lie still; nothing is published from a
 * detached or unretired op; deadlines and holds end on their tick, never before, never after; each
 * read gets one wake, and says what became of its op.
 */
#ifndef LIB_WAYBILL_H
#define LIB_WAYBILL_H

#include "hoist.h"

#define WAYBILL_PAGES 7u
#define WAYBILL_GROUPS 2u
#define WAYBILL_OPS 5u
#define WAYBILL_CLAIMS 512u
#define WAYBILL_ROWS 12u
#define WAYBILL_NEGATIVES 4u

enum phase { GONE, OUT, ANSWERED, STUCK };

/* An op that the store may touch, with what it was given. */
struct flight {
	enum phase         phase;
	struct op          op;
	uint32_t           lease; /* index + 1; 0: a put, or nobody waits any more */
	bool               cancelled;
	struct kvs_key     keys[WAYBILL_ROWS];
	struct cache_block blocks[WAYBILL_ROWS];
	struct fact        fact;
};

struct claim {
	struct lease lease;
	bool         waiting;
	bool         ready;
	uint32_t     rows;     /* held */
	uint64_t     until_ns; /* deadline, or end of the hold */
};

struct waybill {
	struct hoist   hoist;
	struct flight  flights[WAYBILL_OPS];
	struct claim   claims[WAYBILL_CLAIMS];
	uint32_t       claim_count;
	uint32_t       absorbed; /* ops of this round that the model has seen */
	uint32_t       cancels;  /* the same for cancels */
	uint64_t       last_id;
	bool           closed, intent, intent_new;
	struct kvs_key negatives[WAYBILL_NEGATIVES]; /* oldest first */
	uint32_t       negative_count;
	uint64_t       reads, left_waiting, offers, put_rows;
};

extern const struct transfer_limits waybill_limits;

/* How many ops are in a phase. */
uint32_t waybill_count(const struct waybill *waybill, enum phase phase);
/* Note the ops that the manager emitted since. */
void waybill_absorb(struct waybill *waybill);
/* The request of a claim goes. */
void waybill_drop(struct waybill *waybill, uint32_t claim);
/* A tick with the facts of all answered ops; of noticed[] the notices have been queued. */
void waybill_tick(struct waybill *waybill, uint32_t elapsed_ns, const bool *noticed);
/* After every step. */
void waybill_check(struct waybill *waybill);

#endif
