/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sixty-four threads at one door, each doing a bit of everything with keys that all of them share.
 *
 * Whatever a thread may read has the bytes of its key, and in the end everything is home.  Run
 * under ThreadSanitizer, too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <sched.h>

#include "base/prng.h"
#include "named_block.h"
#include "os/os.h"
#include "porch.h"

#define THREADS 64u
#define STEPS 60u
#define KEYS 300u /* more than Host holds */
#define BATCH_MAX 24u
#define FOREVER_NS UINT64_C(60000000000)

struct worker {
	struct kvs     *kvs;
	struct prng     prng;
	kvs_client      me;
	uint32_t        first, count;
	struct kvs_key  keys[BATCH_MAX];
	struct kvs_span spans[BATCH_MAX];
	int             rc[BATCH_MAX];
	uint64_t        read; /* objects */
};

static void draw(struct worker *w)
{
	uint32_t i;

	w->count = 1 + (uint32_t)prng_below(&w->prng, BATCH_MAX);
	w->first = (uint32_t)prng_below(&w->prng, KEYS - w->count);
	for (i = 0; i < w->count; i++)
		w->keys[i] = key_of(w->first + i);
}

/* A size that follows from the number, so that all writers of a key agree. */
static uint64_t bytes_of(uint32_t number)
{
	return 4096u * (1 + number % 3);
}

static void check(struct worker *w, uint32_t i)
{
	KVS_ASSERT_CMP(w->spans[i].bytes, ==, bytes_of(w->first + i));
	KVS_ASSERT(is_filled(w->spans[i].ptr, w->first + i, (uint32_t)w->spans[i].bytes));
	w->read++;
}

static void write_some(struct worker *w)
{
	uint64_t         bytes[BATCH_MAX];
	struct kvs_write write = { .bytes_each = bytes,
				   .whole = prng_below(&w->prng, 4) == 0,
				   .temporary = prng_below(&w->prng, 8) == 0 };
	uint32_t         i;

	for (i = 0; i < w->count; i++)
		bytes[i] = bytes_of(w->first + i);
	KVS_ASSERT(kvs_reserve_write(w->kvs, w->me, w->keys, w->count, &write, w->spans, w->rc,
				     NULL) == 0);
	for (i = 0; i < w->count; i++) {
		if (w->rc[i] == 0)
			fill(w->spans[i].ptr, w->first + i, (uint32_t)bytes[i]);
	}
	if (prng_below(&w->prng, 8) == 0)
		KVS_ASSERT(kvs_discard_write(w->kvs, w->me, w->keys, w->count, w->rc, NULL) == 0);
	else
		KVS_ASSERT(kvs_finish_write(w->kvs, w->me, w->keys, w->count, w->rc, NULL) == 0);
}

static void lock_some(struct worker *w)
{
	uint32_t i;

	KVS_ASSERT(kvs_lock(w->kvs, w->me, w->keys, w->count, w->spans, w->rc, NULL) == 0);
	for (i = 0; i < w->count; i++) {
		if (w->rc[i] == 0)
			check(w, i);
	}
	/* What was not locked is not unlocked either. */
	KVS_ASSERT(kvs_unlock(w->kvs, w->me, w->keys, w->count, w->rc, NULL) == 0);
}

static int check_spans(void *arg, const struct kvs_span *spans, uint32_t count)
{
	struct worker *const w = arg;
	uint32_t             i;

	KVS_ASSERT_CMP(count, <=, w->count);
	for (i = 0; i < count; i++) {
		w->spans[i] = spans[i];
		check(w, i);
	}
	return 3;
}

static void fetch_some(struct worker *w)
{
	uint64_t             bytes[BATCH_MAX];
	const struct kvs_ask ask = { .bytes_each = bytes,
				     .retain = prng_below(&w->prng, 2) == 0,
				     .timeout_ns = prng_below(&w->prng, 4) == 0 ? 100000 : 0 };
	kvs_prefetch         prefetch;
	uint32_t             chunks, i;
	int                  rc;

	for (i = 0; i < w->count; i++)
		bytes[i] = bytes_of(w->first + i);
	rc = kvs_prefetch_submit(w->kvs, w->me, w->keys, w->count, &ask, &prefetch, NULL);
	if (rc == KVS_E_FULL)
		return;
	KVS_ASSERT(rc == 0);
	if (prng_below(&w->prng, 4) == 0) {
		KVS_ASSERT(kvs_prefetch_release(w->kvs, prefetch) == 0);
		return;
	}
	KVS_ASSERT(kvs_prefetch_wait(w->kvs, prefetch, FOREVER_NS, &chunks) == 0);
	rc = kvs_prefetch_read(w->kvs, prefetch, check_spans, w);
	KVS_ASSERT(rc == (chunks > 0 ? 3 : 0));
}

/* What it leaves behind is given back for it. */
static void die(struct worker *w)
{
	kvs_prefetch prefetch;

	(void)kvs_prefetch_submit(w->kvs, w->me, w->keys, w->count, NULL, &prefetch, NULL);
	KVS_ASSERT(kvs_lock(w->kvs, w->me, w->keys, w->count, w->spans, w->rc, NULL) == 0);
	KVS_ASSERT(kvs_reserve_write(w->kvs, w->me, w->keys, w->count, NULL, w->spans, w->rc,
				     NULL) == 0);
	KVS_ASSERT(kvs_client_close(w->kvs, w->me) == 0);
	while (kvs_client_open(w->kvs, &w->me, NULL) < 0)
		sched_yield();
}

static void look(struct worker *w)
{
	struct kvs_status status = { .struct_size = sizeof(status) };

	KVS_ASSERT(kvs_status(w->kvs, &status) == 0);
	KVS_ASSERT_CMP(status.host_used_bytes, <=, status.host_bytes);
	KVS_ASSERT(kvs_metrics(w->kvs, NULL, 0) > 0);
	KVS_ASSERT(kvs_touch(w->kvs, w->keys, w->count) == 0);
}

static void *run(void *arg)
{
	struct worker *const w = arg;
	uint32_t             step;

	KVS_ASSERT(kvs_client_open(w->kvs, &w->me, NULL) == 0);
	for (step = 0; step < STEPS; step++) {
		const uint64_t choice = prng_below(&w->prng, 16);

		draw(w);
		if (choice < 5)
			write_some(w);
		else if (choice < 8)
			lock_some(w);
		else if (choice < 13)
			fetch_some(w);
		else if (choice < 14)
			KVS_ASSERT(kvs_remove(w->kvs, w->keys, w->count, false, w->rc, NULL) == 0);
		else if (choice < 15)
			die(w);
		else
			look(w);
	}
	KVS_ASSERT(kvs_client_close(w->kvs, w->me) == 0);
	return NULL;
}

static void locks_home_after_a_mixed_load_of_many_threads(void **state)
{
	static struct worker workers[THREADS];
	struct kvs_options   options = porch_options();
	struct porch         porch;
	pthread_t            threads[THREADS];
	uint64_t             read = 0;
	uint32_t             i;

	(void)state;
	options.host_bytes = 2u << 20;
	options.object_bytes = 12288;
	options.objects = 8192; /* so that there are all the shards there can be */
	options.clients = THREADS + 8;
	options.stores[0] = "mem:4MiB";
	options.stores[1] = "mem:1MiB";
	porch_open(&porch, &options);
	for (i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .kvs = porch.kvs };
		prng_seed(&workers[i].prng, i);
		assert_int_equal(os_thread_start(&threads[i], "worker", run, &workers[i]), 0);
	}
	for (i = 0; i < THREADS; i++) {
		os_thread_join(threads[i]);
		read += workers[i].read;
	}
	assert_true(read > 1000);
	porch_close(&porch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(locks_home_after_a_mixed_load_of_many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
