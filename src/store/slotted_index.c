/* SPDX-License-Identifier: Apache-2.0 */
/* Open, close and index of a slotted store.  Every state of a slot changes here. */
#include "store/slotted_index.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "key/key.h"

uint32_t index_use_locked(struct slotted *s, const struct kvs_key *key)
{
	const uint32_t slot = map_find(&s->index, key_hash(key), key);

	if (slot == SLOT_NONE || s->records[slot].state != SLOT_PRESENT)
		return SLOT_NONE;
	evict_touch(s->order, slot);
	return slot;
}

static bool may_go(void *ctx, uint32_t slot)
{
	const struct record *record = &((const struct slotted *)ctx)->records[slot];

	return record->pins == 0 && record->locks == 0;
}

static void map_forget(struct slotted *s, uint32_t slot)
{
	map_remove(&s->index, key_hash(&s->records[slot].object.key), slot);
}

static uint32_t slot_take(struct slotted *s, bool *ret_evicted)
{
	uint32_t slot = list_pop_head(&s->free, s->free_links);

	*ret_evicted = false;
	if (slot != SLOT_NONE)
		return slot;
	slot = evict_victim(s->order, may_go, s);
	if (slot == SLOT_NONE)
		return SLOT_NONE;
	map_forget(s, slot);
	s->object_count--;
	s->evicted_objects++;
	*ret_evicted = true;
	return slot;
}

static void slot_free(struct slotted *s, uint32_t slot)
{
	s->records[slot].state = SLOT_FREE;
	list_push_head(&s->free, s->free_links, slot);
}

enum kvs_result index_claim_locked(struct slotted *s, const struct kvs_key *key,
				   struct claim *ret_claim)
{
	const uint64_t hash = key_hash(key);
	const uint32_t found = map_find(&s->index, hash, key);
	struct claim   claim;

	if (found != SLOT_NONE) {
		if (s->records[found].state == SLOT_WRITING)
			return KVS_RESULT_UNKNOWN;
		evict_touch(s->order, found);
		return KVS_RESULT_EXISTS;
	}
	claim.slot = slot_take(s, &claim.evicted);
	if (claim.slot == SLOT_NONE)
		return KVS_RESULT_NO_SPACE;
	KVS_ASSERT_CMP(s->records[claim.slot].pins, ==, 0);
	claim.sequence = s->sequence++;
	s->records[claim.slot].object.key = *key;
	s->records[claim.slot].state = SLOT_WRITING;
	map_insert(&s->index, hash, claim.slot);
	if (claim.slot >= s->peak_slots)
		s->peak_slots = claim.slot + 1;
	*ret_claim = claim;
	return KVS_RESULT_DONE;
}

void index_publish_locked(struct slotted *s, uint32_t slot, const struct object *object)
{
	KVS_ASSERT_CMP(s->records[slot].state, ==, SLOT_WRITING);
	s->records[slot].object = *object;
	s->records[slot].state = SLOT_PRESENT;
	evict_insert(s->order, slot, key_hash(&object->key));
	s->object_count++;
}

void index_abandon_locked(struct slotted *s, uint32_t slot)
{
	KVS_ASSERT_CMP(s->records[slot].state, ==, SLOT_WRITING);
	map_forget(s, slot);
	slot_free(s, slot);
}

void index_withdraw_locked(struct slotted *s, uint32_t slot)
{
	KVS_ASSERT_CMP(s->records[slot].state, ==, SLOT_PRESENT);
	KVS_ASSERT_CMP(s->records[slot].pins, >, 0);
	map_forget(s, slot);
	evict_remove(s->order, slot);
	s->records[slot].state = SLOT_DOOMED;
	s->records[slot].locks = 0;
	s->object_count--;
}

void index_unpin_locked(struct slotted *s, uint32_t slot)
{
	KVS_ASSERT_CMP(s->records[slot].pins, >, 0);
	s->records[slot].pins--;
	if (s->records[slot].pins == 0 && s->records[slot].state == SLOT_DOOMED)
		slot_free(s, slot);
}

void index_lock_locked(struct slotted *s, uint32_t slot)
{
	KVS_ASSERT_CMP(s->records[slot].state, ==, SLOT_PRESENT);
	KVS_ASSERT_CMP(s->records[slot].locks, <, UINT32_MAX);
	s->records[slot].locks++;
}

void index_unlock_locked(struct slotted *s, const struct kvs_key *key)
{
	const uint32_t slot = map_find(&s->index, key_hash(key), key);

	if (slot != SLOT_NONE && s->records[slot].locks > 0)
		s->records[slot].locks--;
}

/* Nobody else sees the store yet, so the locked functions need no lock here. */
void slotted_adopt(struct slotted *s, uint32_t slot, uint64_t sequence, const struct object *object)
{
	const uint32_t earlier = map_find(&s->index, key_hash(&object->key), &object->key);

	if (earlier != SLOT_NONE) {
		s->records[earlier].pins++;
		index_withdraw_locked(s, earlier);
		(void)s->medium->ops->erase(s->medium, earlier);
		index_unpin_locked(s, earlier);
	}
	list_remove(&s->free, s->free_links, slot);
	s->records[slot].object = *object;
	s->records[slot].state = SLOT_WRITING;
	map_insert(&s->index, key_hash(&object->key), slot);
	index_publish_locked(s, slot, object);
	if (s->sequence <= sequence)
		s->sequence = sequence + 1;
}

int slotted_count(uint64_t capacity_bytes, uint64_t fixed_bytes, uint64_t slot_bytes,
		  uint64_t block_bytes, uint32_t *ret_count, struct kvs_error *err)
{
	const uint64_t count =
		capacity_bytes > fixed_bytes ? (capacity_bytes - fixed_bytes) / slot_bytes : 0;
	char           block[32], limit[32];

	units_format_size(block_bytes, block);
	if (count == 0) {
		return err_set(err, KVS_E_INVALID,
			       "store.capacity: %" PRIu64
			       " bytes hold no block of %s; at least %s is needed",
			       capacity_bytes, block,
			       units_format_size(fixed_bytes + slot_bytes, limit));
	}
	if (count > SLOTTED_OBJECTS_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "store.capacity: %" PRIu64 " bytes are more than %s blocks of %s",
			       capacity_bytes, units_format_count(SLOTTED_OBJECTS_MAX, limit),
			       block);
	}
	*ret_count = (uint32_t)count;
	return 0;
}

static int tables_open(struct slotted *s, const char *evict_policy, struct kvs_error *err)
{
	const uint32_t count = s->traits.slot_count;
	uint32_t       slot;

	s->records = calloc(count, sizeof(*s->records));
	s->free_links = malloc(count * sizeof(*s->free_links));
	if (!s->records || !s->free_links ||
	    map_open(&s->index, count, &s->records->object.key, sizeof(*s->records),
		     sizeof(struct kvs_key)) < 0)
		return err_set(err, -ENOMEM, "store: no memory for an index of %u blocks", count);
	list_init(&s->free);
	list_links_init(s->free_links, count);
	for (slot = 0; slot < count; slot++)
		list_push_tail(&s->free, s->free_links, slot);
	return evict_open(evict_policy, count, &s->order, err);
}

static void tables_close(struct slotted *s)
{
	if (s->order)
		evict_close(s->order);
	map_close(&s->index);
	free(s->free_links);
	free(s->records);
}

int slotted_open(const struct kvs_store_ops *ops, struct medium *medium,
		 const struct slotted_traits *traits, const struct kvs_store_config *config,
		 struct slotted **ret_slotted, struct kvs_error *err)
{
	uint64_t        corrupt_every = 0;
	bool            verify = true;
	struct slotted *s;
	int             rc;

	if (spec_count(config, "corrupt_every", &corrupt_every, err) < 0 ||
	    spec_switch(config, "verify", &verify, err) < 0)
		return KVS_E_INVALID;
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(err, -ENOMEM, "store: no memory");
	*s = (struct slotted){ .store = { ops },
			       .medium = medium,
			       .traits = *traits,
			       .corrupt_every = corrupt_every,
			       .verify = verify };
	rc = tables_open(s, config->evict_policy, err);
	if (rc < 0) {
		tables_close(s);
		free(s);
		return rc;
	}
	os_mutex_init(&s->mutex);
	*ret_slotted = s;
	return 0;
}

int slotted_close(struct kvs_store *store)
{
	struct slotted *s = slotted_of(store);

	s->medium->ops->close(s->medium);
	os_mutex_fini(&s->mutex);
	tables_close(s);
	free(s);
	return 0;
}

static uint64_t index_bytes(const struct slotted *s)
{
	return sizeof(*s) + map_bytes(&s->index) + evict_bytes(s->order) +
	       s->traits.slot_count * (sizeof(*s->records) + sizeof(*s->free_links));
}

/* A medium that goes with the process is memory of it. */
static uint64_t medium_bytes(const struct slotted *s)
{
	return s->traits.durability == KVS_DURABILITY_NONE ? s->peak_slots * s->traits.block_bytes :
							     0;
}

void slotted_describe(struct kvs_store *store, struct kvs_store_info *ret_info)
{
	struct slotted *s = slotted_of(store);

	os_mutex_lock(&s->mutex);
	*ret_info = (struct kvs_store_info){
		.capacity_bytes = s->traits.capacity_bytes,
		.used_bytes = s->traits.fixed_bytes + s->object_count * s->traits.block_bytes,
		.object_count = s->object_count,
		.evicted_objects = s->evicted_objects,
		.corrupt_objects = s->corrupt_objects,
		.memory_bytes = index_bytes(s) + medium_bytes(s),
		.durability = s->traits.durability,
		.failures_retire = true,
		.verified = s->verify,
		.direct = s->traits.direct,
		.locks = true,
	};
	os_mutex_unlock(&s->mutex);
	if (s->note)
		snprintf(ret_info->note, sizeof(ret_info->note), "%s", s->note);
}

void slotted_audit(struct slotted *s)
{
	uint32_t count[SLOT_DOOMED + 1] = { 0 };
	uint32_t slot;

	map_audit(&s->index);
	evict_audit(s->order);
	list_audit(&s->free, s->free_links, s->traits.slot_count);
	for (slot = 0; slot < s->traits.slot_count; slot++) {
		const struct record *record = &s->records[slot];

		count[record->state]++;
		KVS_ASSERT_CMP(record->pins, ==, 0);
		KVS_ASSERT(record->locks == 0 || record->state == SLOT_PRESENT);
		KVS_ASSERT_CMP(list_is_linked(s->free_links, slot), ==, record->state == SLOT_FREE);
		KVS_ASSERT_CMP(evict_present(s->order, slot), ==, record->state == SLOT_PRESENT);
	}
	KVS_ASSERT_CMP(count[SLOT_WRITING] + count[SLOT_DOOMED], ==, 0);
	KVS_ASSERT_CMP(s->object_count, ==, count[SLOT_PRESENT]);
	KVS_ASSERT_CMP(s->index.count, ==, count[SLOT_PRESENT]);
}
