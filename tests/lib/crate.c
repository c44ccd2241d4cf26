/* SPDX-License-Identifier: Apache-2.0 */
/* See crate.h. */
#include "crate.h"

#include <string.h>

#include "base/err.h"
#include "named_block.h"

static struct crate *enter(struct kvs_store *store, bool moves)
{
	struct crate *const crate = (struct crate *)store;

	os_mutex_lock(&crate->lock);
	KVS_ASSERT(!crate->closed);
	crate->calls++;
	crate->inside++;
	os_cond_broadcast(&crate->moved);
	while (crate->shut || (moves && crate->shut_moves))
		os_cond_wait(&crate->moved, &crate->lock, UINT64_MAX);
	crate->inside--;
	return crate;
}

/* The lock is the caller's throughout: calls on a crate are one after another. */
static int leave(struct crate *crate, int rc)
{
	os_mutex_unlock(&crate->lock);
	return rc;
}

static bool any(const struct crate *crate, const struct kvs_key *key, uint32_t count,
		enum crate_fate fate)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		KVS_ASSERT_CMP(key[i].offset, <, CRATE_KEYS);
		if (crate->fate[key[i].offset] == fate)
			return true;
	}
	return false;
}

static enum kvs_result find(const struct crate *crate, const struct kvs_key *key)
{
	if (crate->fate[key->offset] == CRATE_FAILS)
		return KVS_RESULT_FAILED;
	return crate->present[key->offset] ? KVS_RESULT_DONE : KVS_RESULT_MISSING;
}

static int crate_exists(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
			enum kvs_result *result)
{
	struct crate *const crate = enter(store, false);
	uint32_t            i;

	for (i = 0; i < count; i++)
		result[i] = find(crate, &key[i]);
	return leave(crate, any(crate, key, count, CRATE_BREAKS) ? KVS_E_PROTO : 0);
}

static int crate_lock(struct kvs_store *store, const struct kvs_key *key, uint32_t count,
		      enum kvs_result *result)
{
	struct crate *const crate = enter(store, false);
	uint32_t            i;

	if (any(crate, key, count, CRATE_BREAKS))
		return leave(crate, KVS_E_PROTO);
	for (i = 0; i < count; i++) {
		result[i] = find(crate, &key[i]);
		crate->locks[key[i].offset] += result[i] == KVS_RESULT_DONE;
	}
	return leave(crate, 0);
}

static void crate_unlock(struct kvs_store *store, const struct kvs_key *key, uint32_t count)
{
	struct crate *const crate = (struct crate *)store;
	uint32_t            i;

	os_mutex_lock(&crate->lock);
	for (i = 0; i < count; i++) {
		KVS_ASSERT(crate->locks[key[i].offset] > 0);
		crate->locks[key[i].offset]--;
	}
	os_cond_broadcast(&crate->moved);
	leave(crate, 0);
}

static enum kvs_result get_one(const struct crate *crate, const struct kvs_key *key,
			       const struct kvs_span *span)
{
	const enum kvs_result found = find(crate, key);

	if (found != KVS_RESULT_DONE)
		return found;
	if (span->bytes != CRATE_BYTES)
		return KVS_RESULT_CORRUPT;
	memcpy(span->ptr, crate->bytes[key->offset], CRATE_BYTES);
	return KVS_RESULT_DONE;
}

static enum kvs_result put_one(struct crate *crate, const struct kvs_key *key,
			       const struct kvs_span *span)
{
	if (crate->fate[key->offset] == CRATE_FAILS)
		return KVS_RESULT_FAILED;
	if (crate->present[key->offset])
		return KVS_RESULT_EXISTS;
	if (crate->fate[key->offset] == CRATE_NO_SPACE)
		return KVS_RESULT_NO_SPACE;
	KVS_ASSERT_CMP(span->bytes, ==, CRATE_BYTES);
	memcpy(crate->bytes[key->offset], span->ptr, CRATE_BYTES);
	crate->present[key->offset] = true;
	return KVS_RESULT_DONE;
}

static int move(struct kvs_store *store, bool put, const struct kvs_key *key,
		const struct kvs_span *span, uint32_t count, enum kvs_result *result,
		bool *ret_retired)
{
	struct crate *const crate = enter(store, true);
	uint32_t            i;

	*ret_retired = !any(crate, key, count, CRATE_CLINGS);
	if (any(crate, key, count, CRATE_BREAKS))
		return leave(crate, KVS_E_PROTO);
	for (i = 0; i < count; i++) {
		if (crate->fate[key[i].offset] == CRATE_CLINGS) {
			result[i] = KVS_RESULT_FAILED;
		} else {
			result[i] = put ? put_one(crate, &key[i], &span[i]) :
					  get_one(crate, &key[i], &span[i]);
		}
	}
	return leave(crate, 0);
}

static int crate_get(struct kvs_store *store, const struct kvs_key *key,
		     const struct kvs_span *span, uint32_t count, enum kvs_result *result,
		     bool *ret_retired)
{
	return move(store, false, key, span, count, result, ret_retired);
}

static int crate_put(struct kvs_store *store, const struct kvs_key *key,
		     const struct kvs_span *span, uint32_t count, enum kvs_result *result,
		     bool *ret_retired)
{
	return move(store, true, key, span, count, result, ret_retired);
}

static void crate_describe(struct kvs_store *store, struct kvs_store_info *ret_info)
{
	*ret_info = (struct kvs_store_info){ .failures_retire = true,
					     .locks = store->ops->lock != NULL };
}

static int crate_close(struct kvs_store *store)
{
	struct crate *const crate = enter(store, false);

	crate->closed = true;
	return leave(crate, 0);
}

#define CRATE_CALLS \
	.abi = KVS_STORE_ABI, .name = "crate", .close = crate_close, .describe = crate_describe, \
	.exists = crate_exists, .get = crate_get, .put = crate_put

static const struct kvs_store_ops counted_ops = { CRATE_CALLS };
static const struct kvs_store_ops locking_ops = { CRATE_CALLS,
						  .lock = crate_lock,
						  .unlock = crate_unlock };

void crate_init(struct crate *crate, bool locks)
{
	memset(crate, 0, sizeof(*crate));
	crate->store.ops = locks ? &locking_ops : &counted_ops;
	os_mutex_init(&crate->lock);
	os_cond_init(&crate->moved);
}

void crate_fini(struct crate *crate)
{
	os_cond_fini(&crate->moved);
	os_mutex_fini(&crate->lock);
}

void crate_place(struct crate *crate, uint32_t number)
{
	uint64_t words[CRATE_BYTES / 8];

	fill(words, number, CRATE_BYTES);
	os_mutex_lock(&crate->lock);
	memcpy(crate->bytes[number], words, CRATE_BYTES);
	crate->present[number] = true;
	os_mutex_unlock(&crate->lock);
}

static void set_gate(struct crate *crate, bool shut, bool shut_moves)
{
	os_mutex_lock(&crate->lock);
	crate->shut = shut;
	crate->shut_moves = shut_moves;
	os_cond_broadcast(&crate->moved);
	os_mutex_unlock(&crate->lock);
}

void crate_shut(struct crate *crate)
{
	set_gate(crate, true, true);
}

void crate_shut_moves(struct crate *crate)
{
	set_gate(crate, false, true);
}

void crate_open(struct crate *crate)
{
	set_gate(crate, false, false);
}

void crate_wait_inside(struct crate *crate, uint32_t count)
{
	os_mutex_lock(&crate->lock);
	while (crate->inside < count)
		os_cond_wait(&crate->moved, &crate->lock, UINT64_MAX);
	os_mutex_unlock(&crate->lock);
}

uint64_t crate_locked(struct crate *crate)
{
	uint64_t sum = 0;
	uint32_t i;

	os_mutex_lock(&crate->lock);
	for (i = 0; i < CRATE_KEYS; i++)
		sum += crate->locks[i];
	os_mutex_unlock(&crate->lock);
	return sum;
}
