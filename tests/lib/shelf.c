/* SPDX-License-Identifier: Apache-2.0 */
/* See shelf.h. */
#include "shelf.h"

#include <string.h>

#include "base/err.h"
#include "named_block.h"

static struct shelf *enter(struct kvs_store *store)
{
	struct shelf *const shelf = (struct shelf *)store;

	os_mutex_lock(&shelf->lock);
	KVS_ASSERT(!shelf->closed);
	shelf->calls++;
	shelf->inside++;
	os_cond_broadcast(&shelf->moved);
	while (shelf->shut)
		os_cond_wait(&shelf->moved, &shelf->lock, UINT64_MAX);
	shelf->inside--;
	return shelf;
}

/* The lock is the caller's throughout: calls on a shelf are one after another. */
static int leave(struct shelf *shelf, int rc)
{
	os_mutex_unlock(&shelf->lock);
	return rc;
}

static bool any(const struct shelf *shelf, const struct kvs_key *key, uint32_t count,
		enum shelf_fate fate)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		KVS_ASSERT_CMP(key[i].offset, <, SHELF_KEYS);
		if (shelf->fate[key[i].offset] == fate)
			return true;
	}
	return false;
}

static enum kvs_result find(const struct shelf *shelf, const struct kvs_key *key)
{
	if (shelf->fate[key->offset] == SHELF_FAILS)
		return KVS_RESULT_FAILED;
	return shelf->present[key->offset] ? KVS_RESULT_DONE : KVS_RESULT_MISSING;
}

static int shelf_exists(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
			enum kvs_result *result)
{
	struct shelf *const shelf = enter(store);
	uint32_t            i;

	for (i = 0; i < count; i++)
		result[i] = find(shelf, &key[i]);
	return leave(shelf, any(shelf, key, count, SHELF_BREAKS) ? KVS_E_PROTO : 0);
}

static int shelf_lock(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		      enum kvs_result *result)
{
	struct shelf *const shelf = enter(store);
	uint32_t            i;

	if (any(shelf, key, count, SHELF_BREAKS))
		return leave(shelf, KVS_E_PROTO);
	for (i = 0; i < count; i++) {
		result[i] = find(shelf, &key[i]);
		shelf->locks[key[i].offset] += result[i] == KVS_RESULT_DONE;
	}
	return leave(shelf, 0);
}

static void shelf_unlock(struct kvs_store *store, const struct kvs_key *key, uint32_t count)
{
	struct shelf *const shelf = (struct shelf *)store;
	uint32_t            i;

	os_mutex_lock(&shelf->lock);
	for (i = 0; i < count; i++) {
		KVS_ASSERT(shelf->locks[key[i].offset] > 0);
		shelf->locks[key[i].offset]--;
	}
	os_cond_broadcast(&shelf->moved);
	leave(shelf, 0);
}

static enum kvs_result get_one(const struct shelf *shelf, const struct kvs_key *key,
			       const struct kvs_span *span)
{
	const enum kvs_result found = find(shelf, key);

	if (found != KVS_RESULT_DONE)
		return found;
	if (span->bytes != SHELF_BYTES)
		return KVS_RESULT_CORRUPT;
	memcpy(span->ptr, shelf->bytes[key->offset], SHELF_BYTES);
	return KVS_RESULT_DONE;
}

static enum kvs_result put_one(struct shelf *shelf, const struct kvs_key *key,
			       const struct kvs_span *span)
{
	if (shelf->fate[key->offset] == SHELF_FAILS)
		return KVS_RESULT_FAILED;
	if (shelf->present[key->offset])
		return KVS_RESULT_EXISTS;
	if (shelf->fate[key->offset] == SHELF_NO_SPACE)
		return KVS_RESULT_NO_SPACE;
	KVS_ASSERT_CMP(span->bytes, ==, SHELF_BYTES);
	memcpy(shelf->bytes[key->offset], span->ptr, SHELF_BYTES);
	shelf->present[key->offset] = true;
	return KVS_RESULT_DONE;
}

static int move(struct kvs_store *store, bool put, const struct kvs_key *key,
		const struct kvs_span *span, uint32_t count, enum kvs_result *result,
		bool *ret_retired)
{
	struct shelf *const shelf = enter(store);
	uint32_t            i;

	*ret_retired = !any(shelf, key, count, SHELF_CLINGS);
	if (any(shelf, key, count, SHELF_BREAKS))
		return leave(shelf, KVS_E_PROTO);
	for (i = 0; i < count; i++) {
		if (shelf->fate[key[i].offset] == SHELF_CLINGS)
			result[i] = KVS_RESULT_FAILED;
		else
			result[i] = put ? put_one(shelf, &key[i], &span[i]) :
					  get_one(shelf, &key[i], &span[i]);
	}
	return leave(shelf, 0);
}

static int shelf_get(struct kvs_store *store, const struct kvs_key *key,
		     const struct kvs_span *span, uint32_t count, enum kvs_result *result,
		     bool *ret_retired)
{
	return move(store, false, key, span, count, result, ret_retired);
}

static int shelf_put(struct kvs_store *store, const struct kvs_key *key,
		     const struct kvs_span *span, uint32_t count, enum kvs_result *result,
		     bool *ret_retired)
{
	return move(store, true, key, span, count, result, ret_retired);
}

static void shelf_describe(struct kvs_store *store, struct kvs_store_info *ret_info)
{
	*ret_info = (struct kvs_store_info){ .failures_retire = true,
					     .locks = store->ops->lock != NULL };
}

static int shelf_close(struct kvs_store *store)
{
	struct shelf *const shelf = enter(store);

	shelf->closed = true;
	return leave(shelf, 0);
}

#define SHELF_CALLS \
	.abi = KVS_STORE_ABI, .name = "shelf", .close = shelf_close, .describe = shelf_describe, \
	.exists = shelf_exists, .get = shelf_get, .put = shelf_put

static const struct kvs_store_ops counted_ops = { SHELF_CALLS };
static const struct kvs_store_ops locking_ops = { SHELF_CALLS,
						  .lock = shelf_lock,
						  .unlock = shelf_unlock };

void shelf_init(struct shelf *shelf, bool locks)
{
	memset(shelf, 0, sizeof(*shelf));
	shelf->store.ops = locks ? &locking_ops : &counted_ops;
	os_mutex_init(&shelf->lock);
	os_cond_init(&shelf->moved);
}

void shelf_fini(struct shelf *shelf)
{
	os_cond_fini(&shelf->moved);
	os_mutex_fini(&shelf->lock);
}

void shelf_place(struct shelf *shelf, uint32_t number)
{
	uint64_t words[SHELF_BYTES / 8];

	fill(words, number, SHELF_BYTES);
	os_mutex_lock(&shelf->lock);
	memcpy(shelf->bytes[number], words, SHELF_BYTES);
	shelf->present[number] = true;
	os_mutex_unlock(&shelf->lock);
}

static void set_gate(struct shelf *shelf, bool shut)
{
	os_mutex_lock(&shelf->lock);
	shelf->shut = shut;
	os_cond_broadcast(&shelf->moved);
	os_mutex_unlock(&shelf->lock);
}

void shelf_shut(struct shelf *shelf)
{
	set_gate(shelf, true);
}

void shelf_open(struct shelf *shelf)
{
	set_gate(shelf, false);
}

void shelf_wait_inside(struct shelf *shelf, uint32_t count)
{
	os_mutex_lock(&shelf->lock);
	while (shelf->inside < count)
		os_cond_wait(&shelf->moved, &shelf->lock, UINT64_MAX);
	os_mutex_unlock(&shelf->lock);
}

uint64_t shelf_locked(struct shelf *shelf)
{
	uint64_t sum = 0;
	uint32_t i;

	os_mutex_lock(&shelf->lock);
	for (i = 0; i < SHELF_KEYS; i++)
		sum += shelf->locks[i];
	os_mutex_unlock(&shelf->lock);
	return sum;
}
