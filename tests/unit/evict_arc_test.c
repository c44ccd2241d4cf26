/* SPDX-License-Identifier: Apache-2.0 */
/* How arc finds its balance, on sequences short enough to check by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "letters.h"

static void once_used_go_before_used_again(void **state)
{
	struct evict *evict = open_order("arc", 4);

	(void)state;
	insert(evict, "abcd");
	touch(evict, "bab");
	leave(evict, "cdab");
	evict_close(evict);
}

static void the_target_moves_both_ways(void **state)
{
	struct evict *evict = open_order("arc", 4);

	(void)state;
	insert(evict, "abcd");
	touch(evict, "ab");
	leave(evict, "c");
	/* It left too early: the recent queue shall have one slot, d, and the frequent one pays. */
	insert(evict, "c");
	leave(evict, "a");
	/* So did this one: now the recent queue shall have none. */
	insert(evict, "a");
	leave(evict, "dbca");
	evict_close(evict);
}

/* One name in the ghost of the recent queue, three in the other: the one weighs as much as they. */
static void a_rare_return_moves_the_target_far(void **state)
{
	struct evict *evict = open_order("arc", 8);

	(void)state;
	insert(evict, "abc");
	touch(evict, "abc");
	leave(evict, "abc");
	insert(evict, "defgh");
	leave(evict, "d");
	insert(evict, "d");
	/* Three of e, f, g, h shall stay. */
	leave(evict, "edfgh");
	evict_close(evict);
}

static void a_full_recent_queue_leaves_its_ghost_no_room(void **state)
{
	struct evict *evict = open_order("arc", 3);

	(void)state;
	insert(evict, "ab");
	leave(evict, "a");
	insert(evict, "c");
	leave(evict, "b");
	/* Forgotten, or it would have come to the frequent queue, and moved the target. */
	insert(evict, "a");
	leave(evict, "ca");
	evict_close(evict);
}

static void the_expelled_are_remembered_and_the_removed_are_not(void **state)
{
	struct evict *evict = open_order("arc", 4);

	(void)state;
	insert(evict, "abcd");
	evict_expel(evict, 0);
	assert_int_equal(evict_count(evict), 3);
	insert(evict, "a");
	leave(evict, "bcad");
	evict_close(evict);
	evict = open_order("arc", 4);
	insert(evict, "abcd");
	evict_remove(evict, 0);
	insert(evict, "a");
	leave(evict, "bcda");
	evict_close(evict);
}

static void each_part_has_a_balance_of_its_own(void **state)
{
	struct evict *evict = open_parts("arc", 16, 2);

	(void)state;
	insert_into(evict, 0, "abcd");
	insert_into(evict, 1, "efgh");
	touch(evict, "abef");
	leave_part(evict, 0, "c");
	insert_into(evict, 0, "c");
	leave_part(evict, 1, "gh");
	leave_part(evict, 0, "a");
	evict_close(evict);
}

/* No evidence for a balance that had no part in it. */
static void what_another_part_remembers_is_new(void **state)
{
	struct evict *evict = open_parts("arc", 16, 2);

	(void)state;
	insert_into(evict, 0, "abcd");
	leave_part(evict, 0, "a");
	insert_into(evict, 1, "ea");
	leave_part(evict, 1, "ea");
	evict_close(evict);
}

/* --- a cache of eight ------------------------------------------------------------------------ */

#define SLOTS 8u

struct cache {
	struct evict *evict;
	uint64_t      names[SLOTS]; /* 0: none */
	uint32_t      hits;
};

static void use(struct cache *cache, uint64_t name)
{
	uint32_t slot, empty = SLOT_NONE;

	for (slot = 0; slot < SLOTS; slot++) {
		if (cache->names[slot] == name) {
			evict_touch(cache->evict, slot);
			cache->hits++;
			return;
		}
		if (cache->names[slot] == 0 && empty == SLOT_NONE)
			empty = slot;
	}
	slot = empty == SLOT_NONE ? evict_victim(cache->evict, NULL, NULL) : empty;
	cache->names[slot] = name;
	evict_insert(cache->evict, slot, name);
}

/* Four that are used twice a round, and twelve that nobody asks for again. */
static uint32_t hits_among_scans(const char *policy, uint32_t rounds)
{
	struct cache cache = { .evict = open_order(policy, SLOTS) };
	uint64_t     once = 100;
	uint32_t     round, i;

	for (round = 0; round < rounds; round++) {
		for (i = 0; i < 8; i++)
			use(&cache, 1 + i % 4);
		for (i = 0; i < 12; i++)
			use(&cache, once++);
		evict_audit(cache.evict);
	}
	evict_close(cache.evict);
	return cache.hits;
}

static void a_scan_costs_lru_what_arc_keeps(void **state)
{
	(void)state;
	assert_int_equal(hits_among_scans("lru", 50), 50 * 4);
	assert_int_equal(hits_among_scans("arc", 50), 50 * 8 - 4);
}

/*
 * Four were used again and again, and nobody asks for them any more: a window moves on in which
 * each is used a second time, after five others.  That is too late for the four slots that are left.
 */
static void arc_lets_go_of_what_was_popular_once(void **state)
{
	const char *const policies[] = { "lru", "arc" };
	uint32_t          hits[2];
	uint64_t          i, p;

	(void)state;
	for (p = 0; p < 2; p++) {
		struct cache cache = { .evict = open_order(policies[p], SLOTS) };

		for (i = 0; i < 40; i++)
			use(&cache, 1 + i % 4);
		for (i = 0; i < 2000; i++)
			use(&cache, 100 + i / 2 - (i % 2 ? 3 : 0));
		hits[p] = cache.hits;
		evict_close(cache.evict);
	}
	assert_in_range(hits[1], hits[0] * 9 / 10, hits[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(once_used_go_before_used_again),
		cmocka_unit_test(the_target_moves_both_ways),
		cmocka_unit_test(a_rare_return_moves_the_target_far),
		cmocka_unit_test(a_full_recent_queue_leaves_its_ghost_no_room),
		cmocka_unit_test(the_expelled_are_remembered_and_the_removed_are_not),
		cmocka_unit_test(each_part_has_a_balance_of_its_own),
		cmocka_unit_test(what_another_part_remembers_is_new),
		cmocka_unit_test(a_scan_costs_lru_what_arc_keeps),
		cmocka_unit_test(arc_lets_go_of_what_was_popular_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
