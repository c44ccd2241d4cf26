/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transfer manager: moves blocks between Host and Store without anyone waiting.
 *
 * Pure: facts and time in, ops and wakes out; no thread, no clock, no allocation after open.  A
 * round is
 *
 *   transfer_begin(now)         forget the last outputs
 *   transfer_drop_lease() ...   cancellations come before completions
 *   transfer_tick(facts)        deadlines, then completions, then backups: an expired read cannot
 *   publish late transfer_read() ...         new reads out                         the ops to
 *   submit, in order, and the requests to wake
 *
 * Owner    Tickets own their Host blocks; requests own leases only.  Threads: the cache owner's.
 * Bounds   op_credits tickets and host_credits Host references over all tickets; backups get at
 *          most half of each, rounded down.  Quarantined references stay charged.
 */
#ifndef TRANSFER_TRANSFER_H
#define TRANSFER_TRANSFER_H

#include "arena/arena.h"
#include "base/ring.h"
#include "base/slots.h"
#include "coord/coord.h"
#include "transfer/ticket.h"

/* Why a request went on without (all of) what the store may hold. */
#define TRANSFER_OUTCOMES(X) \
	X(TRANSFER_READY, "ready")         /* the restored blocks are held for the request */ \
	X(TRANSFER_MISS, "miss")           /* the store holds no extension of the local prefix */ \
	X(TRANSFER_DEADLINE, "deadline")   /* the soft deadline passed first */ \
	X(TRANSFER_CREDITS, "credits")     /* no ticket or Host credit was left */ \
	X(TRANSFER_HOST_ROOM, "host_room") /* every Host block is held */ \
	X(TRANSFER_REFUSED, "refused")     /* the executor took no more */ \
	X(TRANSFER_COOLDOWN, "cooldown")   /* the executor waits out an outage of the store */ \
	X(TRANSFER_BACKEND, "backend")     /* the store failed */ \
	X(TRANSFER_CORRUPT, "corrupt")     /* what the store gave was not what was kept */ \
	X(TRANSFER_QUARANTINE, "quarantine") /* bytes are in doubt: no new storage work */

enum transfer_outcome {
#define TRANSFER_OUTCOME(name, text) name,
	TRANSFER_OUTCOMES(TRANSFER_OUTCOME)
#undef TRANSFER_OUTCOME
	TRANSFER_OUTCOME_COUNT
};

/* Why a computed block never reached the store; by occurrence. */
#define TRANSFER_DROPS(X) \
	X(TRANSFER_DROP_OVERFLOW, "overflow") /* the queue was full: its oldest went */ \
	X(TRANSFER_DROP_GONE, "gone")         /* evicted from Host before its turn */ \
	X(TRANSFER_DROP_DISABLED, "disabled") /* the write half of the credits is zero */ \
	X(TRANSFER_DROP_NO_SPACE, "no_space") /* the store refused for capacity */ \
	X(TRANSFER_DROP_FAILED, "failed")     /* the store or the executor failed */ \
	X(TRANSFER_DROP_CLEANUP, "cleanup")   /* discarded by a stop */

enum transfer_drop {
#define TRANSFER_DROP(name, text) name,
	TRANSFER_DROPS(TRANSFER_DROP)
#undef TRANSFER_DROP
	TRANSFER_DROP_COUNT
};

struct transfer_limits {
	uint32_t op_credits;    /* tickets */
	uint32_t host_credits;  /* Host references over all tickets */
	uint32_t keys_max;      /* keys of one read; at most OP_KEYS_MAX */
	uint32_t put_keys_max;  /* keys of one put: small, so that a slow put holds few blocks */
	uint32_t backup_queue;  /* waiting candidates, nonowning */
	uint64_t deadline_ns;   /* soft, from the issue of the QUERY; UINT64_MAX: none */
	uint64_t hold_ns;       /* how long a READY ticket waits for admission; UINT64_MAX: for ever */
};

struct transfer_wake {
	uint32_t              request;
	uint64_t              lease_id;
	enum transfer_outcome outcome;
};

struct transfer_outputs {
	struct op            *ops;   /* in order of submission; arrays live in the tickets until the fact */
	uint32_t              op_count;
	struct transfer_wake *wakes;
	uint32_t              wake_count;
};

struct transfer {
	struct transfer_limits   limits;
	struct coord            *coord;
	const struct arena_part *part;     /* Host block numbers to addresses */
	struct ticket           *tickets;
	struct slots             slots;
	uint64_t                 now_ns;   /* of the round */
	uint64_t                 next_op_id;
	uint32_t                 put_tickets;
	uint32_t                 host_refs;     /* of it: */
	uint32_t                 put_host_refs;
	uint32_t                 quarantined;   /* tickets */
	struct ring              backups;       /* struct kvs_key */
	uint64_t                *fetched_by;    /* Host block -> lease that brought and holds it; 0 */
	struct transfer_outputs  out;
	uint64_t                 outcomes[TRANSFER_OUTCOME_COUNT]; /* one a read considered */
	uint64_t                 drops[TRANSFER_DROP_COUNT];
	uint64_t                 expired_holds;
};

/*
 * coord and part are the caller's and outlive the manager.  Errors: KVS_E_INVALID (limit, rule),
 * -ENOMEM.
 */
int  transfer_open(struct transfer *transfer, const struct transfer_limits *limits,
		   struct coord *coord, const struct arena_part *part, struct kvs_error *err);
void transfer_close(struct transfer *transfer);

void transfer_begin(struct transfer *transfer, uint64_t now_ns);

/* facts answer ops of this manager, one each: an unknown id is asserted, ids are never reused. */
void transfer_tick(struct transfer *transfer, const struct fact *facts, uint32_t fact_count);

/* Quarantine ends for this op; KVS_E_STALE when it holds none. */
int transfer_notice(struct transfer *transfer, const struct retirement_notice *notice);

/**
 * Look for keys[0 .. key_count) in the store: those that the Host does not hold, the first keys_max
 * of them.
 *
 * Shape   The keys continue the local prefix, so the Host does not hold the first: asserted.
 *
 * On success a QUERY is among the outputs and exactly one wake for `request` follows, unless the
 * lease is dropped first.  Returns TRANSFER_READY and *ret_lease_id when under way; else why not,
 * counted, and nothing changed.
 */
enum transfer_outcome transfer_read(struct transfer *transfer, uint32_t request,
				    const struct kvs_key *keys, uint32_t key_count,
				    uint64_t *ret_lease_id);

/*
 * The request left the state that owned the lease.  Stale ids are fine: the ticket may have ended
 * by itself.
 */
void transfer_drop_lease(struct transfer *transfer, uint64_t lease_id);

/* Whether this lease brought the Host block from the store. */
bool transfer_fetched(const struct transfer *transfer, uint64_t lease_id, uint32_t host_block);

/* A Host block was published from the Device: offer it to the store when its turn comes. */
void transfer_offer(struct transfer *transfer, const struct kvs_key *key);

/* Forget all candidates, counted as cleanup. */
void transfer_discard_backups(struct transfer *transfer);

/* Tickets that still wait for a fact: what a clean stop drains. */
uint32_t transfer_in_flight(const struct transfer *transfer);

const char *transfer_outcome_name(enum transfer_outcome outcome);
const char *transfer_drop_name(enum transfer_drop drop);

void transfer_audit(const struct transfer *transfer);

/*
 * --- between the files of this room
 * ----------------------------------------------------------------------
 */

/* Append an op or a wake to the round's outputs. */
void transfer_emit(struct transfer *transfer, const struct op *op);
void transfer_wake_up(struct transfer *transfer, const struct ticket *ticket,
		      enum transfer_outcome outcome);

/*
 * That long from this round on; UINT64_MAX, which no tick reaches, when the clock has no such time.
 */
uint64_t transfer_until(const struct transfer *transfer, uint64_t ns);

/* A free ticket, its op arrays wired up; NULL without a credit. */
struct ticket *transfer_ticket(struct transfer *transfer);
/* Give the ticket's blocks back and free it. */
void transfer_ticket_end(struct transfer *transfer, struct ticket *ticket);

/* The answer to a QUERY: reserve destinations, or say why not. */
void transfer_found(struct transfer *transfer, struct ticket *ticket, const struct fact *fact);
/* A GET retired while its lease was attached: publish the whole rows. */
void transfer_publish(struct transfer *transfer, struct ticket *ticket, const struct fact *fact);

/* Start puts while credits last; count what a finished one could not keep. */
void transfer_dispatch_backups(struct transfer *transfer);
void transfer_put_done(struct transfer *transfer, const struct fact *fact);

enum transfer_outcome transfer_outcome_of(const struct fact *fact);

#endif
