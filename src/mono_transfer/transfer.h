/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transfer manager: moves blocks between Host and Store without anyone waiting.
 *
 * Pure: facts and time in, ops and wakes out; no thread, no clock, no allocation after open.  A
 * zeroed manager has nothing in flight and answers so.  A round is
 *
 *   mono_transfer_begin(now)         forget the last outputs
 *   mono_transfer_drop_lease() ...   cancellations come before completions
 *   mono_transfer_tick(facts)        deadlines, completions, backups: an expired read cannot publish late
 *   mono_transfer_read() ...         new reads
 *   out                              the ops to submit, in order, and the requests to wake
 *
 * Owner    Tickets own their Host blocks; requests own leases only.
 * Bounds   op_credits tickets and host_credits Host references over all tickets; backups get at
 *          most half of each, rounded down.  Quarantined references stay charged.
 * Threads  The cache thread only.
 * Cost     A fact, a notice and a dropped lease each look through the tickets, and a round once more:
 *          op_credits steps each, which suits the hundreds of tickets of this version.
 */
#ifndef MONO_TRANSFER_TRANSFER_H
#define MONO_TRANSFER_TRANSFER_H

#include "arena/arena.h"
#include "base/ring.h"
#include "base/slots.h"
#include "coord/coord.h"
#include "mono_transfer/ticket.h"

/* Why a request went on without (all of) what the store may hold. */
#define MONO_TRANSFER_OUTCOMES(X) \
	X(MONO_TRANSFER_READY, "ready")         /* the restored blocks are held for the request */ \
	X(MONO_TRANSFER_MISS, "miss")           /* the store holds no extension of the local prefix */ \
	X(MONO_TRANSFER_DEADLINE, "deadline")   /* the soft deadline passed first */ \
	X(MONO_TRANSFER_CREDITS, "credits")     /* no ticket or Host credit was left */ \
	X(MONO_TRANSFER_HOST_ROOM, "host_room") /* every Host block is held */ \
	X(MONO_TRANSFER_REFUSED, "refused")     /* the executor took no more */ \
	X(MONO_TRANSFER_COOLDOWN, "cooldown")   /* the executor waits out an outage of the store */ \
	X(MONO_TRANSFER_BACKEND, "backend")     /* the store failed */ \
	X(MONO_TRANSFER_CORRUPT, "corrupt")     /* what the store gave was not what was kept */ \
	X(MONO_TRANSFER_QUARANTINE, "quarantine") /* bytes are in doubt: no new storage work */

enum mono_transfer_outcome {
#define MONO_TRANSFER_OUTCOME(name, text) name,
	MONO_TRANSFER_OUTCOMES(MONO_TRANSFER_OUTCOME)
#undef MONO_TRANSFER_OUTCOME
	MONO_TRANSFER_OUTCOME_COUNT
};

/* Why a computed block never reached the store; by occurrence. */
#define MONO_TRANSFER_DROPS(X) \
	X(MONO_TRANSFER_DROP_OVERFLOW, "overflow") /* the queue was full: its oldest went */ \
	X(MONO_TRANSFER_DROP_GONE, "gone")         /* evicted from Host before its turn */ \
	X(MONO_TRANSFER_DROP_DISABLED, "disabled") /* the write half of the credits is zero */ \
	X(MONO_TRANSFER_DROP_NO_SPACE, "no_space") /* the store refused for capacity */ \
	X(MONO_TRANSFER_DROP_FAILED, "failed")     /* the store or the executor failed */ \
	X(MONO_TRANSFER_DROP_CLEANUP, "cleanup")   /* discarded by a stop */

enum mono_transfer_drop {
#define MONO_TRANSFER_DROP(name, text) name,
	MONO_TRANSFER_DROPS(MONO_TRANSFER_DROP)
#undef MONO_TRANSFER_DROP
	MONO_TRANSFER_DROP_COUNT
};

struct mono_transfer_limits {
	uint32_t op_credits;    /* tickets */
	uint32_t host_credits;  /* Host references over all tickets */
	uint32_t keys_max;      /* keys of one read; at most OP_KEYS_MAX */
	uint32_t put_keys_max;  /* keys of one put: small, so that a slow put holds few blocks */
	uint32_t backup_queue;  /* waiting candidates, nonowning */
	uint64_t deadline_ns;   /* soft, from the issue of the QUERY; UINT64_MAX: none */
	uint64_t hold_ns;       /* how long a READY ticket waits for admission; UINT64_MAX: for ever */
};

struct mono_transfer_wake {
	uint32_t                   request;
	uint64_t                   lease_id;
	enum mono_transfer_outcome outcome;
};

struct mono_transfer_outputs {
	struct op                 *ops; /* in order of submission; arrays live in tickets until the fact */
	uint32_t                   op_count;
	struct mono_transfer_wake *wakes;
	uint32_t                   wake_count;
};

struct mono_transfer {
	struct mono_transfer_limits  limits;
	struct coord                *coord;
	const struct arena_part     *part;          /* Host block numbers to addresses */
	struct mono_ticket          *tickets;
	struct slots                 slots;
	uint64_t                     now_ns;        /* of the round */
	uint64_t                     next_op_id;
	uint32_t                     put_tickets;
	uint32_t                     host_refs;     /* charged, quarantined ones included */
	uint32_t                     put_host_refs; /* of them, those of puts */
	uint32_t                     quarantined;   /* tickets */
	struct ring                  backups;       /* struct kvs_key */
	uint64_t                    *putting;       /* a bit a Host block: a source of a put in flight */
	uint64_t                    *fetched_by;    /* Host block -> lease that brought and holds it; 0 */
	struct mono_transfer_outputs out;
	uint64_t                     outcomes[MONO_TRANSFER_OUTCOME_COUNT]; /* one a read considered */
	uint64_t                     drops[MONO_TRANSFER_DROP_COUNT];
	uint64_t                     expired_holds;
};

/* coord and part are the caller's and outlive the manager.  Errors: KVS_E_INVALID (limit, rule), -ENOMEM. */
int  mono_transfer_open(struct mono_transfer *transfer, const struct mono_transfer_limits *limits,
			struct coord *coord, const struct arena_part *part, struct kvs_error *err);
void mono_transfer_close(struct mono_transfer *transfer);

void mono_transfer_begin(struct mono_transfer *transfer, uint64_t now_ns);

/* facts answer ops of this manager, one each: an unknown id is asserted, ids are never reused. */
void mono_transfer_tick(struct mono_transfer *transfer, const struct fact *facts,
			uint32_t fact_count);

/* Quarantine ends for this op; KVS_E_STALE when it holds none. */
int mono_transfer_notice(struct mono_transfer *transfer, const struct retirement_notice *notice);

/**
 * Look for keys[0 .. key_count) in the store: those that the Host does not hold, the first keys_max
 * of them.
 *
 * Shape   The keys continue the local prefix, so the Host does not hold the first: asserted.
 *
 * True and *ret_lease_id when under way: a QUERY is among the outputs and exactly one wake for
 * `request` follows, unless the lease is dropped first.  Else *ret_reason says why not, counted,
 * and nothing changed.
 */
bool mono_transfer_read(struct mono_transfer *transfer, uint32_t request,
			const struct kvs_key *keys, uint32_t key_count,
			uint64_t *ret_lease_id, enum mono_transfer_outcome *ret_reason);

/* The request left the state that owned the lease.  Stale ids are fine: a ticket may end by itself. */
void mono_transfer_drop_lease(struct mono_transfer *transfer, uint64_t lease_id);

/* Whether this lease brought the Host block from the store. */
bool mono_transfer_fetched(const struct mono_transfer *transfer, uint64_t lease_id,
			   uint32_t host_block);

/* A Host block was published from the Device: offer it to the store when its turn comes. */
void mono_transfer_offer(struct mono_transfer *transfer, const struct kvs_key *key);

/* Forget all candidates, counted as cleanup. */
void mono_transfer_discard_backups(struct mono_transfer *transfer);

/* Tickets that still wait for a fact: what a clean stop drains. */
uint32_t mono_transfer_in_flight(const struct mono_transfer *transfer);

/* The earliest soft deadline of a read under way; UINT64_MAX when there is none. */
uint64_t mono_transfer_wake_ns(const struct mono_transfer *transfer);

const char *mono_transfer_outcome_name(enum mono_transfer_outcome outcome);
const char *mono_transfer_drop_name(enum mono_transfer_drop drop);

void mono_transfer_audit(const struct mono_transfer *transfer);

#endif
