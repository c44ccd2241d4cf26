/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches, with pread and pwrite: the reference for what lanes do with io_uring, and all there is
 * where the kernel has none.  I/O is synchronous: when a call returns, no span is touched any more.
 */
#include <errno.h>
#include <string.h>

#include "strata/core.h"

/* A put waits for a place no longer than this before it looks again: a hint may be lost. */
#define PLACE_WAIT_NS UINT64_C(10000000)

/* A lane whose ring failed never ends its writes: then the put is refused. */
#define PLACE_WAIT_MAX_NS UINT64_C(10000000000)

/* Puts that are written together: one page of headers, one sync. */
#define GROUP_MAX HEADER_RECORDS

static int batch_begin(const struct strata *s, const struct kvs_span *span, uint32_t count,
		       enum kvs_result *result, bool *ret_retired)
{
	uint32_t i;

	*ret_retired = true;
	for (i = 0; i < count; i++)
		result[i] = KVS_RESULT_UNKNOWN;
	for (i = 0; i < count; i++) {
		if (!span_fits(s, &span[i]))
			return KVS_E_INVALID;
	}
	return 0;
}

/* --- get -------------------------------------------------------------------------------------- */

enum kvs_result get_now(struct strata *s, const struct kvs_key *key, const struct kvs_span *span)
{
	struct reading        reading;
	const enum kvs_result begun = get_begin(s, key, span->bytes, &reading);

	if (begun != KVS_RESULT_DONE)
		return begun;
	return get_end(s, &reading, span->ptr,
		       os_file_read(s->fd, span->ptr, span->bytes, page_offset(reading.page)));
}

int strata_get(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
	       uint32_t count, enum kvs_result *result, bool *ret_retired)
{
	struct strata *const s = strata_of(store);
	uint32_t             i;

	if (batch_begin(s, span, count, result, ret_retired) < 0)
		return KVS_E_INVALID;
	for (i = 0; i < count; i++)
		result[i] = get_now(s, &key[i], &span[i]);
	return 0;
}

/* --- put -------------------------------------------------------------------------------------- */

/* A put whose write is over, however it ended, but which is not there yet. */
struct pending {
	struct writing  writing;
	enum kvs_result result; /* DONE: put_end() is due, with rc */
	int             rc;
};

struct batch {
	struct group   group;
	struct header *header;
	struct pending puts[GROUP_MAX];
	uint32_t       count;
};

/* Others hold what this one waits for, and give it back when their writes end. */
static int place_waiting(struct strata *s, const void *payload, struct batch *batch,
			 struct writing *writing)
{
	const uint64_t until_ns = os_until_ns(PLACE_WAIT_MAX_NS);
	int            rc;

	while ((rc = put_place(s, payload, &batch->group, batch->header, writing)) == -EAGAIN &&
	       batch->count == 0) {
		const bool late = os_now_ns() >= until_ns;

		os_mutex_lock(&s->lock);
		if (late)
			s->counts.refused_full++;
		else
			(void)os_cond_wait(&s->written, &s->lock, PLACE_WAIT_NS);
		os_mutex_unlock(&s->lock);
		if (late)
			return KVS_E_FULL;
	}
	return rc;
}

/*
 * False: not in this batch; nothing came of it.  Only the first may wait for a place: the others are
 * what a segment waits for that this one waits for.
 */
static bool put_write(struct strata *s, const struct kvs_key *key, const struct kvs_span *span,
		      struct batch *batch)
{
	struct pending *const put = &batch->puts[batch->count];
	struct writing *const writing = &put->writing;
	int                   placed;

	put->result = put_begin(s, key, span->bytes, writing);
	if (put->result != KVS_RESULT_DONE) {
		batch->count++;
		return true;
	}
	placed = place_waiting(s, span->ptr, batch, writing);
	if (placed == 0) {
		put->rc = os_file_write(s->fd, span->ptr, span->bytes,
					payload_offset(s, &writing->record));
	} else {
		put_drop(s, writing);
		put->result = write_result(placed);
	}
	if (placed == PUT_NEW_GROUP || placed == -EAGAIN)
		return false;
	batch->count++;
	return true;
}

/* The headers of what was placed, and the sync that is promised. */
static int put_headers(struct strata *s, const struct batch *batch)
{
	int rc;

	if (batch->group.count == 0)
		return 0;
	header_seal(batch->header);
	rc = os_file_write(s->fd, batch->header, sizeof(*batch->header),
			   header_offset(s, &batch->group));
#ifndef KVS_MUTANT_NO_PUT_SYNC /* Planted bug: acknowledges what the device may lose. */
	if (rc == 0 && s->set.durability == STRATA_PUT) {
		rc = os_file_sync(s->fd);
		if (rc < 0)
			sync_failed(s);
	}
#endif
	return rc;
}

/* As many as find a place together; how many. */
static uint32_t put_group(struct strata *s, const struct kvs_key *key, const struct kvs_span *span,
			  uint32_t count, enum kvs_result *result)
{
	_Alignas(STRATA_PAGE) struct header header;
	struct batch batch = { .header = &header };
	uint32_t     i;
	int          rc;

	while (batch.count < count && batch.count < GROUP_MAX &&
	       put_write(s, &key[batch.count], &span[batch.count], &batch))
		continue;
	rc = put_headers(s, &batch);
	for (i = 0; i < batch.count; i++) {
		const struct pending *const put = &batch.puts[i];

		result[i] = put->result;
		if (put->result == KVS_RESULT_DONE)
			result[i] = put_end(s, &put->writing, put->rc < 0 ? put->rc : rc);
	}
	return batch.count;
}

int strata_put(struct kvs_store *store, const struct kvs_key *key, const struct kvs_span *span,
	       uint32_t count, enum kvs_result *result, bool *ret_retired)
{
	struct strata *const s = strata_of(store);
	uint32_t             i = 0;

	if (batch_begin(s, span, count, result, ret_retired) < 0)
		return KVS_E_INVALID;
	while (i < count)
		i += put_group(s, key + i, span + i, count - i, result + i);
	return 0;
}

/* --- what touches no payload ------------------------------------------------------------------ */

static int look(struct strata *s, const struct kvs_key *key, uint32_t count,
		enum kvs_result *result, bool lock)
{
	uint32_t i;

	os_mutex_lock(&s->lock);
	for (i = 0; i < count; i++) {
		const uint32_t number = catalog_use(&s->catalog, key_print(s->hash, &key[i]));
		struct entry  *entry;

		result[i] = number == SLOT_NONE ? KVS_RESULT_MISSING : KVS_RESULT_DONE;
		if (number == SLOT_NONE || !lock)
			continue;
		entry = &s->catalog.entries[number];
		if (entry->locks++ == 0)
			space_lock(&s->space, space_segment_of(&s->space, entry->page), entry->pages);
		KVS_ASSERT_CMP(entry->locks, >, 0);
	}
	os_mutex_unlock(&s->lock);
	return 0;
}

int strata_exists(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		  enum kvs_result *result)
{
	return look(strata_of(store), key, count, result, false);
}

int strata_lock(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		enum kvs_result *result)
{
	return look(strata_of(store), key, count, result, true);
}

void strata_unlock(struct kvs_store *store, const struct kvs_key *key, uint32_t count)
{
	struct strata *const s = strata_of(store);
	uint32_t             i;

	os_mutex_lock(&s->lock);
	for (i = 0; i < count; i++) {
		const uint32_t number = catalog_find(&s->catalog, key_print(s->hash, &key[i]));
		struct entry  *entry;

		if (number == SLOT_NONE || s->catalog.entries[number].locks == 0)
			continue;
		entry = &s->catalog.entries[number];
		if (--entry->locks == 0) {
			space_unlock(&s->space, space_segment_of(&s->space, entry->page),
				     entry->pages);
		}
	}
	os_mutex_unlock(&s->lock);
}

/* What cannot be marked on disk would be back at the next open: then it failed. */
int strata_remove(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		  enum kvs_result *result)
{
	struct strata *const s = strata_of(store);
	bool                 any = false;
	const uint64_t       failed_before = syncs_failed(s);
	uint32_t             i;
	int                  rc;

	os_mutex_lock(&s->lock);
	for (i = 0; i < count; i++) {
		const uint32_t number = s->set.read_only
						? SLOT_NONE
						: catalog_use(&s->catalog, key_print(s->hash, &key[i]));

		result[i] = number == SLOT_NONE ? KVS_RESULT_MISSING : KVS_RESULT_DONE;
		if (number != SLOT_NONE)
			entry_kill(s, number);
		any = any || number != SLOT_NONE;
	}
	os_mutex_unlock(&s->lock);
	rc = any ? tallies_write(s) : 0;
#ifdef KVS_MUTANT_NO_REMOVE_SYNC /* Planted bug: acknowledges a removal that may be undone. */
	any = false;
#endif
	if (rc == 0 && any)
		rc = promise_sync(s, failed_before);
	for (i = 0; rc < 0 && i < count; i++) {
		if (result[i] == KVS_RESULT_DONE)
			result[i] = KVS_RESULT_FAILED;
	}
	return 0;
}
