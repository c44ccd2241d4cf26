/* SPDX-License-Identifier: Apache-2.0 */
/* What is being written: who sees it, twins, discarding, expiry, and writers that go away. */
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

/* --- staging ---------------------------------------------------------------------------------- */

static void B1_2_what_is_staged_is_missing_for_readers(void **state)
{
	struct inn *const inn = *state;
	struct host_pin   pin;

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), KVS_E_MISSING);
	assert_int_equal(inn_pin(inn, 1, &pin), KVS_E_MISSING);
	assert_int_equal(inn_spans(inn, inn->client, 1), KVS_E_MISSING);
	assert_false(inn_has(inn, 1));
	inn_touch(inn, 1);
	assert_int_equal(inn_heard_of(inn, HOST_TOUCHED, 1), 0);
	assert_int_equal(inn_finish(inn, 1), 0);
	assert_true(inn_has(inn, 1));
}

static void staged_bytes_are_counted_in_whole_pages(void **state)
{
	struct inn *const inn = *state;
	struct host_usage usage;

	assert_int_equal(inn_reserve(inn, 1, 1, 0), 0);
	assert_int_equal(inn_reserve(inn, 2, INN_PAGE + 1, 0), 0);
	usage = inn_usage(inn);
	assert_int_equal(usage.staged, 2);
	assert_int_equal(usage.staged_bytes, 5 * INN_PAGE);
	assert_int_equal(usage.used_bytes, 5 * INN_PAGE);
	assert_int_equal(usage.bytes, 64 * INN_PAGE);
	assert_int_equal(inn_finish(inn, 2), 0);
	usage = inn_usage(inn);
	assert_int_equal(usage.staged_bytes, 2 * INN_PAGE);
	assert_int_equal(usage.used_bytes, 5 * INN_PAGE);
}

static void B1_2_two_tags_stage_one_key_side_by_side(void **state)
{
	struct inn *const        inn = *state;
	const struct host_writer first = { inn->client, 1 }, second = { inn->client, 2 };
	void                    *at;

	assert_int_equal(inn_reserve_as(inn, first, 1, INN_PAGE, 0), 0);
	at = inn_span.ptr;
	assert_int_equal(inn_reserve_as(inn, second, 1, INN_PAGE, 0), 0);
	assert_ptr_not_equal(inn_span.ptr, at);
	/* The same tag of another client is another writer as well. */
	assert_int_equal(inn_reserve_as(inn, (struct host_writer){ inn->other, 1 }, 1, INN_PAGE, 0),
			 0);
	assert_int_equal(inn_usage(inn).staged, 3);
	assert_int_equal(inn_reserve_as(inn, first, 1, INN_PAGE, 0), KVS_E_BUSY);
	assert_int_equal(inn_finish_as(inn, (struct host_writer){ inn->client, 3 }, 1),
			 KVS_E_MISSING);
}

static void B1_2_the_first_to_finish_wins_and_the_second_drops_its_bytes(void **state)
{
	struct inn *const        inn = *state;
	const struct host_writer first = { inn->client, 1 }, second = { inn->client, 2 };
	void                    *at;

	assert_int_equal(inn_reserve_as(inn, first, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_reserve_as(inn, second, 1, INN_PAGE, 0), 0);
	at = inn_span.ptr;
	/* Not the one that came first. */
	assert_int_equal(inn_finish_as(inn, second, 1), 0);
	assert_int_equal(inn_finish_as(inn, first, 1), 0);
	assert_int_equal(inn_usage(inn).counters[HOST_DROPPED_TWINS], 1);
	assert_int_equal(inn_usage(inn).used_bytes, 2 * INN_PAGE);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_ptr_equal(inn_span.ptr, at);
	assert_int_equal(inn_finish_as(inn, first, 1), KVS_E_STALE);
}

static void B1_2_a_late_load_locks_the_object_that_was_there_first(void **state)
{
	struct inn *const        inn = *state;
	const struct host_writer store = { inn->other, 1 };
	void                    *at;

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, HOST_TEMPORARY), 0);
	assert_int_equal(inn_reserve_as(inn, store, 1, INN_PAGE, 0), 0);
	at = inn_span.ptr;
	assert_int_equal(inn_finish_as(inn, store, 1), 0);
	inn_deaf(inn);
	assert_int_equal(inn_finish_locked(inn, 1, 2), 0);
	assert_ptr_equal(inn_span.ptr, at);
	assert_int_equal(inn_heard_of(inn, HOST_LOADED, 1), 0);
	assert_int_equal(inn_heard_of(inn, HOST_LOCKED, 1), 1);
	/* It is no temporary one: it stays. */
	assert_int_equal(inn_unlock(inn, inn->client, 1, 2), 0);
	assert_true(inn_has(inn, 1));
	assert_int_equal(inn_usage(inn).used_bytes, 2 * INN_PAGE);
}

/* 2738: a load that is gone with its last lock must not take a write along. */
static void B1_2_a_write_over_a_temporary_object_makes_it_last(void **state)
{
	struct inn *const        inn = *state;
	const struct host_writer reader = { inn->client, 1 }, writer = { inn->other, 1 };
	void                    *at;

	assert_int_equal(inn_reserve_as(inn, writer, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_reserve_as(inn, reader, 1, INN_PAGE, HOST_TEMPORARY), 0);
	assert_int_equal(inn_finish_as(inn, reader, 1), 0);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	at = inn_span.ptr;
	inn_deaf(inn);
	assert_int_equal(inn_finish_as(inn, writer, 1), 0);
	assert_int_equal(inn->heard_count, 1);
	assert_int_equal(inn_heard_of(inn, HOST_WRITTEN, 1), 1);
	assert_int_equal(inn_usage(inn).temporary, 0);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), 0);
	assert_ptr_equal(inn_span.ptr, at);
	assert_int_equal(inn_usage(inn).used_bytes, 2 * INN_PAGE);
}

/* It came from a store: nobody needs to put it there. */
static void B1_2_a_load_that_is_to_last_makes_a_temporary_object_last_untold(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_reserve_as(inn, (struct host_writer){ inn->other, 1 }, 1, INN_PAGE,
					HOST_TEMPORARY),
			 0);
	assert_int_equal(inn_finish_as(inn, (struct host_writer){ inn->other, 1 }, 1), 0);
	assert_int_equal(inn_finish_locked(inn, 1, 1), 0);
	assert_int_equal(inn_unlock(inn, inn->client, 1, 1), 0);
	assert_true(inn_has(inn, 1));
	assert_int_equal(inn_heard_of(inn, HOST_WRITTEN, 1), 0);
}

/* --- discarding ------------------------------------------------------------------------------- */

/* 5032: a load that failed must not be there for a moment either. */
static void B1_2_a_discard_publishes_nothing_and_tells_nobody(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(inn_discard(inn, 1), KVS_E_MISSING);
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	inn_deaf(inn);
	assert_int_equal(inn_discard(inn, 1), 0);
	assert_int_equal(inn->heard_count, 0);
	assert_false(inn_has(inn, 1));
	assert_int_equal(inn_finish(inn, 1), KVS_E_MISSING);
	assert_int_equal(inn_usage(inn).used_bytes, 0);
	assert_int_equal(inn_usage(inn).counters[HOST_DISCARDED], 1);
	inn_put(inn, 1);
	assert_int_equal(inn_discard(inn, 1), KVS_E_STALE);
}

static void a_discard_leaves_what_others_stage_and_what_is_resident(void **state)
{
	struct inn *const        inn = *state;
	const struct host_writer other = { inn->other, 0 }, third = { inn->other, 1 };

	assert_int_equal(inn_reserve_as(inn, other, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_reserve_as(inn, third, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_finish_as(inn, third, 1), 0);
	assert_int_equal(inn_discard(inn, 1), 0);
	assert_true(inn_has(inn, 1));
	assert_int_equal(inn_usage(inn).staged, 1);
	assert_int_equal(inn_finish_as(inn, other, 1), 0);
}

/* --- expiry ----------------------------------------------------------------------------------- */

/* 4967: the end of a write is its finish, and never its time. */
static void B1_2_a_reservation_that_expires_never_becomes_readable(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	inn->now_ns += INN_WRITE_TTL - 1;
	host_expire(inn->host, inn->now_ns);
	assert_int_equal(inn_usage(inn).staged, 1);
	inn->now_ns++;
	assert_int_equal(inn_lock(inn, inn->client, 1, 1), KVS_E_MISSING);
	assert_int_equal(inn_usage(inn).staged, 0);
	assert_int_equal(inn_usage(inn).used_bytes, 0);
	assert_int_equal(inn_usage(inn).counters[HOST_EXPIRED_WRITES], 1);
	assert_int_equal(inn_finish(inn, 1), KVS_E_MISSING);
}

static void B1_2_finishing_what_has_expired_is_stale(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_reserve(inn, 2, INN_PAGE, 0), 0);
	inn->now_ns += INN_WRITE_TTL;
	assert_int_equal(inn_finish(inn, 1), KVS_E_STALE);
	assert_false(inn_has(inn, 1));
	/* The same call dropped all that had expired. */
	assert_int_equal(inn_finish_locked(inn, 2, 1), KVS_E_MISSING);
	assert_int_equal(inn_usage(inn).staged, 0);
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_finish_locked(inn, 1, 1), 0);
}

static void an_expired_reservation_is_reserved_anew_at_once(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	inn->now_ns += INN_WRITE_TTL;
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_usage(inn).staged, 1);
	inn->now_ns += INN_WRITE_TTL - 1;
	assert_int_equal(inn_finish(inn, 1), 0);
}

/* A reservation that is over makes room before anything that is of use. */
static void what_expired_makes_room_for_a_reservation(void **state)
{
	struct inn *const inn = *state;

	inn_put(inn, 1);
	assert_int_equal(inn_reserve(inn, 2, 61 * INN_PAGE, 0), 0);
	inn->now_ns += INN_WRITE_TTL;
	assert_int_equal(inn_reserve(inn, 3, 61 * INN_PAGE, 0), 0);
	assert_true(inn_has(inn, 1));
	assert_int_equal(inn_usage(inn).counters[HOST_EVICTED], 0);
}

/* 5263: memory under I/O has a bound of its own. */
static void a_client_without_ttl_keeps_its_reservations(void **state)
{
	struct inn *const inn = *state;
	host_client       client;

	assert_int_equal(host_client_open(inn->host, HOST_NO_TTL, &client), 0);
	assert_int_equal(inn_reserve_as(inn, (struct host_writer){ client, 7 }, 1, INN_PAGE, 0), 0);
	inn->now_ns += 1000 * INN_WRITE_TTL;
	host_expire(inn->host, inn->now_ns);
	assert_int_equal(inn_finish_as(inn, (struct host_writer){ client, 7 }, 1), 0);
	assert_int_equal(inn_lock(inn, client, 1, 1), 0);
	inn->now_ns += 1000 * INN_READ_TTL;
	host_expire(inn->host, inn->now_ns);
	assert_int_equal(inn_unlock(inn, client, 1, 1), 0);
	assert_int_equal(host_client_close(inn->host, client, inn->now_ns), 0);
}

static void a_clock_that_seems_to_go_back_does_no_harm(void **state)
{
	struct inn *const inn = *state;

	inn->now_ns = 5000;
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	/* A thread that read the clock before and came to the mutex after. */
	inn->now_ns = 4000;
	assert_int_equal(inn_reserve(inn, 2, INN_PAGE, 0), 0);
	host_audit(inn->host);
	inn->now_ns = 5000 + INN_WRITE_TTL - 1;
	assert_int_equal(inn_finish(inn, 1), 0);
	assert_int_equal(inn_finish(inn, 2), 0);
}

/* --- writers that go away --------------------------------------------------------------------- */

static void B1_2_what_a_client_leaves_behind_is_discarded_never_published(void **state)
{
	struct inn *const        inn = *state;
	const struct host_writer other = { inn->other, 3 };

	assert_int_equal(inn_reserve_as(inn, other, 1, INN_PAGE, 0), 0);
	assert_int_equal(inn_reserve_as(inn, other, 2, INN_PAGE, 0), 0);
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	assert_int_equal(host_client_close(inn->host, inn->other, inn->now_ns), 0);
	assert_int_equal(inn_usage(inn).staged, 1);
	assert_int_equal(inn_usage(inn).counters[HOST_ABANDONED], 2);
	assert_false(inn_has(inn, 1));
	assert_int_equal(inn_finish(inn, 1), 0);
	assert_true(inn_has(inn, 1));
}

/* A client is searched for what it staged only when it did: its slot's next one may. */
static void what_a_reader_s_successor_stages_is_discarded_with_it(void **state)
{
	struct inn *const inn = *state;

	assert_int_equal(inn_lock(inn, inn->other, 1, 1), KVS_E_MISSING);
	assert_int_equal(host_client_close(inn->host, inn->other, inn->now_ns), 0);
	assert_int_equal(host_client_open(inn->host, 0, &inn->other), 0);
	assert_int_equal(inn_reserve_as(inn, (struct host_writer){ inn->other, 3 }, 1, INN_PAGE, 0),
			 0);
	assert_int_equal(host_client_close(inn->host, inn->other, inn->now_ns), 0);
	assert_int_equal(inn_usage(inn).staged, 0);
	assert_int_equal(inn_usage(inn).counters[HOST_ABANDONED], 1);
	assert_int_equal(host_client_open(inn->host, 0, &inn->other), 0);
	/* And one that stages nothing after one that did. */
	assert_int_equal(host_client_close(inn->host, inn->other, inn->now_ns), 0);
	assert_int_equal(inn_usage(inn).counters[HOST_ABANDONED], 1);
}

static void a_closed_client_is_told_so_by_every_call(void **state)
{
	struct inn *const    inn = *state;
	const struct kvs_key key = key_of(1);
	host_client          gone = inn->other;
	int                  rc;

	assert_int_equal(host_client_close(inn->host, gone, inn->now_ns), 0);
	assert_int_equal(host_client_close(inn->host, gone, inn->now_ns), KVS_E_CLOSED);
	assert_int_equal(inn_reserve_as(inn, (struct host_writer){ gone, 0 }, 1, INN_PAGE, 0),
			 KVS_E_CLOSED);
	assert_int_equal(inn_finish_as(inn, (struct host_writer){ gone, 0 }, 1), KVS_E_CLOSED);
	assert_int_equal(host_discard(inn->host, (struct host_writer){ gone, 0 }, &key, 1, &rc),
			 KVS_E_CLOSED);
	assert_int_equal(inn_lock(inn, gone, 1, 1), KVS_E_CLOSED);
	assert_int_equal(inn_unlock(inn, gone, 1, 1), KVS_E_CLOSED);
	assert_int_equal(inn_spans(inn, gone, 1), KVS_E_CLOSED);
	assert_int_equal(inn_reserve(inn, 1, INN_PAGE, 0), 0);
	assert_int_equal(host_finish_locked(inn->host, (struct host_writer){ inn->client, 0 }, gone,
					    1, &key, 1, inn->now_ns, &inn_span, &rc),
			 KVS_E_CLOSED);
	/* Its slot is another's now, its name is not. */
	assert_int_equal(host_client_open(inn->host, 0, &inn->other), 0);
	assert_int_not_equal(inn->other, gone);
	assert_int_equal(inn_lock(inn, gone, 1, 1), KVS_E_CLOSED);
	assert_int_equal(inn_lock(inn, 0, 1, 1), KVS_E_CLOSED);
	assert_int_equal(inn_lock(inn, UINT64_MAX, 1, 1), KVS_E_CLOSED);
}

static void clients_are_bounded(void **state)
{
	struct inn *const inn = *state;
	host_client       clients[6], one_more;
	uint32_t          i;

	/* Two of eight are open. */
	for (i = 0; i < 6; i++)
		assert_int_equal(host_client_open(inn->host, 0, &clients[i]), 0);
	assert_int_equal(host_client_open(inn->host, 0, &one_more), KVS_E_FULL);
	assert_int_equal(inn_usage(inn).clients, 8);
	for (i = 0; i < 6; i++)
		assert_int_equal(host_client_close(inn->host, clients[i], inn->now_ns), 0);
	assert_int_equal(host_client_open(inn->host, 1u << 9, &one_more), KVS_E_INVALID);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(B1_2_what_is_staged_is_missing_for_readers),
		TEST(staged_bytes_are_counted_in_whole_pages),
		TEST(B1_2_two_tags_stage_one_key_side_by_side),
		TEST(B1_2_the_first_to_finish_wins_and_the_second_drops_its_bytes),
		TEST(B1_2_a_late_load_locks_the_object_that_was_there_first),
		TEST(B1_2_a_write_over_a_temporary_object_makes_it_last),
		TEST(B1_2_a_load_that_is_to_last_makes_a_temporary_object_last_untold),
		TEST(B1_2_a_discard_publishes_nothing_and_tells_nobody),
		TEST(a_discard_leaves_what_others_stage_and_what_is_resident),
		TEST(B1_2_a_reservation_that_expires_never_becomes_readable),
		TEST(B1_2_finishing_what_has_expired_is_stale),
		TEST(an_expired_reservation_is_reserved_anew_at_once),
		TEST(what_expired_makes_room_for_a_reservation),
		TEST(a_client_without_ttl_keeps_its_reservations),
		TEST(a_clock_that_seems_to_go_back_does_no_harm),
		TEST(B1_2_what_a_client_leaves_behind_is_discarded_never_published),
		TEST(what_a_reader_s_successor_stages_is_discarded_with_it),
		TEST(a_closed_client_is_told_so_by_every_call),
		TEST(clients_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
