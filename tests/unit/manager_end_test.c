/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How prefetches, clients and handles end: cancelled at any time, with whatever they hold, and
 * never valid again.  porch_close() asserts that everything is home.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "named_block.h"
#include "os/os.h"
#include "porch.h"
#include "store/fault.h"

#define LOST(op) "{\"kind\": \"lost\", \"op\": \"" op "\", \"count\": 1}"

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

/*
 * Objects 0 to 9, in a store that loses one call of the kind; they are gone from Host but for the
 * first two.
 */
static struct kvs_store *stocked(struct porch *porch, const char *faults)
{
	struct kvs_store *const store = porch_attach_faulty(porch, faults);

	porch_write(porch, 0, 10);
	porch_leave_host_of(porch, 2, 8);
	return store;
}

static void await_held(struct kvs_store *store)
{
	while (store_fault_held(store) == 0)
		sched_yield();
}

/* --- cancel ----------------------------------------------------------------------------------- */

static void cancel_while_lost(struct porch *porch, const char *faults)
{
	struct kvs_store *const store = stocked(porch, faults);
	const kvs_prefetch      prefetch = porch_submit(porch, 0, 10, NULL);
	uint32_t                chunks;

	await_held(store);
	assert_int_equal(kvs_prefetch_poll(porch->kvs, prefetch, &chunks), -EAGAIN);
	assert_int_equal(kvs_prefetch_wait(porch->kvs, prefetch, 0, &chunks), -ETIMEDOUT);
	assert_int_equal(kvs_prefetch_spans(porch->kvs, prefetch, porch->spans, 10, &chunks),
			 -EAGAIN);
	porch_release(porch, prefetch);
	assert_int_equal(kvs_prefetch_poll(porch->kvs, prefetch, &chunks), KVS_E_STALE);
	assert_int_equal(porch_status(porch).prefetches, 0);
	store_fault_release(store);
	/* What came late is nobody's: Host has what it had, and the store is as good as ever. */
	while (porch_status(porch).loads_in_flight > 0)
		sched_yield();
	assert_int_equal(porch_resident(porch, 0, 10), 2);
	assert_int_equal(porch_fetch(porch, 0, 10), 10);
}

static void B4_4_a_cancel_while_it_is_looked_up(void **state)
{
	cancel_while_lost(*state, LOST("exists"));
}

static void B4_4_a_cancel_while_it_is_loaded(void **state)
{
	cancel_while_lost(*state, LOST("get"));
}

static void B4_4_a_cancel_while_it_waits_behind_others(void **state)
{
	struct kvs_options options = porch_options();
	struct porch       porch;
	struct kvs_store  *store;
	kvs_prefetch       first, second;

	(void)state;
	options.prefetch_in_flight = 1;
	porch_open(&porch, &options);
	store = stocked(&porch, LOST("get"));
	first = porch_submit(&porch, 0, 10, NULL);
	await_held(store);
	second = porch_submit(&porch, 0, 10, NULL);
	porch_release(&porch, second);
	store_fault_release(store);
	assert_int_equal(porch_wait(&porch, first), 10);
	porch_release(&porch, first);
	porch_close(&porch);
}

static void B4_4_a_release_before_anybody_looked(void **state)
{
	struct porch *const  porch = *state;
	const struct kvs_ask ask = { .bytes = PORCH_BYTES };
	int                  i;

	stocked(porch, "");
	for (i = 0; i < 50; i++) {
		kvs_prefetch prefetch;
		int          rc;

		/* What was given up keeps its place until the controller has seen it. */
		do {
			rc = kvs_prefetch_submit(porch->kvs, porch->me, porch_name(porch, 0, 10), 10, &ask,
						 &prefetch, NULL);
			assert_true(rc == 0 || rc == KVS_E_FULL);
		} while (rc < 0);
		porch_release(porch, prefetch);
	}
	assert_int_equal(porch_fetch(porch, 0, 10), 10);
}

/* A deadline ends the wait, not the I/O: what is here is the result. */
static void B4_4_at_the_deadline_what_host_has_is_the_result(void **state)
{
	struct porch *const     porch = *state;
	struct kvs_store *const store = stocked(porch, LOST("get"));
	const struct kvs_ask    ask = { .timeout_ns = 20000000 };
	const kvs_prefetch      prefetch = porch_submit(porch, 0, 10, &ask);

	assert_int_equal(porch_wait(porch, prefetch), 2);
	assert_int_equal(porch_check(porch, prefetch, 0), 2);
	porch_release(porch, prefetch);
	store_fault_release(store);
}

/* --- waiters ---------------------------------------------------------------------------------- */

struct waiter {
	struct porch *porch;
	kvs_prefetch  prefetch;
	int           rc;
	uint32_t      chunks;
};

static void *wait_for_it(void *arg)
{
	struct waiter *const waiter = arg;

	waiter->rc = kvs_prefetch_wait(waiter->porch->kvs, waiter->prefetch, KVS_FOREVER,
				       &waiter->chunks);
	return NULL;
}

static void a_waiter_hears_that_the_prefetch_is_gone(void **state)
{
	struct porch *const     porch = *state;
	struct kvs_store *const store = stocked(porch, LOST("get"));
	struct waiter           waiter = { porch, porch_submit(porch, 0, 10, NULL), 0, 0 };
	pthread_t               thread;

	await_held(store);
	assert_int_equal(os_thread_start(&thread, "waiter", wait_for_it, &waiter), 0);
	porch_release(porch, waiter.prefetch);
	os_thread_join(thread);
	assert_int_equal(waiter.rc, KVS_E_STALE);
	store_fault_release(store);
}

static void of_two_waiters_one_is_told(void **state)
{
	struct porch *const     porch = *state;
	struct kvs_store *const store = stocked(porch, LOST("get"));
	const kvs_prefetch      prefetch = porch_submit(porch, 0, 10, NULL);
	struct waiter waiters[2] = { { porch, prefetch, 0, 0 }, { porch, prefetch, 0, 0 } };
	pthread_t     threads[2];
	int           i;

	await_held(store);
	for (i = 0; i < 2; i++) {
		assert_int_equal(os_thread_start(&threads[i], "waiter", wait_for_it, &waiters[i]),
				 0);
	}
	store_fault_release(store);
	for (i = 0; i < 2; i++)
		os_thread_join(threads[i]);
	assert_int_equal(waiters[0].rc + waiters[1].rc, KVS_E_STALE);
	assert_int_equal(waiters[0].chunks + waiters[1].chunks, 10);
	porch_release(porch, prefetch);
}

/* A read of what is not there yet does not release it. */
static int never(void *arg, const struct kvs_span *spans, uint32_t count)
{
	(void)arg, (void)spans, (void)count;
	fail();
	return 0;
}

static void a_read_before_its_time_changes_nothing(void **state)
{
	struct porch *const     porch = *state;
	struct kvs_store *const store = stocked(porch, LOST("get"));
	const kvs_prefetch      prefetch = porch_submit(porch, 0, 10, NULL);

	await_held(store);
	assert_int_equal(kvs_prefetch_read(porch->kvs, prefetch, never, NULL), -EAGAIN);
	store_fault_release(store);
	assert_int_equal(porch_wait(porch, prefetch), 10);
	porch_release(porch, prefetch);
}

/* --- clients ---------------------------------------------------------------------------------- */

static void locks_home_when_a_client_dies_with_all_it_holds(void **state)
{
	struct porch *const     porch = *state;
	struct kvs_store *const store = stocked(porch, LOST("get"));
	struct kvs_write        write = { .bytes = PORCH_BYTES };
	struct kvs_status       status;
	kvs_client              client;
	kvs_prefetch            prefetches[3];
	struct kvs_ask          ask = { .bytes = PORCH_BYTES };
	uint32_t                chunks, i;

	assert_int_equal(kvs_client_open(porch->kvs, &client, NULL), 0);
	porch_name(porch, 0, 2);
	assert_int_equal(
		kvs_lock(porch->kvs, client, porch->keys, 2, porch->spans, porch->rc, NULL), 0);
	porch_name(porch, 200, 4);
	assert_int_equal(kvs_reserve_write(porch->kvs, client, porch->keys, 4, &write, porch->spans,
					   porch->rc, NULL),
			 0);
	porch_name(porch, 0, 10);
	for (i = 0; i < 3; i++) {
		assert_int_equal(kvs_prefetch_submit(porch->kvs, client, porch->keys, 10, &ask,
						     &prefetches[i], NULL),
				 0);
	}
	await_held(store);
	assert_int_equal(kvs_client_close(porch->kvs, client), 0);
	status = porch_status(porch);
	assert_int_equal(status.clients, 1);
	assert_int_equal(status.prefetches, 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(kvs_prefetch_poll(porch->kvs, prefetches[i], &chunks),
				 KVS_E_STALE);
	}
	store_fault_release(store);
	while (porch_status(porch).loads_in_flight > 0)
		sched_yield();
	status = porch_status(porch);
	assert_int_equal(status.locks | status.staged | status.pins, 0);
	assert_int_equal(porch_resident(porch, 200, 4), 0);
	assert_int_equal(porch_resident(porch, 0, 10), 2);
}

static void a_client_that_was_closed_is_stale_everywhere(void **state)
{
	struct porch *const porch = *state;
	struct kvs_error    err;
	kvs_client          client;
	kvs_prefetch        prefetch;

	assert_int_equal(kvs_client_open(porch->kvs, &client, NULL), 0);
	assert_int_equal(kvs_client_close(porch->kvs, client), 0);
	porch_name(porch, 0, 2);
	assert_int_equal(kvs_client_close(porch->kvs, client), KVS_E_STALE);
	assert_int_equal(kvs_client_fd(porch->kvs, client), KVS_E_STALE);
	assert_int_equal(kvs_reserve_write(porch->kvs, client, porch->keys, 2, NULL, porch->spans,
					   porch->rc, &err),
			 KVS_E_STALE);
	assert_string_equal(err.message, "client: the handle or id names nothing that lives");
	assert_int_equal(kvs_finish_write(porch->kvs, client, porch->keys, 2, porch->rc, &err),
			 KVS_E_STALE);
	assert_int_equal(kvs_discard_write(porch->kvs, client, porch->keys, 2, porch->rc, &err),
			 KVS_E_STALE);
	assert_int_equal(
		kvs_lock(porch->kvs, client, porch->keys, 2, porch->spans, porch->rc, &err),
		KVS_E_STALE);
	assert_int_equal(kvs_unlock(porch->kvs, client, porch->keys, 2, porch->rc, &err),
			 KVS_E_STALE);
	assert_int_equal(
		kvs_prefetch_submit(porch->kvs, client, porch->keys, 2, NULL, &prefetch, &err),
		KVS_E_STALE);
	assert_int_equal(porch_status(porch).prefetches, 0);
}

static void handles_are_never_used_again(void **state)
{
	struct porch *const porch = *state;
	kvs_client          clients[100], client;
	kvs_prefetch        prefetches[100];
	int                 i, j;

	porch_write(porch, 0, 1);
	for (i = 0; i < 100; i++) {
		assert_int_equal(kvs_client_open(porch->kvs, &clients[i], NULL), 0);
		prefetches[i] = porch_submit(porch, 0, 1, NULL);
		porch_release(porch, prefetches[i]);
		assert_int_equal(kvs_client_close(porch->kvs, clients[i]), 0);
		assert_true(clients[i] != 0 && prefetches[i] != 0);
		for (j = 0; j < i; j++)
			assert_true(clients[j] != clients[i] && prefetches[j] != prefetches[i]);
	}
	/* An old name in a slot that somebody has now. */
	assert_int_equal(kvs_client_open(porch->kvs, &client, NULL), 0);
	prefetches[0] = porch_submit(porch, 0, 1, NULL);
	assert_int_equal(kvs_client_close(porch->kvs, clients[99]), KVS_E_STALE);
	assert_int_equal(kvs_prefetch_release(porch->kvs, prefetches[99]), KVS_E_STALE);
	porch_release(porch, prefetches[0]);
	assert_int_equal(kvs_client_close(porch->kvs, client), 0);
	/* And names that nobody ever had. */
	assert_int_equal(kvs_client_close(porch->kvs, 0), KVS_E_STALE);
	assert_int_equal(kvs_client_close(porch->kvs, UINT64_MAX), KVS_E_STALE);
	assert_int_equal(kvs_prefetch_release(porch->kvs, 0), KVS_E_STALE);
	assert_int_equal(kvs_prefetch_release(porch->kvs, UINT64_MAX), KVS_E_STALE);
}

static void tables_are_bounded_and_say_so(void **state)
{
	struct kvs_options options = porch_options();
	struct porch       porch;
	struct kvs_error   err;
	kvs_client         client, none = 0;
	kvs_prefetch       prefetches[2], more = 0;

	(void)state;
	options.clients = options.prefetches = 2;
	porch_open(&porch, &options);
	assert_int_equal(kvs_client_open(porch.kvs, &client, NULL), 0);
	assert_int_equal(kvs_client_open(porch.kvs, &none, &err), KVS_E_FULL);
	assert_string_equal(err.message, "clients: as many are open as may be");
	porch_write(&porch, 0, 1);
	prefetches[0] = porch_submit(&porch, 0, 1, NULL);
	prefetches[1] = porch_submit(&porch, 0, 1, NULL);
	assert_int_equal(kvs_prefetch_submit(porch.kvs, porch.me, porch.keys, 1, NULL, &more, &err),
			 KVS_E_FULL);
	assert_string_equal(err.message, "prefetches: 2 are not yet released, as many as may be");
	assert_true(none == 0 && more == 0);
	porch_release(&porch, prefetches[1]);
	porch_release(&porch, porch_submit(&porch, 0, 1, NULL));
	porch_release(&porch, prefetches[0]);
	assert_int_equal(kvs_client_close(porch.kvs, client), 0);
	porch_close(&porch);
}

/* --- time and force --------------------------------------------------------------------------- */

/*
 * The first one's locks expire; its release must not take the second one's, of the same client and
 * keys.
 */
static void locks_that_expired_are_not_given_back_for_others(void **state)
{
	struct kvs_options options = porch_options();
	struct porch       porch;
	kvs_prefetch       first, second;
	uint32_t           count;

	(void)state;
	options.read_ttl_ns = 1000000000;
	porch_open(&porch, &options);
	porch_write(&porch, 0, 2);
	first = porch_submit(&porch, 0, 2, NULL);
	while (kvs_prefetch_spans(porch.kvs, first, porch.spans, 2, &count) == 0)
		sched_yield();
	assert_int_equal(kvs_prefetch_spans(porch.kvs, first, porch.spans, 2, &count),
			 KVS_E_MISSING);
	second = porch_submit(&porch, 0, 2, NULL);
	assert_int_equal(porch_status(&porch).locks, 2);
	assert_int_equal(kvs_prefetch_read(porch.kvs, first, never, NULL), KVS_E_MISSING);
	assert_int_equal(kvs_prefetch_release(porch.kvs, first), KVS_E_STALE);
	assert_int_equal(porch_status(&porch).locks, 2);
	porch_release(&porch, second);
	porch_close(&porch);
}

/* Whoever reads goes on reading; nobody else finds it. */
static void a_forced_removal_takes_nothing_from_a_reader(void **state)
{
	struct porch *const porch = *state;
	kvs_prefetch        prefetch;
	uint64_t            removed, left;

	porch_write(porch, 0, 3);
	prefetch = porch_submit(porch, 0, 3, NULL);
	assert_int_equal(kvs_clear(porch->kvs, NULL, true, &removed, &left), 0);
	assert_int_equal(removed, 3);
	assert_int_equal(left, 0);
	assert_int_equal(porch_resident(porch, 0, 3), 0);
	assert_int_equal(porch_check(porch, prefetch, 0), 3);
	porch_release(porch, prefetch);
	assert_int_equal(porch_status(porch).host_used_bytes, 0);
}

int main(void)
{
#define ON(name) cmocka_unit_test_setup_teardown(name, open_without_store, shut)
	const struct CMUnitTest tests[] = {
		ON(B4_4_a_cancel_while_it_is_looked_up),
		ON(B4_4_a_cancel_while_it_is_loaded),
		cmocka_unit_test(B4_4_a_cancel_while_it_waits_behind_others),
		ON(B4_4_a_release_before_anybody_looked),
		ON(B4_4_at_the_deadline_what_host_has_is_the_result),
		ON(a_waiter_hears_that_the_prefetch_is_gone),
		ON(of_two_waiters_one_is_told),
		ON(a_read_before_its_time_changes_nothing),
		ON(locks_home_when_a_client_dies_with_all_it_holds),
		ON(a_client_that_was_closed_is_stale_everywhere),
		ON(handles_are_never_used_again),
		cmocka_unit_test(tables_are_bounded_and_say_so),
		cmocka_unit_test(locks_that_expired_are_not_given_back_for_others),
		ON(a_forced_removal_takes_nothing_from_a_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
