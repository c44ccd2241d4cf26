/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transfer manager: moves blocks between Host and Store without anyone waiting.
 *
 * Pure: agreed ticks and requests in, ops and wakes out; no thread, no clock, no allocation after
 * open.  It never decides what a request does: it answers whether bytes came, and owns them until
 * their I/O has retired.  A round is
 *
 *   transfer_begin()             forget the last outputs
 *   transfer_drop_lease() ...    cancellations come before completions
 *   transfer_tick(tick)          the gate, deadlines, waits that others satisfied, facts, notices,
 *                                backups, in this order: a read that expires on the tick of its
 *                                fact does not publish
 *   transfer_read() ...          new reads, transfer_offer() ... new candidates
 *   out                          the ops to submit, in order, and the requests to wake
 *
 * The read   QUERY what query_plan() says, reserve what cache_reserve() says, GET, publish what
 *            came whole on every owner, hold it until its admission (docs/design/read.md).
 * The write  candidates own nothing; at dispatch residency is checked, sources are pinned, PUT
 *            (docs/design/write.md).
 * Gate       One for reads and writes.  It closes when an observation reaches its high mark and
 *            opens when all are at their low ones or below.  Closed: a new read is refused, one in
 *            QUERY is let go at once, candidates are dropped; GETs, Ready holds and PUTs go on.
 *            Nothing else opens or closes it, and it stops nothing else.
 * Intent     transfer_set_intent() closes reads and backups in the same way, until it is taken
 *            back.
 * Permits    A tick without the permit of storage submits no QUERY, GET or PUT: a QUERY that is
 *            answered then ends its wait, candidates are dropped as cleanup.
 * Doubt      While bytes are in quarantine no op is submitted.  Only a notice ends it.
 * Owner      Tickets own their Host blocks; requests own leases only.
 * Bounds     struct transfer_limits.  Backups get at most half of the op credits and half of the
 *            Host credits, rounded down.  Quarantined references stay charged.
 * Cost       Of a round: its completions, what expires, and the ops it submits; never what is
 *            merely under way.
 * Threads    The cache thread only.
 */
#ifndef TRANSFER_TRANSFER_H
#define TRANSFER_TRANSFER_H

#include "agree/agree.h"
#include "arena/arena.h"
#include "arena/hostmap.h"
#include "coord/reserve.h"
#include "match/tail.h"
#include "plan/query.h"
#include "transfer/outcome.h"
#include "transfer/ticket.h"

/* Each 0 in both: this observation closes nothing. */
struct watermarks {
	uint32_t jobs_high, jobs_low;   /* queued jobs */
	uint64_t bytes_high, bytes_low; /* of them */
	uint64_t age_high_ns, age_low_ns;
};

/* Of each table of names: far more than requests ask again for while they matter. */
#define TRANSFER_NAMES_MAX (1u << 24)

struct transfer_limits {
	uint32_t          op_credits;       /* tickets; 1 to AGREE_OPS_MAX */
	uint32_t          host_credits;     /* Host blocks over all tickets: logical references, not bytes */
	uint32_t          keys_max;         /* keys of one read; 1 to OP_KEYS_MAX */
	uint32_t          put_keys_max;     /* keys of one put: few, so that a slow put holds little */
	uint32_t          backup_max;       /* waiting candidates, nonowning; 1 or more */
	uint32_t          negative_max;     /* names that a GET found missing or invalid; FIFO; 0: none */
	uint32_t          history_max;      /* names that were put, to tell a loss from a never; 0: none */
	uint32_t          tail_hint_max;    /* 1 or more */
	uint32_t          tails_max;        /* of one prompt; 1 or more */
	uint32_t          extension_min;    /* tokens beyond the local hit that are worth a query */
	uint32_t          lookahead_tokens; /* no boundary lies further behind the local hit */
	uint64_t          deadline_ns;      /* soft, from the issue of the QUERY; UINT64_MAX: none */
	uint64_t          hold_ns;          /* how long a Ready hold waits for admission; UINT64_MAX */
	struct watermarks marks;
};

struct transfer_options {
	struct transfer_limits   limits;
	struct cache            *cache;
	const struct owner      *owner;   /* whose spans and rows ops carry */
	const struct arena_part *part;    /* Host: each block of it is one parent */
	const struct hostmap    *hostmap; /* of this owner's blocks */
	uint32_t                 page_max; /* pages of the longest prompt; no more than the cache takes */
};

/* A request's claim on a read; zeroed: none.  A stale one is harmless: ids are never used again. */
struct lease {
	uint32_t ticket;
	uint64_t id;
};

/* With any outcome but READY the lease is over, and may be dropped or forgotten. */
struct transfer_wake {
	uint64_t          request; /* the caller's word for who waits */
	struct lease      lease;
	enum read_outcome outcome;
	struct shortfall  shortfall;
};

struct transfer_outputs {
	struct op            *ops; /* in order of submission; arrays live in the tickets until the fact */
	uint32_t              op_count;
	struct transfer_wake *wakes;
	uint32_t              wake_count;
};

/*
 * What a request asks.  All that it points to is borrowed until its wake or until its lease is
 * dropped.
 */
struct transfer_ask {
	uint64_t                    request;
	const struct prompt        *prompt;       /* to confirm tails */
	const struct kvs_namespace *space;
	const struct prefix_hash   *hashes;       /* of the full pages before the bound */
	uint32_t                    page_count;
	uint32_t                    bound_tokens; /* the exact reusable bound */
};

struct transfer;

/* Errors: KVS_E_INVALID (limit, rule), -ENOMEM. */
int    transfer_open(const struct transfer_options *options, struct transfer **ret_transfer,
		     struct kvs_error *err);
/*
 * NULL is fine.  Asserts nothing of what is under way: late I/O may outlive the manager.  Its
 * blocks go back to the cache, which must be closed next and lend none of them: their memory is
 * I/O's as long as it lasts.
 */
void   transfer_close(struct transfer *transfer);
size_t transfer_bytes(const struct transfer *transfer);

void transfer_begin(struct transfer *transfer);

/*
 * Facts and notices have been through agree_round(): an unknown id is asserted, and that time does
 * not go back.  May probe the cache: an earlier probe can no longer be admitted.
 */
void transfer_tick(struct transfer *transfer, const struct tick *tick);

const struct transfer_outputs *transfer_out(const struct transfer *transfer);

/**
 * Look in the store for what would make the local hit of a prompt longer.  Probes the cache: an
 * earlier probe can no longer be admitted.
 *
 * READ_ASKED  and *ret_lease when under way: a QUERY is among the outputs and exactly one wake
 *             follows, unless the lease is dropped first.  Else the outcome says why not, counted,
 *             *ret_shortfall says where the local hit ends, and nothing changed.
 */
enum read_outcome transfer_read(struct transfer *transfer, const struct transfer_ask *ask,
				struct lease *ret_lease, struct shortfall *ret_shortfall);

/*
 * The request left the state that owned the lease: admission, deadline, abort, whatever it was.
 * I/O that runs goes on and keeps its blocks; it publishes nothing.  The hold of a Ready ticket
 * ends.
 */
void transfer_drop_lease(struct transfer *transfer, struct lease lease);

/* Whether this lease's GET brought the Host block, while it holds it; for reports. */
bool transfer_fetched(const struct transfer *transfer, struct lease lease, uint32_t group,
		      uint32_t host_block);

/*
 * A cell was published on Device or Host by other means: a read that waits for it may be satisfied,
 * with the next tick.  A read watches the last block that its longest boundary misses, then that of
 * its GET.
 */
void transfer_published(struct transfer *transfer, const struct cell_name *name);

/* A cell was published on Host from the Device: offer it to the store when its turn comes. */
void transfer_offer(struct transfer *transfer, const struct cell_name *name);

/* Remember a tail that was published, so that prompts that run through it can find it. */
void transfer_record_tail(struct transfer *transfer, const struct kvs_namespace *space,
			  const struct prefix_hash *prior, uint32_t token_count,
			  const struct prefix_hash *hash);
const struct tails *transfer_tails(const struct transfer *transfer);

/* Forget all candidates, counted as cleanup. */
void transfer_discard_backups(struct transfer *transfer);

/* --- maintenance ------------------------------------------------------------------------------ */

/* Close preparation and backups, as the gate does, or open them again. */
void transfer_set_intent(struct transfer *transfer, bool intent);
/*
 * No op is under way, nothing is held Ready, nothing is in doubt: a clear would find nothing to
 * undo.
 */
bool transfer_is_quiet(const struct transfer *transfer);
/*
 * Forget tails, negatives, backups and history, as when the namespace or the weights change.
 * False, and nothing changed, unless transfer_is_quiet().
 */
bool transfer_clear(struct transfer *transfer);

/* --- facts for people and for loops ----------------------------------------------------------- */

struct transfer_load {
	uint32_t tickets;     /* under way, Ready or in doubt: op credits in use */
	uint32_t waiting;     /* of them, those that wait for a fact: what a clean stop drains */
	uint32_t ready;       /* Ready holds */
	uint32_t quarantined; /* tickets in doubt */
	uint32_t host_refs;   /* Host credits in use */
	uint32_t put_refs;    /* of them, those of puts */
	uint32_t put_tickets;
	uint32_t backups;     /* waiting candidates */
	uint32_t negatives;
	bool     gate_closed;
	bool     intent;
};

struct transfer_load transfer_load(const struct transfer *transfer);

/*
 * When the next tick has something to do, whatever facts come: the earliest soft deadline or end of
 * a hold; this round's time where a candidate may start, a wait may be satisfied or an intent ends
 * some; UINT64_MAX: never.
 */
uint64_t transfer_wake_ns(const struct transfer *transfer);

#define TRANSFER_COUNTERS(X) \
	X(TRANSFER_QUERIES, "queries") X(TRANSFER_GETS, "gets") X(TRANSFER_PUTS, "puts") \
	X(TRANSFER_CANCELS, "cancels") \
	X(TRANSFER_SOFT_TIMEOUTS, "soft_timeouts")       /* waits that a deadline ended */ \
	X(TRANSFER_EXPIRED_HOLDS, "expired_holds")       /* Ready holds nobody came for */ \
	X(TRANSFER_PRESSURE_BYPASSES, "pressure_bypasses") \
	X(TRANSFER_GATE_CLOSURES, "gate_closures") \
	X(TRANSFER_PUBLISHED, "published_rows")          /* rows of GETs that became Host's */ \
	X(TRANSFER_DISCARDED, "discarded_rows")          /* rows that came for nobody */ \
	X(TRANSFER_LOCAL, "satisfied_locally") \
	X(TRANSFER_COALESCED, "coalesced_backups")       /* a pending PUT has it: no loss */ \
	X(TRANSFER_PRESSURE_DROPS, "pressure_dropped_backups") /* also among the drops */ \
	X(TRANSFER_NEGATIVE_FULL, "negatives_dropped")   /* the oldest, for want of room */ \
	X(TRANSFER_QUARANTINES, "quarantines")

enum transfer_counter {
#define TRANSFER_COUNTER(name, text) name,
	TRANSFER_COUNTERS(TRANSFER_COUNTER)
#undef TRANSFER_COUNTER
	TRANSFER_COUNTER_COUNT
};

struct transfer_counts {
	uint64_t                    counters[TRANSFER_COUNTER_COUNT];
	uint64_t                    outcomes[READ_OUTCOME_COUNT]; /* one a read that was refused or woken */
	uint64_t                    drops[BACKUP_DROP_COUNT];     /* by occurrence */
	const struct query_counts  *plans;
};

struct transfer_counts transfer_counts(const struct transfer *transfer);
const char            *transfer_counter_name(enum transfer_counter counter);

/* The ticket of an op under way, for audits that compare with a ledger of their own; NULL. */
const struct ticket *transfer_find(const struct transfer *transfer, uint64_t op_id);

/* O(n): credits, references, lists and marks agree with the tickets. */
void transfer_audit(const struct transfer *transfer);

#endif
