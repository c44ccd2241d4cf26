/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks and time: claims taken, given back and expired, and reservations that expire.
 *
 * Threads  Whoever visits the shard.
 */
#ifndef HOST_LOCK_H
#define HOST_LOCK_H

#include "host/visit.h"

/*
 * KVS_E_FULL when a client cannot have `count` more locks on a record: none was taken.  claim: what
 * it has already.
 */
int lock_may(const struct visit *visit, uint32_t claim, uint32_t count);
/* Take them: lock_may() said yes.  The record is RESIDENT, and the client's TTL begins again. */
void lock_take(struct visit *visit, uint32_t slot, host_client client, uint32_t count);

/* The claim of a client on a record, when its time is not over; SLOT_NONE. */
uint32_t lock_claim(const struct visit *visit, uint32_t slot, host_client client);

/* Give back count of a claim.  Its record may be gone afterwards. */
void lock_give(struct visit *visit, uint32_t claim, uint32_t count);

/*
 * Drop what the shard's time has passed, VISIT_EXPIRED_MAX of each kind at most; false: there may
 * be more.
 */
bool lock_expire_locks(struct visit *visit);
bool lock_expire_writes(struct visit *visit);
bool lock_expire(struct visit *visit); /* both */

/*
 * A client's claim on a RESIDENT record, if its time is over.  The record may be gone afterwards.
 */
void lock_expire_claim(struct visit *visit, uint32_t slot, host_client client);

static inline uint64_t lock_until(const struct visit *visit, unsigned client_flags, uint64_t ttl_ns)
{
	const uint64_t now_ns = visit->shard->now_ns;

	return client_flags & HOST_NO_TTL || ttl_ns >= HOST_FOREVER - now_ns ? HOST_FOREVER
									     : now_ns + ttl_ns;
}

#endif
