/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host destinations for what a store said it has of a prompt, and what becomes of them.
 *
 *   query_plan()                   what to ask the store for             (plan/query.h)
 *   cache_reserve()                the answer is here: choose a boundary, take a block a missing row
 *   ... GET ...                    rows belong to the I/O; the cache may evict all else
 *   cache_reservation_publish()    the GET retired: what came becomes Host's, perhaps with a hold
 *   cache_reservation_release()    the hold ends; or the read was detached and publishes nothing
 *
 * A reservation matches anew, for the cache went on while the store was asked.  Above what Device alone
 * restores, a block counts as there when Device or Host has it or the store said so; the boundary is the
 * longest for which every group has what it needs.  What only the store has becomes a row.  So nothing
 * is fetched that Device holds, and nothing of what Device already restores is looked at.
 *
 * Pins      The boundary's *warm* blocks, those that Host has and Device lacks, are pinned while Host
 *           makes room, for otherwise it might evict what the restore needs, and let go before the
 *           reservation returns: they may be evicted as soon as it did.  Device's blocks need no pin:
 *           to make room on Host touches none of them.
 * Credits   Rows and warm blocks together fit into the credits, one each: packing and sharding change
 *           no charge.  Afterwards only the rows are charged.
 * Shortage  Where a boundary does not fit, the next shorter one is tried, tails and page boundaries
 *           alike, down to what is there anyhow.  Whether Host has room is counted before anything is
 *           taken, and a boundary that fails the count changes nothing.  The count is exact while groups can
 *           do with free blocks and idle ones of their own, and always when one group is all there is or
 *           no parent holds more than one block.  Otherwise a boundary may fail after it evicted, because
 *           Host spreads a group over parents that another one needed whole; then the prompt is
 *           matched anew, and what was evicted stays so.
 * Cost      A pass over the pages above Device's part, a step a boundary and group, and the rows; a pass
 *           over Host's blocks where groups cannot do with their own.
 * Threads   The cache thread only.  Pure; nothing allocates after open.
 */
#ifndef COORD_RESERVE_H
#define COORD_RESERVE_H

#include "coord/cache.h"
#include "match/origin.h"

/* Room to work in, beside a cache. */
struct reserver {
	struct cache  *cache;
	uint32_t      *entries; /* of each page of the prompt */
	struct origins origins;
};

/* For prompts as the cache takes them, of up to tail_max tails.  Errors: -ENOMEM. */
int    reserver_open(struct reserver *reserver, struct cache *cache, uint32_t tail_max,
		     struct kvs_error *err);
void   reserver_close(struct reserver *reserver);
size_t reserver_bytes(const struct reserver *reserver);

/* Borrowed for the call.  Bits of blocks that the boundary does not need do no harm. */
struct cache_reserve_ask {
	struct cache_prompt prompt;
	const uint64_t     *page_hints; /* the store has it: bit page * columns + column; NULL: nothing */
	const uint64_t     *tail_hints; /* a word a tail, bit column; NULL: nothing */
	uint32_t            credits;    /* blocks that the read may hold */
};

enum reserve_answer {
	RESERVE_ROWS,      /* rows to get */
	RESERVE_COVERED,   /* what is there already is the longest boundary of the prompt */
	RESERVE_NO_HINT,   /* the store has nothing that makes what is there longer */
	RESERVE_CREDITS,   /* no boundary fits into the credits, or its rows into the room for them */
	RESERVE_HOST_FULL, /* Host has no room, whatever it might evict */
};

struct cache_row {
	struct prefix_hash hash;     /* of its page, or of the tail */
	uint32_t           group;
	uint32_t           offset;   /* of its block in the page */
	uint32_t           position; /* of its block in the group, from the start of the prompt */
	uint32_t           block;    /* of Host, with a reference of the reservation's; BLOCK_NULL: none */
	bool               of_tail;
};

/* Names itself what it needs to: the prompt may be gone when the GET retires. */
struct cache_reservation {
	/* The caller's, before cache_reserve(). */
	struct cache_row *rows;
	uint32_t          row_max;
	/* The answer. */
	uint32_t             row_count;    /* group by group, in order of positions; 0: none are held */
	uint32_t             tokens;       /* the boundary; that of local_tokens where there are no rows */
	uint32_t             local_tokens; /* what Device and Host restored together */
	uint32_t             warm_count;   /* blocks pinned meanwhile */
	enum reserve_answer  shortened_by; /* why the longest boundary was passed over; ROWS: it was not */
	struct kvs_namespace space;
	/* For tails_record(), once rows of the tail are published. */
	uint32_t             tail_tokens;  /* behind the last full page; 0: a page boundary */
	struct prefix_hash   tail_hash;
	bool                 has_prior;    /* a page before the tail */
	struct prefix_hash   prior_hash;
	/* After cache_reservation_publish(). */
	bool                 published;
	bool                 tail_published; /* rows of the tail among them: its hint may be recorded */
};

/**
 * Take a Host block for each row that the longest fitting boundary lacks.
 *
 * Shape   Fills in all of the reservation but the caller's fields.  Counts as a probe: an earlier one can
 *         no longer be admitted.
 * Owner   A reference a row, the reservation's.
 * Errors  KVS_E_INVALID  as cache_probe(), or more tails than fit; nothing changed.
 */
int cache_reserve(struct reserver *reserver, const struct cache_reserve_ask *ask,
		  struct cache_reservation *reservation, enum reserve_answer *ret_answer,
		  struct kvs_error *err);

/* A row's cell; good as long as the reservation. */
struct cell_name cache_row_name(const struct cache_reservation *reservation, uint32_t row);

/*
 * The attached GET of a reservation has retired on every owner: publish the rows whose bit is set in
 * `whole` on Host, as cache_host_publish() does, and drop the blocks of the others.  What came may be a
 * shorter prefix or none: a probe says.  With `hold` each row keeps one reference on the block that
 * bears its name, which may be another one than the GET filled; without it rows keep none.
 *
 * What is published first is evicted first, so it goes from the last row to the first: history is worth
 * nothing behind a hole.  Returns how many rows were published.
 */
uint32_t cache_reservation_publish(struct cache *cache, struct cache_reservation *reservation,
				   const uint64_t *whole, bool hold);

/*
 * Give back what rows hold.  Published blocks stay published; others are free, for a GET that was
 * detached or never submitted.  Not before it retired.  Once more does nothing.
 */
void cache_reservation_release(struct cache *cache, struct cache_reservation *reservation);

/* O(rows): rows are in order and hold what they should. */
void cache_reservation_audit(const struct cache *cache, const struct cache_reservation *reservation);

#endif
