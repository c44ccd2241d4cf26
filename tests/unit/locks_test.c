/* SPDX-License-Identifier: Apache-2.0 */
/* Locks by key: who holds, what the store keeps, and what it must still be told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "death.h"
#include "exec/locks.h"
#include "named_block.h"

#define LOCK_MAX 4u
#define KEYS 3u

static struct kvs_key keys[2 * LOCK_MAX];

static int locks_setup(void **state)
{
	static struct locks locks;
	uint32_t            i;

	for (i = 0; i < ARRAY_COUNT(keys); i++)
		keys[i] = key_of(i);
	assert_int_equal(locks_open(&locks, LOCK_MAX), 0);
	*state = &locks;
	return 0;
}

static int locks_teardown(void **state)
{
	locks_audit(*state);
	locks_close(*state);
	return 0;
}

/* A locking query of `count` keys from number `first` on. */
static struct op query(uint32_t first, uint32_t count)
{
	struct op op = { .op_id = 1, .kind = OP_QUERY, .flags = OP_LOCK, .key_count = count,
			 .keys = keys + first };

	op_own_all(&op);
	return op;
}

static struct op_mask mask(uint64_t rows)
{
	return (struct op_mask){ .words = { rows } };
}

static void settle(struct locks *locks, const struct op *op, uint64_t granted, uint64_t kept)
{
	const struct op_mask is_granted = mask(granted), is_kept = mask(kept);

	locks_settle(locks, op, &is_granted, &is_kept);
	locks_audit(locks);
}

/* Ask for one key and get it; the store keeps a lock for it. */
static void hold(struct locks *locks, uint32_t number)
{
	const struct op op = query(number, 1);

	assert_true(locks_ask(locks, &op));
	settle(locks, &op, 1, 1);
}

static void give(struct locks *locks, uint32_t number)
{
	locks_give(locks, &keys[number]);
	locks_audit(locks);
}

static void assert_owes(struct locks *locks, uint32_t number)
{
	struct kvs_key key;

	assert_int_equal(locks_tell(locks, &key, 1), 1);
	locks_audit(locks);
	assert_memory_equal(&key, &keys[number], sizeof(key));
}

static void assert_owes_nothing(struct locks *locks)
{
	struct kvs_key key;

	assert_int_equal(locks_tell(locks, &key, 1), 0);
}

static void what_is_found_is_held_and_the_rest_is_given_up(void **state)
{
	struct locks *const locks = *state;
	const struct op     op = query(0, KEYS);

	assert_true(locks_ask(locks, &op));
	locks_audit(locks);
	assert_int_equal(locks->asked, KEYS);
	settle(locks, &op, 0x5, 0x5);
	assert_int_equal(locks->asked, 0);
	assert_int_equal(locks->held, 2);
	assert_int_equal(locks->slots.busy_count, 2);
	assert_owes_nothing(locks);
}

static void rows_of_other_owners_take_no_lock(void **state)
{
	struct locks *const locks = *state;
	struct op           op = query(0, KEYS);

	op.owned = mask(0x2);
	assert_true(locks_ask(locks, &op));
	settle(locks, &op, 0x7, 0x2);
	assert_int_equal(locks->held, 1);
	give(locks, 1);
	assert_owes(locks, 1);
	assert_int_equal(locks->slots.busy_count, 0);
}

static void B2_3_a_full_table_takes_nothing_of_the_query(void **state)
{
	struct locks *const locks = *state;
	const struct op     op = query(1, LOCK_MAX);

	hold(locks, 0);
	assert_false(locks_ask(locks, &op));
	locks_audit(locks);
	assert_int_equal(locks->slots.busy_count, 1);
	assert_int_equal(locks->asked, 0);
}

/* Unlocking needs no room: the place is the lock's own, also while the store waits to be told. */
static void B2_3_an_unlock_always_lands(void **state)
{
	struct locks *const locks = *state;
	const struct op     more = query(LOCK_MAX, 1);
	uint32_t            i;

	for (i = 0; i < LOCK_MAX; i++)
		hold(locks, i);
	for (i = 0; i < LOCK_MAX; i++)
		give(locks, i);
	assert_int_equal(locks->held, 0);
	assert_false(locks_ask(locks, &more));
	for (i = 0; i < LOCK_MAX; i++)
		assert_owes(locks, i);
	assert_owes_nothing(locks);
	assert_true(locks_ask(locks, &more));
	settle(locks, &more, 0, 0);
}

static void the_store_is_told_of_the_last_holder_only(void **state)
{
	struct locks *const locks = *state;

	hold(locks, 0);
	hold(locks, 0);
	/* Two queries took a lock each, and one is enough. */
	assert_owes(locks, 0);
	assert_owes_nothing(locks);
	give(locks, 0);
	assert_owes_nothing(locks);
	give(locks, 0);
	assert_owes(locks, 0);
	assert_owes_nothing(locks);
	assert_int_equal(locks->slots.busy_count, 0);
}

static void a_key_that_is_asked_for_again_keeps_its_lock(void **state)
{
	struct locks *const locks = *state;
	const struct op     op = query(0, 1);

	hold(locks, 0);
	assert_true(locks_ask(locks, &op));
	give(locks, 0);
	assert_owes_nothing(locks);
	/* The second query did not find it, so the first one's lock goes. */
	settle(locks, &op, 0, 0);
	assert_owes(locks, 0);
	assert_int_equal(locks->slots.busy_count, 0);
}

static void a_released_key_is_taken_back_before_the_store_hears_of_it(void **state)
{
	struct locks *const locks = *state;
	const struct op     op = query(0, 1);

	hold(locks, 0);
	give(locks, 0);
	assert_true(locks_ask(locks, &op));
	assert_owes_nothing(locks);
	settle(locks, &op, 1, 1);
	assert_owes(locks, 0);
	assert_owes_nothing(locks);
	assert_int_equal(locks->held, 1);
}

static void a_store_without_locks_is_told_nothing(void **state)
{
	struct locks *const locks = *state;
	const struct op     op = query(0, 1);

	assert_true(locks_ask(locks, &op));
	settle(locks, &op, 1, 0);
	assert_int_equal(locks->held, 1);
	give(locks, 0);
	assert_owes_nothing(locks);
	assert_int_equal(locks->slots.busy_count, 0);
}

static void equal_keys_of_one_query_are_a_lock_each(void **state)
{
	struct locks *const locks = *state;
	const struct kvs_key twice[] = { keys[5], keys[5] };
	struct op            op = query(0, 2);

	op.keys = twice;
	assert_true(locks_ask(locks, &op));
	assert_int_equal(locks->slots.busy_count, 1);
	settle(locks, &op, 0x3, 0x1);
	assert_int_equal(locks->held, 2);
	give(locks, 5);
	assert_owes_nothing(locks);
	give(locks, 5);
	assert_owes(locks, 5);
}

static void what_is_not_held_cannot_be_given(void **state)
{
	struct locks *const locks = *state;
	const struct op     op = query(0, 1);

	give(locks, 3);
	hold(locks, 0);
	give(locks, 0);
	give(locks, 0);
	assert_owes(locks, 0);
	/* Nor what a query only asks for. */
	assert_true(locks_ask(locks, &op));
	give(locks, 0);
	assert_int_equal(locks->asked, 1);
	settle(locks, &op, 1, 1);
	assert_int_equal(locks->held, 1);
}

static void at_the_end_everything_is_given_back(void **state)
{
	struct locks *const locks = *state;
	struct kvs_key      told[3];

	hold(locks, 0);
	hold(locks, 0);
	hold(locks, 1);
	locks_give_all(locks);
	locks_audit(locks);
	assert_int_equal(locks->held, 0);
	/* A batch never names a key twice. */
	assert_int_equal(locks_tell(locks, told, ARRAY_COUNT(told)), 2);
	assert_memory_not_equal(&told[0], &told[1], sizeof(told[0]));
	assert_owes(locks, 0);
	assert_int_equal(locks->slots.busy_count, 0);
}

/* Its slots are out of reach: a walk would not survive. */
static void nothing_held_is_given_back_without_a_walk(void **state)
{
	struct locks *const locks = *state;
	struct slots        slots;

	hold(locks, 0);
	locks_give_all(locks);
	slots = locks->slots;
	locks->slots.busy = NULL;
	locks_give_all(locks);
	locks->slots = slots;
	assert_owes(locks, 0);
}

static void a_table_of_none_takes_nothing(void **state)
{
	const struct op op = query(0, 1);
	struct locks    locks;
	struct kvs_key  key;

	(void)state;
	assert_int_equal(locks_open(&locks, 0), 0);
	assert_false(locks_ask(&locks, &op));
	locks_give(&locks, &keys[0]);
	locks_give_all(&locks);
	assert_int_equal(locks_tell(&locks, &key, 1), 0);
	locks_audit(&locks);
	locks_close(&locks);
}

static void settle_what_nobody_asked(void *arg)
{
	const struct op op = query(0, 1);

	settle(arg, &op, 1, 1);
}

static void settle_twice(void *arg)
{
	const struct op op = query(0, 1);

	hold(arg, 0);
	settle(arg, &op, 1, 1);
}

static void mistakes_of_our_own_panic(void **state)
{
	assert_true(death_panics(settle_what_nobody_asked, *state, NULL, 0));
	assert_true(death_panics(settle_twice, *state, NULL, 0));
}

#define LOCKS_TEST(test) cmocka_unit_test_setup_teardown(test, locks_setup, locks_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		LOCKS_TEST(what_is_found_is_held_and_the_rest_is_given_up),
		LOCKS_TEST(rows_of_other_owners_take_no_lock),
		LOCKS_TEST(B2_3_a_full_table_takes_nothing_of_the_query),
		LOCKS_TEST(B2_3_an_unlock_always_lands),
		LOCKS_TEST(the_store_is_told_of_the_last_holder_only),
		LOCKS_TEST(a_key_that_is_asked_for_again_keeps_its_lock),
		LOCKS_TEST(a_released_key_is_taken_back_before_the_store_hears_of_it),
		LOCKS_TEST(a_store_without_locks_is_told_nothing),
		LOCKS_TEST(equal_keys_of_one_query_are_a_lock_each),
		LOCKS_TEST(what_is_not_held_cannot_be_given),
		LOCKS_TEST(at_the_end_everything_is_given_back),
		LOCKS_TEST(nothing_held_is_given_back_without_a_walk),
		cmocka_unit_test(a_table_of_none_takes_nothing),
		LOCKS_TEST(mistakes_of_our_own_panic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
