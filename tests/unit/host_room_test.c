/* SPDX-License-Identifier: Apache-2.0 */
/* Room: who goes for whom, what never goes, when there is none, and making it ahead of need. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "inn.h"
#include "key/key.h"
#include "named_block.h"

/* Twelve objects of one page and its trailer. */
#define PAGES 24u

static int setup(void **state)
{
	static struct inn inn;

	inn_init(&inn, PAGES);
	*state = &inn;
	return 0;
}

static int teardown(void **state)
{
	inn_close(*state);
	return 0;
}

static void fill_up(struct inn *inn)
{
	uint32_t i;

	for (i = 0; i < PAGES / 2; i++)
		inn_put(inn, i);
	assert_int_equal(inn_usage(inn).used_bytes, PAGES * INN_PAGE);
}

/* --- who goes --------------------------------------------------------------------------------- */

static void the_least_recently_used_goes_first(void **state)
{
	struct inn *const inn = *state;

	inn_open(inn);
	fill_up(inn);
	inn_touch(inn, 0);
	inn_deaf(inn);
	inn_put(inn, 100);
	assert_true(inn_has(inn, 0));
	assert_false(inn_has(inn, 1));
	assert_true(inn_has(inn, 2));
	assert_int_equal(inn_heard_of(inn, HOST_REMOVED, 1), 1);
	assert_int_equal(inn_usage(inn).counters[HOST_EVICTED], 1);
	assert_int_equal(inn_usage(inn).counters[HOST_EVICTED_BYTES], 2 * INN_PAGE);
}

/* Locks say who reads, and only a touch says what is of use. */
static void a_lock_is_no_use(void **state)
{
	struct inn *const inn = *state;

	inn_open(inn);
	fill_up(inn);
	assert_int_equal(inn_lock(inn, inn->client, 0, 1), 0);
	assert_int_equal(inn_unlock(inn, inn->client, 0, 1), 0);
	inn_put(inn, 100);
	assert_false(inn_has(inn, 0));
}

static void B1_2_what_is_locked_or_pinned_or_staged_does_not_go(void **state)
{
	struct inn *const inn = *state;
	struct host_pin   pin;
	uint32_t          i;

	inn_open(inn);
	for (i = 0; i < PAGES / 2 - 1; i++)
		inn_put(inn, i);
	assert_int_equal(inn_reserve(inn, 50, INN_PAGE, 0), 0);
	assert_int_equal(inn_lock(inn, inn->client, 0, 1), 0);
	assert_int_equal(inn_pin(inn, 1, &pin), 0);
	for (i = 100; i < 120; i++)
		inn_put(inn, i);
	assert_true(inn_has(inn, 0));
	assert_true(inn_has(inn, 1));
	assert_int_equal(inn_finish(inn, 50), 0);
	host_unpin(inn->host, &pin, 1);
}

/* It was next while it was locked, which is no reason to go at once afterwards. */
static void who_was_passed_over_goes_behind_all_others(void **state)
{
	struct inn *const inn = *state;

	inn_open(inn);
	fill_up(inn);
	assert_int_equal(inn_lock(inn, inn->client, 0, 1), 0);
	inn_put(inn, 100);
	assert_false(inn_has(inn, 1));
	assert_int_equal(inn_unlock(inn, inn->client, 0, 1), 0);
	inn_put(inn, 101);
	assert_true(inn_has(inn, 0));
	assert_false(inn_has(inn, 2));
	host_audit(inn->host);
}

/* For a policy that tells used from unused: whoever was locked when it was its turn was of use. */
static void who_was_passed_over_counts_as_used(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	inn->options.policy = "host-order";
	inn_open(inn);
	fill_up(inn);
	assert_int_equal(inn_lock(inn, inn->client, 0, 1), 0);
	inn_put(inn, 100);
	assert_int_equal(inn_unlock(inn, inn->client, 0, 1), 0);
	for (i = 101; i < 120; i++)
		inn_put(inn, i);
	assert_true(inn_has(inn, 0));
}

static void B1_2_temporary_objects_go_like_others_when_unlocked(void **state)
{
	struct inn *const inn = *state;

	inn_open(inn);
	assert_int_equal(inn_reserve(inn, 0, INN_PAGE, HOST_TEMPORARY), 0);
	assert_int_equal(inn_finish(inn, 0), 0);
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, HOST_TEMPORARY), 0);
	assert_int_equal(inn_finish_locked(inn, 1, 1), 0);
	assert_int_equal(inn_reserve(inn, 2, 19 * INN_PAGE, 0), 0);
	assert_int_equal(inn_reserve(inn, 3, INN_PAGE, 0), 0);
	assert_false(inn_has(inn, 0));
	assert_true(inn_has(inn, 1));
}

/* 418: a great many that are locked stand in front, and one behind them may go. */
static void a_crowd_of_locked_ones_is_passed_once(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	inn_close(inn);
	inn_init(inn, 800);
	inn->options.object_max = 400;
	inn->options.lock_max = 400;
	inn_open(inn);
	for (i = 0; i < 400; i++)
		inn_put(inn, i);
	for (i = 0; i < 399; i++)
		assert_int_equal(inn_lock(inn, inn->client, i, 1), 0);
	inn_put(inn, 1000);
	assert_false(inn_has(inn, 399));
	host_audit(inn->host);
	for (i = 0; i < 399; i++)
		assert_int_equal(inn_unlock(inn, inn->client, i, 1), 0);
	host_audit(inn->host);
	/* The newest is older than those that were passed over. */
	inn_put(inn, 1001);
	assert_false(inn_has(inn, 1000));
}

static void a_buffer_only_evicts_nothing(void **state)
{
	struct inn *const inn = *state;

	inn->options.policy = "none";
	inn_open(inn);
	fill_up(inn);
	assert_int_equal(inn_reserve(inn, 100, INN_PAGE, 0), KVS_E_FULL);
	assert_int_equal(inn_usage(inn).objects, PAGES / 2);
	assert_int_equal(inn_usage(inn).counters[HOST_REFUSED_BYTES], 1);
	assert_int_equal(host_relieve(inn->host, inn->now_ns, 10), 0);
	assert_int_equal(inn_remove(inn, 3, false), 0);
	inn_put(inn, 100);
}

/* --- sizes ------------------------------------------------------------------------------------ */

static void a_large_object_takes_the_room_of_several(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i, left = 0;

	inn_open(inn);
	fill_up(inn);
	inn_put_bytes(inn, 100, 5 * INN_PAGE);
	for (i = 0; i < PAGES / 2; i++)
		left += inn_has(inn, i);
	/* Three had to go, and they lay side by side. */
	assert_int_equal(left, PAGES / 2 - 3);
	assert_int_equal(inn_usage(inn).used_bytes, PAGES * INN_PAGE);
}

/* 3187: whatever was there in between, all memory is one piece again. */
static void memory_that_is_given_back_joins(void **state)
{
	struct inn *const inn = *state;
	uint32_t          round, i;

	inn_open(inn);
	for (round = 0; round < 50; round++) {
		for (i = 0; i < 5; i++) {
			assert_int_equal(
				inn_reserve(inn, i, (1 + (i * 7 + round) % 3) * INN_PAGE, 0), 0);
		}
		for (i = 0; i < 5; i++)
			assert_int_equal(inn_discard(inn, (i * 3 + round) % 5), 0);
	}
	assert_int_equal(inn_reserve(inn, 0, (PAGES - 1) * INN_PAGE, 0), 0);
}

static void no_object_lies_across_two_fields(void **state)
{
	struct inn *const inn = *state;
	uint8_t *const    memory = inn->memory;

	/* They touch in memory. */
	inn->fields[0].bytes = 10 * INN_PAGE;
	inn->fields[1] = (struct kvs_span){ .ptr = memory + 10 * INN_PAGE, .bytes = 14 * INN_PAGE };
	inn->options.field_count = 2;
	inn_open(inn);
	assert_int_equal(inn_usage(inn).bytes, PAGES * INN_PAGE);
	assert_int_equal(inn_reserve(inn, 1, 14 * INN_PAGE, 0), KVS_E_INVALID);
	assert_int_equal(inn_reserve(inn, 1, 13 * INN_PAGE, 0), 0);
	assert_ptr_equal(inn_span.ptr, memory + 10 * INN_PAGE);
	assert_int_equal(inn_reserve(inn, 2, 10 * INN_PAGE, 0), KVS_E_FULL);
	assert_int_equal(inn_reserve(inn, 2, 9 * INN_PAGE, 0), 0);
	assert_ptr_equal(inn_span.ptr, memory);
}

/* Its run shares a class with shorter ones: looked for one by one before a refusal. */
static void a_run_that_just_fits_is_found(void **state)
{
	struct inn *const inn = *state;

	inn_close(inn);
	inn_init(inn, 40);
	inn_open(inn);
	assert_int_equal(inn_reserve(inn, 1, 6 * INN_PAGE, 0), 0);
	assert_int_equal(inn_reserve(inn, 2, 33 * INN_PAGE, 0), KVS_E_FULL);
	assert_int_equal(inn_reserve(inn, 2, 32 * INN_PAGE, 0), 0);
}

/* --- no room ---------------------------------------------------------------------------------- */

static void a_reservation_that_cannot_succeed_evicts_nothing(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	inn_open(inn);
	fill_up(inn);
	for (i = 0; i < 6; i++)
		assert_int_equal(inn_lock(inn, inn->client, i, 1), 0);
	inn_deaf(inn);
	assert_int_equal(inn_reserve(inn, 100, 12 * INN_PAGE, 0), KVS_E_FULL);
	assert_int_equal(inn_heard_of(inn, HOST_REMOVED, 6), 1);
	assert_int_equal(inn_usage(inn).counters[HOST_REFUSED_BYTES], 1);
	assert_int_equal(inn_usage(inn).locks, 6);
}

static void a_batch_gets_what_there_is(void **state)
{
	struct inn *const        inn = *state;
	const struct host_writer writer = { inn->client, 0 };
	struct kvs_key           keys[20];
	uint64_t                 bytes[20];
	struct kvs_span          spans[20];
	int                      rc[20];
	uint32_t                 i, got = 0;

	inn_open(inn);
	for (i = 0; i < 20; i++) {
		keys[i] = key_of(i);
		bytes[i] = INN_PAGE;
	}
	assert_int_equal(host_reserve(inn->host, (struct host_writer){ inn->client, 0 }, keys,
				      bytes, 20, 0, inn->now_ns, spans, rc),
			 0);
	for (i = 0; i < 20; i++) {
		got += rc[i] == 0;
		assert_true(rc[i] == 0 ? spans[i].ptr != NULL : rc[i] == KVS_E_FULL);
		assert_true(rc[i] == 0 || !spans[i].ptr);
	}
	assert_int_equal(got, PAGES / 2);
	(void)writer;
}

static void a_whole_batch_gets_room_for_all_or_for_none(void **state)
{
	struct inn *const inn = *state;
	struct kvs_key    keys[14];
	uint64_t          bytes[14];
	struct kvs_span   spans[14];
	int               rc[14];
	uint32_t          i;

	inn_open(inn);
	inn_put(inn, 0);
	assert_int_equal(inn_lock(inn, inn->client, 0, 1), 0);
	for (i = 0; i < 14; i++) {
		keys[i] = key_of(i);
		bytes[i] = i == 13 ? 0 : INN_PAGE;
	}
	/* One is there, one is invalid, and for twelve there is one place too few. */
	assert_int_equal(host_reserve(inn->host, (struct host_writer){ inn->client, 0 }, keys,
				      bytes, 14, HOST_WHOLE, inn->now_ns, spans, rc),
			 0);
	assert_int_equal(rc[0], KVS_E_EXISTS);
	assert_int_equal(rc[13], KVS_E_INVALID);
	for (i = 1; i < 13; i++) {
		assert_int_equal(rc[i], KVS_E_FULL);
		assert_null(spans[i].ptr);
	}
	assert_int_equal(inn_usage(inn).staged, 0);
	assert_int_equal(inn_usage(inn).used_bytes, 2 * INN_PAGE);
	/* Their writer discarded nothing. */
	assert_int_equal(inn_usage(inn).counters[HOST_UNDONE], 11);
	assert_int_equal(inn_usage(inn).counters[HOST_DISCARDED], 0);
	/* Eleven fit. */
	assert_int_equal(host_reserve(inn->host, (struct host_writer){ inn->client, 0 }, keys,
				      bytes, 12, HOST_WHOLE, inn->now_ns, spans, rc),
			 0);
	for (i = 1; i < 12; i++)
		assert_int_equal(rc[i], 0);
}

/* Eight MiB each, in a Host of sixty-four: nobody touches the memory. */
static uint32_t reserve_large(struct inn *inn, uint32_t count, unsigned flags)
{
	struct kvs_key  keys[20];
	uint64_t        bytes[20];
	struct kvs_span spans[20];
	int             rc[20];
	uint32_t        i, got = 0;

	inn_close(inn);
	inn_init(inn, (64u << 20) / INN_PAGE);
	inn_open(inn);
	for (i = 0; i < count; i++) {
		keys[i] = key_of(i);
		bytes[i] = 8u << 20;
	}
	assert_int_equal(host_reserve(inn->host, (struct host_writer){ inn->client, 0 }, keys,
				      bytes, count, flags, inn->now_ns, spans, rc),
			 0);
	for (i = 0; i < count; i++) {
		assert_true(rc[i] == 0 || rc[i] == KVS_E_FULL);
		assert_int_equal(rc[i] == 0, spans[i].ptr != NULL);
		got += rc[i] == 0;
	}
	return got;
}

static void ten_large_objects_as_a_whole_find_no_room(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(reserve_large(inn, 10, HOST_WHOLE), 0);
	assert_int_equal(inn_usage(inn).used_bytes, 0);
	assert_int_equal(inn_usage(inn).counters[HOST_REFUSED_BYTES], 3);
}

/* Eight would fill the Host to the last page, and each needs one more for a trailer. */
static void of_twenty_large_objects_seven_find_room(void **state)
{
	assert_int_equal(reserve_large(*state, 20, 0), 7);
}

static void records_are_bounded_and_their_holders_go_for_new_ones(void **state)
{
	struct inn *const inn = *state;

	inn->options.object_max = 3;
	inn_open(inn);
	inn_put(inn, 1);
	inn_put(inn, 2);
	assert_int_equal(inn_reserve(inn, 3, INN_PAGE, 0), 0);
	inn_put(inn, 4);
	assert_false(inn_has(inn, 1));
	assert_int_equal(inn_lock(inn, inn->client, 2, 1), 0);
	assert_int_equal(inn_lock(inn, inn->client, 4, 1), 0);
	assert_int_equal(inn_reserve(inn, 5, INN_PAGE, 0), KVS_E_FULL);
	assert_int_equal(inn_usage(inn).counters[HOST_REFUSED_OBJECTS], 1);
	assert_int_equal(inn_usage(inn).counters[HOST_REFUSED_BYTES], 0);
	assert_int_equal(inn_finish(inn, 3), 0);
	inn_put(inn, 5);
	assert_false(inn_has(inn, 3));
}

/* --- many shards ------------------------------------------------------------------------------ */

static void objects_of_all_shards_go_for_one_that_needs_the_room(void **state)
{
	struct inn *const inn = *state;

	inn->options.shard_count = 16;
	inn_open(inn);
	fill_up(inn);
	assert_int_equal(inn_reserve(inn, 100, (PAGES - 1) * INN_PAGE, 0), 0);
	assert_int_equal(inn_usage(inn).objects, 0);
	assert_int_equal(inn_usage(inn).counters[HOST_EVICTED], PAGES / 2);
}

static uint64_t shard_of_number(uint32_t number)
{
	const struct kvs_key key = key_of(number);

	return key_hash(&key) % 16;
}

/* What is over in a shard that the call does not come to is over as well. */
static void what_expired_elsewhere_goes_before_what_is_of_use(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i, elsewhere = 200;

	inn->options.shard_count = 16;
	inn_open(inn);
	while (shard_of_number(elsewhere) == shard_of_number(100))
		elsewhere++;
	inn_put(inn, elsewhere);
	for (i = 0; i < PAGES / 2 - 1; i++)
		assert_int_equal(inn_reserve(inn, i, INN_PAGE, 0), 0);
	assert_int_equal(inn_reserve(inn, 100, 20 * INN_PAGE, 0), KVS_E_FULL);
	inn->now_ns += INN_WRITE_TTL;
	assert_int_equal(inn_reserve(inn, 100, 20 * INN_PAGE, 0), 0);
	assert_true(inn_has(inn, elsewhere));
}

/* --- ahead of need ---------------------------------------------------------------------------- */

static void relieving_begins_past_one_mark_and_ends_at_the_other(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	inn->options.high = 0.75;
	inn->options.low = 0.5;
	inn_open(inn);
	for (i = 0; i < 9; i++)
		inn_put(inn, i);
	assert_int_equal(host_relieve(inn->host, inn->now_ns, 100), 0);
	inn_put(inn, 9);
	assert_int_equal(inn_lock(inn, inn->client, 0, 1), 0);
	assert_int_equal(host_relieve(inn->host, inn->now_ns, 100), 4);
	assert_int_equal(inn_usage(inn).used_bytes, PAGES / 2 * INN_PAGE);
	assert_true(inn_has(inn, 0));
	assert_true(inn_has(inn, 9));
}

static void relieving_goes_on_over_several_calls_until_the_lower_mark(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	inn->options.high = 0.75;
	inn->options.low = 0.5;
	inn_open(inn);
	for (i = 0; i < 10; i++)
		inn_put(inn, i);
	/* The mark for beginning is undercut by the first already. */
	assert_int_equal(host_relieve(inn->host, inn->now_ns, 1), 1);
	assert_int_equal(host_relieve(inn->host, inn->now_ns, 2), 2);
	assert_int_equal(host_relieve(inn->host, inn->now_ns, 2), 1);
	assert_int_equal(inn_usage(inn).used_bytes, PAGES / 2 * INN_PAGE);
	/* Done: between the marks nothing begins. */
	inn_put(inn, 10);
	assert_int_equal(host_relieve(inn->host, inn->now_ns, 100), 0);
}

static void relieving_takes_nothing_that_is_held(void **state)
{
	struct inn *const inn = *state;
	uint32_t          i;

	inn->options.high = 0.5;
	inn->options.low = 0.25;
	inn_open(inn);
	for (i = 0; i < 10; i++) {
		inn_put(inn, i);
		assert_int_equal(inn_lock(inn, inn->client, i, 1), 0);
	}
	assert_int_equal(host_relieve(inn->host, inn->now_ns, 100), 0);
	/* Locks that are over hold nothing. */
	assert_int_equal(host_relieve(inn->host, inn->now_ns + INN_READ_TTL, 100), 7);
}

static void pressure_is_told_once_until_it_is_relieved(void **state)
{
	struct inn *const inn = *state;

	inn->options.high = 0.5;
	inn->options.low = 0.25;
	inn_open(inn);
	inn_put_bytes(inn, 1, 11 * INN_PAGE);
	assert_int_equal(inn->presses, 0);
	inn_put(inn, 2);
	assert_int_equal(inn->presses, 1);
	inn_put(inn, 3);
	assert_int_equal(inn->presses, 1);
	assert_int_equal(host_relieve(inn->host, inn->now_ns, 100), 1);
	assert_int_equal(inn_usage(inn).used_bytes, 4 * INN_PAGE);
	inn_put(inn, 4);
	assert_int_equal(inn->presses, 1);
	inn_put_bytes(inn, 5, 11 * INN_PAGE);
	assert_int_equal(inn->presses, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_least_recently_used_goes_first),
		TEST(a_lock_is_no_use),
		TEST(B1_2_what_is_locked_or_pinned_or_staged_does_not_go),
		TEST(who_was_passed_over_goes_behind_all_others),
		TEST(who_was_passed_over_counts_as_used),
		TEST(B1_2_temporary_objects_go_like_others_when_unlocked),
		TEST(a_crowd_of_locked_ones_is_passed_once),
		TEST(a_buffer_only_evicts_nothing),
		TEST(a_large_object_takes_the_room_of_several),
		TEST(memory_that_is_given_back_joins),
		TEST(no_object_lies_across_two_fields),
		TEST(a_run_that_just_fits_is_found),
		TEST(a_reservation_that_cannot_succeed_evicts_nothing),
		TEST(a_batch_gets_what_there_is),
		TEST(a_whole_batch_gets_room_for_all_or_for_none),
		TEST(ten_large_objects_as_a_whole_find_no_room),
		TEST(of_twenty_large_objects_seven_find_room),
		TEST(records_are_bounded_and_their_holders_go_for_new_ones),
		TEST(objects_of_all_shards_go_for_one_that_needs_the_room),
		TEST(what_expired_elsewhere_goes_before_what_is_of_use),
		TEST(relieving_begins_past_one_mark_and_ends_at_the_other),
		TEST(relieving_goes_on_over_several_calls_until_the_lower_mark),
		TEST(relieving_takes_nothing_that_is_held),
		TEST(pressure_is_told_once_until_it_is_relieved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
