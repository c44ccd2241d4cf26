/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches over slots.  Functions named *_locked run under the mutex; others take it or need none.
 */
#include "store/slotted.h"

#include <errno.h>
#include <string.h>

#include "base/digest.h"
#include "key/key.h"
#include "store/slotted_index.h"

uint64_t object_checksum(const struct kvs_key *key, const void *payload, uint32_t bytes)
{
	return xxh3_64_seeded(payload, bytes, xxh3_64_seeded(key, sizeof(*key), bytes));
}

static bool spans_valid(const struct slotted *s, const struct kvs_span *span, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (span[i].bytes == 0 || span[i].bytes > s->traits.block_bytes ||
		    span[i].bytes % s->traits.span_align ||
		    (uintptr_t)span[i].ptr % s->traits.span_align)
			return false;
	}
	return true;
}

/*
 * All I/O below is synchronous: when a call returns, no span is touched any more, however it went.
 */
static int batch_begin(struct slotted *s, const struct kvs_span *span, uint32_t count,
		       enum kvs_result *result, bool *ret_retired)
{
	uint32_t i;

	*ret_retired = true;
	if (spans_valid(s, span, count))
		return 0;
	for (i = 0; i < count; i++)
		result[i] = KVS_RESULT_UNKNOWN;
	return KVS_E_INVALID;
}

int slotted_exists(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		   enum kvs_result *result)
{
	struct slotted *s = slotted_of(store);
	uint32_t        i;

	os_mutex_lock(&s->mutex);
	for (i = 0; i < count; i++) {
		const uint32_t slot = index_use_locked(s, &key[i]);

		result[i] = slot == SLOT_NONE ? KVS_RESULT_MISSING : KVS_RESULT_DONE;
	}
	os_mutex_unlock(&s->mutex);
	return 0;
}

/* What a get holds: its slot, pinned, and what was known of it then. */
struct reading {
	uint32_t      slot;
	bool          flip; /* a test asked for a wrong byte */
	struct object object;
};

static bool reading_begin(struct slotted *s, const struct kvs_key *key, struct reading *ret_reading)
{
	uint32_t slot;

	os_mutex_lock(&s->mutex);
	slot = index_use_locked(s, key);
	if (slot != SLOT_NONE) {
		s->records[slot].pins++;
		s->get_count++;
		*ret_reading = (struct reading){
			.slot = slot, .object = s->records[slot].object,
			.flip = s->corrupt_every && s->get_count % s->corrupt_every == 0 };
	}
	os_mutex_unlock(&s->mutex);
	return slot != SLOT_NONE;
}

static enum kvs_result read_verified(struct slotted *s, const struct reading *reading,
				     const struct kvs_span *span)
{
	uint8_t *const payload = span->ptr;
	uint64_t       checksum;
	int            rc;

	rc = s->medium->ops->read(s->medium, reading->slot, payload, reading->object.bytes);
	if (rc == -ENODATA)
		return KVS_RESULT_CORRUPT;
	if (rc < 0)
		return KVS_RESULT_FAILED;
	if (reading->flip)
		payload[span->bytes / 2] ^= 1;
	if (!s->verify)
		return KVS_RESULT_DONE;
	checksum = object_checksum(&reading->object.key, payload, reading->object.bytes);
	return checksum == reading->object.checksum ? KVS_RESULT_DONE : KVS_RESULT_CORRUPT;
}

/*
 * Take a pinned object out for good, once: of several readers that find it wrong the first does it.
 */
static int withdraw_pinned(struct slotted *s, uint32_t slot, bool corrupt)
{
	bool first;

	os_mutex_lock(&s->mutex);
	first = s->records[slot].state == SLOT_PRESENT;
	if (first) {
		index_withdraw_locked(s, slot);
		s->corrupt_objects += corrupt;
	}
	os_mutex_unlock(&s->mutex);
	return first ? s->medium->ops->erase(s->medium, slot) : 0;
}

static void unpin(struct slotted *s, uint32_t slot)
{
	os_mutex_lock(&s->mutex);
	index_unpin_locked(s, slot);
	os_mutex_unlock(&s->mutex);
}

/*
 * What fails its check goes.  An object that cannot be erased from the medium fails again after the
 * next open.
 */
static enum kvs_result read_and_judge(struct slotted *s, const struct reading *reading,
				      const struct kvs_span *span)
{
	const enum kvs_result result = read_verified(s, reading, span);

	if (result == KVS_RESULT_CORRUPT)
		(void)withdraw_pinned(s, reading->slot, true);
	return result;
}

/* A caller's wrong length says nothing about the object: it stays. */
static enum kvs_result get_one(struct slotted *s, const struct kvs_key *key,
			       const struct kvs_span *span)
{
	struct reading  reading;
	enum kvs_result result;

	if (!reading_begin(s, key, &reading))
		return KVS_RESULT_MISSING;
	result = span->bytes == reading.object.bytes ? read_and_judge(s, &reading, span)
						     : KVS_RESULT_CORRUPT;
	unpin(s, reading.slot);
	return result;
}

int slotted_get(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		uint32_t count, enum kvs_result *result, bool *ret_retired)
{
	struct slotted *s = slotted_of(store);
	uint32_t        i;

	if (batch_begin(s, span, count, result, ret_retired) < 0)
		return KVS_E_INVALID;
	for (i = 0; i < count; i++)
		result[i] = get_one(s, &key[i], &span[i]);
	return 0;
}

/* RLIMIT_FSIZE and quotas are capacity too. */
static enum kvs_result write_result(int rc)
{
	if (rc == 0)
		return KVS_RESULT_DONE;
	if (rc == -ENOSPC || rc == -EDQUOT || rc == -EFBIG)
		return KVS_RESULT_NO_SPACE;
	return KVS_RESULT_FAILED;
}

static enum kvs_result put_one(struct slotted *s, const struct kvs_key *key,
			       const struct kvs_span *span)
{
	struct object   object = { .key = *key, .bytes = (uint32_t)span->bytes };
	struct claim    claim;
	enum kvs_result result;
	int             rc;

	os_mutex_lock(&s->mutex);
	result = index_claim_locked(s, key, &claim);
	os_mutex_unlock(&s->mutex);
	if (result != KVS_RESULT_DONE)
		return result;

	/*
	 * The evicted header goes first, so that it never names the new bytes; else their checksum
	 * tells.
	 */
	if (claim.evicted)
		(void)s->medium->ops->erase(s->medium, claim.slot);
	object.checksum = object_checksum(key, span->ptr, object.bytes);
	rc = s->medium->ops->write(s->medium, claim.slot, claim.sequence, &object, span->ptr);
	result = write_result(rc);

	os_mutex_lock(&s->mutex);
	if (result == KVS_RESULT_DONE)
		index_publish_locked(s, claim.slot, &object);
	else
		index_abandon_locked(s, claim.slot);
	os_mutex_unlock(&s->mutex);
	return result;
}

int slotted_put(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
		uint32_t count, enum kvs_result *result, bool *ret_retired)
{
	struct slotted *s = slotted_of(store);
	uint32_t        i;

	if (batch_begin(s, span, count, result, ret_retired) < 0)
		return KVS_E_INVALID;
	for (i = 0; i < count; i++)
		result[i] = put_one(s, &key[i], &span[i]);
	return 0;
}

static enum kvs_result remove_one(struct slotted *s, const struct kvs_key *key)
{
	uint32_t slot;
	int      rc;

	os_mutex_lock(&s->mutex);
	slot = index_use_locked(s, key);
	if (slot != SLOT_NONE)
		s->records[slot].pins++;
	os_mutex_unlock(&s->mutex);
	if (slot == SLOT_NONE)
		return KVS_RESULT_MISSING;
	rc = withdraw_pinned(s, slot, false);
	unpin(s, slot);
	return rc < 0 ? KVS_RESULT_FAILED : KVS_RESULT_DONE;
}

int slotted_remove(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		   enum kvs_result *result)
{
	struct slotted *s = slotted_of(store);
	uint32_t        i;

	for (i = 0; i < count; i++)
		result[i] = remove_one(s, &key[i]);
	return 0;
}
