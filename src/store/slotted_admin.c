/* SPDX-License-Identifier: Apache-2.0 */
/* Locks, listing and purging: what touches no payload and no medium of its own. */
#include <errno.h>
#include <string.h>

#include "store/slotted_index.h"

/* Slots looked at with the mutex held once: about 20 us. */
#define SCAN_SLOTS 4096u

/* Keys a purge removes at a time. */
#define PURGE_KEYS 64u

int slotted_lock(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		 enum kvs_result *result)
{
	struct slotted *s = slotted_of(store);
	uint32_t        i;

	os_mutex_lock(&s->mutex);
	for (i = 0; i < count; i++) {
		const uint32_t slot = index_use_locked(s, &key[i]);

		result[i] = slot == SLOT_NONE ? KVS_RESULT_MISSING : KVS_RESULT_DONE;
		if (slot != SLOT_NONE)
			index_lock_locked(s, slot);
	}
	os_mutex_unlock(&s->mutex);
	return 0;
}

void slotted_unlock(struct kvs_store *store, const struct kvs_key *key, uint32_t count)
{
	struct slotted *s = slotted_of(store);
	uint32_t        i;

	os_mutex_lock(&s->mutex);
	for (i = 0; i < count; i++)
		index_unlock_locked(s, &key[i]);
	os_mutex_unlock(&s->mutex);
}

static bool is_listed(const struct record *record, const struct kvs_namespace *space)
{
	return record->state == SLOT_PRESENT &&
	       (!space || memcmp(&record->object.key.space, space, sizeof(*space)) == 0);
}

/* The cursor is the next slot to look at: objects do not move. */
int slotted_list(struct kvs_store *store, const struct kvs_namespace *space, uint64_t *cursor,
		 struct kvs_key *keys, uint32_t key_max, uint32_t *ret_count)
{
	struct slotted *s = slotted_of(store);
	uint64_t        slot = *cursor, end;
	uint32_t        count = 0;

	while (slot < s->traits.slot_count && count < key_max) {
		os_mutex_lock(&s->mutex);
		for (end = slot + SCAN_SLOTS;
		     slot < end && slot < s->traits.slot_count && count < key_max; slot++) {
			if (is_listed(&s->records[slot], space))
				keys[count++] = s->records[slot].object.key;
		}
		os_mutex_unlock(&s->mutex);
	}
	*cursor = slot < s->traits.slot_count ? slot : 0;
	*ret_count = count;
	return 0;
}

/* What stays on the medium would be found by the next open: then the purge failed. */
int slotted_purge(struct kvs_store *store, const struct kvs_namespace *space, uint64_t *ret_count)
{
	struct kvs_key  keys[PURGE_KEYS];
	enum kvs_result result[PURGE_KEYS];
	uint64_t        cursor = 0, removed = 0;
	uint32_t        count, i, failed = 0;

	do {
		(void)slotted_list(store, space, &cursor, keys, PURGE_KEYS, &count);
		(void)slotted_remove(store, keys, count, result);
		for (i = 0; i < count; i++) {
			removed += result[i] == KVS_RESULT_DONE;
			failed += result[i] == KVS_RESULT_FAILED;
		}
	} while (cursor);
	if (failed)
		return -EIO;
	*ret_count = removed;
	return 0;
}
