/* SPDX-License-Identifier: Apache-2.0 */
/* Removing by key, by namespace, and all. */
#include <string.h>

#include "base/err.h"
#include "host/life.h"
#include "host/rows.h"

/* Records looked at with a shard's mutex held once. */
#define CLEAR_RECORDS (NOTICES_MAX / 2)

/* --- one key ---------------------------------------------------------------------------------- */

/*
 * Drop what is staged of the key whose first record this is, but for what is under I/O; how many
 * went.
 */
static uint32_t drop_staged(struct visit *visit, uint32_t first)
{
	struct shard *const shard = visit->shard;
	uint32_t            gone = 0;
	uint32_t            slot, next;

	for (slot = first; slot != SLOT_NONE; slot = next) {
		next = shard->records[slot].next;
		if (shard->records[slot].state != RECORD_STAGED ||
		    shard->records[slot].flags & RECORD_NO_TTL)
			continue;
		visit_count(visit, HOST_FORCED_WRITES);
		life_drop(visit, slot);
		gone++;
	}
	return gone;
}

static int force_out(struct visit *visit, uint32_t first)
{
	const struct record *const record = &visit->shard->records[first];
	uint32_t                   gone = 0;

	if (record->state == RECORD_RESIDENT) {
		(void)drop_staged(visit, record->next);
		if (is_busy(record))
			life_doom(visit, first);
		else
			life_remove(visit, first);
		return 0;
	}
	if (life_is_staged(visit->shard, first)) {
		gone = drop_staged(visit, first);
		return gone > 0 ? 0 : KVS_E_LOCKED;
	}
	return KVS_E_MISSING;
}

static int remove_one(struct visit *visit, uint32_t first, bool force)
{
	const struct record *const record = &visit->shard->records[first];

	if (first == SLOT_NONE)
		return KVS_E_MISSING;
	if (force)
		return force_out(visit, first);
	if (life_is_staged(visit->shard, first))
		return KVS_E_LOCKED;
	if (record->state == RECORD_DOOMED)
		return KVS_E_MISSING;
	if (is_busy(record))
		return KVS_E_LOCKED;
	life_remove(visit, first);
	return 0;
}

struct removal {
	bool force;
	int *rc;
};

static void serve_remove(struct visit *visit, const struct bunch *bunch, void *arg)
{
	const struct removal *const call = arg;
	uint32_t                    i;

	for (i = 0; i < bunch->count; i++) {
		const uint32_t first = life_find(visit->shard, bunch_hash(bunch, i),
						 bunch_key(bunch, i));

		call->rc[bunch_row(bunch, i)] = remove_one(visit, first, call->force);
	}
}

int host_remove(struct host *host, const struct kvs_key *keys, uint32_t count, bool force,
		int *ret_rc)
{
	struct removal call = { force, ret_rc };

	if (count > HOST_KEYS_MAX)
		return KVS_E_INVALID;
	rows_run(host, keys, count, 0, serve_remove, &call);
	return 0;
}

/* --- all -------------------------------------------------------------------------------------- */

struct clearing {
	const struct kvs_namespace *space; /* NULL: all */
	bool                        force;
	uint64_t                    removed, left;
};

static void clear_staged(struct visit *visit, struct clearing *call, uint32_t slot)
{
	if (call->force && !(visit->shard->records[slot].flags & RECORD_NO_TTL)) {
		visit_count(visit, HOST_FORCED_WRITES);
		life_drop(visit, slot);
		call->removed++;
	} else {
		call->left++;
	}
}

static void clear_resident(struct visit *visit, struct clearing *call, uint32_t slot)
{
	const struct record *const record = &visit->shard->records[slot];

	if (!call->force && (is_busy(record) || record->next != SLOT_NONE)) {
		call->left++;
		return;
	}
	call->removed++;
	if (is_busy(record))
		life_doom(visit, slot);
	else
		life_remove(visit, slot);
}

static void clear_record(struct visit *visit, struct clearing *call, uint32_t slot)
{
	const struct record *const record = &visit->shard->records[slot];

	if (call->space && memcmp(&record->key.space, call->space, sizeof(*call->space)) != 0)
		return;
	if (record->state == RECORD_STAGED)
		clear_staged(visit, call, slot);
	else if (record->state == RECORD_RESIDENT)
		clear_resident(visit, call, slot);
}

void host_clear(struct host *host, const struct kvs_namespace *space, bool force,
		uint64_t *ret_removed, uint64_t *ret_left)
{
	struct clearing call = { .space = space, .force = force };
	struct notices  notices;
	struct visit    visit;
	uint32_t        shard, slot, end, known;

	notices_init(&notices);
	for (shard = 0; shard < host->shard_count; shard++) {
		for (slot = 0, known = 1; slot < known;) {
			visit_begin(&visit, host, shard, 0, &notices);
			known = visit.shard->known;
			for (end = slot + CLEAR_RECORDS; slot < end && slot < known; slot++)
				clear_record(&visit, &call, slot);
			visit_end(&visit);
			notices_tell(&notices, host->listeners, host->listener_count);
		}
	}
	*ret_removed = call.removed;
	*ret_left = call.left;
}
