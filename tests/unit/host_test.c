/* SPDX-License-Identifier: Apache-2.0 */
/* Host objects from reservation to the last unlock: what each call says in each state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "inn.h"
#include "named_block.h"

static int setup(void **state)
{
	static struct inn inn;

	inn_init(&inn, 64);
	inn_open(&inn);
	*state = &inn;
	return 0;
}

static int teardown(void **state)
{
	inn_close(*state);
	return 0;
}

/* --- the whole life --------------------------------------------------------------------------- */

static void B1_1_an_object_is_reserved_filled_finished_locked_and_unlocked(void **state)
{
	struct inn *const inn = *state;
	void             *at;

	assert_int_equal(inn_reserve(inn, 1, 5000, 0), 0);
	assert_int_equal(inn_span.bytes, 5000);
	assert_int_equal(inn_span.room, 3 * INN_PAGE);
	assert_int_equal((uintptr_t)inn_span.ptr % INN_PAGE, 0);
	at = inn_span.ptr;
	fill(at, 1, 5000);
	assert_int_equal(inn_finish(inn, 1), 0);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_ptr_equal(inn_span.ptr, at);
	assert_int_equal(inn_span.bytes, 5000);
	assert_true(is_filled(at, 1, 5000));
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_true(inn_has(inn, 1));
}

/* With looks between: they neither take a lock nor need one more. */
static void B1_1_a_cycle_with_three_looks_ends_in_a_removal(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	inn_put(inn, 1);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(inn_spans(inn, inn->client, 1), 0);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_remove(inn, 1, false), 0);
	assert_false(inn_has(inn, 1));
	assert_int_equal(inn_usage(inn).used_bytes, 0);
}

/* --- locking ---------------------------------------------------------------------------------- */

static void B1_1_a_lock_of_what_is_missing_is_refused(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(inn_lock(inn, inn->client, 1, 1), KVS_E_MISSING);
	assert_null(inn_span.ptr);
	assert_int_equal(inn_usage(inn).counters[HOST_MISSES], 1);
}

static void B1_1_each_row_of_a_batch_has_its_own_code(void **state)
{
	struct inn *const    inn = *state;
	const struct kvs_key keys[] = { key_of(1), key_of(2), key_of(3) };
	struct kvs_span      spans[3];
	int                  rc[3];

	inn_put(inn, 1);
	assert_int_equal(inn_reserve(inn, 3, INN_PAGE, 0), 0);
	assert_int_equal(host_lock(inn->host, inn->client, 1, keys, 3, inn->now_ns, spans, rc), 0);
	assert_int_equal(rc[0], 0);
	assert_non_null(spans[0].ptr);
	assert_int_equal(rc[1], KVS_E_MISSING);
	/* Being written: as good as missing. */
	assert_int_equal(rc[2], KVS_E_MISSING);
	assert_null(spans[2].ptr);
}

static void B1_1_a_key_may_be_locked_several_times(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	inn_put(inn, 1);
	for (i = 0; i < 3; i++)
		assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_usage(inn).locks, 3);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 3), 0);
	assert_int_equal(inn_usage(inn).locks, 0);
}

/* --- looking at what is locked ---------------------------------------------------------------- */

static void B1_1_spans_are_for_those_who_hold_a_lock(void **state)
{
	struct inn *const inn = *state;
	void             *at;

	assert_int_equal(inn_spans(inn, inn->client, 1), KVS_E_MISSING);
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	at = inn_span.ptr;
	assert_int_equal(inn_spans(inn, inn->client, 1), KVS_E_MISSING);
	assert_int_equal(inn_finish(inn, 1), 0);
	assert_int_equal(inn_spans(inn, inn->client, 1), KVS_E_STALE);
	assert_null(inn_span.ptr);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_spans(inn, inn->client, 1), 0);
	assert_ptr_equal(inn_span.ptr, at);
	/* Another's lock is no lock of mine. */
	assert_int_equal(inn_spans(inn, inn->other, 1), KVS_E_STALE);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_spans(inn, inn->client, 1), KVS_E_STALE);
}

static void B1_1_spans_of_a_mixed_batch(void **state)
{
	struct inn *const    inn = *state;
	const struct kvs_key keys[] = { key_of(1), key_of(2), key_of(3) };
	struct kvs_span      spans[3];
	int                  rc[3];

	inn_put(inn, 1);
	inn_put(inn, 2);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_int_equal(host_spans(inn->host, inn->client, keys, 3, inn->now_ns, spans, rc), 0);
	assert_int_equal(rc[0], 0);
	assert_ptr_equal(spans[0].ptr, inn_span.ptr);
	assert_int_equal(rc[1], KVS_E_STALE);
	assert_int_equal(rc[2], KVS_E_MISSING);
}

static void B1_4_five_looks_need_no_more_than_one_unlock(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, HOST_TEMPORARY), 0);
	assert_int_equal(inn_finish_locked(inn, 1, 1), 0);
	for (i = 0; i < 5; i++)
		assert_int_equal(inn_spans(inn, inn->client, 1), 0);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_false(inn_has(inn, 1));
}

/* --- unlocking -------------------------------------------------------------------------------- */

static void B1_1_an_unlock_needs_a_lock(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), KVS_E_MISSING);
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), KVS_E_MISSING);
	assert_int_equal(inn_finish(inn, 1), 0);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), KVS_E_STALE);
	assert_int_equal(inn_lock(inn, inn->client, 1, 2), 0);
	/* More than it has: none is taken. */
	assert_int_equal(inn_unlock(inn, inn->client, 1, 3), KVS_E_STALE);
	assert_int_equal(inn_usage(inn).locks, 2);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 2), 0);
}

static void B1_4_a_temporary_object_is_gone_with_its_last_lock(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, HOST_TEMPORARY), 0);
	assert_int_equal(inn_finish(inn, 1), 0);
	assert_int_equal(inn_usage(inn).temporary, 1);
	/* Unlocked from the start: it stays until somebody was there for it. */
	assert_true(inn_has(inn, 1));
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_false(inn_has(inn, 1));
	assert_int_equal(inn_usage(inn).used_bytes, 0);
	assert_int_equal(inn_usage(inn).temporary, 0);
}

static void B1_4_three_locks_of_a_temporary_object_need_three_unlocks(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, HOST_TEMPORARY), 0);
	assert_int_equal(inn_finish_locked(inn, 1, 1), 0);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_lock(inn, inn->other, 1, 1), 0);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_unlock(inn, inn->other, 1, 1), 0);
	assert_true(inn_has(inn, 1));
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_false(inn_has(inn, 1));
}

/* --- reserving -------------------------------------------------------------------------------- */

static void B1_1_five_keys_are_reserved_in_one_batch_at_places_of_their_own(void **state)
{
	struct inn *const        inn = *state;
	const struct host_writer writer = { inn->client, 0 };
	struct kvs_key           keys[5];
	uint64_t                 bytes[5];
	struct kvs_span          spans[5];
	int                      rc[5];
	uint32_t                 i;

	for (i = 0; i < 5; i++) {
		keys[i] = key_of(i);
		bytes[i] = 3 * INN_PAGE + i;
	}
	assert_int_equal(host_reserve(inn->host, writer, keys, bytes, 5, 0, inn->now_ns, spans, rc),
			 0);
	for (i = 0; i < 5; i++) {
		assert_int_equal(rc[i], 0);
		assert_int_equal(spans[i].bytes, bytes[i]);
		fill(spans[i].ptr, i, 3 * INN_PAGE);
	}
	for (i = 0; i < 5; i++)
		assert_true(is_filled(spans[i].ptr, i, 3 * INN_PAGE));
	assert_int_equal(host_finish(inn->host, writer, keys, 5, inn->now_ns, rc), 0);
	assert_int_equal(inn_usage(inn).objects, 5);
}

static void B1_4_what_exists_cannot_be_reserved_in_any_state(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), KVS_E_BUSY);
	assert_int_equal(inn_finish(inn, 1), 0);
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), KVS_E_EXISTS);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), KVS_E_EXISTS);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_reserve(inn, 2, INN_PAGE, HOST_TEMPORARY), 0);
	assert_int_equal(inn_finish(inn, 2), 0);
	assert_int_equal(inn_reserve(inn, 2, INN_PAGE, 0), KVS_E_EXISTS);
	assert_null(inn_span.ptr);
}

static void B1_4_a_batch_of_existing_keys_is_refused_row_by_row(void **state)
{
	struct inn *const        inn = *state;
	const struct host_writer writer = { inn->client, 0 };
	struct kvs_key           keys[6];
	const uint64_t           bytes[6] = { 8, 8, 8, 8, 8, 8 };
	struct kvs_span          spans[6];
	int                      rc[6];
	uint32_t                 i;

	for (i = 0; i < 6; i++)
		keys[i] = key_of(i);
	for (i = 0; i < 5; i++)
		inn_put(inn, i);
	assert_int_equal(host_reserve(inn->host, writer, keys, bytes, 6, 0, inn->now_ns, spans, rc),
			 0);
	for (i = 0; i < 5; i++)
		assert_int_equal(rc[i], KVS_E_EXISTS);
	assert_int_equal(rc[5], 0);
}

static void a_key_that_a_batch_names_twice_is_two_requests(void **state)
{
	struct inn *const        inn = *state;
	const struct host_writer writer = { inn->client, 0 };
	const struct kvs_key     keys[] = { key_of(1), key_of(1) };
	const uint64_t           bytes[] = { INN_PAGE, INN_PAGE };
	struct kvs_span          spans[2];
	int                      rc[2];

	assert_int_equal(host_reserve(inn->host, writer, keys, bytes, 2, 0, inn->now_ns, spans, rc),
			 0);
	assert_int_equal(rc[0], 0);
	assert_int_equal(rc[1], KVS_E_BUSY);
	assert_int_equal(inn_finish(inn, 1), 0);
	assert_int_equal(host_lock(inn->host, inn->client, 1, keys, 2, inn->now_ns, spans, rc), 0);
	assert_int_equal(rc[1], 0);
	assert_int_equal(inn_usage(inn).locks, 2);
	assert_int_equal(host_unlock(inn->host, inn->client, 1, keys, 2, inn->now_ns, rc), 0);
	assert_int_equal(rc[0], 0);
	assert_int_equal(rc[1], 0);
}

static void sizes_that_no_field_holds_are_invalid(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(inn_reserve(inn, 1, 0, 0), KVS_E_INVALID);
	/* 64 pages, and one is the trailer. */
	assert_int_equal(inn_reserve(inn, 1, 63 * INN_PAGE + 1, 0), KVS_E_INVALID);
	assert_int_equal(inn_reserve(inn, 1, UINT64_MAX, 0), KVS_E_INVALID);
	assert_int_equal(inn_reserve(inn, 1, 63 * INN_PAGE, 0), 0);
	assert_int_equal(inn_usage(inn).used_bytes, 64 * INN_PAGE);
}

/* --- finishing -------------------------------------------------------------------------------- */

static void B1_1_a_finish_needs_a_reservation(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(inn_finish(inn, 1), KVS_E_MISSING);
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_finish(inn, 1), 0);
	assert_true(inn_has(inn, 1));
	/* Twice. */
	assert_int_equal(inn_finish(inn, 1), KVS_E_STALE);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_finish(inn, 1), KVS_E_STALE);
}

static void B1_1_finish_locked_publishes_and_locks_in_one_step(void **state)
{
	struct inn *const inn = *state;
	void             *at;

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	at = inn_span.ptr;
	assert_int_equal(inn_finish_locked(inn, 1, 2), 0);
	assert_ptr_equal(inn_span.ptr, at);
	assert_int_equal(inn_usage(inn).locks, 2);
	/* Readable, and not writable. */
	assert_int_equal(inn_spans(inn, inn->client, 1), 0);
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), KVS_E_EXISTS);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 2), 0);
}

static void B1_1_finish_locked_says_per_row_what_was_not_staged(void **state)
{
	struct inn *const        inn = *state;
	const struct host_writer writer = { inn->client, 0 };
	const struct kvs_key     keys[] = { key_of(1), key_of(2), key_of(3) };
	struct kvs_span          spans[3];
	int                      rc[3];

	inn_put(inn, 1);
	assert_int_equal(inn_reserve(inn, 3, INN_PAGE, 0), 0);
	assert_int_equal(host_finish_locked(inn->host, writer, inn->client, 1, keys, 3, inn->now_ns,
					    spans, rc),
			 0);
	assert_int_equal(rc[0], KVS_E_STALE);
	assert_null(spans[0].ptr);
	assert_int_equal(rc[1], KVS_E_MISSING);
	assert_int_equal(rc[2], 0);
	assert_ptr_equal(spans[2].ptr, inn_span.ptr);
	/* Locked and written already. */
	assert_int_equal(inn_finish_locked(inn, 3, 1), KVS_E_STALE);
	assert_int_equal(inn_usage(inn).locks, 1);
}

static void B1_4_finish_locked_without_locks_publishes_unlocked(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_finish_locked(inn, 1, 0), 0);
	assert_null(inn_span.ptr);
	assert_true(inn_has(inn, 1));
	assert_int_equal(inn_usage(inn).locks, 0);
	/* A temporary one was for its readers, and there are none. */
	assert_int_equal(inn_reserve(inn, 2, INN_PAGE, HOST_TEMPORARY), 0);
	assert_int_equal(inn_finish_locked(inn, 2, 0), 0);
	assert_false(inn_has(inn, 2));
	assert_int_equal(inn_usage(inn).used_bytes, 2 * INN_PAGE);
}

static void B1_1_a_reader_may_be_another_client_than_the_writer(void **state)
{
	struct inn *const        inn = *state;
	const struct host_writer writer = { inn->client, 5 };
	const struct kvs_key     key = key_of(1);
	int                      rc;

	assert_int_equal(inn_reserve_as(inn, writer, 1, INN_PAGE, 0), 0);
	assert_int_equal(host_finish_locked(inn->host, writer, inn->other, 1, &key, 1, inn->now_ns,
					    &inn_span, &rc),
			 0);
	assert_int_equal(rc, 0);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), KVS_E_STALE);
	assert_int_equal(inn_unlock(inn, inn->other, 1, 1), 0);
}

/* --- looking up ------------------------------------------------------------------------------- */

static void a_lookup_sets_one_bit_a_resident_key(void **state)
{
	struct inn *const inn = *state;
	struct kvs_key    keys[70];
	uint64_t          words[2] = { UINT64_MAX, UINT64_MAX };
	uint32_t          i;

	for (i = 0; i < 70; i++)
		keys[i] = key_of(i);
	inn_put(inn, 3);
	inn_put(inn, 69);
	assert_int_equal(host_lookup(inn->host, keys, 70, words), 0);
	assert_int_equal(words[0], 1u << 3);
	assert_int_equal(words[1], 1u << 5);
	assert_int_equal(inn_usage(inn).locks, 0);
}

/* --- close ------------------------------------------------------------------------------------ */

static void closing_drops_five_objects_and_nothing_is_left_of_them(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	for (i = 0; i < 5; i++)
		inn_put(inn, i);
	assert_int_equal(host_client_close(inn->host, inn->client, inn->now_ns), 0);
	assert_int_equal(host_client_close(inn->host, inn->other, inn->now_ns), 0);
	host_close(inn->host);
	inn_open(inn);
	assert_int_equal(inn_usage(inn).objects, 0);
	assert_false(inn_has(inn, 0));
	host_close(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(B1_1_an_object_is_reserved_filled_finished_locked_and_unlocked),
		TEST(B1_1_a_cycle_with_three_looks_ends_in_a_removal),
		TEST(B1_1_a_lock_of_what_is_missing_is_refused),
		TEST(B1_1_each_row_of_a_batch_has_its_own_code),
		TEST(B1_1_a_key_may_be_locked_several_times),
		TEST(B1_1_spans_are_for_those_who_hold_a_lock),
		TEST(B1_1_spans_of_a_mixed_batch),
		TEST(B1_4_five_looks_need_no_more_than_one_unlock),
		TEST(B1_1_an_unlock_needs_a_lock),
		TEST(B1_4_a_temporary_object_is_gone_with_its_last_lock),
		TEST(B1_4_three_locks_of_a_temporary_object_need_three_unlocks),
		TEST(B1_1_five_keys_are_reserved_in_one_batch_at_places_of_their_own),
		TEST(B1_4_what_exists_cannot_be_reserved_in_any_state),
		TEST(B1_4_a_batch_of_existing_keys_is_refused_row_by_row),
		TEST(a_key_that_a_batch_names_twice_is_two_requests),
		TEST(sizes_that_no_field_holds_are_invalid),
		TEST(B1_1_a_finish_needs_a_reservation),
		TEST(B1_1_finish_locked_publishes_and_locks_in_one_step),
		TEST(B1_1_finish_locked_says_per_row_what_was_not_staged),
		TEST(B1_4_finish_locked_without_locks_publishes_unlocked),
		TEST(B1_1_a_reader_may_be_another_client_than_the_writer),
		TEST(a_lookup_sets_one_bit_a_resident_key),
		TEST(closing_drops_five_objects_and_nothing_is_left_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
