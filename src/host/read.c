/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's calls: lock, unlock, spans, lookup, touch. */
#include "base/bits.h"
#include "base/err.h"
#include "host/life.h"
#include "host/lock.h"
#include "host/rows.h"

struct read {
	host_client      client;
	uint32_t         locks;
	struct kvs_span *spans;
	uint64_t        *words; /* of host_lookup() */
	int             *rc;
};

static int refuse(const struct host *host, const struct read *call, uint32_t count)
{
	if (count > HOST_KEYS_MAX || call->locks == 0 || call->locks > HOST_LOCKS_MAX)
		return KVS_E_INVALID;
	return clients_is(&host->clients, call->client) ? 0 : KVS_E_CLOSED;
}

/* --- lock ------------------------------------------------------------------------------------- */

/* A claim whose time is over, but which no visit has dropped yet, is none of this lock's. */
static uint32_t resident(struct visit *visit, const struct read *call, const struct bunch *bunch,
			 uint32_t i)
{
	const struct kvs_key *const key = bunch_key(bunch, i);
	const uint64_t              hash = bunch_hash(bunch, i);
	const uint32_t              slot = life_resident(visit->shard, hash, key);

	if (slot == SLOT_NONE)
		return SLOT_NONE;
	lock_expire_claim(visit, slot, call->client);
	return life_resident(visit->shard, hash, key);
}

static int lock_row(struct visit *visit, const struct read *call, const struct bunch *bunch,
		    uint32_t i)
{
	struct kvs_span *const span = &call->spans[bunch_row(bunch, i)];
	uint32_t               slot;

	*span = (struct kvs_span){ 0 };
	if (!clients_is(&visit->host->clients, call->client))
		return KVS_E_CLOSED;
	slot = resident(visit, call, bunch, i);
	visit_count(visit, slot == SLOT_NONE ? HOST_MISSES : HOST_HITS);
	if (slot == SLOT_NONE)
		return KVS_E_MISSING;
	if (lock_may(visit, lock_claim(visit, slot, call->client), call->locks) != 0) {
		visit_count(visit, HOST_REFUSED_LOCKS);
		return KVS_E_FULL;
	}
	lock_take(visit, slot, call->client, call->locks);
	visit_note(visit, HOST_LOCKED, bunch_key(bunch, i));
	*span = span_of(visit->host, &visit->shard->records[slot]);
	return 0;
}

static void serve_lock(struct visit *visit, const struct bunch *bunch, void *arg)
{
	const struct read *const call = arg;
	uint32_t                 i;

	(void)lock_expire(visit);
	for (i = 0; i < bunch->count; i++)
		call->rc[bunch_row(bunch, i)] = lock_row(visit, call, bunch, i);
}

int host_lock(struct host *host, host_client client, uint32_t lock_count,
	      const struct kvs_key *keys, uint32_t count, uint64_t now_ns,
	      struct kvs_span *ret_spans, int *ret_rc)
{
	struct read call = {
		.client = client, .locks = lock_count, .spans = ret_spans, .rc = ret_rc
	};
	const int rc = refuse(host, &call, count);

	if (rc == 0)
		rows_run(host, keys, count, now_ns, serve_lock, &call);
	return rc;
}

/* --- unlock, spans ---------------------------------------------------------------------------- */

/* The claim of the client on what the key's readers read; *ret_rc says why there is none. */
static uint32_t claim_of(const struct visit *visit, const struct read *call,
			 const struct bunch *bunch, uint32_t i, int *ret_rc)
{
	const struct shard *const shard = visit->shard;
	const uint32_t slot = life_find(shard, bunch_hash(bunch, i), bunch_key(bunch, i));
	uint32_t       claim;

	*ret_rc = KVS_E_CLOSED;
	if (!clients_is(&visit->host->clients, call->client))
		return SLOT_NONE;
	*ret_rc = KVS_E_MISSING;
	if (slot == SLOT_NONE || shard->records[slot].state == RECORD_STAGED)
		return SLOT_NONE;
	claim = lock_claim(visit, slot, call->client);
	if (claim == SLOT_NONE && shard->records[slot].state == RECORD_DOOMED)
		return SLOT_NONE;
	*ret_rc = claim == SLOT_NONE ? KVS_E_STALE : 0;
	return claim;
}

static int unlock_row(struct visit *visit, const struct read *call, const struct bunch *bunch,
		      uint32_t i)
{
	int            rc;
	const uint32_t claim = claim_of(visit, call, bunch, i, &rc);

	if (rc != 0)
		return rc;
	if (visit->shard->claims.claims[claim].count < call->locks)
		return KVS_E_STALE;
	lock_give(visit, claim, call->locks);
	return 0;
}

static void serve_unlock(struct visit *visit, const struct bunch *bunch, void *arg)
{
	const struct read *const call = arg;
	uint32_t                 i;

	(void)lock_expire(visit);
	for (i = 0; i < bunch->count; i++)
		call->rc[bunch_row(bunch, i)] = unlock_row(visit, call, bunch, i);
}

int host_unlock(struct host *host, host_client client, uint32_t lock_count,
		const struct kvs_key *keys, uint32_t count, uint64_t now_ns, int *ret_rc)
{
	struct read call = { .client = client, .locks = lock_count, .rc = ret_rc };
	const int   rc = refuse(host, &call, count);

	if (rc == 0)
		rows_run(host, keys, count, now_ns, serve_unlock, &call);
	return rc;
}

static void serve_spans(struct visit *visit, const struct bunch *bunch, void *arg)
{
	const struct read *const  call = arg;
	const struct shard *const shard = visit->shard;
	uint32_t                  i;

	(void)lock_expire(visit);
	for (i = 0; i < bunch->count; i++) {
		const uint32_t row = bunch_row(bunch, i);
		const uint32_t claim = claim_of(visit, call, bunch, i, &call->rc[row]);

		call->spans[row] = (struct kvs_span){ 0 };
		if (claim != SLOT_NONE) {
			call->spans[row] = span_of(
				visit->host, &shard->records[shard->claims.claims[claim].record]);
		}
	}
}

int host_spans(struct host *host, host_client client, const struct kvs_key *keys, uint32_t count,
	       uint64_t now_ns, struct kvs_span *ret_spans, int *ret_rc)
{
	struct read call = { .client = client, .locks = 1, .spans = ret_spans, .rc = ret_rc };
	const int   rc = refuse(host, &call, count);

	if (rc == 0)
		rows_run(host, keys, count, now_ns, serve_spans, &call);
	return rc;
}

/* --- lookup, touch ---------------------------------------------------------------------------- */

static void serve_lookup(struct visit *visit, const struct bunch *bunch, void *arg)
{
	const struct read *const call = arg;
	uint32_t                 i;

	for (i = 0; i < bunch->count; i++) {
		if (life_resident(visit->shard, bunch_hash(bunch, i), bunch_key(bunch, i)) !=
		    SLOT_NONE)
			bits_set(call->words, bunch_row(bunch, i));
	}
}

int host_lookup(struct host *host, const struct kvs_key *keys, uint32_t count, uint64_t *ret_words)
{
	struct read call = { .words = ret_words };
	size_t      i;

	if (count > HOST_KEYS_MAX)
		return KVS_E_INVALID;
	for (i = 0; i < bits_words(count); i++)
		ret_words[i] = 0;
	rows_run(host, keys, count, 0, serve_lookup, &call);
	return 0;
}

/* One that is parked comes back behind all others anyway. */
static void serve_touch(struct visit *visit, const struct bunch *bunch, void *arg)
{
	struct shard *const shard = visit->shard;
	uint32_t            slots[ROWS_MAX];
	uint32_t            count = 0, i;

	(void)arg;
	for (i = 0; i < bunch->count; i++) {
		const uint32_t slot = life_resident(shard, bunch_hash(bunch, i),
						    bunch_key(bunch, i));

		if (slot == SLOT_NONE)
			continue;
		if (evict_present(shard->order, slot))
			evict_touch(shard->order, slot);
		slots[count++] = slot;
		visit_note(visit, HOST_TOUCHED, bunch_key(bunch, i));
	}
	evict_settle(shard->order, slots, count);
}

int host_touch(struct host *host, const struct kvs_key *keys, uint32_t count)
{
	if (count > HOST_KEYS_MAX)
		return KVS_E_INVALID;
	rows_run(host, keys, count, 0, serve_touch, NULL);
	return 0;
}
