/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of the room: what a ticket and the manager consist of, and what edges do.
 *
 *   open.c      limits and memory             transfer.c  the round
 *   ticket.c    the table of edges            tickets.c   what tickets share: credits, ids, outputs
 *   read.c      from a prompt to a QUERY      reserve.c   from its answer to a GET
 *   publish.c   what a GET brought            backup.c    candidates and PUTs
 *   gate.c      what stops new work           watch.c     others publish what a read waits for
 *   negative.c  what is known to be missing, and what was put from here
 */
#ifndef TRANSFER_PARTS_H
#define TRANSFER_PARTS_H

#include "base/ring.h"
#include "transfer/roll.h"
#include "transfer/transfer.h"

/*
 * The most that one place of a ticket emits in a round: a CANCEL, the next one's op, and its
 * CANCEL.
 */
#define OPS_A_TICKET 3u

struct ticket {
	enum ticket_state state;
	struct op         op;         /* the one in flight; once READY the last one */
	struct lease      lease;      /* id 0: nobody waits, and nobody holds */
	uint64_t          deadline_ns;
	/* A read while somebody waits for it.  Its prompt is borrowed until then. */
	struct transfer_ask ask;
	struct tail        *tails;
	uint32_t            tail_count;
	struct query_key   *asked;    /* the keys of the QUERY, as the plan has them */
	struct op_mask      was_put;  /* of them, those in the history when they were asked for */
	uint32_t            wanted_tokens; /* the longest planned boundary, then that of the GET */
	uint32_t            wanted_end;    /* of asked: what the longest boundary misses */
	uint32_t            watch;    /* watched name; SLOT_NONE */
	struct shortfall    shortfall;
	/* What it holds: rows of a read, or sources of a PUT. */
	struct cache_reservation reservation;
	struct cache_block      *sources;
	uint32_t                 source_count;
	uint32_t                 charge;   /* Host credits */
	/* Arrays of its op. */
	struct kvs_key  *keys;
	struct kvs_span *spans;
};

/* Owns nothing: a name, that may have been evicted when its turn comes. */
struct backup_candidate {
	struct kvs_namespace space;
	struct prefix_hash   hash;
	uint32_t             group;
	uint32_t             offset;
};

/* A name, and the tickets that wait for it. */
struct watch {
	struct kvs_key name;
	struct list    tickets;
};

struct transfer {
	struct transfer_limits   limits;
	struct cache            *cache;
	const struct groups     *groups;
	const struct owner      *owner;
	const struct arena_part *part;
	const struct hostmap    *hostmap;
	uint32_t                 page_max;
	size_t                   bytes;

	uint64_t                 now_ns; /* of the last tick */
	struct agree_permits     permits;
	bool                     gate_closed;
	bool                     intent;
	bool                     intent_new; /* not yet applied to those in QUERY */

	struct ticket           *tickets;
	struct slots             slots;
	struct map               ids;   /* op.op_id of those whose fact or notice is to come */
	uint64_t                 next_op_id;
	struct link             *timed; /* of waits and holds: a ticket is in one of them at most */
	struct list              waits; /* in order of issue, which is that of their deadlines */
	struct list              holds; /* in order of publication */
	uint32_t                 ready;
	uint32_t                 quarantined;
	uint32_t                 put_tickets;
	uint32_t                 host_refs;
	uint32_t                 put_refs;
	uint32_t                *fetched_by; /* place -> 1 + ticket whose GET brought the block */
	uint64_t                *putting;    /* a bit a place: a source of a PUT in flight */

	struct reserver          reserver;
	struct query             query;
	struct tails             tails;
	uint32_t                *entries;      /* of the pages of the prompt at hand */
	uint64_t                *page_bits;    /* hints, or what is absent; all clear between uses */
	uint64_t                *tail_bits;
	struct tail             *found;        /* tails of the prompt at hand */
	uint32_t                *filled;       /* blocks that a GET filled */

	struct roll              negatives;
	struct roll              history;
	struct ring              backups; /* struct backup_candidate */

	struct watch            *watches;
	struct slots             watch_slots;
	struct map               watch_map;
	struct link             *watching; /* of watch.tickets */
	struct link             *stirring;
	struct list              stirred;  /* tickets to look at with the next tick */

	struct transfer_outputs  out;
	struct transfer_counts   counts;
};

/* --- tickets.c -------------------------------------------------------------------------------- */

/* Append an op, a wake to the round's outputs. */
void transfer_emit(struct transfer *transfer, const struct op *op);
void transfer_wake_up(struct transfer *transfer, const struct ticket *ticket,
		      enum read_outcome outcome);

/*
 * That long from this round on; UINT64_MAX, which no tick reaches, when the clock has no such time.
 */
uint64_t transfer_until(const struct transfer *transfer, uint64_t ns);

uint32_t ticket_slot(const struct transfer *transfer, const struct ticket *ticket);
/* A free ticket with an op of this kind; NULL without a credit. */
struct ticket *ticket_take(struct transfer *transfer, enum op_kind kind);
/* A further op of the ticket, under a new id. */
void ticket_op(struct transfer *transfer, struct ticket *ticket, enum op_kind kind);
/* No fact of it will come any more. */
void ticket_forget_id(struct transfer *transfer, struct ticket *ticket);
/* Give back what it holds, and the ticket itself. */
void ticket_end(struct transfer *transfer, struct ticket *ticket);
/* The wait is over, however: no deadline, nothing watched, and the prompt is its owner's again. */
void ticket_stop_waiting(struct transfer *transfer, struct ticket *ticket);
void ticket_charge(struct transfer *transfer, struct ticket *ticket, uint32_t blocks);

/* Where of all Host blocks, of any group, one lies. */
size_t transfer_place(const struct transfer *transfer, uint32_t group, uint32_t block);
/*
 * Key and span of the next row of an op: of a block that this owner holds the bytes, else nothing.
 */
void op_add(const struct transfer *transfer, struct ticket *ticket,
	    const struct kvs_namespace *space, const struct prefix_hash *hash, uint32_t group,
	    uint32_t offset, uint32_t block);
/* The one place that makes keys. */
struct kvs_key row_key(const struct transfer *transfer, const struct kvs_namespace *space,
		       const struct prefix_hash *hash, uint32_t group, uint32_t offset);

/* --- what the edges of a read do -------------------------------------------------------------- */

/* How far Device and Host restore a prompt with these tails. */
struct cache_probe transfer_probe(const struct transfer *transfer, const struct transfer_ask *ask,
				  const struct tail *tails, uint32_t tail_count);
/* The hash of a planned key. */
const struct prefix_hash *asked_hash(const struct ticket *ticket, const struct query_key *key);
/* A QUERY is answered: reserve and GET, or say why not. */
void transfer_found(struct transfer *transfer, struct ticket *ticket, const struct fact *fact);
/* Why an op failed; READ_NEVER_STORED where objects are missing. */
enum read_outcome outcome_of(const struct fact *fact);
/* An attached GET has retired: publish the rows that came whole.  False when none did. */
bool transfer_publish(struct transfer *transfer, struct ticket *ticket, const struct fact *fact);
/* READY: hold what was published, and say so. */
void transfer_hold(struct transfer *transfer, struct ticket *ticket);

/* --- negative.c ------------------------------------------------------------------------------- */

/*
 * What of the prompt is on the negative roll, into page_bits and tail_bits; false when nothing is.
 */
bool negatives_mark(struct transfer *transfer, const struct transfer_ask *ask,
		    const struct tail *tails, uint32_t tail_count);
void negatives_unmark(struct transfer *transfer, const struct transfer_ask *ask,
		      uint32_t tail_count);
/* The confirmed faults of a GET's rows. */
void negatives_take(struct transfer *transfer, const struct ticket *ticket,
		    const struct fact *fact);
/* A name is stored from here now. */
void history_take(struct transfer *transfer, const struct kvs_key *key);
bool history_has(const struct transfer *transfer, const struct kvs_namespace *space,
		 const struct prefix_hash *hash, uint32_t column);

/* --- watch.c ---------------------------------------------------------------------------------- */

void watch_begin(struct transfer *transfer, struct ticket *ticket, const struct kvs_key *name);
void watch_end(struct transfer *transfer, struct ticket *ticket);
void watch_stir(struct transfer *transfer, const struct kvs_key *name);
/* Look again at those whose name was published: a wait that has what it wants is over. */
void watch_apply(struct transfer *transfer);
void watch_audit(const struct transfer *transfer);

/* --- gate.c ----------------------------------------------------------------------------------- */

void gate_apply(struct transfer *transfer, const struct tick *tick);
/* Whether a new read or a new PUT may begin; READ_ASKED: yes. */
enum read_outcome transfer_closed(const struct transfer *transfer);

/* --- backup.c --------------------------------------------------------------------------------- */

void backups_drop(struct transfer *transfer, enum backup_drop reason);
/* Whether the next tick would start a PUT, were it like the last one. */
bool backups_may_start(const struct transfer *transfer);
void backups_dispatch(struct transfer *transfer);
void put_done(struct transfer *transfer, const struct ticket *ticket, const struct fact *fact);

#endif
