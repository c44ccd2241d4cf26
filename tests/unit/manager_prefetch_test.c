/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefetches through the public door: what Host and stores have, in chunks and groups; results,
 * which come once; readers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>

#include "base/bits.h"
#include "manager/parts.h"
#include "named_block.h"
#include "os/os.h"
#include "porch.h"

static int open_on_mem(void **state)
{
	static struct porch porch;

	porch_open_on(&porch, "mem:8MiB");
	*state = &porch;
	return 0;
}

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

static struct kvs_prefetch_info info_of(struct porch *porch, kvs_prefetch prefetch)
{
	struct kvs_prefetch_info info = { .struct_size = sizeof(info) };

	assert_int_equal(kvs_prefetch_info(porch->kvs, prefetch, &info), 0);
	return info;
}

/* --- Host alone ------------------------------------------------------------------------------- */

static void B5_1_what_host_has_is_there_at_once(void **state)
{
	struct porch *const      porch = *state;
	struct kvs_prefetch_info info;
	kvs_prefetch             prefetch;
	uint32_t                 chunks = 0;

	porch_write(porch, 0, 5);
	prefetch = porch_submit(porch, 0, 5, NULL);
	info = info_of(porch, prefetch);
	assert_true(info.done);
	assert_int_equal(info.request_id, -1);
	assert_int_equal(info.host_hits, 5);
	assert_int_equal(info.key_count, 5);
	assert_true(info.submit_ns > 0 && info.submit_ns <= os_now_ns());
	assert_int_equal(kvs_prefetch_poll(porch->kvs, prefetch, &chunks), 0);
	assert_int_equal(chunks, 5);
	assert_int_equal(porch_check(porch, prefetch, 0), 5);
	porch_release(porch, prefetch);
}

/* Locked from the submission on, and those beyond the gap not at all. */
static void B5_1_the_prefix_before_a_gap_is_locked_and_the_rest_is_not(void **state)
{
	struct porch *const porch = *state;
	kvs_prefetch        prefetch;

	porch_write(porch, 0, 2);
	porch_write(porch, 3, 2);
	prefetch = porch_submit(porch, 0, 5, NULL);
	assert_int_equal(porch_wait(porch, prefetch), 2);
	assert_int_equal(porch_check(porch, prefetch, 0), 2);
	assert_int_equal(info_of(porch, prefetch).host_hits, 2);
	assert_int_equal(porch_status(porch).locks, 2);

	porch_name(porch, 0, 5);
	assert_int_equal(kvs_remove(porch->kvs, porch->keys, 5, false, porch->rc, NULL), 0);
	assert_int_equal(porch->rc[0], KVS_E_LOCKED);
	assert_int_equal(porch->rc[1], KVS_E_LOCKED);
	assert_int_equal(porch->rc[2], KVS_E_MISSING);
	assert_int_equal(porch->rc[3], 0);
	assert_int_equal(porch->rc[4], 0);
	porch_release(porch, prefetch);
	assert_int_equal(kvs_remove(porch->kvs, porch->keys, 2, false, porch->rc, NULL), 0);
	assert_int_equal(porch->rc[0] | porch->rc[1], 0);
}

static void B5_1_nothing_is_zero_chunks(void **state)
{
	struct porch *const porch = *state;
	kvs_prefetch        prefetch = porch_submit(porch, 0, 5, NULL);
	struct kvs_span     span;
	uint32_t            count = 9;

	assert_int_equal(porch_wait(porch, prefetch), 0);
	assert_int_equal(kvs_prefetch_spans(porch->kvs, prefetch, NULL, 0, &count), 0);
	assert_int_equal(count, 0);
	assert_int_equal(kvs_prefetch_spans(porch->kvs, prefetch, &span, 1, &count), 0);
	porch_release(porch, prefetch);
}

static void B5_1_skip_store_looks_in_host_only(void **state)
{
	struct porch *const  porch = *state;
	const struct kvs_ask ask = { .skip_store = true };
	kvs_prefetch         prefetch;

	porch_write(porch, 0, 4);
	porch_leave_host_of(porch, 2, 2);
	prefetch = porch_submit(porch, 0, 4, &ask);
	assert_int_equal(info_of(porch, prefetch).request_id, -1);
	assert_int_equal(porch_wait(porch, prefetch), 2);
	porch_release(porch, prefetch);
}

/* --- stores ----------------------------------------------------------------------------------- */

static void B5_1_what_host_lost_comes_from_the_store(void **state)
{
	struct porch *const porch = *state;

	porch_write(porch, 0, 5);
	porch_leave_host(porch);
	assert_int_equal(porch_status(porch).host_used_bytes, 0);
	assert_int_equal(porch_fetch(porch, 0, 5), 5);
	porch_await_loaded(porch, 5);
}

static void B5_1_host_and_store_add_up(void **state)
{
	struct porch *const      porch = *state;
	struct kvs_prefetch_info info;
	kvs_prefetch             prefetch;

	porch_write(porch, 0, 5);
	porch_leave_host_of(porch, 2, 3);
	prefetch = porch_submit(porch, 0, 5, NULL);
	assert_int_equal(porch_wait(porch, prefetch), 5);
	info = info_of(porch, prefetch);
	assert_true(info.request_id >= 0 && info.done);
	assert_int_equal(info.host_hits, 2);
	assert_int_equal(porch_check(porch, prefetch, 0), 5);
	porch_await_loaded(porch, 3);
	porch_release(porch, prefetch);
}

/*
 * Host has 0, 2 and 4, the store 1 and 3: what lies behind a hole is used once the hole is filled.
 */
static void B5_1_host_and_store_interleave(void **state)
{
	struct porch *const porch = *state;

	porch_write(porch, 0, 5);
	porch_leave_host_of(porch, 1, 1);
	porch_leave_host_of(porch, 3, 1);
	assert_int_equal(porch_fetch(porch, 0, 5), 5);
	porch_await_loaded(porch, 2);
}

static void B4_2_a_gap_in_the_store_ends_the_prefix(void **state)
{
	struct porch *const porch = *state;

	porch_write(porch, 0, 2);
	porch_write(porch, 3, 2);
	porch_leave_host(porch);
	assert_int_equal(porch_fetch(porch, 0, 5), 2);
	porch_await_loaded(porch, 2);
}

static void B4_1_nothing_anywhere_is_zero_chunks(void **state)
{
	struct porch *const porch = *state;

	assert_int_equal(porch_fetch(porch, 0, 5), 0);
}

/* What was loaded goes with its last reader, unless it is kept. */
static void B1_4_what_was_loaded_goes_with_its_reader(void **state)
{
	struct porch *const  porch = *state;
	const struct kvs_ask keep = { .retain = true };
	kvs_prefetch         prefetch;

	porch_write(porch, 0, 4);
	porch_leave_host(porch);
	assert_int_equal(porch_fetch(porch, 0, 4), 4);
	assert_int_equal(porch_resident(porch, 0, 4), 0);
	prefetch = porch_submit(porch, 0, 4, &keep);
	assert_int_equal(porch_wait(porch, prefetch), 4);
	porch_release(porch, prefetch);
	assert_int_equal(porch_resident(porch, 0, 4), 4);
	/* Loaded objects are never put again. */
	porch_flush(porch);
	assert_int_equal(porch_status(porch).stored_keys, 4);
}

static void B3_2_a_policy_by_name_empties_host(void **state)
{
	struct kvs_options options = porch_options();
	struct porch       porch;

	(void)state;
	options.stores[0] = "mem:8MiB";
	options.store_policy = "skip-host";
	options.prefetch_policy = "retain";
	porch_open(&porch, &options);
	porch_write(&porch, 0, 4);
	porch_flush(&porch);
	while (porch_status(&porch).objects > 0)
		sched_yield();
	assert_int_equal(porch_fetch(&porch, 0, 4), 4);
	assert_int_equal(porch_resident(&porch, 0, 4), 4);
	porch_close(&porch);
}

/* --- groups ----------------------------------------------------------------------------------- */

/*
 * Two groups, two ranks: a chunk is four keys.  The full group needs all, the other the last two
 * chunks.  Keys by number: chunk * 4 + group * 2 + rank.
 */
static const uint32_t       windows[2] = { KVS_FULL_ATTENTION, 2 };
static const struct kvs_ask grid = { .windows = windows, .group_count = 2, .copies = 2 };

/*
 * Of five chunks, the keys a restore at the fifth uses: all of group 0, and of group 1 those of two
 * chunks.
 */
static void write_grid(struct porch *porch)
{
	uint32_t chunk;

	for (chunk = 0; chunk < 5; chunk++)
		porch_write(porch, chunk * 4, chunk < 3 ? 2 : 4);
}

static void check_grid(struct porch *porch, kvs_prefetch prefetch)
{
	uint32_t count, i;

	assert_int_equal(porch_check(porch, prefetch, 0), 5 * 2 + 2 * 2);
	assert_int_equal(kvs_prefetch_spans(porch->kvs, prefetch, porch->spans, PORCH_KEYS, &count),
			 0);
	assert_int_equal(count, 20);
	for (i = 0; i < count; i++)
		assert_int_equal(porch->spans[i].ptr != NULL, i % 4 < 2 || i >= 12);
}

static void B5_1_a_window_needs_its_last_chunks_in_host(void **state)
{
	struct porch *const porch = *state;
	kvs_prefetch        prefetch;

	write_grid(porch);
	prefetch = porch_submit(porch, 0, 20, &grid);
	assert_int_equal(info_of(porch, prefetch).request_id, -1);
	assert_int_equal(porch_wait(porch, prefetch), 5);
	check_grid(porch, prefetch);
	porch_release(porch, prefetch);
}

static void B5_1_a_window_comes_from_the_store(void **state)
{
	struct porch *const porch = *state;
	kvs_prefetch        prefetch;

	write_grid(porch);
	porch_leave_host(porch);
	prefetch = porch_submit(porch, 0, 20, &grid);
	assert_int_equal(porch_wait(porch, prefetch), 5);
	check_grid(porch, prefetch);
	porch_release(porch, prefetch);
}

/* Of the window one chunk is in Host, one in the store. */
static void B5_1_a_window_comes_from_host_and_store(void **state)
{
	struct porch *const porch = *state;
	kvs_prefetch        prefetch;

	write_grid(porch);
	porch_leave_host_of(porch, 0, 2);
	porch_leave_host_of(porch, 14, 2);
	prefetch = porch_submit(porch, 0, 20, &grid);
	assert_int_equal(porch_wait(porch, prefetch), 5);
	check_grid(porch, prefetch);
	porch_await_loaded(porch, 4);
	porch_release(porch, prefetch);
}

/*
 * A rank lacks its part of the last chunk: the boundary is the one before, where the window is
 * broken.
 */
static void B5_1_all_ranks_must_have_it(void **state)
{
	struct porch *const porch = *state;
	kvs_prefetch        prefetch;

	write_grid(porch);
	porch_leave_host_of(porch, 17, 1);
	prefetch = porch_submit(
		porch, 0, 20,
		&(struct kvs_ask){
			.windows = windows, .group_count = 2, .copies = 2, .skip_store = true });
	assert_int_equal(porch_wait(porch, prefetch), 0);
	porch_release(porch, prefetch);
}

/* --- results and readers ---------------------------------------------------------------------- */

static void B4_1_a_result_is_told_once(void **state)
{
	struct porch *const porch = *state;
	kvs_prefetch        prefetch;
	uint32_t            chunks = 77;

	porch_write(porch, 0, 3);
	porch_leave_host(porch);
	prefetch = porch_submit(porch, 0, 3, NULL);
	assert_int_equal(porch_wait(porch, prefetch), 3);
	assert_int_equal(kvs_prefetch_poll(porch->kvs, prefetch, &chunks), KVS_E_STALE);
	assert_int_equal(kvs_prefetch_wait(porch->kvs, prefetch, 0, &chunks), KVS_E_STALE);
	assert_int_equal(chunks, 77);
	/* The spans are there as often as one likes. */
	assert_int_equal(porch_check(porch, prefetch, 0), 3);
	assert_int_equal(porch_check(porch, prefetch, 0), 3);
	porch_release(porch, prefetch);
	assert_int_equal(kvs_prefetch_release(porch->kvs, prefetch), KVS_E_STALE);
}

static void too_few_spans_are_refused_with_their_number(void **state)
{
	struct porch *const porch = *state;
	kvs_prefetch        prefetch;
	struct kvs_span     spans[3] = { { .bytes = 1 } };
	uint32_t            count = 0;

	porch_write(porch, 0, 3);
	prefetch = porch_submit(porch, 0, 3, NULL);
	assert_int_equal(kvs_prefetch_spans(porch->kvs, prefetch, spans, 2, &count), KVS_E_FULL);
	assert_int_equal(count, 3);
	assert_int_equal(spans[0].bytes, 1);
	assert_int_equal(kvs_prefetch_spans(porch->kvs, prefetch, spans, 3, &count), 0);
	porch_release(porch, prefetch);
}

/* As two workers of one engine: the object stays until both have read it. */
static void B5_1_each_reader_releases_once(void **state)
{
	struct porch *const  porch = *state;
	const struct kvs_ask ask = { .readers = 3 };
	kvs_prefetch         prefetch;

	porch_write(porch, 0, 2);
	porch_leave_host(porch);
	prefetch = porch_submit(porch, 0, 2, &ask);
	assert_int_equal(porch_wait(porch, prefetch), 2);
	porch_release(porch, prefetch);
	porch_release(porch, prefetch);
	assert_int_equal(porch_check(porch, prefetch, 0), 2);
	assert_true(porch_status(porch).locks >= 2);
	porch_release(porch, prefetch);
	assert_int_equal(porch_status(porch).locks, 0);
	assert_int_equal(kvs_prefetch_release(porch->kvs, prefetch), KVS_E_STALE);
}

struct used {
	uint32_t calls, count;
	int      rc;
};

static int use(void *arg, const struct kvs_span *spans, uint32_t count)
{
	struct used *const used = arg;
	uint32_t           i;

	used->calls++;
	used->count = count;
	for (i = 0; i < count; i++)
		assert_true(is_filled(spans[i].ptr, i, (uint32_t)spans[i].bytes));
	return used->rc;
}

static void B5_1_a_scoped_read_releases_whatever_its_user_returns(void **state)
{
	struct porch *const porch = *state;
	static const int    codes[] = { 0, 7, -5, KVS_E_STALE };
	size_t              i;

	porch_write(porch, 0, 3);
	for (i = 0; i < ARRAY_COUNT(codes); i++) {
		struct used        used = { .rc = codes[i] };
		const kvs_prefetch prefetch = porch_submit(porch, 0, 3, NULL);

		assert_int_equal(kvs_prefetch_read(porch->kvs, prefetch, use, &used), codes[i]);
		assert_int_equal(used.calls, 1);
		assert_int_equal(used.count, 3);
		assert_int_equal(porch_status(porch).locks, 0);
		assert_int_equal(kvs_prefetch_read(porch->kvs, prefetch, use, &used), KVS_E_STALE);
		assert_int_equal(used.calls, 1);
	}
}

static void a_scoped_read_of_nothing_calls_nobody(void **state)
{
	struct porch *const porch = *state;
	struct used         used = { .rc = 7 };
	const kvs_prefetch  prefetch = porch_submit(porch, 0, 3, NULL);
	uint32_t            chunks = 9;

	assert_int_equal(kvs_prefetch_wait(porch->kvs, prefetch, KVS_FOREVER, &chunks), 0);
	assert_int_equal(chunks, 0);
	assert_int_equal(kvs_prefetch_read(porch->kvs, prefetch, use, &used), 0);
	assert_int_equal(used.calls, 0);
	assert_int_equal(kvs_prefetch_release(porch->kvs, prefetch), KVS_E_STALE);
}

struct leaver {
	struct porch *porch;
	kvs_client    client;
	int           during; /* what a remove of the object says */
};

static int close_and_look(void *arg, const struct kvs_span *spans, uint32_t count)
{
	struct leaver *const leaver = arg;

	(void)spans;
	(void)count;
	assert_int_equal(kvs_client_close(leaver->porch->kvs, leaver->client), 0);
	assert_int_equal(kvs_remove(leaver->porch->kvs, leaver->porch->keys, 1, false,
				    &leaver->during, NULL),
			 0);
	return 0;
}

/* Nobody gets the memory under a user's eyes. */
static void a_scoped_read_keeps_its_locks_when_its_client_closes(void **state)
{
	struct porch *const porch = *state;
	struct leaver       leaver = { .porch = porch };
	kvs_prefetch        prefetch;
	int                 after;

	porch_write(porch, 0, 1);
	assert_int_equal(kvs_client_open(porch->kvs, &leaver.client, NULL), 0);
	assert_int_equal(kvs_prefetch_submit(porch->kvs, leaver.client, porch_name(porch, 0, 1), 1,
					     NULL, &prefetch, NULL),
			 0);
	assert_int_equal(kvs_prefetch_read(porch->kvs, prefetch, close_and_look, &leaver), 0);
	assert_int_equal(leaver.during, KVS_E_LOCKED);
	assert_int_equal(porch_status(porch).locks, 0);
	assert_int_equal(kvs_remove(porch->kvs, porch->keys, 1, false, &after, NULL), 0);
	assert_int_equal(after, 0);
}

/* A release is a use for the eviction order, once, at the end. */
static void B5_1_a_release_is_a_use(void **state)
{
	struct kvs_options options = porch_options();
	struct porch       porch;
	kvs_prefetch       prefetch;

	(void)state;
	options.host_bytes = 64u << 10; /* eight objects and their trailers */
	options.objects = 64;
	options.object_bytes = PORCH_BYTES;
	options.high = options.low = 1;
	porch_open(&porch, &options);
	porch_write(&porch, 0, 8);
	prefetch = porch_submit(&porch, 0, 2, NULL);
	porch_release(&porch, prefetch);
	porch_write(&porch, 100, 6);
	assert_int_equal(porch_resident(&porch, 0, 2), 2);
	assert_int_equal(porch_resident(&porch, 2, 6), 0);
	porch_close(&porch);
}

static bool is_readable(int fd)
{
	struct pollfd at = { .fd = fd, .events = POLLIN };

	return poll(&at, 1, 0) == 1;
}

static void the_descriptor_tells_that_one_is_done(void **state)
{
	struct porch *const porch = *state;
	const int           fd = kvs_client_fd(porch->kvs, porch->me);
	kvs_prefetch        prefetch;
	struct pollfd       at = { .fd = fd, .events = POLLIN };

	assert_true(fd >= 0);
	assert_false(is_readable(fd));
	porch_write(porch, 0, 2);
	prefetch = porch_submit(porch, 0, 2, NULL);
	assert_true(is_readable(fd));
	porch_release(porch, prefetch);
	assert_true(is_readable(fd));
	assert_true(os_eventfd_drain(fd));

	porch_leave_host(porch);
	prefetch = porch_submit(porch, 0, 2, NULL);
	assert_int_equal(poll(&at, 1, -1), 1);
	assert_int_equal(porch_wait(porch, prefetch), 2);
	porch_release(porch, prefetch);
}

/* Whoever looks first: the controller's word finds nothing left to tell then. */
static void the_descriptor_tells_it_when_a_look_takes_the_result_first(void **state)
{
	struct porch *const porch = *state;
	const int           fd = kvs_client_fd(porch->kvs, porch->me);
	struct prefetch    *record;
	kvs_prefetch        prefetch;
	bool                told;

	porch_write(porch, 0, 2);
	porch_leave_host(porch);
	prefetch = porch_submit(porch, 0, 2, NULL);
	record = &porch_manager(porch)->prefetches[prefetch & HANDLE_SLOT_MASK];
	/* Its lock keeps the controller's word out. */
	os_mutex_lock(&record->lock);
	while (record->state == PREFETCH_LOADING) {
		prefetch_settle(record);
		sched_yield();
	}
	told = is_readable(fd);
	os_mutex_unlock(&record->lock);
	assert_true(told);
	assert_int_equal(porch_wait(porch, prefetch), 2);
	porch_release(porch, prefetch);
}

static void a_prefetch_without_an_ask_is_of_whole_objects(void **state)
{
	struct porch *const porch = *state;
	kvs_prefetch        prefetch;

	porch->bytes = 64u << 10;
	porch_write(porch, 0, 3);
	porch_leave_host(porch);
	porch_name(porch, 0, 3);
	assert_int_equal(
		kvs_prefetch_submit(porch->kvs, porch->me, porch->keys, 3, NULL, &prefetch, NULL),
		0);
	assert_int_equal(porch_wait(porch, prefetch), 3);
	assert_int_equal(porch_check(porch, prefetch, 0), 3);
	porch_release(porch, prefetch);
}

/* Each object has the length that it was written with. */
static void objects_of_a_prefetch_may_differ_in_size(void **state)
{
	struct porch *const porch = *state;
	const uint64_t      bytes[3] = { 4096, 12288, 40 };
	kvs_prefetch        prefetch;
	uint32_t            count, i;

	for (i = 0; i < 3; i++) {
		porch->bytes = bytes[i];
		porch_write(porch, i, 1);
	}
	porch_leave_host(porch);
	porch_name(porch, 0, 3);
	assert_int_equal(kvs_prefetch_submit(porch->kvs, porch->me, porch->keys, 3,
					     &(struct kvs_ask){ .bytes_each = bytes }, &prefetch,
					     NULL),
			 0);
	assert_int_equal(porch_wait(porch, prefetch), 3);
	assert_int_equal(kvs_prefetch_spans(porch->kvs, prefetch, porch->spans, 3, &count), 0);
	for (i = 0; i < 3; i++) {
		assert_int_equal(porch->spans[i].bytes, bytes[i]);
		assert_true(is_filled(porch->spans[i].ptr, i, (uint32_t)bytes[i]));
	}
	porch_release(porch, prefetch);
}

int main(void)
{
#define ON(name, setup) cmocka_unit_test_setup_teardown(name, setup, shut)
	const struct CMUnitTest tests[] = {
		ON(B5_1_what_host_has_is_there_at_once, open_on_mem),
		ON(B5_1_what_host_has_is_there_at_once, open_without_store),
		ON(B5_1_the_prefix_before_a_gap_is_locked_and_the_rest_is_not, open_without_store),
		ON(B5_1_nothing_is_zero_chunks, open_without_store),
		ON(B5_1_skip_store_looks_in_host_only, open_on_mem),
		ON(B5_1_what_host_lost_comes_from_the_store, open_on_mem),
		ON(B5_1_host_and_store_add_up, open_on_mem),
		ON(B5_1_host_and_store_interleave, open_on_mem),
		ON(B4_2_a_gap_in_the_store_ends_the_prefix, open_on_mem),
		ON(B4_1_nothing_anywhere_is_zero_chunks, open_on_mem),
		ON(B1_4_what_was_loaded_goes_with_its_reader, open_on_mem),
		cmocka_unit_test(B3_2_a_policy_by_name_empties_host),
		ON(B5_1_a_window_needs_its_last_chunks_in_host, open_on_mem),
		ON(B5_1_a_window_comes_from_the_store, open_on_mem),
		ON(B5_1_a_window_comes_from_host_and_store, open_on_mem),
		ON(B5_1_all_ranks_must_have_it, open_on_mem),
		ON(B4_1_a_result_is_told_once, open_on_mem),
		ON(too_few_spans_are_refused_with_their_number, open_on_mem),
		ON(B5_1_each_reader_releases_once, open_on_mem),
		ON(B5_1_a_scoped_read_releases_whatever_its_user_returns, open_on_mem),
		ON(a_scoped_read_of_nothing_calls_nobody, open_on_mem),
		ON(a_scoped_read_keeps_its_locks_when_its_client_closes, open_without_store),
		cmocka_unit_test(B5_1_a_release_is_a_use),
		ON(the_descriptor_tells_that_one_is_done, open_on_mem),
		ON(the_descriptor_tells_it_when_a_look_takes_the_result_first, open_on_mem),
		ON(a_prefetch_without_an_ask_is_of_whole_objects, open_on_mem),
		ON(objects_of_a_prefetch_may_differ_in_size, open_on_mem),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
