/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefetches: from their submission until their result is here.
 *
 *   FREE --submit--> LOADING --result--> DONE --told--> TOLD --last release--> FREE
 *        \--Host has all that is needed--> DONE          any --cancel, client closed--> FREE
 *
 * Its lock is held through a submission, so that a controller that answers at once waits, and a
 * client that closes finds what it has to end.  Nobody polls the controller: what it tells is a
 * hint, and every look at a prefetch asks for the result.
 */
#include "manager/parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- the table -------------------------------------------------------------------------------- */

int manager_prefetches_open(struct manager *manager, struct kvs_error *err)
{
	const size_t count = manager->options.prefetches, keys = manager->options.prefetch_keys;
	const size_t words = bits_words(keys);
	uint32_t     i;

	manager->prefetches = calloc(count, sizeof(*manager->prefetches));
	manager->keys = calloc(count * keys, sizeof(*manager->keys));
	manager->bytes = calloc(count * keys, sizeof(*manager->bytes));
	manager->spans = calloc(count * keys, sizeof(*manager->spans));
	manager->words = calloc(count * words, sizeof(*manager->words));
	if (!manager->prefetches || !manager->keys || !manager->bytes || !manager->spans ||
	    !manager->words || slots_open(&manager->prefetch_slots, (uint32_t)count) < 0) {
		return err_set(err, -ENOMEM,
			       "prefetches, prefetch_keys: no memory for %zu times %zu keys", count,
			       keys);
	}
	for (i = 0; i < count; i++) {
		struct prefetch *const prefetch = &manager->prefetches[i];

		os_mutex_init(&prefetch->lock);
		os_cond_init(&prefetch->changed);
		prefetch->manager = manager;
		prefetch->keys = manager->keys + i * keys;
		prefetch->bytes = manager->bytes + i * keys;
		prefetch->spans = manager->spans + i * keys;
		prefetch->used = manager->words + i * words;
	}
	return 0;
}

void manager_prefetches_free(struct manager *manager)
{
	uint32_t i;

	for (i = 0; i < manager->prefetch_slots.count; i++) {
		os_cond_fini(&manager->prefetches[i].changed);
		os_mutex_fini(&manager->prefetches[i].lock);
	}
	slots_close(&manager->prefetch_slots);
	free(manager->prefetches);
	free(manager->keys);
	free(manager->bytes);
	free(manager->spans);
	free(manager->words);
}

static struct prefetch *acquire(struct manager *manager, kvs_prefetch *ret_handle)
{
	struct prefetch *prefetch = NULL;
	uint32_t         slot;

	os_mutex_lock(&manager->lock);
	slot = slots_acquire(&manager->prefetch_slots);
	if (slot != SLOT_NONE) {
		prefetch = &manager->prefetches[slot];
		*ret_handle = handle_of(++prefetch->turn, slot);
	}
	os_mutex_unlock(&manager->lock);
	return prefetch;
}

/* Whoever is the last to leave one that has ended gives back what Host keeps for it, and its place. */
void prefetch_leave(struct prefetch *prefetch)
{
	struct manager *const manager = prefetch->manager;

	if (prefetch->taken && prefetch->handle == 0 && prefetch->users == 0) {
		if (prefetch->reader)
			(void)host_client_close(manager->host, prefetch->reader, os_now_ns());
		prefetch->reader = 0;
		prefetch->taken = false;
		os_mutex_lock(&manager->lock);
		slots_release(&manager->prefetch_slots, (uint32_t)(prefetch - manager->prefetches));
		os_mutex_unlock(&manager->lock);
	}
	os_mutex_unlock(&prefetch->lock);
}

/* --- its state -------------------------------------------------------------------------------- */

/* The descriptor is open: its client's close ends this prefetch first, and waits for its lock. */
static void announce(struct prefetch *prefetch)
{
	const uint64_t slot = prefetch->owner & HANDLE_SLOT_MASK;

	os_eventfd_signal(prefetch->manager->clients[slot].fd);
	os_cond_broadcast(&prefetch->changed);
}

/* Each state with those that it comes from. */
void prefetch_become(struct prefetch *prefetch, enum prefetch_state state)
{
	static const unsigned from[] = {
		[PREFETCH_FREE] = 1u << PREFETCH_FREE | 1u << PREFETCH_LOADING | 1u << PREFETCH_DONE |
				  1u << PREFETCH_TOLD,
		[PREFETCH_LOADING] = 1u << PREFETCH_FREE,
		[PREFETCH_DONE] = 1u << PREFETCH_FREE | 1u << PREFETCH_LOADING,
		[PREFETCH_TOLD] = 1u << PREFETCH_DONE,
	};

	KVS_ASSERT(from[state] & 1u << prefetch->state);
	prefetch->state = state;
	if (state == PREFETCH_DONE)
		announce(prefetch);
	else if (state == PREFETCH_FREE)
		os_cond_broadcast(&prefetch->changed);
}

void prefetch_drop(struct prefetch *prefetch)
{
	struct manager *const manager = prefetch->manager;

	if (prefetch->state == PREFETCH_LOADING && !manager->stopped)
		prefetch_ctrl_cancel(manager->prefetch_ctrl, prefetch->request_id);
	prefetch->handle = 0;
	prefetch->owner = 0;
	prefetch_become(prefetch, PREFETCH_FREE);
}

struct prefetch *prefetch_enter(struct manager *manager, kvs_prefetch handle)
{
	const uint64_t         slot = handle & HANDLE_SLOT_MASK;
	struct prefetch *const prefetch = &manager->prefetches[slot];

	if (handle == 0 || slot >= manager->options.prefetches)
		return NULL;
	os_mutex_lock(&prefetch->lock);
	if (prefetch->handle == handle) {
		prefetch_settle(prefetch);
		return prefetch;
	}
	os_mutex_unlock(&prefetch->lock);
	return NULL;
}

void manager_prefetches_end(struct manager *manager, kvs_client owner)
{
	uint32_t i;

	for (i = 0; i < manager->prefetch_slots.count; i++) {
		struct prefetch *const prefetch = &manager->prefetches[i];

		os_mutex_lock(&prefetch->lock);
		if (prefetch->handle && (owner == 0 || prefetch->owner == owner))
			prefetch_drop(prefetch);
		prefetch_leave(prefetch);
	}
}

uint32_t manager_prefetches_count(struct manager *manager)
{
	uint32_t count;

	os_mutex_lock(&manager->lock);
	count = manager->prefetch_slots.busy_count;
	os_mutex_unlock(&manager->lock);
	return count;
}

/* --- its result ------------------------------------------------------------------------------- */

/* Whoever takes the result tells the others: the controller's word comes too late to do so. */
void prefetch_settle(struct prefetch *prefetch)
{
	const struct manager *const manager = prefetch->manager;
	struct prefetch_result      result;

	if (prefetch->state != PREFETCH_LOADING || manager->stopped ||
	    !prefetch_ctrl_take(manager->prefetch_ctrl, prefetch->request_id, &result, prefetch->used))
		return;
	prefetch->boundary = result.boundary;
	prefetch_become(prefetch, PREFETCH_DONE);
}

/* The controller's word, perhaps for a request that this slot had before. */
static void heard(void *arg, uint64_t request_id)
{
	struct prefetch *const prefetch = arg;

	os_mutex_lock(&prefetch->lock);
	if (prefetch->state == PREFETCH_LOADING && prefetch->request_id == request_id)
		prefetch_settle(prefetch);
	os_mutex_unlock(&prefetch->lock);
}

bool prefetch_run(const uint64_t *words, uint32_t key_count, uint32_t *begin, uint32_t *ret_count)
{
	size_t end;

	*begin = (uint32_t)bits_next_set(words, *begin, key_count);
	if (*begin == key_count)
		return false;
	end = bits_next_clear(words, *begin, key_count);
	*ret_count = (uint32_t)(end - *begin < PREFETCH_ROWS ? end - *begin : PREFETCH_ROWS);
	return true;
}

/* --- submission ------------------------------------------------------------------------------- */

static int take_shape(struct prefetch *prefetch, const struct kvs_ask *ask, struct kvs_error *err)
{
	static const uint32_t all = FLAT_ALL;
	const bool            grouped = ask->windows && ask->group_count > 0;
	const int rc = flat_make(grouped ? ask->windows : &all, grouped ? ask->group_count : 1,
				 ask->copies ? ask->copies : 1, &prefetch->flat, err);

	if (rc < 0)
		return rc;
	if (prefetch->key_count % flat_keys(&prefetch->flat) != 0) {
		return err_set(err, KVS_E_INVALID, "count: %u keys are not whole chunks of %u",
			       prefetch->key_count, flat_keys(&prefetch->flat));
	}
	prefetch->chunk_count = prefetch->key_count / flat_keys(&prefetch->flat);
	prefetch->readers = ask->readers ? ask->readers : 1;
	return 0;
}

static int take_bytes(struct prefetch *prefetch, const struct kvs_ask *ask, struct kvs_error *err)
{
	const uint64_t most = prefetch->manager->options.object_bytes;
	const uint64_t same = ask->bytes ? ask->bytes : most;
	uint32_t       i;

	for (i = 0; i < prefetch->key_count; i++) {
		const uint64_t bytes = ask->bytes_each ? ask->bytes_each[i] : same;

		if (bytes == 0 || bytes > most) {
			return err_set(err, KVS_E_INVALID,
				       "ask: key %u of %" PRIu64
				       " bytes; use 1 to object_bytes, %" PRIu64,
				       i, bytes, most);
		}
		prefetch->bytes[i] = bytes;
	}
	return 0;
}

/* Lock what Host has. */
static void lock_found(struct prefetch *prefetch)
{
	struct manager *const manager = prefetch->manager;
	struct kvs_span       spans[PREFETCH_ROWS];
	int                   rc[PREFETCH_ROWS];
	uint32_t              begin, i;

	memset(prefetch->used, 0, bits_words(prefetch->key_count) * sizeof(*prefetch->used));
	for (begin = 0; begin < prefetch->key_count; begin += PREFETCH_ROWS) {
		const uint32_t left = prefetch->key_count - begin;
		const uint32_t count = left < PREFETCH_ROWS ? left : PREFETCH_ROWS;

		if (host_lock(manager->host, prefetch->reader, 1, prefetch->keys + begin, count,
			      prefetch->submit_ns, spans, rc) < 0)
			return;
		for (i = 0; i < count; i++) {
			if (rc[i] == 0)
				bits_set(prefetch->used, begin + i);
		}
	}
}

static void unlock_rows(struct prefetch *prefetch, const uint64_t *words)
{
	uint32_t begin = 0, count;
	int      rc[PREFETCH_ROWS];

	for (; prefetch_run(words, prefetch->key_count, &begin, &count); begin += count) {
		(void)host_unlock(prefetch->manager->host, prefetch->reader, 1,
				  prefetch->keys + begin, count, prefetch->submit_ns, rc);
	}
}

/* Host's own answer; what a restore there does not use is let go of. */
static void finish_at_once(struct prefetch *prefetch, uint32_t boundary)
{
	const size_t words = bits_words(prefetch->key_count);
	uint64_t     keep[KVS_PREFETCH_MAX / 64], rest[KVS_PREFETCH_MAX / 64];
	size_t       i;

	flat_keep(&prefetch->flat, boundary, prefetch->chunk_count, keep);
	for (i = 0; i < words; i++)
		rest[i] = prefetch->used[i] & ~keep[i];
	unlock_rows(prefetch, rest);
	memcpy(prefetch->used, keep, words * sizeof(*keep));
	prefetch->boundary = boundary;
	prefetch_become(prefetch, PREFETCH_DONE);
}

static uint64_t deadline_of(const struct prefetch *prefetch, const struct kvs_ask *ask)
{
	uint64_t timeout_ns = ask->timeout_ns;

	if (timeout_ns == 0)
		timeout_ns = prefetch->manager->options.prefetch_deadline_ns;
	if (timeout_ns == 0 || timeout_ns >= UINT64_MAX - prefetch->submit_ns)
		return UINT64_MAX;
	return prefetch->submit_ns + timeout_ns;
}

static int hand_over(struct prefetch *prefetch, const struct kvs_ask *ask)
{
	const struct prefetch_request request = { .reader = prefetch->reader,
						  .keys = prefetch->keys,
						  .bytes = prefetch->bytes,
						  .chunk_count = prefetch->chunk_count,
						  .flat = &prefetch->flat,
						  .held = prefetch->used,
						  .lock_count = 1,
						  .retain = ask->retain,
						  .deadline_ns = deadline_of(prefetch, ask),
						  .done = heard,
						  .done_arg = prefetch };
	const int rc = prefetch_ctrl_submit(prefetch->manager->prefetch_ctrl, &request,
					    &prefetch->request_id);

	if (rc == 0) {
		prefetch->has_request = true;
		prefetch_become(prefetch, PREFETCH_LOADING);
	}
	return rc;
}

static int start(struct prefetch *prefetch, const struct kvs_ask *ask, struct kvs_error *err)
{
	struct manager *const manager = prefetch->manager;
	uint32_t              boundary;
	int                   rc = host_client_open(manager->host, 0, &prefetch->reader);

	if (rc == 0) {
		lock_found(prefetch);
		prefetch->host_hits = (uint32_t)bits_prefix(prefetch->used, prefetch->key_count);
		boundary = flat_match(&prefetch->flat, prefetch->used, prefetch->chunk_count);
		if (boundary == prefetch->chunk_count || ask->skip_store ||
		    atomic_load(&manager->store_count) == 0)
			finish_at_once(prefetch, boundary);
		else
			rc = hand_over(prefetch, ask);
	}
	return rc < 0 ? err_set(err, rc, "prefetch: %s", kvs_strerror(rc)) : 0;
}

static int submit(struct prefetch *prefetch, kvs_client client, const struct kvs_ask *ask,
		  struct kvs_error *err)
{
	int rc;

	prefetch->taken = true;
	prefetch->owner = client;
	/* A close that did not see the owner took the handle away before. */
	if (!manager_host_client(prefetch->manager, client))
		return err_set(err, KVS_E_STALE, "client: it names no client that is open");
	rc = take_shape(prefetch, ask, err);
	if (rc == 0)
		rc = take_bytes(prefetch, ask, err);
	return rc < 0 ? rc : start(prefetch, ask, err);
}

int manager_submit(struct manager *manager, kvs_client client, const struct kvs_key *keys,
		   uint32_t count, const struct kvs_ask *ask, kvs_prefetch *ret_prefetch,
		   struct kvs_error *err)
{
	static const struct kvs_ask plain;
	kvs_prefetch                handle;
	struct prefetch *const      prefetch = acquire(manager, &handle);
	int                         rc;

	if (!prefetch) {
		return err_set(err, KVS_E_FULL,
			       "prefetches: %u are not yet released, as many as may be",
			       manager->options.prefetches);
	}
	os_mutex_lock(&prefetch->lock);
	prefetch->key_count = count;
	prefetch->has_request = prefetch->has_spans = false;
	prefetch->submit_ns = os_now_ns();
	memcpy(prefetch->keys, keys, count * sizeof(*keys));
	rc = submit(prefetch, client, ask ? ask : &plain, err);
	if (rc == 0)
		*ret_prefetch = prefetch->handle = handle;
	else
		prefetch_drop(prefetch);
	prefetch_leave(prefetch);
	return rc;
}

void manager_prefetches_audit(struct manager *manager)
{
	uint32_t i;

	slots_audit(&manager->prefetch_slots);
	slots_audit(&manager->client_slots);
	for (i = 0; i < manager->prefetch_slots.count; i++) {
		struct prefetch *const prefetch = &manager->prefetches[i];

		os_mutex_lock(&prefetch->lock);
		KVS_ASSERT(prefetch->taken == slots_busy(&manager->prefetch_slots, i));
		KVS_ASSERT((prefetch->handle != 0 || prefetch->users > 0) == (prefetch->reader != 0));
		KVS_ASSERT((prefetch->handle != 0) == (prefetch->state != PREFETCH_FREE));
		KVS_ASSERT_CMP(prefetch->boundary, <=, manager->options.prefetch_keys);
		os_mutex_unlock(&prefetch->lock);
	}
}
