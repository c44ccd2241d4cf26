/* SPDX-License-Identifier: Apache-2.0 */
/* Which slot has which object, and which goes next.  Every state of a slot changes here. */
#include "store/mem.h"

#include <errno.h>
#include <stdlib.h>

#include "key/key.h"

int mem_index_open(struct mem *mem, const char *evict_policy, struct kvs_error *err)
{
	const uint32_t count = mem->slot_count;
	uint32_t       slot;

	mem->records = calloc(count, sizeof(*mem->records));
	mem->free_links = malloc(count * sizeof(*mem->free_links));
	if (!mem->records || !mem->free_links ||
	    map_open(&mem->index, count, &mem->records->key, sizeof(*mem->records),
		     sizeof(struct kvs_key)) < 0)
		return err_set(err, -ENOMEM, "store: no memory for an index of %u blocks", count);
	list_init(&mem->free);
	list_links_init(mem->free_links, count);
	for (slot = 0; slot < count; slot++)
		list_push_tail(&mem->free, mem->free_links, slot);
	return evict_open(evict_policy, count, &mem->order, err);
}

void mem_index_close(struct mem *mem)
{
	evict_close(mem->order);
	map_close(&mem->index);
	free(mem->free_links);
	free(mem->records);
}

uint64_t mem_index_bytes(const struct mem *mem)
{
	return map_bytes(&mem->index) + evict_bytes(mem->order) +
	       mem->slot_count * (sizeof(*mem->records) + sizeof(*mem->free_links));
}

uint32_t mem_use(struct mem *mem, const struct kvs_key *key)
{
	const uint32_t slot = map_find(&mem->index, key_hash(key), key);

	if (slot == SLOT_NONE || mem->records[slot].state != MEM_PRESENT)
		return SLOT_NONE;
	evict_touch(mem->order, slot);
	return slot;
}

static bool may_go(void *ctx, uint32_t slot)
{
	const struct mem_record *record = &((const struct mem *)ctx)->records[slot];

	return record->pins == 0 && record->locks == 0;
}

/* Out of the index, on the way out of the order. */
static void forget(struct mem *mem, uint32_t slot)
{
	KVS_ASSERT_CMP(mem->records[slot].state, ==, MEM_PRESENT);
	map_remove(&mem->index, key_hash(&mem->records[slot].key), slot);
	mem->object_count--;
}

/* A free slot, or that of the object which goes next. */
static uint32_t take(struct mem *mem)
{
	uint32_t slot = list_pop_head(&mem->free, mem->free_links);

	if (slot != SLOT_NONE)
		return slot;
	slot = evict_victim(mem->order, may_go, mem);
	if (slot != SLOT_NONE) {
		forget(mem, slot);
		mem->evicted_objects++;
	}
	return slot;
}

enum kvs_result mem_claim(struct mem *mem, const struct kvs_key *key, uint32_t *ret_slot)
{
	const uint64_t hash = key_hash(key);
	const uint32_t found = map_find(&mem->index, hash, key);
	uint32_t       slot;

	if (found != SLOT_NONE) {
		if (mem->records[found].state == MEM_WRITING)
			return KVS_RESULT_UNKNOWN;
		evict_touch(mem->order, found);
		return KVS_RESULT_EXISTS;
	}
	slot = take(mem);
	if (slot == SLOT_NONE) {
		mem->refused_full++;
		return KVS_RESULT_NO_SPACE;
	}
	KVS_ASSERT_CMP(mem->records[slot].pins, ==, 0);
	KVS_ASSERT_CMP(mem->records[slot].locks, ==, 0);
	mem->records[slot].key = *key;
	mem->records[slot].state = MEM_WRITING;
	map_insert(&mem->index, hash, slot);
	if (slot >= mem->peak_slots)
		mem->peak_slots = slot + 1;
	*ret_slot = slot;
	return KVS_RESULT_DONE;
}

void mem_publish(struct mem *mem, uint32_t slot)
{
	KVS_ASSERT_CMP(mem->records[slot].state, ==, MEM_WRITING);
	mem->records[slot].state = MEM_PRESENT;
	evict_insert(mem->order, slot, key_hash(&mem->records[slot].key));
	mem->object_count++;
}

/* A DOOMED slot is free once nobody reads it. */
static void free_unread(struct mem *mem, uint32_t slot)
{
	if (mem->records[slot].pins > 0)
		return;
	mem->records[slot].state = MEM_FREE;
	list_push_head(&mem->free, mem->free_links, slot);
}

void mem_withdraw(struct mem *mem, uint32_t slot)
{
	forget(mem, slot);
	evict_remove(mem->order, slot);
	mem->records[slot].locks = 0;
	mem->records[slot].state = MEM_DOOMED;
	free_unread(mem, slot);
}

void mem_pin(struct mem *mem, uint32_t slot)
{
	KVS_ASSERT_CMP(mem->records[slot].state, ==, MEM_PRESENT);
	KVS_ASSERT_CMP(mem->records[slot].pins, <, UINT16_MAX);
	mem->records[slot].pins++;
}

void mem_unpin(struct mem *mem, uint32_t slot)
{
	KVS_ASSERT_CMP(mem->records[slot].pins, >, 0);
	mem->records[slot].pins--;
	if (mem->records[slot].state == MEM_DOOMED)
		free_unread(mem, slot);
}

void mem_hold(struct mem *mem, uint32_t slot)
{
	KVS_ASSERT_CMP(mem->records[slot].state, ==, MEM_PRESENT);
	KVS_ASSERT_CMP(mem->records[slot].locks, <, UINT32_MAX);
	mem->records[slot].locks++;
}

void mem_let_go(struct mem *mem, const struct kvs_key *key)
{
	const uint32_t slot = map_find(&mem->index, key_hash(key), key);

	if (slot != SLOT_NONE && mem->records[slot].locks > 0)
		mem->records[slot].locks--;
}

void mem_audit(const struct mem *mem)
{
	uint32_t count[MEM_DOOMED + 1] = { 0 };
	uint32_t slot;

	map_audit(&mem->index);
	evict_audit(mem->order);
	list_audit(&mem->free, mem->free_links, mem->slot_count);
	for (slot = 0; slot < mem->slot_count; slot++) {
		const struct mem_record *record = &mem->records[slot];

		count[record->state]++;
		KVS_ASSERT_CMP(record->pins, ==, 0);
		KVS_ASSERT(record->locks == 0 || record->state == MEM_PRESENT);
		KVS_ASSERT_CMP(list_is_linked(mem->free_links, slot), ==, record->state == MEM_FREE);
		KVS_ASSERT_CMP(evict_present(mem->order, slot), ==, record->state == MEM_PRESENT);
	}
	KVS_ASSERT_CMP(count[MEM_WRITING] + count[MEM_DOOMED], ==, 0);
	KVS_ASSERT_CMP(mem->object_count, ==, count[MEM_PRESENT]);
	KVS_ASSERT_CMP(mem->index.count, ==, count[MEM_PRESENT]);
}
