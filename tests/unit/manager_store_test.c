/* SPDX-License-Identifier: Apache-2.0 */
/* Stores that come, go, and get stuck. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "manager/parts.h"
#include "named_block.h"
#include "os/os.h"
#include "place.h"
#include "porch.h"
#include "store/fault.h"

#define LOST(op) "{\"kind\": \"lost\", \"op\": \"" op "\", \"count\": 1}"
#define FOREVER_NS UINT64_C(60000000000)

static int open_without_store(void **state)
{
	static struct porch porch;

	porch_open_on(&porch, NULL);
	*state = &porch;
	return 0;
}

static int shut(void **state)
{
	porch_close(*state);
	return 0;
}

static uint32_t add(struct porch *porch, const char *spec)
{
	struct kvs_error err;
	uint32_t         number;

	if (kvs_store_add(porch->kvs, spec, &number, &err) < 0)
		fail_msg("%s", err.message);
	return number;
}

static void a_store_may_come_later(void **state)
{
	struct porch *const porch = *state;

	porch_write(porch, 0, 3);
	porch_flush(porch);
	assert_int_equal(add(porch, "mem:1MiB"), 0);
	assert_int_equal(porch_status(porch).stores, 1);
	/* It has what is written from now on. */
	porch_write(porch, 3, 3);
	porch_leave_host(porch);
	assert_int_equal(porch_status(porch).stored_keys, 3);
	assert_int_equal(porch_fetch(porch, 3, 3), 3);
	assert_int_equal(porch_fetch(porch, 0, 3), 0);
}

static void B3_1_each_store_gets_every_key(void **state)
{
	struct porch *const porch = *state;
	int                 i;

	for (i = 0; i < 3; i++)
		assert_int_equal(add(porch, "mem:1MiB"), i);
	porch_write(porch, 0, 4);
	porch_leave_host(porch);
	assert_int_equal(porch_status(porch).stored_keys, 12);
	/* Any of them has all of it. */
	for (i = 0; i < 2; i++) {
		assert_int_equal(kvs_store_remove(porch->kvs, (uint32_t)i, FOREVER_NS, NULL), 0);
		assert_int_equal(porch_fetch(porch, 0, 4), 4);
	}
	assert_int_equal(kvs_store_remove(porch->kvs, 2, FOREVER_NS, NULL), 0);
	assert_int_equal(porch_fetch(porch, 0, 4), 0);
	assert_int_equal(porch_status(porch).stores, 0);
}

static void a_number_is_free_when_its_store_is_gone(void **state)
{
	struct porch *const porch = *state;
	struct kvs_error    err;
	uint32_t            number;
	int                 i;

	for (i = 0; i < (int)KVS_ADAPTERS_MAX; i++)
		assert_int_equal(add(porch, "nil:"), i);
	assert_int_equal(kvs_store_add(porch->kvs, "nil:", &number, &err), KVS_E_FULL);
	assert_string_equal(err.message, "stores: 16 are attached, as many as may be");
	assert_int_equal(kvs_store_remove(porch->kvs, 7, FOREVER_NS, &err), 0);
	assert_int_equal(kvs_store_remove(porch->kvs, 7, FOREVER_NS, &err), KVS_E_STALE);
	assert_int_equal(add(porch, "nil:"), 7);
}

/* A file that was detached is closed: somebody else may open it. */
static void a_store_that_left_is_closed(void **state)
{
	struct porch *const porch = *state;
	const struct place  place = place_open();
	char                spec[96];
	int                 i;

	snprintf(spec, sizeof(spec), "strata:%s?capacity=64MiB", place.path);
	for (i = 0; i < 3; i++) {
		const uint32_t number = add(porch, spec);

		if (i == 0)
			porch_write(porch, 0, 5);
		porch_leave_host(porch);
		assert_int_equal(porch_fetch(porch, 0, 5), 5);
		assert_int_equal(kvs_store_remove(porch->kvs, number, FOREVER_NS, NULL), 0);
	}
	place_close(&place);
}

static void a_store_leaves_when_its_io_is_over_and_not_before(void **state)
{
	struct porch *const     porch = *state;
	struct kvs_store *const store = porch_attach_faulty(porch, LOST("get"));
	struct kvs_error        err;
	kvs_prefetch            prefetch;

	porch_write(porch, 0, 4);
	porch_leave_host_of(porch, 1, 3);
	prefetch = porch_submit(porch, 0, 4, NULL);
	while (store_fault_held(store) == 0)
		sched_yield();
	assert_int_equal(kvs_store_remove(porch->kvs, 0, 0, &err), -ETIMEDOUT);
	assert_string_equal(err.message,
			    "store 0: its I/O still runs; it is detached when that ends");
	assert_int_equal(porch_status(porch).stores, 0);
	/* Nothing new goes to it, and its number is taken. */
	assert_int_equal(porch_fetch(porch, 0, 4), 1);
	assert_int_equal(add(porch, "nil:"), 1);
	assert_int_equal(kvs_store_remove(porch->kvs, 0, 1000000, &err), -ETIMEDOUT);
	store_fault_release(store);
	assert_int_equal(kvs_store_remove(porch->kvs, 0, FOREVER_NS, &err), 0);
	assert_int_equal(porch_wait(porch, prefetch), 4);
	assert_int_equal(porch_check(porch, prefetch, 0), 4);
	porch_release(porch, prefetch);
}

/* --- under load ------------------------------------------------------------------------------- */

struct load {
	struct porch *porch;
	uint32_t      first; /* of its keys */
	_Atomic bool  stop;
	uint64_t      rounds;
};

/* One key each way, forever: what is there is right, whatever store it came from. */
static void *write_and_read(void *arg)
{
	struct load *const     load = arg;
	struct kvs *const      kvs = load->porch->kvs;
	const struct kvs_write write = { .bytes = PORCH_BYTES };
	const struct kvs_ask   ask = { .bytes = PORCH_BYTES };
	struct kvs_span        span;
	kvs_prefetch           prefetch;
	kvs_client             me;
	uint32_t               number = load->first, chunks, count;
	int                    rc;

	KVS_ASSERT(kvs_client_open(kvs, &me, NULL) == 0);
	for (; !atomic_load(&load->stop) || load->rounds < 50; number++) {
		struct kvs_key key = key_of(number);

		KVS_ASSERT(kvs_reserve_write(kvs, me, &key, 1, &write, &span, &rc, NULL) == 0 &&
			   rc == 0);
		fill(span.ptr, number, PORCH_BYTES);
		KVS_ASSERT(kvs_finish_write(kvs, me, &key, 1, &rc, NULL) == 0 && rc == 0);
		(void)kvs_remove(kvs, &key, 1, false, &rc, NULL);
		key = key_of(number - number % 7);
		KVS_ASSERT(kvs_prefetch_submit(kvs, me, &key, 1, &ask, &prefetch, NULL) == 0);
		KVS_ASSERT(kvs_prefetch_wait(kvs, prefetch, FOREVER_NS, &chunks) == 0);
		KVS_ASSERT(kvs_prefetch_spans(kvs, prefetch, &span, 1, &count) == 0 &&
			   count == chunks);
		KVS_ASSERT(chunks == 0 || is_filled(span.ptr, number - number % 7, PORCH_BYTES));
		KVS_ASSERT(kvs_prefetch_release(kvs, prefetch) == 0);
		load->rounds++;
	}
	KVS_ASSERT(kvs_client_close(kvs, me) == 0);
	return NULL;
}

static void stores_come_and_go_under_load(void **state)
{
	struct porch *const porch = *state;
	struct load         loads[3] = {
		{ porch, 7, false, 0 }, { porch, 7u << 24, false, 0 }, { porch, 14u << 24, false, 0 }
	};
	pthread_t   threads[3];
	uint32_t    i;

	for (i = 0; i < 3; i++) {
		assert_int_equal(os_thread_start(&threads[i], "load", write_and_read, &loads[i]),
				 0);
	}
	for (i = 0; i < 20; i++) {
		const uint32_t one = add(porch, "mem:1MiB"), two = add(porch, "nil:?hit=0");

		assert_int_equal(kvs_store_remove(porch->kvs, one, FOREVER_NS, NULL), 0);
		(void)porch_status(porch);
		assert_true(kvs_metrics(porch->kvs, NULL, 0) > 0);
		assert_int_equal(kvs_store_remove(porch->kvs, two, FOREVER_NS, NULL), 0);
	}
	for (i = 0; i < 3; i++)
		atomic_store(&loads[i].stop, true);
	for (i = 0; i < 3; i++)
		os_thread_join(threads[i]);
}

/* --- stuck ------------------------------------------------------------------------------------ */

static void await_held(struct kvs_store *store)
{
	while (store_fault_held(store) == 0)
		sched_yield();
}

/*
 * A get that never comes back holds the close no longer than close_timeout_ns; its memory stays,
 * and what it writes late lands there.
 */
static void a_stuck_load_ends_in_quarantine(void **state)
{
	struct kvs_options options = porch_options();
	struct porch       porch;
	struct kvs_store  *store;
	struct adapter    *adapter;
	uint8_t           *memory;

	(void)state;
	options.close_timeout_ns = 1000000;
	porch_open(&porch, &options);
	store = porch_attach_faulty(&porch, LOST("get"));
	adapter = porch_manager(&porch)->stores[0].adapter;
	porch_write(&porch, 0, 4);
	memory = porch.spans[0].ptr;
	porch_leave_host(&porch);
	(void)porch_submit(&porch, 0, 4, NULL);
	await_held(store);
	assert_int_equal(kvs_close(porch.kvs), KVS_E_QUARANTINE);
	assert_int_equal(kvs_close(porch.kvs), KVS_E_CLOSED);
	assert_int_equal(kvs_flush(porch.kvs, 0), KVS_E_CLOSED);
	memory[0] = 1;
	/* The late write lands; then the test may join the store's threads. */
	store_fault_release(store);
	assert_int_equal(adapter_close(adapter, FOREVER_NS), 0);
	memory[0] = 2;
}

static void a_stuck_put_ends_in_quarantine(void **state)
{
	struct kvs_options options = porch_options();
	struct porch       porch;
	struct kvs_store  *store;
	struct adapter    *adapter;

	(void)state;
	options.close_timeout_ns = 1000000;
	porch_open(&porch, &options);
	store = porch_attach_faulty(&porch, LOST("put"));
	adapter = porch_manager(&porch)->stores[0].adapter;
	porch_write(&porch, 0, 4);
	await_held(store);
	assert_int_equal(kvs_flush(porch.kvs, 0), -ETIMEDOUT);
	assert_int_equal(kvs_close(porch.kvs), KVS_E_QUARANTINE);
	assert_true(is_filled(porch.spans[0].ptr, 0, PORCH_BYTES));
	store_fault_release(store);
	assert_int_equal(adapter_close(adapter, FOREVER_NS), 0);
}

/* One is stuck: the other is closed, and its file free. */
static void a_quarantine_holds_nothing_that_is_not_in_doubt(void **state)
{
	const struct place place = place_open();
	struct kvs_options options = porch_options();
	struct porch       porch;
	struct kvs_store  *store;
	struct adapter    *adapter;
	char               spec[96];

	(void)state;
	snprintf(spec, sizeof(spec), "strata:%s?capacity=64MiB", place.path);
	options.stores[0] = spec;
	porch_open(&porch, &options);
	store = porch_attach_faulty(&porch, LOST("exists"));
	adapter = porch_manager(&porch)->stores[1].adapter;
	porch_manager(&porch)->options.close_timeout_ns = 1000000;
	porch_write(&porch, 0, 4);
	porch_leave_host(&porch);
	(void)porch_submit(&porch, 0, 4, NULL);
	await_held(store);
	assert_int_equal(kvs_close(porch.kvs), KVS_E_QUARANTINE);
	porch_open(&porch, &options);
	assert_int_equal(porch_fetch(&porch, 0, 4), 4);
	porch_close(&porch);
	store_fault_release(store);
	assert_int_equal(adapter_close(adapter, FOREVER_NS), 0);
	place_close(&place);
}

/* What a late write may still reach is neither published nor reused, and only its store is sick. */
static void an_unretired_load_is_a_miss_and_shows_in_the_status(void **state)
{
	struct porch      porch;
	struct kvs_status status;
	struct adapter   *adapter;

	(void)state;
	porch_open_on(&porch, NULL);
	porch_attach_faulty(&porch,
			    "{\"kind\": \"late_write\", \"op\": \"get\", \"ms\": 3600000, \"count\": 1}");
	adapter = porch_manager(&porch)->stores[0].adapter;
	porch_manager(&porch)->options.close_timeout_ns = 1000000;
	porch_write(&porch, 0, 1);
	porch_leave_host(&porch);
	assert_int_equal(porch_fetch(&porch, 0, 1), 0);
	status = porch_status(&porch);
	assert_false(status.healthy);
	assert_int_equal(status.load_failures, 1);
	assert_true(status.staged == 1 && status.host_used_bytes > 0);
	assert_int_equal(kvs_close(porch.kvs), KVS_E_QUARANTINE);
	(void)adapter_close(adapter, 0);
}

/* And when it has landed, all is as before: no restart, no word from outside. */
static void X2_a_load_that_settles_gives_room_and_store_back(void **state)
{
	struct porch *const     porch = *state;
	struct kvs_store *const store =
		porch_attach_faulty(porch, "{\"kind\": \"late_write\", \"op\": \"get\", \"ms\": 3600000, "
					   "\"count\": 1}");

	porch_write(porch, 0, 4);
	porch_leave_host(porch);
	assert_int_equal(porch_fetch(porch, 0, 4), 0);
	assert_false(porch_status(porch).healthy);
	assert_true(porch_status(porch).staged > 0);
	store_fault_land(store);
	while (porch_status(porch).staged > 0)
		sched_yield();
	/* A probe, once the cooldown is over, finds it up again. */
	while (porch_fetch(porch, 0, 4) < 4)
		sched_yield();
	assert_true(porch_status(porch).healthy);
}

int main(void)
{
#define ON(name) cmocka_unit_test_setup_teardown(name, open_without_store, shut)
	const struct CMUnitTest tests[] = {
		ON(a_store_may_come_later),
		ON(B3_1_each_store_gets_every_key),
		ON(a_number_is_free_when_its_store_is_gone),
		ON(a_store_that_left_is_closed),
		ON(a_store_leaves_when_its_io_is_over_and_not_before),
		ON(stores_come_and_go_under_load),
		cmocka_unit_test(a_stuck_load_ends_in_quarantine),
		cmocka_unit_test(a_stuck_put_ends_in_quarantine),
		cmocka_unit_test(a_quarantine_holds_nothing_that_is_not_in_doubt),
		cmocka_unit_test(an_unretired_load_is_a_miss_and_shows_in_the_status),
		ON(X2_a_load_that_settles_gives_room_and_store_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
