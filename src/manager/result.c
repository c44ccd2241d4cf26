/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetches: from their result until the last reader has released. */
#include "manager/parts.h"

#include <errno.h>
#include <string.h>

/* A hint that got lost costs a waiter so long. */
#define LOOK_NS UINT64_C(1000000000)

int manager_info(struct manager *manager, kvs_prefetch handle, struct kvs_prefetch_info *ret_info)
{
	struct prefetch *const prefetch = prefetch_enter(manager, handle);

	if (!prefetch)
		return KVS_E_STALE;
	*ret_info = (struct kvs_prefetch_info){
		.request_id = prefetch->has_request ? (int64_t)prefetch->request_id : -1,
		.host_hits = prefetch->host_hits,
		.key_count = prefetch->key_count,
		.submit_ns = prefetch->submit_ns,
		.done = prefetch->state != PREFETCH_LOADING
	};
	prefetch_leave(prefetch);
	return 0;
}

static int told(struct prefetch *prefetch, uint32_t *ret_chunks)
{
	if (prefetch->state == PREFETCH_LOADING)
		return -EAGAIN;
	if (prefetch->state == PREFETCH_TOLD)
		return KVS_E_STALE;
	*ret_chunks = prefetch->boundary;
	prefetch_become(prefetch, PREFETCH_TOLD);
	return 0;
}

int manager_poll(struct manager *manager, kvs_prefetch handle, uint32_t *ret_chunks)
{
	struct prefetch *const prefetch = prefetch_enter(manager, handle);
	int                    rc;

	if (!prefetch)
		return KVS_E_STALE;
	rc = told(prefetch, ret_chunks);
	prefetch_leave(prefetch);
	return rc;
}

int manager_wait(struct manager *manager, kvs_prefetch handle, uint64_t timeout_ns,
		 uint32_t *ret_chunks)
{
	const uint64_t         deadline_ns = os_until_ns(timeout_ns);
	struct prefetch *const prefetch = prefetch_enter(manager, handle);
	int                    rc;

	if (!prefetch)
		return KVS_E_STALE;
	/* The lock is gone while this waits, and with it perhaps the prefetch. */
	while (prefetch->handle == handle && prefetch->state == PREFETCH_LOADING) {
		const uint64_t left_ns = until(deadline_ns);

		if (left_ns == 0)
			break;
		(void)os_cond_wait(&prefetch->changed, &prefetch->lock,
				   left_ns < LOOK_NS ? left_ns : LOOK_NS);
		if (prefetch->handle == handle)
			prefetch_settle(prefetch);
	}
	rc = prefetch->handle == handle ? told(prefetch, ret_chunks) : KVS_E_STALE;
	prefetch_leave(prefetch);
	return rc == -EAGAIN ? -ETIMEDOUT : rc;
}

/* --- spans ------------------------------------------------------------------------------------ */

/*
 * Host knows where they are as long as the reader's locks hold; written once, so that users need no
 * lock.
 */
static int look_at_spans(struct prefetch *prefetch)
{
	const uint32_t  key_count = prefetch->boundary * flat_keys(&prefetch->flat);
	const uint64_t  now_ns = os_now_ns();
	struct kvs_span spans[PREFETCH_ROWS];
	int             rc[PREFETCH_ROWS];
	uint32_t        begin = 0, count, i;

	if (!prefetch->has_spans)
		memset(prefetch->spans, 0, key_count * sizeof(*prefetch->spans));
	for (; prefetch_run(prefetch->used, key_count, &begin, &count); begin += count) {
		if (host_spans(prefetch->manager->host, prefetch->reader, prefetch->keys + begin,
			       count, now_ns, spans, rc) < 0)
			return KVS_E_MISSING;
		for (i = 0; i < count; i++) {
			if (rc[i] < 0)
				return KVS_E_MISSING;
		}
		if (!prefetch->has_spans)
			memcpy(prefetch->spans + begin, spans, count * sizeof(*spans));
	}
	prefetch->has_spans = true;
	return 0;
}

static int spans_of(struct prefetch *prefetch, uint32_t span_max, uint32_t *ret_count)
{
	if (prefetch->state == PREFETCH_LOADING)
		return -EAGAIN;
	*ret_count = prefetch->boundary * flat_keys(&prefetch->flat);
	return *ret_count > span_max ? KVS_E_FULL : look_at_spans(prefetch);
}

int manager_spans(struct manager *manager, kvs_prefetch handle, struct kvs_span *ret_spans,
		  uint32_t span_max, uint32_t *ret_count)
{
	struct prefetch *const prefetch = prefetch_enter(manager, handle);
	int                    rc;

	if (!prefetch)
		return KVS_E_STALE;
	rc = spans_of(prefetch, span_max, ret_count);
	if (rc == 0 && *ret_count > 0)
		memcpy(ret_spans, prefetch->spans, *ret_count * sizeof(*ret_spans));
	prefetch_leave(prefetch);
	return rc;
}

/* --- release ---------------------------------------------------------------------------------- */

static void touch_used(const struct prefetch *prefetch)
{
	uint32_t begin = 0, count;

	for (; prefetch_run(prefetch->used, prefetch->key_count, &begin, &count); begin += count)
		(void)host_touch(prefetch->manager->host, prefetch->keys + begin, count);
}

/* One reader less. */
static void release(struct prefetch *prefetch)
{
	if (prefetch->state != PREFETCH_LOADING && --prefetch->readers > 0)
		return;
	if (prefetch->state != PREFETCH_LOADING)
		touch_used(prefetch);
	prefetch_drop(prefetch);
}

int manager_release(struct manager *manager, kvs_prefetch handle)
{
	struct prefetch *const prefetch = prefetch_enter(manager, handle);

	if (!prefetch)
		return KVS_E_STALE;
	release(prefetch);
	prefetch_leave(prefetch);
	return 0;
}

/* The spans, and the locks on what they name, stay while there are users, even when the prefetch ends. */
static int use_spans(struct prefetch *prefetch, uint32_t count,
		     int (*use)(void *arg, const struct kvs_span *spans, uint32_t count), void *arg)
{
	int rc;

	prefetch->users++;
	os_mutex_unlock(&prefetch->lock);
	rc = use(arg, prefetch->spans, count);
	os_mutex_lock(&prefetch->lock);
	prefetch->users--;
	return rc;
}

int manager_read(struct manager *manager, kvs_prefetch                                      handle,
		 int (*use)(void *arg, const struct kvs_span *spans, uint32_t count), void *arg)
{
	struct prefetch *const prefetch = prefetch_enter(manager, handle);
	uint32_t               count = 0;
	int                    rc;

	if (!prefetch)
		return KVS_E_STALE;
	rc = spans_of(prefetch, UINT32_MAX, &count);
	if (rc == 0 && count > 0)
		rc = use_spans(prefetch, count, use, arg);
	else if (rc == -EAGAIN) {
		prefetch_leave(prefetch);
		return rc;
	}
	if (prefetch->handle == handle)
		release(prefetch);
	prefetch_leave(prefetch);
	return rc;
}
