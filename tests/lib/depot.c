/* SPDX-License-Identifier: Apache-2.0 */
/* See depot.h. */
#include "depot.h"

#include <stdlib.h>
#include <string.h>

#include "named_block.h"

#define FOREVER_NS (UINT64_C(1) << 62)
#define WRITE_TAG 0u
#define LOOK_AGAIN_NS 500000
#define IN_FLIGHT 8u

static const struct adapter_options adapter_options = {
	/* A store that failed may be asked again at once: no test waits for a cooldown. */
	.exec = { .limits = { .outstanding_max = 256, .queue_max = 256, .lock_max = 4096,
			      .cooldown_min_ns = 1, .cooldown_max_ns = 1 },
		  .workers = { 1, 2, 2 } },
	.op_max = { 64, 64, 64 }
};

/* --- listening -------------------------------------------------------------------------------- */

static void done(void *arg, uint64_t request_id)
{
	struct depot *const depot = arg;

	os_mutex_lock(&depot->lock);
	KVS_ASSERT_CMP(depot->done_count, <, DEPOT_HEARD_MAX);
	depot->done[depot->done_count++] = request_id;
	os_cond_broadcast(&depot->moved);
	os_mutex_unlock(&depot->lock);
}

/* With the lock: until something moved, but not for ever. */
static void wait_moved(struct depot *depot, const char *what, uint64_t since_ns)
{
	if (os_now_ns() - since_ns > DEPOT_WAIT_NS)
		KVS_PANIC("waited in vain: %s", what);
	os_cond_wait(&depot->moved, &depot->lock, DEPOT_WAIT_NS);
}

uint64_t depot_late(void)
{
	return os_now_ns() + DEPOT_WAIT_NS;
}

/* --- open to close ---------------------------------------------------------------------------- */

void depot_init(struct depot *depot)
{
	*depot = (struct depot){ .crate_count = 2, .pages = 1024 };
	KVS_ASSERT(store_policy_find("default", &depot->store_policy, NULL) == 0);
	KVS_ASSERT(prefetch_policy_find("default", &depot->prefetch_policy, NULL) == 0);
	depot->store_limits = (struct ctrl_limits){ .in_flight_max = IN_FLIGHT,
						    .queue_max = 4096 };
	depot->prefetch_limits = (struct ctrl_limits){ .in_flight_max = IN_FLIGHT,
						       .queue_max = 64,
						       .request_keys = DEPOT_REQUEST_KEYS };
}

static void open_host(struct depot *depot)
{
	struct host_options options = { .fields = &depot->field,
					.field_count = 1,
					.object_max = 1024,
					.lock_max = 1024,
					.client_max = 8,
					.shard_count = 4,
					.policy = "lru",
					.write_ttl_ns = FOREVER_NS,
					.read_ttl_ns = FOREVER_NS,
					.high = 1,
					.low = 0.5 };
	struct kvs_error    err;
	const size_t        bytes = (size_t)depot->pages * DEPOT_PAGE;

	depot->memory = aligned_alloc(DEPOT_PAGE, bytes);
	KVS_ASSERT(depot->memory);
	memset(depot->memory, 0, bytes);
	depot->field = (struct kvs_span){ .ptr = depot->memory, .bytes = bytes };
	if (depot->store)
		options.listeners[options.listener_count++] = store_ctrl_listener(depot->store);
	if (host_open(&options, &depot->host, &err) < 0)
		KVS_PANIC("%s", err.message);
	KVS_ASSERT(host_client_open(depot->host, 0, &depot->client) == 0);
}

static void open_adapters(struct depot *depot)
{
	uint32_t n;

	for (n = 0; n < DEPOT_CRATES; n++) {
		crate_init(&depot->crates[n], true);
		if (!depot->stores[n])
			depot->stores[n] = &depot->crates[n].store;
		KVS_ASSERT(adapter_open(depot->stores[n], &adapter_options, &depot->adapters[n], NULL) ==
			   0);
	}
	for (n = 0; n < depot->crate_count; n++) {
		if (depot->store)
			KVS_ASSERT(store_ctrl_attach(depot->store, n, depot->adapters[n], "crate") == 0);
		if (depot->prefetch) {
			KVS_ASSERT(prefetch_ctrl_attach(depot->prefetch, n, depot->adapters[n],
							"crate") == 0);
		}
	}
}

void depot_open(struct depot *depot)
{
	os_mutex_init(&depot->lock);
	os_cond_init(&depot->moved);
	if (depot->store_policy) {
		KVS_ASSERT(store_ctrl_open(depot->store_policy, &depot->store_limits, &depot->store,
					   NULL) == 0);
	}
	open_host(depot);
	if (depot->store)
		KVS_ASSERT(store_ctrl_start(depot->store, depot->host) == 0);
	if (depot->prefetch_policy) {
		KVS_ASSERT(prefetch_ctrl_open(depot->host, depot->prefetch_policy,
					      &depot->prefetch_limits, &depot->prefetch, NULL) == 0);
	}
	open_adapters(depot);
}

static void close_adapters(struct depot *depot)
{
	uint32_t n;

	KVS_ASSERT(depot_stores_unlocked(depot));
	for (n = 0; n < DEPOT_CRATES; n++) {
		KVS_ASSERT(adapter_close(depot->adapters[n], DEPOT_WAIT_NS) == 0);
		KVS_ASSERT_CMP(crate_locked(&depot->crates[n]), ==, 0);
		crate_fini(&depot->crates[n]);
	}
}

/* The invariant locks-home: nothing is left that its owner did not give back. */
static void close_host(struct depot *depot)
{
	struct host_usage usage = depot_usage(depot);

	host_audit(depot->host);
	KVS_ASSERT_CMP(usage.locks, ==, 0);
	KVS_ASSERT_CMP(usage.pins, ==, 0);
	KVS_ASSERT_CMP(usage.staged, ==, 0);
	KVS_ASSERT_CMP(usage.doomed, ==, 0);
	KVS_ASSERT_CMP(usage.temporary, ==, 0);
	KVS_ASSERT(host_client_close(depot->host, depot->client, os_now_ns()) == 0);
	host_close(depot->host);
	free(depot->memory);
}

void depot_close(struct depot *depot)
{
	uint32_t n;

	for (n = 0; n < DEPOT_CRATES; n++)
		crate_open(&depot->crates[n]);
	KVS_ASSERT(prefetch_ctrl_close(depot->prefetch, depot_late()) == 0);
	KVS_ASSERT(store_ctrl_close(depot->store, depot_late()) == 0);
	close_adapters(depot);
	close_host(depot);
	os_cond_fini(&depot->moved);
	os_mutex_fini(&depot->lock);
}

/* --- the Host --------------------------------------------------------------------------------- */

struct kvs_key depot_key(uint32_t number)
{
	return key_of(number);
}

static void write_key(struct depot *depot, const struct kvs_key *key, uint64_t bytes)
{
	const struct host_writer writer = { depot->client, WRITE_TAG };
	struct kvs_span          span;
	int                      rc;

	KVS_ASSERT(host_reserve(depot->host, writer, key, &bytes, 1, 0, os_now_ns(), &span, &rc) == 0);
	KVS_ASSERT_CMP(rc, ==, 0);
	fill(span.ptr, key->offset, (uint32_t)bytes);
	KVS_ASSERT(host_finish(depot->host, writer, key, 1, os_now_ns(), &rc) == 0);
	KVS_ASSERT_CMP(rc, ==, 0);
}

void depot_write_as(struct depot *depot, uint32_t number, uint32_t group, uint64_t bytes)
{
	struct kvs_key key = key_of(number);

	key.group = (uint16_t)group;
	write_key(depot, &key, bytes);
}

void depot_write(struct depot *depot, uint32_t from, uint32_t count)
{
	const struct host_writer writer = { depot->client, WRITE_TAG };
	struct kvs_key           keys[512];
	uint64_t                 bytes[512];
	struct kvs_span          spans[512];
	int                      rc[512];
	uint32_t                 i;

	KVS_ASSERT_CMP(count, <=, 512);
	for (i = 0; i < count; i++) {
		keys[i] = key_of(from + i);
		bytes[i] = CRATE_BYTES;
	}
	KVS_ASSERT(host_reserve(depot->host, writer, keys, bytes, count, 0, os_now_ns(), spans, rc) == 0);
	for (i = 0; i < count; i++) {
		KVS_ASSERT_CMP(rc[i], ==, 0);
		fill(spans[i].ptr, from + i, CRATE_BYTES);
	}
	KVS_ASSERT(host_finish(depot->host, writer, keys, count, os_now_ns(), rc) == 0);
	for (i = 0; i < count; i++)
		KVS_ASSERT_CMP(rc[i], ==, 0);
}

bool depot_has(const struct depot *depot, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	uint64_t             word;

	KVS_ASSERT(host_lookup(depot->host, &key, 1, &word) == 0);
	return word & 1;
}

void depot_lock(struct depot *depot, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	struct kvs_span      span;
	int                  rc;

	KVS_ASSERT(host_lock(depot->host, depot->client, 1, &key, 1, os_now_ns(), &span, &rc) == 0);
	KVS_ASSERT_CMP(rc, ==, 0);
}

void depot_unlock(struct depot *depot, uint32_t number, uint32_t locks)
{
	const struct kvs_key key = key_of(number);
	int                  rc;

	KVS_ASSERT(host_unlock(depot->host, depot->client, locks, &key, 1, os_now_ns(), &rc) == 0);
	KVS_ASSERT_CMP(rc, ==, 0);
}

bool depot_is_read(const struct depot *depot, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	struct kvs_span      span;
	int                  rc;

	KVS_ASSERT(host_spans(depot->host, depot->client, &key, 1, os_now_ns(), &span, &rc) == 0);
	return rc == 0 && span.bytes == CRATE_BYTES && is_filled(span.ptr, number, CRATE_BYTES);
}

void depot_remove(struct depot *depot, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	int                  rc;

	KVS_ASSERT(host_remove(depot->host, &key, 1, false, &rc) == 0);
	KVS_ASSERT_CMP(rc, ==, 0);
}

void depot_remove_any(struct depot *depot, uint32_t number)
{
	const struct kvs_key key = key_of(number);
	int                  rc;

	KVS_ASSERT(host_remove(depot->host, &key, 1, false, &rc) == 0);
	KVS_ASSERT(rc == 0 || rc == KVS_E_MISSING || rc == KVS_E_LOCKED);
}

struct host_usage depot_usage(const struct depot *depot)
{
	struct host_usage usage;

	host_usage(depot->host, &usage);
	return usage;
}

/* --- stores ----------------------------------------------------------------------------------- */

void depot_place(struct depot *depot, uint32_t crate, uint32_t from, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		crate_place(&depot->crates[crate], from + i);
}

bool depot_stored(struct depot *depot, uint32_t crate, uint32_t number)
{
	struct crate *const c = &depot->crates[crate];
	uint64_t            words[CRATE_BYTES / 8];
	bool                there;

	os_mutex_lock(&c->lock);
	there = c->present[number];
	memcpy(words, c->bytes[number], CRATE_BYTES);
	os_mutex_unlock(&c->lock);
	KVS_ASSERT(!there || is_filled(words, number, CRATE_BYTES));
	return there;
}

bool depot_stores_unlocked(const struct depot *depot)
{
	uint32_t n;

	for (n = 0; n < DEPOT_CRATES; n++) {
		struct adapter_stats stats;

		adapter_stats(depot->adapters[n], &stats);
		if (stats.exec.locks_held != 0)
			return false;
	}
	return true;
}

void depot_flush(struct depot *depot)
{
	if (!store_ctrl_flush(depot->store, depot_late()))
		KVS_PANIC("waited in vain: a flush of the store controller");
}

uint64_t depot_store_counter(const struct depot *depot, enum store_ctrl_counter counter)
{
	struct store_ctrl_stats stats;

	store_ctrl_stats(depot->store, &stats);
	return stats.counters[counter];
}

/* What the controller does is not told to anybody: look again in a moment. */
static void look_again(struct depot *depot, const char *what, uint64_t since_ns)
{
	if (os_now_ns() - since_ns > DEPOT_WAIT_NS)
		KVS_PANIC("waited in vain: %s", what);
	os_mutex_lock(&depot->lock);
	os_cond_wait(&depot->moved, &depot->lock, LOOK_AGAIN_NS);
	os_mutex_unlock(&depot->lock);
}

void depot_await_counter(struct depot *depot, enum store_ctrl_counter counter, uint64_t value)
{
	const uint64_t since_ns = os_now_ns();

	while (depot_store_counter(depot, counter) < value)
		look_again(depot, "a counter of the store controller", since_ns);
}

static struct store_ctrl_stats stats_of(const struct depot *depot)
{
	struct store_ctrl_stats stats;

	store_ctrl_stats(depot->store, &stats);
	return stats;
}

void depot_await_waiting(struct depot *depot, uint32_t keys)
{
	const uint64_t since_ns = os_now_ns();

	while (stats_of(depot).waiting != keys)
		look_again(depot, "keys that wait for an adapter", since_ns);
}

void depot_await_tasks(struct depot *depot, uint32_t tasks)
{
	const uint64_t since_ns = os_now_ns();

	while (stats_of(depot).in_flight != tasks)
		look_again(depot, "the end of store tasks", since_ns);
}

void depot_notice(struct depot *depot, uint32_t crate, uint64_t op_id)
{
	const struct retirement_notice notice = { .op_id = op_id };

	KVS_ASSERT(adapter_notice(depot->adapters[crate], &notice) == 0);
}

/* --- prefetch --------------------------------------------------------------------------------- */

/* As a manager does: what is there is the reader's before anybody is asked. */
static void lock_held(struct depot *depot, const struct kvs_key *keys, uint32_t count,
		      host_client reader, uint32_t locks, uint64_t *ret_held)
{
	struct kvs_span spans[DEPOT_REQUEST_KEYS];
	int             rc[DEPOT_REQUEST_KEYS];
	uint32_t        i;

	KVS_ASSERT(host_lock(depot->host, reader, locks, keys, count, os_now_ns(), spans, rc) == 0);
	for (i = 0; i < count; i++) {
		if (rc[i] == 0)
			*ret_held |= UINT64_C(1) << i;
	}
}

uint64_t depot_ask(struct depot *depot, const struct depot_ask *ask)
{
	static const uint32_t   whole[] = { FLAT_ALL };
	struct kvs_key          keys[DEPOT_REQUEST_KEYS];
	uint64_t                bytes[DEPOT_REQUEST_KEYS];
	struct flat             plain;
	struct prefetch_request request = { .keys = keys, .bytes = bytes, .done = done };
	uint64_t                held = 0, id;
	uint32_t                count, i;

	KVS_ASSERT(flat_make(whole, 1, 1, &plain, NULL) == 0);
	request.flat = ask->flat ? ask->flat : &plain;
	request.reader = ask->reader ? ask->reader : depot->client;
	request.chunk_count = ask->chunks;
	request.held = &held;
	request.lock_count = ask->locks ? ask->locks : 1;
	request.retain = ask->retain;
	request.deadline_ns = ask->deadline_ns ? ask->deadline_ns : UINT64_MAX;
	request.done_arg = depot;
	count = ask->chunks * flat_keys(request.flat);
	KVS_ASSERT_CMP(count, <=, DEPOT_REQUEST_KEYS);
	for (i = 0; i < count; i++) {
		keys[i] = key_of(ask->from + i);
		bytes[i] = CRATE_BYTES;
	}
	lock_held(depot, keys, count, request.reader, request.lock_count, &held);
	KVS_ASSERT(prefetch_ctrl_submit(depot->prefetch, &request, &id) == 0);
	return id;
}

uint64_t depot_prefetch(struct depot *depot, uint32_t from, uint32_t count)
{
	const struct depot_ask ask = { .from = from, .chunks = count };

	return depot_ask(depot, &ask);
}

static bool is_done_locked(const struct depot *depot, uint64_t request_id)
{
	uint32_t i;

	for (i = 0; i < depot->done_count; i++) {
		if (depot->done[i] == request_id)
			return true;
	}
	return false;
}

bool depot_is_done(struct depot *depot, uint64_t request_id)
{
	bool is_done;

	os_mutex_lock(&depot->lock);
	is_done = is_done_locked(depot, request_id);
	os_mutex_unlock(&depot->lock);
	return is_done;
}

void depot_await_done(struct depot *depot, uint64_t request_id)
{
	const uint64_t since_ns = os_now_ns();

	os_mutex_lock(&depot->lock);
	while (!is_done_locked(depot, request_id))
		wait_moved(depot, "a prefetch is done", since_ns);
	os_mutex_unlock(&depot->lock);
}

struct prefetch_result depot_take(struct depot *depot, uint64_t request_id, uint64_t *ret_locked)
{
	struct prefetch_result result;

	depot_await_done(depot, request_id);
	KVS_ASSERT(prefetch_ctrl_take(depot->prefetch, request_id, &result, ret_locked));
	return result;
}

void depot_give_back(struct depot *depot, uint32_t from, uint64_t locked, uint32_t locks)
{
	uint32_t i;

	for (i = 0; i < DEPOT_REQUEST_KEYS; i++) {
		if (locked >> i & 1)
			depot_unlock(depot, from + i, locks);
	}
}

void depot_idle(struct depot *depot)
{
	if (!prefetch_ctrl_idle(depot->prefetch, depot_late()))
		KVS_PANIC("waited in vain: an idle prefetch controller");
}

struct prefetch_ctrl_stats depot_prefetch_stats(const struct depot *depot)
{
	struct prefetch_ctrl_stats stats;

	prefetch_ctrl_stats(depot->prefetch, &stats);
	return stats;
}

static bool is_inside(struct crate *crate)
{
	bool inside;

	os_mutex_lock(&crate->lock);
	inside = crate->inside > 0;
	os_mutex_unlock(&crate->lock);
	return inside;
}

bool depot_await_inside(struct depot *depot, uint32_t crate, uint64_t request_id)
{
	const uint64_t since_ns = os_now_ns();

	while (!is_inside(&depot->crates[crate])) {
		if (depot_is_done(depot, request_id))
			return false;
		look_again(depot, "a call inside a store", since_ns);
	}
	return true;
}

void depot_await_objects(struct depot *depot, uint32_t count)
{
	const uint64_t since_ns = os_now_ns();

	while (depot_usage(depot).objects != count)
		look_again(depot, "resident objects", since_ns);
}

void depot_await_queued(struct depot *depot, uint32_t count)
{
	const uint64_t since_ns = os_now_ns();

	while (depot_prefetch_stats(depot).queued != count)
		look_again(depot, "requests that wait", since_ns);
}

void depot_await_draining(struct depot *depot, uint32_t count)
{
	const uint64_t since_ns = os_now_ns();

	while (depot_prefetch_stats(depot).draining != count)
		look_again(depot, "requests that drain", since_ns);
}

uint32_t depot_await_found(struct depot *depot, uint64_t request_id)
{
	const uint64_t since_ns = os_now_ns();
	uint32_t       found = 0;

	while (!prefetch_ctrl_found(depot->prefetch, request_id, &found))
		look_again(depot, "what was found", since_ns);
	return found;
}
