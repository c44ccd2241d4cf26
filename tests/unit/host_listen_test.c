/* SPDX-License-Identifier: Apache-2.0 */
/* What listeners hear: which events, once a batch, numbered, and outside all locks. */
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
	*state = &inn;
	return 0;
}

static int teardown(void **state)
{
	inn_close(*state);
	return 0;
}

static void assert_heard(struct inn *inn, enum host_event event, uint32_t number)
{
	assert_int_equal(inn->heard_count, 1);
	assert_int_equal(inn_heard_of(inn, event, number), 1);
	inn_deaf(inn);
}

/* --- which ------------------------------------------------------------------------------------ */

static void B1_3_each_change_is_told_once(void **state)
{
	struct inn *const inn = *state;

	inn_open(inn);
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	assert_heard(inn, HOST_RESERVED, 1);
	assert_int_equal(inn_finish(inn, 1), 0);
	assert_heard(inn, HOST_WRITTEN, 1);
	assert_int_equal(inn_lock(inn, inn->client, 1, 3), 0);
	assert_heard(inn, HOST_LOCKED, 1);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 3), 0);
	assert_heard(inn, HOST_UNLOCKED, 1);
	inn_touch(inn, 1);
	assert_heard(inn, HOST_TOUCHED, 1);
	assert_int_equal(inn_remove(inn, 1, false), 0);
	assert_heard(inn, HOST_REMOVED, 1);
	/* What failed, and what only looks, is told to nobody. */
	assert_int_equal(inn_remove(inn, 1, false), KVS_E_MISSING);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), KVS_E_MISSING);
	assert_int_equal(inn_finish(inn, 1), KVS_E_MISSING);
	assert_false(inn_has(inn, 1));
	inn_touch(inn, 1);
	assert_int_equal(inn->calls, 0);
}

/* 2738: what came from a store need not go there. */
static void B1_3_a_load_is_not_told_as_written(void **state)
{
	struct inn *const inn = *state;

	inn_open(inn);
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	inn_deaf(inn);
	assert_int_equal(inn_finish_locked(inn, 1, 1), 0);
	assert_heard(inn, HOST_LOADED, 1);
	assert_int_equal(inn_reserve(inn, 2, INN_PAGE, HOST_TEMPORARY), 0);
	inn_deaf(inn);
	assert_int_equal(inn_finish(inn, 2), 0);
	assert_heard(inn, HOST_LOADED, 2);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
}

static void a_listener_hears_what_it_asked_for(void **state)
{
	struct inn *const inn = *state;

	inn->options.listeners[0].events = 1u << HOST_WRITTEN;
	inn_open(inn);
	inn_put(inn, 1);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_heard(inn, HOST_WRITTEN, 1);
}

static void several_listeners_hear_the_same(void **state)
{
	struct inn *const inn = *state;

	inn->options.listeners[1] = inn->options.listeners[0];
	inn->options.listeners[1].events = 1u << HOST_REMOVED;
	inn->options.listener_count = 2;
	inn_open(inn);
	inn_put(inn, 1);
	inn_deaf(inn);
	assert_int_equal(inn_remove(inn, 1, false), 0);
	assert_int_equal(inn->calls, 2);
	assert_int_equal(inn->heard[0].sequence, inn->heard[1].sequence);
}

static void nobody_needs_to_listen(void **state)
{
	struct inn *const inn = *state;

	inn->options.listener_count = 0;
	inn->options.pressed = NULL;
	inn->options.high = 0.01;
	inn->options.low = 0.01;
	inn_open(inn);
	inn_put(inn, 1);
	assert_int_equal(inn->calls, 0);
	assert_int_equal(inn->presses, 0);
}

/* --- a batch ---------------------------------------------------------------------------------- */

static void reserve_many(struct inn *inn, struct kvs_key *keys, uint32_t first, uint32_t count)
{
	static uint64_t        bytes[HOST_KEYS_MAX];
	static struct kvs_span spans[HOST_KEYS_MAX];
	static int             rc[HOST_KEYS_MAX];
	uint32_t               i;

	for (i = 0; i < count; i++) {
		keys[i] = key_of(first + i);
		bytes[i] = INN_PAGE;
	}
	assert_int_equal(host_reserve(inn->host, (struct host_writer){ inn->client, 0 }, keys,
				      bytes, count, 0, inn->now_ns, spans, rc),
			 0);
	for (i = 0; i < count; i++)
		assert_int_equal(rc[i], 0);
}

static void finish_many(struct inn *inn, const struct kvs_key *keys, uint32_t count)
{
	static int rc[HOST_KEYS_MAX];

	assert_int_equal(host_finish(inn->host, (struct host_writer){ inn->client, 0 }, keys, count,
				     inn->now_ns, rc),
			 0);
}

static void B1_3_a_batch_is_one_call_an_event(void **state)
{
	struct inn *const inn = *state;
	struct kvs_key    keys[24];
	uint32_t          i;

	inn->options.shard_count = 8;
	inn_open(inn);
	reserve_many(inn, keys, 0, 24);
	assert_int_equal(inn->calls, 1);
	assert_int_equal(inn->heard_count, 24);
	finish_many(inn, keys, 24);
	assert_int_equal(inn->calls, 2);
	inn_deaf(inn);
	/* 32 fit: sixteen are evicted for others, all in one more call. */
	reserve_many(inn, keys, 100, 24);
	assert_int_equal(inn->calls, 2);
	assert_int_equal(inn->heard_count, 40);
	for (i = 0; i < 24; i++)
		assert_int_equal(inn->heard[i].event, HOST_RESERVED);
	for (; i < 40; i++)
		assert_int_equal(inn->heard[i].event, HOST_REMOVED);
}

static void a_long_batch_is_told_completely(void **state)
{
	static struct kvs_key keys[HOST_KEYS_MAX];
	struct inn *const     inn = *state;
	uint32_t              i;

	inn_close(inn);
	inn_init(inn, 2 * HOST_KEYS_MAX);
	inn->options.object_max = 2 * HOST_KEYS_MAX;
	inn->options.shard_count = 4;
	inn->options.listeners[0].events = 1u << HOST_WRITTEN | 1u << HOST_REMOVED;
	inn_open(inn);
	reserve_many(inn, keys, 0, HOST_KEYS_MAX);
	finish_many(inn, keys, HOST_KEYS_MAX);
	assert_int_equal(inn->heard_count, HOST_KEYS_MAX);
	for (i = 0; i < HOST_KEYS_MAX; i += 111)
		assert_int_equal(inn_heard_of(inn, HOST_WRITTEN, i), 1);
	inn_deaf(inn);
	reserve_many(inn, keys, HOST_KEYS_MAX, HOST_KEYS_MAX);
	assert_int_equal(inn->heard_count, HOST_KEYS_MAX);
	for (i = 0; i < HOST_KEYS_MAX; i += 111)
		assert_int_equal(inn_heard_of(inn, HOST_REMOVED, i), 1);
}

/*
 * The most a row can have to tell: its reader's lock on a temporary object is over, that goes, and
 * what was written is published.
 */
static void rows_that_have_the_most_to_tell_are_told_completely(void **state)
{
	static struct kvs_key  keys[512];
	static uint64_t        bytes[512];
	static struct kvs_span spans[512];
	static int             rc[512];
	struct inn *const      inn = *state;
	struct host_writer     reader, writer;
	uint32_t               i;

	inn_close(inn);
	inn_init(inn, 4 * 512);
	inn->options.object_max = inn->options.lock_max = 2 * 512;
	inn_open(inn);
	reader = (struct host_writer){ inn->client, 1 };
	writer = (struct host_writer){ inn->client, 2 };
	for (i = 0; i < 512; i++) {
		keys[i] = key_of(i);
		bytes[i] = INN_PAGE;
	}
	assert_int_equal(host_reserve(inn->host, reader, keys, bytes, 512, HOST_TEMPORARY,
				      inn->now_ns, spans, rc),
			 0);
	assert_int_equal(host_reserve(inn->host, writer, keys, bytes, 512, 0, inn->now_ns, spans,
				      rc),
			 0);
	assert_int_equal(host_finish_locked(inn->host, reader, inn->client, 1, keys, 512,
					    inn->now_ns, spans, rc),
			 0);
	inn_deaf(inn);
	inn->now_ns += INN_READ_TTL;
	assert_int_equal(host_finish_locked(inn->host, writer, inn->client, 1, keys, 512,
					    inn->now_ns, spans, rc),
			 0);
	assert_int_equal(inn->heard_count, 3 * 512);
	assert_int_equal(inn->calls, 3);
	for (i = 0; i < 512; i += 73) {
		assert_int_equal(rc[i], 0);
		assert_int_equal(inn_heard_of(inn, HOST_UNLOCKED, i), 1);
		assert_int_equal(inn_heard_of(inn, HOST_REMOVED, i), 1);
		assert_int_equal(inn_heard_of(inn, HOST_LOADED, i), 1);
	}
}

/* --- numbers ---------------------------------------------------------------------------------- */

static void B1_3_numbers_grow_with_the_changes_of_a_key(void **state)
{
	struct inn *const inn = *state;
	uint64_t          last = 0;
	uint32_t          i, j;

	inn_open(inn);
	inn_put(inn, 1);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_remove(inn, 1, false), 0);
	inn_put(inn, 1);
	assert_int_equal(inn->heard_count, 7);
	for (i = 0; i < inn->heard_count; i++) {
		assert_true(inn->heard[i].sequence > last);
		last = inn->heard[i].sequence;
	}
	/* Within a call as well: an unlock that is a temporary object's end. */
	assert_int_equal(inn_reserve(inn, 2, INN_PAGE, HOST_TEMPORARY), 0);
	assert_int_equal(inn_finish_locked(inn, 2, 1), 0);
	inn_deaf(inn);
	assert_int_equal(inn_unlock(inn, inn->client, 2, 1), 0);
	assert_int_equal(inn->heard_count, 2);
	assert_int_equal(inn->heard[0].event, HOST_UNLOCKED);
	assert_int_equal(inn->heard[1].event, HOST_REMOVED);
	assert_true(inn->heard[0].sequence < inn->heard[1].sequence);
	for (i = 0; i < inn->heard_count; i++) {
		for (j = 0; j < i; j++)
			assert_int_not_equal(inn->heard[i].sequence, inn->heard[j].sequence);
	}
}

/* --- outside all locks ------------------------------------------------------------------------ */

static void call_back(void *arg, const struct host_notice *notice)
{
	struct inn *const inn = arg;

	/* A listener must not: but if it held a lock, this would hang, and it does not. */
	if (notice->event == HOST_WRITTEN)
		(void)inn_usage(inn);
	inn->calls++;
}

static void no_lock_is_held_while_listeners_hear(void **state)
{
	struct inn *const inn = *state;

	inn->options.listeners[0].notify = call_back;
	inn_open(inn);
	inn_put(inn, 1);
	assert_int_equal(inn->calls, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(B1_3_each_change_is_told_once),
		TEST(B1_3_a_load_is_not_told_as_written),
		TEST(a_listener_hears_what_it_asked_for),
		TEST(several_listeners_hear_the_same),
		TEST(nobody_needs_to_listen),
		TEST(B1_3_a_batch_is_one_call_an_event),
		TEST(a_long_batch_is_told_completely),
		TEST(rows_that_have_the_most_to_tell_are_told_completely),
		TEST(B1_3_numbers_grow_with_the_changes_of_a_key),
		TEST(no_lock_is_held_while_listeners_hear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
