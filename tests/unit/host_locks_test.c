/* SPDX-License-Identifier: Apache-2.0 */
/* Locks of clients and pins of operations: whose they are, when they end, what they keep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "death.h"
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

/* --- whose ------------------------------------------------------------------------------------ */

static void a_client_gives_back_its_own_locks_only(void **state)
{
	struct inn *const inn = *state;

	inn_put(inn, 1);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_unlock(inn, inn->other, 1, 1), KVS_E_STALE);
	assert_int_equal(inn_lock(inn, inn->other, 1, 1), 0);
	assert_int_equal(inn_unlock(inn, inn->other, 1, 2), KVS_E_STALE);
	assert_int_equal(inn_unlock(inn, inn->other, 1, 1), 0);
	assert_int_equal(inn_usage(inn).locks, 1);
}

static void closing_a_client_gives_back_its_locks_and_no_others(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	for (i = 0; i < 5; i++) {
		inn_put(inn, i);
		assert_int_equal(inn_lock(inn, inn->client, i, 1), 0);
		assert_int_equal(inn_lock(inn, inn->other, i, 3), 0);
	}
	assert_int_equal(host_client_close(inn->host, inn->other, inn->now_ns), 0);
	assert_int_equal(inn_usage(inn).locks, 5);
	assert_int_equal(inn_unlock(inn, inn->client, 0, 1), 0);
}

/* 2725: a reader a rank, each with locks of its own. */
static void B1_1_locks_are_taken_for_several_readers_at_once(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, HOST_TEMPORARY), 0);
	assert_int_equal(inn_finish_locked(inn, 1, 4), 0);
	for (i = 0; i < 3; i++)
		assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_true(inn_has(inn, 1));
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_false(inn_has(inn, 1));
}

/* 3088: what was given back once cannot be given back again. */
static void a_second_unlock_takes_nothing_from_others(void **state)
{
	struct inn *const inn = *state;

	inn_put(inn, 1);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_lock(inn, inn->other, 1, 1), 0);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), KVS_E_STALE);
	assert_int_equal(inn_usage(inn).locks, 1);
	assert_int_equal(inn_remove(inn, 1, false), KVS_E_LOCKED);
	assert_int_equal(inn_unlock(inn, inn->other, 1, 1), 0);
}

/* --- how many --------------------------------------------------------------------------------- */

static void locks_of_a_client_on_an_object_are_bounded(void **state)
{
	struct inn *const    inn = *state;
	const struct kvs_key key = key_of(1);
	int                  rc;

	inn_put(inn, 1);
	assert_int_equal(inn_lock(inn, inn->client, 1, 0), KVS_E_INVALID);
	assert_int_equal(inn_lock(inn, inn->client, 1, HOST_LOCKS_MAX + 1), KVS_E_INVALID);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 0), KVS_E_INVALID);
	assert_int_equal(inn_lock(inn, inn->client, 1, HOST_LOCKS_MAX), 0);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), KVS_E_FULL);
	assert_null(inn_span.ptr);
	assert_int_equal(inn_lock(inn, inn->other, 1, HOST_LOCKS_MAX), 0);
	assert_int_equal(inn_usage(inn).locks, 2 * HOST_LOCKS_MAX);
	assert_int_equal(inn_usage(inn).counters[HOST_REFUSED_LOCKS], 1);
	assert_int_equal(host_finish_locked(inn->host, (struct host_writer){ inn->client, 0 },
					    inn->client, HOST_LOCKS_MAX + 1, &key, 1, inn->now_ns,
					    &inn_span, &rc),
			 KVS_E_INVALID);
	assert_int_equal(inn_unlock(inn, inn->client, 1, HOST_LOCKS_MAX), 0);
}

static void pairs_of_client_and_object_are_bounded(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	inn_close(inn);
	inn_init(inn, 64);
	inn->options.lock_max = 2;
	inn_open(inn);
	for (i = 0; i < 3; i++)
		inn_put(inn, i);
	assert_int_equal(inn_lock(inn, inn->client, 0, 1), 0);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_lock(inn, inn->client, 2, 1), KVS_E_FULL);
	assert_int_equal(inn_lock(inn, inn->other, 0, 1), KVS_E_FULL);
	/* More of a pair that is there needs no room. */
	assert_int_equal(inn_lock(inn, inn->client, 0, 5), 0);
	/* A load that finds no lock stays staged, and succeeds later. */
	assert_int_equal(inn_reserve(inn, 7, INN_PAGE, 0), 0);
	assert_int_equal(inn_finish_locked(inn, 7, 1), KVS_E_FULL);
	assert_int_equal(inn_usage(inn).staged, 1);
	assert_int_equal(inn_usage(inn).counters[HOST_REFUSED_LOCKS], 3);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_finish_locked(inn, 7, 1), 0);
}

/* --- expiry ----------------------------------------------------------------------------------- */

static void B1_2_locks_expire_and_each_lock_begins_their_time_again(void **state)
{
	struct inn *const inn = *state;

	inn_put(inn, 1);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	inn->now_ns += INN_READ_TTL - 1;
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	inn->now_ns += INN_READ_TTL - 1;
	assert_int_equal(inn_spans(inn, inn->client, 1), 0);
	inn->now_ns++;
	assert_int_equal(inn_spans(inn, inn->client, 1), KVS_E_STALE);
	assert_int_equal(inn_usage(inn).locks, 0);
	assert_int_equal(inn_usage(inn).counters[HOST_EXPIRED_LOCKS], 1);
	/* The object is what it was. */
	assert_true(inn_has(inn, 1));
}

/* The second reader's lock is no reason for the first one's to live on, nor the other way round. */
static void each_clients_locks_expire_for_themselves(void **state)
{
	struct inn *const inn = *state;

	inn_put(inn, 1);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	inn->now_ns += INN_READ_TTL / 2;
	assert_int_equal(inn_lock(inn, inn->other, 1, 1), 0);
	inn->now_ns += INN_READ_TTL / 2;
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), KVS_E_STALE);
	assert_int_equal(inn_usage(inn).locks, 1);
	assert_int_equal(inn_unlock(inn, inn->other, 1, 1), 0);
}

/* A late unlock must not take the lock that somebody else holds by now. */
static void an_expired_lock_cannot_be_given_back_for_anothers(void **state)
{
	struct inn *const inn = *state;

	inn_put(inn, 1);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	inn->now_ns += INN_READ_TTL;
	assert_int_equal(inn_lock(inn, inn->other, 1, 1), 0);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), KVS_E_STALE);
	assert_int_equal(inn_unlock(inn, inn->other, 1, 1), 0);
}

/* 4691: the object is there, so a reader whose time ran out locks it again. */
static void a_reader_whose_lock_expired_locks_again(void **state)
{
	struct inn *const inn = *state;

	inn_put(inn, 1);
	assert_int_equal(inn_lock(inn, inn->client, 1, 3), 0);
	inn->now_ns += INN_READ_TTL;
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_usage(inn).locks, 1);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
}

static void B1_4_a_temporary_object_goes_with_a_lock_that_expires(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, HOST_TEMPORARY), 0);
	assert_int_equal(inn_finish_locked(inn, 1, 2), 0);
	inn->now_ns += INN_READ_TTL;
	inn_deaf(inn);
	host_expire(inn->host, inn->now_ns);
	assert_false(inn_has(inn, 1));
	assert_int_equal(inn_heard_of(inn, HOST_UNLOCKED, 1), 1);
	assert_int_equal(inn_heard_of(inn, HOST_REMOVED, 1), 1);
	assert_int_equal(inn_usage(inn).used_bytes, 0);
}

static void for_ever_is_never(void **state)
{
	struct inn *const inn = *state;

	inn_close(inn);
	inn_init(inn, 64);
	inn->options.read_ttl_ns = HOST_FOREVER;
	inn->options.write_ttl_ns = HOST_FOREVER - 5;
	inn_open(inn);
	inn_put(inn, 1);
	assert_int_equal(inn_reserve(inn, 2, INN_PAGE, 0), 0);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	inn->now_ns = HOST_FOREVER - 1;
	host_expire(inn->host, inn->now_ns);
	assert_int_equal(inn_usage(inn).locks, 1);
	assert_int_equal(inn_usage(inn).staged, 1);
}

/* More than a visit drops at a time; nobody is left behind, and nobody is told too much at once. */
static void many_expire_together(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	inn_close(inn);
	inn_init(inn, 1024);
	inn->options.object_max = 500;
	inn->options.lock_max = 500;
	inn_open(inn);
	for (i = 0; i < 200; i++) {
		assert_int_equal(inn_reserve(inn, i, INN_PAGE, HOST_TEMPORARY), 0);
		assert_int_equal(inn_finish_locked(inn, i, 1), 0);
		assert_int_equal(inn_reserve(inn, 1000 + i, INN_PAGE, 0), 0);
	}
	inn->now_ns += INN_WRITE_TTL;
	inn_deaf(inn);
	host_expire(inn->host, inn->now_ns);
	assert_int_equal(inn_usage(inn).used_bytes, 0);
	assert_int_equal(inn_usage(inn).counters[HOST_EXPIRED_LOCKS], 200);
	assert_int_equal(inn_usage(inn).counters[HOST_EXPIRED_WRITES], 200);
	assert_int_equal(inn->heard_count, 400);
}

/* --- pins ------------------------------------------------------------------------------------- */

static void B1_4_a_pin_keeps_an_object_whatever_time_it_is(void **state)
{
	struct inn *const inn = *state;
	struct host_pin   pin;

	inn_put(inn, 1);
	assert_int_equal(inn_pin(inn, 1, &pin), 0);
	assert_int_equal(inn_span.bytes, INN_PAGE);
	assert_int_equal(inn_usage(inn).pins, 1);
	inn->now_ns += 1000 * INN_READ_TTL;
	host_expire(inn->host, inn->now_ns);
	assert_int_equal(inn_remove(inn, 1, false), KVS_E_LOCKED);
	/* All other memory is to be had, and this is not. */
	assert_int_equal(inn_reserve(inn, 2, 62 * INN_PAGE, 0), KVS_E_FULL);
	host_unpin(inn->host, &pin, 1);
	assert_int_equal(inn_reserve(inn, 2, 62 * INN_PAGE, 0), 0);
	assert_false(inn_has(inn, 1));
}

static void B1_4_a_temporary_object_outlives_its_last_lock_under_a_pin(void **state)
{
	struct inn *const inn = *state;
	struct host_pin   pin;

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, HOST_TEMPORARY), 0);
	assert_int_equal(inn_finish_locked(inn, 1, 1), 0);
	assert_int_equal(inn_pin(inn, 1, &pin), 0);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_true(inn_has(inn, 1));
	host_unpin(inn->host, &pin, 1);
	assert_false(inn_has(inn, 1));
	/* With a lock again before the pin goes, it stays for that. */
	assert_int_equal(inn_reserve(inn, 2, INN_PAGE, HOST_TEMPORARY), 0);
	assert_int_equal(inn_finish_locked(inn, 2, 1), 0);
	assert_int_equal(inn_pin(inn, 2, &pin), 0);
	assert_int_equal(inn_unlock(inn, inn->client, 2, 1), 0);
	assert_int_equal(inn_lock(inn, inn->other, 2, 1), 0);
	host_unpin(inn->host, &pin, 1);
	assert_true(inn_has(inn, 2));
	assert_int_equal(inn_unlock(inn, inn->other, 2, 1), 0);
	assert_false(inn_has(inn, 2));
}

/* Nobody was there for it yet. */
static void a_pin_alone_does_not_use_up_a_temporary_object(void **state)
{
	struct inn *const inn = *state;
	struct host_pin   pin;

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, HOST_TEMPORARY), 0);
	assert_int_equal(inn_finish(inn, 1), 0);
	assert_int_equal(inn_pin(inn, 1, &pin), 0);
	host_unpin(inn->host, &pin, 1);
	assert_true(inn_has(inn, 1));
}

static void pins_of_a_batch_say_each_what_they_hold(void **state)
{
	struct inn *const    inn = *state;
	const struct kvs_key keys[] = { key_of(1), key_of(9), key_of(1) };
	struct host_pin      pins[3];
	struct kvs_span      spans[3];
	int                  rc[3];

	inn_put(inn, 1);
	assert_int_equal(host_pin(inn->host, keys, 3, pins, spans, rc), 0);
	assert_int_equal(rc[0], 0);
	assert_int_equal(rc[1], KVS_E_MISSING);
	assert_null(spans[1].ptr);
	assert_int_equal(rc[2], 0);
	assert_ptr_equal(spans[0].ptr, spans[2].ptr);
	assert_int_equal(inn_usage(inn).pins, 2);
	host_unpin(inn->host, &pins[0], 1);
	host_unpin(inn->host, &pins[2], 1);
	assert_int_equal(inn_usage(inn).pins, 0);
	/* An operation's claims say nothing of what readers find. */
	assert_int_equal(inn_usage(inn).counters[HOST_HITS], 0);
	assert_int_equal(inn_usage(inn).counters[HOST_MISSES], 0);
}

/* --- mistakes of ours ------------------------------------------------------------------------- */

static void unpin_twice(void *arg)
{
	struct inn *const inn = arg;
	struct host_pin   pin;

	(void)inn_pin(inn, 1, &pin);
	host_unpin(inn->host, &pin, 1);
	host_unpin(inn->host, &pin, 1);
}

static void close_with_clients(void *arg)
{
	host_close(((struct inn *)arg)->host);
}

static void close_with_a_pin(void *arg)
{
	struct inn *const inn = arg;
	struct host_pin   pin;

	(void)inn_pin(inn, 1, &pin);
	(void)host_client_close(inn->host, inn->client, inn->now_ns);
	(void)host_client_close(inn->host, inn->other, inn->now_ns);
	host_close(inn->host);
}

static void mistakes_are_panics(void **state)
{
	inn_put(*state, 1);
	assert_true(death_panics(unpin_twice, *state, NULL, 0));
	assert_true(death_panics(close_with_clients, *state, NULL, 0));
	assert_true(death_panics(close_with_a_pin, *state, NULL, 0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_client_gives_back_its_own_locks_only),
		TEST(closing_a_client_gives_back_its_locks_and_no_others),
		TEST(B1_1_locks_are_taken_for_several_readers_at_once),
		TEST(a_second_unlock_takes_nothing_from_others),
		TEST(locks_of_a_client_on_an_object_are_bounded),
		TEST(pairs_of_client_and_object_are_bounded),
		TEST(B1_2_locks_expire_and_each_lock_begins_their_time_again),
		TEST(each_clients_locks_expire_for_themselves),
		TEST(an_expired_lock_cannot_be_given_back_for_anothers),
		TEST(a_reader_whose_lock_expired_locks_again),
		TEST(B1_4_a_temporary_object_goes_with_a_lock_that_expires),
		TEST(for_ever_is_never),
		TEST(many_expire_together),
		TEST(B1_4_a_pin_keeps_an_object_whatever_time_it_is),
		TEST(B1_4_a_temporary_object_outlives_its_last_lock_under_a_pin),
		TEST(a_pin_alone_does_not_use_up_a_temporary_object),
		TEST(pins_of_a_batch_say_each_what_they_hold),
		TEST(mistakes_are_panics),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
