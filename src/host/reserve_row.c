/* SPDX-License-Identifier: Apache-2.0 */
/* One row of a reservation: may it be staged, as what, at whose cost. */
#include "base/err.h"
#include "host/lock.h"
#include "host/reserve.h"
#include "host/victims.h"

int reserve_may(const struct visit *visit, const struct reserve *call, uint32_t first)
{
	const struct shard *const shard = visit->shard;
	uint32_t                  own;

	if (first == SLOT_NONE)
		return 0;
	if (shard->records[first].state == RECORD_RESIDENT)
		return KVS_E_EXISTS;
	if (shard->records[first].state == RECORD_DOOMED)
		return KVS_E_BUSY;
	own = life_staged(shard, first, client_slot(call->write.writer.client),
			  call->write.writer.tag);
	return own == SLOT_NONE ? 0 : KVS_E_BUSY;
}

struct life_start reserve_start(const struct visit *visit, const struct reserve *call)
{
	const unsigned flags = clients_flags(&visit->host->clients, call->write.writer.client);

	clients_stage(&visit->host->clients, call->write.writer.client);
	return (struct life_start){
		.tag = call->write.writer.tag,
		.expiry_ns = lock_until(visit, flags, visit->host->write_ttl_ns),
		.client = client_slot(call->write.writer.client),
		.flags = (uint8_t)((call->flags & HOST_TEMPORARY ? RECORD_TEMPORARY : 0) |
				   (flags & HOST_NO_TTL ? RECORD_NO_TTL : 0)),
	};
}

bool reserve_victim(struct visit *visit, struct reserve *call, uint32_t tenant,
		    struct freed *ret_freed)
{
	uint32_t slot;

	if (call->budget == 0)
		return false;
	slot = victims_next(visit, tenant);
	if (slot == SLOT_NONE)
		return false;
	call->budget--;
	*ret_freed = victims_evict_keep(visit, slot);
	return true;
}

bool reserve_begin(struct visit *visit, struct reserve *call, struct attempt *attempt,
		   uint32_t first, struct life_start *start)
{
	struct freed freed;

	start->hash = attempt->hash;
	start->bytes = call->bytes[attempt->row];
	start->tenant = attempt->tenant;
	attempt->slot = life_begin(visit, attempt->key, first, start);
	if (attempt->slot != SLOT_NONE)
		return true;
	if (!reserve_victim(visit, call, TENANT_NONE, &freed))
		return false;
	purse_put(&call->purse, visit, freed);
	attempt->slot = life_begin(visit, attempt->key, first, start);
	return true;
}

void reserve_end(struct visit *visit, struct reserve *call, uint32_t row, uint32_t slot,
		 uint32_t place)
{
	const struct record *const record = &visit->shard->records[slot];

	life_place(visit, slot, place);
	call->spans[row] = span_of(visit->host, record);
	call->write.rc[row] = 0;
	visit_note(visit, HOST_RESERVED, &record->key);
}

bool reserve_charge(struct visit *visit, struct reserve *call, struct attempt *attempt)
{
	struct tenants *const             tenants = &visit->host->tenants;
	const struct kvs_namespace *const space = &attempt->key->space;
	struct freed                      freed;
	int                               rc;

	if (!visit->host->isolate)
		return true;
	rc = tenants_charge(tenants, space, reserve_bytes(attempt), &attempt->tenant);
	while (rc == KVS_E_CREDIT && reserve_victim(visit, call, attempt->tenant, &freed)) {
		purse_put(&call->purse, visit, freed);
		rc = tenants_charge(tenants, space, reserve_bytes(attempt), &attempt->tenant);
	}
	return rc == 0;
}

void reserve_refund(struct host *host, const struct attempt *attempt)
{
	if (host->isolate)
		tenants_refund(&host->tenants, attempt->tenant, reserve_bytes(attempt));
}
