/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds what in the store: counts of locks by key.
 *
 * A locking query takes places for all its keys before it is queued, and each place is also the
 * promise that its unlock can be remembered: unlocking never needs room that could be missing.  When
 * the query has ended, what it found is held and the rest is given up.
 *
 * A store that has locks of its own keeps one lock for each key that is held here.  What it has more
 * (two queries that met, the last holder gone) waits in `owing` until the store was told.  A store
 * without locks is never told anything: these counts are all there is, and advisory.
 *
 * Limits   lock_max distinct keys, those that wait to be told included; a full table takes nothing.
 * Threads  None of its own: the executor's lock guards it.
 */
#ifndef EXEC_LOCKS_H
#define EXEC_LOCKS_H

#include "base/list.h"
#include "base/map.h"
#include "base/slots.h"
#include "op/op.h"

struct lock_record {
	struct kvs_key key;
	uint32_t       asked; /* rows of locking queries that have not ended */
	uint32_t       held;  /* granted, not given back */
	uint32_t       kept;  /* locks that the store keeps for us */
};

struct locks {
	struct lock_record *records; /* NULL: lock_max is 0 */
	struct map          index;
	struct slots        slots;
	struct link        *links;
	struct list         owing; /* the store keeps more than it should: oldest first */
	uint64_t            held;  /* sums over the records */
	uint64_t            asked;
};

int  locks_open(struct locks *locks, uint32_t lock_max); /* 0, or -ENOMEM */
void locks_close(struct locks *locks);

/* Take places for every owned row of a locking query.  False when they do not fit: none is taken. */
bool locks_ask(struct locks *locks, const struct op *op);

/*
 * The query has ended: rows in `granted` are held, the others are given up; for rows in `kept` the
 * store took a lock.  Both may be empty: the query never ran.
 */
void locks_settle(struct locks *locks, const struct op *op, const struct op_mask *granted,
		  const struct op_mask *kept);

/* Give one lock back; a key that is not held is ignored. */
void locks_give(struct locks *locks, const struct kvs_key *key);

/* Nobody holds anything any more. */
void locks_give_all(struct locks *locks);

/* Distinct keys for which the store must be told one unlock each, now; how many. */
uint32_t locks_tell(struct locks *locks, struct kvs_key *ret_keys, uint32_t key_max);

void locks_audit(const struct locks *locks);

#endif
