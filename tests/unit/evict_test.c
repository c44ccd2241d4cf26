/* SPDX-License-Identifier: Apache-2.0 */
/* Each policy's order on sequences short enough to check by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "letters.h"

static void lru_lets_the_least_recently_used_go(void **state)
{
	struct evict *evict = open_order("lru", 4);

	(void)state;
	insert(evict, "abcd");
	touch(evict, "ac");
	leave(evict, "bdac");
	assert_int_equal(evict_victim(evict, NULL, NULL), SLOT_NONE);
	evict_close(evict);
}

static void fifo_ignores_uses(void **state)
{
	struct evict *evict = open_order("fifo", 4);

	(void)state;
	insert(evict, "abcd");
	touch(evict, "abca");
	leave(evict, "ab");
	insert(evict, "a");
	leave(evict, "cda");
	evict_close(evict);
}

static void leaf_lru_eats_a_chain_from_its_end(void **state)
{
	const uint32_t chain[] = { 0, 1, 2, 5 };
	struct evict  *evict = open_order("lru-leaf", 6);

	(void)state;
	insert(evict, "abcd");
	/* Slot 5 was never inserted: a chain may name what has left meanwhile. */
	evict_settle(evict, chain, 4);
	leave(evict, "dcba");
	evict_close(evict);
}

static void settle_means_nothing_to_the_others(void **state)
{
	const char *const names[] = { "lru", "fifo", "s3fifo", "host-order", "arc" };
	const uint32_t    chain[] = { 0, 1, 2 };
	size_t            i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(names); i++) {
		struct evict *evict = open_order(names[i], 3);

		insert(evict, "abc");
		evict_settle(evict, chain, 3);
		leave(evict, "abc");
		evict_close(evict);
	}
}

static void host_order_keeps_what_was_used(void **state)
{
	struct evict *evict = open_order("host-order", 5);

	(void)state;
	insert(evict, "abcd");
	touch(evict, "bab");
	/* Newest of all, and still before those that were used. */
	insert(evict, "e");
	leave(evict, "cdeab");
	/* A new life starts unused. */
	insert(evict, "ab");
	touch(evict, "a");
	leave(evict, "ba");
	evict_close(evict);
}

static void pinned_slots_keep_their_place(void **state)
{
	static char ab[] = "ab", all[] = "abcd";
	size_t      i;

	(void)state;
	for (i = 0; evict_giving_names[i]; i++) {
		struct evict *evict = open_order(evict_giving_names[i], 4);

		insert(evict, "abcd");
		assert_int_equal(evict_victim(evict, not_in, ab), 2);
		assert_int_equal(evict_victim(evict, not_in, all), SLOT_NONE);
		assert_int_equal(evict_count(evict), 3);
		leave(evict, "abd");
		evict_close(evict);
	}
}

static uint32_t heat(const struct evict *evict, char letter)
{
	return evict_heat(evict, (uint32_t)(letter - 'a'));
}

static bool does_not_care(const char *policy)
{
	return strcmp(policy, "fifo") == 0 || strcmp(policy, "none") == 0;
}

/* Three at most; whoever is renewed begins anew. */
static void heat_counts_uses(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; evict_names[i]; i++) {
		struct evict  *evict = open_order(evict_names[i], 4);
		const uint32_t one = does_not_care(evict_names[i]) ? 0 : 1;

		insert(evict, "abc");
		assert_int_equal(heat(evict, 'a'), 0);
		touch(evict, "abbbbb");
		assert_int_equal(heat(evict, 'a'), one);
		assert_int_equal(heat(evict, 'b'), 3 * one);
		assert_int_equal(heat(evict, 'c'), 0);
		evict_renew(evict, 1);
		assert_int_equal(heat(evict, 'b'), 0);
		touch(evict, "b");
		assert_int_equal(heat(evict, 'b'), one);
		evict_remove(evict, 0);
		insert(evict, "a");
		assert_int_equal(heat(evict, 'a'), 0);
		evict_close(evict);
	}
}

static void the_renewed_go_last(void **state)
{
	const char *const names[] = { "lru", "fifo", "lru-leaf", "arc" };
	struct evict     *evict;
	size_t            i;

	(void)state;
	for (i = 0; i < ARRAY_COUNT(names); i++) {
		evict = open_order(names[i], 4);
		insert(evict, "abcd");
		evict_renew(evict, 0);
		leave(evict, "bcda");
		evict_close(evict);
	}
	/* Behind those that were used, or it would be the next again. */
	evict = open_order("host-order", 4);
	insert(evict, "abcd");
	touch(evict, "ab");
	evict_renew(evict, 0);
	evict_renew(evict, 2);
	leave(evict, "dbac");
	evict_close(evict);
	/* It has shown what the main queue asks for: the small one pays first. */
	evict = open_order("s3fifo", 10);
	insert(evict, "abcd");
	evict_renew(evict, 0);
	evict_renew(evict, 1);
	leave(evict, "cdab");
	evict_close(evict);
}

/* Whatever happens to its slots, they leave only when they are removed. */
static void none_gives_nobody_up(void **state)
{
	const uint32_t chain[] = { 0, 1 };
	static char    a[] = "a";
	struct evict  *evict = open_order("none", 4);

	(void)state;
	insert(evict, "abcd");
	touch(evict, "ab");
	evict_settle(evict, chain, 2);
	evict_renew(evict, 2);
	assert_int_equal(evict_victim(evict, NULL, NULL), SLOT_NONE);
	assert_int_equal(evict_victim(evict, not_in, a), SLOT_NONE);
	assert_int_equal(evict_count(evict), 4);
	evict_audit(evict);
	evict_remove(evict, 1);
	evict_expel(evict, 3);
	assert_false(evict_present(evict, 1));
	assert_false(evict_present(evict, 3));
	assert_int_equal(evict_count(evict), 2);
	insert(evict, "b");
	assert_int_equal(evict_victim(evict, NULL, NULL), SLOT_NONE);
	evict_audit(evict);
	evict_close(evict);
}

static void presence_and_counts(void **state)
{
	struct evict *evict = open_order("lru", 100);

	(void)state;
	assert_false(evict_present(evict, 50));
	evict_insert(evict, 50, 0);
	assert_true(evict_present(evict, 50));
	assert_false(evict_present(evict, 49));
	assert_false(evict_present(evict, SLOT_NONE));
	assert_int_equal(evict_count(evict), 1);
	evict_remove(evict, 50);
	assert_false(evict_present(evict, 50));
	assert_int_equal(evict_count(evict), 0);
	assert_true(evict_bytes(evict) >= 100 * sizeof(struct link));
	evict_close(evict);
	evict_close(NULL);
}

static void open_refuses(void **state)
{
	struct evict    *evict = NULL;
	struct kvs_error err;

	(void)state;
	assert_int_equal(evict_open("mru", 4, &evict, &err), KVS_E_INVALID);
	assert_string_equal(
		err.message,
		"policy: \"mru\" is not known; use one of: lru fifo lru-leaf s3fifo host-order arc none");
	assert_int_equal(evict_known("mru", NULL), KVS_E_INVALID);
	assert_int_equal(evict_known("", NULL), KVS_E_INVALID);
	assert_int_equal(evict_known("s3fifo", NULL), 0);
	assert_int_equal(evict_known("none", NULL), 0);
	assert_int_equal(evict_gives("arc", NULL), 0);
	assert_int_equal(evict_gives("mru", &err), KVS_E_INVALID);
	assert_string_equal(
		err.message,
		"policy: \"mru\" is not known; use one of: lru fifo lru-leaf s3fifo host-order arc");
	assert_int_equal(evict_gives("none", &err), KVS_E_INVALID);
	assert_string_equal(
		err.message,
		"policy: \"none\" never makes room; use one of: lru fifo lru-leaf s3fifo host-order arc");
	assert_int_equal(evict_open("lru", 0, &evict, &err), KVS_E_INVALID);
	assert_int_equal(evict_open("lru", EVICT_CAPACITY_MAX + 1, &evict, NULL), KVS_E_INVALID);
	assert_null(evict);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lru_lets_the_least_recently_used_go),
		cmocka_unit_test(fifo_ignores_uses),
		cmocka_unit_test(leaf_lru_eats_a_chain_from_its_end),
		cmocka_unit_test(settle_means_nothing_to_the_others),
		cmocka_unit_test(host_order_keeps_what_was_used),
		cmocka_unit_test(pinned_slots_keep_their_place),
		cmocka_unit_test(heat_counts_uses),
		cmocka_unit_test(the_renewed_go_last),
		cmocka_unit_test(none_gives_nobody_up),
		cmocka_unit_test(presence_and_counts),
		cmocka_unit_test(open_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
