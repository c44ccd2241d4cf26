/* SPDX-License-Identifier: Apache-2.0 */
/* host_finish(), host_finish_locked(), host_discard(): how a write ends. */
#include "base/err.h"
#include "host/life.h"
#include "host/lock.h"
#include "host/write.h"

struct finish {
	struct write     write;
	host_client      reader; /* of host_finish_locked(), and so are locks and spans */
	uint32_t         locks;
	struct kvs_span *spans;
};

/* What a writer finds under a key. */
struct found {
	uint32_t first; /* of the key */
	uint32_t own;   /* what it stages */
};

/* 0, or what a row says that has nothing to finish; what expired is dropped. */
static int find(struct visit *visit, const struct finish *call, const struct bunch *bunch,
		uint32_t i, struct found *ret_found)
{
	const struct shard *const shard = visit->shard;
	const uint32_t first = life_find(shard, bunch_hash(bunch, i), bunch_key(bunch, i));
	uint32_t       own;

	if (!clients_is(&visit->host->clients, call->write.writer.client))
		return KVS_E_CLOSED;
	own = life_staged(shard, first, client_slot(call->write.writer.client),
			  call->write.writer.tag);
	if (own == SLOT_NONE) {
		return first != SLOT_NONE && shard->records[first].state == RECORD_RESIDENT
			       ? KVS_E_STALE
			       : KVS_E_MISSING;
	}
	*ret_found = (struct found){ first, own };
	if (shard->records[own].expiry_ns > shard->now_ns)
		return 0;
	visit_count(visit, HOST_EXPIRED_WRITES);
	life_drop(visit, own);
	return KVS_E_STALE;
}

static bool is_first(const struct visit *visit, const struct found *found, enum record_state state)
{
	return visit->shard->records[found->first].state == state;
}

/*
 * A write that is to last, over a temporary object: that lasts in its place.  Readers keep what
 * they read, and it was not told as HOST_WRITTEN before.
 */
static void keep_twin(struct visit *visit, const struct found *found, bool is_load)
{
	const struct record *const records = visit->shard->records;

	if (records[found->own].flags & RECORD_TEMPORARY ||
	    !(records[found->first].flags & RECORD_TEMPORARY))
		return;
	life_keep(visit, found->first);
	if (!is_load)
		visit_note(visit, HOST_WRITTEN, &records[found->first].key);
}

/* The key is resident already, or was forced out while this was written. */
static int drop_late(struct visit *visit, const struct found *found, bool is_load)
{
	const bool is_twin = is_first(visit, found, RECORD_RESIDENT);

	if (is_twin)
		keep_twin(visit, found, is_load);
	visit_count(visit, is_twin ? HOST_DROPPED_TWINS : HOST_FORCED_WRITES);
	life_drop(visit, found->own);
	return is_twin ? 0 : KVS_E_STALE;
}

static void publish(struct visit *visit, const struct found *found, bool is_load)
{
	const struct record *const record = &visit->shard->records[found->own];
	const bool                 loaded = is_load || (record->flags & RECORD_TEMPORARY);

	life_publish(visit, found->own, found->first);
	visit_count(visit, HOST_FINISHED);
	visit_note(visit, loaded ? HOST_LOADED : HOST_WRITTEN, &record->key);
}

/* --- finish ----------------------------------------------------------------------------------- */

static int finish_row(struct visit *visit, const struct finish *call, const struct bunch *bunch,
		      uint32_t i)
{
	struct found found;
	const int    rc = find(visit, call, bunch, i, &found);

	if (rc != 0)
		return rc;
	if (!is_first(visit, &found, RECORD_STAGED))
		return drop_late(visit, &found, false);
	publish(visit, &found, false);
	return 0;
}

/* What of it has expired is for its rows to say, before it is dropped. */
static void serve_finish(struct visit *visit, const struct bunch *bunch, void *arg)
{
	const struct finish *const call = arg;
	uint32_t                   i;

	(void)lock_expire_locks(visit);
	for (i = 0; i < bunch->count; i++)
		call->write.rc[bunch_row(bunch, i)] = finish_row(visit, call, bunch, i);
	(void)lock_expire_writes(visit);
}

int host_finish(struct host *host, struct host_writer writer, const struct kvs_key *keys,
		uint32_t count, uint64_t now_ns, int *ret_rc)
{
	struct finish call = { .write = { writer, ret_rc } };

	if (count > HOST_KEYS_MAX)
		return KVS_E_INVALID;
	if (!clients_is(&host->clients, writer.client))
		return KVS_E_CLOSED;
	rows_run(host, keys, count, now_ns, serve_finish, &call);
	return 0;
}

/* --- finish, locked --------------------------------------------------------------------------- */

/* Nobody will lock it: a temporary object has done what it was for. */
static void leave_unlocked(struct visit *visit, uint32_t slot)
{
	if (visit->shard->records[slot].flags & RECORD_TEMPORARY)
		life_remove(visit, slot);
}

/* What the row will lock: the twin that was there first, or what the writer staged. */
static uint32_t locked_of(struct visit *visit, const struct finish *call, struct found *found)
{
	const struct record *const own = &visit->shard->records[found->own];

	/* Where no lock is wanted, one whose time is over stands in nobody's way. */
	if (call->locks > 0 && is_first(visit, found, RECORD_RESIDENT)) {
		lock_expire_claim(visit, found->first, call->reader);
		found->first = life_find(visit->shard, own->hash, &own->key);
	}
	return is_first(visit, found, RECORD_RESIDENT) ? found->first : found->own;
}

/* Own bytes become the object, or are dropped for the twin's. */
static void settle(struct visit *visit, const struct found *found, uint32_t slot, bool is_locked)
{
	const struct kvs_key *const key = &visit->shard->records[slot].key;

	if (slot == found->own) {
		publish(visit, found, true);
		return;
	}
	(void)drop_late(visit, found, true);
	if (is_locked)
		visit_note(visit, HOST_LOCKED, key);
}

static int finish_found(struct visit *visit, const struct finish *call, struct found *found,
			struct kvs_span *ret_span)
{
	const uint32_t slot = locked_of(visit, call, found);
	const uint32_t claim = lock_claim(visit, slot, call->reader);

	if (call->locks > 0 && lock_may(visit, claim, call->locks) != 0) {
		visit_count(visit, HOST_REFUSED_LOCKS);
		return KVS_E_FULL;
	}
	settle(visit, found, slot, call->locks > 0);
	if (call->locks > 0) {
		lock_take(visit, slot, call->reader, call->locks);
		*ret_span = span_of(visit->host, &visit->shard->records[slot]);
	} else if (slot == found->own) {
		leave_unlocked(visit, slot);
	}
	return 0;
}

static int finish_locked_row(struct visit *visit, const struct finish *call,
			     const struct bunch *bunch, uint32_t i)
{
	struct kvs_span *const span = &call->spans[bunch_row(bunch, i)];
	struct found           found;
	int                    rc = find(visit, call, bunch, i, &found);

	*span = (struct kvs_span){ 0 };
	if (rc == 0 && !clients_is(&visit->host->clients, call->reader))
		rc = KVS_E_CLOSED;
	if (rc != 0)
		return rc;
	if (is_first(visit, &found, RECORD_DOOMED))
		return drop_late(visit, &found, true);
	return finish_found(visit, call, &found, span);
}

static void serve_finish_locked(struct visit *visit, const struct bunch *bunch, void *arg)
{
	const struct finish *const call = arg;
	uint32_t                   i;

	(void)lock_expire_locks(visit);
	for (i = 0; i < bunch->count; i++)
		call->write.rc[bunch_row(bunch, i)] = finish_locked_row(visit, call, bunch, i);
	(void)lock_expire_writes(visit);
}

int host_finish_locked(struct host *host, struct host_writer writer, host_client reader,
		       uint32_t lock_count, const struct kvs_key *keys, uint32_t count,
		       uint64_t now_ns, struct kvs_span *ret_spans, int *ret_rc)
{
	struct finish call = { .write = { writer, ret_rc },
			       .reader = reader,
			       .locks = lock_count,
			       .spans = ret_spans };

	if (count > HOST_KEYS_MAX || lock_count > HOST_LOCKS_MAX)
		return KVS_E_INVALID;
	if (!clients_is(&host->clients, writer.client) || !clients_is(&host->clients, reader))
		return KVS_E_CLOSED;
	rows_run(host, keys, count, now_ns, serve_finish_locked, &call);
	return 0;
}

/* --- discard ---------------------------------------------------------------------------------- */

/* No time is told: what expired and is still there may go as well as the rest. */
static int discard_row(struct visit *visit, const struct write *call, const struct bunch *bunch,
		       uint32_t i, enum host_counter counter)
{
	const struct shard *const shard = visit->shard;
	const uint32_t first = life_find(shard, bunch_hash(bunch, i), bunch_key(bunch, i));
	uint32_t       own;

	if (!clients_is(&visit->host->clients, call->writer.client))
		return KVS_E_CLOSED;
	own = life_staged(shard, first, client_slot(call->writer.client), call->writer.tag);
	if (own == SLOT_NONE) {
		return first != SLOT_NONE && shard->records[first].state == RECORD_RESIDENT
			       ? KVS_E_STALE
			       : KVS_E_MISSING;
	}
	visit_count(visit, counter);
	life_drop(visit, own);
	return 0;
}

static void serve_discard(struct visit *visit, const struct bunch *bunch, void *arg)
{
	const struct write *const call = arg;
	uint32_t                  i;

	for (i = 0; i < bunch->count; i++)
		call->rc[bunch_row(bunch, i)] = discard_row(visit, call, bunch, i, HOST_DISCARDED);
}

void write_undo(struct visit *visit, const struct bunch *bunch, void *arg)
{
	const struct write *const call = arg;
	uint32_t                  i;

	for (i = 0; i < bunch->count; i++) {
		if (call->rc[bunch_row(bunch, i)] == 0)
			(void)discard_row(visit, call, bunch, i, HOST_UNDONE);
	}
}

int host_discard(struct host *host, struct host_writer writer, const struct kvs_key *keys,
		 uint32_t count, int *ret_rc)
{
	struct write call = { writer, ret_rc };

	if (count > HOST_KEYS_MAX)
		return KVS_E_INVALID;
	if (!clients_is(&host->clients, writer.client))
		return KVS_E_CLOSED;
	rows_run(host, keys, count, 0, serve_discard, &call);
	return 0;
}
