/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds what in the store: counts of locks by key.
 *
 * A lock takes its place here when it is granted, and that place is also the promise that its unlock
 * can be remembered: unlocking never needs room that could be missing.  A key whose count falls to 0
 * waits in `released` until the store was told, if it has locks of its own; for a store without
 * them the counts are all there is, and advisory.
 *
 * Limits   lock_max distinct keys, those that wait to be told included; a full table grants nothing.
 * Threads  None of its own: the executor's lock guards it.
 */
#ifndef EXEC_LOCKS_H
#define EXEC_LOCKS_H

#include "base/list.h"
#include "base/map.h"
#include "base/slots.h"
#include <kvstrata/kvstrata.h>

struct lock_record {
	struct kvs_key key;
	uint32_t       count; /* 0: released, waits to be told */
};

struct locks {
	struct lock_record *records;
	struct map          index;
	struct slots        slots;
	struct link        *links;
	struct list         released;
	uint64_t            held; /* sum of counts */
};

int  locks_open(struct locks *locks, uint32_t lock_max); /* 0, or -ENOMEM */
void locks_close(struct locks *locks);

/*
 * Take one lock on a key.  LOCKS_FIRST: the store must be told (it is, by lock()); LOCKS_MORE: it
 * holds already; LOCKS_FULL: no room, nothing taken.
 */
enum locks_grant { LOCKS_FIRST, LOCKS_MORE, LOCKS_FULL };
enum locks_grant locks_take(struct locks *locks, const struct kvs_key *key);

/* Give one back; a key that is not held is ignored.  True when it was the last: now in `released`. */
bool locks_give(struct locks *locks, const struct kvs_key *key);

/* The oldest released key, its place free again; false when there is none. */
bool locks_told(struct locks *locks, struct kvs_key *ret_key);

void locks_audit(const struct locks *locks);

#endif
