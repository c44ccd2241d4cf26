/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sixty-four threads at one small Host.  Most have a client without TTL each and check every byte that they
 * read under a lock; the others share a few clients that expire, and close them under each other's hands.
 * When all have ended nothing is held, what is left is what the listener heard of, and everything adds up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/err.h"
#include "base/prng.h"
#include "host/host.h"
#include "named_block.h"
#include "os/os.h"

#define THREADS 64u
#define SHARING 8u /* of them */
#define SHARED 2u  /* clients */
#define KEYS 256u
#define TENANTS 4u
#define PAGES 300u
#define PAGE 4096u
#define ROWS 8u
#define ROUNDS 2000u
#define FILLED 64u /* bytes at the front of an object */

/* What the listener knows of a key: the latest change by number. */
struct known {
	uint64_t sequence;
	bool     resident;
};

struct crowd {
	struct host        *host;
	void               *memory;
	struct kvs_span     field;
	_Atomic uint64_t    now_ns;
	_Atomic host_client shared[SHARED];
	struct os_mutex     mutex; /* of the listener's notes */
	struct known        known[KEYS];
	uint64_t            came, went;
	_Atomic uint32_t    refused; /* reservations that found no room */
};

struct worker {
	struct crowd *crowd;
	uint32_t      number;
	pthread_t     thread;
	host_client   client;
	struct prng   prng;
};

static struct kvs_key object(uint32_t number)
{
	struct kvs_key key = key_of(number);

	key.space.byte[0] = (uint8_t)(number % TENANTS);
	return key;
}

/* --- the listener ----------------------------------------------------------------------------- */

static void hear(void *arg, const struct host_notice *notice)
{
	struct crowd *const crowd = arg;
	const bool          comes = notice->event != HOST_REMOVED;
	uint32_t            i;

	os_mutex_lock(&crowd->mutex);
	for (i = 0; i < notice->count; i++) {
		struct known *const known = &crowd->known[notice->keys[i].offset];

		crowd->came += comes;
		crowd->went += !comes;
		if (notice->sequences[i] > known->sequence)
			*known = (struct known){ notice->sequences[i], comes };
	}
	os_mutex_unlock(&crowd->mutex);
}

/* --- a worker's rounds ------------------------------------------------------------------------ */

struct batch {
	uint32_t        count;
	struct kvs_key  keys[ROWS];
	uint64_t        bytes[ROWS];
	struct kvs_span spans[ROWS];
	int             rc[ROWS];
};

static bool is_sharing(const struct worker *worker)
{
	return worker->number < SHARING;
}

static host_client client_of(struct worker *worker)
{
	return is_sharing(worker) ? atomic_load(&worker->crowd->shared[worker->number % SHARED])
				  : worker->client;
}

static uint64_t now(struct worker *worker)
{
	return atomic_fetch_add(&worker->crowd->now_ns, 1);
}

/* A few keys that everybody wants, and many others. */
static struct batch draw(struct worker *worker)
{
	struct batch batch = { .count = 1 + (uint32_t)prng_below(&worker->prng, ROWS) };
	uint32_t     i;

	for (i = 0; i < batch.count; i++) {
		const bool hot = prng_chance(&worker->prng, 1, 3);

		batch.keys[i] = object((uint32_t)prng_below(&worker->prng, hot ? 16 : KEYS));
		batch.bytes[i] = PAGE * (1 + prng_below(&worker->prng, 3));
	}
	return batch;
}

static void write_some(struct worker *worker)
{
	struct crowd *const      crowd = worker->crowd;
	struct batch             batch = draw(worker);
	const struct host_writer writer = { client_of(worker), prng_below(&worker->prng, 3) };
	const unsigned flags = (unsigned)prng_below(&worker->prng, 4); /* temporary, whole, both */
	uint32_t       i;

	if (host_reserve(crowd->host, writer, batch.keys, batch.bytes, batch.count, flags,
			 now(worker), batch.spans, batch.rc) != 0)
		return;
	for (i = 0; i < batch.count; i++) {
		crowd->refused += batch.rc[i] == KVS_E_FULL;
		if (batch.rc[i] == 0 && !is_sharing(worker))
			fill(batch.spans[i].ptr, batch.keys[i].offset, FILLED);
	}
	if (prng_chance(&worker->prng, 1, 8)) {
		(void)host_discard(crowd->host, writer, batch.keys, batch.count, batch.rc);
	} else if (!is_sharing(worker)) {
		(void)host_finish(crowd->host, writer, batch.keys, batch.count, now(worker),
				  batch.rc);
	}
}

static void check_and_unlock(struct worker *worker, struct batch *batch)
{
	uint32_t i;
	int      rc;

	for (i = 0; i < batch->count; i++) {
		if (batch->rc[i] != 0)
			continue;
		KVS_ASSERT(is_filled(batch->spans[i].ptr, batch->keys[i].offset, FILLED));
		KVS_ASSERT(host_unlock(worker->crowd->host, worker->client, 1, &batch->keys[i], 1,
				       now(worker), &rc) == 0);
		KVS_ASSERT_CMP(-rc, ==, 0);
	}
}

/* One finish_locked of what was just written: loads come that way. */
static void load_some(struct worker *worker)
{
	struct crowd *const      crowd = worker->crowd;
	struct batch             batch = draw(worker);
	const struct host_writer writer = { worker->client, 100 };
	uint32_t                 i;

	KVS_ASSERT(host_reserve(crowd->host, writer, batch.keys, batch.bytes, batch.count,
				HOST_TEMPORARY, now(worker), batch.spans, batch.rc) == 0);
	for (i = 0; i < batch.count; i++) {
		if (batch.rc[i] == 0)
			fill(batch.spans[i].ptr, batch.keys[i].offset, FILLED);
	}
	KVS_ASSERT(host_finish_locked(crowd->host, writer, worker->client, 1, batch.keys,
				      batch.count, now(worker), batch.spans, batch.rc) == 0);
	check_and_unlock(worker, &batch);
}

static void read_some(struct worker *worker)
{
	struct batch batch = draw(worker);
	const int rc = host_lock(worker->crowd->host, client_of(worker), 1, batch.keys, batch.count,
				 now(worker), batch.spans, batch.rc);

	if (!is_sharing(worker)) {
		KVS_ASSERT(rc == 0);
		check_and_unlock(worker, &batch);
	}
}

/* Locks that are left to expire, or to the end of their client. */
static void forget_some(struct worker *worker)
{
	struct crowd *const crowd = worker->crowd;
	const host_client   client = client_of(worker);
	struct batch        batch = draw(worker);
	host_client         fresh;

	if (prng_chance(&worker->prng, 1, 2)) {
		(void)host_unlock(crowd->host, client, 1, batch.keys, batch.count, now(worker),
				  batch.rc);
		return;
	}
	if (host_client_close(crowd->host, client, now(worker)) != 0)
		return;
	KVS_ASSERT(host_client_open(crowd->host, 0, &fresh) == 0);
	atomic_store(&crowd->shared[worker->number % SHARED], fresh);
}

static void pin_some(struct worker *worker)
{
	struct host *const host = worker->crowd->host;
	struct batch       batch = draw(worker);
	struct host_pin    pins[ROWS];
	uint32_t           i, count = 0;

	KVS_ASSERT(host_pin(host, batch.keys, batch.count, pins, batch.spans, batch.rc) == 0);
	for (i = 0; i < batch.count; i++) {
		if (batch.rc[i] == 0)
			pins[count++] = pins[i];
	}
	if (prng_chance(&worker->prng, 1, 2))
		(void)host_touch(host, batch.keys, batch.count);
	host_unpin(host, pins, count);
}

static void keep_up(struct worker *worker)
{
	struct host *const host = worker->crowd->host;
	struct batch       batch = draw(worker);
	uint64_t           removed, left;
	struct host_usage  usage;

	switch (prng_below(&worker->prng, 6)) {
	case 0:
		host_expire(host, now(worker));
		break;
	case 1:
		(void)host_relieve(host, now(worker), 4);
		break;
	case 2:
		host_usage(host, &usage);
		KVS_ASSERT(usage.used_bytes <= usage.bytes);
		break;
	case 3:
		if (prng_chance(&worker->prng, 1, 20))
			host_clear(host, NULL, prng_chance(&worker->prng, 1, 2), &removed, &left);
		break;
	default:
		(void)host_remove(host, batch.keys, batch.count, prng_chance(&worker->prng, 1, 2),
				  batch.rc);
		break;
	}
}

static void *work(void *arg)
{
	struct worker *const worker = arg;
	uint32_t             round;

	for (round = 0; round < ROUNDS; round++) {
		const uint64_t drawn = prng_below(&worker->prng, 20);

		if (drawn < 7)
			write_some(worker);
		else if (drawn < 13)
			read_some(worker);
		else if (drawn < 16)
			is_sharing(worker) ? forget_some(worker) : load_some(worker);
		else if (drawn < 18)
			pin_some(worker);
		else
			keep_up(worker);
	}
	return NULL;
}

/* --- open to close ---------------------------------------------------------------------------- */

static void open_crowd(struct crowd *crowd, bool isolate)
{
	struct host_options options = {
		.fields = &crowd->field,
		.field_count = 1,
		.object_max = 160,
		.lock_max = 2000,
		.client_max = THREADS + SHARED,
		.shard_count = 8,
		.policy = "s3fifo",
		.write_ttl_ns = 2000,
		.read_ttl_ns = 1000,
		.high = 0.9,
		.low = 0.7,
		.isolate = isolate,
		.quota_bytes = isolate ? 100 * PAGE : 0,
		.listeners = { { .events = 1u << HOST_WRITTEN | 1u << HOST_LOADED |
					   1u << HOST_REMOVED,
				 .notify = hear,
				 .arg = crowd } },
		.listener_count = 1,
	};
	host_client client;
	uint32_t    i;

	crowd->memory = aligned_alloc(PAGE, PAGES * PAGE);
	assert_non_null(crowd->memory);
	crowd->field = (struct kvs_span){ .ptr = crowd->memory, .bytes = PAGES * PAGE };
	os_mutex_init(&crowd->mutex);
	crowd->now_ns = 1;
	assert_int_equal(host_open(&options, &crowd->host, NULL), 0);
	for (i = 0; i < SHARED; i++) {
		assert_int_equal(host_client_open(crowd->host, 0, &client), 0);
		crowd->shared[i] = client;
	}
}

static void run_workers(struct crowd *crowd)
{
	static struct worker workers[THREADS];
	uint32_t             i;

	for (i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .crowd = crowd, .number = i };
		prng_seed(&workers[i].prng, 1000 + i);
		if (is_sharing(&workers[i]))
			continue;
		assert_int_equal(host_client_open(crowd->host, HOST_NO_TTL, &workers[i].client), 0);
	}
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(os_thread_start(&workers[i].thread, "crowd", work, &workers[i]),
				 0);
	}
	for (i = 0; i < THREADS; i++)
		os_thread_join(workers[i].thread);
	for (i = SHARING; i < THREADS; i++) {
		assert_int_equal(host_client_close(crowd->host, workers[i].client, crowd->now_ns),
				 0);
	}
	for (i = 0; i < SHARED; i++) {
		assert_int_equal(host_client_close(crowd->host, crowd->shared[i], crowd->now_ns),
				 0);
	}
}

static void check_rest(struct crowd *crowd)
{
	struct kvs_key    keys[KEYS];
	uint64_t          words[KEYS / 64];
	struct host_usage usage;
	uint32_t          i;

	host_usage(crowd->host, &usage);
	assert_int_equal(usage.clients, 0);
	assert_int_equal(usage.locks, 0);
	assert_int_equal(usage.pins, 0);
	assert_int_equal(usage.staged, 0);
	assert_int_equal(usage.staged_bytes, 0);
	assert_int_equal(usage.doomed, 0);
	assert_int_equal(usage.objects, usage.counters[HOST_FINISHED] - crowd->went);
	/* A temporary object that is made to last is told once more. */
	assert_true(crowd->came >= usage.counters[HOST_FINISHED]);
	for (i = 0; i < KEYS; i++)
		keys[i] = object(i);
	assert_int_equal(host_lookup(crowd->host, keys, KEYS, words), 0);
	assert_int_equal(bits_count(words, KEYS), usage.objects);
	for (i = 0; i < KEYS; i++)
		assert_int_equal(bits_test(words, i), crowd->known[i].resident);
	printf("# %u objects left, %llu came, %llu evicted, %u rows refused\n", usage.objects,
	       (unsigned long long)crowd->came, (unsigned long long)usage.counters[HOST_EVICTED],
	       crowd->refused);
	assert_true(usage.counters[HOST_EVICTED] > 0);
}

static void run(bool isolate)
{
	static struct crowd crowd;
	uint64_t            removed, left;
	struct host_usage   usage;

	crowd = (struct crowd){ 0 };
	open_crowd(&crowd, isolate);
	run_workers(&crowd);
	host_audit(crowd.host);
	check_rest(&crowd);
	host_clear(crowd.host, NULL, false, &removed, &left);
	assert_int_equal(left, 0);
	host_usage(crowd.host, &usage);
	assert_int_equal(usage.used_bytes, 0);
	host_audit(crowd.host);
	host_close(crowd.host);
	os_mutex_fini(&crowd.mutex);
	free(crowd.memory);
}

static void sixty_four_threads_leave_nothing_behind(void **state)
{
	(void)state;
	run(false);
}

static void X11_sixty_four_threads_of_tenants_leave_nothing_behind(void **state)
{
	(void)state;
	run(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sixty_four_threads_leave_nothing_behind),
		cmocka_unit_test(X11_sixty_four_threads_of_tenants_leave_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
