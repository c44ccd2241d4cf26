/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of mem: batches, the copies in and out, and open to close.  mem_index.c knows which slot
 * is whose.
 */
#include "store/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/units.h"
#include "store/kind.h"
#include "store/spec.h"

/* Slots looked at with the mutex held once: about 20 us. */
#define SCAN_SLOTS 4096u

/* Keys a purge removes at a time. */
#define PURGE_KEYS 64u

static struct mem *mem_of(struct kvs_store *store)
{
	return (struct mem *)store;
}

/* --- payload ---------------------------------------------------------------------------------- */

static uint8_t *payload_of(const struct mem *mem, uint32_t slot)
{
	return mem->pages + slot * mem->block_bytes;
}

/* What the record's object has if this is its payload. */
static uint64_t checksum_of(const struct mem_record *record, const void *payload)
{
	return xxh3_64_seeded(payload, record->bytes,
			      xxh3_64_seeded(&record->key, sizeof(record->key), record->bytes));
}

/* Pins what it finds; *ret_flip when a test asked for a wrong byte. */
static uint32_t read_begin(struct mem *mem, const struct kvs_key *key, bool *ret_flip)
{
	uint32_t slot;

	os_mutex_lock(&mem->mutex);
	slot = mem_use(mem, key);
	if (slot != SLOT_NONE) {
		mem_pin(mem, slot);
		mem->get_count++;
		*ret_flip = mem->corrupt_every && mem->get_count % mem->corrupt_every == 0;
	}
	os_mutex_unlock(&mem->mutex);
	return slot;
}

/* What failed its check goes for good: of several readers that find it wrong the first does it. */
static void read_end(struct mem *mem, uint32_t slot, bool corrupt)
{
	os_mutex_lock(&mem->mutex);
	if (corrupt && mem->records[slot].state == MEM_PRESENT) {
		mem_withdraw(mem, slot);
		mem->corrupt_objects++;
	}
	mem_unpin(mem, slot);
	os_mutex_unlock(&mem->mutex);
}

/* False when what was copied is not the object. */
static bool copy_out(const struct mem *mem, uint32_t slot, bool flip, uint8_t *payload)
{
	const struct mem_record *record = &mem->records[slot];

	memcpy(payload, payload_of(mem, slot), record->bytes);
	if (flip)
		payload[record->bytes / 2] ^= 1;
	return !mem->verify || checksum_of(record, payload) == record->checksum;
}

/* A caller's wrong length says nothing about the object: it stays. */
static enum kvs_result get_one(struct mem *mem, const struct kvs_key *key,
			       const struct kvs_span *span)
{
	bool           flip, fits, corrupt;
	const uint32_t slot = read_begin(mem, key, &flip);

	if (slot == SLOT_NONE)
		return KVS_RESULT_MISSING;
	fits = span->bytes == mem->records[slot].bytes;
	corrupt = fits && !copy_out(mem, slot, flip, span->ptr);
	read_end(mem, slot, corrupt);
	return fits && !corrupt ? KVS_RESULT_DONE : KVS_RESULT_CORRUPT;
}

static enum kvs_result put_one(struct mem *mem, const struct kvs_key *key,
			       const struct kvs_span *span)
{
	struct mem_record *record;
	enum kvs_result    result;
	uint32_t           slot;

	os_mutex_lock(&mem->mutex);
	result = mem_claim(mem, key, &slot);
	os_mutex_unlock(&mem->mutex);
	if (result != KVS_RESULT_DONE)
		return result;

	record = &mem->records[slot];
	record->bytes = (uint32_t)span->bytes;
	record->checksum = checksum_of(record, span->ptr);
	memcpy(payload_of(mem, slot), span->ptr, span->bytes);

	os_mutex_lock(&mem->mutex);
	mem_publish(mem, slot);
	os_mutex_unlock(&mem->mutex);
	return KVS_RESULT_DONE;
}

static bool spans_valid(const struct mem *mem, const struct kvs_span *span, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (span[i].bytes == 0 || span[i].bytes > mem->block_bytes)
			return false;
	}
	return true;
}

typedef enum kvs_result move_one(struct mem *mem, const struct kvs_key *key,
				 const struct kvs_span *span);

/* When it returns no span is touched any more, however it went: all copies are its own. */
static int move(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		uint32_t count, enum kvs_result *result, bool *ret_retired, move_one *one)
{
	struct mem *mem = mem_of(store);
	const bool  valid = spans_valid(mem, span, count);
	uint32_t    i;

	*ret_retired = true;
	for (i = 0; i < count; i++)
		result[i] = valid ? one(mem, &key[i], &span[i]) : KVS_RESULT_UNKNOWN;
	return valid ? 0 : KVS_E_INVALID;
}

static int mem_get(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		   uint32_t count, enum kvs_result *result, bool *ret_retired)
{
	return move(store, key, span, count, result, ret_retired, get_one);
}

static int mem_put(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		   uint32_t count, enum kvs_result *result, bool *ret_retired)
{
	return move(store, key, span, count, result, ret_retired, put_one);
}

/* --- keys alone ------------------------------------------------------------------------------- */

/* Find each, and do something to what is found; act may be NULL. */
static int find(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		enum kvs_result *result, void (*act)(struct mem *mem, uint32_t slot))
{
	struct mem *mem = mem_of(store);
	uint32_t    i;

	os_mutex_lock(&mem->mutex);
	for (i = 0; i < count; i++) {
		const uint32_t slot = mem_use(mem, &key[i]);

		result[i] = slot == SLOT_NONE ? KVS_RESULT_MISSING : KVS_RESULT_DONE;
		if (slot != SLOT_NONE && act)
			act(mem, slot);
	}
	os_mutex_unlock(&mem->mutex);
	return 0;
}

static int mem_exists(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		      enum kvs_result *result)
{
	return find(store, key, count, result, NULL);
}

static int mem_remove(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		      enum kvs_result *result)
{
	return find(store, key, count, result, mem_withdraw);
}

static int mem_lock(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		    enum kvs_result *result)
{
	return find(store, key, count, result, mem_hold);
}

static void mem_unlock(struct kvs_store *store, const struct kvs_key *key, uint32_t count)
{
	struct mem *mem = mem_of(store);
	uint32_t    i;

	os_mutex_lock(&mem->mutex);
	for (i = 0; i < count; i++)
		mem_let_go(mem, &key[i]);
	os_mutex_unlock(&mem->mutex);
}

static bool is_listed(const struct mem_record *record, const struct kvs_namespace *space)
{
	return record->state == MEM_PRESENT &&
	       (!space || memcmp(&record->key.space, space, sizeof(*space)) == 0);
}

/* The cursor is the next slot to look at: objects do not move. */
static int mem_list(struct kvs_store *store, const struct kvs_namespace *space, uint64_t *cursor,
		    struct kvs_key *keys, uint32_t key_max, uint32_t *ret_count)
{
	struct mem *mem = mem_of(store);
	uint64_t    slot = *cursor, end;
	uint32_t    count = 0;

	while (slot < mem->slot_count && count < key_max) {
		os_mutex_lock(&mem->mutex);
		for (end = slot + SCAN_SLOTS;
		     slot < end && slot < mem->slot_count && count < key_max; slot++) {
			if (is_listed(&mem->records[slot], space))
				keys[count++] = mem->records[slot].key;
		}
		os_mutex_unlock(&mem->mutex);
	}
	*cursor = slot < mem->slot_count ? slot : 0;
	*ret_count = count;
	return 0;
}

static int mem_purge(struct kvs_store *store, const struct kvs_namespace *space,
		     uint64_t *ret_count)
{
	struct kvs_key  keys[PURGE_KEYS];
	enum kvs_result result[PURGE_KEYS];
	uint64_t        cursor = 0, removed = 0;
	uint32_t        count, i;

	do {
		(void)mem_list(store, space, &cursor, keys, PURGE_KEYS, &count);
		(void)mem_remove(store, keys, count, result);
		for (i = 0; i < count; i++)
			removed += result[i] == KVS_RESULT_DONE;
	} while (cursor);
	*ret_count = removed;
	return 0;
}

/* --- the whole -------------------------------------------------------------------------------- */

static void mem_describe(struct kvs_store *store, struct kvs_store_info *ret_info)
{
	struct mem *mem = mem_of(store);

	os_mutex_lock(&mem->mutex);
	*ret_info = (struct kvs_store_info){
		.capacity_bytes = mem->capacity_bytes,
		.used_bytes = mem->object_count * mem->block_bytes,
		.object_count = mem->object_count,
		.evicted_objects = mem->evicted_objects,
		.corrupt_objects = mem->corrupt_objects,
		.refused_full = mem->refused_full,
		.memory_bytes = sizeof(*mem) + mem_index_bytes(mem) +
				mem->peak_slots * mem->block_bytes,
		.durability = KVS_DURABILITY_NONE,
		.failures_retire = true,
		.verified = mem->verify,
		.locks = true,
	};
	os_mutex_unlock(&mem->mutex);
}

static int mem_close(struct kvs_store *store)
{
	struct mem *mem = mem_of(store);

	if (mem->pages)
		os_pages_unmap(mem->pages, mem->slot_count * mem->block_bytes);
	mem_index_close(mem);
	os_mutex_fini(&mem->mutex);
	free(mem);
	return 0;
}

/* The capacity counts payload: the index comes on top, and is reported. */
static int count_slots(struct mem *mem, struct kvs_error *err)
{
	const uint64_t count = mem->capacity_bytes / mem->block_bytes;
	char           block[32], limit[32];

	units_format_size(mem->block_bytes, block);
	if (count == 0) {
		return err_set(err, KVS_E_INVALID,
			       "store.capacity: %" PRIu64
			       " bytes hold no block of %s; at least %s is needed",
			       mem->capacity_bytes, block, block);
	}
	if (count > MEM_OBJECTS_MAX) {
		return err_set(err, KVS_E_INVALID,
			       "store.capacity: %" PRIu64 " bytes are more than %s blocks of %s",
			       mem->capacity_bytes, units_format_count(MEM_OBJECTS_MAX, limit),
			       block);
	}
	mem->slot_count = (uint32_t)count;
	return 0;
}

static int map_pages(struct mem *mem, struct kvs_error *err)
{
	void     *pages;
	const int rc = os_pages_map(mem->slot_count * mem->block_bytes, &pages);
	char      size[32];

	if (rc < 0) {
		return err_set(err, rc, "store.capacity: %s cannot be mapped: %s",
			       units_format_size(mem->capacity_bytes, size), kvs_strerror(rc));
	}
	mem->pages = pages;
	return 0;
}

static int open_whole(struct mem *mem, const struct kvs_store_config *config,
		      struct kvs_error *err)
{
	int rc;

	if (spec_size("capacity", config->place, &mem->capacity_bytes, err) < 0 ||
	    count_slots(mem, err) < 0 ||
	    spec_count(config, "corrupt_every", &mem->corrupt_every, err) < 0 ||
	    spec_switch(config, "verify", &mem->verify, err) < 0)
		return KVS_E_INVALID;
	rc = map_pages(mem, err);
	return rc < 0 ? rc : mem_index_open(mem, config->evict_policy, err);
}

static int mem_open(const struct kvs_store_config *config, struct kvs_store **ret_store,
		    struct kvs_error *err)
{
	struct mem *mem = malloc(sizeof(*mem));
	int         rc;

	if (!mem)
		return err_set(err, -ENOMEM, "store: no memory");
	*mem = (struct mem){ .store = { &store_mem_ops },
			     .block_bytes = config->block_bytes,
			     .verify = true };
	os_mutex_init(&mem->mutex);
	rc = open_whole(mem, config, err);
	if (rc < 0) {
		(void)mem_close(&mem->store);
		return rc;
	}
	*ret_store = &mem->store;
	return 0;
}

static const char *const mem_options[] = { "corrupt_every", "verify", NULL };

const struct kvs_store_ops store_mem_ops = {
	.abi = KVS_STORE_ABI,
	.name = "mem",
	.options = mem_options,
	.open = mem_open,
	.close = mem_close,
	.describe = mem_describe,
	.exists = mem_exists,
	.get = mem_get,
	.put = mem_put,
	.remove = mem_remove,
	.list = mem_list,
	.purge = mem_purge,
	.lock = mem_lock,
	.unlock = mem_unlock,
};
