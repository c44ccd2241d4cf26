/* SPDX-License-Identifier: Apache-2.0 */
/* Locks of lookups: counted, given back always, and at close at the latest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "desk.h"
#include "named_block.h"
#include "store/store.h"

/* --- locks --------------------------------------------------------------- */

static void B2_3_locks_count(void **state)
{
	struct desk *const desk = *state;

	desk_store(desk, 0, 3);
	desk_lookup(desk, 0, 3);
	desk_lookup(desk, 1, 1);
	desk_unlock(desk, 0, 3);
	/* The next lookup tells the store what was given back; the second lock on 1 still holds. */
	desk_lookup(desk, 3, 1);
	assert_int_equal(crate_locked(&desk->crate), 1);
	assert_int_equal(desk->crate.locks[1], 1);
	desk_unlock(desk, 1, 1);
	desk_lookup(desk, 3, 1);
	assert_int_equal(crate_locked(&desk->crate), 0);
}

static void B2_3_a_key_found_twice_in_a_batch_is_locked_twice(void **state)
{
	struct desk *const   desk = *state;
	struct batch *const batch = &desk->batch;
	uint64_t            id;

	desk_store(desk, 0, 1);
	desk_lookup(desk, 0, 1);
	desk_name(desk, 0, 2);
	batch->keys[1] = batch->keys[0];
	assert_int_equal(adapter_submit_lookup(desk->adapter, batch->keys, 2, &id), 0);
	desk_await_lookup(desk, id);
	assert_int_equal(batch->words[0] & 3, 3);
	adapter_unlock(desk->adapter, batch->keys, 2);
	/* One for each row, so the first lookup's lock is nobody else's to give. */
	desk_lookup(desk, 3, 1);
	assert_int_equal(desk->crate.locks[0], 1);
}

static void B2_3_an_unlock_of_what_is_not_locked_is_ignored(void **state)
{
	struct desk *const desk = *state;

	desk_store(desk, 0, 2);
	desk_unlock(desk, 0, 4);
	desk_lookup(desk, 0, 1);
	desk_unlock(desk, 0, 4);
	desk_unlock(desk, 0, 4);
	desk_lookup(desk, 3, 1);
	assert_int_equal(crate_locked(&desk->crate), 0);
}

/* Every worker is blocked and every queue full: an unlock needs neither. */
static void B2_3_an_unlock_lands_while_every_queue_is_full(void **state)
{
	struct desk *const         desk = *state;
	const struct batch *const batch = &desk->batch;
	uint64_t                  ids[7];
	uint32_t                  i;

	desk_store(desk, 0, 4);
	desk_lookup(desk, 0, 4);
	crate_shut(&desk->crate);
	desk_name(desk, 50, 1);
	for (i = 0; i < 7; i++)
		assert_int_equal(adapter_submit_lookup(desk->adapter, batch->keys, 1, &ids[i]), 0);
	crate_wait_inside(&desk->crate, 1);
	desk_unlock(desk, 0, 4);
	desk_name(desk, 50, 1);
	crate_open(&desk->crate);
	for (i = 0; i < 7; i++)
		desk_await_lookup(desk, ids[i]);
	assert_int_equal(crate_locked(&desk->crate), 0);
}

/* Nothing is submitted to a server in cooldown, so its unlocks wait for the close at the latest. */
static void B2_3_an_unlock_lands_when_the_server_is_dead(void **state)
{
	struct desk *const desk = *state;

	desk_store(desk, 0, 4);
	assert_int_equal(desk_lookup(desk, 0, 4), 4);
	desk->crate.fate[9] = CRATE_BREAKS;
	assert_int_equal(desk_load(desk, 9, 1), 0);
	desk_unlock(desk, 0, 4);
	assert_int_equal(desk_lookup(desk, 0, 4), 0);
}

/* Locked rows that nobody took, nobody unlocked, and some still under way: teardown counts them. */
static void B2_3_a_close_mid_flight_gives_every_lock_back(void **state)
{
	struct desk *const         desk = *state;
	const struct batch *const batch = &desk->batch;
	uint64_t                  id;

	desk_store(desk, 0, 50);
	assert_int_equal(desk_lookup(desk, 0, 50), 50);
	desk_name(desk, 0, 50);
	assert_int_equal(adapter_submit_lookup(desk->adapter, batch->keys, 50, &id), 0);
	desk_await(desk, TASK_LOOKUP);
	assert_true(crate_locked(&desk->crate) > 0);
	assert_int_equal(adapter_submit_lookup(desk->adapter, batch->keys, 50, &id), 0);
	desk_submit_load(desk, 0, 50);
}

static void B2_3_without_locks_of_the_store_they_are_counts(void **state)
{
	struct desk *desk = desk_new(false, &desk_options);

	(void)state;
	desk_store(desk, 0, 3);
	assert_int_equal(desk_lookup(desk, 0, 4), 3);
	desk_unlock(desk, 0, 3);
	desk_teardown((void **)&desk);
}

/* A small memory store: what is locked is there when everything around it was evicted. */
static void B2_3_what_is_locked_is_not_evicted(void **state)
{
	struct kvs_store *mem;
	struct desk      *desk;
	uint32_t          i;

	(void)state;
	assert_int_equal(store_open("mem:64KiB", 4096, "fifo", &mem, NULL), 0);
	desk = desk_on(mem, &desk_options);
	assert_true(desk_store(desk, 0, 2).ok);
	assert_int_equal(desk_lookup(desk, 0, 1), 1);
	for (i = 10; i < 60; i++)
		desk_store(desk, i, 1);
	assert_int_equal(desk_load(desk, 0, 2), 1);
	assert_int_equal(desk->batch.words[0], 1);
	desk_unlock(desk, 0, 1);
	/* The next lookup tells the store. */
	desk_lookup(desk, 1, 1);
	for (i = 60; i < 110; i++)
		desk_store(desk, i, 1);
	assert_int_equal(desk_load(desk, 0, 1), 0);
	assert_int_equal(adapter_close(desk->adapter, DESK_FOREVER_NS), 0);
	desk_free(desk);
}

#define DESK_TEST(test) cmocka_unit_test_setup_teardown(test, desk_setup, desk_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(B2_3_locks_count),
		DESK_TEST(B2_3_a_key_found_twice_in_a_batch_is_locked_twice),
		DESK_TEST(B2_3_an_unlock_of_what_is_not_locked_is_ignored),
		DESK_TEST(B2_3_an_unlock_lands_while_every_queue_is_full),
		DESK_TEST(B2_3_an_unlock_lands_when_the_server_is_dead),
		DESK_TEST(B2_3_a_close_mid_flight_gives_every_lock_back),
		cmocka_unit_test(B2_3_without_locks_of_the_store_they_are_counts),
		cmocka_unit_test(B2_3_what_is_locked_is_not_evicted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
