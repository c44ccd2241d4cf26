/* SPDX-License-Identifier: Apache-2.0 */
/* Removing by key and by namespace, and what force does to those who still read or write. */
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

/* --- without force ---------------------------------------------------------------------------- */

static void B1_1_a_removal_says_what_it_found(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(inn_remove(inn, 1, false), KVS_E_MISSING);
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_remove(inn, 1, false), KVS_E_LOCKED);
	assert_int_equal(inn_finish(inn, 1), 0);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_remove(inn, 1, false), KVS_E_LOCKED);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_remove(inn, 1, false), 0);
	assert_int_equal(inn_remove(inn, 1, false), KVS_E_MISSING);
	assert_int_equal(inn_usage(inn).used_bytes, 0);
}

static void B1_1_a_removal_of_a_mixed_batch(void **state)
{
	struct inn *const    inn = *state;
	const struct kvs_key keys[] = { key_of(1), key_of(2), key_of(3) };
	int                  rc[3];

	inn_put(inn, 1);
	inn_put(inn, 3);
	assert_int_equal(inn_lock(inn, inn->client, 3, 1), 0);
	assert_int_equal(host_remove(inn->host, keys, 3, false, rc), 0);
	assert_int_equal(rc[0], 0);
	assert_int_equal(rc[1], KVS_E_MISSING);
	assert_int_equal(rc[2], KVS_E_LOCKED);
	assert_true(inn_has(inn, 3));
}

/* A live reservation pins its key, though what is resident is unlocked. */
static void B1_2_a_writer_beside_it_keeps_an_object(void **state)
{
	struct inn *const        inn = *state;
	const struct host_writer other = { inn->other, 0 };

	assert_int_equal(inn_reserve_as(inn, other, 1, INN_PAGE, 0), 0);
	inn_put(inn, 1);
	assert_int_equal(inn_remove(inn, 1, false), KVS_E_LOCKED);
	assert_int_equal(inn_finish_as(inn, other, 1), 0);
	assert_int_equal(inn_remove(inn, 1, false), 0);
}

static void a_temporary_object_that_nobody_reads_can_be_removed(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, HOST_TEMPORARY), 0);
	assert_int_equal(inn_finish(inn, 1), 0);
	assert_int_equal(inn_remove(inn, 1, false), 0);
	inn_put(inn, 1);
}

static void what_expired_is_reclaimed_by_a_removal(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	inn->now_ns += INN_WRITE_TTL;
	host_expire(inn->host, inn->now_ns);
	assert_int_equal(inn_remove(inn, 1, false), KVS_E_MISSING);
	inn_put(inn, 2);
	assert_int_equal(inn_lock(inn, inn->client, 2, 1), 0);
	inn->now_ns += INN_READ_TTL;
	host_expire(inn->host, inn->now_ns);
	assert_int_equal(inn_remove(inn, 2, false), 0);
}

/* --- with force ------------------------------------------------------------------------------- */

static void force_takes_a_locked_object_from_new_readers_and_leaves_it_to_the_old(void **state)
{
	struct inn *const inn = *state;
	void             *at;

	inn_put(inn, 1);
	assert_int_equal(inn_lock(inn, inn->client, 1, 2), 0);
	at = inn_span.ptr;
	inn_deaf(inn);
	assert_int_equal(inn_remove(inn, 1, true), 0);
	assert_int_equal(inn_heard_of(inn, HOST_REMOVED, 1), 1);
	assert_int_equal(inn_usage(inn).doomed, 1);
	assert_int_equal(inn_usage(inn).objects, 0);
	assert_false(inn_has(inn, 1));
	assert_int_equal(inn_lock(inn, inn->other, 1, 1), KVS_E_MISSING);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), KVS_E_MISSING);
	assert_int_equal(inn_spans(inn, inn->other, 1), KVS_E_MISSING);
	assert_int_equal(inn_unlock(inn, inn->other, 1, 1), KVS_E_MISSING);
	/* Nobody else gets the bytes, nor the key. */
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), KVS_E_BUSY);
	assert_int_equal(inn_reserve(inn, 2, 62 * INN_PAGE, 0), KVS_E_FULL);
	assert_int_equal(inn_spans(inn, inn->client, 1), 0);
	assert_ptr_equal(inn_span.ptr, at);
	assert_true(is_filled(at, 1, INN_PAGE));
	assert_int_equal(inn_remove(inn, 1, true), KVS_E_MISSING);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 3), KVS_E_STALE);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 2), 0);
	assert_int_equal(inn_usage(inn).doomed, 0);
	assert_int_equal(inn_usage(inn).used_bytes, 0);
	assert_int_equal(inn_heard_of(inn, HOST_REMOVED, 1), 1);
	inn_put(inn, 1);
}

static void a_doomed_object_waits_for_its_pins_as_well(void **state)
{
	struct inn *const inn = *state;
	struct host_pin   pins[2];

	inn_put(inn, 1);
	assert_int_equal(inn_pin(inn, 1, &pins[0]), 0);
	assert_int_equal(inn_pin(inn, 1, &pins[1]), 0);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_remove(inn, 1, true), 0);
	host_unpin(inn->host, &pins[0], 1);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_usage(inn).doomed, 1);
	host_unpin(inn->host, &pins[1], 1);
	assert_int_equal(inn_usage(inn).doomed, 0);
}

static void a_doomed_object_goes_when_its_locks_expire(void **state)
{
	struct inn *const inn = *state;

	inn_put(inn, 1);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_remove(inn, 1, true), 0);
	inn->now_ns += INN_READ_TTL;
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_usage(inn).doomed, 0);
}

/* Without force 0 of 1, and it is still staged; with force 1; then there is nothing left. */
static void force_drops_what_clients_stage(void **state)
{
	struct inn *const        inn = *state;
	const struct host_writer other = { inn->other, 0 };

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_reserve_as(inn, other, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_remove(inn, 1, false), KVS_E_LOCKED);
	assert_int_equal(inn_usage(inn).staged, 2);
	assert_int_equal(inn_remove(inn, 1, true), 0);
	assert_int_equal(inn_usage(inn).staged, 0);
	assert_int_equal(inn_remove(inn, 1, true), KVS_E_MISSING);
	assert_int_equal(inn_finish(inn, 1), KVS_E_MISSING);
	/* Beside a resident object, too. */
	assert_int_equal(inn_reserve_as(inn, other, 1, INN_PAGE, 0), 0);
	inn_put(inn, 1);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_remove(inn, 1, true), 0);
	assert_int_equal(inn_finish_as(inn, other, 1), KVS_E_MISSING);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
}

/* I/O may be under way into it: its memory is nobody else's before its owner says so. */
static void force_leaves_what_is_under_io(void **state)
{
	struct inn *const  inn = *state;
	host_client        loader;
	struct host_writer writer;

	assert_int_equal(host_client_open(inn->host, HOST_NO_TTL, &loader), 0);
	writer = (struct host_writer){ loader, 1 };
	assert_int_equal(inn_reserve_as(inn, writer, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_remove(inn, 1, true), KVS_E_LOCKED);
	assert_int_equal(inn_usage(inn).staged, 1);
	assert_int_equal(inn_finish_as(inn, writer, 1), 0);
	assert_true(inn_has(inn, 1));
	assert_int_equal(host_client_close(inn->host, loader, inn->now_ns), 0);
}

/* What was loaded for a key that was forced out is as stale as what its readers still read. */
static void a_load_beside_a_doomed_object_comes_to_nothing(void **state)
{
	struct inn *const  inn = *state;
	host_client        loader;
	struct host_writer writer;

	assert_int_equal(host_client_open(inn->host, HOST_NO_TTL, &loader), 0);
	writer = (struct host_writer){ loader, 1 };
	assert_int_equal(inn_reserve_as(inn, writer, 1, INN_PAGE, 0), 0);
	inn_put(inn, 1);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_remove(inn, 1, true), 0);
	assert_int_equal(inn_usage(inn).staged, 1);
	assert_int_equal(inn_finish_as(inn, writer, 1), KVS_E_STALE);
	assert_int_equal(inn_usage(inn).staged, 0);
	assert_false(inn_has(inn, 1));
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_int_equal(host_client_close(inn->host, loader, inn->now_ns), 0);
}

/* The doomed one goes first; what is loaded then is a new object. */
static void a_load_that_outlives_the_doomed_object_is_published(void **state)
{
	struct inn *const  inn = *state;
	host_client        loader;
	struct host_writer writer;

	assert_int_equal(host_client_open(inn->host, HOST_NO_TTL, &loader), 0);
	writer = (struct host_writer){ loader, 1 };
	assert_int_equal(inn_reserve_as(inn, writer, 1, INN_PAGE, 0), 0);
	inn_put(inn, 1);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_remove(inn, 1, true), 0);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_finish_as(inn, writer, 1), 0);
	assert_true(inn_has(inn, 1));
	assert_int_equal(host_client_close(inn->host, loader, inn->now_ns), 0);
}

/* --- all -------------------------------------------------------------------------------------- */

static void clear_removes_what_nobody_holds(void **state)
{
	struct inn *const inn = *state;
	uint64_t          removed, left;

	inn_put(inn, 1);
	inn_put(inn, 2);
	inn_put(inn, 3);
	assert_int_equal(inn_lock(inn, inn->client, 2, 1), 0);
	assert_int_equal(inn_reserve(inn, 4, INN_PAGE, 0), 0);
	host_clear(inn->host, NULL, false, &removed, &left);
	assert_int_equal(removed, 2);
	assert_int_equal(left, 2);
	assert_true(inn_has(inn, 2));
	assert_int_equal(inn_finish(inn, 4), 0);
	host_clear(inn->host, NULL, true, &removed, &left);
	assert_int_equal(removed, 2);
	assert_int_equal(left, 0);
	assert_int_equal(inn_usage(inn).doomed, 1);
	assert_int_equal(inn_unlock(inn, inn->client, 2, 1), 0);
	assert_int_equal(inn_usage(inn).used_bytes, 0);
	host_clear(inn->host, NULL, true, &removed, &left);
	assert_int_equal(removed + left, 0);
}

static void clear_of_a_namespace_leaves_all_others(void **state)
{
	struct inn *const          inn = *state;
	const struct kvs_namespace space = { { 9 } };
	struct kvs_key             key = key_of(5);
	const uint64_t             bytes = INN_PAGE;
	const struct host_writer   writer = { inn->client, 0 };
	uint64_t                   removed, left;
	int                        rc;

	inn_put(inn, 5);
	key.space = space;
	assert_int_equal(
		host_reserve(inn->host, writer, &key, &bytes, 1, 0, inn->now_ns, &inn_span, &rc),
		0);
	assert_int_equal(host_finish(inn->host, writer, &key, 1, inn->now_ns, &rc), 0);
	host_clear(inn->host, &space, false, &removed, &left);
	assert_int_equal(removed, 1);
	assert_int_equal(left, 0);
	assert_true(inn_has(inn, 5));
	assert_int_equal(inn_usage(inn).objects, 1);
}

/* More objects than a visit looks at, in several shards, all told. */
static void clear_tells_of_everything_that_went(void **state)
{
	struct inn *const inn = *state;
	uint64_t          removed, left;
	uint32_t          i;

	inn_close(inn);
	inn_init(inn, 4096);
	inn->options.object_max = 2000;
	inn->options.shard_count = 2;
	inn_open(inn);
	for (i = 0; i < 2000; i++)
		inn_put(inn, i);
	inn_deaf(inn);
	host_clear(inn->host, NULL, false, &removed, &left);
	assert_int_equal(removed, 2000);
	assert_int_equal(inn->heard_count, 2000);
	assert_int_equal(inn_usage(inn).used_bytes, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(B1_1_a_removal_says_what_it_found),
		TEST(B1_1_a_removal_of_a_mixed_batch),
		TEST(B1_2_a_writer_beside_it_keeps_an_object),
		TEST(a_temporary_object_that_nobody_reads_can_be_removed),
		TEST(what_expired_is_reclaimed_by_a_removal),
		TEST(force_takes_a_locked_object_from_new_readers_and_leaves_it_to_the_old),
		TEST(a_doomed_object_waits_for_its_pins_as_well),
		TEST(a_doomed_object_goes_when_its_locks_expire),
		TEST(force_drops_what_clients_stage),
		TEST(force_leaves_what_is_under_io),
		TEST(a_load_beside_a_doomed_object_comes_to_nothing),
		TEST(a_load_that_outlives_the_doomed_object_is_published),
		TEST(clear_removes_what_nobody_holds),
		TEST(clear_of_a_namespace_leaves_all_others),
		TEST(clear_tells_of_everything_that_went),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
