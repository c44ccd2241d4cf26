/* SPDX-License-Identifier: Apache-2.0 */
#include "host/lock.h"

#include "base/err.h"
#include "host/life.h"

uint32_t lock_claim(const struct visit *visit, uint32_t slot, host_client client)
{
	const struct claims *const claims = &visit->shard->claims;
	const uint32_t             claim = claims_find(claims, visit->shard->records[slot].claim,
						       client_slot(client));

	if (claim == SLOT_NONE || claims->claims[claim].expiry_ns <= visit->shard->now_ns)
		return SLOT_NONE;
	return claim;
}

int lock_may(const struct visit *visit, uint32_t claim, uint32_t count)
{
	const struct claims *const claims = &visit->shard->claims;

	if (claim == SLOT_NONE)
		return claims->count < claims->capacity ? 0 : KVS_E_FULL;
	return claims->claims[claim].count + count <= HOST_LOCKS_MAX ? 0 : KVS_E_FULL;
}

void lock_take(struct visit *visit, uint32_t slot, host_client client, uint32_t count)
{
	struct shard *const  shard = visit->shard;
	struct record *const record = &shard->records[slot];
	const unsigned       flags = clients_flags(&visit->host->clients, client);
	uint32_t claim = claims_find(&shard->claims, record->claim, client_slot(client));

	life_hold(visit, slot);
	if (claim == SLOT_NONE)
		claim = claims_add(&shard->claims, &record->claim, slot, client_slot(client));
	KVS_ASSERT(claim != SLOT_NONE);
	shard->claims.claims[claim].count += count;
	KVS_ASSERT_CMP(shard->claims.claims[claim].count, <=, HOST_LOCKS_MAX);
	claims_time(&shard->claims, claim, lock_until(visit, flags, visit->host->read_ttl_ns));
	record->locks += count;
	record->flags &= (uint8_t)~RECORD_SPENT;
	shard->locks += count;
}

void lock_give(struct visit *visit, uint32_t number, uint32_t count)
{
	struct shard *const  shard = visit->shard;
	struct claim *const  claim = &shard->claims.claims[number];
	const uint32_t       slot = claim->record;
	struct record *const record = &shard->records[slot];

	KVS_ASSERT_CMP(claim->count, >=, count);
	visit_note(visit, HOST_UNLOCKED, &record->key);
	claim->count -= count;
	if (claim->count == 0)
		claims_drop(&shard->claims, &record->claim, number);
	record->locks -= count;
	shard->locks -= count;
	if (record->locks > 0)
		return;
	if (record->flags & RECORD_TEMPORARY)
		record->flags |= RECORD_SPENT;
	life_settle(visit, slot);
}

bool lock_expire_locks(struct visit *visit)
{
	struct shard *const        shard = visit->shard;
	const struct claims *const claims = &shard->claims;
	uint32_t                   i;

	for (i = 0; i < VISIT_EXPIRED_MAX; i++) {
		const uint32_t claim = claims->expiring.head;

		if (claim == SLOT_NONE || claims->claims[claim].expiry_ns > shard->now_ns)
			return true;
		visit_count(visit, HOST_EXPIRED_LOCKS);
		lock_give(visit, claim, claims->claims[claim].count);
	}
	return false;
}

bool lock_expire_writes(struct visit *visit)
{
	struct shard *const shard = visit->shard;
	uint32_t            i;

	for (i = 0; i < VISIT_EXPIRED_MAX; i++) {
		const uint32_t slot = shard->writes.head;

		if (slot == SLOT_NONE || shard->records[slot].expiry_ns > shard->now_ns)
			return true;
		visit_count(visit, HOST_EXPIRED_WRITES);
		life_drop(visit, slot);
	}
	return false;
}

bool lock_expire(struct visit *visit)
{
	const bool writes_done = lock_expire_writes(visit);

	return lock_expire_locks(visit) && writes_done;
}

void lock_expire_claim(struct visit *visit, uint32_t slot, host_client client)
{
	struct shard *const shard = visit->shard;
	const uint32_t      claim = claims_find(&shard->claims, shard->records[slot].claim,
						client_slot(client));

	if (claim == SLOT_NONE || shard->claims.claims[claim].expiry_ns > shard->now_ns)
		return;
	visit_count(visit, HOST_EXPIRED_LOCKS);
	lock_give(visit, claim, shard->claims.claims[claim].count);
}
